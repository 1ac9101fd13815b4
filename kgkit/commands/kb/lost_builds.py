"""Models that lose the build of a knowledge base that they read."""

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
