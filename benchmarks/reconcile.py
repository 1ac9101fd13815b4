r"""Names as people write them to surfaces and entities: how names are compared, beside RapidFuzz.

    OMP_NUM_THREADS=1 python -m benchmarks.reconcile --home HOME [--kb wordnet --kb aida]
    python -m benchmarks.reconcile --home HOME --only command --names 100000
    python -m benchmarks.reconcile --home HOME --kb places --kb wordnet --kb letters --kb firms --kb de \
        --wikipedia DUMP --names 4000 --only fit
    python -m benchmarks.reconcile --wikipedia DUMP --only titles

    surfaces   2,000 random surfaces with one and with two random edits (a letter replaced, inserted or left
               out, two neighbours exchanged): how often the surface itself comes first, and is among the
               first five, and CPU time, by `kb.similar_surfaces` and by `rapidfuzz.process.extract` with
               `fuzz.WRatio`
    speed      CPU time a name at 10,000, 100,000 and 1,000,000 surfaces, made of two words of the knowledge
               bases each
    command    `kgkit reconcile` for a CSV of names, and of a tenth of them: CPU time and peak memory
    fit        `WEIGHTS` of `kgkit.kb.names`
    pairs      precision and recall of real variants by kind of difference, and how well scores are
               calibrated; by kgkit, WRatio and token_set_ratio
    titles     titles of Wikipedia with a digit changed, and without their accents: how many match

The names of `fit` and `pairs` are the surfaces of knowledge bases, and the titles and link texts of a
Wikipedia dump: each in turn is a name, and no surface. What it should be matched with are other surfaces of
its entity; and nothing where the entity is left out. A third of the names get a typing error, and one of five
of these a second one.
Three quarters of the entities are for `fit`, the others for `pairs`.
"""

import argparse
import bz2
import csv
import os
import random
import re
import string
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

import kgkit
from benchmarks.harness import Job, call, run
from kgkit.evaluation.calibration import binned
from kgkit.kb import KnowledgeBase
from kgkit.kb.names import FEATURES, WEIGHTS
from kgkit.kb.similar import RankedSurface, SimilarNames
from kgkit.reconciling.reconciler import EXACT
from kgkit.store.trigrams import TrigramIndex, TrigramWriter, plain_form
from kgkit.text import folding, without_accents

fold: Final = folding().fold

NAMES: Final = 2_000
SIZES: Final = 10_000, 100_000, 1_000_000
SURFACES: Final = 20
SET: Final = "clash", "mark"
"""Kinds of difference whose weights are set, not fitted."""
PULL: Final = 5.0  # to the weights of before, which those of a kind that few lists have keep nearly
HELD_OUT: Final = 4  # one entity of so many


def edit(text: str, random_of: random.Random) -> str:
    """Return a text with a letter replaced, inserted or left out, or two neighbours exchanged."""
    position, letter = random_of.randrange(len(text)), random_of.choice(string.ascii_lowercase)
    head, tail = text[:position], text[position + 1 :]
    match random_of.choice(("replace", "insert", "leave out", "exchange")):
        case "replace":
            return head + letter + tail
        case "insert":
            return head + letter + text[position:]
        case "leave out":
            return head + tail if len(text) > 1 else text + letter
    return head + tail[:1] + text[position] + tail[1:]


def with_edits(surface: str, edits: int, random_of: random.Random) -> str:
    """Return a folded surface with so many random edits, folded."""
    for _ in range(edits):
        surface = edit(surface, random_of)
    return fold(surface)


Search = Callable[[str], list[str]]
"""Returns the surfaces that are most similar to a name, five of them."""


class Ranks(NamedTuple):
    """How often the surface is first and among the first five, in percent, and CPU milliseconds a name."""

    first: float
    five: float
    milliseconds: float

    def __str__(self) -> str:
        return f"{self.first:.1f} | {self.five:.1f} | {self.milliseconds:.2f}"


