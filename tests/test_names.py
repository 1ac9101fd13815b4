"""Names are the field's: nouns for things, verbs for functions, and a type's name stands once. And public
names have a docstring.

Prose words (`found`, `one`, `told`, `place` …) read well in a sentence and say nothing as a name: what was
found is a row, a match, a path. They are counted, by the syntax tree, among the names of functions, classes,
arguments, variables and attributes of `kgkit`, `kb_builders` and `benchmarks`; `NotThere` counts as *not* and
*there*.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PROSE = frozenset(
    """one ones found told said say says asked place places taught known begun made kept given left taken gone
    done seen wanted lacking there beside behind others whole apart such rest stands lies goes anew understood
    understanding heard meant lent tells suited stretch stretches rung rungs trait traits several lesson
    lessons""".split()
)

BAR = 0.01
"""Of the names of a room that have a prose word, the largest share; what follows is not counted."""

DOCUMENTED = 0.95
"""Of public functions, methods, properties and classes, the least share with a docstring."""

EXCEPTIONS = {
    ("kgkit/catalog/models.py", "gone"): "a column of the catalog's tables, which older catalogs have",
    ("kgkit/catalog/catalog.py", "gone"): "the same column, set by its name",
    ("kgkit/errors.py", "NotThere"): "an error that callers catch by this name",
}

SHARED_CLASSES = {
    "Index": (2, "a row of the catalog has the name of what it describes"),
    "Score": (2, "a row of the catalog has the name of what it describes"),
    "Vectors": (2, "a row of the catalog has the name of what it describes"),
}
"""Public classes of one name: how many of them, and why."""


@cache
def modules(package: str) -> tuple[tuple[str, ast.Module], ...]:
    """Return the path of each module, from the root, and its syntax tree."""
    paths = sorted((ROOT / package).rglob("*.py"))
    return tuple((path.relative_to(ROOT).as_posix(), ast.parse(path.read_bytes())) for path in paths)


def room_of(path: str) -> str:
    """Return the room of a module: its package, or of `kgkit` the folder or the file beside these."""
    package, *rooms = path.split("/")
    return rooms[0] if package == "kgkit" else package


def names_in(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every name that *tree* gives to something, and its line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name):
                yield name, node.lineno
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno


def words_of(name: str) -> set[str]:
    """Return the words of a name, in lower case.

    >>> sorted(words_of("_NotThere_beside2"))
    ['beside', 'not', 'there']
    """
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def prose_names() -> tuple[Counter[str], dict[str, list[str]], set[tuple[str, str]]]:
    """Return by room the number of names and those with prose words, and the exceptions that were met."""
    totals: Counter[str] = Counter()
    prose: dict[str, list[str]] = defaultdict(list)
    used: set[tuple[str, str]] = set()
    for package in ("kgkit", "kb_builders", "benchmarks"):
        for path, tree in modules(package):
            for name, line in names_in(tree):
                totals[room_of(path)] += 1
                if PROSE.isdisjoint(words_of(name)):
                    continue
                if (path, name) in EXCEPTIONS:
                    used.add((path, name))
                else:
                    prose[room_of(path)].append(f"{path}:{line}: {name}")
    return totals, prose, used


TOTALS, NAMES, USED = prose_names()


@pytest.mark.parametrize("room", sorted(TOTALS))
def test_the_names_of_a_room_are_no_prose(room):
    share = len(NAMES[room]) / TOTALS[room]
    some = "\n".join(NAMES[room][-20:])
    assert share < BAR, f"{room}: {share:.1%} of the names have a word of PROSE, {BAR:.0%} may:\n{some}"


def test_exceptions_are_names_that_exist():
    assert set(EXCEPTIONS) == USED


def test_a_public_class_has_its_name_for_itself():
    places = defaultdict(list)
    for path, tree in modules("kgkit"):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path}:{node.lineno}")
    allowed = {name: count for name, (count, _) in SHARED_CLASSES.items()}
    assert {name: lines for name, lines in places.items() if len(lines) > allowed.get(name, 1)} == {}
    assert [name for name, (count, _) in SHARED_CLASSES.items() if len(places[name]) != count] == []


def test_a_prose_word_is_seen_in_every_kind_of_name(tmp_path):
    source = (
        "class NotThere: pass\ndef told(one, *, kept=0): self.place = 1\n"
        "for found, _ in (): pass\n[seen for seen in ()]\n(rest := 1)\n"
    )
    names = {name for name, _ in names_in(ast.parse(source)) if not PROSE.isdisjoint(words_of(name))}
    assert names == {"NotThere", "told", "one", "kept", "place", "found", "seen", "rest"}


def without_docstring(tree: ast.AST) -> tuple[list[str], int]:
    """Return the public functions and classes of *tree* without a docstring, and the number of all."""
    kinds = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef
    public = [node for node in ast.walk(tree) if isinstance(node, kinds) and not node.name.startswith("_")]
    return [f"{node.lineno}: {node.name}" for node in public if ast.get_docstring(node) is None], len(public)


def test_public_names_have_docstrings():
    missing: list[str] = []
    total = 0
    for package in ("kgkit", "kb_builders"):
        for path, tree in modules(package):
            lines, count = without_docstring(tree)
            missing += [f"{path}:{line}" for line in lines]
            total += count
    share = 1 - len(missing) / total
    some = "\n".join(missing)
    assert share > DOCUMENTED, f"{share:.1%} have a docstring, {DOCUMENTED:.0%} have to:\n{some}"


def test_a_missing_docstring_is_seen_in_a_class_a_method_and_a_nested_function():
    source = """
class Box:
    def shown(self): "A docstring."
    def bare(self):
        def inner(): pass
    def _private(self): pass
"""
    assert without_docstring(ast.parse(source)) == (["2: Box", "4: bare", "5: inner"], 4)
