"""Corrections of links, their places in texts that change, and the files that they are in."""

import logging

import pytest
from msgspec import structs

from kgkit.building import Alias, Entity
from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.linking import Correction, Corrections, Linker
from kgkit.linking.corrections import context_of
from kgkit.linking.multi_kb import MultiKBLinker
from tests.small_kb import build

RECORDS = [
    Entity("gates", "Bill Gates", attributes={"wikidata": "Q5284"}), Entity("theresa", "Theresa May"),
    Entity("cape", "Cape May"), Entity("volk", "大众"), Entity("nice", "Nice"),
    *(Alias(surface, key) for surface, key in [
        ("bill", "gates"), ("Bill Gates", "gates"), ("May", "theresa"), ("Cape May", "cape"),
        ("大众", "volk"), ("Nice", "nice"),
    ]),
]  # fmt: skip
LETTER = "The bill came in May, dear. Bill Gates never saw Cape May, and May wrote that May is over."


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with build(tmp_path_factory.mktemp("kb"), RECORDS) as kb:
        yield kb


@pytest.fixture(scope="module")
def linker(kb):
    return Linker.open(kb, model="prior", mentions="all", nil=True)


def corrected(linker, text, *rows, name="letters/17.txt", nil=False):
    """Return the links of a text after corrections, each a dictionary."""
    [linked] = linker([text])
    corrections = Corrections(linker.kb, [Correction(**row) for row in rows], nil=nil)
    links = corrections(structs.replace(linked, id=name)).links
    assert all(text[link.start : link.end] == link.text for link in links)
    assert [link.start for link in links] == sorted(link.start for link in links)
    return [(link.start, link.text, link.entity) for link in links]


def place(text, words, entity, number=0, *, width=32, **fields):
    """Return the fields of a correction of the occurrence of some words with that number."""
    start = -1
    for _ in range(number + 1):
        start = text.index(words, start + 1)
    before, after = context_of(text, start, start + len(words))
    before, after = before[-width:] if width else "", after[:width]
    return {"text": words, "entity": entity, "document": "17.txt", "start": start, "before": before,
            "after": after, **fields}  # fmt: skip


# -- wherever ---------------------------------------------------------------


def test_what_is_no_name_loses_its_links_by_case_and_nothing_else_does(linker):
    found = corrected(linker, LETTER, {"text": "bill", "entity": None})
    before = corrected(linker, LETTER)
    assert [link for link in before if link not in found] == [(4, "bill", "gates")]


def test_an_entity_is_linked_wherever_the_words_stand_but_within_a_longer_link(linker):
    text = "Miss\nMoppet of Cape May met May; Miss  Moppet's Mayor."
    found = corrected(
        linker, text, {"text": "Miss Moppet", "entity": "nice"}, {"text": "May", "entity": "gates"}
    )
    assert [(words, key) for _, words, key in found] == [
        ("Miss\nMoppet", "nice"), ("Cape May", "cape"), ("May", "gates"), ("Miss  Moppet", "nice"),
    ]  # fmt: skip


def test_words_without_spaces_are_found_in_a_sentence(linker):
    assert corrected(linker, "大众的眼睛", {"text": "大众", "entity": ""}) == []
    assert corrected(linker, "我的眼睛", {"text": "眼睛", "entity": "nice"}) == [(2, "眼睛", "nice")]


def test_of_corrections_that_overlap_the_longest_holds(linker):
    rows = {"text": "Cape May", "entity": "nice"}, {"text": "never saw Cape May", "entity": "gates"}
    assert (39, "never saw Cape May", "gates") in corrected(linker, LETTER, *rows)
    assert not any(key == "nice" for _, _, key in corrected(linker, LETTER, *rows))


def test_a_corrected_link_is_certain_and_keeps_candidates_and_identifiers(kb, linker):
    [linked] = linker(["May left"])
    [link] = Corrections(kb, [Correction(text="May", entity="theresa")])(linked).links
    assert (link.score, link.nil, link.label) == (1.0, False, "Theresa May")
    assert link.candidates == linked.links[0].candidates != []


