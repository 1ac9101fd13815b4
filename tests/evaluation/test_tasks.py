"""The table of tasks: what its rows read, which labels they have, their scores by hand."""

import json
from pathlib import Path

import numpy as np
import pytest

from kgkit.errors import NotThere, SourceError, UnknownName, UsageError
from kgkit.evaluation.columns import ScoreColumns
from kgkit.evaluation.examples import Example, Prediction, alternatives, duplicate_id, hold_out, merge_files
from kgkit.evaluation.records import Layout
from kgkit.evaluation.task_formats import TYPES
from kgkit.evaluation.tasks import TASKS, Task, find_task

MARKERS = ("[E1]", "[/E1]", "[E2]", "[/E2]")
TAIL = ("[SUBJECT=DOG]", "[OBJECT=CITY]")

SEMEVAL = """1\t"The <e1>dog</e1> chewed the <e2>bone</e2>."
Instrument-Agency(e2,e1)

2\t"No <e1>relation</e1> to the <e2>rest</e2>."
Other
"""
TACRED = {
    "id": "x", "relation": "per:title", "token": ["He", "leads", "the", "city"], "subj_start": 0,
    "subj_end": 0, "obj_start": 2, "obj_end": 3, "subj_type": "PERSON", "obj_type": "TITLE",
}  # fmt: skip
CHOI = {
    "annot_id": "t1", "left_context_token": ["In"], "mention_span": "Rome", "right_context_token": ["."],
    "y_str": ["place", "location", "city"],
}  # fmt: skip


