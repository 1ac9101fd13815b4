"""One text, or many, linked by one call."""

import os
from collections.abc import Iterable, Mapping
from typing import Unpack, overload

from kgkit.kb import KnowledgeBase
from kgkit.linking.multi_kb import MultiKBLinker
from kgkit.linking.settings import LinkArguments
from kgkit.types import Document, LinkedDocument

__all__ = ["link"]


LinkedKBs = str | KnowledgeBase | Mapping[str, str] | None
"""A knowledge base, or several by their names, with a model each."""


@overload
def link(  # type: ignore[overload-overlap]  # a str is an iterable of str too
    text: str | Document,
    kb: LinkedKBs = None,
    *,
    home: str | os.PathLike[str] | None = None,
    **settings: Unpack[LinkArguments],
) -> LinkedDocument: ...
@overload
def link(
    text: Iterable[str | Document],
    kb: LinkedKBs = None,
    *,
    home: str | os.PathLike[str] | None = None,
    **settings: Unpack[LinkArguments],
) -> list[LinkedDocument]: ...
def link(
    text: str | Document | Iterable[str | Document],
    kb: LinkedKBs = None,
    *,
    home: str | os.PathLike[str] | None = None,
    **settings: Unpack[LinkArguments],
) -> LinkedDocument | list[LinkedDocument]:
    """Link a text, or several.

    Every call opens the knowledge base and the model. For call after call, or for more texts than fit into
    memory with their links, keep a `Linker`: it remembers what it has looked up, and `pipe` yields.

    Args:
        text: string of any length, or a `Document`; or several.
        kb: handle, `NAME`, `NAME@BUILD`, or None if there is one KB only. Or several: a mapping from their
            names to models, as `{"wordnet": "wsd-minilm", "aida": "auto"}`; links say which KB they are to.
        home: folder of knowledge bases and models; `KGKIT_HOME` or the platform's place unless given.
        settings: settings, as in `LinkSettings`.

    Returns:
        The text with its links; for several texts, a list.

    Raises:
        NotThere: if there is no such KB, or what the model needs has not been made or installed.
        UnknownName: if there is no such model, or no such tagger.
        UsageError: if a setting is out of range.

    Examples:
        >>> linked = kgkit.link("The geese flew off.", kb="wordnet", model="prior")
        >>> [(link.text, link.entity) for link in linked.links]
        [('geese', 'goose.n.01'), ('flew off', 'fly.v.…')]
    """
    alone = isinstance(text, str | Document)
    if not alone and (isinstance(text, bytes | Mapping) or not isinstance(text, Iterable)):
        advice = "; read it first: PATH.read_text()" if isinstance(text, os.PathLike) else ""
        raise TypeError(f"a text is a str or a kgkit.Document, not {type(text).__name__}{advice}")
    documents = [text] if isinstance(text, str | Document) else text
    kbs = kb if isinstance(kb, Mapping) else [kb]
    with MultiKBLinker.open(kbs, home=home, **settings) as linker:
        return next(linker(documents)) if alone else list(linker(documents))