def test_what_is_no_name_is_a_certain_nil_where_nil_is_kept(linker):
    assert (4, "bill", None) in corrected(linker, LETTER, {"text": "bill", "entity": None}, nil=True)


# -- places -----------------------------------------------------------------


def test_a_place_goes_before_a_document_and_that_before_everywhere(linker):
    rows = (
        {"text": "May", "entity": None}, {"text": "May", "entity": "gates", "document": "17.txt"},
        place(LETTER, "May", "nice", 0),
    )  # fmt: skip
    for order in rows, rows[::-1]:
        found = corrected(linker, LETTER, *order)
        assert [key for _, words, key in found if words == "May"] == ["nice", "gates", "gates"]
        elsewhere = corrected(linker, LETTER, *order, name="letters/18.txt")
        assert not any(words == "May" for _, words, _ in elsewhere)


def test_a_place_may_cut_a_longer_link_and_be_a_part_of_a_word(linker):
    assert (54, "May", "nice") in corrected(linker, LETTER, place(LETTER, "May", "nice", 1))
    assert (0, "Th", "nice") in corrected(linker, LETTER, place(LETTER, "Th", "nice"))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: f"A new first line.\n\n{text}",
        lambda text: text.replace("and May wrote", "and\nMay wrote"),
        lambda text: text.replace("The bill came in May, dear. ", ""),
        lambda text: text.replace("is over", "is over, May, and May"),
        lambda text: text.replace("never saw", "never ever saw"),
        lambda text: text.replace("wrote", "says"),
        lambda text: text.replace("Gates never saw", "Gates saw").replace(
            "wrote that May is", "wrote May was"
        ),
        lambda text: text.replace("Cape May, and", "Cape May; but"),
        lambda text: f"{text}\nMay, and May wrote to May.",
    ],
)
def test_a_place_is_found_again_after_a_small_change_of_the_text(linker, change):
    row = place(LETTER, "May", "gates", 2)
    text = change(LETTER)
    [found] = [link for link in corrected(linker, text, row) if link[1] == "May" and link[2] == "gates"]
    assert text[found[0] + 4 :].split()[0] in ("wrote", "says")


def test_a_place_that_is_gone_is_logged_once_and_nothing_is_corrected(linker, caplog):
    rows = place(LETTER, "May", "gates", 2), {"text": "Nice", "entity": None, "document": "letters/17.txt"}
    text = "Another letter says that May is warm. It was in May."
    with caplog.at_level(logging.WARNING):
        assert corrected(linker, text, *rows) == corrected(linker, text)
    [record] = caplog.records
    assert "'May'" in record.getMessage() and "'Nice'" in record.getMessage()
    caplog.clear()
    corrected(linker, text, *rows, name="letters/18.txt")
    assert not caplog.records


def test_the_next_occurrence_a_few_words_away_is_another_place(linker):
    row = place(LETTER, "May", "gates", 2)
    text = LETTER.replace("and May wrote", "and she wrote")
    assert "gates" not in [key for _, words, key in corrected(linker, text, row) if words == "May"]


def test_without_a_context_a_place_is_at_its_start_or_the_only_one(linker):
    row = place(LETTER, "Bill Gates", "nice", width=0) | {"after": ""}
    assert (28, "Bill Gates", "nice") in corrected(linker, LETTER, row)
    assert (35, "Bill Gates", "nice") in corrected(linker, f"Again: {LETTER}", row)
    row = place(LETTER, "May", "nice", 2, width=0) | {"after": ""}
    assert "nice" not in [key for _, _, key in corrected(linker, f"Again: {LETTER}", row)]


