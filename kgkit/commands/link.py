"""`kgkit link`: link texts to a knowledge base."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgkit.commands.messages import Messages, ProgressCallback
from kgkit.commands.options import (
    AllSurfacesOption,
    CoherenceOption,
    DeviceOption,
    HomeOption,
    InputFormatOption,
    JSONLinesOption,
    KBOption,
    LinkModelOption,
    MaxCandidatesOption,
    OutputOption,
    OverlapsOption,
    QuietOption,
    RecursiveOption,
    TableOption,
    ThresholdOption,
    VectorsOption,
    chosen_kb,
    flag,
)
from kgkit.commands.output import (
    Column,
    TitledTables,
    Write,
    counted,
    in_pipe,
    number,
    on_terminal,
    open_output,
    write_bytes,
)
from kgkit.commands.text_streams import STDIN, TextsArgument, check_streams

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase
    from kgkit.linking import Linker
    from kgkit.types import Document, Link, LinkedDocument

Take = Callable[["LinkedDocument"], None]
"""Does something with one linked document."""

_COLUMNS = (
    Column(heading="at", align="right"),
    Column(heading="mention", most=24),
    Column(heading="entity", most=28),
    Column(heading="score", align="right"),
    Column(heading="meaning", wide=True),
)
_PARTS = Column(heading="against the next")


def link(
    files: TextsArgument = None,
    kb: KBOption = None,
    model: LinkModelOption = "auto",
    vectors: VectorsOption = None,
    device: DeviceOption = "auto",
    coherence: CoherenceOption = None,
    mentions: Annotated[
        str | None,
        typer.Option(
            "--mentions",
            metavar="NAME",
            help="Tagger whose names are linked, or kb for all that the KB has; by default the model's own, "
            "else all.",
        ),
    ] = None,
    threshold: ThresholdOption = None,
    nil: Annotated[
        bool,
        flag("--nil", help="Keep mentions that mean nothing in the KB, marked, instead of dropping them."),
    ] = False,
    top_k: Annotated[
        int, typer.Option("--top-k", min=0, metavar="N", help="Candidates to write with each link.")
    ] = 5,
    explain: Annotated[
        bool, flag("--explain", help="Say what scores are made of: prior, context, coherence.")
    ] = False,
    overlaps: OverlapsOption = "longest",
    all_surfaces: AllSurfacesOption = False,
    max_candidates: MaxCandidatesOption = 30,
    input_format: InputFormatOption = "auto",
    recursive: RecursiveOption = False,
    table: TableOption = False,
    jsonl: JSONLinesOption = False,
    output: OutputOption = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Draw the texts with their links, on a page of its own."),
    ] = None,
    home: HomeOption = None,
    quiet: QuietOption = False,
) -> None:
    """Link texts to a knowledge base.

    Draws a table on a terminal and writes JSON lines in a pipe, one document a line.
    """
    from kgkit.commands.documents import read_documents
    from kgkit.encoder.import_stubs import only_encodes
    from kgkit.linking import Linker
    from kgkit.linking.auto import MODEL_VARIABLE

    files, output, jsonl = check_streams(files, output, html, table=table, jsonl=jsonl)
    written = [path for path in (output, html) if path is not None]
    shown = output is None and (jsonl or table or html is None)
    messages = Messages(quiet=quiet, bars=not shown or not (jsonl or on_terminal() or in_pipe()))
    documents = read_documents(files, input_format, recursive=recursive)
    if model != "prior" or mentions is not None:
        only_encodes()
    linker = Linker.open(
        chosen_kb(kb, home, recent=True, quiet=quiet), home=home, model=model, coherence=coherence,
        threshold=threshold,
        nil="mark" if nil else "drop", top_k=top_k, overlaps=overlaps, vectors=vectors, device=device,
        mentions=mentions, all_surfaces=all_surfaces, explain=explain, max_candidates=max_candidates or None,
    )  # fmt: skip
    if model == "auto" and MODEL_VARIABLE not in os.environ:
        messages.write(f"model: {linker.scorer.name}, the best for {linker.kb.name}; --model takes another")
    if STDIN in files and sys.stdin.isatty():
        messages.write("reading from the terminal; Ctrl-D on a line of its own ends it")
    with linker.kb, ExitStack() as stack:
        takes: list[Take] = []
        if output is not None:
            takes.append(_into(stack.enter_context(open_output(output))))
        elif shown and (table or on_terminal()) and not jsonl:
            titled = files != [STDIN] or input_format in ("lines", "jsonl")
            takes.append(_Tables(linker.kb, titled=titled, drawn=table, explained=explain))
        elif shown:
            takes.append(_into(write_bytes))
        if html is not None:
            from kgkit.commands.pieces import writing_page
            from kgkit.linking.html import section

            draw = partial(section, describe=linker.describe, type_of=linker.type_of)
            takes.append(stack.enter_context(writing_page(html, "Links", draw)))
        with messages.progress("linking") as tell:
            count, links = 0, 0
            _tell_of_encoding(linker, tell)
            for linked in linker(_with_candidates(linker.kb, documents)):
                for take in takes:
                    take(linked)
                count, links = count + 1, links + len(linked.links)
                tell(f"{counted(count, 'document')}, {counted(links, 'link')}", count)
    messages.write_omissions([linker.generator.omissions])
    if written:
        paths = ", ".join(map(str, written))
        messages.write(f"{counted(links, 'link')} in {counted(count, 'document')}: {paths}")


def _tell_of_encoding(linker: "Linker", tell: ProgressCallback) -> None:
    """Show how many texts of entities are encoded, where a model's vectors are filled as they are used."""
    vectors: Any = getattr(linker.scorer, "vectors", None)
    if hasattr(vectors, "progress"):
        vectors.progress = lambda stage, count, total: tell(
            f"{stage}, {count:,} of {counted(total, 'text')}", count, total
        )


