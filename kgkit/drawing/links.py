"""A picture of linked texts: one HTML page that needs nothing else."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from kgkit.text import escape_xml
from kgkit.urls import is_web_address

if TYPE_CHECKING:
    from kgkit.types import Link, LinkCandidate, LinkedDocument

_MAX_TYPES: Final = 12  # more hues cannot be told apart
_STYLE = """
:root { color-scheme: light dark; --line: #8886; --card: #fff; --ink: #222; --faint: #666 }
@media screen and (prefers-color-scheme: dark) { :root { --card: #222; --ink: #eee; --faint: #aaa } }
body { font: 17px/2.3 Georgia, serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem 45vh }
h2 { font: 600 .85rem/1.4 system-ui, sans-serif; color: var(--faint); margin: 2.5rem 0 .5rem }
.text { white-space: pre-wrap }
.legend { font: 13px/1.4 system-ui, sans-serif; color: var(--faint); margin: 0 0 .5rem }
.legend span { margin-right: 1em; padding: .1em .3em; border-bottom: 2px solid hsl(var(--hue) 60% 50%);
  background: hsl(var(--hue) 70% 55% / .3) }
ruby { ruby-position: under; ruby-align: start }
rt { padding-top: 5px; font: 10px/1.2 system-ui, sans-serif; color: var(--faint); user-select: none }
a.link { text-decoration: none; color: inherit; cursor: help; border-radius: .2em;
  padding: .1em .15em; background: hsl(var(--hue) 70% 55% / calc(.12 + .3 * var(--score)));
  border-bottom: 2px solid hsl(var(--hue) 60% 50%) }
a.nil { background: none; border-bottom: 2px dotted var(--faint) }
a.word { border-bottom: none }
.card { display: none; position: fixed; z-index: 1; left: 50%; bottom: 1rem; transform: translateX(-50%);
  box-sizing: border-box; width: max-content; max-width: min(46rem, 94vw); max-height: 45vh; overflow: auto;
  padding: .6rem .8rem; font: 13px/1.4 system-ui, sans-serif; white-space: normal; color: var(--ink);
  background: var(--card); border: 1px solid var(--line); border-radius: .4rem; box-shadow: 0 4px 16px #0003 }
a.link:hover .card, a.link:focus .card { display: block }
.card b { font-size: 14px } .card small { color: var(--faint); display: block }
.card table { border-spacing: 0; margin-top: .4rem }
.card td { padding: .1rem .8rem .1rem 0; vertical-align: top }
.card td.n { text-align: right; font-variant-numeric: tabular-nums; padding-right: .8rem }
.card tr:first-child td { color: var(--faint) }
@media print {
  :root { color-scheme: light }
  body { max-width: none; margin: 0; padding: 0 }
  h2, .legend { break-after: avoid }
  a.link, .legend span { print-color-adjust: exact }
  a.link .card { display: none !important }
}
""".strip()


Describe = Callable[[str], str]
"""Says something of an entity, by its key: what it means, or its type."""

DescribeIn = Describe | Mapping[str, Describe]
"""The same, for links to several knowledge bases by the names of these."""


def page_head(title: str, style: str = "") -> str:
    """Return what a page begins with, before its sections.

    Args:
        title: title of the page.
        style: further rules, in CSS.
    """
    head = f'<meta charset="utf-8">\n<title>{escape_xml(title)}</title>\n'
    view = f'<meta name="viewport" content="width=device-width">\n<style>\n{_STYLE}{style}\n</style>\n'
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}{view}</head>\n<body>\n'


HEAD: Final = page_head("Links")
"""What a page of links begins with."""

FOOT: Final = "</body>\n</html>\n"
"""What it ends with."""


def render(
    documents: Iterable["LinkedDocument"],
    *,
    describe: DescribeIn | None = None,
    type_of: DescribeIn | None = None,
) -> str:
    """Return a page that shows each document with its links.

    The name of an entity stands under its mention. Candidates appear at the foot of the page when the
    pointer, or the focus, is on a link. Of links that overlap the first is drawn.

    Args:
        documents: what a `Linker` gave.
        describe: tells the meanings of candidates, as `Linker.describe` does; else
            their labels are all that is told. For links to several knowledge bases a mapping from the
            names of these, as `MultiKBLinker.describe`.
        type_of: tells the type of an entity, as `Linker.type_of` does. Where the entities of a document have
            several, a type has a color, and a legend says which; else an entity has.
    """
    sections = (
        part for document in documents for part in section(document, describe=describe, type_of=type_of)
    )
    return "".join([HEAD, *sections, FOOT])


def section(
    document: "LinkedDocument", *, describe: DescribeIn | None = None, type_of: DescribeIn | None = None
) -> Iterator[str]:
    """Yield the part of a page that shows *document*, in small pieces; else as `render`."""
    count = len(document.links)
    heading = f"{document.id} · {count} link{'' if count == 1 else 's'} · {document.model}"
    yield f"<h2>{escape_xml(heading)}</h2>\n"
    entities = dict.fromkeys((link.kb, link.entity) for link in document.links if link.entity is not None)
    types = (
        {} if type_of is None else {entity: _function(type_of, entity[0])(entity[1]) for entity in entities}
    )
    hues = type_hues(types.values())
    if hues:
        names = "".join(f'<span style="--hue:{hue}">{escape_xml(name)}</span>' for name, hue in hues.items())
        yield f'<p class="legend">{names}</p>\n'
    yield '<div class="text">'
    hue_of = {(kb, key): hues.get(types.get((kb, key), ""), hue_of_entity(key)) for kb, key in entities}
    yield from _marked(document, describe or (lambda entity: ""), hue_of)
    yield "</div>\n"


def _function(functions: DescribeIn, kb: str) -> Describe:
    """Return what describes the entities of a knowledge base."""
    return functions[kb] if isinstance(functions, Mapping) else functions


def type_hues(types: Iterable[str]) -> dict[str, int]:
    """Return a hue for each of the most frequent types, evenly apart; none where there is one type only."""
    names = sorted(name for name, _ in Counter(filter(None, types)).most_common(_MAX_TYPES))
    return {name: 360 * number // len(names) for number, name in enumerate(names)} if len(names) > 1 else {}


def hue_of_entity(entity: str) -> int:
    """Return the hue of an entity: the same one wherever it is meant."""
    return sum(ord(letter) * position for position, letter in enumerate(entity, start=1)) % 360


def _marked(
    document: "LinkedDocument", describe: DescribeIn, hue_of: dict[tuple[str, str], int]
) -> Iterator[str]:
    at = 0
    for link in document.links:
        if link.start < at:
            continue
        yield escape_xml(document.text[at : link.start])
        yield _anchor(link, _function(describe, link.kb), hue_of.get((link.kb, link.entity or ""), 0))
        at = link.end
    yield escape_xml(document.text[at:])


def _anchor(link: "Link", describe: Describe, hue: int) -> str:
    kind = "link nil" if link.nil else "link"
    # A linked document may come from anywhere: only addresses on the web are links of the page.
    target = f'href="{escape_xml(link.url)}" rel="noreferrer"' if is_web_address(link.url) else 'tabindex="0"'
    return (
        f'<a class="{kind}" {target} style="--hue:{hue};--score:{link.score:.2f}">{named_mention(link)}'
        f'<span class="card">{_card(link, describe)}</span></a>'
    )


def named_mention(link: "Link") -> str:
    """Return a mention with the name of its entity under it: the label, or the key if that says no more."""
    folded = link.text.casefold()
    names = (
        name for name in (link.label, link.entity) if name and name.strip() and name.casefold() != folded
    )
    name, text = next(names, ""), escape_xml(link.text)
    return f"<ruby>{text}<rt>{escape_xml(name)}</rt></ruby>" if name else text


def _card(link: "Link", describe: Describe) -> str:
    title = "nothing in the KB" if link.entity is None else link.entity
    sense = "" if link.sense is None else f"<small>{escape_xml(link.sense)}</small>"
    table = candidate_table(link.candidates, describe)
    scored = f"<small>{escape_xml(link.kb)} · score {link.score:.2f}</small>"
    return f"<b>{escape_xml(title)}</b> {scored}{sense}{table}"


def candidate_table(candidates: Iterable["LinkCandidate"], describe: Describe) -> str:
    """Return a table of candidates with their scores and priors; nothing if there are none.

    Args:
        candidates: rows, in their order.
        describe: function that tells what a candidate means; where it says nothing, its label is shown.
    """
    rows = "".join(
        f'<tr><td class="n">{row.score:.2f}</td><td class="n">{row.prior:.2f}</td>'
        f"<td>{escape_xml(row.entity)}</td><td>{escape_xml(describe(row.entity) or row.label)}</td></tr>"
        for row in candidates
    )
    head = '<tr><td class="n">score</td><td class="n">prior</td><td>candidate</td><td>meaning</td></tr>'
    return f"<table>{head}{rows}</table>" if rows else ""