@pytest.fixture
def write(tmp_path):
    def files(*contents):
        paths = [tmp_path / f"f{number}" for number in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.write_text(content, encoding="utf-8")
        return paths

    return files


def test_a_file_is_read_by_its_name_as_by_its_path(write):
    records, senses, gold = write('{"text": "a", "label": 1}\n', "dog\tN\t0-0\ta dog\tthe dog\n", "T\n")
    task = find_task("classification")
    assert task.read(str(records)) == task.read(records)
    assert [*task.read_records(str(records))] == [*task.read_records(records)]
    assert find_task("wic").read(str(senses), str(gold)) == find_task("wic").read(senses, gold)
    with pytest.raises(NotThere, match="no file nowhere"):
        task.read("nowhere.tsv")


# -- the table --------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
class TestEveryTask:
    def test_it_is_found_by_its_name(self, task):
        assert find_task(task.name) is task

    def test_a_missing_file_is_an_error(self, task, tmp_path):
        with pytest.raises(NotThere):
            task.read(tmp_path / "x")

    def test_gold_in_a_file_of_its_own_is_refused_where_there_is_none(self, task, tmp_path):
        if not task.gold_files:
            with pytest.raises(UsageError, match="have their labels in themselves"):
                task.read(tmp_path / "x", tmp_path / "y")

    def test_examples_without_gold_are_neither_learnt_from_nor_scored(self, task):
        bare = Example("1", ("a", "b"))
        with pytest.raises(UsageError, match="x: 1 of 2 examples have no label, the first is 1: "):
            task.check_gold([bare, with_gold(task, "2")], "x")
        with pytest.raises(UsageError, match="example 1 has no label: score on a file with gold"):
            task.score([bare], [])
        assert task.target(bare, ("a",)) is None

    def test_ids_that_come_twice_are_refused(self, task):
        example = with_gold(task, "2")
        with pytest.raises(UsageError, match="two examples have the id '2': score those of one file"):
            task.score([example, example], [])
        prediction = Prediction("2", example.gold)
        with pytest.raises(UsageError, match="two predictions have the id '2'"):
            task.score([example], [prediction, Prediction("2", example.gold)])

    def test_answers_of_another_kind_are_refused(self, task):
        example = with_gold(task, "2")
        for answer in (True, None, ["a"], b"a"):
            with pytest.raises(UsageError, match=rf"the answer to 2 is .*; in the task {task.name} it is "):
                task.score([example], [Prediction("2", answer)])
            if answer is not None:  # None is no gold
                with pytest.raises(UsageError, match=r"example 2 is .*; in the task"):
                    task.target(example._replace(gold=answer), ())

    def test_right_answers_have_the_highest_score(self, task):
        first, second = with_gold(task, "1"), with_gold(task, "2", other=True)
        given = [Prediction(one.id, one.gold, {"1": float(one is first)}) for one in (first, second)]
        name, score = next(iter(task.score([first, second], given, ["A(e1,e2)"]).items()))
        assert name in task.decides and score == pytest.approx(1)


def with_gold(task, name, other=False):
    answer = {
        "label": {"relation": ("A(e1,e2)", "Other"), "wic": ("T", "F")}.get(task.name, ("1", "0")),
        "labels": (frozenset({"person"}), frozenset()),
        "tags": (("B-X", "O"), ("O", "O")),
        "number": (2.5, 0.0),
        "choice": (1, 0),
    }[task.answer][other]
    choices = ("a", "b") if task.answer == "choice" else ()
    return Example(name, ("a b",), tokens=((0, 1), (2, 3)), group="q", gold=answer, choices=choices)


def test_a_task_that_does_not_exist_is_an_error_that_lists_the_tasks():
    with pytest.raises(UnknownName, match="no task named 'glue'; there are: classification, accept"):
        find_task("glue")


def test_the_manual_has_every_task():
    page = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")
    assert [name for name in TASKS if f"| `{name}` |" not in page] == []


# -- files ------------------------------------------------------------------


def test_words_in_context_are_pairs_of_sentences(write):
    pairs, gold = write("dog\tN\t0-1\tDogs bark .\tA dog .\nsee\tV\t1-0\tI see .\tSee !\n", "T\nF\n")
    assert find_task("wic").read(pairs, gold) == [
        Example("1", ("Dogs bark .", "A dog ."), gold="T"), Example("2", ("I see .", "See !"), gold="F"),
    ]  # fmt: skip
    assert [example.gold for example in find_task("wic").read(pairs)] == [None, None]


def test_relations_are_read_in_the_format_of_their_file(write):
    semeval, tacred = write(SEMEVAL, "\ufeff " + json.dumps([TACRED]))
    first, second = find_task("relation").read(semeval)
    assert [first.texts[0][slice(*mark)] for mark in first.marks] == ["dog", "bone"]
    assert (first.gold, second.gold) == ("Instrument-Agency(e2,e1)", "Other") and first.tail == ()
    [example] = find_task("relation").read(tacred)
    assert [example.texts[0][slice(*mark)] for mark in example.marks] == ["He", "the city"]
    assert example.tail == ("[SUBJECT=PERSON]", "[OBJECT=TITLE]") and example.gold == "per:title"


def test_relations_of_fewrel_are_told_from_records(write):
    task = find_task("relation")
    instance = {"tokens": ["He", "leads", "it"], "h": ["he", "Q1", [[0]]], "t": ["it", "Q2", [[2]]]}
    of_fewrel = {'P 1 \u201c"': [], "P2": [instance], "P3": [instance | {"t": ["he", "Q3", [[0]]]}]}
    for layout in ({}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}):
        [path] = write("\ufeff " + json.dumps(of_fewrel, **layout))
        first, second = task.read(path)
        assert first == Example("P2-1", ("He leads it",), ((0, 2), (9, 11)), group="Q1 Q2", gold="P2")
        assert (second.id, second.gold, second.group) == ("P3-1", "P3", "Q1 Q3")
        assert [parsed.example for parsed in task.read_records(path)] == [first, second]
        assert task.labels([first, second]) == ("P2", "P3")
    answers = [Prediction("P2-1", "P2"), Prediction("P3-1", "P2")]
    assert task.score([first, second], answers) == {"f1": 0.5, "precision": 0.5, "recall": 0.5}
    record = {"text_a": "He leads it", "marks": [[0, 2], [9, 11]], "label": "P2"}
    [path] = write(json.dumps(record))
    assert task.read(path)[0].gold == "P2"


def test_typing_has_the_nine_types(write):
    [path] = write(json.dumps(CHOI))
    [example] = find_task("typing").read(path)
    assert example == Example("t1", ("In Rome .",), ((3, 7),), gold=frozenset({"place", "location"}))


def test_the_answers_to_a_question_have_its_group(write):
    [path] = write("qid\ttext_a\ttext_b\tlabel\n7\twho?\the\t1\n7\twho?\tit\t0\n")
    assert find_task("ranking").read(path) == [
        Example("2", ("who?", "he"), group="7", gold="1"), Example("3", ("who?", "it"), group="7", gold="0"),
    ]  # fmt: skip
    [bare] = write("text_a\ttext_b\tqid\na\tb\t1\n")
    assert [example.gold for example in find_task("ranking").read(bare)] == [None]


