"""`kgkit train pmi`: a table of which words stand near each other more often than by chance."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kgkit.commands.options import HomeOption, JSONOption, QuietOption
from kgkit.commands.output import typed, write_line
from kgkit.commands.train.methods import record_training, write_results

if TYPE_CHECKING:
    from kgkit.home import Home
    from kgkit.types import Progress


def pmi(
    data: Annotated[
        list[Path],
        typer.Option(
            "--data", metavar="FILE", help="Plain text, a blank line between documents. Repeat it for more."
        ),
    ],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the table.")],
    window: Annotated[
        int, typer.Option("--window", min=1, metavar="N", help="Largest distance of two words, in words.")
    ] = 10,
    scope: Annotated[
        Literal["document", "sentence"],
        typer.Option("--scope", metavar="SCOPE", help="Where windows end: with a document, or a sentence."),
    ] = "document",
    min_count: Annotated[
        int, typer.Option("--min-count", min=1, metavar="N", help="Leave out words that occur less often.")
    ] = 10,
    min_pairs: Annotated[
        int,
        typer.Option("--min-pairs", min=1, metavar="N", help="Leave out pairs of words counted less often."),
    ] = 5,
    words: Annotated[
        int, typer.Option("--words", min=1, metavar="N", help="Only the N most frequent words.")
    ] = 200_000,
    norm: Annotated[
        Literal["max", "npmi", "none"],
        typer.Option(
            "--norm",
            metavar="NORM",
            help="What values are: positive PMI, divided by the largest (max), by -ln p(x, y) (npmi), or by "
            "nothing (none).",
        ),
    ] = "max",
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help="Memory for counts: 1GB, 500MB, …")
    ] = "4GB",
    workers: Annotated[
        int, typer.Option("--workers", min=1, metavar="N", help="Threads that add up counts.")
    ] = 1,
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Count words that stand near each other, and keep their pointwise mutual information (PMI) as a table.

    A training that was stopped resumes where it was, if nothing has been changed since.
    """
    from kgkit.models.pmi import PMI
    from kgkit.training.pmi.settings import PMITraining
    from kgkit.training.pmi.train import train_pmi

    training = PMITraining(
        data=tuple(data), window=window, scope=scope, min_count=min_count, min_pairs=min_pairs, words=words,
        norm=norm,
    )  # fmt: skip

    def train(where: "Home", tell: "Progress") -> Path:
        return train_pmi(
            where, name, training, memory=memory, workers=workers, command=typed(), progress=tell
        )

    manifest = record_training(
        PMI, name, asdict(training), training.data, train, lambda record, manifest: None, home=home,
        as_json=as_json, quiet=quiet,
    )  # fmt: skip
    if manifest is not None:
        write_line(f"{name}: PMI of words at most {window} apart, within a {scope}")
        write_results(manifest.results)
