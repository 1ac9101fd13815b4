"""Models that read the very build of a knowledge base that has been removed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from kgkit.commands.messages import Messages
from kgkit.errors import KgkitError

if TYPE_CHECKING:
    from kgkit.home import Home


@contextmanager
def lost_builds_warned(home: "Home", name: str, messages: Messages) -> Iterator[None]:
    """Warn of each model whose build of the knowledge base *name* goes in the `with` block.

    A new build removes all but the one that it replaces.
    """
    before = _builds(home, name)
    yield
    after = _builds(home, name)
    warn_of_lost_builds(home, [f"{name}@{build}" for build in before if build not in after], messages)


def _builds(home: "Home", name: str) -> list[str]:
    """Return the builds of a knowledge base on disk; none where *name* cannot name one."""
    with suppress(KgkitError):
        return home.kb(name).build_names()
    return []


def warn_of_lost_builds(home: "Home", removed: Sequence[str], messages: Messages) -> None:
    """Warn of each model that needs one of the builds *removed*, as KB@BUILD, and that nothing replaces."""
    for model, build in _models_without_build(home, removed):
        messages.write(f"warning: the model {model} needs {build}: train it again")


def _models_without_build(home: "Home", removed: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the models that need a build that was removed, and which."""
    from kgkit.models.folder import find_model_folder, model_names
    from kgkit.models.manifest import read_header
    from kgkit.models.needs import lost_builds
    from kgkit.versions import read_current

    if not removed:
        return
    for name in model_names(home):
        with suppress(KgkitError):  # who opens it says what is wrong
            needs = read_current(partial(find_model_folder, name, home), read_header).needs
            yield from ((name, build) for build in lost_builds(needs, home, removed))
