"""`kgkit train linker`: a linker learns from mentions of which it is known what they mean."""

from pathlib import Path
from typing import Annotated, Any, Literal

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
from kgkit.commands.output import check_files
from kgkit.commands.train.linker_runs import record_linker, train_news
from kgkit.commands.train.methods import WindowOption
from kgkit.errors import MissingExtra, UsageError


def linker(
    name: NameOption,
    task: Annotated[
        Literal["wsd", "el"] | None,
        typer.Option(
            "--task",
            metavar="TASK",
            help="What the data are: wsd (senses) or el (entities). Needed without --preset.",
        ),
    ] = None,
    preset: Annotated[
        Literal["news"] | None,
        typer.Option(
            "--preset",
            metavar="PRESET",
            help="news: a tagger, coherence and a threshold from one file of entities; no vectors needed.",
        ),
    ] = None,
    model_type: Annotated[
        Literal["ridge", "head", "full", "prior", "gloss"],
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Model type: ridge, head or full, each slower to train; prior, gloss: with --coherence.",
        ),
    ] = "ridge",
    mentions: Annotated[
        str,
        typer.Option(
            "--mentions",
            metavar="NAME",
            help="el: tagger whose names the linker links by default; the threshold is chosen with it, on "
            "one document in ten.",
        ),
    ] = "",
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
    control: Annotated[bool, flag("--control", help="head, full: without the vectors of entities.")] = False,
    epochs: Annotated[
        int | None, typer.Option("--epochs", metavar="N", help="head, full: how often all is read.")
    ] = None,
    size: WindowOption = None,
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
    from kgkit.training.linkers.coherence import CoherenceTraining
    from kgkit.training.linkers.settings import LinkerTraining

    if preset is not None:
        _refuse_with_preset(
            preset,
            task=task == "wsd", type=model_type != "ridge", gold=gold, candidates=candidates != "surface",
            examples=examples, without=without, portable=portable, control=control, epochs=epochs, size=size,
            heads=heads != 1, bf16=bf16 is not None, vectors=vectors,
        )  # fmt: skip
        train_news(
            kb, name, data or [], mentions=mentions, popularity=popularity, seed=seed, device=device,
            home=home, as_json=as_json, quiet=quiet,
        )  # fmt: skip
        return
    if task is None:
        raise UsageError("name what the data are, --task wsd or --task el, or a --preset")
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
        mentions=mentions,
    )
    check_files(training.files)
    with open_kb(chosen_kb(kb, home), home) as opened:
        record_linker(
            opened, name, training, seeds=[*range(seed, seed + heads)], device=device, home=home,
            as_json=as_json, quiet=quiet,
        )  # fmt: skip


def _refuse_with_preset(preset: str, **options: object) -> None:
    """Refuse options that a preset decides.

    Args:
        preset: name of the preset.
        options: options of the command, true where they have another value than usual.

    Raises:
        UsageError: if there is one.
    """
    if chosen := [f"--{name}" for name, value in options.items() if value]:
        raise UsageError(
            f"--preset {preset} decides {', '.join(chosen)}: leave it out, or train without the preset, as "
            "the manual's page on linking has it"
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
