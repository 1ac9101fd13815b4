"""From files to documents: nothing of a text is changed, and what is wrong is said with its place."""

import io
import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.candidates import KeyedDocument
from kgkit.commands.corpora import documents
from kgkit.commands.text_streams import STDIN
from kgkit.errors import NotThere, SourceError
from tests.cli_helpers import read_documents

TEXTS = st.text(max_size=30)


def read(path, form="auto"):
    return [(document.id, document.text) for document in read_documents([path], form)]


def jsonl(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("texts")


@given(TEXTS, st.booleans())
def test_a_file_is_one_document_to_the_last_line_end(folder, text, marked):
    path = folder / "a.txt"
    path.write_bytes((b"\xef\xbb\xbf" if marked else b"") + text.encode())
    text = text if marked else text.removeprefix("\ufeff")
    assert read(path) == [(str(path), text)]


@given(st.lists(TEXTS, max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_a_line_is_a_document_with_its_number_and_blank_ones_are_none(folder, lines, end):
    path = folder / "b.txt"
    path.write_bytes(end.join(lines).encode())
    expected = path.read_bytes().removeprefix(b"\xef\xbb\xbf").decode().split("\n")
    assert read(path, "lines") == [
        (f"{path}:{number}", line.rstrip("\r\n"))
        for number, line in enumerate(expected, 1)
        if line.encode().strip()  # as bytes: of Unicode's blanks there are more
    ]


@given(st.lists(st.tuples(st.one_of(st.none(), TEXTS, st.integers(-9, 9)), TEXTS), max_size=5))
def test_a_record_is_a_document_under_its_own_id(folder, records):
    path = jsonl(folder / "c.jsonl", *({"id": name, "text": text} for name, text in records))
    assert read(path) == [
        (f"{path}:{number}" if name is None else str(name), text)
        for number, (name, text) in enumerate(records, 1)
    ]


def test_the_suffix_says_what_lines_are_whatever_its_case_unless_the_form_is_said(tmp_path):
    record = {"id": "x", "text": "a dog"}
    for name in ("a.jsonl", "a.NDJSON"):
        assert read(jsonl(tmp_path / name, record)) == [("x", "a dog")]
    path = jsonl(tmp_path / "a.txt", record)
    assert read(path)[0][1] == json.dumps(record) + "\n"
    assert read(path, "jsonl") == [("x", "a dog")]


def test_files_come_in_their_order_and_standard_input_where_it_stands(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "sys", SimpleNamespace(stdin=SimpleNamespace(buffer=io.BytesIO(b"two"))))
    (tmp_path / "a").write_text("one")
    (tmp_path / "b").write_text("three")
    files = [tmp_path / "a", STDIN, tmp_path / "b"]
    assert [document.text for document in read_documents(files, "auto")] == ["one", "two", "three"]


def test_what_is_not_there_is_said_before_anything_is_read(tmp_path):
    (tmp_path / "a").write_bytes(b"\xff")
    with pytest.raises(NotThere, match="gone"):
        read_documents([tmp_path / "a", tmp_path / "gone"], "auto")


@pytest.mark.parametrize(
    ("content", "form", "line", "byte"),
    [
        (b"caf\xe9", "text", None, 4), (b"one\ncaf\xe9\n", "lines", 2, 4),
        (b"\xef\xbb\xbf\xe9\n", "lines", 1, 1), (b'{"text": "a"}\n{"text": "\xe9"}\n', "jsonl", 2, 11),
    ],
)  # fmt: skip
def test_what_is_no_utf_8_is_said_with_its_line_and_byte(tmp_path, content, form, line, byte):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(SourceError, match=rf"byte 0xe9 at byte {byte} of") as caught:
        read(tmp_path / "a", form)
    assert caught.value.line == line


def test_a_name_that_is_no_utf_8_still_is_an_id(tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    try:
        path.write_text("a dog")
    except OSError:
        pytest.skip("the file system takes no such name")
    [(name, text)] = read(path)
    assert name.encode() and (name[-1], text) == ("\ufffd", "a dog")


def test_mentions_come_with_their_candidates_and_the_words_of_their_span(tmp_path):
    mentions = [
        {"start": 2, "end": 5, "id": 7, "candidates": ["dog.n.01"]},
        {"start": 0, "end": 1, "pos": "n"},
    ]
    path = jsonl(tmp_path / "a.jsonl", {"text": "a dog", "mentions": mentions}, {"text": "", "mentions": []})
    first, second = read_documents([path], "auto")
    assert isinstance(first, KeyedDocument) and first.keys == (("dog.n.01",), None)
    assert [(each.start, each.end, each.text, each.id, each.pos) for each in first.mentions] == [
        (2, 5, "dog", "7", ""), (0, 1, "a", "", "n"),
    ]  # fmt: skip
    assert second.mentions == [] and not isinstance(second, KeyedDocument)


@pytest.mark.parametrize(
    ("mention", "said"),
    [
        ({"start": 0, "end": 9}, ""), ({"start": -1, "end": 2}, ""), ({"start": 3, "end": 3}, ""),
        ({"start": 0, "end": 1, "text": "b"}, ""), ({"start": "0", "end": 1}, "Expected `int`"),
        ({"start": 0}, "missing required field `end`"), ({"start": 0, "end": 1, "score": 2}, "<= 1"),
    ],
)  # fmt: skip
def test_a_mention_that_is_no_span_of_its_text_is_an_error_of_its_line(tmp_path, mention, said):
    path = jsonl(tmp_path / "a.jsonl", {"text": "x"}, {"text": "a dog", "mentions": [mention]})
    with pytest.raises(SourceError) as caught:
        read(path)
    assert caught.value.line == 2 and said in str(caught.value)


@pytest.mark.parametrize(
    "line", ["[]", "{}", '{"text": 1}', '{"text": null}', "{", 9_000 * "[", '{"text": "\\ud800"}']
)
def test_a_line_that_is_no_record_is_an_error_of_its_number(tmp_path, line):
    (tmp_path / "a.jsonl").write_text(f'{{"text": "a"}}\n\n{line}\n')
    reading = read_documents([tmp_path / "a.jsonl"], "auto")
    assert next(reading).text == "a"
    with pytest.raises(SourceError, match="expected") as caught:
        next(reading)
    assert caught.value.line == 3
