"""Clocks for the inside of a measured process. Light: a peer pays for what is imported here."""

import time
from collections.abc import Callable, Sequence
from typing import Any


def passes(answer: Callable[[Any], object], keys: Sequence[Any]) -> dict[str, float]:
    """Time two passes over the same distinct keys, after a pass over as many others.

    The others bring the process and the pages of a file to where they are after a while of use. In the
    first timed pass no key has been asked for before, so no cache of answers can help; the second shows
    what such caches give.

    Args:
        answer: answers every key of a list; the loop is inside, so that nothing is counted but it.
        keys: distinct, in random order; the first half warms up, the second is timed.

    Returns:
        Keys a second of CPU time: `new`, `again`.
    """
    half = len(keys) // 2
    answer(keys[:half])
    timed = keys[half:]
    rates = {}
    for name in ("new", "again"):
        start = time.process_time()
        answer(timed)
        rates[name] = len(timed) / (time.process_time() - start)
    return rates
