"""What holds for every method: it takes every task that it can read, and learns and answers in one way.

A method has one row in `MODELS`: a function that makes one, untrained, for a task.
"""

import json
from contextlib import ExitStack
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from safetensors.torch import load_file

import kgkit
from kgkit.building import Alias, Entity, Triple
from kgkit.encoder import Encoder
from kgkit.encoder.device import has_bf16
from kgkit.errors import DamagedModel, UnknownName, UsageError
from kgkit.evaluation.examples import Example
from kgkit.evaluation.tasks import TASKS
from kgkit.heads import (
    Classifier,
    EBert,
    EBertConfig,
    EntityLinkerConfig,
    KamBert,
    KamBertConfig,
    KARConfig,
    KBert,
    KnowBert,
)
from kgkit.home import Home
from kgkit.inputs import EBertReader, KnowBertReader, TreeReader
from kgkit.inputs.entity_vectors import StoredEntityVectors
from kgkit.inputs.kambert import KamBertReader, MapBuilder
from kgkit.inputs.maps import MAPS
from kgkit.linking import Linker
from kgkit.methods.answering import TaskData, answers_of, batch_of, loss_of
from kgkit.methods.contract import TaskModel
from kgkit.methods.ebert import EBertMethod, classifier_config, special_pieces
from kgkit.methods.kambert import KamBertMethod, MapSources
from kgkit.methods.kbert import KBertMethod
from kgkit.methods.kbert_settings import KBertTraining
from kgkit.methods.knowbert import KnowBertMethod
from kgkit.methods.predicting import Predictor
from kgkit.models.folder import find_trained
from kgkit.models.kinds import GROUP, find_method, method_names
from kgkit.models.manifest import FORMAT, ModelManifest
from kgkit.models.opening import open_model
from kgkit.training.methods import settings_of
from kgkit.training.testing import check_answers, check_control, check_learning, toy_data, toy_examples
from kgkit.trees import TreeBuilder, generators_of
from tests.inputs.test_knowbert import encoder, knowledge
from tests.pmi_toys import PMI
from tests.small_kb import build
from tests.tiny_encoder import WIDTH, tiny_encoder

__all__ = ["encoder", "knowledge"]

examples_of, data_of = toy_examples, toy_data


def kbert_of(task, control, encoder, knowledge):
    kbs = [] if control else [knowledge.generator.kb]
    classifier = Classifier(data_of(task).classifier_config(WIDTH), torch.Generator().manual_seed(0))
    reader = TreeReader(encoder, TreeBuilder(generators_of(kbs, "longest")), size=24)
    return KBertMethod(task, KBert(encoder.model), classifier, encoder, reader)


def knowbert_of(task, control, encoder, knowledge):
    data = data_of(task)
    specials = data.task.specials(data.learn)
    encoder = Encoder.load(str(encoder.folder), device="cpu", dtype="float32")  # it gets pieces and hooks
    encoder.tokenizer.add_tokens(list(specials), special_tokens=True)
    torch.manual_seed(0)
    encoder.model.resize_token_embeddings(len(encoder.tokenizer))
    drawn = torch.Generator().manual_seed(0)
    linker = EntityLinkerConfig(hidden=WIDTH, width=8, stored=knowledge.width, heads=2, inner=8, scorer=4)
    kars = {} if control else {"words": KARConfig(linker=linker, layer=1, heads=2, inner=8)}
    head = KnowBert(encoder.model, kars, drawn)
    reader = KnowBertReader(encoder, {} if control else {"words": knowledge}, size=24)
    classifier = Classifier(data.classifier_config(WIDTH), drawn)
    return KnowBertMethod(task, head, classifier, encoder, reader, specials)


