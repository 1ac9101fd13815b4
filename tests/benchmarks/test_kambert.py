"""The benchmark of KAM-BERT on small models, and paired tests of correlations."""

import itertools

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("scipy")

import torch
from scipy.stats import pearsonr
from transformers import BertConfig

from benchmarks import answers, fine_tuning, kambert
from benchmarks.significance import chance_of_score, matthews, pearson
from kgkit.evaluation.examples import Example
from kgkit.evaluation.tasks import find_task


def test_costs_are_measured_for_each_variant():
    config = BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    table = kambert.cost(config, 1, torch.device("cpu"), sizes=(12,), timed_sizes=(12,))
    assert [row[1] for row in table.rows] == [
        kambert.EAGER, kambert.SDPA, kambert.KERNEL, kambert.TERMS,
    ]  # fmt: skip
    own = {row[1]: int(row[3].replace(",", "")) for row in table.rows}
    assert own[kambert.EAGER] == own[kambert.SDPA] == 0
    assert own[kambert.KERNEL] == 2 * 2 * 6 * 9 + 1
    assert [target.aim for target in table.targets] == [1.25, 1.25]
    assert all(float(row[6]) > 0 for row in table.rows) and "| 12 | BERT, eager |" in table.markdown()


def test_only_sizes_that_are_asked_for_are_timed_and_all_are_counted(monkeypatch):
    config = BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    steps, measured = [], kambert.step

    def step(head, inputs):
        steps.append(inputs.ids.shape[1])
        measured(head, inputs)

    monkeypatch.setattr(kambert, "step", step)
    table = kambert.cost(config, 2, torch.device("cpu"), sizes=(6, 8), timed_sizes=(8,))
    assert steps == [8] * 4 * 3 and len(table.rows) == 8 and len(table.targets) == 2
    assert all(row[5:] == ["", "", ""] and float(row[4]) >= 0 for row in table.rows[:4])
    assert all(float(row[5]) > 0 and float(row[6]) > 0 for row in table.rows[4:])


def test_multiply_adds_are_those_of_a_count_by_hand():
    config = BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    made, size = kambert.heads(config, torch.device("cpu")), 12
    inputs = kambert.batch(size, 0, 50)
    layer = 4 * size * 16 * 16 + 2 * size * 16 * 32 + 2 * size * size * 16
    assert kambert.multiply_adds(made[kambert.EAGER], inputs) == layer
    convolution = size * size * 2 * 6 * 9
    assert kambert.multiply_adds(made[kambert.KERNEL], inputs) == layer + convolution


def test_each_row_is_trained_with_each_seed_once(tmp_path, monkeypatch):
    asked = tmp_path / "dev.tsv"
    asked.write_text("".join(f"x\t{number % 2}\t\tthe dog {number}\n" for number in range(12)))
    trained = []

    def predict(path, home, training, test):
        trained.append(training)
        seed = int(training[training.index("--seed") + 1])
        examples = find_task(training[training.index("--task") + 1]).read(test)
        wrong = 4 if "--control" in training else 0
        labels = [example.gold if number >= wrong + seed else "0" for number, example in enumerate(examples)]
        lines = [f"{example.id}\t{label}\n" for example, label in zip(examples, labels, strict=True)]
        path.write_text("".join(lines))

    monkeypatch.setattr(answers, "train_and_predict", predict)
    glue = fine_tuning.TaskFiles("acceptability", (tmp_path / "train.tsv",), asked)
    rows = kambert.rows_of("names", "chunks", "table")
    trainings = fine_tuning.Trainings(tmp_path, tmp_path, "kambert", glue, ["--epochs", "1"])
    chosen = {name: rows[name] for name in ("plain", "KAM-BERT", "without PMI", "without any map")}
    table = fine_tuning.score_table(trainings, chosen, [0, 1], "KAM-BERT: cola", "")
    assert len(trained) == 8 and [row[0] for row in table.rows] == [*chosen]
    assert trained[0][:3] == ["kambert", "--task", "acceptability"] and "--control" in trained[0]
    assert "--pmi" in trained[2] and "--pmi" not in trained[4] and "--tagger" not in trained[6]
    assert table.columns[:3] == ("model", "matthews", "p") and table.rows[0][2] == ""
    assert table.rows[1][1].startswith("100.00") or float(table.rows[1][1].split()[0]) > 80
    assert all(0 < float(row[2]) <= 1 for row in table.rows[1:])
    fine_tuning.score_table(trainings, chosen, [0, 1], "again", "")
    assert len(trained) == 8


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("cost --round 1 --colour red", "unrecognized arguments: --colour red"),
        ("TASKS --row nothing", "invalid choice: 'nothing' (choose from"),
        ("TASKS --row plain --alpha 0.5", "argument --alpha: not allowed with argument --row"),
    ],
)
def test_options_that_are_misspelt_or_exclude_each_other_are_refused(words, sentence, capsys):
    tasks = "tasks cola --home h --out o --tagger t --chunker c --pmi p"
    with pytest.raises(SystemExit):
        kambert.parse(words.replace("TASKS", tasks).split())
    assert sentence in capsys.readouterr().err


