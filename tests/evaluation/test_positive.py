"""The positive class, its score counted by hand, and the files of K-BERT's tasks of texts and pairs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import SourceError, UsageError
from kgkit.evaluation.examples import Example, Prediction
from kgkit.evaluation.positive import PositiveScore, score_positive
from kgkit.evaluation.tasks import find_task

CLASSIFICATION = find_task("classification")

# -- scores -----------------------------------------------------------------


def test_only_the_positive_class_counts():
    gold = {"a": "1", "b": "1", "c": "0", "d": "0", "e": "1"}
    answers = {"a": "1", "b": "0", "c": "1", "d": "0", "x": "1"}  # e has none: it is told to be negative
    assert score_positive(gold, answers) == PositiveScore(1 / 2, 1 / 3, pytest.approx(2 / 5), 5)
    assert score_positive(gold, answers, "0") == PositiveScore(1 / 2, 1 / 2, 1 / 2, 5)


def test_who_finds_nothing_has_a_high_accuracy_and_no_score():
    gold = {str(place): "1" if place == 7 else "0" for place in range(100)}
    assert score_positive(gold, dict.fromkeys(gold, "0")) == PositiveScore(0, 0, 0, 100)


def counted(gold, answers):
    """The slow twin: the cells of the table of gold and answers, then the definitions."""
    cells = {(one, other): 0 for one in (True, False) for other in (True, False)}
    for name, label in gold.items():
        cells[label == "1", answers.get(name) == "1"] += 1
    right, missed, wrong = cells[True, True], cells[True, False], cells[False, True]
    precision = right / (right + wrong) if right + wrong else 0
    recall = right / (right + missed) if right + missed else 0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0
    return precision, recall, f1


names = st.integers(0, 9).map(str)
golds = st.dictionaries(names, st.sampled_from("012")).filter(lambda gold: "1" in gold.values())


@given(golds, st.dictionaries(names, st.sampled_from("012")))
def test_the_score_is_what_its_definition_says(gold, answers):
    found = score_positive(gold, answers)
    assert found[:3] == pytest.approx(counted(gold, answers))
    assert found.instances == len(gold)


@given(golds)
def test_who_answers_right_has_all(gold):
    assert score_positive(gold, gold) == PositiveScore(1, 1, 1, len(gold))


def test_what_cannot_be_scored_is_told():
    with pytest.raises(UsageError, match="instance b has no label: score on a file with gold"):
        score_positive({"a": "1", "b": None}, {})
    with pytest.raises(
        UsageError, match="no instance has the label '1'; there are 'F', 'T': name the positive"
    ):
        score_positive({"a": "T", "b": "F"}, {})
    with pytest.raises(UsageError, match="no instance has the label '1'; there are none at all"):
        score_positive({}, {})


# -- the files of the tasks -------------------------------------------------

FILES = {
    "book_review": "label\ttext_a\n1\t好看，值得一读。\n0\t没用的“鸡汤”。\n",
    "chnsenticorp": "label\ttext_a\n1\t房間~~還可以\n",
    "shopping": "label\ttext_a\n0\t服务 跟不上\n",
    "weibo": "label\ttext_a\n0\t[泪]今天//@某人：\n1\t哈哈\n",
    "lcqmc": "怎么开证明？\t证明怎么开？\t1\n爱情是什么歌\t她是谁？\t0\n",
    "xnli": "label\ttext_a\ttext_b\n0\t他走了。\t他不在。\n1\t他走了。\t他在。\n2\t他走了。\t下雨了。\n",
    "xnli_in_words": "text_a\ttext_b\tlabel\n甲\t乙\tentailment\n甲\t丙\tneutral\n甲\t丁\tcontradiction\n",
    "finance_qa": "label\ttext_a\ttext_b\n1\t什么是基金？\t基金是资金。\n0\t什么是基金？\t股票会涨。\n",
    "law_qa": "text_a\ttext_b\tlabel\n可以上诉吗？\t可以。\t1\n可以上诉吗？\t今天不行\t0\n",
    "nlpcc_dbqa": "qid\ttext_a\ttext_b\tlabel\n1\t谁？\t他。\t1\n1\t谁？\t它在巴黎。\t0\n",
}
"""Made by hand, as the files of the tasks are."""


@pytest.mark.parametrize("task", FILES)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_files_of_the_tasks_are_read_as_they_are(tmp_path, task, end):
    path = tmp_path / f"{task}.tsv"
    path.write_text(FILES[task], encoding="utf-8", newline=end)
    lines = [line.split("\t") for line in FILES[task].splitlines()]
    named = task != "lcqmc"
    columns = lines.pop(0) if named else ["text_a", "text_b", "label"]
    expected = [dict(zip(columns, fields, strict=True)) for fields in lines]
    assert CLASSIFICATION.read(path) == [
        Example(
            str(number),
            tuple(one[name] for name in ("text_a", "text_b") if name in one),
            gold=one["label"],
        )
        for number, one in enumerate(expected, start=1 + named)
    ]


def test_three_classes_are_told_apart(tmp_path):
    path = tmp_path / "xnli.tsv"
    path.write_text(FILES["xnli"], encoding="utf-8")
    examples = CLASSIFICATION.read(path)
    assert CLASSIFICATION.labels(examples) == ("0", "1", "2")
    predictions = [Prediction(name, label) for name, label in {"2": "0", "3": "2", "4": "2"}.items()]
    assert CLASSIFICATION.score(examples, predictions) == {"accuracy": pytest.approx(2 / 3)}


def test_answers_to_examples_are_scored_by_their_ids(tmp_path):
    path = tmp_path / "finance_qa.tsv"
    path.write_text(FILES["finance_qa"], encoding="utf-8")
    gold = {one.id: str(one.gold) for one in CLASSIFICATION.read(path)}
    assert score_positive(gold, {"2": "1", "3": "1"}) == PositiveScore(1 / 2, 1, pytest.approx(2 / 3), 2)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "qa.tsv: no text in it"),
        (b"label\ttext_a\ttext_b\n", "qa.tsv: no text in it"),
        (b"label\tquestion\ttext_b\n1\ta\tb\n", r"qa.tsv:1: it names columns .*, and no text among them"),
        (b"label\ttext_a\ttext_b\n1\ta\tb\n1\ta\n", "qa.tsv:3: expected 3 tab-separated fields .*, found 2"),
        (b"label\ttext_a\ttext_b\n\ta\tb\n", "qa.tsv:2: the label is empty"),
        ("label\ttext_a\n1\t好\n".encode("gb18030"), "qa.tsv:2: not UTF-8"),
    ],
)
def test_a_file_that_is_none_of_pairs_is_told_with_its_line(tmp_path, content, told):
    (tmp_path / "qa.tsv").write_bytes(content)
    with pytest.raises(SourceError, match=told):
        CLASSIFICATION.read(tmp_path / "qa.tsv")


COUNTS = {
    "book_review/train.tsv": (20_000, 9_781),
    "book_review/dev.tsv": (10_000, 4_812),
    "book_review/test.tsv": (10_000, 4_890),
    "chnsenticorp/train.tsv": (9_600, 4_799),
    "chnsenticorp/dev.tsv": (1_200, 593),
    "chnsenticorp/test.tsv": (1_200, 608),
    "shopping/train.tsv": (20_000, 10_553),
    "shopping/dev.tsv": (10_000, 5_327),
    "shopping/test.tsv": (10_000, 5_231),
    "lcqmc/dev.csv": (4_401, 2_165),
    "lcqmc/test.csv": (4_401, 2_237),
}
"""Rows, and those with the label 1."""


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS)
def test_the_files_at_hand_are_read_whole(shared_data, name):
    examples = CLASSIFICATION.read(shared_data / "chinese_tasks" / f"{name}.xz")
    assert (len(examples), sum(one.gold == "1" for one in examples)) == COUNTS[name]
    assert CLASSIFICATION.labels(examples) == ("0", "1")
    assert {len(one.texts) for one in examples} == {2 if name.startswith("lcqmc") else 1}
    assert all(text.strip() for one in examples for text in one.texts)
