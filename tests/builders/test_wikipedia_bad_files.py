"""Files that are no dump, or a broken or a hostile one: a word that says what and where, in little memory."""

import bz2
import gzip
import os
import tracemalloc

import pytest

from kb_builders.wikipedia import WikipediaBuilder
from kb_builders.wikipedia.dump import MAX_TEXT
from kgkit.errors import SourceError
from tests.wiki_dumps import FOOT, P, dump, head, multistream, page, seen, write

GOOD = dump([P("Dog", "A [[cat]]."), P("Cat", "A [[dog]].")])
BOMB = """<?xml version="1.0"?>
<!DOCTYPE mediawiki [
  <!ENTITY a "dog"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">
]>
"""


def refused(path, *said):
    """Check that *path* is refused, whether it is looked at only or read."""
    with pytest.raises(SourceError) as caught:
        WikipediaBuilder().look(path)
        seen(path)
    assert caught.value.path == path
    for words in said:
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ["is empty"]),
        ("\n\n", ["is cut off", "byte 2"]),
        ("Dogs are animals.", ["is no dump of MediaWiki, nor other XML"]),
        ("{}", ["is no dump of MediaWiki, nor other XML"]),
        ("<rss><page/></rss>", ["is no dump of MediaWiki: its first element is <rss>"]),
        ("<page><title>Dog</title></page>", ["its first element is <page>"]),
        (GOOD[:300], ["is cut off"]),
        (GOOD[:-5], ["is cut off", "Cat"]),
        (GOOD.removesuffix(FOOT), ["is cut off", "Cat"]),
        (GOOD[: GOOD.index("A [[dog]]")], ["is cut off", "'Cat'"]),
        (GOOD.replace("</text>", "</txt>", 1), ["is not well-formed XML: mismatched tag", "'Dog'"]),
        (GOOD.replace("A [[dog]].", "AT&T"), ["is not well-formed XML", "'Cat'"]),
        (GOOD.replace("A [[dog]].", "&nosuch;"), ["undefined entity", "'Cat'"]),
        (GOOD.replace("A [[dog]].", "\x01"), ["is not well-formed XML", "'Cat'"]),
        (BOMB + GOOD, ["has a DOCTYPE", "refused"]),
        (BOMB + GOOD.replace("A [[dog]].", "&c;"), ["has a DOCTYPE", "refused"]),
        (GOOD.replace("A [[dog]].", "<![CDATA[<page>]]>"), ["CDATA", "refused"]),
        (GOOD.replace("A [[dog]].", "<!-- <page> -->"), ["comment", "refused"]),
        (GOOD + GOOD, ["is not well-formed XML: junk after document element"]),
        (GOOD.replace("<page>", "<page a='b'>"), ["has a <page> with attributes"]),
        (GOOD.replace("<title>Cat</title>", ""), ["a page without a title"]),
        (GOOD.replace("<title>Cat</title>", "<title> _ </title>"), ["a page without a title"]),
        (GOOD.replace("<ns>0</ns>", "<ns>zero</ns>"), ["'zero'", "whole numbers"]),
        (GOOD.replace("<id>2</id>", "<id>x</id>"), ["'x'", "'Cat'"]),
        (GOOD.replace("<title>Cat", "<title>" + "x" * 5_000), ["<title>", "more than 4,096 characters"]),
        (GOOD.replace("A [[dog]].", "<a>" * 100 + "</a>" * 100), ["nests elements"]),
        (GOOD.replace(">A [[dog]].</text>", "/>"), ["'Cat'", "stubs"]),
    ],
)
@pytest.mark.parametrize("name", ["dump.xml", "dump.xml.bz2"])
def test_what_is_no_dump_is_refused(tmp_path, name, text, said):
    if text == "" and name.endswith("bz2"):
        return
    refused(write(tmp_path / name, text), *said)


def test_a_place_is_a_byte_of_the_file(tmp_path):
    text = GOOD.replace("A [[dog]].", "\x01")
    refused(write(tmp_path / "dump.xml", text), f"byte {text.index(chr(1)):,}")


def test_a_place_in_a_later_part_is_a_byte_of_the_file_too(tmp_path):
    text = GOOD.replace("A [[dog]].", "\x01")
    path = write(tmp_path / "dump.xml", text)
    middle = text.index("</page>")
    seen(path, [f"dump.xml:0-{middle}"])
    with pytest.raises(SourceError, match=rf"byte {text.index(chr(1)):,}\b"):
        seen(path, [f"dump.xml:{middle}-{len(text)}"])


