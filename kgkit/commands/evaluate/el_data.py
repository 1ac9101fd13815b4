"""What `kgkit evaluate el` reads and links: data sets in any format, a document at a time."""

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from kgkit.commands.confidence import ConfidenceRecorder
from kgkit.commands.evaluate.sets import set_names
from kgkit.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from kgkit.evaluation import GoldDocument, Labelled
    from kgkit.kb import KnowledgeBase
    from kgkit.linking.page_titles import PageTitles
    from kgkit.types import Document, Link

DATA_SUFFIXES: Final = (".jsonl", ".ndjson", ".json", ".tsv", ".ttl", ".nt", ".nif", ".spacy")
"""How the names of data sets end, without what says how they are compressed."""

DataFormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Format of the data: kgkit, elevant, kilt, aida, nif, docbin or linked; else as it begins.",
    ),
]
LabelFieldOption = Annotated[
    Literal["id", "name"],
    typer.Option("--entities", help="What of ELEVANT's labels is compared with keys of the KB: id or name."),
]
MentionsOption = Annotated[
    str | None,
    typer.Option(
        "--mentions",
        metavar="WHOSE",
        help="Mentions to link: given (those of the data), found (names that the KB has), all (as for kgkit "
        "link), or those of a tagger, by its name. By default those of the model's own tagger, else found.",
    ),
]
RedirectsOption = Annotated[
    Path | None,
    typer.Option(
        "--redirects",
        metavar="FILE",
        help="JSON object from title to title of the same page; both count as equal.",
    ),
]


class GoldSets:
    """The data sets, by name, as streams of documents.

    Args:
        data: their files.
        data_format: format of all of them; None: as each begins.
        entities: field of ELEVANT's labels that is compared.
        prefix: beginning of the IRIs of entities in NIF.

    Attributes:
        formats: format of each file.

    Raises:
        UnknownName: if there is no such format.
        SourceError: if a file has none of the formats.
        UsageError (while they are read): if two have a document in common, which would count twice.
    """

    def __init__(
        self, data: Iterable[Path], data_format: str | None, entities: Literal["id", "name"], prefix: str
    ) -> None:
        from kgkit.evaluation.el_formats import GOLD_FORMATS, gold_format

        self.data, self.entities, self.prefix = list(data), entities, prefix
        by_name = {name: name for name in GOLD_FORMATS}
        if data_format is not None and data_format not in by_name:
            raise UnknownName("format of data", data_format, GOLD_FORMATS)
        self.formats = {
            path: gold_format(path) if data_format is None else by_name[data_format] for path in self.data
        }
        self._document_ids: set[str] = set()

    def __iter__(self) -> Iterator[tuple[str, Iterator["GoldDocument"]]]:
        names = set_names(self.data, *DATA_SUFFIXES)
        for name, path in zip(names, self.data, strict=True):
            yield name, self._documents(path)

    def _documents(self, path: Path) -> Iterator["GoldDocument"]:
        from kgkit.evaluation.el_formats import read_gold_data

        documents = read_gold_data(path, self.formats[path], entities=self.entities, prefix=self.prefix)
        for gold in documents:
            name = gold.document.id
            if name in self._document_ids:
                raise UsageError(f"two of the data sets have the document {name!r}: score them one at a time")
            self._document_ids.add(name)
            yield gold


class LinkVerdict:
    """Checks whether a link is right."""

    def __init__(self, gold: "GoldDocument", page: "PageTitles") -> None:
        self.page = page
        self.gold = {(label.start, label.end): label.entity for label in gold.gold}

    def __call__(self, link: "Link") -> bool:
        entity = self.gold.get((link.start, link.end))
        return None not in (entity, link.entity) and self.page(entity or "") == self.page(link.entity or "")


def link_documents(
    linker: ConfidenceRecorder, documents: Iterable["GoldDocument"], kb: "KnowledgeBase | None"
) -> Iterator[tuple["GoldDocument", list["Labelled"]]]:
    """Yield each document with its links, as the linker gets to them.

    With a *kb*, spans are those of the data, and candidates too where the data have some.
    """
    from msgspec import structs

    from kgkit.candidates import with_candidates
    from kgkit.evaluation import links_of

    waiting: deque[GoldDocument] = deque()

    def inputs() -> Iterator["Document"]:
        """Yield documents without their gold mentions, or with these and their candidates in *kb*."""
        for gold in documents:
            waiting.append(gold)
            if kb is None:
                yield structs.replace(gold.document, mentions=None)
            else:
                yield with_candidates(kb, gold.document, gold.candidates)

    for linked in linker(inputs()):
        yield waiting.popleft(), links_of(linked)
