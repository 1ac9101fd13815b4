"""Coherence that is learnt: its traits by their definitions, what it learns and never sees, its model."""

import json

import numpy as np
import pytest

from kgkit.building import Alias, Entity, Triple
from kgkit.candidates import AliasConfig, AliasGenerator, candidates_of_keys, generator_for, with_candidates
from kgkit.errors import DamagedModel, StaleModel, UsageError
from kgkit.evaluation.el_files import read_gold_documents
from kgkit.linking import Linker
from kgkit.linking.entity_features import EntityFeatures, EntityFeaturesConfig, relative
from kgkit.linking.link_features import LinkFeatures, LinkFeaturesConfig
from kgkit.linking.trained_coherence import FILE, probabilities
from kgkit.models.kinds import LINKER
from kgkit.models.manifest import MANIFEST
from kgkit.text import fold, tokens
from kgkit.training.linkers.coherence import (
    CoherenceConfig,
    _CoherenceExamples,
    _Network,
    popularity_of,
    train_coherence,
)
from kgkit.training.linkers.cross_fitting import folds_of
from kgkit.training.linkers.labelled import labelled_entities
from kgkit.training.linkers.settings import LinkerTraining
from kgkit.training.linkers.train import train_linker
from kgkit.types import NO_CANDIDATES, Document, Mention
from tests.cli_helpers import run
from tests.small_kb import build
from tests.toys import run_python

LANDS = ("Norway", "Chile", "Kenya")
PEOPLE = ("Ann Berg", "Bo Dahl", "Cy Lund")


def records():
    """Three countries, each with a team and an island; three people who play there, each with a namesake.

    What a country's name means, and a person's, is told by links alone: where there is a league, teams play.
    """
    yield from (Entity("League"), Entity("Prize"), Alias("League", "League", 1), Alias("Prize", "Prize", 1))
    for place, (land, person) in enumerate(zip(LANDS, PEOPLE, strict=True)):
        first = person.split()[0]
        yield Entity(
            land, attributes={"visits": 1000 + place}, types=("land",), description="A warm country."
        )
        yield Entity(f"{land} team", attributes={"visits": 10}, types=("team",))
        yield Entity(f"{land} (island), Sea", attributes={"visits": "many"})
        yield Entity(person)
        yield Entity(f"{person} (poet)")
        yield Alias(land, land, 90)
        yield Alias(land, f"{land} team", 10)
        for name in (person, first):
            yield Alias(name, f"{person} (poet)", 6)
            yield Alias(name, person, 4)
        yield Triple(person, "plays_for", f"{land} team")
        yield Triple(f"{person} (poet)", "born_in", land)
        yield Triple(land, "has", f"{land} (island), Sea")
        yield Triple(f"{land} team", "plays_in", "League")
        yield Triple(f"{person} (poet)", "won", "Prize")


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with build(tmp_path_factory.mktemp("lands"), list(records()), name="lands") as opened:
        yield opened


def documents(count, first=0):
    """In one document of two a team plays, in the others a poet writes of the country."""
    for number in range(first, first + count):
        place, sport = number % 3, number % 2
        land, person = LANDS[place], PEOPLE[place]
        short = person.split()[0]
        event = "League" if sport else "Prize"
        words = [*person.split(), "saw", land, "and", short, "left", "Ann", "Zembla", event]
        mentions = [
            {"start": 0, "end": 2, "entity": person if sport else f"{person} (poet)"},
            {"start": 3, "end": 4, "entity": f"{land} team" if sport else land},
            {"start": 5, "end": 6, "entity": person if sport else f"{person} (poet)"},
        ]
        if place != 0:  # there is no Ann in it: the KB knows two all the same
            mentions.append({"start": 7, "end": 8, "entity": None})
        told = {"start": 8, "end": 9, "entity": f"{land} team" if sport else land}
        mentions.append({**told, "candidates": [land, f"{land} team", "Nowhere"]})
        mentions.append({"start": 9, "end": 10, "entity": event})
        yield {"doc_id": number, "tokens": words, "mentions": mentions}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "lands.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in documents(60)))
    return path


@pytest.fixture(scope="module")
def taught(kb, data):
    return list(labelled_entities(kb, generator_for(kb, max_candidates=None, overlaps=True), data))


def priors(taught):
    return [[mention.candidates.priors for mention in one.document.mentions] for one in taught]


# -- candidates that come with a document -------------------------------------


