"""What the shell completes: names of knowledge bases, models, builders and vectors.

They are listed by their folders, and nothing is opened: a completion takes no longer than `kgkit --help`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from kgkit.home import Home

ListNames = Callable[["Home", str], list[str]]
"""Takes a home and what has been typed of a word; returns the words that there are."""

BUILT_IN_LINKERS: Final = ("prior", "gloss", "tempered-gloss")
"""The linkers that need no training, as in `kgkit.models.folder`."""


class Completion(NamedTuple):
    """A word that the shell may complete to, with what Typer asks of one."""

    value: str
    type: str = "plain"
    help: str | None = None


def list_kbs(home: "Home", incomplete: str) -> list[str]:
    """Return the names of the knowledge bases; of `NAME@`, those of its builds."""
    name, at, _ = incomplete.partition("@")
    return [f"{name}@{build}" for build in home.kb(name).build_names()] if at else [*map(_name, home.kbs())]


def list_kbs_and_models(home: "Home", incomplete: str) -> list[str]:
    """Return the names of the knowledge bases; of `KB=`, with the names of linkers."""
    kb, separator, model = incomplete.partition("=")
    return [f"{kb}={name}" for name in list_linkers(home, model)] if separator else list_kbs(home, incomplete)


def list_builds(home: "Home", incomplete: str) -> list[str]:
    """Return the names of all builds, as NAME@BUILD."""
    return [f"{kb.name}@{build}" for kb in home.kbs() for build in kb.build_names()]


def list_models(home: "Home", incomplete: str) -> list[str]:
    """Return the names of the trained models, and of those that come with kgkit."""
    shipped = Path(__file__).parents[1] / "models" / "shipped"
    return sorted({*_folders(home.models), *_folders(shipped)})


def list_linkers(home: "Home", incomplete: str) -> list[str]:
    """Return the names of what can score candidates, trained or not."""
    return [*BUILT_IN_LINKERS, *list_models(home, incomplete)]


def list_builders(home: "Home", incomplete: str) -> list[str]:
    """Return the names of the installed builders."""
    from kgkit.plugins import entry_point_names

    return entry_point_names("kgkit.builders")


def list_vectors(home: "Home", incomplete: str) -> list[str]:
    """Return the names of the vectors, as KB/NAME."""
    return [f"{kb.name}/{name}" for kb in home.kbs() for name in _folders(kb.vectors)]


def list_vector_names(home: "Home", incomplete: str) -> list[str]:
    """Return the names of the vectors, without those of their knowledge bases."""
    return sorted({name for kb in home.kbs() for name in _folders(kb.vectors)})


OPTIONS: Final[Mapping[tuple[str, str], ListNames]] = {
    ("--builder", "BUILDER"): list_builders,
    ("--facts", "KB"): list_kbs,
    ("--kb", "KB"): list_kbs,
    ("--kb", "KB[=MODEL]"): list_kbs_and_models,
    ("--kb", "KB[@BUILD][=MODEL]"): list_kbs_and_models,
    ("--senses", "KB"): list_kbs,
    ("--linker", "MODEL"): list_linkers,
    ("--model", "MODEL"): list_linkers,
    ("--mentions", "NAME"): list_models,
    ("--model", "NAME"): list_models,
    ("--tagger", "NAME"): list_models,
    ("--teacher", "NAME"): list_models,
    ("--to", "KB/NAME"): list_vectors,
    ("--vectors", "KB/NAME"): list_vectors,
    ("--vectors", "NAME"): list_vector_names,
}
"""What lists the values of an option, by its name and what stands for its value in the help."""

ARGUMENTS: Final[Mapping[str, ListNames]] = {
    "BUILDER": list_builders, "KB": list_kbs, "NEW": list_kbs, "OLD": list_kbs, "NAME": list_kbs,
    "NAME@BUILD": list_builds, "KB/NAME": list_vectors, "KB[/NAME]": list_vectors,
}  # fmt: skip
"""What lists the values of an argument, by what stands for it in the help."""


def set_completion(parameter: Any) -> None:
    """Let the shell complete the values of a parameter, where they are names in a home."""
    metavar = parameter.metavar or ""
    if parameter.param_type_name == "argument":
        list_names = ARGUMENTS.get(metavar)
    else:
        list_names = next(
            (OPTIONS[key] for name in parameter.opts if (key := (name, metavar)) in OPTIONS), None
        )
    if list_names is None:
        return

    def shell_complete(ctx: Any, incomplete: str) -> list[Completion]:
        """Return the words that begin as *incomplete* does."""
        of_models = metavar == "NAME" and " models " in ctx.command_path
        names = _names(list_models if of_models else list_names, ctx, incomplete)
        return [Completion(name) for name in names if name.startswith(incomplete)]

    parameter.shell_complete = shell_complete


def _names(list_names: ListNames, ctx: Any, incomplete: str) -> list[str]:
    """Return names in the home of a command; none where it cannot be read: a shell cannot show an error."""
    from kgkit.errors import KgkitError
    from kgkit.home import Home

    try:
        return list_names(Home.find(ctx.find_root().params.get("home")), incomplete)
    except (KgkitError, OSError):
        return []


def _name(named: Any) -> str:
    return str(named.name)


def _folders(path: Path) -> list[str]:
    """Return the names of the folders in *path*, but for hidden ones."""
    if not path.is_dir():
        return []
    return sorted(entry.name for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
