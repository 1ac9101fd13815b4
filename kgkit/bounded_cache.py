"""A dictionary with a bound in bytes, for what can be looked up again.

Texts and names of users are keys of caches: a bound on their number is none on their size.
"""

import sys
import threading
from collections.abc import Mapping
from typing import Any, Final, Generic, TypeVar

__all__ = ["BoundedCache", "weight_of"]

Key = TypeVar("Key")
Value = TypeVar("Value")

_OF_ROW: Final = 100  # bytes of a row of a dictionary, as it grows
_PLAIN: Final = (str, bytes, int, float, type(None))  # tuples: a union is made anew each time it is asked
_HOLDING: Final = (tuple, list, set, frozenset)


class BoundedCache(dict[Key, Value], Generic[Key, Value]):
    """A dictionary that forgets everything when its rows would take more than a bound.

    Rows are added by `keep` alone, from any thread. A pickle of it is empty.

    Args:
        bound: largest weight of all rows, in bytes; one that alone is heavier is not kept.

    Attributes:
        bound: the same.
        weight: bytes that the rows take, by `weight_of`.
    """

    def __init__(self, bound: int) -> None:
        super().__init__()
        self.bound, self.weight = bound, 0
        self._lock = threading.Lock()

    def keep(self, key: Key, value: Value) -> Value:
        """Add a row, and return its value."""
        weight = _OF_ROW + weight_of(key) + weight_of(value)
        with self._lock:
            if self.weight + weight > self.bound:
                super().clear()
                self.weight = 0
            if weight <= self.bound and key not in self:
                self[key] = value
                self.weight += weight
        return value

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            super().clear()
            self.weight = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundedCache, (self.bound,)


def weight_of(value: object) -> int:
    """Return the bytes that a value takes, with what it holds; what several values share counts for each."""
    size = sys.getsizeof(value)
    if isinstance(value, _PLAIN):
        return size
    if isinstance(value, _HOLDING):
        return size + sum(map(weight_of, value))
    if isinstance(value, Mapping):
        return size + sum(weight_of(key) + weight_of(each) for key, each in value.items())
    if (content := getattr(value, "nbytes", None)) is not None:  # an array; a view keeps all that it is of
        base = getattr(value, "base", None)
        return size + (
            0 if base is None else max(int(content), sys.getsizeof(base), getattr(base, "nbytes", 0))
        )
    names = getattr(value, "__struct_fields__", ()) or getattr(value, "__slots__", ())
    fields = [getattr(value, name, None) for name in ([names] if isinstance(names, str) else names or ())]
    return size + sum(map(weight_of, [*fields, *getattr(value, "__dict__", {}).values()]))
