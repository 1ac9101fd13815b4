"""Portable heads: on any knowledge base, with priors that are counted without the document."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")


from kgkit.candidates import generator_for
from kgkit.embedding.text import TextConfig, embed_text
from kgkit.encoder import Encoder
from kgkit.errors import DamagedModel, StaleModel, UsageError
from kgkit.inputs import SpanReader
from kgkit.linking import Linker
from kgkit.linking.prior_features import prior_features
from kgkit.linking.ridge import RidgeConfig
from kgkit.models.kinds import LINKER
from kgkit.models.manifest import MANIFEST
from kgkit.training.linkers.head import HeadConfig, prior_sentences
from kgkit.training.linkers.labelled import labelled_senses
from kgkit.training.linkers.means import LinkerData, TrainingSet
from kgkit.training.linkers.train import train_linker
from kgkit.types import Alias, Entity
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


def entities(kb, model):
    [linked] = Linker.open(kb, model=model, device="cpu")([TEXT])
    return [link.entity for link in linked.links]


@pytest.mark.parametrize("wrong", [{"heads": 0}, {"seed": -1}, {"portable": "x"}, {"decay": -1}])
def test_settings_of_heads_out_of_range_are_refused(wrong):
    with pytest.raises(UsageError, match=f"{next(iter(wrong))} is .*; it is "):
        HeadConfig(**wrong)


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
