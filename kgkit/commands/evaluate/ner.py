"""`kgkit evaluate ner`: score a tagger on finding names."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

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
    DeviceOption,
    JSONOption,
    PredictionsOption,
    TaggerOption,
)
from kgkit.commands.output import number, plain, typed, write_json, write_line
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from kgkit.evaluation.ner import Name, NamedDocument, NameScores
    from kgkit.evaluation.significance import Comparison


def ner(
    data: DataOption,
    model: TaggerOption,
    device: DeviceOption = "auto",
    predictions: PredictionsOption = None,
    versus: VersusOption = None,
    as_json: JSONOption = False,
) -> None:
    """Score a tagger on finding names, as conlleval does: span and type must be right.

    The table also has the scores of each type, of spans without types, and of the types of tokens.
    --versus reads the tags of another tagger, a file as --predictions writes it, and compares F1 by
    a paired test over documents, of a file without documents over sentences.
    """
    from kgkit.catalog.runs import recorded
    from kgkit.evaluation.ner import NameScores, read_names, read_predicted_names, writing_names
    from kgkit.home import Home
    from kgkit.tagging.mention_tagger import MentionTagger
    from kgkit.tagging.tagger import score_tagger

    check_sets([*data, versus], predictions)
    messages, where = Messages(bars=not as_json), Home.find()
    names = set_names(data, ".txt", ".conll")
    documents: dict[str, list[NamedDocument]] = {}
    others: dict[str, list[list[Name]]] = {}
    if versus is not None:
        if len({*names}) < len(data):
            raise UsageError("a file is named twice with --data: once will do")
        documents = {name: list(read_names(path)) for name, path in zip(names, data, strict=True)}
        others = read_predicted_names(versus, documents)
    tagger = MentionTagger.open(model, home=where, device=device)
    scores: list[tuple[str, NameScores]] = []
    run = recorded(
        where, command=typed(), device=device, model=model, data=data,
        config={"model": tagger.name},
    )  # fmt: skip
    with messages.progress(f"scoring {tagger.name}") as tell, ExitStack() as stack, run as record:
        write = None if predictions is None else stack.enter_context(writing_names(predictions))
        found: dict[str, list[list[Name]]] = {name: [] for name in names}
        for name, path in zip(names, data, strict=True):

            def keep(gold: "NamedDocument", predicted: "list[Name]", name: str = name) -> None:
                if others:
                    found[name].append(predicted)
                if write is not None:
                    write(gold, predicted)

            tell(name)
            gold = documents[name] if others else read_names(path)
            scores.append((name, score_tagger(tagger, gold, keep)))
        together = sum((score for _, score in scores), NameScores())
        shown = scores if len(scores) == 1 else [*scores, (TOGETHER, together)]
        for name, score in shown:
            record.score("ner", name, "f1", score.overall.f1, score.overall.gold)
            record.score("ner", name, "span f1", score.spans.f1, score.spans.gold)
            record.score("ner", name, "token f1", score.tokens.f1, score.tokens.gold)
    differences = _compare(documents, others, found) if others else {}
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
                    {"name": name, "data": str(path), **score.as_dict(), **versus_field(differences, name)}
                    for (name, score), path in zip(scores, data, strict=True)
                ],
                "together": {**together.as_dict(), **versus_field(differences, TOGETHER)},
            }
        )
    else:
        _write(shown, tagger.name)
        write_compared({name: differences[name] for name, _ in shown if name in differences})
    if predictions is not None:
        messages.write(f"{together.overall.predicted:,} names: {predictions}")


def _compare(
    documents: "Mapping[str, Sequence[NamedDocument]]",
    others: "Mapping[str, Sequence[Sequence[Name]]]",
    found: "Mapping[str, Sequence[Sequence[Name]]]",
) -> "dict[str, dict[str, Comparison]]":
    """Return how F1 of each set, and of all together, differs from another tagger's.

    Args:
        documents: documents of each set, by its name.
        others: names that the other tagger finds in each of them.
        found: names that the tagger finds.
    """
    import numpy as np

    from kgkit.evaluation.ner import name_columns

    columns = {name: name_columns(gold, [others[name], found[name]]) for name, gold in documents.items()}
    first = next(iter(columns.values()))
    every = first._replace(columns=np.concatenate([each.columns for each in columns.values()], 1))
    return {name: {each.metric: each.compare()} for name, each in (columns | {TOGETHER: every}).items()}


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
