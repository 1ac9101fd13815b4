"""`kgkit train pmi`: a table of which words stand near each other more often than by chance."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgkit.commands.options import JSONOption, NameOption
from kgkit.commands.output import typed, write_line
from kgkit.commands.setting_options import takes_settings, tuple_values
from kgkit.commands.train.methods import TrainingOptions, record_training, write_results
from kgkit.training.pmi.settings import PMITraining

if TYPE_CHECKING:
    from kgkit.home import Home
    from kgkit.types import Progress


@takes_settings(PMITraining)
def pmi(
    name: NameOption,
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help="Memory for counts: 1GB, 500MB, …")
    ] = "4GB",
    workers: Annotated[
        int, typer.Option("--workers", min=1, metavar="N", help="Threads that add up counts.")
    ] = 1,
    as_json: JSONOption = False,
    **values: Any,
) -> None:
    """Count words that stand near each other: a table of their pointwise mutual information (PMI).

    A training that was stopped goes on where it was, if nothing has been changed since.
    """
    from kgkit.models.pmi import PMI
    from kgkit.training.job import note_best_epoch
    from kgkit.training.pmi.train import train_pmi

    training = PMITraining(**tuple_values(PMITraining, values))

    def train(where: "Home", tell: "Progress") -> Path:
        return train_pmi(
            where, name, training, memory=memory, workers=workers, command=typed(), progress=tell
        )

    manifest = record_training(
        PMI, name, asdict(training), training.files, train, note_best_epoch, TrainingOptions(as_json)
    )
    if manifest is not None:
        write_line(f"{name}: PMI of words at most {manifest.window} apart, within a document")
        write_results(manifest.results)
