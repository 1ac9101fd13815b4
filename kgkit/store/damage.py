"""Damage to a build: what shows it, and the error that says what to do about it."""

import shlex
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import lmdb
import msgspec

from kgkit.errors import DamagedKB
from kgkit.home import Home
from kgkit.store.layout import MANIFEST, Manifest
from kgkit.store.manifest import GARBAGE, full_name, home_of, rebuild_command

DAMAGE: Final = (lmdb.Error, *GARBAGE, TypeError, ValueError, IndexError, OverflowError, struct.error)
"""What LMDB and the decoders raise for rows that are not as they were written.

Every look-up names them in an `except`, which costs nothing until one is raised.
"""


@contextmanager
def report_damage(folder: Path) -> Iterator[None]:
    """Say of rows that cannot be read in the block that the build in *folder* is damaged.

    For those who do more in the block than read: only what nothing but damage raises is taken for damage.

    Raises:
        DamagedKB: for what LMDB and msgspec raise.
    """
    try:
        yield
    except (lmdb.Error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise damage_error(folder, f"a row cannot be read ({error})") from error


def damage_error(folder: Path, problem: str) -> DamagedKB:
    """Return the error that says of the build in *folder* that it is damaged, and what to do."""
    return DamagedKB(f"knowledge base {full_name(folder)} is damaged: {problem}; {what_to_do(folder)}")


def what_to_do(folder: Path) -> str:
    """Return what helps against damage in *folder*, as the end of a sentence."""
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
        again = f"run `{rebuild_command(folder, manifest)}` to build it again"
        if manifest.added:
            again += " and then `kgkit kb add` for what was added to it"
        if manifest.edited:
            again += " and then `kgkit kb edit` for its edits"
    except (OSError, *GARBAGE):
        again = "build it again"
    if (home := home_of(folder)) is None:
        return again
    words = ["kgkit", "kb", "verify", full_name(folder)]
    words += ["--home", str(home)] if Home.named or home != Home.find().path else []
    return f"`{shlex.join(words)}` tells more; {again}"
