"""`kgkit train linker`: a linker learns from mentions of which it is known what they mean."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

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
    flag,
)
from kgkit.commands.output import check_files, write_line
from kgkit.commands.train.methods import WindowOption, record_training, write_figures
from kgkit.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from kgkit.catalog.runs import RunRecord
    from kgkit.home import Home
    from kgkit.models.manifest import ModelManifest
    from kgkit.types import Progress

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
        bool, flag("--coherence", help="Train a second stage too: names, words and links of a document.")
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
        flag(
            "--nil", help="Coherence: learn from mentions without a right candidate that they mean nothing."
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
        bool, flag("--control", help="head, full: train without the vectors of entities.")
    ] = False,
    epochs: Annotated[
        int | None,
        typer.Option("--epochs", metavar="N", help="head, full: number of times that all data are read."),
    ] = None,
    size: WindowOption = None,
    seed: SeedOption = 0,
    heads: Annotated[
        int,
        typer.Option(
            "--heads",
            min=1,
            metavar="N",
            help="head: number of heads, each with a seed of its own; their scores are averaged.",
        ),
    ] = 1,
    bf16: Annotated[
        bool | None,
        typer.Option(
            "--bf16/--no-bf16",
            help="head, full: multiply in bfloat16, or in float32; else head in float32, full in what is "
            "faster here.",
            show_default=False,
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
    from kgkit.kb import open_kb
    from kgkit.models.kinds import LINKER
    from kgkit.training.linkers.coherence import CoherenceTraining
    from kgkit.training.linkers.settings import LinkerTraining
    from kgkit.training.linkers.train import train_linker

    if (popularity or nil) and not coherence:
        raise UsageError("--popularity and --nil are settings of coherence: add --coherence")
    settings = _settings(model_type, portable, control, epochs, seed, heads, bf16)
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
        size=size,
        head=settings if model_type == "head" else None,
        full=settings if model_type == "full" else None,
        coherence=CoherenceTraining(popularity=tuple(popularity or ()), nil=nil, seed=seed)
        if coherence
        else None,
    )

    def note_scores(record: "RunRecord", manifest: "ModelManifest") -> None:
        held_out = int(manifest.results.get("held_out", 0))
        for metric in _SHARES if held_out else ():
            record.score(task, "held out", metric, manifest.results[metric], held_out)

    check_files(training.files)
    with open_kb(chosen_kb(kb, home), home) as opened:

        def train(_: "Home", tell: "Progress") -> Path:
            return train_linker(opened, name, training, device=device, progress=tell)

        manifest = record_training(
            LINKER, name, asdict(training), training.files, train, note_scores,
            seeds=[*range(seed, seed + heads)], device=device, home=home, as_json=as_json, quiet=quiet,
        )  # fmt: skip
    if manifest is None:
        return
    of = f"{manifest.kb}@{manifest.build}" if manifest.build else "any knowledge base"
    write_line(f"{name}: {manifest.type}, {manifest.task}, for {of}")
    write_figures(
        (what.replace("_", " "), f"{value:.3f}" if what in _SHARES else f"{value:,.0f}")
        for what, value in manifest.results.items()
    )


def _settings(
    model_type: str,
    portable: Literal["kb", "data"] | None,
    control: bool,
    epochs: int | None,
    seed: int,
    heads: int,
    bf16: bool | None,
) -> Any:
    """Return the settings of the model types that follow a gradient; None for the others."""
    if (portable or heads != 1) and model_type != "head":
        raise UsageError("--portable and --heads are settings of the type head: add --type head")
    if model_type not in ("head", "full"):
        if control or epochs is not None or bf16 is not None:
            raise UsageError(
                f"--control, --epochs and --bf16 are settings of the types head and full, not of {model_type}"
            )
        return None
    try:
        from kgkit.training.linkers.fine_tuned import FullConfig
        from kgkit.training.linkers.head import HeadConfig
    except ImportError as error:
        raise MissingExtra(error.name or "accelerate", "models") from error
    chosen: dict[str, Any] = {"control": control, "seed": seed}
    chosen |= {key: value for key, value in {"epochs": epochs, "bf16": bf16}.items() if value is not None}
    return (
        FullConfig(**chosen) if model_type == "full" else HeadConfig(portable=portable, heads=heads, **chosen)
    )
