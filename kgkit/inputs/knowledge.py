"""A knowledge base as a head reads it: what finds mentions in texts, and vectors of entities.

R  entities    D  numbers of an entity's vector
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.candidates import Generator
from kgkit.errors import StaleModel, UsageError
from kgkit.kb import KnowledgeBase
from kgkit.kb.nearest import ancestry
from kgkit.types import Ids
from kgkit.vectors.scan import unit

if TYPE_CHECKING:
    from kgkit.vectors import Vectors
    from kgkit.vectors.layout import VectorsManifest

Matrix = NDArray[np.float32]

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
    """

    generator: Generator
    vectors: "tuple[Vectors, ...]"

    @property
    def width(self) -> int:
        """D: numbers in a vector, and parts of speech."""
        return sum(vectors.width for vectors in self.vectors) + len(self._kb.store.classes)

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
        if count := len(self._kb.store.classes):
            classes = self._kb.classes_of(ids)  # (R,), 0 for none
            table = np.eye(count + 1, dtype=np.float32)[:, 1:] * np.float32(np.sqrt(count))
            parts.append(table[classes])
        return np.concatenate(parts, axis=1)


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
