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
        if len(self.texts) < 2:
            raise UsageError("maps of other texts need two texts at least: name more data")

    def __call__(self, texts: Texts) -> Texts:
        """Return the texts whose maps stand for those of *texts*; never these themselves."""
        count = count_words(texts)
        nearest = sorted(self.texts, key=lambda other: abs(count_words(other) - count))[: _NEAREST + 1]
        others = [other for other in nearest if other != texts]
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
            texts = msgspec.json.decode((folder / FILE).read_bytes(), type=list[Texts])
            if not all(texts):
                raise UsageError("an example in it has no text")
            return cls(texts)
        except (OSError, msgspec.MsgspecError, ValueError, RecursionError, UsageError) as error:
            raise damaged(folder, f"{FILE} cannot be read: {error}") from error


def count_words(texts: Texts) -> int:
    """Return how many words a text, or a pair, has."""
    return sum(len(token_spans(text)) for text in texts)
