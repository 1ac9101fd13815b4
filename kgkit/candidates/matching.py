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

import re
import sys
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, compress, count, islice, product, repeat
from operator import attrgetter
from typing import Any, Final

import numpy as np
from msgspec import structs

from kgkit.bounded_cache import BoundedCache
from kgkit.candidates.compounds import CompoundReader
from kgkit.candidates.config import GeneratorConfig
from kgkit.candidates.entries import (
    ANY,
    UNSEEN,
    Entry,
    Meaning,
    SurfaceForm,
    Varying,
    case_is_hidden,
    drop_before,
    have_equal_rows,
)
from kgkit.candidates.hyphens import (
    HYPHENS,
    JOINING_DASHES,
    closed_spelling,
    joining_hyphens,
    with_plain_hyphens,
    with_spaces,
)
from kgkit.candidates.inflection import base_names, takes_ending
from kgkit.candidates.input_mentions import check_mentions
from kgkit.candidates.memory import Budget, Cut, Cutter, Memory, Omissions
from kgkit.candidates.spelling import (
    in_capitals_only,
    is_as_word,
    may_be_initials,
    may_be_word,
    outside_addresses,
    position_hides_case,
    without_article,
)
from kgkit.kb import KnowledgeBase
from kgkit.store import codec
from kgkit.store.damage import DAMAGE
from kgkit.text import Folding
from kgkit.types import CANDIDATE, NO_CANDIDATES, Candidates, Document, Mention

_MAX_VARIANTS = 64
_STOPS_BYTES: Final = 1_000_000
_CAPITALISED: Final = re.compile("[A-Z][a-z]")
_SHOUTED: Final = 5  # letters of a word in capitals; an abbreviation has fewer
_IN_ABBREVIATION: Final = re.compile(r"\.\s?[^\W\d_]$")  # Ph.D
_TEXT_OF: Final = attrgetter("text")
_TWO: Final = 1 << 2  # the bit of surfaces of two tokens
_DOUBTFUL: Final = 0.5
"""Probability that a word is a name where nobody counted it and its spelling tells nothing."""


