"""Agreement within a document, beside the formula written out."""

import math
from collections import defaultdict
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgkit.building import Alias, Entity, Triple
from kgkit.candidates import AliasGenerator, LemmaGenerator, generator_for
from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
from kgkit.linking import CoherenceConfig, GraphCoherence, Linker
from kgkit.text import fold
from kgkit.types import Candidates, Document, Mention
from tests.small_kb import build, lexicon_kb
from tests.toys import run_python

BIRDS = "The turkey is a bird; so is the goose."
PAGES = (
    Entity("Turkey_(country)", "Turkey", "A country of Asia, its capital is Ankara."),
    Entity(
        "Turkey_(bird)",
        "turkey",
        "A large bird.",
        attributes={"examples": ["a farm with a turkey and a goose"]},
    ),
    Entity("Goose", "goose", "A bird."),
    Entity("Bird", "bird", "It has feathers."),
    Entity("Ankara", "Ankara", "A city."),
    Entity("Asia", "Asia"),
    Entity("Farm", "farm", "A bird or a goose may live there."),
    Triple("Turkey_(bird)", "is_a", "Bird"),
    Triple("Goose", "is_a", "Bird"),
    Triple("Ankara", "lies_in", "Turkey_(country)"),
    Triple("Turkey_(country)", "lies_in", "Asia"),
    Triple("Turkey_(country)", "has_capital", "Ankara"),
    Alias("turkey", "Turkey_(country)", 60),
    Alias("turkey", "Turkey_(bird)", 40),
    Alias("goose", "Goose", 5),
    Alias("goose", "Farm", 1),
    Alias("bird", "Bird", 9),
    Alias("Ankara", "Ankara", 3),
    Alias("Asia", "Asia", 3),
    Alias("farm", "Farm", 3),
)

unhurried = settings(deadline=None)  # a busy machine is no failure


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with build(tmp_path_factory.mktemp("turkey"), PAGES) as opened:
        yield opened


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory):
    with lexicon_kb(tmp_path_factory.mktemp("lexicon")) as opened:
        yield opened


def entities(kb: KnowledgeBase, text: str, **settings: Any) -> list[str | None]:
    (linked,) = Linker.open(kb, **settings)([text])
    return [found.entity for found in linked.links]


def test_what_goes_together_is_meant_together(kb):
    assert entities(kb, "turkey") == ["Turkey_(country)"]
    assert entities(kb, BIRDS) == ["Turkey_(country)", "Bird", "Goose"]
    assert entities(kb, BIRDS, coherence="graph") == ["Turkey_(bird)", "Bird", "Goose"]
    assert entities(kb, "From turkey and Asia to Ankara.", coherence="graph")[0] == "Turkey_(country)"


def vector_by_hand(kb: KnowledgeBase, number: int, config: CoherenceConfig) -> dict[int, float]:
    """Return a(c), before it is weighted: itself, its neighbours, what the words of its description mean."""
    weights: dict[int, float] = defaultdict(float)
    weights[number] = 1.0
    for other in kb.neighbors(number).tolist()[: config.max_neighbors]:
        weights[other] += 1.0
    entity = kb[number]
    text = "; ".join([entity.description, *entity.attributes.get("examples", [])])
    for mention in generator_for(kb).mentions(text):
        assert mention.candidates is not None
        for other, _, prior in list(mention.candidates)[: config.words]:
            if other != number:
                weights[other] += prior
    return weights


def window_by_hand(kb: KnowledgeBase, mentions: list[Mention], config: CoherenceConfig) -> list[list[float]]:
    rows = [
        (place, fold(mention.lemma or mention.text), rank, entity, prior)
        for place, mention in enumerate(mentions)
        for rank, (entity, _, prior) in enumerate(mention.candidates or ())
    ]
    vectors = [vector_by_hand(kb, entity, config) for _, _, _, entity, _ in rows]
    for node in {node for vector in vectors for node in vector}:
        rarity = math.log(len(vectors) / sum(node in vector for vector in vectors))
        for vector in vectors:
            if node in vector:
                vector[node] *= rarity
    for vector in vectors:
        length = math.sqrt(sum(weight**2 for weight in vector.values())) or 1
        for node in vector:
            vector[node] /= length

    def share(weights: list[float]) -> list[float]:
        totals: dict[int, float] = defaultdict(float)
        for (place, *_), weight in zip(rows, weights, strict=True):
            totals[place] += weight
        return [weight / (totals[place] or 1) for (place, *_), weight in zip(rows, weights, strict=True)]

    prior = [row[4] * config.decay ** row[2] for row in rows]
    score = share(prior)
    for _ in range(config.rounds):
        support = [0.0] * len(rows)
        for one, other in product(range(len(rows)), repeat=2):
            if rows[one][1] != rows[other][1]:
                agreement = sum(weight * vectors[other].get(node, 0) for node, weight in vectors[one].items())
                support[one] += score[other] * agreement
        score = share([p * (1 + config.strength * s) for p, s in zip(prior, support, strict=True)])
    return [
        [s for row, s in zip(rows, score, strict=True) if row[0] == place] for place in range(len(mentions))
    ]


