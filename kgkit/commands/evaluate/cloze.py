"""`kgkit evaluate cloze`: score a masked language model on facts, as sentences with a name masked."""

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kgkit.commands.evaluate.sets import (
    VersusOption,
    check_sets,
    percents,
    versus_field,
    write_compared,
    write_scores,
)
from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    BatchOption,
    DeviceOption,
    JSONOption,
    SeedOption,
    repeated,
)
from kgkit.commands.output import number, typed, write_json
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from kgkit.evaluation.cloze import ClozeGuess, Filter, HitsScore, NameGuesses, SubsetScore
    from kgkit.evaluation.facts import ClozeQuestion, ClozeQuestions, Fact
    from kgkit.evaluation.significance import Comparison
    from kgkit.home import Home
    from kgkit.methods.cloze import ClozeModel

_FILTERS: "Final[Mapping[str, str]]" = {
    "none": "no filter",
    "string": "string match",
    "names": "person name (LAMA-UHN)",
    "easy": "taken out",
}


def cloze(
    data: Annotated[
        list[Path], repeated("--data", "FILE", "Facts as JSON lines: subject, relation, object; or LAMA's")
    ],
    templates: Annotated[
        Path | None,
        typer.Option(
            "--templates",
            metavar="FILE",
            help='JSON lines: relation, template ("[X] was born in [Y] ."). Those of Google-RE are known.',
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Trained model that predicts masked words (`kgkit models list` names them), or its folder.",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            metavar="NAME",
            help="Plain masked language model: a trained one, a folder, an installed package or a hub id.",
        ),
    ] = None,
    name_model: Annotated[
        str | None,
        typer.Option(
            "--name-model",
            metavar="NAME",
            help="Plain masked language model that is asked what names suggest, for LAMA-UHN.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=1, metavar="N", help="Facts of each relation, drawn at random; by default all."
        ),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            "--predictions",
            metavar="FILE",
            help="Write each question, its ranks and the likeliest words, as JSON lines.",
        ),
    ] = None,
    versus: VersusOption = None,
    batch: BatchOption = 32,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    as_json: JSONOption = False,
) -> None:
    """Score a masked language model on facts: sentences with a name masked.

    Of each fact the object is masked; the score is Hits@k among the whole words of the vocabulary, and among
    the objects of the relation. Questions are also scored without those whose answer the subject's name says
    or suggests. `--versus` compares Hits@k with those of another model, by a paired test over questions.
    """
    from kgkit.catalog.runs import recorded
    from kgkit.evaluation.cloze import (
        filtered,
        read_cloze_predictions,
        score_subsets,
        write_cloze_predictions,
    )
    from kgkit.home import Home
    from kgkit.methods.cloze import cloze_guesses

    if (model is None) == (encoder is None):
        raise UsageError("give exactly one of --model NAME, a trained model, and --encoder NAME")
    check_sets([*data, templates, versus], predictions)
    messages, where = Messages(bars=not as_json), Home.find()
    facts, questions = _read_questions(data, templates, limit, seed)
    run = recorded(
        where, command=typed(), device=device,
        model=model or None,
        data=[*data, *([templates] if templates else [])], seeds=[seed],
        config={"model": model, "encoder": encoder, "limit": limit},
    )  # fmt: skip
    with _opened(model, encoder, where, device) as answering, run as record:
        name_guesses = _name_guesses(name_model, facts, where, device, batch, messages)
        facts_by_filter = filtered(facts, name_guesses)
        others = None if versus is None else read_cloze_predictions(versus, questions.instances, facts)
        with messages.progress(f"asking {answering.name}") as tell:
            guesses = cloze_guesses(
                answering, questions.instances, size=batch,
                progress=lambda _, count, total: tell(f"{count:,} of {total:,}", count, total),
            )  # fmt: skip
        _check_scored(len(guesses.guesses), len(guesses.too_long), guesses.no_word)
        scores = score_subsets(guesses.guesses, facts_by_filter)
        for subset in scores:
            for answers, hits in subset.hits.items():
                record.score("cloze", subset.filter, f"{answers}_hits@1", hits.macro[1], hits.questions)
        if predictions is not None:
            write_cloze_predictions(predictions, guesses.guesses, facts, facts_by_filter)
        differences = {}
        if others is not None:
            differences = _compare_hits(others, guesses.guesses, facts_by_filter, messages)
    if as_json:
        counts = {
            "vocabulary": len(answering.words), "no_word": len(guesses.no_word),
            "too_long": len(guesses.too_long), "without_template": questions.without_template,
        }  # fmt: skip
        sets = [
            {"filter": subset.filter} | {name: _plain(hits) for name, hits in subset.hits.items()}
            | versus_field(differences, subset.filter)
            for subset in scores
        ]  # fmt: skip
        write_json({"model": answering.name, **counts, "sets": sets})
    else:
        _write_hits(scores)
        write_compared({_FILTERS[name]: own for name, own in differences.items()}, what="filter")
    messages.write(f"the vocabulary has {len(answering.words):,} whole words")
    if guesses.no_word:
        count = len(guesses.no_word)
        messages.write(f"{count:,} questions are left out: their answer is no word of the vocabulary")
    if guesses.too_long:
        messages.write(f"{len(guesses.too_long):,} sentences are too long for the model")
    if name_guesses is None:
        messages.write("--name-model NAME adds LAMA-UHN, without names that suggest the answer")
    if without := questions.without_template:
        messages.write(f"no template for {sum(without.values()):,} facts of {', '.join(without)}")