def test_given_candidates_share_the_priors_of_their_surface(kb):
    found = candidates_of_keys(kb, "Norway", ["Norway (island), Sea", "Norway team", "Norway", "Nowhere"])
    assert [kb.key(number) for number in found.ids.tolist()] == [
        "Norway", "Norway team", "Norway (island), Sea",
    ]  # fmt: skip
    np.testing.assert_allclose(found.priors, [90 / 110, 10 / 110, 10 / 110], rtol=1e-6)
    unknown = candidates_of_keys(kb, "Zembla", ["Chile", "Kenya"])
    assert unknown.priors.tolist() == [0.5, 0.5]
    assert candidates_of_keys(kb, "Norway", []) == NO_CANDIDATES


def test_a_mention_that_was_given_candidates_keeps_them_and_others_are_looked_up(kb, taught):
    mentions = taught[1].document.mentions
    assert [[kb.key(number) for number in mention.candidates.ids] for mention in mentions[1:5:3]] == [
        ["Chile", "Chile team"],
        ["Chile", "Chile team"],
    ]
    assert [right.tolist() for right in taught[1].right][1:5:3] == [[False, True], [False, True]]
    document = Document("d", "Norway", mentions=[Mention(0, 6, "Norway")])
    assert with_candidates(kb, document, [None]).mentions[0].candidates is None
    assert with_candidates(kb, document, [()]).mentions[0].candidates == NO_CANDIDATES


def test_candidates_of_the_data_must_be_names(tmp_path):
    path = tmp_path / "x.jsonl"
    mention = {"start": 0, "end": 1, "entity": None, "candidates": "Norway"}
    path.write_text(json.dumps({"doc_id": 1, "tokens": ["a"], "mentions": [mention]}))
    with pytest.raises(Exception, match=r"Expected `array.*candidates"):
        list(read_gold_documents(path))


# -- traits of candidates -------------------------------------------------------


def test_traits_of_a_candidate_are_those_of_their_names(kb):
    traits = EntityFeatures(kb, EntityFeaturesConfig(popularity=("visits",), types=("team",)))
    text = "Norway lost. The team of the island and a warm country."
    keys = ["Norway", "Norway team", "Norway (island), Sea"]
    document = Document("d", text, [(0, 12), (13, len(text))], mentions=[Mention(0, 6, "Norway")])
    found = traits(with_candidates(kb, document, [keys]))
    told = [dict(zip(traits.names, row, strict=True)) for row in found.tolist()]
    country, team, island = told
    assert found.shape == (3, len(traits.names)) and found.dtype == np.float32
    assert country["prior"] == pytest.approx(90 / 110) and team["place"] == 0.5
    assert country["log prior, relative"] == 0 and team["log prior, relative"] == pytest.approx(np.log(1 / 9))
    assert country["visits"] == pytest.approx(np.log(1001)) and island["visits"] == 0
    # the island and the poet; the league and the player; the country
    assert [one["degree"] for one in told] == pytest.approx([np.log(3), np.log(3), np.log(2)])
    assert [one["is title"] for one in told] == [1, 0, 0]
    assert [one["is plain"] for one in told] == [1, 0, 0]
    assert [one["is name"] for one in told] == [1, 0, 0]
    assert [one["begins"] for one in told] == [1, 1, 1]
    assert [one["brackets"] for one in told] == [0, 0, 0]  # not at the end
    assert [one["comma"] for one in told] == [0, 0, 1]
    assert [one["title words"] for one in told] == pytest.approx([1, 1 / 2, 1 / 3])
    assert [one["more words"] for one in told] == pytest.approx([0, np.log(2), np.log(3)])
    assert [one["other words"] for one in told] == [0, 1, 0.5]  # team; island, and no sea
    assert [one["all others"] for one in told] == [0, 1, 0]
    assert [one["in sentence"] for one in told] == [0, 0, 0]
    assert [one["described"] for one in told] == [1, 0, 0]  # warm, country
    assert [one["team"] for one in told] == [0, 1, 0]
    assert traits(Document("e", "", mentions=[])).shape == (0, len(traits.names))


