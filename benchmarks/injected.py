"""Do facts help that are injected: K-BERT on Chinese tasks, beside its control (Liu et al. 2020).

    python -m benchmarks.chinese TEXT_DIR
    python -m benchmarks.injected --home HOME --out OUT_DIR --encoder small [--task msra_ner …] [--seed 0 …]

HOME holds builds of `hownet` and `medical`, and the encoder that docs/kbert.md makes of TEXT_DIR/train.txt.
It is fine-tuned with every seed, with each knowledge base and without, on the same texts, with as many steps;
other options go to `kgkit train kbert`. Predictions lie in OUT_DIR, and are read from there another time.
`--only VARIANT` measures these variants alone; `--texts N` trains on the first N texts of a training part.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.answers import predictions_of
from benchmarks.chinese import READ_AS, first_texts, part
from benchmarks.report import Table
from benchmarks.significance import NOTES as ABOUT_P
from benchmarks.significance import OVER_SEEDS, chance, correct_counts, f1_of, seeds_cell, spread
from kgkit.catalog.runs import sha256_of
from kgkit.encoder import Encoder
from kgkit.evaluation.examples import Example, gold_labels
from kgkit.evaluation.ner import chunks
from kgkit.evaluation.tasks import find_task
from kgkit.home import Home
from kgkit.inputs.texts import SIZE
from kgkit.inputs.trees import TreeReader
from kgkit.kb import open_kb
from kgkit.methods.encoders import encoder_at
from kgkit.methods.kbert_settings import KBERT
from kgkit.models.folder import find_trained, has_model
from kgkit.models.manifest import MANIFEST
from kgkit.trees import TreeBuilder, TreeConfig, generators_of
from kgkit.types import Document

VARIANTS: Final = {
    "control": ("--control",),
    "hownet": ("--kb", "hownet"),
    "medical": ("--kb", "medical"),
    "hownet, other facts": ("--kb", "hownet-other"),
}
_FACTS: Final = ("--max-facts", "--query", "--attributes")
"""Options that decide which facts there are."""
COLUMNS: Final = (
    "task", "texts", "facts of", "new", "seeds", "all", "facts", "difference", "p", OVER_SEEDS,
    "where facts are", "where none is",
)  # fmt: skip
OTHER_FACTS: Final = "hownet, other facts"
"""The variant whose knowledge base `benchmarks.other_facts` makes: measured where `--only` names it."""

NOTES: Final = """
Mean and deviation over the seeds, of accuracy, or of F1 of names with types (conlleval). LCQMC is learnt on
one half of its dev part and asked on the other; financial_ner and msra_ner are learnt on their dev parts.
The variant with other facts is measured where `--only` names it.

