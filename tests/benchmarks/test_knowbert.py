"""The mentions that the benchmark of KnowBert's cost draws, in the place of those that are known."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks.knowbert import CANDIDATES, LONGEST, with_spans
from kgkit.inputs.texts import TokenizedText


def test_spans_are_drawn_as_many_a_word_as_asked_for_each_with_all_its_candidates():
    special = np.zeros(42, np.bool_)
    special[[0, -1]] = True
    starts = np.ones(42, np.bool_)
    starts[2::4] = False  # every fourth piece goes on with a word
    text = TokenizedText(np.arange(42), np.zeros(42, np.int64), special, {})
    words = int((starts & ~special).sum())
    for spans in (0.75, 2.0):
        known = with_spans(text, starts, 1_000, spans, np.random.default_rng(0))
        assert len(known.spans) == len({*map(tuple, known.spans.tolist())}) == round(spans * words)
        assert known.spans.min() >= 1 and known.spans.max() <= 41
        assert all(starts[first] and (end == 41 or starts[end]) for first, end in known.spans.tolist())
        lengths = [int(starts[first:end].sum()) for first, end in known.spans.tolist()]
        assert {*lengths} == {*range(1, LONGEST + 1)}
        assert all(len({*one.ids.tolist()}) == CANDIDATES for one in known.candidates)
    assert len(with_spans(text, starts, 1_000, 99.0, np.random.default_rng(0)).spans) < LONGEST * words
