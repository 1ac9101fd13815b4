"""Importing torch and transformers without what no encoder uses.

Half of the seconds before a first text is encoded go into imports for training, for compiling and for
several machines:

    scipy.optimize       one function, for losses of object detection
    torch._dynamo        the compiler: functions are marked for `torch.compile`
    torch.distributed    tensors that are spread over processes

While `lean_imports` lasts, stand-ins take their places, if they have not been imported. Functions that are
imported meanwhile are not marked, and transformers does not know spread tensors until the process ends. So a
process must have said, by `only_encodes`, that it neither compiles nor trains: `kgkit link` does.

The garbage collector pauses too, in every process: what is imported is no garbage, and to look through it
again and again took a tenth of the time; to look through it once more at the end of the process, as much.
"""

import gc
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any, Final

Marked = Callable[..., Any]


class _Process:
    encodes_only = False


def only_encodes() -> None:
    """Say that this process encodes texts, and neither compiles models nor trains them."""
    _Process.encodes_only = True


@contextmanager
def lean_imports() -> Iterator[None]:
    """Import, in the `with` block, only what an encoder needs, if this process `only_encodes`."""
    with ExitStack() as stack:
        if gc.isenabled():
            gc.disable()
            stack.callback(gc.enable)
        if _Process.encodes_only:
            stack.callback(gc.freeze)
            late = not {_COMPILER, "transformers.modeling_utils"}.isdisjoint(sys.modules)
            if "torch" in sys.modules and not late:
                stack.enter_context(_stand_ins())
        yield


@contextmanager
def _stand_ins() -> Iterator[None]:
    import torch.distributed

    for name, names in _NAMES.items():
        root = importlib.util.find_spec(name.partition(".")[0])
        if root is not None and name not in sys.modules:
            sys.modules[name] = _StandIn(name, names)
            if name == _MATCHING:  # modules in it are imported as ever, should one be asked for
                folders = root.submodule_search_locations or ()
                sys.modules[name].__path__ = [f"{folder}/optimize" for folder in folders]
    theirs = torch.distributed.is_available
    torch.distributed.is_available = lambda: False
    try:
        yield
    finally:
        torch.distributed.is_available = theirs
        _take_away()


class _StandIn(ModuleType):
    """A module that is imported when anything is asked of it but the names that it was given."""

    def __init__(self, name: str, names: dict[str, Any]) -> None:
        super().__init__(name)
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> Any:
        # Who asks the compiler for its path is about to import a module in it. For other such names, all
        # modules are asked by who looks for the source of a function.
        if name.startswith("__") and (name, self.__name__) != ("__path__", _COMPILER):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        _take_away()
        return getattr(importlib.import_module(self.__name__), name)


def _take_away() -> None:
    for name in _NAMES:
        if isinstance(sys.modules.get(name), _StandIn):
            del sys.modules[name]


def _unmarked(function: Marked | None = None, *_: object, **settings: object) -> Marked:
    """Stand for a mark, with settings or without: the function stays as it is."""
    return _unmarked if function is None else function


def _later(module: str, name: str) -> Callable[..., Any]:
    """Return what calls a function of a module, which is imported then."""
    return lambda *args, **kwargs: getattr(importlib.import_module(module), name)(*args, **kwargs)


_MATCHING: Final = "scipy.optimize"
_COMPILER: Final = "torch._dynamo"
_ARRAYS: Final = f"{_COMPILER}._trace_wrapped_higher_order_op"
_NAMES: Final[dict[str, dict[str, Any]]] = {
    _MATCHING: {"linear_sum_assignment": _later(_MATCHING, "linear_sum_assignment")},
    _COMPILER: dict.fromkeys(("allow_in_graph", "assume_constant_result", "disable"), _unmarked),
    _ARRAYS: {"TransformGetItemToIndex": _later(_ARRAYS, "TransformGetItemToIndex")},
}