def test_tags_stand_at_the_tokens_of_the_text(write):
    [path] = write("text_a\tlabel\n腹 痛 。\tB-X I-X O\n")
    [example] = find_task("tagging").read(path)
    assert example == Example("1", ("腹痛。",), tokens=((0, 1), (1, 2), (2, 3)), gold=("B-X", "I-X", "O"))


def test_a_single_text_is_no_pair(write):
    [path] = write("label\ttext_a\n1\ta\n")
    with pytest.raises(SourceError, match=r"f0:2: example 2 is one text, not a pair"):
        find_task("pair").read(path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a b\tyes\nc\tno\n", [("1", ("a b",), "yes"), ("2", ("c",), "no")]),
        ('a\tb "\t1\n', [("1", ("a", 'b "'), "1")]),
        ("label\ttext_a\n0\ta\n\n1\tb\n", [("2", ("a",), "0"), ("4", ("b",), "1")]),
        ("Index\tsentence1\tsentence2\tlabel\n7\ta\tb\tno\n", [("7", ("a", "b"), "no")]),
        ("index\tsentence\n3\ta\n", [("3", ("a",), None)]),
        ('{"text": "a", "label": 1}\n{"text": "b"}\n', [("1", ("a",), "1"), ("2", ("b",), None)]),
        ('{"id": 5, "text_a": "a", "text_b": "b", "label": true}\n', [("5", ("a", "b"), "true")]),
        ('{"text": "a", "label": null}\n', [("1", ("a",), None)]),
        (
            '{"text": "a", "label": "x", "score": 0.5, "spans": [[1, 2]], "of": {"text": 1}}\n',
            [("1", ("a",), "x")],
        ),
        (
            '{"sentence1": "a", "sentence2": "b", "index": 12345678901234567890, "label": false}\n',
            [("12345678901234567890", ("a", "b"), "false")],
        ),
        ("Premise\tLABEL\tSentence\na\tno\tb\n", [("2", ("b",), "no")]),
        ("a label\tlabels\nb\tlabelled\n", [("1", ("a label",), "labels"), ("2", ("b",), "labelled")]),
    ],
)
def test_texts_with_labels_are_read_from_tabs_and_from_json(write, content, expected):
    [path] = write(content)
    examples = find_task("classification").read(path)
    assert [(example.id, example.texts, example.gold) for example in examples] == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "f0: no text in it"),
        ("label\ttext\n", "f0: no text in it"),
        ("only a text\n", "f0:1: expected TEXT, TEXT, LABEL .* found 1 fields"),
        ("a\tb\tc\td\n", "f0:1: expected TEXT, TEXT, LABEL .* found 4 fields"),
        ("a\t1\nb\tc\t1\n", r"f0:2: expected 2 tab-separated fields \(text, label\), found 3"),
        ("a\t1\nb\t \n", "f0:2: the label is empty"),
        ('{"text": "a"}\nb\t1\n', "f0:2: expected {"),
        ('{"text": "a", "label": 0.5}\n', "f0:1: expected {.* whole number, true or false: .*label"),
        ('{"text": "a", "label": ["x"]}\n', "f0:1: expected {"),
        ('{"text": "a", "id": {}}\n', "f0:1: expected {"),
        ('{"text": 1}\n', "f0:1: expected {.*texts are strings"),
        ('{"text": "a"}\n["b"]\n', "f0:2: expected {"),
        ('{"label": "a"}\n', "f0:1: there is no text: the first text is called text, text_a, sentence or"),
        (
            "premise\thypothesis\tlabel\na\tb\tno\n",
            r"f0:1: it names columns \(premise, hypothesis, label\), and no text among them: the first text",
        ),
        (
            "hypothesis\tlabel\na\tno\n",
            "text, text_a, sentence or sentence1, a second one text_b or sentence2",
        ),
        ("ID\t Label \nx\tno\n", r"f0:1: it names columns \(id, label\)"),
        ("text_b\tLABEL\nx\tno\n", "f0:1: it names columns"),
        ("a\tb\tc\td\tlabel\n", "f0:1: it names columns"),
        (
            '{"id": 1, "text": "a"}\n{"id": "1", "text": "b"}\n',
            "f0:2: two examples have the id '1', those of line 1",
        ),
        (
            "id\ttext\tlabel\nx\ta\tno\n\nx\tb\tno\n",
            "f0:4: two examples have the id 'x', those of line 2 and 4",
        ),
        (
            '{"text": "a"}\n{"id": 1, "text": "b"}\n',
            "f0:2: two examples have the id '1', those of line 1 and 2",
        ),
    ],
)
def test_a_file_of_no_known_kind_is_an_error_with_its_line(write, content, message):
    [path] = write(content)
    with pytest.raises(SourceError, match=message):
        find_task("classification").read(path)