def ranks(names: Sequence[str], surfaces: Sequence[str], search: Search) -> Ranks:
    """Return how well *search* ranks the surfaces that names stand for."""
    first = five = 0
    start = time.process_time()
    answers = [search(name) for name in names]
    seconds = time.process_time() - start
    for answer, surface in zip(answers, surfaces, strict=True):
        first += answer[:1] == [surface]
        five += surface in answer
    return Ranks(100 * first / len(names), 100 * five / len(names), 1000 * seconds / len(names))


def find(names: SimilarNames, name: str) -> list[RankedSurface]:
    """Return the surfaces that a name may stand for."""
    folded = fold(name)
    return names.rank(folded, names.proposed(folded))


def compare(title: str, index: TrigramIndex, count: int) -> None:
    """Print the ranks by the index and by RapidFuzz."""
    surfaces, similar = [str(surface, "utf-8") for surface in index.surfaces()], SimilarNames(index)
    for edits in (1, 2):
        random_of = random.Random(edits)
        originals = random_of.sample(surfaces, count)
        names = [with_edits(surface, edits, random_of) for surface in originals]
        find(similar, names[0])
        by_index = ranks(names, originals, lambda name: [each.surface for each in find(similar, name)[:5]])
        few = min(count, 20_000_000 // len(surfaces))
        by_scan = ranks(
            names[:few],
            originals[:few],
            lambda name: [s for s, _, _ in process.extract(name, surfaces, scorer=fuzz.WRatio)],
        )
        print(f"| {title} | {len(surfaces):,} | {edits} | {by_index} | {by_scan} |", flush=True)


def write_phrases(kbs: Sequence[KnowledgeBase], count: int, path: Path) -> TrigramIndex:
    """Write the index of so many surfaces, of two words of *kbs* each."""
    words = sorted({word for kb in kbs for surface in kb.surfaces() for word in surface.split()})
    random_of, surfaces = random.Random(0), set[str]()
    while len(surfaces) < count:
        surfaces.add(f"{random_of.choice(words)} {random_of.choice(words)}")
    start = time.process_time()
    with TrigramWriter(path) as index:
        index.add(surface.encode() for surface in sorted(surfaces))
        index.finish()
    seconds = time.process_time() - start
    print(f"{count:,} surfaces: {seconds:.1f} CPU s to index, {path.stat().st_size / 1e6:.0f} MB", flush=True)
    return TrigramIndex(path)


# -- real variants ------------------------------------------------------------


class NameTable(NamedTuple):
    """Surfaces and the entities that they mean.

    Attributes:
        title: what they are of.
        entities: of each folded surface the keys of its entities.
        names: finds surfaces among them.
        variants: surfaces that are names in turn, as they are spelled, each with its entity.
    """

    title: str
    entities: dict[str, frozenset[str]]
    names: SimilarNames
    variants: list[tuple[str, str]]


_LINK: Final = re.compile(r"\[\[([^\[\]|#<>{}\n]+)(?:\|([^\[\]|<>{}\n]+))?\]\]")
_PAGE: Final = re.compile(r"<title>([^<]+)</title>(?:.(?!</page>))*?<redirect title=\"([^\"]+)\"", re.DOTALL)


def linked_titles(dump: Path) -> list[tuple[str, str]]:
    """Return the link texts and redirects of a Wikipedia dump, and its titles, each with its title."""
    content = unescape(bz2.decompress(dump.read_bytes()).decode("utf-8", "replace"))
    pairs = {(source, target) for source, target in _PAGE.findall(content) if ":" not in source + target}
    for target, text in _LINK.findall(content):
        title = " ".join(target.replace("_", " ").split())
        if title and ":" not in title:
            title = title[0].upper() + title[1:]
            pairs |= {(title, title), (" ".join(text.split()) or title, title)}
    return sorted(pairs)


def table_of(title: str, pairs: Sequence[tuple[str, str]], folder: Path, language: str = "en") -> NameTable:
    """Return the table of surfaces, each with the key of its entity."""
    entities = defaultdict[str, set[str]](set)
    for surface, key in pairs:
        if folded := fold(surface):
            entities[folded].add(key)
    with TrigramWriter(folder / title) as index:
        index.add(surface.encode() for surface in sorted(entities))
        index.finish()
    variants = [pair for pair in pairs if pair[0][:1].isupper() or pair[0][:1].isdigit()]
    frozen = {surface: frozenset(keys) for surface, keys in entities.items()}
    return NameTable(title, frozen, SimilarNames(TrigramIndex(folder / title), language), variants)


def kb_table(kb: KnowledgeBase, count: int) -> NameTable:
    """Return the table of a knowledge base, with so many of its surfaces as names."""
    language = kb.manifest.language
    numbers = np.random.default_rng(0).permutation(len(kb.surface_index()))[: 2 * count].tolist()
    index, names = kb.surface_index(), SimilarNames(kb.surface_index(), language)

    class Entities(dict[str, frozenset[str]]):
        def __missing__(self, surface: str) -> frozenset[str]:
            return frozenset(str(number) for number in kb.candidates(surface).ids.tolist())

    surfaces = map(index.surface, numbers)
    variants = [(surface, key) for surface in surfaces for key in sorted(Entities()[surface])]
    return NameTable(kb.name, Entities(), names, variants[:count])


class Sample(NamedTuple):
    """A name with the surfaces that are similar to it, and the entity that it means.

    Attributes:
        name: the name.
        key: its entity.
        ranked: similar surfaces, with their entities.
        is_present: whether the entity is among those that are searched.
        is_edited: whether it is a surface with typing errors.
    """

    name: str
    key: str
    ranked: list[tuple[RankedSurface, frozenset[str]]]
    is_present: bool
    is_edited: bool


def samples(table: NameTable, count: int, held_out: bool) -> Iterator[Sample]:
    """Yield names; of each one with its entity, and one without."""
    random_of, same = random.Random(len(table.variants)), FEATURES.index("same")
    chosen = [pair for pair in table.variants if (crc32(pair[1].encode()) % HELD_OUT == 0) is held_out]
    for number, (surface, key) in enumerate(random_of.sample(chosen, min(count, len(chosen)))):
        is_edited = number % 3 == 2
        edits = 2 if number % 15 == 2 else 1  # four of five have one error (Damerau 1964)
        name = with_edits(fold(surface), edits, random_of) if is_edited else fold(surface)
        if len(name) < 2 or any(other != key for other in table.entities.get(name, ())):
            continue
        proposed = [each for each in table.names.proposed(name) if each != name]
        ranked = [
            (each, table.entities[each.surface]) for each in table.names.rank(name, proposed)[:SURFACES]
        ]
        if any(
            each.comparison.features[same] and key not in keys for each, keys in ranked if each.comparison
        ):
            continue  # as if it were a surface of another entity
        yield Sample(name, key, ranked, True, is_edited)
        yield Sample(name, key, [each for each in ranked if key not in each[1]], False, is_edited)


def fit(tables: Sequence[NameTable], count: int) -> None:
    """Print the weights that make the answers of names likeliest."""
    from scipy.optimize import minimize

    names = [each for table in tables for each in samples(table, count, held_out=False)]
    features = np.zeros((len(names), SURFACES, len(FEATURES)))
    keys = np.full((len(names), SURFACES), -1)
    answers = np.zeros((len(names), SURFACES), bool)
    for row, sample in enumerate(names):
        groups: dict[frozenset[str], int] = {}
        for column, (surface, entities) in enumerate(sample.ranked):
            assert surface.comparison is not None
            features[row, column] = surface.comparison.features
            keys[row, column] = groups.setdefault(entities, len(groups))
            answers[row, column] = sample.key in entities
    weights = np.array(WEIGHTS)
    bounds: list[tuple[float | None, float | None]] = [(None, -0.05)] * len(FEATURES)
    for name in ("constant", "surfaces", "same", "information", "letters"):
        bounds[FEATURES.index(name)] = (None, None)
    marks = [FEATURES.index(name) for name in SET]
    for place in marks:
        bounds[place] = (WEIGHTS[place], WEIGHTS[place])
    # What differs in a mark from its own entity tells nothing of the other kinds.
    importance = 1.0 - (answers & features[:, :, marks].any(2)).any(1)
    for _ in range(3):  # of an entity's surfaces that counts which is the likeliest
        scores = features @ weights
        best = np.zeros(keys.shape, bool)
        for row in range(len(names)):
            seen: set[int] = set()
            for column in np.argsort(-scores[row]).tolist():
                if keys[row, column] >= 0 and keys[row, column] not in seen:
                    seen.add(keys[row, column])
                    best[row, column] = True

        def surprise(
            weights: NDArray[np.float64], best: NDArray[np.bool_] = best
        ) -> tuple[float, NDArray[np.float64]]:
            logits = np.where(best, features @ weights, -1e9)
            highest = np.maximum(logits.max(1, keepdims=True), 0)
            odds, none = np.exp(logits - highest), np.exp(-highest)
            total = odds.sum(1, keepdims=True) + none
            is_answer = answers & best
            has_answer = is_answer.any(1)
            right = np.where(has_answer, (odds * is_answer).sum(1), none[:, 0])
            loss = (importance * (np.log(total[:, 0]) - np.log(right + 1e-300))).sum()
            expected = odds / total
            wanted = np.where(has_answer[:, None], odds * is_answer / (right[:, None] + 1e-300), 0)
            slope = np.einsum("nk,nkf->f", importance[:, None] * (expected - wanted), features)
            change = weights - np.array(WEIGHTS)
            return loss + PULL * (change**2).sum(), slope + 2 * PULL * change

        weights = minimize(surprise, weights, jac=True, method="L-BFGS-B", bounds=bounds).x
    loss = surprise(weights)[0] / importance.sum()
    print(f"surprise {loss:.3f}, of {len(names):,} names")
    for name, weight, used in zip(FEATURES, weights, (features != 0).any(1).sum(0), strict=True):
        print(f"    {name:18} {weight:7.2f}   differs in {used:,} lists")
    print("WEIGHTS: Final = (" + ", ".join(f"{weight:.2f}" for weight in weights) + ")")


def kind_of(sample: Sample) -> str:
    """Return the kind of difference between a name and what it is, or is most like."""
    of_key = [
        surface for surface, entities in sample.ranked if not sample.is_present or sample.key in entities
    ]
    if not of_key:
        return "not proposed"
    comparison = of_key[0].comparison
    assert comparison is not None
    found = dict(zip(FEATURES, comparison.features, strict=True))
    order = (
        "clash", "mark", "qualifier clash", "replaced", "added", "dropped", "qualifier added",
        "qualifier dropped", "acronym", "initials", "middle letters", "middle names", "numerals",
        "abbreviations", "edits", "order", "forms", "titles", "small words", "spaces",
    )  # fmt: skip
    return next((name for name in order if found[name]), "accents, punctuation")


def probabilities(sample: Sample) -> list[tuple[float, frozenset[str]]]:
    """Return the scores of entities, as a `Reconciler` gives them, best first."""
    odds: dict[frozenset[str], float] = {}
    for surface, entities in sample.ranked:
        odds[entities] = max(odds.get(entities, 0.0), float(np.exp(min(surface.log_odds, 20))))
    total = 1 + sum(odds.values())
    return sorted(((EXACT * each / total, entities) for entities, each in odds.items()), key=lambda e: -e[0])


class Counts(NamedTuple):
    """Numbers of names whose entity is there, of those that match, and of those that match it."""

    present: int
    matched: int
    right: int

    @classmethod
    def of(cls, names: Sequence[Sample], answers: Sequence[frozenset[str] | None]) -> "Counts":
        pairs = list(zip(names, answers, strict=True))
        return cls(
            sum(sample.is_present for sample in names),
            sum(answer is not None for answer in answers),
            sum(
                sample.is_present and answer is not None and sample.key in answer for sample, answer in pairs
            ),
        )

    @property
    def f1(self) -> float:
        return 2 * self.right / max(self.matched + self.present, 1)

    def __str__(self) -> str:
        precision = f"{self.right / self.matched:.3f}" if self.matched else "–"
        return f"{precision} | " + (f"{self.right / self.present:.3f}" if self.present else "–")


Answers = list[frozenset[str] | None]
"""What each of many names is matched with; None for nothing."""


def measure_pairs(tables: Sequence[NameTable], count: int) -> None:
    """Print precision and recall by kind of difference, and the calibration of scores."""
    for table in tables:
        names = list(samples(table, count, held_out=True))
        print(f"{table.title}: {len(names):,} names")
        answers = [next(iter(probabilities(each)), (0.0, frozenset[str]())) for each in names]
        pairs = list(zip(names, answers, strict=True))
        correct = [sample.is_present and sample.key in entities for sample, (_, entities) in pairs]
        result = binned([score for score, _ in answers], correct, 10)
        print(f"    calibration error {result.error:.3f}")
        for score, share, number in zip(*result, strict=True):
            print(f"    {number:6,} names of score {score:.2f}: {share:.2f} correct")
        methods: dict[str, Answers] = {"kgkit": [each if score >= 0.5 else None for score, each in answers]}
        if type(table.entities) is dict:  # those of a knowledge base may be very many
            for scorer in (fuzz.WRatio, fuzz.token_set_ratio):
                least, found = best_of_rapidfuzz(table, names, scorer)
                methods[f"{scorer.__name__} from {least}"] = found
        print_by_kind([kind_of(sample) for sample in names], names, methods)


def best_of_rapidfuzz(
    table: NameTable, names: Sequence[Sample], scorer: Callable[..., float]
) -> tuple[int, Answers]:
    """Return the least score of a match that makes F1 best on these names, and what they match then."""
    surfaces, found = list(table.entities), list[tuple[float, str]]()
    plain = [plain_form(surface) for surface in surfaces]
    for sample in names:
        best = process.extract(plain_form(sample.name), plain, scorer=scorer, limit=30)
        kept = [(score, surfaces[at]) for _, score, at in best if surfaces[at] != sample.name]
        kept = [each for each in kept if sample.is_present or sample.key not in table.entities[each[1]]]
        found.append(kept[0] if kept else (0.0, ""))

    def answers_from(least: int) -> Answers:
        return [table.entities[surface] if score >= least else None for score, surface in found]

    least = max(range(50, 101), key=lambda least: Counts.of(names, answers_from(least)).f1)
    return least, answers_from(least)


def print_by_kind(kinds: Sequence[str], names: Sequence[Sample], methods: dict[str, Answers]) -> None:
    """Print precision and recall of methods, by kind of difference."""
    print("| kind | with entity | without | " + " | ".join(f"{m}: P | R" for m in methods) + " |")
    print("|---|--:|--:|" + "--:|--:|" * len(methods))
    rows = defaultdict[str, list[int]](list)
    for at, kind in enumerate(kinds):
        rows[kind].append(at)
    for kind, places in [*sorted(rows.items(), key=lambda row: -len(row[1])), ("all", [*range(len(names))])]:
        chosen = [names[at] for at in places]
        counts = [Counts.of(chosen, [found[at] for at in places]) for found in methods.values()]
        values = " | ".join(map(str, counts))
        print(
            f"| {kind} | {counts[0].present:,} | {len(places) - counts[0].present:,} | {values} |", flush=True
        )


def measure_titles(table: NameTable) -> None:
    """Print how many titles match after a digit was changed, and without their accents."""
    titles = sorted({key for keys in table.entities.values() for key in keys})
    random_of = random.Random(0)
    changed = {}
    for title in titles:
        digits = [place for place, letter in enumerate(title) if letter in string.digits]
        if digits:
            place = random_of.choice(digits)
            other = random_of.choice([digit for digit in string.digits if digit != title[place]])
            changed[title] = title[:place] + other + title[place + 1 :]
    plain = {title: without_accents(title) for title in titles}
    for what, names in (
        ("with a digit changed", changed),
        ("without their accents", {title: name for title, name in plain.items() if name != title}),
    ):
        names = {title: name for title, name in names.items() if fold(name) not in table.entities}
        matched = right = 0
        for title, name in names.items():
            sample = Sample(
                name, title, [(e, table.entities[e.surface]) for e in find(table.names, name)], True, False
            )
            score, entities = next(iter(probabilities(sample)), (0.0, frozenset[str]()))
            matched += score >= 0.5
            right += score >= 0.5 and title in entities
        print(f"{len(names):,} titles {what}: {matched:,} match, {right:,} of them that title", flush=True)


def write_names(kb: str, home: str, count: str, path: str) -> None:
    """Write a CSV of names with none, one and two edits."""
    with kgkit.open_kb(kb, home) as base:
        surfaces, random_of = list(base.surfaces()), random.Random(0)
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("row", "name"))
        for row in range(int(count)):
            rows.writerow((row, with_edits(random_of.choice(surfaces), row % 3, random_of)))


