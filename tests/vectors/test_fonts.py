"""Fonts that have the letters of a picture."""

import logging
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from kgkit.vectors import fonts
from kgkit.vectors.picture import picture


def installed(monkeypatch, **families):
    """Pretend that these families are installed beside DejaVu Sans, each with the letters of a text."""
    texts = {"DejaVu Sans": "abcdefghijklmnopqrstuvwxyzABCDé ", **families}
    entries = [
        SimpleNamespace(name=name.replace("_", " "), fname=name, style="normal", weight=400) for name in texts
    ]
    monkeypatch.setattr("matplotlib.font_manager.fontManager", SimpleNamespace(ttflist=entries))
    monkeypatch.setattr(fonts, "characters_of", lambda path: frozenset(texts[path]))


def test_a_latin_text_needs_the_one_font_alone(monkeypatch):
    installed(monkeypatch, Noto_Sans_CJK_SC="房间abc")
    assert fonts.choose_fonts(["café\n", "bad"]) == (("DejaVu Sans",), "")


def test_a_font_is_added_that_has_the_letters(monkeypatch):
    installed(monkeypatch, Noto_Sans_CJK_SC="房间干净", Aardvark="xyz", Latin="abc")
    assert fonts.choose_fonts(["房间 a", "干净"]) == (("DejaVu Sans", "Noto Sans CJK SC"), "")


def test_fonts_called_noto_come_first_and_then_those_with_more_letters(monkeypatch):
    installed(monkeypatch, Aardvark="房间", Noto_Sans_CJK_SC="房间", Zebra="房间कख")
    assert fonts.choose_fonts(["房间"]).families == ("DejaVu Sans", "Noto Sans CJK SC")
    assert fonts.choose_fonts(["房间कख"]).families == ("DejaVu Sans", "Zebra")


def test_two_scripts_may_take_two_fonts_and_what_none_has_is_missing(monkeypatch):
    installed(monkeypatch, Han="房", Deva="कख")
    choice = fonts.choose_fonts(["房कख你"])
    assert choice == (("DejaVu Sans", "Deva", "Han"), "你")


@pytest.mark.parametrize(
    ("letters", "package"),
    [
        ("房间", "fonts-noto-cjk"),
        ("かな", "fonts-noto-cjk"),
        ("한국", "fonts-noto-cjk"),
        ("हिन", "fonts-noto-core"),
    ],
)
def test_the_package_is_that_of_the_script(letters, package):
    assert fonts.package_with(letters) == package


def test_the_upright_file_of_a_family_is_read(monkeypatch):
    entries = [
        SimpleNamespace(name="DejaVu Sans", fname="bold", style="normal", weight=700),
        SimpleNamespace(name="DejaVu Sans", fname="plain", style="normal", weight=400),
        SimpleNamespace(name="DejaVu Sans", fname="slanted", style="oblique", weight=400),
    ]
    monkeypatch.setattr("matplotlib.font_manager.fontManager", SimpleNamespace(ttflist=entries))
    paths = []
    monkeypatch.setattr(fonts, "characters_of", lambda path: paths.append(path) or frozenset("a"))
    fonts.choose_fonts(["a"])
    assert paths == ["plain"]


def test_a_file_that_is_no_font_has_no_letters(tmp_path):
    (tmp_path / "odd.ttf").write_bytes(b"no font")
    assert fonts.characters_of(str(tmp_path / "odd.ttf")) == frozenset()
    assert fonts.characters_of(str(tmp_path / "none.ttf")) == frozenset()


def test_a_picture_says_once_which_letters_are_boxes_and_which_package_has_them(monkeypatch, caplog):
    texts = "\U00018b00\U00018b01"  # Khitan small script
    points = np.random.default_rng(0).standard_normal((30, 2)).astype(np.float32)
    with caplog.at_level(logging.WARNING):
        assert picture(points, [texts] * 30, suffix=".png", names=[(0, texts), (1, texts)], title=texts)
    [record] = [record for record in caplog.records if "drawn as boxes" in record.message]
    assert "has 2 of the letters" in record.message
    assert "apt install fonts-noto-core" in record.message


def test_a_picture_of_letters_that_all_fonts_have_says_nothing(caplog):
    points = np.random.default_rng(0).standard_normal((30, 2)).astype(np.float32)
    with caplog.at_level(logging.WARNING):
        assert b"DejaVu Sans" in picture(points, ["città"] * 30, suffix=".svg", title="Zürich")
    assert not caplog.records
