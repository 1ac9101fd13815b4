"""Plain text: sentences end where they end, blank lines divide documents, and nothing is lost."""

import bz2
import gzip
import lzma

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.evaluation.plain_text import check_plain, read_plain, read_sentences, sentence_begins

SAME = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
ENGLISH = 'He said "Go." Then (at 5 p.m.) he left! "Why?" she asked. No one knew.'
CHINESE = "他说：“好。”我走了。真的？！是（对。）吗？"


def test_sentences_end_where_they_end_and_nothing_is_lost(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text(f"{ENGLISH}\n{CHINESE}\n")
    assert list(read_plain(path)) == [
        [
            'He said "Go."', "Then (at 5 p.m.) he left!", '"Why?" she asked.', "No one knew.",
            "他说：“好。”", "我走了。", "真的？！", "是（对。）", "吗？",
        ]
    ]  # fmt: skip


@given(st.text(alphabet="aB .!?\"'”’)(“。！？」』）", min_size=1).filter(str.strip))
@SAME
def test_no_character_goes_lost_between_sentences(tmp_path, text):
    path = tmp_path / "x.txt"
    path.write_text(text)
    [document] = read_plain(path)
    assert "".join(document).replace(" ", "") == text.replace(" ", "")
    assert all(one == one.strip() != "" for one in document)


def test_blank_lines_divide_documents(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes("\ufeff\n\na b\r\nc. D\n \t\n\n\ne\n\u3000\nf".encode())
    assert list(read_plain(path)) == [["a b", "c.", "D"], ["e"], ["f"]]
    assert [sentence.text for sentence in read_sentences(path) if sentence.begins] == ["a b", "e", "f"]
    assert [sentence.text for sentence in read_sentences(path)] == ["a b", "c.", "D", "e", "f"]


@pytest.mark.parametrize(("suffix", "pack"), [("xz", lzma), ("bz2", bz2), ("gz", gzip), ("GZ", gzip)])
def test_a_compressed_file_is_read(tmp_path, suffix, pack):
    path = tmp_path / f"x.txt.{suffix}"
    path.write_bytes(pack.compress("苹果。\n\nA dog".encode()))
    assert list(read_plain(path)) == [["苹果。"], ["A dog"]]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(SourceError, match=rf"x.txt.{suffix}"):
        list(read_plain(path))


def test_what_is_no_plain_text_is_told(tmp_path):
    path = tmp_path / "x.txt"
    with pytest.raises(NotThere, match=r"no file .*x\.txt"):
        list(read_plain(path))
    for nothing in (b"", b"\n \n\t\n"):
        path.write_bytes(nothing)
        with pytest.raises(SourceError, match=r"x\.txt: no text in it"):
            list(read_plain(path))
    path.write_bytes(b"a dog\n\xff\n")
    with pytest.raises(SourceError, match=r"x\.txt:2: not UTF-8"):
        list(read_plain(path))


def test_sentences_begin_behind_full_stops_of_any_script_and_on_new_lines():
    text = "It is 3.5 m, e.g. here. “Yes.” No!\nA line 狗叫。”猫！"
    assert [text[begin] for begin in sentence_begins(text)] == ["“", "N", "A", "猫"]
    assert sentence_begins("") == sentence_begins("One.\n") == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('\ufeff\n  <?xml version="1.0"?>\n<corpus>\n', "is XML, and is read as plain text"),
        ('<corpus lang="en">\n<text id="d000">\n', "is XML, and is read as plain text"),
        ("d000.s000.t000 dog%1:05:00::\n", "is a key file"),
        ("d0.s0.t0 dog%1:05:00:: dog%1:18:01::\nd0.s0.t1 big%3:00:01:: \n", "is a key file"),
        ('{"text": "A dog."}\n', "has records of JSON"),
        ("A O\ndog B-ANIMAL\n", "has a label at the end of each line"),
    ],
)
def test_files_of_other_formats_are_no_plain_text(tmp_path, content, message):
    path = tmp_path / "x.txt"
    path.write_text(content)
    with pytest.raises(UsageError, match=message):
        check_plain(path)


@pytest.mark.parametrize(
    "content",
    ["", "1 < 2.\n<b>A dog</b> barks.\n", "d000.s000.t000 is an instance.\n", "v1.0 has 50%1 of it.\nEnd.\n"],
)
def test_plain_text_with_odd_characters_is_plain_text(tmp_path, content):
    path = tmp_path / "x.txt"
    path.write_text(content)
    check_plain(path)
