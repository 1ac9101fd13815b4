"""The type `rerank`: what it learns, what it leaves to its first stage, and what it is refused for."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from msgspec import structs

from kgkit.candidates import generator_for
from kgkit.errors import DamagedModel, StaleModel, UnknownName, UsageError
from kgkit.home import Home
from kgkit.linking import Linker, Scorer
from kgkit.linking.gloss import GlossConfig, GlossScorer
from kgkit.linking.models import find_scorer
from kgkit.linking.rerank import text_fingerprint
from kgkit.models.folder import BUILT_IN
from kgkit.models.kinds import LINKER
from kgkit.models.manifest import MANIFEST
from kgkit.models.needs import models_needing
from kgkit.training.linkers.coherence import CoherenceTraining
from kgkit.training.linkers.rerank import RerankConfig, check_first_stage
from kgkit.training.linkers.settings import LinkerTraining, command_of
from kgkit.training.linkers.train import train_linker
from kgkit.types import Candidates, Document
from tests.cli_helpers import run
from tests.small_kb import build
from tests.training.linkers.test_linkers import RECORDS, TEXT, corpus, encoder, folder, kb, training

__all__ = ["corpus", "encoder", "folder", "kb"]

MEANT = ["dog.n.01", "dog.n.02", "dog.n.01", "tree.n.01"]


@pytest.fixture
def rerank(corpus, folder):
    """Return a function that makes the settings of a training."""

    def settings(*, first="prior", candidates="lemma", **config):
        chosen = {"encoder": str(folder), "context": 8, "length": 8, "epochs": 6, "batch": 8, "lr": 3e-3}
        chosen |= {"lr_new": 1e-2, "bf16": False}  # what is learnt is the same on every processor
        data, gold = corpus
        return LinkerTraining(
            task="wsd", data=(data,), gold=(gold,), type="rerank", first=first, candidates=candidates,
            rerank=RerankConfig(**{**chosen, **config}),
        )  # fmt: skip

    return settings


def candidates_of(kb, text=TEXT):
    [document] = generator_for(kb, max_candidates=None, overlaps=True)([Document("d", text)])
    return document


def scores_of(scorer, *documents):
    return [np.concatenate(scores) for scores in scorer(list(documents))]


def entities(kb, model):
    [linked] = Linker.open(kb, model=model, device="cpu")([TEXT])
    return [link.entity for link in linked.links]


def test_a_re_ranker_learns_what_its_first_stage_does_not_know(kb, rerank):
    where = train_linker(kb, "ranked", rerank(), device="cpu")
    manifest = LINKER.read(where)
    results = manifest.results
    assert results["first_stage_accuracy"] == 0.75 and results["held_out_accuracy"] == 1.0
    assert results["held_out"] == 8 and results["mentions"] == 18 * 3
    assert entities(kb, "prior") == ["dog.n.01", "dog.n.01", "dog.n.01", "tree.n.01"]
    assert entities(kb, "ranked") == MEANT
    assert (manifest.type, manifest.first, manifest.needs.kbs) == ("rerank", "prior", {})
    assert not list((kb.home.path.parents[1] / "runs").iterdir())


def test_it_serves_another_knowledge_base_whose_entities_have_texts(kb, rerank, tmp_path):
    train_linker(kb, "ranked", rerank(), device="cpu")
    with build(kb.home.path.parents[1], RECORDS[1:2] + RECORDS[:1] + RECORDS[2:], name="other") as other:
        assert entities(other, "ranked") == MEANT


def test_two_trainings_of_one_seed_are_equal_and_so_is_one_that_was_stopped(kb, rerank):
    def weights(where):
        parts = ("rerank/model.safetensors", "encoder/model.safetensors")
        return [(where / part).read_bytes() for part in parts]

    once = weights(train_linker(kb, "m", rerank(epochs=2), device="cpu"))
    assert weights(train_linker(kb, "n", rerank(epochs=2, seed=1), device="cpu")) != once

    def stop(stage, done, total):
        if stage.startswith("training") and done == total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_linker(kb, "m2", rerank(epochs=2), device="cpu", progress=stop)
    assert weights(train_linker(kb, "m2", rerank(epochs=2), device="cpu")) == once


def test_batches_and_the_order_of_candidates_change_nothing(kb, rerank):
    train_linker(kb, "ranked", rerank(epochs=1), device="cpu")
    scorer = find_scorer("ranked", kb, device="cpu")
    document, short = candidates_of(kb), candidates_of(kb, "the small dog")
    together = scores_of(scorer, document, short, document)
    for alone, among in zip(scores_of(scorer, document) * 2, together[::2], strict=True):
        np.testing.assert_allclose(alone, among, atol=1e-5)
    turned = structs.replace(
        document,
        mentions=[
            structs.replace(
                mention, candidates=Candidates(mention.candidates.rows[::-1], mention.candidates.null)
            )
            for mention in document.mentions
        ],
    )
    for scores, others in zip(*scorer([document]), *scorer([turned]), strict=True):
        assert np.array_equal(scores, others[::-1])


def test_one_candidate_is_left_to_the_first_stage_and_so_is_all_but_the_best(kb, rerank, monkeypatch):
    class Fixed(Scorer):
        name, scores_null = "fixed", True

        def __call__(self, documents):
            return [
                [
                    np.array([0.1, 0.4, 0.2][: len(mention.candidates)], np.float32)
                    for mention in each.mentions
                ]
                for each in documents
            ]

    train_linker(kb, "ranked", rerank(epochs=1), device="cpu")
    scorer = find_scorer("ranked", kb, device="cpu")
    document = candidates_of(kb)
    rows = document.mentions[0].candidates.rows
    tree = next(mention.candidates.rows for mention in document.mentions if mention.text == "tree")
    three = Candidates(np.concatenate([rows, tree]))
    mentions = [structs.replace(document.mentions[0], candidates=three), *document.mentions[1:]]
    document = structs.replace(document, mentions=mentions)
    scorer.first, scorer.best = Fixed(), 2
    [[first, *others]] = scorer([document])
    assert first[0] == np.float32(0.1) and not np.allclose(first[1:], [0.4, 0.2])
    assert first[1:].sum() == pytest.approx(0.6) and (first > 0).all()
    single = next(number for number, each in enumerate(document.mentions) if each.text == "tree")
    assert others[single - 1].tolist() == [np.float32(0.1)]
    monkeypatch.setattr(
        Fixed, "__call__", lambda _, documents: [[np.zeros(3, np.float32)] for _ in documents]
    )
    [[nothing]] = scorer([structs.replace(document, mentions=mentions[:1])])
    assert nothing.tolist() == [0, 0, 0]


def test_what_a_re_ranker_adds_is_context(kb, rerank):
    train_linker(kb, "ranked", rerank(epochs=1), device="cpu")
    scorer, document = find_scorer("ranked", kb, device="cpu"), candidates_of(kb)
    scorer.first = GlossScorer.of(
        kb, kb.vectors("text"), device="cpu", config=GlossConfig(size=16, context=2)
    )
    [scores], [parts], [plain] = (
        scorer([document]),
        scorer.explain([document]),
        scorer.first.explain([document]),
    )
    for score, each, before in zip(scores, parts, plain, strict=True):
        assert np.array_equal(score, each.score) and np.array_equal(each.prior, before.prior)
        sums = np.exp(each.prior + each.context)
        np.testing.assert_allclose(sums / sums.sum(), score / score.sum(), atol=1e-5)
        assert (len(score) > 1) == (not np.array_equal(each.context, before.context))


def test_a_control_weighs_the_first_stage_anew(kb, rerank):
    where = train_linker(kb, "control", rerank(control=True, epochs=1), device="cpu")
    assert LINKER.read(where).config["control"]
    assert entities(kb, "control") == entities(kb, "prior")


def test_one_above_a_trained_linker_is_refused_once_that_changes(kb, corpus, rerank, tmp_path):

    data, gold = corpus
    other = tmp_path / "other.data.xml"
    other.write_text(data.read_text().replace("</corpus>", "\n</corpus>"))
    below = LinkerTraining(task="wsd", data=(other,), gold=(gold,), reader=training(corpus).reader)
    train_linker(kb, "below", below, device="cpu")
    train_linker(kb, "ranked", rerank(first="below", epochs=1), device="cpu")
    home = Home(kb.home.path.parents[1])
    assert entities(kb, "ranked") and models_needing(home, "below") == ["ranked"]
    with pytest.raises(UsageError, match="would replace the model below"):
        train_linker(kb, "below", rerank(first="below", epochs=1), device="cpu")
    manifest = home.models / "below" / "current" / MANIFEST
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"kgkit_version": "0"}))
    with pytest.raises(StaleModel, match="the model below thinks likeliest, which has been trained again"):
        Linker.open(kb, model="ranked", device="cpu")
    shutil.rmtree(home.models / "below")
    with pytest.raises(UnknownName, match="below"):
        Linker.open(kb, model="ranked", device="cpu")


def test_a_first_stage_that_has_learnt_from_the_same_files_is_refused(
    kb, corpus, rerank, caplog, monkeypatch
):
    train_linker(kb, "below", training(corpus), device="cpu")
    with pytest.raises(UsageError, match=r"the model below has learnt from x\.data\.xml: there it is surer"):
        train_linker(kb, "ranked", rerank(first="below"), device="cpu")
    home = Home(kb.home.path.parents[1])
    monkeypatch.setattr("kgkit.training.linkers.rerank.SHIPPED", home.models)
    check_first_stage(rerank(first="below"), home)
    assert "has learnt from x.data.xml" in caplog.text and "may be trusted too much" in caplog.text


def test_files_of_one_name_do_not_hide_that_a_first_stage_has_learnt_from_one_of_them(
    kb, corpus, rerank, tmp_path
):
    train_linker(kb, "below", training(corpus), device="cpu")
    settings, (data, gold) = rerank(first="below"), corpus
    other = tmp_path / "other" / data.name
    other.parent.mkdir()
    other.write_text(data.read_text().replace("</corpus>", "\n</corpus>"))
    both = replace(settings, data=(data, other), gold=(gold, gold))
    with pytest.raises(UsageError, match="the model below has learnt from"):
        check_first_stage(both, Home(kb.home.path.parents[1]))


def test_a_first_stage_named_by_its_folder_is_needed_by_its_name(kb, corpus, rerank, monkeypatch, tmp_path):
    data, gold = corpus
    other = tmp_path / "other.data.xml"
    other.write_text(data.read_text().replace("</corpus>", "\n</corpus>"))
    below = LinkerTraining(task="wsd", data=(other,), gold=(gold,), reader=training(corpus).reader)
    folder = train_linker(kb, "below", below, device="cpu")
    monkeypatch.chdir(folder)
    manifest = LINKER.read(train_linker(kb, "ranked", rerank(first=".", epochs=1), device="cpu"))
    assert manifest.first == manifest.needs.linker == "below"
    monkeypatch.chdir(tmp_path)
    assert entities(kb, "ranked")


def test_a_first_stage_with_vectors_of_another_encoder_is_refused(kb, rerank):
    where = train_linker(kb, "ranked", rerank(first="gloss", epochs=1), device="cpu")
    manifest = LINKER.read(where)
    scorer = find_scorer("gloss", kb, device="cpu")
    assert manifest.texts["first_fingerprint"] == scorer.vectors.manifest.config["fingerprint"]
    assert text_fingerprint(find_scorer("tempered-gloss", kb, device="cpu")) == text_fingerprint(scorer)
    assert text_fingerprint(find_scorer("prior", kb)) == ""
    content = json.loads((where / MANIFEST).read_text())
    content["texts"]["first_fingerprint"] = "0" * 16
    (where / MANIFEST).write_text(json.dumps(content))
    with pytest.raises(StaleModel, match="by vectors of another encoder: name them with --vectors"):
        Linker.open(kb, model="ranked", device="cpu")


def test_first_stages_that_name_each_other_are_each_read_once(kb, corpus, rerank, tmp_path):
    data, gold = corpus
    other = tmp_path / "other.data.xml"
    other.write_text(data.read_text().replace("</corpus>", "\n</corpus>"))
    below = LinkerTraining(task="wsd", data=(other,), gold=(gold,), reader=training(corpus).reader)
    train_linker(kb, "below", below, device="cpu")
    home = Home(kb.home.path.parents[1])
    manifest = home.models / "below" / "current" / MANIFEST
    content = json.loads(manifest.read_text())
    content["needs"]["linker"] = "below"
    manifest.write_text(json.dumps(content))
    check_first_stage(rerank(first="below"), home)


@pytest.mark.parametrize(("field", "value"), [("best", 0), ("best", 100_000), ("context", -5), ("length", 0)])
def test_numbers_of_a_manifest_are_bounded(kb, rerank, field, value):
    where = train_linker(kb, "ranked", rerank(epochs=1), device="cpu")
    content = json.loads((where / MANIFEST).read_text())
    content["reader"][field] = value
    (where / MANIFEST).write_text(json.dumps(content))
    with pytest.raises(DamagedModel, match=field):
        Linker.open(kb, model="ranked", device="cpu")


def test_a_manifest_without_a_first_stage_is_damaged(kb, rerank):
    where = train_linker(kb, "ranked", rerank(epochs=1), device="cpu")
    content = json.loads((where / MANIFEST).read_text())
    (where / MANIFEST).write_text(json.dumps({**content, "first": ""}))
    with pytest.raises(DamagedModel, match="names no first stage"):
        Linker.open(kb, model="ranked", device="cpu")


def test_there_is_nothing_to_learn_where_nothing_is_ambiguous(kb, corpus, rerank):
    _, gold = corpus
    keys = [line for line in gold.read_text().splitlines(keepends=True) if "tree" in line]
    gold.write_text("".join(keys))
    with pytest.raises(
        UsageError, match="no mention has several candidates with the right one among the best"
    ):
        train_linker(kb, "ranked", rerank(), device="cpu")


def test_settings_that_do_not_go_together_are_refused(rerank):
    for first in ("", "auto"):
        with pytest.raises(UsageError, match="rerank reads the best candidates of another model: name it"):
            rerank(first=first)
    ranked = rerank()
    with pytest.raises(UsageError, match="--first is a setting of the type rerank, not of ridge"):
        LinkerTraining(task="wsd", data=ranked.data, gold=ranked.gold, first="gloss")
    with pytest.raises(UsageError, match="Train coherence above head, or name a linker with coherence"):
        LinkerTraining(
            task="wsd", data=ranked.data, gold=ranked.gold, type="rerank", first="gloss",
            coherence=CoherenceTraining(),
        )  # fmt: skip
    with pytest.raises(UsageError, match="best is 1; it is from 2 to 100"):
        RerankConfig(best=1)
    for setting in ("context", "length", "epochs", "batch"):
        with pytest.raises(UsageError, match=f"{setting} is 0"):
            RerankConfig(**{setting: 0})


def test_the_command_has_the_first_stage_and_the_encoder(rerank):
    command = command_of("words", "m", rerank(seed=3))
    for words in ("--type rerank", "--first prior", "--encoder /", "--epochs 6", "--seed 3"):
        assert words in command, command
    assert "prior" in BUILT_IN


def test_the_command_line_trains_and_links(kb, corpus, folder):
    home, (data, gold) = kb.home.path.parents[1], corpus
    common = ("train", "linker", "--task", "wsd", "--name", "ranked", "--data", data, "--gold", gold)
    given = ("--device", "cpu", "--home", home, "--kb", "words")
    done = run(*common, "--type", "rerank", "--first", "prior", "--encoder", folder, "--size", 8, *given)
    assert done.code == 2 and "a context and a candidate of 43 pieces" in done.err
    refused = run(*common, "--type", "prior", "--coherence", "--encoder", folder, *given)
    assert refused.code == 2 and "types that read texts, not of prior: leave it out" in refused.err
    refused = run(*common, "--type", "rerank", *given)
    assert refused.code == 2 and "as in --first gloss or --first wsd-minilm" in refused.err
    assert Path(data).exists()
