"""A method and its control, fine-tuned for a task with several seeds: a table of scores with paired tests."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.answers import predictions_of, read_by
from benchmarks.harness import REPOSITORY
from benchmarks.report import Table
from benchmarks.significance import NOTES as ABOUT_P
from benchmarks.significance import OVER_SEEDS, chance_of_score, matthews, pearson, seeds_cell, spread
from kgkit.catalog.runs import sha256_of
from kgkit.evaluation.examples import Prediction
from kgkit.evaluation.tasks import Task, find_task
from kgkit.home import Home

GLUE: Final = REPOSITORY.parent / "shared" / "data" / "glue"
FURTHER: Final = 3  # scores beside the first

GLUE_NOTES: Final = """
Mean and deviation over the seeds; epochs are chosen on the held-out tenth of the training part, and GLUE's
dev part is predicted once. CoLA: Matthews' correlation; RTE: accuracy; STS-B: Pearson's correlation, with
Spearman's beside it.
"""


class TaskFiles(NamedTuple):
    """A task of kgkit, its training files, and its test file."""

    task: str
    data: tuple[Path, ...]
    test: Path


GLUE_TASKS: Final = {
    "cola": TaskFiles(
        "acceptability", (GLUE / "CoLA/train.tsv.xz", GLUE / "CoLA/val.tsv"), GLUE / "CoLA/dev.tsv"
    ),
    "rte": TaskFiles("pair", (GLUE / "RTE/train.tsv.xz",), GLUE / "RTE/dev.tsv"),
    "sts": TaskFiles("regression", (GLUE / "STS-B/sts-train.csv.xz",), GLUE / "STS-B/sts-dev.csv"),
}


class Trainings:
    """Trains the rows of a table, and predicts the labels of the test file.

    Args:
        home: home of the models.
        out: folder of the predictions.
        method: what is trained, as `kgkit train` names it.
        files: task and files.
        options: further options of `kgkit train`, for all rows.
    """

    def __init__(self, home: Path, out: Path, method: str, files: TaskFiles, options: Sequence[str]) -> None:
        self.home, self.out, self.method, self.files, self.options = home, out, method, files, list(options)

    def predictions(self, row: Sequence[str], seed: int) -> dict[str, str]:
        """Return the predictions of the model of a row by id."""
        task, data, test = self.files
        files = [sha256_of(path) if path.exists() else str(path) for path in (*data, test)]
        options = [*row, *self.options]
        identity = self.method, task, files, options, read_by(Home(self.home), options)
        key = hashlib.blake2b(repr(identity).encode(), digest_size=6).hexdigest()
        path = self.out / f"{self.method}-{task}-{key}-{seed}.txt"
        words = [word for file in data for word in ("--data", str(file))]
        training = [self.method, "--task", task, *options, "--seed", str(seed), *words]
        return predictions_of(path, self.home, training, test)


def score_table(
    trainings: Trainings, rows: Mapping[str, Sequence[str]], seeds: Sequence[int], title: str, notes: str
) -> Table:
    """Return the table of scores of rows, each trained with each seed.

    `p` is that of a difference to the first row: of Matthews' correlation for acceptability, of Pearson's for
    numbers, of right answers for all else, whose first column may be another score.

    Args:
        trainings: what trains them.
        rows: options of each row.
        seeds: seeds.
        title: title of the table.
        notes: notes on it, which those on p follow.
    """
    task = find_task(trainings.files.task)
    examples = task.read(trainings.files.test)
    labels = sorted({str(example.gold) for example in examples})
    gold = np.array([_number(str(example.gold), labels, task) for example in examples])
    score = pearson if task.answer == "number" else matthews if task.name == "acceptability" else accuracy
    scores_by_row = dict[str, NDArray[np.float64]]()
    results, table, columns = dict[str, NDArray[np.float64]](), list[list[str]](), tuple[str, ...]()
    for name, options in rows.items():
        labels_by_seed = [trainings.predictions(options, seed) for seed in seeds]
        results[name] = np.array(
            [[_number(own[example.id], labels, task) for example in examples] for own in labels_by_seed]
        )
        scores_by_seed = [task.score(examples, _predictions(own, task)) for own in labels_by_seed]
        first_score = "pearson" if task.answer == "number" else next(iter(scores_by_seed[0]))
        further = [key for key in scores_by_seed[0] if key != first_score][:FURTHER]
        scores = 100 * np.array([each[first_score] for each in scores_by_seed])
        first = next(iter(results))
        p = "" if name == first else f"{chance_of_score(gold, results[first], results[name], score):.4f}"
        further_cells = [f"{np.mean([100 * each[key] for each in scores_by_seed]):.2f}" for key in further]
        scores_by_row[name] = scores
        over_seeds = "" if name == first else seeds_cell(scores_by_row[first], scores)
        table.append(
            [name, spread(scores), p, over_seeds, ", ".join(f"{each:.2f}" for each in scores), *further_cells]
        )
        columns = ("model", first_score, "p", OVER_SEEDS, "seeds", *further)
    return Table(title=title, notes=notes + ABOUT_P, columns=columns, rows=table)


def accuracy(gold: NDArray[np.float64], predictions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of correct predictions, (…) for predictions (…, N)."""
    share: NDArray[np.float64] = (predictions == gold).mean(-1)
    return share


def _predictions(labels: Mapping[str, str], task: Task) -> list[Prediction]:
    is_number = task.answer == "number"
    return [Prediction(name, float(label) if is_number else label) for name, label in labels.items()]


def _number(label: str, labels: Sequence[str], task: Task) -> float:
    if task.answer == "number":
        return float(label)
    return float(labels.index(label) if label in labels else -1)
