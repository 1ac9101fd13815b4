"""Training the joint linker on a user's documents: `kgkit.linking.joint.adaptation` has the equations.

It begins as `links-minilm`, whose networks stay as they are, and reads the documents as they will be linked:
what equals a name of the knowledge base and is no link of the gold means nothing, so documents have all of
their links. Weights are the likeliest ones, drawn to 0. How strongly, and whether counts and features have a
weight at all, is decided by documents that were not learnt from: they are divided into five parts, and each
is scored by what was learnt from the others. By these scores the linker is compared with those that need no
training.
"""

import logging
import shutil
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from msgspec import structs, to_builtins
from numpy.typing import NDArray

from kgkit.errors import MissingExtra, UsageError
from kgkit.evaluation.el import LinkScore, score_document
from kgkit.evaluation.el_files import GoldDocument, Labelled
from kgkit.evaluation.significance import paired_test
from kgkit.home import Home
from kgkit.linking.auto import (
    NAMES_MODEL,
    encoder_is_installed,
    is_of_names,
    is_segmented,
    reads_descriptions,
)
from kgkit.linking.corrections import Corrections
from kgkit.linking.joint.adaptation import (
    ADAPTED,
    COUNTED,
    FEATURES,
    SCORE,
    Adaptation,
    SurfaceCounts,
    candidate_ids,
    own_features,
)
from kgkit.linking.joint.network import FILE as NETWORKS
from kgkit.linking.joint.scorer import THRESHOLD, JointScorer, State, shares_of
from kgkit.linking.joint.words import FILE as WORDS
from kgkit.linking.linker import Linker
from kgkit.linking.models import find_scorer
from kgkit.linking.page_titles import PageTitles
from kgkit.linking.scoring import PriorScorer, Scorer, Scores
from kgkit.linking.settings import KB_MENTIONS, LinkSettings
from kgkit.models.folder import find_model_folder, manifest_digest
from kgkit.models.kinds import LINKER
from kgkit.models.manifest import Needs
from kgkit.training.data import count_items, folds_of, hold_out_each_tenth
from kgkit.training.job import Outcome, Plan
from kgkit.training.linkers.comparison import COMPARED, HELPS, ComparisonRow, check_not_worse, f1_row
from kgkit.training.linkers.conditional_logit import fit_corrections
from kgkit.training.linkers.labelled import Entities, MissingGold, none_corrected, read_corrected
from kgkit.training.linkers.settings import EPOCHS, LinkerTraining
from kgkit.types import Ids, Matrix, Numbers, Progress

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase

log = logging.getLogger(__name__)

FOLDS: Final = 5
FEW: Final = 100
"""Documents below which linking with `gloss`, too, takes little time."""

PRECISIONS: Final = (
    (10.0, inf, inf), (10.0, 3.0, inf), (10.0, 3.0, 100.0), (10.0, 3.0, 30.0), (10.0, 3.0, 10.0)
)  # fmt: skip
"""Settings that are tried, the most careful first: 1 / variance, before any data, of the weights of scores,
counts and features; inf: all are 0."""

_SIZES: Final = (len(SCORE), len(COUNTED), len(FEATURES) - len(SCORE) - len(COUNTED))
_OWN: Final = len(FEATURES) - len(COUNTED)
_MOST: Final = 10_000  # mentions that weights are learnt from; all are counted
_NARROWEST: Final = 0.05  # deviation of a feature
_LEAST: Final = 1e-6
_SHOWN: Final = 3  # candidates in an error
_CHANCE: Final = 0.05  # that a linker which is no better is published


