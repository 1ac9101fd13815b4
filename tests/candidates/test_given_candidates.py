"""Candidates that come with a document."""

import json

import numpy as np
import pytest

from kgkit.building import Alias, Entity
from kgkit.candidates import candidates_of_keys, generator_for, with_candidates
from kgkit.evaluation.el_files import read_gold_documents
from kgkit.training.linkers.labelled import labelled_entities
from kgkit.types import NO_CANDIDATES, Document, Mention
from tests.small_kb import build


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    keys = ("Norway", "Norway team", "Norway (island), Sea", "Chile", "Kenya")
    counts = {"Norway": 90, "Norway team": 10, "Norway (island), Sea": 10}
    records = [*map(Entity, keys), *(Alias("Norway", key, count) for key, count in counts.items())]
    with build(tmp_path_factory.mktemp("lands"), records, name="lands") as opened:
        yield opened


def test_given_candidates_share_the_priors_of_their_surface(kb):
    found = candidates_of_keys(kb, "Norway", ["Norway (island), Sea", "Norway team", "Norway", "Nowhere"])
    assert [kb.key(number) for number in found.ids.tolist()] == [
        "Norway", "Norway team", "Norway (island), Sea",
    ]  # fmt: skip
    np.testing.assert_allclose(found.priors, [90 / 110, 10 / 110, 10 / 110], rtol=1e-6)
    unknown = candidates_of_keys(kb, "Zembla", ["Chile", "Kenya"])
    assert unknown.priors.tolist() == [0.5, 0.5]
    assert candidates_of_keys(kb, "Norway", []) == NO_CANDIDATES


def test_a_mention_that_was_given_candidates_keeps_them_and_others_are_looked_up(kb, tmp_path):
    path = tmp_path / "x.jsonl"
    mentions = [
        {"start": 0, "end": 1, "entity": "Norway team", "candidates": ["Norway", "Norway team", "Nowhere"]},
        {"start": 1, "end": 2, "entity": "Norway"},
    ]
    path.write_text(json.dumps({"doc_id": 1, "tokens": ["Norway", "Norway"], "mentions": mentions}))
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    [taught] = labelled_entities(kb, generator, path)
    found = [[kb.key(number) for number in mention.candidates.ids] for mention in taught.document.mentions]
    assert found == [["Norway", "Norway team"], ["Norway", "Norway team", "Norway (island), Sea"]]
    assert [right.tolist() for right in taught.right] == [[False, True], [True, False, False]]
    document = Document("d", "Norway", mentions=[Mention(0, 6, "Norway")])
    assert with_candidates(kb, document, [None]).mentions[0].candidates is None
    assert with_candidates(kb, document, [()]).mentions[0].candidates == NO_CANDIDATES


def test_candidates_of_the_data_must_be_names(tmp_path):
    path = tmp_path / "x.jsonl"
    mention = {"start": 0, "end": 1, "entity": None, "candidates": "Norway"}
    path.write_text(json.dumps({"doc_id": 1, "tokens": ["a"], "mentions": [mention]}))
    with pytest.raises(Exception, match=r"Expected `array.*candidates"):
        list(read_gold_documents(path))
