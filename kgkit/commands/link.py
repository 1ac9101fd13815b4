"""`kgkit link`: link texts to knowledge bases."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    InputFormatOption,
    JSONLinesOption,
    OutputOption,
    chosen_kb,
)
from kgkit.commands.output import Column, TitledTables, in_pipe, number, on_terminal, write_bytes
from kgkit.commands.ranked import meaning_of
from kgkit.commands.setting_options import takes_settings
from kgkit.commands.text_streams import (
    BadOption,
    ResumeOption,
    TextsArgument,
    WorkersOption,
    report_terminal,
)
from kgkit.errors import UsageError
from kgkit.linking.settings import LinkSettings

if TYPE_CHECKING:
    from kgkit.commands.corpora.chunks import DocumentAnswer
    from kgkit.commands.corpora.job import Take
    from kgkit.kb import KnowledgeBase
    from kgkit.types import Link, LinkedDocument

_COLUMNS = (
    Column(heading="at", align="right"),
    Column(heading="mention", most=24),
    Column(heading="entity", most=28),
    Column(heading="score", align="right"),
    Column(heading="meaning", wide=True),
)
_KB_COLUMN: Final = Column(heading="kb", most=16)
_PARTS = Column(heading="against the next")

LinkKBsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--kb",
        metavar="KB[=MODEL]",
        help="NAME or NAME@BUILD, perhaps with the model that scores its candidates; repeat it to link to "
        "several. By default $KGKIT_KB, what `kgkit kb default` set, or the only one, of several the one "
        "used last.",
    ),
]


@takes_settings(LinkSettings)
def link(
    files: TextsArgument = None,
    kb: LinkKBsOption = None,
    input_format: InputFormatOption = "auto",
    bad: BadOption = "stop",
    jsonl: JSONLinesOption = False,
    output: OutputOption = None,
    resume: ResumeOption = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Draw the texts with their links, on a page of its own."),
    ] = None,
    workers: WorkersOption = 1,
    **values: Any,
) -> None:
    """Link texts to a knowledge base, or to several.

    Draws a table on a terminal. In a pipe, and into a file, it writes JSON lines: one document a line.

    A file whose name ends in .parquet becomes Parquet; in one that ends in .csv, each link is a row.
    """
    from kgkit.commands.corpora.job import CorpusJob, run_job
    from kgkit.commands.corpora.linkers import LinkerFactory
    from kgkit.kb import open_kb

    settings = LinkSettings(**values)
    job = CorpusJob(
        files=files or (), output=output, html=html, jsonl=jsonl, input_format=input_format,
        workers=workers, resume=resume, bad=bad,
    )  # fmt: skip
    shown = job.output is None and (job.jsonl or html is None)
    messages = Messages(bars=not shown or not (job.jsonl or on_terminal() or in_pipe()))
    if job.is_finished(messages):
        return
    models = _models_by_kb(kb, settings.model)
    report_terminal(job.files, messages)
    with ExitStack() as stack:
        kbs = {name: stack.enter_context(open_kb(name)) for name in models}
        factory = LinkerFactory(
            models={f"{kbs[name].name}@{kbs[name].build}": model for name, model in models.items()},
            settings=settings,
        )
        takes: list[Take] = []
        if shown and job.is_drawn:
            takes.append(_Tables(kbs.values(), titled=job.is_titled, explained=settings.explain))
        if html is not None:
            takes.append(stack.enter_context(_drawing(html, kbs.values())))
        run_job(
            job, factory, messages=messages, write=write_bytes if shown and not job.is_drawn else None,
            takes=takes,
            on_start=_model_reporter(models, kbs.values(), messages),
        )  # fmt: skip


def _model_reporter(
    models: Mapping[str, str], kbs: "Iterable[KnowledgeBase]", messages: Messages
) -> Callable[[str], None]:
    """Return what names the model that links, and why it does, where `auto` has chosen it."""
    from kgkit.linking.auto import describe_choice, named_model, outdated_linkers, trained_linkers

    def report(name: str) -> None:
        if named_model() is not None:
            return
        names = [pair.partition("=")[-1] for pair in name.split(", ")] if len(models) > 1 else [name]
        for kb, model, taken in zip(kbs, models.values(), names, strict=True):
            if model == "auto":
                taken = taken.removesuffix("+graph")
                messages.write(
                    f"model: {taken}, {describe_choice(kb, taken)}; --model or $KGKIT_MODEL takes another"
                )
                if (outdated := outdated_linkers(kb)) and taken not in trained_linkers(kb):
                    messages.write(
                        f"{', '.join(outdated)}: trained for an earlier build of {kb.name}, so not used: "
                        "train again; `kgkit kb add` adds entities to a build and keeps its linkers"
                    )

    return report


def _models_by_kb(kbs: Sequence[str] | None, model: str) -> dict[str, str]:
    """Return the model of each knowledge base that the user named, or of the one that is the default.

    Raises:
        UsageError: if one is named twice, or a name is empty.
        NotThere: if none is named and none is there.
    """
    if not kbs or len(kbs) == 1:
        name, separator, own = kbs[0].partition("=") if kbs else (None, "", "")
        check_named(kbs or [])
        return {chosen_kb(name, recent=True): own if separator else model}
    check_named(kbs)
    pairs = [text.partition("=") for text in kbs]
    names = [name for name, _, _ in pairs]
    if repeats := [name for index, name in enumerate(names) if name in names[:index]]:
        raise UsageError(f"--kb {repeats[0]}: named twice, and a text is linked to a knowledge base once")
    return {name: own if separator else model for name, separator, own in pairs}


def check_named(kbs: Sequence[str]) -> None:
    """Refuse a knowledge base without a name, and one with an empty model."""
    for text in kbs:
        name, separator, model = text.partition("=")
        if not name or (separator and not model):
            raise UsageError(f"--kb {text!r}: it is KB, or KB=MODEL, as --kb wordnet=prior")


@contextmanager
def _drawing(path: Path, kbs: "Iterable[KnowledgeBase]") -> "Iterator[Take]":
    """Give what draws linked documents on a page."""
    from kgkit.commands.pages import writing_page
    from kgkit.drawing.links import section
    from kgkit.linking import Linker

    linkers = [Linker(kb) for kb in kbs]  # which link nothing: they know what entities mean
    describe = {linker.kb.name: linker.describe for linker in linkers}
    type_of = {linker.kb.name: linker.type_of for linker in linkers}
    with writing_page(path, "Links", partial(section, describe=describe, type_of=type_of)) as draw:
        yield lambda answer: draw(answer.document)


class _Tables:
    """Draws a table of links for each document."""

    def __init__(self, kbs: "Iterable[KnowledgeBase]", *, titled: bool, explained: bool) -> None:
        self.kbs, self.explained = {kb.name: kb for kb in kbs}, explained
        kb_column = [_KB_COLUMN] if len(self.kbs) > 1 else []
        columns = [*_COLUMNS[:3], *kb_column, _COLUMNS[3], *([_PARTS] if explained else []), _COLUMNS[-1]]
        empty = f"no links to {', '.join(self.kbs)}"
        self.tables = TitledTables(columns, titled=titled, empty=empty)

    def __call__(self, answer: "DocumentAnswer") -> None:
        self.tables.write(answer.document.id, self._rows(answer.document))  # type: ignore[arg-type]

    def _rows(self, linked: "LinkedDocument") -> Iterator[tuple[str, ...]]:
        for link in linked.links:
            entity = None if link.entity is None else self.kbs[link.kb].get(link.entity)
            meaning = "" if entity is None else meaning_of(entity)
            kb = [link.kb] if len(self.kbs) > 1 else []
            parts = [_described(link)] if self.explained else []
            name = link.entity or "NIL"
            yield number(link.start), link.text, name, *kb, f"{link.score:.2f}", *parts, meaning


def _described(link: "Link") -> str:
    """Return the parts of a link's score, less those of the second candidate: `context +1.2`."""
    if link.nil or not link.candidates:
        return ""
    best, *runners_up = [candidate.parts or {} for candidate in link.candidates]
    second = runners_up[0] if runners_up else dict.fromkeys(best, 0.0)
    return ", ".join(f"{name} {value - second.get(name, 0.0):+.1f}" for name, value in best.items())