def test_real_data_are_read(shared_data):
    relation, wic, classification = map(find_task, ("relation", "wic", "classification"))
    relations = relation.read(shared_data / "semeval2010_task8" / "TRAIN_FILE.TXT.xz")
    assert len(relations) == 8_000 and len(relation.labels(relations)) == 19
    assert relation.specials(relations) == MARKERS
    pairs = wic.read(shared_data / "wic" / "train_part2.jsonl")
    assert {example.gold for example in pairs} == {"T", "F"} == {*wic.labels([])}
    reviews = classification.read(shared_data / "chinese_tasks" / "chnsenticorp" / "dev.tsv.xz")
    assert len(reviews) == 1_200 and classification.labels(reviews) == ("0", "1")
    entailed = classification.read(shared_data / "glue" / "RTE" / "dev.tsv")
    assert len(entailed) == 277 and classification.labels(entailed) == ("entailment", "not_entailment")
    names = find_task("tagging").read(shared_data / "chinese_tasks" / "medical_ner" / "dev.tsv.xz")
    assert len(names) == 939 and find_task("tagging").labels(names)[0] == "O"


def test_several_files_are_read_as_one_whose_ids_and_groups_differ(write):
    first, second = write(
        "qid\ttext_a\ttext_b\tlabel\n7\twho?\the\t1\n", "qid\ttext_a\ttext_b\tlabel\n7\twhat?\tit\t0\n"
    )
    examples = find_task("ranking").read_labelled([first, second])
    assert [(example.id, example.group) for example in examples] == [("1.2", "1.7"), ("2.2", "2.7")]
    assert find_task("ranking").read_labelled([first])[0].id == "2"
    with pytest.raises(UsageError, match="files of data: 2, files of gold: 1; name a file"):
        find_task("wic").read_labelled([first, second], [first])
    [bare] = write("text\na\n")
    with pytest.raises(UsageError, match="f0: 1 of 1 examples have no label, the first is 2: give each a"):
        find_task("classification").read_labelled([bare])


# -- what a task needs ------------------------------------------------------


def labelled(*gold, **others):
    return [Example(str(number), ("a",), gold=one, **others) for number, one in enumerate(gold)]


def test_each_task_has_its_special_pieces_and_labels():
    examples = [Example("1", ("a",), tail=TAIL, gold="a"), Example("2", ("a",), tail=TAIL[:1], gold="b")]
    relation, typing, classification = map(find_task, ("relation", "typing", "classification"))
    assert relation.specials(examples) == (*MARKERS, *sorted(TAIL))
    assert relation.markers == (("[E1]", "[/E1]"), ("[E2]", "[/E2]"))
    assert typing.specials([]) == ("[E]", "[/E]")
    assert find_task("wic").specials([]) == classification.specials([]) == ()
    assert find_task("wic").labels([]) == ("F", "T") and typing.labels([]) == TYPES
    assert relation.labels(labelled("b", "a", "b")) == ("a", "b")
    assert find_task("tagging").labels(labelled(("B-X", "A"), ("I-X",))) == ("O", "A", "B-X", "I-X")
    with pytest.raises(UsageError, match="example 1 has no label: nothing can be learnt from it"):
        classification.labels(labelled("a", None))


def test_gold_becomes_the_numbers_that_a_model_learns():
    def target(task, gold, labels=("a", "b", "c")):
        return find_task(task).target(Example("1", ("a",), gold=gold), labels)

    assert target("classification", "b") == 1 and target("classification", "b").shape == ()
    assert target("typing", frozenset({"c", "a"})).tolist() == [True, False, True]
    assert target("typing", frozenset()).dtype == np.bool_
    assert target("tagging", ("c", "a", "a")).tolist() == [2, 0, 0]
    assert target("regression", 0.1, ()) == np.float32(0.1) and target("choice", 3, ()) == 3
    assert find_task("regression").labels([]) == find_task("choice").labels([]) == ()
    for task, gold in (
        ("classification", "x"),
        ("typing", frozenset({"a", "x"})),
        ("tagging", ("a", "x", "b")),
    ):
        with pytest.raises(UsageError, match="example 1 has the label 'x'; the labels are: a, b, c"):
            target(task, gold)