def ebert_of(task, control, encoder, knowledge):
    data = data_of(task)
    encoder = Encoder.load(str(encoder.folder), device="cpu", dtype="float32")  # it gets pieces
    specials = special_pieces(data, encoder)
    encoder.tokenizer.add_tokens(list(specials), special_tokens=True)
    torch.manual_seed(0)
    encoder.model.resize_token_embeddings(len(encoder.tokenizer))
    classifier = Classifier(classifier_config(data, encoder), torch.Generator().manual_seed(0))
    vectors = None if control else StoredEntityVectors(knowledge.vectors[0])
    weight = torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(0))
    config = EBertConfig(stored=WIDTH, width=WIDTH)
    head = EBert(encoder.model) if control else EBert(encoder.model, config, weight)
    reader, kb = EBertReader(encoder, vectors, size=24), knowledge.generator.kb
    links = (None, None) if control else (kb, Linker.open(kb))
    return EBertMethod(task, head, classifier, encoder, reader, specials, *links)


def kambert_of(task, control, encoder, knowledge):
    data = data_of(task)
    specials = data.task.specials(data.learn)
    encoder = Encoder.load(str(encoder.folder), device="cpu", dtype="float32")  # it gets pieces and hooks
    encoder.tokenizer.add_tokens(list(specials), special_tokens=True)
    torch.manual_seed(0)
    encoder.model.resize_token_embeddings(len(encoder.tokenizer))
    drawn, kb = torch.Generator().manual_seed(0), knowledge.generator.kb
    maps = () if control else MAPS
    config = KamBertConfig.of(encoder.model, maps=maps, plain=control)
    head = KamBert(encoder.model, config)
    sources = MapSources(knowledge.generator, knowledge.generator, Linker.open(kb), [kb])
    builder = MapBuilder(maps, PMI, {kb.name: kb}, 0 if control else 2)
    classifier = Classifier(data.classifier_config(WIDTH), drawn)
    reader = KamBertReader(encoder, builder, size=24)
    return KamBertMethod(task, head, classifier, encoder, reader, specials, sources)


def plain_kbert(encoder, inputs):
    texts = {"input_ids": inputs.ids, "attention_mask": inputs.real.long(), "token_type_ids": inputs.types}
    return encoder(**texts).last_hidden_state


def plain_knowbert(encoder, inputs):
    return encoder(**inputs.inputs).last_hidden_state


PLAIN = {"ebert": plain_kbert, "kambert": plain_kbert, "kbert": plain_kbert, "knowbert": plain_knowbert}
MODELS = {"ebert": ebert_of, "kambert": kambert_of, "kbert": kbert_of, "knowbert": knowbert_of}
OTHERS = {
    "kalm": "training/test_kalm.py",
    "linker": "training/linkers",
    "pmi": "training/pmi",
    "tagger": "training/test_tagging.py",
}
"""Kinds that answer no task, and where their trainings are tested; of heads, see `tests/heads`."""
READ = [
    (name, task)
    for name in MODELS
    for task in TASKS
    if name != "kbert" or not TASKS[task].names  # trees carry no marks
]


def test_no_method_lacks_its_row():
    assert {*MODELS, "kalm"} == set(method_names())
    entries = {entry.name: entry for entry in entry_points(group=GROUP)}
    kinds = {name: entry.load() for name, entry in entries.items()}
    assert {name for name, kind in kinds.items() if "predictor" in kind.roles} == MODELS.keys()
    own = {name for name, entry in entries.items() if entry.value.startswith("kgkit.")}
    assert own == MODELS.keys() | OTHERS.keys()
    assert all((Path(__file__).parent.parent / path).exists() for path in OTHERS.values())


