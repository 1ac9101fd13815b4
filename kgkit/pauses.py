"""Pauses in long loops.

A caller registers a function with `pausing`; `pause` calls it between two steps of a loop. The function may
do other work with the same models, or raise an error, which ends the loop.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_function: Final[ContextVar[Callable[[], None] | None]] = ContextVar("pause", default=None)


def pause() -> None:
    """Call the function that `pausing` has registered in this thread, if there is one."""
    function = _function.get()
    if function is not None:
        function()


@contextmanager
def pausing(function: Callable[[], None] | None) -> Iterator[None]:
    """Register a function that `pause` calls in this thread, until the block ends.

    Args:
        function: function without arguments; None: `pause` does nothing.
    """
    token = _function.set(function)
    try:
        yield
    finally:
        _function.reset(token)
