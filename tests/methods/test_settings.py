"""The settings of a method: what is out of range or does not fit is refused where it is written."""

from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

from kgkit.errors import UnknownName, UsageError
from kgkit.evaluation.tasks import TASKS
from kgkit.methods.ebert_settings import EBertTraining
from kgkit.methods.kambert_settings import KamBertTraining
from kgkit.methods.kbert_settings import KBertTraining
from kgkit.methods.knowbert_settings import KnowBertTraining
from kgkit.methods.settings import TaskTraining
from kgkit.models.kinds import find_method
from kgkit.training.methods import settings_of

DATA = (Path("data.tsv"),)
MARKED = sorted(name for name, task in TASKS.items() if task.names)


def kbert(task="classification", **settings):
    return KBertTraining(**{"task": task, "data": DATA, **settings})


def knowbert(task="classification", **settings):
    return KnowBertTraining(**{"task": task, "data": DATA, "encoder": "e", **settings})


@pytest.mark.parametrize("make", [kbert, knowbert])
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("epochs", 0, "epochs is 0; it is 1 or more"),
        ("steps", 0, "steps is 0; it is 1 or more"),
        ("batch", -1, "batch is -1; it is 1 or more"),
        ("size", 7, "size is 7; it is 8 or more"),
        ("seed", -1, "seed is -1; it is 0 or more"),
        ("decay", -0.1, "decay is -0.1; it is 0 or more"),
        ("lr", 0, "lr is 0.0; it is above 0"),
        ("lr", float("nan"), "lr is nan; it is above 0"),
        ("lr_new", -1e-4, "lr_new is -0.0001; it is above 0"),
        ("lr", float("inf"), "lr is inf; expected a finite number, above 0"),
        ("lr_new", float("inf"), "lr_new is inf; expected a finite number, above 0"),
        ("decay", float("inf"), "decay is inf; expected a finite number, 0 or more"),
    ],
)
def test_a_number_out_of_range_is_refused_with_its_least_value(make, name, value, message):
    with pytest.raises(UsageError) as refused:
        make(**{name: value})
    assert message in str(refused.value)


@pytest.mark.parametrize("method", ["ebert", "kambert", "kbert"])
def test_settings_of_knowledge_have_no_effect_on_a_control(method):
    settings_class = settings_of(find_method(method))
    assert {*settings_class.KNOWLEDGE} <= {field.name for field in fields(settings_class)}
    values = {"linker": "gloss", "query": "link", "alpha": 0.5}
    changed = {name: value for name, value in values.items() if name in settings_class.KNOWLEDGE}
    control, method_itself = (
        settings_class(task="classification", data=DATA, control=control, **changed)
        for control in (True, False)
    )
    usual = {name for name, value in changed.items() if getattr(settings_class, name) == value}
    assert {*control.without_effect} == changed.keys() - usual and control.without_effect
    assert method_itself.without_effect == []


@pytest.mark.parametrize("make", [kbert, knowbert])
def test_an_unknown_task_is_refused_with_those_that_the_method_has(make):
    with pytest.raises(UnknownName) as refused:
        make("clasification")
    assert refused.value.kind == "task" and refused.value.names == type(make()).TASKS


@pytest.mark.parametrize("make", [kbert, knowbert])
def test_a_training_without_data_is_refused(make):
    with pytest.raises(UsageError, match="name one or more files of data"):
        make(data=())


def test_the_files_of_a_training_are_all_that_it_reads_with_gold_beside_data(tmp_path):
    names = (
        "train.data.txt",
        "dev.data.txt",
        "train.gold.txt",
        "dev.gold.txt",
        "a.data.xml.xz",
        "a.gold.key.txt.xz",
    )
    data, dev, *gold, senses, keys = (tmp_path / name for name in names)
    for path in (data, dev, *gold, senses, keys):
        path.touch()
    assert kbert("wic", data=(data,), dev=(dev,)).files == (data, dev, *gold)
    assert kbert("pair", data=(data,), dev=(dev,)).files == (data, dev)
    assert knowbert("wsd", data=(senses,)).files == (senses, keys)
    assert knowbert("wsd", data=(tmp_path / "b.data.xml",)).gold_of([tmp_path / "b.data.xml"]) == [None]


@pytest.mark.parametrize("task", MARKED)
def test_a_k_bert_refuses_tasks_with_marked_names(task):
    with pytest.raises(UsageError, match=rf"the task {task} marks names.*train a KnowBert"):
        kbert(task)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_facts": 0}, "max_facts is 0; it is 1 or more"),
        ({"query": "link"}, "the query link asks a linker: name one"),
        ({"linker": "prior"}, "the query longest asks no linker: leave prior out"),
    ],
)
def test_settings_of_a_k_bert_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(UsageError, match=message):
        kbert(**settings)


def test_an_unknown_query_is_refused_with_those_there_are():
    with pytest.raises(UsageError, match="query is 'shortest'; it is 'longest', 'jieba' or 'link'"):
        kbert(query="shortest")


@pytest.mark.parametrize(("task", "injected"), [("classification", True), ("tagging", False), ("pair", True)])
def test_relations_are_injected_unless_tokens_are_tagged(task, injected):
    assert kbert(task).relations is injected


@pytest.mark.parametrize(
    ("task", "settings", "message"),
    [
        ("el", {"control": True}, "el trains the linker of a knowledge base: a control has none"),
    ],
)
def test_settings_of_a_knowbert_that_do_not_fit_are_refused(task, settings, message):
    with pytest.raises(UsageError, match=message):
        knowbert(task, **settings)


def test_settings_cannot_be_changed_and_have_no_positions():
    training = kbert()
    with pytest.raises(FrozenInstanceError):
        training.epochs = 9
    with pytest.raises(TypeError):
        KBertTraining("classification", DATA)
    with pytest.raises(TypeError, match="epoch"):
        kbert(epoch=3)


def test_a_method_with_fewer_tasks_refuses_the_others():
    class Pairs(TaskTraining):
        TASKS = ("pair",)

    assert Pairs(task="pair", data=DATA, encoder="e").files == DATA
    with pytest.raises(UnknownName, match="there are: pair"):
        Pairs(task="tagging", data=DATA, encoder="e")


@pytest.mark.parametrize(
    ("settings", "by_length"),
    [(KBertTraining, True), (EBertTraining, True), (KamBertTraining, True), (KnowBertTraining, False)],
)
def test_batches_are_of_like_lengths_but_those_of_a_knowbert(settings, by_length):
    assert settings.BY_LENGTH is by_length
