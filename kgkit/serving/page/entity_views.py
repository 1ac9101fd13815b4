"""Views of entities: search, card, facts of a relation, neighbourhood, nearest, path."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fastapi import APIRouter
from fastapi.responses import Response

from kgkit.errors import FormatMismatch, KgkitError, UnknownEntity
from kgkit.kb import KnowledgeBase
from kgkit.linking.linker import PARTS_OF_SPEECH
from kgkit.serving.forms import parse_integer
from kgkit.serving.page.addresses import kb_name, paging_of
from kgkit.serving.page.facts import facts_by_relation, facts_of_relation
from kgkit.serving.page.graph import (
    MAX_NODES,
    GraphNode,
    Neighborhood,
    draw_neighborhood,
    neighborhood,
    relation_name,
)
from kgkit.serving.page.rendering import render
from kgkit.serving.problems import Problem, problem_of
from kgkit.serving.service import LONG, Service
from kgkit.text import truncate
from kgkit.types import Entity, Neighbour, Triple
from kgkit.vectors import vectors_names

MAX_VALUES: Final = 30
"""Values of an attribute that a card shows."""
MAX_CHARACTERS: Final = 1_000
"""Characters of a value; of a longer one the beginning is shown."""


MAX_SURFACES: Final = 40
"""Names that a card shows."""
MAX_FACTS: Final = 12
"""Facts of each relation that a card shows; the view `/facts` has all."""


def entity_card(kb: KnowledgeBase, key: str) -> dict[str, Any]:
    """Return the content of the card of an entity, by the names that its template reads.

    Raises:
        UnknownEntity: if the KB has no such entity.
    """
    entity = kb[key]
    ids = kb.identifiers(entity)
    try:
        surfaces = kb.surfaces_of(entity)
        hidden: int | None = max(0, len(surfaces) - MAX_SURFACES)
    except FormatMismatch:  # a build of an older format, which does not list them
        surfaces, hidden = [], None
    return {
        "kb": kb.name,
        "entity": entity,
        "url": kb.url(entity) or "",
        "ids": ids,
        "attributes": [*attribute_views(entity.attributes, set(ids))],
        "surfaces": surfaces[:MAX_SURFACES],
        "hidden_surfaces": hidden,  # None: names are not listed
        "link_probability": kb.link_probability(entity.label) if entity.label else None,
        "facts": facts_by_relation(kb, kb.id(entity), MAX_FACTS),
    }


def attribute_views(attributes: Mapping[str, Any], excluded: set[str]) -> Iterator[dict[str, Any]]:
    """Yield name, values and number of hidden values of the attributes that are not empty, in their order.

    Args:
        attributes: values by name, JSON-like.
        excluded: names that are left out.
    """
    for name, value in attributes.items():
        values = [*value] if isinstance(value, list | tuple) else [value]
        texts = [_value_text(each) for each in values[:MAX_VALUES] if each not in ("", None, [], {})]
        if texts and name not in excluded:
            yield {"name": name, "values": texts, "hidden": max(0, len(values) - MAX_VALUES)}


def _value_text(value: Any) -> str:
    """Return a value as text, at most `MAX_CHARACTERS` of it."""
    if isinstance(value, Mapping):
        text = "; ".join(f"{name}: {_value_text(inner)}" for name, inner in [*value.items()][:MAX_VALUES])
    elif isinstance(value, list | tuple):
        text = "; ".join(map(_value_text, value[:MAX_VALUES]))
    else:
        text = str(value)
    return truncate(text, MAX_CHARACTERS)


def path_steps(kb: KnowledgeBase, source: str, facts: Sequence[Triple]) -> list[dict[str, Any]]:
    """Return the facts of a path as steps from its first entity: relation, direction, entity that is reached.

    Args:
        kb: knowledge base of the path.
        source: key of the first entity.
        facts: facts, each with the entity that the one before has led to.
    """
    steps, key = list[dict[str, Any]](), source
    for fact in facts:
        is_forward = fact.subject == key
        key = fact.object if is_forward else fact.subject
        steps.append({"relation": fact.relation, "is_forward": is_forward, "entity": kb[key]})
    return steps


FACTS: Final = 100
"""Facts of a relation on a page."""

HITS: Final = 20

REASONS: Final = {"exact": "by the", "prefix": "begins the", "part": "within the", "similar": "like the"}
"""How the text that is searched for matches a key or a name."""


def add_views(routes: APIRouter, service: Service) -> None:
    """Add the views of entities to a router."""
    _add_search_views(routes, service)
    _add_path_view(routes, service)
    _add_entity_views(routes, service)


def _add_search_views(routes: APIRouter, service: Service) -> None:
    @routes.get("/search")
    async def show_search(
        q: str = "", kb: str = "", by: str = "name", kind: str = "", limit: str = ""
    ) -> Response:
        """Show the entities that a text finds."""
        return await _search(service, q, kb_name(service, kb), by, kind, limit)

    @routes.get("/nearest")
    async def show_nearest(
        key: str = "", q: str = "", kb: str = "", vectors: str = "", k: str = ""
    ) -> Response:
        """Show the entities whose vectors are nearest to an entity's or to a text's."""
        return await _nearest(service, key, q, kb_name(service, kb), vectors, k)


def _add_path_view(routes: APIRouter, service: Service) -> None:
    @routes.get("/path")
    async def show_path(source: str = "", target: str = "", kb: str = "", relation: str = "") -> Response:
        """Show a shortest path between two entities."""
        handle = service.kb(kb_name(service, kb))
        start: Entity | None = None
        steps: list[dict[str, Any]] | None = None
        problem: Problem | None = None
        if source and target:
            try:
                start = handle[source]
                relations = [relation] if relation else None
                facts = await service.call_weighed(
                    LONG, service.path, source, target, handle.name, relations=relations
                )
                steps = await service.call(path_steps, handle, source, facts)
            except (KgkitError, Problem) as error:
                problem = problem_of(error, service.home)
        return render(
            "path.html", "path", error=problem, kb_names=service.kb_names(), kb=handle.name, source=source,
            target=target, relation=relation, start=start, steps=steps,
            relation_options=[("", "any"), *((name, name) for name in handle.relations)],
        )  # fmt: skip


def _add_entity_views(routes: APIRouter, service: Service) -> None:
    @routes.get("/entity")
    async def show_entity(key: str, kb: str = "") -> Response:
        """Show the card of an entity."""
        handle = service.kb(kb_name(service, kb))
        card = await service.call(entity_card, handle, key)
        part_of_speech = PARTS_OF_SPEECH.get(card["entity"].pos, card["entity"].pos)
        has_vectors = bool(vectors_names(handle.home))
        return render(
            "entity.html",
            kb=handle.name,
            card=card,
            part_of_speech=part_of_speech,
            has_vectors=has_vectors,
        )

    @routes.get("/facts")
    async def show_facts(
        key: str, relation: str, kb: str = "", direction: str = "out", page: str = ""
    ) -> Response:
        """Show the facts of an entity by one relation."""
        handle = service.kb(kb_name(service, kb))
        entity = handle[key]
        number = parse_integer("page", page, 1, most=1_000_000)
        group = await service.call(
            facts_of_relation, handle, entity.id, relation, direction, (number - 1) * FACTS, FACTS
        )
        paging = paging_of(
            "/facts",
            group.total,
            number,
            FACTS,
            kb=handle.name,
            key=key,
            relation=relation,
            direction=direction,
        )
        return render("facts.html", kb=handle.name, entity=entity, group=group, paging=paging)

    @routes.get("/graph")
    async def show_graph(
        key: str, kb: str = "", relation: str = "", radius: str = "", nodes: str = ""
    ) -> Response:
        """Show what stands around an entity, as a drawing and as a list."""
        handle = service.kb(kb_name(service, kb))
        return await service.call(
            _graph_page,
            handle,
            key,
            relation=relation or None,
            radius=parse_integer("radius", radius, 1, most=2),
            max_nodes=parse_integer("nodes", nodes, 60, most=min(MAX_NODES, service.limits.nodes)),
        )


async def _search(service: Service, query: str, kb: str, by: str, kind: str, limit: str) -> Response:
    hits, problem = None, None
    most = service.limits.rows
    try:
        count = parse_integer("limit", limit, HITS, most=most)
        if query.strip():
            hits = await service.call_weighed(
                service.search_cost(kb, by), service.search, query, kb, by=by, kind=kind or None, limit=count
            )
    except (KgkitError, Problem) as error:
        count, problem = HITS, problem_of(error, service.home)
    return render(
        "search.html", "search", error=problem, kb_names=service.kb_names(), kb=kb, query=query, by=by,
        kind=kind, kinds=_kinds(service), hits=hits, more=most, count=count, reasons=REASONS,
    )  # fmt: skip


def _kinds(service: Service) -> list[str]:
    """Return the kinds of entities of all knowledge bases that are served."""
    return sorted(
        {kind for name in service.kb_names() for kind in service.kb(name).manifest.counts.entities if kind}
    )


def _graph_page(
    kb: KnowledgeBase, key: str, *, relation: str | None, radius: int, max_nodes: int
) -> Response:
    """Return the page of a neighbourhood, as `neighborhood` chooses it."""
    around = neighborhood(kb, key, max_nodes=max_nodes, radius=radius, relation=relation)
    return render(
        "graph.html", kb=kb.name, around=around, drawing=draw_neighborhood(around), relation=relation or "",
        relation_options=[("", "all"), *((name, name) for name in around.relations)], radius=radius,
        max_nodes=max_nodes, groups=_nodes_by_relation(around),
    )  # fmt: skip


def _nodes_by_relation(around: Neighborhood) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the nodes as the list beside the drawing has them: by relation, with those behind each."""
    groups: dict[str, list[dict[str, Any]]] = {}
    inner: dict[int, list[GraphNode]] = {}
    for position, node in enumerate(around.nodes, start=1):
        if node.parent == 0:
            inner[position] = []
            groups.setdefault(relation_name(node), []).append(
                {"entity": node.entity, "behind": inner[position]}
            )
        else:
            inner[node.parent].append(node)
    return [*groups.items()]


