"""Linkers of all types on word senses: F1 as publications have it, and where a linker leans on the prior.

    python -m benchmarks.senses --home HOME --model prior --model gloss --model senses [--vectors full]
    python -m benchmarks.senses --home HOME --model gloss --encoder ENCODER

HOME holds WordNet, vectors of its texts, and the trained models that are named; `nearest:NAME` is the
classifier of nearest neighbours over the means of a model of the type `ridge`. With `--encoder` the texts of
the candidates are encoded by it as they are needed, for models that are not trained. Candidates are those of
the gold lemma and part of speech, as the framework has it.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from msgspec import structs

import kgkit
from benchmarks.harness import REPOSITORY
from benchmarks.report import Table
from kgkit.embedding.partial import PartialTextVectors
from kgkit.embedding.text import TextConfig
from kgkit.evaluation.calibration import binned
from kgkit.evaluation.wsd import plain_key, read_documents, read_gold
from kgkit.kb import KnowledgeBase
from kgkit.linking import Linker, LinkSettings, Scorer
from kgkit.linking.gloss import GlossScorer
from kgkit.linking.ridge import RidgeScorer, queries
from kgkit.linking.scoring import Scores, meanings
from kgkit.sorted_ids import match_sorted
from kgkit.types import NO_CANDIDATES, Candidates, Document

DATA: Final = REPOSITORY.parent / "shared" / "data"
FIVE: Final = ("senseval2", "senseval3", "semeval2007", "semeval2013", "semeval2015")

NOTES: Final = """
F1, with candidates of the gold lemma and part of speech, an answer for every instance. `five` are
senseval2, senseval3, semeval2007, semeval2013 and semeval2015 together (7,233 instances in the files at
hand, 7,253 in publications), `four` leaves out semeval2007, which choices were made on. `first` and
`not first`: the instances of the five whose gold is the first sense of WordNet, and the others; `unseen`:
those whose gold sense does not occur in SemCor. `ECE` is the expected calibration error of the scores of
the best candidates, in 15 bins, on the five.
"""


class Nearest(Scorer):
    """The sense whose mean of contexts is nearest; the first candidate, where none of them was seen.

    Peters et al. (2018), "Deep contextualized word representations", 5.3, after
    Melamud et al. (2016).
    """

    batch_size = 32

    def __init__(self, ridge: RidgeScorer) -> None:
        self.ridge, self.name = ridge, f"nearest neighbour ({ridge.name})"

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        """Return scores that sum to 1: nearly all of it is the best candidate's."""
        return [
            [
                self._scored(query, mention.candidates or NO_CANDIDATES)
                for mention, query in zip(
                    document.mentions or (),
                    queries(vectors, len(self.ridge.reader.config.layers), self.ridge.arrays.mean),
                    strict=True,
                )
            ]
            for document, vectors in self.ridge.reader(documents)
        ]

    def _scored(self, query: Scores, candidates: Candidates) -> Scores:
        arrays, keys = self.ridge.arrays, meanings(candidates)
        rows, in_training = match_sorted(arrays.meanings, keys)
        similarity = np.where(in_training, arrays.centroids[rows].astype(np.float32) @ query, -2)
        if not len(keys):
            return similarity
        best: Scores = np.eye(len(keys), dtype=np.float32)[similarity.argmax()]
        return best


class Prediction(NamedTuple):
    """The best candidate of an instance beside its gold.

    Attributes:
        correct: whether it is the gold sense.
        score: its probability.
        pos: part of speech, as WordNet abbreviates it.
        is_first: whether the gold sense is the first of WordNet.
        in_semcor: whether SemCor has the gold sense.
    """

    correct: bool
    score: float
    pos: str
    is_first: bool
    in_semcor: bool


def over_encoder(kb: KnowledgeBase, model: str, encoder: str) -> Linker:
    """Return the linker `gloss` over texts that *encoder* reads as they are needed."""
    if model != "gloss":
        raise SystemExit(f"--encoder is for gloss; {model} has its own")
    vectors = PartialTextVectors.open(kb, TextConfig(name=Path(encoder).name, encoder=encoder))
    scorer = GlossScorer.of(kb, vectors)
    return Linker(kb, LinkSettings(max_candidates=None, nil=True, top_k=1), scorer=scorer)


def nearest(linker: Linker) -> Linker:
    """Return *linker* with the nearest neighbour among the means of its model, which is a `ridge`."""
    if not isinstance(linker.scorer, RidgeScorer):
        raise SystemExit(f"nearest: is for a model of the type ridge; {linker.model} is none")
    linker.scorer = Nearest(linker.scorer)
    return linker


