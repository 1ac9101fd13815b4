"""Requests of the REST interface: pydantic models of bodies and queries, and what OpenAPI says of bodies."""

from typing import Any, Final, Literal, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kgkit.serving.answers import validation_problem

_KB: Final = "Name of the knowledge base; without it the default one is used."

Model = TypeVar("Model", bound=BaseModel)


class RequestModel(BaseModel):
    """Base of all requests: unknown fields, infinities and NaN are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)


class MentionRequest(RequestModel):
    """A mention that a text comes with: offsets in code points, the end exclusive."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)
    id: str = ""


class DocumentRequest(RequestModel):
    """A text with a name, and perhaps with mentions."""

    text: str
    id: str = ""
    mentions: list[MentionRequest] | None = None


class LinkRequest(RequestModel):
    """Texts to link."""

    text: str | list[str | DocumentRequest] = Field(
        description="A text, or several; those with mentions too."
    )
    mentions: list[MentionRequest] | None = Field(None, description="Mentions of a single text.")
    kb: str | list[str] | None = Field(None, description=f"{_KB} A list of names links to several.")
    model: str | None = Field(None, description="Model that scores candidates; by default the first served.")
    threshold: float | None = Field(None, ge=0, le=1, description="Least score of a link.")
    nil: bool = Field(False, description="Whether mentions that mean nothing are kept, marked.")
    top_k: int = Field(5, ge=0, description="Candidates of a link.")


class LinkQuery(RequestModel):
    """A text to link, in the address."""

    text: str
    kb: list[str] = Field([], description=f"{_KB} It may be repeated.")
    model: str | None = None
    threshold: float | None = Field(None, ge=0, le=1)
    nil: bool = False
    top_k: int = Field(5, ge=0)


class ReconcileRequest(RequestModel):
    """Names to find entities for."""

    names: list[str | None] = Field(description="Names; null for an empty cell.")
    kb: str | None = Field(None, description=_KB)
    kind: str | None = Field(None, description="Only entities of this kind or type, or ATTRIBUTE=VALUE.")
    top: int = Field(5, ge=1, description="Candidates of a name.")
    threshold: float = Field(0.5, ge=0, le=1, description="Least score of a match.")


class KBQuery(RequestModel):
    """A knowledge base."""

    kb: str | None = Field(None, description=_KB)


class CandidatesQuery(KBQuery):
    """A word or name."""

    text: str
    k: int | None = Field(None, ge=1)
    pos: Literal["n", "v", "a", "s", "r", ""] = ""
    fuzzy: bool = Field(False, description="Whether an unknown text stands for the most similar surface.")


class EntityQuery(KBQuery):
    """An entity."""

    key: str
    limit: int | None = Field(None, ge=1, description="Surfaces, and facts in each direction.")


class SearchQuery(KBQuery):
    """A text to search for."""

    q: str
    by: Literal["name", "text"] = "name"
    kind: str | None = None
    limit: int = Field(10, ge=1)


class NeighboursQuery(KBQuery):
    """An entity whose neighbours are listed."""

    entity: str
    relation: str | None = None
    limit: int | None = Field(None, ge=1, description="Facts in each direction.")


class PathQuery(KBQuery):
    """The ends of a path."""

    source: str
    target: str
    relation: list[str] = Field([], description="Only facts of this relation; it may be repeated.")


class NearestQuery(KBQuery):
    """An entity, or a text, whose vector is compared."""

    entity: str | None = None
    text: str | None = None
    k: int = Field(10, ge=1)
    vectors: str | None = None
    kind: str | None = None


async def read_body(request: Request, model: type[Model]) -> Model:
    """Return the body of a request, decoded from JSON.

    Strings with lone surrogates are refused: JSON can write them, but they are no Unicode text.

    Args:
        request: request with the body.
        model: pydantic model of the body.

    Raises:
        Problem: if the body is no JSON, or does not fit the model.
    """
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as error:
        raise validation_problem(
            error.errors(include_url=False, include_context=False, include_input=False)
        ) from None


def body_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the part of an OpenAPI operation that describes a body which `read_body` reads."""
    schema = model.model_json_schema()
    schema = _without_references(schema, schema.pop("$defs", {}))
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _without_references(schema: Any, definitions: dict[str, Any]) -> Any:
    """Return a JSON schema whose references are replaced by the schemas that they refer to."""
    if isinstance(schema, list):
        return [_without_references(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if name := str(schema.get("$ref", "")).rpartition("/")[2]:
        return _without_references(definitions[name], definitions)
    return {name: _without_references(value, definitions) for name, value in schema.items()}