def test_that_nothing_holds_is_gold():
    find_task("typing").check_gold(labelled(frozenset()), "x")
    find_task("typing").check_gold([], "x")
    with pytest.raises(UsageError, match=r"x: 1 of 2 .* the first is 1: name .*gold"):
        find_task("wic").check_gold(labelled("T", None), "x")


def test_a_tenth_is_held_out_and_groups_stay_whole():
    examples = [Example(str(number), ("a",), group=f"q{number // 4}") for number in range(80)]
    for by in ("id", "position"):
        learnt, held = hold_out(examples, by)
        assert len(held) == 8 and sorted([*learnt, *held], key=examples.index) == examples
        assert not {one.group for one in learnt} & {one.group for one in held}
        assert (learnt, held) == hold_out(examples, by)
        assert hold_out(examples[:9], by) == (examples[:9], [])


def test_what_is_held_out_depends_on_positions_or_on_ids():
    drawn = np.random.default_rng(0).permutation(30)[:3].tolist()
    plain = [Example(str(number), ("a",)) for number in range(30)]
    assert [one.id for one in hold_out(plain)[1]] == [str(index) for index in sorted(drawn)]
    by_id = sorted(one.id for one in plain)
    assert {one.id for one in hold_out(plain, "id")[1]} == {by_id[index] for index in drawn}


def test_ids_that_come_twice_are_found_and_files_are_merged():
    assert duplicate_id("abca") == "a" and duplicate_id("abc") is None
    [first, second] = labelled("x", "y")
    assert [one.id for one in merge_files([[first], [second]])] == ["1.0", "2.1"]
    assert merge_files([[first, second]]) == [first, second]


def test_the_choices_of_an_example_become_pairs():
    example = Example("7", ("The man fell.", "Why?"), gold=1, choices=("Ice.", "Sun."))
    assert alternatives(example) == [
        Example("7.0", ("The man fell.", "Why? Ice."), group="7"),
        Example("7.1", ("The man fell.", "Why? Sun."), group="7"),
    ]
    assert [one.texts for one in alternatives(example._replace(texts=()))] == [("Ice.",), ("Sun.",)]


# -- scores -----------------------------------------------------------------


def answered(answers):
    return [Prediction(name, answer) for name, answer in answers.items()]


@pytest.mark.parametrize(
    ("task", "gold", "answers", "scores"),
    [
        ("wic", ("T", "F", "F"), {"0": "T", "1": "T"}, {"accuracy": 1 / 3}),
        (
            "classification", ("a", "b", "b"), {"0": "a", "2": "b", "9": "b"},
            {"accuracy": 2 / 3, "matthews": 3 / 24**0.5},
        ),
        (
            "classification", ("1", "0"), {"0": "1", "1": "1"},
            {"accuracy": 0.5, "f1": 2 / 3, "precision": 0.5, "recall": 1.0, "matthews": 0.0},
        ),
        ("pair", ("x", "y", "z"), {"0": "x", "1": "z"}, {"accuracy": 1 / 3}),
        (
            "acceptability", ("1", "1", "0"), {"0": "1", "1": "0", "2": "0"},
            {"matthews": 1 / 2, "accuracy": 2 / 3, "f1": 2 / 3, "precision": 1.0, "recall": 0.5},
        ),
        (
            "regression", (1.0, 2.0, 3.0), {"0": 0.5, "1": 9.0, "2": 1.0},
            {"mean_correlation": (0.0524 + 0.5) / 2, "pearson": 0.0524, "spearman": 0.5},
        ),
        ("choice", (0, 2, 1), {"0": 0, "1": 1}, {"accuracy": 1 / 3}),
        (
            "relation", ("A(e1,e2)", "A(e2,e1)", "B(e1,e2)", "Other"),
            {"0": "A(e1,e2)", "1": "A(e1,e2)", "2": "B(e1,e2)", "3": "Other"},
            {"macro_f1": (0.5 + 1) / 2, "accuracy": 3 / 4},
        ),
        (
            "relation", ("per:title", "no_relation", "per:age"),
            {"0": "per:title", "1": "per:age"}, {"f1": 1 / 2, "precision": 1 / 2, "recall": 1 / 2},
        ),
        (
            "typing", (frozenset({"person", "group"}), frozenset({"place"})),
            {"0": frozenset({"person", "event"})},
            {"f1": 2 / 5, "precision": 1 / 2, "recall": 1 / 3},
        ),
        (
            "tagging", (("B-X", "I-X", "O"),), {"0": ("B-Y", "I-Y", "O")},
            {"f1": 0.0, "precision": 0.0, "recall": 0.0, "untyped_f1": 1.0},
        ),
    ],
)  # fmt: skip
def test_scores_are_the_official_ones_and_the_first_decides(task, gold, answers, scores):
    found = find_task(task).score(labelled(*gold), answered(answers))
    assert found == pytest.approx(scores, abs=1e-4) and list(found) == list(scores)


