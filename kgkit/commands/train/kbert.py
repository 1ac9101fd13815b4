"""`kgkit train kbert`: an encoder that reads texts with facts in them, for a task."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    CoherenceOption,
    DeviceOption,
    HomeOption,
    JSONOption,
    NameOption,
    QuietOption,
    SeedOption,
)
from kgkit.commands.output import check_files, typed, write_json, write_line
from kgkit.commands.train.knowbert import write_results
from kgkit.errors import NotThere, UsageError

_NONE: Final = "none"
_SHOWN: Final = 5  # files, in an error


def kbert(
    task: Annotated[
        Literal["classification", "pair", "ranking", "tagging"],
        typer.Option("--task", metavar="TASK", help="classification, pair, ranking or tagging."),
    ],
    data: Annotated[
        list[Path],
        typer.Option("--data", metavar="FILE", help="Examples, or a folder of them. Repeat it for more."),
    ],
    name: NameOption,
    dev: Annotated[
        list[Path] | None,
        typer.Option("--dev", metavar="FILE", help="Files that choose the epoch; else part of the data do."),
    ] = None,
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
    control: Annotated[
        bool, typer.Option("--control", metavar="", help="The same without knowledge bases.")
    ] = False,
    query: Annotated[
        Literal["longest", "jieba", "link"],
        typer.Option(
            "--query", metavar="BY", help="Which words are looked up: longest surfaces, jieba's, or link."
        ),
    ] = "longest",
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
    epochs: Annotated[int, typer.Option("--epochs", min=1, metavar="N", help="How often all is read.")] = 5,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, metavar="N", help="So many batches, not epochs.")
    ] = None,
    batch: Annotated[int, typer.Option("--batch", min=1, metavar="N", help="Texts of a step.")] = 32,
    size: Annotated[
        int, typer.Option("--size", min=8, metavar="N", help="Word pieces of a text with its facts.")
    ] = 128,
    lr: Annotated[
        float, typer.Option("--lr", metavar="RATE", help="The highest learning rate of the encoder.")
    ] = 2e-5,
    lr_new: Annotated[
        float, typer.Option("--lr-new", metavar="RATE", help="That of what stands on it.")
    ] = 1e-4,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a K-BERT: an encoder that reads texts with facts in them (Liu et al. 2020).

    A training that was stopped goes on where it was, if nothing has been changed since.
    """
    from kgkit.home import Home
    from kgkit.kb import open_kb
    from kgkit.models.folder import model_folder
    from kgkit.models.kinds import KBERT
    from kgkit.models.publishing import older, read_trained
    from kgkit.models.registering import catalogue
    from kgkit.training import recorded
    from kgkit.training.kbert import train_kbert
    from kgkit.training.kbert_plan import KBertTraining

    named = list(kb or ())
    if _NONE in named and len(named) > 1:
        raise UsageError(f"--kb {_NONE} is a control, and has no other knowledge base")
    learnt, chosen_by = _files(data, dev or ())
    training = KBertTraining(
        task=task, data=learnt, dev=chosen_by, encoder=encoder,
        control=control or named == [_NONE], query=query, linker=linker, coherence=coherence,
        max_facts=max_facts, relations=relations, attributes=attributes, soft_positions=not no_soft_position,
        visible_matrix=not no_visible_matrix,
        size=size, batch=batch, epochs=epochs, steps=steps, lr=lr, lr_new=lr_new, seed=seed,
    )  # fmt: skip
    check_files(training.files)
    messages, where = Messages(quiet=quiet, bars=not as_json), Home.find(home)
    began, replaced = time.monotonic(), older(model_folder(where, name))
    run = recorded(
        where, command=typed(), config=asdict(training), seeds=[seed], device=device, data=training.files
    )
    with ExitStack() as stack, messages.progress(f"training {name}") as show, run as record:
        asked: list[str | None] = [] if training.control else [*named] or [None]  # None: the only one
        kbs = [stack.enter_context(open_kb(one, home)) for one in asked]

        def tell(stage: str, done: int, total: int) -> None:
            show(f"{stage} {done:,} of {total:,}")

        folder = train_kbert(where, name, training, kbs, device=device, command=typed(), progress=tell)
        manifest = read_trained(where, name, folder, KBERT)
        record.model = name if catalogue(where, manifest) else None
        results = manifest.results
        for one in (one for one in results["epochs"] if one["epoch"] == results["best_epoch"]):
            for metric in sorted(set(one) - {"epoch"}):
                record.score(task, "held out", metric, one[metric], int(results["held_out"]))
    place = f", in the place of {replaced}" if replaced else ""
    messages.say(f"trained {name} in {time.monotonic() - began:.1f} s{place}: {folder.parent}")
    if as_json:
        import msgspec

        write_json({"path": str(folder.parent), **msgspec.to_builtins(manifest)})
        return
    write_line(f"{name}: {task}, {', '.join(manifest.kbs) or 'no knowledge base'}")
    write_results(results)


def _files(data: Sequence[Path], dev: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the files to learn from, and those that choose the epoch; of a folder its train.* and dev.*.

    Raises:
        NotThere: if a folder has no train.*.
        UsageError: if it has several, or several dev.*.
    """
    learnt, chosen_by = [], [*dev]
    for path in data:
        if not path.is_dir():
            learnt.append(path)
            continue
        parts = {"data": sorted(path.glob("train.*")), "dev": [] if dev else sorted(path.glob("dev.*"))}
        for option, found in parts.items():
            if len(found) > 1:
                several = ", ".join(one.name for one in found[:_SHOWN])
                raise UsageError(f"{path} has {several}: name the file with --{option}")
        if not parts["data"]:
            there = sorted(one.name for one in path.iterdir())
            told = ", ".join([*there[:_SHOWN], *(["…"] if len(there) > _SHOWN else [])]) or "is empty"
            raise NotThere(f"no train.* in {path} ({told}): name the file to learn from with --data")
        learnt += parts["data"]
        chosen_by += parts["dev"]
    return tuple(learnt), tuple(chosen_by)
