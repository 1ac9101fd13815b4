"""A report of links beside gold: one HTML page, filtered by click, that needs nothing else.

Each document is a section: its text, where mentions and links are marked by their outcome, and a table of its
errors, with the candidates that were rejected. Filters by outcome, cause and type show what has any of the
values chosen, of each filter; they stand in the address after `#`, as `#kind=missed&type=ORG`. A section is
written as its document is linked, so that the page never is in memory.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from kgkit.drawing.links import FOOT, Describe, candidate_table, page_head
from kgkit.evaluation.el import LinkOutcome
from kgkit.evaluation.el_causes import CORRECT_KINDS, EntityFacts, error_cause
from kgkit.evaluation.el_files import GoldDocument
from kgkit.text import escape_xml
from kgkit.types import Link, LinkCandidate, LinkedDocument

KINDS: Final = {
    "right": "correct",
    "nil": "NIL, not linked",
    "wrong_choice": "wrong, a candidate was correct",
    "no_candidate": "wrong, no candidate was correct",
    "wrong_entity": "wrong, candidates unknown",
    "misplaced": "mention, other boundaries",
    "missed": "mention without a link",
    "link_on_nil": "link on a NIL mention",
    "link_misplaced": "link, other boundaries",
    "link_nowhere": "link without a mention",
}
"""What outcomes are called on the page."""

CORRECT: Final = "correct"
"""Cause of an outcome that is no error."""

NO_TYPE: Final = "no type"
"""Type of an entity whose type is not known."""

MAX_CANDIDATES: Final = 10
"""Candidates of an error that are shown, the best; and the gold entity, if it is another."""

_STYLE: Final = """
body { max-width: 60rem; line-height: 1.8 }
nav { position: sticky; top: 0; z-index: 2; padding: .5rem 0; background: Canvas;
  border-bottom: 1px solid var(--line); font: 13px/1.9 system-ui, sans-serif }
nav button { font: inherit; margin: 0 .3em .2em 0; padding: 0 .5em; border: 1px solid var(--line);
  border-radius: 1em; background: none; color: inherit; cursor: pointer }