class Generator(CompoundReader):
    """Finds mentions of a KB's surfaces and gives each its candidates.

    May be used from several threads, and pickled: it then starts with an
    empty memory of tokens.

    Attributes:
        omissions: surfaces that texts had in lower case, and the KB has with capitals only.
    """

    def __init__(self, kb: KnowledgeBase, config: GeneratorConfig) -> None:
        self.kb, self.config = kb, config
        self._fold, self._language = kb.store.folding.fold, kb.manifest.language
        self._hyphens = HYPHENS if kb.store.folding.version == 1 else JOINING_DASHES
        self._stops = BoundedCache[str, bool](_STOPS_BYTES)  # whether the KB writes a name with a full stop
        # Whether all candidates of a surface stay as they are, but for those beyond the most.
        self._as_stored = not (config.min_prior or config.null or kb.store.has_occurrences)
        self._most = sys.maxsize if config.max_candidates is None else config.max_candidates
        self.omissions = Omissions()
        budget = Budget(config.cache_mb)
        self._cutter = Cutter(budget, kb.store.folding)
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
                yield structs.replace(
                    document, mentions=[self._fill(mention) for mention in document.mentions]
                )

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
            text: text of any length.
            begin: code point at which a token or white space begins.
            cased: flag for a document in which capitals tell something; None: what `is_case_informative`
                says of *text*.
        """
        cut = self._cut(text, cased)
        mentions, hyphens = self._all_mentions(cut), joining_hyphens(text, self._hyphens)
        mentions = drop_before(self._add_compounds(cut, hyphens, mentions) if hyphens else mentions, begin)
        mentions = self._with_stops(cut, mentions)
        return mentions if self.config.all_surfaces else outside_addresses(text, mentions)

    def _cut(self, text: str, cased: bool | None = None) -> Cut:
        memory = self._cased if (is_case_informative(text) if cased is None else cased) else self._uncased
        pieces, has_odd_gaps = self._cutter.cut(text)
        offsets = [*accumulate(map(len, pieces))]
        entries = [*map(memory.entries.__getitem__, pieces[1::2])]
        return Cut(text, pieces, offsets, entries, memory, memory.spans, "", offsets, has_odd_gaps)

    def _all_mentions(self, cut: Cut) -> list[Mention]:
        """Return the mentions in a text as it stands, by start, then by length."""
        mentions: list[Mention] = []
        add, pieces, offsets = mentions.append, cut.pieces, cut.offsets
        starts = None  # of the token before
        bounds = iter(offsets)
        for index, entry, start, end, word in zip(
            count(), cut.entries, bounds, bounds, pieces[1::2], strict=False
        ):
            if starts is not None:
                for form in entry.texts:
                    if form in starts:
                        self._add_by_starts(cut, index - 1, mentions)
                        break
            candidates, starts = entry.candidates, entry.starts
            if candidates is not None:
                if not entry.varies or not case_is_hidden(cut.text, pieces, offsets, index):
                    add(Mention(start, end, word, candidates))
                elif entry.hidden is not None:
                    add(Mention(start, end, word, entry.hidden))
        return mentions

    def _with_stops(self, cut: Cut, mentions: list[Mention]) -> list[Mention]:
        """Return *mentions*, those that end in an abbreviation with its full stop if the KB writes one."""
        if not cut.has_odd_gaps:
            return mentions
        text, offsets, result = cut.text, cut.offsets, mentions
        for index in [
            at for at, mention in enumerate(mentions) if text[mention.end : mention.end + 1] == "."
        ]:
            mention = mentions[index]
            # Stops of abbreviations count as white space.
            gap = cut.pieces[bisect_left(offsets, mention.end) + 1]
            if gap[:1] == "." and self._is_written_with_stop(mention.text):
                result = [*mentions] if result is mentions else result
                result[index] = structs.replace(mention, end=mention.end + 1, text=mention.text + ".")
        return result

    def _is_written_with_stop(self, spelled: str) -> bool:
        if _IN_ABBREVIATION.search(spelled):
            return True
        is_written = self._stops.get(spelled)
        if is_written is None:
            folding, row = self.kb.store.folding, self.kb.store.alias_row(self._fold(spelled))
            is_written = row is not None and folding.split(spelled + ".")[-1] == "."
            if row is not None and is_written:
                with self.kb.store.reading():
                    is_written = any(spelling.surface.endswith(".") for spelling in codec.spellings(row))
            self._stops.keep(spelled, is_written)
        return is_written

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
    def look_up(self, variants: list[SurfaceForm], spelled: str, *, cased: bool) -> Candidates | None:
        """Return the candidates of a span.

        Args:
            variants: folded surfaces that the span may stand for.
            spelled: text of the span.
            cased: flag for a spelling that tells something.
        """

    def _add_spans(self, cut: Cut, index: int, mentions: list[Mention]) -> None:
        """Add the mentions of two tokens and more that begin at *index*, one of `_openings`."""
        self._add_by_starts(cut, index, mentions)

    def _add_by_starts(self, cut: Cut, index: int, mentions: list[Mention]) -> None:
        """Add the mentions of two tokens and more that begin at *index*, where two begin a surface."""
        entries = cut.entries
        starts, lengths = entries[index].starts, 0
        assert starts is not None
        for second in entries[index + 1].texts:
            bits = starts.get(second, 0)
            lengths |= bits & _TWO
            if bits > _TWO and index + 2 < len(entries):
                for third in entries[index + 2].texts:
                    lengths |= starts.get(f"{second} {third}", 0)
        if not lengths:
            return
        text, pieces, offsets = cut.text, cut.pieces, cut.offsets
        start, size = offsets[2 * index], 1
        while lengths >> size > 1 and index + size < len(entries):
            gap = pieces[2 * (index + size)]
            if gap != " " and gap.count("\n") > 1:
                return  # another paragraph
            size += 1
            if not lengths >> size & 1:
                continue
            end = offsets[2 * (index + size) - 1]
            spelled = text[start:end]
            meaning = cut.spans.get(spelled, UNSEEN)
            if meaning is UNSEEN:
                forms = [entry.forms for entry in entries[index : index + size]]
                gaps = pieces[2 * index + 2 : 2 * (index + size) : 2]
                meaning = self._meaning(cut, _variants(forms, gaps, self.kb.store.folding), spelled)
            if type(meaning) is Candidates:
                mentions.append(Mention(start, end, spelled, meaning))
            elif meaning is not None:
                self._add(text, start, end, meaning, mentions)

    def _meaning(self, cut: Cut, variants: list[SurfaceForm], spelled: str) -> Meaning | None:
        """Look up what a span of several tokens means, and remember it.

        Args:
            cut: text that has the span.
            variants: folded surfaces that it may stand for.
            spelled: its text.
        """
        surface, cased = spelled, cut.memory.cased
        if cut.spans is cut.memory.spaced_spans:
            surface, joined = with_spaces(spelled), closed_spelling(spelled)
            if joined is not None:  # take-off: the verb, and the noun
                variants = [*variants, *self.forms(joined)]
        try:
            candidates = self.look_up(variants, surface, cased=cased)
            meaning = self._meaning_by_case(candidates, variants, surface, cased=cased)
        except DAMAGE as error:
            raise self.kb.store.damage(error) from error
        cut.spans.remember(spelled, meaning)
        return meaning

    def _meaning_by_case(
        self, candidates: Candidates | None, variants: list[SurfaceForm], spelled: str, *, cased: bool
    ) -> Meaning | None:
        """Return *candidates*, with those where the position hides the case, if they are not the same."""
        if candidates is None or not cased or spelled.islower():
            return candidates
        if len(candidates.rows) == 1 and not self.config.min_prior:
            return candidates
        hidden = self.look_up(variants, spelled, cased=False)
        return candidates if have_equal_rows(candidates, hidden) else Varying(candidates, hidden)

    def _add(self, text: str, start: int, end: int, meaning: Meaning, mentions: list[Mention]) -> None:
        candidates: Candidates | None
        if type(meaning) is Varying:
            candidates = meaning.hidden if position_hides_case(text, start, end) else meaning.candidates
            if candidates is None:
                return
        else:
            candidates = meaning  # type: ignore[assignment]
        mentions.append(Mention(start, end, text[start:end], candidates))

    def _with_doubts(self, text: str, mentions: list[Mention], memory: Memory) -> list[Mention]:
        """Return *mentions* outside of addresses, with lower priors for names that may be ordinary words.

        So it is for names that nobody counted and that the KB writes with capitals only: see `is_doubtful`.
        """
        if not self.config.all_surfaces:
            mentions = outside_addresses(text, mentions)
        known, language, result = memory.doubtful_spans, self._language, mentions
        pairs = [*map(known.get, map(_TEXT_OF, mentions), repeat(UNSEEN))]
        for index in compress(range(len(pairs)), pairs):  # most are None
            mention, pair = mentions[index], pairs[index]
            if pair is UNSEEN:
                pair = self._with_lower(mention, memory.cased)
                known.remember(mention.text, pair)
            if pair is not None and is_as_word(
                text, mention.start, mention.end, cased=memory.cased, language=language
            ):
                if pair[0] is not mention.candidates:  # others where the position hides the case
                    pair = _lower_priors(mention)
                    known.remember(mention.text, pair)
                result = [*mentions] if result is mentions else result
                result[index] = structs.replace(mention, candidates=pair[1])
        return result

    def _with_lower(self, mention: Mention, cased: bool) -> tuple[Candidates, Candidates] | None:
        """Return a mention's candidates, and those where it may be an ordinary word; None if it never may."""
        spelled, candidates = mention.text, mention.candidates
        if cased and spelled.islower() and spelled.isalpha() and not self.config.all_surfaces:
            return None  # it is a mention because the KB writes it so
        if candidates is None or candidates.link_probability < 1:
            return None
        if not may_be_word(spelled, self._language):
            return None
        row = self.kb.store.alias_row(self._fold(spelled))
        if row is None and (found := base_row(self.kb, spelled, base_names(spelled, self._language))):
            row = found[1]
        try:
            if row is None or codec.is_counted(row, self.kb.manifest.smoothing) or not in_capitals_only(row):
                return None
            return _lower_priors(mention)
        except DAMAGE as error:
            raise self.kb.store.damage(error) from error

    def _row_of(self, token: str, folded: str, cased: bool) -> bytes | None:
        """Return the row of `aliases` for a token; a word in lower case is no other writing of a name."""
        row, every = self.kb.store.exact_alias_row(folded), self.config.all_surfaces
        if row is None and (every or not (cased and token.islower() and token.isalpha() and token.isascii())):
            initials = every or may_be_initials(token, cased=cased)
            return self.kb.store.other_alias_row(folded, initials=initials)
        return row

    def variants(self, text: str) -> list[SurfaceForm]:
        """Return the folded surfaces that *text* as a whole may stand for."""
        folding = self.kb.store.folding
        pieces = folding.split(text)
        if len(pieces) == 3:
            forms = self.forms(pieces[1])
            return [SurfaceForm(folding.fold(text), forms[0].pos), *forms[1:]]
        forms_of_tokens = [self.forms(token) for token in pieces[1::2]]
        return _variants(forms_of_tokens, pieces[2:-1:2], folding) if forms_of_tokens else []

    def _fill(self, mention: Mention) -> Mention:
        if mention.candidates is not None:
            return mention
        return structs.replace(mention, candidates=self.candidates_of(mention))

    @abstractmethod
    def candidates_of(self, mention: Mention) -> Candidates:
        """Return the candidates of a span that somebody else has found; none if it is no surface.

        One that is none may be one in another spelling: see `other_spellings`.
        """

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kb, self.config)

    def _link_probability(self, spelled: str) -> float:
        """Return how likely a mention is where a surface stands in a text; 1 where nobody has counted."""
        probability = self.kb.link_probability(spelled)
        return 1.0 if probability is None else probability

    def _shorten(self, candidates: Candidates, spelled: str | None = None) -> Candidates | None:
        """Return the best of *candidates*, without those under `min_prior`; None if none is left.

        With a NULL prior, the others share what it leaves. Priors are shares of all of *candidates*: where
        some are left out, those of the rest are not divided by their sum again.

        Args:
            candidates: meanings of a surface.
            spelled: surface, where it was found in a text: it may be no mention there, and is none under
                `min_link_probability`, unless `all_surfaces` is set. None for a mention that is given.
        """
        config, rows = self.config, candidates.rows
        if self._as_stored and 0 < len(rows) <= self._most:
            return candidates
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
        if rows is candidates.rows:
            return candidates
        return Candidates(rows, config.null if likely == 1 else 1 - (1 - config.null) * likely, likely)