class Example(NamedTuple):
    """A document as the linker that comes with kgkit scores it, and what is right.

    Attributes:
        gold: the document.
        spans: of the mentions.
        surfaces: texts of the mentions.
        candidates: (C,) ids of the candidates of each.
        shares: (C,) their probabilities.
        scores: (R,) s of all candidates.
        own: (R, F) of `own_features`.
        right: (C,) which candidates of each mention are right.
        certain: (M,) whether it is known: not of a part of a longer gold mention of the same entity, say.
    """

    gold: GoldDocument
    spans: list[tuple[int, int]]
    surfaces: list[str]
    candidates: list[Ids]
    shares: list[Scores]
    scores: Scores
    own: Matrix
    right: list[NDArray[np.bool_]]
    certain: NDArray[np.bool_]

    @property
    def sizes(self) -> Numbers:
        """(M,) numbers of candidates."""
        return np.array([len(ids) for ids in self.candidates], np.int64)

    def split(self, values: Scores) -> list[Scores]:
        """Return values (R,) as (C,) of each mention."""
        return np.split(values, np.cumsum(self.sizes)[:-1]) if self.candidates else []


class _Mention(NamedTuple):
    """A mention of an `Example`."""

    surface: str
    candidates: Ids
    shares: Scores
    scores: Scores
    own: Matrix


class Trained(NamedTuple):
    """A linker that was adapted, and how it scores documents that it has not learnt from.

    Attributes:
        adaptation: learnt from all documents.
        precisions: the chosen row of `PRECISIONS`.
        scores: score of each document, by what was learnt from others.
    """

    adaptation: Adaptation
    precisions: tuple[float, ...]
    scores: list[LinkScore]


def is_adapted(kb: "KnowledgeBase", training: LinkerTraining) -> bool:
    """Say whether training adapts the joint linker: to a knowledge base of names, unless texts are named."""
    named = (training.encoder, training.vectors, training.reader)
    return training.task == "el" and all(each is None for each in named) and is_of_names(kb)


def plan_adaptation(
    kb: "KnowledgeBase", name: str, training: LinkerTraining, device: str, progress: Progress | None
) -> Plan:
    """Read the data of a linker that begins as the one that comes with kgkit.

    Raises:
        UsageError: if there are too few documents, the gold of most mentions is none of their candidates, or
            epochs are named.
        MissingExtra: if the knowledge base is in Chinese, and nothing cuts texts into words.
        NotThere, SourceError: as `read_gold_data` does.
    """
    if not is_segmented(kb):
        raise MissingExtra("jieba", "zh")
    if training.epochs != EPOCHS:
        raise UsageError(
            f"--epochs is {training.epochs}, and a linker of names trains no network: leave it out, or name "
            "an --encoder"
        )
    home, missing = Home(kb.home.path.parents[1]), MissingGold(kb)
    path = training.corrections
    corrections = None if path is None else Corrections.open(kb, path)
    documents = [*chain.from_iterable(read_corrected(data, corrections) for data in training.data)]
    if path is not None and not documents:
        raise none_corrected(training.data, path)
    if training.mentions:
        documents = hold_out_each_tenth(documents).learn
    # A text that comes twice would be learnt from and held out.
    documents = [*{gold.document.text: gold for gold in documents}.values()]
    if len(documents) < 2:
        raise UsageError(
            f"{'1 text' if documents else 'no text'}; training needs two or more that differ: each is linked "
            "by what was learnt from others, to see whether it helps"
        )
    scorer = find_scorer(NAMES_MODEL, kb, device=device)
    assert isinstance(scorer, JointScorer)
    examples = [*count_items(read_examples(kb, scorer, documents, missing), "reading documents", progress)]
    is_linked = any(right.any() for example in examples for right in example.right)
    nothing = 0 if is_linked else _names(examples)
    if not is_linked:
        if training.mentions or nothing <= missing.labelled or 2 * missing.mentions > missing.labelled:
            raise missing.error()
        log.warning(
            "no document links a name to an entity: it is learnt that names mean nothing, from %s of them",
            f"{nothing:,}",
        )
    _check_keys(kb, examples)
    missing.warn("teach that such names mean none of it")

    def train(_: Path) -> Outcome:
        trained = adapt(kb, examples)
        mentions = sum(label.entity is not None for example in examples for label in example.gold.gold)
        results: dict[str, Any] = {"mentions": float(mentions)}
        if not training.mentions:
            scores = untrained_scores(kb, examples, device, progress) | {name: trained.scores}
            rows = [
                _row(model, sum(own, LinkScore()), nothing, trained=model == name)
                for model, own in scores.items()
            ]
            best = max(rows[:-1], key=lambda row: row.score)
            helps = is_better(trained.scores, scores[best.model])
            helps = check_not_worse(name, rows, keep=training.keep, helps=helps)
            if rows[-1].measure == "F1":
                results |= {"linked_documents": float(len(examples)), "linked_f1": rows[-1].score}
            results |= {COMPARED: to_builtins(rows), HELPS: helps}
        return Outcome(results, partial(_save, kb, home, training, trained))

    return Plan((kb.build, manifest_digest(NAMES_MODEL, home)), train, exclusive=False)


