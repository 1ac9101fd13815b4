"""Pictures of attention: what is drawn of each value, in which order; any text gives well-formed XML."""

from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("torch")

from kgkit.errors import UsageError
from kgkit.methods.attention import TextAttention
from kgkit.methods.attention_picture import attention_picture

PIECES = ["[CLS]", "dog", "barks"]
MIXED = np.array([[1, 0, 0], [0, 0.5, 0], [0, 0.004, 0.25]], np.float32)
SVG = "{http://www.w3.org/2000/svg}"


def drawn(maps=None, weights=None, mixed=MIXED, pieces=PIECES, **options):
    """Return the root of the picture of an attention."""
    attention = TextAttention(pieces, maps or {}, {}, len(pieces), weights, mixed)
    return ElementTree.fromstring(attention_picture(attention, **options))


def cells(group):
    """Return the cells of a panel as (column, row, opacity), in pixels and shares."""
    return [
        tuple(float(cell.get(name)) for name in ("x", "y", "fill-opacity"))
        for cell in group.iter(f"{SVG}rect")
        if cell.get("fill-opacity")
    ]


def panels(root):
    """Return the panels of a picture by their titles."""
    return {group.find(f"{SVG}text").text: group for group in root.iter(f"{SVG}g")}


def test_cells_are_as_dark_as_their_share_of_the_highest_and_faint_cells_are_omitted():
    [panel] = panels(drawn()).values()
    assert cells(panel) == [(0, 0, 1.0), (14, 14, 0.5), (28, 28, 0.25)]
    [panel] = panels(drawn(mixed=MIXED * 8)).values()
    assert cells(panel) == [(0, 0, 1.0), (14, 14, 0.5), (28, 28, 0.25)]


def test_a_row_attends_and_a_column_is_attended_to():
    mixed = np.zeros((3, 3), np.float32)
    mixed[2, 1] = 1
    [panel] = panels(drawn(mixed=mixed)).values()
    assert cells(panel) == [(14, 28, 1.0)]


def test_no_attention_at_all_is_an_empty_square():
    [panel] = panels(drawn(mixed=np.zeros((3, 3), np.float32))).values()
    assert cells(panel) == []
    [square] = panel.iter(f"{SVG}rect")
    assert (square.get("width"), square.get("height")) == ("42", "42")


def test_maps_stand_before_the_plain_encoder_and_it_before_the_model():
    shown = {"entities": MIXED, "phrases": MIXED}
    assert [*panels(drawn(shown, MIXED))] == ["entities", "phrases", "plain encoder", "with maps"]
    assert [*panels(drawn(shown, MIXED, plain="minilm"))][2] == "minilm"
    assert [*panels(drawn())] == ["with maps"]


def test_a_plain_encoder_that_reads_no_auxiliary_words_has_a_smaller_square():
    groups = panels(drawn(weights=MIXED[:2, :2]))
    labels = [text.text for text in groups["plain encoder"].iter(f"{SVG}text")]
    assert labels == ["plain encoder", "[CLS]", "[CLS]", "dog", "dog"]
    assert len([*groups["with maps"].iter(f"{SVG}text")]) == 7


def test_panels_stand_side_by_side_within_the_width():
    root = drawn({"entities": MIXED}, MIXED)
    lefts = [float(group.get("transform").split("(")[1].split()[0]) for group in root.iter(f"{SVG}g")]
    assert lefts == sorted(lefts) and lefts[1] - lefts[0] >= 42 and lefts[1] - lefts[0] == lefts[2] - lefts[1]
    assert lefts[-1] + 42 <= float(root.get("width"))


def test_a_title_is_drawn_above_and_moves_the_panels_down():
    titled, plain = drawn(title="Dogs & cats"), drawn()
    lines = [text.text for text in plain.findall(f"{SVG}text")]
    assert lines == ["mean of all heads", "a row attends to the columns; the darker, the more"]
    assert [text.text for text in titled.findall(f"{SVG}text")] == ["Dogs & cats", *lines]
    assert float(titled.get("height")) == float(plain.get("height")) + 24


def test_auxiliary_words_are_grey_and_the_caption_has_layer_and_head():
    attention = TextAttention(PIECES, {}, {}, 1, None, MIXED, auxiliary=1, layer=4, head=2)
    root = ElementTree.fromstring(attention_picture(attention))
    captions = [text.text for text in root.findall(f"{SVG}text")]
    assert captions[0] == "layer 4, head 2" and captions[2] == "grey: auxiliary words, which the text lacks"
    assert max(float(text.get("y")) for text in root.findall(f"{SVG}text")) < float(root.get("height"))
    [panel] = panels(root).values()
    inks = {text.text: text.get("fill") for text in [*panel.iter(f"{SVG}text")][1:]}
    assert inks == {"[CLS]": None, "dog": None, "barks": "#767676"}


@pytest.mark.parametrize("piece", ["<b>", '"', "a&b", "\x00", "\ud800", "∅", "犬"])
def test_pieces_and_titles_of_any_characters_give_well_formed_pictures(piece):
    root = drawn(pieces=[piece, "x", "y"], title=piece, weights=MIXED)
    expected = "\ufffd" if piece in ("\x00", "\ud800") else piece
    assert root.find(f"{SVG}text").text == expected
    assert [*panels(root)["with maps"].iter(f"{SVG}text")][1].text == expected


def test_a_page_holds_the_same_drawing_and_unknown_formats_are_refused():
    attention = TextAttention(PIECES, {}, {}, 3, None, MIXED)
    page = attention_picture(attention, suffix=".HTML").decode()
    assert page.startswith("<!DOCTYPE html>") and "<title>Attention</title>" in page
    assert attention_picture(attention).decode() in page
    with pytest.raises(UsageError, match=r"a picture of attention cannot be \.png; it can be \.svg, \.html"):
        attention_picture(attention, suffix=".png")
    with pytest.raises(UsageError, match="cannot be without a suffix"):
        attention_picture(attention, suffix="")


def test_equal_values_give_equal_files():
    attention = TextAttention(PIECES, {"a": MIXED}, {}, 3, MIXED, MIXED)
    copy = TextAttention(list(PIECES), {"a": MIXED.copy()}, {}, 3, MIXED.copy(), MIXED.copy())
    assert attention_picture(attention, title="t") == attention_picture(copy, title="t")
