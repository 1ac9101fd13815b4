"""Candidates for any KB: its surfaces, as they stand."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, count
from typing import Final, Literal

from msgspec import structs

from kgkit.candidates.compounds import Compound, CompoundMentions
from kgkit.candidates.config import GeneratorConfig
from kgkit.candidates.entries import (
    ANY,
    UNSEEN,
    Entry,
    SurfaceForm,
    Varying,
    case_is_hidden,
    drop_before,
    have_equal_rows,
    join_starts,
    longest,
)
from kgkit.candidates.hyphens import joining_hyphens
from kgkit.candidates.inflection import AFTER_PLURALS, as_plural, base_forms, base_names
from kgkit.candidates.matching import Generator, base_row, surface_candidates
from kgkit.candidates.memory import Cut
from kgkit.candidates.spelling import (
    function_words,
    in_capitals_only,
    initials_agree,
    is_function_word,
    is_function_word_as_name,
    may_be_initials,
    plausible,
)
from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
from kgkit.store import codec
from kgkit.store.layout import MAX_KEY, MAX_TOKENS
from kgkit.text import accentless_writings
from kgkit.types import NO_CANDIDATES, Candidates, Mention

_FEW: Final = 5  # words of a surface whose last one is inflected otherwise than by an ending
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
        """Whether mentions may overlap: where the configuration has `matches="all"`."""
        return self.config.matches == "all"

    def mentions_from(self, text: str, begin: int, *, cased: bool | None = None) -> list[Mention]:
        """Return the mentions that start at *begin* or behind it, the longest ones unless `overlapping`."""
        cut, hyphens = self._cut(text, cased), joining_hyphens(text, self._hyphens)
        if not hyphens:
            mentions = self._mentions_without_compounds(cut, begin)
        elif self.overlapping or self._surfaces is not None:
            mentions = drop_before(self._add_compounds(cut, hyphens, self._all_mentions(cut)), begin)
            mentions = mentions if self.overlapping else longest(mentions)
        else:
            mentions = self._mentions_with_compounds(cut, begin, self._compounds(cut, hyphens))
        if cut.memory.cased:
            self.omissions.note_uncovered(text, cut.pieces, cut.offsets, begin, mentions)
        return self._with_stops(cut, self._with_doubts(text, mentions, cut.memory))

    def _all_mentions(self, cut: Cut) -> list[Mention]:
        return (
            super()._all_mentions(cut) if self._surfaces is None else self._trie_mentions(cut, 0, every=True)
        )

    def _mentions_without_compounds(self, cut: Cut, begin: int) -> list[Mention]:
        """Return the mentions in a text that no hyphen joins words of."""
        if self._surfaces is not None:
            mentions = self._trie_mentions(cut, begin, every=self.overlapping)
            return mentions if self.overlapping else longest(mentions)
        if self.overlapping:
            return drop_before(self._all_mentions(cut), begin)
        leftmost: list[Mention] = []
        self._add_leftmost(cut, _index_from(cut, begin), len(cut.entries), leftmost)
        return leftmost

    def entry(self, token: str, cased: bool = True) -> Entry:
        """Return the entry of a token with its forms, and matchers where the KB has tries."""
        store, surfaces = self.kb.store, self._surfaces
        folded = self._fold(token)
        bases = base_forms(token, self._language)
        forms = self._forms(folded, bases)
        texts: tuple[str, ...] = (forms[0].text,)
        starts = store.starts(texts[0])
        if bases:
            texts = tuple([form.text for form in forms])
            for more in map(as_plural, map(store.starts, texts[1:])):
                if more:
                    starts = more if starts is None else join_starts(starts, more)
        if not token.isascii():
            accentless = accentless_writings(texts[0])
            for more in filter(None, map(store.starts, accentless)):
                starts = more if starts is None else join_starts(starts, more)
            texts += tuple(accentless)
        spaced, tight = (None, None) if surfaces is None else surfaces.matchers(texts[0])
        row = self._row_of(token, folded, cased)
        if row is None:
            entry = Entry(None, starts, texts, forms, spaced, tight)
            return self._inflected_entry(token, bases, cased, entry) if bases else entry
        if is_function_word(token, folded, self._words, cased):
            named = cased and is_function_word_as_name(token, row)
            candidates = self._row_candidates(row, token, cased) if named else None
            return Entry(candidates, starts, texts, forms, spaced, tight, named, None)
        candidates = self._row_candidates(row, token, cased)
        if candidates is None or not cased or token.islower():
            return Entry(candidates, starts, texts, forms, spaced, tight)
        if token.isupper() and is_function_word(token, folded, self._words, False):
            return Entry(candidates, starts, texts, forms, spaced, tight, True, None)
        if self.config.prefer_case and codec.prefers(row, token):
            hidden = self._shorten(codec.decode_alias(row), token)
            if not have_equal_rows(candidates, hidden):
                return Entry(candidates, starts, texts, forms, spaced, tight, True, hidden)
        return Entry(candidates, starts, texts, forms, spaced, tight)

    def _inflected_entry(self, token: str, bases: list[str], cased: bool, entry: Entry) -> Entry:
        """Return the entry of a token that is no surface: *entry*, with what it means as a form of one."""
        if is_function_word(token, entry.texts[0], self._words, cased) or bases[0].isdecimal():
            return entry
        found = base_row(self.kb, token, bases, cased=cased)
        if found is None:
            return entry
        name, row = found
        candidates = self._row_candidates(row, name, cased)
        if candidates is None or token.islower():
            return structs.replace(entry, candidates=candidates)
        meaning = self._meaning_by_case(candidates, [*entry.forms], token, cased=cased)
        if type(meaning) is Varying:
            return structs.replace(entry, candidates=candidates, varies=True, hidden=meaning.hidden)
        return structs.replace(entry, candidates=candidates)

    def forms(self, token: str) -> tuple[SurfaceForm, ...]:
        """Return the token, folded, and what it may be a plural or genitive of."""
        return self._forms(self._fold(token), base_forms(token, self._language))

    def _forms(self, folded: str, bases: list[str]) -> tuple[SurfaceForm, ...]:
        form = SurfaceForm(self.kb.store.folding.part(folded) if "." in folded else folded, ANY)
        return (form, *[SurfaceForm(self._fold(base), ANY) for base in bases]) if bases else (form,)

    def look_up(self, variants: list[SurfaceForm], spelled: str, *, cased: bool) -> Candidates | None:
        """Return the candidates of a span as *spelled*, or of what it is a form of; None if no surface is."""
        initials = self.config.all_surfaces or may_be_initials(spelled, cased=cased)
        row = self.kb.store.alias_row(self._fold(spelled), initials=initials)
        if row is None and len(variants) != 1:
            names = base_names(spelled, self._language)
            if (found := base_row(self.kb, spelled, names, cased=cased)) is not None:
                spelled, row = found
        return None if row is None else self._row_candidates(row, spelled, cased)

    def _row_candidates(self, row: bytes, spelled: str, cased: bool) -> Candidates | None:
        """Return the candidates in a row of `aliases`, unless its spellings say that the text means none."""
        if not cased or not codec.has_spellings(row):
            return self._shorten(codec.decode_alias(row), spelled)
        every = self.config.all_surfaces or plausible(spelled, row, self._words)
        if every and "." in spelled and not initials_agree(spelled, row):
            return None
        if not every and not self._is_word_with_article(spelled):
            self.omissions.expect(spelled, self._cutter.cut(spelled)[0][1])
            return None
        return self._shorten(codec.decode_alias(row, spelled if self.config.prefer_case else None), spelled)

    def _is_word_with_article(self, spelled: str) -> bool:
        """Say whether a span is a function word and a surface that the KB writes in lower case."""
        first, _, remainder = spelled.partition(" ")
        if not remainder or first.lower() not in self._words:
            return False
        row = self.kb.store.alias_row(self._fold(remainder))
        return row is not None and not in_capitals_only(row)

    def candidates_of(self, mention: Mention) -> Candidates:
        """Return the candidates of the mention's text, or of one of its `other_spellings`."""
        candidates = surface_candidates(self.kb, mention, prefer_case=self.config.prefer_case)
        return self._shorten(candidates) or NO_CANDIDATES

    def _mentions_with_compounds(self, cut: Cut, begin: int, compounds: CompoundMentions) -> list[Mention]:
        """Return the leftmost-longest of the mentions in a text and those of its compounds."""
        mentions: list[Mention] = []
        offsets, index = cut.offsets, _index_from(cut, begin)
        by_start: dict[int, Mention | None] = {start: None for start, _ in compounds.abbreviations}
        for mention in compounds.more:
            previous = by_start.get(mention.start)
            if previous is None or mention.end > previous.end:
                by_start[mention.start] = mention
        abbreviations = {start for start, _ in compounds.abbreviations}
        for start in sorted(by_start):
            stop = _index_from(cut, start)
            if stop >= index:
                index = self._add_leftmost(cut, index, stop, mentions)
            if stop != index:
                continue  # within a mention
            own_mentions: list[Mention] = []
            index = self._add_leftmost(cut, stop, stop + 1, own_mentions)
            own, other = own_mentions[0] if own_mentions else None, by_start[start]
            if own is not None and own.end == offsets[2 * stop + 1] and start in abbreviations:
                own = None
            if other is not None and (own is None or other.end > own.end):
                own, index = other, _index_from(cut, other.end)
            if own is not None:
                mentions.append(own)
        self._add_leftmost(cut, index, len(cut.entries), mentions)
        return mentions

    def _add_leftmost(self, cut: Cut, index: int, stop: int, mentions: list[Mention]) -> int:
        """Add the leftmost-longest of the mentions that begin at the tokens from *index* to *stop*.

        Nothing is sought within one.

        Returns:
            The place of the first token behind *stop* and the mentions.
        """
        pieces, offsets, entries = cut.pieces, cut.offsets, cut.entries
        add, size, covered, first, last = mentions.append, len(entries), 0, 2 * index, 2 * stop
        bounds = iter(offsets[first:last])
        for after, entry, start, end, word in zip(
            count(index + 1), entries[index:stop], bounds, bounds, pieces[first + 1 : last : 2], strict=False
        ):
            if start < covered:
                continue
            starts = entry.starts
            if starts is not None and after < size:
                for text in entries[after].texts:
                    if text in starts:
                        longer: list[Mention] = []
                        self._add_by_starts(cut, after - 1, longer)
                        if longer:
                            add(longer[-1])
                            covered = longer[-1].end
                        break
                if start < covered:
                    continue
            candidates = entry.candidates
            if candidates is not None:
                if entry.varies and case_is_hidden(cut.text, pieces, offsets, after - 1):
                    candidates = entry.hidden
                    if candidates is None:
                        continue
                add(Mention(start, end, word, candidates))
        return max(stop, _index_from(cut, covered)) if covered else stop

    def _trie_mentions(self, cut: Cut, begin: int, *, every: bool) -> list[Mention]:
        """Return the mentions in a text that start at *begin* or behind it, with tries: see `_all_mentions`.

        Where only the longest are asked for, nothing is sought within a mention.
        """
        mentions: list[Mention] = []
        text, offsets, covered = cut.text, cut.offsets, begin
        for index, entry in enumerate(cut.entries):
            start = offsets[2 * index]
            if start < covered:
                continue
            candidates = entry.candidates
            if candidates is not None:
                if entry.varies and case_is_hidden(text, cut.pieces, offsets, index):
                    candidates = entry.hidden
                if candidates is not None:
                    end = offsets[2 * index + 1]
                    mentions.append(Mention(start, end, text[start:end], candidates))
            if entry.tight is not None or entry.starts is not None or len(entry.forms) > 1:
                self._add_by_tries(cut, index, mentions, every=every)
            if not every and mentions:
                covered = mentions[-1].end
        return mentions

    def _openings(
        self, cut: Cut, low: int, first: int, joints: int, compound: Compound | None
    ) -> Sequence[int]:
        if self._surfaces is None:
            return super()._openings(cut, low, first, joints, compound)
        return range(first - low + joints)

    def _opens(self, entry: Entry) -> bool:
        return self._surfaces is not None or super()._opens(entry)

    def _add_spans(self, cut: Cut, index: int, mentions: list[Mention]) -> None:
        if self._surfaces is None:
            super()._add_spans(cut, index, mentions)
        else:
            self._add_by_tries(cut, index, mentions, every=True)

    def _add_by_tries(self, cut: Cut, index: int, mentions: list[Mention], *, every: bool) -> None:
        """Add the mentions of several tokens at *index*; or only the longest, but for those in `starts`."""
        entry, folded, bounds = cut.entries[index], cut.folded, cut.bounds
        if entry.tight is not None:
            begin, end = bounds[2 * index], bounds[2 * index + 1]
            matcher = entry.spaced if folded[end : end + 1] == " " else entry.tight
            if matcher is not None:
                surfaces = matcher(folded[begin : begin + MAX_KEY])
                if surfaces and len(surfaces[-1]) > end - begin:
                    self._add_trie_matches(cut, index, surfaces, mentions, every=every)
        more = self._mentions_beyond_tries(cut, index) if entry.starts is not None else []
        for end in self._ends_of_inflected(cut, index):
            self._add_trie_match(cut, index, end, more)
        if more:
            start = cut.offsets[2 * index]
            while mentions and mentions[-1].start == start:
                more.append(mentions.pop())
            by_end = {mention.end: mention for mention in more}
            mentions.extend(by_end[end] for end in sorted(by_end))

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
        folding = self.kb.store.folding
        if (
            plain and (lowered := folding.lowered(text)) is not None
        ):  # the whole text: in a window is a hyphen
            return structs.replace(cut, folded=lowered)
        parts = pieces.copy()
        parts[1::2] = [entry.texts[0] for entry in entries]
        if not plain:
            parts[2:-1:2] = ["\n" if gap.count("\n") > 1 else folding.joint(gap) for gap in gaps]
        folded = "".join(parts).encode("utf-8", "replace").decode()  # a lone surrogate is in no surface
        return structs.replace(cut, folded=folded, bounds=[*accumulate(map(len, parts))])

    def _add_trie_matches(
        self, cut: Cut, index: int, surfaces: list[str], mentions: list[Mention], *, every: bool
    ) -> None:
        """Add the mentions of several tokens at *index*, where *surfaces* begin; or only the longest."""
        first, bounds = 2 * index, cut.bounds
        if not every:
            surfaces.reverse()
        for surface in surfaces:
            end = bounds[first] + len(surface)
            piece = bisect_left(bounds, end, first + 3)
            if piece >= len(bounds) or piece > first + 2 * MAX_TOKENS:
                continue
            if bounds[piece] != end:  # it ends within a token, which may be a form of its last word
                last = surface[bounds[piece - 1] - bounds[first] :] if piece % 2 else ""
                if last not in cut.entries[piece // 2].texts[1:]:
                    continue
            if self._add_trie_match(cut, index, piece, mentions) and not every:
                return

    def _add_trie_match(self, cut: Cut, index: int, piece: int, mentions: list[Mention]) -> bool:
        """Add the mention of the tokens from *index* to the end of *piece*; say whether there is one."""
        start, stop = cut.offsets[2 * index], cut.offsets[piece]
        spelled, before = cut.text[start:stop], len(mentions)
        meaning = cut.spans.get(spelled, UNSEEN)
        if meaning is UNSEEN:
            meaning = self._meaning(cut, [], spelled)
        if meaning is not None:
            self._add(cut.text, start, stop, meaning, mentions)
        return len(mentions) > before

    def _ends_of_inflected(self, cut: Cut, index: int) -> list[int]:
        """Return the last pieces of the spans at *index* whose first or last word is a form of a surface's.

        Tries tell of forms that add an ending by themselves: *Scots pines*, but not *water lilies*.
        """
        surfaces, entries, folded, bounds = self._surfaces, cut.entries, cut.folded, cut.bounds
        first, ends = 2 * index, []
        assert surfaces is not None
        for last in (
            range(index + 1, min(index + _FEW, len(entries))) if entries[index].tight is not None else ()
        ):
            for form in entries[last].forms[1:]:
                before = folded[bounds[first] : bounds[2 * last]]
                if not entries[last].texts[0].startswith(form.text) and f"{before}{form.text}" in surfaces:
                    ends.append(2 * last + 1)
        if index + 1 < len(entries) and entries[index + 1].texts[0] in AFTER_PLURALS:
            following = folded[bounds[first + 1] : bounds[first + 1] + MAX_KEY]
            for form in entries[index].forms[1:]:
                matcher = surfaces.matchers(form.text)[0 if following.startswith(" ") else 1]
                for surface in matcher(form.text + following) if matcher is not None else ():
                    end = bounds[first + 1] + len(surface) - len(form.text)
                    piece = bisect_left(bounds, end, first + 3)
                    if piece < min(len(bounds), first + 2 * MAX_TOKENS) and bounds[piece] == end:
                        ends.append(piece)
        return ends

    def _mentions_beyond_tries(self, cut: Cut, index: int) -> list[Mention]:
        """Return the mentions that begin at *index* of surfaces that are in `starts`, not in the tries."""
        starts, after = cut.entries[index].starts, cut.entries[index + 1 : index + 2]
        more: list[Mention] = []
        if starts is not None and after and not starts.keys().isdisjoint(after[0].texts):
            self._add_by_starts(cut, index, more)
        return more


def _index_from(cut: Cut, start: int) -> int:
    """Return the place of the first token that begins at code point *start* or behind it."""
    return (bisect_left(cut.offsets, start) + 1) // 2