def _row(model: str, score: LinkScore, nothing: int, *, trained: bool) -> ComparisonRow:
    """Return the row of a linker: F1, or of documents without a link the share of names that it leaves alone.

    Args:
        model: name of the linker.
        score: score of all documents.
        nothing: number of names in documents without a link; 0 if they have some.
        trained: whether it is the one that was trained.
    """
    threshold = THRESHOLD if trained or model == NAMES_MODEL else 0.0
    if not nothing:
        return f1_row(model, score, trained=trained, mentions=KB_MENTIONS, threshold=threshold)
    return ComparisonRow(
        model=model, trained=trained, mentions=KB_MENTIONS, threshold=threshold,
        score=max(0.0, 1 - score.links / nothing),
    )  # fmt: skip


def _save(
    kb: "KnowledgeBase",
    home: Home,
    training: LinkerTraining,
    trained: Trained,
    staged: Path,
    _: Mapping[str, Any],
) -> dict[str, Any]:
    """Write a linker, and return its fields of the manifest."""
    folder = find_model_folder(NAMES_MODEL, home)
    for file in (NETWORKS, WORDS):
        shutil.copyfile(folder / file, staged / file)
    trained.adaptation.save(staged, kb)
    base = LINKER.read(folder)
    fields = (
        "type",
        "encoder",
        "vectors",
        "version",
        "fingerprint",
        "reader",
        "temperature",
        "texts",
        "threshold",
    )
    return {
        **{field: getattr(base, field) for field in fields},
        "task": training.task,
        "needs": Needs(kbs={kb.name: kb.build}),
        "config": {ADAPTED: [value if value < inf else None for value in trained.precisions]},
    }


# -- documents ------------------------------------------------------------------


def read_examples(
    kb: "KnowledgeBase", scorer: JointScorer, documents: Sequence[GoldDocument], missing: MissingGold
) -> Iterator[Example]:
    """Yield documents as a linker scores them, with the names of the knowledge base as mentions.

    Args:
        kb: knowledge base that is linked to.
        scorer: the linker, which is not adapted.
        documents: documents with gold.
        missing: counter of entities that *kb* does not have.
    """
    recorded = deque[_Mention]()

    def record(state: State, log_q: Scores, learnt: Scores, shares: Sequence[Scores]) -> Scores:
        cuts = np.cumsum(state.sizes)[:-1]
        scores, own = (np.split(part, cuts) for part in (log_q + learnt, own_features(state, log_q, learnt)))
        surfaces = (mention.text for mention in state.mentions)
        recorded.extend(
            map(
                _Mention, surfaces, candidate_ids(state), shares, scores, own
            )  # no more than there are mentions
        )
        return np.zeros_like(learnt)

    scorer.adaptation = record
    entities = Entities(kb, missing)
    texts = (structs.replace(gold.document, mentions=None) for gold in documents)
    linked = Linker(kb, LinkSettings(nil=True, threshold=0.0), scorer=scorer)(texts)
    for gold, document in zip(documents, linked, strict=True):
        mentions = [recorded.popleft() for _ in document.links]
        spans = [(link.start, link.end) for link in document.links]
        meant = {(label.start, label.end): entities(label) for label in gold.gold}
        right = [
            np.isin(mention.candidates, meant.get(span, []))
            for mention, span in zip(mentions, spans, strict=True)
        ]
        certain = [
            span in meant or not _is_part(span, mention.candidates, meant)
            for mention, span in zip(mentions, spans, strict=True)
        ]
        no_scores, no_rows = np.empty(0, np.float32), np.empty((0, _OWN), np.float32)
        yield Example(
            gold, spans, [each.surface for each in mentions], [each.candidates for each in mentions],
            [each.shares for each in mentions],
            np.concatenate([no_scores, *(each.scores for each in mentions)]),
            np.concatenate([no_rows, *(each.own for each in mentions)]), right, np.array(certain, np.bool_),
        )  # fmt: skip
    scorer.adaptation = None


