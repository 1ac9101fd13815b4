"""Finding the surfaces of a KB in a text.

A text is cut into tokens; what a token can be alone, which longer surfaces may
begin with it, and which forms it may stand for, is looked up once per token
type and remembered. The rest is a walk over the tokens:

    token   -> entry: candidates of the token itself
                      second tokens of the surfaces that begin with it
                      the forms it may have in a surface
    two tokens that begin a surface -> the span is looked up whole

Where a KB has tries, `AliasGenerator` asks those what begins at a token.
"""

import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, count, islice, product
from typing import Any, Final

import numpy as np
from msgspec import structs

from kgkit.candidates.compounds import CompoundReader
from kgkit.candidates.entries import (
    ANY,
    UNSEEN,
    Cut,
    Entry,
    Reading,
    Varying,
    alike,
    case_is_hidden,
    starting_from,
)
from kgkit.candidates.given import check_mentions
from kgkit.candidates.hyphens import as_one_word, joining_hyphens, spaced, with_plain_hyphens
from kgkit.candidates.memory import Budget, Cutter, LeftOut, Memory
from kgkit.candidates.spelling import position_hides_case
from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
from kgkit.store.reader import DAMAGE
from kgkit.text import token_splitter
from kgkit.types import CANDIDATE, NO_CANDIDATES, Candidates, Document, Mention

_MAX_VARIANTS = 64
_TWO: Final = 1 << 2  # the bit of surfaces of two tokens


@dataclass(frozen=True, kw_only=True)
class GeneratorConfig:
    """What every generator can be told.

    `all_surfaces` switches off three rules: that function words are no mentions, nor surfaces under
    `min_link_probability`, nor words in lower case that the KB has with capitals only. The last is not
    one of `LemmaGenerator`: a lexicon has the words of its language, which are found in any spelling.
    """

    max_candidates: int | None = 30  # a mention, as in KnowBert; None for all
    min_prior: float = 0.0  # p(entity | surface), in [0, 1]
    null: float = 0.0  # prior of "none of these", in [0, 1)
    min_link_probability: float = 0.01  # of a surface that is sought in texts, in [0, 1]; 0 for all
    all_surfaces: bool = False  # function words, those hardly ever links, words spelled otherwise
    cache_mb: float = 100.0  # what tokens and spans that are remembered may take, in 10⁶ bytes, roughly

    def __post_init__(self) -> None:
        few = self.max_candidates is not None and self.max_candidates < 1
        shares = 0 <= self.min_prior <= 1 and 0 <= self.min_link_probability <= 1
        if few or not shares or not 0 <= self.null < 1 or self.cache_mb < 0:
            raise UsageError(
                f"out of range in {self}: max_candidates >= 1, min_prior and min_link_probability in [0, 1], "
                "null in [0, 1), cache_mb >= 0"
            )


