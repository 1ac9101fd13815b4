"""Files that are no dump of CN-DBpedia: one error that names the file and the line."""

import bz2
import tracemalloc
import zipfile

import pytest

from kb_builders import cn_dbpedia_files
from kb_builders.cn_dbpedia import CNDBpediaBuilder
from kgkit.errors import NotThere, SourceError

GOOD = "李娜（歌手）\t代表作品\t青藏高原\n".encode()
BAD = {
    "two fields": (
        GOOD + "李娜\t歌手\n".encode(),
        2,
        r"expected 3 tab-separated fields \(subject, attribute, ",
    ),
    "one field": (GOOD * 2 + "李娜\n".encode(), 3, "fields .*, found 1"),
    "four fields": (GOOD + b"\n" + b"a\tb\tc\td\n" + GOOD, 3, "fields .*, found 4"),
    "blanks": (GOOD + b"   \n", 2, "fields .*, found 1"),
    "no subject": (GOOD + b" \tb\tc\n", 2, "the subject is empty"),
    "no attribute": (GOOD + b"a\t\tc\n", 2, "the attribute is empty"),
    "no value": (GOOD + b"a\tb\t\r\n", 2, "the value is empty"),
    "a NUL byte": (GOOD + b"a\tb\tc\0\n", 2, "a NUL byte"),
    "Latin-1": (GOOD * 1500 + b"a\tb\t\xe9\n", 1501, "not UTF-8"),
    "half a character at the end": (GOOD + b"a\tb\t\xe6\x9d", 2, "not UTF-8"),
    "a line of 20 MB": (GOOD + b"a\tb\t" + b"c" * 20_000_000 + b"\n" + GOOD, 2, "a line of more than 16 MiB"),
    "a line without end": (GOOD * 9 + b"a\tb\t" + b"c" * 17_000_000, 10, "a line of more than 16 MiB"),
}
BAD_MENTIONS = {
    "one field": (b"a\tb\n" + b"a\n", 2, r"expected 2 tab-separated fields \(mention, entity\), found 1"),
    "three fields": (b"a\tb\n" * 2 + b"a\tb\tc\n", 3, "fields .*, found 3"),
    "no mention": (b"a\tb\n" + b"\tb\n", 2, "the mention is empty"),
    "no entity": (b"a\tb\n" + b"a\t \n", 2, "the entity is empty"),
}


def read(source):
    builder = CNDBpediaBuilder()
    builder.look(source)
    for part in builder.parts(source):
        for _ in builder.observe(source, part):
            pass


def complaint(source):
    with pytest.raises(SourceError) as caught:
        read(source)
    assert len(str(caught.value)) < 1000
    return caught.value


@pytest.mark.parametrize("name", BAD)
def test_the_first_line_that_is_no_triple_is_reported_with_its_number(name, tmp_path):
    content, line, said = BAD[name]
    path = tmp_path / "baike_triples.txt"
    path.write_bytes(content)
    error = complaint(path)
    assert (error.path, error.line) == (path, line)
    with pytest.raises(SourceError, match=said):
        raise error


@pytest.mark.parametrize("name", BAD_MENTIONS)
def test_the_first_line_that_is_no_mention_is_reported_with_its_number(name, tmp_path):
    content, line, said = BAD_MENTIONS[name]
    path = tmp_path / "m2e.txt"
    path.write_bytes(content)
    error = complaint(path)
    assert (error.path, error.line) == (path, line)
    with pytest.raises(SourceError, match=said):
        raise error


def test_a_line_has_its_number_in_the_file_wherever_the_file_is_cut(tmp_path, monkeypatch):
    lines = ["".join(f"s{n}\tx\t{n}\n") for n in range(5000)]
    lines[4321] = "\n"
    lines[4567] = "s4567\tx\n"
    path = tmp_path / "dump.txt"
    path.write_text("".join(lines), encoding="utf-8")
    monkeypatch.setattr(cn_dbpedia_files, "PART", 1000)
    monkeypatch.setattr(cn_dbpedia_files, "_BLOCK", 333)
    assert len(CNDBpediaBuilder().parts(path)) > 50
    error = complaint(path)
    assert (error.line, error.text) == (4568, "s4567\tx")


