"""`kgkit tag`: find the names in texts."""

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    DeviceOption,
    InputFormatOption,
    JSONLinesOption,
    OutputOption,
    TaggerOption,
)
from kgkit.commands.output import Column, TitledTables, in_pipe, number, on_terminal, write_bytes
from kgkit.commands.text_streams import (
    BadOption,
    ResumeOption,
    TextsArgument,
    WorkersOption,
    report_terminal,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kgkit.commands.corpora.chunks import DocumentAnswer
    from kgkit.commands.corpora.job import Take
    from kgkit.commands.corpora.taggers import TaggerFactory
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
    bad: BadOption = "stop",
    jsonl: JSONLinesOption = False,
    output: OutputOption = None,
    resume: ResumeOption = False,
    workers: WorkersOption = 1,
) -> None:
    """Find the names in texts, with a tagger that has been trained.

    Draws a table on a terminal and writes JSON lines in a pipe, one document a line; --html draws a page too.
    """
    from kgkit.commands.corpora.job import CorpusJob, run_job
    from kgkit.commands.corpora.taggers import TaggerFactory
    from kgkit.home import Home

    job = CorpusJob(
        files=files or (), output=output, html=html, jsonl=jsonl, input_format=input_format,
        workers=workers, resume=resume, bad=bad,
    )  # fmt: skip
    messages = Messages(bars=job.output is not None or not (on_terminal() or in_pipe()))
    if job.is_finished(messages):
        return
    report_terminal(job.files, messages)
    factory = TaggerFactory(model=model, home=Home.find(), device=device, threshold=threshold)
    takes: list[Take] = []
    if job.is_drawn:
        takes.append(_Tables(titled=job.is_titled))
    with ExitStack() as stack:
        if html is not None:
            takes.append(stack.enter_context(_drawing(html, factory)))
        run_job(
            job, factory, messages=messages, write=None if job.is_drawn else write_bytes, takes=takes,
        )  # fmt: skip


@contextmanager
def _drawing(path: Path, factory: "TaggerFactory") -> "Iterator[Take]":
    """Give what draws documents with the types of their words on a page."""
    from kgkit.commands.pages import writing_page
    from kgkit.tagging.html import typed_section

    with factory.open() as answerer:
        tagger = answerer.tagger

        def section(document: "Document") -> "Iterator[str]":
            """Return a document as a part of the page."""
            [words] = tagger.typed_words([document])
            return typed_section(document, words, tagger.types, tagger.name)

        with writing_page(path, "Names", section) as draw:
            yield lambda answer: draw(cast("Document", answer.document))


class _Tables:
    """Draws a table of names for each document."""

    def __init__(self, *, titled: bool) -> None:
        self._tables = TitledTables(_COLUMNS, titled=titled, empty="no names")

    def __call__(self, answer: "DocumentAnswer") -> None:
        self._tables.write(answer.document.id, _rows(answer.record["mentions"]))


def _rows(names: "list[dict[str, Any]]") -> "Iterator[tuple[str, ...]]":
    for name in names:
        yield number(name["start"]), name["text"], name["type"], f"{name['score']:.2f}"
