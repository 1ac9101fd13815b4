"""KALM on recipes: perplexity and speed beside an AWD-LSTM, and foods without a label.

    python -m benchmarks.kalm_recipes --home HOME [--share 0.1] [--only NAME …] [OPTION …]

The corpus is not the paper's, which could not be had. The knowledge base has the eight types of ingredients
of Parvez et al. (2018), and is built if HOME lacks it. Other options go to `kgkit train kalm`. Models and
answers are kept in HOME, by the share of the corpus, and what is there is not done again.
Liu, Du and Stoyanov (2019), Table 3.
"""

import argparse
import csv
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import kgkit
from benchmarks.answers import Runs
from benchmarks.harness import REPOSITORY
from benchmarks.report import Table
from kb_builders.type_vocabulary import TypeVocabularyBuilder
from kgkit.evaluation.ner import Name, NameScores, score_names
from kgkit.files import opened
from kgkit.home import Home
from kgkit.methods.kalm import KALMTagger
from kgkit.methods.kalm_settings import KALM, KALMManifest
from kgkit.models.opening import open_model
from kgkit.tagging.mention_tagger import MentionTagger, TypedWord
from kgkit.types import Document

DATA: Final = REPOSITORY.parent / "shared" / "data"
KB: Final = "recipe-types"
FOOD: Final = "FOOD"

MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    "awd": ("--control",),
    "kalm": (),
    "awd-both": ("--control", "--bidirectional"),
    "kalm-both": ("--bidirectional",),
}
"""Models by name, and the options that they are trained with."""

LANGUAGE_NOTES: Final = """
Nats and perplexity of a word, with one vocabulary for all; `both`: predicted from both sides, a
pseudo-perplexity. `words / s`: words of the training text read in a second,
all epochs together, evaluations between them included. The paper has 2.24 nats (a perplexity of 9.4) on its
own corpus, where Parvez et al. have 9.67.
"""
FOOD_NOTES: Final = """
Spans FOOD of TASTEset against words of any of the eight types together. No label is read in training. β:
share of the knowledge base; 1 looks words up alone.
"""


class FoodText(NamedTuple):
    """An ingredient list with the spans of its foods."""

    text: str
    foods: list[Name]


def recipe_lines(path: Path, share: float) -> Iterator[str]:
    """Yield the lines of the recipes of a share of a corpus, in order, and a blank line behind each."""
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            if int(number * share + 1e-6) == int((number - 1) * share + 1e-6):
                continue
            recipe = json.loads(line)
            yield from (" ".join(part.split()) for part in (*recipe["ingredients"], *recipe["directions"]))
            yield ""


def food_texts(path: Path) -> Iterator[FoodText]:
    """Yield the ingredient lists of TASTEset."""
    with opened(path) as file:
        for row in csv.DictReader(line.decode("utf-8") for line in file):
            spans = {
                (span["start"], span["end"])
                for span in json.loads(row["ingredients_entities"])
                if span["type"] == FOOD
            }
            yield FoodText(row["ingredients"], [Name(start, end, FOOD) for start, end in sorted(spans)])


def food_spans(text: str, words: Sequence[TypedWord]) -> list[Name]:
    """Return the spans of words that are rather of some type than of none; a line ends a span."""
    names: list[Name] = []
    is_open = False
    for word in words:
        if word.probabilities[0] >= 0.5:
            is_open = False
        elif is_open and "\n" not in text[names[-1].end : word.start]:
            names[-1] = Name(names[-1].start, word.end, FOOD)
        else:
            names.append(Name(word.start, word.end, FOOD))
            is_open = True
    return names


def score_foods(tagger: MentionTagger, texts: Sequence[FoodText]) -> NameScores:
    """Return the score of the foods that a tagger finds."""
    scores = NameScores()
    documents = [Document(str(number), text) for number, (text, _) in enumerate(texts)]
    for (text, foods), words in zip(texts, tagger.typed_words(documents), strict=True):
        scores += score_names(foods, food_spans(text, words), [(word.start, word.end) for word in words])
    return scores