def test_a_context_without_a_document_is_found_in_any(linker):
    row = place(LETTER, "May", "nice", 2, document="")
    assert (63, "May", "nice") in corrected(linker, LETTER, row, name="whatever")
    other = "A letter in which May, and May wrote that May was over."
    assert "nice" not in [key for _, _, key in corrected(linker, other, row)]


def test_of_places_of_the_same_words_each_has_its_own_context(linker):
    text = "ha haha, May came. May went. Haha, and May\ncame back."
    rows = [
        place(text, "May", key, number, document="") for number, key in enumerate(["nice", "cape", "gates"])
    ]
    rows += [place(text, "haha", "theresa", document=""), place(text, "ha", "volk", 1, document="")]
    found = [key for _, words, key in corrected(linker, text, *rows, name="whatever") if words == "May"]
    assert found == ["nice", "cape", "gates"]
    assert (3, "haha", "theresa") in corrected(linker, text, *rows, name="whatever")


def test_words_that_are_repeated_are_told_apart_by_where_they_stand(linker):
    text = "ha " * 200
    start = 300
    before, after = context_of(text, start, start + 2)
    row = {"text": "ha", "entity": "nice", "document": "17.txt", "start": start, "before": before,
           "after": after}  # fmt: skip
    assert corrected(linker, text, row) == [(start, "ha", "nice")]


# -- files ------------------------------------------------------------------