def test_names_are_compared_as_people_write_them(kb):
    def of(surface, key):
        document = Document("d", surface, mentions=[Mention(0, len(surface), surface)])
        traits = EntityFeatures(kb)
        [row] = traits(with_candidates(kb, document, [[key]]))
        return dict(zip(traits.names, row.tolist(), strict=True))

    poet = of("Ann Berg", "Ann Berg (poet)")
    assert (poet["is title"], poet["is plain"], poet["is name"], poet["brackets"]) == (0, 1, 1, 1)
    assert of("AB", "Ann Berg")["acronym"] == 1 and of("A.B.", "Ann Berg (poet)")["acronym"] == 1
    assert of("A", "Ann Berg")["acronym"] == 0  # one letter is none
    assert of("Berg", "Ann Berg")["ends"] == 1
    assert of("Ann Berg of Oslo", "Ann Berg")["begun"] == 1
    assert of("norway", "Norway")["trigrams"] == 1
    assert 0 < of("Norwegen", "Norway")["trigrams"] < 1


# -- traits of links --------------------------------------------------------------


def slow_links(kb, mentions, scores, config):
    """Return the traits of links by their definitions, one candidate after the other."""
    names = [tuple(tokens(fold(mention.text))) for mention in mentions]
    order = list(dict.fromkeys(names))
    ids = sorted({number for mention in mentions for number in mention.candidates.ids.tolist()})
    chance = {name: dict.fromkeys(ids, 0.0) for name in order}
    for name, mention, score in zip(names, mentions, scores, strict=True):
        for number, one in zip(mention.candidates.ids.tolist(), score.tolist(), strict=True):
            chance[name][number] += one / names.count(name)
    beside = {number: set(kb.neighbors(number).tolist()) for number in ids}
    counted = {n: {e: p if p >= config.probable else 0 for e, p in one.items()} for n, one in chance.items()}
    support = [number for number in ids if any(counted[name][number] for name in order)]
    area = {number: beside[number] | {number} for number in ids}
    often = {node: sum(node in one for one in area.values()) for one in area.values() for node in one}
    vector = {n: {node: np.log(len(ids) / often[node]) for node in one} for n, one in area.items()}
    length = {n: np.sqrt(sum(value**2 for value in one.values())) or 1 for n, one in vector.items()}

    def cosine(a, b):
        return sum(vector[a][n] * vector[b].get(n, 0) for n in vector[a]) / length[a] / length[b]

    def within(part, whole):
        sizes = range(len(whole) - len(part) + 1)
        return len(part) < len(whole) and any(whole[at : at + len(part)] == part for at in sizes)

    rows = []
    for name, mention in zip(names, mentions, strict=True):
        for e in mention.candidates.ids.tolist():
            o = {k: sum(counted[n][k] for n in order if n != name) for k in support}
            others = [k for k in support if k != e]
            w = {k: 1 / np.log(2 + len(beside[k])) for k in support}
            out = [k for k in others if k in beside[e]]
            come = [k for k in others if e in beside[k]]
            alike = [o[k] * cosine(e, k) for k in others]
            rows.append([
                sum(o[k] * w[k] for k in out),
                sum(o[k] * w[k] for k in come),
                sum(o[k] * w[k] for k in out if k in come),
                1 - np.prod([1 - min(o[k], 0.999) for k in out]),
                1 - np.prod([1 - min(o[k], 0.999) for k in come]),
                sum(o[k] for k in out) / max(1, len(order) - 1),
                max([o[k] * w[k] for k in out], default=0),
                sum(alike),
                max([0, *alike]),
                sum(counted[n][e] for n in order if n != name),
                max([chance[n][e] for n in order if within(name, n)], default=0),
                max([chance[n][e] for n in order if within(n, name)], default=0),
                chance[name][e],
            ])  # fmt: skip
    return np.log1p(5 * np.array(rows))


@pytest.mark.parametrize("number", range(6))
def test_traits_of_links_are_those_of_their_definitions(kb, taught, number):
    rng = np.random.default_rng(number)
    mentions = [mention for one in taught[number : number + 2] for mention in one.document.mentions]
    scores = [rng.dirichlet(np.full(len(m.candidates), 0.3)).astype(np.float32) for m in mentions]
    config = LinkFeaturesConfig(probable=0.05)
    found = LinkFeatures(kb, config)(mentions, scores)
    expected = slow_links(kb, mentions, scores, config)
    np.testing.assert_allclose(found[:, : expected.shape[1]], expected, atol=1e-5)
    sizes = np.array([len(score) for score in scores])
    np.testing.assert_allclose(
        found[:, expected.shape[1] :], relative(expected.astype(np.float32), sizes), atol=1e-5
    )


