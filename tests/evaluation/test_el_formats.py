"""Data sets of entity linking by ELEVANT, KILT and AIDA-CoNLL-YAGO; how a format is recognised."""

import json
import os

import pytest

from benchmarks.linking_formats import write_kilt
from kgkit.errors import NotThere, SourceError, UnknownName
from kgkit.evaluation import GoldDocument, Labelled, read_gold_documents, write_links
from kgkit.evaluation.el_files import GoldError, GoldMention, make_gold_document
from kgkit.evaluation.el_formats import (
    GOLD_FORMATS,
    gold_format,
    read_aida,
    read_elevant,
    read_gold_data,
    read_kilt,
    read_linked,
    read_predictions,
)
from kgkit.evaluation.nif import write_nif

TEXT = "The Rhône leaves 𝒟 Lake\nGeneva at noon ."
GOLD = [Labelled(4, 9, "Rhône"), Labelled(17, 18, None), Labelled(19, 30, "Lake Geneva")]
ARTICLE = {
    "id": 7,
    "title": "River",
    "text": TEXT,
    "evaluation_span": [0, len(TEXT)],
    "labels": [
        {"id": 0, "span": [4, 9], "entity_id": "Q602", "name": "Rhône", "type": "Q4022"},
        {"id": 1, "span": [17, 18], "entity_id": "<NIL>", "name": "Unknown", "type": "OTHER"},
        {"id": 2, "span": [19, 30], "entity_id": "Q6403", "name": "Lake Geneva", "type": None},
    ],
}
COLUMNS = """-DOCSTART- (1 EU)
EU\tB\tEU\t--NME--
rejects
German\tB\tGerman\tGermany\thttp://en.wikipedia.org/wiki/Germany\t11867\t/m/0345h
call
.

New\tB\tNew York\tNew_York_City\thttp://en.wikipedia.org/wiki/New_York_City\t645042
York\tI\tNew York\tNew_York_City\thttp://en.wikipedia.org/wiki/New_York_City\t645042

-DOCSTART- (2 Rhône)
Rh\\u00f4ne\tB\tRh\\u00f4ne\tRh\\u00f4ne
Beside\tB\tBeside\tBeside
"""


@pytest.fixture
def put(tmp_path):
    def write(content, name="data"):
        """Write bytes, a text, or records as JSON lines."""
        path = tmp_path / name
        if isinstance(content, list):
            content = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def article(**changes):
    return {**ARTICLE, **changes}


def row(start, end, entity="A", **fields):
    return {"start": start, "end": end, "entity": entity, **fields}


def label(start, end, entity="Q1", **fields):
    return {"id": 0, "span": [start, end], "entity_id": entity, "name": "N", "type": "T", **fields}


# -- spans against their text


def test_a_gold_document_has_ids_texts_types_and_candidates_of_its_mentions():
    mentions = [GoldMention(0, 2, "A", "ab", "LOC", ("A", "B")), GoldMention(3, 5, None)]
    gold = make_gold_document("d", "ab cd", mentions)
    assert [(each.id, each.text) for each in gold.document.mentions] == [("d.m0", "ab"), ("d.m1", "cd")]
    assert gold.gold == [Labelled(0, 2, "A"), Labelled(3, 5, None)]
    assert (gold.types, gold.candidates) == (["LOC", ""], [("A", "B"), None])


def test_a_document_without_an_id_is_refused():
    with pytest.raises(GoldError, match="empty id"):
        make_gold_document("", "ab", [])


# -- ELEVANT


@pytest.mark.parametrize(
    ("given", "entities"),
    [
        ("Q39|Q340787", ("Q39", "Q340787")),
        ("Q340787|Q39|Q39", ("Q340787", "Q39")),
        ("NIL|Q64", ("Q64",)),
        (["Bern", "Q70"], ("Bern", "Q70")),
        (["Bern", "Bern"], ("Bern",)),
        ([], ()),
        (None, ()),
        ("Q39", ("Q39",)),
        ("A|B", ("A|B",)),
        ("Q39|B", ("Q39|B",)),
        ("|", ("|",)),
    ],
)
def test_a_mention_may_have_several_entities(put, given, entities):
    row = {"start": 0, "end": 1, "entity": given}
    [tokens] = read_gold_data(put([{"doc_id": 1, "tokens": ["Bern"], "mentions": [row]}]))
    [text] = read_gold_data(put([{"text": "Bern", "mentions": [row]}]))
    assert [label.entities for gold in (tokens, text) for label in gold.gold] == [entities] * 2


