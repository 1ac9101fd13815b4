"""CoNLL-2000's chunks as data of `kgkit train tagger`: a document for every so many sentences.

    python -m benchmarks.chunks --out FOLDER [--sentences 20]
    kgkit train tagger --data FOLDER/train.txt --scope sentence --name chunks

The files of CoNLL-2000 have a chunk in the last column, as CoNLL-2003 has a name there, and no documents. Of
the data of a tagger one document in ten chooses the epoch.
"""

import argparse
import zipfile
from pathlib import Path
from typing import Final

from benchmarks.harness import REPOSITORY

SOURCE: Final = REPOSITORY.parent / "shared" / "data" / "conll2000" / "conll2000.zip"
PARTS: Final = ("train", "test")
DOCUMENT: Final = "-DOCSTART- -X- O\n\n"


def cut(text: str, sentences: int) -> str:
    """Return a file of CoNLL-2000 with a document for every so many sentences."""
    every = [sentence.strip() for sentence in text.split("\n\n") if sentence.strip()]
    documents = ["\n\n".join(every[begin : begin + sentences]) for begin in range(0, len(every), sentences)]
    return "".join(f"{DOCUMENT}{document}\n\n" for document in documents)


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chunks")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--sentences", type=int, default=20, metavar="N")
    parser.add_argument("--source", type=Path, default=SOURCE, metavar="ZIP")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(chosen.source) as archive:
        for part in PARTS:
            text = archive.read(f"conll2000/{part}.txt").decode("utf-8")
            (chosen.out / f"{part}.txt").write_text(cut(text, chosen.sentences), encoding="utf-8")


if __name__ == "__main__":
    main()
