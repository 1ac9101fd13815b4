"""The linker without training: what becomes of mentions, and what a link says."""

import json
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kgkit
from kgkit.candidates import AliasConfig, AliasGenerator, LemmaConfig, LemmaGenerator
from kgkit.drawing.links import render
from kgkit.errors import ClosedKB, NotThere, UsageError
from kgkit.linking import Linker, LinkSettings, Scorer, link
from kgkit.linking.linker import best_links
from kgkit.linking.settings import LinkArguments
from kgkit.types import Document, Link, LinkedDocument, Mention
from tests.cli_helpers import run
from tests.small_kb import SENSES, lexicon_kb, surfaces_kb

TEXT = "Attorneys general took off the hot dogs."

unhurried = settings(deadline=None)  # a busy machine is no failure


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lexicon")
    lexicon_kb(folder).close()
    return folder


@pytest.fixture(scope="module")
def kb(home):
    with kgkit.open_kb("lexicon", home=home) as opened:
        yield opened


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory):
    with surfaces_kb(tmp_path_factory.mktemp("surfaces")) as opened:
        yield opened


@pytest.fixture(params=[None, "graph"])
def linker(request, kb):
    return Linker.open(kb, coherence=request.param)


def links(linked: LinkedDocument) -> list[tuple[str, str | None]]:
    return [(link.text, link.entity) for link in linked.links]


def test_a_text_is_linked_and_its_links_do_not_overlap(linker):
    (linked,) = linker([TEXT])
    assert links(linked) == [
        ("Attorneys general", "attorney_general.n"),
        ("took off", "take_off.v"),
        ("hot dogs", "hot_dog.n"),
    ]
    assert linked.text == TEXT


def test_a_link_says_what_and_how_sure(kb):
    (linked,) = Linker.open(kb)(["She saw it."])
    (found,) = linked.links
    assert (found.start, found.end, found.text, found.kb, found.nil) == (4, 7, "saw", "lexicon", False)
    assert (found.entity, found.sense, found.label) == ("see.v", "see%see.v", "see")
    assert found.score == pytest.approx(121 / 127, abs=1e-6)
    assert [(row.entity, row.sense, row.label) for row in found.candidates] == [
        ("see.v", "see%see.v", "see"),
        ("saw.n", "saw%saw.n", "saw"),
        ("saw.v", "saw%saw.v", "saw"),
    ]
    assert [row.score for row in found.candidates] == [row.prior for row in found.candidates]


def test_strings_are_documents_named_by_their_place(linker):
    linked = list(linker(["dog", Document("mine", "geese"), "men"]))
    assert [document.id for document in linked] == ["0", "mine", "2"]
    assert {document.model for document in linked} == {linker.model}


@pytest.mark.parametrize("text", ["", " \n", "???", "unicorn"])
def test_a_text_without_mentions_has_no_links(linker, text):
    (linked,) = linker([text])
    assert (linked.text, linked.links) == (text, [])


@unhurried
@given(
    text=st.text()
    | st.lists(st.sampled_from("dog dogs hot saw 苹 ß the \n\n big well".split(" "))).map(" ".join)
)
def test_links_lie_where_they_say_and_scores_are_probabilities(kb, text):
    for coherence in (None, "graph"):
        (linked,) = Linker.open(kb, coherence=coherence, nil=True)([text])
        at = 0
        for found in linked.links:
            assert at <= found.start < found.end
            assert text[found.start : found.end] == found.text
            scores = [row.score for row in found.candidates]
            assert scores == sorted(scores, reverse=True)
            assert all(0 <= score <= 1 for score in [found.score, *scores])
            assert found.score == scores[0]
            assert sum(scores) <= 1 + 1e-5
            at = found.end


def test_given_mentions_are_kept_in_the_order_of_their_start_and_may_overlap(linker):
    given = [
        Mention(31, 39, "hot dogs", id="c"),
        Mention(18, 26, "took off", id="b"),
        Mention(18, 22, "took", id="a", pos="v"),
    ]
    (linked,) = linker([Document("d", TEXT, mentions=given)])
    assert [(found.id, found.text, found.entity) for found in linked.links] == [
        ("b", "took off", "take_off.v"),
        ("a", "took", "take.v"),
        ("c", "hot dogs", "hot_dog.n"),
    ]


