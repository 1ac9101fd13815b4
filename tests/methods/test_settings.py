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
from kgkit.models.kinds import find_method, method_names
from kgkit.training.methods import settings_of

DATA = (Path("data.tsv"),)
TWO = (Path("a"), Path("b"))
MARKED = sorted(name for name, task in TASKS.items() if task.names)
WITHOUT_GOLD_FILES = sorted(name for name, task in TASKS.items() if not task.gold_files)
WITH_GOLD_FILES = sorted(name for name, task in TASKS.items() if task.gold_files)


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
    assert str(refused.value) == message


@pytest.mark.parametrize("make", [kbert, knowbert])
@pytest.mark.parametrize(
    ("name", "value"), [("size", 8), ("seed", 0), ("decay", 0), ("steps", None), ("steps", 1)]
)
def test_the_least_values_are_accepted(make, name, value):
    assert getattr(make(**{name: value}), name) == value


@pytest.mark.parametrize("method", method_names())
def test_settings_of_knowledge_have_no_effect_on_a_control(method):
    settings_class = settings_of(find_method(method))
    assert {*settings_class.KNOWLEDGE} <= {field.name for field in fields(settings_class)}
    values = {"linker": "gloss", "query": "link", "alpha": 0.5, "back": "nothing"}
    changed = {name: value for name, value in values.items() if name in settings_class.KNOWLEDGE}
    task = "mlm" if method == "knowbert" else "classification"
    control, method_itself = (
        settings_class(task=task, data=DATA, control=control, **changed) for control in (True, False)
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


@pytest.mark.parametrize("task", [name for name in WITHOUT_GOLD_FILES if name not in MARKED])
@pytest.mark.parametrize("name", ["gold", "dev_gold"])
def test_files_of_gold_are_refused_where_the_data_have_it(task, name):
    with pytest.raises(UsageError, match=f"^the data of the task {task} contain the gold"):
        kbert(task, **{name: DATA})


@pytest.mark.parametrize("task", [name for name in WITH_GOLD_FILES if name not in MARKED])
def test_files_of_gold_have_to_be_as_many_as_those_of_data(task):
    for settings in ({"data": TWO, "gold": DATA}, {"dev": DATA, "dev_gold": TWO}):
        with pytest.raises(UsageError, match="name a file of gold for each"):
            kbert(task, **settings)
    assert kbert(task, gold=DATA).files == DATA * 2


def test_the_files_of_a_training_are_all_that_it_reads():
    [task, *_] = [name for name in WITH_GOLD_FILES if name not in MARKED]
    paths = [(Path(name),) for name in ("data", "gold", "dev", "dev_gold")]
    training = kbert(task, data=paths[0], gold=paths[1], dev=paths[2], dev_gold=paths[3])
    assert training.files == tuple(path for [path] in paths)


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
        ("wsd", {}, "files of data: 1, files of gold: 0"),
        ("el", {"gold": DATA}, "the data of the task el contain the gold"),
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
