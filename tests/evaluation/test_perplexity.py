"""Perplexity of what is no number, or of none that a computer has: told, never an error of arithmetic."""

import json
import math
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from kgkit.commands.evaluate import language
from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.evaluation.passage_scores import perplexity_of
from kgkit.inputs import KnowBertReader
from kgkit.inputs.masking import HiddenPieces, masking_of
from kgkit.inputs.passages import Passage
from kgkit.methods import hidden_words
from tests.cli_helpers import run
from tests.tiny_encoder import tiny_encoder

PASSAGES = [Passage(("the dog barks",)), Passage(("a cat eats fruit",)), Passage(("it is a tree",))]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tiny_encoder(tmp_path_factory.mktemp("tiny"), mask=True)
    return Encoder.load(str(folder), device="cpu", dtype="float32")


@pytest.fixture
def score(encoder, monkeypatch):
    """Return what scores passages by logits that are one number for the gold, and 0 for all else."""

    def measure(logit, **arguments):
        def predict(_, reader, masked):
            labels = torch.cat([torch.from_numpy(text.labels) for text in masked])
            gold = labels[labels >= 0]
            logits = torch.zeros(len(gold), len(encoder.tokenizer))
            logits[torch.arange(len(gold)), gold] = logit
            return HiddenPieces(logits, gold, [int((text.labels >= 0).sum()) for text in masked])

        monkeypatch.setattr(hidden_words, "predict_hidden", predict)
        reader, masking = KnowBertReader(encoder, {}, size=16), masking_of(encoder, "mask")
        return hidden_words.perplexity(None, reader, masking, PASSAGES, **arguments)

    return measure


@pytest.mark.parametrize("nats", [0.0, 1.5, 699.0])
def test_it_is_e_to_the_surprise(nats):
    assert perplexity_of(nats) == pytest.approx(math.exp(nats))


def test_it_has_a_largest_value_and_what_is_no_number_stays_none():
    assert perplexity_of(701.0) == perplexity_of(1e9) == math.exp(700.0)
    assert math.isnan(perplexity_of(float("nan"))) and perplexity_of(float("inf")) == float("inf")


def test_logits_decide_the_perplexity_whatever_is_read_together(score, encoder):
    pieces = len(encoder.tokenizer)
    for logit in (0.0, 2.0):
        expected = (pieces - 1 + math.exp(logit)) / math.exp(logit)
        for size in (1, 2, 32):
            result = score(logit, size=size)
            assert (result.perplexity, result.pieces) == (pytest.approx(expected, rel=1e-5), 3)
    assert (score(2.0).accuracy, score(-2.0).accuracy) == (1.0, 0.0)


def test_a_surprise_that_has_no_power_is_no_error(score):
    assert score(-5000.0).perplexity == math.exp(700.0)
    assert math.isnan(score(float("nan")).perplexity)


def test_without_passages_there_is_nothing_to_score(encoder):
    with pytest.raises(UsageError, match="there are no passages to guess words of"):
        hidden_words.perplexity(None, KnowBertReader(encoder, {}, size=16), masking_of(encoder), [])


def test_the_command_refuses_a_perplexity_that_is_no_number(score, encoder, monkeypatch, tmp_path):
    @contextmanager
    def opened(*_):
        yield SimpleNamespace(encoder=encoder, reader=KnowBertReader(encoder, {}, size=16), knowbert=None)

    monkeypatch.setattr(language, "_open_language_model", opened)
    (tmp_path / "text.txt").write_text("the dog barks\na cat eats fruit\n")
    command = ("evaluate", "ppl", "--model", "broken", "--data", tmp_path / "text.txt", "--home", tmp_path)
    for logit, code in ((0.0, 0), (float("nan"), 1)):
        score(logit)  # which leaves its logits to the command
        done = run(*command)
        assert done.code == code, done.err
    assert (
        "error: the model broken gives hidden words the perplexity nan: its weights are damaged" in done.err
    )


@pytest.fixture
def command(encoder, monkeypatch, tmp_path):
    """Return what runs `evaluate ppl` on two passages, by the logits that `score` has set."""

    @contextmanager
    def opened(*_):
        yield SimpleNamespace(encoder=encoder, reader=KnowBertReader(encoder, {}, size=16), knowbert=None)

    monkeypatch.setattr(language, "_open_language_model", opened)
    (tmp_path / "text.txt").write_text("the dog barks\n\na cat eats fruit\n")
    common = ("evaluate", "ppl", "--model", "model", "--data", tmp_path / "text.txt", "--home", tmp_path)
    return lambda *options: run(*common, *options)


def test_the_command_compares_passages_with_those_of_another_model(score, encoder, command, tmp_path):
    path = tmp_path / "control.jsonl"
    score(0.0)
    assert command("--predictions", path).code == 0
    assert [(row["set"], row["passage"]) for row in map(json.loads, path.read_text().splitlines())] == [
        ("text", 1), ("text", 2),
    ]  # fmt: skip
    score(2.0)
    done = command("--versus", path, "--json")
    assert done.code == 0, done.err
    [own] = json.loads(done.out)["sets"]
    compared = own["versus"]
    assert compared["perplexity"]["versus"] == pytest.approx(len(encoder.tokenizer), rel=1e-5)
    assert compared["perplexity"]["score"] == own["perplexity"] < compared["perplexity"]["versus"]
    assert compared["perplexity"]["p"] == 0.5  # of two passages that both gain, two of four assignments
    assert compared["accuracy"]["score"] == own["accuracy"] == 1
    table = command("--versus", path).out.split("\n\n")[1].splitlines()
    assert [line.split("\t")[:2] for line in table] == [
        ["data", "metric"], ["text", "perplexity"], ["text", "accuracy"],
    ]  # fmt: skip


def test_the_command_refuses_scores_of_another_seed_and_keeps_its_own(score, command, tmp_path):
    path, kept = tmp_path / "control.jsonl", tmp_path / "kept.jsonl"
    score(0.0)
    assert command("--predictions", path, "--seed", 3).code == 0
    done = command("--versus", path, "--predictions", kept)
    assert (done.code, done.out) == (2, "") and "other pieces are masked" in done.err
    assert len(kept.read_text().splitlines()) == 2
    assert command("--versus", path, "--seed", 3).code == 0


def test_the_command_refuses_scores_of_other_passages(score, command, tmp_path):
    path = tmp_path / "control.jsonl"
    score(0.0)
    assert command("--predictions", path).code == 0
    path.write_text(path.read_text().splitlines()[0])
    done = command("--versus", path)
    assert (done.code, done.out) == (2, "") and "compare models with one tokenizer" in done.err
