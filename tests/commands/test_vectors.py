"""The command line of vectors: embed, index, nearest, vectors list and rm, kb verify."""

import json

import numpy as np
import pytest

import kgkit
from kgkit.building.registering import agrees, reconcile, register_vectors
from kgkit.catalog import Catalog
from kgkit.home import Home
from kgkit.vectors import find_vectors
from tests.cli_helpers import process, run
from tests.toys import LINKS, PAGES
from tests.vector_toys import DIRECTIONS, built, made


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with the toy and its vectors `plane`; `KGKIT_HOME` names it."""
    where, _ = built(tmp_path)
    made(where)
    monkeypatch.setenv("KGKIT_HOME", str(where))
    return where


# -- nearest -----------------------------------------------------------------------------------------------


def test_nearest_lists_cosine_key_label_and_meaning(home):
    done = run("nearest", "Apple", "-k", "2")
    assert done.code == 0
    assert done.out.splitlines() == [
        "cosine\tentity\tlabel\tmeaning",
        "0.9998\tFruit\tFruit\tFruit",
        "0.9487\tApple_Inc.\tApple Inc.\tA company.",
    ]


def test_nearest_as_json(home):
    found = json.loads(run("nearest", "Apple", "-k", "1", "--json").out)
    assert found == [
        {"entity": "Fruit", "score": 0.9998, "label": "Fruit", "kind": "category", "description": ""}
    ] or found[0]["score"] == pytest.approx(0.9998, abs=1e-4)


def test_an_entity_without_a_vector_is_told_and_is_no_failure(home):
    done = run("nearest", "York")
    assert (done.code, done.out) == (0, "")
    assert "has no vector in toy/plane" in done.err


def test_a_name_that_is_no_key_is_answered_with_what_it_may_mean(home):
    done = run("nearest", "apple")
    assert done.code == 3
    assert "did you mean Apple" in done.err


def test_a_text_needs_vectors_that_were_made_of_text(home):
    done = run("nearest", "a fruit", "--text")
    assert done.code == 2
    assert "toy/plane are no vectors of texts, but by hand" in done.err


def test_without_vectors_the_error_says_how_to_make_some(home):
    run("vectors", "rm", "toy/plane")
    done = run("nearest", "Apple")
    assert done.code == 3
    assert "`kgkit embed toy --method text` makes some" in done.err


# -- vectors list, rm --------------------------------------------------------------------------------------


def test_the_list_tells_method_size_and_build(home):
    done = run("vectors", "list")
    heads, row = (line.split("\t") for line in done.out.splitlines())
    assert heads == ["vectors", "method", "entities", "width", "index", "size", "created", "build"]
    with kgkit.open_kb("toy", home=home) as kb:
        assert row[:5] == ["toy/plane", "hand", "5", "2", ""]
        assert row[7] == kb.build


def test_the_list_marks_vectors_of_another_build(home, tmp_path):
    built(tmp_path, links=LINKS[:3], pages=PAGES)
    assert "(not current)" in run("vectors", "list", "toy").out
    assert json.loads(run("vectors", "list", "--json").out)[0]["current"] is False


def test_the_list_shows_damaged_vectors_with_what_is_wrong(home):
    with kgkit.open_kb("toy", home=home) as kb:
        (find_vectors(kb.home, "plane") / "keys.npy").unlink()
    done = run("vectors", "list")
    assert done.code == 0
    assert "keys.npy is not there" in done.out


def test_the_list_takes_the_name_of_a_build_for_that_of_its_kb(home):
    with kgkit.open_kb("toy", home=home) as kb:
        done = run("vectors", "list", f"toy@{kb.build}")
    assert (done.code, "toy/plane" in done.out) == (0, True)


def test_vectors_named_twice_are_removed_once(home):
    assert run("vectors", "rm", "toy/plane", "toy/plane").code == 0
    assert run("vectors", "list").out == ""


def test_an_empty_list_says_how_to_make_vectors(home):
    run("vectors", "rm", "toy/plane")
    done = run("vectors", "list")
    assert (done.code, done.out) == (0, "")
    assert "`kgkit embed KB --method text` makes some" in done.err
    assert run("vectors", "list", "nothing").code == 3


def test_all_vectors_to_be_removed_must_be_there_or_none_is(home):
    done = run("vectors", "rm", "toy/plane", "toy/other")
    assert done.code == 3
    assert "toy/plane" in run("vectors", "list").out
    assert run("vectors", "rm", "toy").code == 2
    assert run("vectors", "rm", "toy/plane").code == 0
    assert run("vectors", "list").out == ""


# -- embed -------------------------------------------------------------------------------------------------


def test_concat_from_the_command_line(home):
    made(home, DIRECTIONS[:3], name="other")
    done = run(
        "embed", "toy", "--method", "concat", "--part", "plane", "--part", "other", "--name", "both",
        "--no-index",
    )  # fmt: skip
    assert done.code == 0
    assert done.out == "toy/both: 3 vectors of width 4, no index\n"
    assert json.loads(run("vectors", "list", "--json").out)[0]["vectors"] == "toy/both"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "which method? --method takes text, tucker, wikipedia2vec, concat"),
        (["--method", "concat", "--dim", "3"], "--dim is for --method tucker, not concat"),
        (["--method", "concat"], "--part tucker --part text"),
        (["--method", "wikipedia2vec"], "--source"),
        (["--update"], "which vectors?"),
        (["--update", "--name", "plane", "--dim", "3"], "leave out --dim"),
        (["--update", "--name", "plane", "--seed", "3"], "leave out --seed"),
        (["--method", "concat", "--part", "plane", "--part", "other", "--name", "a b"], "no vectors 'other'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(home, arguments, says):
    done = run("embed", "toy", *arguments)
    assert done.code in (2, 3)
    assert says in done.err


def test_an_update_after_an_addition_needs_only_the_name(home, tmp_path):
    more = tmp_path / "more.jsonl"
    more.write_text('{"key": "Pear", "label": "Pear"}\n')
    run("kb", "add", "toy", more)
    done = run("embed", "toy", "--update", "--name", "plane")
    assert done.code == 0, done.err
    assert "toy/plane: 5 vectors of width 2, index exact" in done.out
    assert "made toy/plane" in done.err
    again = run("embed", "toy", "--update", "--name", "plane")
    assert "toy/plane is of the present build already" in again.err
    assert "(not current)" not in run("vectors", "list").out


def test_help_loads_neither_torch_nor_faiss(home):
    done = process("embed", "--help", PYTHONPROFILEIMPORTTIME="1")
    assert done.code == 0
    for heavy in ("torch", "transformers", "pykeen", "faiss", "sqlalchemy"):
        assert f" {heavy}\n" not in done.err


# -- index -------------------------------------------------------------------------------------------------


def test_an_index_is_built_shown_and_used(home):
    pytest.importorskip("faiss")
    done = run("index", "toy/plane", "--kind", "exact")
    assert done.code == 0, done.err
    assert done.out == "toy/plane: 5 vectors of width 2, index exact\n"
    assert json.loads(run("vectors", "list", "--json").out)[0]["index"] == "exact"
    assert run("nearest", "Apple", "-k", "1").out.splitlines()[1].startswith("0.9998\tFruit")


def test_an_index_needs_vectors_that_are_there_and_a_kind_that_exists(home):
    assert run("index", "toy").code == 2
    assert run("index", "toy/other").code == 3
    done = run("index", "toy/plane", "--kind", "best")
    assert done.code == 2
    assert "exact" in done.err


# -- verify, catalog ---------------------------------------------------------------------------------------


def test_verify_looks_at_the_vectors_too(home):
    assert run("kb", "verify", "toy").code == 0
    with kgkit.open_kb("toy", home=home) as kb:
        path = find_vectors(kb.home, "plane") / "matrix.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    done = run("kb", "verify", "toy")
    assert done.code == 1
    assert "vectors plane: file: matrix.npy is damaged" in done.out


@pytest.fixture
def catalogued_home(catalogued):
    catalogued.path.mkdir(parents=True, exist_ok=True)
    built(catalogued.path.parent, home=catalogued.path)
    made(catalogued.path)
    return catalogued


def rows(home, *, gone=False):
    with Catalog.open(home) as catalog:
        return [
            (row.build.kb.name, row.name, row.method, row.rows, row.width, row.gone is not None)
            for row in catalog.vectors(include_removed=gone)
        ]


def test_the_catalog_is_told_of_vectors_and_catches_up_with_them(catalogued_home):
    home = catalogued_home
    register_vectors(home, "toy")
    assert rows(home) == [("toy", "plane", "hand", 6, 2, False)]
    assert reconcile(home) == ([], [], [])
    made(home.path, np.ones((7, 3)), name="other", epochs=3)
    changes = reconcile(home)
    assert [name.partition("/")[2] for name in changes.added] == ["other"]
    with Catalog.open(home) as catalog:
        other = catalog.vectors("toy")[0]
        assert (other.name, other.config["epochs"]) == ("other", 3)
    made(home.path, np.ones((7, 4)), name="other")
    assert len(reconcile(home).changed) == 1


def test_vectors_that_are_removed_are_marked_gone_and_come_back(catalogued_home):
    home = catalogued_home
    register_vectors(home, "toy")
    assert run("vectors", "rm", "toy/plane").code == 0
    assert rows(home) == []
    assert rows(home, gone=True) == [("toy", "plane", "hand", 6, 2, True)]
    made(home.path)
    assert len(reconcile(home).added) == 1
    assert rows(home) == [("toy", "plane", "hand", 6, 2, False)]


def test_the_catalog_knows_the_index(catalogued_home):
    pytest.importorskip("faiss")
    home = catalogued_home
    assert run("index", "toy/plane", "--kind", "exact").code == 0
    with Catalog.open(home) as catalog:
        assert [(row.vectors.name, row.kind) for row in catalog.indexes("toy")] == [("plane", "exact")]
    made(home.path, -DIRECTIONS)
    reconcile(home)
    with Catalog.open(home) as catalog:
        assert catalog.indexes() == []


def test_a_list_makes_the_catalog_agree_without_loading_sqlalchemy_when_it_does(home):
    assert not agrees(Home(home))
    run("kb", "list")
    assert agrees(Home(home))
    made(home, name="other")
    assert not agrees(Home(home))
    run("kb", "list")
    assert agrees(Home(home))


def test_a_manifest_without_a_date_does_not_stop_the_list(home):
    with kgkit.open_kb("toy", home=home) as kb:
        path = find_vectors(kb.home, "plane") / "vectors.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "created": "yesterday"}))
    assert run("kb", "list").code == 0


def test_vectors_of_a_build_that_is_gone_do_not_keep_the_catalog_busy(home, tmp_path):
    register_vectors(Home(home), "toy")
    built(tmp_path, links=LINKS[:3], pages=PAGES)
    run("kb", "prune", "toy")
    run("kb", "list")
    assert agrees(Home(home))
