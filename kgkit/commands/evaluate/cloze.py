"""`kgkit evaluate cloze`: score a masked language model on facts, as sentences with a name masked."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kgkit.commands.evaluate.cloze_facts import draw_facts, facts_of_kb
from kgkit.commands.evaluate.cloze_scores import write_hits, write_hits_json, write_predictions
from kgkit.commands.evaluate.sets import TOGETHER, check_sets, write_scores
from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    BatchOption,
    DeviceOption,
    HomeOption,
    JSONOption,
    QuietOption,
    SeedOption,
    VectorsOption,
    flag,
)
from kgkit.commands.output import check_files, check_output_path, number, typed, write_json
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kgkit.catalog.runs import RunRecord
    from kgkit.evaluation.cloze import NameGuesses
    from kgkit.evaluation.facts import ClozeQuestions, Fact
    from kgkit.home import Home
    from kgkit.methods.cloze import ClozeModel


@dataclass(frozen=True, kw_only=True)
class ClozeChoice:
    """What answers the questions, as the command line names it.

    Attributes:
        model: name of a trained model; None: an encoder answers.
        encoder: name of a plain masked language model; None: a trained model answers.
        kb, vectors: knowledge base and vectors of the subjects, if any are read, or counted.
        inject: how vectors are read; None: they are not.
        align: whether they are mapped among the word pieces.
        random: whether random vectors stand for them.
        seed: seed of these.
    """

    model: str | None
    encoder: str | None
    kb: str | None
    vectors: str | None
    inject: Literal["concat", "replace"] | None
    align: bool
    random: bool
    seed: int

    @property
    def name(self) -> str:
        """Name of what answers."""
        return self.model or self.encoder or ""

    def check(self) -> None:
        """Refuse options that do not fit each other.

        Raises:
            UsageError: if some do not.
        """
        if (self.model is None) == (self.encoder is None):
            raise UsageError(
                "what is to answer? --model NAME, a trained model, or --encoder NAME, one of them"
            )
        if self.inject and not (self.encoder and self.kb):
            raise UsageError("--inject reads vectors of entities: name --encoder NAME and --kb KB too")
        if not self.inject and (self.random or not self.align):
            raise UsageError("--no-align and --random-vectors change what --inject reads: name that too")
        if self.vectors and not self.kb:
            raise UsageError("--vectors are those of a knowledge base: name it with --kb")


def cloze(
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="Facts as JSON lines: subject, relation, object; or LAMA's. Repeat it for more.",
        ),
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
    inject: Annotated[
        Literal["concat", "replace"] | None,
        typer.Option(
            "--inject",
            help="Read the vector of the subject before its name and a slash (concat), or in its "
            "place (replace).",
        ),
    ] = None,
    no_align: Annotated[
        bool, flag("--no-align", help="Read vectors as they are stored, not mapped.")
    ] = False,
    random_vectors: Annotated[
        bool, flag("--random-vectors", help="Read a random vector for each entity that has one.")
    ] = False,
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
    batch: BatchOption = 32,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a masked language model on facts: sentences with a name masked.

    Of each fact the object is masked; the score is Hits@k among the whole words of the vocabulary, and among
    the objects of the relation. Questions are also scored without those whose answer the subject's name says
    or suggests.
    """
    from kgkit.home import Home
    from kgkit.models.registering import trained_model_name
    from kgkit.training import recorded

    choice = ClozeChoice(
        model=model, encoder=encoder, kb=kb, vectors=vectors, inject=inject, align=not no_align,
        random=random_vectors, seed=seed,
    )  # fmt: skip
    choice.check()
    _check_scores(hide, score, predictions, name_model, names)
    files = data or []
    if not files and facts_kb is None:
        raise UsageError("there are no facts: name files with --data, or a knowledge base with --facts")
    check_sets([*files, *([templates] if templates else [])], predictions)
    messages, where = Messages(quiet=quiet, bars=not as_json), Home.find(home)
    facts, questions = _read_questions(files, facts_kb, templates, limit, seed, where, messages)
    if hide == "object":
        questions = questions._replace(
            instances=[each for each in questions.instances if each.hidden == hide]
        )
    trained = model if model is not None else None
    run = recorded(
        where, command=typed(), device=device,
        model=trained_model_name(where, trained) if trained else None,
        data=[*files, *([templates] if templates else [])], seeds=[seed],
        config={**vars(choice), "hide": hide, "score": score, "facts": facts_kb, "limit": limit},
    )  # fmt: skip
    with _open(choice, facts, where, device) as (answering, entities), run as record:
        if score == "mrr":
            _score_recall(answering, questions, batch, messages, record, as_json=as_json)
        else:
            guesses = _name_guesses(name_model, names, facts, where, device, batch, messages)
            _score_hits(
                answering, facts, questions, entities, guesses, predictions, batch, messages, record,
                as_json=as_json,
            )  # fmt: skip
    if without := questions.without_template:
        messages.write(f"no template for {sum(without.values()):,} facts of {', '.join(without)}")


