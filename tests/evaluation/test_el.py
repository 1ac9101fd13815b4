"""The files of entity linking, and its score."""

import itertools
import json
import lzma
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.evaluation import (
    GoldDocument,
    Labelled,
    LinkScore,
    Redirects,
    links_of,
    read_gold_documents,
    read_links,
    read_redirects,
    score_document,
    score_links,
    write_links,
)
from kgkit.types import Document, Link, LinkCandidate, LinkedDocument

RIVER = {
    "doc_id": 7,
    "tokens": ["The", "Rhône", "leaves", "𝒟", "Lake", "Geneva", "at", "noon", "."],
    "sentences": [[0, 5], [5, 9]],
    "mentions": [
        {"start": 1, "end": 2, "entity": "Rhône", "type": "LOC"},
        {"start": 4, "end": 6, "entity": "Lake Geneva", "crosses_sentence": True},
        {"start": 3, "end": 4, "entity": None},
    ],
    "split": "by hand",
}
NOTHING = {"doc_id": "8", "tokens": [], "sentences": [], "mentions": []}


@pytest.fixture
def put(tmp_path):
    def write(content, name="mini.jsonl"):
        """Write bytes, or records as JSON lines."""
        path = tmp_path / name
        if not isinstance(content, bytes):
            content = "".join(json.dumps(record) + "\n" for record in content).encode()
        path.write_bytes(content)
        return path

    return write


# -- documents


def test_tokens_are_joined_by_spaces_and_sentences_by_newlines(put):
    first, second = read_gold_documents(put([RIVER, NOTHING]))
    document = first.document
    assert (document.id, document.text) == ("7", "The Rhône leaves 𝒟 Lake\nGeneva at noon .")
    assert [document.text[a:b] for a, b in document.tokens] == RIVER["tokens"]
    assert [document.text[a:b] for a, b in document.sentences] == document.text.split("\n")
    assert second == GoldDocument(Document("8", "", [], [], []), [])


def test_mentions_are_code_point_ranges_with_ids_and_their_entities_beside_them(put):
    [found] = read_gold_documents(put([RIVER]))
    assert [(m.id, m.start, m.end, m.text) for m in found.document.mentions] == [
        ("7.m0", 4, 9, "Rhône"),
        ("7.m1", 19, 30, "Lake\nGeneva"),
        ("7.m2", 17, 18, "𝒟"),
    ]
    assert found.entities == ["Rhône", "Lake Geneva", None]
    assert found.gold == [Labelled(4, 9, "Rhône"), Labelled(19, 30, "Lake Geneva"), Labelled(17, 18, None)]


def test_without_sentences_all_tokens_are_joined_by_spaces(put):
    [found] = read_gold_documents(put([{key: RIVER[key] for key in ("doc_id", "tokens", "mentions")}]))
    assert found.document.sentences is None
    assert found.document.text == " ".join(RIVER["tokens"])


def test_an_empty_sentence_is_left_out_and_tokens_between_sentences_stay(put):
    [found] = read_gold_documents(
        put([{"doc_id": 1, "tokens": [*"abcd"], "sentences": [[0, 1], [1, 1], [2, 4]], "mentions": []}])
    )
    assert (found.document.text, found.document.sentences) == ("a\nb\nc d", [(0, 1), (4, 7)])


def river(**changes):
    return json.dumps({**RIVER, "doc_id": 9, **changes}).encode()


