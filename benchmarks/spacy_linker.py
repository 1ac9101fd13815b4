"""The component `kgkit_linker` of a spaCy pipeline: CPU time over a tokenizer and a `Linker`.

    OMP_NUM_THREADS=1 python -m benchmarks.spacy_linker --home HOME [--kb wordnet] [--model prior]

Paragraphs of WikiText-2's training part. Blocks of texts go in turn through spaCy's blank tokenizer and a
`Linker` of its own, through the pipeline with the component, and through spaCy's `PhraseMatcher` with the
surfaces of the knowledge base, all in one process; then all texts through the pipeline with one and with
two processes, whose CPU seconds are those of all processes together. Every link is compared with the
linker's.
"""

import argparse
import gc
import os
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import chain, islice
from typing import Any, Final, NamedTuple

import spacy
from spacy.matcher import PhraseMatcher
from spacy.tokens import Doc

import kgkit
from benchmarks.english import wikitext
from benchmarks.report import Table
from kgkit.types import Link

BLOCK: Final = 250

NOTES: Final = """
{texts:,} paragraphs of WikiText-2, {tokens:,} tokens, over {kb} with the model {model}: {links:,} links, of
which {equal:,} are as the `Linker` gives them. CPU seconds of one process, blocks of {block} texts in turn;
beside the ratio of the sums the median of those of the blocks. `PhraseMatcher` has the {surfaces:,} surfaces
of the knowledge base, in lower case, and finds them, no more. Of the last rows, CPU seconds are those of all
processes, and seconds of the clock.
"""


class Block(NamedTuple):
    """CPU seconds of a block of texts."""

    linker: float
    component: float
    matcher: float


NAMES: Final = {
    "linker": "tokenizer and `Linker`",
    "component": "pipeline with `kgkit_linker`",
    "matcher": "tokenizer and `PhraseMatcher`",
}
NAME_SAVED: Final = "`Doc.to_bytes` and `from_bytes` of its documents"


def seconds_of(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of a call, and what it returns."""
    gc.collect()
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def comparable(link: Link) -> tuple[Any, ...]:
    """Return what a document keeps of a link."""
    candidates = [(row.entity, row.prior, row.score) for row in link.candidates]
    return (link.start, link.end, link.text, link.entity, link.sense, link.label, link.score, candidates)


def count_equal(docs: Sequence[Any], linked: Sequence[Any]) -> tuple[int, int]:
    """Return the number of links of the linker, and of those that the documents have too, in their order."""
    total = equal = 0
    for doc, document in zip(docs, linked, strict=True):
        links = [comparable(span._.kgkit) for span in doc.spans["kgkit"]]
        expected = [comparable(link) for link in document.links]
        total += len(expected)
        equal += (
            sum(a == b for a, b in zip(links, expected, strict=False)) if links != expected else len(links)
        )
    return total, equal


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of the children that have ended."""
    return sum(
        resource.getrusage(of).ru_utime + resource.getrusage(of).ru_stime
        for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


def run(options: argparse.Namespace) -> Table:
    """Measure, and return the table."""
    texts = list(islice((text for text in chain(*wikitext("train")) if text.strip()), options.texts))
    nlp = spacy.blank("en")
    nlp.add_pipe("kgkit_linker", config={"kb": options.kb, "model": options.model})
    blank = spacy.blank("en")
    matcher = PhraseMatcher(blank.vocab, attr="LOWER")
    surfaces = 0
    with kgkit.open_kb(options.kb) as kb:
        for surface in kb.surfaces():
            matcher.add("surface", [blank.make_doc(surface)])
            surfaces += 1
    linker = kgkit.Linker.open(options.kb, model=options.model)

    def measure(block: list[str]) -> tuple[Block, list[Any], list[Any]]:
        """Return the seconds of a block, its documents, and those that the linker returns."""
        linking, (_, linked) = seconds_of(
            lambda: ([nlp.make_doc(text) for text in block], list(linker(block)))
        )
        component, docs = seconds_of(lambda: list(nlp.pipe(block)))
        matched, _ = seconds_of(lambda: [matcher(blank.make_doc(text)) for text in block])
        return Block(linking, component, matched), docs, linked

    measure(texts[:BLOCK])  # for warming up
    blocks, total, equal, tokens = [], 0, 0, 0
    for begin in range(0, len(texts), BLOCK):
        block, docs, linked = measure(texts[begin : begin + BLOCK])
        counts = count_equal(docs, linked)
        total, equal = total + counts[0], equal + counts[1]
        tokens += sum(map(len, docs))
        blocks.append(block)
    rows = []
    for field, name in NAMES.items():
        seconds, base = (sum(getattr(block, key) for block in blocks) for key in (field, "linker"))
        ratio = statistics.median(getattr(block, field) / block.linker for block in blocks)
        rows.append([name, f"{len(texts):,}", f"{seconds:.2f}", f"{seconds / base:.2f}", f"{ratio:.2f}", ""])
    some = texts[: options.processes]
    docs = list(nlp.pipe(some))
    saved, _ = seconds_of(lambda: [Doc(nlp.vocab).from_bytes(doc.to_bytes()) for doc in docs])
    rows.append([NAME_SAVED, f"{len(some):,}", f"{saved:.2f}", "", "", ""])
    for processes in (1, 2):
        start, clock = cpu_seconds(), time.perf_counter()
        for _ in nlp.pipe(some, n_process=processes, batch_size=100):
            pass
        cpu, clock = cpu_seconds() - start, time.perf_counter() - clock
        name = f"`nlp.pipe(n_process={processes})`"
        rows.append([name, f"{len(some):,}", f"{cpu:.2f}", "", "", f"{clock:.1f}"])
    notes = NOTES.format(
        texts=len(texts), tokens=tokens, kb=options.kb, model=options.model, links=total, block=BLOCK,
        equal=equal, surfaces=surfaces,
    )  # fmt: skip
    columns = ("", "texts", "CPU s", "ratio of sums", "median of blocks", "clock s")
    return Table(title="(x) The component of a spaCy pipeline", notes=notes, columns=columns, rows=rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spacy_linker")
    parser.add_argument("--home", required=True, help="home with the knowledge base")
    parser.add_argument("--kb", default="wordnet")
    parser.add_argument("--model", default="prior")
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=1_000, help="texts for one and two processes")
    options = parser.parse_args()
    os.environ["KGKIT_HOME"] = options.home
    print(run(options).markdown())


if __name__ == "__main__":
    main()
