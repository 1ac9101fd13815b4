"""One text, or many, linked by one call."""

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Literal, TypedDict, Unpack, overload

from kgkit.kb import KnowledgeBase
from kgkit.linking.coherence import CoherenceConfig
from kgkit.linking.linker import Linker
from kgkit.linking.multi_kb import MultiKBLinker
from kgkit.linking.overlaps import Overlaps
from kgkit.types import Document, LinkedDocument

__all__ = ["link"]


LinkedKBs = str | KnowledgeBase | Mapping[str, str] | None
"""A knowledge base, or several by their names, with a model each."""


class LinkSettings(TypedDict, total=False):
    """The settings of `link`, which has their meanings and their defaults."""

    home: str | os.PathLike[str] | None
    model: str
    vectors: str | None
    device: str
    mentions: str | None
    coherence: Literal["graph"] | CoherenceConfig | None
    threshold: float | None
    nil: Literal["drop", "mark"]
    top_k: int
    max_candidates: int | None
    overlaps: Overlaps
    all_surfaces: bool
    explain: bool
    references: bool


@overload
def link(  # type: ignore[overload-overlap]  # a str is an iterable of str too
    text: str | Document,
    kb: LinkedKBs = None,
    **settings: Unpack[LinkSettings],
) -> LinkedDocument: ...
@overload
def link(
    text: Iterable[str | Document],
    kb: LinkedKBs = None,
    **settings: Unpack[LinkSettings],
) -> list[LinkedDocument]: ...
def link(
    text: str | Document | Iterable[str | Document],
    kb: LinkedKBs = None,
    *,
    home: str | os.PathLike[str] | None = None,
    model: str = "auto",
    vectors: str | None = None,
    device: str = "auto",
    mentions: str | None = None,
    coherence: Literal["graph"] | CoherenceConfig | None = None,
    threshold: float | None = None,
    nil: Literal["drop", "mark"] = "drop",
    top_k: int = 5,
    max_candidates: int | None = 30,
    overlaps: Overlaps = "longest",
    all_surfaces: bool = False,
    explain: bool = False,
    references: bool = False,
) -> LinkedDocument | list[LinkedDocument]:
    """Link a text, or several.

    Every call opens the knowledge base and the model. For call after call, or for more texts than fit into
    memory with their links, keep a `Linker`: it remembers what it has looked up, and `pipe` yields.

    Args:
        text: string of any length, or a `Document`; or several.
        kb: handle, `NAME`, `NAME@BUILD`, or None if there is one KB only. Or several: a mapping from their
            names to models, as `{"wordnet": "wsd-minilm", "aida": "auto"}`; links say which KB they are to.
        home: folder of knowledge bases and models; `KGKIT_HOME` or the platform's place unless given.
        model: name or folder of the model that scores candidates: `prior`, `gloss`, or a trained one
            (`kgkit.models()` lists them); `auto`: that of `$KGKIT_MODEL`, else the one trained last
            for the KB, else one that needs no training, see `kgkit.linking.auto`.
        vectors: name of the entities' vectors, for the models that take some; None: `text`.
        device: torch device of the models that have an encoder.
        mentions: name or folder of a tagger whose names are linked, or `kb` for the mentions that the
            KB's generator finds; None: those that the model was trained with, else the generator's.
        coherence: second stage, which weighs how well the links of a document agree: `graph`, or its
            settings; None: no such stage.
        threshold: least score, in [0, 1], of a link; below it a mention means nothing in the KB. None:
            the one that the model was trained with, else 0.
        nil: treatment of such a mention: it is left out (`drop`), or a link without an entity (`mark`).
        top_k: number of candidates that a link shows, the best.
        max_candidates: number of candidates of a mention that are scored, the likeliest; None for all.
        overlaps: treatment of mentions that overlap: the `longest` is scored alone, or all are, and
            all links stay (`keep`) or those of the highest score (`score`); see `kgkit.linking.overlaps`.
        all_surfaces: whether function words are mentions too, surfaces that are hardly ever links, and
            words in lower case that the KB writes with capitals only.
        explain: whether candidates have the parts of their scores, see `kgkit.linking.ScoreParts`.
        references: whether pronouns and shortened names are linked to what they refer to, by the rules of
            `kgkit.linking.references`.

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
    open_linker = partial(
        Linker.open, home=home, vectors=vectors, device=device, mentions=mentions, coherence=coherence,
        threshold=threshold, nil=nil, top_k=top_k, max_candidates=max_candidates, overlaps=overlaps,
        all_surfaces=all_surfaces, explain=explain,
    )  # fmt: skip
    with ExitStack() as stack:
        linkers = []
        for name, named_model in kb.items() if isinstance(kb, Mapping) else [(kb, model)]:
            linkers.append(open_linker(name, model=named_model))
            if linkers[-1].kb is not name:
                stack.enter_context(linkers[-1])
        linker = (
            linkers[0]
            if len(linkers) == 1 and not references
            else MultiKBLinker(linkers, references=references)
        )
        return next(linker(documents)) if alone else list(linker(documents))
