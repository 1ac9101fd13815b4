"""`kgkit tag`: find the names in texts."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    DeviceOption,
    HomeOption,
    InputFormatOption,
    JSONLinesOption,
    OutputOption,
    QuietOption,
    RecursiveOption,
    TableOption,
    TaggerOption,
    TypePriorOption,
)
from kgkit.commands.output import (
    Column,
    TitledTables,
    in_pipe,
    number,
    on_terminal,
    open_output,
    write_bytes,
)
from kgkit.commands.text_streams import STDIN, TextsArgument, check_streams
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from kgkit.linking.tagger import MentionTagger
    from kgkit.types import Document

_COLUMNS = (
    Column(heading="at", align="right"),
    Column(heading="name", wide=True),
    Column(heading="type", fit="keep"),
    Column(heading="score", align="right"),
)


def tag(
    model: TaggerOption,
    files: TextsArgument = None,
    threshold: Annotated[
        float,
        typer.Option("--threshold", min=0, max=1, metavar="SCORE", help="Leave out names below this score."),
    ] = 0.0,
    type_prior: TypePriorOption = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Draw the texts with the probabilities of the types of their words, as one page.",
        ),
    ] = None,
    device: DeviceOption = "auto",
    input_format: InputFormatOption = "auto",
    recursive: RecursiveOption = False,
    table: TableOption = False,
    jsonl: JSONLinesOption = False,
    output: OutputOption = None,
    home: HomeOption = None,
    quiet: QuietOption = False,
) -> None:
    """Find the names in texts, with a tagger that has been trained.

    Draws a table on a terminal and writes JSON lines in a pipe, one document a line; --html draws a page too.
    """
    from kgkit.commands.documents import read_documents
    from kgkit.commands.pieces import json_line
    from kgkit.linking.tagger import MentionTagger

    files, output, jsonl = check_streams(files, output, html, table=table, jsonl=jsonl)
    written = [path for path in (output, html) if path is not None]
    messages = Messages(quiet=quiet, bars=output is not None or not (on_terminal() or in_pipe()))
    documents = read_documents(files, input_format, recursive=recursive)
    tagger = MentionTagger.open(model, home=home, device=device, type_prior=type_prior)
    if STDIN in files and sys.stdin.isatty():
        messages.write("reading from the terminal; Ctrl-D on a line of its own ends it")
    with ExitStack() as stack, messages.progress("tagging") as tell:
        write = write_bytes if output is None else stack.enter_context(open_output(output))
        tables = None
        if output is None and (table or on_terminal()) and not jsonl:
            titled = files != [STDIN] or input_format in ("lines", "jsonl")
            tables = TitledTables(_COLUMNS, titled=titled, drawn=table, empty="no names")
        draw = None if html is None else stack.enter_context(_drawing(html, tagger))
        documents_written, names_written = 0, 0
        for document in tagger(map(_check_untagged, documents)):
            record = _as_dict(document, tagger.name, threshold)
            if tables is not None:
                tables.write(document.id, _rows(record["mentions"]))
            for piece in json_line(record) if tables is None else ():
                write(piece)
            if draw is not None:
                draw(document)
            documents_written, names_written = documents_written + 1, names_written + len(record["mentions"])
            tell(f"{documents_written:,} documents, {names_written:,} names")
    if written:
        paths = ", ".join(map(str, written))
        messages.write(f"{names_written:,} names in {documents_written:,} documents: {paths}")


def _check_untagged(document: "Document") -> "Document":
    """Return *document*, in which names are to be found.

    Raises:
        UsageError: if it has mentions, which would be lost.
    """
    if document.mentions is not None:
        raise UsageError(
            f"document {document.id!r} has mentions already, and kgkit tag finds its own: leave the field "
            "'mentions' out"
        )
    return document


def _drawing(path: Path, tagger: "MentionTagger") -> "AbstractContextManager[Callable[[Document], None]]":
    """Return what draws documents with the types of their words on a page."""
    from kgkit.commands.pieces import writing_page
    from kgkit.linking.types_html import typed_section

    def section(document: "Document") -> "Iterator[str]":
        """Return a document as a part of the page."""
        [words] = tagger.typed_words([document])
        return typed_section(document, words, tagger.types, tagger.name)

    return writing_page(path, "Names", section)


def _rows(names: "list[dict[str, Any]]") -> "Iterator[tuple[str, ...]]":
    for name in names:
        yield number(name["start"]), name["text"], name["type"], f"{name['score']:.2f}"


def _as_dict(document: "Document", model: str, threshold: float) -> dict[str, Any]:
    """Return a document with its names, ready for JSON."""
    from kgkit.linking.tagger import TaggedMention

    names = [
        {"start": name.start, "end": name.end, "text": name.text, "type": name.type, "score": name.score}
        for name in document.mentions or ()
        if isinstance(name, TaggedMention) and name.score >= threshold
    ]
    return {"id": document.id, "text": document.text, "model": model, "mentions": names}
