"""`kgkit evaluate cloze`: score a masked language model on facts, as sentences with a name masked."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kgkit.commands.evaluate.cloze_choice import ClozeChoice, open_choice
from kgkit.commands.evaluate.cloze_facts import draw_facts, facts_of_kb
from kgkit.commands.evaluate.cloze_run import find_name_guesses, score_by_hits, score_by_recall
from kgkit.commands.evaluate.sets import check_sets
from kgkit.commands.evaluate.versus import VersusOption
from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    BatchOption,
    DeviceOption,
    JSONOption,
    SeedOption,
    VectorsOption,
    repeated,
)
from kgkit.commands.output import check_files, typed
from kgkit.errors import UsageError
from kgkit.files import check_output_path

if TYPE_CHECKING:
    from kgkit.evaluation.facts import ClozeQuestions, Fact
    from kgkit.home import Home


def cloze(
    data: Annotated[
        list[Path] | None,
        repeated("--data", "FILE", "Facts as JSON lines: subject, relation, object; or LAMA's"),
    ] = None,
    facts_kb: Annotated[
        str | None,
        typer.Option(
            "--facts", metavar="KB", help="Facts of a knowledge base, with the labels of its entities."
        ),
    ] = None,
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
    kb: Annotated[
        str | None,
        typer.Option(
            "--kb", metavar="KB", help="Knowledge base of the subjects; scores those with a vector apart."
        ),
    ] = None,
    vectors: VectorsOption = None,
    hide: Annotated[
        Literal["object", "both"],
        typer.Option(
            "--hide", help="Mask the object of each fact, or its subject and then its object (both)."
        ),
    ] = "object",
    score: Annotated[
        Literal["hits", "mrr"],
        typer.Option(
            "--score",
            help="Hits@k of objects that are one word (hits), or the mean reciprocal rank of all masked word "
            "pieces (mrr).",
        ),
    ] = "hits",
    name_model: Annotated[
        str | None,
        typer.Option(
            "--name-model",
            metavar="NAME",
            help="Plain masked language model that is asked what names suggest, for LAMA-UHN.",
        ),
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            "--names",
            metavar="FILE",
            help="What that model said: written if the file is not there, else read, so that all models are "
            "asked the same questions.",
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
    from kgkit.home import Home
    from kgkit.training import recorded

    choice = ClozeChoice(model=model, encoder=encoder, kb=kb, vectors=vectors)
    choice.check()
    _check_scores(hide, score, predictions, versus, name_model, names)
    files = data or []
    if not files and facts_kb is None:
        raise UsageError("there are no facts: name files with --data, or a knowledge base with --facts")
    check_sets([*files, *(path for path in (templates, versus) if path)], predictions)
    messages, where = Messages(bars=not as_json), Home.find()
    facts, questions = _read_questions(files, facts_kb, templates, limit, seed, where, messages)
    if hide == "object":
        questions = questions._replace(
            instances=[each for each in questions.instances if each.hidden == hide]
        )
    run = recorded(
        where, command=typed(), device=device,
        model=model or None,
        data=[*files, *([templates] if templates else [])], seeds=[seed],
        config={**vars(choice), "hide": hide, "score": score, "facts": facts_kb, "limit": limit},
    )  # fmt: skip
    with open_choice(choice, facts, where, device) as (answering, entities), run as record:
        if score == "mrr":
            score_by_recall(answering, questions, batch, messages, record, as_json=as_json)
        else:
            guesses = find_name_guesses(name_model, names, facts, where, device, batch, messages)
            score_by_hits(
                answering, facts, questions, entities, guesses, predictions, versus, batch, messages, record,
                as_json=as_json,
            )  # fmt: skip
    if without := questions.without_template:
        messages.write(f"no template for {sum(without.values()):,} facts of {', '.join(without)}")


def _check_scores(
    hide: str,
    score: str,
    predictions: Path | None,
    versus: Path | None,
    name_model: str | None,
    names: Path | None,
) -> None:
    """Refuse options of one score with the other, before anything is read."""
    if score == "hits" and hide == "both":
        raise UsageError(
            "--score hits counts objects, which are single words: leave out --hide both, or say --score mrr"
        )
    if score == "mrr" and (predictions or versus or name_model or names):
        raise UsageError("--predictions, --versus, --name-model and --names are for --score hits")
    if names is not None:
        check_output_path(names)
        if name_model is None and not names.exists():
            raise UsageError(
                f"there is no file {names}, and no model that could be asked: name --name-model too"
            )


def _read_questions(
    files: Sequence[Path],
    facts_kb: str | None,
    templates: Path | None,
    limit: int | None,
    seed: int,
    home: "Home",
    messages: Messages,
) -> "tuple[list[Fact], ClozeQuestions]":
    from kgkit.evaluation.facts import GOOGLE_RE, cloze_questions, read_facts, read_templates

    check_files(files)
    facts = draw_facts([fact for path in files for fact in read_facts(path)], limit, seed)
    own = read_templates(templates) if templates else {}
    if facts_kb is not None:
        kb_facts, nameless = facts_of_kb(facts_kb, list(own), limit, seed)
        facts += kb_facts
        if nameless:
            messages.write(
                f"{nameless:,} facts of {facts_kb} are left out: an entity has no label, or subject and "
                "object have the same label"
            )
    questions = cloze_questions(facts, {**GOOGLE_RE, **own})
    if not questions.instances:
        names = ", ".join(questions.without_template) or f"of {facts_kb}"
        what = f"{templates} has a template for" if templates else "there is a template (--templates) for"
        raise UsageError(f"{what} none of the relations: {names}")
    return facts, questions
