"""What others install: a wheel with all that the package reads, an sdist with all that it is made of.

Slow: both are built, for which pip may fetch the build backend.
"""

import subprocess
import sys
import tarfile
import zipfile

import pytest

from tests.doc_pages import ROOT

pytestmark = pytest.mark.slow


def build(folder, *args):
    """Build something with pip, in *folder*; where nothing can be fetched, the test is skipped."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", *args, "--no-deps", "--quiet", str(ROOT)],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if done.returncode != 0 and "hatchling" in done.stderr:
        pytest.skip(f"the build backend cannot be fetched: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr


def test_a_wheel_has_models_migrations_builders_and_types(tmp_path):
    """Slow: the wheel is built."""
    build(tmp_path, "wheel")
    [path] = tmp_path.glob("kgkit-*.whl")
    names = set(zipfile.ZipFile(path).namelist())
    for folder, target in (("kgkit", "kgkit"), ("kb_builders", "kb_builders")):
        files = (
            file for file in (ROOT / folder).rglob("*") if file.is_file() and "__pycache__" not in file.parts
        )
        assert {f"{target}/{file.relative_to(ROOT / folder).as_posix()}" for file in files} <= names
    versions = [file.name for file in (ROOT / "alembic" / "versions").glob("*.py")]
    assert {f"kgkit/catalog/migrations/versions/{name}" for name in versions} <= names
    assert "kgkit/models/shipped/wsd-minilm/head/model.safetensors" in names
    assert {f"kgkit/models/shipped/links-minilm/{name}" for name in ("networks.npz", "words.tsv")} <= names
    assert not any(name.startswith(("tests/", "benchmarks/", "docs/")) for name in names)


def test_an_sdist_has_notebooks_manual_and_tests(tmp_path):
    """Slow: the sdist is built."""
    code = "import hatchling.build, sys; print(hatchling.build.build_sdist(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if "No module named 'hatchling'" in done.stderr:
        pytest.skip("hatchling is not installed")
    assert done.returncode == 0, done.stderr
    with tarfile.open(tmp_path / done.stdout.split()[-1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "examples/notebooks/link.ipynb",
        "docs/sharing.md",
        "docs/stability.md",
        "alembic/env.py",
    } <= names
    assert {"LICENSE", "README.md", "constraints.txt", "tests/pack_toys.py"} <= names
