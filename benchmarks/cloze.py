r"""LAMA by a masked language model, and by KnowBerts.

    python -m benchmarks.lama_kb WORK_DIR/lama
    python -m benchmarks.cloze --home HOME --facts WORK_DIR/lama/facts.jsonl --encoder base --kb lama \
                               [--knowbert NAME …] [--out OUT_DIR]

The home has the masked language model, and the knowledge base with vectors (`kgkit embed`) and their map
(`kgkit align KB/VECTORS --encoder ENCODER`). Each row has the scores of `kgkit evaluate cloze`, and the same
of the subjects with a vector alone. It is kept in the home: a run that was stopped goes on, and a row whose
model, vectors and map are the same is not asked for again. Vectors of `benchmarks.other_vectors` have rows
where the knowledge base has them. What names suggest is asked of the plain model, once for all rows. The
tables go to the standard output, the pictures `filters.svg`, `filters-with-vector.svg` and `hits.svg` to
OUT_DIR.

LAMA is CC BY-NC 4.0: it is read from the shared data, and not passed on.
"""

import argparse
import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.answers import compute_once, run_once
from benchmarks.cloze_injection import injected_cloze_model
from benchmarks.harness import REPOSITORY
from benchmarks.other_vectors import OF_RELATION, OTHERS
from benchmarks.report import Table
from kgkit.evaluation.cloze import (
    NameGuesses,
    NameQuestion,
    filtered,
    name_questions,
    score_subsets,
)
from kgkit.evaluation.facts import GOOGLE_RE, cloze_questions, draw_facts, read_facts, read_templates
from kgkit.evaluation.significance import paired_test
from kgkit.home import Home
from kgkit.kb import open_kb
from kgkit.methods.cloze import ClozeModel, cloze_guesses, name_guesses
from kgkit.methods.cloze_opening import (
    open_cloze_model,
    open_masked_lm,
    plain_cloze_model,
    subject_entities,
)
from kgkit.models.folder import find_trained, has_model
from kgkit.models.manifest import MANIFEST
from kgkit.vectors import find_vectors, vectors_names

OTHER_VECTORS: Final = {
    "concat, another's of the type": OTHERS,
    "concat, another's of the relation": OF_RELATION,
}
"""Rows over vectors of `benchmarks.other_vectors`, by what the name of the vectors ends in."""
FILTERS: Final = {
    "none": "no filter", "string": "string match", "names": "LAMA-UHN", "easy": "complement"
}  # fmt: skip
SUBJECTS: Final = {"all": "all subjects", "with_vector": "subjects with a vector"}
SHOWN: Final = (1, 10, 100)
FREQUENT: Final = "most frequent object"

NOTES: Final = """
Hits@k, averaged within, then across relations (`Google-RE`: 3, `T-REx`: 28, `LAMA`: both), and over all
questions (`micro`); `objects`: among the objects of the relation. {count} questions; the vocabulary has
{vocabulary:,} whole words, and {no_word} questions whose answer is none of them are left out. The most
frequent object is known from these very questions.
"""


class Row(NamedTuple):
    """What a model made of LAMA.

    Attributes:
        name: name in the tables.
        sets: scores by filter and subjects, as the command has them.
        vocabulary, no_word: words that are compared, and questions left out.
    """

    name: str
    sets: dict[tuple[str, str], dict[str, Any]]
    vocabulary: int
    no_word: int


