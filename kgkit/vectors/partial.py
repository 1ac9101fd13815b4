"""Vectors of texts that are made as they are needed: where they lie below the vectors of their name.

    kbs/KB/vectors/NAME/partial-SETTINGS/
      settings.json      everything that decides the numbers: a manifest's `config`
      rows.bin, lock     rows by the digest of their text: `kgkit.vectors.row_file`
      kinds.json         which kinds of entities have descriptions, by BUILD, where all had to be read for it

SETTINGS is a digest of the settings. Rows belong to texts, not to entities: they serve every build. When
complete vectors of the name are published, these folders are swept with older versions.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from kgkit.home import KBHome, is_name
from kgkit.vectors.layout import vectors_folder
from kgkit.vectors.row_file import row_count

PARTIAL: Final = "partial-"
SETTINGS: Final = "settings.json"
KINDS: Final = "kinds.json"


class PartialFolder(NamedTuple):
    """A folder of partial vectors.

    Attributes:
        path: path of the folder.
        rows: number of texts that have a vector.
        settings: settings that decide the numbers.
    """

    path: Path
    rows: int
    settings: dict[str, Any]


def partial_path(kb: KBHome, name: str, settings: dict[str, Any]) -> Path:
    """Return the folder of the partial vectors KB/*name* with these settings, which need not exist."""
    content = msgspec.json.encode(settings, order="sorted")
    return vectors_folder(kb, name) / f"{PARTIAL}{hashlib.blake2b(content, digest_size=6).hexdigest()}"


def partial_folders(kb: KBHome, name: str) -> list[PartialFolder]:
    """Return the partial vectors KB/*name*, those with the most rows first."""
    return sorted(_read(vectors_folder(kb, name)), key=lambda folder: (-folder.rows, folder.path.name))


def partial_names(kb: KBHome) -> list[str]:
    """Return the names of a KB's partial vectors, in order."""
    paths = sorted(kb.vectors.iterdir()) if kb.vectors.is_dir() else []
    return [path.name for path in paths if is_name(path.name) and any(_read(path))]


def _read(folder: Path) -> Iterator[PartialFolder]:
    for path in folder.glob(f"{PARTIAL}*"):
        try:
            settings = msgspec.json.decode((path / SETTINGS).read_bytes(), type=dict[str, Any])
        except (OSError, msgspec.DecodeError):
            continue
        width = settings.get("width")
        if isinstance(width, int) and width > 0:
            yield PartialFolder(path, row_count(path, width), settings)
