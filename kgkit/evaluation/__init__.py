"""Scorers and the files they read. Nothing here knows a model or a store."""

from kgkit.evaluation.wsd import Score, Scores, read_documents, read_gold, score, write_keys

__all__ = ["Score", "Scores", "read_documents", "read_gold", "score", "write_keys"]