def mentions(*spans, entity: object = "A"):
    return river(mentions=[{"start": start, "end": end, "entity": entity} for start, end in spans])


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"doc_id": 9, "tokens"', "truncated"),
        (b"[]", "Expected `object`"),
        (b'{"doc_id": 9, "tokens": []}', "`mentions`"),
        (b'{"x":' * 5000, "document"),
        (b'{"doc_id": "\xff"}', "not UTF-8"),
        (river(doc_id=True), "doc_id"),
        (river(doc_id=""), "empty id"),
        (river(doc_id=7), "'7', those of line 1 and 2"),
        (river(doc_id="7"), "'7', those of line 1 and 2"),
        (river(sentences=[[0, 5], [4, 9]]), "4 to 9, .* 5 to 9"),
        (river(sentences=[[0, 10]]), "0 to 10, .* 0 to 9"),
        (river(sentences=[[3, 2]]), "3 to 2, .* 0 to 9"),
        (mentions((8, 10)), "8 to 10, .* 0 to 9"),
        (mentions((-1, 1)), "-1 to 1, .* 0 to 9"),
        (mentions((2, 2)), "2 to 2, .* 0 to 9"),
        (mentions((2, 3), (2, 3)), "document '9': mentions 1 and 2"),
        (mentions((2, 3), entity=""), "empty entity"),
        (mentions((2, 3), entity=5), "entity"),
        (river(tokens=[" "] * 9), "white space"),
    ],
)
def test_a_bad_line_is_reported_with_its_number_after_the_documents_before_it(put, line, value):
    path = put(json.dumps(RIVER).encode() + b"\n" + line + b"\n")
    documents = read_gold_documents(path)
    assert next(documents).document.id == "7"
    with pytest.raises(SourceError, match=value) as caught:
        next(documents)
    assert (caught.value.path, caught.value.line) == (path, 2)


def test_a_file_without_documents_is_refused_and_a_missing_one_is_not_there(put, tmp_path):
    with pytest.raises(SourceError, match="no document"):
        list(read_gold_documents(put(b"\n")))
    for read in (read_gold_documents, read_redirects, read_links):
        with pytest.raises(NotThere, match="nowhere"):
            list(read(tmp_path / "nowhere.jsonl"))


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@given(st.lists(words, max_size=8), st.data())
def test_every_offset_gives_back_the_token_of_the_file(tmp_path_factory, tokens, data):
    count = len(tokens)
    cuts = sorted(data.draw(st.lists(st.integers(0, count), max_size=4)))
    sentences = [*itertools.pairwise(cuts)]
    places = st.tuples(st.integers(0, count), st.integers(0, count)).map(sorted)
    spans = [
        (start, end)
        for start, end in data.draw(st.lists(places, max_size=3, unique_by=tuple))
        if "".join(tokens[start:end]).strip()
    ]
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    marked = [{"start": start, "end": end, "entity": None} for start, end in spans]
    record = {"doc_id": 1, "tokens": tokens, "sentences": sentences, "mentions": marked}
    path.write_text(json.dumps(record))
    [found] = read_gold_documents(path)
    document = found.document
    assert [document.text[a:b] for a, b in document.tokens] == tokens
    assert [document.text[a:b] for a, b in document.sentences] == [
        " ".join(tokens[a:b]) for a, b in sentences if a < b
    ]
    for mention, (first, last) in zip(document.mentions, spans, strict=True):
        assert mention.text == document.text[mention.start : mention.end]
        assert document.tokens[first][0] == mention.start
        assert document.tokens[last - 1][1] == mention.end


# -- redirects


def test_titles_that_lead_to_one_page_have_one_name():
    page = Redirects({"Big_Apple": "New_York", "New York": "New_York_City", "Loop": "Pool", "Pool": "Loop"})
    assert {page(title) for title in ("Big Apple", "Big_Apple", "New York", "New_York_City")} == {
        "New York City"
    }
    assert page("Pool") == page("Loop") == "Loop"
    assert page("Else_where") == "Else where"
    assert page.titles("New York") == ["Big Apple", "New York", "New York City"]
    assert page.titles("Else_where") == ["Else where"]


@given(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("abcdef")))
def test_redirects_agree_with_following_them(targets):
    page = Redirects(targets)
    for title in "abcdef":
        assert page(page(title)) == page(title) == page(targets.get(title, title))
        reached = title
        for _ in targets:
            reached = targets.get(reached, reached)
        # So many steps lead to the end, or into the loop.
        assert page(title) == page(reached)
        assert reached in targets or page(title) == reached


def test_redirects_are_read_from_a_json_object(put):
    assert read_redirects(put(lzma.compress(b'{"A_b": "C"}'), "r.json.xz"))("A b") == "C"
    for content in (b"[]", b'{"a": 1}', b'{"a": "b"', b'{"a": "\xff"}'):
        with pytest.raises(SourceError, match="expected"):
            read_redirects(put(content, "r.json"))


