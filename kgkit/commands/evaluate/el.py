"""`kgkit evaluate el`: score a linker on entity linking."""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from kgkit.commands.evaluate.confidence import LinkConfidence
from kgkit.commands.evaluate.sets import (
    TOGETHER,
    VERSUS_HEADINGS,
    VersusOption,
    check_sets,
    percents,
    set_names,
    versus_row,
    write_scores,
)
from kgkit.commands.messages import Messages, ProgressCallback
from kgkit.commands.options import (
    DataOption,
    JSONOption,
    KBOption,
    PredictionsOption,
    chosen_kb,
)
from kgkit.commands.output import number, typed, write_json, write_line
from kgkit.commands.setting_options import takes_settings
from kgkit.errors import UsageError
from kgkit.files import check_output_path, written
from kgkit.linking.settings import KB_MENTIONS, LinkSettings

if TYPE_CHECKING:
    from kgkit.evaluation import GoldDocument, Labelled, LinkScore
    from kgkit.evaluation.el import LinkOutcome
    from kgkit.evaluation.el_causes import EntityFacts
    from kgkit.evaluation.el_formats import GoldFormat
    from kgkit.evaluation.matching import DocumentCounts
    from kgkit.kb import KnowledgeBase
    from kgkit.linking import Linker
    from kgkit.linking.page_titles import PageTitles
    from kgkit.types import Document, Link, LinkedDocument

DATA_SUFFIXES: Final = (".jsonl", ".ndjson", ".json", ".tsv", ".ttl", ".nt", ".nif", ".spacy")
"""How the names of data sets end, without what says how they are compressed."""

NIF_SUFFIXES: Final = (".ttl", ".nif")
"""How the name of a file of predictions ends that are written as NIF."""

_MATCHING: Final = {"strong": "strong", "weak": "weak"}
_SCOPE: Final = {"inkb": "InKB", "nil": "with NIL"}
_SAMPLED: Final = 100  # documents that tell whether identifiers or names are keys of the knowledge base

MentionsOption = Annotated[
    str | None,
    typer.Option(
        "--mentions",
        metavar="WHOSE",
        help="Mentions to link: given (those of the data), found (surfaces of the KB), or those of a "
        "tagger, by its name. By default those of the model's own tagger, else found.",
    ),
]
RedirectsOption = Annotated[
    Path | None,
    typer.Option(
        "--redirects",
        metavar="FILE",
        help="JSON object from title to title of the same page; both count as equal.",
    ),
]
ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Write a page with every document and its errors, by class and type, as .html.",
    ),
]
PrefixOption = Annotated[
    str,
    typer.Option(
        "--iri-prefix",
        metavar="IRI",
        help="What the IRIs of entities begin with in NIF that is written, and in other NIF that is read.",
    ),
]

WriteOutcomes = Callable[
    ["GoldDocument", "LinkedDocument", Sequence["Labelled"], Sequence["LinkOutcome"]], None
]
"""Takes a document with gold, its links, these as they are scored, and the outcomes."""


