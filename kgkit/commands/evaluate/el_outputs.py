"""Files that `kgkit evaluate el` writes while it links: predictions, gold as NIF, and a report."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kgkit.commands.messages import Messages
from kgkit.errors import UsageError
from kgkit.files import check_output_path, written

if TYPE_CHECKING:
    from kgkit.evaluation import GoldDocument, Labelled, LinkScore
    from kgkit.evaluation.el import LinkOutcome
    from kgkit.evaluation.el_causes import EntityFacts
    from kgkit.linking import Linker
    from kgkit.linking.page_titles import PageTitles
    from kgkit.types import LinkedDocument

NIF_SUFFIXES: Final = (".ttl", ".nif")
"""How the name of a file of predictions ends that are written as NIF."""

ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Write a page with every document and its errors, by class and type, as .html.",
    ),
]
NifOption = Annotated[
    Path | None,
    typer.Option("--nif", metavar="FILE", help="Write the data with their gold mentions as NIF, in Turtle."),
]
PrefixOption = Annotated[
    str,
    typer.Option(
        "--iri-prefix",
        metavar="IRI",
        help="What the IRIs of entities begin with in NIF that is written, and in other NIF that is read.",
    ),
]

WriteOutcomes = Callable[
    ["GoldDocument", "LinkedDocument", Sequence["Labelled"], Sequence["LinkOutcome"]], None
]
"""Takes a document with gold, its links, these as they are scored, and the outcomes."""


@dataclass(frozen=True, kw_only=True)
class LinkOutputs:
    """Which files are written.

    Attributes:
        predictions: file of links, NIF if its name ends as one of `NIF_SUFFIXES`; None: none.
        nif: file of the gold mentions; None: none.
        report: page with the errors; None: none.
        prefix: what the IRIs of entities begin with.
    """

    predictions: Path | None
    nif: Path | None
    report: Path | None
    prefix: str

    def check(self, read: Sequence[Path]) -> None:
        """Refuse files that cannot be written, before anything is computed.

        Args:
            read: files that are going to be read.

        Raises:
            UsageError: if one is a folder, one that is read, or another output; or the report is no page.
            NotThere: if there is no folder for one.
        """
        paths = [path for path in (self.predictions, self.nif, self.report) if path is not None]
        for index, path in enumerate(paths):
            check_output_path(path, [*read, *paths[:index]])
        if self.report is not None and self.report.suffix.lower() != ".html":
            raise UsageError(f"{self.report} is to be a page: its name ends in .html")

    def open(self, stack: ExitStack, linker: "Linker", page: "PageTitles") -> list[WriteOutcomes]:
        """Return what writes each document to the files, which appear when *stack* is closed."""
        writers: list[WriteOutcomes] = []
        if self.predictions is not None:
            writers.append(self._open_predictions(self.predictions, stack))
        if self.nif is not None:
            from kgkit.evaluation.nif import writing_nif

            write_nif = stack.enter_context(writing_nif(self.nif, self.prefix))
            writers.append(lambda gold, linked, links, outcomes: write_nif(gold.document, gold.gold))
        if self.report is not None:
            writers.append(_open_report(self.report, stack, linker, page))
        return writers

    def report_written(self, messages: Messages, together: "LinkScore") -> None:
        """Say what was written.

        Args:
            messages: where it is said.
            together: score of all data sets.
        """
        if self.predictions is not None:
            messages.write(
                f"{together.links:,} links in {together.documents:,} documents: {self.predictions}"
            )
        if self.nif is not None:
            messages.write(f"{together.documents:,} documents with gold: {self.nif}")
        if self.report is not None:
            messages.write(f"report: {self.report}")

    def _open_predictions(self, path: Path, stack: ExitStack) -> WriteOutcomes:
        from kgkit.evaluation import writing_links
        from kgkit.evaluation.nif import writing_nif

        suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
        if not any(suffix in NIF_SUFFIXES for suffix in suffixes):
            write_links = stack.enter_context(writing_links(path))
            return lambda gold, linked, links, outcomes: write_links(gold.document.id, links)
        write_nif = stack.enter_context(writing_nif(path, self.prefix))

        def write(
            gold: "GoldDocument",
            linked: "LinkedDocument",
            links: "Sequence[Labelled]",
            outcomes: "Sequence[LinkOutcome]",
        ) -> None:
            write_nif(gold.document, links, [link.score for link in linked.links])

        return write


def _open_report(path: Path, stack: ExitStack, linker: "Linker", page: "PageTitles") -> WriteOutcomes:
    from kgkit.linking.report import REPORT_FOOT, report_head, report_section

    stream = stack.enter_context(written(path))
    stream.write(report_head(f"{linker.model} over {linker.kb.name}").encode())

    def finish(kind: object, error: object, trace: object) -> None:
        if kind is None:
            stream.write(REPORT_FOOT.encode())

    stack.push(finish)
    facts = _entity_facts(linker, page)

    def write_section(
        gold: "GoldDocument",
        linked: "LinkedDocument",
        links: "Sequence[Labelled]",
        outcomes: "Sequence[LinkOutcome]",
    ) -> None:
        for part in report_section(gold, linked, outcomes, facts, linker.describe):
            stream.write(part.encode("utf-8", "replace"))

    return write_section


def _entity_facts(linker: "Linker", page: "PageTitles") -> "EntityFacts":
    from kgkit.evaluation.el_causes import EntityFacts

    kb = linker.kb

    def name_of(title: str) -> str:
        key = page(title)
        return (kb[key].label or title) if key in kb else title

    def type_of(title: str) -> str:
        key = page(title)
        return next(iter(kb[key].types), "") if key in kb else ""

    return EntityFacts(name_of, type_of, page)
