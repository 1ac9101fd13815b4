"""Addresses of views, numbers in them, and classes of colors."""

from urllib.parse import parse_qs, urlsplit

import pytest

from kgkit.serving.page.addresses import MAX_ADDRESS, address, fits_address, paging_of
from kgkit.serving.page.rendering import HUES, hue_class, hue_classes, shade_class
from tests.serving.page.conftest import STRANGE_KEYS


@pytest.mark.parametrize("key", STRANGE_KEYS)
def test_a_key_is_read_back_from_an_address(key):
    parts = urlsplit(address("/entity", kb="strange", key=key))
    assert parts.path == "/entity"
    assert parse_qs(parts.query) == {"kb": ["strange"], "key": [key]}
    assert parts.fragment == ""


def test_an_address_leaves_out_what_is_empty():
    assert address("/search", q="", kb=None) == "/search"
    assert address("/graph", nodes=0, kb="a") == "/graph?nodes=0&kb=a"


def test_half_of_a_surrogate_pair_does_not_stop_an_address():
    assert address("/entity", key="a\ud800") == "/entity?key=a%3F"


def test_a_long_address_is_told_from_a_short_one():
    assert fits_address(address("/", text="a" * 1_000))
    assert not fits_address(address("/", text="苹" * (MAX_ADDRESS // 9 + 1)))


def test_the_pages_of_a_list_lead_to_each_other():
    first = paging_of("/runs", 120, 1, 50, model="a b")
    assert (first.first, first.last, first.previous) == (1, 50, None)
    assert first.next == "/runs?model=a%20b&page=2"
    second = paging_of("/runs", 120, 2, 50, model="a b")
    assert (second.previous, second.next) == ("/runs?model=a%20b", "/runs?model=a%20b&page=3")
    last = paging_of("/runs", 120, 3, 50)
    assert (last.first, last.last, last.next) == (101, 120, None)


def test_a_page_of_nothing_has_no_rows():
    paging = paging_of("/runs", 0, 1, 50)
    assert (paging.first, paging.last, paging.previous, paging.next) == (0, 0, None, None)


def test_hues_and_scores_are_classes():
    assert [hue_class(hue) for hue in (0, 7, 8, 180, 352, 353, 360)] == [
        "h0",
        "h0",
        "h1",
        "h12",
        "h23",
        "h0",
        "h0",
    ]
    assert [shade_class(score) for score in (0, 0.04, 0.5, 1, 1.7, -1, float("nan"))] == [
        "s0", "s0", "s5", "s10", "s10", "s0", "s0",
    ]  # fmt: skip


def test_names_have_hues_of_their_own_up_to_as_many_as_there_are():
    names = [f"relation {number}" for number in range(HUES)]
    assert len(set(hue_classes(names).values())) == HUES
    assert hue_classes(["b", "a", "b"]) == {"b": "h0", "a": "h12"}
    assert hue_classes([]) == {}
    assert set(hue_classes(map(str, range(100))).values()) <= {f"h{hue}" for hue in range(HUES)}
