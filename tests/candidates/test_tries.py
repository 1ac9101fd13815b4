"""The alias generator over tries, beside the same generator over the table `starts`."""

import itertools
import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import kgkit
from kgkit.building import Alias, Entity, Form
from kgkit.candidates import AliasConfig, AliasGenerator, LemmaGenerator
from kgkit.candidates.hyphens import joining_hyphens
from kgkit.store import verify
from tests.candidates.test_alias import GAPS, every_span, spans, texts
from tests.small_kb import ENDLESS, SIXTY_FOUR, SIXTY_THREE, build, surfaces_kb
from tests.tries import with_tries

unhurried = settings(deadline=None)

# Tokens of every kind, so that nearly every text has surfaces in it, one within the other.
PIECES = ("a", "b", "B", "ß", "-", "'s", "’s", "n't", "'", "果", "大", "ゴ", ".", "е\u0301", "א", "\0")
JOINTS = ("", " ", "")


def dense() -> list[str]:
    """Return surfaces of up to four pieces: all short ones, some longer ones."""
    short = ["".join(parts) for parts in itertools.product(PIECES, JOINTS, PIECES)]
    chosen = random.Random(5)

    def longer() -> str:
        return "".join(chosen.choice(PIECES) + chosen.choice(JOINTS) for _ in range(chosen.choice((3, 4, 6))))

    return [*PIECES, *short, *[longer().strip() for _ in range(900)]]


dense_texts = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(GAPS)), max_size=12).map(
    lambda pieces: "".join(word + gap for word, gap in pieces)
)


@pytest.fixture(scope="module", params=[1, 7, 500_000], ids="{} a trie".format)
def pair(request, tmp_path_factory):
    """The KB of `SURFACES` with `starts`, and with tries."""
    folder = tmp_path_factory.mktemp("surfaces")
    with surfaces_kb(folder) as plain:
        with_tries(plain.store.folder, folder, "tries", request.param)
        with kgkit.open_kb("tries", home=folder) as tries:
            yield plain, tries