nav button[aria-pressed=true] { background: #36c; color: #fff }
nav b { display: inline-block; min-width: 5em }
mark { color: inherit; padding: .1em .15em; border-radius: .2em; background: #d334;
  border-bottom: 2px solid #c33 }
mark.right { background: #3a32; border-color: #3a3 } mark.nil { background: none; border-color: #8886 }
mark.missed, mark.misplaced { background: #e803; border-color: #e80 }
mark.dim { background: none; border-color: transparent }
table.errors { border-collapse: collapse; width: 100%; font: 13px/1.4 system-ui, sans-serif }
table.errors > tbody > tr > * { text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0;
  border-top: 1px solid var(--line) }
details table td { padding: .1rem .8rem .1rem 0 } details td.n { text-align: right }
[hidden] { display: none !important }
@media print { nav { position: static } mark { print-color-adjust: exact } tr { break-inside: avoid } }
"""

_SCRIPT: Final = """<script>
"use strict";
const filters = { kind: new Set(), cause: new Set(), type: new Set() };
const items = [...document.querySelectorAll("[data-kind]")];
const counts = { kind: new Map(), cause: new Map(), type: new Map() };
const names = new Map();
for (const item of items) {
  if (!("count" in item.dataset)) continue;
  names.set(item.dataset.kind, item.dataset.name);
  for (const key in counts) {
    const value = item.dataset[key];
    counts[key].set(value, (counts[key].get(value) || 0) + 1);
  }
}
const bar = document.querySelector("nav");
function matches(item) {
  return Object.keys(filters).every(key => !filters[key].size || filters[key].has(item.dataset[key]));
}
function apply() {
  const active = Object.values(filters).some(values => values.size);
  for (const item of items) {
    const shown = matches(item);
    if (item.tagName === "TR") item.hidden = !shown; else item.classList.toggle("dim", !shown);
  }
  let documents = 0;
  for (const section of document.querySelectorAll("section")) {
    section.hidden = active && ![...section.querySelectorAll("[data-kind]")].some(matches);
    documents += !section.hidden;
  }
  const total = items.filter(item => "count" in item.dataset && matches(item)).length;
  document.querySelector("output").textContent = total + " mentions and links in " + documents + " documents";
  for (const button of bar.querySelectorAll("button"))
    button.setAttribute("aria-pressed", filters[button.dataset.key].has(button.value));
}
function save() {
  const parts = Object.keys(filters).filter(key => filters[key].size)
    .map(key => key + "=" + [...filters[key]].map(encodeURIComponent).join(","));
  history.replaceState(null, "", "#" + parts.join("&"));
}
for (const key in counts) {
  const line = document.createElement("div");
  line.append(Object.assign(document.createElement("b"), { textContent: key === "kind" ? "outcome" : key }));
  for (const [value, count] of [...counts[key]].sort((a, b) => b[1] - a[1])) {
    const button = document.createElement("button");
    button.value = value; button.dataset.key = key;
    button.textContent = (key === "kind" ? names.get(value) : value) + " " + count;
    button.addEventListener("click", () => {
      if (!filters[key].delete(value)) filters[key].add(value);
      apply(); save();
    });
    line.append(button);
  }
  bar.append(line);
}
for (const part of location.hash.slice(1).split("&")) {
  const [key, values] = part.split("=");
  if (!(key in filters) || !values) continue;
  for (const value of values.split(",")) filters[key].add(decodeURIComponent(value));
}
apply();
</script>
"""

_HEADINGS: Final = ("mention", "outcome", "cause", "type", "gold", "link", "rejected candidates")


class _Row(NamedTuple):
    """An outcome as it is drawn."""

    outcome: LinkOutcome
    start: int
    end: int
    cause: str
    type: str
    link: Link | None


def report_head(title: str) -> str:
    """Return what a report begins with; nothing that its texts name is loaded from elsewhere."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    head = page_head(title, _STYLE)
    guarded = head.replace(
        "<title>", f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<title>', 1
    )
    return f"{guarded}<h1>{escape_xml(title)}</h1>\n<nav><output></output></nav>\n"


REPORT_FOOT: Final = _SCRIPT + FOOT
"""What a report ends with."""


def report_section(
    gold: GoldDocument,
    linked: LinkedDocument,
    outcomes: Sequence[LinkOutcome],
    facts: EntityFacts,
    describe: Describe,
) -> Iterator[str]:
    """Yield the part of a report that shows a document.

    Args:
        gold: document with its gold mentions.
        linked: links of the system.
        outcomes: outcomes of its mentions and links, as `document_outcomes` gives them.
        facts: names and types of entities, which causes depend on.
        describe: function that tells what a candidate means.
    """
    rows = _rows(gold, linked, outcomes, facts)
    errors = [row for row in rows if row.outcome.kind not in CORRECT_KINDS]
    heading = f"{gold.document.id} · {len(errors)} of {len(rows)} outcomes are errors"
    yield f'<section>\n<h2>{escape_xml(heading)}</h2>\n<div class="text">'
    yield from _marked_text(gold.document.text, rows)
    yield "</div>\n"
    if errors:
        yield '<table class="errors"><thead><tr>'
        yield "".join(f"<th>{heading}</th>" for heading in _HEADINGS)
        yield "</tr></thead><tbody>\n"
        for row in errors:
            yield _table_row(row, gold.document.text, facts.page, describe)
        yield "</tbody></table>\n"
    yield "</section>\n"


def _rows(
    gold: GoldDocument, linked: LinkedDocument, outcomes: Sequence[LinkOutcome], facts: EntityFacts
) -> list[_Row]:
    """Return a row for each span: that of a gold mention and a link on it is the gold mention's."""
    links = {(link.start, link.end): link for link in linked.links}
    types = dict(zip(((label.start, label.end) for label in gold.gold), gold.types or (), strict=False))
    rows = []
    for outcome in outcomes:
        if outcome.kind == "link_wrong" or (
            outcome.kind == "nil" and outcome.link is not None and outcome.link.entity is not None
        ):
            continue
        label = outcome.gold or outcome.link
        assert label is not None
        span = label.start, label.end
        link = links.get(span)
        surface, type_name = gold.document.text[label.start : label.end], types.get(span, "")
        cause: str = CORRECT
        if outcome.kind not in CORRECT_KINDS:
            priors = {facts.page(row.entity): row.prior for row in (link.candidates if link else ())}
            cause = error_cause(outcome, surface, facts, type=type_name, priors=priors)
        entity = label.entity if label.entity is not None else link.entity if link else None
        type_name = type_name or (facts.type_of(entity) if entity is not None else "")
        rows.append(_Row(outcome, *span, cause, type_name or NO_TYPE, link))
    return sorted(rows, key=lambda row: (row.start, row.end))


def _attributes(row: _Row, *, counts: bool) -> str:
    """Return the attributes that filters read; of the elements of an outcome, a single one counts."""
    values = {
        "kind": row.outcome.kind, "cause": row.cause, "type": row.type, "name": KINDS[row.outcome.kind],
    }  # fmt: skip
    pairs = "".join(f' data-{name}="{escape_xml(value)}"' for name, value in values.items())
    return pairs + (" data-count" if counts else "")


def _marked_text(text: str, rows: Sequence[_Row]) -> Iterator[str]:
    """Yield the text with marks; of overlapping outcomes one has a mark, a correct one or a mention first."""
    marked: list[tuple[int, int, _Row]] = []
    order = {kind: number for number, kind in enumerate(KINDS)}
    for row in sorted(rows, key=lambda row: order[row.outcome.kind]):
        index = bisect_left(marked, (row.start,))
        before, after = marked[index - 1 : index] if index else [], marked[index : index + 1]
        if all(end <= row.start for _, end, _ in before) and all(row.end <= start for start, _, _ in after):
            marked.insert(index, (row.start, row.end, row))
    at = 0
    for start, end, row in marked:
        yield escape_xml(text[at:start])
        kind, is_correct = row.outcome.kind, row.cause == CORRECT
        label = row.outcome.gold or row.outcome.link
        entity = label.entity if label is not None else None
        title = f"{KINDS[kind]}: {entity or 'NIL'}"
        yield f'<mark class="{kind}" title="{escape_xml(title)}"{_attributes(row, counts=is_correct)}>'
        yield f"{escape_xml(text[start:end])}</mark>"
        at = end
    yield escape_xml(text[at:])


def _table_row(row: _Row, text: str, page: Callable[[str], str], describe: Describe) -> str:
    outcome = row.outcome
    entities = () if outcome.gold is None else outcome.gold.entities
    answer = row.link.entity if row.link is not None else None
    gold_cell = "" if outcome.gold is None else " or ".join(entities) or "NIL"
    link_cell = "" if row.link is None else f"{answer or 'NIL'} ({row.link.score:.2f})"
    cells = (text[row.start : row.end], KINDS[outcome.kind], row.cause, row.type, gold_cell, link_cell)
    rejected = [] if row.link is None else [each for each in row.link.candidates if each.entity != answer]
    shown = _shown_candidates(rejected, set(map(page, entities)), page)
    table = candidate_table(shown, describe)
    details = f"<details><summary>{len(rejected)}</summary>{table}</details>" if table else ""
    columns = "".join(f"<td>{escape_xml(cell)}</td>" for cell in cells)
    return f"<tr{_attributes(row, counts=True)}>{columns}<td>{details}</td></tr>\n"


def _shown_candidates(
    rejected: Sequence[LinkCandidate], gold_pages: set[str], page: Callable[[str], str]
) -> list[LinkCandidate]:
    """Return the best candidates that were rejected, and gold entities that are others of them."""
    further = [each for each in rejected[MAX_CANDIDATES:] if page(each.entity) in gold_pages]
    return [*rejected[:MAX_CANDIDATES], *further]
