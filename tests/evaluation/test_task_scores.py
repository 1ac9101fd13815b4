"""Scores of tasks: beside their definitions, SciPy and scikit-learn, and as functions of sums over units."""

import math
import re
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgkit.errors import UsageError
from kgkit.evaluation.columns import sum_units, unit_numbers
from kgkit.evaluation.examples import Example, Prediction
from kgkit.evaluation.ner import Name, NameScores, chunks, score_names
from kgkit.evaluation.significance import Interval, compare, paired_test
from kgkit.evaluation.task_scores import PADDING, ranks, release_spans
from kgkit.evaluation.tasks import TASKS, find_task

LABELS = {
    "classification": ("0", "1"),
    "acceptability": ("0", "1", "2"),
    "pair": ("no", "yes", "maybe"),
    "ranking": ("0", "1"),
    "tagging": ("O", "B-DRUG", "I-DRUG", "B-SIGN", "I-SIGN"),
    "wic": ("F", "T"),
    "relation": ("Owner-Thing(e1,e2)", "Owner-Thing(e2,e1)", "Part-Whole(e1,e2)", "Other"),
    "typing": ("person", "place", "event"),
    "regression": (),
    "choice": (),
}
TACRED_LABELS = ("no_relation", "per:title", "org:member", "per:age")
CASES = [*LABELS.items(), ("relation", TACRED_LABELS)]
IDS = [*LABELS, "tacred"]
NUMBERS = st.one_of(st.integers(0, 5).map(float), st.floats(-5, 5, allow_subnormal=False))


def answers(task, labels, width):
    """Answers of a task's kind, to an example with *width* tokens."""
    kinds = {
        "label": st.sampled_from(labels or ("",)),
        "labels": st.frozensets(st.sampled_from(labels or ("",))),
        "tags": st.tuples(*[st.sampled_from(labels or ("",))] * width),
        "number": NUMBERS,
        "choice": st.integers(0, 3),
    }
    return kinds[task.answer]


@st.composite
def answered(draw, name, labels, systems=1):
    """A task, examples with gold, predictions of systems; some examples lack answers, where they may."""
    task = find_task(name)
    needed = name in ("tagging", "ranking", "regression")
    examples, predictions = [], [[] for _ in range(systems)]
    for number in range(draw(st.integers(1, 8))):
        texts = tuple(draw(st.sampled_from("abcdefgh")) for _ in range(2))
        group = draw(st.sampled_from("xyz")) if name in ("ranking", "choice") else ""
        kind = answers(task, labels, draw(st.integers(1, 4)) if name == "tagging" else 1)
        gold = draw(kind)
        width = len(gold) if name == "tagging" else 1
        examples.append(Example(str(number), texts, group=group, gold=gold))
        for own in predictions:
            if needed or draw(st.integers(0, 5)):
                answer = draw(answers(task, labels, width))
                share = draw(st.sampled_from((0.0, 0.25, 0.5, 1.0)))
                own.append(Prediction(str(number), answer, {"1": share} if name == "ranking" else None))
    return task, examples, predictions


def first_score(task, examples, predictions, labels):
    name, value = next(iter(task.score(examples, predictions, labels).items()))
    return name, value


def test_every_task_has_a_case():
    assert {*LABELS} == {*TASKS}


@pytest.mark.parametrize(("name", "labels"), CASES, ids=IDS)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_the_comparison_of_two_systems_has_their_scores(name, labels, data):
    task, examples, systems = data.draw(answered(name, labels, systems=2))
    scores = [first_score(task, examples, own, labels) for own in systems]
    columns = task.score_columns(examples, systems, labels)
    compared = columns.compare()
    assert [columns.metric] * 2 == [metric for metric, _ in scores]
    assert [compared.versus, compared.score] == pytest.approx([value for _, value in scores], abs=1e-9)
    assert compared == compare(*columns.columns, columns.statistic, columns.bounds)
    assert all(columns.bounds.low <= value <= columns.bounds.high for _, value in scores)


@pytest.mark.parametrize(("name", "labels"), CASES, ids=IDS)
@given(data=st.data())
def test_the_statistic_of_some_units_is_the_score_of_their_examples(name, labels, data):
    if name == "regression":
        return  # ranks are those among all examples
    task, examples, [own] = data.draw(answered(name, labels))
    units = unit_numbers(examples, task.unit)
    chosen = data.draw(st.sets(st.integers(0, int(units.max())), min_size=1))
    some = [example for example, unit in zip(examples, units, strict=True) if unit in chosen]
    ids = {example.id for example in some}
    columns = task.score_columns(examples, [own], labels)
    wanted = first_score(task, some, [each for each in own if each.id in ids], labels)
    if wanted[0] == columns.metric:  # of `relation`, the other examples may say that there are no directions
        sums = columns.columns[0, sorted(chosen)].sum(0)
        assert float(columns.statistic(sums)) == pytest.approx(wanted[1], abs=1e-9)