# -- predictions


spans = st.tuples(st.integers(0, 9), st.integers(1, 9)).map(lambda pair: (pair[0], pair[0] + pair[1]))
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\t\n\r\ufeff"), min_size=1)
labelled = st.builds(lambda span, entity: Labelled(span[0], span[1], entity), spans, st.none() | names)
of_a_document = st.lists(labelled, max_size=3, unique_by=lambda each: (each.start, each.end))


@given(st.dictionaries(names, of_a_document, max_size=3))
def test_links_survive_writing_and_reading(tmp_path_factory, documents):
    path = tmp_path_factory.getbasetemp() / "any.tsv.gz"
    write_links(path, documents.items())
    assert read_links(path) == {name: links for name, links in documents.items() if links}


@pytest.mark.parametrize(
    ("name", "entity"),
    [("", "a"), ("a\tb", "a"), ("a", "b\tc"), ("a", "b\n"), ("a\r", "b"), ("\ufeffa", "b")],
)
def test_what_would_break_a_line_is_refused_and_the_old_file_stays(tmp_path, name, entity):
    path = tmp_path / "out.tsv"
    path.write_text("old")
    with pytest.raises(UsageError, match="no place for"):
        write_links(path, [("fine", [Labelled(0, 1, "a")]), (name, [Labelled(0, 1, entity)])])
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("7\t4\t9\n", "found 3"),
        ("7\t4\t9\ta\tb\n", "found 5"),
        ("7\tfour\t9\ta\n", "code points"),
        ("7\t9\t9\ta\n", "code points"),
        ("7\t-1\t9\ta\n", "code points"),
        ("\t4\t9\ta\n", "expected an id"),
        ("7\t4\t" + "9" * 5000 + "\ta\n", "code points"),
        ("7\t0\t1\tb\n", "twice"),
    ],
)
def test_a_bad_line_of_links_is_reported_with_its_number(put, line, message):
    path = put(f"7\t0\t1\ta\n\n{line}".encode(), "links.tsv")
    with pytest.raises(SourceError, match=message) as caught:
        read_links(path)
    assert (caught.value.path, caught.value.line) == (path, 3)


def test_links_of_a_linker_have_the_candidates_they_were_chosen_from():
    shown = [LinkCandidate("a", 0.5, 0.5), LinkCandidate("b", 0.5, 0.5)]
    link = Link(0, 1, "x", "kb", "a", None, "", 0.5, False, shown)
    nil = Link(2, 3, "y", "kb", None, None, "", 1.0, True, [])
    assert links_of(LinkedDocument("d", "x y", "prior", [link, nil])) == [
        Labelled(0, 1, "a", ("a", "b")),
        Labelled(2, 3, None, ()),
    ]


# -- scores


def test_a_link_is_right_if_span_and_page_are_those_of_a_gold_mention():
    gold = [Labelled(0, 3, "A b"), Labelled(4, 6, "C"), Labelled(7, 9, "D")]
    links = [Labelled(0, 3, "A_b"), Labelled(4, 6, "old C")]
    found = score_document(gold, links, Redirects({"old_C": "C"}))
    assert (found.right, found.links, found.mentions) == (2, 2, 3)
    assert (found.precision, found.recall, found.f1) == (1, 2 / 3, 4 / 5)
    assert score_document(gold, links).right == 1


def test_every_kind_of_error_has_its_count():
    gold = [
        Labelled(0, 3, "A"), Labelled(10, 13, "B"), Labelled(20, 23, "C"), Labelled(30, 33, "D"),
        Labelled(40, 43, "E"), Labelled(50, 53, "F"), Labelled(60, 63, None), Labelled(70, 73, None),
    ]  # fmt: skip
    links = [
        Labelled(0, 3, "A", ("A",)),
        Labelled(10, 13, "X", ("X", "B")),
        Labelled(20, 23, None, ("X",)),
        Labelled(30, 33, "X"),
        Labelled(42, 45, "E", ("E",)),
        Labelled(60, 63, "X", ("X",)),
        Labelled(72, 75, "X", ("X",)),
        Labelled(80, 83, "X", ("X",)),
        Labelled(90, 93, None, ()),
    ]
    assert score_document(gold, links) == LinkScore(
        documents=1, right=1, wrong_choice=1, no_candidate=1, wrong_entity=1, misplaced=1, missed=1, nil=2,
        link_wrong=2, link_on_nil=1, link_misplaced=2, link_nowhere=1,
        precisions=Fraction(1, 7), recalls=Fraction(1, 6), f1s=Fraction(2, 13),
    )  # fmt: skip


