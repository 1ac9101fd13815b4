"""Do facts help that are injected: K-BERT on Chinese tasks, beside its control (Liu et al. 2020).

    python -m benchmarks.chinese TEXT_DIR
    python -m benchmarks.injected --home HOME --out OUT_DIR --encoder small [--task msra_ner …] [--seed 0 …]

HOME holds builds of `hownet` and `medical`, and the encoder that docs/kbert.md makes of TEXT_DIR/train.txt.
It is fine-tuned with every seed, with each knowledge base and without, on the same texts, with as many steps;
other options go to `kgkit train kbert`. Answers lie in OUT_DIR: what is there already is not done again.
`--only VARIANT` measures these alone; `--texts N` trains on the first N texts of a training part.
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

from benchmarks.chinese import READ_AS, first_texts, part
from benchmarks.downstream import fine_tuned
from benchmarks.report import Table
from benchmarks.significance import NOTES as ABOUT_P
from benchmarks.significance import chance, counted, f1_of, spread
from kgkit.catalog.runs import sha256_of
from kgkit.encoder import Encoder
from kgkit.evaluation.examples import Example
from kgkit.evaluation.labels import gold_labels
from kgkit.evaluation.ner import chunks
from kgkit.evaluation.tasks import find_task
from kgkit.home import Home
from kgkit.inputs.texts import SIZE
from kgkit.inputs.trees import TreeReader
from kgkit.kb import open_kb
from kgkit.methods.encoders import encoder_at
from kgkit.models.folder import find_trained, has_model
from kgkit.models.manifest import MANIFEST
from kgkit.trees import TreeBuilder, TreeConfig, generators_of
from kgkit.types import Document

VARIANTS: Final = {
    "control": ("--control",),
    "hownet": ("--kb", "hownet"),
    "medical": ("--kb", "medical"),
    "hownet, hard positions": ("--kb", "hownet", "--no-soft-position"),
    "hownet, all visible": ("--kb", "hownet", "--no-visible-matrix"),
    "hownet, other facts": ("--kb", "hownet-other"),
    "medical, hard positions": ("--kb", "medical", "--no-soft-position"),
    "medical, all visible": ("--kb", "medical", "--no-visible-matrix"),
}
_FACTS: Final = ("--max-facts", "--query", "--attributes", "--relations", "--no-relations")
"""Options that decide which facts there are."""
COLUMNS: Final = (
    "task", "texts", "facts of", "new", "seeds", "all", "facts", "difference", "p", "where facts are",
    "where none is",
)  # fmt: skip
OTHER_FACTS: Final = "hownet, other facts"
"""The variant whose knowledge base `benchmarks.other_facts` makes: measured where `--only` names it."""

ABLATED: Final = {"chnsenticorp": "hownet", "medical_ner": "medical"}

NOTES: Final = """
Mean and deviation over the seeds, of accuracy, or of F1 of names with types (conlleval). LCQMC is learnt on
one half of its dev part and asked on the other; financial_ner and msra_ner are learnt on their dev parts.
Ablations: injected tokens are counted like all others; all tokens see each other.