def command(kb: str, home: Path, count: int) -> None:
    """Print what `kgkit reconcile` takes for a CSV of names with none, one and two edits."""
    with tempfile.TemporaryDirectory() as folder:
        table, output = Path(folder, "names.csv"), Path(folder, "matches.csv")
        for size in (count // 10, count):
            names = {"kb": kb, "home": home, "count": str(size), "path": table}
            run(call("names", "benchmarks.reconcile:write_names", names))
            line = (
                sys.executable, "-m", "kgkit.commands", "reconcile", str(table), "--column", "name",
                "--kb", kb, "--home", str(home), "--output", str(output), "--quiet",
            )  # fmt: skip
            sample = run(Job(name="reconcile", command=line))
            with output.open(encoding="utf-8") as file:
                matched = sum(row["match"] == "true" for row in csv.DictReader(file))
            print(
                f"{kb}: {size:,} names: {sample.cpu:.1f} CPU s, {sample.wall:.0f} s, peak "
                f"{sample.peak / 1e6:.0f} MB, {matched:,} matched",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--home", type=Path, default=os.environ.get("KGKIT_HOME"))
    parser.add_argument("--kb", action="append", help="wordnet and aida unless given")
    parser.add_argument("--wikipedia", type=Path, help="a dump, .xml.bz2")
    parser.add_argument("--names", type=int, default=NAMES)
    only = ("surfaces", "speed", "command", "fit", "pairs", "titles")
    parser.add_argument("--only", choices=only)
    arguments = parser.parse_args()
    wanted = [each for each in only if arguments.only in (None, each)]
    names = arguments.kb or ([] if arguments.only == "titles" else ["wordnet", "aida"])
    kbs = [kgkit.open_kb(name, arguments.home) for name in names]
    with tempfile.TemporaryDirectory() as folder:
        if {"surfaces", "speed"} & {*wanted}:
            print(
                "| | surfaces | edits | first | first five | CPU ms | WRatio: first | first five | CPU ms |"
            )
            print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
        if "surfaces" in wanted:
            for kb in kbs:
                compare(kb.name, kb.surface_index(), arguments.names)
        if "speed" in wanted:
            for size in SIZES:
                index = write_phrases(kbs, size, Path(folder, str(size)))
                compare("two words each", index, min(arguments.names, 500))
        if "command" in wanted:
            command(kbs[-1].name, arguments.home, arguments.names if arguments.only else 100_000)
        if {"fit", "pairs", "titles"} & {*wanted}:
            tables = [kb_table(kb, arguments.names // 2) for kb in kbs]
            if arguments.wikipedia is not None:
                tables.append(table_of("wikipedia", linked_titles(arguments.wikipedia), Path(folder)))
            if "fit" in wanted:
                fit(tables, arguments.names)
            if "pairs" in wanted:
                measure_pairs(tables, min(arguments.names, 1_000))
            if "titles" in wanted:
                measure_titles(tables[-1])


if __name__ == "__main__":
    main()
