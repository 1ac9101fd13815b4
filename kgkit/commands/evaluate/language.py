"""`kgkit evaluate ppl`: score a language model on predicting words."""

from collections.abc import Sequence
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgkit.commands.evaluate.sets import (
    VersusOption,
    check_sets,
    set_names,
    versus_field,
    write_compared,
    write_scores,
)
from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    BatchOption,
    DeviceOption,
    JSONOption,
    PlainTextsOption,
    SeedOption,
)
from kgkit.commands.output import number, typed, write_json, write_line
from kgkit.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kgkit.evaluation import Comparison
    from kgkit.evaluation.passage_scores import ScoredPassages
    from kgkit.home import Home
    from kgkit.methods.knowbert_model import TrainedKnowBert
    from kgkit.methods.word_models import WordModel, WordPerplexity

LanguageModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        help="Name of a KnowBert, a KALM or its control (`kgkit models list` names them), or its folder.",
    ),
]


def ppl(
    data: PlainTextsOption,
    model: LanguageModelOption,
    batch: BatchOption = 32,
    seed: SeedOption = 0,
    predictions: Annotated[
        Path | None,
        typer.Option(
            "--predictions",
            metavar="FILE",
            help="Write the scores of each passage, as JSON lines; of masked word pieces only.",
        ),
    ] = None,
    versus: VersusOption = None,
    device: DeviceOption = "auto",
    as_json: JSONOption = False,
) -> None:
    """Score a language model on predicting words: perplexity.

    A KnowBert: over masked word pieces, with accuracy. 15 of 100 are masked, the same ones for all models
    with one tokenizer and one seed that were trained for texts of one size. A KALM, or its control: over all
    words. The two do not compare. `--versus` compares two models of masked word pieces, such as a KnowBert
    with its control, by a paired test over passages.
    """
    from kgkit.home import Home
    from kgkit.methods.word_models import WordModel

    check_sets([*data, versus], predictions)
    messages, where = Messages(bars=not as_json), Home.find()
    opened = _open_language_model(model, where, device)
    if not isinstance(opened, WordModel):
        _score_pieces(
            model, opened, data, messages, where, batch=batch, seed=seed,
            predictions=predictions, versus=versus, device=device, as_json=as_json,
        )  # fmt: skip
        return
    if seed or predictions is not None or versus is not None:
        raise UsageError(
            f"the model {model} predicts all words in one sequence, not masked ones of passages: leave out "
            "--seed, --predictions and --versus"
        )
    _score_words(model, opened, data, messages, where, batch=batch, device=device, as_json=as_json)


def _score_words(
    model: str,
    words: "WordModel",
    data: Sequence[Path],
    messages: Messages,
    where: "Home",
    *,
    batch: int,
    device: str,
    as_json: bool,
) -> None:
    """Score a language model of whole words on each file."""
    from kgkit.catalog.runs import recorded

    measure = "pseudo-perplexity" if words.bidirectional else "perplexity"
    scores: list[tuple[str, WordPerplexity]] = []
    run = recorded(
        where, command=typed(), device=device, model=model, data=data,
        config={"model": model, "batch": batch},
    )  # fmt: skip
    with messages.progress(f"scoring {model}") as tell, run as record:
        for name, path in zip(set_names(data, ".txt"), data, strict=True):

            def show(_: str, count: int, total: int, name: str = name) -> None:
                tell(f"{name}, {count:,} of {total:,}", count, total)

            result = words.perplexity([path], rows=batch, progress=show)
            scores.append((name, result))
            record.score("ppl", name, f"word {measure}", result.perplexity, result.words)
            record.score("ppl", name, "nats", result.nats, result.words)
    if as_json:
        sets = [
            {"name": name, "data": str(path), **result._asdict()}
            for (name, result), path in zip(scores, data, strict=True)
        ]
        write_json({"model": model, "unit": "word", "measure": measure, "sets": sets})
        return
    sides = "from both sides" if words.bidirectional else "from those before them"
    write_line(f"{model}: {measure} of words, predicted {sides}; not comparable with that of word pieces")
    rows = [
        (
            name,
            [
                (
                    number(result.words),
                    number(result.unknown),
                    f"{result.nats:.4f}",
                    f"{result.perplexity:.3f}",
                )
            ],
        )
        for name, result in scores
    ]
    write_scores([], ["words", "unknown", "nats", measure], rows)


