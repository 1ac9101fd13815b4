"""Entry points: what installed packages add to kgkit, which finds its own by the same door."""

from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import Any, Final

from kgkit.errors import KgkitError, MissingExtra, UsageError

OWN_PACKAGE: Final = "kgkit"

_EXTRAS: Final = frozenset(["safetensors", "torch", "transformers"])
"""Packages that the extra `train` brings."""


def kgkit_version() -> str:
    """Return the version of this kgkit; `unknown` if it is not installed."""
    try:
        return version(OWN_PACKAGE)
    except PackageNotFoundError:
        return "unknown"


def entry_point_names(group: str) -> list[str]:
    """Return the names of the entry points of a group that installed packages have, sorted."""
    return sorted({entry.name for entry in entry_points(group=group)})


def find_entry_point(group: str, name: str, error: type[KgkitError]) -> EntryPoint | None:
    """Return the entry point of a name; None if no installed package has one.

    kgkit's own names are its own, whatever other packages call theirs.

    Args:
        group: group of the entry points.
        name: name of the entry point.
        error: class of the error.

    Raises:
        KgkitError: of the class *error*, if several packages have one of that name, or one package several.
    """
    entries = sorted(entry_points(group=group, name=name), key=_package)
    own = [entry for entry in entries if _package(entry) == OWN_PACKAGE]
    if len(entries) > 1 and not own:
        packages = sorted({*map(_package, entries)})
        problem = (
            f"the packages {', '.join(packages)} have an entry point {name} each"
            if len(packages) > 1
            else f"the package {packages[0]} has {len(entries)} entry points {name}"
        )
        raise error(f"{problem}, in the group {group}: remove all but one")
    return next(iter(own or entries), None)


def owner_of(entry: EntryPoint) -> str:
    """Return what names an entry point in an error: its name, package and group."""
    package = f" of the package {_package(entry)}" if entry.dist is not None else ""
    return f"the entry point {entry.name}{package} in the group {entry.group}"


def load_object(target: str, owner: str, error: type[KgkitError]) -> Any:
    """Return the function, class or constant that *target* names, as `MODULE:NAME`.

    Args:
        target: module and name.
        owner: what names it, for errors.
        error: class of the error.

    Raises:
        KgkitError: of the class *error*, if the module cannot be imported, or does not have the name.
        MissingExtra: if it needs a package that an extra of kgkit brings.
    """
    module, _, name = target.partition(":")
    try:
        value: Any = import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
    except (Exception, SystemExit) as problem:  # whatever a stranger's package does when it is imported
        if isinstance(problem, UsageError):
            raise
        if isinstance(problem, ModuleNotFoundError) and problem.name in _EXTRAS:
            raise MissingExtra(problem.name, "train") from problem
        raise error(
            f"{owner} names {target}, which cannot be loaded ({type(problem).__name__}: {problem}): install "
            "its package again, or remove it"
        ) from problem
    return value


def _package(entry: EntryPoint) -> str:
    return "" if entry.dist is None else entry.dist.name
