"""The mentions and the threshold of a linker with a tagger, chosen on documents that were held out.

A score is the tagger's times the linker's, so a threshold decides both: whether a span is a name, and
whether it means an entity. It has the highest micro F1, by strong matching, on one document in ten of the
data, which neither the linker nor a tagger that was trained on the same files has learnt from. The names of
the knowledge base are tried there in the place of the tagger's, and linkers without training beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from msgspec import structs, to_builtins
from numpy.typing import NDArray

from kgkit.evaluation.el import LinkScore, score_document
from kgkit.evaluation.el_files import GoldDocument, Labelled
from kgkit.evaluation.el_formats import read_gold_data
from kgkit.home import Home
from kgkit.linking.auto import NAMES_MODEL, is_of_names
from kgkit.linking.linker import Linker
from kgkit.linking.models import find_scorer, open_linker
from kgkit.linking.page_titles import PageTitles
from kgkit.linking.scoring import PriorScorer, Scorer
from kgkit.linking.settings import KB_MENTIONS
from kgkit.models.folder import lasting_name, manifest_digest
from kgkit.models.kinds import LINKER
from kgkit.models.opening import Opening
from kgkit.models.publishing import make_manifest
from kgkit.tagging.mention_tagger import MentionTagger
from kgkit.training.data import count_items, hold_out_each_tenth
from kgkit.training.job import Outcome, Plan
from kgkit.training.linkers.comparison import COMPARED, HELPS, ComparisonRow, check_not_worse, f1_row
from kgkit.training.linkers.settings import LinkerTraining
from kgkit.types import Progress

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase

_STEPS: Final = 100


class Threshold(NamedTuple):
    """A threshold with the score of the links above it.

    Attributes:
        value: the threshold.
        score: score of all documents.
        held_out_f1: micro F1 where each document has the threshold that is best on the others; with a
            single document the threshold is 0.
    """

    value: float
    score: LinkScore
    held_out_f1: float


def choose_threshold(
    linker: Linker, documents: Sequence[GoldDocument], progress: Progress | None = None, steps: int = _STEPS
) -> Threshold:
    """Return the threshold with the highest micro F1 of a linker's links, out of 100 that lie evenly.

    Args:
        linker: linker that finds the mentions itself, with a threshold of 0.
        documents: documents with gold.
        progress: callback with the documents linked.
        steps: number of the lowest thresholds that are tried; 1: only 0.
    """
    page = PageTitles(linker.kb)
    texts = [structs.replace(gold.document, mentions=None) for gold in documents]
    linked = [*count_items(linker(texts), "linking what is held out", progress)]
    scores: list[list[LinkScore]] = []  # by step, then by document
    for step in range(steps):
        scores.append([])
        for gold, document in zip(documents, linked, strict=True):
            links = [
                Labelled(link.start, link.end, link.entity)
                for link in document.links
                if link.score >= step / _STEPS
            ]
            scores[-1].append(score_document(gold.gold, links, page))
    counts = np.array([[(each.right, each.links + each.mentions) for each in row] for row in scores])
    counts = counts.reshape(steps, len(documents), 2)
    best = int(_micro_f1(counts.sum(1)).argmax())
    others = _micro_f1(counts.sum(1, keepdims=True) - counts)  # (steps, documents), each without one document
    apart = counts[others.argmax(0), np.arange(len(documents))].sum(0)
    return Threshold(best / _STEPS, sum(scores[best], LinkScore()), float(_micro_f1(apart)))


def _micro_f1(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return (…) F1 of (…, 2) counts: right links, and links and gold mentions together."""
    f1: NDArray[np.float64] = 2 * counts[..., 0] / np.maximum(counts[..., 1], 1)
    return f1


