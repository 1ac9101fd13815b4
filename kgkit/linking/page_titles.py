"""Titles of one page, for comparing the entities of a data set with those of a knowledge base."""

from typing import Final

import msgspec

from kgkit.evaluation.el_files import GoldDocument, Redirects
from kgkit.kb import KnowledgeBase

_MAX_PAGES: Final = 500_000


class PageTitles:
    """Maps all titles of one page to one name: those that redirects join, and the keys of one entity.

    Args:
        kb: knowledge base whose entities have the titles as keys.
        redirects: titles of one page; None: none are known but the keys of one entity.

    Attributes:
        missing: gold entities that the KB does not have under any of their titles; of a mention that has
            several, the first, if it has none of them.
        mentions: how many gold mentions mean one of them.
    """

    def __init__(self, kb: KnowledgeBase, redirects: Redirects | None = None) -> None:
        self.kb, self.redirects = kb, redirects or Redirects()
        self.missing: set[str] = set()
        self.mentions = 0
        self._pages: dict[str, str] = {}
        self._in_kb: dict[str, bool] = {}

    def __call__(self, title: str) -> str:
        """Return the name of the page that a title has: the key of its entity, where there is one."""
        page = self._pages.get(title)
        if page is None:
            if len(self._pages) >= _MAX_PAGES:
                self._pages.clear()
            # A title may be a key of the KB before it is redirected, or after.
            page = self.redirects(self._key(title) or title)
            page = self._pages[title] = self._key(page) or page
        return page

    def look_for(self, gold: GoldDocument) -> None:
        """Note which gold entities of a document are not in the KB."""
        for label in gold.gold:
            if label.entity is not None and not any(map(self._has, label.entities)):
                self.missing.add(self(label.entity))
                self.mentions += 1

    def prefer_known(self, gold: GoldDocument) -> GoldDocument:
        """Return a document whose mentions have an entity of the KB first, of those that mean several."""
        if not any(gold.others):
            return gold
        entities = [sorted(label.entities, key=lambda title: not self._has(title)) for label in gold.gold]
        return msgspec.structs.replace(
            gold,
            entities=[next(iter(each), None) for each in entities],
            others=[tuple(each[1:]) for each in entities],
        )

    def _has(self, title: str) -> bool:
        page = self(title)
        if page not in self._in_kb:
            self._in_kb[page] = self._key(page) is not None or any(
                self._key(each) is not None for each in self.redirects.titles(title)
            )
        return self._in_kb[page]

    def _key(self, title: str) -> str | None:
        """Return the key of the entity of a title, whichever way it has its spaces; None if there is none."""
        for spelled in dict.fromkeys([title, title.replace(" ", "_"), title.replace("_", " ")]):
            if spelled in self.kb:
                return self.kb.key(self.kb.id(spelled))
        return None
