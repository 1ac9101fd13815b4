"""Packages whose names are imported when they are first used, so that importing the package is cheap."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_attributes(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the function `__getattr__` of a package.

    Args:
        package: name of the package.
        modules: module of each name; one that begins with a dot is in the package.

    Example:
        >>> __getattr__ = lazy_attributes(__name__, {"KBert": ".kbert"})
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
