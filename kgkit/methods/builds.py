"""Builds of knowledge bases whose facts a model reads: that of its training, or one that was made of it."""

from contextlib import ExitStack

from kgkit.errors import NotThere, StaleModel
from kgkit.home import Home
from kgkit.kb import KnowledgeBase, open_kb
from kgkit.kb.nearest import ancestry


def open_build(name: str, build: str, home: Home, stack: ExitStack) -> KnowledgeBase:
    """Open a knowledge base: as it is now, if additions and edits have made it of the build of a model.

    Entities keep their ids then, and facts are read without parameters of their own, so what has come needs
    no training. A knowledge base that was built anew may say something else of everything: beside it the
    model goes on reading the build that it was trained with, while that is on disk.

    Args:
        name: name of the knowledge base.
        build: name of the build that the model was trained with.
        home: home of both.
        stack: stack that closes it.

    Raises:
        NotThere: if there is no such knowledge base.
        StaleModel: if that build is gone, and the knowledge base is not made of it.
    """
    current = stack.enter_context(open_kb(name, home.path))
    if build in ancestry(current):
        return current
    try:
        return stack.enter_context(open_kb(f"{name}@{build}", home.path))
    except NotThere:
        raise StaleModel(
            f"the model reads facts of {name}@{build}, which is gone; here is {name}@{current.build}: train "
            "it again, or build that one again"
        ) from None
