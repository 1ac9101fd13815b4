"""KALM on CoNLL-2003: perplexity beside an AWD-LSTM, names without labels, and words left out.

    python -m benchmarks.kalm --home HOME [--kb conll] [--part language …] [--only NAME …] [OPTION …]
    python -m benchmarks.kalm --home HOME --part left-out --picture FILE [OPTION …]
    python -m benchmarks.kalm --home HOME --part rule [OPTION …]

HOME has the knowledge base of types (`kgkit build-kb type_vocabulary --name conll kb:wordnet`) and
what it was made of. The part `rule` is the control of open names (`benchmarks.open_names_rule`). Other
options go to `kgkit train kalm`: `--epochs 3`, `--device cuda`. Models and answers are kept
in HOME, and what is there is not done again, so that several processes can share the work by `--only`. Liu,
Du and Stoyanov (2019), Tables 3 to 5 and Figure 3.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks import kalm_kb, open_names_rule
from benchmarks.answers import Runs
from benchmarks.harness import REPOSITORY
from benchmarks.report import Table
from kgkit.evaluation.ner import read_names
from kgkit.files import opened
from kgkit.home import Home
from kgkit.inputs.kalm import TypedVocabulary
from kgkit.kb import open_kb
from kgkit.methods.kalm import KALMTagger
from kgkit.methods.kalm_settings import KALM, KALMManifest, KALMTraining
from kgkit.models.kinds import TAGGER, TaggerManifest
from kgkit.models.opening import open_model
from kgkit.tagging.tagger import score_tagger
from kgkit.training.kalm import WordData, read_data

DATA: Final = REPOSITORY.parent / "shared" / "data"
EXTRA: Final = 2.62
"""Words of WikiText-2 for each of CoNLL-2003's training part, as in the paper."""
PAPER_COVERAGE: Final = 0.928
"""Share of the tokens of names that the paper's vocabulary knew."""
REDUCED_KB_SHARES: Final = (0, 40, 80)
REPEATED: Final = 10
"""Lines of a word of the knowledge base in `Bench.kb_words`: `--min-count` is not above it."""

PARTS: Final = ("testa", "testb")
TYPES: Final = ("LOC", "MISC", "ORG", "PER")
HEADS: Final = [f"{part}: {what}" for part in PARTS for what in ("names", "tokens", *TYPES)]

LANGUAGE_NOTES: Final = """
Nats and perplexity of a word of CoNLL-2003, `<unk>` and ends of sentences among them, with one vocabulary for
all. `both`: predicted from both sides, a pseudo-perplexity, which compares with others of `both` only.
"""
NAMES_NOTES: Final = """
F1 of names and of tokens of names. No label is read in training, those of `oracle` aside, whose knowledge
base has words of the training labels, those that are more often in names than not, until it knows 92.8 % of
the tokens of names, as the paper's did.
`wider vocabulary`: with the words of names in T-REx, Google-RE and FewRel, by the types that their
relations join. β: share of the knowledge base in the type of a word; 1 looks words up alone, 0 uses the
model alone. `posterior`: P(type | contexts, word), by Bayes' rule, where the paper has P(type | contexts).
`taught`: an encoder fine-tuned on the names that the model above it finds in the training text.
"""
RULE_NOTES: Final = """
F1 of names and of tokens of names without a model: words are looked up alone, and open names, words with a
capital that the knowledge base lacks, are PER (`benchmarks.open_names_rule`). KALM with open names is worth
what it has above this. `taught`: a tagger that learns the names that the rule finds in the training text, as
one learns a KALM's in `taught by it`.
"""
REDUCED_KB_NOTES: Final = """
Words of the knowledge base are left out at random, and stay in the vocabulary without a type. With 100 %
left out it is the AWD-LSTM. Both directions, so the perplexity is a pseudo-perplexity; β is 0.6.
"""