def opened(kb, tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Corrections.open(kb, path)


TABLE = "text,entity,document,start,note\nbill,,,,never\nMay,theresa,17.txt,17,\n"


LINES = (
    '{"text": "bill", "entity": null}\n\n{"text": "May", "start": 17, "end": 20, "kb": "small", "score": 0.4,'
    ' "entity": "theresa", "label": "x", "nil": false, "candidates": [], "document": "letters/17.txt"}\n'
)


@pytest.mark.parametrize(("name", "content"), [
    ("a.csv", TABLE), ("a.csv", "\ufeff" + TABLE.replace(",", ";").replace("\n", "\r\n")),
    ("a.csv", "sep=;\r\n" + TABLE.replace(",", ";")), ("a.tsv", TABLE.replace(",", "\t")),
    ("a.csv", "entity,text,start,document,score\n,bill,,,0.3\n\ntheresa,May,17,17.txt,\n"),
    ("a.csv", TABLE.replace("text,entity,document", "Text,ENTITY,Document")), ("a.jsonl", LINES),
])  # fmt: skip
def test_tables_and_json_lines_are_read_a_row_of_the_output_among_them(kb, linker, tmp_path, name, content):
    corrections = opened(kb, tmp_path, name, content)
    found = corrections.spans("letters/17.txt", LETTER)
    assert {span: row.entity or None for span, row in found.items()} == {(4, 8): None, (17, 20): "theresa"}


def test_a_table_without_rows_corrects_nothing_which_is_logged(kb, tmp_path, caplog):
    assert opened(kb, tmp_path, "a.csv", "text,entity\n").spans("x", LETTER) == {}
    [record] = caplog.records
    assert "a.csv" in record.getMessage()


def test_rows_of_a_knowledge_base_that_there_is_not_are_logged_once(tmp_path, caplog):
    with build(tmp_path, RECORDS, name="letters") as kb, build(tmp_path, RECORDS, name="others"):
        opened(kb, tmp_path, "a.csv", "text,entity,kb\nbill,,others\nMay,gates,letters\n")
        assert not caplog.records
        rows = "text,entity,kb\nMay,gates,others\nbill,,leters\nMay,Q1,leters\n"
        assert opened(kb, tmp_path, "a.csv", rows).spans("x", LETTER) == {}
    [record] = caplog.records
    assert all(value in record.getMessage() for value in ("a.csv:3", "'leters'", "letters, others", "2"))


@pytest.mark.parametrize(("name", "content", "line", "value"), [
    ("a.csv", "text,entity\nbill,\nMay,Q999\n", 3, "Q999"),
    ("a.csv", "text,entity\nBill,Bill Gates\n", 2, r"Bill Gates.* gates"),
    ("a.csv", "text,entity\nMay,theresa\nMay,\n", 3, "theresa"),
    ("a.csv", "text,entity,document,start\nMay,theresa,17.txt,1 7\n", 2, "1 7"),
    ("a.csv", "text,entity,start\nMay,theresa,17\n", 2, "17"),
    ("a.csv", "text,entity\n,theresa\n", 2, "text"),
    ("a.csv", f"text,entity,document,start\nMay,theresa,17.txt,{'7' * 5000}\n", 2, "777…"),
    ("a.csv", "text,entity,document,entity\nMay,theresa,17.txt,cape\n", 1, "'entity'"),
    ("a.jsonl", '{"text": "May", "entity": "cape", "start": %s}\n' % ("7" * 5000), 1, "start"),
    ("a.csv", "text,entity,docment\nMay,theresa,17.txt\n", 2, "docment"),
    ("a.csv", "text,key\nMay,theresa\n", 1, "entity"),
    ("a.csv", "text,entity\nMay\n", 2, "2"),
    ("a.jsonl", '{"text": "May", "entity": "theresa"}\n{"text": "May"}\n', 2, "entity"),
    ("a.jsonl", '{"text": "May", "entity": "theresa", "start": "17"}\n', 1, "start"),
    ("a.jsonl", '{"id": "1", "text": "May", "links": []}\n', 1, "links"),
    ("a.jsonl", "[]\n", 1, "array"), ("a.json", "[]\n", None, "jsonl"), ("a.xlsx", b"PK\0", None, "CSV"),
    ("a.csv", b"text,entity\nM\xe4y,theresa\n", 2, "UTF-8"),
])  # fmt: skip
def test_a_bad_row_is_refused_with_its_line_and_value(kb, tmp_path, name, content, line, value):
    with pytest.raises(SourceError, match=value) as refused:
        opened(kb, tmp_path, name, content)
    assert refused.value.line == line


def test_a_file_that_is_not_there_is_refused_by_whoever_opens_a_linker(kb, tmp_path):
    with pytest.raises(NotThere, match=r"none\.csv"):
        Linker.open(kb, model="prior", corrections=tmp_path / "none.csv")
    with pytest.raises(UsageError, match="Q999"):
        Corrections(kb, [Correction(text="May", entity="Q999")])


def test_keys_hold_where_ids_do_not_and_rows_of_other_knowledge_bases_are_left_out(kb, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,entity,kb\nbill,,\nMay,gates,\nMay,Q1,other\n")
    with build(tmp_path, [Entity("first", "first"), *RECORDS], name="rebuilt") as rebuilt:
        assert rebuilt["gates"].id != kb["gates"].id
        for each in kb, rebuilt:
            [linked] = Linker.open(each, model="prior", mentions="all", corrections=str(path))(["bill May"])
            assert [(link.text, link.entity, link.score) for link in linked.links] == [("May", "gates", 1.0)]


def test_short_names_follow_the_corrections(tmp_path):
    records = [
        Entity("mary", "Mary Smith", types=("person",)), Entity("town", "Smith"),
        Alias("Mary Smith", "mary"), Alias("Smith", "town"),
    ]  # fmt: skip
    path = tmp_path / "a.csv"
    path.write_text("text,entity,document,start\nSmith,,0,17\n")
    with build(tmp_path, records, name="people") as people:
        linker = Linker.open(people, model="prior", references=True, corrections=path)
        text = "Mary Smith came. Smith left. So Mary smiled."
        [linked] = linker([text])
        assert [(link.text, link.entity) for link in linked.links] == [
            ("Mary Smith", "mary"), ("Mary", "mary"),
        ]  # fmt: skip
        [linked] = MultiKBLinker([Linker.open(people, model="prior", corrections=path)], references=True)(
            [text]
        )
        assert [link.text for link in linked.links] == ["Mary Smith", "Mary"]
