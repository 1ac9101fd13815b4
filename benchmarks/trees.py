"""Sentence trees a second, beside the code that was released with K-BERT; and whether they are the same.

    python -m benchmarks.trees --home HOME --reference FOLDER [--rounds 5] [--count 1000] [--processes 2]

HOME holds a build of `hownet` from the HowNet.spo that lies in FOLDER, a checkout of autoliuweijie/K-BERT.
"""

import argparse
import contextlib
import importlib
import io
import lzma
import re
import statistics
import sys
import time
from collections import ChainMap, Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from benchmarks.harness import REPOSITORY
from benchmarks.report import Table, figures
from kgkit.candidates import AliasGenerator, Generator, SegmentGenerator, Segments, jieba_segments
from kgkit.kb import KnowledgeBase, open_kb
from kgkit.trees import Flattener, FlatTree, Frame, TreeBuilder, TreeConfig, cutter, visible
from kgkit.types import Document

DATA: Final = REPOSITORY.parent / "shared" / "data" / "chinese_tasks"
SPEED: Final = ("book_review", "chnsenticorp")
SIZES: Final = (128, 256)
TAGGED: Final = ("financial_ner", "medical_ner", "msra_ner")  # a fact is its object alone there
CLS, SEP, PAD = "[CLS]", "[SEP]", "[PAD]"
SINGLE, PAIR = Frame((CLS,)), Frame((CLS,), (SEP,), (SEP,))
CHUNK: Final = 50
JIEBA: Final = find_spec("jieba") is not None
BASE: Final = "reference, segments ready"

SPEED_NOTES: Final = """
Trees a second, medians, and how many times those of the reference when its segments are ready: medians of
the ratios within a round. The first {count:,} sentences of the training file, [CLS] before each; HowNet, two
facts a mention, with the names of relations. CPU seconds of one process, all in turn, {rounds} rounds.
Opening the knowledge base, or loading its file, is not counted.

kgkit: `AliasGenerator`, `TreeBuilder` and `Flattener` with `cutter()`. Cold is a new handle, generator,
builder and flattener in each round; warm the same sentences once more. The reference returns a visible
matrix of size × size; kgkit makes one where it is wanted, so it is also measured with it, padded alike.

The reference is `KnowledgeGraph.add_knowledge_with_vm`, a sentence a call as in its scripts. Its segmenter,
pkuseg, is not there. A stand-in returns segments that are ready: kgkit's mentions, and the rest {rest}.
{segmenter}
"""
WITH_JIEBA: Final = """
With jieba, which has the surfaces of the knowledge base as its words: it is the stand-in, and the
`SegmentGenerator` of kgkit has it too. It finds other mentions than longest match, so one row of the
reference has its segments ready.
"""
WITHOUT_JIEBA: Final = "jieba is not installed: there are no rows with it."

EQUAL_NOTES: Final = """
The first {count:,} texts of each file, pairs as pairs; in files of tagged text a fact is its object alone.
The reference is given kgkit's longest matches and single characters as its segments, and facts in the order
of the data instead of that of a set. Equal: tokens, soft positions and visible matrix are. White space:
equal when the reference is not given it as segments; it is no token in kgkit. Spelling: equal when the
reference also looks up a mention as the knowledge base spells it; kgkit folds case. Otherwise: none of
these, or unequal at a size that all of the tree fits in. Special: texts that hold a special token of the
reference, which stays whole in both.

All this with nothing cut off. Then, at {sizes} tokens, those that are too long but equal so far; and of
these those whose text lost its end, in the reference (there) and in kgkit (here).
"""


class Reference:
    """The released `KnowledgeGraph` on HowNet; `cut` is its segmenter."""

    def __init__(self, folder: Path, predicate: bool = True) -> None:
        self.cut: Callable[[str], Sequence[str]] = list
        stand_in: Any = ModuleType("pkuseg")
        stand_in.pkuseg = lambda **_: self  # `cut` is all that it calls
        sys.modules["pkuseg"] = stand_in
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        released: Any = importlib.import_module("brain.knowgraph")
        released.pkuseg = stand_in  # one that was imported before has another
        with contextlib.redirect_stdout(io.StringIO()):
            self.graph = released.KnowledgeGraph(["HowNet"], predicate)
        self.path = Path(self.graph.spo_file_paths[0])
        self.special = tuple(released.config.NEVER_SPLIT_TAG)
        self.predicate = predicate

    def in_order(self) -> dict[str, list[str]]:
        """Return its facts in the order of the data; it keeps sets."""
        ordered: dict[str, dict[str, None]] = {}
        with self.path.open(encoding="utf-8") as lines:
            for line in lines:
                subject, relation, value = line.strip().split("\t")
                ordered.setdefault(subject, {})[relation + value if self.predicate else value] = None
        return {subject: [*values] for subject, values in ordered.items()}

    def set(self, segments: Sequence[str], facts: Mapping[str, Sequence[str]]) -> None:
        """Fix its segments of any text, and its facts."""
        self.cut, self.graph.lookup_table = lambda _: segments, facts

    def tree(self, text: str, size: int) -> tuple[list[str], list[int], np.ndarray]:
        """Return tokens, soft positions and visible matrix, as long as *size* says."""
        tokens, positions, matrices, _ = self.graph.add_knowledge_with_vm([text], max_length=size)
        return tokens[0], positions[0], matrices[0]


