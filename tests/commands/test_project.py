"""`kgkit project`: the embedding projector's files, and the picture."""

import sys

import numpy as np
import pytest

import kgkit
from kgkit.commands.project import color_field, default_field, group_of
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
    file = tmp_path / "toy.svg"
    done = run("project", "toy", "--picture", file, "--method", "pca", "--home", home)
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
        (["--picture", "a.png", "--method", "umap"], 2, "no method named 'umap'"),
        (["--to", "."], 2, "there already"),
        (["--to", "out", "--color-by", "lexfiel"], 2, "--color-by takes types, kind, pos"),
        (["--picture", "a.png", "--color-by", "lexfiel"], 2, "one word for 'lexfiel'"),
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
    monkeypatch.setitem(sys.modules, "matplotlib", None)
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


def lying_by(groups, seed=0):
    """Return vectors that lie together where their groups are equal."""
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    centres = np.eye(len(numbers) + 1, 12)[[numbers[group] for group in groups]]
    return centres + 0.02 * np.random.default_rng(seed).standard_normal(centres.shape)


def test_entities_are_coloured_by_what_their_vectors_follow():
    files, kinds = ("noun.animal", "noun.plant", "noun.food"), ("a", "b")
    entities = [
        entity(
            n,
            types=(kinds[n % 2],),
            pos="nv"[n // 6 % 2],
            attributes={"gloss": str(n), "lexfile": files[n % 3]},
        )
        for n in range(180)
    ]
    assert default_field(entities, lying_by([n % 3 for n in range(180)])) == "lexfile"
    assert default_field(entities, lying_by([n % 2 for n in range(180)])) == "types"
    assert default_field(entities, lying_by([n // 6 % 2 for n in range(180)])) == "pos"


def test_of_two_fields_that_vectors_follow_the_finer_colors():
    entities = [entity(n, pos="nv"[n % 2], attributes={"lexfile": "wxyz"[n % 4]}) for n in range(200)]
    assert default_field(entities, lying_by([n % 4 for n in range(200)])) == "lexfile"


def test_an_attribute_of_many_words_or_of_numbers_colors_nothing():
    told = [entity(n, kind="page", attributes={"gloss": str(n), "n": n}) for n in range(200)]
    assert group_of(told[0], "n") == ""
    assert default_field(told, lying_by([n % 3 for n in range(200)])) == "kind"


def test_types_color_where_nothing_tells_anything():
    typed = [entity(0, types=("city", "place")), entity(1, types=("river",)), entity(2)]
    assert [group_of(one, "types") for one in typed] == ["city", "river", ""]
    assert default_field(typed, np.eye(3)) == "types"


def test_of_very_many_vectors_some_are_drawn_to_choose_the_color(home, monkeypatch):
    sizes = []

    def counted(entities, vectors):
        sizes.append((len(entities), vectors.shape))
        return "kind"

    monkeypatch.setattr("kgkit.commands.project.default_field", counted)
    monkeypatch.setattr("kgkit.commands.project._COMPARED", 3)
    with kgkit.open_kb("toy", home=home) as kb:
        vectors = kb.vectors("plane")
        rows = np.array([0, 1, 2, 4, 5])
        entities = [kb[row] for row in rows.tolist()]
        assert color_field(entities, vectors, rows, None, 0) == "kind"
        assert color_field(entities, vectors, rows, "kind", 0) == "kind"
    assert sizes == [(3, (3, 2))]
