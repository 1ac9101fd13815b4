"""Whether what a trained model needs is there: builds of knowledge bases, vectors, another model."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import NamedTuple

from kgkit.errors import KgkitError
from kgkit.home import Home
from kgkit.models.folder import BUILT_IN, find_model_folder, model_names, read_model
from kgkit.models.manifest import Needs, read_header
from kgkit.vectors import vectors_names


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


def needed_builds(needs: Needs, home: Home) -> dict[str, str]:
    """Return the builds that a model needs, by knowledge base: its own, else those of the linker below it.

    Args:
        needs: needs of the model.
        home: home of the models.
    """
    checked: set[str] = set()
    while not needs.kbs and needs.linker and needs.linker not in (*BUILT_IN, *checked):
        checked.add(needs.linker)
        needs = read_model(needs.linker, home, "linker", read_header).needs
    return dict(needs.kbs)


def lacking_builds(home: Home, names: Collection[str]) -> set[tuple[str, str]]:
    """Return the models that need a build of the knowledge bases *names* that is not there, and the build."""
    return {
        (model, f"{name}@{build}")
        for model, needs in _all_needs(home)
        for name, build in needs.kbs.items()
        if name in names and not _has_build(home, name, build, exact=needs.exact)
    }


def _has_build(home: Home, name: str, build: str, *, exact: bool) -> bool:
    """Say whether a build is there, or unless *exact* one that is made of it."""
    from kgkit.kb.lineage import serving_builds

    with suppress(KgkitError):  # a stranger's manifest may name what no knowledge base can be called
        kb = home.kb(name)
        return build in kb.build_names() or bool(not exact and serving_builds(kb, build))
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
            yield name, read_model(name, home, None, read_header).needs
