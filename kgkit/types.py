"""The records that flow through kgkit.

Knowledge comes in as `Entity`, `Attribute`, `Alias`, `Triple`, `Redirect` and `Form`,
many at once as `Aliases` and `Triples`, and of surfaces `Occurrences`; text flows as `Document`, `Mention`,
`Candidates`; links leave as `LinkedDocument`.

Offsets are Unicode code points of the text as given, end exclusive. All are
msgspec structs and compare by value; all but `Candidates`, which holds an
array, encode themselves.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.drawing.links import render
from kgkit.drawing.notebook import draw_entity, draw_link, draw_linked_document
from kgkit.errors import abbreviate
from kgkit.lazy import import_extra

if TYPE_CHECKING:
    import pandas

NO_SENSE: Final = 0xFFFFFFFF
"""The sense of a candidate that has none."""

LEAST_PRIOR: Final = 1e-6
"""The least prior of which a logarithm is taken: a prior of 0 makes a candidate unlikely, not impossible."""

CANDIDATE: Final = np.dtype([("entity", "<u4"), ("sense", "<u4"), ("prior", "<f4")])
"""One candidate, as the store has it and as `Candidates` gives it."""

Ids = NDArray[np.uint32]
Priors = NDArray[np.float32]
Matrix = NDArray[np.float32]
"""Vectors as rows, (N, D), or one, (D,)."""
Numbers = NDArray[np.int64]
"""Row numbers, positions, counts."""
Rows = NDArray[np.void]


class Progress(Protocol):
    """Callback of whatever takes long: the stage of the work, how much of it is done, and of how much.

    *total* is 0 where it is not known.
    """

    def __call__(self, stage: str, completed: int, total: int, /) -> None:
        """Take notice; what it raises ends the work."""
        ...


_WORDS: Final = re.compile(r"[^\W_]+")


def shows_label(key: str, label: str) -> bool:
    """Say whether *key* has a word of *label*, as `Avon_(Bristol)` of `River Avon`; `Q308` has none."""
    words, words_of_key = ({*_WORDS.findall(text.casefold())} for text in (label, key))
    return not words.isdisjoint(words_of_key)


class Entity(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A thing a text can mean.

    msgspec encodes it as an array, as the store holds it; `to_dict` gives names.

    Attributes:
        key: its stable name within the KB: `dog.n.01`, a page title.
        label: name as people write it.
        description: a definition, gloss or first paragraph.
        kind: sort of node in its KB: `synset`, `lemma`, `page`.
        pos: part of speech where the KB has one: `n`, `v`, `a`, `s`, `r`.
        types: names of what it is an instance of, in the KB's own words.
        attributes: further values that the source states, JSON-like.
        id: its dense integer in one build; -1 until a build has given it one.
    """

    key: str
    label: str = ""
    description: str = ""
    kind: str = ""
    pos: str = ""
    types: tuple[str, ...] = ()
    attributes: dict[str, Any] = {}
    id: int = -1

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, ready for JSON."""
        return msgspec.structs.asdict(self)

    def neighbors(
        self, kb: "Graph", relation: str | None = None, direction: Literal["out", "in", "both"] = "out"
    ) -> "list[Entity]":
        """Return the entities that stand beside this one, as `kb.neighbors(entity)` does.

        Args:
            kb: open knowledge base; an entity does not know its own.
            relation: name of the only relation; None for any.
            direction: `out`, where the entity is the subject; `in`, where it is the object; or `both`.

        Raises:
            UnknownEntity, UnknownName: if *kb* has no such entity, or relation.
        """
        return kb.neighbors(self, relation, direction)

    _repr_html_ = draw_entity


class Graph(Protocol):
    """The part of a knowledge base that `Entity.neighbors` asks."""

    def neighbors(
        self, entity: Entity, relation: str | None = None, direction: Literal["out", "in", "both"] = "out"
    ) -> list[Entity]:
        """Return the entities that stand beside *entity*."""
        ...


class Alias(msgspec.Struct, frozen=True, gc=False):
    """A surface form that can mean an entity.

    Attributes:
        surface: text as it is written.
        key: the entity (or a redirect to it).
        count: number of times that it was seen with this meaning; 0 where nobody counted.
        sense: key of the entity that stands for this very pairing, as a
            WordNet lemma sense does; None in most KBs.
    """

    surface: str
    key: str
    count: float = 0.0
    sense: str | None = None


class Triple(msgspec.Struct, frozen=True, gc=False):
    """A fact: the keys of two entities and the name of a relation."""

    subject: str
    relation: str
    object: str


class Redirect(msgspec.Struct, frozen=True, gc=False):
    """Another key of an entity: `source` is answered with `target`."""

    source: str
    target: str


class Form(msgspec.Struct, frozen=True, gc=False):
    """An irregular form: `surface` is an inflection of `lemma` as `pos`."""

    surface: str
    lemma: str
    pos: str


class Attribute(msgspec.Struct, frozen=True, gc=False):
    """Something more to say of an entity that is told elsewhere.

    Attributes:
        key: the entity (or a redirect to it).
        name: name of the attribute; told of one entity several times, its values make a list.
        value: a text.
        edge: whether a value that is the key of an entity makes a triple instead.
    """

    key: str
    name: str
    value: str
    edge: bool = False


class Occurrences(msgspec.Struct, frozen=True, gc=False):
    """How often a surface occurs in texts, and how often it is a link there.

    Attributes:
        surface: text as it is written; occurrences are added up by the folded surface.
        count: number of occurrences, as a link or not.
        linked: number of occurrences as the text of a link, at most *count*.
    """

    surface: str
    count: float
    linked: float


class Aliases(msgspec.Struct, frozen=True):
    """Many aliases at once: `(surface, key)` -> count."""

    counts: Mapping[tuple[str, str], float]


class Triples(msgspec.Struct, frozen=True):
    """Many facts at once: those of one subject by one relation."""

    subject: str
    relation: str
    objects: Sequence[str]


class BadRecord(msgspec.Struct, frozen=True, gc=False):
    """A line or row of a source that cannot be read, and is left out.

    Attributes:
        problem: sentence that says where it is and what is wrong with it.
    """

    problem: str


Single = Entity | Alias | Triple | Redirect | Form | Occurrences | BadRecord
"""What every engine, and an addition, takes in."""

Record = Single | Attribute | Aliases | Triples


class CandidateRow(NamedTuple):
    """One of `Candidates`, as the store has it; `KnowledgeBase.decode` gives entities.

    Attributes:
        id: id of the entity in this build.
        sense: id of the sense that matched, `NO_SENSE` for none.
        prior: p(entity | surface), in [0, 1].
    """

    id: int
    sense: int
    prior: float


class Candidates(msgspec.Struct, frozen=True, gc=False, eq=False):
    """What a mention may mean, best prior first.

    Shared between mentions: do not write to the arrays.

    Attributes:
        rows: (C,) of `CANDIDATE`: entity id, sense id, prior; the columns are
            also had as `ids`, `senses` and `priors`. Ids are those of one build.
        null: the prior of "none of these": 1 - link probability, where the KB has one, together with
            what the generator was asked for; else 0.
        link_probability: probability that an occurrence of the surface is a mention at all, which *null* has
            taken into account; 1 where nothing is known of it, or a mention was given.
    """

    rows: Rows
    null: float = 0.0
    link_probability: float = 1.0

    @property
    def ids(self) -> Ids:
        """(C,) uint32, entity ids."""
        return self.rows["entity"]

    @property
    def senses(self) -> Ids:
        """(C,) uint32, ids of the senses that matched, `NO_SENSE` for none."""
        return self.rows["sense"]

    @property
    def priors(self) -> Priors:
        """(C,) float32 in [0, 1], p(entity | surface); they and `null` sum to 1 unless the list was cut."""
        return self.rows["prior"]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[CandidateRow]:
        """Yield the candidates as named records, best first."""
        return map(CandidateRow._make, self.rows.tolist())

    def __getitem__(self, position: int) -> CandidateRow:
        """Return the candidate at a position; 0 is the best."""
        return CandidateRow._make(self.rows[position].item())

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Candidates)
            and np.array_equal(self.rows, other.rows)
            and self.null == other.null
            and self.link_probability == other.link_probability
        )

    def __hash__(self) -> int:
        return hash((self.rows.tobytes(), self.null, self.link_probability))


NO_CANDIDATES: Final = Candidates(np.empty(0, CANDIDATE))
"""What a surface means that nobody knows."""


class EntityRecord(msgspec.Struct, frozen=True, gc=False):
    """An entity, and what is said of it."""

    entity: Entity

    @property
    def key(self) -> str:
        """The key of the entity."""
        return self.entity.key

    @property
    def label(self) -> str:
        """The label of the entity."""
        return self.entity.label


class Candidate(EntityRecord, frozen=True, gc=False):
    """One candidate, decoded: the entity, the key of the sense that matched, the prior."""

    sense: str | None
    prior: float


class Neighbour(EntityRecord, frozen=True, gc=False):
    """An entity near another one, or near a vector; the score is the cosine, in [-1, 1]."""

    score: float


class Mention(msgspec.Struct, gc=False):
    """A span of text that may mean something.

    Attributes:
        start: first code point.
        end: one past the last code point.
        text: `document.text[start:end]`.
        candidates: candidates; None until a generator has looked.
        lemma: lemma given by data or a tagger; empty when unknown.
        pos: `n`, `v`, `a` or `r`; empty when unknown.
        id: the mention's name in its data set; empty when it has none.
    """

    start: int
    end: int
    text: str
    candidates: Candidates | None = None
    lemma: str = ""
    pos: str = ""
    id: str = ""


class Document(msgspec.Struct):
    """A text on its way through kgkit.

    Attributes:
        id: name of the document.
        text: the text; all offsets refer to it.
        sentences: `(start, end)` ranges, if known.
        tokens: `(start, end)` ranges, if known.
        mentions: mentions; None when nobody has looked for any.
    """

    id: str
    text: str
    sentences: list[tuple[int, int]] | None = None
    tokens: list[tuple[int, int]] | None = None
    mentions: list[Mention] | None = None


def mention_problem(text: str, mentions: Sequence[Mention]) -> str | None:
    """Return the problem of the first mention whose span is not one of *text*, or has another text there.

    Args:
        text: text of the document.
        mentions: mentions that somebody else has found in it.

    Returns:
        A sentence that counts mentions from 1; None if all are as they should be.
    """
    size = len(text)
    for number, mention in enumerate(mentions, start=1):
        start, end = mention.start, mention.end
        if not 0 <= start < end <= size:
            return (
                f"mention {number} spans {start} to {end}: expected a start and a greater end in the text, "
                f"0 to {size}"
            )
        if text[start:end] != mention.text:
            there, given = abbreviate(repr(text[start:end])), abbreviate(repr(mention.text))
            return (
                f"mention {number} spans {start} to {end}, which is {there} in the text, not {given}: "
                "offsets count Unicode code points, from 0"
            )
    return None


class LinkCandidate(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One row of a link's candidate list.

    `parts` are there where a linker explains its scores: see `kgkit.linking.scoring.ScoreParts`.
    """

    entity: str
    prior: float
    score: float
    sense: str | None = None
    label: str = ""
    parts: dict[str, float] | None = None