@takes_settings(LinkSettings, "model", "vectors", "device", "coherence", "overlaps", "threshold")
def el(
    data: DataOption,
    kb: KBOption = None,
    mentions: MentionsOption = None,
    redirects: RedirectsOption = None,
    predictions: PredictionsOption = None,
    versus: VersusOption = None,
    report: ReportOption = None,
    iri_prefix: PrefixOption = "http://en.wikipedia.org/wiki/",
    as_json: JSONOption = False,
    **values: Any,
) -> None:
    """Score a model on entity linking, with intervals, and count its kinds of errors.

    Reads JSON lines (doc_id, tokens, sentences, and mentions with their tokens and
    entity, null for NIL), texts with links, ELEVANT, KILT, AIDA's columns, NIF and DocBin.
    Entities are keys of the KB, such as titles of pages.
    """
    from kgkit.catalog.runs import recorded
    from kgkit.evaluation import Redirects, read_redirects
    from kgkit.evaluation.el_formats import gold_format
    from kgkit.home import Home
    from kgkit.linking import Linker
    from kgkit.linking.page_titles import PageTitles

    # All candidates that are considered: the score says whether the right one is among them.
    most = LinkSettings.max_candidates or sys.maxsize
    settings = LinkSettings(
        **values, nil=True, top_k=most, mentions=KB_MENTIONS if mentions in ("given", "found") else mentions
    )
    files = [*data, *(path for path in (redirects, versus) if path is not None)]
    check_sets(files, None)
    _check_outputs(predictions, report, files)
    messages = Messages(bars=not as_json)
    if mentions == "given" and settings.overlaps != "longest":
        raise UsageError(
            "--mentions given links all mentions of the data, whether they overlap or not: leave out "
            f"--overlaps {settings.overlaps}"
        )
    formats = [(path, gold_format(path)) for path in data]
    compared = None if versus is None else ComparedSystem(versus, iri_prefix)
    linker = Linker.open(chosen_kb(kb), **vars(settings))
    if mentions is None:
        mentions = "found" if linker.tagger is None else linker.tagger.name
    page = PageTitles(linker.kb, Redirects() if redirects is None else read_redirects(redirects))
    kb_name, where = f"{linker.kb.name}@{linker.kb.build}", Home.find()
    name = linker.model.removesuffix("+graph") if settings.model == "auto" else settings.model
    run = recorded(
        where, command=typed(), device=settings.device, model=name, data=data,
        config={"kb": kb_name, "model": linker.model, "vectors": settings.vectors,
                "mentions": mentions, "overlaps": settings.overlaps, "threshold": linker.threshold,
                "redirects": str(redirects)},
    )  # fmt: skip
    with linker.kb, messages.progress(f"scoring {linker.model}") as tell, ExitStack() as stack, run as record:
        confidence = LinkConfidence()
        writers = _open_outputs(predictions, report, iri_prefix, stack, linker, page)
        sets = _gold_sets(formats, iri_prefix, page)
        scored = _score_sets(
            sets, linker, confidence, page, compared, writers, given_mentions=mentions == "given", tell=tell
        )
        shown = scored if len(scored) == 1 else [*scored, _together(scored)]
        for set_name, score, *_ in shown:
            record.score("el", set_name, f"micro f1, mentions {mentions}", score.f1, score.mentions)
            record.score("el", set_name, f"accuracy, mentions {mentions}", score.accuracy, score.mentions)
        calibration = confidence.record(record, "el", shown[-1].name, detail=f", mentions {mentions}")
        together = shown[-1].score
        if page.mentions == together.mentions > 0:
            raise UsageError(
                f"none of the gold entities is in knowledge base {kb_name}: is it the right one?"
            )
        unscored = None if compared is None else compared.check(together.documents)
    if as_json:
        parts = [each.as_dict() for each in shown]
        write_json(
            {
                "kb": kb_name,
                "model": linker.model,
                "mentions": mentions,
                "experiment": _experiment(mentions),
                "overlaps": settings.overlaps,
                "sets": [
                    {"name": each.name, "data": str(path), "format": data_format, **own}
                    for each, (path, data_format), own in zip(scored, formats, parts, strict=False)
                ],
                "together": parts[-1],
                "calibration": calibration,
                "not_in_kb": {"entities": len(page.missing), "mentions": page.mentions},
            }
        )
    else:
        _write(shown, linker.model, mentions)
    if unscored is not None:
        messages.write(unscored)
    if page.missing:
        lost = f"{len(page.missing):,} gold entities, of {page.mentions:,} mentions"
        messages.write(f"{lost}, are not in the knowledge base")
    messages.write_omissions([linker.generator.omissions])
    if predictions is not None:
        messages.write(f"{together.links:,} links in {together.documents:,} documents: {predictions}")
    if report is not None:
        messages.write(f"report: {report}")


# -- data -------------------------------------------------------------------


