"""`kgkit evaluate wsd`: score a linker on word sense disambiguation."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from kgkit.commands.messages import Messages
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
from kgkit.linking.settings import LinkSettings

if TYPE_CHECKING:
    from kgkit.evaluation import Comparison, Scores
    from kgkit.kb import KnowledgeBase
    from kgkit.linking import Linker
    from kgkit.types import Mention

Answers = dict[str, tuple[str, ...]]
"""Sense keys by instance id."""

_POS = {"n": "nouns", "v": "verbs", "a": "adjectives", "r": "adverbs"}


@takes_settings(LinkSettings, "model", "vectors", "device", "coherence")
def wsd(
    data: DataOption,
    gold: Annotated[
        list[Path],
        typer.Option(
            "--gold",
            metavar="FILE",
            help="X.gold.key.txt of each --data, in the same order.",
        ),
    ],
    kb: KBOption = None,
    predictions: PredictionsOption = None,
    versus: VersusOption = None,
    as_json: JSONOption = False,
    **values: Any,
) -> None:
    """Score a model on word sense disambiguation, with the first sense of WordNet as baseline.

    Reads the files of the unified framework (Raganato et al. 2017). Spans, lemmas and
    parts of speech are those of the data; every sense of a lemma is a candidate. --versus
    reads the answers of another system, a key file as --predictions writes it, and
    compares by a paired test over instances.
    """
    from kgkit.catalog.runs import recorded
    from kgkit.evaluation import read_gold, write_keys
    from kgkit.evaluation.files import check_gold_files
    from kgkit.home import Home
    from kgkit.linking import Linker

    settings = LinkSettings(**values, max_candidates=None, top_k=0)
    check_gold_files(data, gold)
    check_sets([*data, *gold, *([] if versus is None else [versus])], predictions)
    messages = Messages(bars=not as_json)
    compared = None if versus is None else read_gold(versus)
    names = set_names(data, ".xml", ".data")
    notes: list[str] = []
    if versus is not None and compared is not None:
        keys = {name: read_gold(path) for name, path in zip(names, gold, strict=True)}
        notes = _check_compared(versus, compared, keys)
    linker = Linker.open(chosen_kb(kb), **vars(settings))
    confidence = LinkConfidence()
    sets: list[_Set] = []
    where = Home.find()
    name = linker.model.removesuffix("+graph") if settings.model == "auto" else settings.model
    run = recorded(
        where, command=typed(), device=settings.device, model=name,
        data=[*data, *gold],
        config={"kb": f"{linker.kb.name}@{linker.kb.build}", "model": linker.model,
                "vectors": settings.vectors},
    )  # fmt: skip
    with linker.kb, messages.progress(f"scoring {linker.model}") as tell, run as record:
        for name, of_data, of_gold in zip(names, data, gold, strict=True):
            tell(name)
            sets.append(_Set(name, of_data, of_gold))
            sets[-1].answer(linker, confidence)
        together = _together(sets)
        if predictions is not None:
            write_keys(predictions, together.predictions())
        shown = sets if len(sets) == 1 else [*sets, together]
        scores = [(each.name, each.scores(each.answers), each.scores(each.first)) for each in shown]
        for name, score, _ in scores:
            record.score("wsd", name, "f1", score.overall.f1, score.overall.total)
        differences = [] if compared is None else [each.compared(compared) for each in shown]
        calibration = confidence.record(record, "wsd", shown[-1].name)
        kb_name = f"{linker.kb.name}@{linker.kb.build}"
        unknown = sum(
            1 for senses in together.keys.values() if not any(sense in linker.kb for sense in senses)
        )
        if unknown == len(together.keys):
            raise UsageError(f"none of the gold senses is in knowledge base {kb_name}: is it the right one?")
    if as_json:
        write_json(
            {
                "kb": kb_name,
                "model": linker.model,
                "sets": [
                    {"name": name, "data": str(each.data), "gold": str(each.gold), **_as_dict(score, first),
                     **_versus_field(differences, index)}
                    for index, ((name, score, first), each) in enumerate(zip(scores, sets, strict=False))
                ],
                "together": {**_as_dict(*scores[-1][1:]), **_versus_field(differences, -1)},
                "calibration": calibration,
            }
        )  # fmt: skip
    else:
        _write(scores, linker.model)
        if differences:
            write_line()
            rows = ((each.name, [versus_row(own)]) for each, own in zip(shown, differences, strict=True))
            write_scores([], VERSUS_HEADINGS, rows)
    for note in notes:
        messages.write(note)
    if unknown:
        messages.write(f"the gold senses of {unknown:,} instances are not in the knowledge base")
    without_gold = len(together.pos.keys() - together.keys.keys())
    if without_gold:
        messages.write(f"{without_gold:,} instances have no gold and are not scored")
    if predictions is not None:
        messages.write(f"answers to {len(together.predictions()):,} instances: {predictions}")


@dataclass
class _Set:
    """A data set and what was answered to it."""

    name: str
    data: Path | None = None
    gold: Path | None = None
    keys: Answers = field(default_factory=dict)
    pos: dict[str, str] = field(default_factory=dict)
    answers: Answers = field(default_factory=dict)
    first: Answers = field(default_factory=dict)

    def answer(self, linker: "Linker", confidence: LinkConfidence) -> None:
        """Read the files and answer every instance, by the linker and by the first sense."""
        from kgkit.evaluation import read_documents, read_gold

        assert self.data is not None and self.gold is not None
        self.keys = read_gold(self.gold)
        ranks = _Ranks(linker.kb)
        documents = list(read_documents(self.data))
        for document in documents:
            for mention in document.mentions or ():
                self.pos[mention.id] = mention.pos
                if (sense := ranks.first(mention)) is not None:
                    self.first[mention.id] = (sense,)
        for linked in linker(documents):
            self.answers |= {link.id: (link.sense,) for link in linked.links if link.sense is not None}
            confidence.observe(
                linked, lambda link: link.sense in self.keys[link.id] if link.id in self.keys else None
            )

    def scores(self, answers: Answers) -> "Scores":
        """Score answers to the instances that have gold."""
        from kgkit.evaluation import score

        return score(self.keys, {key: answers[key] for key in self.keys if key in answers}, pos=self.pos)

    def compared(self, other: Answers) -> "Comparison":
        """Return how F1 compares with that of another system's answers."""
        from kgkit.evaluation import compare
        from kgkit.evaluation.columns import f1_of_sums
        from kgkit.evaluation.wsd import instance_columns

        versus, own = (instance_columns(self.keys, answers) for answers in (other, self.answers))
        return compare(versus, own, f1_of_sums)

    def predictions(self) -> Answers:
        """Return the answers in the order of the data."""
        return {instance: self.answers[instance] for instance in self.pos if instance in self.answers}