class Ours:
    """kgkit, as it is set up for a training."""

    def __init__(self, generator: Generator, size: int) -> None:
        self._builder, self._flattener = TreeBuilder([generator]), Flattener(cutter(), SINGLE, size)

    def __call__(self, texts: Sequence[tuple[str, ...]]) -> Iterator[FlatTree]:
        pairs = (tuple(Document("", text) for text in some) for some in texts)
        return map(self._flattener, self._builder(pairs))


def matrix(flat: FlatTree, size: int) -> np.ndarray:
    """Return (size, size) bool, as the reference does: its padding sees nothing and is not seen."""
    padded = np.zeros((size, size), np.bool_)
    padded[: len(flat), : len(flat)] = visible(flat.branches, flat.hooks)
    return padded


def texts_of(path: Path, count: int) -> list[tuple[str, ...]]:
    """Return the first texts of a file, or pairs."""
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        if ".csv" in path.suffixes:  # pairs, and no names of columns
            return [tuple(line.split("\t")[:2]) for line in islice(lines, count)]
        column = next(lines).rstrip("\r\n").split("\t").index("text_a")
        rows = [line.rstrip("\r\n").split("\t")[column] for line in islice(lines, count)]
    if path.parent.name in TAGGED:  # a character a token
        rows = [row.replace(" ", "") for row in rows]
    return [(row,) for row in rows]


def segments(
    generator: AliasGenerator, text: str, special: Sequence[str] = (), words: Segments | None = None
) -> list[str]:
    """Return the longest matches of a text, and what is between them in words or characters, white space too.

    Args:
        generator: that finds them.
        text: all of it comes back.
        special: tokens that stay in one piece.
        words: cuts what is between; None for characters.
    """
    pieces, position = list[str](), 0
    single = re.compile("|".join([*map(re.escape, special), "."]), re.DOTALL)

    def between(gap: str) -> list[str]:
        return single.findall(gap) if words is None else [gap[start:end] for start, end in words(gap)]

    for mention in generator.mentions(text):
        pieces += [*between(text[position : mention.start]), mention.text]
        position = mention.end
    return [*pieces, *between(text[position:])]


# -- speed --------------------------------------------------------------------


def speed(home: str, reference: Reference, task: str, size: int, count: int, rounds: int) -> dict[str, str]:
    """Return the column of one task at one size."""
    texts = texts_of(DATA / task / "train.tsv.xz", count)
    with open_kb("hownet", home) as kb:
        generator = AliasGenerator(kb)
        words = jieba_segments(()) if JIEBA else None
        ready = {CLS + text: [CLS, *segments(generator, text, words=words)] for (text,) in texts}
        cut = jieba_segments(kb.surfaces()) if JIEBA else None

    def released(segmented: Callable[[str], Sequence[str]]) -> float:
        reference.cut = segmented
        began = time.process_time()
        for (text,) in texts:
            reference.tree(CLS + text, size)
        return time.process_time() - began

    def by_jieba(text: str) -> list[str]:
        assert cut is not None
        text = text[len(CLS) :]
        return [CLS, *[text[start:end] for start, end in cut(text)]]

    seconds: dict[str, list[float]] = {}

    def note(name: str, elapsed: float) -> None:
        seconds.setdefault(name, []).append(elapsed)

    def timed(ours: Ours, with_matrix: bool) -> float:
        began = time.process_time()
        for flat in ours(texts):
            if with_matrix:
                matrix(flat, size)
        return time.process_time() - began

    for _ in range(rounds):
        with open_kb("hownet", home) as kb:
            ours = Ours(AliasGenerator(kb), size)
            note("kgkit, cold", timed(ours, with_matrix=False))
            note("kgkit, warm", timed(ours, with_matrix=False))
            note("kgkit, warm, with the visible matrix", timed(ours, with_matrix=True))
            note(BASE, released(ready.__getitem__))
            if cut is not None:
                ours = Ours(SegmentGenerator(kb, cut), size)
                timed(ours, with_matrix=False)
                note("kgkit, warm, with the visible matrix, with jieba", timed(ours, with_matrix=True))
                by_it = {CLS + text: by_jieba(CLS + text) for (text,) in texts}
                note("reference, jieba's segments ready", released(by_it.__getitem__))
                note("reference, with jieba", released(by_jieba))
    cells = {}
    for name, some in seconds.items():
        rate = len(texts) / statistics.median(some)
        ratio = statistics.median(base / own for own, base in zip(some, seconds[BASE], strict=True))
        cells[name] = f"{figures(rate)} ({ratio:.2f})"
    return cells


