"""The first view: a text with its links, their colors, and what their scores are made of."""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Final

import numpy as np
from fastapi import APIRouter, Form, Query
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, TypeAdapter, ValidationError

from kgkit.drawing.links import hue_of_entity, type_hues
from kgkit.errors import KgkitError
from kgkit.linking.corrections import Correction
from kgkit.linking.linker import type_of_entity
from kgkit.models.folder import AUTO
from kgkit.serving.forms import parse_number
from kgkit.serving.page.addresses import address, fits_address, kb_name
from kgkit.serving.page.rendering import hue_class, render, shade_class
from kgkit.serving.problems import Problem, problem_of, validation_problem
from kgkit.serving.rest import CorrectionRequest
from kgkit.serving.service import Service
from kgkit.types import Document, Entity, Link, LinkCandidate, LinkedDocument

PARTS: Final = ("prior", "context", "coherence")
"""Parts of a score, see `kgkit.linking.scoring.ScoreParts`."""

MAX_LISTED: Final = 1_000
"""Links that are listed with their candidates, of which each takes three kilobytes of a page."""

FindEntity = Callable[[str], Entity | None]
"""Returns the entity of a key; None if there is none."""


def text_view(document: LinkedDocument, find_entity: FindEntity) -> dict[str, Any]:
    """Return the pieces, the links and the legend of a linked text, by the names that its template reads.

    Of links that overlap the first is marked in the text.

    Args:
        document: text with its links, whose candidates have the parts of their scores.
        find_entity: function that returns the entity of a key.
    """
    types: dict[str, str] = {}
    for link in document.links:
        if link.entity is not None and (entity := find_entity(link.entity)) is not None:
            types[link.entity] = type_of_entity(entity)
    hues = type_hues(types.values())
    links = [
        _link_view(number, link, types.get(link.entity or "", ""), hues, find_entity)
        for number, link in enumerate(document.links, start=1)
    ]
    legend = {name: hue_class(hue) for name, hue in hues.items()}
    return {
        "model": document.model,
        "pieces": _pieces(document.text, links),
        "links": links,
        "listed": links[:MAX_LISTED],
        "legend": legend,
    }


def _link_view(
    number: int, link: Link, type_name: str, hues: dict[str, int], find_entity: FindEntity
) -> dict[str, Any]:
    """Return a link as it is marked and listed; those beyond `MAX_LISTED` lead to their entities."""
    hue = hues.get(type_name, hue_of_entity(link.entity or ""))
    color = "nil" if link.nil else f"{hue_class(hue)} {shade_class(link.score)}"
    rows = link.candidates if number <= MAX_LISTED else []
    shares = [part_shares(rows, part) for part in PARTS]
    candidates = []
    for index, row in enumerate(rows):
        entity = find_entity(row.entity)
        candidates.append(
            {
                "key": row.entity,
                "label": row.label,
                "meaning": "" if entity is None else entity.description,
                "score": row.score,
                "prior": row.prior,
                "shares": [None if column is None else column[index] for column in shares],
            }
        )
    parts = tuple(part for part, column in zip(PARTS, shares, strict=True) if column is not None)
    target = address("/entity", kb=link.kb, key=link.entity) if link.entity else ""
    return {
        "number": number,
        "link": link,
        "type": type_name,
        "color": color,
        "candidates": candidates,
        "parts": parts,
        "name": link.label or link.entity or "",
        "target": f"#candidates-{number}" if number <= MAX_LISTED else target,
    }


def part_shares(candidates: Sequence[LinkCandidate], part: str) -> list[float] | None:
    """Return the probabilities of candidates by one part of the scores alone; None without such a part.

    Parts are logarithms up to a constant of the mention, so that the shares are those of their exponentials.
    """
    values = [row.parts[part] for row in candidates if row.parts is not None and part in row.parts]
    if not values or len(values) < len(candidates):
        return None
    logarithms = np.array(values, np.float64)
    weights = np.exp(logarithms - logarithms.max())
    shares: list[float] = (weights / weights.sum()).tolist()
    return shares


