"""Graphs are parsed triple by triple, and triples in triples end no process."""

from io import BytesIO

import pytest

from kgkit.errors import SourceError
from kgkit.turtle import MAX_NESTED, parse_graph

pytest.importorskip("pyoxigraph")

TRIPLE = "<a:s> <a:p> {} .\n"


class SlowStream(BytesIO):
    """Gives one byte at a time, whatever is asked for."""

    def read(self, size=-1):
        return super().read(1)


def values(text, syntax="TURTLE", stream=BytesIO):
    return [quad.object.value for quad in parse_graph(stream(text.encode()), syntax)]


@pytest.mark.parametrize("syntax", ["TURTLE", "N_TRIPLES"])
def test_triples_come_in_the_order_of_the_graph(syntax):
    text = "".join(TRIPLE.format(f'"{number}"') for number in range(5_000))
    assert values(text, syntax) == [str(number) for number in range(5_000)]


@pytest.mark.parametrize("syntax", ["TURTLE", "N_TRIPLES"])
@pytest.mark.parametrize("stream", [BytesIO, SlowStream])
def test_a_byte_order_mark_is_left_out_at_the_beginning_only(syntax, stream):
    text = TRIPLE.format('"\ufeffZürich"')
    for content, found in (
        (f"\ufeff{text}", ["\ufeffZürich"]),
        (f"\ufeff\n\n# \ufeff\n{text}", ["\ufeffZürich"]),
        ("\ufeff", []),
        ("", []),
    ):
        assert values(content, syntax, stream) == found
    with pytest.raises(SourceError):
        values(text + "\ufeff" + text, syntax, stream)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
@pytest.mark.parametrize("stream", [BytesIO, SlowStream])
def test_a_graph_in_utf_16_is_refused_as_such(encoding, stream):
    content = TRIPLE.format('"x"').encode(encoding)
    with pytest.raises(SourceError, match="UTF-16") as caught:
        list(parse_graph(stream(content if encoding == "utf-16" else b"\xfe\xff" + content), "TURTLE"))
    assert caught.value.line == 1


@pytest.mark.parametrize("syntax", ["TURTLE", "N_TRIPLES"])
def test_a_hundred_thousand_nested_triples_are_one_error(syntax):
    text = TRIPLE.format('"x"') + "<a:s> <a:p> " + "<<( <a:s> <a:p> " * 100_000
    with pytest.raises(SourceError, match="1,000 `<<`"):
        values(text, syntax)


@pytest.mark.parametrize("opening", ["<<", "<<(", "<< <a:s> <a:p> ", "{| <a:p> ", "( ", "[ <a:p> "])
@pytest.mark.parametrize("syntax", ["TURTLE", "N_TRIPLES"])
def test_a_hundred_thousand_of_what_can_be_opened_are_one_error(opening, syntax):
    with pytest.raises(SourceError):
        values("<a:s> <a:p> " + opening * 100_000, syntax)


def test_nested_triples_are_counted_where_bytes_come_singly():
    with pytest.raises(SourceError, match="more than 1,000 `<<`"):
        values("<a:s> <a:p> " + "<<( <a:s> <a:p> " * (MAX_NESTED + 1), stream=SlowStream)


def test_texts_may_have_any_number_of_what_begins_a_nested_triple():
    text = TRIPLE.format('"cout << 1 << 2"') * 3_000
    assert values(text) == ["cout << 1 << 2"] * 3_000


def test_three_signs_are_counted_once():
    assert values(TRIPLE.format(f'"{"<<< " * MAX_NESTED}"')) == ["<<< " * MAX_NESTED]
    assert values(TRIPLE.format(f'"{"<<< " * MAX_NESTED}"'), stream=SlowStream) == ["<<< " * MAX_NESTED]
    with pytest.raises(SourceError):
        values(TRIPLE.format(f'"{"<< " * (MAX_NESTED + 1)}"'), stream=SlowStream)


def test_an_error_has_its_line_and_file_and_no_control_characters(tmp_path):
    with pytest.raises(SourceError) as caught:
        list(parse_graph(BytesIO(b"<a:s> <a:p> <a:o> .\n\x07"), "TURTLE", tmp_path / "graph.ttl"))
    assert caught.value.line == 2
    assert "graph.ttl" in str(caught.value) and "\x07" not in str(caught.value)


def test_blank_nodes_keep_their_labels_unless_they_are_to_be_unique():
    graph = b"_:x <a:p> _:y ."
    (renamed,) = parse_graph(BytesIO(graph), "TURTLE")
    (quad,) = parse_graph(BytesIO(graph), "TURTLE", rename_blank_nodes=False)
    assert (quad.subject.value, quad.object.value) == ("x", "y")
    assert renamed.subject.value != "x"
