"""`kgkit train linker`: a linker learns from mentions of which it is known what they mean."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    DeviceOption,
    HomeOption,
    JSONOption,
    KBOption,
    NameOption,
    QuietOption,
    SeedOption,
    TaughtExamplesOption,
    VectorsOption,
    WithoutOption,
    chosen_kb,
)
from kgkit.commands.output import Column, check_files, typed, write_json, write_line, write_table
from kgkit.errors import MissingExtra, UsageError

_SHARES = ("held_out_accuracy", "calibration_error_before", "calibration_error")


def linker(
    task: Annotated[
        Literal["wsd", "el"],
        typer.Option("--task", metavar="TASK", help="What the data are: wsd (senses) or el (entities)."),
    ],
    name: NameOption,
    model_type: Annotated[
        Literal["ridge", "head", "full", "prior", "gloss"],
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Model type: ridge, head or full, each slower to train; prior, gloss: with --coherence.",
        ),
    ] = "ridge",
    coherence: Annotated[
        bool,
        typer.Option(
            "--coherence", metavar="", help="Train a second stage too: names, words and links of a document."
        ),
    ] = False,
    popularity: Annotated[
        list[str] | None,
        typer.Option(
            "--popularity",
            metavar="ATTRIBUTE",
            help="Coherence: a number of entities that tells how well known they are; repeat it for more.",
        ),
    ] = None,
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
    examples: TaughtExamplesOption = False,
    without: WithoutOption = None,
    nil: Annotated[
        bool,
        typer.Option(
            "--nil",
            metavar="",
            help="Coherence: learn from mentions without a right candidate that they mean nothing.",
        ),
    ] = False,
    portable: Annotated[
        Literal["kb", "data"] | None,
        typer.Option(
            "--portable",
            metavar="PRIOR",
            help="head: nothing of single entities; the prior is the kb's own, or counted on the data.",
        ),
    ] = None,
    control: Annotated[
        bool, typer.Option("--control", metavar="", help="head, full: without the vectors of entities.")
    ] = False,
    epochs: Annotated[
        int | None, typer.Option("--epochs", metavar="N", help="head, full: how often all is read.")
    ] = None,
    seed: SeedOption = 0,
    heads: Annotated[
        int,
        typer.Option(
            "--heads",
            min=1,
            metavar="N",
            help="head: so many, each with a seed of its own; their scores are averaged.",
        ),
    ] = 1,
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
    from kgkit.home import Home
    from kgkit.kb import open_kb
    from kgkit.models.folder import model_folder
    from kgkit.models.kinds import LINKER
    from kgkit.models.publishing import older, read_trained
    from kgkit.models.registering import catalogue
    from kgkit.training import recorded
    from kgkit.training.linkers.coherence import CoherenceTraining
    from kgkit.training.linkers.settings import LinkerTraining
    from kgkit.training.linkers.train import train_linker

    if (popularity or nil) and not coherence:
        raise UsageError("--popularity and --nil are settings of coherence: add --coherence")
    settings = _settings(model_type, portable, control, epochs, seed, heads)
    if seed and settings is None and not coherence:
        raise UsageError(f"{model_type} draws nothing at random: leave out --seed, or add --coherence")
    training = LinkerTraining(
        task=task,
        data=tuple(data or ()),
        gold=tuple(gold or ()),
        type=model_type,
        candidates=candidates,
        examples=examples,
        without=() if without is None else (without,),
        vectors=vectors,
        head=settings if model_type == "head" else None,
        full=settings if model_type == "full" else None,
        coherence=CoherenceTraining(popularity=tuple(popularity or ()), nil=nil, seed=seed)
        if coherence
        else None,
    )
    check_files(training.files)
    messages = Messages(quiet=quiet, bars=not as_json)
    where, began = Home.find(home), time.monotonic()
    replaced = older(model_folder(where, name))
    run = recorded(
        where, command=typed(), config=asdict(training), device=device, seeds=[*range(seed, seed + heads)],
        data=training.files,
    )  # fmt: skip
    with (
        messages.progress(f"training {name}") as show,
        open_kb(chosen_kb(kb, home), home) as opened,
        run as record,
    ):

        def tell(stage: str, count: int, total: int) -> None:
            show(f"{stage}, {count:,} of {total:,}" if total else f"{stage}, {count:,}")

        folder = train_linker(opened, name, training, device=device, progress=tell)
        manifest = read_trained(where, name, folder, LINKER)
        record.model = name if catalogue(where, manifest) else None
        held_out = int(manifest.results.get("held_out", 0))
        for metric in _SHARES if held_out else ():
            record.score(task, "held out", metric, manifest.results[metric], held_out)
    replacing = f", in the place of {replaced}" if replaced else ""
    messages.write(f"trained {name} in {time.monotonic() - began:.1f} s{replacing}: {folder.parent}")
    if as_json:
        import msgspec

        write_json({"path": str(folder.parent), **msgspec.to_builtins(manifest)})
        return
    of = f"{manifest.kb}@{manifest.build}" if manifest.build else "any knowledge base"
    write_line(f"{name}: {manifest.type}, {manifest.task}, for {of}")
    rows = [
        (what.replace("_", " "), f"{value:.3f}" if what in _SHARES else f"{value:,.0f}")
        for what, value in manifest.results.items()
    ]
    write_table([Column(heading=""), Column(heading="", align="right")], rows)


def _settings(
    model_type: str,
    portable: Literal["kb", "data"] | None,
    control: bool,
    epochs: int | None,
    seed: int,
    heads: int,
) -> Any:
    """Return the settings of the model types that follow a gradient; None for the others."""
    if (portable or heads != 1) and model_type != "head":
        raise UsageError("--portable and --heads are settings of the type head: add --type head")
    if model_type not in ("head", "full"):
        if control or epochs is not None:
            raise UsageError(
                f"--control and --epochs are settings of the types head and full, not of {model_type}"
            )
        return None
    try:
        from kgkit.training.linkers.fine_tuned import FullConfig
        from kgkit.training.linkers.head import HeadConfig
    except ImportError as error:
        raise MissingExtra(error.name or "accelerate", "models") from error
    chosen: dict[str, Any] = {"control": control, "seed": seed}
    if epochs is not None:
        chosen["epochs"] = epochs
    return (
        FullConfig(**chosen) if model_type == "full" else HeadConfig(portable=portable, heads=heads, **chosen)
    )
