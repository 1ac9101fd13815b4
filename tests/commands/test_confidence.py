"""How sure links are: with the temperature of a model and without it, beside softmax itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgkit.commands.evaluate.confidence import ConfidenceRecorder, record_confidence
from kgkit.linking import Scorer
from kgkit.types import Document, Link, LinkedDocument, Mention

LOGITS = st.lists(st.lists(st.floats(-3, 3), min_size=1, max_size=4), min_size=1, max_size=5)


class Logits(Scorer):
    """Scores the mentions of a document by fixed logits, divided by a temperature."""

    name = "logits"

    def __init__(self, logits, temperature):
        self.logits, self.temperature = logits, temperature

    def __call__(self, documents):
        return [[softmax(scores, self.temperature) for scores in self.logits] for _ in documents]


class Linker:
    """Links each mention to its best candidate; the first of a document is at 0, and so on."""

    coherence = tagger = None
    model = "logits"

    def __init__(self, scorer):
        self.scorer = scorer

    def __call__(self, documents):
        for document in documents:
            mentions = [Mention(at, at + 1, "x") for at in range(len(self.scorer_of.logits))]
            [scores] = self.scorer([Document(document.id, document.text, mentions=mentions)])
            links = [
                link(at, float(own.max()), "e" if len(own) % 2 else None) for at, own in enumerate(scores)
            ]
            yield LinkedDocument(document.id, document.text, self.model, links)

    @property
    def scorer_of(self):
        return getattr(self.scorer, "scorer", self.scorer)


def link(at, score, entity):
    return Link(at, at + 1, "x", "kb", entity, None, "", score, entity is None, [])


def softmax(logits, temperature=1.0):
    weights = np.exp(np.array(logits, np.float64) / temperature)
    return (weights / weights.sum()).astype(np.float32)


def recorded(logits, temperature, is_right=lambda link: True, **linker):
    own = Linker(Logits(logits, temperature))
    for name, value in linker.items():
        setattr(own, name, value)
    recorder = ConfidenceRecorder(own)
    for _ in recorder([Document("a", "x" * 9)]):
        recorder.observe(is_right)
    return recorder


def mean_of(bins):
    total = sum(part["links"] for part in bins)
    return sum(part["confidence"] * part["links"] for part in bins) / max(1, total)


@settings(deadline=None)
@given(LOGITS, st.floats(0.3, 4))
def test_confidence_and_its_error_without_the_temperature_are_those_of_softmax(logits, temperature):
    counted = [own for own in logits if len(own) % 2]
    about = recorded(logits, temperature).as_dict()
    expected = [softmax(own, temperature).max() for own in counted]
    assert about["links"] == len(counted)
    assert mean_of(about["bins"]) == pytest.approx(np.mean(expected or [0]), abs=1e-4)
    assert about["expected_calibration_error"] == pytest.approx(1 - np.mean(expected or [1]), abs=1e-4)
    untempered = [softmax(own).max() for own in counted]
    assert about["without_temperature"] == pytest.approx(1 - np.mean(untempered or [1]), abs=1e-4)


def test_links_that_mean_nothing_and_verdicts_that_are_none_are_not_counted():
    logits = [[1.0], [0.0, 1.0], [0.5], [2.0]]
    recorder = recorded(logits, 2.0, lambda link: {0: True, 2: None, 3: False}[link.start])
    about = recorder.as_dict()
    assert about["links"] == 2
    assert sum(part["links"] for part in about["bins"]) == 2
    assert about["bins"][-1] == {"confidence": 1.0, "accuracy": 0.5, "links": 2}
    assert about["expected_calibration_error"] == pytest.approx(0.5)


@pytest.mark.parametrize("stage", ["coherence", "tagger"])
def test_a_later_stage_leaves_the_scorer_as_it_is(stage):
    recorder = recorded([[0.0, 1.0, 2.0]], 2.0, **{stage: object()})
    assert isinstance(recorder.linker.scorer, Logits)
    assert recorder.as_dict()["without_temperature"] is None


def test_a_scorer_without_a_temperature_has_one_error():
    own = Linker(Logits([[1.0]], 1.0))
    own.scorer.temperature = None
    assert ConfidenceRecorder(own).as_dict()["without_temperature"] is None


class Run:
    def __init__(self):
        self.scores = []

    def score(self, *values):
        self.scores.append(values)


def test_what_is_measured_is_noted_with_its_detail():
    recorder, run = recorded([[1.0], [0.0, 1.0, 3.0]], 2.0), Run()
    about = record_confidence(recorder, run, "el", "aida", detail=", mentions given")
    assert run.scores == [
        ("el", "aida", "calibration error, mentions given", about["expected_calibration_error"], 2)
    ]
    assert about == recorder.as_dict()


def test_without_links_nothing_is_noted():
    run = Run()
    about = record_confidence(recorded([[0.0, 1.0]], 2.0), run, "wsd", "x")
    assert (about["links"], run.scores) == (0, [])
