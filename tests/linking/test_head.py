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
    from kgkit.heads.entity_linker import EntityLinker
    from kgkit.heads.settings import EntityLinkerConfig
    from kgkit.linking.head import HeadScorer

    config = EntityLinkerConfig(
        hidden=WIDTH, width=WIDTH, stored=WIDTH, features=4, heads=2, inner=8, scorer=4
    )
    head = EntityLinker(config, torch.Generator().manual_seed(0)).eval()
    scale = np.array([[0.0] * 4, [1.0] * 4], np.float32)
    return HeadScorer(RandomReader(), RandomVectors(), None, head.network(), scale)


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


def test_cosines_are_those_of_gloss_where_texts_are_missing():
    from kgkit.linking.head import _text_cosines

    generator = np.random.default_rng(3)
    mentions = generator.normal(size=(4, WIDTH)).astype(np.float32)
    texts = generator.normal(size=(9, WIDTH)).astype(np.float32)
    texts[1] = texts[4:7] = 0
    of = np.array([0, 0, 0, 0, 1, 1, 1, 3, 3])
    cosines = _text_cosines(mentions, texts, of)
    for number in (0, 1, 3):
        expected = text_cosines(mentions[number], texts[of == number])
        np.testing.assert_allclose(cosines[of == number], expected, atol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"attention": False}, {"stored": None}, {"mask": True}])
def test_a_head_is_asked_without_torch_and_says_the_same(tmp_path, settings):
    from kgkit.errors import DamagedModel
    from kgkit.heads.entity_linker import EntityLinker
    from kgkit.heads.linker_network import LinkerNetwork
    from kgkit.heads.settings import EntityLinkerConfig
    from kgkit.inputs.linking import LinkerSentence, padded_layout, shared_linker_inputs

    shape = {
        "hidden": 12,
        "width": WIDTH,
        "stored": WIDTH,
        "features": 4,
        "heads": 2,
        "inner": 8,
        "scorer": 4,
    }
    torch.manual_seed(1)
    head = EntityLinker(EntityLinkerConfig(**{**shape, **settings})).eval()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    generator = np.random.default_rng(0)
    hidden = generator.normal(size=(7, 12)).astype(np.float32)
    sentences = []
    for rows, sizes in (([0, 1, 2], (3, 1, 5)), ([3], (2,)), ([4, 5, 6], (0, 4, 2))):
        ids = [generator.choice(ENTITIES, size, replace=False).astype(np.uint32) for size in sizes]
        features = [generator.normal(size=(size, 4)).astype(np.float32) for size in sizes]
        sentences.append(LinkerSentence(np.array(rows), ids, features))
    matrix = RandomVectors.matrix
    inputs, _ = shared_linker_inputs(sentences, lambda ids: matrix[ids], lambda rows: hidden[rows])
    with torch.no_grad():
        expected = head(inputs).scores.numpy()
    head.save_pretrained(tmp_path)
    layout = padded_layout(sentences)
    for network in (head.network(), LinkerNetwork.load(tmp_path)):
        b, m, _ = layout.candidate
        of = np.searchsorted(layout.mention[0] * 24 + layout.mention[1], b * 24 + m)
        scores = network.scores(
            network.mentions(hidden[layout.rows], layout.mention)[of],
            network.entities(matrix[layout.ids]),
            np.concatenate([each for sentence in sentences for each in sentence.features]),
        )
        np.testing.assert_allclose(scores, expected[layout.candidate], atol=1e-5)
    (tmp_path / "config.json").write_text((tmp_path / "config.json").read_text().replace("12", "13"))
    with pytest.raises(DamagedModel):
        LinkerNetwork.load(tmp_path)


def test_documents_without_mentions_have_no_scores(scorer):
    assert scorer([]) == []
    assert scorer([DOCUMENTS[1]]) == [[]]
