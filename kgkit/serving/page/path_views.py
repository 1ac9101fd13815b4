"""The view of a shortest path between two entities."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter
from fastapi.responses import Response

from kgkit.errors import KgkitError
from kgkit.kb import KnowledgeBase
from kgkit.serving.page.addresses import kb_name
from kgkit.serving.page.rendering import render
from kgkit.serving.problems import Problem, problem_of
from kgkit.serving.service import LONG, Service
from kgkit.types import Entity, Triple

__all__ = ["PathStep", "add_views", "path_steps"]


@dataclass(frozen=True, kw_only=True)
class PathStep:
    """A fact on a path, as it is walked.

    Attributes:
        relation: name of its relation.
        is_forward: whether it leads from its subject to its object.
        entity: entity that it leads to.
    """

    relation: str
    is_forward: bool
    entity: Entity


def path_steps(kb: KnowledgeBase, source: str, facts: Sequence[Triple]) -> list[PathStep]:
    """Return the facts of a path as steps from its first entity.

    Args:
        kb: knowledge base of the path.
        source: key of the first entity.
        facts: facts, each with the entity that the one before has led to.
    """
    steps, key = list[PathStep](), source
    for fact in facts:
        is_forward = fact.subject == key
        key = fact.object if is_forward else fact.subject
        steps.append(PathStep(relation=fact.relation, is_forward=is_forward, entity=kb[key]))
    return steps


def add_views(routes: APIRouter, service: Service) -> None:
    """Add the view of a path to a router."""

    @routes.get("/path")
    async def show_path(source: str = "", target: str = "", kb: str = "", relation: str = "") -> Response:
        """Show a shortest path between two entities."""
        handle = service.kb(kb_name(service, kb))
        start: Entity | None = None
        steps: list[PathStep] | None = None
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
