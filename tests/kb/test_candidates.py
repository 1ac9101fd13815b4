"""What a surface can mean, beside a count of the aliases by hand."""

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgkit.building import Alias, Entity
from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
from kgkit.store.codec import Spelling, _prefer
from kgkit.types import CANDIDATE, NO_CANDIDATES, NO_SENSE, Candidates
from tests.small_kb import ENDLESS, SIXTY_FOUR, SURFACES, build, fold, lexicon_kb, shares_by_hand, surfaces_kb

close = pytest.approx

unhurried = settings(deadline=None)  # a busy machine is no failure


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with surfaces_kb(tmp_path_factory.mktemp("surfaces"), smoothing=1.0) as opened:
        yield opened


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory):
    with lexicon_kb(tmp_path_factory.mktemp("lexicon")) as opened:
        yield opened


def meanings(kb: KnowledgeBase, text: str, **how: Any) -> dict[str, float]:
    """Return the keys of the candidates and their priors, best first."""
    return {kb.key(entity): prior for entity, _, prior in kb.candidates(text, **how)}


def agree(found: dict[str, float], expected: dict[str, float]) -> None:
    assert found == close(expected, abs=1e-6)
    assert list(found.values()) == sorted(found.values(), reverse=True)


@pytest.mark.parametrize("prefer_case", [True, False])
def test_priors_are_shares_of_the_counts(kb, prefer_case):
    for alias in SURFACES:
        for text in (alias.surface, alias.surface.lower(), alias.surface.upper(), alias.surface.title()):
            found = meanings(kb, text, prefer_case=prefer_case)
            agree(found, shares_by_hand(SURFACES, text, 1.0, prefer_case=prefer_case))
            assert not found or sum(found.values()) == close(1)


def test_the_spelling_of_the_text_is_preferred(kb):
    assert next(iter(meanings(kb, "Turkey"))) == "Turkey_(country)"
    assert next(iter(meanings(kb, "turkey"))) == "Turkey_(bird)"
    assert next(iter(meanings(kb, "US"))) == "United_States"
    assert next(iter(meanings(kb, "us"))) == "We"
    # A spelling that nobody has seen says nothing, and neither does one that is told to say nothing.
    assert meanings(kb, "tUrKeY") == meanings(kb, "turkey", prefer_case=False)


def test_a_spelling_is_evidence_and_rules_nothing_out(kb):
    assert set(meanings(kb, "US")) == set(meanings(kb, "us")) == {"United_States", "We"}


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_uncounted_meanings_share_alike_and_smoothing_makes_the_uncounted_possible(tmp_path, smoothing):
    aliases = [
        Alias("bank", "Shore"), Alias("bank", "Institute"),  # nobody counted
        Alias("mars", "Planet", 9), Alias("Mars", "God"), Alias("Mars", "Planet"),  # some did
    ]  # fmt: skip
    pages = [Entity(key) for key in ("Shore", "Institute", "Planet", "God")]
    with build(tmp_path, [*pages, *aliases], smoothing=smoothing) as kb:
        for text in ("bank", "mars", "Mars", "MARS"):
            agree(meanings(kb, text), shares_by_hand(aliases, text, smoothing, prefer_case=True))


@unhurried
@given(
    st.lists(st.tuples(st.sampled_from(["at", "At", "AT"]), st.integers(0, 2), st.integers(0, 5)), min_size=1)
)
def test_the_preference_by_case_is_the_average_of_two_shares(written):
    """Beside the formula itself, without a store: rows and shares of the spellings."""
    aliases = [Alias(surface, str(entity), count + 1) for surface, entity, count in written]
    priors = shares_by_hand(aliases, "?at?", 0, prefer_case=False) or shares_by_hand(
        aliases, "at", 0, prefer_case=False
    )
    order = sorted(priors, key=lambda key: -priors[key])
    rows = np.array([(int(key), NO_SENSE, priors[key]) for key in order], CANDIDATE)
    spelled = {
        surface: [
            (order.index(key), _share(aliases, key, surface))
            for key in order
            if _share(aliases, key, surface)
        ]
        for surface in ("at", "At", "AT")
    }
    found = [
        Spelling(surface, *map(list, zip(*pairs, strict=True))) for surface, pairs in spelled.items() if pairs
    ]
    for text in ("at", "At", "AT"):
        result = {str(entity): prior for entity, _, prior in _prefer(rows, found, text)}
        agree(result, shares_by_hand(aliases, text, 0, prefer_case=True))


def _share(aliases: Sequence[Alias], key: str, surface: str) -> float:
    own = [alias for alias in aliases if alias.key == key]
    return sum(alias.count for alias in own if alias.surface == surface) / sum(alias.count for alias in own)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("  New \n York ", "New_York_City"),
        ("STRASSE", "Road"),
        ("straße", "Road"),
        ("FINANCE", "Finance"),
        ("istanbul".replace("i", "i\u0307", 1), "Istanbul"),
        (unicodedata.normalize("NFD", "café noir"), "Coffee"),
        (unicodedata.normalize("NFD", "ゴジラ"), "Godzilla"),
        ("苹果公司", "Apple_Inc."),
        ("👩‍🔬", "Scientist"),
        ("c++", "C++"),
        (ENDLESS.upper(), "Endless"),
        (SIXTY_FOUR.upper(), "Longer"),
    ],
)
def test_a_surface_is_found_however_it_is_written(kb, text, key):
    assert next(iter(meanings(kb, text))) == key