def _score_pieces(
    model: str,
    opened: "TrainedKnowBert",
    data: Sequence[Path],
    messages: Messages,
    where: "Home",
    *,
    batch: int,
    seed: int,
    predictions: Path | None,
    versus: Path | None,
    device: str,
    as_json: bool,
) -> None:
    """Score a KnowBert on the masked word pieces of each file."""
    from kgkit.catalog.runs import recorded
    from kgkit.evaluation.passage_scores import check_same_pieces, read_passage_scores, write_passage_scores
    from kgkit.evaluation.plain_text import read_plain
    from kgkit.inputs.masking import masking_of
    from kgkit.inputs.passages import measure_sentences, single_passages
    from kgkit.methods.hidden_words import Perplexity, score_passages
    from kgkit.models.manifest import broken_weights

    names = set_names(data, ".txt")
    compared = {} if versus is None else read_passage_scores(versus, names)
    scores: list[tuple[str, Perplexity]] = []
    scored: dict[str, ScoredPassages] = {}
    run = recorded(
        where, command=typed(), device=device, model=model, data=data,
        seeds=[seed], config={"model": model},
    )  # fmt: skip
    with (
        opened as trained,
        messages.progress(f"scoring {model}") as tell,
        run as record,
    ):
        masking, reader = masking_of(trained.encoder, "mask"), trained.reader
        room = reader.room(1)
        for name, path in zip(names, data, strict=True):
            passages = list(single_passages(measure_sentences(read_plain(path), reader.tokens, room), room))

            if versus is not None:  # before anything is computed
                check_same_pieces(versus, name, compared[name], [""] * len(passages))

            def show(_: str, count: int, total: int, name: str = name) -> None:
                tell(f"{name}, {count:,} of {total:,}", count, total)

            own = scored[name] = score_passages(
                trained.knowbert, reader, masking, passages, size=batch, seed=seed, progress=show
            )
            result = Perplexity.of(own.columns)
            if not isfinite(result.perplexity):
                raise broken_weights(model, f"gives hidden words the perplexity {result.perplexity}")
            scores.append((name, result))
            record.score("ppl", name, "perplexity", result.perplexity, result.pieces)
            record.score("ppl", name, "accuracy", result.accuracy, result.pieces)
    if predictions is not None:
        write_passage_scores(predictions, scored.items())
    differences: dict[str, dict[str, Comparison]] = {}
    for name, first in compared.items():
        assert versus is not None
        check_same_pieces(versus, name, first, scored[name].masks)
        differences[name] = _compare_passages(first.columns, scored[name].columns)
    if as_json:
        sets = [
            {"name": name, "data": str(path), **result._asdict(),
             **versus_field(differences, name)}
            for (name, result), path in zip(scores, data, strict=True)
        ]  # fmt: skip
        write_json({"model": model, "sets": sets})
        return
    rows = [
        (name, [(number(result.pieces), f"{result.perplexity:.3f}", f"{100 * result.accuracy:.2f}")])
        for name, result in scores
    ]
    write_scores([], ["pieces", "perplexity", "accuracy"], rows)
    write_compared(differences, plain=("perplexity",))


def _compare_passages(versus: "NDArray[np.float64]", own: "NDArray[np.float64]") -> "dict[str, Comparison]":
    """Return how a model's scores (P, 3) differ from those of another, by name."""
    from kgkit.evaluation import compare
    from kgkit.evaluation.passage_scores import accuracy_of_sums, perplexity_of_sums
    from kgkit.evaluation.significance import Interval

    return {
        "perplexity": compare(versus, own, perplexity_of_sums, Interval(1, inf)),
        "accuracy": compare(versus, own, accuracy_of_sums),
    }


def _open_language_model(model: str, home: "Home", device: str) -> "WordModel | TrainedKnowBert":
    from kgkit.methods.knowbert_model import TrainedKnowBert
    from kgkit.methods.word_models import WordModel
    from kgkit.models.opening import open_model

    opened = open_model(model, "language_model", home=home, device=device)
    if not isinstance(opened, WordModel | TrainedKnowBert):
        raise UsageError(
            f"the model {model} opens as {type(opened).__name__}, which has no perplexity: its role "
            f"language_model is to give a {WordModel.__module__}.WordModel"
        )
    return opened
