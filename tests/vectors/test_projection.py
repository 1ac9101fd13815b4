import csv
import html
import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from kgkit.errors import MissingExtra, UnknownName, UsageError
from kgkit.vectors.picture import picture
from kgkit.vectors.projection import checked_method, components, project_rows, sample_rows, write_projector


def clouds(each=40, width=12):
    """Three clouds of points, far apart."""
    drawn = np.random.default_rng(0)
    centres = 8 * np.eye(3, width)
    return np.concatenate([centre + 0.5 * drawn.standard_normal((each, width)) for centre in centres]).astype(
        np.float32
    )


GROUPS = ["animal"] * 40 + ["plant"] * 40 + [""] * 40


# -- which rows -------------------------------------------------------------


def test_rows_are_drawn_evenly_in_order_and_never_zeros():
    matrix = np.ones((1000, 3), np.float32)
    matrix[::2] = 0
    rows = sample_rows(matrix, 100)
    assert len(rows) == len(set(rows.tolist())) == 100
    assert (rows % 2 == 1).all()
    assert (np.diff(rows) > 0).all()
    assert 30 < (rows < 500).sum() < 70
    assert rows.tolist() == sample_rows(matrix, 100).tolist() != sample_rows(matrix, 100, seed=1).tolist()


def test_no_limit_takes_all_and_some_rows_may_be_left_out():
    matrix = np.ones((10, 3), np.float32)
    matrix[4] = 0
    assert sample_rows(matrix, 0).tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert sample_rows(matrix, 0, among=np.array([3, 4, 5])).tolist() == [3, 5]


# -- the projector's files --------------------------------------------------


def test_the_pair_has_a_line_a_point_and_a_heading_where_there_are_several_columns(tmp_path):
    matrix = np.array([[1, 2.5], [0, 0], [-3, 1e-9]], np.float32)
    told = []
    write_projector(
        tmp_path,
        matrix,
        np.array([0, 2]),
        ("key", "label"),
        [("dog.n.01", "dog"), ("a", "tab\tand\nline\u2028end")],
        lambda _, done, total: told.append((done, total)),
    )
    assert (tmp_path / "vectors.tsv").read_text() == "1\t2.5\n-3\t1e-09\n"
    assert (tmp_path / "metadata.tsv").read_text() == "key\tlabel\ndog.n.01\tdog\na\ttab and line end\n"
    assert told == [(2, 2)]


def test_one_column_has_no_heading_and_no_line_is_empty(tmp_path):
    write_projector(tmp_path, np.ones((3, 2), np.float32), np.arange(3), ("label",), [("a",), ("",), ("  ",)])
    assert (tmp_path / "metadata.tsv").read_text() == "a\n-\n-\n"


def test_numbers_are_read_back_as_they_were(tmp_path):
    matrix = np.random.default_rng(0).standard_normal((5000, 4)).astype(np.float32) * 1e3
    write_projector(tmp_path, matrix, np.arange(5000), ("a",), ([str(row)] for row in range(5000)))
    with (tmp_path / "vectors.tsv").open() as file:
        read = np.array(list(csv.reader(file, delimiter="\t")), np.float32)
    np.testing.assert_allclose(read, matrix, rtol=1e-6)


# -- places in the plane ----------------------------------------------------


def test_components_are_those_of_a_singular_value_decomposition():
    points = np.random.default_rng(0).standard_normal((50, 6)).astype(np.float32) * np.arange(1, 7)
    points = points.astype(np.float32)
    centred = points - points.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    found = components(points, 3)
    np.testing.assert_allclose(np.abs(found), np.abs(centred @ directions[:3].T), rtol=1e-3, atol=1e-3)
    assert (np.take_along_axis(found, np.abs(found).argmax(axis=0)[None], 0) > 0).all()


def test_more_components_than_there_are_become_zeros():
    found = components(np.eye(4, 3, dtype=np.float32), 5)
    assert found.shape == (4, 5)
    assert (found[:, 3:] == 0).all()


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_points_of_a_cloud_stay_together(method):
    if method == "tsne":
        pytest.importorskip("sklearn")
    points = project_rows(clouds(), np.arange(120), method)
    assert points.shape == (120, 2)
    means = points.reshape(3, 40, 2).mean(axis=1)
    nearest = np.linalg.norm(points[:, None] - means, axis=2).argmin(axis=1)
    assert nearest.tolist() == [0] * 40 + [1] * 40 + [2] * 40