def compare_finders(
    kb: "KnowledgeBase",
    name: str,
    scorer: Scorer,
    tagger: MentionTagger,
    tagger_name: str,
    documents: Sequence[GoldDocument],
    progress: Progress | None = None,
    *,
    device: str = "auto",
) -> list[ComparisonRow]:
    """Return the F1 of a linker and of those without training, with the names of a tagger and of *kb*.

    The threshold of the linker is the best on the same documents, and its F1 is of thresholds that are the
    best on the others (with few documents, the best one fits them alone); the others have no threshold.

    Args:
        kb: knowledge base that is linked to.
        name: name of the linker.
        scorer: the linker.
        tagger: the tagger.
        tagger_name: its name.
        documents: documents with gold.
        progress: callback with the documents linked.
        device: torch device of the linker that comes with kgkit for names.
    """
    rows, scorers = [], {"prior": PriorScorer(), name: scorer}
    if is_of_names(kb):
        scorers = {NAMES_MODEL: find_scorer(NAMES_MODEL, kb, device=device), **scorers}
    for mentions, finder in ((tagger_name, tagger), (KB_MENTIONS, None)):
        for model, own in scorers.items():
            linker, trained = Linker(kb, scorer=own, tagger=finder), model == name
            chosen = choose_threshold(linker, documents, progress, _STEPS if trained else 1)
            rows.append(
                f1_row(
                    model, chosen.score, trained=trained, mentions=mentions, threshold=chosen.value,
                    f1=chosen.held_out_f1,
                )
            )  # fmt: skip
    return rows


def plan_threshold(
    begin: Callable[[], Plan],
    kb: "KnowledgeBase",
    name: str,
    training: LinkerTraining,
    *,
    device: str = "auto",
    progress: Progress | None = None,
) -> Plan:
    """Return the plan of a linker's training that chooses mentions and a threshold behind it.

    Args:
        begin: function that reads the data, and returns the plan without a threshold; it is called when the
            tagger is known to be one.
        kb: knowledge base that is linked to.
        name: name of the linker.
        training: settings, with a tagger.
        device: torch device of the tagger and of the linker's encoder.
        progress: callback with the documents linked.

    Raises:
        UnknownName, NotThere: if there is no such tagger.
        UsageError: if the model is none.
        DamagedModel: if it cannot be read.

    The plan fails with `BuildFailed` where the linker is worse than no training.
    """
    home = Home(kb.home.path.parents[1])
    digest = manifest_digest(training.mentions, home, "tagger")
    tagger_name = lasting_name(home, training.mentions)
    tagger = MentionTagger.open(training.mentions, home=home, device=device)
    plan = begin()

    def train(work: Path) -> Outcome:
        outcome = plan.train(work)

        def save(staged: Path, results: Mapping[str, Any]) -> dict[str, Any]:
            fields = dict(outcome.save(staged, results))
            fields["needs"] = structs.replace(fields["needs"], models=(tagger_name,))
            manifest = make_manifest(LINKER, name, **fields)
            scorer: Scorer = open_linker(staged, manifest, Opening(home=home, device=device, kb=kb))
            documents = chain.from_iterable(map(read_gold_data, training.data))
            held_out = hold_out_each_tenth([*documents]).held_out
            rows = (
                compare_finders(kb, name, scorer, tagger, tagger_name, held_out, progress, device=device)
                if held_out
                else []
            )
            helps = check_not_worse(name, rows, keep=training.keep)
            # Of equal ones the tagger, which was asked for.
            best = max((row for row in rows if row.trained), key=lambda row: row.score, default=None)
            mentions = tagger_name if best is None else best.mentions
            if mentions == KB_MENTIONS:
                mentions, fields["needs"] = "", structs.replace(fields["needs"], models=())
            scores = {
                "linked_documents": float(len(held_out)),
                "linked_f1": best.score if best else 0.0,
                "threshold": best.threshold if best else 0.0,
                COMPARED: to_builtins(rows),
                HELPS: helps,
            }
            return {
                **fields, "mentions": mentions, "threshold": scores["threshold"],
                "results": {**results, **scores},
            }  # fmt: skip

        return Outcome(outcome.results, save)

    needs = structs.replace(plan.needs, models=(*plan.needs.models, tagger_name))
    return Plan((plan.identity, digest), train, exclusive=plan.exclusive, needs=needs)