# -- units


def examples_with(groups=(), texts=()):
    if groups:
        return [Example(str(number), ("a",), group=group) for number, group in enumerate(groups)]
    return [Example(str(number), pair) for number, pair in enumerate(texts)]


def test_examples_of_a_group_are_one_unit_and_those_without_are_their_own():
    groups = examples_with(groups=("q", "", "p", "q", ""))
    assert unit_numbers(groups).tolist() == [0, 1, 2, 0, 3]
    assert unit_numbers([]).tolist() == []


def test_a_group_is_not_taken_for_an_example_of_that_id():
    assert unit_numbers([Example("1", ("a",)), Example("2", ("a",), group="1")]).tolist() == [0, 1]


def test_pairs_that_share_a_text_or_are_linked_by_others_are_one_unit():
    pairs = examples_with(texts=[("a", "b"), ("c", "d"), ("e", "f"), ("d", "e"), ("b", "g"), ("h", "h")])
    assert unit_numbers(pairs, "text").tolist() == [0, 1, 1, 1, 0, 2]


def test_columns_of_a_unit_are_added():
    columns = np.arange(12, dtype=float).reshape(2, 3, 2)
    assert sum_units(columns, np.array([1, 0, 1])).tolist() == [[[2, 3], [4, 6]], [[8, 9], [16, 18]]]


def test_pairs_of_wic_that_share_a_sentence_change_sides_together():
    task = find_task("wic")
    examples = [Example(str(n), ("a", f"b{n}"), gold="T") for n in range(4)]
    right, wrong = ([Prediction(str(n), answer) for n in range(4)] for answer in "TF")
    columns = task.score_columns(examples, [wrong, right])
    assert columns.columns.tolist() == [[[0, 4]], [[4, 4]]]
    assert paired_test(*columns.columns, columns.statistic) == 1.0


def test_answers_to_a_question_are_one_unit_with_its_reciprocal_rank():
    task = find_task("ranking")
    rows = [("q", "0", 0.9), ("p", "1", 0.3), ("q", "1", 0.5), ("q", "1", 0.1), ("n", "0", 0.5)]
    examples = [
        Example(str(n), ("a", "b"), group=group, gold=gold) for n, (group, gold, _) in enumerate(rows)
    ]
    predictions = [Prediction(str(n), "1", {"1": share}) for n, (_, _, share) in enumerate(rows)]
    columns = task.score_columns(examples, [predictions], ("0", "1"))
    assert columns.metric == "mrr"
    assert columns.columns.tolist() == [[[0.5, 1], [1, 1], [0, 0]]]


# -- correlations


def numbers(values):
    return [Prediction(str(n), float(value)) for n, value in enumerate(values)]


def test_correlations_of_answers_on_another_scale_compare_as_on_the_same():
    generator = np.random.default_rng(3)
    gold = generator.normal(size=60)
    examples = [Example(str(n), ("a",), gold=float(value)) for n, value in enumerate(gold)]
    near, far = (gold + spread * generator.normal(size=60) for spread in (0.4, 1.2))
    task = find_task("regression")
    same = task.score_columns(examples, [numbers(far), numbers(near)])
    scaled = task.score_columns(examples, [numbers(far), numbers(1e6 + 1e4 * near)])
    values = [paired_test(*each.columns, each.statistic) for each in (same, scaled)]
    assert values[0] == pytest.approx(values[1]) and values[0] < 0.01
    assert same.bounds == Interval(-1.0, 1.0)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e300, 1e-300])
def test_answers_that_are_all_alike_have_no_correlation(value):
    task = find_task("regression")
    examples = [Example(str(n), ("a",), gold=float(n)) for n in range(7)]
    columns = task.score_columns(examples, [numbers([value] * 7)])
    assert float(columns.statistic(columns.columns[0].sum(0))) == 0.0


# -- labels -----------------------------------------------------------------


def score(name, gold, answers, labels=(), **fields):
    """The scores of a task, of answers by position; None is no answer."""
    examples = [Example(str(n), ("a", "b"), gold=one, **fields) for n, one in enumerate(gold)]
    given = [Prediction(str(n), one) for n, one in enumerate(answers) if one is not None]
    return find_task(name).score(examples, given, labels)