_worker: Ours | None = None


def start(home: str, size: int) -> None:
    """Make ready what a worker process makes trees with."""
    global _worker
    _worker = Ours(AliasGenerator(open_kb("hownet", home)), size)


def work(texts: Sequence[tuple[str, ...]]) -> int:
    """Make the trees of some texts, and return how many tokens they have."""
    assert _worker is not None
    return sum(map(len, _worker(texts)))


def spread_out(home: str, task: str, size: int, count: int, rounds: int, processes: int) -> Table:
    """Return throughput by the clock with one worker process, and with several."""
    texts = texts_of(DATA / task / "train.tsv.xz", count)
    chunks = [texts[index : index + CHUNK] for index in range(0, len(texts), CHUNK)]
    seconds: dict[int, list[float]] = {1: [], processes: []}
    with contextlib.ExitStack() as stack:
        pools = {
            many: stack.enter_context(ProcessPoolExecutor(many, initializer=start, initargs=(home, size)))
            for many in seconds
        }
        for turn in range(rounds + 1):  # the first is not counted: processes start, memories fill
            for many, pool in pools.items():
                began = time.perf_counter()
                for _ in pool.map(work, chunks):
                    pass
                if turn:
                    seconds[many].append(time.perf_counter() - began)
    rows = []
    for many, some in seconds.items():
        ratio = statistics.median(base / own for base, own in zip(seconds[1], some, strict=True))
        rows.append([f"{many}", figures(len(texts) / statistics.median(some)), f"{ratio:.2f}"])
    notes = f"""
{len(texts):,} sentences of {task} at {size} tokens, {CHUNK} a call, trees left where they are made; seconds
by the clock, in turn, {rounds} rounds after one that is not counted.
"""
    return Table(
        title="Sentence trees: worker processes",
        notes=notes,
        columns=("processes", "trees a second", "over one"),
        rows=rows,
    )


# -- equality -----------------------------------------------------------------


def same(flat: FlatTree, released: tuple[list[str], list[int], np.ndarray]) -> bool:
    """Say whether a tree is that of the reference, which pads it."""
    tokens, positions, matrix_of_released = released
    count = len(flat)
    return (
        tokens == [*flat.tokens, *[PAD] * (len(tokens) - count)]
        and positions[:count] == flat.positions.tolist()
        and np.array_equal(matrix_of_released > 0, matrix(flat, len(tokens)))
    )


class Compared:
    """How the texts of one file differ.

    Attributes:
        counts: of texts, by kind.
        examples: of texts, by kind and what it is.
    """

    def __init__(self, kb: KnowledgeBase, reference: Reference, frame: Frame) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: Counter[tuple[str, str]] = Counter()
        self._kb, self._reference, self._generator = kb, reference, AliasGenerator(kb)
        self._facts = reference.in_order()
        self._builder = TreeBuilder([self._generator], TreeConfig(relations=reference.predicate))
        cut = cutter(special=reference.special)
        self._unlimited = Flattener(cut, frame)
        self._sized = {size: Flattener(cut, frame, size) for size in SIZES}

    def add(self, texts: tuple[str, ...]) -> None:
        """Compare one text, or pair."""
        [tree] = self._builder([tuple(Document("", text) for text in texts)])
        flat, prefix = self._unlimited(tree), " | ".join(texts)[:40]
        self.counts["texts"] += 1
        self._note("special", {tag for tag in self._reference.special if any(tag in text for text in texts)})
        if not self._explained(flat, texts):
            self._note("otherwise", {prefix})
            return
        for size, flattener in self._sized.items():
            ours = flattener(tree)
            if len(flat) > size:
                text_indices = (flat.branches == 0).nonzero()[0]
                self.counts[f"over {size}"] += 1
                self.counts[f"there {size}"] += bool(text_indices[-1] >= size)
                self.counts[f"here {size}"] += bool((ours.branches == 0).sum() < len(text_indices))
            elif not same(ours, self._reference.tree("", size)):
                self._note("otherwise", {f"at {size}: {prefix}"})

    def _explained(self, flat: FlatTree, texts: tuple[str, ...]) -> bool:
        """Say whether the tree is that of the reference, and note the changes to its segments for that."""
        segmented, spelled = [CLS], {}
        for number, text in enumerate(texts):
            segmented += [SEP] * (number > 0) + segments(self._generator, text, self._reference.special)
            for mention in self._generator.mentions(text):
                if mention.text not in self._facts and mention.candidates is not None:
                    spelled[mention.text] = self._facts[self._kb.key(int(mention.candidates.ids[0]))]
        segmented += [SEP] * (len(texts) > 1)
        bare = [segment for segment in segmented if not segment.isspace()]
        for kind, cut, facts, why in (
            ("equal", segmented, self._facts, {""}),
            ("white space", bare, self._facts, {*segmented} - {*bare}),
            ("spelling", bare, ChainMap(spelled, self._facts), {*spelled}),
        ):
            self._reference.set(cut, facts)
            # One token more than ours: were the reference's tree longer, there would be no padding.
            if same(flat, self._reference.tree("", len(flat) + 1)):
                self._note(kind, why)
                return True
        return False

    def _note(self, kind: str, what: set[str]) -> None:
        self.counts[kind] += bool(what)
        self.examples.update((kind, example) for example in what)