def _lower_priors(mention: Mention) -> tuple[Candidates, Candidates]:
    """Return the candidates of a mention, and the same with priors that are lower by `_DOUBTFUL`."""
    candidates = mention.candidates or NO_CANDIDATES
    rows = candidates.rows.copy()
    rows["prior"] *= _DOUBTFUL
    return candidates, Candidates(rows, 1 - (1 - candidates.null) * _DOUBTFUL, _DOUBTFUL)


def respellings(text: str) -> list[str]:
    """Return how *text* may be written otherwise that is joined by hyphens.

    With the hyphens of keyboards, with spaces, as one word.
    """
    if not joining_hyphens(text, JOINING_DASHES):
        return []
    plain, joined = with_plain_hyphens(text), closed_spelling(text)
    texts = [with_spaces(text)] if plain == text else [plain, with_spaces(text)]
    return texts if joined is None else [*texts, joined]


def other_spellings(text: str, language: str) -> Iterator[str]:
    """Yield what the text of a mention that is no surface may be instead, in the order of preference.

    Its `respellings`, then itself without an article, as a tagger has *the Big Apple*, and the respellings of
    that.

    Args:
        text: text of the mention.
        language: language of the KB, a BCP 47 tag.
    """
    yield from respellings(text)
    if bare := without_article(text, language):
        yield bare
        yield from respellings(bare)


