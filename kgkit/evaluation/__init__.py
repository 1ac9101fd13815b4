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
from kgkit.evaluation.el_formats import read_gold_data, read_predictions
from kgkit.evaluation.nif import write_nif
from kgkit.evaluation.significance import (
    Comparison,
    bootstrap_intervals,
    compare,
    difference_interval,
    paired_test,
)
from kgkit.evaluation.wsd import Score, Scores, read_documents, read_gold, score, write_keys

__all__ = [
    "Comparison",
    "GoldDocument",
    "Labelled",
    "LinkScore",
    "Redirects",
    "Score",
    "Scores",
    "bootstrap_intervals",
    "compare",
    "difference_interval",
    "links_of",
    "paired_test",
    "read_documents",
    "read_gold",
    "read_gold_data",
    "read_gold_documents",
    "read_links",
    "read_predictions",
    "read_redirects",
    "score",
    "score_document",
    "score_links",
    "write_keys",
    "write_links",
    "write_nif",
    "writing_links",
]
