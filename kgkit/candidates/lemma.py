"""Candidates for a lexical database of English: inflected words find their lemmas.

Function words are those of English too, whatever language a KB names, since the morphology is. Spelling
leaves nothing else out: a lexicon has the words of its language, where a list of entities has names. Link
probability counts as for any KB.

The morphology is WordNet's (`man 7 morphy`): a list of irregular forms, which
comes with the KB, and rules that detach regular endings. No part of speech is
needed: a form is tried as each, and the meanings are those of the lemma in
that part of speech.
"""

import re
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import or_
from typing import Final

from kgkit.candidates.config import GeneratorConfig
from kgkit.candidates.entries import (
    ANY,
    Entry,
    Meaning,
    Possessive,
    SurfaceForm,
    have_equal_rows,
    join_starts,
)
from kgkit.candidates.inflection import ENGLISH_ENDINGS
from kgkit.candidates.matching import Generator, candidates_from_weights, other_spellings
from kgkit.candidates.spelling import FUNCTION_WORDS, in_capitals_only, is_function_word, may_be_initials
from kgkit.kb import KnowledgeBase
from kgkit.store import codec
from kgkit.store.damage import DAMAGE
from kgkit.types import NO_CANDIDATES, Candidates, Mention

_FOLLOWED: Final = re.compile(r"\s\w")
_BE: Final = frozenset("be am is are was were been being".split())
_LEAST: Final = 3  # letters of what an ending is cut from; of verbs two: go, do
# Probability that words mean what the KB has them for, where they begin or end with one that joins others:
_UNCOUNTED: Final = 0.5  # and nobody counted that meaning,
_JOINING: Final = 0.15  # or all are such words: 129 of 914 times in SemCor


@dataclass(frozen=True, kw_only=True)
class LemmaConfig(GeneratorConfig):
    """Settings of `LemmaGenerator`."""

    skip: frozenset[str] = FUNCTION_WORDS  # written so, alone, they are no mention; see `all_surfaces`
    nouns: bool = False  # of these, mentions as nouns (the can), for a scorer that reads parts of speech