class RecipeBench:
    """The models of the bench, with their texts and their knowledge base.

    Args:
        home: home of the models.
        data: folder of the data sets.
        share: share of the corpus that is read.
        options: options of each training.
    """

    def __init__(self, home: Home, data: Path, share: float, options: Sequence[str]) -> None:
        self.runs: Runs[KALMManifest] = Runs(home, KALM)
        self.home, self.data, self.share, self.options = home, data / "recipe", share, options
        if not (home.path / "kbs" / KB / "current").exists():
            source = self.data / "superingredients"
            kgkit.build_kb(TypeVocabularyBuilder(), source, name=KB, home=home.path)

    def model(self, name: str) -> str:
        """Return what a model is called in the home."""
        return f"recipe-{name}-{self.share:g}"

    def text(self, part: str) -> Path:
        """Return a part of the corpus as plain text, which is written if it is not there."""
        path = self.home.path / "recipe-texts" / f"{part}-{self.share:g}.txt"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = recipe_lines(self.data / "corpus" / f"recipes_{part}.jsonl.xz", self.share)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    def train(self, name: str) -> None:
        """Train a model, unless it is there."""
        texts = "--data", str(self.text("train")), "--dev", str(self.text("valid")), "--style", "recipe"
        self.runs.train(self.model(name), *texts, "--kb", KB, *MODELS[name], *self.options)

    def perplexity(self, name: str, part: str) -> dict[str, Any]:
        """Return what `kgkit evaluate ppl` says of a model and a part."""
        [score] = self.runs.evaluate(self.model(name), "ppl", "--data", str(self.text(part)))["sets"]
        scores: dict[str, Any] = score
        return scores


def language_table(bench: RecipeBench, names: Sequence[str]) -> Table:
    """Return the perplexities and the speed of models."""
    rows = []
    for name in names:
        manifest = bench.runs.manifest(bench.model(name))
        assert manifest is not None
        scores = [bench.perplexity(name, part) for part in ("valid", "test")]
        figures = [
            f"{score[key]:{form}}"
            for score in scores
            for key, form in (("nats", ".3f"), ("perplexity", ".2f"))
        ]
        results = manifest.results
        epochs = results["epochs"][-1]["epoch"]
        speed = results["words"] * epochs / results["seconds"]
        rows.append([name, *figures, f"{epochs:.0f}", f"{speed:,.0f}"])
    columns = "model", "nats, valid", "perplexity", "nats, test", "perplexity", "epochs", "words / s"
    return Table(title="KALM on recipes", notes=LANGUAGE_NOTES, columns=columns, rows=rows)


def food_table(bench: RecipeBench, names: Sequence[str]) -> Table:
    """Return the scores of foods that models of both directions find."""
    texts, rows = [*food_texts(bench.data / "tasteset" / "TASTEset.csv.xz")], []
    for name in names:
        manifest = bench.runs.manifest(bench.model(name))
        if manifest is None or not manifest.bidirectional or not manifest.types:
            continue
        for prior in (1.0, 0.6, 0.0):
            with open_model(bench.model(name), "language_model", home=bench.home) as trained:
                scores = score_foods(KALMTagger(trained, type_prior=prior), texts)
            figures = [
                f"{100 * value:.1f}"
                for score in (scores.overall, scores.tokens)
                for value in (score.precision, score.recall, score.f1)
            ]
            rows.append([name, f"{prior}", *figures])
    columns = "model", "β", "spans: P", "R", "F1", "words: P", "R", "F1"
    return Table(title="Foods without a label", notes=FOOD_NOTES, columns=columns, rows=rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train what is not there, and write the tables to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kalm_recipes")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of data sets")
    parser.add_argument("--share", type=float, default=0.1, help="share of the corpus, from 0 to 1")
    parser.add_argument("--only", action="append", choices=[*MODELS], help="train and score these alone")
    chosen, options = parser.parse_known_args(arguments)
    bench = RecipeBench(Home(chosen.home), chosen.data, chosen.share, options)
    names = chosen.only or [*MODELS]
    for name in names:
        bench.train(name)
        print(f"{name} is trained", file=sys.stderr, flush=True)
    print(language_table(bench, names).markdown())
    print(food_table(bench, names).markdown())


if __name__ == "__main__":
    main()