def test_ranges_that_only_touch_do_not_overlap():
    found = score_document([Labelled(3, 5, "A")], [Labelled(0, 3, "A"), Labelled(5, 6, "A")])
    assert (found.missed, found.misplaced, found.link_nowhere, found.link_misplaced) == (1, 0, 2, 0)


def test_a_link_to_any_entity_of_a_mention_is_right():
    page = Redirects({"Berne": "Bern"})
    gold = [Labelled(0, 4, "Q70", others=("Bern", "http://x.example/Bern"))]
    for entity in ("Q70", "Bern", "Berne", "http://x.example/Bern"):
        score = score_document(gold, [Labelled(0, 4, entity, ())], page)
        assert (score.right, score.link_wrong, score.f1) == (1, 0, 1.0)
    assert score_document(gold, [Labelled(0, 5, "Bern")], page).misplaced == 1
    wrong = score_document(gold, [Labelled(0, 4, "Bonn", ("Bonn", "Berne"))], page)
    assert (wrong.wrong_choice, wrong.link_wrong) == (1, 1)
    assert score_document(gold, [Labelled(0, 4, None, ("Bonn",))], page).no_candidate == 1
    # A system may name several, too.
    assert score_document([Labelled(0, 4, "Bern")], [Labelled(0, 4, "Q1", others=("Bern",))], page).right == 1


def test_a_link_on_a_gold_nil_costs_precision_and_a_predicted_nil_is_no_link():
    found = score_document(
        [Labelled(0, 1, None), Labelled(2, 3, "A")], [Labelled(0, 1, "B"), Labelled(2, 3, None)]
    )
    assert (found.links, found.mentions, found.nil, found.link_on_nil) == (1, 1, 1, 1)
    assert (found.precision, found.recall, found.accuracy) == (0, 0, 0)


def test_accuracy_is_over_the_mentions_whose_span_was_found():
    gold = [Labelled(0, 1, "A"), Labelled(2, 3, "B"), Labelled(4, 5, "C"), Labelled(6, 7, None)]
    found = score_document(gold, [Labelled(0, 1, "A"), Labelled(2, 3, None), Labelled(6, 7, "X")])
    assert (found.accuracy, found.recall) == (1 / 2, 1 / 3)


def test_macro_scores_are_means_over_documents_and_an_empty_document_left_alone_is_perfect():
    perfect, empty = score_document([Labelled(0, 1, "A")], [Labelled(0, 1, "A")]), score_document([], [])
    half = score_document([Labelled(0, 1, "A"), Labelled(2, 3, "B")], [Labelled(0, 1, "A")])
    spoiled = score_document([], [Labelled(0, 1, "A")])
    found = perfect + empty + half + spoiled
    assert found.documents == 4
    assert (found.macro_precision, found.macro_recall) == (3 / 4, 5 / 8)
    assert found.macro_f1 == pytest.approx((1 + 1 + 2 / 3 + 0) / 4)
    assert (found.precision, found.recall) == (2 / 3, 2 / 3)


def test_a_span_that_comes_twice_is_refused():
    twice = [Labelled(0, 1, "A"), Labelled(0, 1, "B")]
    for gold, links in ((twice, []), ([], twice)):
        with pytest.raises(UsageError, match="have the span of another"):
            score_document(gold, links)


def test_links_of_another_system_are_scored_by_document(put, caplog):
    data = put([RIVER, {**RIVER, "doc_id": "other"}])
    links = read_links(put("7\t4\t9\tRhône\n7\t17\t18\t𝒟\nelsewhere\t0\t1\ta\n".encode(), "links.tsv"))
    found = score_links(read_gold_documents(data), links)
    assert (found.documents, found.right, found.links, found.mentions) == (2, 1, 2, 4)
    assert "links to 1 documents have no gold" in caplog.text and "'elsewhere'" in caplog.text


