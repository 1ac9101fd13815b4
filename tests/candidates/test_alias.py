"""The alias generator, beside a look-up of every span."""

import unicodedata

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kgkit.building import Alias, Entity, Triple
from kgkit.candidates import AliasConfig, AliasGenerator, longest
from kgkit.candidates.hyphens import joining_hyphens
from kgkit.candidates.matching import is_case_informative
from kgkit.candidates.spelling import position_hides_case
from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
from kgkit.store import codec
from kgkit.types import NO_CANDIDATES, Candidates, Mention
from tests.small_kb import ENDLESS, SIXTY_FOUR, SIXTY_THREE, build, fold, surfaces_kb, token_spans

WORDS = (
    "New York Times Square US us U.S. Turkey turkey TURKEY 苹果 公司 果 北京 大学 吃 ゴジラ Straße STRASSE "
    "Café cafe\u0301 Noir NOIR İstanbul ﬁnance FINANCE בית ספר हिन्दी ภาษาไทย C++ AT&T don't "
    "DON’T hot dog hot-dog - 's Teddy 👩‍🔬 unknown . ß"
).split()
GAPS = (" ", " ", " ", "", "\n", "\n\n", " \n \n ", "\t", "\u00a0", "\r\n", "  ")
texts = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS)), max_size=12).map(
    lambda pieces: "".join(word + gap for word, gap in pieces)
)

unhurried = settings(deadline=None)  # a busy machine is no failure


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with surfaces_kb(tmp_path_factory.mktemp("surfaces")) as opened:
        yield opened


@pytest.fixture(scope="module")
def generator(kb):
    return AliasGenerator(kb)


@pytest.fixture(scope="module")
def every(kb):
    return AliasGenerator(kb, AliasConfig(matches="all"))


def spans(mentions: list[Mention]) -> list[str]:
    return [mention.text for mention in mentions]


def every_span(kb: KnowledgeBase, text: str) -> list[Mention]:
    """Look up every span of up to 63 tokens that no blank line crosses."""
    found, tokens = [], token_spans(text)
    for first, (start, _) in enumerate(tokens):
        for last in range(first, min(first + 63, len(tokens))):
            end = tokens[last][1]
            gaps = [text[tokens[at][1] : tokens[at + 1][0]] for at in range(first, last)]
            candidates = meant(kb, text, start, end)
            if len(candidates) and not any(gap.count("\n") > 1 for gap in gaps):
                found.append(Mention(start, end, text[start:end], candidates))
    return found


def meant(kb: KnowledgeBase, text: str, start: int, end: int) -> Candidates:
    """Look up one span; a word in lower case that the KB has with capitals only means nothing."""
    spelled, row = text[start:end], kb.store.alias_row(fold(text[start:end]))
    if not is_case_informative(text) or row is None:
        return kb.candidates(spelled, prefer_case=False)
    capitals = [one.surface != one.surface.lower() for one in codec.spellings(row)]
    if capitals and all(capitals) and spelled.islower() and len(spelled.split()) < 2:
        return NO_CANDIDATES
    return kb.candidates(spelled, prefer_case=spelled.islower() or not position_hides_case(text, start, end))


def leftmost_longest(mentions: list[Mention]) -> list[Mention]:
    kept: list[Mention] = []
    for mention in sorted(mentions, key=lambda mention: (mention.start, -mention.end)):
        if not kept or mention.start >= kept[-1].end:
            kept.append(mention)
    return kept


@unhurried
@given(text=texts)
def test_all_matches_are_those_of_a_look_up_of_every_span(kb, every, text):
    assume(not joining_hyphens(text))
    assert every.mentions(text) == every_span(kb, text)


@unhurried
@given(text=texts)
def test_the_longest_matches_are_the_leftmost_longest_of_all(kb, generator, every, text):
    assert generator.mentions(text) == leftmost_longest(every.mentions(text))


@unhurried
@given(text=st.text() | texts)
def test_offsets_count_code_points_of_the_text_as_given(every, text):
    for mention in every.mentions(text):
        assert text[mention.start : mention.end] == mention.text
        assert mention.text.strip() == mention.text != ""


