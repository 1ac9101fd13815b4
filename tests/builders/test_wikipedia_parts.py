"""However a dump is cut and compressed, its pages are the same."""

import bz2
import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb_builders.wikipedia import WikipediaBuilder, streams
from kb_builders.wikipedia.streams import ranges
from tests.wiki_dumps import FOOT, P, dump, head, multistream, page, seen, write

PAGES = [
    P(
        f"Page {number}",
        f"Text of {number} & <b>more</b> [[Page {number * 7 % 20}|x{number % 3}]] 狗é" + "\n" * number,
    )
    for number in range(20)
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What the uncut dump says."""
    return seen(write(tmp_path_factory.mktemp("whole") / "dump.xml", dump(PAGES)))


def cut_in(path, size):
    """Return the parts of a file that is cut about every *size* bytes."""
    return [f"{path.name}:{begin}-{stop}" for begin, stop in ranges(path, size)]


def test_a_small_dump_is_one_part(tmp_path):
    for name in ("dump.xml", "dump.xml.bz2"):
        path = write(tmp_path / name, dump(PAGES))
        assert WikipediaBuilder().parts(path) == [f"{name}:0-{path.stat().st_size}"]


@pytest.mark.parametrize("size", [1, 7, 100, 333, 1_000, 5_000, 10_000_000])
def test_plain_xml_cut_anywhere_is_the_whole(tmp_path, whole, size):
    path = write(tmp_path / "dump.xml", dump(PAGES))
    found = cut_in(path, size)
    assert len(found) == -(-path.stat().st_size // size)
    assert seen(path, found) == whole


@settings(max_examples=30, deadline=None)
@given(cuts=st.sets(st.integers(1, 8_000), max_size=6))
def test_every_page_is_in_the_part_in_which_it_begins(tmp_path_factory, whole, cuts):
    path = write(tmp_path_factory.mktemp("cuts") / "dump.xml", dump(PAGES))
    size = path.stat().st_size
    ends = sorted({min(cut, size) for cut in cuts} | {size})
    parts = [f"dump.xml:{begin}-{stop}" for begin, stop in zip([0, *ends], ends, strict=False)]
    assert seen(path, parts) == whole
    text = path.read_bytes()
    for part, (begin, stop) in zip(parts, zip([0, *ends], ends, strict=False), strict=True):
        begins = [location for location in range(begin, stop) if text.startswith(b"<page>", location)]
        assert len(seen(path, [part]).entities) == len(begins)


def test_bz2_is_xml(tmp_path, whole):
    assert seen(write(tmp_path / "dump.xml.bz2", dump(PAGES))) == whole


def test_gz_is_xml(tmp_path, whole):
    path = tmp_path / "dump.xml.gz"
    path.write_bytes(gzip.compress(dump(PAGES).encode()))
    assert seen(path) == whole


@pytest.mark.parametrize("every", [1, 2, 3, 100])
@pytest.mark.parametrize("size", [1, 400, 1_000, 3_000, 10_000_000])
def test_a_multistream_dump_is_cut_between_its_streams(tmp_path, whole, every, size):
    path = multistream(tmp_path / "dump-multistream.xml.bz2", PAGES, every)
    assert seen(path, cut_in(path, size)) == whole


def test_the_cuts_are_those_of_the_index(tmp_path):
    path = multistream(tmp_path / "dump-multistream.xml.bz2", PAGES, 2)
    index = bz2.decompress((tmp_path / "dump-multistream-index.txt.bz2").read_bytes()).decode()
    offsets = sorted({int(line.split(":")[0]) for line in index.splitlines()})
    cuts = [begin for begin, _ in ranges(path, 1)][1:]
    assert cuts[:-1] == offsets  # the last stream is the end of the root element
    assert {begin for begin, _ in ranges(path, 700)} <= {0, *cuts}


def test_the_index_is_not_needed_and_not_in_the_way(tmp_path, whole):
    path = multistream(tmp_path / "dump-multistream.xml.bz2", PAGES)
    assert WikipediaBuilder().look(tmp_path).read == [path]
    assert seen(tmp_path) == whole


def test_streams_that_end_within_a_page_are_no_trouble(tmp_path, whole):
    """Parallel compressors cut where they like, even within a tag or a character."""
    text = dump(PAGES).encode()
    for size in (1, 5, 97, 1_500):
        path = tmp_path / f"pbzip2-{size}.xml.bz2"
        path.write_bytes(b"".join(bz2.compress(text[at : at + size]) for at in range(0, len(text), size)))
        assert seen(path, cut_in(path, 50_000 if size < 10 else 700)) == whole


@pytest.mark.parametrize("size", [1, 2, 3, 10, 64, 1_000, 4_096])
def test_it_does_not_matter_how_much_is_read_at_once(tmp_path, whole, monkeypatch, size):
    plain = write(tmp_path / "dump.xml", dump(PAGES))
    packed = multistream(tmp_path / "dump-multistream.xml.bz2", PAGES, 3)
    zipped = tmp_path / "dump.xml.gz"
    text = dump(PAGES).encode()
    zipped.write_bytes(gzip.compress(text[:5_000]) + gzip.compress(text[5_000:]))
    cuts = {path: cut_in(path, 1_500) for path in (plain, packed, zipped)}
    monkeypatch.setattr(streams, "_BLOCK", size)
    monkeypatch.setattr(streams, "_UNPACKED", size * 3)
    for path, parts in cuts.items():
        assert seen(path, parts) == whole
        assert seen(path, [f"{path.name}:0-{path.stat().st_size}"]) == whole


def test_one_stream_is_one_part(tmp_path):
    path = write(tmp_path / "dump.xml.bz2", dump(PAGES))
    assert len(cut_in(path, 100)) == 1


def test_a_stream_begins_where_ten_bytes_say_so(tmp_path):
    path = tmp_path / "x.bz2"
    stream = bz2.compress(b"x")
    path.write_bytes(stream + b"1AY&SY" + b"BZh01AY&SY" + b"BZx91AY&SY" + stream)
    assert [begin for begin, _ in ranges(path, 1)] == [0, len(stream) + 26]


def test_a_part_reads_on_in_the_next_one_only_to_the_end_of_its_last_page(tmp_path):
    path = write(tmp_path / "dump.xml", dump(PAGES))
    text = path.read_bytes()
    third = [location for location in range(len(text)) if text.startswith(b"<page>", location)][2]
    found = seen(path, [f"dump.xml:0-{third + 1}", f"dump.xml:{third + 1}-{third + 2}"])
    assert [*found.entities] == ["Page 0", "Page 1", "Page 2"]


def test_dumps_in_several_files_are_read_in_their_order(tmp_path, whole):
    for number, name in (
        (1, "articles1.xml-p1p7"),
        (2, "articles2.xml-p8p14"),
        (10, "articles10.xml-p15p20"),
    ):
        first = {1: 0, 2: 7, 10: 14}[number]
        body = "".join(page(location + 1, *PAGES[location]) for location in range(first, min(first + 7, 20)))
        write(tmp_path / f"enwiki-20261101-pages-{name}.bz2", head() + body + FOOT)
    (tmp_path / "sha1sums.txt").write_text("x")
    (tmp_path / "enwiki-20261101-redirect.sql.gz").write_bytes(b"")
    builder = WikipediaBuilder()
    assert [path.name for path in builder.look(tmp_path).read] == [
        "enwiki-20261101-pages-articles1.xml-p1p7.bz2",
        "enwiki-20261101-pages-articles2.xml-p8p14.bz2",
        "enwiki-20261101-pages-articles10.xml-p15p20.bz2",
    ]
    assert seen(tmp_path) == whole
    one = tmp_path / "enwiki-20261101-pages-articles2.xml-p8p14.bz2"
    assert [*seen(one).entities] == [f"Page {number}" for number in range(7, 14)]


def test_an_unpacked_numbered_file_is_a_dump(tmp_path, whole):
    assert seen(write(tmp_path / "enwiki-latest-pages-articles1.xml-p1p20", dump(PAGES))) == whole