def _is_part(span: tuple[int, int], candidates: Ids, meant: Mapping[tuple[int, int], list[int]]) -> bool:
    """Say whether a span overlaps a gold mention of one of its candidates."""
    start, end = span
    return any(
        begin < end and start < stop and not set(ids).isdisjoint(candidates.tolist())
        for (begin, stop), ids in meant.items()
    )


def _names(examples: Sequence[Example]) -> int:
    """Return the number of names in documents of which it is known whether they mean something."""
    return sum(int((example.certain & (example.sizes > 0)).sum()) for example in examples)


def _check_keys(kb: "KnowledgeBase", examples: Sequence[Example]) -> None:
    """Make sure that the gold of mentions is mostly one of their candidates, where *kb* has both.

    Raises:
        UsageError: if it is none for more than half; has an example.
    """
    entities, count, wrong = Entities(kb, None), 0, list[tuple[str, str, Ids]]()
    for example in examples:
        meant = {(label.start, label.end): label for label in example.gold.gold}
        for span, surface, ids, right in zip(
            example.spans, example.surfaces, example.candidates, example.right, strict=True
        ):
            label = meant.get(span)
            if len(ids) and label is not None and label.entity is not None and entities(label):
                count += 1
                if not right.any():
                    wrong.append((surface, label.entity, ids))
    if 2 * len(wrong) > count:
        surface, key, ids = wrong[0]
        own = ", ".join(
            f"{entity.key} ({entity.label})" for entity in kb.store.entities(ids[:_SHOWN].tolist())
        )
        more = f" and {len(ids) - _SHOWN:,} more" if len(ids) > _SHOWN else ""
        raise UsageError(
            f"the gold entities of {len(wrong):,} of {count:,} mentions are none of their candidates: "
            f"{surface!r} → {key}; its candidates are {own}{more}. Are the keys of the data those of "
            f"{kb.name}@{kb.build}?"
        )


# -- weights --------------------------------------------------------------------


def adapt(kb: "KnowledgeBase", examples: Sequence[Example]) -> Trained:
    """Return the adaptation to documents, as strong as makes the others of them likeliest.

    Of those that are as likely but for one standard error it is the most careful one (Breiman et al. 1984).
    """
    folds = min(FOLDS, len(examples))
    likelihoods = np.zeros((len(PRECISIONS), len(examples)))
    scored: list[list[LinkScore]] = [[] for _ in PRECISIONS]
    page = PageTitles(kb)
    for own in folds_of(len(examples), folds):
        learn = [example for example, is_own in zip(examples, own.tolist(), strict=True) if not is_own]
        adaptations = fit(learn, PRECISIONS)
        for number in np.flatnonzero(own).tolist():
            example = examples[number]
            for place, adaptation in enumerate(adaptations):
                scores = adapted_scores(example, adaptation)
                likelihoods[place, number] = log_likelihood(example, scores)
                scored[place].append(score_document(example.gold.gold, links_of(kb, example, scores), page))
    less = likelihoods[likelihoods.sum(1).argmax()] - likelihoods  # (P, D)
    chosen = int((less.sum(1) <= less.std(1) * len(examples) ** 0.5).argmax())
    [adaptation] = fit(examples, PRECISIONS[chosen : chosen + 1])
    return Trained(adaptation, PRECISIONS[chosen], scored[chosen])


