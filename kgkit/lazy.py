"""Packages whose names are imported when they are first used, so that importing the package is cheap."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from kgkit.errors import MissingExtra


def import_extra(package: str, extra: str) -> Any:
    """Return a package that an extra of kgkit brings.

    Args:
        package: name of the package.
        extra: name of the extra.

    Raises:
        MissingExtra: if it is not installed.
    """
    try:
        return import_module(package)
    except ImportError:
        raise MissingExtra(package, extra) from None


def lazy_attributes(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the function `__getattr__` of a package (PEP 562).

    Args:
        package: name of the package.
        modules: module of each name; one that begins with a dot is in the package.

    Examples:
        >>> __getattr__ = lazy_attributes(__name__, {"KBert": ".kbert"})
    """

    def load(name: str) -> Any:
        module = sys.modules[package]
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)
        value = getattr(import_module(modules[name], package), name)
        setattr(module, name, value)
        return value

    return load