Many texts of the test parts come in the other parts of a task too, or twice: `new` is the score of the
others, each once, and what the differences of the means, and p, are of. `all` is of the whole test part, as
it is usually given. Texts: of how many, and how many of them are new. Facts: how many are injected into a
test text, and into how many of the texts none is. Difference and p compare with the control; those of an
ablation with the same knowledge base without it. The last two columns: the difference on the new texts that
get facts, and on those that get none, and of how many texts.
"""


def variants_of(task: str) -> list[str]:
    """Return what is compared on a task, the control first."""
    fitting = ["hownet", "medical"] if task == "medical_ner" else ["hownet"]
    ablated = ABLATED.get(task)
    every = [name for name in VARIANTS if ablated and name.startswith(f"{ablated},")]
    return ["control", *fitting, *(name for name in every if name != OTHER_FACTS)]


class Tuning:
    """Fine-tunes an encoder, and asks what came of it.

    Args:
        home: where encoder and knowledge bases lie.
        out: where answers are kept.
        encoder: a model of `kgkit train encoder`, or what else `--encoder` takes.
        words: further options of `kgkit train kbert`.
        size: word pieces of a tree.
        texts: number of texts of a training part that are trained on, the first; None: all.
    """

    def __init__(
        self,
        home: Path,
        out: Path,
        encoder: str,
        words: list[str],
        size: int = SIZE,
        texts: int | None = None,
    ) -> None:
        self.home, self.out, self.size, self.texts = home, out, size, texts
        self.words = ["--encoder", encoder, *words, *(() if size == SIZE else ("--size", str(size)))]
        self.encoder = Encoder.load(encoder_at(Home(home), encoder), device="cpu")
        linkers = [name for name in words if has_model(Home(home), name)]
        about = [find_trained(Home(home), name) / MANIFEST for name in linkers]
        self._made = [self.encoder.fingerprint, *map(sha256_of, about)]

    def answers(self, task: str, variant: str, seed: int) -> dict[str, str]:
        """Return the answers to the test part by id; it is fine-tuned first, unless that has been done."""
        taught, chosen_by, asked = (part(task, name) for name in ("train", "dev", "test"))
        if taught is None:
            taught, chosen_by = chosen_by, None
        assert taught is not None and asked is not None
        injected = [*VARIANTS[variant]]
        limit = () if self.texts is None else (self.texts,)
        told = repr((self.words, injected, self._build(injected), self._made, *limit)).encode()
        key = hashlib.blake2b(told, digest_size=4).hexdigest()
        name = f"{task}-{variant.replace(', ', '-').replace(' ', '-')}-{seed}-{key}"
        path = self.out / f"{name}.txt"
        if not path.exists():
            if self.texts is not None:
                taught = first_texts(taught, self.texts, self.out)
            training = ["kbert", "--task", READ_AS[task], *injected, "--data", str(taught)]
            training += [] if chosen_by is None else ["--dev", str(chosen_by)]
            training += ["--seed", str(seed), *self.words]
            verb = "classification" if READ_AS[task] == "pair" else READ_AS[task]
            fine_tuned(self.home, f"injected-{name}", training, verb, asked, path)
        lines = path.read_text(encoding="utf-8").splitlines()
        return {name: answer for name, _, answer in (line.partition("\t") for line in lines)}

    def facts(self, task: str, variant: str, examples: Sequence[Example]) -> NDArray[np.int64] | None:
        """Return (N,), how many facts each example is given; None of a control, or where options decide."""
        if variant == "control" or any(word.startswith(_FACTS) for word in self.words):
            return None
        config = TreeConfig(relations=READ_AS[task] != "tagging")
        with open_kb(VARIANTS[variant][1], self.home) as kb:
            reader = TreeReader(
                self.encoder, TreeBuilder(generators_of([kb], "longest"), config), size=self.size
            )
            trees = (reader.read([Document("", text) for text in one.texts], one.tokens) for one in examples)
            return np.array([tree.branches.max() for tree in trees])

    def _build(self, injected: list[str]) -> str:
        if "--kb" not in injected:
            return ""
        with open_kb(injected[injected.index("--kb") + 1], self.home) as kb:
            return kb.build


def counts(examples: list[Example], answers: dict[str, str]) -> NDArray[np.int64]:
    """Return (N, 3): how many answers are right, given, and to be given, of each example."""
    if not examples[0].tokens:
        right = np.array([[answers[one.id] == one.gold for one in examples]])
        rights: NDArray[np.int64] = counted(right)[0]
        return rights
    rows = []
    for one in examples:
        told, meant = {*chunks(answers[one.id].split())}, {*chunks(gold_labels(one))}
        rows.append([len(told & meant), len(told), len(meant)])
    return np.array(rows)


def new(examples: list[Example], others: Iterable[Example]) -> NDArray[np.bool_]:
    """Say of each example whether none of its texts is in the others, or in one before it."""
    seen, found = {text for one in others for text in one.texts}, []
    for one in examples:
        found.append(seen.isdisjoint(one.texts))
        seen.update(one.texts)
    return np.array(found)


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
    is_new = new(examples, chain.from_iterable(read.values()))
    return PartOfTest(examples, is_new, len(read.get("train", read["dev"])))


def rows_of(task: str, tuning: Tuning, variants: Sequence[str], seeds: Sequence[int]) -> Iterator[list[str]]:
    """Yield a row for each variant on a task."""
    examples, kept, _ = part_of_test(task)
    given = dict[str, NDArray[np.int64]]()
    for variant in variants:
        found = np.stack([counts(examples, tuning.answers(task, variant, seed)) for seed in seeds])
        scores, whole = (100 * f1_of(some.sum(1)) for some in (found[:, kept], found))  # (S,)
        row = [task, f"{len(kept):,}, {kept.sum():,}", variant, spread(scores)]
        facts = tuning.facts(task, variant, examples)
        told = "" if variant == "control" else "?"
        if facts is not None:
            told = f"{facts.mean():.1f}, none {100 * (facts == 0).mean():.0f} %"
        row += [", ".join(f"{one:.2f}" for one in scores), spread(whole), told]
        given[variant] = found = found[:, kept]
        kb, _, ablated = variant.partition(", ")
        if (first := given.get(kb if ablated else "control")) is not None and variant != "control":
            row += [_over(first, found), f"{chance(first, found):.4f}"]
            if facts is not None:
                for some in (facts[kept] > 0, facts[kept] == 0):
                    over = _over(first[:, some], found[:, some])
                    row.append(f"{over} of {some.sum():,}" if some.any() else "")
        yield (row + 4 * [""])[: len(COLUMNS)]


def _over(first: NDArray[np.int64], second: NDArray[np.int64]) -> str:
    """Return by how many points of F1 the second answers are better, of counts (S, N, 3)."""
    before, after = (100 * f1_of(some.sum(1)).mean() for some in (first, second))
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
    chosen, words = parser.parse_known_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    tuning = Tuning(chosen.home, chosen.out, chosen.encoder, words, chosen.size, chosen.texts)
    rows = []
    for task in chosen.task or READ_AS:
        variants = [name for name in VARIANTS if name in (chosen.only or variants_of(task))]
        for row in rows_of(task, tuning, variants, chosen.seed or [0, 1, 2]):
            rows.append(row)
            print(row, file=sys.stderr, flush=True)
    title = "K-BERT on Chinese tasks"
    print(Table(title=title, notes=NOTES + ABOUT_P, columns=COLUMNS, rows=rows).markdown())


if __name__ == "__main__":
    main()
