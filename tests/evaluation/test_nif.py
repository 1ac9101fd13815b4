"""NIF: what is written, what is read of it and of graphs that others have written, what is refused."""

import gzip
import io
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.evaluation import Labelled, nif
from kgkit.evaluation.el_files import GoldError, GoldMention, make_gold_document
from kgkit.evaluation.entity_iris import entity_of_iri, iri_of_entity
from kgkit.evaluation.nif import (
    NIF_HEAD,
    NifLimits,
    NifPhrase,
    nif_statements,
    nil_iri,
    read_contexts,
    read_nif,
    write_nif,
    writing_nif,
)
from kgkit.types import Document

pytest.importorskip("pyoxigraph")

PREFIXES = """@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .
@prefix itsrdf: <http://www.w3.org/2005/11/its/rdf#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
CONTEXT = '<http://a/1#char=0,12> a nif:Context ; nif:isString "Rhone is ok." .\n'


def phrase(begin, end, *, iri="http://a/1#p", context="http://a/1#char=0,12", anchor=None, more=""):
    anchored = f'nif:anchorOf "{anchor}" ; ' if anchor is not None else ""
    return (
        f'<{iri}{begin}> a nif:Phrase ; nif:beginIndex "{begin}"^^xsd:nonNegativeInteger ; {anchored}'
        f'nif:endIndex "{end}"^^xsd:nonNegativeInteger ; nif:referenceContext <{context}> {more}.\n'
    )


def linked(iri):
    return f"; itsrdf:taIdentRef <{iri}> "


@pytest.fixture
def put(tmp_path):
    def write(body, name="data.ttl"):
        path = tmp_path / name
        path.write_text(PREFIXES + body, encoding="utf-8")
        return path

    return write


def gold(name="d 1", text="The Rhône\n“𝒟”", rows=((4, 9, "Rhône"), (11, 12, None))):
    return make_gold_document(name, text, [GoldMention(*row) for row in rows])


# -- there and back


def test_documents_are_read_as_they_were_written(tmp_path):
    documents = [gold(), gold("2/é#x", "𝒟", [(0, 1, "C++ (50 % off)/B&W?")]), gold("3", "", [])]
    write_nif(tmp_path / "a.ttl", documents)
    read = [*read_nif(tmp_path / "a.ttl")]
    assert [(each.document.id, each.document.text) for each in read] == [
        (each.document.id, each.document.text) for each in documents
    ]
    assert [each.gold for each in read] == [each.gold for each in documents]


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(texts, texts, st.text(st.characters(exclude_categories=["Cs"], exclude_characters="_ "), min_size=1))
def test_any_text_and_title_survive(tmp_path_factory, name, text, title):
    if not text.strip() or not title.strip():
        return
    path = tmp_path_factory.mktemp("nif") / "a.ttl"
    write_nif(path, [gold(name, text, [(0, len(text), title)])])
    [read] = read_nif(path)
    assert (read.document.id, read.document.text) == (name, text)
    assert read.entities == [entity_of_iri(iri_of_entity(title))]


def test_a_mention_of_all_the_text_is_another_resource_than_the_context(tmp_path):
    write_nif(tmp_path / "a.ttl", [gold("1", "Rhône", [(0, 5, "Rhône")])])
    [read] = read_nif(tmp_path / "a.ttl")
    assert read.gold == [Labelled(0, 5, "Rhône")]


def test_scores_are_confidences_of_phrases(tmp_path):
    with writing_nif(tmp_path / "a.ttl") as write:
        write(Document("1", "ab"), [Labelled(0, 1, "A")], [0.25])
    assert b'itsrdf:taConfidence "0.25"^^xsd:double' in (tmp_path / "a.ttl").read_bytes()


def test_nothing_is_written_where_a_text_cannot_be_encoded(tmp_path):
    with pytest.raises(UsageError, match="document '1' has half of a surrogate pair"):
        write_nif(tmp_path / "a.ttl", [gold("1", "a\ud800", [])])
    assert not [*tmp_path.iterdir()]


# -- entities and their IRIs


@pytest.mark.parametrize(
    ("iri", "entity"),
    [
        ("http://en.wikipedia.org/wiki/New_York_City", "New York City"),
        ("https://de.wikipedia.org/wiki/M%C3%BCnchen", "München"),
        ("http://dbpedia.org/resource/AC/DC", "AC/DC"),
        ("http://fr.dbpedia.org/resource/Rh%C3%B4ne", "Rhône"),
        ("http://dbpedia.org/page/Rhone", "Rhone"),
        ("http://www.wikidata.org/entity/Q602", "Q602"),
        ("https://www.wikidata.org/wiki/Q602", "Q602"),
        ("http://aksw.org/notInWiki/Smith", None),
        ("https://aksw.org/notInWiki/Smith", None),
        ("urn:kb:Rhone", "urn:kb:Rhone"),
        ("http://en.wikipedia.org/wiki/", "http://en.wikipedia.org/wiki/"),
        ("http://notwikipedia.org/wiki/A", "http://notwikipedia.org/wiki/A"),
    ],
)
def test_an_iri_stands_for_a_title_an_item_nil_or_itself(iri, entity):
    assert entity_of_iri(iri) == entity


@pytest.mark.parametrize(
    ("entity", "iri"),
    [
        ("New York City", "http://en.wikipedia.org/wiki/New_York_City"),
        ("Q602", "http://www.wikidata.org/entity/Q602"),
        ("Q6.02", "http://en.wikipedia.org/wiki/Q6.02"),
        ("http://a/b", "http://a/b"),
        ("urn:kb:1", "urn:kb:1"),
        ("http://a/ b", "http://en.wikipedia.org/wiki/http://a/_b"),
        ("50 % <b>", "http://en.wikipedia.org/wiki/50_%25_%3Cb%3E"),
    ],
)
def test_an_entity_has_an_iri(entity, iri):
    assert iri_of_entity(entity) == iri


# -- graphs of others


def test_phrases_stand_anywhere_and_come_in_the_order_of_the_text(put):
    late = phrase(9, 11, more=linked("http://dbpedia.org/resource/OK"))
    early = phrase(0, 5, anchor="Rhone", more=linked("http://www.wikidata.org/entity/Q602"))
    [read] = read_nif(put(late + CONTEXT + early))
    assert (read.document.id, read.document.text) == ("http://a/1", "Rhone is ok.")
    assert read.gold == [Labelled(0, 5, "Q602"), Labelled(9, 11, "OK")]


def test_a_phrase_without_an_entity_or_of_no_wiki_is_nil_and_words_are_no_mentions(put):
    word = phrase(6, 8).replace("nif:Phrase", "nif:Word")
    nil = phrase(9, 11, more=linked("http://aksw.org/notInWiki/ok"))
    [read] = read_nif(put(CONTEXT + phrase(0, 5) + nil + word))
    assert read.gold == [Labelled(0, 5, None), Labelled(9, 11, None)]


def test_of_several_entities_the_first_that_is_not_nil_counts(put):
    more = linked("http://aksw.org/notInWiki/R") + linked("http://dbpedia.org/resource/A") + linked("urn:b")
    classed = "; itsrdf:taClassRef <http://dbpedia.org/ontology/River> "
    [read] = read_nif(put(CONTEXT + phrase(0, 5, more=more + classed)))
    assert (read.entities, read.types) == (["A"], ["http://dbpedia.org/ontology/River"])


def test_triples_about_triples_do_not_matter(put):
    own = "<http://a/1> itsrdf:taIdentRef <<( <urn:a> <urn:b> <urn:c> )>> .\n"
    [read] = read_nif(put(own + CONTEXT))
    assert (read.document.text, read.gold) == ("Rhone is ok.", [])


@pytest.mark.parametrize("nested", ["[ <urn:p> ", "( "])
def test_nodes_that_are_nested_deeply_are_refused_and_nothing_crashes(put, nested):
    with pytest.raises(SourceError, match="no Turtle: "):
        [*read_nif(put("<urn:a> <urn:b> " + nested * 20_000))]


def test_addresses_in_a_graph_are_not_opened(put, tmp_path):
    (tmp_path / "other.ttl").write_text(PREFIXES + CONTEXT)
    own = f"<file://{tmp_path}/other.ttl> a nif:Context ; nif:sourceUrl <http://localhost:1/x> .\n"
    with pytest.raises(SourceError, match="no nif:Context with a nif:isString"):
        [*read_nif(put(own))]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (CONTEXT + phrase(0, 99), "mention 1 spans 0 to 99"),
        (CONTEXT + phrase(0, 5, anchor="Rhine"), "which is 'Rhone' in the text, not 'Rhine'"),
        (CONTEXT + phrase(0, 5) + phrase(0, 5, iri="http://a/1#q"), "have one span"),
        (CONTEXT + phrase("x", 5), "no nif:beginIndex and nif:endIndex that count"),
        (CONTEXT + phrase("-1", 5), "no nif:beginIndex"),
        (CONTEXT + phrase("9" * 30, 5), "no nif:beginIndex"),
        (CONTEXT + phrase(0, 5, context="http://a/2"), "of <http://a/2>, which has no nif:isString"),
        (phrase(0, 5), "which has no nif:isString"),
        (CONTEXT + CONTEXT.replace("char=0,12", "offset_0_12"), "two contexts are of the document"),
        ("<urn:a> <urn:b> <urn:c> .\n", "no nif:Context with a nif:isString in it"),
        ("", "no nif:Context"),
        ("<urn:a> <urn:b> .\n", "no Turtle: "),
        (CONTEXT + '<urn:a> a "', "no Turtle: "),
        ("<relative> a nif:Context .\n", "no Turtle: "),
    ],
)
def test_a_graph_that_contradicts_itself_is_refused(put, body, message):
    path = put(body)
    with pytest.raises(SourceError, match=message) as caught:
        [*read_nif(path)]
    assert caught.value.path == path


def test_an_error_of_syntax_has_its_line(put):
    with pytest.raises(SourceError, match="no Turtle") as caught:
        [*read_nif(put(CONTEXT + "<urn:a> urn:b .\n"))]
    assert caught.value.line == 5


def test_offsets_that_count_otherwise_are_refused_with_the_reason(put):
    text = '<http://a/1#char=0,12> a nif:Context ; nif:isString "𝒟 Rhone" .\n'
    with pytest.raises(SourceError, match="offsets count Unicode code points"):
        [*read_nif(put(text + phrase(3, 7, anchor="Rhone")))]


def test_a_missing_file_and_a_file_that_is_no_utf8_are_refused(tmp_path):
    (tmp_path / "a.ttl").write_bytes(b'<urn:a> <urn:b> "\xff" .')
    with pytest.raises(SourceError, match="no Turtle"):
        [*read_nif(tmp_path / "a.ttl")]
    with pytest.raises(NotThere):
        [*read_nif(tmp_path / "none.ttl")]


def test_more_than_may_be_in_memory_is_refused(tmp_path, monkeypatch):
    write_nif(tmp_path / "a.ttl", [gold(str(number)) for number in range(100)])
    monkeypatch.setattr(nif, "MAX_RESOURCES", 50)
    with pytest.raises(SourceError, match="more than 50 texts and annotations"):
        [*read_nif(tmp_path / "a.ttl")]
    monkeypatch.setattr(nif, "MAX_BYTES", 5000)
    with pytest.raises(SourceError, match="MiB of NIF, which is read into memory: split it"):
        [*read_nif(tmp_path / "a.ttl")]


def test_a_compressed_file_that_swells_is_refused_before_it_is_in_memory(tmp_path, monkeypatch):
    body = PREFIXES + CONTEXT + '<urn:a> <urn:b> "' + "x" * 8_000_000 + '" .\n'
    (tmp_path / "a.ttl.gz").write_bytes(gzip.compress(body.encode()))
    monkeypatch.setattr(nif, "MAX_BYTES", 3 << 20)
    with pytest.raises(SourceError, match="more than 3 MiB of NIF"):
        [*read_nif(tmp_path / "a.ttl.gz")]


def test_the_package_that_parses_is_named_where_it_is_missing():
    code = "import sys; sys.modules['pyoxigraph'] = None\nfrom kgkit.evaluation.nif import read_nif\n"
    code += "from pathlib import Path\nprint([*read_nif(Path('x'))])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert "MissingExtra: this needs the package 'pyoxigraph': pip install 'kgkit[formats]'" in done.stderr


# -- graphs that are no files -----------------------------------------------


def contexts(*statements, limits=None):
    """Return the contexts of a graph from memory."""
    return read_contexts(io.BytesIO((PREFIXES + "".join(statements)).encode()), limits=limits)


TWO = '<urn:a> nif:isString "Rome" .\n<urn:b> nif:isString "Bern" .\n'
PHRASE = '<urn:a#1> a nif:Phrase ; nif:referenceContext <urn:a> ; nif:beginIndex "0" ; nif:endIndex "4" .\n'


def test_contexts_come_in_the_order_of_the_graph_with_their_phrases():
    read = contexts(PHRASE, TWO)
    assert [(each.iri, each.text) for each in read] == [("urn:a", "Rome"), ("urn:b", "Bern")]
    assert [[iri for iri, _ in each.phrases] for each in read] == [["urn:a#1"], []]


def test_a_phrase_without_an_entity_says_its_span_and_none_other():
    ((iri, phrase),) = contexts(PHRASE, TWO)[0].phrases
    assert phrase.span(iri) == (0, 4)
    assert phrase.is_phrase and not phrase.is_blank
    assert "entity" not in phrase.values


def test_a_phrase_that_is_a_blank_node_is_marked_as_such():
    ((iri, phrase),) = contexts(PHRASE.replace("<urn:a#1>", "_:x"), TWO)[0].phrases
    assert phrase.is_blank
    assert ":" not in iri


def test_what_is_marked_as_neither_phrase_nor_entity_is_no_phrase():
    assert contexts(PHRASE.replace("a nif:Phrase", "a nif:Word"), TWO)[0].phrases == []


@pytest.mark.parametrize("missing", ["nif:beginIndex", "nif:endIndex"])
def test_a_phrase_without_offsets_is_refused_when_its_span_is_asked_for(missing):
    ((iri, phrase),) = contexts(PHRASE.replace(missing, "<urn:x>"), TWO)[0].phrases
    with pytest.raises(GoldError, match="the phrase <urn:a#1> has no nif:beginIndex"):
        phrase.span(iri)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (NifLimits(2), "more than 2 texts and annotations"),
        (NifLimits(3, 5), "more than 5 triples"),
    ],
)
def test_a_graph_from_memory_is_held_to_limits(limits, message):
    assert len(contexts(PHRASE, TWO, limits=NifLimits(3, 6))) == 2
    with pytest.raises(SourceError, match=message):
        contexts(PHRASE, TWO, limits=limits)


def test_an_error_of_a_graph_from_memory_names_no_file():
    with pytest.raises(SourceError, match=r"^no Turtle: ") as caught:
        contexts("nonsense")
    assert (caught.value.path, caught.value.line) == (None, 4)


def test_statements_are_read_as_they_were_written():
    text = 'Rome "in" \\ Italy 😀'
    phrases = [
        NifPhrase("urn:a#1", 0, 4, "http://x.example/Rome", 0.5),
        NifPhrase("urn:a#2", 18, 19, nil_iri("😀 x"), None),
    ]
    graph = NIF_HEAD + "".join(nif_statements("urn:a", text, phrases))
    (context,) = read_contexts(io.BytesIO(graph.encode()))
    assert (context.iri, context.text) == ("urn:a", text)
    assert [
        (iri, *phrase.span(iri), phrase.values["surface"], phrase.values["entity"])
        for iri, phrase in context.phrases
    ] == [
        ("urn:a#1", 0, 4, "Rome", "http://x.example/Rome"),
        ("urn:a#2", 18, 19, "😀", "http://aksw.org/notInWiki/%F0%9F%98%80_x"),
    ]
    assert graph.count("itsrdf:taConfidence") == 1


ENTITIES = {  # by its IRIs, the entities of a phrase
    ("http://www.wikidata.org/entity/Q72", "http://dbpedia.org/resource/Z%C3%BCrich"): {"Q72", "Zürich"},
    ("http://dbpedia.org/resource/Bern", "http://de.wikipedia.org/wiki/Bern"): {"Bern"},
    ("http://aksw.org/notInWiki/Basel", "http://www.wikidata.org/entity/Q78"): {"Q78"},
    ("http://aksw.org/notInWiki/Chur", "http://aksw.org/notInWiki/Cuira"): set(),
    ("http://a.example/Thun", "urn:x:thun", "http://www.wikidata.org/entity/Q68118"):
        {"http://a.example/Thun", "urn:x:thun", "Q68118"},
}  # fmt: skip


@pytest.mark.parametrize("iris", ENTITIES)
def test_the_references_of_a_phrase_are_a_set(iris, put, tmp_path):
    read = []
    for order in (iris, iris[::-1]):
        one = ", ".join(f"<{iri}>" for iri in order)
        [document] = read_nif(put(CONTEXT + phrase(0, 5, more=f"; itsrdf:taIdentRef {one} ")))
        [label] = document.gold
        assert set(label.entities) == ENTITIES[iris]
        read.append(label)
    apart = "".join(f"<http://a/1#p0> itsrdf:taIdentRef <{iri}> .\n" for iri in reversed(iris))
    [document] = read_nif(put(apart + CONTEXT + phrase(0, 5)))
    assert read == document.gold * 2
    write_nif(tmp_path / "again.ttl", [document])
    assert [again.gold for again in read_nif(tmp_path / "again.ttl")] == [document.gold]