@pytest.fixture(scope="module", params=[40, 500_000], ids="{} a trie".format)
def dense_pair(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dense")
    # Counted: names that nobody counted weigh less where they may be ordinary words.
    records = [Entity("e"), *[Alias(surface, "e", 1) for surface in dense()]]
    with build(folder, records) as plain:
        built = with_tries(plain.store.folder, folder, "tries", request.param)
        assert verify(built.folder) == []
        with kgkit.open_kb("tries", home=folder) as tries:
            yield plain, tries


def generators(pair, **settings):
    return [AliasGenerator(kb, AliasConfig(**settings)) for kb in pair]


@pytest.mark.parametrize("matches", ["longest", "all"])
@unhurried
@given(text=texts | st.text())
def test_tries_find_what_starts_finds(pair, matches, text):
    by_starts, by_tries = generators(pair, matches=matches)
    assert by_tries.mentions(text) == by_starts.mentions(text)


@pytest.mark.parametrize("matches", ["longest", "all"])
@given(text=dense_texts)
def test_tries_find_what_starts_finds_where_surfaces_overlap_everywhere(dense_pair, matches, text):
    by_starts, by_tries = generators(dense_pair, matches=matches)
    assert by_tries.mentions(text) == by_starts.mentions(text)


@unhurried
@given(text=dense_texts)
def test_tries_find_what_a_look_up_of_every_span_finds(dense_pair, text):
    assume(not joining_hyphens(text))
    _, kb = dense_pair
    assert AliasGenerator(kb, AliasConfig(matches="all")).mentions(text) == every_span(kb, text)


@unhurried
@given(text=texts)
def test_weak_meanings_are_left_out_alike_and_a_shorter_mention_takes_the_place(pair, text):
    by_starts, by_tries = generators(pair, min_prior=0.6)
    assert by_tries.mentions(text) == by_starts.mentions(text)


def test_a_long_mention_without_a_meaning_that_is_kept_hides_no_shorter_one(tmp_path):
    records = [Entity("e"), Entity("f"), Alias("a b c", "e"), Alias("a b c", "f"), Alias("a b", "e")]
    with build(tmp_path, records) as plain:
        with_tries(plain.store.folder, tmp_path, "tries")
        with kgkit.open_kb("tries", home=tmp_path) as kb:
            assert spans(AliasGenerator(kb).mentions("a b c")) == ["a b c"]
            assert spans(AliasGenerator(kb, AliasConfig(min_prior=0.7)).mentions("a b c")) == ["a b"]


def test_63_tokens_are_found_64_are_not_and_a_surface_over_the_length_of_a_key_is(pair):
    _, kb = pair
    generator = AliasGenerator(kb)
    assert spans(generator.mentions(f"so {SIXTY_THREE.upper()}!")) == [SIXTY_THREE.upper()]
    assert spans(generator.mentions(SIXTY_FOUR)) == []
    assert spans(generator.mentions(f"({ENDLESS})")) == [ENDLESS]


def test_a_long_surface_of_several_tokens_and_one_with_a_nul_are_found_by_starts(tmp_path):
    long = "very " * 60 + "x" * 300
    records = [Entity("e"), *[Alias(name, "e") for name in (long, "a \0 b", "very very", "a b", "\0 b")]]
    with build(tmp_path, records) as plain:
        with_tries(plain.store.folder, tmp_path, "tries")
        with kgkit.open_kb("tries", home=tmp_path) as kb:
            assert [first for first in ("very", "a", "\0") if kb.store.starts(first)] == ["very", "a", "\0"]
            every = [AliasGenerator(one, AliasConfig(matches="all")) for one in (plain, kb)]
            for text in (f"{long} a \0 b", f"a b very {long}", "a \0 b", "very very a"):
                assert every[1].mentions(text) == every[0].mentions(text) != []
            assert spans(every[1].mentions("a \0 b")) == ["a \0 b", "\0 b"]
            assert long in spans(AliasGenerator(kb).mentions(f"a {long} b"))


def test_offsets_count_code_points_where_folding_changes_lengths(pair):
    _, kb = pair
    (mention,) = AliasGenerator(kb).mentions("ßßß İİ ﬁﬁ  Cafe\u0301\tnoir")
    assert (mention.start, mention.end, mention.text) == (11, 21, "Cafe\u0301\tnoir")


def test_a_lone_surrogate_is_in_no_mention_and_hides_none(pair):
    found = [
        spans(one.mentions("New York \ud800 New \ud800York, 苹果\ud800公司")) for one in generators(pair)
    ]
    assert found[0] == found[1] == ["New York", "York", "苹果"]


def test_the_lemma_generator_asks_starts_alone(pair):
    _, kb = pair
    assert spans(LemmaGenerator(kb).mentions("in New York")) == ["York"]


def test_irregular_forms_do_not_hinder_the_tries(tmp_path):
    one = "attorney general"
    records = [Entity("e"), Alias(one, "e"), Form("attorneys general", one, "n")]
    with build(tmp_path, records) as plain:
        with_tries(plain.store.folder, tmp_path, "tries")
        with kgkit.open_kb("tries", home=tmp_path) as kb:
            for either in (plain, kb):
                found = AliasGenerator(either).mentions("attorneys general, an attorney general")
                assert spans(found) == ["attorneys general", one]


@pytest.mark.parametrize("matches", ["longest", "all"])
def test_tries_know_the_forms_of_surfaces_of_several_words(tmp_path, matches):
    names = [
        "water lily",
        "state of the art",
        "Red Fox",
        "red",
        "bird of paradise",
        "man-of-war",
        "lily pond",
    ]
    text = "water lilies in lily ponds are states of the art, Red Foxes, red; birds of paradise, men-of-war"
    with build(tmp_path, [Entity("e"), *(Alias(name, "e") for name in names)]) as plain:
        with_tries(plain.store.folder, tmp_path, "tries")
        with kgkit.open_kb("tries", home=tmp_path) as kb:
            found = [
                spans(AliasGenerator(one, AliasConfig(matches=matches)).mentions(text)) for one in (plain, kb)
            ]
            assert found[0] == found[1]
            assert {"water lilies", "states of the art", "Red Foxes", "men-of-war"} <= {*found[1]}
