"""`kgkit train kbert`: an encoder that reads texts with facts in them, for a task."""

from pathlib import Path
from typing import Annotated, Final

import typer

from kgkit.commands.options import (
    CoherenceOption,
    DeviceOption,
    HomeOption,
    JSONOption,
    NameOption,
    QueryOption,
    QuietOption,
    SeedOption,
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

_NONE: Final = "none"


def kbert(
    task: Annotated[
        str,
        typer.Option("--task", metavar="TASK", help="classification, pair, ranking, tagging, wic, …"),
    ],
    data: Annotated[
        list[Path],
        typer.Option("--data", metavar="FILE", help="Examples, or a folder of them. Repeat it for more."),
    ],
    name: NameOption,
    gold: Annotated[
        list[Path] | None,
        typer.Option("--gold", metavar="FILE", help="wic: the gold of each --data, in their order."),
    ] = None,
    dev: DevOption = None,
    dev_gold: DevGoldOption = None,
    kb: Annotated[
        list[str] | None,
        typer.Option(
            "--kb",
            metavar="KB",
            help="Whose facts are injected, if there are several; repeat it; none: a control.",
        ),
    ] = None,
    encoder: Annotated[
        str,
        typer.Option(
            "--encoder", metavar="ENCODER", help="A folder, a package, a hub id, or of kgkit train encoder."
        ),
    ] = "bert-base-chinese",
    control: ControlOption = False,
    query: QueryOption = "longest",
    linker: Annotated[
        str, typer.Option("--linker", metavar="MODEL", help="That --query link asks: prior, gloss, …")
    ] = "",
    coherence: CoherenceOption = None,
    max_facts: Annotated[
        int, typer.Option("--max-facts", min=1, metavar="N", help="Of a mention, in the order of the data.")
    ] = 2,
    relations: Annotated[
        bool | None,
        typer.Option(
            "--relations/--no-relations",
            help="Inject the names of relations too; else but in tagging.",
            show_default=False,
        ),
    ] = None,
    attributes: Annotated[
        bool, typer.Option("--attributes", metavar="", help="Inject values too, not entities alone.")
    ] = False,
    no_soft_position: Annotated[
        bool,
        typer.Option("--no-soft-position", metavar="", help="Tokens stand one behind the other."),
    ] = False,
    no_visible_matrix: Annotated[
        bool, typer.Option("--no-visible-matrix", metavar="", help="All see what is injected.")
    ] = False,
    epochs: EpochsOption = 5,
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
    """Train a K-BERT: an encoder that reads texts with facts in them (Liu et al. 2020).

    A training that was stopped goes on where it was, if nothing has been changed since.
    """
    from kgkit.methods.kbert_settings import KBertTraining
    from kgkit.training.methods import data_files

    named = list(kb or ())
    if _NONE in named and len(named) > 1:
        raise UsageError(f"--kb {_NONE} is a control, and has no other knowledge base")
    files, dev_files = data_files(data, dev or ())
    training = KBertTraining(
        task=task, data=files, gold=tuple(gold or ()), dev=dev_files, dev_gold=tuple(dev_gold or ()),
        encoder=encoder, control=control or named == [_NONE], query=query, linker=linker,
        coherence=coherence, max_facts=max_facts, relations=relations, attributes=attributes,
        soft_positions=not no_soft_position, visible_matrix=not no_visible_matrix, size=size, batch=batch,
        epochs=epochs, steps=steps, lr=lr, lr_new=lr_new, seed=seed, bf16="auto" if bf16 is None else bf16,
    )  # fmt: skip
    run_training("kbert", name, training, named, device=device, home=home, as_json=as_json, quiet=quiet)