CONFIGS = (
    CoherenceConfig(),
    CoherenceConfig(strength=0.0, decay=1.0),
    CoherenceConfig(strength=40.0, decay=0.5, rounds=3, window=3),
    CoherenceConfig(max_neighbors=1, words=1, rounds=1, window=1),
)


@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
@unhurried
@given(
    words=st.lists(
        st.sampled_from(["turkey", "Turkey", "goose", "bird", "Ankara", "Asia", "farm", "x"]), max_size=9
    )
)
def test_scores_are_those_of_the_formula(kb, config, words):
    generator = AliasGenerator(kb)
    found = generator.mentions(" ".join(words))
    scores = GraphCoherence(kb, generator, config)(found)
    expected = [
        scores
        for begin in range(0, len(found), config.window)
        for scores in window_by_hand(kb, found[begin : begin + config.window], config)
    ]
    assert len(scores) == len(found)
    for one, other in zip(scores, expected, strict=True):
        assert one.tolist() == pytest.approx(other, abs=1e-5)


def test_scores_of_a_lexicon_are_those_of_the_formula(lexicon):
    generator = LemmaGenerator(lexicon)
    found = generator.mentions("geese saw the big dogs running, better well than the general things")
    scores = GraphCoherence(lexicon, generator)(found)
    expected = window_by_hand(lexicon, found, CoherenceConfig())
    assert [score.tolist() for score in scores] == [pytest.approx(score, abs=1e-5) for score in expected]


def test_mentions_without_candidates_have_no_scores_and_disturb_no_others(kb):
    generator = AliasGenerator(kb)
    found = generator.mentions(BIRDS)
    nothing = [Mention(0, 1, "x"), Mention(0, 1, "x", candidates=Candidates(found[0].candidates.rows[:0]))]
    agreement = GraphCoherence(kb, generator)
    scores = agreement([nothing[0], *found, nothing[1]])
    assert [score.tolist() for score in scores[1:-1]] == [score.tolist() for score in agreement(found)]
    assert len(scores[0]) == len(scores[-1]) == 0
    assert [len(score) for score in agreement(nothing)] == [0, 0]


def test_a_word_gives_no_support_to_itself(kb):
    generator = AliasGenerator(kb)
    agreement = GraphCoherence(kb, generator)
    (alone,) = agreement(generator.mentions("turkey"))
    for often in agreement(generator.mentions("turkey Turkey turkey TURKEY")):
        assert often == pytest.approx(alone)


def test_candidates_are_reordered_and_links_follow(kb):
    document = Document("d", BIRDS)
    (linked,) = Linker.open(kb, coherence="graph")([document])
    best, other = linked.links[0].candidates
    assert (best.entity, other.entity) == ("Turkey_(bird)", "Turkey_(country)")
    assert best.prior < other.prior
    assert best.score > other.score
    assert best.score + other.score == pytest.approx(1, abs=1e-5)


def test_scores_do_not_depend_on_the_hash_seed_nor_on_what_was_asked_before(kb, tmp_path):
    code = """
import sys, msgspec, kgkit
from kgkit.linking import Linker
for kb in [kgkit.open_kb("small", home=sys.argv[1])]:
    linker = Linker.open(kb, coherence="graph")
    for text in sys.argv[2:]:
        (linked,) = linker([text])
    print(msgspec.json.encode(linked).decode())
"""
    home = kb.store.folder.parents[3]
    told = {
        run_python(code, home, *before, BIRDS, PYTHONHASHSEED=str(seed)).stdout
        for seed, before in ((0, []), (1, []), (2, ["Ankara goose", "farm bird turkey"]))
    }
    assert len(told) == 1
    assert "Turkey_(bird)" in told.pop()


@pytest.mark.parametrize(
    "wrong",
    [{"strength": -1}, {"decay": 0}, {"decay": 1.1}, {"window": 0}, {"rounds": 0}, {"words": -1}],
    ids=str,
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(UsageError, match=f"{next(iter(wrong))} is .*; it is "):
        CoherenceConfig(**wrong)
