"""A knowledge base as a head reads it: what finds mentions in texts, and vectors of entities.

R  entities    D  numbers of an entity's vector
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kgkit.candidates import Generator, generator_for
from kgkit.errors import KgkitError, NotThere, StaleModel, StaleVectors, UsageError
from kgkit.home import Home
from kgkit.kb import KnowledgeBase, open_kb
from kgkit.kb.lineage import ancestry, serving_builds
from kgkit.types import Ids, Matrix
from kgkit.vectors.scan import unit

if TYPE_CHECKING:
    from kgkit.vectors import Vectors
    from kgkit.vectors.layout import VectorsManifest


MOST_CANDIDATES: Final = 30
"""Candidates of a mention at most, as published for KnowBert."""

_OF_THE_RUN: Final = frozenset(["encoder", "device", "dtype", "batch_tokens", "chunk"])
"""Settings that say on which device and in which chunks an encoder made vectors; its fingerprint says which
encoder it was."""


@dataclass(frozen=True)
class Knowledge:
    """A knowledge base as a head reads it.

    Where its entities have parts of speech, these stand behind their vectors, a one among zeros: a map of
    stored vectors that a head learns so has a row for each of them.

    Attributes:
        generator: generator of candidates; finds mentions, and gives each at most as many candidates as a
            head wants (KnowBert 30, as published).
        vectors: vectors of entities; those of several kinds are joined, as TuckER's and those of glosses are.
        classes: number of parts of speech behind the vectors, the first ones of the knowledge base; entities
            of others have none. None: all that there are, for a head that is to be trained.
    """

    generator: Generator
    vectors: "tuple[Vectors, ...]"
    classes: int | None = None

    @property
    def width(self) -> int:
        """D: numbers in a vector, and parts of speech."""
        return sum(vectors.width for vectors in self.vectors) + self._class_count

    def of_width(self, width: int) -> "Knowledge":
        """Return the same for a head that reads vectors of *width*: without parts of speech that came since.

        `kgkit kb add` may bring entities with a part of speech that the knowledge base did not have.
        """
        count = width - sum(vectors.width for vectors in self.vectors)
        return replace(self, classes=count) if 0 <= count < len(self._kb.store.classes) else self

    @property
    def _class_count(self) -> int:
        return len(self._kb.store.classes) if self.classes is None else self.classes

    @property
    def _kb(self) -> KnowledgeBase:
        return self.generator.kb

    @property
    def about(self) -> dict[str, str]:
        """Which vectors of which build these are: `KB@BUILD/NAME`, and a digest of how they are made."""
        manifests = [vectors.manifest for vectors in self.vectors]
        return {f"{about.kb}@{about.build}/{about.name}": _method_digest(about) for about in manifests}

    def continues(self, about: Mapping[str, str]) -> bool:
        """Say whether these are the vectors described, or those of a build that only adds to theirs.

        A model has no parameters for single entities: it knows how their vectors are made. So entities that
        come with `kgkit kb add`, and vectors for them (`kgkit embed --update`), need no training.
        """
        builds = ancestry(self._kb)
        own = [(_without_build(name), digest) for name, digest in self.about.items()]
        return own == [(_without_build(name), digest) for name, digest in about.items()] and all(
            _build(name) in builds for name in about
        )

    def gather(self, ids: Ids) -> Matrix:
        """Return (R, D), each kind with a mean square of 1; zeros where an entity has none."""
        parts = [unit(vectors.gather(ids)) * np.float32(np.sqrt(vectors.width)) for vectors in self.vectors]
        if count := self._class_count:
            classes = self._kb.classes_of(ids)  # (R,), 0 for none
            classes = np.where(classes > count, 0, classes)
            table = np.eye(count + 1, dtype=np.float32)[:, 1:] * np.float32(np.sqrt(count))
            parts.append(table[classes])
        return np.concatenate(parts, axis=1)


def knowledge_of(kb: KnowledgeBase, vectors: Sequence[str]) -> Knowledge:
    """Return a knowledge base as heads read it, with its own generator and the vectors of these names."""
    generator = generator_for(kb, max_candidates=MOST_CANDIDATES, overlaps=True)
    return Knowledge(generator, tuple(kb.vectors(name) for name in vectors))


def open_knowledge(
    name: str, vectors: Sequence[str], trained_with: Mapping[str, str], home: Home, stack: ExitStack
) -> Knowledge:
    """Open a knowledge base: as it is now, if that only adds to what the model knows, else as it was then."""
    knowledge, problem = None, None
    kb = stack.enter_context(open_kb(name, home.path))
    try:
        knowledge = knowledge_of(kb, vectors)
    except (NotThere, StaleVectors) as error:  # of this build: there may be those of the model's
        problem = error
    if knowledge is not None and knowledge.continues(trained_with):
        return knowledge
    builds = [serving_builds(home.kb(name), build) for build in sorted({*map(_build, trained_with)})]
    for build in dict.fromkeys(chain.from_iterable(builds)):
        with suppress(KgkitError):  # gone: who checks says what is here, and what was wanted
            other = knowledge_of(stack.enter_context(open_kb(f"{name}@{build}", home.path)), vectors)
            if other.continues(trained_with):
                return other
            knowledge = knowledge or other
    if knowledge is None:
        assert problem is not None
        raise problem
    return knowledge


def check_knowledge(
    knowledge: Mapping[str, Knowledge], trained_with: Mapping[str, Mapping[str, str]]
) -> None:
    """Make sure that a model knows knowledge bases, by what it was trained with.

    Args:
        knowledge: knowledge bases by name.
        trained_with: `Knowledge.about` when the model was trained, by the name of the knowledge base.

    Raises:
        UsageError: if a knowledge base that the model was trained with is not among these.
        StaleModel: if one is another build that does not only add to that, or has other vectors.
    """
    for name, about in trained_with.items():
        if name not in knowledge:
            raise UsageError(f"the model was trained with the knowledge base {name}: name it too")
        if not knowledge[name].continues(about):
            trained, present = _listing(about), _listing(knowledge[name].about)
            raise StaleModel(
                f"the model was trained with {trained}; here is {present}: open the build that it was "
                "trained with (KB@BUILD), or one made of it by `kgkit kb add`, with vectors that were made "
                "alike; or train it again"
            )


def _method_digest(manifest: "VectorsManifest") -> str:
    """Return a digest of how vectors are made, whatever build they are of."""
    ignored = {"taken_over"} | (_OF_THE_RUN if "fingerprint" in manifest.config else set())
    config = {name: value for name, value in manifest.config.items() if name not in ignored}
    method = msgspec.json.encode([manifest.method, manifest.width, config], order="deterministic")
    return hashlib.blake2b(method, digest_size=6).hexdigest()


def _without_build(name: str) -> str:
    """Return `KB/NAME` of `KB@BUILD/NAME`."""
    kb, _, path = name.partition("@")
    return f"{kb}/{path.rpartition('/')[2]}"


def _build(name: str) -> str:
    """Return `BUILD` of `KB@BUILD/NAME`."""
    return name.partition("@")[2].rpartition("/")[0]


def _listing(about: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({digest})" for name, digest in about.items())
