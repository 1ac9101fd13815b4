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

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, chain, islice, product
from typing import Any, Final

import numpy as np
from msgspec import Struct, structs

from kgkit.candidates.given import check_mentions
from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
from kgkit.store.surfaces import Matcher
from kgkit.text import token_splitter
from kgkit.types import CANDIDATE, Candidates, Document, Mention

ANY: Final = 0xFF
"""The part-of-speech bits of a form that may be any."""

_MAX_ENTRIES = 500_000
_MAX_VARIANTS = 64
_MAX_CHUNK = 32
UNSEEN: Final = object()
_TWO: Final = 1 << 2  # the bit of surfaces of two tokens


class Reading(Struct, frozen=True, gc=False):
    """What a token may stand for in a surface, and for which parts of speech (bits)."""

    text: str
    pos: int


class Entry(Struct, frozen=True, gc=False):
    """What there is to know of a token type.

    Attributes:
        candidates: of the token alone; None if it is no surface.
        starts: how the surfaces go on that begin with it, as `StoreReader.starts`
            tells; None if there are none.
        texts: of its forms.
        forms: what it may stand for in a longer surface, itself (folded) first.
        spaced: asks the KB's tries for surfaces in which a space follows the token;
            None if there are none.
        tight: the same for surfaces that go on at once.
    """

    candidates: Candidates | None
    starts: dict[str, int] | None
    texts: tuple[str, ...]
    forms: tuple[Reading, ...]
    spaced: Matcher | None = None
    tight: Matcher | None = None


class _Entries(dict[str, Entry]):
    """Entries by token, made when first asked for."""

    def __init__(self, generator: "Generator") -> None:
        super().__init__()
        self._generator = generator

    def __missing__(self, token: str) -> Entry:
        if len(self) >= _MAX_ENTRIES:
            self.clear()
        entry = self[token] = self._generator.entry(token)
        return entry


class _Cutter(dict[str, tuple[str, ...]]):
    """Cuts texts into white space and tokens, and remembers how: most chunks between two spaces come again.

    Maps a chunk to its pieces, each token behind the white space that precedes
    it; to nothing if white space begins or ends it.
    """

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        before, *pieces = token_splitter(chunk).split(chunk)
        found = (" ", *pieces[:-1]) if pieces and not before and not pieces[-1] else ()
        if len(chunk) <= _MAX_CHUNK:
            if len(self) >= _MAX_ENTRIES:
                self.clear()
            self[chunk] = found
        return found

    def cut(self, text: str) -> list[str]:
        """Return white space and tokens in turn, beginning and ending with white space."""
        words = text.strip()
        chunks = [*map(self.__getitem__, words.split(" "))]
        if () in chunks:  # more white space between two words than a space
            return token_splitter(text).split(text)
        begin = text.index(words)
        pieces = [*chain.from_iterable(chunks), text[begin + len(words) :]]
        pieces[0] = text[:begin]
        return pieces


@dataclass(frozen=True, kw_only=True)
class GeneratorConfig:
    """What every generator can be told."""

    max_candidates: int | None = 30  # a mention, as in KnowBert; None for all
    min_prior: float = 0.0  # p(entity | surface), in [0, 1]
    null: float = 0.0  # prior of "none of these", in [0, 1)

    def __post_init__(self) -> None:
        few = self.max_candidates is not None and self.max_candidates < 1
        if few or not 0 <= self.min_prior <= 1 or not 0 <= self.null < 1:
            raise UsageError(
                f"out of range in {self}: max_candidates >= 1, min_prior in [0, 1], null in [0, 1)"
            )


class Generator(ABC):
    """Finds mentions of a KB's surfaces and gives each its candidates.

    May be used from several threads, and pickled: it then starts with an
    empty memory of tokens.
    """

    def __init__(self, kb: KnowledgeBase, config: GeneratorConfig) -> None:
        self.kb, self.config = kb, config
        self._entries = _Entries(self)
        self._cutter = _Cutter()
        self._spans: dict[str, Any] = {}  # candidates of longer spans, or None

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

    def mentions(self, text: str) -> list[Mention]:
        """Return the mentions in *text* that have candidates, by start, then by length.

        Offsets are code points of *text*.
        """
        found: list[Mention] = []
        add = found.append
        pieces = self._cutter.cut(text)
        words = pieces[1::2]
        offsets = [*accumulate(map(len, pieces))]
        entries = [*map(self._entries.__getitem__, words)]
        for place, entry in enumerate(entries):
            candidates, starts = entry.candidates, entry.starts
            if candidates is not None:
                add(Mention(offsets[2 * place], offsets[2 * place + 1], words[place], candidates))
            if starts is not None and place + 1 < len(entries):
                for form in entries[place + 1].texts:
                    if form in starts:
                        self._longer(text, pieces, offsets, entries, place, found)
                        break
        return found

    @abstractmethod
    def entry(self, token: str) -> Entry:
        """Return what there is to know of a token type."""

    @abstractmethod
    def look_up(self, variants: list[Reading], spelled: str) -> Candidates | None:
        """Return the candidates of a span.

        Args:
            variants: the folded surfaces it may stand for.
            spelled: as it stands in the text.
        """

    @abstractmethod
    def forms(self, token: str) -> tuple[Reading, ...]:
        """Return what a token may stand for in a surface, itself (folded) first."""

    def _longer(
        self,
        text: str,
        pieces: list[str],
        offsets: list[int],
        entries: list[Entry],
        place: int,
        found: list[Mention],
    ) -> None:
        """Add the mentions of two tokens and more that begin at *place*."""
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
            candidates = self._spans.get(spelled, UNSEEN)
            if candidates is UNSEEN:
                forms = [entry.forms for entry in entries[place : place + size]]
                gaps = pieces[2 * place + 2 : 2 * (place + size) : 2]
                candidates = self._remember(spelled, self.look_up(_variants(forms, gaps), spelled))
            if candidates is not None:
                found.append(Mention(start, end, spelled, candidates))

    def _remember(self, spelled: str, candidates: Candidates | None) -> Candidates | None:
        if len(self._spans) >= _MAX_ENTRIES:
            self._spans.clear()
        self._spans[spelled] = candidates
        return candidates

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
        """Return the candidates of a span that somebody else has found; none if it is no surface."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kb, self.config)

    def _short(self, found: Candidates) -> Candidates | None:
        """Return the best of *found*, without those under `min_prior`; None if none is left.

        With a NULL prior, the others share what it leaves. Priors are shares of all of *found*: where some
        are left out, those of the rest are not divided by their sum again.
        """
        config, rows = self.config, found.rows
        if config.max_candidates is not None and len(rows) > config.max_candidates:
            rows = rows[: config.max_candidates]
        if config.min_prior:
            rows = rows[rows["prior"] >= config.min_prior]
        if not len(rows):
            return None
        if config.null:
            rows = rows.copy()
            rows["prior"] *= 1 - config.null
        return found if rows is found.rows else Candidates(rows, config.null)


def longest(mentions: list[Mention]) -> list[Mention]:
    """Return the leftmost-longest of *mentions*, which come by start: none overlaps another."""
    kept: list[Mention] = []
    for mention in mentions:
        if not kept or mention.start >= kept[-1].end:
            kept.append(mention)
        elif mention.start == kept[-1].start and mention.end > kept[-1].end:
            kept[-1] = mention
    return kept


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