def fit(examples: Sequence[Example], precisions: Sequence[tuple[float, ...]]) -> list[Adaptation]:
    """Return the adaptation to documents, for each row of precisions."""
    counts = SurfaceCounts()
    for example in examples:
        _count(counts, example, 1)
    counted = []
    for example in examples:  # as if its document had not been seen
        _count(counts, example, -1)
        counted.append(counts.features(example.surfaces, example.candidates, example.shares))
        _count(counts, example, 1)
    own = np.concatenate([example.own for example in examples])
    features = own[:, len(SCORE) :]
    deviation = np.maximum(features.std(0), _NARROWEST).astype(np.float32)
    mean, weights = features.mean(0).astype(np.float32), np.zeros(len(FEATURES), np.float32)
    begin = Adaptation(counts, weights, mean, deviation)
    choices = _Choices.of(examples, begin.scaled(own, np.concatenate(counted)))
    return [begin._replace(weights=choices.weights(np.repeat(row, _SIZES))) for row in precisions]


class _Choices(NamedTuple):
    """Candidates that weights are learnt from; NIL is one of each mention, with zeros for features.

    Attributes:
        terms: (R, F).
        offsets: (R,).
        right: (R,).
        sizes: (M,) candidates of each mention, NIL being one.
    """

    terms: Matrix
    offsets: Scores
    right: NDArray[np.bool_]
    sizes: Numbers

    @classmethod
    def of(cls, examples: Sequence[Example], terms: Matrix) -> "_Choices":
        """Return the candidates of documents, of many mentions those of some that lie evenly.

        Args:
            examples: documents.
            terms: (R, F) of all their candidates.
        """
        sizes = np.concatenate([example.sizes for example in examples])
        known = np.flatnonzero(np.concatenate([example.certain for example in examples]) & (sizes > 0))
        known = known[:: max(1, -(-len(known) // _MOST))]
        begins, sizes = (np.cumsum(sizes) - sizes)[known], sizes[known]
        ends = np.cumsum(sizes + 1) - 1
        rows = np.full(int(sizes.sum()) + len(sizes), -1)
        is_entity = np.ones(len(rows), np.bool_)
        is_entity[ends] = False
        rows[is_entity] = np.arange(int(sizes.sum())) + np.repeat(begins - (np.cumsum(sizes) - sizes), sizes)
        offsets = np.concatenate([*(example.scores for example in examples), [0]])[rows]
        correct = np.concatenate([*chain.from_iterable(example.right for example in examples), [False]])[rows]
        correct[ends] = ~np.logical_or.reduceat(correct, np.cumsum(sizes + 1) - sizes - 1)
        return cls(terms[rows] * is_entity[:, None], offsets, correct, sizes + 1)

    def weights(self, precisions: Matrix) -> Matrix:
        """Return (F,) weights, 0 where the precision is infinite."""
        free = precisions < inf
        result = np.zeros(len(precisions), np.float32)
        result[free] = fit_corrections(
            self.terms[:, free], self.offsets, self.right, self.sizes, precisions[free].tolist()
        )
        return result


def _count(counts: SurfaceCounts, example: Example, number: int) -> None:
    """Count the mentions of a document, or take them away."""
    for surface, ids, right, certain in zip(
        example.surfaces, example.candidates, example.right, example.certain.tolist(), strict=True
    ):
        if certain and len(ids):
            counts.add(surface, int(ids[right.argmax()]) if right.any() else None, number)


# -- scores ---------------------------------------------------------------------


def adapted_scores(example: Example, adaptation: Adaptation) -> list[Scores]:
    """Return s' (C,) of the candidates of each mention of a document."""
    counted = adaptation.counts.features(example.surfaces, example.candidates, example.shares)
    return example.split(example.scores + adaptation.scores(example.own, counted))


def log_likelihood(example: Example, scores: Sequence[Scores]) -> float:
    """Return log p of what is right in a document."""
    total = 0.0
    for score, right, certain in zip(scores, example.right, example.certain.tolist(), strict=True):
        if certain and len(score):
            weights = np.exp(score - max(0.0, float(score.max())))
            null = np.exp(-max(0.0, float(score.max())))
            of_right = weights[right].sum() if right.any() else null
            total += float(np.log(max(_LEAST, of_right / (weights.sum() + null))))
    return total


def links_of(kb: "KnowledgeBase", example: Example, scores: Sequence[Scores]) -> list[Labelled]:
    """Return the links of a document by the scores of candidates, where NIL has 0."""
    links = []
    for (start, end), ids, score in zip(example.spans, example.candidates, scores, strict=True):
        [share] = shares_of(score, np.array([len(score)]))
        if len(score) and share.max() >= THRESHOLD:
            links.append(Labelled(start, end, kb.key(int(ids[score.argmax()]))))
    return links


def untrained_scores(
    kb: "KnowledgeBase", examples: Sequence[Example], device: str, progress: Progress | None
) -> dict[str, list[LinkScore]]:
    """Return the score of each document by linkers that need no training, by their names."""
    page, documents = PageTitles(kb), [example.gold for example in examples]
    scorers: dict[str, Scorer] = {"prior": PriorScorer()}
    if len(documents) < FEW and reads_descriptions(kb) and encoder_is_installed():
        scorers["gloss"] = find_scorer("gloss", kb, device=device)
    found = {}
    for model, scorer in scorers.items():
        texts = (structs.replace(gold.document, mentions=None) for gold in documents)
        linked = count_items(Linker(kb, scorer=scorer)(texts), f"linking with {model}", progress)
        links = (
            [Labelled(link.start, link.end, link.entity) for link in document.links] for document in linked
        )
        found[model] = [
            score_document(gold.gold, own, page) for gold, own in zip(documents, links, strict=True)
        ]
    found[NAMES_MODEL] = [
        score_document(gold.gold, links_of(kb, example, example.split(example.scores)), page)
        for gold, example in zip(documents, examples, strict=True)
    ]
    return found


def is_better(scores: Sequence[LinkScore], others: Sequence[LinkScore]) -> bool:
    """Say whether the F1 of links of the same documents is higher, by more than chance.

    By a paired test over documents (`kgkit.evaluation.significance`). As it swaps the two linkers' links of
    those in which they differ, five such documents are the fewest that can pass. Where neither has a right
    link, the one with fewer is better.

    Args:
        scores: score of each document.
        others: the same of another linker.
    """
    own, other = (
        np.array([(each.right, each.links + each.mentions) for each in row]) for row in (scores, others)
    )  # (D, 2)
    measure = _f1 if any(score.right for score in (*scores, *others)) else _fewness
    is_higher = measure(own.sum(0)) > measure(other.sum(0))
    return bool(is_higher and paired_test(other, own, measure) <= 2 * _CHANCE)  # a test of both directions


def _f1(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Return F1 of sums (…, 2) of right links, and of links and gold mentions."""
    f1: NDArray[np.float64] = 2 * sums[..., 0] / np.maximum(sums[..., 1], 1)
    return f1


def _fewness(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Return numbers of links, less than 0, of the same sums where no link is right."""
    return -sums[..., 1].astype(np.float64)
