"""Scorers and the files they read. Nothing here knows a model or a store."""

from kgkit.evaluation.el import LinkScore, score_document, score_links
from kgkit.evaluation.el_files import (
    GoldDocument,
    Labelled,
    Redirects,
    links_of,
    read_gold_documents,
    read_links,
    read_redirects,
    write_links,
    writing_links,
)
from kgkit.evaluation.wsd import Score, Scores, read_documents, read_gold, score, write_keys

__all__ = [
    "GoldDocument",
    "Labelled",
    "LinkScore",
    "Redirects",
    "Score",
    "Scores",
    "links_of",
    "read_documents",
    "read_gold",
    "read_gold_documents",
    "read_links",
    "read_redirects",
    "score",
    "score_document",
    "score_links",
    "write_keys",
    "write_links",
    "writing_links",
]