def _gold_sets(
    formats: "Sequence[tuple[Path, GoldFormat]]", prefix: str, page: "PageTitles"
) -> "Iterator[tuple[str, Iterator[GoldDocument]]]":
    """Yield the data sets, by name, as streams of documents.

    Of ELEVANT's labels the name is compared where no identifier is a key of the knowledge base.

    Raises (while they are read):
        UsageError: if two have a document in common, which would count twice.
    """
    from kgkit.evaluation import read_gold_data

    known: set[str] = set()

    def documents(path: Path, data_format: "GoldFormat") -> "Iterator[GoldDocument]":
        """Yield the documents of a file."""
        sample = islice(read_gold_data(path, "elevant"), _SAMPLED) if data_format == "elevant" else ()
        entities = [entity for gold in sample for entity in gold.entities if entity is not None]
        by_name = bool(entities) and not any(page(entity) in page.kb for entity in entities)
        field: Final = "name" if by_name else "id"
        for gold in read_gold_data(path, data_format, entities=field, prefix=prefix):
            if gold.document.id in known:
                raise UsageError(
                    f"two of the data sets have the document {gold.document.id!r}: score them one at a time"
                )
            known.add(gold.document.id)
            yield gold

    names = set_names([path for path, _ in formats], *DATA_SUFFIXES)
    for name, (path, data_format) in zip(names, formats, strict=True):
        yield name, documents(path, data_format)


def _link_documents(
    linker: "Linker", documents: Iterable["GoldDocument"], kb: "KnowledgeBase | None"
) -> Iterator[tuple["GoldDocument", "LinkedDocument"]]:
    """Yield each document with gold and with links, as the linker gets to them.

    With a *kb*, spans are those of the data, and candidates too where the data have some.
    """
    from msgspec import structs

    from kgkit.candidates import with_candidates

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
        yield waiting.popleft(), linked


def _verdict(gold: "GoldDocument", page: "PageTitles") -> "Callable[[Link], bool]":
    """Return a function that tells whether a link of a document is right."""
    by_span = {(label.start, label.end): label.entity for label in gold.gold}

    def is_right(link: "Link") -> bool:
        """Return whether span and entity are those of a gold mention."""
        entity = by_span.get((link.start, link.end))
        return entity is not None and link.entity is not None and page(entity) == page(link.entity)

    return is_right


class ComparedSystem:
    """Predictions of another system for the same documents.

    Args:
        path: file of them.
        prefix: beginning of the IRIs of entities, in NIF.

    Raises:
        SourceError: if it is no file of predictions.
    """

    def __init__(self, path: Path, prefix: str) -> None:
        from kgkit.evaluation import read_predictions

        self.path = path
        self._links = read_predictions(path, prefix)
        self._unscored = set(self._links)

    def links(self, document: "Document") -> "Sequence[Labelled]":
        """Return the predictions for a document; without any, it has no links.

        Raises:
            UsageError: if a span lies outside of the text: they are of other data.
        """
        links, size = self._links.get(document.id, []), len(document.text)
        self._unscored.discard(document.id)
        if outside := next((link for link in links if link.end > size), None):
            raise UsageError(
                f"{self.path} has a link of {outside.start} to {outside.end} in the document "
                f"{document.id!r}, which ends at {size}: are they predictions for these data?"
            )
        return links

    def check(self, documents: int) -> str | None:
        """Return a message about documents that are not in the data, if there are any.

        Raises:
            UsageError: if no document with predictions is in the data.
        """
        if self._links and len(self._unscored) == len(self._links):
            raise UsageError(
                f"none of the {len(self._links):,} documents of {self.path} is among the {documents:,} of "
                "the data: their ids have to be the same"
            )
        if not self._unscored:
            return None
        return f"{len(self._unscored):,} documents of {self.path} are not in the data, and are not scored"


# -- scores -----------------------------------------------------------------


class _Scored(NamedTuple):
    """A data set with its scores.

    Attributes:
        name: name of the set.
        score: its score.
        counts: counts that the measures are computed of.
        versus: the same of another system; None: there is none.
    """

    name: str
    score: "LinkScore"
    counts: "DocumentCounts"
    versus: "DocumentCounts | None"

    def compared(self) -> dict[str, Any]:
        """Return how F1 differs from the other system's, by matching and scope."""
        from kgkit.evaluation.matching import compare_counts

        return {} if self.versus is None else compare_counts(self.versus, self.counts)

    def as_dict(self) -> dict[str, Any]:
        """Return the scores for JSON."""
        from kgkit.evaluation.matching import measures

        versus = {} if self.versus is None else {"versus": self.compared()}
        return {**self.score.as_dict(), "measures": measures(self.counts), **versus}


