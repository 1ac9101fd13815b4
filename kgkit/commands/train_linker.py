"""`kgkit train linker`: a linker learns from mentions of which it is known what they mean."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    DeviceOption,
    HomeOption,
    JSONOption,
    KBOption,
    QuietOption,
    VectorsOption,
    chosen_kb,
)
from kgkit.commands.output import Column, check_files, typed, write_json, write_line, write_table

_SHARES = ("held_out_accuracy", "calibration_error_before", "calibration_error")


def linker(
    task: Annotated[
        Literal["wsd", "el"],
        typer.Option("--task", metavar="TASK", help="What the data are: wsd (senses) or el (entities)."),
    ],
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="Of the model; --model NAME then links with it.")
    ],
    rung: Annotated[
        Literal["ridge", "head"],
        typer.Option("--rung", metavar="RUNG", help="What is trained: ridge, or head, which takes longer."),
    ] = "ridge",
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="wsd: X.data.xml; el: JSON lines. May be compressed; repeat it for more.",
        ),
    ] = None,
    gold: Annotated[
        list[Path] | None,
        typer.Option("--gold", metavar="FILE", help="wsd: X.gold.key.txt; as often as --data, in its order."),
    ] = None,
    candidates: Annotated[
        Literal["surface", "lemma"],
        typer.Option(
            "--candidates",
            metavar="BY",
            help="wsd: of the word as it is written (surface), or of the lemma of the data (lemma).",
        ),
    ] = "surface",
    examples: Annotated[
        bool,
        typer.Option("--examples", metavar="", help="Learn from the knowledge base's usage examples too."),
    ] = False,
    without: Annotated[
        Path | None,
        typer.Option(
            "--without",
            metavar="FILE",
            help="Examples that must not be learnt from, one a line; only letters are compared.",
        ),
    ] = None,
    kb: KBOption = None,
    vectors: VectorsOption = None,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a linker for a knowledge base, for kgkit link and kgkit evaluate to use by its name.

    What was read of the data is kept: to train again with other settings takes less time.
    """
    from kgkit.building import text_lines
    from kgkit.home import Home
    from kgkit.kb import open_kb
    from kgkit.linking.model_folder import read_model
    from kgkit.training import recorded
    from kgkit.training.linkers import LinkerTraining, train_linker
    from kgkit.training.taught import letters

    training = LinkerTraining(
        task=task,
        data=tuple(data or ()),
        gold=tuple(gold or ()),
        rung=rung,
        candidates=candidates,
        examples=examples,
        without=frozenset()
        if without is None
        else frozenset(letters(line) for _, line in text_lines(without)),
        vectors=vectors,
    )
    check_files([*training.data, *training.gold])
    messages = Messages(quiet=quiet, bars=not as_json)
    began = time.monotonic()
    run = recorded(
        Home.find(home), command=typed(), config=asdict(training), device=device,
        data=[*training.data, *training.gold],
    )  # fmt: skip
    with (
        messages.progress(f"training {name}") as show,
        open_kb(chosen_kb(kb, home), home) as opened,
        run as record,
    ):

        def tell(stage: str, done: int, total: int) -> None:
            show(f"{stage}, {done:,} of {total:,}" if total else f"{stage}, {done:,}")

        folder = train_linker(opened, name, training, device=device, progress=tell)
        manifest = read_model(folder)
        held_out = int(manifest.results.get("held_out", 0))
        for metric in _SHARES if held_out else ():
            record.score(task, "held out", metric, manifest.results[metric], held_out)
    messages.say(f"trained {name} in {time.monotonic() - began:.1f} s: {folder}")
    if as_json:
        import msgspec

        write_json({"path": str(folder), **msgspec.to_builtins(manifest)})
        return
    write_line(f"{name}: {manifest.kind}, {manifest.task}, for {manifest.kb}@{manifest.build}")
    rows = [
        (what.replace("_", " "), f"{value:.3f}" if what in _SHARES else f"{value:,.0f}")
        for what, value in manifest.results.items()
    ]
    write_table([Column(heading=""), Column(heading="", align="right")], rows)
