"""`kgkit evaluate ner`: score a tagger on finding names."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import DeviceOption, HomeOption, JSONOption, QuietOption, TaggerOption
from kgkit.commands.output import (
    Column,
    check_files,
    check_place,
    number,
    on_terminal,
    typed,
    write_json,
    write_line,
    write_table,
)

if TYPE_CHECKING:
    from kgkit.evaluation.ner import NameScores

_SUFFIXES = (".xz", ".bz2", ".gz", ".txt", ".conll")


def ner(
    data: Annotated[
        list[Path],
        typer.Option(
            "--data",
            metavar="FILE",
            help="As CoNLL-2003 has it, or compressed (.xz, .bz2, .gz); repeat it for more sets.",
        ),
    ],
    model: TaggerOption,
    device: DeviceOption = "auto",
    predictions: Annotated[
        Path | None,
        typer.Option(
            "--predictions",
            metavar="FILE",
            help="Write token, tag and tag of the model, a token a line, as conlleval reads them.",
        ),
    ] = None,
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a tagger on finding names, as conlleval does: span and type must be right.

    Beside it stand the types, each by itself, and the score of spans whatever their type.
    """
    from kgkit.evaluation.ner import NameScores, read_names, writing_names
    from kgkit.home import Home
    from kgkit.linking.tagger import Tagger
    from kgkit.training import recorded
    from kgkit.training.catalogued import known_model
    from kgkit.training.tagging import score_tagger

    check_files(data)
    if predictions is not None:
        check_place(predictions)
    messages, found = Messages(quiet=quiet, bars=not as_json), Home.find(home)
    tagger = Tagger.open(model, home=found, device=device)
    scores: list[tuple[str, NameScores]] = []
    run = recorded(
        found, command=typed(), device=device, model=known_model(found, model), data=data,
        config={"model": tagger.name},
    )  # fmt: skip
    with messages.progress(f"scoring {tagger.name}") as tell, ExitStack() as stack, run as record:
        write = None if predictions is None else stack.enter_context(writing_names(predictions))
        for path in data:
            name = _name(path)
            tell(name)
            scores.append((name, score_tagger(tagger, read_names(path), write)))
        together = sum((score for _, score in scores), NameScores())
        shown = scores if len(scores) == 1 else [*scores, ("together", together)]
        for name, score in shown:
            record.score("ner", name, "f1", score.overall.f1, score.overall.gold)
            record.score("ner", name, "span f1", score.spans.f1, score.spans.gold)
    if as_json:
        write_json(
            {
                "model": tagger.name,
                "sets": [
                    {"name": name, "data": str(path), **score.as_dict()}
                    for (name, score), path in zip(scores, data, strict=True)
                ],
                "together": together.as_dict(),
            }
        )
    else:
        _write(shown, tagger.name)
    if predictions is not None:
        messages.say(f"{together.overall.found:,} names: {predictions}")


def _name(path: Path) -> str:
    while path.suffix.lower() in _SUFFIXES:
        path = path.with_suffix("")
    return path.name


def _write(scores: "list[tuple[str, NameScores]]", model: str) -> None:
    rows = []
    for name, score in scores:
        parts = {"all": score.overall, **score.by_type, "spans": score.spans}
        for place, (part, told) in enumerate(parts.items()):
            ratios = (f"{100 * ratio:.2f}" for ratio in (told.precision, told.recall, told.f1))
            # On a terminal a name stands at its first line only.
            heading = "" if place and on_terminal() else name
            rows.append((heading, part, number(told.gold), number(told.found), number(told.right), *ratios))
    write_line(f"model {model}")
    headings = "names", "found", "right", "P", "R", "F1"
    numbers = (Column(heading=heading, align="right") for heading in headings)
    write_table([Column(heading="data"), Column(heading="type"), *numbers], rows)
