"""The notebooks in `examples/notebooks` run from their first cell to their last, and show what they say.

With nbclient they are run by a kernel; where it is not installed, the cells are executed in one namespace,
and what IPython would draw of their last expressions is asked for.
"""

import ast
import json
import shutil

import pytest

from kgkit.encoder.finding import find_in_package
from tests.doc_pages import ROOT
from tests.tiny_encoder import MINILM

FOLDER = ROOT / "examples" / "notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))


def read(name):
    """Return the fields of a notebook."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def run_cells(name):
    """Execute the code cells of a notebook in one namespace; return the values of last expressions."""
    names, values = {"__name__": "__main__"}, []
    for number, cell in enumerate(read(name)["cells"]):
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]), f"{name}[{number}]")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{name}[{number}]", "exec"), names)
        if last is not None:
            values.append(eval(compile(ast.Expression(last.value), f"{name}[{number}]", "eval"), names))
    return values


def run_in_kernel(name, folder):
    """Run a notebook as Jupyter does."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(FOLDER / name, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder beside the examples, with a home of its own."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "examples" / "notebooks")
    return tmp_path / "examples" / "notebooks"


def test_there_is_a_notebook_for_linking_for_a_knowledge_base_and_for_a_head():
    assert NAMES == ["link.ipynb", "own_kb.ipynb", "train_a_head.ipynb"]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_one_of_format_4_and_has_no_outputs(name):
    notebook = read(name)
    assert notebook["nbformat"] == 4 and notebook["cells"][0]["cell_type"] == "markdown"
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        assert cell["cell_type"] == "markdown" or (cell["outputs"], cell["execution_count"]) == ([], None)


def test_the_notebook_of_links_draws_a_knowledge_base_links_and_entities(folder, capsys):
    drawn = [value._repr_html_() for value in run_cells("link.ipynb") if hasattr(value, "_repr_html_")]
    assert len(drawn) == 5
    assert "200" in drawn[0] and "Crow" in drawn[1] and "<ruby" in drawn[1]
    assert "candidate" in drawn[2] and "score" in drawn[2]
    assert "Mercury" in capsys.readouterr().out


def test_the_notebook_of_a_knowledge_base_builds_extends_and_packs_one(folder, capsys):
    values = run_cells("own_kb.ipynb")
    drawn = [value._repr_html_() for value in values if hasattr(value, "_repr_html_")]
    assert "Ada Lovelace" in drawn[1] and any("Analytical Engine" in each for each in drawn[2:])
    assert "['kb:engines']" in capsys.readouterr().out
    assert (folder / "engines.tar.gz").is_file()


@pytest.mark.slow
def test_the_notebook_of_a_head_trains_one_that_knows_names_it_never_read(folder, capsys):
    pytest.importorskip("torch")
    if find_in_package(MINILM) is None:
        pytest.skip(f"{MINILM} is not installed")
    run_cells("train_a_head.ipynb")
    out = capsys.readouterr().out
    assert "['kb:kinds', 'model:ships']" in out and "# `model:ships`" in out and "## Scores" in out


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_in_a_kernel(name, folder):
    """Slow: a kernel for each, and a training."""
    notebook = run_in_kernel(name, folder)
    assert any(output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs)
