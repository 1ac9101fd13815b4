"""`kgkit train encoder`: a small BERT from scratch, for a language without a pretrained one."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import DeviceOption, HomeOption, JSONOption, NameOption, QuietOption, SeedOption
from kgkit.commands.output import check_files, typed, write_json, write_line
from kgkit.commands.train.methods import (
    Bf16Option,
    DevOption,
    EpochsOption,
    SizeOption,
    StepsOption,
    TextsOption,
    write_results,
)


def encoder(
    data: Annotated[
        list[Path],
        typer.Option(
            "--data", metavar="FILE", help="Plain text, a blank line between documents. Repeat it for more."
        ),
    ],
    vocabulary: Annotated[
        Path, typer.Option("--vocabulary", metavar="FILE", help="A word piece a line, as vocab.txt of BERT.")
    ],
    name: NameOption,
    task: Annotated[
        Literal["mlm"], typer.Option("--task", metavar="TASK", help="mlm: masked words and next sentences.")
    ] = "mlm",
    dev: DevOption = None,
    layers: Annotated[int, typer.Option("--layers", min=1, metavar="N", help="Transformer layers.")] = 4,
    width: Annotated[int, typer.Option("--width", min=1, metavar="N", help="Width of the layers.")] = 256,
    heads: Annotated[
        int, typer.Option("--heads", min=1, metavar="N", help="Attention heads of a layer.")
    ] = 4,
    cased: Annotated[bool, typer.Option("--cased", metavar="", help="Do not lowercase the texts.")] = False,
    epochs: EpochsOption = 3,
    steps: StepsOption = None,
    batch: TextsOption = 32,
    size: SizeOption = 128,
    lr: Annotated[float, typer.Option("--lr", metavar="RATE", help="The highest learning rate.")] = 5e-4,
    seed: SeedOption = 0,
    bf16: Bf16Option = None,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a small BERT from scratch, on plain text (Devlin et al. 2019).

    It serves as --encoder of kgkit train kbert, and as --from of kgkit train knowbert.
    A training that was stopped resumes where it was, if nothing has been changed since.
    """
    from kgkit.home import Home
    from kgkit.methods.knowbert_settings import KnowBertTraining
    from kgkit.models.folder import model_folder
    from kgkit.models.kinds import KNOWBERT
    from kgkit.models.publishing import older, read_trained
    from kgkit.models.registering import catalogue
    from kgkit.training import recorded
    from kgkit.training.pretraining import EncoderShape, train_encoder

    shape = EncoderShape(
        layers=layers, width=width, heads=heads, positions=max(512, size), lowercase=not cased
    )
    training = KnowBertTraining(
        task=task, data=tuple(data), dev=tuple(dev or ()), control=True, epochs=epochs, steps=steps,
        batch=batch, size=size, lr=lr, lr_new=lr, seed=seed, bf16="auto" if bf16 is None else bf16,
    )  # fmt: skip
    files = [*training.files, vocabulary]
    check_files(files)
    messages, where = Messages(quiet=quiet, bars=not as_json), Home.find(home)
    began, replaced = time.monotonic(), older(model_folder(where, name))
    run = recorded(
        where, command=typed(), config=asdict(training) | {"shape": asdict(shape)}, seeds=[seed],
        device=device, data=files,
    )  # fmt: skip
    with messages.progress(f"training {name}") as show, run as record:

        def tell(stage: str, count: int, total: int) -> None:
            show(f"{stage} {count:,} of {total:,}" if total else f"{stage}, {count:,}")

        folder = train_encoder(
            where, name, training, vocabulary, shape, device=device, command=typed(), progress=tell
        )
        manifest = read_trained(where, name, folder, KNOWBERT)
        record.model = name if catalogue(where, manifest) else None
        results = manifest.results
        for epoch in (epoch for epoch in results["epochs"] if epoch["epoch"] == results["best_epoch"]):
            for metric in sorted(set(epoch) - {"epoch"}):
                record.score(task, "held out", metric, epoch[metric], int(results["held_out"]))
    note = f", in the place of {replaced}" if replaced else ""
    messages.write(f"trained {name} in {time.monotonic() - began:.1f} s{note}: {folder.parent}")
    if as_json:
        import msgspec

        write_json({"path": str(folder.parent), **msgspec.to_builtins(manifest)})
        return
    write_line(f"{name}: {layers} layers of {width}")
    write_results(results)
