"""Surfaces that are like a text: by the index, beside a comparison with every surface."""

import random
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA, Indel

import kgkit
from kgkit.errors import UsageError
from kgkit.kb import similar
from kgkit.kb.similar import proposed_surfaces, similar_surfaces
from kgkit.store.trigrams import SHORT, TrigramIndex, TrigramWriter, grams_of
from tests.cli_helpers import run
from tests.old_format import publish_as_format_2
from tests.small_kb import lexicon_kb, surfaces_kb

WORDS = "hippopotamus new york city times square garden domestic dog house united states kingdom".split()


def index_of(folder: Path, surfaces: list[str]) -> TrigramIndex:
    with TrigramWriter(folder / "index") as index:
        index.add(surface.encode() for surface in surfaces)
        index.finish()
    return TrigramIndex(folder / "index")


def similarity_by_definition(text: str, surface: str) -> float:
    plain = 0.99 * OSA.normalized_similarity(text, surface) + 0.01 * Indel.normalized_similarity(
        text, surface
    )
    if " " not in text or " " not in surface:
        return plain
    words, others = " ".join(sorted(text.split(" "))), " ".join(sorted(surface.split(" ")))
    return max(plain, 0.95 * Indel.normalized_similarity(words, others))


@pytest.fixture(scope="module")
def phrases(tmp_path_factory):
    """An index of 400 phrases of one to three words, and the phrases."""
    choice = random.Random(5)
    phrases = sorted({" ".join(choice.sample(WORDS, choice.randint(1, 3))) for _ in range(700)})[:400]
    return index_of(tmp_path_factory.mktemp("phrases"), phrases), phrases


@given(data=st.data())
def test_the_most_similar_surfaces_are_those_of_a_comparison_with_all(phrases, data):
    index, surfaces = phrases
    text = list(data.draw(st.sampled_from(surfaces)))
    for _ in range(data.draw(st.integers(0, 2))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.sampled_from(string.ascii_lowercase))
    name = "".join(text)
    check_most_similar(index, surfaces, name)


def check_most_similar(index, surfaces, name):
    """Compare what is found with the five best of all surfaces that have a gram of the name."""
    grams = {*grams_of(name.encode(), bigrams=len(name) <= SHORT + 2).tolist()}
    comparable = [
        surface
        for surface in surfaces
        if not grams.isdisjoint(grams_of(surface.encode(), bigrams=len(surface) <= SHORT).tolist())
    ]
    expected = sorted((similarity_by_definition(name, surface) for surface in comparable), reverse=True)[:5]
    results = [each.similarity for each in similar_surfaces(index, name, 5)]
    assert results == pytest.approx(expected, abs=1e-5)
    return [surface for surface in surfaces if surface not in comparable]


def test_a_surface_without_a_gram_in_common_is_not_proposed(phrases):
    index, surfaces = phrases
    strangers = check_most_similar(index, surfaces, "aew")
    assert strangers and {*strangers}.isdisjoint(proposed_surfaces(index, "aew"))


@pytest.mark.parametrize(
    "text, surface",
    [
        ("hipopotamus", "hippopotamus"),  # left out
        ("hippoppotamus", "hippopotamus"),  # inserted
        ("hippopotanus", "hippopotamus"),  # replaced
        ("hippoptoamus", "hippopotamus"),  # exchanged
        ("city york new", "new york city"),
        ("yrok new", "new york"),
    ],
)
def test_typing_errors_and_words_in_another_order_find_the_surface(tmp_path, text, surface):
    index = index_of(tmp_path, ["hippopotamus", "new york", "new york city", "potamus", "city"])
    assert similar_surfaces(index, text, 1)[0].surface == surface


@pytest.mark.parametrize("text, surface", [("dgo", "dog"), ("dag", "dog"), ("do", "dog"), ("bnak", "bank")])
def test_short_surfaces_are_proposed_though_no_trigram_is_left(tmp_path, text, surface):
    index = index_of(tmp_path, ["bank", "dog", "elephants", "xylophones"])
    assert surface in [each.surface for each in similar_surfaces(index, text, 2)]


def test_the_same_text_has_similarity_1_and_comes_first(tmp_path):
    index = index_of(tmp_path, ["dog", "dogs", "hot dog"])
    first, second = similar_surfaces(index, "dog", 2)
    assert (first.surface, first.similarity) == ("dog", 1.0)
    assert second.similarity < 1


def test_surfaces_that_are_as_similar_come_in_alphabetical_order(tmp_path):
    index = index_of(tmp_path, ["cat", "bat", "rat", "hat"])
    assert [each.surface for each in similar_surfaces(index, "xat", 3)] == ["bat", "cat", "hat"]


@pytest.mark.parametrize("text", ["qqqqqq", "\0", "😀😀😀", "\ud800"])
def test_a_text_that_shares_nothing_finds_nothing(tmp_path, text):
    assert similar_surfaces(index_of(tmp_path, ["dog", "cat"]), text, 3) == []


def test_surfaces_of_other_scripts_are_found(tmp_path):
    index = index_of(tmp_path, ["苹果公司", "北京大学", "москва"])
    assert similar_surfaces(index, "苹果公可", 1)[0].surface == "苹果公司"
    assert similar_surfaces(index, "масква", 1)[0].surface == "москва"


def test_only_the_shortest_lists_are_read_and_the_best_of_the_proposed_compared(tmp_path, monkeypatch):
    surfaces = [f"street number {number}" for number in range(2_000)]
    index = index_of(tmp_path, [*surfaces, "street zygote"])
    assert len(proposed_surfaces(index, "street zygoet")) == similar._MAX_PROPOSED
    assert similar_surfaces(index, "street zygoet", 1)[0].surface == "street zygote"
    monkeypatch.setattr(similar, "_MAX_POSTINGS", 10)
    assert proposed_surfaces(index, "street zygoet") == ["street zygote"]


# -- on a handle -----------------------------------------------------------------------------


def test_a_handle_folds_the_text(tmp_path):
    with surfaces_kb(tmp_path) as kb:
        assert kb.similar_surfaces("NEW   Yrok", k=1)[0].surface == "new york"
        assert kb.similar_surfaces("New York", k=0) == []
        with pytest.raises(UsageError, match="k is -1"):
            kb.similar_surfaces("York", k=-1)


def test_fuzzy_candidates_are_the_same_with_and_without_the_index(tmp_path):
    with lexicon_kb(tmp_path) as kb:
        publish_as_format_2(kb.store.folder, tmp_path, "old")
        surfaces = list(kb.surfaces())
        with kgkit.open_kb("old", tmp_path) as old:
            assert (kb.store.trigrams is None, old.store.trigrams is None) == (False, True)
            for surface in surfaces[:40]:
                text = surface[:-1] + "q"
                expected = process.extractOne(text, surfaces, scorer=fuzz.ratio, score_cutoff=80)
                answer = kb.candidates(text, fuzzy=True)
                assert answer == old.candidates(text, fuzzy=True)
                assert bool(len(answer)) == (expected is not None)


def test_fuzzy_candidates_read_no_surface_where_there_is_an_index(tmp_path, monkeypatch):
    with surfaces_kb(tmp_path) as kb:
        monkeypatch.setattr(type(kb), "surfaces", None)
        assert kb.candidates("new yorkk", fuzzy=True) == kb.candidates("new york", prefer_case=False)
        done = run("candidates", "new yorkk", "--fuzzy", "--json", "--kb", "surfaces", "--home", tmp_path)
        assert (done.code, "New_York_City" in done.out) == (0, True)
