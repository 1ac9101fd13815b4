"""The page of the Python API, made from the docstrings: `python -m tests.api_page` writes docs/api.md.

The public names are those in `__all__` of kgkit and of its rooms. What a docstring in Google's convention has
in sections becomes lists; examples are for reading only.
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Final

import kgkit

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs/api.md"

_INTRODUCTION: Final = """\
# Python API

Every public name, by the package that it is imported from. This page is made from the docstrings
(`python -m tests.api_page`). Shapes are in the letters that a class or its module explains; offsets are code
points, end exclusive; errors descend from `kgkit.KgkitError`.

"""
_SECTION: Final = re.compile(
    r"^(Args|Attributes|Returns|Yields|Gives|Raises|Example|Examples|Departures|Shapes|Note):[ ]?(.*)$"
)
_ITEM: Final = re.compile(r"^([\w*, .`]+):\s(.*)$", re.DOTALL)
_WIDTH: Final = 100
_LONGEST: Final = 60  # characters of a default


def public_modules() -> list[ModuleType]:
    """Return kgkit and its rooms that have public names, by name."""
    rooms = (import_module(f"kgkit.{item.name}") for item in iter_modules(kgkit.__path__) if item.ispkg)
    return [kgkit, *(room for room in rooms if getattr(room, "__all__", None))]


def page() -> str:
    """Return the whole page."""
    parts = [_INTRODUCTION]
    for module in public_modules():
        parts.append(f"## `{module.__name__}`\n\n{_first_paragraph(module)}\n")
        names = sorted(module.__all__, key=str.lower)
        parts += [_entry(name, getattr(module, name), module) for name in names]
    return "\n".join(parts).rstrip() + "\n"


def _first_paragraph(module: ModuleType) -> str:
    return (inspect.getdoc(module) or "").split("\n\n")[0] + "\n"


def _entry(name: str, value: Any, module: ModuleType) -> str:
    """Return the part of a public name."""
    if module is not kgkit and getattr(kgkit, name, None) is value and name in kgkit.__all__:
        return f"### `{module.__name__}.{name}`\n\nThe same as [`kgkit.{name}`](#kgkit{name.lower()}).\n"
    head = f"### `{module.__name__}.{name}`\n"
    if inspect.isclass(value):
        text = [head, _code(f"class {_signature(name, value)}"), _markdown(inspect.getdoc(value) or "")]
        for each, member in _methods(value):
            text += [f"#### `{name}.{each}`\n", _code(_signature(each, member))]
            text.append(_markdown(inspect.getdoc(member) or ""))
        return "\n".join(text)
    if inspect.isfunction(value):
        return "\n".join([head, _code(_signature(name, value)), _markdown(inspect.getdoc(value) or "")])
    return "\n".join([head, _constant(name, value, module)])


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that a class of kgkit defines itself, in their order.

    Those of its bases that have no part of their own on the page follow.
    """
    members = dict(vars(kind))
    for base in kind.__mro__[1:]:
        if base.__module__.startswith("kgkit.") and base not in _exported_classes():
            members |= {name: member for name, member in vars(base).items() if name not in members}
    for name, member in members.items():
        function = getattr(member, "__func__", member)
        if name.startswith("_") and name != "__call__":
            continue
        if isinstance(member, property) or inspect.isfunction(function):
            value = member.fget if isinstance(member, property) else function
            if inspect.getdoc(value):
                yield name, value


@cache
def _exported_classes() -> frozenset[type]:
    """Return the classes that have a part on the page."""
    names = ((module, name) for module in public_modules() for name in module.__all__)
    return frozenset(value for module, name in names if inspect.isclass(value := getattr(module, name)))


def _signature(name: str, value: Any) -> str:
    if getattr(getattr(value, "__init__", None), "__module__", "") == "typing":
        return f"{name}()"  # a Protocol's: it changes when the first object is made
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    parameters = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    fields = [_plain(str(_short(each))) for each in parameters]
    if not any(each.kind is each.VAR_POSITIONAL for each in parameters):
        named = [position for position, each in enumerate(parameters) if each.kind is each.KEYWORD_ONLY]
        fields = [*fields[: named[0]], "*", *fields[named[0] :]] if named else fields
    line = f"{name}({', '.join(fields)}){_result(signature)}"
    if len(line) <= _WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {each},\n" for each in fields) + f"){_result(signature)}"


def _short(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter without a default that is long, or that has another order in each process."""
    default = parameter.default
    if default is parameter.empty or (
        len(repr(default)) <= _LONGEST and not isinstance(default, set | frozenset)
    ):
        return parameter
    return parameter.replace(default=...)


def _result(signature: inspect.Signature) -> str:
    result = signature.return_annotation
    if result in (signature.empty, None):
        return ""
    text = result if isinstance(result, str) else inspect.formatannotation(result)
    return f" -> {_plain(text)}"


def _plain(text: str) -> str:
    """Return a type without the modules of its parts."""
    return re.sub(r"\b(?:kgkit|numpy|collections\.abc|pathlib|typing)\.(?:\w+\.)*", "", text)


def _code(text: str) -> str:
    return f"```py\n{text}\n```\n"


def _constant(name: str, value: Any, module: ModuleType) -> str:
    """Return the docstring below the assignment of a constant, in the module that assigns it."""
    origin = value.__module__ if isinstance(getattr(value, "__module__", None), str) else module.__name__
    for source in (module.__name__, origin):
        path = inspect.getsourcefile(import_module(source))
        lines = ast.parse(Path(path).read_text(encoding="utf-8")).body if path else []
        for line, after in pairwise(lines):
            targets = [line.target] if isinstance(line, ast.AnnAssign) else getattr(line, "targets", [])
            if any(isinstance(each, ast.Name) and each.id == name for each in targets):
                match after:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        return _markdown(inspect.cleandoc(text))
    return f"A {type(value).__name__}.\n"


def _markdown(docstring: str) -> str:
    """Return a docstring in Google's convention as Markdown."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line in docstring.splitlines():
        if match := _SECTION.match(line):
            sections.append((match[1], [f"    {match[2]}"] if match[2] else []))
        else:
            sections[-1][1].append(line)
    return "\n".join(filter(None, (_section(title, lines) for title, lines in sections)))


def _section(title: str, lines: list[str]) -> str:
    text = textwrap.dedent("\n".join(lines)).strip("\n")
    if not text:
        return ""
    if not title:
        return _paragraphs(text)
    if title.startswith("Example"):
        return f"Example:\n\n```pycon\n{text}\n```\n"
    if title in ("Args", "Attributes", "Raises"):
        items = re.split(r"\n(?=\S)", text)
        shown = [match for item in items if (match := _ITEM.match(item))]
        if len(shown) == len(items):
            listed = "".join(f"- `{each[1]}`: {' '.join(each[2].split())}\n" for each in shown)
            return f"{title}:\n\n{listed}"
    return f"{title}:\n\n{_paragraphs(text)}"


def _paragraphs(text: str) -> str:
    """Return text whose indented paragraphs, which are drawn, keep their lines."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", text):
        drawn = all(line.startswith("    ") for line in paragraph.splitlines())
        parts.append(f"```\n{textwrap.dedent(paragraph)}\n```" if drawn else paragraph.strip())
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(
        f"{PAGE.relative_to(ROOT)}: {len(PAGE.read_text(encoding='utf-8').splitlines())} lines\n"
    )


if __name__ == "__main__":
    main()