def test_probabilities_of_two_labels_give_the_area_under_the_curve():
    examples, score = labelled("no", "yes", "yes"), find_task("classification").score

    def predictions(*shares):
        return [Prediction(str(n), "yes", {"no": 1 - one, "yes": one}) for n, one in enumerate(shares)]

    assert score(examples, predictions(0.4, 0.3, 0.9))["auc"] == 1 / 2
    assert score(examples, predictions(0.4, 0.4, 0.9))["auc"] == 3 / 4
    three = [one._replace(probabilities={**one.probabilities, "maybe": 0.0}) for one in predictions(1, 1, 1)]
    for others in (predictions(0.4, 0.3), three, answered({"0": "yes", "1": "no", "2": "no"})):
        assert "auc" not in score(examples, others)
    assert "auc" not in score(labelled("yes", "yes", "yes"), predictions(0.4, 0.3, 0.9))


def test_answers_to_a_question_are_ranked_by_the_probability_that_they_are_right():
    examples = labelled("1", "0", group="q")
    predictions = [Prediction("0", "1", {"0": 0.1, "1": 0.9}), Prediction("1", "1", {"0": 0.2, "1": 0.8})]
    scores = {"mrr": 1.0, "map": 1.0, "accuracy": 0.5, "auc": 1.0}
    assert find_task("ranking").score(examples, predictions) == scores
    with pytest.raises(UsageError, match=r"answer 1 \(question q\)"):
        find_task("ranking").score(examples, predictions[:1])


def test_answers_are_ranked_as_relevance_whatever_their_question():
    """Ads: whether one is relevant to a query, by the area under the ROC curve."""
    examples = [
        Example(str(n), ("query", "ad"), group=group, gold=gold)
        for n, (group, gold) in enumerate([("a", "1"), ("a", "0"), ("b", "1"), ("b", "0")])
    ]
    shares = (0.6, 0.5, 0.4, 0.1)  # of b the relevant one is below the irrelevant one of a
    predictions = [Prediction(str(n), "1", {"0": 1 - share, "1": share}) for n, share in enumerate(shares)]
    scores = find_task("ranking").score(examples, predictions)
    assert (scores["mrr"], scores["auc"]) == (1.0, 3 / 4)
    assert "auc" not in find_task("ranking").score(examples[::2], predictions[::2])


def test_relations_without_directions_are_so_wherever_their_labels_are_seen():
    """Gold that is all Other says nothing of the scheme."""
    others, score = labelled("Other", "Other"), find_task("relation").score
    assert "macro_f1" in score(others, answered({"0": "Other"}), ["A(e1,e2)", "Other"])
    assert "f1" in score(others, answered({"0": "eats"}), ["eats", "Other"])


def test_answers_that_no_task_can_score_are_errors():
    for answers in ({}, {"0": ("O", "O")}):
        with pytest.raises(UsageError, match=r"example 0 .* tags for 1 tokens"):
            find_task("tagging").score(labelled(("O",)), answered(answers))
    with pytest.raises(UsageError, match="example 1"):
        find_task("regression").score(labelled(0.0, 1.0), answered({"0": 1.0}))


def test_a_row_of_ones_own_is_a_task(write):
    def example(fields):
        return Example(fields.id(), (fields.text("poem"),), gold=fields.label())

    def score(examples, systems, labels):
        columns = np.tile([1.0, len(labels)], (len(systems), len(examples), 1))
        return [ScoreColumns("size", columns, lambda sums: sums[..., 1] / sums[..., 0])]

    [path] = write('{"poem": "a", "label": "x", "author": "b"}\n')
    task = Task(name="mine", answer="label", layout=Layout(example), scorer=score, decides=("size",))
    assert task.read(path) == [Example("1", ("a",), gold="x")]
    assert [parsed.unused for parsed in task.read_records(path)] == [{"author": "b"}]
    assert task.score(labelled("a"), [], ("a", "b", "c")) == {"size": 3.0}
