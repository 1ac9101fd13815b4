"""What formats have in common: heads that say what the whole is, files that are there, and chunks."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.building.contract import MAX_COUNT, KBProperties, SourceInfo
from kgkit.errors import SourceError
from kgkit.exchange import FORMATS, Format, find_format, guess_format
from kgkit.exchange.contract import chunks, files_of, head_of

INFO = SourceInfo(name="Fruit", version="2", licence="CC0", url="https://fruit.example", date="2026-01-02")
PROPERTIES = KBProperties({"part": "whole"}, 0.5, "lemma", "en")
RECORDS = SimpleNamespace(name="fruit", build="abc", info=INFO, properties=PROPERTIES)


def test_a_head_says_what_comes_back_from_it(tmp_path):
    head = json.loads(json.dumps(head_of(RECORDS)))
    files = files_of(tmp_path / "fruit.graphml", head)
    assert (files.info, files.properties) == (INFO, PROPERTIES)
    assert list(files.read) == [tmp_path / "fruit.graphml"]


def test_a_file_without_a_head_is_called_after_its_file(tmp_path):
    files = files_of(tmp_path / "fruit.en.nt.gz", None)
    assert files.info == SourceInfo(name="fruit")
    assert files.properties is None or files.properties == KBProperties()
    more = [tmp_path / "nodes.csv", tmp_path / "edges.csv"]
    assert list(files_of(tmp_path, None, iter(more)).read) == more


def test_what_a_later_kgkit_adds_to_a_head_is_no_error(tmp_path):
    assert files_of(tmp_path / "x", {"name": "Fruit", "flavour": "sweet"}).info.name == "Fruit"


@pytest.mark.parametrize(
    ("head", "where"),
    [
        ({"smoothing": -1}, "$.smoothing"), ({"smoothing": 2 * MAX_COUNT}, "$.smoothing"),
        ({"smoothing": "1"}, "$.smoothing"), ({"generator": "magic"}, "$.generator"),
        ({"inverses": {"a": 1}}, "$.inverses"), ({"inverses": ["a"]}, "$.inverses"),
        ({"language": None}, "$.language"), ({"name": 7}, "$.name"), ({"licence": []}, "$.licence"),
    ],
)  # fmt: skip
def test_a_head_that_is_not_as_it_is_written_is_refused_where_it_is_wrong(tmp_path, head, where):
    with pytest.raises(SourceError) as caught:
        files_of(tmp_path / "x", head)
    assert where in str(caught.value) and "not as kgkit writes it" in str(caught.value)
    assert caught.value.path == tmp_path / "x"


@given(st.lists(st.text(max_size=50), max_size=30))
def test_chunks_are_the_text_whatever_they_are_cut_into(lines):
    assert b"".join(chunks(lines)) == "".join(lines).encode("utf-8", "surrogatepass")


def test_chunks_are_of_some_size_and_none_is_empty():
    sizes = [len(chunk) for chunk in chunks("x" * 1_000 for _ in range(2_000))]
    assert sum(sizes) == 2_000_000 and 2 < len(sizes) < 30 and min(sizes) > 0
    assert [*chunks([])] == [] or b"".join(chunks([])) == b""


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_format_has_a_title_a_builder_and_suffixes_that_lead_to_it(name):
    format = find_format(name)
    assert isinstance(format, Format) and format.name == name
    assert format.title and format.builder
    assert all(guess_format(Path(f"fruit{suffix}")).builder == format.builder for suffix in format.suffixes)
    assert all(suffix.startswith(".") for suffix in format.suffixes)
    assert format.folder == (not format.suffixes)
