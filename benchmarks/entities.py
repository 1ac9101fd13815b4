"""Linkers of entities on AIDA with its own spans: accuracy, NIL by threshold, calibration.

    python -m benchmarks.entities documents OUT_DIR
    python -m benchmarks.entities held-out OUT_DIR [--half]
    python -m benchmarks.entities table --home HOME --kb aida --model prior --model NAME [--given OUT_DIR]
                                        [--versus NAME]
    python -m benchmarks.entities end-to-end --home HOME --kb aida --tagger conll --model prior --model NAME
                                             [--versus NAME]

The first writes the three sets with the published candidates of each mention (PPRforNED), for `kgkit train
linker --encoder`, `kgkit evaluate el --mentions given`, and `--given`; they must not be passed on. The second
writes the training documents with candidates from the alias table `aida_kb --without testa --without testb
--parts` less what the document's own mentions gave to it, so that a linker is trained on candidates like
those that it gets in a document that nobody has prepared; `--half` writes those with an even number alone,
for a graph of links that the others give (`aida_kb --links half`). HOME holds the KB of `benchmarks.aida_kb`,
vectors of its texts where a model needs them, and the trained models that are named.
"""

import argparse
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

import kgkit
from benchmarks import aida_kb
from benchmarks.harness import REPOSITORY
from benchmarks.report import Table
from benchmarks.significance import OVER_SEEDS, f1_of, seeds_cell
from kgkit.candidates import with_candidates
from kgkit.evaluation.el import LinkScore, score_document
from kgkit.evaluation.el_files import Labelled, Redirects, read_gold_documents, read_redirects
from kgkit.evaluation.significance import Interval, bootstrap_intervals, difference_interval, paired_test
from kgkit.kb import KnowledgeBase
from kgkit.linking import Linker
from kgkit.text import fold
from kgkit.types import Link

DATA: Final = REPOSITORY.parent / "shared" / "data" / "aida"
SETS: Final = ("testa", "testb")
STEPS: Final = 100
BINS: Final = 15

NOTES: Final = """
Spans are those of the data; titles that redirect to one page are equal. Accuracy is over the mentions that
have an entity; `not first`: over those of them whose entity is not the candidate with the best prior. F1 is
over all spans, those that mean nothing in the KB too: a link on one of them is wrong, one whose score is
below the threshold is none; the threshold is the best of a hundred on testa. `ECE` is the expected
calibration error of the scores of the best candidates, in 15 bins, over the mentions that have an entity.
Candidates, where `given`: those published for each mention, which always hold the right one, so that it is an
upper bound. In brackets the interval of 95 % over documents (bootstrap), of these models: what other seeds
would bring is not in it.
"""

PAIRED: Final = """
Models whose names differ in a number at their end are seeds of a model; one without is compared with all.
The difference in the mean F1 of all seeds, its interval over documents, and p of the paired test over
documents, in which all seeds change sides together: both speak of these models on other documents. `p over
seeds` is that of a paired t-test over the seeds' F1, which speaks of other trainings on these documents.
"""

END_TO_END: Final = """
Names are found by a tagger. Strong match, micro and macro F1; a link on a mention that means nothing in the
KB is wrong. A score is the tagger's times the linker's; links below the threshold are none, and the threshold
is the best of fifty on testa.
"""


ERRORS: Final = """
Where the errors are, on testb, at that threshold: what became of the gold mentions that have an entity, and
below them the links that are wrong.
"""

KINDS: Final = {
    "right": "right",
    "wrong_choice": "another candidate, or a score below the threshold",
    "no_candidate": "no right candidate",
    "misplaced": "other boundaries",
    "missed": "not found",
    "link_wrong": "links to a wrong entity",
    "link_on_nil": "links on what means nothing",
    "link_misplaced": "links that overlap a mention",
    "link_nowhere": "links elsewhere",
}
"""Labels of the counts of `LinkScore`."""


class LinkedGold(NamedTuple):
    """A document: its gold mentions, and the links of a model."""

    gold: list[Labelled]
    links: list[Link]