class NameRow(NamedTuple):
    """A row of the table of names.

    Attributes:
        model: name of the model.
        type_prior: share β of the knowledge base in its types.
        is_student: whether it is a tagger that has learnt from the model.
    """

    model: str
    type_prior: float
    is_student: bool = False


MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    "awd": ("--control",),
    "kalm": (),
    "awd-both": ("--control", "--bidirectional"),
    "kalm-both": ("--bidirectional",),
    "awd-both-1": ("--control", "--bidirectional", "--seed", "1"),
    "kalm-both-1": ("--bidirectional", "--seed", "1"),
    "extra": ("--bidirectional", "--data", "EXTRA"),
    "open": ("--bidirectional", "--open"),
    "wide": ("--bidirectional", "--kb", "WIDE"),
    "open-wide": ("--bidirectional", "--open", "--kb", "WIDE"),
    "oracle": ("--bidirectional", "--kb", "ORACLE"),
}
"""Models by name, and the options that they are trained with."""

LANGUAGE: Final = (
    "awd", "kalm", "awd-both", "kalm-both", "awd-both-1", "kalm-both-1", "extra"
)  # fmt: skip
NAMES: Final = {
    "looked up alone": NameRow("kalm-both", 1.0),
    "posterior": NameRow("kalm-both", 0.0),
    "posterior, + prior in decoding": NameRow("kalm-both", 0.6),
    "posterior, + extra text": NameRow("extra", 0.0),
    "open names, posterior": NameRow("open", 0.0),
    "open names, posterior, + prior in decoding": NameRow("open", 0.6),
    "taught by it": NameRow("open", 0.6, is_student=True),
    "wider vocabulary, looked up alone": NameRow("wide", 1.0),
    "wider vocabulary, posterior, + prior in decoding": NameRow("wide", 0.6),
    "wider vocabulary, open names, posterior, + prior in decoding": NameRow("open-wide", 0.6),
    "oracle, looked up alone": NameRow("oracle", 1.0),
    "oracle, posterior, + prior in decoding": NameRow("oracle", 0.6),
}


