"""Candidates for a lexical database of English: inflected words find their lemmas.

The morphology is WordNet's (`man 7 morphy`): a list of irregular forms, which
comes with the KB, and rules that detach regular endings. No part of speech is
needed: a form is tried as each, and the meanings are those of the lemma in
that part of speech.
"""

from dataclasses import dataclass
from typing import Final

from kgkit.candidates.matching import ANY, Entry, Form, Generator, merged, shortened
from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
from kgkit.store import codec
from kgkit.text import fold
from kgkit.types import NO_CANDIDATES, Candidates, Mention

# Ending, what takes its place, part of speech; by last letter, since that rules most out.
_ENDINGS: Final = (
    ("s", "", "n"), ("ses", "s", "n"), ("ves", "f", "n"), ("xes", "x", "n"), ("zes", "z", "n"),
    ("ches", "ch", "n"), ("shes", "sh", "n"), ("men", "man", "n"), ("ies", "y", "n"),
    ("s", "", "v"), ("ies", "y", "v"), ("es", "e", "v"), ("es", "", "v"),
    ("ed", "e", "v"), ("ed", "", "v"), ("ing", "e", "v"), ("ing", "", "v"),
    ("er", "", "a"), ("est", "", "a"), ("er", "e", "a"), ("est", "e", "a"),
)  # fmt: skip
_BY_LAST: Final = {last: [rule for rule in _ENDINGS if rule[0][-1] == last] for last in "sndgrt"}

FUNCTION_WORDS: Final = frozenset(
    "a an the and or nor but if so as at by in into of on to from with for it its he him his she her hers "
    "i me my we us our you your they them their this that these those who whom whose which what am is are "
    "was were be been being has had have having does did do doing can could may might must shall should will "
    "would than then not no there".split()
)
"""Words that join others: WordNet knows most of them only as something else (`a`, the ångström; `in`, indium)."""


@dataclass(frozen=True, kw_only=True)
class LemmaConfig:
    """Settings of `LemmaGenerator`."""

    max_candidates: int = 30  # a mention, as in KnowBert
    min_prior: float = 0.0  # p(entity | surface), in [0, 1]
    null: float = 0.0  # prior of "none of these", in [0, 1)
    skip: frozenset[str] = FUNCTION_WORDS  # written so, alone, they are no mention

    def __post_init__(self) -> None:
        if self.max_candidates < 1 or not 0 <= self.min_prior <= 1 or not 0 <= self.null < 1:
            raise UsageError(f"out of range in {self}: max_candidates >= 1, min_prior in [0, 1], null in [0, 1)")


class LemmaGenerator(Generator):
    """Finds lemmas in a text: inflected, of several words, overlapping ones all kept."""

    def __init__(self, kb: KnowledgeBase, config: LemmaConfig | None = None) -> None:
        super().__init__(kb)
        self.config = config or LemmaConfig()
        self._bits = {pos: kb.pos_bits(pos) for pos in ("n", "v", "a", "r")}
        self._rules = {
            last: [(ending, instead, pos, self._bits[pos]) for ending, instead, pos in rules]
            for last, rules in _BY_LAST.items()
        }

    def entry(self, token: str) -> Entry:
        forms = self.forms(token)
        candidates = None if token in self.config.skip else self.look_up([*forms], token)
        starts = None
        texts = tuple([form.text for form in forms])
        for text in texts:
            more = self.kb.store.starts(text)
            if more is not None:
                starts = more if starts is None else _joined(starts, more)
        return Entry(candidates, starts, texts, forms)

    def forms(self, token: str) -> tuple[Form, ...]:
        folded = fold(token)
        if not folded.isalpha():
            return (Form(folded, ANY),)
        return (Form(folded, ANY), *self._lemmas(folded))

    def lemmas(self, form: str) -> list[tuple[str, str]]:
        """Return the lemmas that *form* may be an inflection of, each with its part of speech."""
        return [
            (lemma, pos)
            for lemma, bits in self._lemmas(fold(form))
            for pos, bit in self._bits.items()
            if bits & bit
        ]

    def look_up(self, variants: list[Form], spelled: str) -> Candidates | None:
        found = self._found(variants, spelled)
        return None if found is None else self._short(found)

    def of_mention(self, given: Mention) -> Candidates:
        if given.lemma:
            found = self.kb.candidates(given.lemma, pos=given.pos or None, prefer_case=False)
            return self._short(found) or NO_CANDIDATES
        whole = next((other for other in self.mentions(given.text) if len(other.text) == len(given.text)), None)
        if whole is None or whole.candidates is None:
            return NO_CANDIDATES
        return self.kb.filter(whole.candidates, given.pos) if given.pos else whole.candidates

    def _short(self, found: Candidates) -> Candidates | None:
        config = self.config
        return shortened(found, most=config.max_candidates, min_prior=config.min_prior, null=config.null)

    def _lemmas(self, folded: str) -> list[Form]:
        """Return the lemmas of a folded form that the KB knows, with the parts of speech that lead to them."""
        found: dict[str, int] = {}
        irregular = 0
        for lemma, pos in self.kb.store.lemmas(folded):
            irregular |= self._bits[pos]
            found[lemma] = found.get(lemma, 0) | self._bits[pos]
        if len(folded) > 2:
            for ending, instead, pos, bits in self._rules.get(folded[-1], ()):
                if folded.endswith(ending) and not irregular & bits and not (pos == "n" and folded.endswith("ss")):
                    lemma = folded[: -len(ending)] + instead
                    row = self.kb.store.alias_row(lemma) if lemma else None
                    if row is not None and codec.classes_and_total(row)[0] & bits:
                        found[lemma] = found.get(lemma, 0) | bits
        found.pop(folded, None)
        return [Form(lemma, bits) for lemma, bits in found.items()]

    def _found(self, variants: list[Form], spelled: str) -> Candidates | None:
        """Return the meanings of all variants together, weighted by how often each was counted."""
        rows = [(row, bits) for text, bits in variants if (row := self.kb.store.alias_row(text)) is not None]
        if not rows:
            return None
        if len(rows) == 1:
            row, bits = rows[0]
            if not codec.classes_and_total(row)[0] & ~bits:
                return codec.decode_alias(row, spelled)
        class_bits = self.kb.class_bits()
        weights: dict[int, tuple[float, int]] = {}
        for row, bits in rows:
            total = codec.classes_and_total(row)[1]
            for entity, sense, prior in codec.decode_alias(row, spelled):
                if class_bits[entity] & bits:
                    before = weights.get(entity)
                    weight = prior * total
                    weights[entity] = (weight, sense) if before is None else (before[0] + weight, before[1])
        return merged(weights) if weights else None


def _joined(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    joined = dict(first)
    for token, lengths in second.items():
        joined[token] = joined.get(token, 0) | lengths
    return joined