class LemmaGenerator(Generator):
    """Finds lemmas in a text: inflected, of several words, overlapping ones all kept."""

    config: LemmaConfig

    def __init__(self, kb: KnowledgeBase, config: LemmaConfig | None = None) -> None:
        super().__init__(kb, config or LemmaConfig())
        self._skip = frozenset() if self.config.all_surfaces else self.config.skip
        self._bits = {pos: kb.pos_bits(pos) for pos in ("n", "v", "a", "r")}
        # By last letter, since that rules most of them out.
        self._rules: dict[str, list[tuple[str, str, int]]] = {}
        for ending, instead, parts in ENGLISH_ENDINGS:
            bits = reduce(or_, [self._bits[pos] for pos in parts])
            self._rules.setdefault(ending[-1], []).append((ending, instead, bits))

    def _meaning_by_case(
        self, candidates: Candidates | None, variants: list[SurfaceForm], spelled: str, *, cased: bool
    ) -> Meaning | None:
        """Do as for every generator; mark possessives, which are no mentions where a noun follows.

        In *the men's team* there is no *men's*; names have their own (*New Year's Eve*).
        """
        meaning = super()._meaning_by_case(candidates, variants, spelled, cased=cased)
        if meaning is None or not spelled.endswith(("'s", "’s")) or self.config.all_surfaces:
            return meaning
        row = self.kb.store.alias_row(self._fold(spelled))
        return meaning if row is not None and in_capitals_only(row) else Possessive(meaning)

    def _add(self, text: str, start: int, end: int, meaning: Meaning, mentions: list[Mention]) -> None:
        if type(meaning) is not Possessive:
            super()._add(text, start, end, meaning, mentions)
        elif not _FOLLOWED.match(text, end):
            super()._add(text, start, end, meaning.meaning, mentions)

    def entry(self, token: str, cased: bool = True) -> Entry:
        """Return the entry of a token with all its lemmas: its candidates are those of the forms together."""
        folded = self._fold(token)
        part = self.kb.store.folding.part(folded) if "." in folded else folded
        rows = {part: self._row_of(token, folded, cased)}
        forms: tuple[SurfaceForm, ...] = (SurfaceForm(part, ANY),)
        if folded.isalpha():
            forms += tuple(self._lemmas(token, folded, rows))
        candidates = hidden = None
        varies = False
        skipped = is_function_word(token, folded, self._skip, cased)
        if not skipped or self._is_noun(rows[part]):
            bits = self._bits["n"] if skipped else ANY
            form_rows = [(row, form.pos & bits) for form in forms if (row := rows[form.text]) is not None]
            meanings = self._meanings(form_rows, token if cased else None)
            candidates = None if meanings is None else self._shorten(meanings, token)
            if candidates is not None and cased and not token.islower():
                varies, hidden = self._hidden_candidates(token, folded, candidates, form_rows)
        starts = None
        texts = tuple([form.text for form in forms])
        for text in texts:
            more = self.kb.store.starts(text)
            if more is not None:
                starts = more if starts is None else join_starts(starts, more)
        if varies:
            return Entry(candidates, starts, texts, forms, None, None, True, hidden)
        return Entry(candidates, starts, texts, forms)

    def _is_noun(self, row: bytes | None) -> bool:
        """Say whether a function word is a mention as a noun, which an abbreviation is not (*IN*)."""
        if not self.config.nouns or row is None or codec.has_spellings(row):
            return False
        classes = map(self.kb.class_bits().__getitem__, codec.decode_alias(row).ids)
        return self._bits["n"] < ANY and all(classes)  # of one without a part of speech no scorer reads it

    def _hidden_candidates(
        self, token: str, folded: str, candidates: Candidates, form_rows: list[tuple[bytes, int]]
    ) -> tuple[bool, Candidates | None]:
        """Say whether a token with capitals has other candidates where its position hides them, and which."""
        if token.isupper() and is_function_word(token, folded, self._skip, False):
            return True, None
        if not any(codec.prefers(row, token) for row, _ in form_rows):
            return False, None
        meanings = self._meanings(form_rows, None)
        hidden = None if meanings is None else self._shorten(meanings, token)
        return not have_equal_rows(candidates, hidden), hidden

    def forms(self, token: str) -> tuple[SurfaceForm, ...]:
        """Return the folded token, then its possible lemmas with their parts of speech."""
        folded = self.kb.store.folding.fold_part(token)
        if not folded.isalpha() or not token.isalpha():
            return (SurfaceForm(folded, ANY),)
        return (SurfaceForm(folded, ANY), *self._lemmas(token, folded, {}))

    def lemmas(self, form: str) -> list[tuple[str, str]]:
        """Return the lemmas that *form* may be an inflection of, each with its part of speech."""
        return [
            (other.text, pos)
            for other in self._lemmas(form, self._fold(form), {})
            for pos, bit in self._bits.items()
            if other.pos & bit
        ]

    def look_up(self, variants: list[SurfaceForm], spelled: str, *, cased: bool) -> Candidates | None:
        """Return the candidates of all *variants* of a span together; None if none of them is a surface."""
        initials = self.config.all_surfaces or may_be_initials(spelled, cased=cased)
        meanings = self._meanings_of_variants(variants, spelled, cased=cased, initials=initials)
        if meanings is None or not (probability := self._certainty(variants, spelled)):
            return None
        candidates = self._shorten(meanings, spelled)
        if candidates is None or probability == 1:
            return candidates
        rows = candidates.rows.copy()
        rows["prior"] *= probability
        left = (1 - candidates.null) * probability
        return Candidates(rows, 1 - left, candidates.link_probability * probability)

    def _certainty(self, variants: list[SurfaceForm], spelled: str) -> float:
        """Return how likely a span means what the KB has it for, by the words that join others in it.

        Of such words only (*did it*, *and so*), it is no mention where it is inflected or was never counted,
        and else seldom one. Others that were never counted are uncertain (*built in*), and none where they
        are a name in lower case (*the city*) or a passive (*was given*).
        """
        words = spelled.lower().split()
        if len(words) < 2 or not (words[0] in self._skip or words[-1] in self._skip):
            return 1.0
        rows = [row for form in variants if (row := self.kb.store.alias_row(form.text)) is not None]
        smoothing = self.kb.manifest.smoothing
        try:
            counted = any(codec.is_counted(row, smoothing) for row in rows)
            named = any(map(in_capitals_only, rows))
        except DAMAGE as error:
            raise self.kb.store.damage(error) from error
        if self._skip.issuperset(words):
            return _JOINING if counted and self.kb.store.alias_row(self._fold(spelled)) is not None else 0.0
        if counted or spelled[1:] != spelled[1:].lower():
            return 1.0
        return 0.0 if named or words[0] in _BE else _UNCOUNTED

    def _link_probability(self, spelled: str) -> float:
        """Return how likely a mention is where a form stands in a text; else that of its likeliest lemma.

        Occurrences are counted of surfaces, and an inflected form is none.
        """
        if not self.kb.store.has_occurrences:
            return 1.0
        if (probability := self.kb.link_probability(spelled)) is not None:
            return probability
        lemmas = (self.kb.link_probability(variant.text) for variant in self.variants(spelled))
        return max((probability for probability in lemmas if probability is not None), default=1.0)

    def candidates_of(self, mention: Mention) -> Candidates:
        """Return the candidates of the mention's lemma if it has one, else of the forms of its text.

        A part of speech of the mention is applied before the candidates are cut to `max_candidates`.
        """
        meanings: Candidates | None
        if mention.lemma:
            meanings = self.kb.candidates(mention.lemma, prefer_case=False)
        else:
            meanings = None
            for text in chain((mention.text,), other_spellings(mention.text, self.kb.manifest.language)):
                meanings = self._meanings_of_variants(self.variants(text), text, cased=True)
                if meanings is not None:
                    break
        if meanings is not None and mention.pos:
            meanings = self.kb.filter(meanings, mention.pos)  # before it is cut
        return (None if meanings is None else self._shorten(meanings)) or NO_CANDIDATES

    def _lemmas(self, token: str, folded: str, rows: dict[str, bytes | None]) -> list[SurfaceForm]:
        """Return the lemmas of a form that the KB knows, and the parts of speech that lead there.

        *rows* takes the alias rows that were read on the way.
        """
        lemma_bits: dict[str, int] = {}
        irregular = 0
        alias_row = self.kb.store.exact_alias_row
        for lemma, pos in self.kb.store.lemmas(folded):
            bits = self._bits.get(pos) or self.kb.pos_bits(pos)
            irregular |= bits
            lemma_bits[lemma] = lemma_bits.get(lemma, 0) | bits
            if lemma not in rows:
                rows[lemma] = alias_row(lemma)
        if len(folded) > 2:
            # No noun loses the s of `ss`.
            rules = self._rules.get(folded[-1])
            if rules is not None:
                least, verb, function_word = _least(token), self._bits["v"], folded in self._skip
                barred = irregular | (self._bits["n"] if folded.endswith("ss") else 0)
            try:
                for ending, instead, bits in rules or ():
                    if folded.endswith(ending) and (bits := bits & ~barred):
                        lemma = folded[: -len(ending)] + instead
                        if len(lemma) < least and not (bits := bits & verb if len(lemma) > 1 else 0):
                            continue
                        if function_word and lemma not in self._skip:
                            continue
                        if lemma not in rows:
                            rows[lemma] = alias_row(lemma)
                        row = rows[lemma]
                        if row is not None and (bits := bits & codec.classes(row)):
                            lemma_bits[lemma] = lemma_bits.get(lemma, 0) | bits
            except DAMAGE as error:  # of a row that is too short to have classes
                raise self.kb.store.damage(error) from error
        lemma_bits.pop(folded, None)
        return [SurfaceForm(lemma, bits) for lemma, bits in lemma_bits.items() if bits]

    def _meanings_of_variants(
        self, variants: list[SurfaceForm], spelled: str, *, cased: bool, initials: bool = True
    ) -> Candidates | None:
        """Return the meanings of all variants together, weighted by how often each was counted."""
        alias_row, texts = self.kb.store.alias_row, {variant.text for variant in variants}
        for lemma, pos in self.kb.store.lemmas(self._fold(spelled)):  # one that is irregular as a whole
            if lemma not in texts:
                variants = [*variants, SurfaceForm(lemma, self._bits.get(pos) or self.kb.pos_bits(pos))]
        return self._meanings(
            [
                (row, form.pos)
                for form in variants
                if (row := alias_row(form.text, initials=initials)) is not None
            ],
            spelled if cased else None,
        )

    def _meanings(self, rows: list[tuple[bytes, int]], spelled: str | None) -> Candidates | None:
        """Return the meanings of alias rows, each for the parts of speech of its bits."""
        if not rows:
            return None
        try:
            if len(rows) == 1:
                row, bits = rows[0]
                if bits == ANY or not codec.classes(row) & ~bits:
                    return codec.decode_alias(row, spelled)
            class_bits = self.kb.class_bits()
            weights: dict[int, tuple[float, int]] = {}
            for row, bits in rows:
                total = codec.total(row)
                for entity, sense, prior in codec.decode_alias(row, spelled):
                    if (class_bits[entity] or ANY) & bits:  # without a part of speech: may be any
                        before = weights.get(entity)
                        weight = prior * total
                        weights[entity] = (
                            (weight, sense) if before is None else (before[0] + weight, before[1])
                        )
        except DAMAGE as error:
            raise self.kb.store.damage(error) from error
        return candidates_from_weights(weights) if weights else None


def _least(token: str) -> int:
    """Return how many letters a lemma has at least: two of an abbreviation that is in capitals, as PCs."""
    return 2 if token[-1] == "s" and token[:-1].isupper() else _LEAST
