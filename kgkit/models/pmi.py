"""PMI tables among the trained models: what one says of itself, and how it is opened."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from kgkit.models.arrays import read_array
from kgkit.models.kinds import Kind
from kgkit.models.manifest import ModelManifest
from kgkit.pmi.table import ARRAYS, PMITable

if TYPE_CHECKING:
    from kgkit.models.opening import Opening

Positive = Annotated[int, msgspec.Meta(ge=1)]


class PMIManifest(ModelManifest, frozen=True, kw_only=True):
    """What a PMI table says of itself.

    Attributes:
        window: largest distance of two words that are a pair; 1: next to each other.
        largest: the largest positive PMI, in nats, by which all values are divided.
        words: number of its words.
        pairs: number of its pairs, (x, y) and (y, x) counted once.
    """

    window: Positive
    largest: float
    words: Positive
    pairs: Positive


PMI: Final = Kind(
    name="pmi", title="a PMI table", manifest=PMIManifest,
    about="which words stand near each other more often than by chance (Church and Hanks 1990)",
    roles={"association_table": "kgkit.models.pmi:open_table"},
    use="`kgkit nearest WORD --pmi {name}` lists the words that go with one",
)  # fmt: skip


def open_table(folder: Path, manifest: PMIManifest, _: "Opening") -> PMITable:
    """Return the PMI table in *folder*.

    Raises:
        DamagedModel: if its files are no arrays, or do not fit each other or the manifest.
    """
    arrays = {name: read_array(folder / f"{name}.npy") for name in ARRAYS}
    return PMITable(arrays, manifest.name, words=manifest.words, pairs=manifest.pairs)