class Answered(NamedTuple):
    """A span: the score of its best candidate (0 for none), whether that is right, whether it has an entity.

    `first` says whether the candidate with the best prior is right.
    """

    score: float
    right: bool
    entity: bool
    first: bool


class Pages:
    """Gives all titles of one page the same name."""

    def __init__(self, kb: KnowledgeBase, moved: Redirects) -> None:
        self.kb, self.moved = kb, moved
        self._page_of: dict[str, str] = {}

    def __call__(self, title: str) -> str:
        page = self._page_of.get(title)
        if page is None:
            entity = self.kb.get(title)
            page = self._page_of[title] = self.moved(title if entity is None else entity.key)
        return page


def documents(out: Path) -> dict[str, int]:
    """Write the sets with the published candidates of mentions; return the number of mentions with some."""
    entities = aida_kb.records(DATA / "candidates", "entities")
    title_of = {entity["id"]: entity["title"] for entity in entities}
    candidates_of = {
        (row["doc_id"], row["mention"]): [title_of[id_] for id_ in row["candidates"] if id_ in title_of]
        for row in aida_kb.records(DATA / "candidates", "mention_candidates")
    }
    out.mkdir(parents=True, exist_ok=True)
    counts = {}
    for split in aida_kb.SPLITS:
        counts[split] = 0
        with (out / f"aida_{split}.jsonl").open("w", encoding="utf-8") as file:
            for document in aida_kb.records(DATA, f"aida_{split}"):
                for number, mention in enumerate(document["mentions"]):
                    if (document["doc_id"], number) in candidates_of:
                        mention["candidates"] = candidates_of[document["doc_id"], number]
                        counts[split] += 1
                file.write(json.dumps(document, ensure_ascii=False) + "\n")
    return counts


def held_out_documents(folder: Path, out: Path, *, half: bool = False) -> tuple[int, int]:
    """Write the training documents with candidates that do not come from their own mentions.

    Args:
        folder: `aida` of the shared data.
        out: a folder; made if it is not there.
        half: write the documents with an even number alone.

    Returns:
        The number of mentions with an entity, and how many of them have it among their candidates.
    """
    entities = [*aida_kb.records(folder / "candidates", "entities")]
    title_of = {entity["id"]: entity["title"] for entity in entities}
    links_to = {entity["title"]: entity["in_count"] for entity in entities}
    entity_of = aida_kb.other_titles(links_to, aida_kb.redirects(folder))
    of_titles: dict[str, set[str]] = defaultdict(set)
    for surface, title in aida_kb.surfaces_of_titles(links_to, entity_of, with_parts=True):
        of_titles[fold(surface)].add(title)
    train = [*aida_kb.records(folder, "aida_train")]
    texts = {
        (document["doc_id"], number): fold(mention["text"])
        for document in train
        for number, mention in enumerate(document["mentions"])
    }
    documents_of: dict[tuple[str, str], set[int]] = defaultdict(set)
    for row in aida_kb.records(folder / "candidates", "mention_candidates"):
        text = texts.get((row["doc_id"], row["mention"]))
        if text is None:
            continue
        for number in row["candidates"]:
            if number in title_of:
                documents_of[text, title_of[number]].add(row["doc_id"])
    of_mentions: dict[str, dict[str, set[int]]] = defaultdict(dict)
    for (surface, title), ids in documents_of.items():
        of_mentions[surface][title] = ids
    out.mkdir(parents=True, exist_ok=True)
    linked = covered = 0
    with (out / "aida_train.jsonl").open("w", encoding="utf-8") as file:
        for document in train:
            if half and document["doc_id"] % 2:
                continue
            for number, mention in enumerate(document["mentions"]):
                surface = texts[document["doc_id"], number]
                elsewhere = {
                    title for title, ids in of_mentions[surface].items() if ids != {document["doc_id"]}
                }
                mention["candidates"] = sorted(of_titles.get(surface, set()) | elsewhere)
                if mention["entity"]:
                    linked += 1
                    gold = entity_of.get(mention["entity"], mention["entity"])
                    covered += not {mention["entity"], gold}.isdisjoint(mention["candidates"])
            file.write(json.dumps(document, ensure_ascii=False) + "\n")
    return linked, covered