@pytest.mark.parametrize("entity", ["", " ", [""], ["Bern", " "]])
def test_an_empty_entity_is_refused_among_others_too(put, entity):
    with pytest.raises(SourceError):
        [*read_gold_data(put([{"text": "Bern", "mentions": [{"start": 0, "end": 4, "entity": entity}]}]))]


@pytest.mark.parametrize("format", [name for name in GOLD_FORMATS if name != "docbin"])
@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_no_gold_in_any_format(tmp_path, format, content):
    path = tmp_path / "data"
    path.write_bytes(content)
    for name in (format, None):
        with pytest.raises(SourceError):
            [*read_gold_data(path, name)]


def test_several_answers_of_kilt_are_several_entities(put):
    answers = [answer("Bern"), answer("Canton of Bern")]
    [gold] = read_kilt(put([kilt("1", "[START_ENT] Bern [END_ENT]", answers)]))
    assert [label.entities for label in gold.gold] == [("Bern", "Canton of Bern")]


def test_labels_of_elevant_are_mentions_by_identifier_or_by_name(put):
    path = put([ARTICLE, article(id="8", labels=[])])
    first, second = read_elevant(path)
    assert (first.document.id, first.document.text, first.types[0]) == ("7", TEXT, "Q4022")
    assert first.entities == ["Q602", None, "Q6403"]
    assert next(read_elevant(path, "name")).gold == GOLD
    assert second.gold == []


@pytest.mark.parametrize("entity", [None, "<NIL>", "<NO_MAPPING>", "Unknown12"])
def test_unknown_entities_of_elevant_are_nil(put, entity):
    [gold] = read_elevant(put([article(labels=[label(4, 9, entity)])]))
    assert gold.entities == [None]


def test_optional_labels_and_labels_within_another_are_skipped_and_counted(put, caplog):
    labels = [label(4, 9), label(4, 8, parent=0), label(19, 23, optional=True)]
    [gold] = read_elevant(put([article(labels=labels)]))
    assert gold.gold == [Labelled(4, 9, "Q1")]
    assert "2 labels are optional, or within another" in caplog.text


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (article(labels=[label(4, 99)]), "document '7': mention 1 spans 4 to 99"),
        (article(labels=[label(9, 4)]), "mention 1 spans 9 to 4"),
        (article(labels=[label(4, 9), label(4, 9)]), "have one span"),
        (article(labels=[{"span": [4, 9]}]), "no article of ELEVANT: .*entity_id"),
        (article(labels=[label(4, 9, span=[4])]), "no article of ELEVANT"),
        (article(text=5), "no article of ELEVANT"),
        (article(id=""), "empty id"),
        (["not an object"], "no article of ELEVANT"),
    ],
)
def test_a_bad_article_is_reported_with_its_line(put, record, message):
    path = put([article(id=1), record])
    articles = read_elevant(path)
    assert next(articles).document.id == "1"
    with pytest.raises(SourceError, match=message) as caught:
        next(articles)
    assert (caught.value.path, caught.value.line) == (path, 2)


def test_a_label_without_a_name_has_its_identifier_where_names_are_compared(put):
    path = put([article(labels=[label(4, 9, name=None)])])
    assert [gold.entities for gold in read_elevant(path, "name")] == [
        gold.entities for gold in read_elevant(path)
    ]


# -- KILT


def kilt(name, marked, output=(), **fields):
    return {"id": name, "input": marked, "output": list(output), **fields}


def answer(title):
    return {"answer": title, "provenance": [{"title": title, "wikipedia_id": "1"}]}


def test_mentions_of_the_same_text_in_a_row_are_a_document(put):
    path = put(
        [
            kilt("1", "The [START_ENT] Rhône [END_ENT] leaves Geneva", [answer("Rhône")]),
            kilt(
                "2", "The Rhône leaves [START_ENT] Geneva [END_ENT]", [], candidates=["Geneva", "Lake Geneva"]
            ),
            kilt("3", "[START_ENT] Geneva [END_ENT]", [{"answer": "Geneva"}]),
            kilt("4", "[START_ENT] Geneva [END_ENT]", [{"answer": "Lake Geneva"}]),
        ]
    )
    first, second, third = read_kilt(path)
    assert (first.document.id, first.document.text) == ("1", "The Rhône leaves Geneva")
    assert first.gold == [Labelled(4, 9, "Rhône"), Labelled(17, 23, None)]
    assert first.candidates == [None, ("Geneva", "Lake Geneva")]
    # The same span again: another document that has the same text.
    assert [each.gold for each in (second, third)] == [
        [Labelled(0, 6, "Geneva")],
        [Labelled(0, 6, "Lake Geneva")],
    ]


