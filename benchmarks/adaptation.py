"""What `kgkit train linker` gains on documents of a user's own, and what it does with bad ones.

    python -m benchmarks.adaptation --own DIR --home HOME [--only curve|halves|bad]

DIR is a copy of `own_kb` with its places and news made, HOME has its knowledge bases, built as its README
says: letters, firms, terms, de, zh, places and news. AIDA is read from the shared data.

    curve    documents of AIDA's train part over the 5,000 entities of the news, tested on 200 of its testa
    halves   half of a set's documents, tested on the other half; both ways, three times
    bad      20 letters: as they are, with entities shuffled, with half of their links left out; tested on the
             other five, and on all if the gold is wrong

F1 is that of `own_kb/score.py`; *held out* is what the training itself measured, with what it decided by it.
All is computed as the command does, but that a document is read once for all trainings. 5 CPU minutes.
"""

import argparse
import json
import random
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import kgkit
from benchmarks.harness import REPOSITORY
from benchmarks.report import Table
from kgkit.evaluation.el import LinkScore, score_document
from kgkit.evaluation.el_files import GoldDocument, GoldMention, make_gold_document
from kgkit.kb import KnowledgeBase
from kgkit.linking.auto import NAMES_MODEL
from kgkit.linking.joint.scorer import JointScorer
from kgkit.linking.models import find_scorer
from kgkit.linking.page_titles import PageTitles
from kgkit.training.linkers.joint import (
    Example,
    adapt,
    adapted_scores,
    is_better,
    links_of,
    read_examples,
)
from kgkit.training.linkers.labelled import MissingGold

DATA: Final = REPOSITORY.parent / "shared" / "data"
SETS: Final = ("letters", "firms", "terms", "de", "zh", "places")
POINTS: Final = ((10, 3), (30, 3), (100, 3), (300, 1), (900, 1))
"""Documents that are drawn, and how often."""
LETTERS: Final = 20
DRAWS: Final = 3
COLUMNS: Final = ("documents", "draw", "held out: none", "trained", "published", "test: none", "trained")

Record = dict[str, Any]


class Read(NamedTuple):
    """A document of a set: its record, as the scorer takes it, and what the linker reads of it."""

    record: Record
    example: Example


class Bench(NamedTuple):
    """A knowledge base, its linker without training, and the scorer of `own_kb`.

    Attributes:
        kb: knowledge base.
        count: function that counts right and wrong links of a document.
        prf: function from counts to precision, recall and F1.
        total: function that adds counts.
    """

    kb: KnowledgeBase
    count: Callable[..., Any]
    prf: Callable[..., tuple[float, float, float]]
    total: Callable[..., Any]

    def read(self, records: Sequence[Record]) -> list[Read]:
        """Return documents as a linker reads them."""
        scorer = find_scorer(NAMES_MODEL, self.kb, device="cpu")
        assert isinstance(scorer, JointScorer)
        golds = [gold_of(record) for record in records]
        return [
            Read(record, example)
            for record, example in zip(
                records, read_examples(self.kb, scorer, golds, MissingGold(self.kb)), strict=True
            )
        ]

    def f1(self, read: Sequence[Read], scores: Sequence[Any]) -> float:
        """Return the F1 of links by the scores of candidates."""
        counts = []
        for (record, example), own in zip(read, scores, strict=True):
            found = [
                {"start": link.start, "end": link.end, "entity": link.entity}
                for link in links_of(self.kb, example, own)
            ]
            meant = [mention for mention in record["mentions"] if mention["entity"]]
            counts.append(self.count({"traps": [], "optional": [], **record, "mentions": meant}, found)[0])
        return self.prf(self.total(counts))[2]

    def row(self, learnt: Sequence[Example], test: Sequence[Read]) -> tuple[str, ...]:
        """Return what the training measures and decides, and F1 on the test documents."""
        page = PageTitles(self.kb)
        trained = adapt(self.kb, learnt)
        before = [
            score_document(each.gold.gold, links_of(self.kb, each, each.split(each.scores)), page)
            for each in learnt
        ]
        held_out = [sum(scores, LinkScore()).f1 for scores in (before, trained.scores)]
        tested = (
            self.f1(test, [example.split(example.scores) for _, example in test]),
            self.f1(test, [adapted_scores(example, trained.adaptation) for _, example in test]),
        )
        published = "yes" if is_better(trained.scores, before) else "no"
        return (*(f"{value:.3f}" for value in held_out), published, *(f"{value:.3f}" for value in tested))


