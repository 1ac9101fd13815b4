"""Plain Chinese of the shared data, to train an encoder on from nothing, and to measure it.

    python -m benchmarks.chinese OUT_DIR

writes `train.txt`, the texts that K-BERT's tasks may be learnt from (their training parts, and those that
choose the epoch; of tasks without a training part the latter), and `heldout.txt`, the texts of their test
parts, without any labels: twenty texts of a file to a document, documents apart by blank lines. Texts of test
parts that come in the others too, as a quarter of chnsenticorp's do, are not in `train.txt`. They must not be
passed on.
"""

import argparse
from collections.abc import Iterable, Iterator, Set
from itertools import chain, islice
from pathlib import Path
from typing import Final

from benchmarks.english import DATA, write
from kgkit.evaluation.tasks import find_task
from kgkit.files import opened, written

TASKS: Final = DATA / "chinese_tasks"
READ_AS: Final = {
    "book_review": "classification", "chnsenticorp": "classification", "shopping": "classification",
    "lcqmc": "pair", "medical_ner": "tagging", "financial_ner": "tagging", "msra_ner": "tagging",
}  # fmt: skip
TEXTS: Final = 20


def part(task: str, name: str) -> Path | None:
    """Return the file of a part of a task, if it has that part."""
    return next((TASKS / task).glob(f"{name}.*"), None)


def first_texts(path: Path, count: int, out: Path) -> Path:
    """Write the header and the first *count* lines of a part into a folder; return the file."""
    first = out / f"{path.parent.name}-{path.name.partition('.')[0]}-first-{count}.tsv"
    if not first.exists():
        with opened(path) as lines, written(first) as file:
            file.writelines(islice(lines, count + 1))
    return first


def texts(*parts: str) -> Iterator[list[str]]:
    """Yield the texts of each file."""
    for task, kind in READ_AS.items():
        for path in filter(None, (part(task, name) for name in parts)):
            yield [text for example in find_task(kind).read(path) for text in example.texts]


def documents(files: Iterable[list[str]], without: Set[str] = frozenset()) -> Iterator[list[str]]:
    """Yield documents, each a list of texts, but for some texts."""
    for file in files:
        remaining = [text for text in file if text not in without]
        for begin in range(0, len(remaining), TEXTS):
            yield remaining[begin : begin + TEXTS]


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chinese")
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    test = [*texts("test")]
    training = documents(texts("train", "dev"), without={*chain.from_iterable(test)})
    for name, part_documents in (("train", training), ("heldout", documents(test))):
        path = out / f"{name}.txt"
        count, _ = write(path, part_documents)
        print(f"{name}: {count:,} documents, {len(path.read_text(encoding='utf-8')):,} characters")


if __name__ == "__main__":
    main()
