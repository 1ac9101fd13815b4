"""What benchmarks import exists: they run rarely, and much is imported within their functions."""

import ast
import importlib
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

ROOT = Path(__file__).parents[2]
OWN = "kgkit", "kb_builders", "benchmarks"


def imported_names(path):
    """Return the pairs of module and name in each `from … import` of our own packages, wherever it stands."""
    nodes = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.ImportFrom)]
    own = [node for node in nodes if node.module and not node.level and node.module.split(".")[0] in OWN]
    return {(node.module, alias.name) for node in own for alias in node.names}


def exists(module, name):
    """Whether a module has a name, or a module of that name in it; True where a package is not installed."""
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        return (error.name or "").split(".")[0] not in OWN
    return hasattr(loaded, name) or (
        hasattr(loaded, "__path__") and find_spec(f"{module}.{name}") is not None
    )


def test_each_name_that_a_benchmark_imports_is_there():
    paths = sorted((ROOT / "benchmarks").rglob("*.py"))
    missing = [
        f"{path.relative_to(ROOT)}: {module}.{name}"
        for path in paths
        for module, name in sorted(imported_names(path))
        if not exists(module, name)
    ]
    assert missing == []


def test_a_name_that_is_not_there_is_seen(tmp_path):
    path = tmp_path / "bench.py"
    path.write_text("def run():\n    from kgkit.types import Document, Nothing\n    from kgkit.no import x\n")
    names = imported_names(path)
    assert names == {("kgkit.types", "Document"), ("kgkit.types", "Nothing"), ("kgkit.no", "x")}
    assert [name for module, name in sorted(names) if not exists(module, name)] == ["x", "Nothing"]
