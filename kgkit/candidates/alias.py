"""Candidates for any KB: its surfaces, as they stand."""

from dataclasses import dataclass
from typing import Literal

from kgkit.candidates.matching import ANY, Entry, Generator, GeneratorConfig, Reading, longest
from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
from kgkit.text import fold
from kgkit.types import NO_CANDIDATES, Candidates, Mention


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
    """

    config: AliasConfig

    def __init__(self, kb: KnowledgeBase, config: AliasConfig | None = None) -> None:
        super().__init__(kb, config or AliasConfig())

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
