"""What `kgkit evaluate cloze` asks: a trained model, or an encoder."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
        kb, vectors: knowledge base and vectors of the subjects, if those with a vector are scored apart.
    """

    model: str | None
    encoder: str | None
    kb: str | None
    vectors: str | None

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
        entities = None
        if choice.kb:
            kb = stack.enter_context(open_kb(choice.kb, home.path))
            vectors = kb.vectors(text_vectors(kb, choice.vectors))
            entities = subject_entities(facts, kb, vectors)
        if choice.model is not None:
            yield stack.enter_context(open_cloze_model(choice.model, home, device)), entities
            return
        masked_lm = stack.enter_context(open_masked_lm(choice.encoder or "", home, device))
        yield plain_cloze_model(masked_lm), entities