@pytest.mark.parametrize(("name", "task"), READ)
class TestEveryMethod:
    @pytest.fixture
    def method(self, name, task, encoder, knowledge):
        return MODELS[name](task, False, encoder, knowledge)

    def test_padding_order_and_batch_size_change_no_answer(self, method, task):
        check_answers(method)
        done = []
        answers_of(method, examples_of(task), progress=lambda *counts: done.append(counts))
        assert done == [(8, 8)]

    def test_every_part_learns(self, method, task):
        check_learning(method)

    def test_a_control_is_the_plain_encoder(self, name, task, encoder, knowledge):
        check_control(MODELS[name](task, True, encoder, knowledge), PLAIN[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("task", ["pair", "regression", "choice", "tagging"])
def test_weights_that_give_no_probabilities_are_damage(name, task, encoder, knowledge):
    method = MODELS[name](task, False, Encoder.load(str(encoder.folder), device="cpu"), knowledge)
    manifest = ModelManifest(format=FORMAT, kind=name, name="broken")
    answers = Predictor(method, manifest, ExitStack()).answers(examples_of(task))
    assert len(answers) == 8
    with torch.no_grad():
        for weight in method.model.parameters():
            weight.fill_(3e38)
    predictor = Predictor(method, manifest, ExitStack())
    message = r"the model broken answers example \w+ by a (probability|number) of .*; train it again"
    with pytest.raises(DamagedModel, match=message):
        predictor.answers(examples_of(task))
    with pytest.raises(DamagedModel, match=message):
        next(predictor(examples_of(task)))


def test_a_check_that_fails_says_what_does_not_hold(encoder, knowledge):
    def other(encoder, inputs):
        return plain_kbert(encoder, inputs) + 1

    differs = r"pair: the control is not the plain encoder: its logits differ by up to \d\.\d+ from those of"
    with pytest.raises(AssertionError, match=differs):
        check_control(kbert_of("pair", True, encoder, knowledge), other)
    method = kbert_of("pair", False, encoder, knowledge)
    method.model.classifier.forward = lambda hidden, *_: hidden.sum(1)[:, :2] * len(hidden)
    with pytest.raises(AssertionError, match=r"pair: example \d is answered otherwise alone"):
        check_answers(method)


def test_numbers_are_learnt_as_standard_scores_and_answered_as_they_are(encoder, knowledge):
    method = kbert_of("regression", False, encoder, knowledge)
    config = method.model.eval().classifier.config
    assert (config.mean, config.scale) == (11.5, pytest.approx(1.25**0.5))
    with torch.no_grad():
        method.model.classifier.label.weight.zero_()  # it answers the mean whatever it reads
    answers = answers_of(method, examples_of("regression"))
    assert {answer.answer for answer in answers} == {11.5} and answers[0].probabilities is None
    loss, _ = loss_of(method.model.classifier)(method.model, batch_of(method, examples_of("regression")))
    assert loss.item() == pytest.approx(1.0)  # the variance, in standard deviations


def test_the_probabilities_of_choices_are_of_those_of_one_example(encoder, knowledge):
    method = knowbert_of("choice", True, encoder, knowledge)
    batch = batch_of(method, examples_of("choice", 4))
    assert batch.rows.tolist() == list(range(10)) and batch.gold.tolist() == [0, 1, 0, 1]
    assert batch.examples.tolist() == [0, 0, 1, 1, 1, 2, 2, 3, 3, 3]
    assert batch.items.tolist() == [0, 1, 0, 1, 2, 0, 1, 0, 1, 2]
    method.model.eval()
    answers = answers_of(method, examples_of("choice", 4))
    assert [len(answer.probabilities) for answer in answers] == [2, 3, 2, 3]
    assert all(sum(answer.probabilities) == pytest.approx(1) for answer in answers)
    assert all(answer.probabilities[answer.answer] == max(answer.probabilities) for answer in answers)


def test_where_every_token_is_cut_off_nothing_is_learnt_and_the_tags_are_o(encoder):
    reader = TreeReader(encoder, TreeBuilder([]), size=6)
    classifier = Classifier(data_of("tagging").classifier_config(WIDTH))
    method = KBertMethod("tagging", KBert(encoder.model), classifier, encoder, reader)
    hidden = Example("1", ("\u200b",), tokens=((0, 1),), gold=("B-X",))  # no piece of it
    loss, items = loss_of(classifier)(method.model, batch_of(method, [hidden]))
    assert (loss.item(), items) == (0.0, 0.0)
    [answer] = answers_of(method, [hidden])
    assert (answer.answer, answer.probabilities) == (("O",), (0.0,))


def test_examples_of_one_batch_are_read_at_equally_many_positions(encoder, knowledge):
    method = knowbert_of("relation", True, encoder, knowledge)
    one, two = examples_of("relation", 2)
    with pytest.raises(UsageError, match="equally many names"):
        batch_of(method, [one, two._replace(marks=())])
    with pytest.raises(UsageError, match="equally many names"):
        batch_of(method, [])
    with pytest.raises(UsageError, match=r"the label 'maybe'; the labels are: r0\(e1,e2\), r1\(e1,e2\)"):
        batch_of(method, [one._replace(gold="maybe")])
    with pytest.raises(UsageError, match="examples without a label"):
        loss_of(method.model.classifier)(method.model, batch_of(method, [one, two._replace(gold=None)]))


def test_heads_that_do_not_fit_are_refused(encoder):
    from transformers import BertForMaskedLM

    around = KnowBert(BertForMaskedLM(encoder.model.config), {})
    config = data_of("pair").classifier_config
    with pytest.raises(
        UsageError, match="not on a BertForMaskedLM: read the KnowBert with model='AutoModel'"
    ):
        TaskModel(around, Classifier(config(WIDTH)), lambda *_: None)
    with pytest.raises(UsageError, match="vectors of width 8, the encoder has 16"):
        TaskModel(KBert(encoder.model), Classifier(config(8)), lambda *_: None)


def test_trees_carry_no_marks(encoder, tmp_path):
    for task in ("relation", "typing"):
        with pytest.raises(UsageError, match=f"the task {task} marks names, and the sentence trees of a"):
            KBertTraining(task=task, data=(tmp_path / "x",))
    reader = TreeReader(encoder, TreeBuilder([]), size=24)
    classifier = Classifier(data_of("pair").classifier_config(WIDTH))
    method = KBertMethod("pair", KBert(encoder.model), classifier, encoder, reader)
    with pytest.raises(UsageError, match="example 0 marks names, and sentence trees carry no marks"):
        [*method.read(examples_of("typing"))]


# -- trained ----------------------------------------------------------------


LINES = {
    "regression": [
        {"text_a": example.texts[0], "text_b": "a dog", "score": example.gold}
        for example in examples_of("regression", 24)
    ],
    "choice": [
        {"choices": example.choices, "label": example.gold} for example in examples_of("choice", 24)
    ],
    "tagging": [
        {"tokens": example.texts[0].split(), "tags": example.gold} for example in examples_of("tagging", 24)
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("home"))
    build(
        home.path,
        [
            Entity("dog", "dog"),
            Entity("cat", "cat"),
            Alias("dog", "dog"),
            Alias("cat", "cat"),
            Triple("dog", "is", "cat"),
        ],
        name="pets",
    ).close()
    return home


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """Return the arguments of `kgkit.train` for a task."""
    folder = tmp_path_factory.mktemp("data")
    plain = tiny_encoder(folder / "encoder", mask=True)

    def of(task, **others):
        path = folder / f"{task}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in LINES[task]))
        return {
            "task": task, "data": path, "encoder": str(plain), "size": 16, "batch": 4, "epochs": 2,
            "lr": 1e-3, "lr_new": 1e-2, "bf16": False, "control": True, "device": "cpu", **others,
        }  # fmt: skip

    return of


def weights(model):
    paths = sorted(model.folder.rglob("*.safetensors"))
    return {f"{path.parent.name}.{key}": one for path in paths for key, one in load_file(path).items()}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("task", ["regression", "choice", "tagging"])
def test_what_is_trained_answers_as_it_did_when_it_is_opened(home, settings, name, task):
    model = kgkit.train(name, name=f"{name}-{task}", home=home, **settings(task))
    results = model.manifest.results
    assert (results["examples"], results["held_out"]) == (22, 2) and model.manifest.task == task
    data = TaskData.read(settings_of(find_method(name))(**plain_settings(settings(task))))
    with open_model(model.manifest.name, "predictor", home=home, device="cpu") as predictor:
        answers = predictor.answers(data.held_out, size=4)
        scores = predictor.task.score(data.held_out, answers, predictor.labels)
    assert scores == pytest.approx({metric: results[metric] for metric in scores})
    assert find_trained(home, model.manifest.name) == model.folder


@pytest.mark.parametrize("name", ["kambert", "kbert"])
def test_a_training_without_knowledge_in_its_texts_is_warned_of(home, settings, name, tmp_path, caplog):
    arguments = settings("tagging", epochs=1, steps=1)
    for word, is_warned_of in (("tree", True), ("dog", False)):
        path = tmp_path / f"{word}.jsonl"
        path.write_text(json.dumps({"tokens": ["cat", word], "tags": ["O", "B-X"]}) + "\n")
        caplog.clear()
        kgkit.train(name, name="few", home=home, kbs=["pets"], **arguments | {"data": path, "control": False})
        kind = "facts" if name == "kbert" else "cells of the map knowledge"
        warning = f"no {kind} were read in 1 sampled examples"
        assert (warning in caplog.text) is is_warned_of
    without, at_last = (
        json.dumps({"tokens": tokens, "tags": ["O", "B-X"]}) for tokens in (["a", "tree"], ["cat", "dog"])
    )
    path.write_text("\n".join([without] * 290 + [at_last] * 10))
    kgkit.train(name, name="few", home=home, kbs=["pets"], **arguments | {"data": path, "control": False})
    kgkit.train(name, name="few", home=home, **arguments)
    assert "were read in" not in caplog.text


def plain_settings(arguments):
    return {key: value for key, value in arguments.items() if key != "device"} | {
        "data": (arguments["data"],)
    }


@pytest.mark.parametrize("name", MODELS)
def test_a_training_that_was_stopped_ends_as_one_that_was_not(home, settings, name):
    def stop(stage, done, total):
        if stage.startswith("training") and done == total // 2:
            raise KeyboardInterrupt

    whole = kgkit.train(name, name="whole", home=home, **settings("regression"))
    with pytest.raises(KeyboardInterrupt):
        kgkit.train(name, name="stopped", home=home, progress=stop, **settings("regression"))
    resumed = kgkit.train(name, name="stopped", home=home, **settings("regression"))
    first, second = weights(whole), weights(resumed)
    assert first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


def test_what_is_trained_is_not_lost_where_it_cannot_be_published(home, settings, monkeypatch):
    save, steps = KBertMethod.save, []

    def fail(*_, **__):
        raise RuntimeError("not today")

    monkeypatch.setattr(KBertMethod, "save", fail)
    for expected in (4, 0):
        steps.clear()
        with pytest.raises(RuntimeError, match="not today"):
            kgkit.train(
                "kbert", name="kept", home=home, progress=lambda stage, *_: steps.append(stage),
                **settings("choice", steps=4),
            )  # fmt: skip
        assert sum(stage.startswith("training") for stage in steps) == expected
    monkeypatch.setattr(KBertMethod, "save", save)
    model = kgkit.train("kbert", name="kept", home=home, **settings("choice", steps=4))
    assert find_trained(home, "kept") == model.folder and not [*(home.path / "runs").glob("kbert-kept-*")]


@pytest.mark.parametrize(
    ("change", "field"),
    [({"pooling": "cls"}, "pooling"), ({"query": None}, "query"), ({"query": 3}, "query")],
)
def test_fields_that_do_not_fit_the_manifest_are_told_before_the_first_step(
    home, settings, monkeypatch, change, field
):
    from kgkit.methods import kbert

    begin = kbert.begin_kbert

    def changed(*args):
        beginning = begin(*args)
        fields = {**beginning.manifest, **change}
        return beginning._replace(manifest={key: value for key, value in fields.items() if value is not None})

    monkeypatch.setattr(kbert, "begin_kbert", changed)
    steps = []
    with pytest.raises(DamagedModel, match=f"KBertManifest.*{field}"):
        kgkit.train(
            "kbert", name="unfit", home=home, progress=lambda *step: steps.append(step), **settings("choice")
        )
    assert not steps and not (home.models / "unfit").exists()


def test_python_trains_the_model_that_the_command_does(home, settings):
    from tests.cli_helpers import run

    arguments = settings("choice")
    python = kgkit.train("kbert", name="python", home=home, kbs=["pets"], **arguments | {"control": False})
    done = run(
        "train", "kbert", "--task", "choice", "--data", arguments["data"], "--kb", "pets", "--name",
        "command", "--encoder", arguments["encoder"], "--size", 16, "--batch", 4, "--epochs", 2,
        "--lr", 1e-3, "--lr-new", 1e-2, "--device", "cpu", "--home", home.path, "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert json.loads(done.out)["config"] == python.manifest.config | {"bf16": "auto"}
    call = f"kgkit.train('kbert', name='python', kbs=['pets'], home={str(home.path)!r}, device='cpu', task="
    assert python.manifest.command.startswith(call) and "epochs=2" in python.manifest.command
    again = {"kgkit": kgkit, "call": python.manifest.command}
    exec("again = eval(call)", again)
    assert again["again"].manifest.command == python.manifest.command
    if not has_bf16(torch.device("cpu")):
        first = weights(python)
        second = weights(python._replace(folder=find_trained(home, "command")))
        assert all(torch.equal(first[key], second[key]) for key in first)


def test_arguments_that_do_not_fit_are_refused(home, settings):
    with pytest.raises(UnknownName, match="'bert'"):
        kgkit.train("bert", name="x", home=home)
    for strange in ("rung", "kb"):
        with pytest.raises(UsageError, match=rf"kbert.*'{strange}'"):
            kgkit.train("kbert", name="x", home=home, **settings("choice", **{strange: "ridge"}))
    with pytest.raises(UsageError, match=r"kbert.*'task'"):
        kgkit.train("kbert", name="x", home=home, data="x.tsv")
    wrong = {"lr": ("fast", "a number"), "steps": (2.5, "a whole number or"), "query": ("all", "'longest', ")}
    for key, (value, words) in wrong.items():
        with pytest.raises(UsageError, match=f"^{key} is {value!r}; it is {words}"):
            kgkit.train("kbert", name="x", home=home, **settings("choice") | {key: value})
    with pytest.raises(UsageError, match=r"knowbert.*'data'"):
        kgkit.train("knowbert", name="x", home=home, task="pair")


@pytest.mark.parametrize("name", MODELS)
def test_the_defaults_of_a_command_are_those_of_the_settings(name):
    import inspect
    from dataclasses import fields

    from kgkit.commands.train.generated import method_command
    from kgkit.commands.train.methods import LEAST_SIZE

    settings_class = settings_of(find_method(name))
    parameters = inspect.signature(method_command(name)).parameters
    options = {key: parameter.default for key, parameter in parameters.items()}
    assert {field.name for field in fields(settings_class)} - options.keys() <= {"decay", "bf16", "steps"}
    for field in fields(settings_class):
        if options.get(field.name, inspect.Parameter.empty) is not inspect.Parameter.empty:
            usual = {(): None, "auto": None}.get(field.default, field.default)
            assert options[field.name] == usual, field.name
    assert settings_class.LEAST["size"] == LEAST_SIZE
