"""Texts of NIF as documents, and their links as NIF."""

import pytest

from kgkit.evaluation.nif import NifLimits, read_nif
from kgkit.serving.nif import phrase_iri, read_documents, write_documents
from kgkit.serving.problems import Problem
from kgkit.turtle import MAX_NESTED
from kgkit.types import Document, Link, LinkedDocument, Mention

LIMITS = NifLimits(1_000, 10_000)
HEAD = """@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .
@prefix itsrdf: <http://www.w3.org/2005/11/its/rdf#> .
"""
CONTEXT = 'nif:isString "😀 Berlin and 北京" ; a nif:Context .\n'


def phrase(subject, start, end, more=""):
    return (
        f'{subject} a nif:Phrase ; nif:referenceContext <urn:a#char=0,15> ; nif:beginIndex "{start}" ; '
        f'nif:endIndex "{end}" {more}.\n'
    )


def graph(*phrases):
    return (HEAD + "<urn:a#char=0,15> " + CONTEXT + "".join(phrases)).encode()


def problem_of(content, limits=LIMITS, task=None):
    with pytest.raises(Problem) as caught:
        read_documents(content, limits, task)
    assert caught.value.status == 422
    return caught.value.detail


# -- reading ----------------------------------------------------------------


def test_phrases_are_mentions_in_the_order_of_the_text():
    content = graph(phrase("<urn:a#2>", 13, 15), phrase("<urn:a#1>", 2, 8, '; nif:anchorOf "Berlin" '))
    (document,) = read_documents(content, LIMITS)
    assert document.mentions == [
        Mention(2, 8, "Berlin", id="urn:a#1"),
        Mention(13, 15, "北京", id="urn:a#2"),
    ]


def test_a_phrase_that_says_an_entity_already_is_linked_again():
    content = graph(phrase("<urn:a#1>", 2, 8, "; itsrdf:taIdentRef <http://x.example/Q64> "))
    (document,) = read_documents(content, LIMITS)
    assert [mention.text for mention in document.mentions] == ["Berlin"]


def test_a_phrase_that_is_a_blank_node_gets_an_iri():
    (document,) = read_documents(graph(phrase("[]", 2, 8)), LIMITS)
    assert [mention.id for mention in document.mentions] == ["urn:a#char=2,8"]


@pytest.mark.parametrize(
    ("task", "phrases", "mentions"),
    [("a2kb", 1, None), ("a2kb", 0, None), ("d2kb", 1, 1), ("d2kb", 0, 0), (None, 1, 1), (None, 0, None)],
)
def test_the_task_says_whether_phrases_are_linked(task, phrases, mentions):
    content = graph(*[phrase("<urn:a#1>", 2, 8)] * phrases)
    (document,) = read_documents(content, LIMITS, task)
    linked_mentions = document.mentions
    assert (linked_mentions if linked_mentions is None else len(linked_mentions)) == mentions


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "no nif:Context", id="empty"),
        pytest.param(b"a b", "line 1: no Turtle", id="no Turtle"),
        pytest.param(b"\xff", "no Turtle", id="no UTF-8"),
        pytest.param(HEAD.encode() + b"<a> nif:isString 'x' .", "line 3: no Turtle", id="a relative IRI"),
        pytest.param((HEAD + "[] " + CONTEXT).encode(), "is a blank node", id="a blank context"),
        pytest.param(graph(phrase("<urn:a#1>", 8, 2)), "spans 8 to 2", id="reversed"),
        pytest.param(graph(phrase("<urn:a#1>", 2, 16)), "spans 2 to 16", id="outside"),
        pytest.param(graph(phrase("<urn:a#1>", 2, 2)), "spans 2 to 2", id="empty span"),
        pytest.param(graph(phrase("<urn:a#1>", -2, 2)), "has no nif:beginIndex", id="negative"),
        pytest.param(graph(phrase("<urn:a#1>", "9" * 30, 2)), "has no nif:beginIndex", id="huge"),
        pytest.param(
            graph(phrase("<urn:a#1>", 2, 8, '; nif:anchorOf "Bern" ')), "not 'Bern'", id="another text"
        ),
        pytest.param(
            (HEAD + phrase("<urn:a#1>", 2, 8)).encode(), "which has no nif:isString", id="without a context"
        ),
    ],
)
def test_a_graph_that_cannot_be_linked_is_refused_with_what_is_wrong(content, message):
    assert message in problem_of(content)


def test_triples_that_say_nothing_are_counted_too():
    content = graph() + b"".join(b"<urn:x> <urn:y> %d .\n" % number for number in range(10))
    assert len(read_documents(content, NifLimits(5, 12))) == 1
    assert problem_of(content, NifLimits(5, 11)) == "more than 11 triples"


