"""`kgkit train linker`: a linker learns from mentions of which it is known what they mean."""

from typing import Any, Literal

from kgkit.commands.options import (
    KBOption,
    NameOption,
    SeedOption,
    TaughtExamplesOption,
    VectorsOption,
    WithoutOption,
    chosen_kb,
)
from kgkit.commands.output import check_files
from kgkit.commands.train.linker_options import (
    BalanceOption,
    CandidatesOption,
    HeadsOption,
    LearntPriorOption,
    LinkerBf16Option,
    LinkerDataOption,
    LinkerEncoderOption,
    LinkerEpochsOption,
    LinkerTaggerOption,
    LinkerTaskOption,
    LinkerTypeOption,
    NeighboursOption,
    NilOption,
    PopularityOption,
    PortableOption,
    PresetOption,
    SecondStageOption,
    SenseGoldOption,
    TeacherOption,
    TeacherTextOption,
    TextWeightOption,
    VectorControlOption,
    YieldingOption,
)
from kgkit.commands.train.linker_runs import record_linker, train_news
from kgkit.commands.train.methods import TrainingOptions, WindowOption, with_training_options
from kgkit.errors import MissingExtra, UsageError


@with_training_options
def linker(
    name: NameOption,
    task: LinkerTaskOption = None,
    preset: PresetOption = None,
    model_type: LinkerTypeOption = "ridge",
    encoder: LinkerEncoderOption = None,
    mentions: LinkerTaggerOption = "",
    coherence: SecondStageOption = False,
    popularity: PopularityOption = None,
    data: LinkerDataOption = None,
    gold: SenseGoldOption = None,
    candidates: CandidatesOption = "surface",
    examples: TaughtExamplesOption = False,
    without: WithoutOption = None,
    nil: NilOption = False,
    portable: PortableOption = None,
    text_weight: TextWeightOption = None,
    control: VectorControlOption = False,
    epochs: LinkerEpochsOption = None,
    size: WindowOption = None,
    seed: SeedOption = 0,
    heads: HeadsOption = 1,
    bf16: LinkerBf16Option = None,
    teacher: TeacherOption = "",
    text: TeacherTextOption = None,
    neighbours: NeighboursOption = None,
    balance: BalanceOption = 0.0,
    yielding: YieldingOption = False,
    prior: LearntPriorOption = "kb",
    kb: KBOption = None,
    vectors: VectorsOption = None,
    *,
    options: TrainingOptions,
) -> None:
    """Train a linker for a knowledge base, for kgkit link and kgkit evaluate to use by its name.

    What was read of the data is kept: to train again with other settings takes less time.
    """
    from kgkit.kb import open_kb
    from kgkit.linking.ridge import RidgeConfig
    from kgkit.training.linkers.coherence import CoherenceTraining
    from kgkit.training.linkers.settings import LinkerTraining

    if preset is not None:
        _refuse_with_preset(
            preset,
            task=task == "wsd", type=model_type != "ridge", gold=gold, candidates=candidates != "surface",
            examples=examples, without=without, portable=portable, control=control, epochs=epochs, size=size,
            heads=heads != 1, bf16=bf16 is not None, vectors=vectors, teacher=teacher, text=text,
            neighbours=neighbours, balance=balance, yielding=yielding, prior=prior != "kb", encoder=encoder,
            **{"text-weight": text_weight is not None},
        )  # fmt: skip
        train_news(kb, name, data or [], options, mentions=mentions, popularity=popularity, seed=seed)
        return
    if (balance or yielding or prior != "kb") and model_type not in ("ridge", "head"):
        raise UsageError("--balance, --yielding and --prior are settings of the types ridge and head")
    if task is None and not teacher:
        raise UsageError(
            "name what the data are, --task wsd or --task el, or a --preset; for example `kgkit train linker "
            "--preset news --kb KB --data train.jsonl --name mine`"
        )
    if (popularity or nil) and not coherence:
        raise UsageError("--popularity and --nil are settings of coherence: add --coherence")
    settings = _settings(model_type, portable, text_weight, control, epochs, seed, heads, bf16)
    if seed and settings is None and not coherence:
        raise UsageError(f"{model_type} draws nothing at random: leave out --seed, or add --coherence")
    training = LinkerTraining(
        task=task or "text",
        data=tuple(data or ()),
        gold=tuple(gold or ()),
        type=model_type,
        candidates=candidates,
        examples=examples,
        without=() if without is None else (without,),
        vectors=vectors,
        encoder=encoder,
        size=size,
        head=settings,
        coherence=CoherenceTraining(popularity=tuple(popularity or ()), nil=nil, seed=seed)
        if coherence
        else None,
        mentions=mentions,
        teacher=teacher,
        text=tuple(text or ()),
        neighbours=tuple(neighbours or ()),
        ridge=RidgeConfig(balance=balance, yielding=yielding, prior=prior),
    )
    check_files(training.files)
    with open_kb(chosen_kb(kb)) as opened:
        record_linker(opened, name, training, options, seeds=[*range(seed, seed + heads)])


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
    text_weight: float | None,
    control: bool,
    epochs: int | None,
    seed: int,
    heads: int,
    bf16: bool | None,
) -> Any:
    """Return the settings of the model type `head`; None for the others."""
    if (portable or heads != 1) and model_type != "head":
        raise UsageError("--portable and --heads are settings of the type head: add --type head")
    if text_weight is not None and (portable is None or control):
        raise UsageError(
            "--text-weight is a setting of portable heads that are no control: add --type head --portable kb "
            "or data, or leave it out"
        )
    if model_type != "head":
        if control or epochs is not None or bf16 is not None:
            raise UsageError(
                f"--control, --epochs and --bf16 are settings of the type head, not of {model_type}"
            )
        return None
    try:
        from kgkit.training.linkers.head import HeadConfig
    except ImportError as error:
        raise MissingExtra(error.name or "accelerate", "models") from error
    chosen: dict[str, Any] = {"control": control, "seed": seed}
    chosen |= {key: value for key, value in {"epochs": epochs, "bf16": bf16}.items() if value is not None}
    chosen |= {} if text_weight is None else {"text_weight": text_weight}
    return HeadConfig(portable=portable, heads=heads, **chosen)
