"""A spaCy pipeline as a tagger: its entities are the mentions.

kgkit link letter.txt --kb mine --mentions spacy:en_core_web_sm
"""

from collections.abc import Iterator, Sequence
from typing import Final

from kgkit.errors import DamagedModel, MissingExtra, NotThere, UsageError
from kgkit.home import explicit_path, here_hint
from kgkit.tagging.mention_tagger import SPACY, MentionTagger, TaggedMention, TypedWord
from kgkit.types import Document, Mention

try:
    import spacy
    from spacy.language import Language
    from spacy.tokens import Doc
except ImportError as missing:
    raise MissingExtra("spacy", "spacy") from missing

_ENTITIES: Final = "doc.ents"
_NO_SUCH_PIPELINE: Final = "E050"  # spaCy's code of the error


class SpacyTagger(MentionTagger):
    """Finds names by the entities that a spaCy pipeline sets (`Doc.ents`).

    The whole pipeline runs, as a rule of its entities may read what any of its components sets. spaCy gives
    entities no probability: every mention has the score 1.

    Args:
        nlp: pipeline.
        name: name that it is called by; unless given, that of its `meta`.

    Raises:
        UsageError: if no component of the pipeline sets entities.

    Examples:
        >>> linker = Linker.open("wikipedia", mentions="spacy:en_core_web_sm")
    """

    def __init__(self, nlp: Language, name: str | None = None) -> None:
        super().__init__(name or f"{SPACY}{nlp.meta['lang']}_{nlp.meta['name']}")
        if not any(_ENTITIES in nlp.get_pipe_meta(component).assigns for component in nlp.pipe_names):
            components = ", ".join(nlp.pipe_names) or "none"
            raise UsageError(
                f"the spaCy pipeline {self.name} finds no names: none of its components sets entities (there "
                f"are: {components}); name one with `ner` or `entity_ruler`"
            )
        self.nlp = nlp

    @classmethod
    def load(cls, pipeline: str) -> "SpacyTagger":
        """Load a pipeline, the name of an installed package or the path of a folder.

        A pipeline is a program: load what you trust.

        Raises:
            NotThere: if there is none.
            DamagedModel: if spaCy cannot load it.
            UsageError: if it finds no names, or the name is empty.
        """
        if not pipeline:
            raise UsageError(f"{SPACY} wants the name of a pipeline, as {SPACY}en_core_web_sm")
        path = explicit_path(pipeline)
        if path is not None and not path.exists():
            raise NotThere(f"no spaCy pipeline in {pipeline}: there is no such folder")
        if path is None and (hint := here_hint(pipeline)) and not spacy.util.is_package(pipeline):
            raise NotThere(f"no spaCy pipeline {pipeline!r} is installed: {hint}")
        try:
            nlp = spacy.load(path or pipeline)
        except OSError as error:
            if _NO_SUCH_PIPELINE not in str(error):
                raise DamagedModel(f"the spaCy pipeline {pipeline} cannot be loaded: {error}") from error
            raise NotThere(
                f"no spaCy pipeline {pipeline!r}: install one of spaCy's own, as "
                "`python -m spacy download en_core_web_sm` does, or give the folder of another"
            ) from error
        except (ImportError, KeyError, TypeError, ValueError) as error:
            raise DamagedModel(f"the spaCy pipeline {pipeline} cannot be loaded: {error}") from error
        return cls(nlp, f"{SPACY}{pipeline}")

    @property
    def types(self) -> tuple[str, ...]:
        """Labels of the components that set entities, sorted."""
        labels: set[str] = set()
        for component in self.nlp.pipe_names:
            if _ENTITIES in self.nlp.get_pipe_meta(component).assigns:
                labels.update(getattr(self.nlp.get_pipe(component), "labels", ()))
        return tuple(sorted(labels))

    def text_words(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of the tokens of a text, as the pipeline cuts it."""
        return [(token.idx, token.idx + len(token)) for token in self.nlp.make_doc(text)]

    def typed_words(self, documents: Sequence[Document]) -> list[list[TypedWord]]:
        """Return the tokens of each document with the probabilities of their types, which are 0 or 1."""
        types = ("", *self.types)

        def probabilities(label: str) -> tuple[float, ...]:
            return tuple(float(label == each) for each in types)

        return [
            [TypedWord(token.idx, token.idx + len(token), probabilities(token.ent_type_)) for token in doc]
            for doc in self._docs(documents)
        ]

    def mentions(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Return the entities of each document, in order."""
        return [
            [TaggedMention(span.start_char, span.end_char, span.text, type=span.label_) for span in doc.ents]
            for doc in self._docs(documents)
        ]

    def _docs(self, documents: Sequence[Document]) -> Iterator[Doc]:
        """Yield the documents as the pipeline has read them.

        Raises:
            UsageError: if a document is longer than the pipeline takes.
        """
        for document in documents:
            if len(document.text) > self.nlp.max_length:
                raise UsageError(
                    f"document {document.id!r} has {len(document.text):,} characters, and {self.name} takes "
                    f"{self.nlp.max_length:,} at most: cut it"
                )
        docs: Iterator[Doc] = self.nlp.pipe(document.text for document in documents)
        return docs