def predictions_on(linker: Linker, name: str, semcor: frozenset[str]) -> list[Prediction]:
    """Link a test set; *semcor* are the keys of SemCor's senses."""
    gold = read_gold(DATA / "wsd" / f"{name}.gold.key.txt")
    documents = list(read_documents(DATA / "wsd" / f"{name}.data.xml"))
    first = _FirstSenses(linker.kb)
    predictions = []
    for document, linked in zip(documents, linker(_with_gold(documents, gold)), strict=True):
        mentions = {mention.id: mention for mention in document.mentions or ()}
        for link in linked.links:
            keys, mention = gold[link.id], mentions[link.id]
            chosen = link.candidates[0].sense if link.candidates else None
            predictions.append(
                Prediction(
                    chosen is not None and plain_key(chosen) in keys, link.score, mention.pos,
                    first.of(mention.lemma, mention.pos) in keys, not semcor.isdisjoint(keys),
                )
            )  # fmt: skip
    if len(predictions) != len(gold):
        raise SystemExit(f"{name}: {len(predictions)} links of {len(gold)} instances")
    return predictions


def _with_gold(documents: Sequence[Document], gold: dict[str, tuple[str, ...]]) -> list[Document]:
    """Return documents with those instances alone that have a gold sense."""
    return [
        structs.replace(
            document, mentions=[mention for mention in document.mentions or () if mention.id in gold]
        )
        for document in documents
    ]


class _FirstSenses:
    """The first sense of a lemma in a part of speech, by WordNet's order."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb, self._keys = kb, dict[tuple[str, str], str]()

    def of(self, lemma: str, pos: str) -> str:
        key = (lemma, pos)
        if key not in self._keys:
            candidates = self._kb.candidates(lemma, pos=pos, prefer_case=False)
            senses = [self._kb[int(sense)] for sense in candidates.senses.tolist()]
            best = min(senses, key=lambda sense: int(sense.attributes["rank"]), default=None)
            self._keys[key] = "" if best is None else plain_key(best.key)
        return self._keys[key]


def row(model: str, sets: dict[str, list[Prediction]]) -> list[str]:
    """Return the row of a model."""
    five = [prediction for name in FIVE for prediction in sets[name]]
    four = [prediction for name in FIVE if name != "semeval2007" for prediction in sets[name]]
    cells = [_f1(sets[name]) for name in FIVE]
    cells += [_f1(four), _f1(five), _f1(sets["ALLamended"])]
    cells += [_f1([prediction for prediction in five if prediction.pos == pos]) for pos in "nvar"]
    cells += [
        _f1([prediction for prediction in five if prediction.is_first == is_first])
        for is_first in (True, False)
    ]
    cells += [_f1([prediction for prediction in five if not prediction.in_semcor])]
    return [model, *cells, f"{_calibration_error(five):.3f}"]


def _calibration_error(predictions: list[Prediction]) -> float:
    scores = [prediction.score for prediction in predictions]
    return binned(scores, [prediction.correct for prediction in predictions]).error


def _f1(predictions: list[Prediction]) -> str:
    correct = sum(prediction.correct for prediction in predictions)
    return f"{100 * correct / max(1, len(predictions)):.1f}"


def main() -> None:
    """Write the table to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.senses")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--model", action="append", required=True)
    parser.add_argument("--vectors")
    parser.add_argument("--encoder", help="of the texts, for models that are not trained")
    parser.add_argument("--coherence", choices=["graph"])
    chosen = parser.parse_args()
    if chosen.encoder and (chosen.vectors or chosen.coherence):
        parser.error("--encoder makes vectors of its own, and links without coherence")
    semcor = frozenset(
        key for keys in read_gold(DATA / "semcor" / "semcor.gold.key.txt.xz").values() for key in keys
    )
    rows = []
    with kgkit.open_kb("wordnet", home=chosen.home) as kb:
        for model in chosen.model:
            if chosen.encoder:
                linker = over_encoder(kb, model, chosen.encoder)
            else:
                linker = Linker.open(
                    kb, model=model.removeprefix("nearest:"), coherence=chosen.coherence,
                    vectors=chosen.vectors, max_candidates=None, nil=True, top_k=1,
                )  # fmt: skip
            if model.startswith("nearest:"):
                linker = nearest(linker)
            rows.append(
                row(
                    linker.model,
                    {name: predictions_on(linker, name, semcor) for name in (*FIVE, "ALLamended")},
                )
            )
    columns = (
        "model", *FIVE, "four", "five", "ALLamended", "nouns", "verbs", "adjectives", "adverbs", "first",
        "not first", "unseen", "ECE",
    )  # fmt: skip
    print(Table(title="Word senses", notes=NOTES, columns=columns, rows=rows).markdown())


if __name__ == "__main__":
    main()
