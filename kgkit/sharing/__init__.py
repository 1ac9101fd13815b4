"""Packs: knowledge bases, vectors and trained models as one file, for other machines.

`layout` is the form of the file; `packing` writes it, `reading` reads it, `unpacking` publishes what is in
it, once `checks` has found neither another thing of its name nor damage.
"""

from typing import TYPE_CHECKING

from kgkit.lazy import lazy_attributes

if TYPE_CHECKING:
    from kgkit.sharing.packing import pack
    from kgkit.sharing.unpacking import unpack

__all__ = ["pack", "unpack"]

__getattr__ = lazy_attributes(__name__, {"pack": ".packing", "unpack": ".unpacking"})