class Bench:
    """The models of the bench, with their texts and knowledge bases.

    Args:
        home: home of the models.
        data: folder of the data sets.
        kb: knowledge base of types.
        options: options of each training.
    """

    def __init__(self, home: Home, data: Path, kb: str, options: Sequence[str]) -> None:
        self.runs: Runs[KALMManifest] = Runs(home, KALM)
        self.tagger_runs: Runs[TaggerManifest] = Runs(home, TAGGER)
        self.home, self.data, self.kb, self.options = home, data, kb, options
        self.texts = home.path / "kalm-texts"

    def gold(self, part: str) -> Path:
        """Return the labelled file of a part of CoNLL-2003: `train`, `testa`, `testb`."""
        return self.data / "conll2003" / f"eng.{part}.xz"

    def text(self, part: str) -> Path:
        """Return a part of CoNLL-2003 as plain text, which is written if it is not there."""
        path = self.texts / f"{part}.txt"
        if not path.exists():
            self.texts.mkdir(parents=True, exist_ok=True)
            documents = (named.document.text for named in read_names(self.gold(part)))
            path.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
        return path

    def extra_text(self) -> Path:
        """Return 2.62 times as many words of WikiText-2, without its headings."""
        path = self.texts / "extra.txt"
        if not path.exists():
            remaining = EXTRA * len(self.text("train").read_text(encoding="utf-8").split())
            lines = []
            with opened(self.data / "wikitext2" / "train.txt.xz") as file:
                for line in map(bytes.decode, file):
                    if line.strip() and not line.lstrip().startswith("=") and remaining > 0:
                        lines.append(line.strip())
                        remaining -= len(line.split())
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def oracle(self) -> str:
        """Return the knowledge base with words of the training labels, which is built if it is not there."""
        words, source = kalm_kb.words_of(self.home, self.kb)
        labels, outside = kalm_kb.label_words(self.gold("train"))
        more = kalm_kb.filled(words, labels, outside, PAPER_COVERAGE)
        kalm_kb.build_types(self.home, f"{self.kb}-oracle", more, source)
        return f"{self.kb}-oracle"

    def wide(self) -> str:
        """Return the knowledge base with words of more names, which is built if it is not there."""
        words, source = kalm_kb.words_of(self.home, self.kb)
        names = chain(
            kalm_kb.lama_names(self.data / "lama"),
            kalm_kb.fewrel_names(self.data / "fewrel" / "val_wiki.json.xz"),
        )
        kalm_kb.build_types(self.home, f"{self.kb}-wide", kalm_kb.wider(words, names), source)
        return f"{self.kb}-wide"

    def reduced_kb(self, percent: int) -> str:
        """Return the knowledge base without a share of its words."""
        if not percent:
            return self.kb
        words, source = kalm_kb.words_of(self.home, self.kb)
        name = f"{self.kb}-without-{percent}"
        kalm_kb.build_types(self.home, name, kalm_kb.without(words, percent / 100), source)
        return name

    def kb_words(self) -> Path:
        """Return a text of the words of the knowledge base, which keeps the vocabulary as it is."""
        path = self.texts / f"{self.kb}-words.txt"
        if not path.exists():
            self.texts.mkdir(parents=True, exist_ok=True)
            words, _ = kalm_kb.words_of(self.home, self.kb)
            lines = sorted({word for of_type in words.values() for word in of_type})
            path.write_text("".join(f"{word}\n" for word in lines for _ in range(REPEATED)), encoding="utf-8")
        return path

    def train(self, name: str, words: Sequence[str], kb: str = "") -> None:
        """Train a model, unless it is there."""
        sources = {"EXTRA": self.extra_text, "ORACLE": self.oracle, "WIDE": self.wide}
        further = [str(sources[word]()) if word in sources else word for word in words]
        kb_words = [] if "--kb" in further else ["--kb", kb or self.kb]
        texts = ["--data", str(self.text("train")), "--dev", str(self.text("testa"))]
        self.runs.train(name, *texts, *kb_words, *further, *self.options)

    def perplexity(self, name: str, part: str) -> dict[str, Any]:
        """Return what `kgkit evaluate ppl` says of a model and a part."""
        answer = self.runs.evaluate(name, "ppl", "--data", str(self.text(part)))
        [score] = answer["sets"]
        return {"measure": answer["measure"], **score}

    def names(self, row: NameRow, part: str) -> dict[str, Any]:
        """Return the scores of names that a model finds in a part."""
        if row.is_student:
            return self.tagger_scores(self.student(row.model), part)
        with open_model(row.model, "language_model", home=self.home) as trained:
            tagger = KALMTagger(trained, type_prior=row.type_prior)
            return score_tagger(tagger, read_names(self.gold(part))).as_dict()

    def tagger_scores(self, tagger: str, part: str) -> dict[str, Any]:
        """Return the scores of names that a trained tagger finds in a part."""
        scores: dict[str, Any] = self.tagger_runs.evaluate(tagger, "ner", "--data", str(self.gold(part)))
        return dict(scores["together"])

    def student(self, teacher: str) -> str:
        """Return the name of the tagger that learns from a model; it is trained if there is none."""
        name = f"{teacher}-taught"
        self.tagger_runs.train(name, "--teacher", teacher, "--data", str(self.text("train")))
        return name

    def open_vocabulary(self, kb: str) -> TypedVocabulary:
        """Return the vocabulary that a KALM with open names has, over the types of a knowledge base."""
        parser = argparse.ArgumentParser()
        parser.add_argument("--min-count", type=int, default=1)
        chosen, _ = parser.parse_known_args(self.options)
        training = KALMTraining(
            data=(self.text("train"),), dev=(self.text("testa"),), open_names=True, bidirectional=True,
            min_count=chosen.min_count,
        )  # fmt: skip
        return data_of(self.home, training, kb).vocabulary

    def student_of_rule(self, vocabulary: TypedVocabulary) -> str:
        """Return the name of the tagger that learns from the rule; it is trained if there is none."""
        labels = self.texts / "rule-train.conll"
        if not labels.exists():
            open_names_rule.write_labels(self.gold("train"), vocabulary, labels)
        self.tagger_runs.train("rule-taught", "--data", str(labels))
        return "rule-taught"


