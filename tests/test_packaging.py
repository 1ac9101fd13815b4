"""What pyproject.toml promises is what the manual says and the constraints pin."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def name_of(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None
    return found[0].lower().replace("_", "-")


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_the_manual_says_what_an_extra_brings(extra):
    rows = [
        line
        for line in (ROOT / "docs" / "extras.md").read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| `{extra}`")
    ]
    assert len(rows) == 1
    for requirement in EXTRAS[extra]:
        assert name_of(requirement) in rows[0].lower().replace("_", "-"), requirement


def test_every_requirement_is_pinned():
    pins = {
        name_of(line)
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line and not line.startswith("#")
    }
    wanted = {
        name_of(requirement) for group in (PROJECT["dependencies"], *EXTRAS.values()) for requirement in group
    }
    assert wanted <= pins


def test_the_core_needs_no_model_and_no_index():
    assert not {"torch", "transformers", "spacy", "faiss-cpu", "pandas"} & set(
        map(name_of, PROJECT["dependencies"])
    )
