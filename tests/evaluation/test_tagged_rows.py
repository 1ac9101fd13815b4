"""Rows of tokens and tags: the files of K-BERT's tagging tasks, joined tokens, scores without types."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.evaluation.ner import Name, NameScore, NameScores, chunks, score_names, writing_names
from kgkit.evaluation.tagged_rows import (
    PADDING,
    TaggedRow,
    joined,
    read_tagged_rows,
    read_tags,
    release_spans,
    score_release_spans,
)
from kgkit.text import token_spans

HEADER = "text_a\tlabel\n"
FILE = HEADER + (
    "胸 部 C T 示 肺 炎\tB-BodyPart I-BodyPart B-Examine I-Examine O B-Disease I-Disease\n"
    "无 异 常 。\tO O O O\n"
)


@pytest.fixture
def put(tmp_path):
    def write(content):
        path = tmp_path / "rows.tsv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def found_in(document):
    return [(document.document.text[name.start : name.end], name.type) for name in document.names]


# -- files ------------------------------------------------------------------


def test_each_row_is_a_document_of_one_sentence_with_its_names(put):
    first, second = read_tagged_rows(put(FILE))
    assert (first.document.id, second.document.id) == ("1", "2")
    assert first.document.text == "胸部CT示肺炎"
    assert first.document.sentences == [(0, 7)]
    assert first.document.tokens == [(place, place + 1) for place in range(7)]
    assert first.names == [Name(0, 2, "BodyPart"), Name(2, 4, "Examine"), Name(5, 7, "Disease")]
    assert (second.document.text, second.names) == ("无异常。", [])


def test_columns_in_another_order_further_ones_line_ends_and_blank_lines_change_nothing(put):
    plain = list(read_tagged_rows(put(FILE)))
    turned = "".join(
        "\t".join(["x", *reversed(line.split("\t"))]) + "\n" for line in FILE.splitlines()
    ).replace("x\tlabel", "source\tLabel ", 1)
    for content in (
        turned,
        FILE.replace("\n", "\r\n"),
        "\ufeff" + FILE,
        FILE.replace("\n", "\n\n"),
        FILE.rstrip("\n"),
        FILE.replace(" ", "  ").replace("\t", " \t "),
    ):
        assert list(read_tagged_rows(put(content))) == plain


def test_white_space_other_than_a_space_can_be_a_token(put):
    [row] = read_tags(put(HEADER + "\u3000 李 \xa0 \x7f\tO B-PER O O\n"))
    assert row == TaggedRow("1", ["\u3000", "李", "\xa0", "\x7f"], ["O", "B-PER", "O", "O"])
    [document] = read_tagged_rows(put(HEADER + "\u3000 李 明 \xa0\tO B-PER I-PER O\n"))
    assert (document.document.text, found_in(document)) == ("\u3000李明\xa0", [("李明", "PER")])


def test_a_name_that_is_cut_off_by_the_beginning_of_its_row_is_read_as_conlleval_reads_it(put):
    path = put(HEADER + "腱 反 射\tI-BodyPart O O\n腹 痛\tB-BodyPart I-Symptom\n")
    assert [found_in(one) for one in read_tagged_rows(path)] == [
        [("腱", "BodyPart")],
        [("腹", "BodyPart"), ("痛", "Symptom")],
    ]
    assert [release_spans(row.tags) for row in read_tags(path)] == [[], [(0, 2)]]


def test_documents_are_written_as_conlleval_reads_them(put, tmp_path):
    first, _ = read_tagged_rows(put(FILE))
    with writing_names(tmp_path / "out.txt") as write:
        write(first, [Name(0, 2, "BodyPart")])
    assert (tmp_path / "out.txt").read_text().splitlines()[2:5] == [
        "胸 B-BodyPart B-BodyPart", "部 I-BodyPart I-BodyPart", "C B-Examine O",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", r"rows.tsv: there is nothing in it: expected a first line that names the columns text_a, label"),
        (HEADER, "rows.tsv:1: it names columns, and ends: there is no row in it"),
        ("腹 痛\tO O\n", r"rows.tsv:1: expected a first line .* text_a, label, .*: text_a is not there"),
        ("text_a\ttags\n", "rows.tsv:1: expected a first line .*: label is not there"),
        ("label\ttext_a\tlabel\n", "rows.tsv:1: expected a first line .*: label comes more than once"),
        (HEADER + "腹 痛\tO O\n腹 痛\tO\n", "rows.tsv:3: expected a tag for each .*; found 2 tokens, 1 tags"),
        (HEADER + "腹 痛\tO O O\n", "rows.tsv:2: expected a tag for each .*; found 2 tokens, 3 tags"),
        (HEADER + " \tO\n", "rows.tsv:2: expected a tag for each .*; found 0 tokens, 1 tags"),
        (HEADER + "腹 痛\n", r"rows.tsv:2: expected 2 tab-separated fields \(text_a, label\), found 1"),
        (HEADER + "腹\tO\n腹 痛\tO E-X\n", "rows.tsv:3: a tag is 'E-X'; it is O, B-TYPE or I-TYPE"),
        (HEADER + "腹 痛\tB I\n", "rows.tsv:2: a tag is 'B'; it is O, B-TYPE or I-TYPE"),
        (HEADER.encode() + "腹\tO\n".encode() + "疼\tO\n".encode("gb18030"), "rows.tsv:3: not UTF-8"),
    ],
)
def test_what_is_no_such_file_is_told_with_its_line(put, content, told):
    path = put(content)
    for read in (read_tags, read_tagged_rows):
        with pytest.raises(SourceError, match=told):
            list(read(path))


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(NotThere, match="no file"):
        list(read_tagged_rows(tmp_path / "none"))


# -- text -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("患 者 腹 痛 。", "患者腹痛。"),
        ("C T 示 1 . 5 c m", "CT示1.5cm"),  # characters: a surface such as CT can be found
        ("I - 1 3 1", "I-131"),
        ("使 用 iPhone 5 S 。", "使用iPhone 5 S。"),  # one word is longer, so 5 and S are words too
        ("GDP 增 长", "GDP增长"),
        ("New York 市", "New York市"),
        ("AT & T said : yes", "AT&T said:yes"),
        ("it 's what I don 't", "it's what I don 't"),  # 's is a token of its own, don't would be one
        ("don ' t", "don' t"),
        ("don 't 't", "don 't 't"),  # what is before a space has no part in a word behind it
        ("naïve été", "naïve été"),
        ("e \u0301 tude", "e \u0301 tude"),  # a mark alone would belong to the letter before
        ("コーヒー cup 苹 果", "コーヒーcup苹果"),
        ("x", "x"),
    ],
)
def test_chinese_stays_together_and_words_stay_apart(tokens, text):
    found, spans = joined(tokens.split(" "))
    assert found == text
    assert [found[start:end] for start, end in spans] == tokens.split(" ")


letters = st.sampled_from("abtTs1é\u0301'’.-_腹痛コ々。\u3000𠀀")
token_lists = st.lists(st.text(letters, min_size=1, max_size=4), min_size=1, max_size=8)


@given(token_lists)
def test_tokens_stand_where_they_are_said_to_with_at_most_a_space_between_them(tokens):
    text, spans = joined(tokens)
    assert [text[start:end] for start, end in spans] == tokens
    edges = [(0, 0), *spans, (len(text), len(text))]
    assert {text[end:start] for (_, end), (start, _) in pairwise(edges)} <= {"", " "}
    assert (spans[0][0], spans[-1][1]) == (0, len(text))
    if all(len(token) == 1 for token in tokens):
        assert text == "".join(tokens)


@given(token_lists.filter(lambda tokens: any(len(token) > 1 for token in tokens)))
def test_no_word_of_a_text_reaches_over_the_edge_of_a_token(tokens):
    text, spans = joined(tokens)
    edges = {end for _, end in spans}
    assert not [
        text[start:end] for start, end in token_spans(text) if not edges.isdisjoint(range(start + 1, end))
    ]


@given(token_lists.filter(lambda tokens: any(len(token) > 1 for token in tokens)))
def test_each_space_between_words_is_needed(tokens):
    text, spans = joined(tokens)
    for (_, end), (start, _) in pairwise(spans):
        if start > end:
            without = text[:end] + text[start:]
            assert any(first < end < last for first, last in token_spans(without)), (text, end)


# -- scores -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("", []),
        ("O B-A I-A O", [(1, 3)]),
        ("B-A B-A I-A", [(0, 1), (1, 3)]),
        ("B-A I-B I-A O", [(0, 3)]),  # whatever the type
        ("I-A I-A O B-A", [(3, 4)]),  # nothing has begun
        ("S-A B-A E-A O", [(0, 1), (1, 3)]),
        (f"B-A I-A {PADDING} I-A", [(0, 2)]),
        ("B-A [ENT] I-A", [(0, 3)]),
    ],
)
def test_a_span_begins_at_a_begin_tag_and_goes_on_to_the_next_or_to_outside(tags, spans):
    assert release_spans(tags.split()) == spans


any_tags = st.sampled_from(["O", PADDING, "B-A", "B-B", "I-A", "I-B", "S-A"])


def begun_by_pattern(tags):
    """The slow twin: one letter for each tag, and a pattern."""
    letters = "".join("b" if tag[0] in "BS" else "o" if tag in ("O", PADDING) else "i" for tag in tags)
    return [match.span() for match in re.finditer("bi*", letters)]


@given(st.lists(any_tags))
def test_spans_are_a_begin_tag_and_all_that_goes_on_behind_it(tags):
    assert release_spans(tags) == begun_by_pattern(tags)


@given(st.lists(st.tuples(any_tags, any_tags)))
def test_spans_that_begin_and_end_alike_are_right(pairs):
    gold, found = [one for one, _ in pairs], [one for _, one in pairs]
    meant, told = begun_by_pattern(gold), begun_by_pattern(found)
    right = sum(span == other for span in told for other in meant)
    assert score_release_spans(gold, found) == NameScore(right, len(told), len(meant))


def names_of(tags):
    return [Name(*one) for one in chunks(tags)]


def name_tags(kind, more):
    return [f"B-{kind}", *[f"I-{kind}"] * more]


parts = st.one_of(st.just(["O"]), st.builds(name_tags, st.sampled_from("AB"), st.integers(0, 2)))
well_formed = st.lists(parts, max_size=6).map(lambda some: [tag for part in some for tag in part])


@given(well_formed, well_formed)
def test_on_well_formed_tags_it_is_the_score_of_spans_and_typed_f1_is_never_higher(gold, found):
    length = max(len(gold), len(found))
    gold, found = ([*tags, *["O"] * (length - len(tags))] for tags in (gold, found))
    scores = score_names(names_of(gold), names_of(found))
    assert score_release_spans(gold, found) == scores.spans
    assert scores.overall.f1 <= scores.spans.f1


def test_on_ill_formed_tags_typed_and_released_scores_differ_as_is_said():
    gold, found = ["B-A", "I-A", "O", "B-B"], ["B-B", "I-A", "O", "I-B"]
    assert score_release_spans(gold, found) == NameScore(right=1, predicted=1, gold=2)
    assert score_names(names_of(gold), names_of(found)).overall == NameScore(right=1, predicted=3, gold=2)
    assert score_names(names_of(gold), names_of(found)).spans == NameScore(right=1, predicted=3, gold=2)


def test_scores_of_rows_add_up_and_nothing_below_a_ratio_is_zero():
    rows = [(["B-A", "O"], ["B-B", "O"]), (["O"], ["B-A"]), (["B-A"], ["O"])]
    together = sum((score_release_spans(*row) for row in rows), NameScore())
    assert together == NameScore(1, 2, 2)
    assert score_release_spans([], []).f1 == 0


def test_tags_of_another_number_of_tokens_are_refused():
    with pytest.raises(UsageError, match="1 tags for 2 tokens: expected one for each"):
        score_release_spans(["O", "O"], ["O"])


# -- the real files ---------------------------------------------------------

COUNTS = {
    "medical_ner/train": (6_919, 23_735, 15),
    "medical_ner/dev": (939, 3_409, 1),
    "medical_ner/test": (755, 2_721, 1),
    "financial_ner/dev": (2_910, 6_611, 0),
    "financial_ner/test": (3_066, 6_951, 0),
    "msra_ner/dev": (2_318, 3_819, 0),
    "msra_ner/test": (4_636, 7_707, 0),
}
"""Rows, entities, and names that the beginning of a row has cut off: no begin tag, so no entity there."""

TYPES = {
    "medical_ner": {"BodyPart", "Cure", "Disease", "Examine", "Symptom"},
    "financial_ner": {"ORG", "PER", "POS"},
    "msra_ner": {"LOC", "ORG", "PER"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS)
def test_the_files_of_the_tasks_have_their_rows_and_entities(shared_data, name):
    path = shared_data / "chinese_tasks" / f"{name}.tsv.xz"
    rows, documents = list(read_tags(path)), list(read_tagged_rows(path))
    entities = sum(len(release_spans(row.tags)) for row in rows)
    cut_off = sum(row.tags[0].startswith("I-") for row in rows)
    assert (len(rows), entities, cut_off) == COUNTS[name]
    assert sum(len(one.names) for one in documents) == entities + cut_off
    assert {one.type for document in documents for one in document.names} == TYPES[name.split("/")[0]]
    for row, one in zip(rows, documents, strict=True):
        assert one.document.text == "".join(row.tokens)  # they were cut into characters
    gold = sum((score_release_spans(row.tags, row.tags) for row in rows), NameScore())
    assert gold == NameScore(entities, entities, entities)
    typed = sum((score_names(one.names, one.names) for one in documents[:200]), NameScores())
    assert typed.overall.f1 == 1
