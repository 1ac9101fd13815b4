"""Lines of the benchmarks on a GPU that fail, and that hang: for the tests, in processes of their own."""

import time
from collections.abc import Iterator

from benchmarks.gpu.lines import Row, Setting


def failing(setting: Setting) -> Iterator[Row]:
    """Yield a row, and fail."""
    yield Row(what="first", value=1.0, unit="s")
    raise ValueError("the second fails")


def hanging(setting: Setting) -> Iterator[Row]:
    """Yield a row, and hang."""
    yield Row(what="first", value=1.0, unit="s")
    time.sleep(60)