def _together(sets: Sequence[_Scored]) -> _Scored:
    """Return all data sets as one."""
    from kgkit.evaluation import LinkScore
    from kgkit.evaluation.matching import DocumentCounts

    total = _Scored(TOGETHER, sum((each.score for each in sets), LinkScore()), DocumentCounts(), None)
    if sets[0].versus is not None:
        total = total._replace(versus=DocumentCounts())
    for each in sets:
        total.counts.extend(each.counts)
        if total.versus is not None and each.versus is not None:
            total.versus.extend(each.versus)
    return total


def _score_sets(
    sets: "Iterable[tuple[str, Iterator[GoldDocument]]]",
    linker: "Linker",
    confidence: LinkConfidence,
    page: "PageTitles",
    compared: "ComparedSystem | None",
    writers: Sequence[WriteOutcomes],
    *,
    given_mentions: bool,
    tell: ProgressCallback,
) -> list[_Scored]:
    """Link the documents of each set, and score their links.

    Args:
        sets: data sets, by name, as streams of documents.
        linker: the linker.
        confidence: what its links are noted in.
        page: entities of titles.
        compared: predictions of another system; None: there is none.
        writers: what gets each document with its links.
        given_mentions: whether the mentions of the data are linked.
        tell: what shows progress.
    """
    from kgkit.evaluation import LinkScore, links_of
    from kgkit.evaluation.el import document_outcomes, score_outcomes
    from kgkit.evaluation.matching import DocumentCounts

    scored = []
    kb = linker.kb if given_mentions else None
    for name, documents in sets:
        total, counts = LinkScore(), DocumentCounts()
        versus = None if compared is None else DocumentCounts()
        for gold, linked in _link_documents(linker, documents, kb):
            answers = links_of(linked)
            page.look_for(gold)
            outcomes = [*document_outcomes(gold.gold, answers, page)]
            total += score_outcomes(outcomes)
            counts.add(gold.gold, answers, page)
            if compared is not None and versus is not None:
                versus.add(gold.gold, compared.links(gold.document), page)
            confidence.observe(linked, _verdict(gold, page))
            for write in writers:
                write(gold, linked, answers, outcomes)
            tell(f"{name}, {total.documents:,} documents", total.documents)
        scored.append(_Scored(name, total, counts, versus))
    return scored


def _experiment(mentions: str) -> str:
    """Return what GERBIL calls a run: D2KB where mentions are given, else A2KB."""
    return "D2KB" if mentions == "given" else "A2KB"


# -- outputs ----------------------------------------------------------------


def _check_outputs(predictions: Path | None, report: Path | None, read: Sequence[Path]) -> None:
    """Refuse files that cannot be written, before anything is computed."""
    paths = [path for path in (predictions, report) if path is not None]
    for index, path in enumerate(paths):
        check_output_path(path, [*read, *paths[:index]])
    if report is not None and report.suffix.lower() != ".html":
        raise UsageError(f"{report} is to be a page: its name ends in .html")


def _open_outputs(
    predictions: Path | None,
    report: Path | None,
    prefix: str,
    stack: ExitStack,
    linker: "Linker",
    page: "PageTitles",
) -> list[WriteOutcomes]:
    """Return the functions that write each document to the files, which appear when *stack* is closed."""
    writers: list[WriteOutcomes] = []
    if predictions is not None:
        writers.append(_open_predictions(predictions, prefix, stack))
    if report is not None:
        writers.append(_open_report(report, stack, linker, page))
    return writers


def _open_predictions(path: Path, prefix: str, stack: ExitStack) -> WriteOutcomes:
    from kgkit.evaluation import writing_links
    from kgkit.evaluation.nif import writing_nif

    if not {suffix.lower() for suffix in path.suffixes[-2:]} & {*NIF_SUFFIXES}:
        write_links = stack.enter_context(writing_links(path))
        return lambda gold, linked, links, outcomes: write_links(gold.document.id, links)
    write_nif = stack.enter_context(writing_nif(path, prefix))
    return lambda gold, linked, links, outcomes: write_nif(
        gold.document, links, [link.score for link in linked.links]
    )


