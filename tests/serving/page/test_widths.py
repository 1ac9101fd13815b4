"""Widths of texts in letters, and colors as classes of the style sheet."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kgkit.serving.page
from kgkit.serving.page.colors import HUES, hue_class, hue_classes, shade_class
from kgkit.serving.page.widths import shorten, text_width

STYLES = (Path(kgkit.serving.page.__file__).parent / "static").rglob("*.css")


@pytest.mark.parametrize(
    ("text", "width"), [("", 0), ("dog", 3), ("犬", 2), ("犬a", 3), ("ｗ", 2), ("é", 1), ("가", 2), ("ｱ", 1)]
)
def test_chinese_letters_are_as_wide_as_two(text, width):
    assert text_width(text) == width


@pytest.mark.parametrize(
    ("text", "letters", "short"),
    [
        ("dog", 3, "dog"),
        ("dogs", 3, "do…"),
        ("dog house", 5, "dog…"),  # no blank before the ellipsis
        ("苹果公司", 8, "苹果公司"),
        ("苹果公司", 7, "苹果公…"),
        ("苹果公司", 6, "苹果…"),
        ("苹果公司", 2, "…"),
        ("dog", 1, "…"),
        ("", 0, ""),
    ],
)
def test_a_long_text_is_cut_to_the_width_with_its_ellipsis(text, letters, short):
    assert shorten(text, letters) == short


@given(st.text(alphabet="ab 犬苹é", max_size=20), st.integers(1, 20))
def test_no_text_is_wider_than_the_limit_and_short_texts_stay(text, letters):
    short = shorten(text, letters)
    assert text_width(short) <= letters
    assert short == text if text_width(text) <= letters else short.endswith("…")
    assert text.startswith(short.removesuffix("…"))


@pytest.mark.parametrize(
    ("hue", "name"), [(0, "h0"), (15, "h1"), (22, "h1"), (23, "h2"), (355, "h0"), (360, "h0")]
)
def test_a_hue_has_the_nearest_class_around_the_circle(hue, name):
    assert hue_class(hue) == name


@pytest.mark.parametrize(
    ("score", "name"),
    [
        (0, "s0"),
        (0.04, "s0"),
        (0.06, "s1"),
        (0.5, "s5"),
        (1, "s10"),
        (7, "s10"),
        (-3, "s0"),
        (float("nan"), "s0"),
    ],
)
def test_a_score_has_the_class_of_its_tenth_and_no_number_the_lowest(score, name):
    assert shade_class(score) == name


def test_names_have_hues_evenly_apart_in_their_order():
    assert hue_classes(["a", "b", "a", "c"]) == {"a": "h0", "b": "h8", "c": "h16"}
    assert hue_classes([]) == {}
    every = hue_classes(str(number) for number in range(HUES))
    assert len(set(every.values())) == HUES
    more = hue_classes(str(number) for number in range(100))
    assert set(more.values()) <= {f"h{number}" for number in range(HUES)}


def test_the_style_sheet_has_every_class_of_a_hue_and_a_shade():
    sheet = "".join(path.read_text(encoding="utf-8") for path in STYLES)
    classes = {*re.findall(r"\.([hs]\d+)\b", sheet)}
    assert {f"h{number}" for number in range(HUES)} <= classes
    assert {shade_class(tenths / 10) for tenths in range(1, 11)} <= classes
