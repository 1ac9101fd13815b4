"""The part of a joint linker that documents of a user's own have taught, beside its networks.

    s'(c) = s(c) + w · φ(c)

φ(c) are

    score      1, log q and f: how ready the linker is to link, and how much either counts
    counts     how often these documents link the surface to c, to other entities and to nothing, with any
               capitals and as it is written; how often they link c by any name
    posterior  log of (n(c) + κ p(c)) / (n(NIL) + κ p(NIL)), less the same without counts n
    features   those of the mention, the candidate and its sort, which the networks read too, with mean 0 and
               deviation 1 in training

w = 0 is the linker that comes with kgkit. `kgkit.training.linkers.joint` fits w.

M  mentions    R  candidates of all of them    F  numbers of φ
"""

import csv
from collections import Counter
from collections.abc import Sequence
from math import log1p
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kgkit.kb import KnowledgeBase
from kgkit.linking.joint import candidate_features, mention_features, unspaced
from kgkit.linking.joint.network import LARGEST, SMALLEST
from kgkit.linking.joint.types import SORTS
from kgkit.linking.scoring import Scores
from kgkit.models.arrays import read_archive
from kgkit.models.manifest import damaged
from kgkit.text import fold
from kgkit.types import NO_CANDIDATES, Ids, Matrix, Numbers

if TYPE_CHECKING:
    from kgkit.linking.joint.scorer import State

FILE: Final = "adaptation.npz"
COUNTS_FILE: Final = "counts.tsv"
ADAPTED: Final = "precision"
"""Setting of a model that was adapted."""

SCORE: Final = ("constant", "log q", "learnt")
COUNTED: Final = (
    "links", "links to nothing", "links to others", "links as written", "links to nothing as written",
    "links of the entity", "unseen", "posterior",
)  # fmt: skip
FEATURES: Final = (
    *SCORE, *COUNTED, *mention_features.FEATURES, *unspaced.FEATURES, *candidate_features.FEATURES, *SORTS
)  # fmt: skip

_MOST: Final = 10**9  # of a count
_KAPPA: Final = 2.0
_LEAST: Final = 1e-9
_WIDEST: Final = 6.0  # deviations, as of the networks


class SurfaceCounts:
    """How often documents link each surface, and to what.

    Attributes:
        rows: counts by `(surface, id of the entity)`; None for surfaces that are linked to nothing.
    """

    def __init__(self) -> None:
        self.rows = Counter[tuple[str, int | None]]()
        self._links = Counter[tuple[str, int]]()  # by the folded surface
        self._folded = Counter[tuple[str, bool]]()
        self._written = Counter[tuple[str, bool]]()
        self._entities = Counter[int]()

    def add(self, surface: str, entity: int | None, count: int = 1) -> None:
        """Count a mention, or with a count below 0 take it away.

        Args:
            surface: its text.
            entity: id of its entity; None for a surface that means none of the knowledge base.
            count: number of times.
        """
        surface = _spaced(surface)
        folded, linked = fold(surface), entity is not None
        self.rows[surface, entity] += count
        self._folded[folded, linked] += count
        self._written[surface, linked] += count
        if entity is not None:
            self._links[folded, entity] += count
            self._entities[entity] += count

    def features(
        self, surfaces: Sequence[str], candidates: Sequence[Ids], shares: Sequence[Scores]
    ) -> Matrix:
        """Return (R, F) in the order of `COUNTED`.

        Args:
            surfaces: texts of the mentions.
            candidates: (C,) ids of the candidates of each.
            shares: (C,) their probabilities without counts.
        """
        rows = list[tuple[float, ...]]()
        for surface, ids, share in zip(surfaces, candidates, shares, strict=True):
            written, numbers = _spaced(surface), ids.tolist()
            folded = fold(written)
            linked, nothing = self._folded[folded, True], self._folded[folded, False]
            own = [self._links[folded, number] for number in numbers]
            as_written = [log1p(self._written[written, is_link]) for is_link in (True, False)]
            posterior = _posterior(np.array(own), nothing, share) if linked + nothing else np.zeros(len(own))
            rows += [
                (log1p(count), log1p(nothing), log1p(linked - count), *as_written,
                 log1p(self._entities[number]), float(not linked + nothing), gain)
                for count, number, gain in zip(own, numbers, posterior.tolist(), strict=True)
            ]  # fmt: skip
        return np.array(rows, np.float32).reshape(-1, len(COUNTED))

    def save(self, folder: Path, kb: KnowledgeBase) -> None:
        """Write the counts into a model's folder, with the keys of entities."""
        with (folder / COUNTS_FILE).open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
            for (surface, entity), count in self.rows.items():
                if count > 0:
                    writer.writerow([surface, "" if entity is None else kb.key(entity), count])

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase) -> "SurfaceCounts":
        """Read the counts of a model; those of entities that *kb* does not have any more are left out.

        Raises:
            DamagedModel: if the file is none of surfaces, keys and counts.
        """
        counts = cls()
        try:
            with (folder / COUNTS_FILE).open(encoding="utf-8", newline="") as stream:
                for surface, key, count in csv.reader(stream, delimiter="\t"):
                    entity = kb.get(key) if key else None
                    if not 1 <= int(count) <= _MOST:
                        raise ValueError(f"{surface!r} has the count {count[:20]}, expected is 1 to {_MOST}")
                    if entity is not None or not key:
                        counts.add(surface, None if entity is None else entity.id, int(count))
        except (OSError, ValueError, csv.Error) as error:
            raise damaged(folder, f"{COUNTS_FILE}: {error}") from error
        return counts