def test_the_entity_is_the_first_title_of_a_page_or_else_the_answer(put):
    outputs = [
        ([{"answer": "alias", "provenance": [{"title": "Title"}]}], "Title"),
        ([{"answer": "alias", "provenance": []}], "alias"),
        ([{"provenance": [{"wikipedia_id": "3"}]}, {"provenance": [{"title": "Later"}]}], "Later"),
        ([{"meta": {"score": 1}}], None),
        ([], None),
    ]
    records = [kilt(f"{n}", f"[START_ENT] a{n} [END_ENT]", output) for n, (output, _) in enumerate(outputs)]
    assert [gold.entities for gold in read_kilt(put(records))] == [[entity] for _, entity in outputs]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (kilt("2", "no mention"), "expected one mention between"),
        (kilt("2", "[START_ENT] a [END_ENT] [START_ENT] b [END_ENT]"), "expected one mention"),
        (kilt("2", "[START_ENT] a"), "expected one mention"),
        (kilt("2", "a [END_ENT] [START_ENT] b"), "expected one mention"),
        (kilt("1", "[START_ENT] a [END_ENT]"), "two examples have the id '1'"),
        ({"id": "2", "output": []}, "no mention of KILT: .*input"),
        (kilt("2", "[START_ENT] a [END_ENT]", ["text"]), "no mention of KILT"),
    ],
)
def test_a_bad_mention_of_kilt_is_reported_with_its_line(put, record, message):
    path = put([kilt("1", "[START_ENT] b [END_ENT]"), record])
    with pytest.raises(SourceError, match=message) as caught:
        [*read_kilt(path)]
    assert (caught.value.path, caught.value.line) == (path, 2)


def test_a_mention_of_nothing_is_reported_with_the_line_of_its_document(put):
    path = put([kilt("1", "x [START_ENT]   [END_ENT] y")])
    with pytest.raises(SourceError, match="nothing but white space") as caught:
        [*read_kilt(path)]
    assert caught.value.line == 1


def test_documents_written_as_kilt_read_like_the_data(put, tmp_path):
    gold = make_gold_document("7", TEXT, [GoldMention(*label) for label in GOLD_ROWS])
    write_kilt(tmp_path / "kilt.jsonl.gz", [gold])
    [read] = read_kilt(tmp_path / "kilt.jsonl.gz")
    assert (read.document.id, read.document.text, read.gold) == ("7:0", TEXT, GOLD)


GOLD_ROWS = [(label.start, label.end, label.entity) for label in GOLD]


# -- AIDA


def test_columns_of_aida_are_documents_with_sentences(put):
    first, second = read_aida(put(COLUMNS))
    assert (first.document.id, first.document.text) == ("1 EU", "EU rejects German call .\nNew York")
    assert [first.document.text[a:b] for a, b in first.document.sentences] == [
        "EU rejects German call .",
        "New York",
    ]
    assert [first.document.text[a:b] for a, b in first.document.tokens] == (
        "EU rejects German call . New York".split()
    )
    assert first.gold == [
        Labelled(0, 2, None),
        Labelled(11, 17, "Germany"),
        Labelled(25, 33, "New York City"),
    ]
    assert second.entities == ["Rhône", "Beside"]


def test_a_mention_of_aida_may_cross_sentences(put):
    lines = "-DOCSTART- (1)\nNew\tB\tNew York\tN\n\nYork\tI\tNew York\tN\n"
    [gold] = read_aida(put(lines))
    assert (gold.document.text, gold.gold) == ("New\nYork", [Labelled(0, 8, "N")])
    assert gold.document.mentions[0].text == "New\nYork"