def _together(sets: list[_Set]) -> _Set:
    """Return one set of all instances.

    Raises:
        UsageError: if two sets have an instance in common: scored together it would count twice.
    """
    union = _Set(TOGETHER)
    for each in sets:
        common = next((instance for instance in each.pos if instance in union.pos), None)
        if common is not None:
            raise UsageError(f"two of the data sets have the instance {common!r}: score them one at a time")
        union.pos |= each.pos
        union.keys |= each.keys
        union.answers |= each.answers
        union.first |= each.first
    return union


def _check_compared(path: Path, answers: Answers, gold: dict[str, Answers]) -> list[str]:
    """Return what is to be said of the answers of another system, before anything is scored.

    Args:
        path: file of the answers.
        answers: answers of the system.
        gold: gold of each set, by its name.

    Raises:
        UsageError: if there are none, or none to the instances of a set: it would be scored as all wrong.
    """
    if not answers:
        raise UsageError(f"{path} is empty: it has no answers to compare with")
    counts = {name: len(answers.keys() & keys.keys()) for name, keys in gold.items()}
    if not any(counts.values()):
        raise UsageError(
            f"none of the {len(answers):,} answers of {path} is to an instance of the data: the ids of both "
            "have to be the same"
        )
    if missing := [name for name, count in counts.items() if not count]:
        raise UsageError(
            f"{path} has no answer to an instance of {', '.join(missing)}: compare on the sets that it "
            "answers, or name a file with answers to all of them"
        )
    messages = []
    if any(count < len(gold[name]) for name, count in counts.items()):
        shares = ", ".join(f"{count:,} of {len(gold[name]):,} of {name}" for name, count in counts.items())
        messages.append(f"instances that {path} answers, the others count as not answered: {shares}")
    if unscored := len(answers.keys() - set(chain.from_iterable(gold.values()))):
        messages.append(f"answers of {path} to instances without gold, which are not scored: {unscored:,}")
    return messages


class _Ranks:
    """The first sense of a lemma, as the KB's source orders them: by the attribute `rank` of a sense."""

    def __init__(self, kb: "KnowledgeBase") -> None:
        self.kb = kb
        self._first_senses: dict[tuple[str, str], str | None] = {}

    def first(self, mention: "Mention") -> str | None:
        """Return the key of the sense that comes first; None if the KB has none for the mention."""
        key = mention.lemma, mention.pos
        if key not in self._first_senses:
            results = self.kb.candidates(mention.lemma, pos=mention.pos, prefer_case=False)
            senses = [
                self.kb[candidate.sense]
                for candidate in self.kb.decode(results)
                if candidate.sense is not None
            ]
            ranked = [sense for sense in senses if "rank" in sense.attributes]
            best = min(ranked, key=lambda sense: int(sense.attributes["rank"]), default=None)
            self._first_senses[key] = None if best is None else best.key
        return self._first_senses[key]


def _as_dict(score: "Scores", first: "Scores") -> dict[str, Any]:
    def parts(scores: "Scores") -> dict[str, Any]:
        by_pos = {pos: part.as_dict() for pos, part in scores.by_pos.items()}
        return {"overall": scores.overall.as_dict(), "by_pos": by_pos}

    return {**parts(score), "first_sense": parts(first)}


def _versus_field(differences: "list[Comparison]", index: int) -> dict[str, Any]:
    return {"versus": {"f1": differences[index]}} if differences else {}


def _write(scores: list[tuple[str, "Scores", "Scores"]], model: str) -> None:
    def rows(score: "Scores", first: "Scores") -> Iterator[tuple[str, ...]]:
        """Yield a row for all parts of speech, then one for each."""
        for pos, part in {"": score.overall, **score.by_pos}.items():
            baseline = first.by_pos[pos] if pos else first.overall
            ratios = percents(part.precision, part.recall, part.f1, baseline.f1)
            yield _POS.get(pos, "all"), number(part.total), *ratios

    write_line(f"model {model}")
    headings = "instances", "P", "R", "F1", "first sense F1"
    write_scores(["part"], headings, ((name, rows(score, first)) for name, score, first in scores))
