"""The model `gloss`: its formula, whatever stands beside a document; what is told if something is missing."""

import math

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import kgkit
from kgkit.embedding.partial import PartialTextVectors
from kgkit.embedding.text import TextConfig, embed_text
from kgkit.encoder import Encoder
from kgkit.errors import NotThere, UnknownName, UsageError
from kgkit.inputs import SpanConfig, SpanReader
from kgkit.linking import Linker, LinkSettings
from kgkit.linking.gloss import GlossScorer, text_cosines
from kgkit.linking.text_vectors import warn_of_missing
from kgkit.types import Alias, Candidates, Document, Entity, Mention
from tests.cli_helpers import run
from tests.small_kb import build
from tests.tiny_encoder import tiny_encoder

RECORDS = (
    Entity("dog", "dog", "a big red dog barks"),
    Entity("hound", "cat", "it eats the fruit in the tree"),
    Entity("nameless", "", ""),
    Alias("dog", "dog", 5),
    Alias("dog", "hound", 4),
    Alias("dog", "nameless", 1),
    Alias("cat", "hound", 1),
)
TEXT = "the big dog eats . a cat barks ."
SHORT = SpanConfig(size=16, context=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def encoder(folder):
    return Encoder.load(str(folder), device="cpu", dtype="float32")


@pytest.fixture
def kb(tmp_path, encoder, folder):
    with build(tmp_path / "home", RECORDS, name="pets") as kb:
        embed_text(kb, TextConfig(encoder=str(folder), device="cpu", dtype="float32"))
        yield kb


@pytest.fixture
def scorer(kb, encoder):
    return GlossScorer(kb.vectors("text"), encoder, SHORT)


def cosine(one, other):
    return float(one @ other / math.sqrt(one @ one) / math.sqrt(other @ other))


def test_scores_are_those_of_the_formula(kb, scorer, encoder):
    document = Document("d", TEXT, mentions=[Mention(8, 11, "dog", kb.candidates("dog"))])
    [[scores]] = scorer([document])
    reader = SpanReader(encoder, SpanConfig(size=16, context=2))
    [(_, [mention])] = reader([document])
    vectors = kb.vectors("text")
    fits = [cosine(mention, vectors.gather(kb.id(key))) for key in ("dog", "hound")]
    fits.append(sum(fits) / 2)  # nameless has no vector
    weights = [prior * math.exp(fit / 0.1) for prior, fit in zip((0.5, 0.4, 0.1), fits, strict=True)]
    np.testing.assert_allclose(scores, np.array(weights) / sum(weights), rtol=2e-4)


def test_null_keeps_its_part_and_a_prior_of_zero_is_not_the_end(kb, scorer):
    rows = kb.candidates("dog").rows.copy()
    rows["prior"] = 0.5, 0.2, 0
    document = Document(
        "d", TEXT, mentions=[Mention(8, 11, "dog", Candidates(rows, 0.3)), Mention(0, 3, "the")]
    )
    [[scores, none]] = scorer([document])
    assert scores.sum() == pytest.approx(0.7)
    assert 0 < scores[2] < 1e-3
    assert none.shape == (0,)


def test_a_document_is_linked_alike_whatever_stands_beside_it(kb, scorer):
    linker = Linker(kb, scorer=scorer)
    several = list(linker([TEXT, "a dog", "", "fruit " * 40 + "dog"]))
    for linked in several:
        [alone] = linker([linked.text])
        assert [(link.start, link.entity) for link in alone.links] == [
            (link.start, link.entity) for link in linked.links
        ]
        for one, other in zip(alone.links, linked.links, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)
    assert [linked.model for linked in several] == ["gloss"] * 4
    assert several[3].links[-1].text == "dog"  # far behind the first window


def test_links_come_best_first_and_scores_decide_over_priors(kb, scorer):
    [linked] = Linker(kb, scorer=scorer)(["dog"])
    [link] = linked.links
    scores = [candidate.score for candidate in link.candidates]
    assert scores == sorted(scores, reverse=True)
    assert link.entity == link.candidates[0].entity and link.score == scores[0]


def test_coherence_may_come_behind(kb, scorer):
    [linked] = Linker(kb, LinkSettings(coherence="graph"), scorer=scorer)([TEXT])
    assert linked.model == "gloss+graph"
    assert [link.text for link in linked.links] == ["dog", "cat"]


def test_without_vectors_texts_are_encoded_as_they_are_needed(tmp_path, kb, scorer, encoder, folder):
    expected = [*Linker(kb, scorer=scorer)([TEXT, "a dog"])]
    config = TextConfig(encoder=str(folder), device="cpu", dtype="float32")
    with build(tmp_path / "bare", RECORDS, name="pets") as bare:
        for _ in range(2):
            partial = GlossScorer(PartialTextVectors(bare, config, encoder), encoder, SHORT)
            assert [*Linker(bare, scorer=partial)([TEXT, "a dog"])] == expected


def test_vectors_that_are_named_must_be_there(tmp_path):
    with build(tmp_path, RECORDS, name="bare") as kb:
        with pytest.raises(NotThere, match="`kgkit embed bare --method text --name mine` makes some"):
            Linker.open(kb, model="gloss", vectors="mine")
        with pytest.raises(UnknownName, match="there are: prior, gloss"):
            Linker.open(kb, model="glos")


def test_entities_that_came_since_are_told_of(kb, tmp_path, caplog):
    more = tmp_path / "more.jsonl"
    more.write_text('{"key": "wolf", "label": "wolf", "aliases": ["dog"]}\n')
    home = kb.home.path.parents[1]
    kgkit.add_to_kb("pets", more, builder="jsonl", home=home)
    with kgkit.open_kb("pets", home=home) as added:
        warn_of_missing(added, added.vectors("text"))
        assert "`kgkit embed pets --name text --update`" in caplog.text


def test_vectors_of_another_width_are_refused(kb, tmp_path, encoder):
    class Wide:
        width, name = 7, "pets/wide"

    with pytest.raises(UsageError, match="pets/wide holds vectors of width 7"):
        GlossScorer(Wide(), encoder, SHORT)


def test_the_command_takes_model_and_vectors(kb, tmp_path, folder):
    home = kb.home.path.parents[1]
    text = tmp_path / "a.txt"
    text.write_text("a big dog")
    done = run("link", text, "--kb", "pets", "--model", "gloss", "--home", home)
    assert done.code == 0, done.err
    assert '"model":"gloss"' in done.out
    assert run("link", text, "--kb", "pets", "--model", "gloss", "--vectors", "no", "--home", home).code == 3


def test_a_candidate_without_a_text_has_the_mean_of_the_others():
    texts = np.array([[2, 0], [0, 0], [0, 3]], np.float32)
    np.testing.assert_allclose(text_cosines(np.array([5, 0], np.float32), texts), [1, 0.5, 0])
    assert text_cosines(np.ones(2, np.float32), np.zeros((2, 2), np.float32)).tolist() == [0, 0]
    assert text_cosines(np.ones(2, np.float32), np.zeros((0, 2), np.float32)).tolist() == []