def surface_candidates(kb: KnowledgeBase, mention: Mention, *, prefer_case: bool) -> Candidates:
    """Return the candidates of a mention's text as a surface of *kb*.

    Of one that is none the candidates of one of its `other_spellings`, or of what it is a form of.
    """
    language = kb.manifest.language
    texts = filter(None, (mention.text, without_article(mention.text, language)))
    found = filter(None, (base_row(kb, text, base_names(text, language)) for text in texts))
    names = (name for name, _ in found)
    candidates = NO_CANDIDATES
    for text in chain((mention.text,), other_spellings(mention.text, language), names):
        candidates = kb.candidates(text, pos=mention.pos or None, prefer_case=prefer_case)
        if len(candidates):
            break
    return candidates


def base_row(
    kb: KnowledgeBase, spelled: str, names: Iterable[str], *, cased: bool = True
) -> tuple[str, bytes] | None:
    """Return the name that a span is a plural or genitive of, and its row of `aliases`; None if it is none.

    Args:
        kb: knowledge base that has the names.
        spelled: text of the span.
        names: the `base_names` of it.
        cased: flag for a spelling that tells something.
    """
    language = kb.manifest.language
    for name in names:
        initials = may_be_initials(name, cased=cased)
        row = kb.store.alias_row(kb.store.folding.fold(name), initials=initials)
        if row is None:
            continue
        try:
            if not _is_verb(kb, row) and takes_ending(row, name, spelled, language, cased=cased):
                return name, row
        except DAMAGE as error:
            raise kb.store.damage(error) from error
    return None


