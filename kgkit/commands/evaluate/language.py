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

    FactT = TypeVar("FactT", Fact, Triple)

KnowBertOption = Annotated[
    str,
    typer.Option(
        "--model", metavar="NAME", help="Name of a KnowBert (`kgkit models list` names them), or its folder."
    ),
]
BatchOption = Annotated[int, typer.Option("--batch", min=1, metavar="N", help="Texts in a batch.")]


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
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="N", help="Random seed of the masked pieces.")
    ] = 0,
    blind: Annotated[
        bool,
        typer.Option("--blind", metavar="", help="Leave out the mentions that have a masked word piece."),
    ] = False,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a KnowBert on predicting masked words: perplexity and accuracy over word pieces.

    15 of 100 word pieces are masked, the same ones for all models with one tokenizer and one seed that were
    trained for texts of one size.
    """
    from kgkit.catalog.runs import recorded
    from kgkit.home import Home
    from kgkit.inputs.masking import masking_of
    from kgkit.inputs.passages import measure_sentences, read_plain, single_passages
    from kgkit.linking.hidden_words import Perplexity, perplexity
    from kgkit.models.registering import trained_model_name

    check_sets(data, None)
    messages, where = Messages(quiet=quiet, bars=not as_json), Home.find(home)
    scores: list[tuple[str, Perplexity]] = []
    run = recorded(
        where, command=typed(), device=device, model=trained_model_name(where, model), data=data,
        seeds=[seed], config={"model": model, "blind": blind},
    )  # fmt: skip
    with (
        _open_language_model(model, where, device) as trained,
        messages.progress(f"scoring {model}") as tell,
        run as record,
    ):
        masking, reader = masking_of(trained.encoder, "none" if blind else "mask"), trained.reader
        room = reader.room(1)
        for name, path in zip(set_names(data, ".txt"), data, strict=True):
            passages = list(single_passages(measure_sentences(read_plain(path), reader.tokens, room), room))

            def show(_: str, count: int, total: int, name: str = name) -> None:
                tell(f"{name}, {count:,} of {total:,}")

            result = perplexity(
                trained.knowbert, reader, masking, passages, size=batch, seed=seed, progress=show
            )
            scores.append((name, result))
            record.score("ppl", name, "perplexity", result.perplexity, result.pieces)
            record.score("ppl", name, "accuracy", result.accuracy, result.pieces)
    if as_json:
        sets = [
            {"name": name, "data": str(path), **result._asdict()}
            for (name, result), path in zip(scores, data, strict=True)
        ]
        write_json({"model": model, "blind": blind, "sets": sets})
        return
    rows = [
        (name, [(number(result.pieces), f"{result.perplexity:.3f}", f"{100 * result.accuracy:.2f}")])
        for name, result in scores
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
        typer.Option(
            "--kb", metavar="KB", help="Facts of a knowledge base, with the labels of its entities."
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=1, metavar="N", help="Facts of each relation, drawn at random; by default all."
        ),
    ] = None,
    batch: BatchOption = 32,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a KnowBert on recalling facts: the mean reciprocal rank of the word pieces of a masked name.

    Of each fact the subject is masked, and then the object, for the knowledge bases too.
    """
    from kgkit.catalog.runs import recorded
    from kgkit.evaluation.facts import probes, read_facts, read_templates, score_recall
    from kgkit.home import Home
    from kgkit.inputs.masking import masking_of
    from kgkit.linking.hidden_words import recalled
    from kgkit.models.registering import trained_model_name

    files = data or []
    if not files and kb is None:
        raise UsageError("there are no facts: name files with --data, or a knowledge base with --kb")
    check_files([*files, templates])
    messages, where = Messages(quiet=quiet, bars=not as_json), Home.find(home)
    facts = _draw_facts([fact for path in files for fact in read_facts(path)], limit, seed)
    templates_by_relation = read_templates(templates)
    if kb is not None:
        kb_facts, nameless = _facts_of(kb, home, list(templates_by_relation), limit, seed)
        facts += kb_facts
        if nameless:
            messages.write(
                f"{nameless:,} facts of {kb} are left out: an entity has no label, or both have one"
            )
    prompts = probes(facts, templates_by_relation)
    if not prompts.instances:
        names = ", ".join(prompts.without_template) or f"of {kb}"
        raise UsageError(f"{templates} has a template for none of the relations: {names}")
    run = recorded(
        where, command=typed(), device=device, model=trained_model_name(where, model),
        data=[*files, templates], seeds=[seed], config={"model": model, "kb": kb, "limit": limit},
    )  # fmt: skip
    with (
        _open_language_model(model, where, device) as trained,
        messages.progress(f"asking {model}") as tell,
        run as record,
    ):
        ranks = recalled(
            trained.knowbert, trained.reader, masking_of(trained.encoder).mask, prompts.instances, size=batch,
            progress=lambda _, count, total: tell(f"{count:,} of {total:,}"),
        )  # fmt: skip
        score = score_recall(ranks)
        record.score("probe", TOGETHER, "mrr", score.mrr, score.pieces)
        for relation, (mrr, instances) in score.relations.items():
            record.score("probe", relation, "mrr", mrr, instances)
    relations = score.relations.items()
    if as_json:
        by_relation = {relation: {"mrr": mrr, "instances": count} for relation, (mrr, count) in relations}
        missing = {"without_template": prompts.without_template}
        write_json({"model": model, **score._asdict(), "relations": by_relation, **missing})
    else:
        rows = [(relation, [(number(count), f"{mrr:.4f}")]) for relation, (mrr, count) in relations]
        rows.append((TOGETHER, [(number(score.instances), f"{score.mrr:.4f}")]))
        write_scores([], ["instances", "MRR"], rows, "relation")
    if without := prompts.without_template:
        messages.write(f"no template for {sum(without.values()):,} facts of {', '.join(without)}")
    if lost := len(prompts.instances) - score.instances:
        messages.write(f"{lost:,} sentences are too long for the model")


