"""Wikidata ids from the table of page properties."""

import gzip
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_builders.wikipedia import WikipediaBuilder, streams
from kgkit.errors import SourceError
from tests.wiki_dumps import P, dump, seen, write

HEAD = """-- MySQL dump 10.19
DROP TABLE IF EXISTS `page_props`;
CREATE TABLE `page_props` (
  `pp_page` int(8) NOT NULL,
  `pp_propname` varbinary(60) NOT NULL DEFAULT '',
  `pp_value` blob NOT NULL,
  `pp_sortkey` float DEFAULT NULL
) ENGINE=InnoDB DEFAULT CHARSET=binary;
"""
FOOT = "\n-- Dump completed on 2026-11-01  1:02:03\n"


def table(*lines: str, foot: str = FOOT) -> str:
    return HEAD + "".join(f"INSERT INTO `page_props` VALUES {line};\n" for line in lines) + foot


def given_ids(tmp_path, text, name="enwiki-20261101-page_props.sql"):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    found = seen(path)
    assert found.redirects == {value: key for key, _, value in found.attributes}
    assert {name for _, name, _ in found.attributes} <= {"wikidata"}
    assert not found.entities and not found.counts
    return {key: value for key, _, value in found.attributes}


def test_the_wikibase_item_of_a_page_is_an_attribute_and_a_key(tmp_path):
    text = table(
        "(12,'wikibase_item','Q144',NULL),(12,'defaultsort','Dog',NULL)", "(7,'wikibase_item','Q5',NULL)"
    )
    assert given_ids(tmp_path, text) == {"curid:12": "Q144", "curid:7": "Q5"}


@pytest.mark.parametrize(
    "value",
    [
        r"(9,\'wikibase_item\',\'Q9\',NULL)",
        r"\\\'),(9,\'wikibase_item\',\'Q9\'",
        "(9,",
        r"a\nb\0c\"d",
        "'',''".replace("''", r"\'"),
        "x;\\nINSERT INTO `page_props` VALUES (9,",
    ],
)
def test_what_looks_like_a_row_within_a_value_is_none(tmp_path, value):
    text = table(f"(1,'displaytitle','{value}',NULL),(2,'wikibase_item','Q2',NULL),(3,'x','{value}',1.5)")
    assert given_ids(tmp_path, text) == {"curid:2": "Q2"}


@pytest.mark.parametrize("size", [1, 2, 7, 30, 64, 65, 100, 10_000])
def test_rows_are_found_wherever_the_blocks_end(tmp_path, monkeypatch, size):
    monkeypatch.setattr(streams, "_BLOCK", size)
    monkeypatch.setattr(streams, "_UNPACKED", size)
    lines = [
        ",".join(f"({n},'a','b',NULL),({n},'wikibase_item','Q{n * 3}',NULL)" for n in range(at, at + 20))
        for at in (1, 21, 41)
    ]
    assert given_ids(tmp_path, table(*lines)) == {f"curid:{n}": f"Q{n * 3}" for n in range(1, 61)}


@given(
    st.lists(
        st.tuples(
            st.integers(1, 99),
            st.sampled_from(["wikibase_item", "defaultsort", "wikibase-badge-Q1"]),
            st.text("aQ1'\\(),;\n\0", max_size=12),
        ),
        max_size=8,
        unique_by=lambda row: row[0],
    )
)
def test_rows_are_those_that_a_reader_of_sql_finds(tmp_path_factory, rows):
    def quoted(text):
        return text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\0", "\\0")

    values = ",".join(f"({page},'{name}','{quoted(value)}',NULL)" for page, name, value in rows)
    text = table(values) if rows else table(foot=FOOT)
    wanted = {
        f"curid:{page}": value
        for page, name, value in rows
        if name == "wikibase_item" and re.fullmatch("Q[0-9]+", value)
    }
    path = tmp_path_factory.mktemp("props") / "page_props.sql"
    path.write_text(text, encoding="utf-8", newline="")
    assert {key: value for key, _, value in seen(path).attributes} == wanted


def test_a_folder_has_the_table_beside_the_dump(tmp_path):
    write(tmp_path / "enwiki-20261101-pages-articles.xml.bz2", dump([P("Dog"), P("Cat")]))
    (tmp_path / "enwiki-20261101-page_props.sql.gz").write_bytes(
        gzip.compress(table("(1,'wikibase_item','Q144',NULL),(2,'wikibase_item','Q146',NULL)").encode())
    )
    found = seen(tmp_path)
    assert found.redirects == {"curid:1": "Dog", "curid:2": "Cat", "Q144": "curid:1", "Q146": "curid:2"}
    assert found.attributes == [("curid:1", "wikidata", "Q144"), ("curid:2", "wikidata", "Q146")]
    assert found.units == 2
    files = WikipediaBuilder().look(tmp_path)
    assert [path.name for path in files.read] == [
        "enwiki-20261101-pages-articles.xml.bz2",
        "enwiki-20261101-page_props.sql.gz",
    ]


def test_the_table_alone_states_no_language(tmp_path):
    path = tmp_path / "enwiki-20261101-page_props.sql"
    path.write_text(table("(12,'wikibase_item','Q144',NULL)"))
    files = WikipediaBuilder().look(path)
    assert files.properties is None
    assert files.info.version == "enwiki 2026-11-01"


def test_a_table_without_items_is_none_the_worse(tmp_path):
    assert given_ids(tmp_path, table("(12,'defaultsort','x',NULL)")) == {}
    assert given_ids(tmp_path, table()) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("CREATE TABLE `redirect` (x);\n", "is not the table page_props"),
        ("x" * 200_000, "is not the table page_props"),
        (table("(12,'wikibase_item','Q144',NULL),(13,'wikibase_", foot="").rstrip(";\n"), "is cut off"),
        (HEAD + "INSERT INTO `page_props` VALUES (12,'wiki", "is cut off"),
    ],
)
def test_a_bad_table_is_named(tmp_path, text, said):
    path = tmp_path / "page_props.sql"
    path.write_text(text)
    with pytest.raises(SourceError, match=said) as caught:
        seen(path)
    assert caught.value.path == path
