"""`kgkit evaluate el`: score a linker on entity linking."""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from kgkit.commands.evaluate.confidence import LinkConfidence
from kgkit.commands.evaluate.sets import (
    TOGETHER,
    VersusOption,
    check_sets,
    percents,
    set_names,
    write_compared,
    write_scores,
)
from kgkit.commands.messages import Messages
from kgkit.commands.options import DataOption, JSONOption, KBOption, PredictionsOption, chosen_kb
from kgkit.commands.output import number, typed, write_json, write_line
from kgkit.commands.setting_options import takes_settings
from kgkit.errors import UsageError
from kgkit.files import check_output_path, written
from kgkit.linking.settings import KB_MENTIONS, LinkSettings

if TYPE_CHECKING:
    from kgkit.evaluation import GoldDocument, Labelled, LinkScore
    from kgkit.evaluation.el import LinkOutcome
    from kgkit.evaluation.el_formats import GoldFormat
    from kgkit.evaluation.matching import DocumentCounts
    from kgkit.kb import KnowledgeBase
    from kgkit.linking import Linker
    from kgkit.linking.page_titles import PageTitles
    from kgkit.types import Document, Link, LinkedDocument

_SUFFIXES: Final = (".jsonl", ".ndjson", ".json", ".tsv", ".ttl", ".nt", ".nif", ".spacy")
_SCOPES: Final = {"inkb": "InKB", "nil": "with NIL"}
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


@takes_settings(LinkSettings, "model", "vectors", "device", "coherence", "overlaps", "threshold")
def el(
    data: DataOption,
    kb: KBOption = None,
    mentions: MentionsOption = None,
    redirects: RedirectsOption = None,
    predictions: PredictionsOption = None,
    versus: VersusOption = None,
    report: ReportOption = None,
    as_json: JSONOption = False,
    **values: Any,
) -> None:
    """Score a model on entity linking, with intervals, and count its kinds of errors.

    Reads JSON lines (doc_id, tokens, sentences, and mentions with their tokens and
    entity, null for NIL), texts with links, ELEVANT, KILT, AIDA's columns, NIF and DocBin.
    Entities are keys of the KB, such as titles of pages.
    """
    from kgkit.catalog.runs import recorded
    from kgkit.evaluation import Redirects, links_of, read_predictions, read_redirects
    from kgkit.evaluation.el import document_outcomes, score_outcomes
    from kgkit.evaluation.el_formats import gold_format, writing_predictions
    from kgkit.home import Home
    from kgkit.linking import Linker
    from kgkit.linking.page_titles import PageTitles

    # All candidates that are considered: the score says whether the right one is among them.
    most = LinkSettings.max_candidates or sys.maxsize
    settings = LinkSettings(
        **values, nil=True, top_k=most, mentions=KB_MENTIONS if mentions in ("given", "found") else mentions
    )
    read = [*data, redirects, versus]
    check_sets(read, predictions)
    if report is not None:
        check_output_path(report, (path for path in (*read, predictions) if path is not None))
        if report.suffix.lower() != ".html":
            raise UsageError(f"{report} is to be a page: its name ends in .html")
    if mentions == "given" and settings.overlaps != "longest":
        raise UsageError(
            "--mentions given links all mentions of the data, whether they overlap or not: leave out "
            f"--overlaps {settings.overlaps}"
        )
    messages = Messages(bars=not as_json)
    formats = [gold_format(path) for path in data]
    others = None if versus is None else read_predictions(versus)
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
        write_links = None if predictions is None else stack.enter_context(writing_predictions(predictions))
        write_section = None if report is None else stack.enter_context(_writing_report(report, linker, page))
        confidence, known, compared = LinkConfidence(), set[str](), set[str]()
        given_kb = linker.kb if mentions == "given" else None
        scored: list[_Scored] = []
        for set_name, path, data_format in zip(set_names(data, *_SUFFIXES), data, formats, strict=True):
            own = _Scored.empty(set_name, versus=others is not None)
            for gold, linked in _link_documents(linker, _documents(path, data_format, page, known), given_kb):
                answers = links_of(linked)
                page.look_for(gold)
                outcomes = [*document_outcomes(gold.gold, answers, page)]
                own = own._replace(score=own.score + score_outcomes(outcomes))
                own.counts.add(gold.gold, answers, page)
                if others is not None and own.versus is not None:
                    links = others.get(gold.document.id)
                    if links is not None:
                        compared.add(gold.document.id)
                        _check_spans(versus, gold.document, links)
                    own.versus.add(gold.gold, links or [], page)
                confidence.observe(linked, _verdict(gold, page))
                if write_links is not None:
                    write_links(gold.document, answers, [link.score for link in linked.links])
                if write_section is not None:
                    write_section(gold, linked, outcomes)
                tell(f"{set_name}, {own.score.documents:,} documents", own.score.documents)
            scored.append(own)
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
        if others and not compared:
            raise UsageError(
                f"none of the {len(others):,} documents of {versus} is among the {together.documents:,} of "
                "the data: their ids have to be the same"
            )
    experiment = "D2KB" if mentions == "given" else "A2KB"  # as GERBIL calls them
    if as_json:
        parts = [each.as_dict() for each in shown]
        write_json(
            {
                "kb": kb_name,
                "model": linker.model,
                "mentions": mentions,
                "experiment": experiment,
                "overlaps": settings.overlaps,
                "sets": [
                    {"name": each.name, "data": str(path), "format": data_format, **part}
                    for each, path, data_format, part in zip(scored, data, formats, parts, strict=False)
                ],
                "together": parts[-1],
                "calibration": calibration,
                "not_in_kb": {"entities": len(page.missing), "mentions": page.mentions},
            }
        )
    else:
        write_line(f"model {linker.model}, mentions {mentions} ({experiment})")
        _write(shown)
    if others and (unscored := len(others) - len(compared)):
        messages.write(f"{unscored:,} documents of {versus} are not in the data, and are not scored")
    if page.missing:
        lost = f"{len(page.missing):,} gold entities, of {page.mentions:,} mentions"
        messages.write(f"{lost}, are not in the knowledge base")
    messages.write_omissions([linker.generator.omissions])
    if predictions is not None:
        messages.write(f"{together.links:,} links in {together.documents:,} documents: {predictions}")
    if report is not None:
        messages.write(f"report: {report}")