class LamaRows:
    """Evaluates the rows that have not been evaluated yet.

    Args:
        home: home of models, knowledge base and results.
        encoder: plain masked language model.
        kb: knowledge base of the subjects.
        vectors: their vectors.
        facts: facts, with the keys of their subjects.
        templates: templates of their relations.
        limit: facts of each relation, drawn at random; None: all.
        device: torch device that models compute on.
    """

    def __init__(
        self,
        home: Home,
        encoder: str,
        kb: str,
        vectors: str,
        facts: Path,
        templates: Path,
        limit: int | None = None,
        device: str = "auto",
    ) -> None:
        self.home, self.encoder, self.kb, self.vectors = home, encoder, kb, vectors
        self.device = device
        self._templates = read_templates(templates)
        self._facts = draw_facts(list(read_facts(facts)), limit, seed=0)
        content = facts.read_bytes() + templates.read_bytes() + repr(limit).encode()
        self._identity = hashlib.blake2b(content).digest()
        key = hashlib.blake2b(self._identity + _model_identity(home, encoder), digest_size=6).hexdigest()
        self._names = home.path / "asked" / f"names-{Path(encoder).name}-{key}.json"
        self._names.parent.mkdir(parents=True, exist_ok=True)

    def row(self, name: str, *, injected: bool = False, model: str = "", vectors: str = "") -> Row:
        """Return a row: of the plain model, with vectors if they are *injected*, or of a trained *model*."""
        vectors = vectors or self.vectors
        identity = self._identity + _model_identity(self.home, model or self.encoder)
        identity += self._vectors_identity(vectors) + repr((name, vectors, injected)).encode()
        file = "-".join(["cloze", *name.replace(",", "").split()]).replace("/", "-")
        answer = compute_once(self.home, file, identity, lambda: self._answer(injected, model, vectors))
        print(f"{name}: done", file=sys.stderr, flush=True)
        sets = {(each["filter"], each["subjects"]): each for each in answer["sets"]}
        return Row(name, sets, answer["vocabulary"], answer["no_word"])

    def _answer(self, injected: bool, model: str, vectors_name: str) -> bytes:
        """Return the scores of a row, as JSON."""
        questions = cloze_questions(self._facts, {**GOOGLE_RE, **self._templates}).instances
        objects = [question for question in questions if question.hidden == "object"]
        with ExitStack() as stack:
            kb = stack.enter_context(open_kb(self.kb, self.home.path))
            vectors = kb.vectors(vectors_name)
            entities = subject_entities(self._facts, kb, vectors)
            answering: ClozeModel
            if model:
                answering = stack.enter_context(open_cloze_model(model, self.home, self.device))
            else:
                masked_lm = stack.enter_context(open_masked_lm(self.encoder, self.home, self.device))
                answering = plain_cloze_model(masked_lm)
                if injected:
                    answering = injected_cloze_model(masked_lm, vectors, entities)
            guesses = cloze_guesses(answering, objects)
            words = len(answering.words)
        by_filter = filtered(self._facts, self._name_guesses())
        has_vector = frozenset((entities >= 0).nonzero()[0].tolist())
        by_subjects = {
            "all": by_filter,
            "with_vector": {name: indices & has_vector for name, indices in by_filter.items()},
        }
        sets = [
            {"filter": subset.filter, "subjects": subjects, **_plain(subset.hits)}
            for subjects, own in by_subjects.items()
            for subset in score_subsets(guesses.guesses, own)
        ]
        answer = {"vocabulary": words, "no_word": len(guesses.no_word), "sets": sets}
        return msgspec.json.encode(answer)

    def _name_guesses(self) -> NameGuesses:
        """Return what the plain model says of names, which is asked once."""
        if not self._names.exists():
            with open_masked_lm(self.encoder, self.home, self.device) as masked_lm:
                guesses = name_guesses(plain_cloze_model(masked_lm), name_questions(self._facts))
            rows = [(*question, words) for question, words in guesses.items()]
            self._names.write_bytes(msgspec.json.encode(rows))
        kept = msgspec.json.decode(self._names.read_bytes(), type=list[tuple[str, str, tuple[str, ...]]])
        return {NameQuestion(name, noun): words for name, noun, words in kept}

    def has_vectors(self, name: str) -> bool:
        """Return whether the knowledge base has vectors of that name."""
        return name in vectors_names(self.home.kb(self.kb))

    def _vectors_identity(self, name: str) -> bytes:
        folder = find_vectors(self.home.kb(self.kb), name).resolve()
        maps = sorted(folder.glob("align-*/align.json"))
        return b"".join([folder.name.encode(), *(path.read_bytes() for path in maps)])


def _plain(hits: Mapping[str, Any]) -> dict[str, Any]:
    """Return Hits@k by what is compared, as `kgkit evaluate cloze --json` has them."""
    return {
        name: {
            "questions": own.questions,
            "macro": own.macro,
            "micro": own.micro,
            "relations": {
                relation: {"questions": count, "hits": curve}
                for relation, (count, curve) in own.relations.items()
            },
        }
        for name, own in hits.items()
    }


def _model_identity(home: Home, name: str) -> bytes:
    return (find_trained(home, name) / MANIFEST).read_bytes() if has_model(home, name) else name.encode()


# -- tables -----------------------------------------------------------------


def macro(scores: Mapping[str, Any], k: int, relations: Callable[[str], bool]) -> float | None:
    """Return Hits@k averaged across some of the relations; None if there is no such."""
    values = [each["hits"][str(k)] for name, each in scores["relations"].items() if relations(name)]
    return sum(values) / len(values) if values else None


