"""Requests of the REST interface: pydantic models of bodies and queries, and what OpenAPI says of bodies."""

from dataclasses import fields
from typing import Any, Final, Literal, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from kgkit.linking.settings import LinkSettings
from kgkit.serving.answers import validation_problem
from kgkit.setting_types import attribute_helps

_KB: Final = "Name of the knowledge base; without it the default one is used."

LINK_SETTINGS: Final = ("model", "nil", "threshold", "top_k")
"""Settings of linking that a request may have."""

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


_HELPS: Final = attribute_helps(LinkSettings) | {
    "model": "Model that scores candidates; auto: the first that is served for the knowledge base."
}
_FIELDS: Final[dict[str, Any]] = {
    each.name: (
        each.type,
        Field(
            each.default,
            ge=each.metadata.get("least"),
            le=each.metadata.get("most"),
            description=_HELPS[each.name],
        ),
    )
    for each in fields(LinkSettings)
    if each.name in LINK_SETTINGS
}
_LinkSettings = create_model("_LinkSettings", __base__=RequestModel, **_FIELDS)


class LinkRequest(_LinkSettings):  # type: ignore[misc, valid-type]
    """Texts to link."""

    text: str | list[str | DocumentRequest] = Field(
        description="A text, or several; those with mentions too."
    )
    mentions: list[MentionRequest] | None = Field(None, description="Mentions of a single text.")
    kb: str | list[str] | None = Field(None, description=f"{_KB} A list of names links to several.")


class LinkQuery(_LinkSettings):  # type: ignore[misc, valid-type]
    """A text to link, in the address."""

    text: str
    kb: list[str] = Field([], description=f"{_KB} It may be repeated.")


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
