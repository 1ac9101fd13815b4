"""Surfaces that are like a name: which are proposed by the index, and which comes first."""

import random
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kgkit
from kgkit.errors import UsageError
from kgkit.kb import similar
from kgkit.kb.similar import RankedSurface, SimilarNames
from kgkit.store.trigrams import TrigramIndex, TrigramWriter
from kgkit.text import fold
from tests.cli_helpers import run
from tests.old_format import publish_as_format_2
from tests.small_kb import lexicon_kb, surfaces_kb

WORDS = "hippopotamus new york city times square garden domestic dog house united states kingdom".split()


def index_of(folder: Path, surfaces: list[str], *, is_first: bool = False) -> TrigramIndex:
    """Return an index of names; as one of the first version, which has no words, if that is wanted."""
    with TrigramWriter(folder / "index") as writer:
        writer.add(fold(surface).encode() for surface in surfaces)
        writer.finish()
    index = TrigramIndex(folder / "index")
    index.is_first = is_first
    return index


def ranked(index: TrigramIndex, name: str) -> list[RankedSurface]:
    names, folded = SimilarNames(index, "en"), fold(name)
    return names.rank(folded, names.proposed(folded))


def found(index: TrigramIndex, name: str) -> list[str]:
    return [each.surface for each in ranked(index, name)]


@pytest.fixture(scope="module")
def phrases(tmp_path_factory):
    """An index of 400 phrases of one to three words, and the phrases."""
    choice = random.Random(5)
    phrases = sorted({" ".join(choice.sample(WORDS, choice.randint(1, 3))) for _ in range(700)})[:400]
    return index_of(tmp_path_factory.mktemp("phrases"), phrases), phrases


@given(data=st.data())
def test_a_likely_surface_is_found_as_by_a_comparison_with_all(phrases, data):
    index, surfaces = phrases
    text = list(data.draw(st.sampled_from(surfaces)))
    for _ in range(data.draw(st.integers(0, 2))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.sampled_from(string.ascii_lowercase))
    name = fold("".join(text))
    best = SimilarNames(index, "en").rank(name, surfaces)
    if best and best[0].similarity > 0.5:
        assert ranked(index, name)[0].log_odds == best[0].log_odds


@pytest.mark.parametrize(
    "text, surface",
    [
        ("hipopotamus", "hippopotamus"),  # left out
        ("hippoppotamus", "hippopotamus"),  # inserted
        ("hippopotanus", "hippopotamus"),  # replaced
        ("hippoptoamus", "hippopotamus"),  # exchanged
        ("city york new", "new york city"),
        ("yrok new", "new york"),
        ("hippo potamus", "hippopotamus"),
    ],
)
@pytest.mark.parametrize("is_first", [False, True])
def test_typing_errors_and_words_in_another_order_find_the_surface(tmp_path, text, surface, is_first):
    index = index_of(
        tmp_path, ["hippopotamus", "new york", "new york city", "potamus", "city"], is_first=is_first
    )
    assert found(index, text)[0] == surface


@pytest.mark.parametrize(
    "name, surfaces",
    [
        ("Mercury", ["mercury (planet)", "mercury (element)"]),
        ("Kerkplein", ["kerkplein (betekom)"]),
        ("Lodz", ["łódź"]),
        ("Bjoern Ulvaeus", ["björn ulvaeus"]),
        ("International Business Machines", ["international business machines corporation"]),
        ("Second World War", ["world war ii"]),
        ("World War 2", ["world war ii"]),
        ("Bach, J.S.", ["johann sebastian bach"]),
        ("University of Michigan", ["michigan, university of"]),
        ("Facebook", ["face book"]),
        ("R&B", ["rhythm and blues"]),
        ("B&B", ["bed and breakfast"]),
        ("P&G", ["procter & gamble"]),
        ("Procter and Gamble", ["p&g"]),
        ("WWII", ["world war ii"]),
        ("WW2", ["world war two"]),
        ("World War II", ["wwii"]),
        ("Fifth Ave", ["5th avenue"]),
    ],
)
def test_a_name_is_proposed_what_is_the_name_in_another_form(tmp_path, name, surfaces):
    others = [f"{first} {second}" for first in WORDS for second in WORDS if first != second]
    others += [f"mercury {word} records" for word in WORDS] + [f"world {word}" for word in WORDS]
    index = index_of(tmp_path, [*surfaces, *others])
    assert {*surfaces} <= {*found(index, name)[: len(surfaces)]}