Many texts of the test parts come in the other parts of a task too, or twice: `new` is the score of the
others, each once, and what the differences of the means, and p, are of. `all` is of the whole test part, as
it is usually given. Texts: of how many, and how many of them are new. Facts: how many are injected into a
test text, and into how many of the texts none is. Difference and p compare with the control; those of
other facts with the same knowledge base. The last two columns: the difference on the new texts that
get facts, and on those that get none, and of how many texts.
"""


def variants_of(task: str) -> list[str]:
    """Return what is compared on a task, the control first."""
    fitting = ["hownet", "medical"] if task == "medical_ner" else ["hownet"]
    return ["control", *fitting]


class KBertTrainings:
    """Fine-tunes an encoder as a K-BERT, and predicts the labels of test parts.

    Args:
        home: home of encoder and knowledge bases.
        out: folder of the predictions.
        encoder: a model of `kgkit train encoder`, or what else `--encoder` takes.
        options: further options of `kgkit train kbert`.
        size: word pieces of a tree.
        texts: number of texts of a training part that are trained on, the first; None: all.
    """

    def __init__(
        self,
        home: Path,
        out: Path,
        encoder: str,
        options: list[str],
        size: int = SIZE,
        texts: int | None = None,
    ) -> None:
        self.home, self.out, self.size, self.texts = home, out, size, texts
        self.options = ["--encoder", encoder, *options, *(() if size == SIZE else ("--size", str(size)))]
        self.encoder = Encoder.load(encoder_at(Home(home), encoder, KBERT), device="cpu")
        linkers = [name for name in options if has_model(Home(home), name)]
        manifests = [find_trained(Home(home), name) / MANIFEST for name in linkers]
        self._fingerprints = [self.encoder.fingerprint, *map(sha256_of, manifests)]

    def predictions(self, task: str, variant: str, seed: int) -> dict[str, str]:
        """Return the predictions on the test part of a task, by id."""
        train, dev, test = (part(task, name) for name in ("train", "dev", "test"))
        if train is None:
            train, dev = dev, None
        assert train is not None and test is not None
        variant_options = [*VARIANTS[variant]]
        limit = () if self.texts is None else (self.texts,)
        identity = self.options, variant_options, self._build(variant_options), self._fingerprints, *limit
        key = hashlib.blake2b(repr(identity).encode(), digest_size=4).hexdigest()
        name = f"{task}-{variant.replace(', ', '-').replace(' ', '-')}-{seed}-{key}"
        if self.texts is not None:
            train = first_texts(train, self.texts, self.out)
        training = ["kbert", "--task", READ_AS[task], *variant_options, "--data", str(train)]
        training += [] if dev is None else ["--dev", str(dev)]
        training += ["--seed", str(seed), *self.options]
        return predictions_of(self.out / f"{name}.txt", self.home, training, test)

    def facts(self, task: str, variant: str, examples: Sequence[Example]) -> NDArray[np.int64] | None:
        """Return (N,) numbers of injected facts; None of a control, or where options decide."""
        if variant == "control" or any(option.startswith(_FACTS) for option in self.options):
            return None
        config = TreeConfig(relations=READ_AS[task] != "tagging")
        with open_kb(VARIANTS[variant][1], self.home) as kb:
            reader = TreeReader(
                self.encoder, TreeBuilder(generators_of([kb], "longest"), config), size=self.size
            )
            trees = (
                reader.read([Document("", text) for text in example.texts], example.tokens)
                for example in examples
            )
            return np.array([tree.branches.max() for tree in trees])

    def _build(self, options: list[str]) -> str:
        if "--kb" not in options:
            return ""
        with open_kb(options[options.index("--kb") + 1], self.home) as kb:
            return kb.build


def counts(examples: list[Example], predictions: dict[str, str]) -> NDArray[np.int64]:
    """Return (N, 3): numbers of true positives, of predicted and of gold labels, of each example."""
    if not examples[0].tokens:
        correct = np.array([[predictions[example.id] == example.gold for example in examples]])
        accuracy_counts: NDArray[np.int64] = correct_counts(correct)[0]
        return accuracy_counts
    rows = []
    for example in examples:
        predicted, gold = {*chunks(predictions[example.id].split())}, {*chunks(gold_labels(example))}
        rows.append([len(predicted & gold), len(predicted), len(gold)])
    return np.array(rows)


def new_examples(examples: list[Example], training: Iterable[Example]) -> NDArray[np.bool_]:
    """Return (N,): whether no text of an example is in the training examples, or in an example before it."""
    texts, is_new = {text for example in training for text in example.texts}, []
    for example in examples:
        is_new.append(texts.isdisjoint(example.texts))
        texts.update(example.texts)
    return np.array(is_new)


class PartOfTest(NamedTuple):
    """The test part of a task.

    Attributes:
        examples: N examples.
        is_new: (N,) whether none of its texts is in the other parts, or in an example before it.
        learnt: number of examples of the training part, or of the dev part where there is none.
    """

    examples: list[Example]
    is_new: NDArray[np.bool_]
    learnt: int


def part_of_test(task: str) -> PartOfTest:
    """Return the test part of a task."""
    parts = {name: part(task, name) for name in ("train", "dev", "test")}
    read = {name: find_task(READ_AS[task]).read(path) for name, path in parts.items() if path is not None}
    examples = read.pop("test")
    is_new = new_examples(examples, chain.from_iterable(read.values()))
    return PartOfTest(examples, is_new, len(read.get("train", read["dev"])))


def rows_of(
    task: str, trainings: KBertTrainings, variants: Sequence[str], seeds: Sequence[int]
) -> Iterator[list[str]]:
    """Yield a row for each variant on a task."""
    examples, is_new, _ = part_of_test(task)
    new_by_variant = dict[str, NDArray[np.int64]]()
    for variant in variants:
        every = np.stack([counts(examples, trainings.predictions(task, variant, seed)) for seed in seeds])
        new = new_by_variant[variant] = every[:, is_new]
        scores, scores_of_all = (100 * f1_of(own.sum(1)) for own in (new, every))  # (S,)
        row = [task, f"{len(is_new):,}, {is_new.sum():,}", variant, spread(scores)]
        facts = trainings.facts(task, variant, examples)
        facts_cell = "" if variant == "control" else "?"
        if facts is not None:
            facts_cell = f"{facts.mean():.1f}, none {100 * (facts == 0).mean():.0f} %"
        row += [", ".join(f"{score:.2f}" for score in scores), spread(scores_of_all), facts_cell]
        kb, _, other = variant.partition(", ")
        baseline = new_by_variant.get(kb if other else "control")
        if baseline is not None and variant != "control":
            over_seeds = seeds_cell(100 * f1_of(baseline.sum(1)), scores)
            row += [_difference(baseline, new), f"{chance(baseline, new):.4f}", over_seeds]
            if facts is not None:
                for subset in (facts[is_new] > 0, facts[is_new] == 0):
                    difference = _difference(baseline[:, subset], new[:, subset])
                    row.append(f"{difference} of {subset.sum():,}" if subset.any() else "")
        yield (row + 5 * [""])[: len(COLUMNS)]


def _difference(baseline: NDArray[np.int64], counts: NDArray[np.int64]) -> str:
    """Return the points of F1 that *counts* (S, N, 3) are above the baseline, with a sign."""
    before, after = (100 * f1_of(own.sum(1)).mean() for own in (baseline, counts))
    return f"{after - before:+.2f}"


def main() -> None:
    """Fine-tune, and write the table to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.injected")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="OUT_DIR")
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--task", choices=READ_AS, action="append")
    parser.add_argument("--only", choices=VARIANTS, action="append")
    parser.add_argument("--seed", type=int, action="append")
    parser.add_argument("--size", type=int, default=SIZE, help="word pieces of a tree")
    parser.add_argument("--texts", type=int, metavar="N", help="texts of a training part; by default all")
    chosen, options = parser.parse_known_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    trainings = KBertTrainings(chosen.home, chosen.out, chosen.encoder, options, chosen.size, chosen.texts)
    rows = []
    for task in chosen.task or READ_AS:
        variants = [name for name in VARIANTS if name in (chosen.only or variants_of(task))]
        for row in rows_of(task, trainings, variants, chosen.seed or [0, 1, 2]):
            rows.append(row)
            print(row, file=sys.stderr, flush=True)
    title = "K-BERT on Chinese tasks"
    print(Table(title=title, notes=NOTES + ABOUT_P, columns=COLUMNS, rows=rows).markdown())


if __name__ == "__main__":
    main()
