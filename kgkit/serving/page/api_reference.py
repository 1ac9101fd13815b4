"""An OpenAPI description as operations with their parameters, as the manual shows them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["FieldView", "OperationView", "api_reference"]

_METHODS: Final = ("get", "post", "put", "patch", "delete")
_DEPTH: Final = 3  # of objects within objects, which are shown as fields


@dataclass(frozen=True, kw_only=True)
class FieldView:
    """A parameter, or a field of a body.

    Attributes:
        name: name; of a field within another both, with a dot.
        type: type, as text.
        required: whether it has to be there.
        source: `query`, `path`, `header`, `cookie` or `body`.
        description: what it means.
        default: value where it is left out; empty if there is none.
    """

    name: str
    type: str
    required: bool
    source: str
    description: str
    default: str


@dataclass(frozen=True, kw_only=True)
class OperationView:
    """An operation.

    Attributes:
        id: name of its part of the page.
        method: method in capitals.
        path: path of the address.
        summary: sentence that says what it does.
        description: further paragraphs.
        fields: parameters and fields of the body.
        media_types: media types of the body.
        answers: status and meaning of each answer.
    """

    id: str
    method: str
    path: str
    summary: str
    description: Sequence[str]
    fields: Sequence[FieldView]
    media_types: Sequence[str]
    answers: Sequence[tuple[str, str]]


def api_reference(description: Mapping[str, Any]) -> dict[str, list[OperationView]]:
    """Return the operations of a description by their first tag.

    Args:
        description: OpenAPI 3.1, as JSON.
    """
    groups: dict[str, list[OperationView]] = {}
    for path, item in description.get("paths", {}).items():
        for method in _METHODS:
            if method in item:
                operation = item[method]
                tag = next(iter(operation.get("tags", ())), "other")
                groups.setdefault(tag, []).append(_operation(description, path, method, operation))
    return groups


def _operation(
    description: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any]
) -> OperationView:
    parameters = [_resolve(description, each) for each in operation.get("parameters", ())]
    fields = [_parameter(description, each) for each in parameters]
    body = _resolve(description, operation.get("requestBody", {}))
    media_types = list(body.get("content", {}))
    for media_type in media_types[:1]:
        fields += _body_fields(description, body["content"][media_type].get("schema", {}))
    answers = [
        (status, str(_resolve(description, answer).get("description", "")))
        for status, answer in operation.get("responses", {}).items()
    ]
    words = "-".join(part.strip("{}") for part in path.split("/") if part)
    text = str(operation.get("description") or operation.get("summary", ""))
    first, *paragraphs = [paragraph.strip() for paragraph in text.split("\n\n") if paragraph.strip()] or [""]
    return OperationView(
        id=f"{method}-{words or 'root'}",
        method=method.upper(),
        path=path,
        summary=first,
        description=paragraphs,
        fields=fields,
        media_types=media_types,
        answers=answers,
    )


def _parameter(description: Mapping[str, Any], parameter: Mapping[str, Any]) -> FieldView:
    schema = parameter.get("schema", {})
    return FieldView(
        name=str(parameter.get("name", "")),
        type=type_name(description, schema),
        required=bool(parameter.get("required", False)),
        source=str(parameter.get("in", "query")),
        description=str(parameter.get("description", schema.get("description", ""))),
        default=_default(schema),
    )


def _body_fields(
    description: Mapping[str, Any], schema: Mapping[str, Any], prefix: str = "", depth: int = 1
) -> Iterator[FieldView]:
    """Yield the fields of an object, and of the objects in it."""
    schema = _resolve(description, schema)
    required = schema.get("required", ())
    for name, inner in schema.get("properties", {}).items():
        yield FieldView(
            name=prefix + name,
            type=type_name(description, inner),
            required=name in required,
            source="body",
            description=str(inner.get("description", "")),
            default=_default(inner),
        )
        for nested in _objects(description, inner) if depth < _DEPTH else ():
            yield from _body_fields(description, nested, f"{prefix}{name}.", depth + 1)


def _objects(description: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas of objects that a value may be, or be a list of."""
    schema = _resolve(description, schema)
    if "properties" in schema:
        yield schema
    for option in [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]:
        yield from _objects(description, option)


def type_name(description: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return the type of a value as text: `string`, `list of integer`, `"name" or "text"`."""
    schema = _resolve(description, schema)
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        names = dict.fromkeys(type_name(description, option) for option in options)
        return " or ".join(name for name in names if name != "null")
    if "enum" in schema:
        return " or ".join(f'"{value}"' for value in schema["enum"])
    if "const" in schema:
        return f'"{schema["const"]}"'
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {type_name(description, schema.get('items', {}))}"
    return kind


def _default(schema: Mapping[str, Any]) -> str:
    value = schema.get("default")
    return "" if value in (None, "", [], {}) else str(value)


def _resolve(description: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a reference within the description stands for; anything else as it is."""
    target: Any = schema
    for _ in range(_DEPTH):
        if "$ref" not in target:
            return target  # type: ignore[no-any-return]
        reference, target = target["$ref"], description
        for part in str(reference).removeprefix("#/").split("/"):
            target = target.get(part, {})
    return {}
