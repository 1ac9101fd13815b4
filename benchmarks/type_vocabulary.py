"""How many words of WikiText-2 a type vocabulary knows, beside the paper's numbers.

    python -m benchmarks.type_vocabulary [--kb NAME …] [--wordnet DIR] [--data DIR]

Liu, Du and Stoyanov (2019) took the entity words of their CoNLL vocabulary from WikiText-2. Ours come from
the names in knowledge bases (`kb_builders/type_vocabulary.py`): from WordNet, built for this from its files,
or from KBs of `KGKIT_HOME`. Only the valid and test parts of WikiText-2 are read, a tenth of what they had.
"""

import argparse
import lzma
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

import kgkit
from benchmarks.harness import REPOSITORY
from benchmarks.report import Table
from kb_builders.type_vocabulary import TypeVocabularyBuilder
from kb_builders.type_vocabulary_names import TYPES
from kb_builders.wordnet import WordNetBuilder
from kgkit.building import Alias
from kgkit.building.records import StoredRecords

PAPER: Mapping[str, int] = {"LOC": 1503, "MISC": 1211, "ORG": 3005, "PER": 5404}

NOTES = """
Distinct words, as written, capitals and all. `words`: of the vocabulary, multiword names aside. `in the
text`: those of them that occur in WikiText-2, valid and test; a word of two types counts for both. `mostly`:
each such word for its most probable type alone. `tokens`: how often the words of that last column occur, of
{tokens:,} in all. `paper`: entity words of the type in Liu et al. (2019), taken from WikiText-2.
"""


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.type_vocabulary", description=__doc__)
    parser.add_argument("--kb", action="append", default=[], help="a KB of KGKIT_HOME instead of WordNet")
    parser.add_argument("--wordnet", type=Path, help="folder of the WordNet files")
    parser.add_argument(
        "--data",
        type=Path,
        default=REPOSITORY.parent / "shared" / "data",
        help="folder with wikitext2/valid.txt.xz and test.txt.xz",
    )
    return parser.parse_args()


def words_of(data: Path) -> Counter[str]:
    """Return the words of the text with how often each occurs."""
    words: Counter[str] = Counter()
    for part in ("valid", "test"):
        with lzma.open(data / "wikitext2" / f"{part}.txt.xz", "rt", encoding="utf-8") as text:
            for line in text:
                words.update(line.split())
    return words


def vocabulary(kb: kgkit.KnowledgeBase) -> dict[str, dict[str, float]]:
    """Return word -> type -> count, of single words."""
    counts: dict[str, dict[str, float]] = {}
    for record in TypeVocabularyBuilder().derive(StoredRecords(kb)):
        if isinstance(record, Alias) and " " not in record.surface:
            counts.setdefault(record.surface, {})[record.key] = record.count
    return counts


def table(title: str, kinds_of: Mapping[str, Mapping[str, float]], words: Counter[str]) -> Table:
    """Return the counts of one vocabulary."""
    present = {word: kinds for word, kinds in kinds_of.items() if word in words}
    mostly = {word: max(kinds, key=kinds.__getitem__) for word, kinds in present.items()}
    rows = []
    for kind in TYPES:
        mine = [word for word, best in mostly.items() if best == kind]
        rows.append(
            [
                kind,
                _number(sum(kind in kinds for kinds in kinds_of.values())),
                _number(sum(kind in kinds for kinds in present.values())),
                _number(len(mine)),
                _number(sum(words[word] for word in mine)),
                _number(PAPER[kind]),
            ]
        )
    occurring = sum(words[word] for word in present)
    totals = (len(kinds_of), len(present), len(present), occurring, sum(PAPER.values()))
    rows.append(["all, each once", *map(_number, totals)])
    return Table(
        title=title,
        notes=NOTES.format(tokens=words.total()),
        columns=("", "words", "in the text", "mostly", "tokens", "paper"),
        rows=rows,
    )


def tables(names: Iterable[str], wordnet: Path | None, data: Path) -> list[Table]:
    """Return a table for each KB of *names*, or for WordNet if there is none."""
    words = words_of(data)
    result = []
    with ExitStack() as stack:
        home = None
        if not names:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            kgkit.build_kb(WordNetBuilder(), wordnet, home=home)
        for name in names or ["wordnet"]:
            kb = stack.enter_context(kgkit.open_kb(name, home=home))
            began = time.perf_counter()
            kinds_of = vocabulary(kb)
            seconds = time.perf_counter() - began
            result.append(table(f"Type vocabulary of {kb.name}, made in {seconds:.1f} s", kinds_of, words))
    return result


def main() -> None:
    """Print the tables of the command line's knowledge bases."""
    chosen = arguments()
    for table in tables(chosen.kb, chosen.wordnet, chosen.data):
        print(table.markdown())


def _number(count: int) -> str:
    return f"{count:,}"


if __name__ == "__main__":
    main()