@unhurried
@given(before=st.text(max_size=10), form=st.sampled_from(["NFC", "NFD"]), word=st.sampled_from(WORDS[:-5]))
def test_what_comes_before_a_surface_does_not_shift_it(kb, every, before, form, word):
    word = unicodedata.normalize(form, word)
    text = f"{before} {word}"
    if len(kb.candidates(word)):
        assert (len(before) + 1, len(text)) in [
            (mention.start, mention.end) for mention in every.mentions(text)
        ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("He reads the New York Times in Times Square.", ["New York Times", "Times Square"]),
        ("New York Times Square", ["New York Times"]),
        ("NEW YORK's", ["NEW YORK"]),
        ("in New\nYork", ["New\nYork"]),
        ("New \t York and New\u00a0York", ["New \t York", "New\u00a0York"]),
        ("New\n\nYork", ["York"]),
        ("New\r\n\r\nYork", ["York"]),
        ("他吃苹果公司的果", ["苹果公司", "果"]),
        ("北京大学在北京", ["北京大学", "北京"]),
        ("STRASSE, Straße; Strasse", ["STRASSE", "Straße", "Strasse"]),
        ("straße, strasse", ["straße", "strasse"]),
        ("A straße", []),
        ("hotdog hot-dog hot - dog hot dog", ["hot-dog", "dog", "hot dog"]),
        ("The New-York Times, naïve-dog", ["New-York Times", "naïve", "dog"]),
        ("I like C++, AT&T and Teddy's dogs: don't", ["C++", "AT&T", "Teddy's", "dogs", "don't"]),
        ("Yorkshire Turkeys usa", []),
        ("👩‍🔬 👩 🔬", ["👩‍🔬"]),
    ],
)
def test_surfaces_are_found_as_a_reader_would_find_them(generator, text, expected):
    assert spans(generator.mentions(text)) == expected


def test_all_matches_overlap_and_come_by_start_then_by_length(every):
    assert spans(every.mentions("the New York Times, 苹果公司")) == [
        "New York", "New York Times", "York", "Times", "苹果", "苹果公司", "果",
    ]  # fmt: skip


def test_a_surface_of_63_tokens_is_found_and_one_of_64_is_not_sought(generator):
    assert spans(generator.mentions(f"so {SIXTY_THREE.upper()}!")) == [SIXTY_THREE.upper()]
    assert spans(generator.mentions(SIXTY_FOUR)) == []


def test_a_surface_over_the_length_of_a_key_is_found(generator):
    assert spans(generator.mentions(f"({ENDLESS})")) == [ENDLESS]


def test_the_spelling_decides_what_comes_first_unless_it_is_not_to(kb, generator):
    def first(found: AliasGenerator, text: str) -> str:
        candidates = found.mentions(f"So {text} it is")[0].candidates
        assert candidates is not None
        return kb.key(candidates.ids[0])

    assert first(generator, "Turkey") == "Turkey_(country)"
    assert first(generator, "turkey") == "Turkey_(bird)"
    indifferent = AliasGenerator(kb, AliasConfig(prefer_case=False))
    assert first(indifferent, "turkey") == first(indifferent, "Turkey") == "Turkey_(country)"


def test_candidates_are_cut_and_weak_ones_left_out(kb):
    (only,) = AliasGenerator(kb, AliasConfig(max_candidates=1)).mentions("Turkey")
    assert len(only.candidates) == 1
    assert only.candidates.priors[0] < 0.9  # not stretched
    (strong,) = AliasGenerator(kb, AliasConfig(min_prior=0.5)).mentions("Turkey")
    assert strong.candidates == only.candidates
    assert AliasGenerator(kb, AliasConfig(min_prior=1.0)).mentions("Turkey") == []


def test_null_takes_its_part_of_every_prior(kb, generator):
    (plain,) = generator.mentions("Turkey")
    (doubted,) = AliasGenerator(kb, AliasConfig(null=0.25)).mentions("Turkey")
    assert doubted.candidates.null == 0.25
    assert doubted.candidates.priors == pytest.approx(plain.candidates.priors * 0.75)
    assert doubted.candidates.priors.sum() + doubted.candidates.null == pytest.approx(1)
    assert plain.candidates.null == 0
    (again,) = generator.mentions("Turkey")  # what is shared was not written to
    assert again == plain


@pytest.mark.parametrize(
    "wrong",
    [
        {"matches": "some"},
        {"max_candidates": 0},
        {"min_prior": -0.1},
        {"min_prior": 1.1},
        {"null": 1.0},
        {"null": -1},
    ],
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        AliasConfig(**wrong)


def test_the_tokens_of_a_surface_may_begin_like_those_of_another(tmp_path):
    """Surfaces of 2, 3 and 5 tokens share their first tokens; not every prefix is a surface."""
    names = ["a b", "a b c d e", "a c b", "b c", "a b c x"]
    records = [Entity("e"), Triple("e", "is", "e"), *[Alias(name, "e") for name in names]]
    with build(tmp_path, records) as kb:
        generator = AliasGenerator(kb, AliasConfig(matches="all"))
        assert spans(generator.mentions("a b c d e")) == ["a b", "a b c d e", "b c"]
        assert spans(generator.mentions("a b c d")) == ["a b", "b c"]
        assert spans(generator.mentions("a c b c x")) == ["a c b", "b c"]
        for text in ("a b c x", "a a b b c d e e", "c b a"):
            assert generator.mentions(text) == every_span(kb, text)


def test_of_overlapping_mentions_the_leftmost_longest_stay():
    given = [Mention(0, 2, ""), Mention(0, 5, ""), Mention(3, 9, ""), Mention(5, 6, ""), Mention(6, 8, "")]
    assert [(mention.start, mention.end) for mention in longest(given)] == [(0, 5), (5, 6), (6, 8)]
    assert longest([]) == []
