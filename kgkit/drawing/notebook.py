"""Links and entities as HTML for notebooks: what IPython shows of them.

Every drawing is a part of somebody else's page: it has no style sheet and no script, its colors are those of
the page or half transparent, and its length is bounded. Everything from a text, a knowledge base or a model
is escaped.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kgkit.drawing.links import hue_of_entity, named_mention
from kgkit.text import escape_xml
from kgkit.urls import is_web_address

if TYPE_CHECKING:
    from kgkit.types import Entity, Link, LinkedDocument

MOST_CHARACTERS: Final = 20_000
"""Characters of a text that are drawn."""

MOST_ROWS: Final = 8
"""Candidates of a link, and attributes of an entity, that are drawn."""


def draw_linked_document(document: "LinkedDocument") -> str:
    """Return a text with its links, the name of the entity under each mention; of a long one its beginning.

    Candidates appear as a tooltip. Of links that overlap the first is drawn.
    """
    pieces, at = [], 0
    for link in document.links:
        if at <= link.start and link.end <= MOST_CHARACTERS:
            pieces += [escape_xml(document.text[at : link.start]), _draw_mention(link)]
            at = link.end
    end = max(at, min(len(document.text), MOST_CHARACTERS))
    pieces.append(escape_xml(document.text[at:end]))
    if end < len(document.text):
        pieces.append(f"… ({len(document.text) - end:,} more characters)")
    count = len(document.links)
    heading = f"{document.id} · {count} link{'' if count == 1 else 's'} · {document.model}"
    text = f'<div style="white-space:pre-wrap;line-height:2.4">{"".join(pieces)}</div>'
    return f"<div><small>{escape_xml(heading)}</small>{text}</div>"


def draw_link(link: "Link") -> str:
    """Return a link with its best candidates."""
    title = "nothing in the knowledge base" if link.entity is None else link.label or link.entity
    name = escape_xml(title)
    if is_web_address(link.url):
        name = f'<a href="{escape_xml(link.url)}" rel="noreferrer">{name}</a>'
    key = "" if link.entity in (None, title) else f" <code>{escape_xml(link.entity or '')}</code>"
    where = f"{link.kb}, characters {link.start:,} to {link.end:,}, score {link.score:.2f}"
    candidates = [
        (f"{each.score:.2f}", f"{each.prior:.2f}", each.entity, each.label)
        for each in link.candidates[:MOST_ROWS]
    ]
    table = draw_table(("score", "prior", "candidate", "label"), candidates)
    head = f"“{escape_xml(link.text)}” → <b>{name}</b>{key} <small>{escape_xml(where)}</small>"
    return f"<div>{head}{table}</div>"


def draw_entity(entity: "Entity") -> str:
    """Return an entity with its description, its types and its first attributes."""
    about = ", ".join(filter(None, (entity.kind, entity.pos, *entity.types)))
    head = f"<b>{escape_xml(entity.label or entity.key)}</b> <code>{escape_xml(entity.key)}</code>"
    small = f" <small>{escape_xml(about)}</small>" if about else ""
    description = f"<div>{escape_xml(_shortened(entity.description))}</div>" if entity.description else ""
    return f"<div>{head}{small}{description}{_attributes(entity.attributes)}</div>"


def _draw_mention(link: "Link") -> str:
    """Return a mention with its entity's color and name; its candidates are a tooltip."""
    candidates = [f"{each.score:.2f} {each.entity} {each.label}" for each in link.candidates[:MOST_ROWS]]
    lines = [link.entity or "nothing in the knowledge base", *candidates]
    tooltip = escape_xml("\n".join(lines)).replace("\n", "&#10;")
    hue = hue_of_entity(link.entity or "")
    color = (
        "transparent" if link.entity is None else f"hsla({hue},70%,55%,{0.12 + 0.3 * _share(link.score):.2f})"
    )
    border = "dotted gray" if link.entity is None else f"solid hsl({hue},60%,50%)"
    style = f"background:{color};border-bottom:2px {border};border-radius:.2em;padding:.1em .15em"
    mention = named_mention(link).replace("<ruby>", '<ruby style="ruby-position:under">')
    return f'<span title="{tooltip}" style="{style}">{mention}</span>'


def _share(score: float) -> float:
    """Return a score as a share of 1, whatever it is."""
    return min(max(score, 0.0), 1.0) if score == score else 0.0


def _attributes(attributes: Mapping[str, Any]) -> str:
    rows = [(name, str(value)) for name, value in [*attributes.items()][:MOST_ROWS]]
    if (count := len(attributes) - MOST_ROWS) > 0:
        rows.append(("…", f"{count:,} more"))
    return draw_table((), rows)


def draw_table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; nothing if there are no rows."""
    lines = ["".join(_cell("td", cell) for cell in row) for row in rows]
    head = "".join(_cell("th", heading) for heading in headings)
    if not lines:
        return ""
    body = "".join(f"<tr>{line}</tr>" for line in ([head] if head else []) + lines)
    return f"<table>{body}</table>"


def _cell(tag: str, text: str) -> str:
    return f'<{tag} style="text-align:left;vertical-align:top">{escape_xml(_shortened(text))}</{tag}>'


def _shortened(text: str) -> str:
    return text if len(text) <= 500 else f"{text[:499]}…"
