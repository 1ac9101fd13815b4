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
    OutputOption,
    QuietOption,
    TaggerOption,
)
from kgkit.commands.output import check_output_path, in_pipe, on_terminal, open_output, write_bytes
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from kgkit.types import Document

_STDIN = Path("-")


def tag(
    model: TaggerOption,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE", help="Texts; - is standard input, which is also read if none is named."
        ),
    ] = None,
    threshold: Annotated[
        float,
        typer.Option("--threshold", min=0, max=1, metavar="SCORE", help="Leave out names below this score."),
    ] = 0.0,
    device: DeviceOption = "auto",
    input_format: InputFormatOption = "auto",
    output: OutputOption = None,
    home: HomeOption = None,
    quiet: QuietOption = False,
) -> None:
    """Find the names in texts, with a tagger that has been trained.

    Writes JSON lines, one document a line.
    """
    from kgkit.commands.documents import read_documents
    from kgkit.commands.pieces import json_line
    from kgkit.linking.tagger import MentionTagger

    files = files or [_STDIN]
    if files.count(_STDIN) > 1:
        raise UsageError("standard input can be read once only: name - once")
    if output == _STDIN:
        output = None
    if output is not None:
        check_output_path(output)
        if output.resolve() in {file.resolve() for file in files}:
            raise UsageError(f"{output} is one of the texts to read; write to another file")
    messages = Messages(quiet=quiet, bars=output is not None or not (on_terminal() or in_pipe()))
    documents = read_documents(files, input_format)
    tagger = MentionTagger.open(model, home=home, device=device)
    if _STDIN in files and sys.stdin.isatty():
        messages.write("reading from the terminal; Ctrl-D on a line of its own ends it")
    with ExitStack() as stack, messages.progress("tagging") as tell:
        write = write_bytes if output is None else stack.enter_context(open_output(output))
        documents_written, names_written = 0, 0
        for document in tagger(map(_check_untagged, documents)):
            record = _as_dict(document, tagger.name, threshold)
            for piece in json_line(record):
                write(piece)
            documents_written, names_written = documents_written + 1, names_written + len(record["mentions"])
            tell(f"{documents_written:,} documents, {names_written:,} names")
    if output is not None:
        messages.write(f"{names_written:,} names in {documents_written:,} documents: {output}")


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


def _as_dict(document: "Document", model: str, threshold: float) -> dict[str, Any]:
    """Return a document with its names, ready for JSON."""
    from kgkit.linking.tagger import TaggedMention

    names = [
        {"start": name.start, "end": name.end, "text": name.text, "type": name.type, "score": name.score}
        for name in document.mentions or ()
        if isinstance(name, TaggedMention) and name.score >= threshold
    ]
    return {"id": document.id, "text": document.text, "model": model, "mentions": names}