def positive_by_definition(gold, answers):
    """The slow twin: the cells of the table of gold and answers, then the definitions."""
    cells = {(one, other): 0 for one in (True, False) for other in (True, False)}
    for label, answer in zip(gold, answers, strict=True):
        cells[label == "1", answer == "1"] += 1
    right, missed, wrong = cells[True, True], cells[True, False], cells[False, True]
    precision = right / (right + wrong) if right + wrong else 0
    recall = right / (right + missed) if right + missed else 0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0
    return f1, precision, recall


binary = st.lists(st.tuples(st.sampled_from("01"), st.sampled_from(("0", "1", None))), min_size=2).filter(
    lambda rows: {gold for gold, _ in rows} == {"0", "1"}
)


@given(binary)
def test_scores_of_the_positive_class_are_what_their_definitions_say(rows):
    gold, answers = zip(*rows, strict=True)
    found = score("classification", gold, answers)
    assert (found["f1"], found["precision"], found["recall"]) == pytest.approx(
        positive_by_definition(gold, answers)
    )


def test_who_finds_nothing_has_a_high_accuracy_and_no_f1():
    found = score("classification", ["1", *["0"] * 99], ["0"] * 100)
    assert (found["accuracy"], found["f1"], found["precision"], found["recall"]) == (0.99, 0, 0, 0)


def test_other_labels_than_0_and_1_have_no_positive_class():
    assert [*score("classification", "TFT", "TTT")] == ["accuracy", "matthews"]
    assert [*score("classification", "012", "012")] == ["accuracy"]


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_matthews_of_two_labels_is_what_its_definition_says(right, missed, wrong, other):
    gold = "1" * (right + missed) + "0" * (wrong + other)
    answers = "1" * right + "0" * missed + "1" * wrong + "0" * other
    spread = math.sqrt((right + wrong) * (right + missed) * (other + wrong) * (other + missed))
    expected = (right * other - wrong * missed) / spread if spread else 0
    assert score("acceptability", gold, answers)["matthews"] == pytest.approx(expected)


def area(positive, shares):
    examples = [Example(str(n), ("a",), gold="10"[not one]) for n, one in enumerate(positive)]
    given = [Prediction(str(n), "1", {"1": share, "0": 1 - share}) for n, share in enumerate(shares)]
    return find_task("classification").score(examples, given)["auc"]


def test_matthews_and_the_area_are_those_of_scikit_learn():
    metrics, random = pytest.importorskip("sklearn.metrics"), np.random.default_rng(0)
    for size in range(5, 60):
        gold, answers = ([*map(str, random.integers(0, 2 + size % 2, size))] for _ in range(2))
        found = score("acceptability", gold, answers)["matthews"]
        assert found == pytest.approx(metrics.matthews_corrcoef(gold, answers), abs=1e-9)
        positive, shares = random.random(size) < 0.5, random.integers(0, 9, size) / 9
        positive[:2] = True, False
        assert area(positive, shares) == pytest.approx(metrics.roc_auc_score(positive, shares))


shares = st.lists(st.tuples(st.booleans(), st.integers(0, 8).map(lambda n: n / 8)), min_size=2).filter(
    lambda rows: len({right for right, _ in rows}) == 2
)


@given(shares)
def test_the_area_is_the_share_of_pairs_in_the_right_order(rows):
    right = [number for positive, number in rows if positive]
    wrong = [number for positive, number in rows if not positive]
    pairs = [(one > other) + (one == other) / 2 for one in right for other in wrong]
    assert area(*zip(*rows, strict=True)) == pytest.approx(sum(pairs) / len(pairs))


# -- answers to questions ---------------------------------------------------


def ranked(*rows):
    """The scores of answers: the question, whether it is right, and its probability."""
    examples = [
        Example(str(n), ("q", "a"), group=qid, gold="10"[not right]) for n, (qid, right, _) in enumerate(rows)
    ]
    given = [Prediction(str(n), "1", {"1": share}) for n, (*_, share) in enumerate(rows)]
    return find_task("ranking").score(examples, given)


def test_the_rank_is_that_of_the_highest_right_answer_of_each_question():
    found = ranked(
        ("a", False, 0.9), ("b", True, 0.1), ("a", True, 0.5), ("a", True, 0.4), ("b", False, 0),
        ("c", False, 0.3),
    )  # fmt: skip
    assert found["mrr"] == pytest.approx((1 / 2 + 1) / 2)
    assert found["map"] == pytest.approx(((1 / 2 + 2 / 3) / 2 + 1) / 2)