def _open_language_model(model: str, home: "Home", device: str) -> "TrainedKnowBert":
    from kgkit.linking.knowbert import TrainedKnowBert

    trained = TrainedKnowBert.open(model, home=home, around=None, device=device)
    if not trained.manifest.language_model:
        trained.close()
        raise UsageError(
            f"the model {model} predicts no masked words: its last task was {trained.manifest.task}, and it "
            "has no trained head for them; `kgkit train knowbert --task mlm` trains one"
        )
    return trained


def _facts_of(
    kb: str, home: Path | None, relations: Sequence[str], limit: int | None, seed: int
) -> "tuple[list[Fact], int]":
    """Return facts of a knowledge base, entities by their labels, and how many have none that can be used."""
    from kgkit.evaluation.facts import Fact
    from kgkit.kb import open_kb

    with open_kb(kb, home) as base:
        every = [
            triple
            for relation in relations
            if relation in base.relations
            for triple in base.match(relation=relation)
        ]
        named = [
            Fact(base[triple.subject].label.strip(), triple.relation, base[triple.object].label.strip())
            for triple in _draw_facts(every, limit, seed)
        ]
        facts = [fact for fact in named if fact.subject and fact.object and fact.subject != fact.object]
        return facts, len(named) - len(facts)


def _draw_facts(facts: "list[FactT]", limit: int | None, seed: int) -> "list[FactT]":
    """Return at most so many facts of each relation, in their order."""
    if limit is None:
        return facts
    import numpy as np

    counts, chosen = Counter[str](), set[int]()
    for index in np.random.default_rng(seed).permutation(len(facts)).tolist():
        if counts[facts[index].relation] < limit:
            counts[facts[index].relation] += 1
            chosen.add(index)
    return [fact for index, fact in enumerate(facts) if index in chosen]
