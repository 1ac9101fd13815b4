"""Does knowledge help a language model: perplexity and recall of facts, with and without knowledge bases.

    python -m benchmarks.english TEXT_DIR
    python -m benchmarks.language --home HOME --text TEXT_DIR [--seed 0 --seed 1 --seed 2] [--steps 300]

HOME holds WordNet and `aida` (`benchmarks.aida_kb`), with vectors `text`. A masked language model is made of
the encoder first (`base`), then each linker is trained on it alone, then all together,
as many steps, on the same passages, with each of: nothing, AIDA's slice of Wikipedia, WordNet, both. What is
there already is not done again. Peters et al. (2019), Table 1.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.harness import REPOSITORY
from benchmarks.report import Table
from kgkit.evaluation.facts import read_facts
from kgkit.home import Home
from kgkit.linking.manifest import MANIFEST, read_knowbert

DATA: Final = REPOSITORY.parent / "shared" / "data"
SEMCOR: Final = (
    str(DATA / "semcor" / "semcor.data.xml.xz"),
    str(DATA / "semcor" / "semcor.gold.key.txt.xz"),
)
AIDA: Final = str(DATA / "aida" / "aida_train.jsonl.xz")
VARIANTS: Final = {"plain": (), "wiki": ("aida",), "wordnet": ("wordnet",), "both": ("aida", "wordnet")}
LINKING: Final = {"aida": f"aida={AIDA}", "wordnet": f"wordnet={','.join(SEMCOR)}"}
PUBLISHED: Final = {
    "BERT-base": (5.5, 0.09), "KnowBert-Wiki": (4.3, 0.26), "KnowBert-WordNet": (4.1, 0.22),
    "KnowBert-W+W": (3.5, 0.31),
}  # fmt: skip

NOTES: Final = """
`perplexity` of 15 in 100 word pieces of WikiText-2's test part, and how many are guessed right; `MRR`: mean
reciprocal rank of the word pieces of a hidden name, of facts of T-REx, subject and object in turn, with
LAMA's templates. Minutes are those of the last stage, reading included.
"""


class Runs:
    """Runs commands of kgkit in a home, those that have not been run yet."""

    def __init__(self, home: Path) -> None:
        self.home = Home(home)

    def train(self, name: str, *words: str) -> None:
        """Train a model, unless it is there."""
        if not (self.home.models / name / MANIFEST).exists():
            subprocess.run(
                [*self._command, "train", "knowbert", "--name", name, *words, "--home", str(self.home.path)],
                check=True, stdout=sys.stderr,
            )  # fmt: skip

    def ask(self, *words: str) -> dict[str, Any]:
        """Return what a command says as JSON."""
        done = subprocess.run(
            [*self._command, *words, "--home", str(self.home.path), "--json", "--quiet"],
            check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    @property
    def _command(self) -> list[str]:
        return [sys.executable, "-P", "-c", "from kgkit.commands import main; main()"]


def facts(folder: Path, most: int) -> tuple[Path, Path]:
    """Write facts of T-REx, at most so many of a relation, and return the file, and that of the templates."""
    path = folder / f"facts-{most}.jsonl"
    if not path.exists():
        drawn = np.random.default_rng(0)
        with path.open("w", encoding="utf-8") as file:
            for one in sorted((DATA / "lama" / "TREx").glob("*.jsonl.xz")):
                some = list(dict.fromkeys(read_facts(one)))
                for place in sorted(drawn.permutation(len(some))[:most].tolist()):
                    file.write(json.dumps(some[place]._asdict()) + "\n")
    return path, DATA / "lama" / "relations.jsonl"


def stages(runs: Runs, text: Path, seeds: list[int], steps: int, base: list[str]) -> None:
    """Train all that is not there."""
    train = str(text / "train.txt")
    runs.train("base", "--task", "mlm", "--control", "--data", train, *base)
    linker = ["--epochs", "3", "--lr-new", "1e-3"]
    senses = ["--task", "wsd", "--kb", "wordnet", "--data", SEMCOR[0], "--gold", SEMCOR[1], *linker]
    entities = ["--task", "el", "--kb", "aida", "--data", AIDA, *linker]
    runs.train("link-wiki", "--from", "base", *entities)
    runs.train("link-wordnet", "--from", "base", *senses)
    runs.train("link-both", "--from", "link-wiki", *senses)
    for seed in seeds:
        for name, kbs in VARIANTS.items():
            words = ["--task", "mlm", "--data", train, "--steps", str(steps), "--seed", str(seed)]
            words += ["--lr", "1e-4", "--lr-new", "3e-4"]
            words += [word for kb in kbs or LINKING for word in ("--linking", LINKING[kb])]
            words += ["--from", f"link-{name}"] if kbs else ["--from", "base", "--control"]
            runs.train(f"{name}-{seed}", *words)


def table(runs: Runs, text: Path, seeds: list[int], most: int) -> Table:
    """Return the scores of all variants."""
    rows = []
    path, templates = facts(text, most)
    for name in ("base", *(f"{variant}-{seed}" for variant in VARIANTS for seed in seeds)):
        if not (runs.home.models / name / MANIFEST).exists():
            continue
        [ppl] = runs.ask("evaluate", "ppl", "--model", name, "--data", str(text / "heldout.txt"))["sets"]
        probe = runs.ask(
            "evaluate", "probe", "--model", name, "--data", str(path), "--templates", str(templates)
        )
        minutes = read_knowbert(runs.home.models / name).results["seconds"] / 60
        scores = f"{ppl['perplexity']:.3f}", f"{100 * ppl['accuracy']:.2f}", f"{probe['mrr']:.4f}"
        rows.append([name, *scores, f"{minutes:.1f}"])
        print(rows[-1], file=sys.stderr, flush=True)
    rows += [[name, f"{ppl}", "", f"{mrr}", ""] for name, (ppl, mrr) in PUBLISHED.items()]
    return Table(
        title="KnowBert as a language model",
        notes=NOTES,
        columns=("model, seed", "perplexity", "right, %", "MRR", "minutes"),
        rows=rows,
    )


def main() -> None:
    """Train what is not there, and write the table to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True, metavar="TEXT_DIR")
    parser.add_argument("--seed", type=int, action="append")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--facts", type=int, default=100, help="of each relation")
    chosen, base = parser.parse_known_args()
    runs, seeds = Runs(chosen.home), chosen.seed or [0, 1, 2]
    stages(
        runs, chosen.text, seeds, chosen.steps, base or ["--epochs", "1", "--lr", "3e-4", "--lr-new", "1e-3"]
    )
    print(table(runs, chosen.text, seeds, chosen.facts).markdown())


if __name__ == "__main__":
    main()
