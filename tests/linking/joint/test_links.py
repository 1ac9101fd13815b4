"""Links of the model `links-minilm`: names and none, one entity or another, in letters of all sorts."""

import pickle
from contextlib import ExitStack
from importlib.util import find_spec

import numpy as np
import pytest

import kgkit
from kgkit.encoder.finding import find_in_package
from kgkit.linking import auto
from kgkit.linking.joint import scorer as joint
from kgkit.types import Document, Mention
from tests.linking.joint.conftest import GERMAN, build_table
from tests.tiny_encoder import MINILM

NAME = "links-minilm"


@pytest.fixture(scope="module", params=["sentences read", "words alone"])
def linker(request, names_home):
    """A function that gives the open linker of a knowledge base, with the encoder and without."""
    alone = request.param == "words alone"
    if not alone and (not find_spec("torch") or find_in_package(MINILM) is None):
        pytest.skip(f"{MINILM} is not installed")
    opened = {}
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        if alone:
            patch.setattr(auto, "encoder_is_installed", lambda: False)

        def linker(kb):
            if kb not in opened:
                opened[kb] = stack.enter_context(
                    kgkit.Linker.open(kb, home=names_home, model=NAME, device="cpu", nil=True, explain=True)
                )
            return opened[kb]

        yield linker


@pytest.fixture
def links(linker):
    """A function that gives the links of a text: surfaces and entities, in order."""

    def linked(text, kb):
        [found] = linker(kb)([text])
        return [(link.text, link.entity) for link in found.links if not link.nil]

    return linked


@pytest.fixture
def without_encoder(monkeypatch):
    """Let the encoder be none that is installed."""
    monkeypatch.setattr(auto, "encoder_is_installed", lambda: False)


def test_a_word_is_no_name_where_it_is_written_as_one_is_not(links):
    assert links("I hope the new boats are ready, and we mark them with a rose.", "people") == []
    assert links("On Monday Hope Ferrars met Mark at the quay in Tarnbeck.", "people") == [
        ("Hope Ferrars", "hope"),
        ("Mark", "mark"),
        ("Tarnbeck", "tarnbeck"),
    ]


def test_a_month_is_no_person(links):
    text = "The school was closed from 3 June 1994 until the end of June. On Friday I saw June Okafor there."
    assert links(text, "people") == [("June Okafor", "june")]


def test_a_name_of_somebody_else_is_not_linked(links):
    assert ("Mark", "mark") not in links("We wrote to Mark Twain in 1890, and he never replied.", "people")


def test_a_first_word_of_a_sentence_may_be_a_name(links):
    assert ("Hope", "hope") in links("Hope said that she would come. They met Hope in Tarnbeck.", "people")
    assert ("Reading", "reading") in links("They moved from Tarnbeck to Reading last year.", "people")


def test_a_region_behind_a_city_says_which_city_it_is(links):
    for region, city in (("Ohio", "Milford-OH"), ("Maine", "Milford-ME"), ("Texas", "Milford-TX")):
        assert links(f"She was born in Milford, {region}, and went to school there.", "places")[0] == (
            "Milford",
            city,
        )


def test_a_knowledge_base_of_cities_links_no_person(links):
    assert links("Mrs Florence Whitby and Paris Hilton sang with Florence Nightingale.", "places") == []
    assert links("They spent the summer in Florence, Italy.", "places")[0] == ("Florence", "Florence")


def test_one_candidate_alone_may_be_none(linker):
    text = "He said that they hope to mark the walls."
    [linked] = linker("people")([Document("d", text, mentions=[Mention(18, 22, "hope")])])
    [link] = linked.links
    assert link.nil and link.score > 0.5
    assert [candidate.entity for candidate in link.candidates] == ["hope"]


def test_a_chat_in_lower_case_has_names(links):
    found = links("saw rose adeyemi at tarnbeck today, she says hi", "people")
    assert ("rose adeyemi", "rose") in found and ("tarnbeck", "tarnbeck") in found
    assert ("hope", "hope") not in links("i hope you are well and that the mill is open again", "people")


def test_a_headline_in_capitals_has_names(links):
    found = links("MARK TOLLUND BUILDS NEW FERRY FOR TARNBECK\nThe boat is ready.", "people")
    assert ("MARK TOLLUND", "mark") in found


def test_a_german_noun_is_no_name(links):
    assert ("Bauer", "bauer") not in links("Ein Bauer aus dem Nachbardorf brachte Kartoffeln.", "german")
    found = links("Frau Bauer fuhr am Montag mit Wilhelm Koch nach Essen.", "german")
    assert ("Wilhelm Koch", "koch") in found and ("Essen", "essen") in found