def data_of(home: Home, training: KALMTraining, kb: str) -> WordData:
    """Return what a KALM with the types of a knowledge base learns from."""
    with open_kb(kb, home.path) as types:
        return read_data(home, training, types)


def language_table(bench: Bench, names: Sequence[str]) -> Table:
    """Return the perplexities of models."""
    rows = []
    for name in names:
        manifest = bench.runs.manifest(name)
        if manifest is None:
            continue
        parts = [bench.perplexity(name, part) for part in ("testa", "testb")]
        figures = [
            f"{part[key]:{form}}" for part in parts for key, form in (("nats", ".3f"), ("perplexity", ".1f"))
        ]
        seconds = manifest.results["seconds"]
        epochs = len(manifest.results["epochs"])
        rows.append([name, *figures, f"{epochs}", f"{seconds / 60:.1f}"])
    columns = "model", "nats, valid", "perplexity", "nats, test", "perplexity", "epochs", "minutes"
    return Table(title="KALM as a language model", notes=LANGUAGE_NOTES, columns=columns, rows=rows)


def name_cells(scores: Mapping[str, Any]) -> list[str]:
    """Return the cells of a part, as `HEADS` has them, of what `kgkit evaluate ner` says."""
    types = scores["tokens_by_type"]
    return [
        *(f"{100 * scores[unit]['f1']:.1f}" for unit in ("overall", "tokens")),
        *(f"{100 * types[kind]['f1']:.1f}" if kind in types else "" for kind in TYPES),
    ]


def names_table(bench: Bench, models: Sequence[str]) -> Table:
    """Return the scores of names that models find."""
    rows = []
    for title, row in NAMES.items():
        if row.model not in models or bench.runs.manifest(row.model) is None:
            continue
        cells = [title, "" if row.is_student else f"{row.type_prior}"]
        for part in PARTS:
            cells += name_cells(bench.names(row, part))
        rows.append(cells)
    return Table(title="Names without a label", notes=NAMES_NOTES, columns=["", "β", *HEADS], rows=rows)


def rule_table(bench: Bench) -> Table:
    """Return the scores of the rule for open names, and of the tagger that it taught."""
    rows = []
    vocabulary = bench.open_vocabulary(bench.kb)
    for title, words in (
        ("look-up, open names are PER", vocabulary),
        ("the same, wider vocabulary", bench.open_vocabulary(bench.wide())),
    ):
        cells = [title]
        for part in PARTS:
            cells += name_cells(open_names_rule.score_rule(bench.gold(part), words).as_dict())
        rows.append(cells)
    student = bench.student_of_rule(vocabulary)
    cells = ["taught by the rule"]
    for part in PARTS:
        cells += name_cells(bench.tagger_scores(student, part))
    return Table(title="Open names by a rule", notes=RULE_NOTES, columns=["", *HEADS], rows=[*rows, cells])


class ReducedKBRow(NamedTuple):
    """What a model of both directions does with a share of the words of its knowledge base left out.

    Attributes:
        percent: share of the words that are left out.
        nats, perplexity: of a word of testa; a pseudo-perplexity.
        names, tokens: F1 of names and of tokens of names on testb.
    """

    percent: int
    nats: float
    perplexity: float
    names: float
    tokens: float