@pytest.mark.parametrize(
    ("lines", "number", "message"),
    [
        ("a\n", 1, "expected -DOCSTART- before the first token"),
        ("-DOCSTART- (1)\na\tB\n", 2, "3 to 6 columns"),
        ("-DOCSTART- (1)\na\tB\ta\tA\tu\tw\tf\tx\n", 2, "3 to 6 columns"),
        ("-DOCSTART- (1)\na\tO\ta\tA\n", 2, "expected a token, then B or I"),
        ("-DOCSTART- (1)\n\tB\ta\tA\n", 2, "expected a token, then B or I"),
        ("-DOCSTART- (1)\na\tB\ta\t \n", 2, "NIL is --NME--"),
        ("-DOCSTART- (1)\na\tI\ta\tA\n", 2, "continues \\(I\\) where none began"),
        ("-DOCSTART- (1)\na\tB\ta b\tA\nx\nb\tI\ta b\tA\n", 4, "continues \\(I\\) where none began"),
        ("-DOCSTART- (1)\na\tB\ta b\tA\nb\tI\ta c\tA\n", 3, "the mention 'a b' continues as 'a c'"),
        ("-DOCSTART- (1)\na\tB\ta b\tA\nc\tI\ta b\tA\n", 1, "the tokens 'a c' are called 'a b'"),
        ("-DOCSTART- (1)\na\n-DOCSTART- (1)\nb\n", 3, "two examples have the id '1'"),
        ("-DOCSTART-\na\n", 1, "empty id"),
    ],
)
def test_a_bad_line_of_columns_is_reported(put, lines, number, message):
    path = put(lines)
    with pytest.raises(SourceError, match=message) as caught:
        [*read_aida(path)]
    assert (caught.value.path, caught.value.line) == (path, number)


def test_the_page_of_a_mention_goes_before_yagos_name(put):
    lines = "-DOCSTART- (1)\na\tB\ta\tYago_name\thttp://en.wikipedia.org/wiki/The_page%21\t3\n"
    assert next(read_aida(put(lines))).entities == ["The page!"]


# -- which format a file has


def sources(tmp_path, put):
    """Return a file of each format that has one without further packages."""
    river = {
        "doc_id": 7,
        "tokens": "The Rhône leaves 𝒟 Lake Geneva at noon .".split(),
        "sentences": [[0, 5], [5, 9]],
        "mentions": [{"start": 1, "end": 2, "entity": "Rhône"}, {"start": 3, "end": 4, "entity": None},
                     {"start": 4, "end": 6, "entity": "Lake Geneva"}],
    }  # fmt: skip
    own = put([river], "own.jsonl")
    write_nif(tmp_path / "river.ttl", read_gold_documents(own))
    write_kilt(tmp_path / "river.kilt", read_gold_documents(own))
    rows = "-DOCSTART- (7)\nThe\nRhône\tB\tRhône\tRhône\nleaves\n𝒟\tB\t𝒟\t--NME--\n"
    rows += "Lake\tB\tLake Geneva\tLake_Geneva"
    rows += "\thttp://en.wikipedia.org/wiki/Lake_Geneva\t1\n\nGeneva\tI\tLake Geneva\tLake_Geneva"
    rows += "\thttp://en.wikipedia.org/wiki/Lake_Geneva\t1\nat\nnoon\n.\n"
    return {
        "kgkit": own, "elevant": put([ARTICLE], "elevant"), "kilt": tmp_path / "river.kilt",
        "aida": put(rows, "rows"), "nif": tmp_path / "river.ttl",
        "linked": put([{"id": 7, "text": TEXT, "mentions": [row(*label) for label in GOLD_ROWS]}], "linked"),
    }  # fmt: skip


def test_each_format_is_recognised_and_says_the_same(tmp_path, put):
    pytest.importorskip("pyoxigraph")
    for name, path in sources(tmp_path, put).items():
        assert gold_format(path) == name
        [gold] = read_gold_data(path, entities="name")
        assert (gold.document.text, gold.gold) == (TEXT, GOLD), name


def test_a_byte_order_mark_and_blank_lines_do_not_hide_a_format(put):
    assert gold_format(put(b"\xef\xbb\xbf\n" + json.dumps(ARTICLE).encode())) == "elevant"
    assert gold_format(put("\n\n" + COLUMNS)) == "aida"


def test_a_format_that_is_named_is_read_whatever_the_file_begins_like(put):
    path = put([kilt("1", "[START_ENT] a [END_ENT]", text="x", labels=[])])
    assert gold_format(path) == "elevant"
    assert [gold.document.text for gold in read_gold_data(path, "kilt")] == ["a"]


