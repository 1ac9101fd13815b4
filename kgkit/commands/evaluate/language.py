"""`kgkit evaluate ppl` and `kgkit evaluate probe`: score a KnowBert as a masked language model."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from kgkit.commands.evaluate.sets import TOGETHER, check_sets, set_names, write_scores
from kgkit.commands.messages import Messages
from kgkit.commands.options import DeviceOption, HomeOption, JSONOption, QuietOption, SeedOption
from kgkit.commands.output import check_files, number, typed, write_json
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from kgkit.evaluation.facts import Fact
    from kgkit.home import Home
    from kgkit.linking.knowbert import TrainedKnowBert
    from kgkit.types import Triple

    Told = TypeVar("Told", Fact, Triple)

KnowBertOption = Annotated[
    str,
    typer.Option(
        "--model", metavar="NAME", help="Of a KnowBert (`kgkit models list` names them); or its folder."
    ),
]
BatchOption = Annotated[int, typer.Option("--batch", min=1, metavar="N", help="Texts read at once.")]


def ppl(
    data: Annotated[
        list[Path],
        typer.Option(
            "--data",
            metavar="FILE",
            help="Plain text, a blank line between documents. May be compressed; repeat it for more.",
        ),
    ],
    model: KnowBertOption,
    batch: BatchOption = 32,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Of what is hidden.")] = 0,
    blind: Annotated[
        bool,
        typer.Option(
            "--blind", metavar="", help="Do not tell that there is a mention where a word is hidden."
        ),
    ] = False,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a KnowBert on guessing hidden words: the perplexity of a word piece, and how many are right.

    15 of 100 word pieces are hidden, the same ones for all models with one tokenizer and one seed that were
    trained for texts of one size.
    """
    from kgkit.home import Home
    from kgkit.inputs.passages import measure_sentences, read_plain, single_passages
    from kgkit.models.registering import known_model
    from kgkit.training import recorded
    from kgkit.training.knowbert.language import Perplexity, masking_of, perplexity

    check_sets(data, None)
    messages, where = Messages(quiet=quiet, bars=not as_json), Home.find(home)
    scores: list[tuple[str, Perplexity]] = []
    run = recorded(
        where, command=typed(), device=device, model=known_model(where, model), data=data, seeds=[seed],
        config={"model": model, "blind": blind},
    )  # fmt: skip
    with (
        _opened(model, where, device) as trained,
        messages.progress(f"scoring {model}") as tell,
        run as record,
    ):
        masking, reader = masking_of(trained.encoder, "none" if blind else "mask"), trained.reader
        room = reader.room(1)
        for name, path in zip(set_names(data, ".txt"), data, strict=True):
            passages = list(single_passages(measure_sentences(read_plain(path), reader.tokens, room), room))

            def show(_: str, done: int, total: int, name: str = name) -> None:
                tell(f"{name}, {done:,} of {total:,}")

            told = perplexity(
                trained.knowbert, reader, masking, passages, size=batch, seed=seed, progress=show
            )
            scores.append((name, told))
            record.score("ppl", name, "perplexity", told.perplexity, told.pieces)
            record.score("ppl", name, "accuracy", told.accuracy, told.pieces)
    if as_json:
        sets = [
            {"name": name, "data": str(path), **told._asdict()}
            for (name, told), path in zip(scores, data, strict=True)
        ]
        write_json({"model": model, "blind": blind, "sets": sets})
        return
    rows = [
        (name, [(number(one.pieces), f"{one.perplexity:.3f}", f"{100 * one.accuracy:.2f}")])
        for name, one in scores
    ]
    write_scores([], ["pieces", "perplexity", "accuracy"], rows)