@pytest.mark.parametrize("text, surface", [("dgo", "dog"), ("dag", "dog"), ("do", "dog"), ("bnak", "bank")])
def test_short_surfaces_are_proposed_though_no_trigram_is_left(tmp_path, text, surface):
    index = index_of(tmp_path, ["bank", "dog", "elephants", "xylophones"])
    assert surface in SimilarNames(index).proposed(text)


def test_the_same_text_comes_first(tmp_path):
    index = index_of(tmp_path, ["dog", "dogs", "hot dog"])
    first, second = ranked(index, "dog")[:2]
    assert (first.surface, first.similarity) == ("dog", 1.0)
    assert second.similarity < 1


def test_surfaces_that_are_as_similar_come_in_alphabetical_order(tmp_path):
    index = index_of(tmp_path, ["catt", "batt", "ratt", "hatt"])
    assert found(index, "xatt")[:3] == ["batt", "catt", "hatt"]


@pytest.mark.parametrize("text", ["qqqqqq", "\0", "😀😀😀", "\ud800", "elephant dog house"])
def test_a_text_that_shares_too_little_finds_nothing(tmp_path, text):
    assert found(index_of(tmp_path, ["doge palace", "cat", "elephantine city"]), text) == []


def test_surfaces_of_other_scripts_are_found(tmp_path):
    index = index_of(tmp_path, ["苹果公司", "北京大学", "москва"])
    assert found(index, "苹果公可")[0] == "苹果公司"
    assert found(index, "масква")[0] == "москва"


def test_a_word_is_the_more_telling_the_fewer_surfaces_have_it(tmp_path):
    index = index_of(tmp_path, ["dog a", "dog b", "dog c", "zebra"])
    names = SimilarNames(index)
    assert names.rarity("dog") < names.rarity("zebra") < names.rarity("unknown") == 1
    expected = [names.rarity(word) for word in ("dog", "zebra", "dogzebra")]
    index.is_first = True  # it counts the surfaces that have all trigrams of the word
    assert [SimilarNames(index).rarity(word) for word in ("dog", "zebra", "dogzebra")] == expected


def test_only_the_shortest_lists_are_read(tmp_path, monkeypatch):
    surfaces = [f"street number {number}" for number in range(2_000)]
    index = index_of(tmp_path, [*surfaces, "street zygote"])
    assert len(SimilarNames(index).proposed("street zygoet")) < 200
    assert found(index, "street zygoet")[0] == "street zygote"
    monkeypatch.setattr(similar, "_MAX_POSTINGS", 10)
    assert SimilarNames(index).proposed("street zygoet") == ["street zygote"]


def test_many_surfaces_are_counted_as_few_are(phrases, monkeypatch):
    index, _ = phrases
    few = found(index, "new yrok city")
    monkeypatch.setattr(similar, "_SPARSE", 0)
    assert found(index, "new yrok city") == few


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
        with kgkit.open_kb("old", tmp_path) as old:
            assert (kb.store.trigrams is None, old.store.trigrams is None) == (False, True)
            known = 0
            for surface in [*kb.surfaces()][:40]:
                text = surface[:-1] + "q"
                answer = kb.candidates(text, fuzzy=True)
                known += len(answer) > 0
                if len(surface) > 6:
                    assert answer == old.candidates(text, fuzzy=True)
            assert known


def test_fuzzy_candidates_read_no_surface_where_there_is_an_index(tmp_path, monkeypatch):
    with surfaces_kb(tmp_path) as kb:
        monkeypatch.setattr(type(kb), "surfaces", None)
        assert kb.candidates("new yorkk", fuzzy=True) == kb.candidates("new york", prefer_case=False)
        done = run("candidates", "new yorkk", "--fuzzy", "--json", "--kb", "surfaces", "--home", tmp_path)
        assert (done.code, "New_York_City" in done.out) == (0, True)


@pytest.mark.parametrize(
    ("name", "surface"),
    [
        ("Route 66A", "Route 66"),
        ("Boeing 777-200ER", "Boeing 777-200"),
        ("John 16:3", "John 3:16"),
        ("Henry II, Part 4", "Henry IV, Part 2"),
        ("Group A Type B", "Group B Type A"),
        ("Women's World Cup 2019", "World Cup 2019"),
        ("Non-Hepatitis B", "Hepatitis B"),
    ],
)
def test_numbers_keep_their_letters_and_order(tmp_path, name, surface):
    index = index_of(tmp_path, [surface, "Something else"])
    assert all(each.similarity < 0.1 for each in ranked(index, name))
