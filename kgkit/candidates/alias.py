"""Candidates for any KB: its surfaces, as they stand."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal, NamedTuple

from kgkit.candidates.matching import ANY, UNSEEN, Entry, Generator, GeneratorConfig, Reading, longest
from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
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

    def mentions(self, text: str) -> list[Mention]:
        only = self.config.matches == "longest"
        if self._surfaces is None:
            return self._leftmost(text) if only else super().mentions(text)
        found = self._by_tries(text)
        return longest(found) if only else found

    def entry(self, token: str) -> Entry:
        forms = self.forms(token)
        folded, surfaces = forms[0].text, self._surfaces
        candidates, starts = self.look_up([*forms], token), self.kb.store.starts(folded)
        if surfaces is None:
            return Entry(candidates, starts, (folded,), forms)
        return Entry(candidates, starts, (folded,), forms, *surfaces.matchers(folded))

    def forms(self, token: str) -> tuple[Reading, ...]:
        return (Reading(fold(token), ANY),)

    def look_up(self, variants: list[Reading], spelled: str) -> Candidates | None:
        return self._short(self.kb.candidates(spelled, prefer_case=self.config.prefer_case))

    def of_mention(self, given: Mention) -> Candidates:
        found = self.kb.candidates(given.text, pos=given.pos or None, prefer_case=self.config.prefer_case)
        return self._short(found) or NO_CANDIDATES

    def _leftmost(self, text: str) -> list[Mention]:
        """Return the leftmost-longest of the mentions in *text*: nothing is sought within one."""
        found: list[Mention] = []
        pieces = self._cutter.cut(text)
        offsets = [*accumulate(map(len, pieces))]
        entries = [*map(self._entries.__getitem__, pieces[1::2])]
        place, last = 0, len(entries) - 1
        while place <= last:
            entry = entries[place]
            if entry.starts is not None and place < last and entries[place + 1].texts[0] in entry.starts:
                longer: list[Mention] = []
                self._longer(text, pieces, offsets, entries, place, longer)
                if longer:
                    found.append(longer[-1])
                    place = bisect_left(offsets, longer[-1].end) // 2 + 1
                    continue
            if entry.candidates is not None:
                start, end = offsets[2 * place], offsets[2 * place + 1]
                found.append(Mention(start, end, text[start:end], entry.candidates))
            place += 1
        return found

    def _by_tries(self, text: str) -> list[Mention]:
        """Return the mentions in *text*, as `Generator.mentions` does, with tries.

        Where only the longest are asked for, nothing is sought within a mention.
        """
        found: list[Mention] = []
        every, covered = self.config.matches == "all", 0
        cut = self._cut(text)
        words, offsets, folded, bounds = cut.pieces[1::2], cut.offsets, cut.folded, cut.bounds
        for place, entry in enumerate(cut.entries):
            start = offsets[2 * place]
            if start < covered:
                continue
            if entry.candidates is not None:
                found.append(Mention(start, offsets[2 * place + 1], words[place], entry.candidates))
            if entry.tight is not None:
                begin, end = bounds[2 * place], bounds[2 * place + 1]
                matcher = entry.spaced if folded[end : end + 1] == " " else entry.tight
                if matcher is not None:
                    surfaces = matcher(folded[begin : begin + MAX_KEY])
                    if surfaces and len(surfaces[-1]) > end - begin:
                        self._matched(cut, place, surfaces, found)
            if entry.starts is not None:
                self._started(cut, place, found)
            if not every and found:
                covered = found[-1].end
        return found

    def _cut(self, text: str) -> "_Cut":
        pieces = self._cutter.cut(text)
        offsets = [*accumulate(map(len, pieces))]
        entries = [*map(self._entries.__getitem__, pieces[1::2])]
        gaps = pieces[2:-1:2]
        plain = _PLAIN.issuperset(gaps)
        if plain and text.isascii():
            return _Cut(text, pieces, offsets, entries, text.lower(), offsets)
        parts = pieces.copy()
        parts[1::2] = [entry.texts[0] for entry in entries]
        if not plain:
            parts[2:-1:2] = ["\n" if gap.count("\n") > 1 else " " if gap else "" for gap in gaps]
        folded = "".join(parts).encode("utf-8", "replace").decode()  # a lone surrogate is in no surface
        return _Cut(text, pieces, offsets, entries, folded, [*accumulate(map(len, parts))])

    def _matched(self, cut: "_Cut", place: int, surfaces: list[str], found: list[Mention]) -> None:
        """Add the mentions of several tokens at *place*, where *surfaces* begin; or only the longest."""
        first, bounds, only = 2 * place, cut.bounds, self.config.matches == "longest"
        if only:
            surfaces.reverse()
        for surface in surfaces:
            end = bounds[first] + len(surface)
            piece = bisect_left(bounds, end, first + 3)
            if piece >= len(bounds) or bounds[piece] != end or piece > first + 2 * MAX_TOKENS:
                continue  # it ends within a token
            start, stop = cut.offsets[first], cut.offsets[piece]
            spelled = cut.text[start:stop]
            candidates = self._spans.get(spelled, UNSEEN)
            if candidates is UNSEEN:
                candidates = self._remember(spelled, self.look_up([], spelled))
            if candidates is not None:
                found.append(Mention(start, stop, spelled, candidates))
                if only:
                    return

    def _started(self, cut: "_Cut", place: int, found: list[Mention]) -> None:
        """Add the mentions that begin at *place* of surfaces that are in `starts`, not in the tries."""
        starts, after = cut.entries[place].starts, cut.entries[place + 1 : place + 2]
        if starts is None or not after or after[0].texts[0] not in starts:
            return
        more: list[Mention] = []
        self._longer(cut.text, cut.pieces, cut.offsets, cut.entries, place, more)
        if more:
            start = cut.offsets[2 * place]
            while found and found[-1].start == start:
                more.append(found.pop())
            by_end = {mention.end: mention for mention in more}
            found.extend(by_end[end] for end in sorted(by_end))


class _Cut(NamedTuple):
    """A text and its tokens, and the same folded: white space single, a line end between paragraphs.

    Attributes:
        text: as given.
        pieces: white space and tokens in turn.
        offsets: where each of them ends.
        entries: of the tokens.
        folded: the text.
        bounds: where each piece ends in `folded`.
    """

    text: str
    pieces: list[str]
    offsets: list[int]
    entries: list[Entry]
    folded: str
    bounds: list[int]
