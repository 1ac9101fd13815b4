import csv
import html
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from kgkit.errors import UsageError
from kgkit.vectors.projection import picture, project_rows, sample_rows, write_projector


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
    assert rows.tolist() == sample_rows(matrix, 100).tolist()


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


def test_no_field_is_empty(tmp_path):
    write_projector(
        tmp_path, np.ones((2, 2), np.float32), np.arange(2), ("key", "label"), [("a", ""), ("b", "  ")]
    )
    assert (tmp_path / "metadata.tsv").read_text() == "key\tlabel\na\t-\nb\t-\n"


def test_numbers_are_read_back_as_they_were(tmp_path):
    matrix = np.random.default_rng(0).standard_normal((5000, 4)).astype(np.float32) * 1e3
    write_projector(tmp_path, matrix, np.arange(5000), ("a",), ([str(row)] for row in range(5000)))
    with (tmp_path / "vectors.tsv").open() as file:
        read = np.array(list(csv.reader(file, delimiter="\t")), np.float32)
    np.testing.assert_allclose(read, matrix, rtol=1e-6)


# -- places in the plane ----------------------------------------------------


def test_points_of_a_cloud_stay_together():
    pytest.importorskip("sklearn")
    points = project_rows(clouds(), np.arange(120))
    assert points.shape == (120, 2)
    means = points.reshape(3, 40, 2).mean(axis=1)
    nearest = np.linalg.norm(points[:, None] - means, axis=2).argmin(axis=1)
    assert nearest.tolist() == [0] * 40 + [1] * 40 + [2] * 40


def test_equal_vectors_have_equal_places():
    pytest.importorskip("sklearn")
    rows = np.arange(120)
    assert project_rows(clouds(), rows).tobytes() == project_rows(clouds(), rows).tobytes()


def test_few_points_and_narrow_vectors_are_laid_out():
    pytest.importorskip("sklearn")
    for count, width in ((3, 12), (5, 1), (4, 2)):
        matrix = np.random.default_rng(0).standard_normal((count, width)).astype(np.float32)
        assert np.isfinite(project_rows(matrix, np.arange(count))).all()
    with pytest.raises(UsageError):
        project_rows(clouds(), np.arange(2))


# -- the picture ------------------------------------------------------------


POINTS = clouds(width=3)[:, :2]


def texts(svg):
    return [html.unescape(text) for text in re.findall(r"<text[^>]*>(.*?)</text>", svg.decode())]


def test_a_picture_is_xml_whatever_the_names():
    pytest.importorskip("matplotlib")
    odd = "\0\x07\x1b\x0c\ufffe\ud800"
    ElementTree.fromstring(picture(POINTS, [f"{group}{odd}" for group in GROUPS], suffix=".svg", title=odd))


@pytest.mark.parametrize(("suffix", "begins"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".PDF", b"%PDF")])
def test_a_picture_is_drawn_in_the_format_that_is_asked_for(suffix, begins):
    pytest.importorskip("matplotlib")
    assert picture(POINTS, GROUPS, suffix=suffix, title="房间").startswith(begins)


def test_groups_stand_in_the_legend_with_their_sizes():
    pytest.importorskip("matplotlib")
    written = texts(picture(POINTS, GROUPS, suffix=".svg", title="mine & <$yours$>"))
    assert sorted(written) == ["animal  40", "mine & <$yours$>", "others  40", "plant  40"]


def test_equal_points_give_equal_files():
    pytest.importorskip("matplotlib")
    for suffix in (".png", ".svg"):
        assert picture(POINTS, GROUPS, suffix=suffix) == picture(POINTS, GROUPS, suffix=suffix)


def test_at_most_eleven_groups_have_a_colour():
    pytest.importorskip("matplotlib")
    points = np.random.default_rng(0).standard_normal((200, 2)).astype(np.float32)
    groups = [f"g{place % 20:02}" for place in range(200)]
    written = texts(picture(points, groups, suffix=".svg"))
    assert "g10  10" in written
    assert "g11  10" not in written
    assert "others  90" in written


def test_points_in_one_place_can_be_drawn():
    pytest.importorskip("matplotlib")
    assert picture(np.zeros((5, 2), np.float32), ["a" * 300] * 5, suffix=".png")
