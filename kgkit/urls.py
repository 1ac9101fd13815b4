"""Addresses of entities on the web, by the pattern that a knowledge base has for them."""

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from kgkit.types import Entity

__all__ = ["UrlPattern", "check_url_pattern", "is_web_address"]

_PLACEHOLDER: Final = re.compile(r"\{([^{}:]+)(:_)?\}")
_HOST: Final = re.compile(r"https?://[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]+)?[/?#]")
_LEGAL: Final = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]*")  # the characters of RFC 3986
_PLAIN: Final = "!()*,:@$~"  # left as they are, as MediaWiki leaves them; none of them separates
_DOTS: Final = (".", "..")  # a browser takes them for folders, however they are encoded
_MAX_LENGTH: Final = 2_000


class UrlPattern:
    """A pattern of addresses with one placeholder, which is filled with a field of an entity.

    `{key}` and `{label}` are these fields, any other name is that of an attribute: `{wikidata}`. Values are
    percent-encoded as UTF-8; with `:_` behind the name (`{label:_}`) spaces become underscores, as MediaWiki
    writes titles.

    Args:
        pattern: pattern, such as `https://en.wikipedia.org/wiki/{key:_}`.

    Raises:
        ValueError: if it is no such pattern; says what is wrong.
    """

    def __init__(self, pattern: str) -> None:
        check_url_pattern(pattern)
        placeholder = _PLACEHOLDER.search(pattern)
        assert placeholder is not None
        self.pattern, self.field = pattern, placeholder[1]
        self._underscores = placeholder[2] is not None
        self._before, self._after = pattern[: placeholder.start()], pattern[placeholder.end() :]

    def url(self, entity: "Entity") -> str:
        """Return the address of an entity; empty where it lacks the field, or has a list there."""
        fields = {"key": entity.key, "label": entity.label}
        value = fields[self.field] if self.field in fields else entity.attributes.get(self.field)
        if isinstance(value, bool) or not isinstance(value, str | int):
            return ""
        text = str(value)
        if not text or text in _DOTS:
            return ""
        if self._underscores:
            text = text.replace(" ", "_")
        return f"{self._before}{quote(text, _PLAIN, errors='replace')}{self._after}"


def check_url_pattern(pattern: str) -> None:
    """Make sure that a pattern gives addresses on the web, all of one host.

    Raises:
        ValueError: if it does not; says what is wrong.
    """
    shown = f"the URL pattern {pattern[:100]!r}"
    placeholders = _PLACEHOLDER.findall(pattern)
    constant = _PLACEHOLDER.sub("", pattern)
    if len(pattern) > _MAX_LENGTH:
        raise ValueError(f"{shown} has {len(pattern):,} characters: {_MAX_LENGTH:,} are the most")
    if not pattern.startswith(("http://", "https://")):
        raise ValueError(f"{shown} does not begin with https:// or http://")
    if len(placeholders) != 1 or "{" in constant or "}" in constant:
        raise ValueError(
            f"{shown} has {len(placeholders)} placeholders: it needs one, "
            "{key}, {label} or the name of an attribute, as in https://en.wikipedia.org/wiki/{key:_}"
        )
    if not _HOST.match(pattern.partition("{")[0]):
        raise ValueError(f"{shown} has no host and slash in front of its placeholder: https://HOST/…")
    if not _LEGAL.fullmatch(constant):
        raise ValueError(f"{shown} has characters that no URL has: percent-encode them")


def is_web_address(text: str) -> bool:
    """Return whether a text is an address that begins with `http://` or `https://`."""
    return _HOST.match(f"{text}/") is not None and _LEGAL.fullmatch(text) is not None
