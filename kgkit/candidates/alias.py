"""Candidates for any KB: its surfaces, as they stand."""

from dataclasses import dataclass
from typing import Literal

from kgkit.candidates.matching import ANY, Entry, Generator, Reading, shortened
from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
from kgkit.text import fold
from kgkit.types import NO_CANDIDATES, Candidates, Mention


@dataclass(frozen=True, kw_only=True)
class AliasConfig:
    """Settings of `AliasGenerator`."""

    matches: Literal["longest", "all"] = "longest"  # leftmost-longest, or every surface that occurs
    max_candidates: int = 30  # a mention, as in KnowBert
    min_prior: float = 0.0  # p(entity | surface), in [0, 1]
    prefer_case: bool = True  # meanings seen in the very spelling of the text first
    null: float = 0.0  # prior of "none of these", in [0, 1)

    def __post_init__(self) -> None:
        if self.matches not in ("longest", "all"):
            raise UsageError(f"matches is {self.matches!r}; it is one of 'longest', 'all'")
        if self.max_candidates < 1 or not 0 <= self.min_prior <= 1 or not 0 <= self.null < 1:
            raise UsageError(
                f"out of range in {self}: max_candidates >= 1, min_prior in [0, 1], null in [0, 1)"
            )


class AliasGenerator(Generator):
    """Finds the surfaces of a KB in a text, in any script.

    Words are matched whole; Chinese and Japanese text is matched character by
    character, so no segmenter is needed.
    """

    def __init__(self, kb: KnowledgeBase, config: AliasConfig | None = None) -> None:
        super().__init__(kb)
        self.config = config or AliasConfig()

    def mentions(self, text: str) -> list[Mention]:
        found = super().mentions(text)
        return longest(found) if self.config.matches == "longest" else found

    def entry(self, token: str) -> Entry:
        forms = self.forms(token)
        return Entry(
            self.look_up([*forms], token), self.kb.store.starts(forms[0].text), (forms[0].text,), forms
        )

    def forms(self, token: str) -> tuple[Reading, ...]:
        return (Reading(fold(token), ANY),)

    def look_up(self, variants: list[Reading], spelled: str) -> Candidates | None:
        return self._short(self.kb.candidates(spelled, prefer_case=self.config.prefer_case))

    def of_mention(self, given: Mention) -> Candidates:
        found = self.kb.candidates(given.text, pos=given.pos or None, prefer_case=self.config.prefer_case)
        return self._short(found) or NO_CANDIDATES

    def _short(self, found: Candidates) -> Candidates | None:
        config = self.config
        return shortened(found, most=config.max_candidates, min_prior=config.min_prior, null=config.null)


def longest(mentions: list[Mention]) -> list[Mention]:
    """Return the leftmost-longest of *mentions*, which come by start: none overlaps another."""
    kept: list[Mention] = []
    for mention in mentions:
        if not kept or mention.start >= kept[-1].end:
            kept.append(mention)
        elif mention.start == kept[-1].start and mention.end > kept[-1].end:
            kept[-1] = mention
    return kept
