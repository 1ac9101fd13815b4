"""Builds of knowledge bases whose facts a model reads: that of its training, or one that was made of it."""

from contextlib import ExitStack, suppress

from kgkit.errors import NotThere, StaleModel
from kgkit.home import Home
from kgkit.kb import KnowledgeBase, open_kb
from kgkit.kb.lineage import serving_builds


def open_build(name: str, build: str, home: Home, stack: ExitStack, *, exact: bool = False) -> KnowledgeBase:
    """Open a knowledge base: as it is now, if additions and edits have made it of the build of a model.

    Entities keep their ids then, and facts are read without parameters of their own, so what has come needs
    no training. A knowledge base that was built anew may say something else of everything: beside it the
    model goes on reading the build that it was trained with, or one made of that, while such a one is on
    disk.

    Args:
        name: name of the knowledge base.
        build: name of the build that the model was trained with.
        home: home of both.
        stack: stack that closes it.
        exact: whether no build serves but that one, as models of older versions have it.

    Raises:
        NotThere: if there is no such knowledge base.
        StaleModel: if no build serves.
    """
    serving = [build] if exact else serving_builds(home.kb(name), build)
    for candidate in serving:
        with suppress(NotThere):  # it was removed a moment ago
            return stack.enter_context(open_kb(f"{name}@{candidate}", home.path))
    current = stack.enter_context(open_kb(name, home.path))
    raise StaleModel(
        f"the model reads facts of {name}@{build}, which is gone; here is {name}@{current.build}: train it "
        "again, or build that one again"
    )