def score_reduced_kbs(bench: Bench) -> list[ReducedKBRow]:
    """Train the models with words of the knowledge base left out, and return their scores."""
    rows = []
    for percent in REDUCED_KB_SHARES:
        name = f"without-{percent}-both" if percent else "kalm-both"
        same_vocabulary = ["--words", str(bench.kb_words())] if percent else []
        bench.train(name, [*MODELS["kalm-both"], *same_vocabulary], bench.reduced_kb(percent))
        nats = bench.perplexity(name, "testa")
        scores = bench.names(NameRow(name, 0.6), "testb")
        f1 = [100 * scores[unit]["f1"] for unit in ("overall", "tokens")]
        rows.append(ReducedKBRow(percent, nats["nats"], nats["perplexity"], *f1))
    bench.train("awd-both", MODELS["awd-both"])
    nats = bench.perplexity("awd-both", "testa")
    return [*rows, ReducedKBRow(100, nats["nats"], nats["perplexity"], 0.0, 0.0)]


def reduced_kb_table(measured: Sequence[ReducedKBRow]) -> Table:
    """Return perplexity and F1 with words of the knowledge base left out."""
    rows = [
        [f"{row.percent} %", f"{row.nats:.3f}", *(f"{figure:.1f}" for figure in row[2:])] for row in measured
    ]
    columns = "left out", "nats, valid", "pseudo-perplexity", "F1 of names, test", "F1 of tokens"
    return Table(title="KALM with words left out", notes=REDUCED_KB_NOTES, columns=columns, rows=rows)


def draw_reduced_kbs(measured: Sequence[ReducedKBRow], path: Path) -> None:
    """Draw perplexity and F1 over the share of words that are left out, as Figure 3 of Liu et al. (2019)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.4), layout="constrained")
    perplexity = figure.subplots()
    scores = perplexity.twinx()
    shares = [row.percent for row in measured]
    perplexity.plot(shares, [row.perplexity for row in measured], "o-", label="pseudo-perplexity", color="C0")
    scores.plot(shares, [row.names for row in measured], "s--", label="F1 of names", color="C1")
    scores.plot(shares, [row.tokens for row in measured], "^--", label="F1 of tokens", color="C2")
    perplexity.set_ylabel("pseudo-perplexity, valid")
    scores.set_ylabel("F1, test")
    highest = max(row.perplexity for row in measured), max(row.tokens for row in measured)
    for axes, top in zip((perplexity, scores), highest, strict=True):
        axes.set_ylim(0, 1.25 * max(top, 1))
        axes.spines["top"].set_visible(False)
    perplexity.set_xticks(shares, [f"{share} %" for share in shares])
    perplexity.set_xlabel("words of the knowledge base left out")
    figure.legend(fontsize=7, frameon=False, ncols=3, loc="outside upper center")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train what is not there, and write the tables to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kalm")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of data sets")
    parser.add_argument("--kb", default="conll", help="knowledge base of types")
    parser.add_argument("--part", action="append", choices=["language", "names", "rule", "left-out"])
    parser.add_argument("--picture", type=Path, metavar="FILE", help="picture of the part left-out")
    parser.add_argument("--only", action="append", choices=[*MODELS], help="train and score these alone")
    chosen, options = parser.parse_known_args(arguments)
    bench = Bench(Home(chosen.home), chosen.data, chosen.kb, options)
    parts = chosen.part or ["language", "names"]
    chosen_models = {*LANGUAGE} if "language" in parts else set[str]()
    chosen_models |= {row.model for row in NAMES.values()} if "names" in parts else set[str]()
    models = [name for name in MODELS if name in chosen_models and name in (chosen.only or MODELS)]
    for name in models:
        bench.train(name, MODELS[name])
        print(f"{name} is trained", file=sys.stderr, flush=True)
    if "language" in parts:
        print(language_table(bench, [name for name in models if name in LANGUAGE]).markdown())
    if "names" in parts:
        print(names_table(bench, models).markdown())
    if "rule" in parts:
        print(rule_table(bench).markdown())
    if "left-out" in parts:
        measured = score_reduced_kbs(bench)
        print(reduced_kb_table(measured).markdown())
        if chosen.picture is not None:
            draw_reduced_kbs(measured, chosen.picture)


if __name__ == "__main__":
    main()
