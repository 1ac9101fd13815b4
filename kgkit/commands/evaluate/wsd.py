"""`kgkit evaluate wsd`: score a linker on word sense disambiguation."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgkit.commands.evaluate.confidence import LinkConfidence
from kgkit.commands.evaluate.sets import (
    TOGETHER,
    VersusOption,
    check_sets,
    percents,
    set_names,
    versus_field,
    write_compared,
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
    from kgkit.evaluation.wsd import read_keys
    from kgkit.home import Home
    from kgkit.linking import Linker

    settings = LinkSettings(**values, max_candidates=None, top_k=0)
    check_gold_files(data, gold)
    check_sets([*data, *gold, versus], predictions)
    messages = Messages(bars=not as_json)
    names = set_names(data, ".xml", ".data")
    compared: Answers = {}
    notes: list[str] = []
    if versus is not None:
        compared = read_keys(versus)
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
        differences = {each.name: {"f1": each.compared(compared)} for each in shown} if compared else {}
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
                     **versus_field(differences, name)}
                    for (name, score, first), each in zip(scores, sets, strict=False)
                ],
                "together": {**_as_dict(*scores[-1][1:]), **versus_field(differences, shown[-1].name)},
                "calibration": calibration,
            }
        )  # fmt: skip
    else:
        _write(scores, linker.model)
        write_compared(differences)
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
        first_sense = _first_senses(linker.kb)
        documents = list(read_documents(self.data))
        for document in documents:
            for mention in document.mentions or ():
                self.pos[mention.id] = mention.pos
                if (sense := first_sense(mention.lemma, mention.pos)) is not None:
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
        UsageError: if there are none to the instances of a set: it would be scored as all wrong.
    """
    counts = {name: len(answers.keys() & keys.keys()) for name, keys in gold.items()}
    if missing := [name for name, count in counts.items() if not count]:
        raise UsageError(
            f"{path} has {len(answers):,} answers, none of them to an instance of {', '.join(missing)}: the "
            "ids of both have to be the same; compare on the sets that it answers"
        )
    messages = []
    if any(count < len(gold[name]) for name, count in counts.items()):
        shares = ", ".join(f"{count:,} of {len(gold[name]):,} of {name}" for name, count in counts.items())
        messages.append(f"instances that {path} answers, the others count as not answered: {shares}")
    if unscored := len(answers.keys() - set(chain.from_iterable(gold.values()))):
        messages.append(f"answers of {path} to instances without gold, which are not scored: {unscored:,}")
    return messages


def _first_senses(kb: "KnowledgeBase") -> Callable[[str, str], str | None]:
    """Return a function from a lemma and a part of speech to the key of the sense that comes first.

    The KB's source orders them, by the attribute `rank` of a sense; None if there is none.
    """

    @cache
    def first_sense(lemma: str, pos: str) -> str | None:
        candidates = kb.decode(kb.candidates(lemma, pos=pos, prefer_case=False))
        senses = [kb[candidate.sense] for candidate in candidates if candidate.sense is not None]
        ranked = [sense for sense in senses if "rank" in sense.attributes]
        best = min(ranked, key=lambda sense: int(sense.attributes["rank"]), default=None)
        return None if best is None else best.key

    return first_sense


def _as_dict(score: "Scores", first: "Scores") -> dict[str, Any]:
    def parts(scores: "Scores") -> dict[str, Any]:
        by_pos = {pos: part.as_dict() for pos, part in scores.by_pos.items()}
        return {"overall": scores.overall.as_dict(), "by_pos": by_pos}

    return {**parts(score), "first_sense": parts(first)}


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