def equality(home: str, folder: Path, count: int) -> list[Table]:
    """Return how many trees of each file are those of the reference, and where they differ."""
    rows, total, examples = [], Counter[str](), Counter[tuple[str, str]]()
    kinds = ["texts", "equal", "white space", "spelling", "otherwise", "special"]
    kinds += [f"{kind} {size}" for size in SIZES for kind in ("over", "there", "here")]
    references = {predicate: Reference(folder, predicate) for predicate in (True, False)}
    with open_kb("hownet", home) as kb:
        for path in sorted(DATA.glob("*/*.xz")):
            texts = texts_of(path, count)
            frame = PAIR if len(texts[0]) > 1 else SINGLE
            compared = Compared(kb, references[path.parent.name not in TAGGED], frame)
            for some in texts:
                compared.add(some)
            total += compared.counts
            examples += compared.examples
            name = f"{path.parent.name}/{path.name.partition('.')[0]}"
            rows.append([name, *(f"{compared.counts[kind]:,}" for kind in kinds)])
    rows.append(["all", *(f"{total[kind]:,}" for kind in kinds)])
    example_rows = [
        [kind, repr(what), f"{many:,}"]
        for selected in kinds[2:6]
        for (kind, what), many in Counter(
            {k: n for k, n in examples.items() if k[0] == selected}
        ).most_common(8)
    ]
    sizes = " and ".join(map(str, SIZES))
    return [
        Table(
            title="Sentence trees: equal to the reference's",
            notes=EQUAL_NOTES.format(count=count, sizes=sizes),
            columns=("file", *kinds),
            rows=rows,
        ),
        Table(
            title="Sentence trees: where they differ",
            notes="The most frequent of each kind, and the number of texts that have them.",
            columns=("kind", "what", "texts"),
            rows=example_rows,
        ),
    ]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", required=True)
    parser.add_argument("--reference", type=Path, required=True, help="a checkout of autoliuweijie/K-BERT")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=1000, help="of sentences of a file")
    parser.add_argument("--only", choices=["speed", "equality"])
    parser.add_argument(
        "--processes", type=int, default=0, help="also throughput with so many; they want as many idle cores"
    )
    chosen = parser.parse_args()
    if chosen.only != "equality":
        reference = Reference(chosen.reference)
        columns = {
            f"{task}, {size}": speed(chosen.home, reference, task, size, chosen.count, chosen.rounds)
            for task in SPEED
            for size in SIZES
        }
        notes = SPEED_NOTES.format(
            count=chosen.count,
            rounds=chosen.rounds,
            rest="as words of jieba's" if JIEBA else "as characters",
            segmenter=WITH_JIEBA if JIEBA else WITHOUT_JIEBA,
        )
        names = [*next(iter(columns.values()))]
        rows = [[name, *(column[name] for column in columns.values())] for name in names]
        print(Table(title="Sentence trees", notes=notes, columns=("", *columns), rows=rows).markdown())
        if chosen.processes:
            for size in SIZES:
                args = chosen.home, SPEED[1], size, chosen.count, chosen.rounds, chosen.processes
                print(spread_out(*args).markdown())
    if chosen.only != "speed":
        for table in equality(chosen.home, chosen.reference, chosen.count):
            print(table.markdown())


if __name__ == "__main__":
    main()
