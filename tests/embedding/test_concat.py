"""Vectors side by side."""

import numpy as np
import pytest

import kgkit
from kgkit.embedding import concat
from kgkit.embedding.concat import ConcatConfig, embed_concat
from kgkit.errors import NotThere, StaleVectors, UsageError
from tests.toys import LINKS, PAGES
from tests.vector_toys import built, made

OTHER = np.array([[1, 0, 0], [0, 0, 0], [0, 3, 4], [0, 0, 1]], np.float32)
"""Of Apple_Inc. (1) there is no vector, and the matrix ends before Road (4)."""


@pytest.fixture
def home(tmp_path):
    where, _ = built(tmp_path)
    made(where)
    made(where, OTHER, name="other")
    return where


@pytest.fixture
def kb(home):
    with kgkit.open_kb("toy", home=home) as opened:
        yield opened


def test_rows_stand_side_by_side_in_the_order_of_the_parts(kb):
    vectors = embed_concat(kb, ConcatConfig(parts=("plane", "other")))
    assert vectors.matrix.tolist() == [[4, 0, 1, 0, 0], [0] * 5, [0, 2, 0, 3, 4], [0] * 5]
    assert (vectors.name, vectors.manifest.method, vectors.manifest.covered) == ("toy/concat", "concat", 2)
    turned = embed_concat(kb, ConcatConfig(parts=("other", "plane"), name="turned"))
    assert turned.matrix[2].tolist() == [0, 3, 4, 0, 2]


def test_the_settings_name_the_versions_that_were_joined(kb):
    vectors = embed_concat(kb, ConcatConfig(parts=("plane", "other")))
    assert vectors.manifest.config["parts"] == [
        {"name": name, "version": kb.vectors(name).manifest.version} for name in ("plane", "other")
    ]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"parts": ()}, "none; at least two"),
        ({"parts": ("text",)}, "at least two"),
        ({"parts": ("text", "text")}, "each once"),
        ({"parts": ("concat", "b")}, "cannot be part of itself"),
        ({"parts": ("toy/concat", "b")}, "cannot be part of itself"),
        ({"parts": ("text", "toy/text")}, "each once"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, says):
    with pytest.raises(UsageError, match=says):
        ConcatConfig(**settings)


def test_a_part_that_is_not_there_or_of_another_build_is_told(kb, home, tmp_path):
    with pytest.raises(NotThere, match="no vectors 'text'"):
        embed_concat(kb, ConcatConfig(parts=("plane", "text")))
    built(tmp_path, links=LINKS[:3], pages=PAGES)
    with kgkit.open_kb("toy", home=home) as new, pytest.raises(StaleVectors):
        embed_concat(new, ConcatConfig(parts=("plane", "other")))


def test_parts_that_share_no_entity_make_no_vectors(kb, home):
    made(home, [[0, 0], [0, 0], [0, 0], [1, 1]], name="york")
    with pytest.raises(UsageError, match="no entity of 'toy' has a vector in plane and york"):
        embed_concat(kb, ConcatConfig(parts=("plane", "york")))
    assert not list(kb.home.vectors.glob("concat/*"))


def test_one_part_after_the_other_in_blocks_is_the_same_matrix(kb, monkeypatch):
    whole = embed_concat(kb, ConcatConfig(parts=("plane", "other"))).matrix.copy()
    monkeypatch.setattr(concat, "_BLOCK", 2)
    told: list[tuple[int, int]] = []
    pieces = embed_concat(
        kb,
        ConcatConfig(parts=("plane", "other")),
        progress=lambda stage, *done: told.append(done),
    )
    assert np.array_equal(pieces.matrix, whole)
    assert told == [(2, 4), (4, 4)]
