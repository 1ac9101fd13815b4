"""Candidates for any KB: its surfaces, as they stand."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, count
from typing import Final, Literal

from msgspec import structs

from kgkit.candidates.compounds import Compound, CompoundMentions
from kgkit.candidates.entries import (
    ANY,
    UNSEEN,
    Cut,
    Entry,
    Reading,
    alike,
    case_is_hidden,
    longest,
    starting_from,
)
from kgkit.candidates.hyphens import joining_hyphens
from kgkit.candidates.matching import Generator, GeneratorConfig, surface_candidates
from kgkit.candidates.spelling import (
    function_words,
    in_capitals_only,
    is_function_word,
    is_function_word_as_name,
    plausible,
)
from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
from kgkit.store import codec
from kgkit.store.layout import MAX_KEY, MAX_TOKENS
from kgkit.text import fold
from kgkit.types import NO_CANDIDATES, Candidates, Mention

_PLAIN: Final = frozenset(["", " "])


@dataclass(frozen=True, kw_only=True)
class AliasConfig(GeneratorConfig):
    """Settings of `AliasGenerator`."""

    matches: Literal["longest", "all"] = "longest"  # leftmost-longest, or every surface that occurs
    prefer_case: bool = True  # meanings seen in the very spelling of the text first

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.matches not in ("longest", "all"):
            raise UsageError(f"matches is {self.matches!r}; it is one of 'longest', 'all'")


class AliasGenerator(Generator):
    """Finds the surfaces of a KB in a text, in any script.

    Words are matched whole; Chinese and Japanese text is matched character by
    character, so no segmenter is needed.

    Of a KB that has more than a million aliases the tries tell what begins
    where. They know surfaces as they are folded, the table `starts` by their
    tokens; so the few characters that fall into several tokens when they are
    folded (U+0345, composed musical symbols) are found in more spellings here,
    and marks beyond the BMP that would compose across tokens in fewer.
    """

    config: AliasConfig

    def __init__(self, kb: KnowledgeBase, config: AliasConfig | None = None) -> None:
        super().__init__(kb, config or AliasConfig())
        self._surfaces = kb.store.surfaces
        self._words = frozenset() if self.config.all_surfaces else function_words(kb.manifest.language)

    @property
    def overlapping(self) -> bool:
        return self.config.matches == "all"

    def mentions_from(self, text: str, begin: int, *, cased: bool | None = None) -> list[Mention]:
        cut, hyphens = self._cut(text, cased), joining_hyphens(text)
        if not hyphens:
            found = self._without_compounds(cut, begin)
        elif self.overlapping or self._surfaces is not None:
            found = starting_from(self._with_compounds(cut, hyphens, self._every(cut)), begin)
            found = found if self.overlapping else longest(found)
        else:
            found = self._leftmost_with_compounds(cut, begin, self._compounds(cut, hyphens))
        if cut.memory.cased:
            self.left_out.note_uncovered(text, cut.pieces, cut.offsets, begin, found)
        return found

    def _every(self, cut: Cut) -> list[Mention]:
        return super()._every(cut) if self._surfaces is None else self._by_tries(cut, 0, every=True)

    def _without_compounds(self, cut: Cut, begin: int) -> list[Mention]:
        """Return the mentions in a text that no hyphen joins words of."""
        if self._surfaces is not None:
            found = self._by_tries(cut, begin, every=self.overlapping)
            return found if self.overlapping else longest(found)
        if self.overlapping:
            return starting_from(self._every(cut), begin)
        leftmost: list[Mention] = []
        self._leftmost(cut, _place_from(cut, begin), len(cut.entries), leftmost)
        return leftmost

    def entry(self, token: str, cased: bool = True) -> Entry:
        folded = fold(token)
        forms, texts = (Reading(folded, ANY),), (folded,)
        store, surfaces = self.kb.store, self._surfaces
        starts = store.starts(folded)
        spaced, tight = (None, None) if surfaces is None else surfaces.matchers(folded)
        row = store.alias_row(folded)
        if row is None:
            return Entry(None, starts, texts, forms, spaced, tight)
        if is_function_word(token, folded, self._words, cased):
            named = cased and is_function_word_as_name(token, row)
            candidates = self._meant(row, token, cased) if named else None
            return Entry(candidates, starts, texts, forms, spaced, tight, named, None)
        candidates = self._meant(row, token, cased)
        if candidates is None or not cased or token.islower():
            return Entry(candidates, starts, texts, forms, spaced, tight)
        if token.isupper() and is_function_word(token, folded, self._words, False):
            return Entry(candidates, starts, texts, forms, spaced, tight, True, None)
        if self.config.prefer_case and codec.prefers(row, token):
            hidden = self._short(codec.decode_alias(row), token)
            if not alike(candidates, hidden):
                return Entry(candidates, starts, texts, forms, spaced, tight, True, hidden)
        return Entry(candidates, starts, texts, forms, spaced, tight)

    def forms(self, token: str) -> tuple[Reading, ...]:
        return (Reading(fold(token), ANY),)

    def look_up(self, variants: list[Reading], spelled: str, *, cased: bool) -> Candidates | None:
        row = self.kb.store.alias_row(fold(spelled))
        return None if row is None else self._meant(row, spelled, cased)

    def _meant(self, row: bytes, spelled: str, cased: bool) -> Candidates | None:
        """Return the candidates in a row of `aliases`, unless its spellings say that the text means none."""
        if not cased or not codec.has_spellings(row):
            return self._short(codec.decode_alias(row), spelled)
        every = self.config.all_surfaces or self._is_plausible(spelled, row)
        if not every and not self._is_known_without_article(spelled):
            self.left_out.expect(spelled, self._cutter.cut(spelled)[1])
            return None
        return self._short(codec.decode_alias(row, spelled if self.config.prefer_case else None), spelled)

    def _is_plausible(self, spelled: str, row: bytes) -> bool:
        return plausible(spelled, row, self._words, self.kb.manifest.smoothing)

    def _in_capitals_only(self, entry: Entry) -> bool:
        row = self.kb.store.alias_row(entry.texts[0])
        return row is None or (in_capitals_only(row) and codec.is_counted(row, self.kb.manifest.smoothing))

    def _is_known_without_article(self, spelled: str) -> bool:
        """Say whether a span is a function word and a surface that the KB writes in lower case."""
        first, _, rest = spelled.partition(" ")
        if not rest or first.lower() not in self._words:
            return False
        row = self.kb.store.alias_row(fold(rest))
        return row is not None and not in_capitals_only(row)

    def of_mention(self, given: Mention) -> Candidates:
        found = surface_candidates(self.kb, given, prefer_case=self.config.prefer_case)
        return self._short(found) or NO_CANDIDATES

    def _leftmost_with_compounds(self, cut: Cut, begin: int, compounds: CompoundMentions) -> list[Mention]:
        """Return the leftmost-longest of the mentions in a text and those of its compounds."""
        found: list[Mention] = []
        offsets, place = cut.offsets, _place_from(cut, begin)
        others: dict[int, Mention | None] = {start: None for start, _ in compounds.abbreviations}
        for mention in compounds.more:
            known = others.get(mention.start)
            if known is None or mention.end > known.end:
                others[mention.start] = mention
        abbreviations = {start for start, _ in compounds.abbreviations}
        for start in sorted(others):
            stop = _place_from(cut, start)
            if stop >= place:
                place = self._leftmost(cut, place, stop, found)
            if stop != place:
                continue  # within a mention
            there: list[Mention] = []
            place = self._leftmost(cut, stop, stop + 1, there)
            own, other = there[0] if there else None, others[start]
            if own is not None and own.end == offsets[2 * stop + 1] and start in abbreviations:
                own = None
            if other is not None and (own is None or other.end > own.end):
                own, place = other, _place_from(cut, other.end)
            if own is not None:
                found.append(own)
        self._leftmost(cut, place, len(cut.entries), found)
        return found

    def _leftmost(self, cut: Cut, place: int, stop: int, found: list[Mention]) -> int:
        """Add the leftmost-longest of the mentions that begin at the tokens from *place* to *stop*.

        Nothing is sought within one.

        Returns:
            The place of the first token behind *stop* and the mentions.
        """
        pieces, offsets, entries = cut.pieces, cut.offsets, cut.entries
        add, size, covered, first, last = found.append, len(entries), 0, 2 * place, 2 * stop
        for after, entry, start, end, word in zip(
            count(place + 1),
            entries[place:stop],
            offsets[first:last:2],
            offsets[first + 1 : last : 2],
            pieces[first + 1 : last : 2],
            strict=False,
        ):
            if start < covered:
                continue
            starts = entry.starts
            if starts is not None and after < size and entries[after].texts[0] in starts:
                longer: list[Mention] = []
                self._longer(cut, after - 1, longer)
                if longer:
                    add(longer[-1])
                    covered = longer[-1].end
                    continue
            candidates = entry.candidates
            if candidates is not None:
                if entry.varies and case_is_hidden(cut.text, pieces, offsets, after - 1):
                    candidates = entry.hidden
                    if candidates is None:
                        continue
                add(Mention(start, end, word, candidates))
        return max(stop, _place_from(cut, covered)) if covered else stop

    def _by_tries(self, cut: Cut, begin: int, *, every: bool) -> list[Mention]:
        """Return the mentions in a text that start at *begin* or behind it, as `_every` does, with tries.

        Where only the longest are asked for, nothing is sought within a mention.
        """
        found: list[Mention] = []
        text, offsets, covered = cut.text, cut.offsets, begin
        for place, entry in enumerate(cut.entries):
            start = offsets[2 * place]
            if start < covered:
                continue
            candidates = entry.candidates
            if candidates is not None:
                if entry.varies and case_is_hidden(text, cut.pieces, offsets, place):
                    candidates = entry.hidden
                if candidates is not None:
                    end = offsets[2 * place + 1]
                    found.append(Mention(start, end, text[start:end], candidates))
            if entry.tight is not None or entry.starts is not None:
                self._sought(cut, place, found, every=every)
            if not every and found:
                covered = found[-1].end
        return found

    def _openings(
        self, cut: Cut, low: int, first: int, joints: int, compound: Compound | None
    ) -> Sequence[int]:
        if self._surfaces is None:
            return super()._openings(cut, low, first, joints, compound)
        return range(first - low + joints)

    def _opens(self, entry: Entry) -> bool:
        return self._surfaces is not None or super()._opens(entry)

    def _several(self, cut: Cut, place: int, found: list[Mention]) -> None:
        if self._surfaces is None:
            super()._several(cut, place, found)
        else:
            self._sought(cut, place, found, every=True)

    def _sought(self, cut: Cut, place: int, found: list[Mention], *, every: bool) -> None:
        """Add the mentions of several tokens at *place*; or only the longest, but for those in `starts`."""
        entry, folded, bounds = cut.entries[place], cut.folded, cut.bounds
        if entry.tight is not None:
            begin, end = bounds[2 * place], bounds[2 * place + 1]
            matcher = entry.spaced if folded[end : end + 1] == " " else entry.tight
            if matcher is not None:
                surfaces = matcher(folded[begin : begin + MAX_KEY])
                if surfaces and len(surfaces[-1]) > end - begin:
                    self._matched(cut, place, surfaces, found, every=every)
        if entry.starts is not None:
            self._started(cut, place, found)

    def _cut(self, text: str, cased: bool | None = None) -> Cut:
        cut = super()._cut(text, cased)
        return cut if self._surfaces is None else self._window(cut)

    def _window(self, cut: Cut) -> Cut:
        """Return *cut* with its text as tries have it."""
        if self._surfaces is None:
            return cut
        text, pieces, entries = cut.text, cut.pieces, cut.entries
        gaps = pieces[2:-1:2]
        plain = _PLAIN.issuperset(gaps)
        if plain and text.isascii():  # the whole text: in a window there is a hyphen
            return structs.replace(cut, folded=text.lower())
        parts = pieces.copy()
        parts[1::2] = [entry.texts[0] for entry in entries]
        if not plain:
            parts[2:-1:2] = ["\n" if gap.count("\n") > 1 else " " if gap else "" for gap in gaps]
        folded = "".join(parts).encode("utf-8", "replace").decode()  # a lone surrogate is in no surface
        return structs.replace(cut, folded=folded, bounds=[*accumulate(map(len, parts))])

    def _matched(
        self, cut: Cut, place: int, surfaces: list[str], found: list[Mention], *, every: bool
    ) -> None:
        """Add the mentions of several tokens at *place*, where *surfaces* begin; or only the longest."""
        first, bounds = 2 * place, cut.bounds
        if not every:
            surfaces.reverse()
        for surface in surfaces:
            end = bounds[first] + len(surface)
            piece = bisect_left(bounds, end, first + 3)
            if piece >= len(bounds) or bounds[piece] != end or piece > first + 2 * MAX_TOKENS:
                continue  # it ends within a token
            start, stop = cut.offsets[first], cut.offsets[piece]
            spelled = cut.text[start:stop]
            meaning = cut.spans.get(spelled, UNSEEN)
            if meaning is UNSEEN:
                meaning = self._meaning(cut, [], spelled)
            if meaning is not None:
                before = len(found)
                self._add(cut.text, start, stop, meaning, found)
                if not every and len(found) > before:
                    return

    def _started(self, cut: Cut, place: int, found: list[Mention]) -> None:
        """Add the mentions that begin at *place* of surfaces that are in `starts`, not in the tries."""
        starts, after = cut.entries[place].starts, cut.entries[place + 1 : place + 2]
        if starts is None or not after or after[0].texts[0] not in starts:
            return
        more: list[Mention] = []
        self._longer(cut, place, more)
        if more:
            start = cut.offsets[2 * place]
            while found and found[-1].start == start:
                more.append(found.pop())
            by_end = {mention.end: mention for mention in more}
            found.extend(by_end[end] for end in sorted(by_end))


def _place_from(cut: Cut, start: int) -> int:
    """Return the place of the first token that begins at code point *start* or behind it."""
    return (bisect_left(cut.offsets, start) + 1) // 2