def test_scores_that_do_not_tell_answers_apart_rank_right_ones_last():
    found = ranked(*[("a", place == 0, 0.5) for place in range(4)])
    assert (found["mrr"], found["map"]) == (1 / 4, 1 / 4)


def precision_of(order):
    """Return the average precision of answers in this order."""
    parts = [Fraction(sum(order[:end]), end) for end, right in enumerate(order, start=1) if right]
    return sum(parts) / len(parts)


def worst(rows):
    """The slow twin: the least that any order allows in which no score is behind a lower one."""
    reciprocal, average = [], []
    for qid in {qid for qid, _, _ in rows}:
        own = [(right, share) for name, right, share in rows if name == qid]
        if not any(right for right, _ in own):
            continue
        orders = [
            [right for right, _ in order]
            for order in permutations(own)
            if all(one[1] >= other[1] for one, other in pairwise(order))
        ]
        reciprocal.append(min(Fraction(1, order.index(True) + 1) for order in orders))
        average.append(min(precision_of(order) for order in orders))
    count = len(reciprocal)
    return [float(sum(parts) / count) if count else 0.0 for parts in (reciprocal, average)]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 2)), max_size=9).filter(
        lambda rows: all([one[0] for one in rows].count(qid) <= 5 for qid in "abc")
    )
)
def test_no_order_that_the_scores_allow_is_worse(rows):
    found = ranked(*rows)
    assert [found["mrr"], found["map"]] == pytest.approx(worst(rows))


def test_answers_without_a_probability_cannot_be_ranked():
    with pytest.raises(UsageError, match=r"answer 0 \(question a\)"):
        ranked(("a", True, math.nan))


# -- tags -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("", []),
        ("O B-A I-A O", [(1, 3)]),
        ("B-A B-A I-A", [(0, 1), (1, 3)]),
        ("B-A I-B I-A O", [(0, 3)]),  # whatever the type
        ("I-A I-A O B-A", [(3, 4)]),  # nothing has begun
        ("S-A B-A E-A O", [(0, 1), (1, 3)]),
        (f"B-A I-A {PADDING} I-A", [(0, 2)]),
        ("B-A [ENT] I-A", [(0, 3)]),
    ],
)
def test_a_span_begins_at_a_begin_tag_and_goes_on_to_the_next_or_to_outside(tags, spans):
    assert release_spans(tags.split()) == spans


any_tags = st.sampled_from(["O", PADDING, "B-A", "B-B", "I-A", "I-B", "S-A"])


def begun_by_pattern(tags):
    """The slow twin: one letter for each tag, and a pattern."""
    letters = "".join("b" if tag[0] in "BS" else "o" if tag in ("O", PADDING) else "i" for tag in tags)
    return [match.span() for match in re.finditer("bi*", letters)]


@given(st.lists(any_tags))
def test_spans_are_a_begin_tag_and_all_that_goes_on_behind_it(tags):
    assert release_spans(tags) == begun_by_pattern(tags)


def name_tags(kind, more):
    return [f"B-{kind}", *[f"I-{kind}"] * more]


parts = st.one_of(st.just(["O"]), st.builds(name_tags, st.sampled_from("AB"), st.integers(0, 2)))
well_formed = st.lists(parts, max_size=6).map(lambda some: [tag for part in some for tag in part])


@given(st.lists(st.tuples(well_formed, well_formed), min_size=1, max_size=4))
def test_typed_scores_are_those_of_names_and_never_higher_than_untyped_ones(rows):
    padded = []
    for pair in rows:
        length = max(1, *map(len, pair))
        padded.append([(*tags, *["O"] * (length - len(tags))) for tags in pair])
    gold, found = zip(*padded, strict=True)
    scores = score("tagging", gold, found)
    names = sum(
        (score_names(*([Name(*one) for one in chunks(tags)] for tags in pair)) for pair in padded),
        NameScores(),
    )
    overall = names.overall
    assert [*scores.values()] == pytest.approx(
        [overall.f1, overall.precision, overall.recall, names.spans.f1]
    )
    assert scores["f1"] <= scores["untyped_f1"]


def test_on_ill_formed_tags_typed_and_released_scores_differ():
    found = score("tagging", [("B-A", "I-A", "O", "B-B")], [("B-B", "I-A", "O", "I-B")])
    assert found["untyped_f1"] == pytest.approx(2 / 3)  # one of one is right, of two
    assert (found["precision"], found["recall"]) == pytest.approx((1 / 3, 1 / 2))


# -- relations and types ----------------------------------------------------


