"""The scorer over a trained head: documents that come together are read by the head together."""

from types import SimpleNamespace

import numpy as np
import pytest

from kgkit.linking.gloss import text_cosines
from kgkit.types import CANDIDATE, Candidates, Document, Mention

torch = pytest.importorskip("torch")

WIDTH = 8
ENTITIES = 20


class RandomReader:
    """Gives each mention a random vector, the same each time."""

    config = SimpleNamespace(layers=(-1,))
    encoder = SimpleNamespace(width=WIDTH)

    def __call__(self, documents):
        for document in documents:
            generator = np.random.default_rng(len(document.text))
            yield document, generator.normal(size=(len(document.mentions), WIDTH)).astype(np.float32)


class RandomVectors:
    """Random vectors of entities."""

    width = WIDTH
    matrix = np.random.default_rng(1).normal(size=(ENTITIES, WIDTH)).astype(np.float32)

    def prepare(self, ids):
        """All are there."""

    def gather(self, ids):
        return self.matrix[ids]


def document_of(name, length, sizes):
    """Return a document of so many characters with mentions of so many candidates each."""
    generator = np.random.default_rng(length)
    document = Document(name, "x" * length)
    document.mentions = []
    for index, size in enumerate(sizes):
        rows = np.zeros(size, CANDIDATE)
        rows["entity"] = generator.choice(ENTITIES, size, replace=False)
        rows["prior"] = 1 / max(1, size)
        document.mentions.append(Mention(index, index + 1, "x", candidates=Candidates(rows)))
    return document


@pytest.fixture
def scorer():
    from kgkit.heads.entity_linker import EntityLinker, EntityLinkerConfig
    from kgkit.linking.head import HeadScorer

    config = EntityLinkerConfig(
        hidden=WIDTH, width=WIDTH, stored=WIDTH, features=4, heads=2, inner=8, scorer=4
    )
    head = EntityLinker(config, torch.Generator().manual_seed(0)).eval()
    scale = np.array([[0.0] * 4, [1.0] * 4], np.float32)
    return HeadScorer(RandomReader(), RandomVectors(), None, head, scale)


DOCUMENTS = [
    document_of("a", 90, [3, 1, 5]),
    document_of("none", 40, []),
    document_of("long", 200, [2] * 60),
    document_of("unknown", 50, [0, 4]),
]


def test_documents_together_have_the_scores_of_each_by_itself(scorer):
    together = scorer(DOCUMENTS)
    assert [len(scores) for scores in together] == [3, 0, 60, 2]
    for document, scores in zip(DOCUMENTS, together, strict=True):
        [alone] = scorer([document])
        for score, expected in zip(scores, alone, strict=True):
            np.testing.assert_allclose(score, expected, atol=1e-6)


def test_scores_of_a_mention_are_probabilities_of_its_candidates(scorer):
    for document, scores in zip(DOCUMENTS, scorer(DOCUMENTS), strict=True):
        for mention, score in zip(document.mentions, scores, strict=True):
            assert score.shape == (len(mention.candidates),)
            assert not len(score) or score.sum() == pytest.approx(1, abs=1e-5)


def test_the_head_reads_the_sentences_of_several_documents_at_once(scorer):
    calls = []
    forward = scorer.head.forward

    def counted(inputs):
        calls.append(len(inputs.mentions))
        return forward(inputs)

    scorer.head.forward = counted
    scorer(DOCUMENTS[:2] * 3 + DOCUMENTS[2:3])
    assert calls == [6]  # three sentences, and one of 60 mentions, which are read 24 at a time


def test_the_text_of_an_entity_counts_beside_the_score_of_the_head(scorer, monkeypatch):
    document, vectors = next(iter(scorer.reader(DOCUMENTS[:1])))
    alone = scorer.scores(document, vectors)
    scorer.text_weight = 0.5
    for mention, vector, score, own in zip(
        document.mentions, vectors, alone, scorer.scores(document, vectors), strict=True
    ):
        texts = RandomVectors.matrix[mention.candidates.ids]
        cosines = texts @ vector / (np.linalg.norm(texts, axis=1) * np.linalg.norm(vector))
        np.testing.assert_allclose(own, score + 0.5 * cosines / 0.1, atol=1e-5)
    together = [score for scores in scorer(DOCUMENTS) for score in scores]
    apart = [score for one in DOCUMENTS for score in scorer([one])[0]]
    for score, expected in zip(together, apart, strict=True):
        np.testing.assert_allclose(score, expected, atol=1e-6)


def test_cosines_are_those_of_gloss_with_missing_texts_layers_and_neighbours(scorer, monkeypatch):
    """Two layers are read, texts of neighbours stand behind those of entities, and some have no text."""
    from kgkit.heads.entity_linker import LinkerInputs

    generator = np.random.default_rng(3)
    hidden = generator.normal(size=(1, 3, 2 * WIDTH)).astype(np.float32)
    texts = generator.normal(size=(1, 3, 4, 2 * WIDTH)).astype(np.float32)
    texts[0, 0, 1, :WIDTH] = texts[0, 1, :3, :WIDTH] = 0
    candidates = np.array([[[True] * 4, [True] * 3 + [False], [False] * 4]])
    inputs = LinkerInputs(*map(torch.from_numpy, (hidden, hidden, hidden, texts, hidden, candidates)))
    monkeypatch.setattr(scorer.vectors, "own_width", WIDTH, raising=False)
    cosines = scorer._text_cosines(inputs).numpy()
    for m, count in enumerate((4, 3, 0)):
        expected = text_cosines(hidden[0, m, :WIDTH], texts[0, m, :count, :WIDTH])
        np.testing.assert_allclose(cosines[0, m, :count], expected, atol=1e-6)


def test_documents_without_mentions_have_no_scores(scorer):
    assert scorer([]) == []
    assert scorer([DOCUMENTS[1]]) == [[]]