@pytest.mark.parametrize(
    "text", ["", "   ", "unicorn", "New  Yorkish", "\ud800", "x" * 5000, "苹", "istambul"]
)
def test_an_unknown_surface_means_nothing(kb, text):
    found = kb.candidates(text, k=3, pos="n")
    assert found == NO_CANDIDATES
    assert len(found) == 0
    assert kb.decode(found) == []


def test_k_cuts_the_list_and_stretches_no_prior(kb):
    everything = list(kb.candidates("New York"))
    assert len(everything) == 2
    assert list(kb.candidates("New York", k=1)) == everything[:1]
    assert list(kb.candidates("New York", k=0)) == []
    assert list(kb.candidates("New York", k=99)) == everything
    with pytest.raises(UsageError, match="k is -1"):
        kb.candidates("New York", k=-1)


@pytest.mark.parametrize(
    ("pos", "universal", "expected"),
    [("n", "NOUN", {"well.n"}), ("r", "ADV", {"well.r"}), ("a", "ADJ", {"good.s"}), ("v", "VERB", set())],
)
def test_a_part_of_speech_filters_and_the_rest_share_the_prior(lexicon, pos, universal, expected):
    found = meanings(lexicon, "well", pos=pos)
    assert set(found) == expected
    assert found == meanings(lexicon, "well", pos=universal)
    assert sum(found.values()) == close(1 if expected else 0)


def test_adjectives_include_their_satellites_but_not_the_other_way_round(lexicon):
    assert set(meanings(lexicon, "good", pos="a")) == {"good.a", "good.s"}
    assert set(meanings(lexicon, "good", pos="s")) == {"good.s"}
    assert set(meanings(lexicon, "dog", pos="PROPN")) == {"dog.n"}
    assert set(meanings(lexicon, "dog", pos="AUX")) == {"dog.v"}
    assert meanings(lexicon, "dog", pos="DET") == {}


def test_the_part_of_speech_filters_before_the_cut(lexicon):
    found = lexicon.candidates("thing", k=3, pos="v")
    assert [lexicon.key(entity) for entity in found.ids] == ["thing.v.0", "thing.v.1", "thing.v.2"]


def test_filtering_what_nobody_counted_shares_alike(tmp_path):
    records = [Entity("a", pos="n"), Entity("b", pos="v"), Entity("c", pos="v"), Alias("x", "a", 5)]
    with build(tmp_path, [*records, Alias("x", "b"), Alias("x", "c")]) as kb:
        assert meanings(kb, "x", pos="v") == {"b": 0.5, "c": 0.5}


def test_decoded_candidates_have_entity_sense_and_prior(lexicon):
    best, other = lexicon.decode(lexicon.candidates("dog"))
    assert (best.entity, best.sense) == (lexicon["dog.n"], "dog%dog.n")
    assert (other.entity.key, other.sense) == ("dog.v", "dog%dog.v")
    assert (best.prior, other.prior) == (close(43 / 46), close(3 / 46))


def test_a_candidate_without_a_sense_says_so(kb):
    found = kb.candidates("dog")
    assert found.senses.tolist() == [NO_SENSE]
    assert kb.decode(found)[0].sense is None


def test_a_surface_that_is_not_found_may_be_sought_by_likeness(kb):
    assert meanings(kb, "Tmies Sqare") == {}
    assert set(meanings(kb, "Tmies Sqare", fuzzy=True)) == {"Times_Square"}
    assert set(meanings(kb, "turkeyy", fuzzy=True, k=1)) == {"Turkey_(country)"}  # no spelling is preferred
    assert meanings(kb, "unicorn", fuzzy=True) == {}
    assert meanings(kb, "", fuzzy=True) == {}
    assert kb.candidates("Turkey", fuzzy=True) == kb.candidates("Turkey")


def test_likeness_has_a_threshold(tmp_path):
    with build(tmp_path, [Entity("a"), Alias("abcdefghij", "a")]) as kb:
        assert len(kb.candidates("abcdefgh", fuzzy=True)) == 1  # 2 * 8 of 18 letters: 88.9
        assert len(kb.candidates("abcdefgxyz", fuzzy=True)) == 0  # 70


def test_all_surfaces_can_be_listed_but_for_those_too_long_for_a_key(kb):
    expected = {fold(alias.surface) for alias in SURFACES} - {ENDLESS}
    assert list(kb.surfaces()) == sorted(expected, key=str.encode)


def test_candidates_compare_by_value_and_cannot_be_written_to(kb):
    first, second = kb.candidates("Turkey"), kb.candidates("Turkey")
    assert first == second
    assert hash(first) == hash(second)
    assert first != kb.candidates("turkey")
    assert first != Candidates(first.rows, null=0.1)
    assert first != "Turkey"
    assert len({first, second, kb.candidates("turkey")}) == 2
    with pytest.raises(ValueError, match="read-only"):
        kb.candidates("dog").rows["prior"][0] = 0
    assert (first.ids.dtype, first.senses.dtype, first.priors.dtype) == ("uint32", "uint32", "float32")


@unhurried
@given(text=st.text(max_size=12))
def test_any_text_may_be_asked_for(kb, text):
    agree(meanings(kb, text), shares_by_hand(SURFACES, text, 1.0, prefer_case=True))
