"""Links to several knowledge bases at once, those of short names among them; `kgkit.link`.

Each document goes to a linker for each knowledge base, and has the links of all; a link says which knowledge
base its entity is in. Documents are read as they are linked: no more than the linkers' largest batch is in
memory.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import tee
from typing import TYPE_CHECKING, Unpack, overload

import msgspec

from kgkit.candidates import Generator
from kgkit.drawing.links import Describe
from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
from kgkit.linking.linker import Linker, refer_back
from kgkit.linking.references import References
from kgkit.linking.settings import LinkArguments, LinkSettings
from kgkit.types import Document, LinkedDocument

if TYPE_CHECKING:
    from typing import Self


class MultiKBLinker:
    """Links documents to each of several knowledge bases, and short names.

    Args:
        linkers: linkers, one for each knowledge base.
        references: whether short names are linked too, see `kgkit.linking.references`.

    Attributes:
        kbs: knowledge bases of the linkers.
        generators: generators of the linkers.
        describe: function for each knowledge base, by its name, that says what an entity means.
        type_of: function for each knowledge base, by its name, that gives the type of an entity.

    Raises:
        UsageError: if there is no linker, or two of them link to one knowledge base.
    """

    def __init__(self, linkers: Sequence[Linker], *, references: bool = False) -> None:
        if not linkers:
            raise UsageError("there is no knowledge base to link to")
        names = [linker.kb.name for linker in linkers]
        if repeats := [name for name, count in Counter(names).items() if count > 1]:
            raise UsageError(
                f"the knowledge base {repeats[0]} is named twice, and a text is linked to each once: leave "
                "out one of them"
            )
        self.linkers = linkers
        self.kbs: list[KnowledgeBase] = [linker.kb for linker in linkers]
        self.generators: list[Generator] = [linker.generator for linker in linkers]
        self.describe: Mapping[str, Describe] = {each.kb.name: each.describe for each in linkers}
        self.type_of: Mapping[str, Describe] = {each.kb.name: each.type_of for each in linkers}
        self._references = References(self.kbs) if references else None
        self._opened = ExitStack()

    @classmethod
    def open(
        cls,
        kbs: Mapping[str, str] | Sequence[str | KnowledgeBase | None],
        *,
        home: str | os.PathLike[str] | None = None,
        **settings: Unpack[LinkArguments],
    ) -> "MultiKBLinker":
        """Open a linker on each of several knowledge bases; `close`, or the end of `with`, closes them.

        Args:
            kbs: knowledge bases as `Linker.open` takes one, or a mapping from their names to models.
            home: folder of knowledge bases and models; `KGKIT_HOME` or the platform's place unless given.
            settings: settings, as in `LinkSettings`.

        Raises:
            KgkitError: as `Linker.open` does.
        """
        chosen = LinkSettings(**settings)
        each = replace(chosen, references=False)
        pairs = kbs.items() if isinstance(kbs, Mapping) else [(kb, each.model) for kb in kbs]
        with ExitStack() as stack:
            linkers = []
            for kb, model in pairs:
                linkers.append(Linker.open(kb, home=home, **vars(replace(each, model=model))))
                if linkers[-1].kb is not kb:
                    stack.enter_context(linkers[-1])
            linker = cls(linkers, references=chosen.references)
            linker._opened = stack.pop_all()
        return linker

    def close(self) -> None:
        """Close the knowledge bases that were opened by their names."""
        self._opened.close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def model(self) -> str:
        """The name that documents carry: the linker's, or of several `KB=MODEL, KB=MODEL`."""
        if len(self.linkers) == 1:
            return self.linkers[0].model
        return ", ".join(f"{linker.kb.name}={linker.model}" for linker in self.linkers)

    def __call__(self, documents: Iterable[Document | str]) -> Iterator[LinkedDocument]:
        """Yield each document with the links to all knowledge bases, in order of their start.

        Links to different knowledge bases may overlap; of links that start together, those to the first
        knowledge base come first.

        Raises:
            TypeError, UsageError, DamagedModel: as a `Linker` does.
        """
        if len(self.linkers) == 1 and self._references is None:
            return self.linkers[0](documents)
        return self._linked(documents)

    def _linked(self, documents: Iterable[Document | str]) -> Iterator[LinkedDocument]:
        copies = tee(documents, len(self.linkers))
        streams = [linker(copy) for linker, copy in zip(self.linkers, copies, strict=True)]
        for parts in zip(*streams, strict=True):
            links = [link for part in parts for link in part.links]
            links.sort(key=lambda link: link.start)
            linked = msgspec.structs.replace(parts[0], model=self.model, links=links)
            if self._references is not None:
                linked = refer_back(linked, self._references, [each.corrections for each in self.linkers])
            yield linked


LinkedKBs = str | KnowledgeBase | Mapping[str, str] | None
"""A knowledge base, or several by their names, with a model each."""


@overload
def link(  # type: ignore[overload-overlap]  # a str is an iterable of str too
    text: str | Document,
    kb: LinkedKBs = None,
    *,
    home: str | os.PathLike[str] | None = None,
    **settings: Unpack[LinkArguments],
) -> LinkedDocument: ...
@overload
def link(
    text: Iterable[str | Document],
    kb: LinkedKBs = None,
    *,
    home: str | os.PathLike[str] | None = None,
    **settings: Unpack[LinkArguments],
) -> list[LinkedDocument]: ...
def link(
    text: str | Document | Iterable[str | Document],
    kb: LinkedKBs = None,
    *,
    home: str | os.PathLike[str] | None = None,
    **settings: Unpack[LinkArguments],
) -> LinkedDocument | list[LinkedDocument]:
    """Link a text, or several.

    Every call opens the knowledge base and the model. For call after call, or for more texts than fit into
    memory with their links, keep a `Linker`: it remembers what it has looked up, and `pipe` yields.

    Args:
        text: string of any length, or a `Document`; or several.
        kb: handle, `NAME`, `NAME@BUILD`, or None if there is one KB only. Or several: a mapping from their
            names to models, as `{"wordnet": "wsd-minilm", "aida": "auto"}`; links say which KB they are to.
        home: folder of knowledge bases and models; `KGKIT_HOME` or the platform's place unless given.
        settings: settings, as in `LinkSettings`.

    Returns:
        The text with its links; for several texts, a list.

    Raises:
        NotThere: if there is no such KB, or what the model needs has not been made or installed.
        UnknownName: if there is no such model, or no such tagger.
        UsageError: if a setting is out of range.

    Examples:
        >>> linked = kgkit.link("The geese flew off.", kb="wordnet", model="prior")
        >>> [(link.text, link.entity) for link in linked.links]
        [('geese', 'goose.n.01'), ('flew off', 'fly.v.…')]
    """
    alone = isinstance(text, str | Document)
    if not alone and (isinstance(text, bytes | Mapping) or not isinstance(text, Iterable)):
        advice = "; read it first: PATH.read_text()" if isinstance(text, os.PathLike) else ""
        raise TypeError(f"a text is a str or a kgkit.Document, not {type(text).__name__}{advice}")
    documents = [text] if isinstance(text, str | Document) else text
    kbs = kb if isinstance(kb, Mapping) else [kb]
    with MultiKBLinker.open(kbs, home=home, **settings) as linker:
        return next(linker(documents)) if alone else list(linker(documents))
