"""Pointwise mutual information of words: tables on disk, as `kgkit train pmi` makes them."""

from kgkit.pmi.table import ARRAYS, AssociatedWord, PMITable, text_words

__all__ = ["ARRAYS", "AssociatedWord", "PMITable", "text_words"]