class Adaptation(NamedTuple):
    """Weights of φ, and the counts that are part of it.

    Attributes:
        counts: links of surfaces in the documents of the training.
        weights: (F,), w.
        mean, deviation: (f,) of the features in training, the last f of φ.
    """

    counts: SurfaceCounts
    weights: Matrix
    mean: Matrix
    deviation: Matrix

    def gain(self, state: "State", log_q: Scores, learnt: Scores, shares: Sequence[Scores]) -> Scores:
        """Return w · φ, (R,).

        Args:
            state: features of a document.
            log_q, learnt: (R,) the parts of the score s.
            shares: (C,) probabilities of each mention's candidates by s.
        """
        surfaces = [mention.text for mention in state.mentions]
        counted = self.counts.features(surfaces, candidate_ids(state), shares)
        return self.scores(own_features(state, log_q, learnt), counted)

    def scores(self, own: Matrix, counted: Matrix) -> Scores:
        """Return w · φ, (R,), of `own_features` and those of counts."""
        scores: Scores = self.scaled(own, counted) @ self.weights
        return scores

    def scaled(self, own: Matrix, counted: Matrix) -> Matrix:
        """Return φ, (R, F), of `own_features` and those of counts."""
        of_score, features = own[:, : len(SCORE)], own[:, len(SCORE) :]
        features = np.clip((features - self.mean) / self.deviation, -_WIDEST, _WIDEST)
        return np.concatenate([of_score, counted, features], axis=1, dtype=np.float32)

    def save(self, folder: Path, kb: KnowledgeBase) -> None:
        """Write it into a model's folder."""
        arrays = {name: getattr(self, name).astype(np.float32) for name in self._fields if name != "counts"}
        np.savez(folder / FILE, **arrays)
        self.counts.save(folder, kb)

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase) -> "Adaptation":
        """Read what `save` wrote.

        Raises:
            DamagedModel: if a file cannot be read, or is of other numbers.
        """
        arrays = read_archive(folder / FILE)
        scaled = len(FEATURES) - len(SCORE + COUNTED)
        expected = {"weights": (len(FEATURES),), "mean": (scaled,), "deviation": (scaled,)}
        for name, shape in expected.items():
            if name not in arrays or arrays[name].shape != shape:
                found = arrays[name].shape if name in arrays else "missing"
                raise damaged(folder, f"{name} in {FILE} is {found}, expected is {shape}")
            if not (np.abs(arrays[name]) <= LARGEST).all():
                raise damaged(folder, f"{name} in {FILE} has numbers beyond {LARGEST:g}")
        if not (arrays["deviation"] >= SMALLEST).all():
            raise damaged(folder, f"deviation in {FILE} has numbers below {SMALLEST:g}")
        own = {name: arrays[name].astype(np.float32) for name in expected}
        return cls(SurfaceCounts.load(folder, kb), **own)


def own_features(state: "State", log_q: Scores, learnt: Scores) -> Matrix:
    """Return (R, F) of `FEATURES`, but for those of counts."""
    owners = np.repeat(np.arange(len(state.sizes)), state.sizes)
    score = np.stack([np.ones_like(log_q), log_q, learnt], axis=1)
    return np.concatenate([score, state.of_mentions[owners], state.of_candidates, state.sorts], axis=1)


def candidate_ids(state: "State") -> list[Ids]:
    """Return the ids (C,) of the candidates of each mention."""
    return [(mention.candidates or NO_CANDIDATES).ids for mention in state.mentions]


def _posterior(own: Numbers, nothing: int, share: Scores) -> Matrix:
    """Return the posterior (C,) of candidates.

    Args:
        own: (C,) links of the surface to each candidate.
        nothing: links of it to nothing.
        share: (C,) probabilities without counts.
    """
    null = max(0.0, 1 - float(share.sum()))
    gain = np.log((own + _KAPPA * share + _LEAST) / (share + _LEAST))
    result: Matrix = gain - np.log((nothing + _KAPPA * null + _LEAST) / (null + _LEAST))
    return result


def _spaced(surface: str) -> str:
    return " ".join(surface.split())
