"""Does knowledge help a language model: perplexity and recall of facts, with and without knowledge bases.

    python -m benchmarks.english TEXT_DIR
    python -m benchmarks.language --home HOME --text TEXT_DIR [--seed 0 …] [--steps 300] [--back nothing]

HOME holds WordNet and `aida` (`benchmarks.aida_kb`), with vectors `text`. A masked language model is made of
the encoder first (`base`), then each linker is trained on it alone, then all together,
as many steps, on the same passages, with each of: nothing, AIDA's slice of Wikipedia, WordNet, both. What is
there already is not done again; `--only NAME` does a part, so that several processes can share the work.
Peters et al. (2019), Tables 1 to 3.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.answers import Runs, compute_once
from benchmarks.harness import REPOSITORY
from benchmarks.recall import recall
from benchmarks.report import Table
from kgkit.evaluation.facts import Fact, read_facts
from kgkit.files import opened
from kgkit.home import Home
from kgkit.methods.knowbert_settings import KNOWBERT, KnowBertManifest

DATA: Final = REPOSITORY.parent / "shared" / "data"
SEMCOR: Final = str(DATA / "semcor" / "semcor.data.xml.xz")  # its gold lies beside it
AIDA: Final = str(DATA / "aida" / "aida_train.jsonl.xz")
SENSES: Final = ("senseval2", "senseval3", "semeval2007", "semeval2013", "semeval2015")
VARIANTS: Final = {"plain": (), "wiki": ("aida",), "wordnet": ("wordnet",), "both": ("aida", "wordnet")}
LINKING: Final = {"aida": f"aida={AIDA}", "wordnet": f"wordnet={SEMCOR}"}
PUBLISHED: Final = {
    "BERT-base": (5.5, 0.09), "KnowBert-Wiki": (4.3, 0.26), "KnowBert-WordNet": (4.1, 0.22),
    "KnowBert-W+W": (3.5, 0.31),
}  # fmt: skip

OVERLAPS: Final = ("longest", "score")

LANGUAGE: Final = """
`perplexity` of 15 in 100 word pieces of WikiText-2's test part, and how many are guessed right; `MRR`: mean
reciprocal rank of the word pieces of a hidden name, of facts of T-REx that FewRel's sentences do not state,
subject and object in turn, with LAMA's templates. Minutes are those of the last stage, reading included.
"""

LINKS: Final = """
The linkers inside, after they were trained alone (`link-`) and after all was trained together. Senses: F1 on
the five sets of the unified framework. AIDA: micro F1 of strong match, of mentions that the linker finds
itself, with the candidates of AIDA's slice of Wikipedia, NULL deciding: of the leftmost-longest mentions
(`longest`), and decoded as published, but that of links that overlap the best stays (`--overlaps score`).
"""


def facts(folder: Path, most: int) -> tuple[Path, Path]:
    """Write facts of T-REx, at most so many of a relation, and return the file, and that of the templates."""
    path = folder / f"facts-{most}.jsonl"
    if not path.exists():
        drawn = np.random.default_rng(0)
        stated = stated_pairs()
        with path.open("w", encoding="utf-8") as file:
            for source in sorted((DATA / "lama" / "TREx").glob("*.jsonl.xz")):
                read = dict.fromkeys(Fact(*fact[:3]) for fact in read_facts(source))
                unstated = [
                    fact for fact in read if (fact.subject.lower(), fact.object.lower()) not in stated
                ]
                for index in sorted(drawn.permutation(len(unstated))[:most].tolist()):
                    file.write(json.dumps(unstated[index]._asdict()) + "\n")
    return path, DATA / "lama" / "relations.jsonl"


def stated_pairs() -> set[tuple[str, str]]:
    """Return the pairs of names, lowercased and in either order, of facts that FewRel's sentences state."""
    with opened(DATA / "fewrel" / "val_wiki.json.xz") as file:
        pairs = [
            (example["h"][0].lower(), example["t"][0].lower())
            for examples in json.load(file).values()
            for example in examples
        ]
    return {*pairs, *((tail, head) for head, tail in pairs)}


def stages(
    text: Path, seeds: list[int], steps: int, base: list[str], back: str = "inverse", more: int = 0
) -> dict[str, list[str]]:
    """Return the models by name, those that others begin as first, and how each is trained."""
    train = str(text / "train.txt")
    senses = ["--task", "wsd", "--kb", "wordnet", "--data", SEMCOR]
    senses += ["--epochs", "2", "--lr-new", "1e-3"]
    entities = ["--task", "el", "--kb", "aida", "--data", AIDA, "--epochs", "10", "--lr-new", "1e-3"]
    commands = {
        "base": ["--task", "mlm", "--control", "--data", train, *base],
        "link-wiki": ["--from", "base", *entities],
        "link-wordnet": ["--from", "base", *senses],
        "link-both": ["--from", "link-wiki", *senses],
    }
    for seed in seeds:
        for name, kbs in VARIANTS.items():
            words = ["--task", "mlm", "--data", train, "--lr", "1e-4", "--lr-new", "5e-4"]
            words += [word for kb in kbs or LINKING for word in ("--linking", LINKING[kb])]
            words += [] if kbs else ["--control"]
            way_back = ["--back", back] if kbs and back != "inverse" else []
            model = f"{'-'.join([name, *way_back[1:]])}-{seed}"
            commands[model] = [*words, "--steps", str(steps), "--seed", str(seed), *way_back]
            commands[model] += ["--from", f"link-{name}" if kbs else "base"]
            if more:
                again = ["--steps", str(more), "--seed", str(seed + 10), "--from", model]
                commands[f"{model}-more"] = [*words, *again]
    return commands


