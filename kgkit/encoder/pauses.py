"""Pauses in long work: between two batches of a model, something else may be done.

Whoever calls for long work says by `pausing` what is done in its pauses, in the same thread; loops over
batches call `pause`. What a pause does may use the same models, and may end the work by an error.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_function: Final[ContextVar[Callable[[], None] | None]] = ContextVar("pause", default=None)


def pause() -> None:
    """Do what is to be done between two batches; nothing unless `pausing` says so."""
    function = _function.get()
    if function is not None:
        function()


@contextmanager
def pausing(function: Callable[[], None] | None) -> Iterator[None]:
    """Have a function called in the pauses of this thread while the block lasts.

    Args:
        function: function without arguments; None: pauses do nothing.
    """
    token = _function.set(function)
    try:
        yield
    finally:
        _function.reset(token)