def _read_questions(
    files: Sequence[Path], templates: Path | None, limit: int | None, seed: int
) -> "tuple[list[Fact], ClozeQuestions]":
    """Return the facts, and the questions whose object is hidden."""
    from kgkit.evaluation.facts import GOOGLE_RE, cloze_questions, draw_facts, read_facts, read_templates

    facts = draw_facts([fact for path in files for fact in read_facts(path)], limit, seed)
    own = read_templates(templates) if templates else {}
    questions = cloze_questions(facts, {**GOOGLE_RE, **own})
    if not questions.instances:
        what = f"{templates} has a template for" if templates else "there is a template (--templates) for"
        raise UsageError(f"{what} none of the relations: {', '.join(questions.without_template)}")
    objects = [each for each in questions.instances if each.hidden == "object"]
    return facts, questions._replace(instances=objects)


@contextmanager
def _opened(model: str | None, encoder: str | None, home: "Home", device: str) -> "Iterator[ClozeModel]":
    """Open the trained model, or the plain masked language model, that answers."""
    from kgkit.methods.cloze_opening import open_cloze_model, open_masked_lm, plain_cloze_model

    if model is not None:
        with open_cloze_model(model, home, device) as trained:
            yield trained
    else:
        with open_masked_lm(encoder or "", home, device) as masked_lm:
            yield plain_cloze_model(masked_lm)


def _name_guesses(
    name_model: str | None,
    facts: "Sequence[Fact]",
    home: "Home",
    device: str,
    batch: int,
    messages: Messages,
) -> "NameGuesses | None":
    """Return the plain model's guesses of names, if one is named."""
    from kgkit.evaluation.cloze import name_questions
    from kgkit.methods.cloze import name_guesses
    from kgkit.methods.cloze_opening import open_masked_lm, plain_cloze_model

    if name_model is None:
        return None
    with (
        open_masked_lm(name_model, home, device) as masked_lm,
        messages.progress(f"asking {name_model} about names") as tell,
    ):
        return name_guesses(
            plain_cloze_model(masked_lm), name_questions(facts), size=batch,
            progress=lambda _, count, total: tell(f"{count:,} of {total:,}", count, total),
        )  # fmt: skip


def _compare_hits(
    others: "Sequence[ClozeGuess]",
    guesses: "Sequence[ClozeGuess]",
    facts_by_filter: "Mapping[Filter, Collection[int]]",
    messages: Messages,
) -> "dict[str, dict[str, Comparison]]":
    """Return how Hits@k of the questions that each filter leaves differ, by filter and by k.

    Raises:
        UsageError: if no question is answered by both.
    """
    from kgkit.evaluation.cloze import hits_columns, paired_guesses

    first, second = paired_guesses(others, guesses)
    if not second:
        raise UsageError("no question is answered by both models, so there is nothing to compare")
    if missing := len(others) + len(guesses) - 2 * len(second):
        messages.write(
            f"{missing:,} predictions for questions that the other model has none for are left out of the "
            "comparison"
        )
    differences: dict[str, dict[str, Comparison]] = {}
    for name, indices in facts_by_filter.items():
        own = [row for row, guess in enumerate(second) if guess.question.fact in indices]
        columns = hits_columns([first[row] for row in own], [second[row] for row in own]) if own else []
        differences[name] = {each.metric: each.compare() for each in columns}
    return differences


def _check_scored(scored: int, too_long: int, no_word: "Sequence[ClozeQuestion]") -> None:
    """Refuse to write scores of no question at all."""
    if scored:
        return
    example = f", as {no_word[0].answer!r}" if no_word else ""
    raise UsageError(
        f"no question can be scored: the answers of {len(no_word):,} are no single word of the vocabulary"
        f"{example}, and {too_long:,} sentences are too long for the model"
    )


# -- output -----------------------------------------------------------------


def _write_hits(scores: "Sequence[SubsetScore]") -> None:
    headings = ["questions", "Hits@1", "Hits@10", "Hits@100", "micro @1", "objects @1", "most frequent @1"]
    rows = []
    for subset in scores:
        words, objects, frequent = (subset.hits[name] for name in ("vocabulary", "objects", "frequent"))
        figures = (words.macro[1], words.macro[10], words.macro[100], words.micro[1], objects.macro[1])
        shown = percents(*figures, frequent.macro[1])
        cells = [number(words.questions), *(shown if words.questions else [""] * len(shown))]
        rows.append((_FILTERS[subset.filter], [cells]))
    write_scores([], headings, rows, "filter")


def _plain(hits: "HitsScore") -> dict[str, Any]:
    return {
        "questions": hits.questions,
        "macro": {str(k): value for k, value in hits.macro.items()},
        "micro": {str(k): value for k, value in hits.micro.items()},
        "relations": {
            name: {"questions": count, "hits": {str(k): value for k, value in curve.items()}}
            for name, (count, curve) in hits.relations.items()
        },
    }
