"""One linker for every model: candidates in, scored links out."""

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, repeat
from math import isnan
from typing import TYPE_CHECKING, Any, Final, Unpack

import msgspec
import numpy as np

from kgkit.bounded_cache import BoundedCache
from kgkit.candidates import (
    Generator,
    KeyedDocument,
    document_batches,
    generator_for,
    is_divisible,
    is_long,
    longest,
    with_candidates,
)
from kgkit.errors import UsageError
from kgkit.home import Home
from kgkit.kb import KnowledgeBase, open_kb
from kgkit.linking.coherence import GraphCoherence
from kgkit.linking.corrections import Corrections
from kgkit.linking.models import find_scorer
from kgkit.linking.references import References
from kgkit.linking.scoring import PriorScorer, ScoreParts, Scorer, Scores, generated_null
from kgkit.linking.settings import ALL_MENTIONS, MENTIONS_OF_KB, LinkArguments, LinkSettings
from kgkit.models.manifest import broken_weights
from kgkit.pauses import pause
from kgkit.types import (
    NO_CANDIDATES,
    NO_SENSE,
    Candidates,
    Document,
    Entity,
    Link,
    LinkCandidate,
    LinkedDocument,
    Mention,
)

if TYPE_CHECKING:
    from typing import Self

    from kgkit.tagging.mention_tagger import MentionTagger

_Meaning = tuple[str | None, str | None, str, float, bool, list[LinkCandidate], dict[str, Any], str]
"""The fields of a `Link` from `entity` to `candidates`, and its `ids` and `url`."""

PARTS_OF_SPEECH: Final = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}
"""Names of the parts of speech that records have letters for."""

_CACHE_BYTES: Final = 32_000_000  # of each cache


