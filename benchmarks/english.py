"""Plain English of the shared data, to train masked language models on, and to measure them.

    python -m benchmarks.english OUT_DIR

writes `train.txt` (WikiText-2's validation part, SemCor, CoNLL-2003's training part, FewRel, and the training
parts of CoLA, RTE and STS-B) and `heldout.txt` (WikiText-2's test part): documents apart by blank lines. They
must not be passed on. Left out is what something else is measured on: LAMA, WiC, SemEval-2010, the sets of
senses, and CoNLL-2003's other parts, which are AIDA's. FewRel states a few facts that LAMA asks for:
`benchmarks.language` does not ask for those.
"""

import argparse
import csv
import json
import re
from collections.abc import Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Final

from benchmarks.harness import REPOSITORY
from kgkit.evaluation.ner import read_names
from kgkit.evaluation.wsd import read_documents
from kgkit.files import lines, opened

DATA: Final = REPOSITORY.parent / "shared" / "data"

_HEADING: Final = re.compile(r"(= )+.*( =)+")
_JOINED: Final = re.compile(r" @(.)@ ")


def train() -> Iterator[list[str]]:
    """Yield documents, each a list of lines."""
    yield from wikitext("valid")
    for document in read_documents(DATA / "semcor" / "semcor.data.xml.xz"):
        yield document.text.splitlines()
    for named in read_names(DATA / "conll2003" / "eng.train.xz"):
        yield named.document.text.splitlines()
    with opened(DATA / "fewrel" / "val_wiki.json.xz") as file:
        for instances in json.load(file).values():
            yield from ([" ".join(instance["tokens"])] for instance in instances)
    for _, line in lines(DATA / "glue" / "CoLA" / "train.tsv.xz"):
        label, sentence = line.split("\t")[1::2]
        if label == "1":
            yield [sentence]
    for row in islice(_rows(DATA / "glue" / "RTE" / "train.tsv.xz"), 1, None):  # behind a heading
        yield row[1:3]
    for row in _rows(DATA / "glue" / "STS-B" / "sts-train.csv.xz"):
        yield row[5:7]


def wikitext(part: str) -> Iterator[list[str]]:
    """Yield the sections of a part of WikiText-2, without headings and without its token for rare words."""
    text = (
        (_HEADING.fullmatch(line.strip()), line) for _, line in lines(DATA / "wikitext2" / f"{part}.txt.xz")
    )
    for heading, section in groupby(text, key=lambda pair: pair[0] is not None):
        if not heading:
            yield [_JOINED.sub(r"\1", line.replace("<unk> ", "")).strip() for _, line in section]


def _rows(path: Path) -> Iterator[list[str]]:
    for _, line in lines(path):
        yield next(csv.reader([line], delimiter="\t", quoting=csv.QUOTE_NONE))


def write(path: Path, documents: Iterator[list[str]]) -> tuple[int, int]:
    """Write documents, and return how many there are, and how many words they have."""
    count = words = 0
    with path.open("w", encoding="utf-8") as file:
        for document in documents:
            stripped = [line.strip() for line in document if line.strip()]
            if stripped:
                file.write("\n".join(stripped) + "\n\n")
                count, words = count + 1, words + sum(len(line.split()) for line in stripped)
    return count, words


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.english")
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name, documents in (("train", train()), ("heldout", wikitext("test"))):
        count, words = write(out / f"{name}.txt", documents)
        print(f"{name}: {count:,} documents, {words:,} words")


if __name__ == "__main__":
    main()