# -- documents --------------------------------------------------------------


def _documents(
    path: Path, data_format: "GoldFormat", page: "PageTitles", known: set[str]
) -> "Iterator[GoldDocument]":
    """Yield the documents of a data set, and note their ids.

    Of ELEVANT's labels the name is compared where no identifier is a key of the knowledge base.

    Raises (while they are read):
        UsageError: if an id is known, as that document would count twice.
    """
    from kgkit.evaluation import read_gold_data

    sample = islice(read_gold_data(path, "elevant"), _SAMPLED) if data_format == "elevant" else ()
    entities = [entity for gold in sample for entity in gold.entities if entity is not None]
    by_name = bool(entities) and not any(page(entity) in page.kb for entity in entities)
    for gold in read_gold_data(path, data_format, entities="name" if by_name else "id"):
        if gold.document.id in known:
            raise UsageError(
                f"two of the data sets have the document {gold.document.id!r}: score them one at a time"
            )
        known.add(gold.document.id)
        yield page.prefer_known(gold)


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
    pages = {(label.start, label.end): label.pages(page) for label in gold.gold}

    def is_right(link: "Link") -> bool:
        """Return whether span and entity are those of a gold mention."""
        return link.entity is not None and page(link.entity) in pages.get((link.start, link.end), ())

    return is_right


