"""Fields of a request: those of its query, and those of a form in its body.

Only `application/x-www-form-urlencoded` is read, in UTF-8; bytes that are none are refused, so that no field
holds half of a surrogate pair.
"""

from typing import Final, overload
from urllib.parse import parse_qsl

from starlette.requests import Request

from kgkit.serving.problems import Problem

FORM: Final = "application/x-www-form-urlencoded"
"""The media type of forms."""

_MAX_FIELDS: Final = 64
_MAX_DIGITS: Final = 20


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
        content: encoded fields.
        source: name of the part of the request that they are in, for the message.

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


@overload
def parse_number(field: str, text: str, default: float) -> float: ...
@overload
def parse_number(field: str, text: str, default: None = None) -> float | None: ...
def parse_number(field: str, text: str, default: float | None = None) -> float | None:
    """Return the number from 0 to 1 that a field has; the default if the field is empty.

    Args:
        field: name of the field, for the message.
        text: content of the field.
        default: value of an empty field.

    Raises:
        Problem: if the text is no number, or out of range.
    """
    if not text.strip():
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value <= 1:  # which nan is not
        raise Problem(422, f"{field} is {text[:40]!r}; it is a number from 0 to 1", field=field)
    return value


def parse_integer(field: str, text: str, default: int, *, least: int = 1, most: int) -> int:
    """Return the whole number that a field has; the default if the field is empty.

    Args:
        field: name of the field, for the message.
        text: content of the field.
        default: value of an empty field.
        least: smallest value.
        most: largest value.

    Raises:
        Problem: if the text is no whole number, or out of range.
    """
    digits = text.strip()
    if not digits:
        return default
    is_integer = digits.isascii() and digits.isdecimal() and len(digits) < _MAX_DIGITS
    if not (is_integer and least <= int(digits) <= most):
        raise Problem(
            422, f"{field} is {text[:40]!r}; it is a whole number from {least:,} to {most:,}", field=field
        )
    return int(digits)