def _open_report(path: Path, stack: ExitStack, linker: "Linker", page: "PageTitles") -> WriteOutcomes:
    from kgkit.evaluation.el_report import REPORT_FOOT, report_head, report_section

    write = stack.enter_context(written(path)).write
    write(report_head(f"{linker.model} over {linker.kb.name}").encode())

    def end(kind: object, error: object, trace: object) -> None:
        if kind is None:
            write(REPORT_FOOT.encode())

    stack.push(end)
    facts = _entity_facts(linker, page)

    def write_section(
        gold: "GoldDocument",
        linked: "LinkedDocument",
        links: "Sequence[Labelled]",
        outcomes: "Sequence[LinkOutcome]",
    ) -> None:
        for part in report_section(gold, linked, outcomes, facts, linker.describe):
            write(part.encode("utf-8", "replace"))

    return write_section


def _entity_facts(linker: "Linker", page: "PageTitles") -> "EntityFacts":
    from kgkit.evaluation.el_causes import EntityFacts

    kb = linker.kb

    def name_of(title: str) -> str:
        key = page(title)
        return (kb[key].label or title) if key in kb else title

    def type_of(title: str) -> str:
        key = page(title)
        return next(iter(kb[key].types), "") if key in kb else ""

    return EntityFacts(name_of, type_of, page)


# -- tables -----------------------------------------------------------------


def _write(scored: Sequence[_Scored], model: str, mentions: str) -> None:
    """Write the tables: ratios, outcomes, measures, and the comparison."""
    from kgkit.evaluation.matching import measures as measures_of

    def ratios(score: "LinkScore") -> list[str]:
        measures = score.precision, score.recall, score.f1, score.macro_f1, score.accuracy
        return [number(score.mentions), *percents(*measures)]

    def outcomes(score: "LinkScore") -> Iterator[tuple[str, ...]]:
        """Yield a row for each outcome: of what, which, how many, and their share."""
        for of, what, count, total in _outcome_counts(score):
            yield of, what, number(count), "".join(percents(count / total) if total else ())

    write_line(f"model {model}, mentions {mentions} ({_experiment(mentions)})")
    headings = "mentions", "P", "R", "F1", "macro F1", "accuracy"
    write_scores([], headings, ((each.name, [ratios(each.score)]) for each in scored))
    write_line()
    rows = ((each.name, outcomes(each.score)) for each in scored)
    write_scores(["of", "what became of them"], ["count", "%"], rows)
    write_line()
    _write_measures([(each.name, measures_of(each.counts)) for each in scored])
    if scored[0].versus is not None:
        write_line()
        _write_versus([(each.name, each.compared()) for each in scored])


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


def _write_measures(scores: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Write a table of the scores of each data set, by every matching and scope."""

    def rows(measures: dict[str, Any]) -> Iterator[tuple[str, ...]]:
        for matching, scopes in measures.items():
            for scope, score in scopes.items():
                names = _MATCHING[matching], _SCOPE[scope]
                yield (
                    *names,
                    *percents(score["precision"], score["recall"]),
                    *_with_interval(score, "f1"),
                    *(_with_interval(score, "macro_f1")),
                )

    headings = "P", "R", "F1", "95 %", "macro F1", "95 %"
    write_scores(["matching", "entities"], headings, ((name, rows(measures)) for name, measures in scores))


def _write_versus(scores: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Write a table of how the linker's F1 compares with another system's."""

    def rows(measures: dict[str, Any]) -> Iterator[tuple[str, ...]]:
        for matching, scopes in measures.items():
            for scope, compared in scopes.items():
                yield _MATCHING[matching], _SCOPE[scope], *versus_row(compared["f1"])

    rows_of_sets = ((name, rows(measures)) for name, measures in scores)
    write_scores(["matching", "entities"], VERSUS_HEADINGS, rows_of_sets)


def _with_interval(score: dict[str, Any], name: str) -> tuple[str, str]:
    return percents(score[name])[0], " to ".join(percents(*score["intervals"][name]))
