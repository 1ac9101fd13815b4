r"""Does E-BERT help to tell relations: SemEval-2010 task 8 over WordNet, and FewRel over AIDA's titles.

    python -m benchmarks.ebert_relations semeval --home HOME --out OUT_DIR --encoder ENCODER [--seed 0 …]
    python -m benchmarks.ebert_relations fewrel --home HOME --out OUT_DIR --encoder ENCODER \
                                         --row plain --row concat

HOME holds the knowledge base, WordNet or `aida`, with vectors `text` that `kgkit align` has mapped into the
word pieces of ENCODER. Every row begins as ENCODER and is trained with each seed on the same examples, as
many steps; other options go to `kgkit train ebert`. Predictions lie in OUT_DIR, and are read from
there another time.

FewRel's training part could not be had: its other part, 16 relations, is divided by the pairs of entities, a
fifth of which is the test file. Poerner et al. (2020), section 4.2.
"""

import argparse
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import kgkit
from benchmarks.fine_tuning import TaskFiles, Trainings, score_table
from benchmarks.harness import REPOSITORY
from kgkit.evaluation.examples import Example
from kgkit.evaluation.tasks import find_task
from kgkit.files import opened

DATA: Final = REPOSITORY.parent / "shared" / "data"
SEMEVAL, FEWREL = "semeval", "fewrel"
KBS: Final = {SEMEVAL: "wordnet", FEWREL: "aida"}
LINKERS: Final = {SEMEVAL: "wsd-minilm", FEWREL: "prior"}
FIFTH: Final = 5

NOTES: Final = """
E-BERT and its control, all begun as {encoder}. SemEval-2010 task 8: macro F1 of the official scorer over its
test part; FewRel: micro F1 over the pairs of entities that are not learnt from. `plain` reads no entity, with
the same examples, batches, rates and markers.
"""


def rows_of(data: str) -> dict[str, list[str]]:
    """Return the options of each row; the first is what others are compared with."""
    knowledge = ["--kb", KBS[data], "--vectors", f"{KBS[data]}/text", "--linker", LINKERS[data]]
    return {
        "plain": ["--control"], "concat": knowledge,
    }  # fmt: skip


def files_of(data: str, out: Path) -> TaskFiles:
    """Return the training files and the test file of a task."""
    if data == SEMEVAL:
        folder = DATA / "semeval2010_task8"
        return TaskFiles("relation", (folder / "TRAIN_FILE.TXT.xz",), folder / "TEST_FILE_FULL.TXT.xz")
    return split_fewrel(DATA / "fewrel" / "val_wiki.json.xz", out)


def split_fewrel(path: Path, out: Path) -> TaskFiles:
    """Write FewRel's instances to a training and a test file, with no pair of entities in both.

    The digest of its two keys says in which a pair is, whatever its relations and their direction are.
    """
    with opened(path) as file:
        relations = json.load(file)
    for name, is_test in (("train", False), ("test", True)):
        part = {
            relation: [each for each in instances if is_test_pair(each["h"][1], each["t"][1]) == is_test]
            for relation, instances in relations.items()
        }
        (out / f"fewrel-{name}.json").write_text(json.dumps(part), encoding="utf-8")
    return TaskFiles("relation", (out / "fewrel-train.json",), out / "fewrel-test.json")


def is_test_pair(*keys: str) -> bool:
    """Return whether the pair of entities with these keys is in the test file: a fifth of all pairs."""
    digest = hashlib.blake2b(" ".join(sorted(keys)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % FIFTH == 0


def share_of_names(examples: Iterable[Example], kb: kgkit.KnowledgeBase) -> float:
    """Return which share of the examples' names, two of each, is a surface of *kb*."""
    names = [example.texts[0][begin:end] for example in examples for begin, end in example.marks]
    return sum(bool(len(kb.candidates(name))) for name in names) / max(1, len(names))


def main(arguments: Sequence[str] | None = None) -> None:
    """Fine-tune, and write the table to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ebert_relations")
    parser.add_argument("data", choices=KBS)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="OUT_DIR")
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--row", action="append", choices=rows_of(SEMEVAL))
    parser.add_argument("--seed", type=int, action="append")
    chosen, words = parser.parse_known_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    files, every = files_of(chosen.data, chosen.out), rows_of(chosen.data)
    rows = {name: every[name] for name in chosen.row or every}
    trainings = Trainings(chosen.home, chosen.out, "ebert", files, ["--encoder", chosen.encoder, *words])
    notes = NOTES.format(encoder=chosen.encoder)
    with kgkit.open_kb(KBS[chosen.data], home=chosen.home) as kb:
        share = share_of_names(find_task(files.task).read(files.test), kb)
    notes += (
        f"\n{100 * share:.1f} % of the names of the test file are surfaces of the knowledge base {kb.name}.\n"
    )
    title = f"E-BERT: {chosen.data}"
    print(score_table(trainings, rows, chosen.seed or [0, 1, 2], title, notes).markdown())


if __name__ == "__main__":
    main()
