"""`kgkit evaluate el`: score a linker on entity linking."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kgkit.commands.confidence import (
    ConfidenceRecorder,
    ReliabilityOption,
    check_reliability,
    report_confidence,
)
from kgkit.commands.evaluate.el_data import (
    DataFormatOption,
    GoldSets,
    LabelFieldOption,
    LinkVerdict,
    MentionsOption,
    RedirectsOption,
    link_documents,
)
from kgkit.commands.evaluate.el_measures import (
    ComparedSystem,
    measures_as_dict,
    versus_as_dict,
    write_measures,
    write_versus,
)
from kgkit.commands.evaluate.el_outputs import (
    LinkOutputs,
    NifOption,
    PrefixOption,
    ReportOption,
    WriteOutcomes,
)
from kgkit.commands.evaluate.sets import TOGETHER, check_sets, percents, write_scores
from kgkit.commands.evaluate.versus import VersusOption
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
from kgkit.linking.settings import KB_MENTIONS, LinkSettings

if TYPE_CHECKING:
    from kgkit.evaluation import LinkScore
    from kgkit.evaluation.matching import DocumentCounts
    from kgkit.linking.page_titles import PageTitles

NamedScores = list[tuple[str, "LinkScore"]]
"""Names of data sets, with their scores."""


@takes_settings(LinkSettings, "model", "vectors", "device", "coherence", "overlaps", "threshold")
def el(
    data: DataOption,
    data_format: DataFormatOption = None,
    entities: LabelFieldOption = "id",
    kb: KBOption = None,
    mentions: MentionsOption = None,
    redirects: RedirectsOption = None,
    predictions: PredictionsOption = None,
    versus: VersusOption = None,
    report: ReportOption = None,
    nif: NifOption = None,
    iri_prefix: PrefixOption = "http://en.wikipedia.org/wiki/",
    reliability: ReliabilityOption = None,
    as_json: JSONOption = False,
    **values: Any,
) -> None:
    """Score a model on entity linking, with intervals, and count its kinds of errors.

    Reads JSON lines (doc_id, tokens, sentences, and mentions with their tokens and
    entity, null for NIL), ELEVANT, KILT, AIDA's columns, NIF and DocBin. Entities are
    titles of pages, as are the keys of the KB.
    """
    from kgkit.catalog.runs import recorded
    from kgkit.evaluation import Redirects, read_redirects
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
    outputs = LinkOutputs(predictions=predictions, nif=nif, report=report, prefix=iri_prefix)
    outputs.check(files)
    check_reliability(reliability)
    messages = Messages(bars=not as_json)
    if mentions == "given" and settings.overlaps != "longest":
        raise UsageError(
            "--mentions given links all mentions of the data, whether they overlap or not: leave out "
            f"--overlaps {settings.overlaps}"
        )
    sets = GoldSets(data, data_format, entities, iri_prefix)
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
        recorder, writers = ConfidenceRecorder(linker), outputs.open(stack, linker, page)
        scored = _score_sets(
            sets, recorder, page, compared, writers, given_mentions=mentions == "given", tell=tell
        )
        for set_name, score in scored.shown:
            record.score("el", set_name, f"micro f1, mentions {mentions}", score.f1, score.mentions)
            record.score("el", set_name, f"accuracy, mentions {mentions}", score.accuracy, score.mentions)
        calibration = report_confidence(
            recorder, record, "el", scored.shown[-1][0], reliability, detail=f", mentions {mentions}"
        )
        if page.mentions == scored.together.mentions > 0:
            names = "elevant" in sets.formats.values() and entities == "id"
            hint = "; --entities name compares the names of ELEVANT's labels" if names else ""
            raise UsageError(
                f"none of the gold entities is in knowledge base {kb_name}: is it the right one?{hint}"
            )
        unscored = None if compared is None else compared.check(scored.together.documents)
    if as_json:
        write_json(
            {
                "kb": kb_name,
                "model": linker.model,
                "mentions": mentions,
                "experiment": _experiment(mentions),
                "overlaps": settings.overlaps,
                **scored.as_dict(data, sets.formats),
                "calibration": calibration,
                "not_in_kb": {"entities": len(page.missing), "mentions": page.mentions},
            }
        )
    else:
        _write(scored, linker.model, mentions)
    if unscored is not None:
        messages.write(unscored)
    if page.missing:
        lost = f"{len(page.missing):,} gold entities, of {page.mentions:,} mentions"
        messages.write(f"{lost}, are not in the knowledge base")
    messages.write_omissions([linker.generator.omissions])
    if reliability is not None:
        messages.write(f"how sure the links are: {reliability}")
    outputs.report_written(messages, scored.together)


class _ScoredSets(NamedTuple):
    """The data sets with their scores.

    Attributes:
        scores: score of each set.
        counts: what the measures are computed of, by set.
        compared: links of another system, by set; None: there is none.
    """

    scores: NamedScores
    counts: "list[DocumentCounts]"
    compared: ComparedSystem | None

    @property
    def together(self) -> "LinkScore":
        """Score of all sets."""
        first, *others = [score for _, score in self.scores]
        return sum(others, first)

    @property
    def shown(self) -> NamedScores:
        """Scores of each set and, where there are several, of all."""
        return self.scores if len(self.scores) == 1 else [*self.scores, (TOGETHER, self.together)]

    @property
    def measures(self) -> list[tuple[str, dict[str, Any]]]:
        """Measures of each that is shown, by name."""
        return _with_names(self.shown, [measures_as_dict(each) for each in _with_sum(self.counts)])

    @property
    def versus(self) -> list[tuple[str, dict[str, Any]]]:
        """The same beside another system; empty if there is none."""
        if self.compared is None:
            return []
        pairs = zip(_with_sum(self.compared.sets), _with_sum(self.counts), strict=True)
        return _with_names(self.shown, [versus_as_dict(*pair) for pair in pairs])

    def as_dict(self, data: Sequence[Path], formats: Mapping[Path, str]) -> dict[str, Any]:
        """Return `sets` and `together`, as JSON has them.

        Args:
            data: files of the sets.
            formats: format of each.
        """
        measures, versus = self.measures, self.versus
        sets = [
            {"name": name, "data": str(path), "format": formats[path], **score.as_dict(), "measures": own,
             **_versus_field(versus, index)}
            for index, ((name, score), path, (_, own)) in enumerate(
                zip(self.scores, data, measures, strict=False)
            )
        ]  # fmt: skip
        together = {**self.together.as_dict(), "measures": measures[-1][1], **_versus_field(versus, -1)}
        return {"sets": sets, "together": together}


def _score_sets(
    sets: GoldSets,
    recorder: ConfidenceRecorder,
    page: "PageTitles",
    compared: ComparedSystem | None,
    writers: Sequence[WriteOutcomes],
    *,
    given_mentions: bool,
    tell: ProgressCallback,
) -> _ScoredSets:
    """Link the documents of each set, and score their links.

    Args:
        sets: data sets.
        recorder: linker, and what it records of its confidence.
        page: entities of titles.
        compared: predictions of another system; None: there is none.
        writers: what gets each document with its links.
        given_mentions: whether the mentions of the data are linked.
        tell: what shows progress.
    """
    from kgkit.evaluation import LinkScore
    from kgkit.evaluation.el import document_outcomes, score_outcomes
    from kgkit.evaluation.matching import DocumentCounts

    scored = _ScoredSets([], [], compared)
    kb = recorder.linker.kb if given_mentions else None
    for name, documents in sets:
        total, counts = LinkScore(), DocumentCounts()
        if compared is not None:
            compared.begin_set()
        for gold, answers in link_documents(recorder, documents, kb):
            page.look_for(gold)
            outcomes = [*document_outcomes(gold.gold, answers, page)]
            total += score_outcomes(outcomes)
            counts.add(gold.gold, answers, page)
            if compared is not None:
                compared.add(gold.document.id, gold.gold, page, gold.document.text)
            recorder.observe(LinkVerdict(gold, page))
            for write in writers:
                write(gold, recorder.linked, answers, outcomes)
            tell(f"{name}, {total.documents:,} documents", total.documents)
        scored.scores.append((name, total))
        scored.counts.append(counts)
    return scored


def _experiment(mentions: str) -> str:
    """Return what GERBIL calls a run: D2KB where mentions are given, else A2KB."""
    return "D2KB" if mentions == "given" else "A2KB"


def _with_sum(counts: "list[DocumentCounts]") -> "list[DocumentCounts]":
    """Return the counts of each set and, where there are several, of all."""
    from kgkit.evaluation.matching import DocumentCounts

    if len(counts) == 1:
        return counts
    total = DocumentCounts()
    for each in counts:
        total.extend(each)
    return [*counts, total]


def _with_names(scores: NamedScores, measures: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    return [(name, own) for (name, _), own in zip(scores, measures, strict=True)]


def _versus_field(measures: list[tuple[str, dict[str, Any]]], index: int) -> dict[str, Any]:
    return {"versus": measures[index][1]} if measures else {}


def _write(scored: _ScoredSets, model: str, mentions: str) -> None:
    """Write the tables: ratios, outcomes, measures, and the comparison."""
    scores = scored.shown

    def ratios(score: "LinkScore") -> list[str]:
        measures = score.precision, score.recall, score.f1, score.macro_f1, score.accuracy
        return [number(score.mentions), *percents(*measures)]

    def outcomes(score: "LinkScore") -> Iterator[tuple[str, ...]]:
        """Yield a row for each outcome: of what, which, how many, and their share."""
        for of, what, count, total in _outcome_counts(score):
            yield of, what, number(count), "".join(percents(count / total) if total else ())

    write_line(f"model {model}, mentions {mentions} ({_experiment(mentions)})")
    headings = "mentions", "P", "R", "F1", "macro F1", "accuracy"
    write_scores([], headings, ((name, [ratios(score)]) for name, score in scores))
    write_line()
    rows = ((name, outcomes(score)) for name, score in scores)
    write_scores(["of", "what became of them"], ["count", "%"], rows)
    write_line()
    write_measures(scored.measures)
    if scored.compared is not None:
        write_line()
        write_versus(scored.versus)


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
