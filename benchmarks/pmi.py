"""PMI of words over English text of the shared data: time, memory, size, and what goes with ten words.

    python -m benchmarks.pmi OUT_DIR [--memory SIZE] [--window N] [--only PART …]

writes `PART.txt` for each part into OUT_DIR, makes a table of them by `kgkit train pmi` in a home there, and
prints figures. Parts: `wikitext` (the training part of WikiText-2), `semcor` (all of SemCor), `conll2003`
(its training part), `recipes` (directions of the training part). They must not be passed on, nor the table.

Left out is what something is measured on: LAMA, WiC, SemEval-2010, the sets of senses, the other parts of the
four; CoLA, RTE and STS-B altogether; and FewRel, which states facts that LAMA asks for.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Final

import msgspec

import kgkit
from benchmarks.english import DATA, wikitext, write
from benchmarks.report import Table
from kgkit.evaluation.ner import read_names
from kgkit.evaluation.wsd import read_documents
from kgkit.files import lines
from kgkit.home import Home
from kgkit.models.folder import find_trained
from kgkit.models.pmi import PMI

WORDS: Final = ("dog", "oil", "court", "music", "river", "war", "doctor", "ship", "church", "money")

TABLE: Final = "english"


def semcor() -> Iterator[list[str]]:
    """Yield the documents of SemCor."""
    for document in read_documents(DATA / "semcor" / "semcor.data.xml.xz"):
        yield document.text.splitlines()


def conll2003() -> Iterator[list[str]]:
    """Yield the documents of CoNLL-2003's training part."""
    for named in read_names(DATA / "conll2003" / "eng.train.xz"):
        yield named.document.text.splitlines()


def recipes() -> Iterator[list[str]]:
    """Yield the directions of each recipe of the training part."""
    for _, line in lines(DATA / "recipe" / "corpus" / "recipes_train.jsonl.xz"):
        directions = msgspec.json.decode(line)["directions"]
        yield directions if isinstance(directions, list) else directions.splitlines()


PARTS: Final[Mapping[str, Callable[[], Iterator[list[str]]]]] = {
    "wikitext": lambda: wikitext("train"), "semcor": semcor, "conll2003": conll2003, "recipes": recipes,
}  # fmt: skip


def main() -> None:
    """Write the parts, make the table, and print what it is."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pmi")
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument("--only", action="append", choices=PARTS, metavar="PART")
    for option, value in ("memory", "1GB"), ("window", "10"):
        parser.add_argument(f"--{option}", default=value)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    home, texts = Home(options.out / "home"), []
    for part in options.only or PARTS:
        texts.append(options.out / f"{part}.txt")
        count, words = write(texts[-1], PARTS[part]())
        print(f"{part}: {count:,} documents, {words:,} words")
    settings = [f"--{name}={getattr(options, name)}" for name in ("memory", "window")]
    data = [f"--data={text}" for text in texts]
    command = [*data, f"--name={TABLE}", *settings, f"--home={home.path}", "--quiet"]
    subprocess.run([sys.executable, "-m", "kgkit.commands", "train", "pmi", *command], check=True)
    manifest = PMI.read(find_trained(home, TABLE))
    megabytes = sum(manifest.sizes.values()) / 1e6
    used = getrusage(RUSAGE_CHILDREN)
    print(f"CPU seconds: {used.ru_utime + used.ru_stime:.1f}")
    print(f"table: {megabytes:.1f} MB, peak {manifest.results['peak_memory'] / 1e6:,.0f} MB")
    table = kgkit.open_model(TABLE, home=home)
    rows = []
    for word in WORDS:
        nearest = ", ".join(f"{other} {value:.2f}" for other, value in table.strongest([word]))
        rows.append([word, f"{table.count(word):,}", nearest])
    columns = ["word", "occurs", "ten nearest"]
    print(Table(title="Ten words", notes="", columns=columns, rows=rows).markdown())


if __name__ == "__main__":
    main()