def gold_of(record: Record) -> GoldDocument:
    """Return the gold of a record."""
    mentions = [GoldMention(each["start"], each["end"], each["entity"]) for each in record["mentions"]]
    return make_gold_document(str(record["id"]), record["text"], mentions)


def records_of(path: Path) -> list[Record]:
    """Return the documents of a set."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def news_of(own: Path) -> list[Record]:
    """Return the documents of AIDA's train part with the keys of the 5,000 entities of the news."""
    sys.argv = ["make_news.py", "testa", "1", str(DATA / "aida")]
    made = runpy.run_path(str(own / "news" / "make_news.py"))
    records = []
    for document in made["read"](DATA / "aida" / "aida_train.jsonl.xz"):
        text, spots = made["text_of"](document)
        mentions = [
            {
                "start": spots[each["start"]][0],
                "end": spots[each["end"] - 1][1],
                "entity": made["keys"].get(each["entity"]),
            }
            for each in document["mentions"]
        ]
        records.append({"id": document["doc_id"], "text": text, "mentions": mentions})
    return records


def curve(bench: Bench, own: Path) -> Iterator[tuple[str, ...]]:
    """Yield rows by the number of documents."""
    learn, test = bench.read(news_of(own)), bench.read(records_of(own / "news" / "full" / "gold.jsonl"))
    for size, draws in POINTS:
        for draw in range(draws):
            drawn = sorted(random.Random(draw).sample(range(len(learn)), size))
            yield str(size), str(draw), *bench.row([learn[number].example for number in drawn], test)


def halves(bench: Bench, own: Path, name: str) -> Iterator[tuple[str, ...]]:
    """Yield rows of trainings on half of a set."""
    read = bench.read(records_of(own / name / "gold.jsonl"))
    for draw in range(DRAWS):
        order = random.Random(draw).sample(range(len(read)), len(read))
        for half in range(2):
            learn = [read[number].example for number in sorted(order[half::2])]
            test = [read[number] for number in sorted(order[1 - half :: 2])]
            yield f"{name}, {len(learn)}", f"{draw}.{half}", *bench.row(learn, test)


def bad(bench: Bench, own: Path) -> Iterator[tuple[str, ...]]:
    """Yield rows of trainings on few letters, and on wrong ones."""
    records = records_of(own / "letters" / "gold.jsonl")
    right = bench.read(records)
    for draw in range(DRAWS):
        rand = random.Random(draw)
        drawn = sorted(rand.sample(range(len(records)), LETTERS))
        chosen = [records[number] for number in drawn]
        keys = [mention["entity"] for record in chosen for mention in record["mentions"]]
        rand.shuffle(keys)
        left = iter(keys)
        shuffled = [
            {**record, "mentions": [{**each, "entity": next(left)} for each in record["mentions"]]}
            for record in chosen
        ]
        fewer = [
            {**record, "mentions": [each for each in record["mentions"] if rand.random() < 0.5]}
            for record in chosen
        ]
        others = [read for number, read in enumerate(right) if number not in drawn]
        yield f"{LETTERS} letters", str(draw), *bench.row([right[number].example for number in drawn], others)
        for what, wrong in (("entities shuffled", shuffled), ("half of the links", fewer)):
            learn = [example for _, example in bench.read(wrong)]
            yield f"{LETTERS}, {what}", str(draw), *bench.row(learn, right)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--own", type=Path, required=True, help="copy of own_kb, news and places made")
    parser.add_argument("--home", type=Path, required=True, help="home with its knowledge bases")
    parser.add_argument("--only", choices=("curve", "halves", "bad"), help="the only part that is measured")
    arguments = parser.parse_args()
    scorer = runpy.run_path(str(arguments.own / "score.py"))
    parts: list[tuple[str, str, Callable[[Bench], Iterator[tuple[str, ...]]]]] = [
        ("curve", "news", lambda bench: curve(bench, arguments.own)),
        *(("halves", name, lambda bench: halves(bench, arguments.own, bench.kb.name)) for name in SETS),
        ("bad", "letters", lambda bench: bad(bench, arguments.own)),
    ]
    for part, name, rows in parts:
        if arguments.only in (None, part):
            with kgkit.open_kb(name, home=arguments.home) as kb:
                bench = Bench(kb, scorer["doc_counts"], scorer["prf"], scorer["total"])
                table = Table(title=f"{part}: {name}", notes="", columns=COLUMNS, rows=[*rows(bench)])
                print(table.markdown(), flush=True)


if __name__ == "__main__":
    main()