async def _nearest(service: Service, key: str, query: str, kb: str, vectors: str, k: str) -> Response:
    handle = service.kb(kb)
    names = vectors_names(handle.home)
    neighbours: list[Neighbour] | None = None
    entity: Entity | None = None
    problem: Problem | None = None
    try:
        count = parse_integer("k", k, HITS, most=service.limits.rows)
        entity = _entity_of(handle, key, query)
        if entity is not None or query.strip():
            text = None if entity is not None else query
            neighbours = await service.call(
                service.nearest,
                None if entity is None else entity.key,
                kb,
                text=text,
                k=count,
                vectors=vectors or _default_vectors(names),
            )
    except (KgkitError, Problem) as error:
        problem = problem_of(error, service.home)
    return render(
        "nearest.html", "nearest", error=problem, kb_names=service.kb_names(), kb=kb, query=query or key,
        entity=entity, vectors=vectors, k=k, neighbours=neighbours,
        vector_options=[("", "default"), *((name, name) for name in _all_vectors(service))],
    )  # fmt: skip


def _entity_of(kb: KnowledgeBase, key: str, query: str) -> Entity | None:
    """Return the entity of a key, or of a query that is a key; None where the query is a text.

    Raises:
        UnknownEntity: if the KB has no entity of the key.
    """
    if key:
        entity = kb.get(key)
        if entity is None:
            raise UnknownEntity(key, kb.name)
        return entity
    return kb.get(query) if query else None


def _default_vectors(names: list[str]) -> str | None:
    """Return the vectors that are used where none are named: those of texts, if there are several."""
    return "text" if len(names) > 1 and "text" in names else None


def _all_vectors(service: Service) -> list[str]:
    return sorted({name for kb in service.kb_names() for name in vectors_names(service.kb(kb).home)})