def test_capitals_of_german_are_told_by_the_texts_where_no_language_is_named(tmp_path, without_encoder):
    table = GERMAN + "müller,Jörg Müller,Müller,der Arzt und Leiter der Klinik in der Stadt,Person\n"
    document = Document("d", "Dort kam ein Bauer an.", mentions=[Mention(13, 18, "Bauer")])
    read = {}
    for name, options in {"named": ("--language", "de"), "told": (), "english": ("--language", "en")}.items():
        about = ("--aliases", "aliases|", "--description", "note", "--kind", "type")
        build_table(tmp_path, name, table, *about, *options)
        with kgkit.Linker.open(name, home=tmp_path, model=NAME) as linker:
            read[name] = linker.scorer.read(document).of_mentions
    np.testing.assert_array_equal(read["told"], read["named"])
    assert not np.array_equal(read["told"], read["english"])


def test_a_name_across_chinese_words_is_none(links):
    pytest.importorskip("jieba")
    found = links("南京市长江大桥今天通车了。", "chinese")
    assert ("南京市", "nanjing") in found and ("江大桥", "jiang") not in found


def test_scores_are_those_of_the_document_alone(linker):
    texts = [
        "On Monday Hope Ferrars met Mark at the quay in Tarnbeck.",
        "I hope that June is warm. Rose wrote from Reading.",
        "",
        "The Mills are closed, Mark said.",
    ]
    together = list(linker("people")(texts))
    for text, others in zip(texts, together, strict=True):
        [alone] = linker("people")([text])
        assert [link.entity for link in alone.links] == [link.entity for link in others.links]
        assert [link.score for link in alone.links] == pytest.approx(
            [link.score for link in others.links],
            abs=0.01,  # the encoder's products may be in bfloat16
        )


def test_parts_of_scores_add_up(linker):
    [linked] = linker("places")(["She was born in Milford, Ohio, and knew Paris well."])
    assert len(linked.links) == 3
    for link in linked.links:
        odds = [sum(candidate.parts.values()) for candidate in link.candidates]
        weights = np.exp(odds)
        assert {*link.candidates[0].parts} == {"prior", "context"}
        np.testing.assert_allclose(
            weights / (1 + weights.sum()), [candidate.score for candidate in link.candidates], atol=1e-3
        )


def test_a_threshold_is_a_probability(names_home, without_encoder):
    text = "On Monday Hope Ferrars met Mark at the quay. Hope is all."
    linked = kgkit.link(text, "people", home=names_home, model=NAME)
    for threshold in (0.3, 0.7, 0.99):
        above = kgkit.link(text, "people", home=names_home, model=NAME, threshold=threshold)
        assert above.links == [link for link in linked.links if link.score >= threshold]


def test_several_knowledge_bases_are_linked_at_once(names_home, without_encoder):
    text = "Hope Ferrars moved from Tarnbeck to Florence, Italy."
    linked = kgkit.link(text, {"people": NAME, "places": NAME}, home=names_home)
    assert {(link.kb, link.entity) for link in linked.links} >= {("people", "hope"), ("places", "Florence")}


def test_a_document_of_many_mentions_is_read_in_parts(names_home, without_encoder, monkeypatch):
    text = "On Monday Hope Ferrars met Mark at the quay in Tarnbeck. I hope that they mark it.\n\n" * 40
    with kgkit.Linker.open("people", home=names_home, model=NAME) as linker:
        [whole] = linker([text])
        monkeypatch.setattr(joint, "_MOST", 50)
        [parts] = linker([text])
    assert [(link.start, link.entity) for link in parts.links] == [
        (link.start, link.entity) for link in whole.links
    ]
    assert {link.text for link in whole.links} == {"Hope Ferrars", "Mark", "Tarnbeck"}


def test_a_scorer_can_be_pickled(names_home, without_encoder):
    text = "She was born in Milford, Ohio, and knew Paris well."
    with kgkit.Linker.open("places", home=names_home, model=NAME) as linker:
        documents = [document for document, _, _ in linker._mentions([text])]
        [scores] = linker.scorer(documents)
        [copied] = pickle.loads(pickle.dumps(linker.scorer))(documents)
    assert [each.tolist() for each in scores] == [each.tolist() for each in copied]


def test_coherence_leaves_null_its_probability(names_home, without_encoder):
    text = "We mark it in May. On Monday Hope Ferrars met Mark and Hope at the quay in Reading."
    sums = []
    for coherence in (None, "graph"):
        with kgkit.Linker.open(
            "people", home=names_home, model=NAME, coherence=coherence, nil=True, top_k=99
        ) as linker:
            [found] = linker([text])
        sums.append([sum(each.score for each in link.candidates) for link in found.links])
    assert sums[1] == pytest.approx(sums[0], abs=1e-5)
    assert min(sums[1]) < 0.5