def _check_scores(
    hide: str, score: str, predictions: Path | None, name_model: str | None, names: Path | None
) -> None:
    """Refuse options of one score with the other, before anything is read."""
    if score == "hits" and hide == "both":
        raise UsageError(
            "--score hits counts objects, which are single words: leave out --hide both, or say --score mrr"
        )
    if score == "mrr" and (predictions or name_model or names):
        raise UsageError("--predictions, --name-model and --names are for --score hits")
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
        kb_facts, nameless = facts_of_kb(facts_kb, home.path, list(own), limit, seed)
        facts += kb_facts
        if nameless:
            messages.write(
                f"{nameless:,} facts of {facts_kb} are left out: an entity has no label, or both have one"
            )
    questions = cloze_questions(facts, {**GOOGLE_RE, **own})
    if not questions.instances:
        names = ", ".join(questions.without_template) or f"of {facts_kb}"
        what = f"{templates} has a template for" if templates else "there is a template (--templates) for"
        raise UsageError(f"{what} none of the relations: {names}")
    return facts, questions


@contextmanager
def _open(
    choice: ClozeChoice, facts: "Sequence[Fact]", home: "Home", device: str
) -> "Iterator[tuple[ClozeModel, NDArray[Any] | None]]":
    """Open what answers, and find the entities of the subjects where a knowledge base is named."""
    from contextlib import ExitStack

    from kgkit.kb import open_kb
    from kgkit.methods.cloze_opening import (
        open_cloze_model,
        open_masked_lm,
        plain_cloze_model,
        subject_entities,
    )
    from kgkit.models.folder import text_vectors

    with ExitStack() as stack:
        entities, vectors = None, None
        if choice.kb:
            kb = stack.enter_context(open_kb(choice.kb, home.path))
            vectors = kb.vectors(text_vectors(kb, choice.vectors))
            entities = subject_entities(facts, kb, vectors)
        if choice.model is not None:
            yield stack.enter_context(open_cloze_model(choice.model, home, device)), entities
            return
        masked_lm = stack.enter_context(open_masked_lm(choice.encoder or "", home, device))
        if choice.inject is None or vectors is None or entities is None:
            yield plain_cloze_model(masked_lm), entities
            return
        from kgkit.methods.cloze_injection import injected_cloze_model

        yield injected_cloze_model(
            masked_lm, vectors, entities, inject=choice.inject, align=choice.align,
            random_seed=choice.seed if choice.random else None,
        ), entities  # fmt: skip


def _score_recall(
    model: "ClozeModel",
    questions: "ClozeQuestions",
    batch: int,
    messages: Messages,
    record: "RunRecord",
    *,
    as_json: bool,
) -> None:
    from kgkit.evaluation.facts import score_recall
    from kgkit.methods.cloze import recall_ranks

    with messages.progress(f"asking {model.name}") as tell:
        ranks = recall_ranks(
            model, questions.instances, size=batch,
            progress=lambda _, count, total: tell(f"{count:,} of {total:,}"),
        )  # fmt: skip
        score = score_recall(ranks)
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


def _name_guesses(
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
        made = name_guesses(
            plain_cloze_model(masked_lm), name_questions(facts), size=batch,
            progress=lambda _, count, total: tell(f"{count:,} of {total:,}"),
        )  # fmt: skip
    if path is not None:
        write_name_guesses(path, name_model, made)
    return made


def _score_hits(
    model: "ClozeModel",
    facts: "Sequence[Fact]",
    questions: "ClozeQuestions",
    entities: "NDArray[Any] | None",
    names: "NameGuesses | None",
    predictions: Path | None,
    batch: int,
    messages: Messages,
    record: "RunRecord",
    *,
    as_json: bool,
) -> None:
    from kgkit.evaluation.cloze import filtered, score_subsets
    from kgkit.methods.cloze import cloze_guesses

    left = filtered(facts, names)
    with messages.progress(f"asking {model.name}") as tell:
        guesses = cloze_guesses(
            model, questions.instances, size=batch,
            progress=lambda _, count, total: tell(f"{count:,} of {total:,}"),
        )  # fmt: skip
    has_vector = None if entities is None else frozenset((entities >= 0).nonzero()[0].tolist())
    scores = score_subsets(guesses.guesses, left, has_vector)
    for subset in scores:
        dataset = subset.filter if subset.subjects == "all" else f"{subset.filter}, with vectors"
        for answers, hits in subset.hits.items():
            record.score("cloze", dataset, f"{answers}_hits@1", hits.macro[1], hits.questions)
    if predictions is not None:
        write_predictions(predictions, guesses.guesses, facts, left, has_vector)
    counts = {
        "vocabulary": len(model.words), "no_word": len(guesses.no_word), "too_long": len(guesses.too_long),
        "without_template": questions.without_template,
    }  # fmt: skip
    if as_json:
        write_hits_json(model.name, counts, scores)
    else:
        write_hits(scores)
    messages.write(f"the vocabulary has {len(model.words):,} whole words")
    if guesses.no_word:
        messages.write(
            f"{len(guesses.no_word):,} questions are left out: their answer is no word of the vocabulary"
        )
    if guesses.too_long:
        messages.write(f"{len(guesses.too_long):,} sentences are too long for the model")
    if names is None:
        messages.write("--name-model NAME adds LAMA-UHN, without names that suggest the answer")


def answer_probe(args: Sequence[str]) -> UsageError:
    """Return what `kgkit evaluate probe ARGS` is answered with: the line that gives its figures now."""
    line = ["--facts" if arg == "--kb" else arg.replace("--kb=", "--facts=") for arg in args]
    command = shlex.join(["kgkit", "evaluate", "cloze", "--hide", "both", "--score", "mrr", *line])
    return UsageError(f"`kgkit evaluate cloze` has taken its place; the same figures: {command}")