def test_lengths_of_rows_do_not_matter_for_their_places():
    matrix = clouds()
    longer = matrix * np.random.default_rng(1).uniform(1, 50, (120, 1)).astype(np.float32)
    rows = np.arange(120)
    np.testing.assert_allclose(
        project_rows(matrix, rows, "pca"), project_rows(longer, rows, "pca"), atol=1e-4
    )


def test_one_seed_gives_one_picture():
    pytest.importorskip("sklearn")
    rows = np.arange(120)
    assert project_rows(clouds(), rows, seed=3).tobytes() == project_rows(clouds(), rows, seed=3).tobytes()


def test_two_points_make_no_picture_and_methods_have_names():
    with pytest.raises(UsageError, match="2 vectors make no picture"):
        project_rows(clouds(), np.arange(2))
    with pytest.raises(UnknownName, match="no method named 'umap'; there are: pca, tsne"):
        checked_method("umap")


def test_without_scikit_learn_the_extra_that_brings_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.manifold", None)
    with pytest.raises(MissingExtra, match=r"kgkit\[plot\]"):
        project_rows(clouds(), np.arange(120))


# -- the picture ------------------------------------------------------------


def texts(svg):
    """Return what stands in a picture, and how many texts it has; those with a rim are drawn as curves."""
    plain = re.findall(r"<text[^>]*>(.*?)</text>", svg.decode())
    return [html.unescape(text) for text in plain], svg.count(b'id="text_')


def test_a_picture_is_xml_whatever_the_names():
    pytest.importorskip("matplotlib")
    points = project_rows(clouds(), np.arange(120), "pca")
    odd = "\0\x07\x1b\x0c\ufffe\ud800"
    groups = [f"{group}{odd}" for group in GROUPS]
    svg = picture(points, groups, suffix=".svg", names=[(0, f"n{odd}")], title=odd, note=odd)
    ElementTree.fromstring(svg)


@pytest.mark.parametrize(("suffix", "begins"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".PDF", b"%PDF")])
def test_a_picture_is_drawn_in_the_format_that_is_asked_for(suffix, begins):
    pytest.importorskip("matplotlib")
    points = project_rows(clouds(), np.arange(120), "pca")
    assert picture(points, GROUPS, suffix=suffix).startswith(begins)


def test_groups_stand_in_the_legend_with_their_sizes_and_are_named_in_the_picture():
    pytest.importorskip("matplotlib")
    points = project_rows(clouds(), np.arange(120), "pca")
    plain, count = texts(picture(points, GROUPS, suffix=".svg", title="mine & <$yours$>"))
    assert plain == ["mine & <$yours$>", "animal  40", "plant  40", "others  40"]
    _, before = texts(picture(points, [""] * 120, suffix=".svg", title="mine"))
    assert count == before + 4  # in the legend and in the picture


def test_names_that_would_cover_each_other_are_left_out():
    pytest.importorskip("matplotlib")
    points = np.array([[0, 0]] * 40 + [[-1, -1], [1, 1]], np.float32)
    names = [(place, f"name{place} <$x$> & _^") for place in range(40)]
    counts = [
        texts(picture(points, [""] * 42, suffix=".svg", names=names[:most]))[1] for most in (0, 1, 2, 40)
    ]
    # Beside the one point to the right and to the left, above and below: there is room for no more.
    assert counts[0] < counts[1] < counts[2] <= counts[3] <= counts[0] + 4


def test_equal_points_give_equal_files():
    pytest.importorskip("matplotlib")
    points = project_rows(clouds(), np.arange(120), "pca")
    for suffix in (".png", ".svg"):
        assert picture(points, GROUPS, suffix=suffix) == picture(points, GROUPS, suffix=suffix)


def test_at_most_eleven_groups_have_a_colour():
    pytest.importorskip("matplotlib")
    points = np.random.default_rng(0).standard_normal((200, 2)).astype(np.float32)
    groups = [f"g{place % 20:02}" for place in range(200)]
    drawn = picture(points, groups, suffix=".svg").decode()
    assert "g10  10" in drawn
    assert "g11  10" not in drawn
    assert "others  90" in drawn


def test_points_in_one_place_can_be_drawn():
    pytest.importorskip("matplotlib")
    assert picture(np.zeros((5, 2), np.float32), ["a"] * 5, suffix=".png", names=[(0, "a" * 300)])


def test_a_picture_of_no_known_format_is_refused():
    with pytest.raises(UsageError, match=r"a picture cannot be .gif; it can be .png, .svg, .pdf"):
        picture(np.zeros((5, 2), np.float32), ["a"] * 5, suffix=".gif")


def test_without_matplotlib_the_extra_that_brings_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"kgkit\[plot\]"):
        picture(np.zeros((5, 2), np.float32), ["a"] * 5, suffix=".png")