def _check_spans(path: Path | None, document: "Document", links: "Sequence[Labelled]") -> None:
    """Refuse predictions whose spans lie outside of the text: they are of other data."""
    size = len(document.text)
    if outside := next((link for link in links if link.end > size), None):
        raise UsageError(
            f"{path} has a link of {outside.start} to {outside.end} in the document {document.id!r}, which "
            f"ends at {size}: are they predictions for these data?"
        )


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

    @classmethod
    def empty(cls, name: str, *, versus: bool) -> "_Scored":
        """Return a set of no documents."""
        from kgkit.evaluation import LinkScore
        from kgkit.evaluation.matching import DocumentCounts

        return cls(name, LinkScore(), DocumentCounts(), DocumentCounts() if versus else None)

    def as_dict(self) -> dict[str, Any]:
        """Return the scores for JSON."""
        from kgkit.evaluation.matching import compare_counts, measures

        versus = {} if self.versus is None else {"versus": compare_counts(self.versus, self.counts)}
        return {**self.score.as_dict(), "measures": measures(self.counts), **versus}


def _together(sets: Sequence[_Scored]) -> _Scored:
    """Return all data sets as one."""
    total = _Scored.empty(TOGETHER, versus=sets[0].versus is not None)
    for each in sets:
        total = total._replace(score=total.score + each.score)
        total.counts.extend(each.counts)
        if total.versus is not None and each.versus is not None:
            total.versus.extend(each.versus)
    return total


# -- outputs ----------------------------------------------------------------


@contextmanager
def _writing_report(
    path: Path, linker: "Linker", page: "PageTitles"
) -> "Iterator[Callable[[GoldDocument, LinkedDocument, Sequence[LinkOutcome]], None]]":
    """Give a function that writes a document with its links and their outcomes to the page at *path*."""
    from kgkit.evaluation.el_causes import EntityFacts
    from kgkit.evaluation.el_report import REPORT_FOOT, report_head, report_section

    kb = linker.kb

    def name_of(title: str) -> str:
        key = page(title)
        return (kb[key].label or title) if key in kb else title

    def type_of(title: str) -> str:
        key = page(title)
        return next(iter(kb[key].types), "") if key in kb else ""

    facts = EntityFacts(name_of, type_of, page)
    with written(path) as stream:
        stream.write(report_head(f"{linker.model} over {kb.name}").encode())
        yield lambda gold, linked, outcomes: stream.writelines(
            part.encode("utf-8", "replace")
            for part in report_section(gold, linked, outcomes, facts, linker.describe)
        )
        stream.write(REPORT_FOOT.encode())


def _write(scored: Sequence[_Scored]) -> None:
    """Write the tables: ratios, outcomes, measures, and the comparison."""
    from kgkit.evaluation.matching import compare_counts, measures

    def ratios(score: "LinkScore") -> list[str]:
        measured = score.precision, score.recall, score.f1, score.macro_f1, score.accuracy
        return [number(score.mentions), *percents(*measured)]

    def rows_of_measures(counts: "DocumentCounts") -> Iterator[tuple[str, ...]]:
        for matching, scopes in measures(counts).items():
            for scope, score in scopes.items():
                cells = percents(score["precision"], score["recall"])
                for name in ("f1", "macro_f1"):
                    cells += [*percents(score[name]), " to ".join(percents(*score["intervals"][name]))]
                yield matching, _SCOPES[scope], *cells

    headings = "mentions", "P", "R", "F1", "macro F1", "accuracy"
    write_scores([], headings, ((each.name, [ratios(each.score)]) for each in scored))
    write_line()
    rows = ((each.name, _outcomes(each.score)) for each in scored)
    write_scores(["of", "what became of them"], ["count", "%"], rows)
    write_line()
    headings = "P", "R", "F1", "95 %", "macro F1", "95 %"
    rows = ((each.name, rows_of_measures(each.counts)) for each in scored)
    write_scores(["matching", "entities"], headings, rows)
    write_compared(
        {
            each.name: {
                f"F1, {matching}, {_SCOPES[scope]}": compared["f1"]
                for matching, scopes in compare_counts(each.versus, each.counts).items()
                for scope, compared in scopes.items()
            }
            for each in scored
            if each.versus is not None
        }
    )


def _outcomes(score: "LinkScore") -> Iterator[tuple[str, ...]]:
    """Yield a row for each outcome: of what, which, how many, and their share."""
    mentions, nil, links = score.mentions, score.nil, score.links
    for of, what, count, total in (
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
    ):
        yield of, what, number(count), "".join(percents(count / total) if total else ())
