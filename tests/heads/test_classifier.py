"""The head of a classifier: what it reads, its losses by hand, its answers, and its files."""

import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from kgkit.errors import UsageError  # noqa: E402
from kgkit.heads import Classifier, ClassifierConfig  # noqa: E402

ONE = ClassifierConfig(hidden=3, labels=("a", "b"))
TWO = ClassifierConfig(hidden=3, labels=("a", "b", "c"), positions=2)
MANY = ClassifierConfig(hidden=3, labels=("a", "b"), answer="labels")
NUMBER = ClassifierConfig(hidden=3, answer="number", mean=3.0, scale=2.0)
CHOICE = ClassifierConfig(hidden=3, answer="choice")


def drawn(config, seed=0):
    return Classifier(config, torch.Generator().manual_seed(seed)).eval()


def test_logits_are_of_the_vectors_at_the_places_joined_and_of_nothing_else():
    classifier = drawn(TWO)
    hidden = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(1), requires_grad=True)
    logits = classifier(hidden, torch.tensor([[1, 3], [4, 0]]))
    joined = torch.stack([torch.cat([hidden[0, 1], hidden[0, 3]]), torch.cat([hidden[1, 4], hidden[1, 0]])])
    torch.testing.assert_close(logits, joined @ classifier.label.weight.T + classifier.label.bias)
    logits.sum().backward()
    assert hidden.grad.abs().sum(-1).nonzero().tolist() == [[0, 1], [0, 3], [1, 0], [1, 4]]


def test_first_weights_follow_from_the_generator_and_are_small():
    wide = ClassifierConfig(hidden=500, labels=tuple("abcdefgh"))
    first, same, other = drawn(wide), drawn(wide), drawn(wide, seed=1)
    assert torch.equal(first.label.weight, same.label.weight)
    assert not torch.equal(first.label.weight, other.label.weight)
    assert first.label.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert not first.label.bias.any()


def test_what_is_read_is_dropped_in_training_alone():
    classifier = drawn(ClassifierConfig(hidden=64, labels=("a", "b"), dropout=0.9))
    hidden, places = torch.ones(1, 1, 64), torch.zeros(1, 1, dtype=torch.int64)
    assert torch.equal(classifier(hidden, places), classifier(hidden, places))
    classifier.train()
    torch.manual_seed(0)
    assert not torch.equal(classifier(hidden, places), classifier(hidden, places))


def test_the_loss_of_one_label_is_its_surprise():
    logits = torch.tensor([[0.0, math.log(3)], [0.0, 0.0]])
    found = drawn(ONE).loss(logits, torch.tensor([0, 1]))
    assert float(found) == pytest.approx((math.log(4) + math.log(2)) / 2)


def test_the_loss_of_several_labels_is_the_mean_over_all_of_them():
    logits = torch.tensor([[0.0, math.log(3)], [0.0, math.log(3)]])
    found = drawn(MANY).loss(logits, torch.tensor([[True, True], [False, False]]))
    wanted = (math.log(2) + math.log(4 / 3) + math.log(2) + math.log(4)) / 4
    assert float(found) == pytest.approx(wanted)


def test_the_loss_of_a_number_is_the_squared_error_in_standard_deviations():
    found = drawn(NUMBER).loss(torch.tensor([[0.5], [-1.0]]), torch.tensor([4.0, 0.0]))
    assert float(found) == pytest.approx((0.0 + 0.5**2) / 2)


def test_the_loss_of_a_choice_is_its_surprise_among_the_choices_that_there_are():
    logits = torch.tensor([[0.0, math.log(3), -math.inf], [0.0, 0.0, 0.0]])
    found = drawn(CHOICE).loss(logits, torch.tensor([1, 2]))
    assert float(found) == pytest.approx((math.log(4 / 3) + math.log(3)) / 2)


def test_probabilities_are_of_labels_that_exclude_each_other_or_of_each_alone_and_numbers_are_numbers():
    logits = torch.tensor([[math.log(3), 0.0], [0.0, 0.0]])
    torch.testing.assert_close(drawn(ONE).probabilities(logits), torch.tensor([[0.75, 0.25], [0.5, 0.5]]))
    torch.testing.assert_close(drawn(MANY).probabilities(logits), torch.tensor([[0.75, 0.5], [0.5, 0.5]]))
    assert drawn(NUMBER).probabilities(torch.tensor([[0.5], [-1.0]])).tolist() == [[4.0], [1.0]]


def test_several_answers_are_read_from_one_text():
    classifier = drawn(ONE)
    hidden = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(1))
    rows, positions = torch.tensor([1, 1, 0]), torch.tensor([[4], [0], [2]])
    wanted = torch.cat([classifier(hidden[row][None], positions[n][None]) for n, row in enumerate(rows)])
    torch.testing.assert_close(classifier(hidden, positions, rows), wanted)


def test_logits_are_float32_whatever_the_encoder_computes_in():
    hidden, places = torch.zeros(1, 2, 3, dtype=torch.bfloat16), torch.zeros(1, 1, dtype=torch.int64)
    assert drawn(ONE)(hidden, places).dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        assert drawn(ONE)(hidden.float(), places).dtype == torch.float32


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"hidden": 0}, "hidden is 0"),
        ({"positions": 0}, "positions 0"),
        ({"dropout": 1.0}, "dropout 1.0"),
        ({"labels": ("a", "a")}, "come twice"),
        ({"labels": ("a", "")}, "may be empty"),
        ({"labels": ("a",)}, "nothing to tell apart with fewer than 2"),
        ({"labels": (), "answer": "labels"}, "nothing to tell apart with fewer than 1"),
        ({"answer": "number"}, "labels are 'a', 'b': a number has none"),
        ({"labels": (), "answer": "number", "scale": 0.0}, "scale 0.0; both are finite, scale is above 0"),
    ],
)
def test_settings_out_of_range_are_refused(settings, told):
    with pytest.raises(UsageError, match=told):
        ClassifierConfig(**{"hidden": 3, "labels": ("a", "b"), **settings})