@pytest.mark.parametrize("content", [b"", b"plain text\n", b"\xff\xfd\x00", b"[1, 2]"])
def test_a_file_of_no_format_is_refused_with_the_formats(put, content):
    with pytest.raises(SourceError, match="kgkit, elevant, kilt, aida, nif, docbin"):
        gold_format(put(content))


def test_json_of_no_format_goes_to_the_first_reader(put):
    with pytest.raises(SourceError, match="document"):
        [*read_gold_data(put([{"sentence": "x"}]))]
    assert gold_format(put(b'{"text": "x", ')) == "kgkit"


def test_a_pipe_is_not_read_twice(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert gold_format(tmp_path / "pipe") == "kgkit"


def test_missing_files_and_unknown_formats_are_refused(tmp_path, put):
    with pytest.raises(NotThere, match="no file"):
        gold_format(tmp_path / "none")
    with pytest.raises(UnknownName, match="format of data") as caught:
        [*read_gold_data(put(COLUMNS), "conll")]
    assert all(name in str(caught.value) for name in GOLD_FORMATS)


# -- texts with links


def test_mentions_of_a_text_count_code_points_and_may_have_candidates(put):
    mentions = [
        row(3, 7, "A", text="Java", type="LOC", candidates=["A", "B"], score=0.5), row(7, 9, None, type=None)
    ]  # fmt: skip
    [gold] = read_linked(put([{"doc_id": "d", "text": "👩‍🚀Java\r\n北京", "mentions": mentions[:1]}]))
    assert (gold.document.id, gold.document.text) == ("d", "👩‍🚀Java\r\n北京")
    assert (gold.gold, gold.types, gold.candidates) == ([Labelled(3, 7, "A")], ["LOC"], [("A", "B")])
    [gold] = read_linked(put([{"text": "abcdefg北京", "mentions": mentions[1:]}]))
    assert (gold.gold, gold.types, gold.candidates) == ([Labelled(7, 9, None)], [""], [None])


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"text": "ab"}, "expected `mentions` .* found neither"),
        ({"text": "ab", "mentions": [], "links": []}, "found both"),
        ({"text": "ab", "mentions": [{"start": 0, "end": 1}]}, "no text with links: .*`entity`"),
        ({"text": "ab", "mentions": [row(0, 3)]}, "mention 1 spans 0 to 3"),
        ({"text": "ab", "links": [row(0, 2, text="ac")]}, "mention 1 .* not 'ac'"),
        ({"text": "ab", "links": [row(0, 1), row(0, 1, "B")]}, "mentions 1 and 2 have one span"),
    ],
)
def test_a_text_whose_links_cannot_be_gold_is_refused_with_its_line(put, record, message):
    path = put([{"text": "", "mentions": []}, record])
    with pytest.raises(SourceError, match=f":2: .*{message}"):
        [*read_linked(path)]


def test_texts_without_an_id_are_numbered_by_line_and_ids_differ(put):
    path = put([{"text": "a", "mentions": []}, {"text": "b", "links": []}])
    assert [gold.document.id for gold in read_linked(path)] == ["1", "2"]
    with pytest.raises(SourceError, match="two examples have the id 'x'"):
        [*read_linked(put([{"id": "x", "text": "a", "mentions": []}] * 2))]


# -- predictions


def test_predictions_are_read_from_lines_and_from_nif(tmp_path):
    pytest.importorskip("pyoxigraph")
    write_links(tmp_path / "links.tsv", [("7", GOLD)])
    gold = make_gold_document("7", TEXT, [GoldMention(*row) for row in GOLD_ROWS])
    write_nif(tmp_path / "links.ttl", [gold])
    assert read_predictions(tmp_path / "links.tsv") == {"7": GOLD}
    assert read_predictions(tmp_path / "links.ttl") == {"7": GOLD}


def test_predictions_whose_first_id_looks_like_turtle_are_lines(tmp_path):
    write_links(tmp_path / "links.tsv", [("<http://a>", [Labelled(0, 1, "A")])])
    assert list(read_predictions(tmp_path / "links.tsv")) == ["<http://a>"]
    (tmp_path / "none.tsv").write_text("")
    assert read_predictions(tmp_path / "none.tsv") == {}


def test_documents_are_read_lazily(put):
    path = put([article(id=number) for number in range(3)] + [article(id=3, text=4)])
    assert [
        isinstance(gold, GoldDocument) for _, gold in zip(range(3), read_elevant(path), strict=False)
    ] == ([True] * 3)
