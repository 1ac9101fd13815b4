"""`kgkit project`: the embedding projector's files, and the picture."""

import numpy as np
import pytest

import kgkit
from kgkit.commands.project import choose_field, group_of
from kgkit.errors import UsageError
from kgkit.types import Entity
from tests.cli_helpers import run
from tests.vector_toys import DIRECTIONS, built, made


@pytest.fixture
def home(tmp_path):
    where, _ = built(tmp_path)
    made(where)
    return where


def test_the_projectors_pair_names_each_entity_that_has_a_vector(home, tmp_path):
    done = run("project", "toy/plane", "--to", tmp_path / "out", "--home", home)
    assert done.code == 0, done.err
    assert "wrote 5 vectors of toy/plane" in done.err
    heading, *lines = (tmp_path / "out" / "metadata.tsv").read_text().splitlines()
    assert heading.split("\t")[:2] == ["key", "label"]
    with kgkit.open_kb("toy", home=home) as kb:
        keys = [kb.key(row) for row in (0, 1, 2, 4, 5)]  # York, row 3, has none
    assert [line.split("\t")[0] for line in lines] == keys
    numbers = np.loadtxt(tmp_path / "out" / "vectors.tsv", delimiter="\t")
    np.testing.assert_allclose(numbers, DIRECTIONS[[0, 1, 2, 4, 5]], rtol=1e-6)


def test_the_picture_is_drawn(home, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    file = tmp_path / "toy.svg"
    done = run("project", "toy", "--picture", file, "--home", home)
    assert done.code == 0, done.err
    assert file.read_bytes().startswith(b"<?xml")
    assert b"toy/plane: 5 of 5 vectors by" in file.read_bytes()


def test_a_limit_and_a_kind_leave_entities_out(home, tmp_path):
    done = run("project", "toy", "--to", tmp_path / "out", "--limit", "2", "--home", home)
    assert done.code == 0, done.err
    assert len((tmp_path / "out" / "vectors.tsv").read_text().splitlines()) == 2
    done = run("project", "toy", "--to", tmp_path / "other", "--kind", "nothing", "--home", home)
    assert done.code == 2
    assert "no kind of entity in 'toy' named 'nothing'" in done.err


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ([], 2, "where to?"),
        (["--picture", "a.gif"], 2, ".png, .svg, .pdf"),
        (["--picture", "nowhere/a.png"], 3, "no folder nowhere"),
        (["--to", "."], 2, "there already"),
        (["--to", "out", "--color-by", "lexfiel"], 2, "lexfiel"),
        (["--picture", "a.png", "--color-by", "lexfiel"], 2, "lexfiel"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_work(home, tmp_path, monkeypatch, options, code, said):
    monkeypatch.chdir(tmp_path)
    done = run("project", "toy", *options, "--home", home)
    assert (done.code, said in done.err) == (code, True), done.err
    assert not list(tmp_path.glob("*.png"))


def test_a_kind_none_of_which_has_a_vector_is_told(tmp_path):
    where, _ = built(tmp_path)
    made(where, DIRECTIONS[:3])  # pages alone
    done = run("project", "toy", "--to", tmp_path / "out", "--kind", "category", "--home", where)
    assert done.code == 2
    assert "no entity of kind category has a vector in toy/plane" in done.err
    assert not (tmp_path / "out").exists()


def test_without_matplotlib_no_time_is_spent_on_a_picture(home, tmp_path, monkeypatch):
    monkeypatch.setattr("kgkit.commands.project.find_spec", lambda name: None)
    monkeypatch.setattr("kgkit.vectors.projection.project_rows", None)
    done = run("project", "toy", "--picture", tmp_path / "a.png", "--home", home)
    assert done.code == 2
    assert "kgkit[plot]" in done.err


def test_vectors_that_are_not_there_are_told(home, tmp_path):
    done = run("project", "toy/other", "--to", tmp_path / "out", "--home", home)
    assert done.code == 3
    assert "kgkit embed" in done.err
    assert not (tmp_path / "out").exists()


def entity(number, **settings):
    return Entity(key=str(number), id=number, **settings)


def test_entities_are_coloured_by_the_first_field_that_they_have():
    typed = [entity(0, types=("city", "place"), pos="n"), entity(1, pos="n"), entity(2)]
    assert [group_of(one, "types") for one in typed] == ["city", "", ""]
    assert choose_field(typed, None) == "types"
    assert choose_field(typed[1:], None) == "pos"
    assert choose_field(typed[2:], None) == "kind"


def test_an_attribute_colours_where_it_is_a_word():
    told = [entity(n, kind="page", attributes={"lexfile": "noun.food", "n": n}) for n in range(3)]
    assert choose_field(told, "lexfile") == "lexfile"
    with pytest.raises(UsageError, match="lexfile"):
        choose_field(told, "n")