def table(rows: Sequence[Row], filter_name: str, subjects: str) -> Table:
    """Return the table of one filter, of all subjects or of those with a vector."""
    key = filter_name, subjects
    lines = [_line(row.name, row.sets[key]["vocabulary"], row.sets[key]["objects"]) for row in rows]
    first = rows[0]
    lines.append(_line(FREQUENT, first.sets[key]["frequent"], None))
    count = f"{first.sets[key]['vocabulary']['questions']:,}"
    notes = NOTES.format(count=count, vocabulary=first.vocabulary, no_word=f"{first.no_word:,}")
    columns = (
        "", "Google-RE @1", "T-REx @1", *(f"LAMA @{k}" for k in SHOWN), "micro @1", "objects @1",
    )  # fmt: skip
    return Table(
        title=f"LAMA, {FILTERS[filter_name]}, {SUBJECTS[subjects]}", notes=notes, columns=columns, rows=lines
    )


def _line(name: str, words: Mapping[str, Any], objects: Mapping[str, Any] | None) -> list[str]:
    figures = [
        macro(words, 1, lambda relation: relation in GOOGLE_RE),
        macro(words, 1, lambda relation: relation not in GOOGLE_RE),
        *(words["macro"][str(k)] for k in SHOWN),
        words["micro"]["1"],
        None if objects is None else objects["macro"]["1"],
    ]
    return [name, *("" if value is None else f"{100 * value:.1f}" for value in figures)]


def relation_table(rows: Sequence[Row]) -> Table:
    """Return Hits@1 of each relation without a filter and in LAMA-UHN, as Tables 10 to 12 of the paper."""
    by_filter = {name: rows[0].sets[name, "all"]["vocabulary"]["relations"] for name in FILTERS}
    lines = []
    for relation in by_filter["none"]:
        counts = [str(by_filter[name].get(relation, {}).get("questions", 0)) for name in FILTERS]
        hits = [
            _percent(row.sets[name, "all"]["vocabulary"]["relations"].get(relation))
            for row in rows
            for name in ("none", "names")
        ]
        lines.append([relation, *counts, *hits])
    columns = ["relation", *FILTERS.values()]
    columns += [f"{row.name}, {FILTERS[name]}" for row in rows for name in ("none", "names")]
    return Table(title="Relations", notes="Questions, and Hits@1.", columns=columns, rows=lines)


def difference_table(rows: Sequence[Row], filter_name: str) -> Table:
    """Return the differences of mean Hits@k to the first row, with a paired test over relations."""
    first, *compared = rows
    lines = []
    for row in compared:
        line = [row.name]
        for k in SHOWN:
            hits, hits_first = (_hits(each, filter_name, k) for each in (row, first))
            p = paired_test(hits[:, None], hits_first[:, None], lambda sums: sums[..., 0])
            line += [f"{100 * (hits - hits_first).mean():+.1f}", f"{p:.4f}"]
        lines.append(line)
    columns = ["", *(name for k in SHOWN for name in (f"@{k}", f"p of @{k}"))]
    notes = (
        "Mean Hits@k less that of the first row; p: relations change sides (`kgkit.evaluation.significance`)."
    )
    return Table(
        title=f"LAMA, {FILTERS[filter_name]}: beside {first.name}", notes=notes, columns=columns, rows=lines
    )


def _hits(row: Row, filter_name: str, k: int) -> NDArray[np.float64]:
    """Return Hits@k (R) of each relation, in their order."""
    relations = row.sets[filter_name, "all"]["vocabulary"]["relations"]
    return np.array([relations[name]["hits"][str(k)] for name in sorted(relations)])


def _percent(scores: Mapping[str, Any] | None) -> str:
    return "" if scores is None else f"{100 * scores['hits']['1']:.1f}"


# -- pictures ---------------------------------------------------------------


