"""What formats have in common: heads that say what the whole is, files that are there, and chunks."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.building.contract import MAX_COUNT, KBProperties, SourceInfo
from kgkit.errors import NotThere, SourceError, UnknownName
from kgkit.exchange import FORMATS, Format, find_format, guess_format
from kgkit.exchange.contract import LineFormat, chunks, files_of, head_of
from kgkit.files import checked_file

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


def test_a_file_is_to_be_there_to_be_no_folder_and_to_hold_something(tmp_path):
    with pytest.raises(NotThere, match=r"no file .*gone"):
        checked_file(tmp_path / "gone")
    with pytest.raises(SourceError, match="is a folder; name a file in it"):
        checked_file(tmp_path)
    (tmp_path / "empty").touch()
    with pytest.raises(SourceError, match="is empty: there is nothing to read") as caught:
        checked_file(tmp_path / "empty")
    assert caught.value.line == 1
    (tmp_path / "full").write_text("x")
    assert checked_file(tmp_path / "full") == tmp_path / "full"


@given(st.lists(st.text(max_size=50), max_size=30))
def test_chunks_are_the_text_whatever_they_are_cut_into(lines):
    assert b"".join(chunks(lines)) == "".join(lines).encode("utf-8", "surrogatepass")


def test_chunks_are_of_some_size_and_none_is_empty():
    sizes = [len(chunk) for chunk in chunks("x" * 1_000 for _ in range(2_000))]
    assert sum(sizes) == 2_000_000 and 2 < len(sizes) < 30 and min(sizes) > 0
    assert [*chunks([])] == [] or b"".join(chunks([])) == b""


def test_chunks_take_no_line_before_it_is_asked_for():
    taken = []

    def lines():
        for number in range(5_000):
            taken.append(number)
            yield "x" * 1_000

    stream = chunks(lines())
    assert taken == []
    next(stream)
    assert 0 < len(taken) < 1_000


def test_a_format_of_lines_ends_each_with_a_line_feed():
    class Letters(LineFormat):
        name, title, suffixes, builder = "letters", "Letters", (".abc",), "letters"

        def lines(self, records):
            yield from ("a", "ä", records.name)

    [(name, content)] = Letters().files(RECORDS).items()
    assert (name, b"".join(content)) == ("", "a\nä\nfruit\n".encode())


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_format_has_a_title_a_builder_and_suffixes_that_lead_to_it(name):
    format = find_format(name)
    assert isinstance(format, Format) and format.name == name
    assert format.title and format.builder
    assert all(guess_format(Path(f"fruit{suffix}")).builder == format.builder for suffix in format.suffixes)
    assert all(suffix.startswith(".") for suffix in format.suffixes)
    assert format.folder == (not format.suffixes)


def test_names_and_titles_of_formats_are_told_apart_and_suffixes_have_one_reader():
    formats = [*FORMATS.values()]
    assert (
        len({format.title for format in formats}) == len(formats) == len({format.name for format in formats})
    )
    readers = {}
    for format in formats:
        for suffix in format.suffixes:
            assert readers.setdefault(suffix, format.builder) == format.builder
    with pytest.raises(UnknownName):
        find_format("abc")
