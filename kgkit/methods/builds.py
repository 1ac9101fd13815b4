"""Builds of knowledge bases that models were trained with."""

from contextlib import ExitStack

from kgkit.errors import NotThere, StaleModel
from kgkit.home import Home
from kgkit.kb import KnowledgeBase, open_kb


def open_build(name: str, build: str, home: Home, stack: ExitStack) -> KnowledgeBase:
    """Open a knowledge base as a model was trained with it: its facts decide what is read.

    Args:
        name: name of the knowledge base.
        build: name of the build.
        home: home of both.
        stack: stack that closes it.

    Raises:
        NotThere: if there is no such knowledge base.
        StaleModel: if that build is gone.
    """
    current = stack.enter_context(open_kb(name, home.path))
    if current.build == build:
        return current
    try:
        return stack.enter_context(open_kb(f"{name}@{build}", home.path))
    except NotThere:
        raise StaleModel(
            f"the model reads facts of {name}@{build}, which is gone; here is {name}@{current.build}: train "
            "it again, or build that one again"
        ) from None
