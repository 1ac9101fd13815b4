"""How well hidden words are guessed, of what a model says of them."""

import math

import pytest

pytest.importorskip("torch")

import torch

from kgkit.linking.hidden_words import perplexity_of_batches


def test_perplexity_is_that_of_all_hidden_pieces_however_they_are_batched():
    likely = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
    gold = torch.tensor([0, 1, 0])
    expected = math.exp(-(math.log(0.5) + math.log(0.8) + math.log(0.2)) / 3)
    for cut in (1, 2, 3):
        parts = [(likely.log()[:cut], gold[:cut]), (likely.log()[cut:], gold[cut:])]
        score = perplexity_of_batches(iter(parts))
        assert score.perplexity == pytest.approx(expected) and score.pieces == 3
        assert score.accuracy == pytest.approx(2 / 3)


def test_batches_are_predicted_without_gradients():
    weight = torch.zeros(1, 2, requires_grad=True)
    seen = []

    def predict():
        seen.append((weight * 2).requires_grad)
        yield weight * 2, torch.tensor([0])

    assert perplexity_of_batches(predict()).perplexity == pytest.approx(2)
    assert seen == [False]
