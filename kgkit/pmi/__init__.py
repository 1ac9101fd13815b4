"""Pointwise mutual information of words: tables on disk, as `kgkit train pmi` makes them."""

from kgkit.pmi.table import AssociatedWord, PMITable, text_words

__all__ = ["AssociatedWord", "PMITable", "text_words"]
