"""A method and its control, fine-tuned for a task with several seeds: a table of scores with paired tests."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.downstream import fine_tuned
from benchmarks.report import Table
from benchmarks.significance import NOTES as ABOUT_P
from benchmarks.significance import chance_of_score, matthews, pearson, spread
from kgkit.evaluation.examples import Prediction
from kgkit.evaluation.tasks import Task, find_task

FURTHER = 3  # scores beside the first


class TaskFiles(NamedTuple):
    """A task of kgkit, the files to learn from, and the file that is asked."""

    task: str
    data: tuple[Path, ...]
    asked: Path


class Trainings:
    """Trains rows, and keeps their answers.

    Args:
        home: where models lie.
        out: where answers are kept.
        method: what is trained, as `kgkit train` names it.
        files: what is learnt, and asked.
        words: further options of `kgkit train`, for all rows.
    """

    def __init__(self, home: Path, out: Path, method: str, files: TaskFiles, words: Sequence[str]) -> None:
        self.home, self.out, self.method, self.files, self.words = home, out, method, files, list(words)

    def answers(self, row: Sequence[str], seed: int) -> dict[str, str]:
        """Return the answers of a model by id; it is trained first, unless that has been done."""
        task, data, asked = self.files
        identity = self.method, task, [*map(str, data)], str(asked), [*row], self.words
        key = hashlib.blake2b(repr(identity).encode(), digest_size=6).hexdigest()
        path = self.out / f"{self.method}-{task}-{key}-{seed}.txt"
        if not path.exists():
            files = [word for file in data for word in ("--data", str(file))]
            training = [self.method, "--task", task, *row, *self.words, "--seed", str(seed), *files]
            fine_tuned(self.home, path.stem, training, task, asked, path)
        lines = path.read_text(encoding="utf-8").splitlines()
        return {name: label for name, _, label in (line.partition("\t") for line in lines)}


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
    examples = task.read(trainings.files.asked)
    labels = sorted({str(example.gold) for example in examples})
    gold = np.array([_number(str(example.gold), labels, task) for example in examples])
    score = pearson if task.answer == "number" else matthews if task.name == "acceptability" else accuracy
    results, table, columns = dict[str, NDArray[np.float64]](), list[list[str]](), tuple[str, ...]()
    for name, words in rows.items():
        answers_by_seed = [trainings.answers(words, seed) for seed in seeds]
        results[name] = np.array(
            [[_number(own[example.id], labels, task) for example in examples] for own in answers_by_seed]
        )
        whole = [task.score(examples, _predictions(own, task)) for own in answers_by_seed]
        first_score = "pearson" if task.answer == "number" else next(iter(whole[0]))
        further = [key for key in whole[0] if key != first_score][:FURTHER]
        scores = 100 * np.array([each[first_score] for each in whole])
        first = next(iter(results))
        p = "" if name == first else f"{chance_of_score(gold, results[first], results[name], score):.4f}"
        beside = [f"{np.mean([100 * each[key] for each in whole]):.2f}" for key in further]
        table.append([name, spread(scores), p, ", ".join(f"{each:.2f}" for each in scores), *beside])
        columns = ("model", first_score, "p", "seeds", *further)
    return Table(title=title, notes=notes + ABOUT_P, columns=columns, rows=table)


def accuracy(gold: NDArray[np.float64], answers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of right answers, (…) for answers (…, N)."""
    right: NDArray[np.float64] = (answers == gold).mean(-1)
    return right


def _predictions(answers: Mapping[str, str], task: Task) -> list[Prediction]:
    is_number = task.answer == "number"
    return [Prediction(name, float(label) if is_number else label) for name, label in answers.items()]


def _number(answer: str, labels: Sequence[str], task: Task) -> float:
    if task.answer == "number":
        return float(answer)
    return float(labels.index(answer) if answer in labels else -1)
