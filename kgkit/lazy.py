"""Packages whose names are imported when they are first used, so that importing the package is cheap."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from kgkit.errors import MissingExtra

SHORTCUTS: Final[Mapping[str, str]] = {
    "draw_entity": "kgkit.linking.notebook",
    "draw_kb": "kgkit.linking.notebook",
    "draw_link": "kgkit.linking.notebook",
    "draw_linked_document": "kgkit.linking.notebook",
    "render": "kgkit.linking.html",
}
"""Functions that draw a record, by name, and their modules, which are rooms above that of the records.

A room imports from those below it only; IPython looks for the drawing on the record.
"""


def shortcut(name: str) -> Any:
    """Return the function of that name in `SHORTCUTS`."""
    return getattr(import_module(SHORTCUTS[name]), name)


def drawing(name: str) -> Callable[[object], str]:
    """Return the method `_repr_html_` of a class, by which IPython draws its objects.

    Args:
        name: name of the function that draws one, in `SHORTCUTS`.
    """

    def draw(self: object) -> str:
        """Return the object as HTML, for a notebook."""
        page: str = shortcut(name)(self)
        return page

    return draw


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
