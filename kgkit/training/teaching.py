"""Documents that a trained tagger labels, for another one to learn from."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from kgkit.evaluation.ner import Name, NamedDocument
from kgkit.evaluation.plain_text import check_plain, read_plain
from kgkit.linking.mention_tagger import MentionTagger, TaggedMention
from kgkit.types import Document


def read_untagged(files: Iterable[Path], tagger: MentionTagger) -> Iterator[Document]:
    """Yield the documents of files of plain text, a sentence a line, in words as *tagger* has learnt them.

    Raises (when the first is asked for, or later):
        NotThere, SourceError, UsageError: as `check_plain` and `read_plain` do.
    """
    for path in files:
        check_plain(path)
        for number, sentences in enumerate(read_plain(path), 1):
            bounds, at = [], 0
            for sentence in sentences:
                bounds.append((at, at + len(sentence)))
                at += len(sentence) + 1
            text = "\n".join(sentences)
            yield Document(f"{path.name}:{number}", text, bounds, tagger.text_words(text))


def teach(tagger: MentionTagger, documents: Iterable[Document]) -> Iterator[NamedDocument]:
    """Yield documents with the names that a tagger finds in them."""
    for document in tagger(documents):
        names = [
            Name(mention.start, mention.end, mention.type)
            for mention in document.mentions or ()
            if isinstance(mention, TaggedMention)
        ]
        yield NamedDocument(Document(document.id, document.text, document.sentences, document.tokens), names)
