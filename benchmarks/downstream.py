"""Does knowledge help on a task: WiC in ten folds, SemEval-2010 task 8, with KnowBert and its control.

    python -m benchmarks.downstream wic --home HOME --out OUT_DIR --from plain --from knowing [--seed 0 …]

The models that are named were trained as language models, equally long (`benchmarks.language`); each is
fine-tuned with every seed, in the same way; other options go to `kgkit train knowbert`. Predictions lie in
OUT_DIR, and are read from there another time. Pairs of WiC that have a sentence in common
are in one fold, as its own parts have none in common.
"""

import argparse
import hashlib
import json
from pathlib import Path
from typing import Final

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from benchmarks.answers import predictions_of
from benchmarks.harness import REPOSITORY
from benchmarks.report import Table
from benchmarks.significance import NOTES as ABOUT_P
from benchmarks.significance import OVER_SEEDS, chance, correct_counts, seeds_cell, spread
from kgkit.evaluation.examples import Example, Prediction
from kgkit.evaluation.tasks import find_task
from kgkit.home import Home
from kgkit.models.folder import find_trained
from kgkit.models.manifest import MANIFEST

DATA: Final = REPOSITORY.parent / "shared" / "data"
WIC: Final = ("train_part1.jsonl.xz", "train_part2.jsonl")
FOLDS: Final = 10

NOTES: Final = """
Mean and deviation over the seeds, of the official score: accuracy for WiC, over all ten folds together; macro
F1 for SemEval-2010 task 8, whose p is that of right answers. Pairs of WiC that have a sentence in common, or
are linked by pairs that do, change sides together.
"""


def wic_folds(out: Path) -> list[tuple[Path, Path]]:
    """Write the folds of WiC; return the training and the test file of each."""
    folder = DATA / "wic"
    examples = [example for name in WIC for example in find_task("wic").read(folder / name)]
    components = [*nx.connected_components(nx.Graph([example.texts for example in examples]))]  # sentences
    order = np.random.default_rng(0).permutation(len(components)).tolist()
    fold_of = {text: index % FOLDS for index, part in enumerate(order) for text in components[part]}
    folds = []
    for number in range(FOLDS):
        paths = out / f"fold-{number}.train.jsonl", out / f"fold-{number}.test.jsonl"
        for path, is_test in zip(paths, (False, True), strict=True):
            own = [example for example in examples if (fold_of[example.texts[0]] == number) == is_test]
            path.write_text("".join(f"{_line(example)}\n" for example in own), encoding="utf-8")
        folds.append(paths)
    return folds


def joined(examples: list[Example]) -> NDArray[np.int64]:
    """Return (N,): the number of the component of each example, of those that have texts in common."""
    components = nx.connected_components(nx.Graph([example.texts for example in examples]))
    number_of = {text: number for number, texts in enumerate(components) for text in texts}
    return np.array([number_of[example.texts[0]] for example in examples], np.int64)


def summed(counts: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (S, G, 3) sums of counts (S, N, 3) by the group (N,) of each example."""
    sums = np.zeros((len(counts), groups.max() + 1, counts.shape[2]), np.int64)
    np.add.at(sums.swapaxes(0, 1), groups, counts.swapaxes(0, 1))
    return sums


def _line(example: Example) -> str:
    text = "Word: x. Sentence 1: {} Sentence 2: {}".format(*example.texts)
    return json.dumps({"text": text, "label": int(example.gold == "T")})


class KnowBertTrainings:
    """Fine-tunes models for a task, and predicts the labels of test files.

    Args:
        home: home of the models.
        out: folder of the predictions.
        task: task.
        options: further options of `kgkit train knowbert`.
    """

    def __init__(self, home: Path, out: Path, task: str, options: list[str]) -> None:
        self.home, self.out, self.task, self.options = home, out, task, options

    def predictions(self, start: str, seed: int, fold: int, files: tuple[Path, Path]) -> dict[str, str]:
        """Return the predictions on the second file by id, of a model that begins as *start*."""
        manifest = (find_trained(Home(self.home), start) / MANIFEST).read_bytes()
        key = hashlib.blake2b(manifest + repr(self.options).encode(), digest_size=4).hexdigest()
        path = self.out / f"{self.task}-{start}-{seed}-{fold}-{key}.txt"
        training = ["knowbert", "--task", self.task, "--from", start, "--seed", str(seed), *self.options]
        train, test = files
        return predictions_of(path, self.home, [*training, "--data", str(train)], test)


def main() -> None:
    """Fine-tune, and write the table to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.downstream")
    parser.add_argument("task", choices=["wic", "relation"])
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="OUT_DIR")
    parser.add_argument("--from", dest="start", action="append", required=True)
    parser.add_argument("--seed", type=int, action="append")
    chosen, options = parser.parse_known_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.task == "wic":
        sets = wic_folds(chosen.out)
    else:
        folder = DATA / "semeval2010_task8"
        sets = [(folder / "TRAIN_FILE.TXT.xz", folder / "TEST_FILE_FULL.TXT.xz")]
    task = find_task(chosen.task)
    tests = [task.read(test) for _, test in sets]
    examples = [
        example._replace(id=f"{fold}.{example.id}") for fold, test in enumerate(tests) for example in test
    ]
    groups = joined(examples) if chosen.task == "wic" else np.arange(len(examples))
    trainings = KnowBertTrainings(chosen.home, chosen.out, chosen.task, options)
    rows, counts = [], dict[str, NDArray[np.int64]]()
    scores_of = dict[str, NDArray[np.float64]]()
    for start in chosen.start:
        scores, correct = [], []
        for seed in chosen.seed or [0, 1, 2]:
            labels = {
                f"{fold}.{id}": label
                for fold, files in enumerate(sets)
                for id, label in trainings.predictions(start, seed, fold, files).items()
            }
            predictions = [Prediction(id, label) for id, label in labels.items()]
            scores.append(100 * next(iter(task.score(examples, predictions).values())))
            correct.append([labels[example.id] == example.gold for example in examples])
        counts[start] = summed(correct_counts(np.array(correct)), groups)
        p = "" if start == chosen.start[0] else f"{chance(counts[chosen.start[0]], counts[start]):.4f}"
        scores_of[start] = np.array(scores)
        over_seeds = seeds_cell(scores_of[chosen.start[0]], scores_of[start])
        each = ", ".join(f"{score:.2f}" for score in scores)
        rows.append([start, spread(scores_of[start]), each, p, over_seeds])
    columns, title = ("begun as", "score", "seeds", "p", OVER_SEEDS), f"Fine-tuned: {chosen.task}"
    print(Table(title=title, notes=NOTES + ABOUT_P, columns=columns, rows=rows).markdown())


if __name__ == "__main__":
    main()
