"""`kgkit train pmi`: a table of which words stand near each other more often than by chance."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from kgkit.commands.train.generated import settings_command

if TYPE_CHECKING:
    from kgkit.models.pmi import PMIManifest

_MemoryOption = Annotated[
    str, typer.Option("--memory", metavar="SIZE", help="Memory for counts: 1GB, 500MB, …")
]
_WorkersOption = Annotated[
    int, typer.Option("--workers", min=1, metavar="N", help="Threads that add up counts.")
]


def pmi() -> Callable[..., None]:
    """Return the command that makes a PMI table."""
    from kgkit.models.pmi import PMI
    from kgkit.training.pmi.settings import PMITraining
    from kgkit.training.pmi.train import train_pmi

    about = "Count words that stand near each other: a table of their pointwise mutual information (PMI)."
    arguments = {"memory": _MemoryOption, "workers": _WorkersOption}
    return settings_command(PMI, PMITraining, train_pmi, _describe, about, arguments)


def _describe(manifest: "PMIManifest") -> str:
    return f"PMI of words at most {manifest.window} apart, within a document"