def test_options_of_trainings_are_passed_on():
    tasks = "tasks cola --home h --out o --tagger t --chunker c --pmi p"
    chosen, words = kambert.parse([*tasks.split(), "--row", "KAM-BERT", "--row", "plain", "--epochs", "4"])
    assert chosen.row == ["KAM-BERT", "plain"] and words == ["--epochs", "4"]
    assert kambert.parse([*tasks.split(), "--alpha", "0.5"])[0].alpha == ["0.5"]


def test_correlations_are_those_of_scipy_and_of_the_task():
    drawn = np.random.default_rng(0)
    gold, answers = drawn.random(30), drawn.random((2, 30))
    assert pearson(gold, answers) == pytest.approx([pearsonr(gold, row).statistic for row in answers])
    assert pearson(gold, np.ones((1, 30))).tolist() == [0]
    labels, guesses = drawn.integers(0, 2, 30), drawn.integers(0, 2, 30)
    examples = [Example(str(n), ("x",), gold=str(label)) for n, label in enumerate(labels)]
    task = find_task("acceptability")
    from kgkit.evaluation.examples import Prediction

    predictions = [Prediction(str(n), str(guess)) for n, guess in enumerate(guesses)]
    score = task.score(examples, predictions)["matthews"]
    assert float(matthews(labels.astype(float), guesses.astype(float))) == pytest.approx(score)


def test_a_paired_test_agrees_with_all_ways_to_exchange_answers():
    gold = np.array([0.0, 1, 0, 1, 1, 0])
    first = np.array([[0.0, 0, 0, 1, 0, 1], [1.0, 1, 0, 0, 0, 0]])
    second = np.array([[0.0, 1, 0, 1, 1, 1], [0.0, 1, 0, 1, 0, 0]])
    observed = abs(matthews(gold, second).mean() - matthews(gold, first).mean())
    differences = []
    for swapped in itertools.product([False, True], repeat=6):
        former, latter = np.where(swapped, second, first), np.where(swapped, first, second)
        differences.append(abs(matthews(gold, latter).mean() - matthews(gold, former).mean()))
    exact = np.mean(np.array(differences) >= observed - 1e-12)
    assert chance_of_score(gold, first, second, matthews, 4_000) == pytest.approx(exact, abs=0.03)
    assert chance_of_score(gold, first, first, matthews, 100) == 1


def test_alphas_stand_beside_the_control_and_the_default_is_the_usual_row():
    every = kambert.rows_of("names", "chunks", "english")
    rows = kambert.alpha_rows(every, ["0", ".2", "0.40"])
    assert rows["plain"] == every["plain"] and rows["α = 0.2"] == every["KAM-BERT"]
    assert rows["α = 0"] == [*every["KAM-BERT"], "--alpha", "0"] and [*rows][-1] == "α = 0.4"


def test_scores_over_alpha_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [["plain", "26.0", "", "25.00, 27.00"], ["α = 0.4", "29", "0.1", "28.00, 30.00"]]
    table = kambert.Table(
        title="t", notes="", columns=("model", "matthews", "p", "seeds"),
        rows=[*rows, ["α = 0", "20", "", "20.00"]],
    )  # fmt: skip
    kambert.draw_alphas(table, tmp_path / "alpha.svg")
    assert "<svg" in (tmp_path / "alpha.svg").read_text()


def test_a_picture_without_alphas_is_refused(capsys):
    options = ["--tagger", "t", "--chunker", "c", "--pmi", "p", "--home", "h", "--out", "o", "--svg", "x.svg"]
    with pytest.raises(SystemExit):
        kambert.parse(["tasks", "cola", *options])
    assert "name some with --alpha" in capsys.readouterr().err