def draw_filters(rows: Sequence[Row], path: Path, subjects: str = "all") -> None:
    """Draw Hits@1 by model, a bar for each filter, as Figure 2 of Poerner et al. (2020)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.6 + 1.3 * (len(rows) + 1), 3.6), layout="constrained")
    axes = figure.subplots()
    names = [*(row.name for row in rows), FREQUENT]
    for number, (name, label) in enumerate(FILTERS.items()):
        heights = [100 * row.sets[name, subjects]["vocabulary"]["macro"]["1"] for row in rows]
        heights.append(100 * rows[0].sets[name, subjects]["frequent"]["macro"]["1"])
        positions = [index + 0.2 * (number - 1.5) for index in range(len(names))]
        bars = axes.bar(positions, heights, width=0.18, label=label, color=f"C{number}")
        axes.bar_label(bars, fmt="%.1f", fontsize=6, padding=1)
    axes.set_xticks(range(len(names)), [name.replace(", ", ",\n") for name in names], fontsize=8)
    axes.set_ylabel("mean Hits@1")
    axes.set_title(f"LAMA, {SUBJECTS[subjects]}", fontsize=10)
    axes.legend(fontsize=7, frameon=False, ncols=len(FILTERS), loc="upper left")
    axes.margins(y=0.2)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def draw_hits(rows: Sequence[Row], path: Path, filter_name: str = "names") -> None:
    """Draw Hits@k over k, a line for each model."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.6), layout="constrained")
    axes = figure.subplots()
    curves = [(row.name, row.sets[filter_name, "all"]["vocabulary"]["macro"]) for row in rows]
    for name, curve in [*curves, (FREQUENT, rows[0].sets[filter_name, "all"]["frequent"]["macro"])]:
        style = "--" if name == FREQUENT else "-"
        axes.plot([int(k) for k in curve], [100 * hits for hits in curve.values()], style, label=name)
    axes.set_xscale("log")
    axes.set_xticks(SHOWN, [str(k) for k in SHOWN])
    axes.set_xlabel("k")
    axes.set_ylabel("mean Hits@k")
    axes.set_title(f"LAMA, {FILTERS[filter_name]}", fontsize=10)
    axes.legend(fontsize=7, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


# -- all --------------------------------------------------------------------


def all_rows(lama: LamaRows, knowberts: Iterable[str] = ()) -> list[Row]:
    """Return the rows of all models: plain, and KnowBerts."""
    rows = [lama.row("plain")]
    rows += [lama.row(name, model=name) for name in knowberts]
    rows.append(lama.row("concat", injected=True))
    others = {name: f"{lama.vectors}{end}" for name, end in OTHER_VECTORS.items()}
    rows += [
        lama.row(name, injected=True, vectors=vectors)
        for name, vectors in others.items()
        if lama.has_vectors(vectors)
    ]
    return rows


def write(rows: Sequence[Row], out: Path | None) -> str:
    """Return the tables as Markdown, and draw the pictures into *out*."""
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        draw_filters(rows, out / "filters.svg")
        draw_filters(rows, out / "filters-with-vector.svg", "with_vector")
        draw_hits(rows, out / "hits.svg")
    tables = [table(rows, name, subjects) for subjects in SUBJECTS for name in FILTERS]
    tables += [difference_table(rows, name) for name in ("none", "names")]
    return "\n".join(each.markdown() for each in [*tables, relation_table(rows)])


def main() -> None:
    """Ask for what the command line names, and write the tables to the standard output."""
    data = REPOSITORY.parent / "shared" / "data" / "lama"
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cloze")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--facts", type=Path, required=True, metavar="FILE", help="facts.jsonl of lama_kb")
    parser.add_argument("--templates", type=Path, default=data / "relations.jsonl", metavar="FILE")
    parser.add_argument("--squad", type=Path, default=data / "Squad" / "test.jsonl.xz", metavar="FILE")
    parser.add_argument("--encoder", default="base", help="plain masked language model")
    parser.add_argument("--knowbert", action="append", default=[], metavar="NAME")
    parser.add_argument("--kb", default="lama")
    parser.add_argument("--vectors", default="text")
    parser.add_argument("--limit", type=int, metavar="N", help="facts of each relation; by default all")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, metavar="OUT_DIR", help="folder for the pictures")
    chosen = parser.parse_args()
    common = (Home(chosen.home), chosen.encoder, chosen.kb, chosen.vectors)
    lama = LamaRows(*common, chosen.facts, chosen.templates, chosen.limit, chosen.device)
    rows = all_rows(lama, chosen.knowbert)
    print(write(rows, chosen.out))
    if chosen.squad.exists():
        print(squad_table(Home(chosen.home), chosen.encoder, chosen.knowbert, chosen.squad).markdown())


def squad_table(home: Home, encoder: str, knowberts: Iterable[str], path: Path) -> Table:
    """Return Hits@k of the sentences of SQuAD, which name no subject: nothing is read for one."""
    models = [("plain", "--encoder", encoder), *((name, "--model", name) for name in knowberts)]
    lines = []
    for name, option, model in models:
        words = ["evaluate", "cloze", "--data", str(path), option, model]
        answer = run_once(home, f"squad-{name}", _model_identity(home, model), words)
        [scores] = (each["vocabulary"] for each in answer["sets"] if each["filter"] == "none")
        figures = [f"{100 * scores['macro'][str(k)]:.1f}" for k in SHOWN]
        lines.append([name, str(scores["questions"]), *figures])
    columns = ("", "questions", *(f"@{k}" for k in SHOWN))
    return Table(title="LAMA, SQuAD", notes="Hits@k.", columns=columns, rows=lines)


if __name__ == "__main__":
    main()
