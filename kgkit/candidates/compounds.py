"""Words joined by hyphens: what they mean where the KB writes them with spaces, or as one word.

What depends on the words alone is looked up once per compound and remembered; what depends on the words
around is sought only where one of these begins a surface that is long enough.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kgkit.candidates.entries import UNSEEN, Entry, Meaning, SurfaceForm, Varying
from kgkit.candidates.hyphens import HYPHENS, closed_spelling, with_plain_hyphens
from kgkit.candidates.memory import Cut
from kgkit.candidates.spelling import in_capitals_only
from kgkit.store.layout import MAX_TOKENS
from kgkit.types import Mention

if TYPE_CHECKING:
    from kgkit.candidates.config import GeneratorConfig
    from kgkit.kb import KnowledgeBase

_SHORT: Final = 3  # letters of an abbreviation
# Of a compound that may be one word; more may not be in a window of a long text.
_MAX_PARTS: Final = MAX_TOKENS // 2
_AROUND: Final = 3  # words on each side of words joined by hyphens that may belong to the same surface
_REMEMBERED: Final = 64  # characters of a compound


class Compound(Struct, frozen=True, gc=False):
    """What there is to know of words joined by hyphens, whatever stands around them.

    Attributes:
        closed_meaning: meaning of the words, written as one word; None if there is none.
        openings: indices of the words that begin surfaces which go on with the next one.
        abbreviations: indices of the words that are no mentions.
    """

    closed_meaning: Meaning | None
    openings: tuple[int, ...]
    abbreviations: tuple[int, ...]


class CompoundMentions(Struct, frozen=True, gc=False):
    """What compounds change about the mentions of a text.

    Attributes:
        more: mentions that the text as it stands does not have, or that count less than its own of the same
            span; of several of a span the first counts.
        abbreviations: start and end of the parts that are no mentions by themselves.
    """

    more: list[Mention]
    abbreviations: list[tuple[int, int]]


class CompoundReader(ABC):
    """Reads the words of a text that are joined by hyphens: a part of every generator."""

    kb: "KnowledgeBase"
    config: "GeneratorConfig"

    def _add_compounds(self, cut: Cut, hyphens: list[int], mentions: list[Mention]) -> list[Mention]:
        """Return *mentions*, and what words joined by hyphens mean where the KB writes them otherwise.

        A part that the KB has with capitals only is no mention: *co-operative* is no carbon monoxide.

        Args:
            cut: text and its tokens.
            hyphens: positions of the hyphens in the text.
            mentions: mentions of the text as it stands, all of them, by start, then by length.
        """
        compounds = self._compounds(cut, hyphens)
        if compounds.more:
            spans = {_span(mention): mention for mention in reversed(compounds.more)}
            result: list[Mention] = []
            before = 0
            for span in sorted(spans):
                index = bisect_left(mentions, span, before, key=_span)
                result += mentions[before:index]
                before = index
                # The text as it stands goes before.
                if index == len(mentions) or _span(mentions[index]) != span:
                    result.append(spans[span])
            mentions = result + mentions[before:]
        if compounds.abbreviations:
            abbreviations = {*compounds.abbreviations}
            mentions = [mention for mention in mentions if _span(mention) not in abbreviations]
        return mentions

    def _compounds(self, cut: Cut, hyphens: list[int]) -> CompoundMentions:
        """Return what the words that are joined by *hyphens* change about the mentions of a text."""
        text, offsets, memory = cut.text, cut.offsets, cut.memory
        more = [] if text.isascii() else self._with_plain_hyphens(cut, hyphens)
        plain = {_span(mention) for mention in more}
        abbreviations: list[tuple[int, int]] = []
        for joints in _joints(cut, hyphens):
            first, last = joints[0] - 1, joints[-1] + 1
            start, end = offsets[2 * first], offsets[2 * last + 1]
            spelled = text[start:end]
            compound = memory.compounds.get(spelled, UNSEEN)
            if compound is UNSEEN:
                compound = self._read_compound(cut, first, last, spelled)
                if len(spelled) <= _REMEMBERED:
                    memory.compounds.remember(spelled, compound)
            low = max(0, first - _AROUND)
            openings = self._openings(cut, low, first, len(joints), compound)
            spaced_mentions = self._mentions_with_spaces(cut, joints, low, openings) if openings else []
            more += spaced_mentions
            if compound is None:
                continue
            if (
                compound.closed_meaning is not None
                and (start, end) not in plain
                and all(_span(mention) != (start, end) for mention in spaced_mentions)
                and not self._is_surface(cut, first, end)
            ):
                self._add(text, start, end, compound.closed_meaning, more)
            for part in compound.abbreviations:
                piece = 2 * (first + 2 * part)
                abbreviations.append((offsets[piece], offsets[piece + 1]))
        return CompoundMentions(more, abbreviations)

    def _read_compound(self, cut: Cut, first: int, last: int, spelled: str) -> Compound | None:
        """Return what there is to know of the compound of tokens *first* to *last*; None if nothing."""
        parts = cut.entries[first : last + 1 : 2]
        closed_meaning = self._closed_meaning(cut, spelled) if len(parts) <= _MAX_PARTS else None
        openings = [
            part
            for part in range(len(parts) - 1)
            if (starts := parts[part].starts) is not None
            and not starts.keys().isdisjoint(parts[part + 1].texts)
        ]
        abbreviations = [
            part for part in range(len(parts)) if self._is_abbreviation(cut, first + 2 * part, parts[part])
        ]
        if closed_meaning is None and not openings and not abbreviations:
            return None
        return Compound(closed_meaning, tuple(openings), tuple(abbreviations))

    def _closed_meaning(self, cut: Cut, spelled: str) -> Meaning | None:
        """Return what a compound means that is written as one word."""
        joined = closed_spelling(spelled)
        if joined is None:
            return None
        forms = self.forms(joined)
        if len(forms) == 1 and self.kb.store.alias_row(forms[0].text) is None:
            return None  # as most are
        entry = cut.memory.entries[joined]
        if entry.candidates is None:
            return None
        return Varying(entry.candidates, entry.hidden) if entry.varies else entry.candidates

    def _with_plain_hyphens(self, cut: Cut, hyphens: list[int]) -> list[Mention]:
        """Return mentions across hyphens of Unicode that the KB writes with those of keyboards."""
        text, plain = cut.text, with_plain_hyphens(cut.text)
        unicode_hyphens = [hyphen for hyphen in hyphens if text[hyphen] != plain[hyphen]]
        if not unicode_hyphens:
            return []
        plain_cut = self._cut(plain, cut.memory.cased)
        return [
            Mention(mention.start, mention.end, text[mention.start : mention.end], mention.candidates)
            for mention in self._add_compounds(plain_cut, hyphens, self._all_mentions(plain_cut))
            if bisect_left(unicode_hyphens, mention.start) < bisect_left(unicode_hyphens, mention.end)
        ]

    def _openings(
        self, cut: Cut, low: int, first: int, joints: int, compound: Compound | None
    ) -> Sequence[int]:
        """Return which words about a compound may begin surfaces that go across its hyphens.

        Args:
            cut: text and its tokens.
            low: index of the first of the tokens about the compound.
            first: index of its own first token.
            joints: number of its hyphens.
            compound: entry of the compound; None if nothing is known of it.

        Returns:
            Indices of the words, counted from *low* on, without the hyphens.
        """
        entries, openings = cut.entries, []
        for index in range(low, first):
            starts, lengths = entries[index].starts, 0
            if starts is not None:
                for form in entries[index + 1].texts:
                    lengths |= starts.get(form, 0)
                if lengths >> first - index + 2:
                    openings.append(index - low)
        if compound is not None:
            openings += [first - low + part for part in compound.openings]
        return openings

    def _mentions_with_spaces(
        self, cut: Cut, joints: list[int], low: int, openings: Sequence[int]
    ) -> list[Mention]:
        """Return mentions across the hyphens of a compound, at *joints*, if these count as spaces."""
        high = min(len(cut.entries), joints[-1] + 2 + _AROUND)
        entries, part = [], low
        for joint in joints:
            entries += cut.entries[part:joint]
            part = joint + 1
        entries += cut.entries[part:high]
        pieces, offsets, part = [], [], 2 * low
        for joint in joints:  # the hyphen is the gap
            pieces += [*cut.pieces[part : 2 * joint], cut.pieces[2 * joint + 1]]
            offsets += [*cut.offsets[part : 2 * joint], cut.offsets[2 * joint + 1]]
            part = 2 * joint + 3
        pieces += cut.pieces[part : 2 * high + 1]
        offsets += cut.offsets[part : 2 * high + 1]
        window = self._window(
            Cut(cut.text, pieces, offsets, entries, cut.memory, cut.memory.spaced_spans, "", offsets)
        )
        mentions: list[Mention] = []
        for index in openings:
            self._add_spans(window, index, mentions)
        if not mentions:
            return mentions
        at = [cut.offsets[2 * joint] for joint in joints]
        return [
            mention
            for mention in mentions
            if (after := bisect_right(at, mention.start)) < len(at) and at[after] < mention.end
        ]

    def _is_surface(self, cut: Cut, first: int, end: int) -> bool:
        """Say whether the tokens from *first* on, up to code point *end*, are a mention as they stand."""
        mentions: list[Mention] = []
        if self._opens(cut.entries[first]):
            self._add_spans(cut, first, mentions)
        return any(mention.end == end for mention in mentions)

    def _opens(self, entry: Entry) -> bool:
        return entry.starts is not None

    def _is_abbreviation(self, cut: Cut, index: int, entry: Entry) -> bool:
        """Say whether a part of a compound is in lower case, and what the KB knows of it has capitals."""
        if self.config.all_surfaces or entry.candidates is None:
            return False
        word = cut.pieces[2 * index + 1]
        short = cut.memory.cased or len(word) <= _SHORT
        return short and word.islower() and self._in_capitals_only(entry)

    def _in_capitals_only(self, entry: Entry) -> bool:
        rows = [row for form in entry.forms if (row := self.kb.store.alias_row(form.text)) is not None]
        with self.kb.store.reading():
            return all(map(in_capitals_only, rows))

    def _window(self, cut: Cut) -> Cut:
        return cut

    @abstractmethod
    def forms(self, token: str) -> tuple[SurfaceForm, ...]:
        """Return what a token may stand for in a surface, itself (folded) first."""

    @abstractmethod
    def _cut(self, text: str, cased: bool | None = None) -> Cut: ...

    @abstractmethod
    def _all_mentions(self, cut: Cut) -> list[Mention]: ...

    @abstractmethod
    def _add_spans(self, cut: Cut, index: int, mentions: list[Mention]) -> None: ...

    @abstractmethod
    def _add(self, text: str, start: int, end: int, meaning: Meaning, mentions: list[Mention]) -> None: ...


def _joints(cut: Cut, hyphens: list[int]) -> Iterator[list[int]]:
    """Yield, for each word that is joined by hyphens, the indices of its hyphens among the tokens."""
    joints: list[int] = []
    for hyphen in hyphens:
        index = (bisect_left(cut.offsets, hyphen) + 1) // 2
        if cut.entries[index].texts[0] not in HYPHENS:
            continue  # it has a mark of its own
        if joints and index != joints[-1] + 2:
            yield joints
            joints = []
        joints.append(index)
    if joints:
        yield joints


def _span(mention: Mention) -> tuple[int, int]:
    return mention.start, mention.end