@pytest.mark.parametrize("depth", [3 * MAX_NESTED, 50_000])
def test_nested_triples_are_refused_before_they_are_parsed(depth):
    nested = b"<urn:x> <urn:y> " + b"<<( <urn:x> <urn:y> " * depth + b"1 " + b")>>" * depth + b" ."
    assert "which begin triples in triples" in problem_of(graph() + nested)


def test_as_many_nested_triples_as_are_parsed_are_read_past():
    depth = MAX_NESTED
    nested = b"<urn:x> <urn:y> " + b"<<( <urn:x> <urn:y> " * depth + b"1 " + b")>>" * depth + b" ."
    assert len(read_documents(graph() + nested, LIMITS)) == 1


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"(" * 100_000, id="lists"),
        pytest.param(b"<urn:x> <urn:y> " + b"[ <urn:z> " * 50_000, id="nodes"),
        pytest.param(b"".join(b"@prefix p%d: <urn:%d> .\n" % (i, i) for i in range(30_000)), id="prefixes"),
        pytest.param(b'<urn:x> <urn:y> "' + b"x" * 900_000, id="a token"),
        pytest.param(b'<urn:x> <urn:y> """' + b"\n" * 900_000, id="a long string"),
    ],
)
def test_a_graph_of_one_thing_only_is_refused_in_time(content):
    problem_of(content)


# -- writing ----------------------------------------------------------------


def linked(*links, text="😀 Berlin and 北京"):
    return LinkedDocument("urn:a", text, "prior", list(links))


def link(start, end, entity, text, **fields):
    return Link(start, end, text, "cities", entity, None, "", 0.75, entity is None, [], **fields)


def written(iri, document):
    content = write_documents([Document(iri, document.text)], [document])
    return content.decode()


def test_senses_of_a_word_have_iris_of_their_own():
    url = "https://x.example/lemma/bank"
    document = linked(link(0, 4, "bank.n.01", "bank", url=url), text="bank")
    content = write_documents([Document("urn:a", "bank")], [document], by_label=True)
    assert f"<{url}#bank.n.01>" in content.decode()


def test_the_same_context_comes_with_its_links(tmp_path):
    document = linked(link(2, 8, "Q64", "Berlin"), link(13, 15, "Peking", "北京"))
    path = tmp_path / "a.ttl"
    path.write_text(written("http://x.example/d#char=0,15", document), encoding="utf-8")
    (gold,) = read_nif(path)
    assert gold.document.text == document.text
    assert [(label.start, label.end, label.entity) for label in gold.gold] == [
        (2, 8, "Q64"),
        (13, 15, "Peking"),
    ]


def test_a_link_has_its_confidence_and_its_iri():
    turtle = written("urn:a#char=0,15", linked(link(2, 8, "Q64", "Berlin")))
    assert "<urn:a#char=2,8> a nif:Phrase" in turtle
    assert 'itsrdf:taConfidence "0.75"^^xsd:double' in turtle
    assert "itsrdf:taIdentRef <http://www.wikidata.org/entity/Q64>" in turtle


def test_nil_is_an_iri_of_its_own():
    assert "<http://aksw.org/notInWiki/%E5%8C%97%E4%BA%AC>" in written(
        "urn:a", linked(link(13, 15, None, "北京"))
    )


def test_a_phrase_that_came_along_has_the_iri_that_it_had(tmp_path):
    assert "<urn:a#1> a nif:Phrase" in written("urn:a", linked(link(2, 8, "Q64", "Berlin", id="urn:a#1")))


@pytest.mark.parametrize(
    ("context", "iri"),
    [
        ("http://x.example/d#char=0,15", "http://x.example/d#char=2,8"),
        ("http://x.example/d#offset_0_15", "http://x.example/d#offset_2_8"),
        ("http://x.example/d", "http://x.example/d#offset_2_8"),
        ("http://x.example/d#char=2,8", "http://x.example/d#phrase_2_8"),
        ("http://x.example/d#offset_2_8", "http://x.example/d#phrase_2_8"),
    ],
)
def test_a_phrase_is_named_as_its_context_is_and_never_the_same(context, iri):
    assert phrase_iri(context, 2, 8) == iri


def test_texts_with_quotes_and_controls_come_out_as_they_went_in():
    text = 'a "b" \\ \n\r\t\x00 \x7f <<'
    (document,) = read_documents(written("urn:a", linked(text=text)).encode(), LIMITS)
    assert document.text == text