class Linker:
    """Links documents to one KB.

    Mentions that come with a document keep their spans; otherwise a tagger finds
    them, if there is one, else the KB's own generator, and of those that
    overlap the leftmost-longest stays, unless `overlaps` says otherwise: `keep` scores all
    and keeps all links, `score` keeps the link with the highest score.

    A score is the model's probability that the mention means the entity, given
    that it means one of its candidates:

        prior          p(entity | surface), from counts
        gloss          that, times how well the entity's text fits the context: see `GlossScorer`
        coherence      of whichever model, re-weighted by agreement: see `GraphCoherence`

    Where NULL has a prior, scores share what it leaves: of a surface of known link probability that the KB's
    generator has found, a score is the probability that it is a mention, and means the entity. (A mention
    is NIL where a NULL that the generator was asked for is likelier than the best candidate; link
    probability alone makes none NIL but by `threshold`.) A score on a
    mention that a tagger found is multiplied with the tagger's: it is then the probability that the
    mention is one, and means the entity. The score of a NIL link is 1 less the best candidate's.

    The constructor opens no files: `Linker.open` finds models, vectors and taggers by their names, and reads
    corrections.

    Args:
        kb: knowledge base to link to; the caller closes it.
        settings: settings; `model`, `vectors`, `device` and the name of a tagger say what `open` opens.
        generator: generator of candidates, with settings of its own; unless given, the one
            that the KB asks for.
        scorer: model that scores the candidates; unless given, their priors are their scores.
        tagger: model whose names are linked; unless given, the generator finds the mentions.
        corrections: corrections of the links.

    Raises:
        UsageError: if *kb* is the name of a knowledge base.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        settings: LinkSettings | None = None,
        *,
        generator: Generator | None = None,
        scorer: Scorer | None = None,
        tagger: "MentionTagger | None" = None,
        corrections: Corrections | None = None,
    ) -> None:
        handle: object = kb
        if isinstance(handle, str):
            raise UsageError(
                f"a Linker takes an open knowledge base: kgkit.Linker.open({handle!r}) opens one by its name"
            )
        self.scorer, self.tagger = scorer or PriorScorer(), tagger
        self.kb, self.settings = kb, settings or LinkSettings()
        if self.settings.threshold is None:
            self.settings = replace(self.settings, threshold=self.scorer.defaults.threshold)
        self.threshold: float = self.settings.threshold or 0.0
        self.generator = generator or generator_for(
            kb,
            max_candidates=self.settings.max_candidates,
            overlaps=self.settings.overlaps != "longest",
            all_surfaces=self.settings.mentions == ALL_MENTIONS,
            nouns=self.scorer.reads_parts_of_speech,
        )
        self.coherence = None if self.settings.coherence is None else GraphCoherence(kb, self.generator)
        self.corrections = corrections
        self._references = References([kb]) if self.settings.references else None
        self._names = BoundedCache[int, tuple[str, str]](_CACHE_BYTES)
        self._elsewhere = BoundedCache[int, tuple[dict[str, Any], str]](_CACHE_BYTES)
        shared = self.coherence is None and tagger is None and not self.settings.explain
        self._by_candidates = shared and self.scorer.by_mention
        self._meanings = BoundedCache[int, tuple[Candidates, _Meaning | None]](_CACHE_BYTES)

    @classmethod
    def open(
        cls,
        kb: str | KnowledgeBase | None = None,
        *,
        home: str | os.PathLike[str] | None = None,
        **settings: Unpack[LinkArguments],
    ) -> "Linker":
        """Open a linker on a KB, which may be named; `close`, or the end of `with`, closes that.

        Args:
            kb: handle, `NAME`, `NAME@BUILD`, or None if there is one KB only.
            home: folder of knowledge bases and models; `KGKIT_HOME` or the platform's place unless given.
            settings: settings, as in `LinkSettings`.

        Raises:
            NotThere: if there is no such KB, or what the model needs has not been made or installed.
            UnknownName: if there is no such model, or no such tagger.
            UsageError: if a setting is out of range.
            SourceError: if corrections cannot be read, or name an entity that the KB does not have.
        """
        chosen = LinkSettings(**settings)
        handle = kb if isinstance(kb, KnowledgeBase) else open_kb(kb, home)
        try:
            corrections = (
                None
                if chosen.corrections is None
                else Corrections.open(handle, chosen.corrections, nil=chosen.nil)
            )
            scorer = find_scorer(
                chosen.model, handle, use_threshold=chosen.overlaps == "score", vectors=chosen.vectors,
                device=chosen.device,
            )  # fmt: skip
            mentions = chosen.mentions
            if mentions is None and chosen.overlaps == "longest":
                mentions = scorer.defaults.mentions
            tagger = None
            if mentions not in MENTIONS_OF_KB:
                from kgkit.tagging.mention_tagger import MentionTagger

                where = Home(handle.home.path.parents[1])
                tagger = MentionTagger.open(mentions, home=where, device=chosen.device)
            return cls(handle, chosen, scorer=scorer, tagger=tagger, corrections=corrections)
        except BaseException:
            if handle is not kb:
                handle.close()
            raise

    def close(self) -> None:
        """Close the knowledge base."""
        self.kb.close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def model(self) -> str:
        """The name that links carry: the model, and the second stage if there is one."""
        return self.scorer.name if self.coherence is None else f"{self.scorer.name}+graph"

    def __call__(self, documents: Iterable[Document | str]) -> Iterator[LinkedDocument]:
        """Yield each document with its links; a string among them is a document of its own.

        Raises:
            TypeError: if *documents* is one string: give a list of it.
            UsageError: if a given mention is no span of its text, or has another text there.
            DamagedModel: if the model gives candidates no probabilities.
        """
        if isinstance(documents, str):
            raise TypeError("a linker takes documents, not one text: linker([text]), or kgkit.link(text)")
        return self._linked(documents)

    def pipe(self, documents: Iterable[Document | str]) -> Iterator[LinkedDocument]:
        """Yield each document with its links, as they come: the same as calling the linker."""
        return self(documents)

    def _linked(self, documents: Iterable[Document | str]) -> Iterator[LinkedDocument]:
        source = iter(self._mentions(documents))
        links: list[Link] = []
        while chunk := list(islice(source, self.scorer.batch_size)):
            for (document, preset, last), (scores, parts) in zip(chunk, self._scored(chunk), strict=True):
                mentions = document.mentions or []
                nulls = self._nulls(mentions, scores)
                if self.coherence is not None:
                    scores = self._agreed(mentions, scores)
                    parts = parts and [part.with_coherence(s) for part, s in zip(parts, scores, strict=True)]
                weighed = preset and any(hasattr(mention, "score") for mention in mentions)  # by a tagger
                if weighed:
                    scores = _weighed(mentions, scores)
                meaning = self._meaning if weighed or not self._by_candidates else self._shared_meaning
                for mention, score, null, part in zip(
                    mentions, scores, nulls, parts or repeat(None, len(mentions)), strict=True
                ):
                    fields = meaning(mention.candidates or NO_CANDIDATES, score, null, part)
                    if fields is not None:
                        entity, sense, label, best, nil, shown, ids, url = fields
                        if nil and weighed:  # that the span is a name, and not one of the KB
                            best = _round(max(0.0, best - 1 + getattr(mention, "score", 1.0)))
                        links.append(
                            Link(
                                mention.start, mention.end, mention.text, self.kb.name, entity, sense, label,
                                best, nil, shown, mention.id, ids, url,
                            )
                        )  # fmt: skip
                if last:
                    if self.settings.overlaps == "score" and not preset:
                        links = best_links(links)
                    linked = LinkedDocument(document.id, document.text, self.model, links)
                    if self.corrections is not None:
                        linked = self.corrections(linked)
                    if self._references is not None:
                        linked = refer_back(linked, self._references, [self.corrections])
                    yield linked
                    links = []

    def _scored(
        self, chunk: Sequence[tuple[Document, bool, bool]]
    ) -> Iterator[tuple[list[Scores], list[ScoreParts]]]:
        """Yield the scores of each document's mentions, and their parts where they are asked for."""
        documents = [document for document, _, _ in chunk]
        if self.settings.explain:
            yield from (([part.score for part in parts], parts) for parts in self.scorer.explain(documents))
        else:
            yield from ((scores, []) for scores in self.scorer(documents))

    def _nulls(self, mentions: list[Mention], scores: list[Scores]) -> list[bool]:
        """Say of each mention whether nothing is likelier than its best candidate."""
        return [
            len(score) > 0
            and float(score.max()) < self.scorer.null(mention.candidates or NO_CANDIDATES, score)
            for mention, score in zip(mentions, scores, strict=True)
        ]

    def _agreed(self, mentions: list[Mention], scores: list[Scores]) -> list[Scores]:
        """Return the scores after the second stage; those of a mention keep their sum, and NULL the rest."""
        assert self.coherence is not None
        agreed = self.coherence(mentions, scores)
        return [share * score.sum() for share, score in zip(agreed, scores, strict=True)]

    def _mentions(self, documents: Iterable[Document | str]) -> Iterator[tuple[Document, bool, bool]]:
        """Yield documents with the mentions that are to be linked, by start.

        A long one comes several times, with some of its mentions each, if the scores of these do not depend
        on the others. With each goes whether its mentions were given, and whether it is the last of its
        document.
        """
        source = _documents(self.kb, documents)
        divisible = self.scorer.by_mention and is_divisible(self.generator)
        multiple = 1 if self.coherence is None else self.coherence.config.window
        for document in source if self.tagger is None else self.tagger(source):
            pause()
            preset = document.mentions is not None
            if divisible and is_long(document.text):
                overlaps = self.settings.overlaps != "longest"
                for batch, last in document_batches(
                    document, self.generator, overlaps=overlaps, multiple=multiple
                ):
                    yield batch, preset, last
                continue
            generated = next(iter(self.generator([document])))
            mentions = generated.mentions or []
            if preset:
                mentions = sorted(mentions, key=lambda mention: mention.start)
            elif self.settings.overlaps == "longest":
                mentions = longest(mentions)
            yield msgspec.structs.replace(generated, mentions=list(mentions)), preset, True

    def _shared_meaning(
        self, candidates: Candidates, scores: Scores, null: bool, _: ScoreParts | None
    ) -> _Meaning | None:
        """Return `_meaning`, once for all mentions of the same candidates, where nothing else counts."""
        meanings = self._meanings
        entry = meanings.get(id(candidates))
        if entry is None:
            entry = meanings.keep(id(candidates), (candidates, self._meaning(candidates, scores, null)))
        return entry[1]

    def _meaning(
        self, candidates: Candidates, scores: Scores, null: bool, parts: ScoreParts | None = None
    ) -> _Meaning | None:
        """Return the fields of a link from `entity` to `candidates`; None if there is to be none."""
        settings = self.settings
        rows = candidates.rows.tolist()
        scored = scores.tolist()
        order = sorted(range(len(rows)), key=lambda index: -scored[index])
        best = next(iter(order), None)
        score = 0.0 if best is None else _round(scored[best])
        if isnan(score):
            raise broken_weights(self.model, "gives candidates no probabilities")
        nil = best is None or null or score < self.threshold or score < generated_null(candidates)
        if nil and not settings.nil:
            return None
        shown = []
        for index in order[: settings.top_k]:
            entity, sense, prior = rows[index]
            key, label = self._name(entity)
            shown.append(
                LinkCandidate(
                    key, _round(prior), _round(scored[index]), self._key(sense), label,
                    None if parts is None else parts.row(index),
                )
            )  # fmt: skip
        if nil or best is None:
            return None, None, "", _round(1 - score), True, shown, {}, ""
        entity, sense, _ = rows[best]
        key, label = self._name(entity)
        ids, url = self._names_elsewhere(entity)
        if sense != NO_SENSE:
            ids = {**ids, "sense_key": self._name(sense)[0]}
        return key, self._key(sense), label, score, False, shown, ids, url

    def describe(self, entity: str) -> str:
        """Return what the KB says of an entity that a link names."""
        return self.kb[entity].description

    def type_of(self, entity: str) -> str:
        """Return the first type of an entity that a link names, else its part of speech, else its kind."""
        return type_of_entity(self.kb[entity])

    def _key(self, sense: int) -> str | None:
        return None if sense == NO_SENSE else self._name(sense)[0]

    def _name(self, number: int) -> tuple[str, str]:
        """Return key and label of an entity, remembered: texts return to the same ones."""
        name = self._names.get(number)
        if name is None:
            entity = self.kb[number]
            name = self._names.keep(number, (entity.key, entity.label))
        return name

    def _names_elsewhere(self, number: int) -> tuple[dict[str, Any], str]:
        """Return the identifiers and the address of an entity, remembered."""
        names = self._elsewhere.get(number)
        if names is None:
            names = self._elsewhere.keep(number, (self.kb.identifiers(number), self.kb.url(number) or ""))
        return names