class Link(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A span and what it means; `entity` is None and `nil` true when nothing in the KB does.

    `ids` are identifiers of the entity elsewhere (`wikidata`, `page_id`, `sense_key`), as far as the KB has
    some, and `url` is its address on the web; without them, they are not written. `id` is that of a mention
    that was given with one; without it, it is not written. Links may share the list of their candidates, and
    their identifiers: do not write to them.
    """

    start: int
    end: int
    text: str
    kb: str
    entity: str | None
    sense: str | None
    label: str
    score: float
    nil: bool
    candidates: list[LinkCandidate]
    id: str = ""
    ids: dict[str, Any] = {}
    url: str = ""

    def __str__(self) -> str:
        """Return offsets, text, entity and score as a line, and the label where the key lacks it."""
        key = self.entity or "NIL"
        label = f" ({self.label})" if self.label and not shows_label(key, self.label) else ""
        return f"{self.start}:{self.end} {self.text} → {key}{label} {self.score:.2f}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, ready for JSON."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields

    _repr_html_ = draw_link


class LinkedDocument(msgspec.Struct, frozen=True):
    """A document with its links, in order of their start."""

    id: str
    text: str
    model: str
    links: list[Link]

    def __str__(self) -> str:
        """Return a line a link; `repr` has all that there is."""
        return "\n".join(map(str, self.links)) or "no links"

    def __iter__(self) -> Iterator[Link]:
        """Yield the links, in order of their start."""
        return iter(self.links)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, ready for JSON: what `kgkit link` writes as a line."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields

    def to_html(
        self,
        describe: Callable[[str], str] | None = None,
        type_of: Callable[[str], str] | None = None,
    ) -> str:
        """Return a page that shows the text with its links, as `kgkit.drawing.links.render` shows several.

        Args:
            describe: function that gives the meaning of an entity by its key, as `Linker.describe`; unless
                given, labels are all that is shown of candidates.
            type_of: function that gives the type of an entity by its key, as `Linker.type_of`; types have
                colors, and a legend, then.
        """
        if describe is not None and not callable(describe):
            raise TypeError(f"describe is {describe!r}, not a function; to_html returns the page as a text")
        return render([self], describe=describe, type_of=type_of)

    def to_frame(self) -> "pandas.DataFrame":
        """Return every link as a row of a pandas DataFrame, without its candidates.

        Raises:
            MissingExtra: if pandas is not installed.
        """
        columns = "start end text entity label score nil sense kb id ids url".split()
        rows = [[getattr(link, name) for name in columns] for link in self.links]
        frame: pandas.DataFrame = import_extra("pandas", "pandas").DataFrame(rows, columns=columns)
        return frame

    _repr_html_ = draw_linked_document
