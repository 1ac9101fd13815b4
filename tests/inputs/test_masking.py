"""What is hidden in a text: how often what, and that candidates do not betray it."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from kgkit.heads import EntityLinkerConfig, KARConfig, KnowBert
from kgkit.inputs.masking import NOTHING, Masking
from kgkit.inputs.mentions import MentionSpans
from kgkit.inputs.texts import TokenizedText
from kgkit.types import CANDIDATE, Candidates
from tests.inputs.test_knowbert import encoder, knowledge, reader
from tests.tiny_encoder import PIECES, WIDTH

__all__ = ["encoder", "knowledge", "reader"]

MASK = 1  # the tiny tokenizer has no [MASK]
ORDINARY = np.arange(4, len(PIECES))
LENGTH = 4_000


def candidates(*ids):
    rows = np.zeros(len(ids), CANDIDATE)
    rows["entity"], rows["prior"] = ids, 1 / max(1, len(ids))
    return Candidates(rows)


@pytest.fixture(scope="module")
def text():
    """A long one: mentions of one, two and three pieces, each with candidates of its own."""
    ids = np.random.default_rng(0).choice(ORDINARY, LENGTH)
    special = np.zeros(LENGTH, np.bool_)
    special[[0, -1]] = True
    starts = np.arange(1, LENGTH - 8, 4)
    spans = np.stack([starts, starts + 1 + np.arange(len(starts)) % 3], axis=1)
    some = [candidates(2 * n, 2 * n + 1) for n in range(len(spans))]
    return TokenizedText(
        ids,
        np.zeros(LENGTH, np.int64),
        special,
        {"a": MentionSpans(spans, some, np.zeros(len(spans), bool), np.arange(len(spans)))},
    )


def test_pieces_are_hidden_as_often_as_in_bert(text):
    found, labels = Masking(MASK, ORDINARY)(text, np.random.default_rng(1))
    asked = labels != NOTHING
    assert asked.sum() == round(0.15 * (LENGTH - 2)) and not asked[text.special].any()
    np.testing.assert_array_equal(labels[asked], text.ids[asked])
    np.testing.assert_array_equal(found.ids[~asked], text.ids[~asked])
    mask = (found.ids[asked] == MASK).mean()
    same = (found.ids[asked] == text.ids[asked]).mean()
    assert mask == pytest.approx(0.8, abs=0.05) and same == pytest.approx(0.1, abs=0.05)


def test_a_mention_with_a_hidden_piece_has_one_fate_however_many_pieces_it_has(text):
    fates = {1: [], 2: [], 3: []}
    for seed in range(5):
        found, labels = Masking(MASK, ORDINARY, share=0.5)(text, np.random.default_rng(seed))
        known, before = found.mentions["a"], text.mentions["a"]
        for place, (first, end) in enumerate(before.spans.tolist()):
            own = known.candidates[place] is before.candidates[place]
            if (labels[first:end] == NOTHING).all():
                assert own and not known.masked[place]
            else:
                fates[end - first].append("mask" if known.masked[place] else "own" if own else "others")
    for of in fates.values():
        assert of.count("mask") / len(of) == pytest.approx(0.8, abs=0.03)
        assert of.count("others") / len(of) == pytest.approx(0.1, abs=0.03)


def test_candidates_of_others_are_of_the_text_and_their_priors_sum_to_one(text):
    found, _ = Masking(MASK, ORDINARY)(text, np.random.default_rng(2))
    own = text.mentions["a"].candidates
    strange = [
        one for one, before in zip(found.mentions["a"].candidates, own, strict=True) if one is not before
    ]
    assert strange
    for one in strange:
        assert 1 <= len(one) <= 5 and one.priors.sum() == pytest.approx(1)
        assert (np.diff(one.priors) <= 0).all() and set(one.ids.tolist()) <= set(range(2 * len(own)))


def test_candidates_of_others_are_of_mentions_that_hide_nothing(text):
    """Else a mention around the same hidden piece could tell it."""
    for seed in range(5):
        found, labels = Masking(MASK, ORDINARY, share=0.5)(text, np.random.default_rng(seed))
        before = text.mentions["a"]
        pairs = zip(before.candidates, before.spans.tolist(), strict=True)
        open_ones = {
            entity
            for one, (first, end) in pairs
            if (labels[first:end] == NOTHING).all()
            for entity in one.ids.tolist()
        }
        for place, one in enumerate(found.mentions["a"].candidates):
            assert one is before.candidates[place] or set(one.ids.tolist()) <= open_ones


@pytest.mark.slow
def test_a_mention_that_two_knowledge_bases_know_has_one_fate_in_both(text):
    one = text.mentions["a"]
    order = np.random.default_rng(3).permutation(len(one.spans))[: len(one.spans) // 2]
    spans = np.concatenate([one.spans[order], one.spans[order] + [0, 4]])  # half shared, half its own
    two = MentionSpans(spans, [candidates(10_000 + n) for n in range(len(spans))], np.zeros(len(spans), bool),
                np.arange(len(spans)))  # fmt: skip
    both = text._replace(mentions={"a": one, "b": two})
    fates = {"mask": 0, "others": 0, "own": 0}
    for seed in range(5):
        found, labels = Masking(MASK, ORDINARY, share=0.5)(both, np.random.default_rng(seed))

        def fate(kb, place, found=found):
            before, after = both.mentions[kb], found.mentions[kb]
            own = after.candidates[place] is before.candidates[place]
            return "mask" if after.masked[place] else "own" if own else "others"

        for place, other in enumerate(order.tolist()):
            assert fate("b", place) == fate("a", other)
            if (labels[slice(*spans[place])] != NOTHING).any():
                fates[fate("b", place)] += 1
        assert any(fate("b", place) != "own" for place in range(len(order), len(spans)))
        # What one knowledge base adds changes nothing in the other.
        alone, _ = Masking(MASK, ORDINARY, share=0.5)(text, np.random.default_rng(seed))
        np.testing.assert_array_equal(alone.mentions["a"].masked, found.mentions["a"].masked)
    assert fates["mask"] / sum(fates.values()) == pytest.approx(0.8, abs=0.05) and min(fates.values()) > 50


def test_the_same_numbers_hide_the_same(text):
    first, second = (Masking(MASK, ORDINARY)(text, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first.text.ids, second.text.ids)
    np.testing.assert_array_equal(first.text.mentions["a"].masked, second.text.mentions["a"].masked)


def test_a_text_of_special_pieces_alone_is_left_as_it_is():
    nothing = MentionSpans(np.empty((0, 2), np.int64), [], np.empty(0, np.bool_), np.empty(0, np.int64))
    empty = TokenizedText(np.array([2, 3]), np.zeros(2, np.int64), np.ones(2, np.bool_), {"a": nothing})
    found, labels = Masking(MASK, ORDINARY)(empty, np.random.default_rng(0))
    assert found.ids.tolist() == [2, 3] and (labels == NOTHING).all()


def test_mentions_that_nobody_knows_stay_unknown(text):
    known = text.mentions["a"]
    none = text._replace(mentions={"a": known._replace(candidates=[candidates() for _ in known.candidates])})
    found, _ = Masking(MASK, ORDINARY, share=0.9)(none, np.random.default_rng(0))
    assert not any(map(len, found.mentions["a"].candidates))


def test_a_word_that_is_hidden_with_its_candidates_cannot_be_told(reader, encoder, knowledge):
    """Two texts that differ in the hidden word alone are read alike, to the last bit."""
    linker = EntityLinkerConfig(
        hidden=WIDTH, width=8, stored=knowledge.width, heads=2, inner=8, scorer=4, mask=True
    )
    knowbert = KnowBert(encoder.model, {"words": KARConfig(linker=linker, layer=1, heads=2, inner=8)}).eval()
    states = []
    for word in ("dog", "tree"):
        [text] = reader([(f"the {word} in the big city",)])
        known = text.mentions["words"]
        masked = known.masked.copy()
        masked[0] = True
        ids = text.ids.copy()
        ids[2] = MASK
        batch = reader.batch([text._replace(ids=ids, mentions={"words": known._replace(masked=masked)})])
        inputs = batch.knowledge["words"]
        own = inputs.vectors.clone().requires_grad_()
        found = knowbert({"words": inputs._replace(vectors=own)}, **batch.inputs).model.last_hidden_state
        found.sum().backward()
        entities = np.unique(np.concatenate([one.ids for one in known.candidates]))
        hidden = np.isin(entities, known.candidates[0].ids)
        assert not own.grad[hidden].any() and own.grad[~hidden].any()
        states.append(found)
    assert torch.equal(*states)
