"""What `kgkit evaluate cloze` asks: a trained model, or an encoder that may read vectors of the subjects."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from kgkit.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kgkit.evaluation.facts import Fact
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
                "give exactly one of --model NAME, a trained model, and --encoder NAME, what is asked"
            )
        if self.inject and not (self.encoder and self.kb):
            raise UsageError("--inject reads vectors of entities: name --encoder NAME and --kb KB too")
        if not self.inject and (self.random or not self.align):
            raise UsageError("--no-align and --random-vectors change what --inject reads: name that too")
        if self.random and not self.align:
            raise UsageError("random vectors have no map anyway: leave out --no-align, or --random-vectors")
        if self.vectors and not self.kb:
            raise UsageError("--vectors are those of a knowledge base: name it with --kb")


@contextmanager
def open_choice(
    choice: ClozeChoice, facts: "Sequence[Fact]", home: "Home", device: str
) -> "Iterator[tuple[ClozeModel, NDArray[Any] | None]]":
    """Open what answers, and find the entities of the subjects where a knowledge base is named."""
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
