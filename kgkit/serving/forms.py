"""Fields of a request: those of its query, and those of a form in its body.

Only `application/x-www-form-urlencoded` is read, in UTF-8; bytes that are none are refused, so that no field
holds half of a surrogate pair.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from kgkit.serving.problems import Problem

FORM: Final = "application/x-www-form-urlencoded"
"""The media type of forms."""

_MAX_FIELDS: Final = 64


async def read_fields(request: Request) -> dict[str, str]:
    """Return the fields of a request; of several of one name the last, and rather that of the form.

    Raises:
        Problem: if the body is no form, is not UTF-8, or has too many fields.
    """
    fields = parse_fields(request.scope.get("query_string", b""), "the query")
    body = await request.body()
    if body:
        media_type = request.headers.get("content-type", FORM).partition(";")[0].strip().lower()
        if media_type != FORM:
            raise Problem(415, f"the body is {media_type[:100]!r}; it is {FORM}", field="Content-Type")
        fields.update(parse_fields(body, "the form"))
    return fields


def parse_fields(content: bytes, source: str) -> dict[str, str]:
    """Return the fields of an encoded query or form.

    Args:
        content: the encoded fields.
        source: what they are from, for the message.

    Raises:
        Problem: if they are not UTF-8, or there are too many.
    """
    try:
        pairs = parse_qsl(
            content.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS
        )
    except UnicodeDecodeError:
        raise Problem(400, f"{source} is not UTF-8", remedy="percent-encode it as UTF-8") from None
    except ValueError:
        raise Problem(422, f"{source} has more than {_MAX_FIELDS} fields") from None
    return dict(pairs)


def number_field(fields: Mapping[str, str], name: str, default: float, most: float) -> float:
    """Return a field that is a number from 0.

    Args:
        fields: the fields.
        name: name of the field.
        default: value where there is none.
        most: largest value.

    Raises:
        Problem: if it is none.
    """
    text = fields.get(name, "").strip()
    if not text:
        return default
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= most:
        raise Problem(422, f"{name} is {text[:40]!r}; it is a number from 0 to {most:g}", field=name)
    return number


def count_field(fields: Mapping[str, str], name: str, default: int, most: int) -> int:
    """Return a field that is a whole number from 0; the errors are those of `number_field`."""
    text = fields.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 18 and int(text) <= most):
        raise Problem(422, f"{name} is {text[:40]!r}; it is a whole number from 0 to {most:,}", field=name)
    return int(text)
