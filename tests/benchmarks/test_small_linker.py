"""The recipe of the linker that comes with kgkit: a portable head, taught by another linker."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks.small_linker import prior_sentences, taught_documents, train
from kgkit.candidates import generator_for
from kgkit.inputs import SpanReader
from kgkit.linking import Linker, PriorScorer
from kgkit.linking.prior_features import prior_features
from kgkit.models.kinds import LINKER
from kgkit.training.linkers.head import HeadConfig
from kgkit.training.linkers.labelled import labelled_senses
from kgkit.training.linkers.means import TrainingSet
from tests.training.linkers.test_linkers import READ, TEXT, corpus, encoder, folder, kb

__all__ = ["corpus", "encoder", "folder", "kb"]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "plain.txt"
    path.write_text("a dog barks\nthe tree grows\n\nno names\n\nthe dog eats fruit\n")
    return path


def test_a_teacher_says_what_the_mentions_of_plain_text_mean(kb, text):
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    (first, targets), (second, _) = taught_documents(generator, PriorScorer(), text)
    assert (first.document.text, second.document.text) == ("a dog barks the tree grows", "the dog eats fruit")
    assert [mention.text for mention in first.document.mentions] == ["dog", "tree"]
    np.testing.assert_allclose(targets[0], [0.6, 0.4], atol=1e-6)
    assert [right.tolist() for right in first.right] == [[True, False], [True]]


def test_priors_that_are_counted_leave_the_document_out(kb, corpus, encoder, tmp_path):
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    labelled = list(labelled_senses(kb, generator, *corpus))
    part = TrainingSet(SpanReader(encoder, READ), labelled, tmp_path / "read", None)
    first = next(prior_sentences([part], {}))
    counts = np.array([2 * 19 + 1, 19 + 1])  # a dog twice in each of the others, another once
    expected = prior_features(counts / counts.sum(), np.array([2]))
    np.testing.assert_allclose(first.sentence.features[0], expected, rtol=1e-5)


def test_the_head_stores_nothing_of_single_entities_and_links(kb, corpus, text):
    where = train(
        kb, "light",
        lambda generator: [[*labelled_senses(kb, generator, *corpus)]],
        lambda generator: [*taught_documents(generator, PriorScorer(), text)],
        HeadConfig(epochs=2), files=(*corpus, text), reader=READ,
    )  # fmt: skip
    manifest = LINKER.read(where)
    assert (manifest.kb, manifest.build) == ("", "")
    assert {path.split("/")[0] for path in manifest.sizes} == {"head", "scale.npy"}
    [linked] = Linker.open(kb, model="light", device="cpu")([TEXT])
    assert len(linked.links) == 4 and Linker.open(kb, model="light", device="cpu").scorer.text_weight == 0.6
