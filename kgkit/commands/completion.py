"""Names that the shell completes: knowledge bases, models, vectors and builders.

Functions for `autocompletion` of Typer's parameters. They list folders and open nothing, so that a completion
takes no longer than `kgkit --help`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from kgkit.home import Home

BUILT_IN_LINKERS: Final = ("prior", "gloss")
"""The linkers that need no training, as in `kgkit.models.folder`."""


def complete_kb(ctx: typer.Context) -> list[str]:
    """Return the names of the knowledge bases."""
    return [kb.name for kb in _home(ctx).kbs()]


def complete_model(ctx: typer.Context) -> list[str]:
    """Return the names of the trained models, and of those that come with kgkit."""
    shipped = Path(__file__).parents[1] / "models" / "shipped"
    return sorted({*_folders(_home(ctx).models), *_folders(shipped)})


def complete_linker(ctx: typer.Context) -> list[str]:
    """Return the names of what can score candidates, trained or not."""
    return [*BUILT_IN_LINKERS, *complete_model(ctx)]


def complete_vectors(ctx: typer.Context) -> list[str]:
    """Return the names of the vectors, as KB/NAME."""
    return [f"{kb.name}/{name}" for kb in _home(ctx).kbs() for name in _folders(kb.vectors)]


def complete_builder() -> list[str]:
    """Return the names of the installed builders."""
    from kgkit.plugins import entry_point_names

    return entry_point_names("kgkit.builders")


def _home(ctx: typer.Context) -> "Home":
    from kgkit.home import Home

    return Home.find(ctx.find_root().params.get("home"))


def _folders(path: Path) -> list[str]:
    """Return the names of the folders in *path*, but for hidden ones."""
    if not path.is_dir():
        return []
    return sorted(entry.name for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
