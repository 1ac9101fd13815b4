"""Whether what a trained model needs is there: builds of knowledge bases, vectors, another model."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from kgkit.errors import KgkitError
from kgkit.home import Home
from kgkit.models.folder import BUILT_IN, find_model_folder, model_names
from kgkit.models.manifest import Needs, read_header
from kgkit.vectors import vectors_names
from kgkit.versions import read_current


class Need(NamedTuple):
    """Something that a model needs.

    Attributes:
        kind: `build`, `vectors`, `linker` or `model`.
        name: KB@BUILD, KB/NAME, or the name of a model.
        available: whether it is in the home, or what serves in its place.
    """

    kind: str
    name: str
    available: bool


def check_needs(needs: Needs, home: Home) -> Iterator[Need]:
    """Yield what a model needs, and whether it is in *home*."""
    for kb, build in needs.kbs.items():
        yield Need("build", f"{kb}@{build}", _has_build(home, kb, build, exact=needs.exact))
    for vectors in needs.vectors:
        kb, _, name = vectors.partition("/")
        yield Need("vectors", vectors, name in vectors_names(home.kb(kb)))
    if needs.linker:
        yield Need("linker", needs.linker, _has_model(home, needs.linker))
    for model in needs.models:
        yield Need("model", model, _has_model(home, model))


def lost_builds(needs: Needs, home: Home, removed: Collection[str]) -> list[str]:
    """Return those of the builds *removed*, as KB@BUILD, that a model needs and that nothing replaces."""
    needed = [need for need in check_needs(needs, home) if need.kind == "build" and not need.available]
    return [need.name for need in needed if need.name in removed]


def _has_build(home: Home, name: str, build: str, *, exact: bool) -> bool:
    """Say whether a build is there, or unless *exact* one that only adds to it."""
    from kgkit.kb import open_kb
    from kgkit.kb.nearest import ancestry

    with suppress(KgkitError):
        if build in home.kb(name).build_names():
            return True
        with open_kb(name, home.path) as kb:
            return not exact and build in ancestry(kb)
    return False


def _has_model(home: Home, name: str) -> bool:
    with suppress(KgkitError):
        return name in BUILT_IN or find_model_folder(name, home).is_dir()
    return False


def models_needing(home: Home, name: str) -> list[str]:
    """Return the names of the models that need the model *name*."""
    return [model for model, needs in _all_needs(home) if name in (needs.linker, *needs.models)]


def models_needing_kb(home: Home, name: str) -> list[str]:
    """Return the names of the models that need builds or vectors of the knowledge base *name*."""
    return [
        model
        for model, needs in _all_needs(home)
        if name in (*needs.kbs, *(vectors.partition("/")[0] for vectors in needs.vectors))
    ]


def _all_needs(home: Home) -> Iterator[tuple[str, Needs]]:
    """Yield the name of each model with what it needs; one that cannot be read needs nothing."""
    for name in model_names(home):
        with suppress(KgkitError):
            yield name, read_current(partial(find_model_folder, name, home), read_header).needs
