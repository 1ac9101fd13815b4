"""What a score is made of: parts that add up to it, and nothing where nobody asks."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.building import Alias, Entity, Occurrences
from kgkit.inputs import SpanConfig
from kgkit.linking import Linker, LinkSettings, PriorScorer, Scorer
from kgkit.linking.gloss import GlossScorer
from kgkit.training.linkers.train import train_linker
from tests.cli_helpers import run
from tests.small_kb import build
from tests.training.linkers.test_linkers import TEXT, corpus, encoder, folder, kb, training

__all__ = ["corpus", "encoder", "folder", "kb"]


def assert_parts_add_up(linker, plain, names):
    """Assert that softmax of the sums of the parts is the score, and that scores are those without parts."""
    [explained], [linked] = linker([TEXT]), plain([TEXT])
    assert [link.score for link in explained.links] == [link.score for link in linked.links]
    assert explained.links
    for link in explained.links:
        assert all(set(candidate.parts) == names for candidate in link.candidates)
        sums = np.array([sum(candidate.parts.values()) for candidate in link.candidates])
        scores = np.array([candidate.score for candidate in link.candidates])
        shares = np.exp(sums - sums.max())
        np.testing.assert_allclose(shares / shares.sum(), scores / scores.sum(), atol=2e-3)
    assert all(candidate.parts is None for link in linked.links for candidate in link.candidates)


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("prior", {"prior"}),
        ("ridge", {"prior", "context"}),
        ("head", {"context"}),
    ],
)
def test_the_parts_of_every_model_add_up_to_its_scores(kb, corpus, model, names, monkeypatch):
    if model != "prior":
        monkeypatch.setattr("kgkit.training.linkers.train.FEWEST", 1 if model == "head" else 5_000)
        train_linker(kb, model, training(corpus, epochs=1), device="cpu")
    for graph, more in ((None, set()), ("graph", {"coherence"})):
        plain = Linker.open(kb, model=model, device="cpu", coherence=graph)
        explained = Linker.open(kb, model=model, device="cpu", coherence=graph, explain=True)
        assert_parts_add_up(explained, plain, names | more)


def test_the_parts_of_gloss_are_the_prior_and_the_context(kb, encoder):
    scorer = GlossScorer(kb.vectors("text"), encoder, SpanConfig(size=16, context=2))
    explained = Linker(kb, LinkSettings(explain=True), scorer=scorer)
    assert_parts_add_up(explained, Linker(kb, scorer=scorer), {"prior", "context"})


def test_a_scorer_that_knows_no_parts_says_all_in_one(kb):
    class Even(Scorer):
        name = "even"

        def __call__(self, documents):
            return [[score * 0 + 0.25 for score in scores] for scores in PriorScorer()(documents)]

    [linked] = Linker(kb, LinkSettings(explain=True), scorer=Even())(["a dog"])
    [link] = linked.links
    assert [candidate.parts for candidate in link.candidates] == [{"context": -1.3863}] * 2


@pytest.mark.parametrize("counts", [(9, 1), (1, 0), (0, 0)])
def test_candidates_that_were_never_counted_have_parts_that_json_can_say(tmp_path, counts):
    records = [Entity(key, key, kind="thing") for key in "ab"]
    records += [Alias("a dog", key, count) for key, count in zip("ab", counts, strict=True)]
    records += [Alias("a dog of theirs", "b"), Occurrences("a dog", 40, 10)]
    with build(tmp_path, records, smoothing=0) as kb:
        linker = Linker(kb, LinkSettings(explain=True, mentions="all", nil=True))
        [plain] = Linker(kb, LinkSettings(mentions="all", nil=True))(["it is a dog"])
        [linked] = linker(["it is a dog"])
    [link] = linked.links
    assert [candidate.score for candidate in link.candidates] == [
        candidate.score for candidate in plain.links[0].candidates
    ]
    for candidate in link.candidates:
        assert np.isfinite(candidate.parts["prior"])
        assert np.exp(candidate.parts["prior"]) == pytest.approx(candidate.score, abs=1e-4)


def test_the_command_explains_where_it_is_asked_to(kb, tmp_path):
    text = tmp_path / "a.txt"
    text.write_text("a dog and a tree")
    command = ("link", text, "--kb", "words", "--home", kb.home.path.parents[1])
    plain, explained = run(*command), run(*command, "--explain")
    assert "parts" not in plain.out
    links = json.loads(explained.out)["links"]
    assert links[0]["candidates"][0]["parts"] == {"prior": round(float(np.log(np.float32(0.6))), 4)}
    for link in links:
        for candidate in link["candidates"]:
            del candidate["parts"]
    assert links == json.loads(plain.out)["links"]
    assert run(*command, "--explain", "--top-k", 0).code == 2