def _with_candidates(kb: "KnowledgeBase", documents: "Iterator[Document]") -> "Iterator[Document]":
    """Yield *documents* with the candidates that their mentions came with."""
    from kgkit.candidates import with_candidates
    from kgkit.commands.documents import GivenDocument

    for document in documents:
        if isinstance(document, GivenDocument):
            document = with_candidates(kb, document, document.candidates)
        yield document


def _into(write: Write) -> Take:
    """Return what writes a document as a line of JSON."""
    from kgkit.commands.pieces import json_line

    def take(linked: "LinkedDocument") -> None:
        """Write a linked document as a line of JSON."""
        record = {name: getattr(linked, name) for name in linked.__struct_fields__}
        for piece in json_line(record):
            write(piece)

    return take


class _Tables:
    """Draws a table of links for each document."""

    def __init__(self, kb: "KnowledgeBase", *, titled: bool, drawn: bool, explained: bool) -> None:
        self.kb, self.explained = kb, explained
        columns = [*_COLUMNS[:-1], *([_PARTS] if explained else []), _COLUMNS[-1]]
        self.tables = TitledTables(columns, titled=titled, drawn=drawn, empty="no links")

    def __call__(self, linked: "LinkedDocument") -> None:
        self.tables.write(linked.id, self._rows(linked))

    def _rows(self, linked: "LinkedDocument") -> Iterator[tuple[str, ...]]:
        for link in linked.links:
            entity = None if link.entity is None else self.kb.get(link.entity)
            meaning = "" if entity is None else entity.description or entity.label
            parts = [_described(link)] if self.explained else []
            yield number(link.start), link.text, link.entity or "NIL", f"{link.score:.2f}", *parts, meaning


def _described(link: "Link") -> str:
    """Return the parts of a link's score, less those of the second candidate: `context +1.2`."""
    if link.nil:
        return ""
    best, *runners_up = [candidate.parts or {} for candidate in link.candidates]
    second = runners_up[0] if runners_up else dict.fromkeys(best, 0.0)
    return ", ".join(f"{name} {value - second.get(name, 0.0):+.1f}" for name, value in best.items())