def slow_score(gold, links, page):
    """Count, pair by pair, as the definitions say."""
    counts = dict.fromkeys(LinkScore.__struct_fields__[1:-3], 0)

    def same_span(one: Labelled, other: Labelled) -> bool:
        return one.start == other.start and one.end == other.end

    def overlap(one: Labelled, other: Labelled) -> bool:
        return bool({*range(one.start, one.end)} & {*range(other.start, other.end)})

    for mention in gold:
        there = [link for link in links if same_span(mention, link)]
        if mention.entity is None:
            counts["nil"] += 1
        elif [link for link in there if link.entity and page(link.entity) == page(mention.entity)]:
            counts["right"] += 1
        elif there and there[0].candidates is None:
            counts["wrong_entity"] += 1
        elif there and page(mention.entity) in [page(each) for each in there[0].candidates]:
            counts["wrong_choice"] += 1
        elif there:
            counts["no_candidate"] += 1
        elif any(overlap(mention, link) for link in links):
            counts["misplaced"] += 1
        else:
            counts["missed"] += 1
    for link in links:
        there = [mention for mention in gold if same_span(mention, link)]
        if link.entity is None:
            continue
        if there and there[0].entity is None:
            counts["link_on_nil"] += 1
        elif there:
            counts["link_wrong"] += page(link.entity) != page(there[0].entity)
        elif any(overlap(mention, link) for mention in gold):
            counts["link_misplaced"] += 1
        else:
            counts["link_nowhere"] += 1
    return counts


entities = st.sampled_from("abc")
labels = st.builds(
    lambda span, entity, candidates: Labelled(span[0], span[1], entity, candidates),
    spans,
    st.none() | entities,
    st.none() | st.lists(entities, max_size=2).map(tuple),
)
of_spans = st.lists(labels, max_size=8, unique_by=lambda each: (each.start, each.end))


@given(of_spans, of_spans, st.dictionaries(entities, entities, max_size=2))
def test_the_score_agrees_with_the_slow_definition(gold, links, targets):
    page = Redirects(targets)
    found = score_document(gold, links, page)
    expected = slow_score(gold, links, page)
    assert {name: getattr(found, name) for name in expected} == expected
    assert found.mentions == sum(1 for mention in gold if mention.entity)
    assert found.links == sum(1 for link in links if link.entity)
    if found.mentions and found.links:
        assert (found.macro_precision, found.macro_recall) == (found.precision, found.recall)
        assert found.macro_f1 == found.f1


@given(st.lists(st.tuples(of_spans, of_spans), max_size=4))
def test_scores_add_up_in_any_order(documents):
    scores = [score_document(gold, links) for gold, links in documents]
    assert sum(scores, LinkScore()) == sum(reversed(scores), LinkScore())


# -- the shared data


@pytest.mark.parametrize(
    ("split", "documents", "mentions", "linked", "sentences"),
    [("testa", 216, 5917, 4791, 3250), ("testb", 231, 5616, 4485, 3453)],
)
def test_the_shared_data_read_as_their_table_says(shared_data, split, documents, mentions, linked, sentences):
    path = shared_data / "aida" / f"aida_{split}.jsonl.xz"
    if not path.exists():
        pytest.skip(f"no {path}")
    found = list(read_gold_documents(path))
    entities = [entity for each in found for entity in each.entities]
    assert (len(found), len(entities), sum(entity is not None for entity in entities)) == (
        documents, mentions, linked,
    )  # fmt: skip
    assert sum(len(each.document.sentences) for each in found) == sentences
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        told = [mention["text"] for line in lines for mention in json.loads(line)["mentions"]]
    texts = [mention.text for each in found for mention in each.document.mentions]
    assert [text.replace("\n", " ") for text in texts] == told
    perfect = score_links(found, {each.document.id: each.gold for each in found})
    assert (perfect.right, perfect.links, perfect.f1, perfect.macro_f1) == (linked, linked, 1, 1)
