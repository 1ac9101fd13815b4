"""Builds that a new one removes, and models that lose the build of a knowledge base that they read."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kgkit.commands.messages import Messages

if TYPE_CHECKING:
    from kgkit.home import Home


@contextmanager
def lost_builds_warned(home: "Home", names: Collection[str], messages: Messages) -> Iterator[None]:
    """Warn of each model that loses its build of the knowledge bases *names* in the `with` block.

    A new build removes all but the one that it replaces; another one may serve in its place.
    """
    from kgkit.models.needs import lacking_builds

    before = lacking_builds(home, names)
    yield
    for model, build in sorted(lacking_builds(home, names) - before):
        messages.write(f"warning: the model {model} needs {build}: train it again")


@contextmanager
def removals_reported(home: "Home", names: Collection[str], messages: Messages) -> Iterator[None]:
    """Name the builds of the knowledge bases *names* that the `with` block removes, and those that stay."""
    from kgkit.home import is_name

    kbs = [home.kb(name) for name in names if is_name(name)]  # others are refused in the block
    before = {kb.name: kb.build_names() for kb in kbs}
    yield
    for kb in kbs:
        builds = kb.build_names()
        removed = [build for build in before[kb.name] if build not in builds]
        if removed:
            earlier = [f"{kb.name}@{build}" for build in builds if build != kb.published()]
            hint = f"; {', '.join(earlier)} can be published again" if earlier else ""
            messages.write(f"removed build {', '.join(removed)}{hint}")
