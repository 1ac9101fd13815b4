"""Does knowledge help on a task: WiC in ten folds, SemEval-2010 task 8, with KnowBert and its control.

    python -m benchmarks.downstream wic --home HOME --out OUT_DIR --from plain --from knowing [--seed 0 …]

The models that are named were trained as language models, equally long (`benchmarks.language`); each is
fine-tuned with every seed, in the same way; other options go to `kgkit train knowbert`. Answers lie in
OUT_DIR: what is there already is not done again. Pairs of WiC that have a sentence in common
are in one fold, as its own parts have none in common.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import REPOSITORY
from benchmarks.report import Table
from benchmarks.significance import NOTES as ABOUT_P
from benchmarks.significance import chance, counted, spread
from kgkit.evaluation.examples import Example, Prediction
from kgkit.evaluation.tasks import find_task
from kgkit.home import Home
from kgkit.models.folder import find_trained
from kgkit.models.manifest import MANIFEST
from kgkit.models.publishing import remove_model

DATA: Final = REPOSITORY.parent / "shared" / "data"
WIC: Final = ("train_part1.jsonl.xz", "train_part2.jsonl")
FOLDS: Final = 10

NOTES: Final = """
Mean and deviation over the seeds, of the official score: accuracy for WiC, over all ten folds together; macro
F1 for SemEval-2010 task 8, whose p is that of right answers.
"""


def wic_folds(out: Path) -> list[tuple[Path, Path]]:
    """Write the folds of WiC, and return for each what is learnt from, and what is asked."""
    folder = DATA / "wic"
    every = [one for name in WIC for one in find_task("wic").read(folder / name)]
    together = [*nx.connected_components(nx.Graph([one.texts for one in every]))]  # sentences
    order = np.random.default_rng(0).permutation(len(together)).tolist()
    fold_of = {text: place % FOLDS for place, part in enumerate(order) for text in together[part]}
    folds = []
    for number in range(FOLDS):
        chosen = {place for place, one in enumerate(every) if fold_of[one.texts[0]] == number}
        paths = out / f"fold-{number}.train.jsonl", out / f"fold-{number}.test.jsonl"
        for path, wanted in zip(paths, (False, True), strict=True):
            some = [one for place, one in enumerate(every) if (place in chosen) == wanted]
            path.write_text("".join(f"{_line(one)}\n" for one in some), encoding="utf-8")
        folds.append(paths)
    return folds


def _line(one: Example) -> str:
    text = "Word: x. Sentence 1: {} Sentence 2: {}".format(*one.texts)
    return json.dumps({"text": text, "label": int(one.gold == "T")})


class Tuning:
    """Fine-tunes models, and asks them.

    Args:
        home: where they lie.
        out: where answers are kept.
        task: what they are fine-tuned for.
        words: further options of `kgkit train knowbert`.
    """

    def __init__(self, home: Path, out: Path, task: str, words: list[str]) -> None:
        self.home, self.out, self.task, self.words = home, out, task, words

    def answers(self, start: str, seed: int, fold: int, files: tuple[Path, Path]) -> dict[str, str]:
        """Return the answers of a model by id; it is fine-tuned first, unless that has been done."""
        made = (find_trained(Home(self.home), start) / MANIFEST).read_bytes()
        key = hashlib.blake2b(made + repr(self.words).encode(), digest_size=4).hexdigest()
        path = self.out / f"{self.task}-{start}-{seed}-{fold}-{key}.txt"
        if not path.exists():
            name = f"downstream-{self.task}-{start}-{seed}-{fold}-{key}"
            training = ["knowbert", "--task", self.task, "--from", start, "--seed", str(seed), *self.words]
            fine_tuned(self.home, name, [*training, "--data", str(files[0])], self.task, files[1], path)
        lines = path.read_text(encoding="utf-8").splitlines()
        return {name: label for name, _, label in (line.partition("\t") for line in lines)}


def fine_tuned(home: Path, name: str, training: list[str], task: str, asked: Path, answers: Path) -> None:
    """Train a model, write its answers, and remove it.

    Args:
        home: where it is trained.
        name: of the model.
        training: what follows `kgkit train`.
        task: that `kgkit evaluate` has.
        asked: the file of questions.
        answers: the file for them; it appears when they are complete.
    """
    kgkit = [sys.executable, "-P", "-c", "from kgkit.commands import main; main()"]
    for words in (
        ["train", *training, "--name", name],
        ["evaluate", task, "--model", name, "--data", str(asked), "--predictions", str(answers)],
    ):
        command = [*kgkit, *words, "--home", str(home), "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    remove_model(Home(home), name)
    print(answers.name, file=sys.stderr, flush=True)


def main() -> None:
    """Fine-tune, and write the table to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.downstream")
    parser.add_argument("task", choices=["wic", "relation"])
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="OUT_DIR")
    parser.add_argument("--from", dest="start", action="append", required=True)
    parser.add_argument("--seed", type=int, action="append")
    chosen, words = parser.parse_known_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.task == "wic":
        sets = wic_folds(chosen.out)
    else:
        folder = DATA / "semeval2010_task8"
        sets = [(folder / "TRAIN_FILE.TXT.xz", folder / "TEST_FILE_FULL.TXT.xz")]
    task = find_task(chosen.task)
    golds = [task.read(asked) for _, asked in sets]
    every = [one._replace(id=f"{fold}.{one.id}") for fold, gold in enumerate(golds) for one in gold]
    tuning, seeds = Tuning(chosen.home, chosen.out, chosen.task, words), chosen.seed or [0, 1, 2]
    rows, right = [], dict[str, NDArray[np.int64]]()
    for start in chosen.start:
        scores, marks = [], []
        for seed in seeds:
            answers = {
                f"{fold}.{name}": label
                for fold, files in enumerate(sets)
                for name, label in tuning.answers(start, seed, fold, files).items()
            }
            predictions = [Prediction(name, label) for name, label in answers.items()]
            scores.append(100 * next(iter(task.score(every, predictions).values())))
            marks.append([answers[one.id] == one.gold for one in every])
        right[start] = counted(np.array(marks))
        p = "" if start == chosen.start[0] else f"{chance(right[chosen.start[0]], right[start]):.4f}"
        each = ", ".join(f"{one:.2f}" for one in scores)
        rows.append([start, spread(np.array(scores)), each, p])
    columns, title = ("begun as", "score", "seeds", "p"), f"Fine-tuned: {chosen.task}"
    print(Table(title=title, notes=NOTES + ABOUT_P, columns=columns, rows=rows).markdown())


if __name__ == "__main__":
    main()