def refer_back(
    linked: LinkedDocument, references: References, corrections: Sequence[Corrections | None]
) -> LinkedDocument:
    """Return a corrected document with the links of words that refer back, but those corrected away."""
    linked = references(linked)
    for each in corrections:
        linked = linked if each is None else each(linked)
    return linked


def type_of_entity(entity: Entity) -> str:
    """Return the first type of an entity, else its part of speech, else its kind."""
    return next(iter(entity.types), PARTS_OF_SPEECH.get(entity.pos, entity.kind))


def best_links(links: Sequence[Link]) -> list[Link]:
    """Return the links of which none overlaps another: of those that do, the best stays.

    A link is better than another if its score is higher, then if it is longer, then if it begins earlier.
    NIL links stay where they overlap no other link; among them the longest, then the earliest.

    Args:
        links: of one text.

    Returns:
        Those that stay, in the order in which they came.
    """
    spans: list[tuple[int, int]] = []  # (start, end), ascending; none overlaps another
    chosen = set[int]()
    for index in sorted(range(len(links)), key=lambda index: _rank(links[index])):
        start, end = links[index].start, links[index].end
        at = bisect_left(spans, (start, end))
        if (at and spans[at - 1][1] > start) or (at < len(spans) and spans[at][0] < end):
            continue
        spans.insert(at, (start, end))
        chosen.add(index)
    return [link for index, link in enumerate(links) if index in chosen]


def _rank(link: Link) -> tuple[bool, float, int, int]:
    """Return the key by which links are sorted, the best first."""
    return link.nil, 0.0 if link.nil else -link.score, link.start - link.end, link.start


def _documents(kb: KnowledgeBase, documents: Iterable[Document | str]) -> Iterator[Document]:
    """Yield documents, with the candidates whose keys they came with; a string is a document of its own."""
    for number, document in enumerate(documents):
        if isinstance(document, str):
            yield Document(str(number), document)
        elif isinstance(document, KeyedDocument):
            yield with_candidates(kb, document, document.keys)
        elif isinstance(document, Document):
            yield document
        else:
            raise TypeError(f"a document is a str or a kgkit.Document, not {type(document).__name__}")


def _weighed(mentions: list[Mention], scores: list[Scores]) -> list[Scores]:
    """Return the scores of candidates, multiplied with a tagger's of their mentions."""
    return [
        score * np.float32(getattr(mention, "score", 1.0))
        for mention, score in zip(mentions, scores, strict=True)
    ]


def _round(score: float) -> float:
    # Scores come from float32: more digits would be noise in every file.
    return round(score, 6)