def test_the_score_of_semeval_is_the_mean_over_relations_and_a_wrong_direction_is_wrong():
    gold = ("A(e1,e2)", "A(e2,e1)", "A(e1,e2)", "B(e1,e2)", "B(e1,e2)", "Other")
    answers = ("A(e1,e2)", "A(e1,e2)", "Other", "B(e1,e2)", None, "B(e2,e1)")
    assert score("relation", gold, answers) == pytest.approx(
        {"macro_f1": (2 * 1 / (2 + 3) + 2 * 1 / (2 + 2)) / 2, "accuracy": 2 / 6}
    )


def test_relations_that_the_gold_does_not_have_are_not_averaged():
    assert score("relation", ["A(e1,e2)", "Other"], ["A(e1,e2)", "C(e1,e2)"])["macro_f1"] == 1


def test_the_score_of_tacred_is_over_all_relations_and_no_relation_is_no_answer():
    gold = ("per:age", "per:age", "per:title", "per:title", "no_relation", "no_relation", "no_relation")
    answers = ("per:age", "per:title", "no_relation", None, "per:age", "no_relation", None)
    # Answers that are a relation: 0, 1, 4, of which 0 is right; to be found: 0, 1, 2, 3.
    assert score("relation", gold, answers) == pytest.approx(
        {"f1": 2 / 7, "precision": 1 / 3, "recall": 1 / 4}
    )
    assert {*score("relation", ["per:age", "no_relation"], [None, None]).values()} == {0}


def test_the_score_of_types_is_over_the_types_of_all_instances_together():
    gold = [frozenset(one.split()) for one in ("person", "place location", "", "event time")]
    answers = [frozenset(one.split()) for one in ("person entity", "place", "object", "")]
    # Right: person, place; answered: 4; to be answered: 5.
    wanted = {"f1": 4 / 9, "precision": 2 / 4, "recall": 2 / 5}
    assert score("typing", gold, answers) == pytest.approx(wanted)
    assert score("typing", gold, [*answers[:3], None]) == pytest.approx(wanted)
    assert {*score("typing", [frozenset({"person"})], [None]).values()} == {0}


# -- numbers ----------------------------------------------------------------

columns = st.lists(
    st.tuples(*[st.floats(-1e3, 1e3).map(lambda one: round(one, 3)) | st.integers(0, 3).map(float)] * 2),
    min_size=1,
    max_size=30,
)


def defined_pearson(x, y):
    """The slow twin: covariance over both deviations."""
    a, b = sum(x) / len(x), sum(y) / len(y)
    spread = math.sqrt(sum((one - a) ** 2 for one in x) * sum((one - b) ** 2 for one in y))
    return sum((one - a) * (other - b) for one, other in zip(x, y, strict=True)) / spread


def defined_rank(x):
    return [sum(other < one for other in x) + (sum(other == one for other in x) + 1) / 2 for one in x]


@given(columns)
def test_correlations_are_what_their_definitions_say(rows):
    x, y = zip(*rows, strict=True)
    found = score("regression", x, y)
    assert found["mean_correlation"] == (found["pearson"] + found["spearman"]) / 2
    if len({*x}) == 1 or len({*y}) == 1:
        assert {*found.values()} == {0}
        return
    assert found["pearson"] == pytest.approx(defined_pearson(x, y), abs=1e-9)
    assert ranks(np.array(x)).tolist() == defined_rank(x)
    assert found["spearman"] == pytest.approx(defined_pearson(defined_rank(x), defined_rank(y)), abs=1e-9)


def test_correlations_are_those_of_scipy():
    stats, random = pytest.importorskip("scipy.stats"), np.random.default_rng(0)
    for size in range(5, 60):
        x, y = (random.integers(0, size, size) / 4).tolist(), random.normal(size=size).tolist()
        found = score("regression", x, y)
        expected = stats.pearsonr(x, y).statistic, stats.spearmanr(x, y).statistic
        assert (found["pearson"], found["spearman"]) == pytest.approx(expected, abs=1e-9)


def test_large_and_small_numbers_have_the_correlation_of_others():
    found = score("regression", [1e300, 2e300, 3e300], [1e-300, 2e-300, 4e-300])
    assert found == pytest.approx(score("regression", [1.0, 2.0, 3.0], [1.0, 2.0, 4.0]))


def test_what_is_no_number_has_no_correlation():
    with pytest.raises(UsageError, match="nan"):
        score("regression", [1.0, 2.0], [1.0, math.nan])


# -- what is refused


def test_predictions_are_checked_as_for_a_score():
    task = find_task("tagging")
    examples = [Example("1", ("a",), gold=("O",))]
    with pytest.raises(UsageError, match="example 1"):
        task.score_columns(examples, [[Prediction("1", ("O",))], []])
