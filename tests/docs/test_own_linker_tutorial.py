"""docs/your-own-linker.md: its commands run, its figures are measured, its sentences are as it says."""

import json
import re
import shlex
import subprocess
from collections import defaultdict

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.encoder.finding import find_in_package
from kgkit.text import fold
from tests.cli_helpers import install_builder, run
from tests.doc_pages import ROOT, blocks
from tests.tiny_encoder import MINILM, tiny_encoder

PAGE = ROOT / "docs/your-own-linker.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = [line for block in blocks(PAGE) if block.kind == "sh" for line in block.content.splitlines()]
TOLERANCE = 3  # names of 60: other processors round otherwise, and some choices are close


def lines(name):
    return [json.loads(line) for line in (ROOT / f"examples/{name}.jsonl").read_text("utf-8").splitlines()]


TRAIN, TEST = lines("tidewick-train"), lines("tidewick-test")
MEANINGS = defaultdict(set)
for entity in lines("tidewick"):
    if "key" in entity:
        for alias in (entity["label"], *(each["text"] for each in entity["aliases"])):
            MEANINGS[fold(alias)].add(entity["key"])


def table():
    """Return the rows of the page: model type, and right of the ambiguous names, alone and with coherence."""
    rows = re.findall(r"^\| `([\w-]+)` \|.*\| (\d+) \| (\d+) \|$", TEXT, re.MULTILINE)
    return [(model_type, [int(alone), int(graph)]) for model_type, alone, graph in rows]


@pytest.fixture
def at_home(tmp_path, monkeypatch):
    """A folder beside the checkout's examples, and a home of its own."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    install_builder(tmp_path, "jsonl", "kb_builders.jsonl:JSONLBuilder")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path / "home"))
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def done(line, *more):
    """Run a command of the page, and return what it wrote."""
    if "kgkit" not in line:
        subprocess.run(line, shell=True, check=True)
        return ""
    said, _, command = line.rpartition("| ")
    given = said.removeprefix('echo "').rstrip('" ').encode()
    words = shlex.split(command)
    assert words[0] == "kgkit", line
    ran = run(*words[1:], *more, given=given)
    assert ran.code == ("train linker" in line), (line, ran.err)  # which is refused
    return ran.out


def right(told):
    return told["together"]["right"], told["together"]["mentions"]


@pytest.mark.slow
def test_the_figures_of_the_page_are_measured(at_home):
    if find_in_package(MINILM) is None:
        pytest.skip(f"{MINILM} is not installed")
    found = defaultdict(list)
    for line in COMMANDS:
        if "evaluate" in line:
            count, total = right(json.loads(done(line, "--json", "--device", "cpu")))
            assert total == 85
            found[re.search(r"--model (\S+)", line)[1]].append(count - 25)
        else:
            out = done(line)
            if "kgkit link" in line:
                links = {link["text"]: link["entity"] for link in json.loads(out)["links"]}
                assert links["St Bride's"].startswith("st-bride-")
    measured = list(found.items())
    assert [model_type for model_type, _ in measured] == [model_type for model_type, _ in table()]
    for (model_type, counts), (_, shown) in zip(measured, table(), strict=True):
        assert counts == pytest.approx(shown, abs=0 if model_type == "prior" else TOLERANCE), (
            model_type,
            measured,
        )


def test_the_page_can_be_followed_with_another_encoder(at_home, monkeypatch):
    if find_in_package(MINILM) is not None:
        pytest.skip("it has been followed with the encoder that the page speaks of")
    monkeypatch.setattr("tests.tiny_encoder.POSITIONS", 160)
    folder = tiny_encoder(at_home / "tiny")
    for line in COMMANDS:
        more = ("--encoder", folder) if "kgkit embed" in line else ()
        out = done(line, *more, *(["--json"] if "evaluate" in line else []))
        if "evaluate" in line:
            assert right(json.loads(out))[1] == 85


# -- the sentences ----------------------------------------------------------


def test_there_are_as_many_sentences_and_names_as_the_page_says():
    assert (len(TRAIN), len(TEST)) == (50, 60)
    names = [
        " ".join(sentence["tokens"][mention["start"] : mention["end"]])
        for sentence in TEST
        for mention in sentence["mentions"]
    ]
    assert len(names) == 85
    assert sum(len(MEANINGS[fold(name)]) > 1 for name in names) == 60
    example = next(block.content for block in blocks(PAGE) if block.kind == "json")
    assert json.loads(example) in TEST
