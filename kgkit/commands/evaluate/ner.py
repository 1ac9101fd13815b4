"""`kgkit evaluate ner`: score a tagger on finding names."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from kgkit.commands.evaluate.sets import TOGETHER, check_sets, percents, set_names, write_scores
from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    DataOption,
    DeviceOption,
    HomeOption,
    JSONOption,
    PosteriorOption,
    PredictionsOption,
    QuietOption,
    TaggerOption,
    TypePriorOption,
)
from kgkit.commands.output import number, plain, typed, write_json, write_line

if TYPE_CHECKING:
    from kgkit.evaluation.ner import NameScores


def ner(
    data: DataOption,
    model: TaggerOption,
    type_prior: TypePriorOption = None,
    posterior: PosteriorOption = None,
    device: DeviceOption = "auto",
    predictions: PredictionsOption = None,
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a tagger on finding names, as conlleval does: span and type must be right.

    The table also has the scores of each type, of spans without types, and of the types of tokens.
    """
    from kgkit.catalog.runs import recorded
    from kgkit.evaluation.ner import NameScores, read_names, writing_names
    from kgkit.home import Home
    from kgkit.linking.mention_tagger import MentionTagger
    from kgkit.linking.tagger import score_tagger
    from kgkit.models.registering import trained_model_name

    check_sets(data, predictions)
    messages, where = Messages(quiet=quiet, bars=not as_json), Home.find(home)
    tagger = MentionTagger.open(model, home=where, device=device, type_prior=type_prior, posterior=posterior)
    options = {"type_prior": type_prior, "posterior": posterior}
    scores: list[tuple[str, NameScores]] = []
    run = recorded(
        where, command=typed(), device=device, model=trained_model_name(where, model), data=data,
        config={"model": tagger.name} | {name: value for name, value in options.items() if value is not None},
    )  # fmt: skip
    with messages.progress(f"scoring {tagger.name}") as tell, ExitStack() as stack, run as record:
        write = None if predictions is None else stack.enter_context(writing_names(predictions))
        for name, path in zip(set_names(data, ".txt", ".conll"), data, strict=True):
            tell(name)
            scores.append((name, score_tagger(tagger, read_names(path), write)))
        together = sum((score for _, score in scores), NameScores())
        shown = scores if len(scores) == 1 else [*scores, (TOGETHER, together)]
        for name, score in shown:
            record.score("ner", name, "f1", score.overall.f1, score.overall.gold)
            record.score("ner", name, "span f1", score.spans.f1, score.spans.gold)
            record.score("ner", name, "token f1", score.tokens.f1, score.tokens.gold)
    gold_types = {kind for kind, score in together.by_type.items() if score.gold}
    if gold_types and tagger.types and not gold_types & {*tagger.types}:
        messages.write(
            f"warning: {tagger.name} finds names of {', '.join(tagger.types)}, and the data have "
            f"{', '.join(sorted(gold_types))}: only the scores of spans compare"
        )
    if as_json:
        write_json(
            {
                "model": tagger.name,
                "sets": [
                    {"name": name, "data": str(path), **score.as_dict()}
                    for (name, score), path in zip(scores, data, strict=True)
                ],
                "together": together.as_dict(),
            }
        )
    else:
        _write(shown, tagger.name)
    if predictions is not None:
        messages.write(f"{together.overall.predicted:,} names: {predictions}")


def _write(scores: "list[tuple[str, NameScores]]", model: str) -> None:
    def rows(score: "NameScores") -> Iterator[tuple[str, ...]]:
        """Yield a row for all names, one for each type, one for spans, and one for the types of tokens."""
        rows = {"all": score.overall, **score.by_type, "spans": score.spans, "tokens": score.tokens}
        for part, counted in rows.items():
            counts = map(number, (counted.gold, counted.predicted, counted.right))
            yield part, *counts, *percents(counted.precision, counted.recall, counted.f1)

    write_line(plain(f"model {model}"))
    headings = "names", "found", "right", "P", "R", "F1"
    write_scores(["type"], headings, ((name, rows(score)) for name, score in scores))
