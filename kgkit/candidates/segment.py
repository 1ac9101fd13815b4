"""Candidates for the words of a text that somebody else has cut: each is looked up whole.

Longest match knows the surfaces of a KB and nothing else; where two of them share characters it takes the
first. A segmentation may know better:

    我喜欢新西兰花      surfaces 新西兰, 西兰花
    我 喜欢 新西兰 花   longest match
    我 喜欢 新 西兰花   a segmentation that knows what is liked

Any segmentation will do: what a text's `Document.tokens` say, a callable that is passed in, or the package
jieba, see `jieba_segments`.
"""

import io
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from kgkit.candidates.config import GeneratorConfig
from kgkit.candidates.entries import ANY, Entry, SurfaceForm, Varying
from kgkit.candidates.matching import (
    Generator,
    is_case_informative,
    respellings,
    surface_candidates,
)
from kgkit.candidates.spelling import (
    function_words,
    is_function_word,
    is_function_word_as_name,
    may_be_initials,
    plausible,
    position_hides_case,
)
from kgkit.errors import MissingExtra, UsageError
from kgkit.kb import KnowledgeBase
from kgkit.store import codec
from kgkit.types import NO_CANDIDATES, Candidates, Document, Mention

Segments = Callable[[str], Iterable[tuple[int, int]]]
"""Cuts a text: the `(start, end)` code points of its segments, in order and apart; gaps are allowed."""


@dataclass(frozen=True, kw_only=True)
class SegmentConfig(GeneratorConfig):
    """Settings of `SegmentGenerator`."""

    prefer_case: bool = True  # meanings seen in the very spelling of the text first


class SegmentGenerator(Generator):
    """Finds the segments of a text that are surfaces of a KB.

    A segment is looked up whole, as `KnowledgeBase.candidates` does; nothing is sought within one or
    across several. White space is no mention.

    May be used from several threads, and pickled, if its segmentation may.

    Args:
        kb: knowledge base whose surfaces are sought.
        segments: callable that cuts texts; None where documents come with tokens, which then are the
            segments.
        config: settings of the search.
    """

    config: SegmentConfig

    def __init__(
        self, kb: KnowledgeBase, segments: Segments | None = None, config: SegmentConfig | None = None
    ) -> None:
        super().__init__(kb, config or SegmentConfig())
        self.segments = segments
        self._words = frozenset() if self.config.all_surfaces else function_words(kb.manifest.language)

    def __call__(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield each document with mentions and candidates.

        Mentions that are given keep their spans; those that already have
        candidates keep them too.

        Raises:
            UsageError: for segments that overlap, are out of order or outside of their text; for a
                document without tokens if nothing else cuts it.
        """
        return super().__call__(map(self._fill_from_tokens, documents))

    def mentions(self, text: str) -> list[Mention]:
        """Return the segments of *text* that have candidates, in order.

        Raises:
            UsageError: for segments that overlap, are out of order or outside of the text; if nothing cuts
                it.
        """
        if self.segments is None:
            raise UsageError(
                f"nothing cuts the text {_excerpt(text)}: pass segments=, or call the generator with "
                "documents that have tokens"
            )
        return self._mentions_in(text, self.segments(text))

    def entry(self, token: str, cased: bool = True) -> Entry:
        """Return the entry of a segment: candidates and its one form, without continuations."""
        forms = self.forms(token)
        folded = forms[0].text
        if is_function_word(token, folded, self._words, cased):
            row = self.kb.store.alias_row(folded)
            if row is None or not cased or not is_function_word_as_name(token, row):
                return Entry(None, None, (folded,), forms)
            candidates = self.look_up([*forms], token, cased=cased)
            return Entry(candidates, None, (folded,), forms, None, None, True, None)
        candidates = self.look_up([*forms], token, cased=cased)
        meaning = self._meaning_by_case(candidates, [*forms], token, cased=cased)
        if type(meaning) is Varying:
            return Entry(candidates, None, (folded,), forms, None, None, True, meaning.hidden)
        return Entry(candidates, None, (folded,), forms)

    def forms(self, token: str) -> tuple[SurfaceForm, ...]:
        """Return the one form of a segment: itself, folded."""
        return (SurfaceForm(self._fold(token), ANY),)

    def look_up(self, variants: list[SurfaceForm], spelled: str, *, cased: bool) -> Candidates | None:
        """Return the candidates of a segment or of its `respellings`; None if it is implausible."""
        initials = self.config.all_surfaces or may_be_initials(spelled, cased=cased)
        row = self.kb.store.alias_row(self._fold(spelled), initials=initials)
        for text in () if row is not None else respellings(spelled):
            spelled = text
            if (row := self.kb.store.alias_row(self._fold(text), initials=initials)) is not None:
                break
        if row is None:
            return None
        every = not cased or self.config.all_surfaces
        if not every and not plausible(spelled, row, self._words):
            self.omissions.add(spelled)
            return None
        candidates = codec.decode_alias(row, spelled if cased and self.config.prefer_case else None)
        return self._shorten(candidates, spelled)

    def candidates_of(self, mention: Mention) -> Candidates:
        """Return the candidates of the mention's text, or of one of its `other_spellings`."""
        candidates = surface_candidates(self.kb, mention, prefer_case=self.config.prefer_case)
        return self._shorten(candidates) or NO_CANDIDATES

    def _fill_from_tokens(self, document: Document) -> Document:
        """Return *document* with the mentions among its tokens, where they are its segments."""
        if self.segments is not None or document.mentions is not None:
            return document
        if document.tokens is None:
            raise UsageError(
                f"document {document.id!r} has no tokens, and nothing else cuts its text "
                f"{_excerpt(document.text)}: give it tokens, or pass segments="
            )
        return structs.replace(document, mentions=self._mentions_in(document.text, document.tokens))

    def _mentions_in(self, text: str, segments: Iterable[tuple[int, int]]) -> list[Mention]:
        mentions: list[Mention] = []
        memory = self._cased if is_case_informative(text) else self._uncased
        entries, before = memory.entries, 0
        for start, end in segments:
            if not before <= start <= end <= len(text):
                raise UsageError(
                    f"segment ({start}, {end}) of the text {_excerpt(text)}, {len(text)} characters: "
                    f"segments are in order, apart and within the text, and the one before ends at {before}"
                )
            before = end
            spelled = text[start:end]
            if spelled and not spelled.isspace():
                entry = entries[spelled]
                candidates = entry.candidates
                if entry.varies and position_hides_case(text, start, end):
                    candidates = entry.hidden
                if candidates is not None:
                    mentions.append(Mention(start, end, spelled, candidates))
        return self._with_doubts(text, mentions, memory)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kb, self.segments, self.config)