def test_bytes_that_are_no_text_have_the_number_of_their_line_wherever_the_file_is_cut(tmp_path, monkeypatch):
    path = tmp_path / "dump.txt"
    path.write_bytes(b"".join(b"s%d\tx\t%s\n" % (n, b"\xff" if n == 777 else b"y") for n in range(1000)))
    monkeypatch.setattr(cn_dbpedia_files, "PART", 1000)
    assert complaint(path).line == 778


def test_lines_of_a_compressed_file_have_their_numbers_too(tmp_path):
    path = tmp_path / "dump.txt.bz2"
    path.write_bytes(bz2.compress(GOOD * 1234 + b"\n\n" + b"a\tb\n"))
    assert complaint(path).line == 1237


def test_a_compressed_file_that_was_cut_short_is_refused(tmp_path):
    path = tmp_path / "dump.txt.bz2"
    path.write_bytes(bz2.compress(b"".join(b"%d\tb\tc\n" % n for n in range(99_999)))[:-100])
    assert "cannot be read on" in str(complaint(path))


def test_a_line_without_end_is_not_kept_in_memory(tmp_path, monkeypatch):
    path = tmp_path / "dump.txt"
    with path.open("wb") as file:
        file.write(GOOD + b"a\tb\t")
        file.truncate(400 << 20)  # zeros, but for the start
    monkeypatch.setattr(cn_dbpedia_files, "PART", 1 << 20)
    tracemalloc.start()
    complaint(path)
    assert tracemalloc.get_traced_memory()[1] < 80 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("text", ["a\n", "a\tb\tc\td\n", "key,value\n"])
def test_a_file_of_another_kind_is_refused_at_its_first_line(tmp_path, text):
    path = tmp_path / "other.txt"
    path.write_text(text, encoding="utf-8")
    error = complaint(path)
    assert error.line == 1
    assert "neither triples (3 tab-separated fields) nor mentions (2)" in str(error)


def test_an_archive_is_to_be_unpacked_first_whatever_it_is_called(tmp_path):
    with zipfile.ZipFile(tmp_path / "dump.txt", "w") as archive:
        archive.writestr("baike_triples.txt", GOOD)
    assert "is a zip archive: unpack it" in str(complaint(tmp_path / "dump.txt"))
    for kind, start in {"rar": b"Rar!\x1a\x07\0", "7z": b"7z\xbc\xaf\x27\x1c"}.items():
        (tmp_path / f"dump.{kind}").write_bytes(start + b"\0" * 100)
        assert f"is a {kind} archive: unpack it" in str(complaint(tmp_path / f"dump.{kind}"))


def test_a_folder_needs_a_file_of_a_dump(tmp_path):
    (tmp_path / "baike_triples.zip").write_bytes(b"PK\x03\x04")
    error = complaint(tmp_path)
    assert "is a folder without a .txt or .spo file: unpack the dump into it" in str(error)


def test_a_folder_with_a_file_of_another_kind_is_refused_by_that_file(tmp_path):
    (tmp_path / "dump.txt").write_bytes(GOOD)
    (tmp_path / "notes.txt").write_text("Downloaded in May.\n", encoding="utf-8")
    assert complaint(tmp_path).path == tmp_path / "notes.txt"


def test_a_file_that_lies_there_twice_is_refused(tmp_path):
    (tmp_path / "dump.txt").write_bytes(GOOD)
    (tmp_path / "dump.txt.bz2").write_bytes(bz2.compress(GOOD))
    assert "lies beside dump.txt, the same file" in str(complaint(tmp_path))


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "dump.txt").touch()
    assert "is empty" in str(complaint(tmp_path / "dump.txt"))


def test_what_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(NotThere):
        read(tmp_path / "none.txt")


def test_a_file_that_is_shortened_under_the_reader_is_noticed(tmp_path):
    path = tmp_path / "dump.txt"
    path.write_bytes(GOOD * 1000)
    builder = CNDBpediaBuilder()
    (part,) = builder.parts(path)
    path.write_bytes(GOOD)
    with pytest.raises(SourceError, match="has become shorter"):
        list(builder.observe(path, part))
