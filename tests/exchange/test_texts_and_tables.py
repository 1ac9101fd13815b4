"""The texts of formats: what is escaped comes back, and tables are read with their lines."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import NotThere, SourceError
from kgkit.exchange.rdf_terms import name_of, namer, short_name
from kgkit.exchange.xml_text import escape_text
from kgkit.tables import TableFormat, csv_cell, csv_line, csv_rows, csv_rows_of, rounded_cell

ODD = "a\\u0\t\n\r\x00\x01\x0b\x1f\ufffe\uffff 苹𝔘\"',;d8"


@given(st.text(ODD, max_size=30))
def test_escaped_texts_have_nothing_that_xml_cannot_hold(text):
    escaped = escape_text(text)
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", escaped)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("plain", "plain"), ("\x01", r"\u0001"), (r"\u0001", r"\u005cu0001"), (r"\u12", r"\u12"),
        ("\\", "\\"), ("a\tb\n", "a\tb\n"), ("\uffff", r"\uffff"),
    ],
)  # fmt: skip
def test_only_what_xml_has_no_room_for_is_escaped(text, escaped):
    assert escape_text(text) == escaped


@given(st.text(ODD, min_size=1, max_size=20), st.sampled_from(["entity", "relation", "type"]))
def test_a_name_comes_back_from_its_iri(name, space):
    iri = namer(str, space)(name)
    assert name_of(iri) == name
    assert not re.search(r"[\x00-\x20\\\"']", iri)


@pytest.mark.parametrize(
    "iri", ["http://example.org/a%20b", "https://example.org/#x", "urn:other:a%20b", "mailto:a"]
)
def test_an_iri_of_the_web_is_its_own_name(iri):
    assert name_of(iri) == iri


def test_what_is_no_iri_after_all_is_encoded():
    def strict(iri):
        if " " in iri:
            raise ValueError(iri)
        return iri

    iri = namer(strict, "entity")("http://a b")
    assert " " not in iri and name_of(iri) == "http://a b"


@pytest.mark.parametrize(
    ("iri", "name"),
    [
        ("http://example.org/New_York", "New York"),
        ("http://example.org/a#part_of", "part of"),
        ("http://example.org/caf%C3%A9/", "café"),
        ("urn:isbn:123", "123"),
        ("_:b0", ""),
        ("http://example.org/_", "http://example.org/_"),
        ("", ""),
    ],
)
def test_the_last_part_of_an_iri_is_what_people_might_call_it(iri, name):
    assert short_name(iri) == name


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@given(st.lists(st.tuples(*[st.text("a,\"'\n\r\t 苹", max_size=5)] * 3).map(list), min_size=1))
def test_rows_of_csv_come_back(tmp_path_factory, rows):
    path = write(tmp_path_factory.getbasetemp() / "rows.csv", "".join(map(csv_line, rows)))
    assert [row for _, row in csv_rows(path)] == rows


def test_rows_have_the_line_of_their_end(tmp_path):
    path = write(tmp_path / "t.csv", 'a,b\n"1\n2",3\n\n4,5\n')
    assert [*csv_rows(path)] == [(1, ["a", "b"]), (3, ["1\n2", "3"]), (5, ["4", "5"])]


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path):
    assert next(csv_rows(write(tmp_path / "t.csv", "\ufeffid,name\n")))[1] == ["id", "name"]


def test_tables_of_tabs_have_no_quotation_marks(tmp_path):
    assert [*csv_rows(write(tmp_path / "t.tsv", 'a\tb\n"x\t,"y"\n'))] == [
        (1, ["a", "b"]),
        (2, ['"x', ',"y"']),
    ]


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        ("a,b\n1\n", 2, "expected 2 fields, as the header has them, found 1"),
        ("a,b\n1,2,3\n", 2, "expected 2 fields, as the header has them, found 3"),
        ('a,b\n"1,2\n', 2, "unexpected end of data"),
        ('a,b\n"1"x,2\n', 2, "expected after"),
        (b"a,b\n\xff,2\n", 2, "not UTF-8: .* at byte 1 of the line"),
        (b"a\0b\n", 1, "a NUL byte: this is no text file"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(tmp_path, content, line, said):
    with pytest.raises(SourceError, match=said) as refused:
        [*csv_rows(write(tmp_path / "t.csv", content))]
    assert refused.value.line == line


def test_a_table_that_is_not_there_and_an_empty_one_are_errors(tmp_path):
    with pytest.raises(NotThere, match="no file"):
        [*csv_rows(tmp_path / "t.csv")]
    with pytest.raises(SourceError, match="empty"):
        [*csv_rows(write(tmp_path / "t.csv", ""))]
    with pytest.raises(SourceError, match="folder"):
        [*csv_rows(tmp_path)]


# -- tables of open files, and cells ----------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_an_open_file_has_the_delimiter_of_its_first_line(delimiter):
    content = f'a{delimiter}b\n"1\n2"{delimiter}3\n'.encode()
    assert [*csv_rows_of(io.BytesIO(content))] == [(1, ["a", "b"]), (3, ["1\n2", "3"])]


def test_an_open_file_may_name_its_delimiter():
    assert [row for _, row in csv_rows_of(io.BytesIO(b"sep=|\na,b|c\n"))] == [["a,b", "c"]]
    assert [row for _, row in csv_rows_of(io.BytesIO(b"a,b|c\n"), TableFormat("|"))] == [["a,b", "c"]]
    assert [*csv_rows_of(io.BytesIO(b""))] == []


def test_an_error_of_an_open_file_has_a_line_and_no_path():
    with pytest.raises(SourceError, match=r"^expected 2 fields") as refused:
        [*csv_rows_of(io.BytesIO(b"a,b\n1,2\n3\n"))]
    assert (refused.value.path, refused.value.line) == (None, 3)


def test_an_open_file_and_a_path_give_the_same_rows(tmp_path):
    content = '\ufeffid,name\n1,"x, y"\n\n2,z\n'
    path = write(tmp_path / "t.csv", content)
    assert [*csv_rows_of(io.BytesIO(content.encode()))] == [*csv_rows(path)]


def test_cells_are_texts_with_four_decimals():
    cells = [None, True, False, 0.123456, 1.0, 7, "0.123456", ""]
    assert [csv_cell(cell) for cell in cells] == ["", "true", "false", "0.1235", "1.0", "7", "0.123456", ""]
    assert [rounded_cell(cell) for cell in cells[:4]] == [None, True, False, 0.1235]


def test_fields_that_hold_a_delimiter_a_quote_or_a_line_end_are_in_quotes():
    assert csv_line(["a", "b,c", 'd"e', "f\ng", "h\ri"]) == 'a,"b,c","d""e","f\ng","h\ri"\n'
    assert csv_line(["a,b", "c\td"], "\t") == 'a,b\t"c\td"\n'
