"""Packs: knowledge bases, vectors and trained models as one file, for other machines.

`layout` draws the file, `tar` writes and reads its headers, `selection` finds what is packed, `writing` and
`reading` are the two directions, `contents` checks what has been read, `unpacking` publishes it.
"""

from typing import TYPE_CHECKING

from kgkit.lazy import lazy_attributes

if TYPE_CHECKING:
    from kgkit.sharing.unpacking import unpack
    from kgkit.sharing.writing import pack

__all__ = ["pack", "unpack"]

__getattr__ = lazy_attributes(__name__, {"pack": ".writing", "unpack": ".unpacking"})