def _is_verb(kb: KnowledgeBase, row: bytes) -> bool:
    """Say whether all that a row of `aliases` means are verbs, by a KB that has parts of speech."""
    bits = codec.classes(row)
    return 0 < bits < ANY and bits == kb.pos_bits("v")


def is_case_informative(text: str) -> bool:
    """Say whether capitals tell something in *text*: not where all is in capitals, or nothing is.

    Nor do they where whole words are in capitals and all others have none.
    """
    if text.islower() or text.isupper():
        return False
    if _CAPITALISED.search(text):
        return True
    words = text.split()
    return any(map(str.istitle, words)) or not any(len(word) >= _SHOUTED and word.isupper() for word in words)


def _variants(tokens: list[tuple[SurfaceForm, ...]], gaps: list[str], folding: Folding) -> list[SurfaceForm]:
    """Return the surfaces that a span may stand for: a form of each token, agreeing in part of speech."""
    glue = ["", *map(folding.joint, gaps)]
    if sum(map(len, tokens)) == len(tokens):  # nothing is inflected
        surface = "".join([between + forms[0].text for between, forms in zip(glue, tokens, strict=True)])
        return [SurfaceForm(surface, ANY)]
    variants = []
    for forms in islice(product(*tokens), _MAX_VARIANTS):
        pos, surface = ANY, ""
        for between, form in zip(glue, forms, strict=True):
            pos &= form.pos
            surface += between + form.text
        if pos:
            variants.append(SurfaceForm(surface, pos))
    return variants


def candidates_from_weights(weights: dict[int, tuple[float, int]]) -> Candidates:
    """Return candidates from `{entity: (weight, sense)}`: priors are shares of all weights."""
    total = sum(weight for weight, _ in weights.values())
    best = sorted(weights.items(), key=lambda item: -item[1][0])
    # Where nobody counted, all share alike.
    priors = [weight / total if total else 1 / len(best) for _, (weight, _) in best]
    rows = [(entity, sense, prior) for (entity, (_, sense)), prior in zip(best, priors, strict=True)]
    return Candidates(np.array(rows, CANDIDATE))
