"""The type `full`, and portable heads: against slow twins, stopped and begun again, with a KB that grew."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from torch.nn import functional

from kgkit import add_to_kb
from kgkit.candidates import generator_for
from kgkit.embedding.text import TextConfig, embed_text, update_text
from kgkit.encoder import Encoder
from kgkit.errors import DamagedModel, StaleModel, UsageError
from kgkit.evaluation.wsd import read_documents
from kgkit.inputs import SpanReader
from kgkit.inputs.spans import hidden_of
from kgkit.kb import open_kb
from kgkit.linking import Linker
from kgkit.linking.prior_features import prior_features
from kgkit.linking.ridge import RidgeConfig
from kgkit.models.kinds import LINKER
from kgkit.models.manifest import MANIFEST
from kgkit.training.linkers.bi_encoder import freeze
from kgkit.training.linkers.fine_tuned import FullConfig
from kgkit.training.linkers.head import HeadConfig, prior_sentences
from kgkit.training.linkers.labelled import labelled_senses
from kgkit.training.linkers.means import LinkerData, TrainingSet
from kgkit.training.linkers.train import train_linker
from kgkit.types import Alias, Entity
from kgkit.vectors.scan import unit
from tests.small_kb import build
from tests.training.linkers.test_linkers import (
    READ,
    RECORDS,
    TEXT,
    corpus,
    encoder,
    folder,
    head_training,
    kb,
    training,
)

__all__ = ["corpus", "encoder", "folder", "kb"]

MEANT = ["dog.n.01", "dog.n.02", "dog.n.01", "tree.n.01"]


def full_training(corpus, **settings):
    chosen = {"width": 16, "epochs": 3, "tokens": 64, "lr": 5e-3, "encoder_lr": 1e-3, "text_lr": 1e-3}
    return training(corpus, type="full", full=FullConfig(**{**chosen, **settings}), examples=True)


def entities(kb, model):
    [linked] = Linker.open(kb, model=model, device="cpu")([TEXT])
    return [link.entity for link in linked.links]


def test_a_fine_tuned_linker_links_what_it_was_taught_and_has_its_encoders_with_it(kb, corpus):
    where = train_linker(kb, "tuned", full_training(corpus), device="cpu")
    manifest = LINKER.read(where)
    assert manifest.type == "full" and manifest.results["held_out_accuracy"] == 1.0
    assert manifest.vectors == "tuned" and kb.vectors("tuned").manifest.config["encoder"] == str(
        where.parent / "current" / "texts"
    )
    assert entities(kb, "tuned") == MEANT
    first, second = (Encoder.load(str(where / name), device="cpu") for name in ("encoder", "texts"))
    assert len({first.fingerprint, second.fingerprint, manifest.fingerprint}) == 2
    assert second.fingerprint == manifest.fingerprint
    assert not list((kb.home.path.parents[1] / "runs").iterdir())


@pytest.mark.slow
def test_two_trainings_of_one_seed_are_equal_and_so_is_one_that_was_stopped(kb, corpus):
    def weights(where):
        parts = ("head/model.safetensors", "encoder/model.safetensors", "texts/model.safetensors")
        return [(where / part).read_bytes() for part in parts]

    once = weights(train_linker(kb, "m", full_training(corpus), device="cpu"))
    assert weights(train_linker(kb, "n", full_training(corpus, seed=1), device="cpu")) != once

    def stop(stage, done, total):
        if stage.startswith("training") and done == total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_linker(kb, "m2", full_training(corpus), device="cpu", progress=stop)
    assert weights(train_linker(kb, "m2", full_training(corpus), device="cpu")) == once


def test_texts_stay_as_they_are_unless_they_are_trained(kb, corpus, encoder):
    where = train_linker(kb, "half", full_training(corpus, joint=False), device="cpu")
    texts = Encoder.load(str(where / "texts"), device="cpu")
    old = encoder.model.state_dict()
    assert all(torch.equal(one, old[name]) for name, one in texts.model.state_dict().items())
    assert entities(kb, "half") == MEANT


def test_what_is_learnt_of_is_what_a_reader_gives(kb, corpus, encoder, monkeypatch):
    """The slow twin: vectors of mentions and texts, one at a time."""
    seen = []

    def look(joint, source, *_):
        for part in source.epoch(0, range(len(source))):
            for one in part.parts:
                with torch.no_grad():
                    joint.eval()
                    seen.append((joint.mentions(one), joint.bank[one.texts], one, source))
        raise KeyboardInterrupt

    monkeypatch.setattr("kgkit.training.linkers.fine_tuned._trained", look)
    with pytest.raises(KeyboardInterrupt):
        train_linker(kb, "m", full_training(corpus), device="cpu")
    reader = SpanReader(encoder, READ)
    given = [one for document in read_documents(corpus[0]) for _, one in reader([document])]
    known = torch.from_numpy(hidden_of(np.concatenate(given), 2))
    rows = sum(len(mentions) for mentions, *_ in seen)
    assert rows == 18 * 3 + 2  # two of twenty documents are held out; of one candidate nothing is learnt
    matrix = unit(kb.vectors("text").matrix)
    for mentions, texts, one, source in seen:
        if len(one.inputs.mentions) > 2:  # not the examples
            nearest = torch.cdist(mentions, known, compute_mode="donot_use_mm_for_euclid_dist").min(1).values
            assert float(nearest.max()) < 1e-3
        ids = source.ids[one.texts.numpy()]
        assert np.allclose(texts.numpy(), matrix[ids], atol=1e-5)


def test_texts_follow_the_gradient_that_they_would_have_in_one_piece(kb, corpus, monkeypatch):
    """The slow twin: all texts encoded with the batch, and one gradient through everything."""
    found = {}

    def look(joint, source, *_):
        joint.train()
        for part in joint.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
        joint.refresh(np.arange(len(joint.bank)))
        before = joint.bank.clone()
        [reads] = source.epoch(0, [0])
        reads.refresh = False
        losses, _ = joint(reads)
        losses.backward()
        found[joint.fresh] = {name: one.grad for name, one in joint.texts.named_parameters()}
        assert torch.equal(joint.bank, before)
        if joint.fresh > 1:
            joint.zero_grad()
            rows = np.arange(len(joint.bank))
            slow = torch.zeros_like(joint.bank)
            for some, vectors in joint.encoded(rows):
                slow = slow.index_put((torch.from_numpy(some),), vectors)
            joint.bank = slow.detach()
            total = 0
            for part in reads.parts:
                output = joint.linker(joint._inputs(part, joint.mentions(part), slow[part.texts]))
                several = part.inputs.candidates.sum(-1, keepdim=True) > 1
                total = total + joint.linker.losses(output, part.right & several)[0].sum()
            total.backward()
            assert total.item() == pytest.approx(losses.item(), rel=1e-4)
            for name, one in joint.texts.named_parameters():
                if one.requires_grad and one.grad is not None:
                    assert torch.allclose(one.grad, found[joint.fresh][name], atol=1e-4), name
        raise KeyboardInterrupt

    monkeypatch.setattr("kgkit.training.linkers.fine_tuned._trained", look)
    for fresh in (1, 64):
        with pytest.raises(KeyboardInterrupt):
            train_linker(kb, "m", full_training(corpus, fresh=fresh), device="cpu")
    some, every = found[1], found[64]
    assert any(one is not None and not torch.allclose(one, every[name]) for name, one in some.items())
    grown = [name for name, one in every.items() if one is not None and float(one.abs().max()) > 0]
    assert grown and not any("embeddings" in name for name in grown)


def test_a_refreshed_bank_has_the_vectors_that_texts_have_now(kb, corpus, monkeypatch):
    def look(joint, source, *_):
        with torch.no_grad():
            for one in joint.texts.parameters():
                one.mul_(1.1)
        joint.train()
        [reads] = source.epoch(0, [0])
        assert reads.refresh
        joint(reads)
        joint.eval()
        for row, tokens in enumerate(joint.tokens):
            with torch.no_grad():
                hidden = joint.texts(input_ids=torch.tensor([tokens])).last_hidden_state
            assert torch.allclose(joint.bank[row], functional.normalize(hidden.mean(1), dim=-1)[0], atol=1e-5)
        raise KeyboardInterrupt

    monkeypatch.setattr("kgkit.training.linkers.fine_tuned._trained", look)
    with pytest.raises(KeyboardInterrupt):
        train_linker(kb, "m", full_training(corpus), device="cpu")


def test_layers_from_the_bottom_stay_as_they_are(encoder):
    import copy

    model = copy.deepcopy(encoder.model)
    freeze(model, 0.5)
    free = {name for name, one in model.named_parameters() if one.requires_grad}
    deep = model.config.num_hidden_layers
    assert free and all(f"layer.{deep - 1}." in name for name in free)


def test_an_entity_that_came_later_needs_its_text_encoded_and_no_training(kb, corpus, tmp_path):
    train_linker(kb, "tuned", full_training(corpus), device="cpu")
    more = tmp_path / "more.jsonl"
    more.write_text(
        json.dumps({"key": "dog.n.03", "label": "hot dog", "description": "a red fruit the dog eats"}) + "\n"
    )
    home, before = kb.home.path.parents[1], len(kb.vectors("tuned"))
    add_to_kb(kb.name, more, home=home)
    with open_kb(kb.name, home) as grown:
        update_text(grown, "tuned", device="cpu")
        assert len(grown.vectors("tuned")) > before
        assert entities(grown, "tuned") == MEANT


def test_coherence_above_it_is_refused(corpus):
    from kgkit.training.linkers.coherence import CoherenceTraining

    with pytest.raises(UsageError, match="above head instead"):
        training(corpus, type="full", coherence=CoherenceTraining())


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0},
        {"fresh": 0},
        {"text_lr": 0.0},
        {"frozen": -0.1},
        {"frozen": 2.0},
        {"seed": -1},
        {"decay": -0.1},
        {"decay": float("nan")},
    ],
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(UsageError, match=f"{next(iter(wrong))} is .*; it is "):
        FullConfig(**wrong)


@pytest.mark.parametrize("wrong", [{"heads": 0}, {"seed": -1}, {"portable": "x"}, {"decay": -1}])
def test_settings_of_heads_out_of_range_are_refused(wrong):
    with pytest.raises(UsageError, match=f"{next(iter(wrong))} is .*; it is "):
        HeadConfig(**wrong)


def test_batches_may_be_smaller_than_what_is_read_at_once(kb, corpus):
    train_linker(kb, "small", full_training(corpus, tokens=1, epochs=1), device="cpu")
    assert entities(kb, "small") == MEANT


def test_what_is_frozen_is_as_it_was(kb, corpus, encoder):
    where = train_linker(kb, "m", full_training(corpus, frozen=0.5, text_frozen=0.5), device="cpu")
    old = encoder.model.state_dict()
    for name in ("encoder", "texts"):
        new = Encoder.load(str(where / name), device="cpu").model.state_dict()
        moved = {key for key, one in new.items() if not torch.equal(one, old[key])}
        assert moved and all("layer.1." in key for key in moved)


# -- portable heads ---------------------------------------------------------


def portable(corpus, source="data", **settings):
    """Return the training of a portable head; cosines of a random encoder mean nothing, and do not count."""
    settings = {"text_weight": 0.0} | settings
    config = HeadConfig(width=16, epochs=30, batch=16, lr=1e-2, portable=source, **settings)
    return training(corpus, type="head", head=config, examples=True)


@pytest.mark.parametrize("source", ["data", "kb"])
def test_a_portable_head_is_small_and_serves_any_knowledge_base(
    kb, corpus, tmp_path, folder, encoder, source
):
    where = train_linker(kb, "light", portable(corpus, source), device="cpu")
    manifest = LINKER.read(where)
    assert (manifest.kb, manifest.build) == ("", "")
    assert {path.split("/")[0] for path in manifest.sizes} == {"head", "scale.npy"}
    assert manifest.temperature == 1, "too few mentions are held out, and the score has no term of ridge"
    assert entities(kb, "light") == MEANT
    others = (
        Entity("animal", "dog", "a big red dog barks"),
        Entity("sausage", "dog", "it eats the fruit"),
        Alias("dog", "animal", 3),
        Alias("dog", "sausage", 2),
    )
    with build(tmp_path / "other", others, name="mine") as other:
        text = TextConfig(encoder=str(folder), device="cpu", dtype="float32", name="own")
        embed_text(other, text, encoder=encoder)
        assert entities(other, str(where))[:2] == ["animal", "sausage"]


def test_cosines_with_texts_count_beside_a_portable_head_alone(kb, corpus):
    head = HeadConfig(portable="kb")
    assert [head.for_task(task).text_weight for task in ("wsd", "el", "text")] == [0.6, 0, 0]
    assert replace(head, text_weight=2).for_task("el").text_weight == 2
    for other in (HeadConfig(), HeadConfig(portable="kb", control=True)):
        assert other.for_task("wsd").text_weight == 0
        with pytest.raises(UsageError, match="text_weight is for portable heads that are no control"):
            replace(other, text_weight=2)
    for control, weight in ((True, 0.0), (False, 3.0)):
        own = portable(corpus, control=control, text_weight=weight)
        where = train_linker(kb, "light", own, device="cpu")
        assert LINKER.read(where).config["head"]["text_weight"] == weight
        linker = Linker.open(kb, model="light", device="cpu")
        assert linker.scorer.text_weight == weight


@pytest.mark.parametrize("reader", [{"layers": [-1] * 40}, {"layers": [-1]}])
def test_a_portable_head_whose_manifest_is_of_other_widths_is_damaged(kb, corpus, tmp_path, reader):
    where = train_linker(kb, "light", portable(corpus), device="cpu")
    strange = shutil.copytree(where, tmp_path / "strange")
    manifest = json.loads((strange / MANIFEST).read_text())
    for changes in (
        {"neighbours": ["any"] * 10_000},
        {"reader": {**manifest["reader"], **reader}},
        *(
            {"config": {**manifest["config"], "head": {**manifest["config"]["head"], **wrong}}}
            for wrong in (
                {"ranks": "drawn"},
                {"text_weight": -1},
                {"text_weight": "x"},
                {"text_weight": [1]},
                {"text_weight": 1e999},
            )
        ),
    ):
        (strange / MANIFEST).write_text(json.dumps({**manifest, **changes}))
        with pytest.raises(DamagedModel, match="strange"):
            Linker.open(kb, model=str(strange), device="cpu")


def test_means_of_the_first_layers_alone_serve_as_well(kb, corpus):
    settings = replace(head_training(corpus), ridge=RidgeConfig(layers=1))
    assert Linker.open(kb, model=str(train_linker(kb, "one", settings, device="cpu")), device="cpu")([TEXT])


def test_priors_that_are_counted_on_the_data_leave_the_document_out(kb, corpus, encoder, tmp_path):
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    reader = SpanReader(encoder, READ)
    part = TrainingSet(reader, list(labelled_senses(kb, generator, *corpus)), tmp_path / "read", None)
    data = LinkerData(reader, kb.vectors("text"), [part], RidgeConfig())
    first = next(prior_sentences(data, data.counts(), "data", "shared"))
    counts = np.array([2 * 19 + 1, 19 + 1])  # a dog twice in each of the others, another once
    wanted = prior_features(counts / counts.sum(), np.array([2]))
    np.testing.assert_allclose(first.sentence.features[0], wanted, rtol=1e-5)


@pytest.mark.slow
def test_a_portable_head_wants_vectors_of_its_encoder(kb, corpus, tmp_path):
    from tests.tiny_encoder import tiny_encoder

    where = train_linker(kb, "light", portable(corpus), device="cpu")
    other = Encoder.load(str(tiny_encoder(tmp_path / "another", seed=7)), device="cpu", dtype="float32")
    with build(tmp_path / "other", RECORDS, name="mine") as mine:
        embed_text(mine, TextConfig(encoder=str(other.folder), device="cpu", dtype="float32"), encoder=other)
        with pytest.raises(StaleModel, match="made by another"):
            entities(mine, str(where))