def language_table(runs: Runs[KnowBertManifest], names: list[str], text: Path, most: int) -> Table:
    """Return the scores of models as language models."""
    rows = []
    path, templates = facts(text, most)
    for name in names:
        manifest = runs.manifest(name)
        if manifest is None or manifest.task != "mlm":
            continue
        heldout = "ppl", "--data", str(text / "heldout.txt")
        [ppl] = runs.evaluate(name, *heldout)["sets"]
        recalled = compute_once(
            runs.home, f"recall-{name}", path.read_bytes() + runs.identity(name),
            lambda: json.dumps(recall(runs.home, name, path, templates)._asdict()).encode(),  # noqa: B023
        )  # fmt: skip
        scores = f"{ppl['perplexity']:.3f}", f"{100 * ppl['accuracy']:.2f}"
        rows.append([name, *scores, f"{recalled['mrr']:.4f}", f"{manifest.results['seconds'] / 60:.1f}"])
        print(rows[-1], file=sys.stderr, flush=True)
    rows += [[name, f"{ppl}", "", f"{mrr}", ""] for name, (ppl, mrr) in PUBLISHED.items()]
    return Table(
        title="KnowBert as a language model",
        notes=LANGUAGE,
        columns=("model, seed", "perplexity", "right, %", "MRR", "minutes"),
        rows=rows,
    )


def linking_table(runs: Runs[KnowBertManifest], names: list[str]) -> Table:
    """Return the scores of the linkers inside models."""
    rows = []
    sets = [str(DATA / "wsd" / f"{name}.{kind}") for name in SENSES for kind in ("data.xml", "gold.key.txt")]
    senses = [word for pair in zip(["--data", "--gold"] * len(SENSES), sets, strict=True) for word in pair]
    entities = [
        word for letter in "ab" for word in ("--data", str(DATA / "aida" / f"aida_test{letter}.jsonl.xz"))
    ]
    redirects = ["--redirects", str(DATA / "aida" / "redirects.json.xz")]
    for name in names:
        manifest = runs.manifest(name)
        if manifest is None or not manifest.kbs:
            continue
        scores = {"wordnet": [""], "aida": ["", "", "", ""]}
        if "wordnet" in manifest.kbs:
            result = runs.evaluate(name, "wsd", "--kb", "wordnet", *senses)
            scores["wordnet"] = [f"{100 * result['together']['overall']['f1']:.1f}"]
        if "aida" in manifest.kbs:
            scores["aida"] = []
            for overlaps in OVERLAPS:
                options = "el", "--kb", "aida", "--overlaps", overlaps
                result = runs.evaluate(name, *options, *entities, *redirects)
                scores["aida"] += [
                    f"{100 * scores_of_set['micro']['f1']:.1f}" for scores_of_set in result["sets"]
                ]
        rows.append([name, *scores["wordnet"], *scores["aida"]])
        print(rows[-1], file=sys.stderr, flush=True)
    rows += [["KnowBert-WordNet", "74.9", "", "", "", ""], ["KnowBert-Wiki", "", "", "", "80.2", "74.4"]]
    rows += [["KnowBert-W+W", "75.1", "", "", "82.1", "73.7"]]
    columns = [
        "model, seed",
        "senses",
        *(f"{part}, {overlaps}" for overlaps in OVERLAPS for part in ("testa", "testb")),
    ]
    return Table(title="The linkers inside KnowBert", notes=LINKS, columns=columns, rows=rows)


def main() -> None:
    """Train the models that the home lacks, and write the tables to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True, metavar="TEXT_DIR")
    parser.add_argument("--seed", type=int, action="append")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--facts", type=int, default=100, help="of each relation")
    parser.add_argument("--more", type=int, default=0, help="batches that each goes on for, as NAME-more")
    parser.add_argument("--back", choices=["inverse", "nothing"], default="inverse", help="as kgkit has it")
    parser.add_argument("--only", action="append", metavar="NAME", help="train and score these alone")
    chosen, base = parser.parse_known_args()
    runs, seeds = Runs(Home(chosen.home), KNOWBERT), chosen.seed or [0, 1, 2]
    base = base or ["--epochs", "1", "--lr", "5e-4", "--lr-new", "1e-3"]
    models = stages(chosen.text, seeds, chosen.steps, base, chosen.back, chosen.more)
    names = chosen.only or list(models)
    for name in names:
        runs.train(name, *models[name])
    print(language_table(runs, names, chosen.text, chosen.facts).markdown())
    print(linking_table(runs, names).markdown())


if __name__ == "__main__":
    main()
