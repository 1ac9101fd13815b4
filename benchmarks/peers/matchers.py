"""Matchers of a fixed list of aliases: ahocorasick_rs and spaCy's PhraseMatcher.

Both look for every WordNet lemma, case ignored, whole words only, all matches. They find aliases and no
more: neither inflected forms nor candidates.
"""

import json
import time
from pathlib import Path


def _inputs(keys: str, text: str) -> tuple[list[str], list[str], int]:
    aliases = [lemma.lower() for lemma in json.loads(Path(keys).read_text())["lemmas"]]
    lines = Path(text).read_text(encoding="utf-8").splitlines()
    return aliases, lines, sum(len(line.split()) for line in lines)


def aho_corasick(keys: str, text: str) -> dict[str, float]:
    """Match with one automaton; a space around aliases and lines makes it match whole words."""
    import ahocorasick_rs

    aliases, lines, tokens = _inputs(keys, text)
    start = time.process_time()
    automaton = ahocorasick_rs.AhoCorasick(
        [f" {alias} " for alias in aliases], matchkind=ahocorasick_rs.MatchKind.Standard
    )
    opened = time.process_time()
    spans = 0
    for line in lines:
        # Overlapping, because two neighbours share the space between them.
        spans += len(automaton.find_matches_as_indexes(f" {line.lower()} ", overlapping=True))
    stop = time.process_time()
    return {"opening": opened - start, "seconds": stop - start, "tokens": tokens, "spans": spans}


def phrase_matcher(keys: str, text: str) -> dict[str, float]:
    """Match documents made of the whitespace tokens; making them is part of the time."""
    import spacy
    from spacy.matcher import PhraseMatcher
    from spacy.tokens import Doc

    aliases, lines, tokens = _inputs(keys, text)
    start = time.process_time()
    vocabulary = spacy.blank("en").vocab
    matcher = PhraseMatcher(vocabulary, attr="LOWER")
    matcher.add("lemma", [Doc(vocabulary, words=alias.split()) for alias in aliases])
    opened = time.process_time()
    spans = 0
    for line in lines:
        spans += len(matcher(Doc(vocabulary, words=line.split())))
    stop = time.process_time()
    return {"opening": opened - start, "seconds": stop - start, "tokens": tokens, "spans": spans}
