"""What every router calls: checked requests in, records out.

All methods raise `Problem` or `KgkitError`, which `app` turns into problem+json, and hold a request to the
limits of the settings. Those that are `async` do their work in threads: routers await them.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, ParamSpec, TypeVar, Unpack
from weakref import WeakKeyDictionary

import msgspec

from kgkit.candidates.input_mentions import check_mentions
from kgkit.errors import UnknownEntity
from kgkit.home import Home
from kgkit.kb import KnowledgeBase
from kgkit.kb.facts import Facts
from kgkit.kb.search import SearchResult, search_result
from kgkit.linking.corrections import Correction, Corrections
from kgkit.linking.linker import Linker, refer_back
from kgkit.linking.multi_kb import MultiKBLinker
from kgkit.linking.references import References
from kgkit.linking.settings import LinkArguments, LinkSettings
from kgkit.models.listing import ModelSummary, models
from kgkit.reconciling.reconciler import NameMatch, ReconcileConfig, unknown_kind
from kgkit.serving.batching import LinkQueue
from kgkit.serving.kb_schema import KBSchema, SchemaCache
from kgkit.serving.lanes import Lane
from kgkit.serving.logs import RequestLog
from kgkit.serving.problems import Problem, without_paths
from kgkit.serving.resources import ServedKB, ServiceResources
from kgkit.serving.settings import ServiceSettings
from kgkit.types import Candidate, Document, Entity, LinkedDocument, Neighbour, Triple
from kgkit.vectors import Vectors

if TYPE_CHECKING:
    from kgkit.encoder import Encoder

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Direction = Literal["out", "in", "both"]

LONG: Final = 100
"""Cost of a call that may read much of a knowledge base."""

_SHORT: Final = 20  # look-ups of a call that is answered beside single ones: a batch of OpenRefine has ten
_LONG_REQUESTS: Final = 10  # of as many names as a request may have, that run and wait


class Service:
    """A home's knowledge bases, open, with their linkers.

    Args:
        settings: settings.
        home: folder of knowledge bases and models.

    Attributes:
        settings: settings.
        limits: limits of requests.
        home: the home.
        resources: knowledge bases and linkers that are open.
        queue: queue of requests for links.
        started: whether the knowledge bases and models are open.
        schemas: types and properties of the knowledge bases.
        request_log: log of requests; None: requests are not logged.
    """

    def __init__(self, settings: ServiceSettings, home: Home) -> None:
        self.settings, self.limits, self.home = settings, settings.limits, home
        self.resources = ServiceResources(settings, home)
        self.queue = LinkQueue(self.limits.queue, self.limits.batch)
        threads = self.limits.threads
        self._short = Lane("look-ups", threads, self.limits.lookups)
        # Of half as many threads: each takes its turn at the interpreter, for which look-ups wait.
        self._long = Lane("long look-ups", max(1, threads // 2), _LONG_REQUESTS * self.limits.names)
        self.started = False
        self.request_log: RequestLog | None = None
        self._encoding = threading.Lock()
        self._encoders = WeakKeyDictionary[Vectors, "Encoder"]()
        self.schemas = SchemaCache()

    def start(self) -> None:
        """Open all that is to be served; the errors are those of `ServiceResources.start`."""
        self.resources.start()
        self.started = True

    def close(self) -> None:
        """Finish what is under way, and end the threads."""
        self.queue.close()
        self._short.close()
        self._long.close()

    # -- knowledge bases ----------------------------------------------------

    def kb_names(self) -> list[str]:
        """Return the names of the knowledge bases that are served, the default one first."""
        return self.resources.names()

    def kb(self, name: str | None = None) -> KnowledgeBase:
        """Return an open knowledge base; None: the default one.

        Raises:
            UnknownName: if it is not served.
            UsageError: if none is named, and none is the default.
        """
        return self.resources.served(name).kb

    def served(self, name: str | None = None) -> ServedKB:
        """Return a knowledge base with what is open on it; the errors are those of `kb`."""
        return self.resources.served(name)

    def problems(self) -> dict[str, str]:
        """Return the reasons why published builds are not served, by knowledge base, without paths."""
        return {name: without_paths(text, self.home) for name, text in self.resources.problems.items()}

    def installed_models(self) -> list[ModelSummary]:
        """Return the models of the home, and those that come with kgkit; errors are without paths."""
        return [
            summary
            if summary.error is None
            else msgspec.structs.replace(summary, error=without_paths(summary.error, self.home))
            for summary in models(self.home.path)
        ]

    # -- links --------------------------------------------------------------

    async def link(
        self,
        documents: Sequence[Document],
        *,
        kb: str | Sequence[str] | None = None,
        with_corrections: Sequence[Correction] = (),
        **settings: Unpack[LinkArguments],
    ) -> list[LinkedDocument]:
        """Return documents with their links, in order.

        Args:
            documents: documents, with mentions or without.
            kb: name of the knowledge base, or names of several; None: the default one.
            with_corrections: corrections of the links.
            settings: settings as in `ServedKB.linker`.

        Raises:
            Problem: if a limit is passed, or the queue is full.
            UnknownName: if a knowledge base or model is not served.
            UsageError: if a setting is out of range, a mention is no span of its text, or a correction cannot
                be applied.
        """
        self.check_documents(documents)
        check_limit("corrections", len(with_corrections), self.limits.mentions)
        short_names = settings.pop("references", False)  # they follow the corrections
        linkers = self._linkers(kb, settings)
        nil = settings.get("nil", False)
        corrections = (
            await self.call_weighed(
                LONG, lambda: [Corrections(linker.kb, with_corrections, nil=nil) for linker in linkers]
            )
            if with_corrections
            else []
        )
        linked = await self.queue.link(linkers, documents) if documents else []
        if not (with_corrections or short_names):
            return linked
        references = References([linker.kb for linker in linkers]) if short_names else None
        return await self.call_weighed(LONG, _corrected, linked, corrections, references)

    def check_documents(self, documents: Sequence[Document]) -> None:
        """Refuse documents that are more or longer than the limits allow, and mentions that are no spans.

        Raises:
            Problem: if a limit is passed.
            UsageError: if a mention is no span of its text.
        """
        limits = self.limits
        check_limit("documents", len(documents), limits.documents)
        check_limit("characters", sum(len(document.text) for document in documents), limits.characters)
        check_limit("mentions", sum(len(each.mentions or ()) for each in documents), limits.mentions)
        for document in documents:
            if document.mentions:
                check_mentions(document)

    def _linkers(self, kb: str | Sequence[str] | None, settings: LinkArguments) -> tuple[Linker, ...]:
        """Return the linkers to the knowledge bases that are named."""
        settings.setdefault("top_k", min(LinkSettings.top_k, self.limits.rows))
        check_limit("top_k", settings["top_k"], self.limits.rows)
        names = [kb] if kb is None or isinstance(kb, str) else list(kb)
        linkers = tuple(self.resources.served(name).linker(**settings) for name in names)
        if len(linkers) != 1:
            MultiKBLinker(linkers)  # raises where one is named twice, or none
        return linkers

    # -- look-ups -----------------------------------------------------------

    async def call(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Return the result of a short blocking function, called in a thread.

        Raises:
            Busy: if too many such calls wait.
        """
        return await self.call_weighed(1, function, *args, **kwargs)

    async def call_weighed(
        self,
        cost: int,
        function: Callable[Arguments, Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Return the result of a blocking function; expensive ones have threads of their own.

        Args:
            cost: number of look-ups that it makes, roughly: names that are reconciled.
            function: the function, which takes the other arguments.

        Raises:
            Busy: if too much such work waits.
        """
        lane = self._short if cost <= _SHORT else self._long
        return await lane.call(max(1, cost), partial(_with_hint, partial(function, *args, **kwargs)))

    async def schema(self, kb: KnowledgeBase) -> KBSchema:
        """Return the schema of a knowledge base, which is read once."""
        schema = self.schemas.remembered(kb)
        return await self.call_weighed(LONG, self.schemas, kb) if schema is None else schema

    def candidates(
        self, text: str, kb: str | None = None, *, k: int | None = None, pos: str = "", fuzzy: bool = False
    ) -> list[Candidate]:
        """Return what a text can mean, best prior first.

        Args:
            text: word or name.
            kb: name of the knowledge base; None: the default one.
            k: number of candidates; None: as many as an answer may have.
            pos: part of speech of the only meanings: `n`, `v`, `a`, `r`; empty for all.
            fuzzy: whether an unknown text stands for the most similar surface.
        """
        self._check_text(text)
        count = self.rows("k", k)
        served = self.resources.served(kb)
        results = served.candidates(text, pos)
        if fuzzy and not len(results):
            results = served.kb.candidates(text, count, pos or None, fuzzy=True)
        return served.kb.decode(results)[:count]

    def search(
        self, query: str, kb: str | None = None, *, by: str = "name", kind: str | None = None, limit: int = 10
    ) -> list[SearchResult]:
        """Return the entities that a text finds, best first.

        Args:
            query: text to search for.
            kb: name of the knowledge base; None: the default one.
            by: `name`: keys, surfaces and labels; `text`: vectors of the entities' texts.
            kind: kind of the only entities.
            limit: largest number of entities.
        """
        self._check_text(query, "query")
        count = self.rows("limit", limit, 10)
        handle = self.kb(kb)
        if by == "name":
            return handle.search(query, count, kind=kind)
        if by != "text":
            raise Problem(422, f"by is {by!r}; it is 'name' or 'text'", field="by")
        near = self.nearest(None, kb, text=query, k=count, kind=kind)
        return [search_result(handle, each.entity, "text", "", "near", each.score) for each in near]

    def search_cost(self, kb: str | None = None, by: str = "name") -> int:
        """Return the cost of `search`: it may compare all vectors, and without an index reads all names."""
        return LONG if by == "text" or not self.kb(kb).store.indexes_parts else 1

    def entity(self, key: str, kb: str | None = None) -> Entity:
        """Return an entity by its key.

        Args:
            key: key of the entity.
            kb: name of the knowledge base; None: the default one.

        Raises:
            UnknownEntity: if the knowledge base has no such entity.
        """
        return self.kb(kb)[key]

    def neighbors(
        self,
        key: str,
        kb: str | None = None,
        *,
        relation: str | None = None,
        direction: Direction = "both",
        limit: int | None = None,
    ) -> list[Triple]:
        """Return the facts of an entity, as triples.

        Args:
            key: key of the entity.
            kb: name of the knowledge base; None: the default one.
            relation: name of the only relation; None for any.
            direction: `out`: facts of which it is the subject; `in`: of which it is the object; `both`: the
                former, and those of the latter by relations without inverse.
            limit: largest number of facts; None: as many as an answer may have.
        """
        count = self.rows("limit", limit)
        handle = self.kb(kb)
        return facts_of(handle, handle[key], relation, direction, count)

    def path(
        self, source: str, target: str, kb: str | None = None, *, relations: Sequence[str] | None = None
    ) -> list[Triple]:
        """Return a shortest path between two entities; the errors are those of `KnowledgeBase.path`."""
        handle = self.kb(kb)
        return handle.path(handle[source], handle[target], relations or None)

    def nearest(
        self,
        key: str | None,
        kb: str | None = None,
        *,
        text: str | None = None,
        k: int = 10,
        vectors: str | None = None,
        kind: str | None = None,
    ) -> list[Neighbour]:
        """Return the entities whose vectors are nearest to an entity's or a text's, nearest first."""
        count = self.rows("k", k, 10)
        handle = self.kb(kb)
        if (key is None) == (text is None):
            raise Problem(422, "an entity or a text is needed, and not both", field="entity")
        if text is not None:
            self._check_text(text)
            with self._encoding:  # an encoder serves one thread at a time
                vector = self._encoder(handle.vectors(vectors)).encode([text])[0]
            return handle.nearest(vector, count, vectors=vectors, kind=kind)
        return handle.nearest(handle[key or ""], count, vectors=vectors, kind=kind)

    def _encoder(self, vectors: Vectors) -> "Encoder":
        """Return the encoder that made vectors, which is loaded once."""
        from kgkit.embedding.text import encoder_of  # here: an encoder's packages take a second

        if vectors not in self._encoders:
            self._encoders[vectors] = encoder_of(vectors)
        return self._encoders[vectors]

    def reconcile(
        self,
        names: Sequence[str | None],
        kb: str | None = None,
        *,
        kind: str | None = None,
        k: int = 5,
        threshold: float = 0.5,
    ) -> list[NameMatch]:
        """Return what each of many names means, in order.

        Args:
            names: names; None for an empty cell.
            kb: name of the knowledge base; None: the default one.
            kind: kind or type of the only entities, or `ATTRIBUTE=VALUE`.
            k: number of candidates of a name.
            threshold: least score of a match, in [0, 1].

        Raises:
            Problem: if a limit is passed.
            UnknownName: if no entity is of that kind or type, or has that attribute.
        """
        check_limit("names", len(names), self.limits.names)
        check_limit("characters", sum(len(name or "") for name in names), self.limits.characters)
        config = ReconcileConfig(kind=kind, top=self.rows("k", k, 5), threshold=threshold)
        served = self.resources.served(kb)
        if kind is not None:
            self._check_kind(served.kb, kind)
        return list(served.reconciler(config).pipe(names))

    def _check_kind(self, kb: KnowledgeBase, kind: str) -> None:
        """Refuse a kind that the schema of a knowledge base does not have: its entities are read once.

        Raises:
            UnknownName: if no entity is of that kind or type, or has that attribute.
        """
        kinds = sorted(kb.manifest.counts.entities)
        if kind not in kinds and not (schema := self.schemas(kb)).may_select(kind):
            raise unknown_kind(kb.name, kind, [*kinds, *schema.types], schema.attributes)

    def _check_text(self, text: str, field: str = "text") -> None:
        if not text.strip():
            raise Problem(422, f"{field} is empty", field=field, remedy=f"send a text as the field `{field}`")
        check_limit("characters", len(text), self.limits.characters)

    def rows(self, field: str, count: int | None, default: int | None = None) -> int:
        """Return a number of rows that an answer may have.

        Args:
            field: name of the number in the request.
            count: number that the request asks for; None for the default.
            default: number of a request that names none; None: as many as an answer may have.

        Raises:
            Problem: if it is below 1, or more than an answer may have.
        """
        number = min(default or self.limits.rows, self.limits.rows) if count is None else count
        if number < 1:
            raise Problem(422, f"{field} is {number}; it is at least 1", field=field)
        check_limit(field, number, self.limits.rows)
        return number


def _corrected(
    linked: Sequence[LinkedDocument], corrections: Sequence[Corrections], references: References | None
) -> list[LinkedDocument]:
    """Return documents with the links that each of *corrections* gives, then those of short names."""
    for each in corrections:
        linked = [each(document) for document in linked]
    if references is not None:
        linked = [refer_back(document, references, corrections) for document in linked]
    return list(linked)


def _with_hint(function: Callable[[], Result]) -> Result:
    """Return what a function returns; the hint of an unknown entity takes a search, and is made here."""
    try:
        return function()
    except UnknownEntity as error:
        error.hint  # noqa: B018
        raise


def check_limit(field: str, count: int, most: int) -> None:
    """Refuse a request that has more of something than its limit allows.

    Args:
        field: field, or limit, that is counted.
        count: number that the request has.
        most: largest number that it may have.

    Raises:
        Problem: if the number is larger.
    """
    if count > most:
        is_divisible = field in ("characters", "corrections", "documents", "mentions", "names")
        raise Problem(
            413 if is_divisible else 422,
            f"{field}: {count:,}, of {most:,} that a request may have",
            field=field,
            remedy=f"send {most:,} at most, in several requests"
            if is_divisible
            else f"ask for {most:,} at most",
        )


def facts_of(
    kb: KnowledgeBase, entity: Entity, relation: str | None, direction: Direction, most: int
) -> list[Triple]:
    """Return facts of an entity: those with it as subject, then those on it by relations without inverse.

    Args:
        kb: knowledge base.
        entity: the entity.
        relation: name of the only relation; None for any.
        direction: `out`, `in` or `both`.
        most: largest number of facts.
    """
    facts: list[Triple] = []
    if direction != "in":
        facts.extend(islice(kb.match(subject=entity, relation=relation), most))
    if direction == "in":
        facts.extend(islice(kb.match(object=entity, relation=relation), most))
    elif direction == "both":
        others = Facts(kb.store, kb.name).without_inverse(entity.id, relation)
        facts.extend(islice(others, most - len(facts)))
    return facts
