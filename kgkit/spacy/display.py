"""Links of a spaCy `Doc` as displaCy draws them.

    displacy.render(displacy_data(doc), style="ent", manual=True)

Links lead to the addresses that the knowledge base has of its entities, or to those of `url`. Drawn from a
`Doc` itself, a link has a web address by the option `kb_url_template` only, which puts keys into it as they
are. A key is escaped here, both as text and as a part of an address.
"""

from typing import Any, Final
from urllib.parse import quote

from kgkit.errors import NotThere, UsageError
from kgkit.spacy.component import url_at
from kgkit.text import escape_xml

_NO_ADDRESS: Final = "#"


def displacy_data(doc: Any, spans_key: str = "kgkit", *, url: str | None = None) -> dict[str, Any]:
    """Return the links of a document as a dictionary that displaCy renders with `manual=True`.

    Args:
        doc: document of spaCy that the component `kgkit_linker` has linked.
        spans_key: key of the links in `doc.spans`.
        url: web address of an entity, with `{}` for its key; None: the addresses that the knowledge base has
            of its entities, and none without such.

    Returns:
        A dictionary for the styles `ent` and `span`: `ents`, of which none overlaps another, and `spans`,
        each with `kb_id` and `kb_url`; `text`, `tokens`, `title` and `settings`.

    Raises:
        NotThere: if the document has no such group of spans.
        UsageError: if *url* has no `{}`.
    """
    if spans_key not in doc.spans:
        keys = ", ".join(sorted(doc.spans)) or "none"
        raise NotThere(f"the document has no spans {spans_key!r}; there are: {keys}")
    if url is not None and "{}" not in url:
        raise UsageError(f"url is {url!r}; it needs '{{}}' where the key of the entity stands")
    group = doc.spans[spans_key]
    spans = [
        {
            "start": span.start_char,
            "end": span.end_char,
            "start_token": span.start,
            "end_token": span.end,
            "label": span.label_,
            "kb_id": escape_xml(span.kb_id_),
            "kb_url": escape_xml(
                (url_at(group, index) or _NO_ADDRESS)
                if url is None
                else url.replace("{}", quote(span.kb_id_, safe=""))
            ),
        }
        for index, span in enumerate(group)
    ]
    ents: list[dict[str, Any]] = []
    for span in spans:
        if not ents or span["start"] >= ents[-1]["end"]:
            ents.append(dict(span))  # displaCy writes into those of the style `span`
    return {
        "text": doc.text,
        "ents": ents,
        "spans": spans,
        "tokens": [token.text for token in doc],
        "title": doc.user_data.get("title"),
        "settings": {"lang": doc.lang_, "direction": doc.vocab.writing_system.get("direction", "ltr")},
    }
