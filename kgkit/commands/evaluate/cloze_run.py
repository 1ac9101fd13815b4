"""Asking a model cloze questions, writing its scores and recording them."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgkit.commands.evaluate.cloze_scores import write_compared_hits, write_hits, write_hits_json
from kgkit.commands.evaluate.sets import TOGETHER, write_scores
from kgkit.commands.evaluate.versus import compare_columns
from kgkit.commands.messages import Messages
from kgkit.commands.output import number, write_json, write_line
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kgkit.catalog.runs import RunRecord
    from kgkit.evaluation.cloze import ClozeGuess, Filter, NameGuesses
    from kgkit.evaluation.facts import ClozeQuestion, ClozeQuestions, Fact
    from kgkit.home import Home
    from kgkit.methods.cloze import ClozeModel


def score_by_recall(
    model: "ClozeModel",
    questions: "ClozeQuestions",
    batch: int,
    messages: Messages,
    record: "RunRecord",
    *,
    as_json: bool,
) -> None:
    """Score a model by the ranks of all masked word pieces, record the scores and write them.

    Raises:
        UsageError: if no question can be scored.
    """
    from kgkit.evaluation.facts import score_recall
    from kgkit.methods.cloze import recall_ranks

    with messages.progress(f"asking {model.name}") as tell:
        ranks = recall_ranks(
            model, questions.instances, size=batch,
            progress=lambda _, count, total: tell(f"{count:,} of {total:,}", count, total),
        )  # fmt: skip
        score = score_recall(ranks)
    _check_scored(score.instances, len(questions.instances), [])
    record.score("cloze", TOGETHER, "mrr", score.mrr, score.pieces)
    for relation, (mrr, instances) in score.relations.items():
        record.score("cloze", relation, "mrr", mrr, instances)
    relations = score.relations.items()
    if as_json:
        by_relation = {relation: {"mrr": mrr, "instances": count} for relation, (mrr, count) in relations}
        missing = {"without_template": questions.without_template}
        write_json({"model": model.name, **score._asdict(), "relations": by_relation, **missing})
    else:
        rows = [(relation, [(number(count), f"{mrr:.4f}")]) for relation, (mrr, count) in relations]
        rows.append((TOGETHER, [(number(score.instances), f"{score.mrr:.4f}")]))
        write_scores([], ["instances", "MRR"], rows, "relation")
    if lost := len(questions.instances) - score.instances:
        messages.write(f"{lost:,} sentences are too long for the model")


def find_name_guesses(
    name_model: str | None,
    path: Path | None,
    facts: "Sequence[Fact]",
    home: "Home",
    device: str,
    batch: int,
    messages: Messages,
) -> "NameGuesses | None":
    """Return what the plain model says of names: as the file has it, else asked now, and kept in the file."""
    from kgkit.evaluation.cloze import name_questions, read_name_guesses, write_name_guesses
    from kgkit.methods.cloze import name_guesses
    from kgkit.methods.cloze_opening import open_masked_lm, plain_cloze_model

    if path is not None and path.exists():
        model, guesses = read_name_guesses(path)
        if name_model not in (None, model):
            raise UsageError(f"{path} has what {model} said of names, not {name_model}: name another file")
        return guesses
    if name_model is None:
        return None
    with (
        open_masked_lm(name_model, home, device) as masked_lm,
        messages.progress(f"asking {name_model} about names") as tell,
    ):
        guesses = name_guesses(
            plain_cloze_model(masked_lm), name_questions(facts), size=batch,
            progress=lambda _, count, total: tell(f"{count:,} of {total:,}", count, total),
        )  # fmt: skip
    if path is not None:
        write_name_guesses(path, name_model, guesses)
    return guesses


def score_by_hits(
    model: "ClozeModel",
    facts: "Sequence[Fact]",
    questions: "ClozeQuestions",
    entities: "NDArray[Any] | None",
    names: "NameGuesses | None",
    predictions: Path | None,
    versus: Path | None,
    batch: int,
    messages: Messages,
    record: "RunRecord",
    *,
    as_json: bool,
) -> None:
    """Score a model by Hits@k of the questions that each filter leaves, record the scores and write them.

    Args:
        model: what is asked.
        facts: facts that the questions are made of.
        questions: questions whose object is hidden.
        entities: (F,) entity of the subject of each fact, -1 where it has no vector; None: subjects with
            vectors are not scored apart.
        names: what a plain model says of names; None: the person name filter is left out.
        predictions: file for each guess; None: they are not written.
        versus: file of the predictions of another model; None: it is compared with none.
        batch: number of questions that are read at once.
        messages: messages to the user.
        record: record of the run.
        as_json: whether JSON is written.

    Raises:
        UsageError: if no question can be scored, or none that both models answer.
        NotThere, SourceError: if *versus* cannot be read, before anything is asked.
    """
    from kgkit.evaluation.cloze import filtered, score_subsets
    from kgkit.evaluation.cloze_predictions import read_cloze_predictions, write_cloze_predictions
    from kgkit.methods.cloze import cloze_guesses

    facts_by_filter = filtered(facts, names)
    others = None if versus is None else read_cloze_predictions(versus, questions.instances, facts)
    with messages.progress(f"asking {model.name}") as tell:
        guesses = cloze_guesses(
            model, questions.instances, size=batch,
            progress=lambda _, count, total: tell(f"{count:,} of {total:,}", count, total),
        )  # fmt: skip
    _check_scored(len(guesses.guesses), len(guesses.too_long), guesses.no_word)
    has_vector = None if entities is None else frozenset((entities >= 0).nonzero()[0].tolist())
    scores = score_subsets(guesses.guesses, facts_by_filter, has_vector)
    for subset in scores:
        dataset = subset.filter if subset.subjects == "all" else f"{subset.filter}, with vectors"
        for answers, hits in subset.hits.items():
            record.score("cloze", dataset, f"{answers}_hits@1", hits.macro[1], hits.questions)
    if predictions is not None:
        write_cloze_predictions(predictions, guesses.guesses, facts, facts_by_filter, has_vector)
    counts = {
        "vocabulary": len(model.words), "no_word": len(guesses.no_word), "too_long": len(guesses.too_long),
        "without_template": questions.without_template,
    }  # fmt: skip
    differences = []
    if others is not None:
        differences = _compare_hits(others, guesses.guesses, facts_by_filter, has_vector, messages)
    if as_json:
        write_hits_json(model.name, counts, scores, differences)
    else:
        write_hits(scores)
        if differences:
            write_line()
            write_compared_hits(scores, differences)
    messages.write(f"the vocabulary has {len(model.words):,} whole words")
    if guesses.no_word:
        messages.write(
            f"{len(guesses.no_word):,} questions are left out: their answer is no word of the vocabulary"
        )
    if guesses.too_long:
        messages.write(f"{len(guesses.too_long):,} sentences are too long for the model")
    if names is None:
        messages.write("--name-model NAME adds LAMA-UHN, without names that suggest the answer")


def _compare_hits(
    others: "Sequence[ClozeGuess]",
    guesses: "Sequence[ClozeGuess]",
    facts_by_filter: "Mapping[Filter, Collection[int]]",
    has_vector: "Collection[int] | None",
    messages: Messages,
) -> list[dict[str, Any]]:
    """Return for the questions that each filter leaves how Hits@k differ, by name, for JSON.

    Raises:
        UsageError: if no question is answered by both.
    """
    from kgkit.evaluation.cloze import hits_columns, paired_guesses, subsets

    first, second = paired_guesses(others, guesses)
    if not second:
        raise UsageError("no question is answered by both models, so there is nothing to compare")
    if missing := len(others) + len(guesses) - 2 * len(second):
        messages.write(
            f"{missing:,} predictions for questions that the other model has none for are left out of the "
            "comparison"
        )
    differences = []
    for _, _, indices in subsets(facts_by_filter, has_vector):
        own = [row for row, guess in enumerate(second) if guess.question.fact in indices]
        columns = hits_columns([first[row] for row in own], [second[row] for row in own]) if own else []
        compared: dict[str, Any] = {"questions": len(own)}
        for each in columns:
            compared |= compare_columns(each)
        differences.append(compared)
    return differences


def _check_scored(scored: int, too_long: int, no_word: "Sequence[ClozeQuestion]") -> None:
    """Refuse to write scores of no question at all.

    Raises:
        UsageError: if none was scored.
    """
    if scored:
        return
    example = f", as {no_word[0].answer!r}" if no_word else ""
    raise UsageError(
        f"no question can be scored: the answers of {len(no_word):,} are no single word of the vocabulary"
        f"{example}, and {too_long:,} sentences are too long for the model"
    )