def probe(
    templates: Annotated[
        Path,
        typer.Option(
            "--templates", metavar="FILE", help='JSON lines: relation, template ("[X] was born in [Y] .").'
        ),
    ],
    model: KnowBertOption,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="Facts as JSON lines: subject, relation, object; or LAMA's. Repeat it for more.",
        ),
    ] = None,
    kb: Annotated[
        str | None,
        typer.Option("--kb", metavar="KB", help="Facts of a knowledge base, told by its labels."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Facts of a relation, drawn; else all.")
    ] = None,
    batch: BatchOption = 32,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a KnowBert on recalling facts: the mean reciprocal rank of the word pieces of a hidden name.

    Of each fact the subject is hidden, and then the object, from the knowledge bases too.
    """
    from kgkit.evaluation.facts import probes, read_facts, read_templates, score_recall
    from kgkit.home import Home
    from kgkit.models.registering import known_model
    from kgkit.training import recorded
    from kgkit.training.knowbert.language import masking_of, recalled

    files = data or []
    if not files and kb is None:
        raise UsageError("there are no facts: name files with --data, or a knowledge base with --kb")
    check_files([*files, templates])
    messages, where = Messages(quiet=quiet, bars=not as_json), Home.find(home)
    facts = _drawn([fact for path in files for fact in read_facts(path)], limit, seed)
    told_by = read_templates(templates)
    if kb is not None:
        told, nameless = _facts_of(kb, home, list(told_by), limit, seed)
        facts += told
        if nameless:
            messages.say(f"{nameless:,} facts of {kb} are left out: an entity has no label, or both have one")
    asked = probes(facts, told_by)
    if not asked.instances:
        lacking = ", ".join(asked.left_out) or f"of {kb}"
        raise UsageError(f"{templates} has a template for none of the relations: {lacking}")
    run = recorded(
        where, command=typed(), device=device, model=known_model(where, model), data=[*files, templates],
        seeds=[seed], config={"model": model, "kb": kb, "limit": limit},
    )  # fmt: skip
    with (
        _opened(model, where, device) as trained,
        messages.progress(f"asking {model}") as tell,
        run as record,
    ):
        ranks = recalled(
            trained.knowbert, trained.reader, masking_of(trained.encoder).mask, asked.instances, size=batch,
            progress=lambda _, done, total: tell(f"{done:,} of {total:,}"),
        )  # fmt: skip
        score = score_recall(ranks)
        record.score("probe", TOGETHER, "mrr", score.mrr, score.pieces)
        for relation, (mrr, instances) in score.relations.items():
            record.score("probe", relation, "mrr", mrr, instances)
    relations = score.relations.items()
    if as_json:
        found = {relation: {"mrr": mrr, "instances": count} for relation, (mrr, count) in relations}
        missing = {"without_template": asked.left_out}
        write_json({"model": model, **score._asdict(), "relations": found, **missing})
    else:
        rows = [(relation, [(number(count), f"{mrr:.4f}")]) for relation, (mrr, count) in relations]
        rows.append((TOGETHER, [(number(score.instances), f"{score.mrr:.4f}")]))
        write_scores([], ["instances", "MRR"], rows, "relation")
    if asked.left_out:
        messages.say(f"no template for {sum(asked.left_out.values()):,} facts of {', '.join(asked.left_out)}")
    if lost := len(asked.instances) - score.instances:
        messages.say(f"{lost:,} sentences are too long to be asked")


def _opened(model: str, home: "Home", device: str) -> "TrainedKnowBert":
    from kgkit.linking.knowbert import TrainedKnowBert

    trained = TrainedKnowBert.open(model, home=home, around=None, device=device)
    if not trained.manifest.language_model:
        trained.close()
        raise UsageError(
            f"the model {model} guesses no words: its last task was {trained.manifest.task}, and it has no "
            "trained head for them; `kgkit train knowbert --task mlm` trains one"
        )
    return trained


def _facts_of(
    kb: str, home: Path | None, relations: Sequence[str], limit: int | None, seed: int
) -> "tuple[list[Fact], int]":
    """Return facts of a knowledge base, entities by their labels, and how many cannot be asked by them."""
    from kgkit.evaluation.facts import Fact
    from kgkit.kb import open_kb

    with open_kb(kb, home) as opened:
        every = [
            triple
            for relation in relations
            if relation in opened.relations
            for triple in opened.match(relation=relation)
        ]
        named = [
            Fact(opened[one.subject].label.strip(), one.relation, opened[one.object].label.strip())
            for one in _drawn(every, limit, seed)
        ]
        kept = [one for one in named if one.subject and one.object and one.subject != one.object]
        return kept, len(named) - len(kept)


def _drawn(facts: "list[Told]", limit: int | None, seed: int) -> "list[Told]":
    """Return at most so many facts of each relation, in their order."""
    if limit is None:
        return facts
    import numpy as np

    counts, kept = Counter[str](), set[int]()
    for place in np.random.default_rng(seed).permutation(len(facts)).tolist():
        if counts[facts[place].relation] < limit:
            counts[facts[place].relation] += 1
            kept.add(place)
    return [fact for place, fact in enumerate(facts) if place in kept]