def answered(linker: Linker, data: Path, page: Pages) -> Iterator[list[Answered]]:
    """Link the spans of a set, and yield the answers of each document."""
    sets = [*read_gold_documents(data)]
    prepared = [with_candidates(linker.kb, gold.document, gold.candidates) for gold in sets]
    for gold, linked in zip(sets, linker(prepared), strict=True):
        ids = [mention.id for mention in gold.document.mentions or ()]
        gold_of = dict(zip(ids, gold.entities, strict=True))
        answers = []
        for link in linked.links:
            title, best = gold_of[link.id], next(iter(link.candidates), None)
            likely = max(link.candidates, key=lambda candidate: candidate.prior, default=None)
            right, first = (
                None not in (title, candidate) and page(candidate.entity) == page(title)  # type: ignore[arg-type,union-attr]
                for candidate in (best, likely)
            )
            answers.append(Answered(0.0 if best is None else best.score, right, title is not None, first))
        yield answers


def f1(answers: list[Answered], threshold: float) -> float:
    """Return the micro F1 over all spans of links that score *threshold* at least."""
    links = sum(answer.score >= threshold and answer.score > 0 for answer in answers)
    right = sum(answer.right for answer in answers if answer.score >= threshold)
    return 2 * right / max(1, links + sum(answer.entity for answer in answers))


def columns_at(documents: list[list[Answered]], threshold: float) -> NDArray[np.float64]:
    """Return (D, 4): of each document correct links, links, mentions with an entity, and correct of these.

    Links score *threshold* at least; the last column counts all best candidates.
    """
    return np.array(
        [
            [
                sum(each.right for each in answers if each.score >= threshold),
                sum(each.score >= threshold and each.score > 0 for each in answers),
                sum(each.entity for each in answers),
                sum(each.right for each in answers if each.entity),
            ]
            for answers in documents
        ],
        float,
    )


