"""Scores on the unified WSD framework, held to figures that were published or counted another way."""

import pytest

import kgkit
from kgkit.evaluation import read_documents, read_gold, score
from kgkit.linking import Linker, LinkSettings
from kgkit.store import StoreReader

SETS = ("senseval2", "senseval3", "semeval2007", "semeval2013", "semeval2015")
# Right answers of WordNet's first sense, counted from index.* alone.
FIRST_SENSE = {
    "senseval2": 1523,
    "senseval3": 1221,
    "semeval2007": 251,
    "semeval2013": 1035,
    "semeval2015": 690,
}


@pytest.fixture(scope="module")
def kb(wordnet_build):
    with kgkit.KnowledgeBase(StoreReader.open(wordnet_build), "wordnet") as kb:
        yield kb


def right_answers(linker, name, folder):
    documents = read_documents(next(folder.glob(f"{name}.data.xml*")))
    answers = {link.id: (link.sense,) for document in linker(documents) for link in document.links}
    return score(read_gold(next(folder.glob(f"{name}.gold.key.txt*"))), answers).overall


@pytest.mark.parametrize("name", SETS)
def test_the_prior_is_the_first_sense(kb, shared_data, name):
    linker = Linker(kb, LinkSettings(max_candidates=None))
    found = right_answers(linker, name, shared_data / "wsd")
    assert (found.right, found.answered) == (FIRST_SENSE[name], found.total)


@pytest.mark.slow
def test_coherence_is_better_than_the_prior_on_all_five_together(kb, shared_data):
    linker = Linker(kb, LinkSettings(max_candidates=None, coherence="graph"))
    right = sum(right_answers(linker, name, shared_data / "wsd").right for name in SETS)
    assert right > sum(FIRST_SENSE.values())
