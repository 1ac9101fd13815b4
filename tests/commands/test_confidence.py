"""Confidence of links, and whether they were right: what is counted, noted and returned."""

import pytest

from kgkit.commands.evaluate.confidence import LinkConfidence
from kgkit.types import Link, LinkedDocument


def document(*scores, nil=()):
    """A document whose link N begins at N."""
    links = [
        Link(at, at + 1, "x", "kb", None if at in nil else "e", None, "", score, at in nil, [])
        for at, score in enumerate(scores)
    ]
    return LinkedDocument("a", "x" * 9, "model", links)


class Run:
    def __init__(self):
        self.scores = []

    def score(self, *values):
        self.scores.append(values)


def test_links_that_mean_nothing_and_verdicts_that_are_none_are_not_counted():
    confidence, run = LinkConfidence(), Run()
    confidence.observe(
        document(1.0, 0.9, 0.5, 1.0, nil={1}), lambda link: {0: True, 2: None, 3: False}[link.start]
    )
    measured = confidence.record(run, "el", "aida", detail=", mentions given")
    assert measured == {
        "links": 2, "expected_calibration_error": pytest.approx(0.5),
        "bins": [{"confidence": 1.0, "accuracy": 0.5, "links": 2}],
    }  # fmt: skip
    assert run.scores == [("el", "aida", "calibration error, mentions given", pytest.approx(0.5), 2)]


def test_without_links_nothing_is_noted():
    confidence, run = LinkConfidence(), Run()
    confidence.observe(document(0.5, nil={0}), lambda link: True)
    assert (confidence.record(run, "wsd", "x")["links"], run.scores) == (0, [])