def accuracy_and_f1(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (…, 2) of sums (…, 4) of columns."""
    scores: NDArray[np.float64] = np.stack(
        [sums[..., 3] / np.maximum(sums[..., 2], 1), f1_of(sums[..., :3])], -1
    )
    return scores


def with_interval(score: float, interval: Interval) -> str:
    """Return a score and its interval, in hundredths."""
    return f"{100 * score:.2f} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def error(answers: list[Answered]) -> float:
    """Return the gap between scores and how often they are right, in bins of equal width."""
    sure, right = (
        np.array([getattr(answer, name) for answer in answers], float) for name in ("score", "right")
    )
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, sure, BINS) - np.bincount(bins, right, BINS)
    return float(np.abs(gaps).sum() / max(1, len(answers)))


def best_threshold(documents: list[list[Answered]]) -> float:
    """Return the threshold of the best F1."""
    answers = [answer for of_document in documents for answer in of_document]
    return max((step / STEPS for step in range(STEPS)), key=lambda threshold: f1(answers, threshold))


def row(model: str, sets: dict[str, list[list[Answered]]], seconds: float) -> list[str]:
    """Return the row of a model."""
    threshold = best_threshold(sets["testa"])
    cells = []
    for split in SETS:
        named = [answer for of_document in sets[split] for answer in of_document if answer.entity]
        hard = [answer for answer in named if not answer.first]
        columns = columns_at(sets[split], threshold)
        accuracy, f1_score = accuracy_and_f1(columns.sum(0)).tolist()
        of_accuracy, of_f1 = bootstrap_intervals(columns, accuracy_and_f1)
        cells += [
            with_interval(accuracy, of_accuracy),
            f"{100 * np.mean([answer.right for answer in hard]):.1f}",
            with_interval(f1_score, of_f1),
            f"{error(named):.3f}",
        ]
    return [model, *cells, f"{threshold:.2f}", f"{seconds:.0f}"]


def seeds_of(models: Sequence[str]) -> dict[str, list[str]]:
    """Return the models by their names without the number of a seed at their end."""
    groups: dict[str, list[str]] = defaultdict(list)
    for model in models:
        groups[re.sub(r"-[0-9]+$", "", model)].append(model)
    return groups


def paired_rows(columns: Mapping[str, Mapping[str, NDArray[np.float64]]], versus: str) -> list[list[str]]:
    """Return, for each group of seeds and each set, a row of how it compares with the group *versus*.

    Args:
        columns: by model and by set, (D, 3 or more): of each document correct links, links, and mentions with
            an entity.
        versus: name of the group that the others are compared with.
    """
    groups = {
        (group, split): np.stack([columns[model][split][:, :3] for model in models])
        for group, models in seeds_of([*columns]).items()
        for split in SETS
    }  # (S, D, 3)
    rows = []
    for (group, split), second in groups.items():
        first = groups[versus, split]
        if group == versus:
            continue
        if 1 in (len(first), len(second)):
            seeds = max(len(first), len(second))
            first, second = (np.broadcast_to(side, (seeds, *side.shape[1:])) for side in (first, second))
        difference = [(f1_of(side.sum(1)).mean()) for side in (second, first)]
        wide = [np.concatenate([*side], -1) for side in (first, second)]  # (D, 3 S)
        [interval] = difference_interval(wide[0], wide[1], mean_f1)
        p = paired_test(first, second, f1_of)
        gap = with_interval(difference[0] - difference[1], interval)
        means = [f"{100 * mean:.2f}" for mean in difference]
        over_seeds = seeds_cell(*(f1_of(side.sum(1)) for side in (first, second)))
        rows.append([split, group, versus, *means, gap, f"{p:.4f}", over_seeds])
    return rows


def mean_f1(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (…, 1), the mean F1 of seeds whose columns stand side by side, (…, 3 S)."""
    scores: NDArray[np.float64] = f1_of(sums.reshape(*sums.shape[:-1], -1, 3)).mean(-1, keepdims=True)
    return scores


def linked_sets(linker: Linker) -> dict[str, list[LinkedGold]]:
    """Link the texts of both sets, and return for each document its gold mentions and its links."""
    sets = {}
    for split in SETS:
        documents = [*read_gold_documents(DATA / f"aida_{split}.jsonl.xz")]
        texts = [structs.replace(gold.document, mentions=None) for gold in documents]
        sets[split] = [
            LinkedGold(gold.gold, [*linked.links])
            for gold, linked in zip(documents, linker(texts), strict=True)
        ]
    return sets


def scores_at(documents: list[LinkedGold], threshold: float, page: Pages) -> list[LinkScore]:
    """Return the score of each document's links that score *threshold* at least; the others are NIL."""
    scores = []
    for gold, links in documents:
        answers = [
            Labelled(
                link.start, link.end, link.entity if link.score >= threshold else None,
                tuple(candidate.entity for candidate in link.candidates),
            )
            for link in links
        ]  # fmt: skip
        scores.append(score_document(gold, answers, page))
    return scores


def total_score(scores: Iterable[LinkScore]) -> LinkScore:
    """Return the score of all documents."""
    return sum(scores, LinkScore())


def end_to_end_scores(linker: Linker, page: Pages) -> tuple[float, dict[str, list[LinkScore]]]:
    """Link what the tagger finds, and return the best threshold on testa, and scores by set and document."""
    sets = linked_sets(linker)
    tried = [2 * step / STEPS for step in range(STEPS // 2)]
    threshold = max(tried, key=lambda value: total_score(scores_at(sets["testa"], value, page)).f1)
    return threshold, {split: scores_at(sets[split], threshold, page) for split in SETS}


def print_end_to_end(chosen: argparse.Namespace) -> None:
    """Write the tables of models that link the mentions of a tagger: scores, errors by kind, comparisons."""
    rows, errors, columns = [], {}, {}
    with kgkit.open_kb(chosen.kb, home=chosen.home) as kb:
        page = Pages(kb, read_redirects(DATA / "redirects.json.xz"))
        for model in chosen.model:
            linker = Linker.open(kb, model=model, mentions=chosen.tagger, coherence=chosen.coherence)
            threshold, scores = end_to_end_scores(linker, page)
            total = {split: total_score(scores[split]) for split in SETS}
            cells = [f"{100 * total[split].f1:.1f} / {100 * total[split].macro_f1:.1f}" for split in SETS]
            rows.append([linker.model, f"{threshold:.2f}", *cells])
            errors[linker.model] = total["testb"]
            columns[model] = {split: columns_of(scores[split]) for split in SETS}
    title = f"AIDA, end to end, candidates of {chosen.kb}"
    heads = ("model", "threshold", "testa, micro / macro F1", "testb, micro / macro F1")
    print(Table(title=title, notes=END_TO_END, columns=heads, rows=rows).markdown())
    kinds = [
        [label, *(f"{getattr(score, kind):,}" for score in errors.values())] for kind, label in KINDS.items()
    ]
    print(Table(title=f"{title}, errors", notes=ERRORS, columns=("kind", *errors), rows=kinds).markdown())
    if chosen.versus:
        print_paired(title, columns, chosen.versus)


def columns_of(scores: list[LinkScore]) -> NDArray[np.float64]:
    """Return (D, 3): of each document correct links, links, and mentions with an entity."""
    return np.array([[score.right, score.links, score.mentions] for score in scores], float)


def print_paired(title: str, columns: dict[str, dict[str, NDArray[np.float64]]], versus: str) -> None:
    """Write the table of models beside those of the name *versus*."""
    names = ("set", "model", "versus", "F1", "F1 versus", "difference", "p", OVER_SEEDS)
    rows = paired_rows(columns, versus)
    print(Table(title=f"{title}, paired", notes=PAIRED, columns=names, rows=rows).markdown())


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.entities")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("documents", "held-out"):
        writer = verbs.add_parser(verb)
        writer.add_argument("out", type=Path, metavar="OUT_DIR")
    writer.add_argument("--half", action="store_true", help="documents with an even number alone")
    table, end_to_end = verbs.add_parser("table"), verbs.add_parser("end-to-end")
    for parsed in (table, end_to_end):
        parsed.add_argument("--home", type=Path, required=True)
        parsed.add_argument("--kb", default="aida")
        parsed.add_argument("--model", action="append", required=True)
        parsed.add_argument("--coherence", choices=["graph"])
        parsed.add_argument(
            "--versus", metavar="NAME", help="model, without the number of a seed, to compare with"
        )
    end_to_end.add_argument("--tagger", required=True, help="whose names are linked")
    table.add_argument("--given", type=Path, metavar="OUT_DIR", help="with the published candidates")
    chosen = parser.parse_args()
    if chosen.verb == "documents":
        print(", ".join(f"{split}: {count:,} mentions" for split, count in documents(chosen.out).items()))
        return
    if chosen.verb == "held-out":
        linked, covered = held_out_documents(DATA, chosen.out, half=chosen.half)
        print(
            f"train: {linked:,} mentions with an entity, {covered:,} of them with it among their candidates"
        )
        return
    if chosen.verb == "end-to-end":
        print_end_to_end(chosen)
        return
    rows, answers = [], {}
    with kgkit.open_kb(chosen.kb, home=chosen.home) as kb:
        page = Pages(kb, read_redirects(DATA / "redirects.json.xz"))
        for model in chosen.model:
            began = time.process_time()
            linker = Linker.open(kb, model=model, coherence=chosen.coherence, nil=True, top_k=30)
            where, suffix = (chosen.given, "jsonl") if chosen.given else (DATA, "jsonl.xz")
            sets = {split: [*answered(linker, where / f"aida_{split}.{suffix}", page)] for split in SETS}
            answers[model] = sets
            rows.append(row(linker.model, sets, time.process_time() - began))
    columns = ["model"]
    for split in SETS:
        columns += [split, f"{split}, not first", f"{split}, F1 with NIL", f"{split}, ECE"]
    title = f"AIDA, spans given, candidates {'given' if chosen.given else f'of {chosen.kb}'}"
    print(Table(title=title, notes=NOTES, columns=(*columns, "threshold", "CPU s"), rows=rows).markdown())
    if chosen.versus:
        columns_by_set = {
            model: {split: columns_at(sets[split], best_threshold(sets["testa"])) for split in SETS}
            for model, sets in answers.items()
        }
        print_paired(title, columns_by_set, chosen.versus)


if __name__ == "__main__":
    main()
