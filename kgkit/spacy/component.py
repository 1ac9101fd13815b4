"""The component `kgkit_linker` of a spaCy pipeline: a `Linker` that writes its links into a `Doc`.

    nlp.add_pipe("kgkit_linker", config={"kb": "wordnet", "model": "prior"})

spaCy finds it by the entry point of the group `spacy_factories`, and imports this module wherever a pipeline
is made: what takes long to load is imported when the first text is linked.

What a `Doc` has then:

    doc.spans["kgkit"]                        a span for each link: `kb_id_` is the entity, `label_` the KB
    doc.spans["kgkit"].attrs["scores"]        the score of each span
    doc.spans["kgkit"].attrs["candidates"]    of each span, rows of entity, score and prior, best first
    ent.kb_id_                                the entity of a span of `doc.ents` that is linked
    span._.kgkit                              the `Link` of a span, made from these

displaCy draws the links by `displacy.render(displacy_data(doc), style="ent", manual=True)`: they lead to the
addresses that the knowledge base has of its entities, or to those of `url`. Drawn from a `Doc` itself, a link
has a web address by the option `kb_url_template` only, which puts keys into it as they are.

The attribute `attrs` of the group has further lists of the same length, see `ATTRIBUTES`. A `Doc` is saved
with its groups; `span._.kgkit` is a getter and takes no room.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from inspect import Parameter, Signature
from itertools import repeat
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from kgkit.bounded_cache import BoundedCache
from kgkit.errors import MissingExtra, NotThere, UnknownName, UsageError
from kgkit.linking.settings import LinkSettings
from kgkit.spacy.record import PipelineRecord, decode_record, find_requirements, read_record
from kgkit.text import escape_xml
from kgkit.types import Document, Entity, Link, LinkCandidate, Mention
from kgkit.urls import UrlPattern, is_web_address

try:
    from spacy.attrs import IDX, LENGTH
    from spacy.language import Language
    from spacy.tokens import Span, SpanGroup
    from spacy.util import minibatch, raise_error
except ImportError as missing:
    raise MissingExtra("spacy", "spacy") from missing

if TYPE_CHECKING:
    from kgkit.linking.linker import Linker

NAME: Final = "kgkit_linker"
"""Name of the factory, and of the component unless it is given another."""

EXTENSION: Final = "kgkit"
"""Name of the getter of spans, and of the group of spans unless it is given another."""

MENTIONS: Final = ("ents", "surfaces", "both")
"""What can be linked: the entities of the `Doc`, the surfaces of the knowledge base that occur in it, or
both."""

SETTINGS: Final = ("model", "vectors", "device", "threshold", "top_k")
"""Settings of linking that a component has."""

ATTRIBUTES: Final = ("scores", "candidates", "labels", "senses")
"""Lists in the attributes of a group, an item for each span: the score; rows of entity, score and prior; the
name of the entity; the sense that matched, or None. Beside them there are `kb`, `model`, and `widened`:
index, start and end of each link that begins or ends within a token; and `url_pattern`, or `urls`, where the
knowledge base has addresses of its entities."""

_CACHE_BYTES: Final = 32_000_000


class LinkerComponent:
    """Component of a spaCy pipeline that links documents to a knowledge base.

    The knowledge base and the model are looked for when the component is made, and opened when the first
    document comes. A pipeline on disk, or pickled, keeps the names of the build and of the model.

    Args:
        name: name of the component in its pipeline.
        kb: `NAME`, `NAME@BUILD`, or None for the default or only knowledge base in `KGKIT_HOME`.
        mentions: spans that are linked, see `MENTIONS`. With `both`, a surface that overlaps an entity of the
            `Doc` is left out.
        spans_key: key of the group in `doc.spans`.
        settings: those of `kgkit.LinkSettings` that `SETTINGS` names; the model `auto` is chosen where the
            pipeline is used.

    Raises:
        NotThere: if the knowledge base, the model or the vectors are missing; names all that is.
        UsageError: if a setting is out of range.
    """

    def __init__(
        self,
        name: str = NAME,
        *,
        kb: str | None = None,
        mentions: str = "both",
        spans_key: str = EXTENSION,
        **settings: Any,
    ) -> None:
        if mentions not in MENTIONS:
            raise UnknownName("value of mentions", mentions, MENTIONS)
        if not spans_key:
            raise UsageError("spans_key is empty; it is the key of the links in doc.spans")
        if unknown := settings.keys() - {*SETTINGS}:
            raise TypeError(f"a LinkerComponent has no setting {min(unknown)!r}")
        self.name, self.mentions, self.spans_key = name, mentions, spans_key
        self.settings = LinkSettings(**settings)
        self.configured = kb
        self.kb = self._find(kb)
        self._linker: Linker | None = None
        self._rows = BoundedCache[int, tuple[Sequence[LinkCandidate], list[list[Any]]]](_CACHE_BYTES)
        self._error_handler: Callable[..., None] = raise_error
        Span.set_extension(EXTENSION, getter=link_of, force=True)

    def _find(self, kb: str | None) -> str:
        """Return `NAME@BUILD` of a knowledge base, if all that is needed with it is in the home."""
        settings = self.settings
        return find_requirements(
            f"the component {self.name!r}", kb, model=settings.model, vectors=settings.vectors
        )

    @property
    def linker(self) -> "Linker":
        """The linker, opened when it is first asked for."""
        if self._linker is None:
            from kgkit.linking.linker import Linker

            self._linker = Linker.open(self.kb, **vars(self.settings))
        return self._linker

    def close(self) -> None:
        """Close the knowledge base; a further document opens it again."""
        if self._linker is not None:
            self._linker.close()
            self._linker = None

    # -- documents ----------------------------------------------------------

    def __call__(self, doc: Any) -> Any:
        """Link a document, in place, and return it."""
        self._link([doc])
        return doc

    def pipe(self, stream: Iterable[Any], *, batch_size: int = 128) -> Iterator[Any]:
        """Link a stream of documents, in place, and yield them.

        Args:
            stream: documents.
            batch_size: number of documents that are linked together.
        """
        for batch in minibatch(stream, size=batch_size):
            docs = list(batch)
            try:
                self._link(docs)
            except Exception as error:  # noqa: BLE001 - spaCy's handler decides
                self._error_handler(self.name, self, docs, error)
            else:
                yield from docs

    def set_error_handler(self, error_handler: Callable[..., None]) -> None:
        """Set the function that takes documents that could not be linked; unless set, the error is raised.

        Args:
            error_handler: function of the component's name, itself, the documents and the error.
        """
        self._error_handler = error_handler

    def get_error_handler(self) -> Callable[..., None]:
        """Return the function that takes documents that could not be linked."""
        return self._error_handler

    def _link(self, docs: Sequence[Any]) -> None:
        linker = self.linker
        for doc, linked in zip(docs, linker(map(self._document, docs)), strict=True):
            self._write(doc, linked.links)

    def _document(self, doc: Any) -> Document:
        """Return what the linker reads of a document: its text, and the mentions that it comes with."""
        text = doc.text
        ents = doc.ents if self.mentions != "surfaces" else ()
        if self.mentions == "ents" or ents:
            mentions = [Mention(ent.start_char, ent.end_char, ent.text) for ent in ents]
            if self.mentions == "both":
                mentions = self._with_surfaces(text, mentions)
            return Document("", text, mentions=mentions)
        return Document("", text)

    def _with_surfaces(self, text: str, mentions: list[Mention]) -> list[Mention]:
        """Return the mentions, and the surfaces of the knowledge base that overlap none of them."""
        from kgkit.candidates import longest

        generated = next(iter(self.linker.generator([Document("", text)]))).mentions or []
        starts, ends = [mention.start for mention in mentions], [mention.end for mention in mentions]
        free = [
            surface
            for surface in generated
            if bisect_right(ends, surface.start) == bisect_left(starts, surface.end)
        ]
        return sorted([*mentions, *longest(free)], key=lambda mention: mention.start)

    def _write(self, doc: Any, links: Sequence[Link]) -> None:
        """Write links into a document: a group of spans, and the entities of `doc.ents`.

        A span begins with the token that the link begins in, and ends with the one that it ends in.
        """
        linker = self.linker
        add = doc.vocab.strings.add  # each time: what is added in a memory zone is gone after it
        label = add(linker.kb.name)
        kb_ids = [add(link.entity) for link in links]
        starts, ends = [link.start for link in links], [link.end for link in links]
        columns = doc.to_array([IDX, LENGTH])
        token_starts, token_ends = columns[:, 0].tolist(), columns.sum(axis=1).tolist()
        firsts = [bisect_right(token_starts, start) - 1 for start in starts]
        lasts = [bisect_left(token_ends, end) for end in ends]
        targets = list(zip(firsts, lasts, kb_ids, strict=True))
        widened = [
            [index, link.start, link.end]
            for index, (link, first, last) in enumerate(zip(links, firsts, lasts, strict=True))
            if token_starts[first] != link.start or token_ends[last] != link.end
        ]
        span_ids: Iterable[int | str] = _span_ids(targets) if widened else repeat(0, len(links))
        attrs = {
            "kb": self.kb,
            "model": linker.model,
            "scores": [link.score for link in links],
            "candidates": self._rows_of(links),
            "labels": [link.label for link in links],
            "senses": [link.sense for link in links],
            "widened": widened,
            **self._addresses(links),
        }
        group = SpanGroup(doc, name=self.spans_key, attrs=attrs)
        append = group.append  # span by span: the group copies each, and none is kept
        for (first, last, kb_id), span_id in zip(targets, span_ids, strict=True):
            append(Span(doc, first, last + 1, label, None, None, kb_id, span_id))
        doc.spans[self.spans_key] = group
        if ents := doc.ents:
            entities = {(first, last + 1): kb_id for first, last, kb_id in targets}
            for ent in ents:
                if kb_id := entities.get((ent.start, ent.end)):
                    for token in ent:
                        token.ent_kb_id = kb_id

    def _addresses(self, links: Sequence[Link]) -> dict[str, Any]:
        """Return what addresses of links can be made from: a pattern, or where that is not enough, all."""
        pattern = self.linker.kb.manifest.url_pattern
        if pattern and UrlPattern(pattern).field in ("key", "label"):
            return {"url_pattern": pattern}
        urls = [link.url for link in links]
        return {"urls": urls} if any(urls) else {}

    def _rows_of(self, links: Sequence[Link]) -> list[list[list[Any]]]:
        """Return the candidates of links as rows that msgpack writes.

        Mentions of the same candidates share their list, if a scorer reads nothing else: its rows are made
            once.
        """
        if not self.linker.scorer.by_mention:
            return [_rows(link.candidates) for link in links]
        shared = self._rows
        result = []
        for link in links:
            entry = shared.get(id(link.candidates))
            if entry is None:  # what is in it is alive, so no other has its id
                entry = shared.keep(id(link.candidates), (link.candidates, _rows(link.candidates)))
            result.append(entry[1])
        return result

    # -- on disk, in bytes, in another process -------------------------------

    @property
    def record(self) -> PipelineRecord:
        """What a saved pipeline keeps: the names of the build, of the model and of the vectors."""
        return PipelineRecord(self.configured, self.kb, self.settings.model, self.settings.vectors)

    def to_disk(self, path: str | Path, *, exclude: Sequence[str] = ()) -> None:
        """Write the record into a folder, which is made."""
        self.record.write(Path(path))

    def from_disk(self, path: str | Path, *, exclude: Sequence[str] = ()) -> "LinkerComponent":
        """Take the build of a record that `to_disk` has written; see `from_bytes`."""
        return self._restore(read_record(Path(path)))

    def to_bytes(self, *, exclude: Sequence[str] = ()) -> bytes:
        """Return the record."""
        return self.record.encode()

    def from_bytes(self, data: bytes, *, exclude: Sequence[str] = ()) -> "LinkerComponent":
        """Take the build of a record, where the configuration names the knowledge base as it did then.

        All else is as the configuration says: what is overridden where a pipeline is loaded is not undone
            here.

        Raises:
            NotThere: if the build is missing, or the model; names all that is.
            DamagedModel: if *data* is no record.
        """
        return self._restore(decode_record(data, f"what was saved of the component {self.name!r}"))

    def _restore(self, record: PipelineRecord) -> "LinkerComponent":
        build = record.build_for(self.configured)
        if build is not None and build != self.kb:
            self.close()
            self.kb = self._find(build)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        settings = {name: getattr(self.settings, name) for name in SETTINGS}
        settings |= {"kb": self.configured, "mentions": self.mentions, "spans_key": self.spans_key}
        return _make_with_build, (self.name, settings, self.kb)


def _make_with_build(name: str, settings: Mapping[str, Any], build: str) -> LinkerComponent:
    """Return a component of these settings that links to one build.

    Args:
        name: name of the component.
        settings: arguments of `LinkerComponent`.
        build: `NAME@BUILD`, whatever *settings* say.

    Raises:
        NotThere: if the build is missing, or the model; names all that is.
    """
    component = LinkerComponent(name, **{**settings, "kb": build})
    component.configured = settings["kb"]
    return component


def make_component(nlp: Any, name: str, **settings: Any) -> LinkerComponent:
    """Return the component for a pipeline; the factory `kgkit_linker`.

    The pipeline's `meta` keeps the record too, so that one that is loaded where the knowledge base is
    missing can say which build it was.

    Args:
        nlp: pipeline.
        name: name of the component in it.
        settings: arguments of `LinkerComponent`.
    """
    records = nlp.meta.setdefault(EXTENSION, {})
    try:
        component = LinkerComponent(name, **settings)
    except (NotThere, UsageError):
        record = _saved_record(records, name)
        if record is None or record.model != settings["model"]:
            raise
        if (build := record.build_for(settings["kb"])) is None:
            raise
        component = _make_with_build(name, settings, build)
    records[name] = msgspec.to_builtins(component.record)
    return component


def _saved_record(records: Any, name: str) -> PipelineRecord | None:
    """Return the record of a component that the `meta` of a pipeline has; None where it has none."""
    try:
        return msgspec.convert(records[name], PipelineRecord)
    except (LookupError, TypeError, msgspec.ValidationError):
        return None


def link_of(span: Any) -> Link | None:
    """Return the link of a span of a document, with what the attributes of its group say of it.

    This is `span._.kgkit`. The links of a `Doc` that was read from a file can be had by it too, without the
    component.

    Args:
        span: span of a group that the component has written, or of `doc.ents`.

    Returns:
        The link, whose candidates have entities, scores and priors; None where the span is none.
    """
    for group in span.doc.spans.values():
        lists = [group.attrs.get(name) for name in ATTRIBUTES]
        if not all(isinstance(values, list) and len(values) == len(group) for values in lists):
            continue  # a group of somebody else, or one that spans were added to
        matches = []
        index = bisect_left(group, span.start, key=attrgetter("start"))
        while index < len(group) and (other := group[index]).start == span.start:
            if other.end == span.end and other.kb_id == span.kb_id:
                matches.append((other.id != span.id, index))
            index += 1
        if matches:
            return _link_at(group, min(matches)[1])
    return None


def _rows(candidates: Sequence[LinkCandidate]) -> list[list[Any]]:
    """Return entity, score and prior of each candidate."""
    return [[candidate.entity, candidate.score, candidate.prior] for candidate in candidates]


def _link_at(group: Any, index: int) -> Link:
    """Return a link of a group."""
    span, attrs = group[index], group.attrs
    start, end, text = span.start_char, span.end_char, span.text
    for number, first, last in attrs["widened"]:
        if number == index:
            text = text[first - start : last - start]
            start, end = first, last
    candidates = [LinkCandidate(entity, prior, score) for entity, score, prior in attrs["candidates"][index]]
    return Link(
        start, end, text, span.label_, span.kb_id_, attrs["senses"][index],
        attrs["labels"][index], attrs["scores"][index], False, candidates, url=_url_at(group, index),
    )  # fmt: skip


def _url_at(group: Any, index: int) -> str:
    """Return the address on the web of the entity of a link, as the attributes of its group have it.

    Args:
        group: group of spans.
        index: index of the link in it.

    Returns:
        The address; empty if the knowledge base has none for it, or it is none of the web.
    """
    attrs, key = group.attrs, group[index].kb_id_
    labels, urls = (attrs.get(name) for name in ("labels", "urls"))
    url: Any = ""
    if isinstance(urls, list) and len(urls) == len(group):
        url = urls[index]
    elif isinstance(labels, list) and len(labels) == len(group):
        with suppress(ValueError, TypeError):  # of a document that was read from a file
            url = UrlPattern(attrs.get("url_pattern", "")).url(Entity(key, str(labels[index])))
    return url if isinstance(url, str) and is_web_address(url) else ""


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
                (_url_at(group, index) or "#")
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


def _span_ids(targets: Iterable[tuple[int, int, int]]) -> Iterator[str]:
    """Yield an identifier for the second and each further span of the same tokens and entity, else ""."""
    counts: Counter[tuple[int, int, int]] = Counter()
    for target in targets:
        yield str(counts[target] or "")
        counts[target] += 1


_COMPONENT: Final = {"kb": (str | None, None), "mentions": (str, "both"), "spans_key": (str, EXTENSION)}
_CONFIG: Final = _COMPONENT | {
    each.name: (each.type, each.default) for each in fields(LinkSettings) if each.name in SETTINGS
}

DEFAULTS: Final = {name: default for name, (_, default) in _CONFIG.items()}
"""The configuration of a component that is given none."""

_ARGUMENTS: Final = {"nlp": (Any, Parameter.empty), "name": (str, Parameter.empty)} | _CONFIG
setattr(  # noqa: B010 - spaCy reads names and types of the configuration there
    make_component,
    "__signature__",
    Signature(
        [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for name, (kind, default) in _ARGUMENTS.items()
        ]
    ),
)
Language.factory(NAME, default_config=DEFAULTS, assigns=["doc.spans", "token.ent_kb_id"], func=make_component)