@pytest.mark.parametrize("bad", [b"\xff", b"\xe4", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"])
@pytest.mark.parametrize("begin", [0, 2_000])
def test_bytes_that_are_no_utf8_are_named_with_their_place(tmp_path, bad, begin):
    data = dump([P("Dog", "x" * 2_000), P("Cat", "Aé @.")]).encode().replace(b"@", bad)
    path = tmp_path / "dump.xml"
    path.write_bytes(data)
    with pytest.raises(SourceError) as caught:
        seen(path, [f"dump.xml:{begin}-{len(data)}"])
    said = str(caught.value)
    assert "no UTF-8" in said and f"{bad[0]:02x}" in said and "'Cat'" in said
    assert f"byte {data.index(bad):,}" in said


def test_utf16_is_refused(tmp_path):
    path = tmp_path / "dump.xml"
    path.write_bytes(GOOD.encode("utf-16"))
    refused(path, "is UTF-16, and dumps are UTF-8")


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("pack", [bz2.compress, gzip.compress])
def test_a_compressed_file_that_is_cut_off_is_named(tmp_path, keep, pack):
    data = pack(dump(P(f"Page {n}", os.urandom(3_000).hex()) for n in range(50)).encode())
    path = tmp_path / ("dump.xml.bz2" if pack is bz2.compress else "dump.xml.gz")
    path.write_bytes(data[: int(len(data) * keep)])
    refused(path, "is cut off: the file ends within compressed data", "checksum")


def test_a_compressed_file_that_is_damaged_is_named(tmp_path):
    data = bytearray(bz2.compress(dump(P(f"Page {n}", os.urandom(3_000).hex()) for n in range(50)).encode()))
    data[len(data) // 2] ^= 255
    path = tmp_path / "dump.xml.bz2"
    path.write_bytes(data)
    refused(path, "is damaged")
    path.write_bytes(bz2.compress(GOOD.encode()) + b"garbage")
    refused(path, "is damaged")
    path.write_bytes(GOOD.encode())
    refused(path, "is damaged")


def test_a_multistream_dump_that_is_cut_between_two_streams_is_named(tmp_path):
    path = multistream(tmp_path / "dump-multistream.xml.bz2", [P(f"Page {n}", "x") for n in range(9)])
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b"BZh91AY&SY")])
    with pytest.raises(SourceError, match="cut off"):
        seen(path)


@pytest.mark.parametrize("name", ["dump.xml", "dump.xml.bz2"])
def test_a_page_of_300_megabytes_is_refused_in_bounded_memory(tmp_path, name):
    path = tmp_path / name
    with bz2.open(path, "wb") if name.endswith("bz2") else path.open("wb") as file:
        first, last = dump([P("Cat", "A cat."), P("Dog", "@"), P("Fox", "A fox.")]).split("@")
        file.write(first.encode())
        for _ in range(300 if name == "dump.xml" else 40):
            file.write(b"x" * (1 << 20))
        file.write(last.encode())
    tracemalloc.start()
    try:
        refused(path, "'Dog'", f"more than {MAX_TEXT:,} characters", "which no MediaWiki stores")
        assert tracemalloc.get_traced_memory()[1] < 8 * MAX_TEXT
    finally:
        tracemalloc.stop()


def test_a_page_as_large_as_any_is_read(tmp_path):
    text = "[[dog]] and so on. " * 100_000
    assert seen(write(tmp_path / "dump.xml", dump([P("Cat", text)]))).counts["dog", "Dog"] == 100_000


@pytest.mark.parametrize("element", ["<page {} >", "<page a='{}'>", "<{}>", "</{}>", "<?{}?>"])
def test_a_tag_without_end_is_refused_in_bounded_memory(tmp_path, element):
    path = tmp_path / "dump.xml"
    first, last = element.split("{}")
    with path.open("w") as file:
        file.write(head() + page(1, "Dog") + first)
        for _ in range(40):
            file.write("x" * (1 << 20))
        file.write(last + FOOT)
    refused(path, "holds a tag of more than 8 MiB")


def test_a_bomb_of_bz2_unpacks_little_by_little(tmp_path):
    path = tmp_path / "dump.xml.bz2"
    path.write_bytes(
        bz2.compress(head().encode()) + bz2.compress(b" " * (60 << 20)) + bz2.compress(FOOT.encode())
    )
    tracemalloc.start()
    try:
        assert not seen(path).entities
        assert tracemalloc.get_traced_memory()[1] < 30 << 20
    finally:
        tracemalloc.stop()


def test_a_head_without_end_is_refused(tmp_path):
    refused(
        write(tmp_path / "dump.xml", head().replace("<case>", "<x>" + "x" * (9 << 20) + "</x><case>")),
        "has no page near its beginning",
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("enwiki-pages-meta-history.xml-p1p2.7z", "is a 7z archive, which is not read: take the .bz2"),
        ("dump.xml.xz", "is compressed as .xz, which is not read"),
        ("dump.xml.zst", "is compressed as .zst, which is not read"),
        ("dump.txt", "is no dump: .xml, .xml.bz2 and .xml.gz are read, and page_props.sql.gz"),
        ("enwiki-20261101-redirect.sql.gz", "page_props.sql.gz is read, the others are not needed"),
        (
            "enwiki-pages-articles-multistream-index.txt.bz2",
            "is the index of a multistream dump: name the dump",
        ),
    ],
)
def test_other_files_are_refused_with_what_to_do(tmp_path, name, said):
    path = tmp_path / name
    path.write_bytes(b"x")
    refused(path, said)


def test_a_folder_is_refused_with_what_to_do(tmp_path):
    refused(tmp_path, "is a folder without a dump")
    (tmp_path / "enwiki-pages-articles.xml.7z").write_bytes(b"x")
    refused_in = pytest.raises(SourceError, match="is a 7z archive")
    with refused_in:
        WikipediaBuilder().look(tmp_path)


def test_a_folder_with_the_same_pages_twice_is_refused(tmp_path):
    write(tmp_path / "enwiki-latest-pages-articles.xml", GOOD)
    write(tmp_path / "enwiki-latest-pages-articles-multistream.xml.bz2", GOOD)
    with pytest.raises(SourceError, match="enwiki-latest-pages-articles"):
        WikipediaBuilder().look(tmp_path)


def test_a_folder_of_two_wikis_is_refused(tmp_path):
    write(tmp_path / "enwiki-pages-articles.xml", GOOD)
    write(tmp_path / "dewiki-pages-articles.xml", dump([P("Hund")], "de"))
    with pytest.raises(SourceError, match=r"'enwiki'.*'dewiki'"):
        WikipediaBuilder().look(tmp_path)