def test_a_given_mention_without_candidates_is_dropped_or_marked(kb):
    document = Document("d", "unicorn", mentions=[Mention(0, 7, "unicorn", id="u")])
    assert next(Linker.open(kb)([document])).links == []
    for coherence in (None, "graph"):
        (found,) = next(Linker.open(kb, nil=True, coherence=coherence)([document])).links
        assert (found.entity, found.sense, found.label, found.nil, found.score) == (None, None, "", True, 1.0)
        assert (found.candidates, found.id) == ([], "u")


def test_what_scores_below_the_threshold_is_dropped_or_marked(kb):
    (dropped,) = Linker.open(kb, threshold=0.96)(["She saw geese."])
    assert links(dropped) == [("geese", "goose.n")]
    (marked,) = Linker.open(kb, threshold=0.96, nil=True)(["She saw geese."])
    assert links(marked) == [("saw", None), ("geese", "goose.n")]
    assert marked.links[0].score == pytest.approx(1 - 121 / 127, abs=1e-6)
    assert marked.links[0].candidates[0].entity == "see.v"


def test_a_score_at_the_threshold_is_not_below_it(kb):
    (linked,) = Linker.open(kb)(["She saw geese."])
    for found in linked.links:
        assert found in next(Linker.open(kb, threshold=found.score)(["She saw geese."])).links
    assert len(next(Linker.open(kb, threshold=1.0)(["geese"])).links) == 1


@pytest.mark.parametrize("coherence", [None, "graph"])
def test_none_of_these_wins_where_it_is_the_likeliest(kb, coherence):
    for null, expected in ((0.3, "goose.n"), (0.6, None)):
        generator = LemmaGenerator(kb, LemmaConfig(null=null))
        config = LinkSettings(coherence=coherence, nil=True)
        ((found,),) = [linked.links for linked in Linker(kb, config, generator=generator)(["geese"])]
        assert (found.entity, found.nil) == (expected, expected is None)
        assert found.candidates[0].score == pytest.approx(1 - null)


@pytest.mark.parametrize("top_k", [0, 1, 2, 99])
def test_top_k_is_how_many_candidates_are_shown(linker, kb, top_k):
    few = Linker(kb, LinkSettings(top_k=top_k, coherence=linker.settings.coherence))
    (found,) = next(few(["saw"])).links
    (whole,) = next(linker(["saw"])).links
    assert found.candidates == whole.candidates[:top_k]
    assert (found.entity, found.score) == (whole.entity, whole.score)


def test_how_many_candidates_are_considered_is_a_setting(kb):
    for most, expected in ((None, SENSES), (30, 30), (2, 2)):
        (found,) = next(Linker.open(kb, max_candidates=most, top_k=99)(["thing"])).links
        assert len(found.candidates) == expected


def test_an_alias_kb_is_linked_by_its_surfaces(surfaces):
    (linked,) = Linker.open(surfaces, max_candidates=1)(["Tom在北京大学吃turkey"])
    assert links(linked) == [("北京大学", "Peking_University"), ("turkey", "Turkey_(bird)")]
    assert linked.links[0].sense is None
    assert linked.links[0].label == "Peking University"
    assert len(linked.links[1].candidates) == 1
    only = AliasGenerator(surfaces, AliasConfig(matches="all"))
    (linked,) = Linker(surfaces, LinkSettings(overlaps="keep"), generator=only)(["苹果公司"])
    assert [found.text for found in linked.links] == ["苹果", "苹果公司", "果"]


def test_a_stream_is_not_read_ahead(linker):
    read = []

    def documents() -> Iterator[str]:
        for number in range(3):
            read.append(number)
            yield TEXT

    stream = linker(documents())
    assert read == []
    next(stream)
    assert read == [0]
    assert len(list(stream)) == 2


def test_documents_are_not_written_to(linker):
    given = Document("d", TEXT, mentions=[Mention(0, 9, "Attorneys"), Mention(10, 17, "general")])
    before = pickle.dumps(given)
    list(linker([given]))
    assert pickle.dumps(given) == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"coherence": "magic"},
        {"nil": "keep"},
        {"threshold": 1.5},
        {"threshold": -0.5},
        {"threshold": float("nan")},
        {"top_k": -1},
        {"max_candidates": 0},
        {"overlaps": True},
        {"overlaps": "best"},
        {"explain": True, "top_k": 0},
        {"model": "prior", "vectors": "text"},
        {"mentions": "names", "overlaps": "score"},
    ],
    ids=str,
)
def test_wrong_settings_are_refused_before_anything_is_opened(wrong):
    name, value = [*wrong.items()][-1]
    for refused in (lambda: LinkSettings(**wrong), lambda: Linker.open("nowhere", **wrong)):
        with pytest.raises(UsageError) as error:
            refused()
        assert name in str(error.value) and str(value) in str(error.value)