def jieba_segments(surfaces: Iterable[str]) -> Segments:
    """Return what cuts Chinese with jieba, and keeps the words of a KB whole.

    jieba takes the words that are most probable together, by how often each was counted. A surface costs
    nothing here: as few characters as can be are left to other words, whose counts then decide, and two ways
    to cut that are equally probable are decided by the longer first word. Case does not matter.

    What jieba cuts at in any case it cuts in surfaces too: white space, and all signs but letters, digits,
    the Chinese characters up to U+9FD5 and `+ # & . _ % -`.

    Nothing is read but jieba's own dictionary and nothing written: it works offline, on disks that cannot be
    written, and beside other uses of jieba, whose global tokenizer does not change. It may be used from
    several threads, and pickled: the dictionary is then read again.

    Args:
        surfaces: surfaces as `KnowledgeBase.surfaces` gives them; those of one character are no matter
            to a cut.

    Raises:
        MissingExtra: if jieba is not installed.

    Examples:
        >>> generator = SegmentGenerator(kb, jieba_segments(kb.surfaces()))
    """
    return _Jieba(tuple(surface for surface in surfaces if len(surface) > 1))


def jieba_words() -> list[str]:
    """Return the lines `WORD COUNT TAG` of jieba's own dictionary.

    Raises:
        MissingExtra: if jieba is not installed.
    """
    return _dictionary(_jieba_tokenizer()).decode().splitlines()


def _jieba_tokenizer() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # escapes in its strings that Python no longer likes
            from jieba import Tokenizer
    except ImportError as error:
        raise MissingExtra("jieba", "zh") from error
    return Tokenizer()


def _dictionary(tokenizer: Any) -> bytes:
    # Not `tokenizer.initialize()`: that reads a file in the folder for temporary files that anyone may
    # have put there, or writes one, and logs to stderr.
    with tokenizer.get_dict_file() as file:
        content: bytes = file.read()
    return content


class _Jieba:
    """A tokenizer of jieba's with words of its own."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self._words = words
        tokenizer = _jieba_tokenizer()
        counts, total = tokenizer.gen_pfdict(io.BytesIO(_dictionary(tokenizer).lower()))
        for word in map(_lower, words):
            for end in range(1, len(word)):
                counts.setdefault(word[:end], 0)  # what a longer word begins with
            counts[word] = total  # a probability of 1
        tokenizer.FREQ, tokenizer.total, tokenizer.initialized = counts, total, True
        self._cut = tokenizer.cut

    def __call__(self, text: str) -> Iterator[tuple[int, int]]:
        end = 0
        for word in self._cut(_lower(text)):
            start, end = end, end + len(word)
            yield start, end

    def __reduce__(self) -> tuple[Any, ...]:
        return _Jieba, (self._words,)


def _lower(text: str) -> str:
    """Return *text* in lower case, character by character, so that offsets stay."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(character if len(character.lower()) > 1 else character.lower() for character in text)


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