def _pieces(text: str, links: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the text, cut at its mentions; a piece that is a mention has its link."""
    pieces, end = list[dict[str, Any]](), 0
    for view in links:
        link: Link = view["link"]
        if link.start >= end:
            if link.start > end:
                pieces.append({"text": text[end : link.start], "link": None})
            pieces.append({"text": link.text, "link": view})
            end = link.end
    if end < len(text):
        pieces.append({"text": text[end:], "link": None})
    return pieces


EXAMPLES: Final = (
    "The bank raised its rates while the river rose over its bank.",
    "Germany beat Japan in the final, and the coach praised his players.",
)
CANDIDATES: Final = 6
"""Candidates of a link that are shown."""

COHERENCE: Final = (("", "none"), ("graph", "by the graph"))


class TextForm(BaseModel):
    """The fields of the form.

    Attributes:
        text: text to link.
        kb: name of the knowledge base; empty for the first one.
        model: name of the model; empty for the default one of the knowledge base.
        threshold: least score of a link, as text; empty for the model's own.
        coherence: `graph`, or empty for none.
        document: name of the text, which corrections of it have.
        corrections: corrections of the links, as a list in JSON.
    """

    text: str = ""
    kb: str = ""
    model: str = ""
    threshold: str = ""
    coherence: str = ""
    document: str = ""
    corrections: str = ""


_parse_corrections = TypeAdapter(list[CorrectionRequest]).validate_json


def add_views(routes: APIRouter, service: Service) -> None:
    """Add the view of a text to a router."""

    @routes.get("/")
    async def show_text(fields: Annotated[TextForm, Query()]) -> Response:
        """Show a form, and the links of its text."""
        return await _page(service, fields)

    @routes.post("/")
    async def post_text(fields: Annotated[TextForm, Form()]) -> Response:
        """Lead to the address of a text, or show its links where the text is too long for an address."""
        fields.text = fields.text.replace("\r\n", "\n")
        target = address("/", **fields.model_dump())
        if fits_address(target):
            return RedirectResponse(target, status_code=303)
        return await _page(service, fields)


async def _page(service: Service, fields: TextForm) -> Response:
    name = kb_name(service, fields.kb)
    view: dict[str, Any] | None = None
    problem: Problem | None = None
    if fields.text.strip():
        try:
            view = await _linked_view(service, fields, name)
        except (KgkitError, Problem) as error:
            problem = problem_of(error, service.home)
    default = f"default ({service.served(name).models[0]})"
    return await service.call(  # in a thread: of a long text it takes a while
        render, "text.html", "text", error=problem, kb_names=service.kb_names(), kb=name, fields=fields,
        view=view, models=[("", default), *((model, model) for model in _model_names(service))],
        coherence_options=COHERENCE, max_characters=service.limits.characters, examples=EXAMPLES,
    )  # fmt: skip


async def _linked_view(service: Service, fields: TextForm, kb: str) -> dict[str, Any]:
    if fields.coherence not in dict(COHERENCE):
        raise Problem(
            422, f"coherence is {fields.coherence[:40]!r}; it is 'graph' or empty", field="coherence"
        )
    [document] = await service.link(
        [Document(fields.document or "text", fields.text)],
        kb=kb,
        with_corrections=_corrections(fields.corrections),
        model=fields.model or AUTO,
        threshold=parse_number("threshold", fields.threshold),
        coherence="graph" if fields.coherence else None,
        explain=True,
        top_k=min(CANDIDATES, service.limits.rows),
    )
    return await service.call(text_view, document, service.kb(kb).get)


def _corrections(text: str) -> list[Correction]:
    """Return the corrections of a form.

    Raises:
        Problem: if they are no list of corrections.
    """
    try:
        return [each.correction for each in _parse_corrections(text or "[]")]
    except ValidationError as error:
        problem = validation_problem(error.errors(include_url=False, include_input=False))
        raise Problem(422, f"corrections.{problem.detail}", field="corrections") from None


def _model_names(service: Service) -> list[str]:
    """Return the names of all models that link, those of the first knowledge base first."""
    return list(dict.fromkeys(model for kb in service.kb_names() for model in service.served(kb).models))