def test_a_long_document_is_looked_at_in_parts(kb, taught):
    mentions = [mention for one in taught[:4] for mention in one.document.mentions]
    scores = [mention.candidates.priors for mention in mentions]
    links = LinkFeatures(kb, LinkFeaturesConfig(window=len(mentions) - 1))
    begin = len(mentions) // 2
    parts = [LinkFeatures(kb)(mentions[here], scores[here]) for here in (slice(0, begin), slice(begin, None))]
    np.testing.assert_array_equal(links(mentions, scores), np.concatenate(parts))
    assert links([], []).shape == (0, len(links.names))
    nothing = [Mention(0, 1, "x", NO_CANDIDATES)]
    assert links(nothing, [np.empty(0, np.float32)]).shape == (0, len(links.names))


# -- the networks ---------------------------------------------------------------------


@pytest.mark.parametrize("nil", [False, True])
def test_the_slope_is_that_of_the_surprise(nil):
    rng = np.random.default_rng(0)
    sizes, traits = np.array([3, 1, 2]), rng.standard_normal((6, 4)).astype(np.float32)
    right = np.array([1, 0, 1, 0 if nil else 1, 0, 1], bool)
    config = CoherenceConfig(hidden=5, dropout=0.0)
    network = _Network(4, config, rng)
    network.arrays[0] += rng.standard_normal(4).astype(np.float32)

    def surprise():
        p = probabilities(network(traits), sizes, nil=nil).astype(np.float64)
        goal = [p[:3][right[:3]].sum(), p[3] if not nil else 1 - p[3], p[5]]
        return -np.log(goal).mean()

    seen = []
    network._move = lambda slopes, rate: seen.extend(slopes)
    network._step(traits, right, sizes, nil, 0.1, rng)
    for array, slope in zip(network.arrays, seen, strict=True):
        for place in list(np.ndindex(array.shape))[:6]:
            before, low = array[place], []
            for moved in (before - 1e-2, before + 1e-2):
                array[place] = moved
                low.append(surprise())
            array[place] = before
            assert slope[place] == pytest.approx((low[1] - low[0]) / 2e-2, abs=2e-3)


def test_probabilities_sum_to_one_or_leave_nothing_its_part():
    scores, sizes = np.array([0.0, 1.0, 3.0], np.float32), np.array([2, 0, 1])
    found = probabilities(scores, sizes)
    assert found.tolist() == pytest.approx([1 / (1 + np.e), np.e / (1 + np.e), 1])
    found = probabilities(scores, sizes, 2.0, nil=True)
    half = np.exp(0.5)
    assert found.tolist() == pytest.approx(
        [1 / (2 + half), half / (2 + half), np.exp(1.5) / (1 + np.exp(1.5))]
    )
    assert len(probabilities(np.empty(0, np.float32), np.array([0, 0]))) == 0


def test_no_member_learns_from_its_own_fold(kb, taught, monkeypatch):
    stretches = np.array(list(folds_of(len(taught), 3))).argmax(0)
    assert np.diff(stretches).min() >= 0 and np.bincount(stretches).tolist() == [20, 20, 20]
    learnt, learn = [], _Network.learn

    def watch(self, told, mentions, rng):
        learnt.append((set(told.folds[mentions].tolist()), set(told.folds.tolist())))
        learn(self, told, mentions, rng)

    monkeypatch.setattr(_Network, "learn", watch)
    train_coherence(kb, taught, priors(taught), CoherenceConfig(hidden=0, epochs=1, members=3))
    assert learnt == [({0, 1, 2} - {member}, {0, 1, 2}) for _ in range(3) for member in range(3)]


def test_mentions_that_tell_nothing_are_not_learnt_from():
    right = np.array([1, 0, 0, 0, 1], bool)
    told = _CoherenceExamples(
        np.zeros((5, 1), np.float32), right, np.array([2, 1, 0, 1, 1]), np.zeros(5), nil=False
    )
    for nil, expected in ((False, [0]), (True, [0, 1, 3, 4])):
        network = _Network(1, CoherenceConfig(hidden=0, epochs=1), np.random.default_rng(0))
        seen = []
        network._step = lambda traits, right, sizes, *rest, seen=seen: seen.append(sorted(sizes.tolist()))
        network.learn(told._replace(nil=nil), np.arange(5), np.random.default_rng(0))
        assert seen == [sorted(told.sizes[expected].tolist())]