class Generator(CompoundReader):
    """Finds mentions of a KB's surfaces and gives each its candidates.

    May be used from several threads, and pickled: it then starts with an
    empty memory of tokens.

    Attributes:
        left_out: surfaces that texts had in lower case, and the KB has with capitals only.
    """

    def __init__(self, kb: KnowledgeBase, config: GeneratorConfig) -> None:
        self.kb, self.config = kb, config
        # Whether all candidates of a surface stay as they are, but for those beyond the most.
        self._as_stored = not (config.min_prior or config.null or kb.store.has_occurrences)
        self._most = sys.maxsize if config.max_candidates is None else config.max_candidates
        self.left_out = LeftOut()
        budget = Budget(config.cache_mb)
        self._cutter = Cutter(budget)
        self._cased = Memory(self._read_entry, budget, cased=True)
        self._uncased = Memory(self._read_entry, budget, cased=False)

    def __call__(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield each document with mentions and candidates.

        Mentions that are given keep their spans; those that already have
        candidates keep them too.

        Raises:
            UsageError: if a given mention is no span of its text, or has another text there.
        """
        for document in documents:
            if document.mentions is None:
                yield structs.replace(document, mentions=self.mentions(document.text))
            else:
                check_mentions(document)
                yield structs.replace(document, mentions=[self._filled(given) for given in document.mentions])

    @property
    def overlapping(self) -> bool:
        """Whether mentions may overlap."""
        return True

    def mentions(self, text: str) -> list[Mention]:
        """Return the mentions in *text* that have candidates, by start, then by length.

        Offsets are code points of *text*.
        """
        return self.mentions_from(text, 0)

    def mentions_from(self, text: str, begin: int, *, cased: bool | None = None) -> list[Mention]:
        """Return the mentions in *text* that start at code point *begin* or behind it.

        The text before is there to be looked at: a window of a long text begins with it (see
        `kgkit.candidates.long_texts`). So what a mention is may depend on some words before it, and on
        `MAX_TOKENS` tokens from its first on.

        Args:
            text: as for `mentions`.
            begin: where a token or white space begins.
            cased: whether capitals tell something in the document; None: as `tells_case` says of *text*.
        """
        cut = self._cut(text, cased)
        found, hyphens = self._every(cut), joining_hyphens(text)
        return starting_from(self._with_compounds(cut, hyphens, found) if hyphens else found, begin)

    def _cut(self, text: str, cased: bool | None = None) -> Cut:
        memory = self._cased if (tells_case(text) if cased is None else cased) else self._uncased
        pieces = self._cutter.cut(text)
        offsets = [*accumulate(map(len, pieces))]
        entries = [*map(memory.entries.__getitem__, pieces[1::2])]
        return Cut(text, pieces, offsets, entries, memory, memory.spans, "", offsets)

    def _every(self, cut: Cut) -> list[Mention]:
        """Return the mentions in a text as it stands, by start, then by length."""
        found: list[Mention] = []
        add, pieces, offsets = found.append, cut.pieces, cut.offsets
        starts = None  # of the token before
        for place, entry, start, end, word in zip(
            count(), cut.entries, offsets[::2], offsets[1::2], pieces[1::2], strict=False
        ):
            if starts is not None:
                for form in entry.texts:
                    if form in starts:
                        self._longer(cut, place - 1, found)
                        break
            candidates, starts = entry.candidates, entry.starts
            if candidates is not None:
                if not entry.varies or not case_is_hidden(cut.text, pieces, offsets, place):
                    add(Mention(start, end, word, candidates))
                elif entry.hidden is not None:
                    add(Mention(start, end, word, entry.hidden))
        return found

    def _read_entry(self, token: str, cased: bool) -> Entry:
        """Return the entry of a token type that is not remembered.

        Raises:
            DamagedKB: if a row of the KB that it is made of cannot be decoded.
        """
        try:
            return self.entry(token, cased)
        except DAMAGE as error:
            raise self.kb.store.damage(error) from error

    @abstractmethod
    def entry(self, token: str, cased: bool = True) -> Entry:
        """Return what there is to know of a token type, where its spelling tells something, or nothing."""

    @abstractmethod
    def look_up(self, variants: list[Reading], spelled: str, *, cased: bool) -> Candidates | None:
        """Return the candidates of a span.

        Args:
            variants: the folded surfaces it may stand for.
            spelled: as it stands in the text.
            cased: whether that tells something.
        """

    def _several(self, cut: Cut, place: int, found: list[Mention]) -> None:
        """Add the mentions of two tokens and more that begin at *place*, one of `_openings`."""
        self._longer(cut, place, found)

    def _longer(self, cut: Cut, place: int, found: list[Mention]) -> None:
        """Add the mentions of two tokens and more that begin at *place*, where two begin a surface."""
        text, pieces, offsets, entries = cut.text, cut.pieces, cut.offsets, cut.entries
        starts, seconds, lengths = entries[place].starts, entries[place + 1].texts, 0
        assert starts is not None
        for second in seconds:
            lengths |= starts.get(second, 0)
        if lengths > _TWO and place + 2 < len(entries):
            lengths &= _TWO
            for second in seconds:
                for third in entries[place + 2].texts:
                    lengths |= starts.get(f"{second} {third}", 0)
        start, size = offsets[2 * place], 1
        while lengths >> size > 1 and place + size < len(entries):
            if pieces[2 * (place + size)].count("\n") > 1:
                return  # another paragraph
            size += 1
            if not lengths >> size & 1:
                continue
            end = offsets[2 * (place + size) - 1]
            spelled = text[start:end]
            meaning = cut.spans.get(spelled, UNSEEN)
            if meaning is UNSEEN:
                forms = [entry.forms for entry in entries[place : place + size]]
                gaps = pieces[2 * place + 2 : 2 * (place + size) : 2]
                meaning = self._meaning(cut, _variants(forms, gaps), spelled)
            if type(meaning) is Candidates:
                found.append(Mention(start, end, spelled, meaning))
            elif meaning is not None:
                self._add(text, start, end, meaning, found)

    def _meaning(self, cut: Cut, variants: list[Reading], spelled: str) -> Candidates | Varying | None:
        """Look up what a span of several tokens means, and remember it."""
        wanted, cased = spelled, cut.memory.cased
        if cut.spans is cut.memory.respelled:
            wanted, joined = spaced(spelled), as_one_word(spelled)
            if joined is not None:  # take-off: the verb, and the noun
                variants = [*variants, *self.forms(joined)]
        try:
            found = self.look_up(variants, wanted, cased=cased)
            meaning = self._varying(found, variants, wanted, cased=cased)
        except DAMAGE as error:
            raise self.kb.store.damage(error) from error
        cut.spans.remember(spelled, meaning)
        return meaning

    def _varying(
        self, found: Candidates | None, variants: list[Reading], spelled: str, *, cased: bool
    ) -> Candidates | Varying | None:
        """Return *found*, with what it is where the position hides the case, if that is not the same."""
        if found is None or not cased or spelled.islower():
            return found
        if len(found.rows) == 1 and not self.config.min_prior:
            return found
        hidden = self.look_up(variants, spelled, cased=False)
        return found if alike(found, hidden) else Varying(found, hidden)

    def _add(
        self, text: str, start: int, end: int, meaning: Candidates | Varying, found: list[Mention]
    ) -> None:
        candidates: Candidates | None
        if type(meaning) is Varying:
            candidates = meaning.hidden if position_hides_case(text, start, end) else meaning.candidates
            if candidates is None:
                return
        else:
            candidates = meaning  # type: ignore[assignment]
        found.append(Mention(start, end, text[start:end], candidates))

    def variants(self, text: str) -> list[Reading]:
        """Return the folded surfaces that *text* as a whole may stand for."""
        pieces = token_splitter(text).split(text)
        return _variants([self.forms(token) for token in pieces[1::2]], pieces[2:-1:2]) if pieces[1:] else []

    def _filled(self, given: Mention) -> Mention:
        if given.candidates is not None:
            return given
        return structs.replace(given, candidates=self.of_mention(given))

    @abstractmethod
    def of_mention(self, given: Mention) -> Candidates:
        """Return the candidates of a span that somebody else has found; none if it is no surface.

        One with hyphens that is none may be one with spaces, or one word.
        """

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kb, self.config)

    def _link_probability(self, spelled: str) -> float:
        """Return how likely a mention is where a surface stands in a text; 1 where nobody has counted."""
        known = self.kb.link_probability(spelled)
        return 1.0 if known is None else known

    def _short(self, found: Candidates, spelled: str | None = None) -> Candidates | None:
        """Return the best of *found*, without those under `min_prior`; None if none is left.

        With a NULL prior, the others share what it leaves. Priors are shares of all of *found*: where some
        are left out, those of the rest are not divided by their sum again.

        Args:
            found: the meanings of a surface.
            spelled: the surface, where it was found in a text: it may be no mention there, and is none under
                `min_link_probability`, unless `all_surfaces` is set. None for a mention that is given.
        """
        config, rows = self.config, found.rows
        if self._as_stored and 0 < len(rows) <= self._most:
            return found
        likely = 1.0 if spelled is None or not len(rows) else self._link_probability(spelled)
        if likely < config.min_link_probability and not config.all_surfaces:
            return None
        if config.max_candidates is not None and len(rows) > config.max_candidates:
            rows = rows[: config.max_candidates]
        if config.min_prior:
            rows = rows[rows["prior"] >= config.min_prior]
        if not len(rows):
            return None
        if config.null or likely < 1:
            rows = rows.copy()
            rows["prior"] *= (1 - config.null) * likely
        if rows is found.rows:
            return found
        return Candidates(rows, config.null if likely == 1 else 1 - (1 - config.null) * likely, likely)


def otherwise(text: str) -> list[str]:
    """Return how *text* may be written otherwise that is joined by hyphens.

    With the hyphens of keyboards, with spaces, as one word.
    """
    if not joining_hyphens(text):
        return []
    plain, joined = with_plain_hyphens(text), as_one_word(text)
    texts = [spaced(text)] if plain == text else [plain, spaced(text)]
    return texts if joined is None else [*texts, joined]


def surface_candidates(kb: KnowledgeBase, given: Mention, *, prefer_case: bool) -> Candidates:
    """Return the candidates of a mention's text as a surface of *kb*, or as it is written `otherwise`."""
    found = NO_CANDIDATES
    for text in (given.text, *otherwise(given.text)):
        found = kb.candidates(text, pos=given.pos or None, prefer_case=prefer_case)
        if len(found):
            break
    return found


def tells_case(text: str) -> bool:
    """Say whether capitals tell something in *text*: not where all is in capitals, or nothing is."""
    return not (text.islower() or text.isupper())


def _variants(tokens: list[tuple[Reading, ...]], gaps: list[str]) -> list[Reading]:
    """Return the surfaces that a span may stand for: a form of each token, agreeing in part of speech."""
    glue = ["", *[" " if gap else "" for gap in gaps]]
    if sum(map(len, tokens)) == len(tokens):  # nothing is inflected
        surface = "".join([between + forms[0].text for between, forms in zip(glue, tokens, strict=True)])
        return [Reading(surface, ANY)]
    found = []
    for forms in islice(product(*tokens), _MAX_VARIANTS):
        pos, surface = ANY, ""
        for between, form in zip(glue, forms, strict=True):
            pos &= form.pos
            surface += between + form.text
        if pos:
            found.append(Reading(surface, pos))
    return found


def merged(weights: dict[int, tuple[float, int]]) -> Candidates:
    """Return candidates from `{entity: (weight, sense)}`: priors are shares of all weights."""
    total = sum(weight for weight, _ in weights.values())
    best = sorted(weights.items(), key=lambda item: -item[1][0])
    # Where nobody counted, all share alike.
    priors = [weight / total if total else 1 / len(best) for _, (weight, _) in best]
    rows = [(entity, sense, prior) for (entity, (_, sense)), prior in zip(best, priors, strict=True)]
    return Candidates(np.array(rows, CANDIDATE))
