"""Packages whose names are imported when they are first used, so that importing the package is cheap."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NoReturn

from kgkit.errors import MissingExtra

SHORTCUTS: Final[Mapping[str, str]] = {
    "draw_entity": "kgkit.linking.notebook",
    "draw_kb": "kgkit.linking.notebook",
    "draw_link": "kgkit.linking.notebook",
    "draw_linked_document": "kgkit.linking.notebook",
    "encoder_of": "kgkit.embedding.text",
    "export_kb": "kgkit.exchange.exporting",
    "is_of_texts": "kgkit.embedding.text",
    "render": "kgkit.linking.html",
}
"""Functions that methods call in rooms above their own, by name, and their modules.

A room imports from those below it only. These methods are there because people look for them where they are
(`kb.export`), and do no more than call the function, which is imported then.
"""

_NO_HINTS: Mapping[str, str] = {}


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


def import_pandas() -> Any:
    """Return the package pandas.

    Raises:
        MissingExtra: if it is not installed.
    """
    return import_extra("pandas", "pandas")


def lazy_attributes(
    package: str, modules: Mapping[str, str], hints: Mapping[str, str] = _NO_HINTS
) -> Callable[[str], Any]:
    """Return the function `__getattr__` of a package.

    Args:
        package: name of the package.
        modules: module of each name; one that begins with a dot is in the package.
        hints: expression that serves in the place of a name that people try.

    Examples:
        >>> __getattr__ = lazy_attributes(__name__, {"KBert": ".kbert"})
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise attribute_error(sys.modules[package], name, hints)
        value = getattr(import_module(modules[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    return load


def attribute_error(owner: object, name: str, hints: Mapping[str, str]) -> AttributeError:
    """Return the error that *owner* has no attribute *name*, with its hint if there is one.

    Args:
        owner: module, class, or object of a class.
        name: name of the attribute.
        hints: expression that serves in the place of a name that people try.
    """
    if isinstance(owner, ModuleType):
        what = f"module {owner.__name__!r}"
    elif isinstance(owner, type):
        what = f"type object {owner.__name__!r}"
    else:
        what = f"{type(owner).__name__!r} object"
    hint = f": {hints[name]}" if name in hints else ""
    return AttributeError(f"{what} has no attribute {name!r}{hint}", name=name, obj=owner)


def missing_attribute(hints: Mapping[str, str], *, keyed: bool = False) -> Callable[[Any, str], NoReturn]:
    """Return the method `__getattr__` of a class whose objects say what serves in the place of a name.

    Of a metaclass, classes say so.

    Args:
        hints: expression that serves in the place of a name that people try.
        keyed: whether objects have a mapping `attributes`, in which the name may be.
    """

    def refuse(self: Any, name: str) -> NoReturn:
        if keyed and name != "attributes" and name in self.attributes:
            owner = type(self).__name__.lower()
            raise attribute_error(self, name, {name: f"{owner}.attributes[{name!r}] has it"})
        raise attribute_error(self, name, hints)

    return refuse


def make_callable(package: str, module: str) -> None:
    """Let a package be called as the function that has its name in *module*.

    For a package whose name is that of a function too: either is then had by the one name.

    Args:
        package: name of the package, as `kgkit.models`.
        module: module of the function, which is imported by the first call.
    """
    name = package.rpartition(".")[2]

    class CallablePackage(ModuleType):
        """Package that is a function too, which `inspect.signature` shows."""

        def __call__(self, *args: Any, **settings: Any) -> Any:
            """Call the function."""
            return self.__wrapped__(*args, **settings)

        @property
        def __wrapped__(self) -> Callable[..., Any]:
            """The function."""
            function: Callable[..., Any] = getattr(import_module(module), name)
            return function

    sys.modules[package].__class__ = CallablePackage