# -- what is learnt --------------------------------------------------------------------


def test_links_tell_what_names_alone_do_not(kb, data, tmp_path):
    training = LinkerTraining(data=(data,), texts=False)
    folder = train_linker(kb, "agreed", training)
    manifest = LINKER.read(folder)
    assert (manifest.type, manifest.vectors, manifest.encoder) == ("prior", "", "")
    assert manifest.results["held_out"] == 300 and manifest.results["held_out_accuracy"] > 0.95
    assert manifest.coherence["rounds"] == 3 and FILE in manifest.sizes
    path = tmp_path / "other.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in documents(6, first=60)))
    right = {"prior": 0, "agreed": 0}
    for model in right:
        linker = Linker.open(kb, model=model, nil=True)
        for gold in read_gold_documents(path):
            [linked] = linker([with_candidates(kb, gold.document, gold.candidates)])
            assert linked.model == model and all(0 <= link.score <= 1 for link in linked.links)
            pairs = zip(linked.links, gold.entities, strict=True)
            right[model] += sum(link.entity == entity for link, entity in pairs if entity is not None)
    assert right["prior"] <= 18 and right["agreed"] >= 29  # of 30


def test_what_means_nothing_can_be_learnt(kb, data):
    train_linker(kb, "nil", LinkerTraining(data=(data,), texts=False))
    [gold] = [gold for gold in read_gold_documents(data) if gold.document.id == "4"]
    [linked] = Linker.open(kb, model="nil", nil=True, threshold=0.5)(
        [with_candidates(kb, gold.document, gold.candidates)]
    )
    assert [link.nil for link in linked.links] == [entity is None for entity in gold.entities]
    for link in linked.links:
        total = sum(candidate.score for candidate in link.candidates)
        assert total < 0.5 if link.nil else 0.5 < total < 1.0001


def test_two_trainings_are_equal_and_another_seed_is_another(kb, taught):
    def weights(**settings):
        config = CoherenceConfig(hidden=4, epochs=2, members=2, **settings)
        found = train_coherence(kb, taught, priors(taught), config)
        return [array for members in found.coherence.rounds for array in members]

    one, again, other = weights(), weights(), weights(seed=1)
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not np.array_equal(one[3], other[3])


def test_other_documents_change_nothing_and_null_keeps_its_part(kb, data, taught):
    train_linker(kb, "agreed", LinkerTraining(data=(data,), texts=False))
    linker = Linker.open(kb, model="agreed")
    documents = [one.document for one in taught[:5]]
    for document, linked in zip(documents, linker(documents), strict=True):
        [alone] = linker([document])
        assert alone == linked
    unsure = Linker(kb, linker.settings, generator=AliasGenerator(kb, AliasConfig(null=0.25)))
    [linked] = unsure(["Ann Berg saw Norway"])
    [sure] = Linker(kb, linker.settings, generator=AliasGenerator(kb))(["Ann Berg saw Norway"])
    for link, other in zip(linked.links, sure.links, strict=True):
        scores = {candidate.entity: candidate.score for candidate in link.candidates}
        assert sum(scores.values()) == pytest.approx(0.75, abs=1e-5)
        for candidate in other.candidates:  # nothing but NULL's part is less
            assert scores[candidate.entity] == pytest.approx(0.75 * candidate.score, abs=1e-5)
    assert all(linked.links == [] for linked in linker(["", "nothing is known here"]))


# -- what goes wrong ----------------------------------------------------------------------


def test_a_damaged_or_stale_model_is_told(kb, data, tmp_path):
    training = LinkerTraining(data=(data,), texts=False)
    folder = train_linker(kb, "agreed", training)
    manifest = json.loads((folder / MANIFEST).read_bytes())
    with (
        build(tmp_path, [*records(), Entity("Oslo")], name="lands") as other,
        pytest.raises(StaleModel, match=f"was trained for lands@{kb.build}"),
    ):
        Linker.open(other, model=str(folder))
    with (
        build(tmp_path, list(records()), name="seas") as other,
        pytest.raises(UsageError, match="for the knowledge base 'lands', not for 'seas'"),
    ):
        Linker.open(other, model=str(folder))
    (folder / FILE).write_bytes(b"PK" + bytes(manifest["sizes"][FILE] - 2))
    with pytest.raises(DamagedModel, match="train it again"):
        Linker.open(kb, model="agreed")


