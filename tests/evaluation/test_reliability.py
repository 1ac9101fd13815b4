"""Reliability diagrams, and the calibration that evaluations tell."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from kgkit.commands.confidence import ConfidenceRecorder
from kgkit.errors import UsageError
from kgkit.evaluation.calibration import binned, reliability
from kgkit.evaluation.reliability import picture
from kgkit.linking import Linker, Scorer
from kgkit.linking.scoring import shares
from kgkit.types import Document
from tests.cli_helpers import build_mini, run
from tests.commands.test_evaluate import data_set

SVG = "{http://www.w3.org/2000/svg}"
SURE, RIGHT = [0.95, 0.9, 0.9, 0.5, 0.1], [True, True, False, True, False]


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    return build_mini(tmp_path_factory.mktemp("mini"))


def test_answers_are_binned_as_scores_are():
    rng = np.random.default_rng(0)
    scored = [(rng.standard_normal(3).astype(np.float32), np.arange(3) == rng.integers(3)) for _ in range(50)]
    sure = [float(shares(np.exp(scores)).max()) for scores, _ in scored]
    right = [bool(right[scores.argmax()]) for scores, right in scored]
    assert binned(sure, right).error == pytest.approx(reliability(scored, 1.0).error, abs=1e-6)
    assert binned([], []).error == 0


def test_a_bar_stands_where_answers_are_and_is_as_high_as_they_are_right():
    curve = binned(SURE, RIGHT, 10)
    drawn = ElementTree.fromstring(picture([("a & b", curve)], suffix=".svg", title="<x>"))
    told = [title.text for title in drawn.iter(f"{SVG}title")]
    assert told == [
        "1 answers, 10.0 % sure, 0.0 % right",
        "1 answers, 50.0 % sure, 100.0 % right",
        "3 answers, 91.7 % sure, 66.7 % right",
    ]
    texts = [text.text for text in drawn.iter(f"{SVG}text")]
    assert "<x>" in texts and f"a & b: calibration error {100 * curve.error:.1f} %, 5 answers" in texts
    last = [group for group in drawn.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None][-1]
    grey, gap, count = [float(bar.get("height")) for bar in last.iter(f"{SVG}rect")]
    assert (grey, gap, count) == pytest.approx((320 * 2 / 3, 320 * 0.25, 70), abs=0.01)


def test_what_is_lacking_is_red_and_what_is_beyond_is_blue():
    red, blue = "#cc6677", "#4477aa"
    for right, shown, absent in ((False, red, blue), (True, blue, red)):
        drawn = picture([("x", binned([0.6], [right]))], suffix=".svg").decode()
        assert shown in drawn and absent not in drawn


def test_nothing_can_be_drawn_and_equal_curves_give_equal_files():
    empty, curve = binned([], []), binned(SURE, RIGHT)
    assert ElementTree.fromstring(picture([("x", empty)], suffix=".svg")) is not None
    assert picture([("x", curve)], suffix=".html") == picture([("x", curve)], suffix=".HTML")
    assert picture([("x", curve)], suffix=".html").startswith(b"<!DOCTYPE html>")
    with pytest.raises(UsageError, match=r"cannot be \.png; it can be \.svg, \.html"):
        picture([("x", curve)], suffix=".png")


class Tempered(Scorer):
    """Scores candidates 2, 1, 0 …, divided by a temperature."""

    name, batch_size, temperature = "tempered", 2, 0.25

    def __call__(self, documents):
        return [[self.score(len(mention.candidates)) for mention in each.mentions] for each in documents]

    def score(self, count):
        return shares(np.exp(np.arange(count, 0, -1, dtype=np.float32) / self.temperature))


def test_what_a_model_would_have_said_without_its_temperature_is_remembered(home):
    linker = Linker.open("mini", home=home)
    linker.scorer = scorer = Tempered()
    expected = {}
    with linker.kb:
        for linked in linker([Document("a", "The dog ran to the bank.")]):
            expected = {link.start: len(link.candidates) for link in linked.links}
        recorder = ConfidenceRecorder(linker)
        for _ in recorder([Document("a", "The dog ran to the bank.")]):
            recorder.observe(lambda link: link.start > 5)
    assert max(expected.values()) > 1
    bare = [float(shares(np.exp(np.arange(n, 0, -1, dtype=np.float32))).max()) for n in expected.values()]
    now = [float(scorer.score(n).max()) for n in expected.values()]
    right = [start > 5 for start in expected]
    (before, bare_curve), (after, curve) = recorder.curves()
    assert (before, after) == ("temperature 1", "temperature 0.25")
    assert bare_curve.error == pytest.approx(binned(bare, right).error, abs=1e-5)
    assert curve.error == pytest.approx(binned(now, right).error, abs=1e-5)
    assert recorder.as_dict()["without_temperature"] == pytest.approx(bare_curve.error)


class Doubting(Tempered):
    """Leaves NULL the share of one candidate more, which is the likeliest where there are two."""

    scores_null = True

    def score(self, count):
        logits = np.array([*range(count, 0, -1), 1.5 * count - 1], np.float32)
        return shares(np.exp(logits / self.temperature))[:count]


def test_null_decides_under_an_evaluation_as_without_one(home):
    linker = Linker.open("mini", home=home)
    linker.scorer = scorer = Doubting()
    document = Document("a", "The dog ran to the bank.")
    with linker.kb:
        [alone] = linker([document])
        [every] = Linker(linker.kb, scorer=Tempered())([document])
        recorder = ConfidenceRecorder(linker)
        [linked] = recorder([document])
        recorder.observe(lambda link: True)
    assert linked.links == alone.links and 0 < len(linked.links) < len(every.links)
    # Without its temperature NULL has another share too.
    scorer.temperature, counts = 1, [len(link.candidates) for link in linked.links]
    bare = [float(scorer.score(count).max()) for count in counts]
    [(_, curve), _] = recorder.curves()
    assert curve.error == pytest.approx(binned(bare, [True] * len(bare)).error, abs=1e-5)


def test_an_evaluation_tells_its_calibration_and_draws_it(home, tmp_path):
    drawn = tmp_path / "sure.svg"
    done = run(
        "evaluate", "wsd", *data_set(tmp_path, "one"), "--home", home, "--reliability", drawn, "--json"
    )
    told = json.loads(done.out)["calibration"]
    # Three links of four instances; two are right.
    assert (told["links"], told["without_temperature"]) == (3, None)
    assert sum(each["links"] for each in told["bins"]) == 3
    gaps = sum(abs(each["confidence"] - each["accuracy"]) * each["links"] for each in told["bins"])
    assert told["expected_calibration_error"] == pytest.approx(gaps / 3)
    assert re.search(rf"scores: calibration error {100 * gaps / 3:.1f} %, 3 answers", drawn.read_text())
    assert str(drawn) in done.err


def test_a_link_of_an_entity_is_right_if_span_and_page_are(home, tmp_path):
    lines = [
        {"doc_id": 1, "tokens": ["dogs", "ran"], "mentions": [{"start": 0, "end": 1, "entity": "dog.n.01"}]},
        {"doc_id": 2, "tokens": ["the", "dog"], "mentions": [{"start": 1, "end": 2, "entity": None}]},
    ]
    data = tmp_path / "gold.jsonl"
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = {}
    for mentions in ("given", "found"):
        done = run("evaluate", "el", "--data", data, "--mentions", mentions, "--home", home, "--json")
        told[mentions] = json.loads(done.out)["calibration"]
    assert told["given"]["links"] == 2 and told["found"]["links"] == 3  # `ran` is no mention
    right = {
        name: sum(each["accuracy"] * each["links"] for each in one["bins"]) for name, one in told.items()
    }
    assert right == pytest.approx({"given": 1, "found": 1})


def test_a_picture_that_cannot_be_written_is_refused_at_once(home, tmp_path):
    args = ("evaluate", "wsd", *data_set(tmp_path, "one"), "--home", home, "--reliability")
    done = run(*args, tmp_path / "sure.png")
    assert (done.code, "its name ends in .svg or .html" in done.err) == (2, True)
    assert run(*args, tmp_path / "no" / "sure.svg").code == 3
