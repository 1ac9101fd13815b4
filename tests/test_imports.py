"""What is loaded when, and what the public names are."""

import ast
import importlib
import importlib.metadata
import pkgutil
from pathlib import Path

import pytest

import kgkit
from kgkit.models.kinds import method_names
from tests.small_kb import facts_kb
from tests.toys import run_python

# Writes which of the modules that it is told of somebody tries to import, installed or not.
WATCH = """
import sys
tried = set()
class Watch:
    def find_spec(self, name, path=None, target=None):
        tried.add(name.partition(".")[0])
sys.meta_path.insert(0, Watch())
home, *watched = sys.argv[1:]
{code}
print(*sorted(tried & set(watched)))
"""
HEAVY = ("torch", "transformers", "faiss", "spacy", "sqlalchemy")
ON_DEMAND = ("networkx", "rapidfuzz", "pandas", "platformdirs", "rich", "typer", "nltk", "scipy")
CORE = ("lmdb", "msgspec", "numpy", "kb_builders")

QUERY = """
import kgkit
with kgkit.open_kb("facts", home=home) as kb:
    kb["dog"], kb.candidates("dog", pos="n"), kb.decode(kb.candidates("dog")), kb.neighbors("dog"), list(kb)
    kb.path("dog", "mouse"), list(kb.walk("dog", "is_a")), list(kb.match("dog")), kb.manifest, kb.relations
"""
LINK = """
import kgkit
kgkit.link("The dog and the cat.", "facts", home=home).links
"""
MAKE = """
from tests.small_kb import facts_kb
from pathlib import Path
import tempfile
facts_kb(Path(tempfile.mkdtemp())).close()
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("facts")
    facts_kb(folder).close()
    return folder


def imported(code: str, home: Path, *watched: str) -> list[str]:
    done = run_python(WATCH.format(code=code), home, *watched)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_watch_sees_an_import(home):
    assert imported("import json.decoder, lmdb", home, "lmdb", "json", "numpy") == ["json", "lmdb"]


def test_importing_kgkit_loads_nothing_but_kgkit(home):
    assert imported("import kgkit; dir(kgkit)", home, *HEAVY, *ON_DEMAND, *CORE) == []


@pytest.mark.parametrize("code", [QUERY, LINK], ids=["query", "link"])
def test_a_query_and_a_link_load_no_model_no_catalog_and_nothing_that_few_want(home, code):
    assert imported(code, home, *HEAVY, *ON_DEMAND, *CORE) == ["lmdb", "msgspec", "numpy"]


def test_a_build_loads_no_model(home):
    heavy = set(HEAVY) - {"sqlalchemy"}  # a build is registered in the catalog
    assert imported(MAKE, home, *heavy, "networkx", "rapidfuzz", "pandas", "rich", "typer") == []


@pytest.mark.parametrize(
    "args", ["--help", "kb info --home {home}", "show dog --home {home}", "kb list --help"]
)
def test_a_command_that_does_not_need_the_catalog_does_not_load_it(home, args):
    code = f"""
from contextlib import redirect_stdout, suppress
import os
from kgkit.commands import main
sys.argv = ["kgkit", *{args.format(home=home)!r}.split()]
with suppress(SystemExit), redirect_stdout(open(os.devnull, "w")):
    main()
"""
    assert imported(code, home, *HEAVY, "alembic") == []


def test_the_public_names_are_sorted_and_are_what_can_be_imported():
    assert kgkit.__all__ == sorted(set(kgkit.__all__))
    namespace: dict[str, object] = {}
    exec("from kgkit import *", namespace)
    assert set(namespace) - {"__builtins__"} == set(kgkit.__all__) == set(kgkit._WHERE) == set(dir(kgkit))
    for name, module in kgkit._WHERE.items():
        assert getattr(kgkit, name) is getattr(importlib.import_module(module), name)


def test_type_checkers_see_the_same_names_in_the_same_places():
    tree = ast.parse(Path(kgkit.__file__).read_text(encoding="utf-8"))
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module not in ("kgkit.lazy", "typing")
        for alias in node.names
    }
    assert seen == kgkit._WHERE


def test_the_version_is_that_of_the_installed_package():
    assert kgkit.__version__ == importlib.metadata.version("kgkit")


def test_the_package_of_models_lists_them_and_stays_a_package(tmp_path):
    code = """
import kgkit
assert "wsd-minilm" in {model.name for model in kgkit.models(home)}
import kgkit.models.opening as opening
assert kgkit.models.opening is opening
print(len(kgkit.models(home=home)))
"""
    done = run_python("import sys; home = sys.argv[1]" + code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3\n"  # those that come with kgkit


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'kgkit' has no attribute 'open_bk'"):
        kgkit.open_bk  # noqa: B018
    assert not hasattr(kgkit, "open_bk")


@pytest.mark.parametrize(
    "room", [module.name for module in pkgutil.walk_packages(kgkit.__path__, "kgkit.") if module.ispkg]
)
def test_every_room_lists_what_it_has(room):
    module = importlib.import_module(room)
    assert module.__doc__
    names = getattr(module, "__all__", [])
    assert len(names) == len(set(names))
    assert [name for name in names if not hasattr(module, name)] == []


def test_the_package_says_that_it_is_typed():
    assert (Path(kgkit.__file__).parent / "py.typed").is_file()


METHODS = method_names()
NO_METHODS_OWN = [
    path
    for room in ("commands", "training")
    for path in sorted((Path(kgkit.__file__).parent / room).rglob("*.py"))
    if "training/knowbert" not in str(path)
    and not str(path).endswith(("linkers/ebert.py", "training/kalm.py", "train/encoder.py"))  # for no task
]


def _names(tree: ast.Module) -> set[str]:
    """Return what a module imports by name, and its strings that are no documentation, in lower case."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {alias.name.lower() for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            names.add(node.value.lower())
    return names


def test_the_methods_whose_names_are_looked_for_are_all_that_come_with_kgkit():
    assert {"ebert", "kambert", "kbert", "knowbert"} <= {*METHODS}


@pytest.mark.parametrize("path", NO_METHODS_OWN, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_command_and_nothing_that_trains_any_method_names_one(path):
    assert _names(ast.parse(path.read_text(encoding="utf-8"))).isdisjoint(METHODS)
