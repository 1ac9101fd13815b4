"""Texts whose maps a KAM-BERT reads in the place of a text's own: a control, whose gain is no knowledge."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kgkit.errors import UsageError
from kgkit.models.manifest import damaged
from kgkit.text import token_spans

if TYPE_CHECKING:
    from typing import Self

FILE: Final = "other_texts.json"

_MOST: Final = 2_000  # texts that are kept
_NEAREST: Final = 16  # texts of like length that one is chosen among
_MAX_BYTES: Final = 1 << 28

Texts = tuple[str, ...]


class OtherTexts:
    """Chooses for a text, or a pair, another one of like length: always the same.

    Args:
        texts: texts that are chosen among; the first 2,000 different ones are.

    Raises:
        UsageError: if there are not two.
    """

    def __init__(self, texts: Iterable[Texts]) -> None:
        self.texts: Sequence[Texts] = sorted([*dict.fromkeys(texts)][:_MOST], key=count_words)
        self._counts = [*map(count_words, self.texts)]
        if len(self.texts) < 2:
            raise UsageError("maps of other texts need two texts at least: name more data")

    def __call__(self, texts: Texts) -> Texts:
        """Return the texts whose maps stand for those of *texts*; never these themselves."""
        count = count_words(texts)
        distances = [abs(other - count) for other in self._counts]
        nearest = sorted(range(len(distances)), key=distances.__getitem__)[: _NEAREST + 1]
        others = [other for index in nearest if (other := self.texts[index]) != texts]
        digest = hashlib.blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return others[int.from_bytes(digest) % len(others)]

    def save(self, folder: Path) -> None:
        """Write the texts into the folder of a model."""
        (folder / FILE).write_bytes(msgspec.json.encode(self.texts))

    @classmethod
    def open(cls, folder: Path) -> "Self":
        """Return the texts that were saved in the folder of a model.

        Raises:
            DamagedModel: if they cannot be read.
        """
        try:
            if (size := (folder / FILE).stat().st_size) > _MAX_BYTES:
                raise UsageError(f"it has {size:,} bytes, and {_MAX_BYTES:,} at most are expected")
            texts = msgspec.json.decode((folder / FILE).read_bytes(), type=list[Texts])
            if wrong := [len(own) for own in texts if len(own) not in (1, 2)]:
                raise UsageError(f"an example in it has {wrong[0]} texts, expected a text or a pair")
            return cls(texts)
        except (OSError, msgspec.MsgspecError, ValueError, RecursionError, UsageError) as error:
            raise damaged(folder, f"{FILE} cannot be read: {error}") from error


def count_words(texts: Texts) -> int:
    """Return how many words a text, or a pair, has."""
    return sum(len(token_spans(text)) for text in texts)
