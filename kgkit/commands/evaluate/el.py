"""`kgkit evaluate el`: score a linker on entity linking."""

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgkit.commands.confidence import (
    ConfidenceRecorder,
    ReliabilityOption,
    check_reliability,
    report_confidence,
)
from kgkit.commands.evaluate.sets import TOGETHER, check_sets, percents, set_names, write_scores
from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    AllSurfacesOption,
    CoherenceOption,
    DataOption,
    DeviceOption,
    HomeOption,
    JSONOption,
    KBOption,
    MaxCandidatesOption,
    ModelOption,
    OverlapsOption,
    PredictionsOption,
    QuietOption,
    ThresholdOption,
    VectorsOption,
    chosen_kb,
)
from kgkit.commands.output import number, typed, write_json, write_line
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from kgkit.evaluation import GoldDocument, Labelled, LinkScore
    from kgkit.kb import KnowledgeBase
    from kgkit.linking.page_titles import PageTitles
    from kgkit.types import Document, Link

NamedScores = list[tuple[str, "LinkScore"]]
"""Names of data sets, with their scores."""


def el(
    data: DataOption,
    kb: KBOption = None,
    model: ModelOption = "prior",
    vectors: VectorsOption = None,
    device: DeviceOption = "auto",
    coherence: CoherenceOption = None,
    mentions: Annotated[
        str | None,
        typer.Option(
            "--mentions",
            metavar="WHOSE",
            help="Mentions to link: given (those of the data), found (surfaces of the KB), or those of a "
            "tagger, by its name. By default those of the model's own tagger, else found.",
        ),
    ] = None,
    threshold: ThresholdOption = None,
    overlaps: OverlapsOption = "longest",
    all_surfaces: AllSurfacesOption = False,
    max_candidates: MaxCandidatesOption = 30,
    redirects: Annotated[
        Path | None,
        typer.Option(
            "--redirects",
            metavar="FILE",
            help="JSON object from title to title of the same page; both count as equal.",
        ),
    ] = None,
    predictions: PredictionsOption = None,
    reliability: ReliabilityOption = None,
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a model on entity linking, by strong matching, and count its kinds of errors.

    Reads JSON lines: doc_id, tokens, sentences, and mentions with their tokens and
    entity, null for NIL. Entities are titles of pages, as are the keys of the KB.
    """
    from kgkit.catalog.runs import recorded
    from kgkit.evaluation import LinkScore, Redirects, read_redirects, score_document, writing_links
    from kgkit.home import Home
    from kgkit.linking import Linker
    from kgkit.linking.models import KB_MENTIONS
    from kgkit.linking.page_titles import PageTitles
    from kgkit.models.registering import trained_model_name

    check_sets(data if redirects is None else [*data, redirects], predictions)
    check_reliability(reliability)
    messages = Messages(quiet=quiet, bars=not as_json)
    if mentions == "given" and overlaps != "longest":
        raise UsageError(
            "--mentions given links all mentions of the data, whether they overlap or not: leave out "
            f"--overlaps {overlaps}"
        )
    redirect_map = Redirects() if redirects is None else read_redirects(redirects)
    linker = Linker.open(
        chosen_kb(kb, home), home=home, model=model, coherence=coherence, threshold=threshold, nil="mark",
        vectors=vectors, device=device, mentions=KB_MENTIONS if mentions in ("given", "found") else mentions,
        overlaps=overlaps,
        # All that are considered: the score tells whether the right one is among them.
        max_candidates=max_candidates or None, top_k=max_candidates or sys.maxsize,
        all_surfaces=all_surfaces,
    )  # fmt: skip
    if mentions is None:
        mentions = "found" if linker.tagger is None else linker.tagger.name
    scores: NamedScores = []
    recorder = ConfidenceRecorder(linker)
    page, sets, links = PageTitles(linker.kb, redirect_map), _Sets(data), 0
    where = Home.find(home)
    run = recorded(
        where, command=typed(), device=device, model=trained_model_name(where, model), data=data,
        config={"kb": f"{linker.kb.name}@{linker.kb.build}", "model": linker.model, "vectors": vectors,
                "mentions": mentions, "overlaps": overlaps, "threshold": linker.config.threshold,
                "redirects": str(redirects), "all_surfaces": all_surfaces, "max_candidates": max_candidates},
    )  # fmt: skip
    with linker.kb, messages.progress(f"scoring {linker.model}") as tell, ExitStack() as stack, run as record:
        write = None if predictions is None else stack.enter_context(writing_links(predictions))
        for name, documents in sets:
            total = LinkScore()
            for gold, answers in _link_documents(
                recorder, documents, linker.kb if mentions == "given" else None
            ):
                page.look_for(gold)
                total += score_document(gold.gold, answers, page)
                recorder.observe(_Verdict(gold, page))
                if write is not None:
                    write(gold.document.id, answers)
                tell(f"{name}, {total.documents:,} documents", total.documents)
            scores.append((name, total))
            links += total.links
        together = sum((score for _, score in scores), LinkScore())
        shown = scores if len(scores) == 1 else [*scores, (TOGETHER, together)]
        for name, score in shown:
            record.score("el", name, f"micro f1, mentions {mentions}", score.f1, score.mentions)
            record.score("el", name, f"accuracy, mentions {mentions}", score.accuracy, score.mentions)
        calibration = report_confidence(
            recorder, record, "el", shown[-1][0], reliability, detail=f", mentions {mentions}"
        )
        kb_name = f"{linker.kb.name}@{linker.kb.build}"
        if page.mentions == together.mentions > 0:
            raise UsageError(
                f"none of the gold entities is in knowledge base {kb_name}: is it the right one?"
            )
    if as_json:
        write_json(
            {
                "kb": kb_name,
                "model": linker.model,
                "mentions": mentions,
                "overlaps": overlaps,
                "sets": [
                    {"name": name, "data": str(path), **score.as_dict()}
                    for (name, score), path in zip(scores, data, strict=True)
                ],
                "together": together.as_dict(),
                "calibration": calibration,
                "not_in_kb": {"entities": len(page.missing), "mentions": page.mentions},
            }
        )
    else:
        _write(shown, linker.model, mentions)
    if page.missing:
        lost = f"{len(page.missing):,} gold entities, of {page.mentions:,} mentions"
        messages.write(f"{lost}, are not in the knowledge base")
    messages.write_omissions([linker.generator.omissions])
    if reliability is not None:
        messages.write(f"how sure the links are: {reliability}")
    if predictions is not None:
        messages.write(f"{links:,} links in {together.documents:,} documents: {predictions}")


class _Sets:
    """The data sets, by name, as streams of documents.

    Raises (while they are read):
        UsageError: if two have a document in common: scored together it would count twice.
    """

    def __init__(self, data: Iterable[Path]) -> None:
        self.data = list(data)
        self._document_ids: set[str] = set()

    def __iter__(self) -> Iterator[tuple[str, Iterator["GoldDocument"]]]:
        names = set_names(self.data, ".jsonl", ".ndjson", ".json")
        for name, path in zip(names, self.data, strict=True):
            yield name, self._documents(path)

    def _documents(self, path: Path) -> Iterator["GoldDocument"]:
        from kgkit.evaluation import read_gold_documents

        for gold in read_gold_documents(path):
            name = gold.document.id
            if name in self._document_ids:
                raise UsageError(f"two of the data sets have the document {name!r}: score them one at a time")
            self._document_ids.add(name)
            yield gold


class _Verdict:
    """Checks whether a link is right."""

    def __init__(self, gold: "GoldDocument", page: "PageTitles") -> None:
        self.page = page
        self.gold = {(label.start, label.end): label.entity for label in gold.gold}

    def __call__(self, link: "Link") -> bool:
        entity = self.gold.get((link.start, link.end))
        return None not in (entity, link.entity) and self.page(entity or "") == self.page(link.entity or "")


def _link_documents(
    linker: ConfidenceRecorder, documents: Iterable["GoldDocument"], kb: "KnowledgeBase | None"
) -> Iterator[tuple["GoldDocument", list["Labelled"]]]:
    """Yield each document with its links, as the linker gets to them.

    With a *kb*, spans are those of the data, and candidates too where the data have some.
    """
    from msgspec import structs

    from kgkit.candidates import with_candidates
    from kgkit.evaluation import links_of

    waiting: deque[GoldDocument] = deque()

    def inputs() -> Iterator["Document"]:
        """Yield documents without their gold mentions, or with these and their candidates in *kb*."""
        for gold in documents:
            waiting.append(gold)
            if kb is None:
                yield structs.replace(gold.document, mentions=None)
            else:
                yield with_candidates(kb, gold.document, gold.candidates)

    for linked in linker(inputs()):
        yield waiting.popleft(), links_of(linked)


def _write(scores: NamedScores, model: str, mentions: str) -> None:
    def ratios(score: "LinkScore") -> list[str]:
        measures = score.precision, score.recall, score.f1, score.macro_f1, score.accuracy
        return [number(score.mentions), *percents(*measures)]

    def outcomes(score: "LinkScore") -> Iterator[tuple[str, ...]]:
        """Yield a row for each outcome: of what, which, how many, and their share."""
        for of, what, count, total in _outcome_counts(score):
            yield of, what, number(count), "".join(percents(count / total) if total else ())

    write_line(f"model {model}, mentions {mentions}")
    headings = "mentions", "P", "R", "F1", "macro F1", "accuracy"
    write_scores([], headings, ((name, [ratios(score)]) for name, score in scores))
    write_line()
    rows = ((name, outcomes(score)) for name, score in scores)
    write_scores(["of", "what became of them"], ["count", "%"], rows)


def _outcome_counts(score: "LinkScore") -> list[tuple[str, str, int, int]]:
    """Return what was counted, its outcome, how often, and of how many."""
    mentions, nil, links = score.mentions, score.nil, score.links
    return [
        ("mentions", "right", score.right, mentions),
        ("mentions", "wrong, a candidate was right", score.wrong_choice, mentions),
        ("mentions", "wrong, no candidate was right", score.no_candidate, mentions),
        ("mentions", "found with other boundaries", score.misplaced, mentions),
        ("mentions", "not found", score.missed, mentions),
        ("NIL mentions", "linked", score.link_on_nil, nil),
        ("NIL mentions", "not linked", nil - score.link_on_nil, nil),
        ("links", "right", score.right, links),
        ("links", "wrong entity", score.link_wrong, links),
        ("links", "NIL mention", score.link_on_nil, links),
        ("links", "other boundaries", score.link_misplaced, links),
        ("links", "no mention there", score.link_nowhere, links),
    ]