def test_settings_that_cannot_be_are_refused(kb, data, tmp_path):
    for settings in ({"probable": 1}, {"window": 0}, {"max_neighbors": 0}):
        with pytest.raises(UsageError, match=f"{next(iter(settings))} is .*; it is "):
            LinkFeaturesConfig(**settings)
    few = tmp_path / "few.jsonl"
    few.write_text("".join(json.dumps(one) + "\n" for one in documents(2)))
    with pytest.raises(UsageError, match="at least 5 documents of training data, found 2"):
        train_linker(kb, "m", LinkerTraining(data=(few,), texts=False))


# -- the command ---------------------------------------------------------------------------


def test_commands_use_coherence_by_the_name_of_its_linker(kb, data, tmp_path):
    home = kb.home.path.parents[1]
    manifest = LINKER.read(train_linker(kb, "told", LinkerTraining(data=(data,), texts=False)))
    assert manifest.coherence["traits"] == {"popularity": [], "types": []}
    assert manifest.coherence["nil"] is True
    scored = run(
        "evaluate", "el", "--data", data, "--model", "told", "--mentions", "given", "--home", home, "--json"
    )
    assert json.loads(scored.out)["together"]["accuracy"] > 0.9
    text = tmp_path / "a.txt"
    text.write_text("Ann Berg saw Norway")
    linked = json.loads(run("link", text, "--model", "told", "--home", home).out)
    assert linked["model"] == "told" and len(linked["links"]) == 2


def test_attributes_that_tell_how_well_known_an_entity_is_are_found(tmp_path):
    several = [
        Entity("a", attributes={"in_count": 3, "popularity": "high"}),
        Entity("b", attributes={"in_count": 0}),
    ]
    with build(tmp_path, several, name="known") as known:
        assert popularity_of(known) == ("in_count",)


def test_coherence_above_the_prior_needs_no_torch(kb, data):
    code = f"""
import sys, kgkit
from pathlib import Path
from kgkit.linking import Linker, PriorScorer
from kgkit.training.linkers.train import train_linker
from kgkit.training.linkers.settings import LinkerTraining
with kgkit.open_kb("lands", {str(kb.home.path.parents[1])!r}) as kb:
    data = (Path({str(data)!r}),)
    train_linker(kb, "light", LinkerTraining(data=data, texts=False))
    links = len(next(Linker.open(kb, model="light")(["Ann Berg saw Norway"])).links)
print(links, [name for name in ("torch", "transformers", "faiss") if name in sys.modules])
"""
    assert run_python(code).stdout == "2 []\n"


def test_a_second_stage_whose_settings_make_no_sense_is_told_when_it_is_opened(kb, data):
    training = LinkerTraining(data=(data,), texts=False)
    folder = train_linker(kb, "settings", training)
    manifest = json.loads((folder / MANIFEST).read_text())
    second = manifest["coherence"]
    for told in (
        {"temperature": 0}, {"temperature": 1e308}, {"rounds": 0}, {"nil": "x"},
        {"traits": second["traits"] | {"types": "abc"}}, {"traits": second["traits"] | {"types": ["a"] * 9}},
        {"links": second["links"] | {"window": 1e308}}, {"links": second["links"] | {"max_neighbors": 1.5}},
    ):  # fmt: skip
        (folder / MANIFEST).write_text(json.dumps(manifest | {"coherence": second | told}))
        with pytest.raises(DamagedModel, match=r"a setting in model\.json"):
            Linker.open(kb, model="settings")


def test_a_second_stage_that_divides_by_nothing_or_has_no_network_is_told_when_it_is_opened(kb, data):
    training = LinkerTraining(data=(data,), texts=False)
    folder = train_linker(kb, "arrays", training)
    manifest = json.loads((folder / MANIFEST).read_text())
    whole = dict(np.load(folder / FILE))
    for name, wrong in (
        ("deviation 0", whole["deviation 0"] * 0), ("deviation 1", -whole["deviation 1"]),
        ("direct 0", whole["direct 0"][:0]),
    ):  # fmt: skip
        np.savez(folder / FILE, **{**whole, name: wrong})
        sizes = manifest["sizes"] | {FILE: (folder / FILE).stat().st_size}
        (folder / MANIFEST).write_text(json.dumps(manifest | {"sizes": sizes}))
        with pytest.raises(DamagedModel, match=r"coherence\.npz has no networks, or deviations"):
            Linker.open(kb, model="arrays", device="cpu")