def test_arguments_for_type_checkers_are_the_settings():
    assert get_type_hints(LinkArguments) == get_type_hints(LinkSettings)


def test_one_text_is_linked_by_one_call(kb, home):
    for found in (
        link(TEXT, kb),
        link(TEXT, "lexicon", home=home),
        link(TEXT, home=home),
        kgkit.link(TEXT, kb),
    ):
        assert links(found)[0] == ("Attorneys general", "attorney_general.n")
        assert (found.id, found.model) == ("0", "prior")
    assert "dog.n" in kb  # who opened it closes it
    with pytest.raises(NotThere):
        link(TEXT, "unicorns", home=home)


def test_a_linker_opens_a_kb_by_name(home):
    linker = Linker.open("lexicon", home=home)
    assert links(next(linker(["geese"]))) == [("geese", "goose.n")]
    linker.kb.close()
    with pytest.raises(ClosedKB):
        next(linker(["lawyers"]))


def test_a_linker_can_be_pickled(linker):
    expected = list(linker([TEXT, "geese saw dogs"]))
    again = pickle.loads(pickle.dumps(linker))
    assert list(again([TEXT, "geese saw dogs"])) == expected


def test_many_threads_share_a_linker(linker):
    texts = [TEXT, "geese saw dogs", "the general took leaves off"]
    expected, found = list(linker(texts)), []
    threads = [
        threading.Thread(target=lambda: found.extend(list(linker(texts)) for _ in range(5))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 30


# The record in docs/architecture.md: its fields, in their order.
DOCUMENT = ["id", "text", "model", "links"]
LINK = ["start", "end", "text", "kb", "entity", "sense", "label", "score", "nil", "candidates"]
CANDIDATE = ["entity", "prior", "score"]


def test_the_record_has_the_fields_of_the_contract_in_their_order(linker):
    (linked,) = linker([TEXT])
    record = json.loads(msgspec.json.encode(linked))
    assert list(record) == DOCUMENT
    for found in record["links"]:
        assert list(found) == [*LINK, "ids"]
        for row in found["candidates"]:
            assert list(row) == [*CANDIDATE, "sense", "label"]
    assert record["links"][0] == {
        "start": 0, "end": 17, "text": "Attorneys general", "kb": "lexicon",
        "entity": "attorney_general.n", "sense": "attorney general%attorney_general.n",
        "label": "attorney general", "score": 1.0, "nil": False,
        "candidates": [
            {"entity": "attorney_general.n", "prior": 1.0, "score": 1.0,
             "sense": "attorney general%attorney_general.n", "label": "attorney general"},
        ],
        "ids": {"sense_key": "attorney general%attorney_general.n"},
    }  # fmt: skip


def test_a_record_has_the_name_of_its_mention_only_where_it_was_given(kb, surfaces):
    document = Document(
        "d", "unicorn dog", mentions=[Mention(0, 7, "unicorn"), Mention(8, 11, "dog", id="d.1")]
    )
    nil, named = json.loads(msgspec.json.encode(next(Linker.open(kb, nil=True)([document]))))["links"]
    assert list(nil) == LINK
    assert (nil["entity"], nil["sense"], nil["nil"], nil["candidates"]) == (None, None, True, [])
    assert list(named) == [*LINK, "id", "ids"]
    (plain,) = json.loads(msgspec.json.encode(link("苹果", surfaces, top_k=1)))["links"]
    assert list(plain["candidates"][0]) == [*CANDIDATE, "label"]  # no KB of senses


def test_overlaps_can_be_kept_in_a_kb_of_aliases_too(surfaces):
    (apart,) = Linker.open(surfaces)(["苹果公司"])
    (all_of_them,) = Linker.open(surfaces, overlaps="keep")(["苹果公司"])
    assert len(all_of_them.links) > len(apart.links) == 1


@pytest.mark.parametrize("nil", [False, True])
def test_of_links_that_overlap_the_one_with_the_highest_score_may_stay(kb, nil):
    (every,) = Linker.open(kb, overlaps="keep", nil=nil)([TEXT])
    (best,) = Linker.open(kb, overlaps="score", nil=nil)([TEXT])
    assert best.links == best_links(every.links) != every.links
    # With scores alike, as of one candidate each, the longer stays.
    assert [found.text for found in best.links] == ["Attorneys general", "took off", "hot dogs"]


def test_a_shorter_mention_stays_where_its_score_is_higher(surfaces):
    scores = {"苹果": 0.9, "苹果公司": 0.5, "果": 0.8}

    class Scripted(Scorer):
        name, batch_size = "scripted", 2

        def __call__(self, documents):
            return [
                [
                    np.full(
                        len(mention.candidates), scores[mention.text] / len(mention.candidates), np.float32
                    )
                    for mention in document.mentions
                ]
                for document in documents
            ]

    config = LinkSettings(overlaps="score", max_candidates=1)  # so each mention has one score
    (linked,) = Linker(surfaces, config, scorer=Scripted())(["苹果公司"])
    assert [(found.text, found.score) for found in linked.links] == [("苹果", 0.9)]


def best_by_hand(every: list[Link]) -> list[Link]:
    """Take the best link of those that are left, and leave out what overlaps it, until none is left."""
    left, kept = list(every), []
    while left:
        best = left[0]
        for other in left[1:]:
            if other.nil != best.nil:
                better = best.nil
            elif not other.nil and other.score != best.score:
                better = other.score > best.score
            elif other.end - other.start != best.end - best.start:
                better = other.end - other.start > best.end - best.start
            else:
                better = other.start < best.start
            best = other if better else best
        kept.append(best)
        left = [one for one in left if one.end <= best.start or one.start >= best.end]
    return [one for one in every if one in kept]


@st.composite
def overlapping_links(draw: st.DrawFn) -> list[Link]:
    spans = st.tuples(st.integers(0, 12), st.integers(1, 5))
    found = draw(st.lists(st.tuples(spans, st.sampled_from([0.25, 0.5, 1.0]), st.booleans()),
                          max_size=12, unique_by=lambda one: one[0]))  # fmt: skip
    return sorted(
        (
            Link(start, start + length, "", "kb", None if nil else "e", None, "", score, nil, [])
            for (start, length), score, nil in found
        ),
        key=lambda link: (link.start, link.end),
    )


@given(overlapping_links())
@unhurried
def test_the_best_links_are_those_that_are_taken_one_at_a_time(every):
    assert best_links(every) == best_by_hand(every)


def test_one_text_is_not_taken_for_many(kb):
    with pytest.raises(TypeError, match=r"linker\(\[text\]\)"):
        Linker.open(kb)("The dog barked.")
    with pytest.raises(TypeError, match=r"a text is a str or a kgkit.Document, not bytes"):
        kgkit.link(b"The dog barked.", kb=kb)
    with pytest.raises(TypeError, match=r"not PosixPath; read it first: PATH.read_text\(\)"):
        kgkit.link(Path("letter.txt"), kb=kb)
    with pytest.raises(TypeError, match=r"a document is a str or a kgkit.Document, not int"):
        kgkit.link([1], kb=kb)


def test_several_texts_are_linked_by_one_call_and_in_a_pipe(kb):
    texts = [TEXT, "The geese.", ""]
    expected = [next(Linker.open(kb)([text])).links for text in texts]
    for found in (kgkit.link(texts, kb=kb), kgkit.link(iter(texts), kb), list(Linker.open(kb).pipe(texts))):
        assert [linked.links for linked in found] == expected
    document = Document("mine", TEXT)
    assert kgkit.link(document, kb).id == "mine" and kgkit.link([], kb) == []


def test_a_linker_of_a_name_says_what_opens_it():
    with pytest.raises(UsageError, match=r"kgkit\.Linker\.open\('wordnet'\) opens one by its name"):
        Linker("wordnet")


def test_a_linked_document_is_a_dictionary_a_page_and_a_frame(kb, home):
    linked = kgkit.link(TEXT, kb)
    line = run("link", "-", "--home", home, given=TEXT.encode()).out
    assert json.loads(json.dumps(linked.to_dict()))["links"] == json.loads(line)["links"]
    assert [link.to_dict() for link in linked] == linked.to_dict()["links"]
    assert linked.to_html() == render([linked])
    described = linked.to_html(Linker.open(kb).describe)
    assert described == render([linked], describe=Linker.open(kb).describe)
    frame = linked.to_frame()
    assert frame["entity"].tolist() == [link.entity for link in linked.links]
    assert list(kgkit.link("", kb).to_frame().columns) == list(frame.columns)
