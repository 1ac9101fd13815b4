"""What KnowBert reads: a text, or a pair, as word pieces, and the mentions that knowledge bases know in it.

    B  texts of a batch    T  word pieces of one         M  mentions of one in a knowledge base
    C  candidates          U  entities of a batch, once  D  their width

A batch holds the vectors of its own entities alone, taken from where they are mapped: a knowledge base of
millions of entities needs no more of the device than a small one.
"""

import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.candidates import Generator
from kgkit.encoder import Encoder
from kgkit.errors import StaleModel, UsageError
from kgkit.inputs.linking import Matrix, Sentence, padded_once
from kgkit.inputs.pieces import Numbers, Tokens
from kgkit.inputs.windows import windows
from kgkit.kb import KnowledgeBase
from kgkit.kb.nearest import ancestry
from kgkit.types import NO_CANDIDATES, Candidates, Document, Ids
from kgkit.vectors.scan import unit

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from kgkit.heads.entity_linker import LinkerInputs
    from kgkit.vectors import Vectors
    from kgkit.vectors.layout import VectorsManifest

_log = logging.getLogger(__name__)

SIZE: Final = 128
"""Word pieces of a text, special ones included, as most are in the paper."""

_ELSEWHERE: Final = frozenset(["encoder", "device", "dtype", "batch_tokens", "chunk"])
"""Settings that say where and in which pieces an encoder made vectors; which it was, says its fingerprint."""
_AT_ONCE: Final = 256  # texts that a generator of candidates sees together


@dataclass(frozen=True)
class Knowledge:
    """A knowledge base as KnowBert reads it.

    Where its entities have parts of speech, these stand behind their vectors, a one among zeros: the map that
    KnowBert learns of stored vectors so has a row for each of them.

    Attributes:
        generator: finds mentions, and gives each at most as many candidates as are wanted (30 as published).
        vectors: of entities; those of several kinds are joined, as TuckER's and those of glosses are.
    """

    generator: Generator
    vectors: "tuple[Vectors, ...]"

    @property
    def width(self) -> int:
        """D: numbers in a vector, and parts of speech."""
        return sum(one.width for one in self.vectors) + len(self._kb.store.classes)

    @property
    def _kb(self) -> KnowledgeBase:
        return self.generator.kb

    @property
    def about(self) -> dict[str, str]:
        """Say which vectors of which build these are: `KB@BUILD/NAME`, and a digest of how they are made."""
        told = [one.manifest for one in self.vectors]
        return {f"{one.kb}@{one.build}/{one.name}": _way(one) for one in told}

    def continues(self, about: Mapping[str, str]) -> bool:
        """Say whether these are the vectors told of, or those of a build that only adds to theirs.

        A model has no parameters for single entities: it knows how their vectors are made. So entities that
        come with `kgkit kb add`, and vectors for them (`kgkit embed --update`), need no training.
        """
        builds = ancestry(self._kb)
        own = [(_name(one), way) for one, way in self.about.items()]
        return own == [(_name(one), way) for one, way in about.items()] and all(
            _build(one) in builds for one in about
        )

    def gather(self, ids: Ids) -> Matrix:
        """Return (R, D), each kind with a mean square of 1; zeros where an entity has none."""
        parts = [unit(one.gather(ids)) * np.float32(np.sqrt(one.width)) for one in self.vectors]
        if count := len(self._kb.store.classes):
            which = self._kb.classes_of(ids)  # (R,), 0 for none
            table = np.eye(count + 1, dtype=np.float32)[:, 1:] * np.float32(np.sqrt(count))
            parts.append(table[which])
        return np.concatenate(parts, axis=1)


class Known(NamedTuple):
    """The mentions of a text in a knowledge base.

    Attributes:
        spans: (M, 2) their word pieces, end exclusive.
        candidates: of each.
        masked: (M,) bool, which have the entity [MASK] in the place of their candidates.
        places: (M,) which of the document's mentions they are.
    """

    spans: Numbers
    candidates: list[Candidates]
    masked: NDArray[np.bool_]
    places: Numbers


class Text(NamedTuple):
    """A text, or a pair, as it is read.

    Attributes:
        ids: (T,) word pieces, special ones included.
        types: (T,) which of the pair's texts each is of, as the encoder counts them.
        special: (T,) bool, which are special ones.
        known: by the name of a knowledge base, the mentions in it.
    """

    ids: Numbers
    types: Numbers
    special: NDArray[np.bool_]
    known: dict[str, Known]


class Batch(NamedTuple):
    """What a KnowBert is called with: `knowbert(batch.knowledge, **batch.inputs)`.

    Attributes:
        inputs: `input_ids`, `attention_mask` and, if the encoder takes them, `token_type_ids`, (B, T) int64.
        knowledge: by the name of a knowledge base, what its linker reads.
    """

    inputs: "dict[str, Tensor]"
    knowledge: "dict[str, LinkerInputs]"

    def to(self, device: "torch.device", **_: object) -> "Batch":
        """Return it on a device."""
        return Batch(
            {name: one.to(device) for name, one in self.inputs.items()},
            {name: one.to(device) for name, one in self.knowledge.items()},
        )


class KnowBertReader:
    """Gives a KnowBert texts to read.

    Args:
        encoder: whose tokenizer cuts them.
        knowledge: its knowledge bases, by name.
        size: word pieces of a text, special ones included; what is longer is cut, the longer of a pair first,
            and said once.

    Raises:
        UsageError: if the encoder reads fewer pieces, or there is no room for any.

    Example:
        >>> wordnet = Knowledge(LemmaGenerator(kb), (kb.vectors("tucker"), kb.vectors("text")))
        >>> reader = KnowBertReader(encoder, {"wordnet": wordnet})
        >>> batch = reader.batch([*reader([("The dog barks.",), ("A premise.", "A hypothesis.")])])
        >>> knowbert(batch.knowledge, **batch.inputs).model.last_hidden_state.shape
        torch.Size([2, 10, 384])
    """

    def __init__(self, encoder: Encoder, knowledge: Mapping[str, Knowledge], *, size: int = SIZE) -> None:
        self.tokens = Tokens(encoder.tokenizer, lowercase=encoder.settings.lowercase)
        self.knowledge, self.size = dict(knowledge), size
        self.padding = encoder.tokenizer.pad_token_id or 0
        self.typed = getattr(encoder.model.config, "type_vocab_size", 0) > 1
        self._cut = False
        least = sum(map(len, (self.tokens.before, self.tokens.between, self.tokens.after))) + 2
        if not least <= size <= encoder.window:
            raise UsageError(f"texts of {size} pieces; {encoder.name} reads {least} to {encoder.window}")

    def room(self, texts: int) -> int:
        """Return how many word pieces there is room for, in a text or in both of a pair."""
        tokens = self.tokens
        return self.size - len(tokens.before) - len(tokens.after) - (texts - 1) * len(tokens.between)

    def check(self, trained_with: Mapping[str, Mapping[str, str]]) -> None:
        """Make sure that a model knows these knowledge bases, by what it was trained with.

        Raises:
            UsageError: if one of them is not among these.
            StaleModel: if one is another build that does not only add to that, or has other vectors.
        """
        for name, told in trained_with.items():
            if name not in self.knowledge:
                raise UsageError(f"the model was trained with the knowledge base {name}: name it too")
            here = self.knowledge[name]
            if not here.continues(told):
                raise StaleModel(
                    f"the model was trained with {_said(told)}; here is {_said(here.about)}: open the build "
                    "that it was trained with (KB@BUILD), or one made of it by `kgkit kb add`, with vectors "
                    "that were made alike; or train it again"
                )

    def __call__(self, texts: Iterable[tuple[str, ...]]) -> Iterator[Text]:
        """Yield each text, or pair, as it is read.

        Args:
            texts: tuples of one text, or of two.

        Raises:
            UsageError: if a tuple has more, or none.
        """
        source = iter(texts)
        while chunk := list(islice(source, _AT_ONCE)):
            if wrong := [len(one) for one in chunk if not 1 <= len(one) <= 2]:
                raise UsageError(f"a text or a pair of texts is read, not {wrong[0]} texts")
            flat = [Document("", text) for one in chunk for text in one]
            found = {name: iter(list(one.generator(iter(flat)))) for name, one in self.knowledge.items()}
            for one in chunk:
                yield self._read(one, {name: list(islice(some, len(one))) for name, some in found.items()})

    def stretches(
        self, document: Document, given: Mapping[str, Document], *, whole: Mapping[str, int] | None = None
    ) -> list[Text]:
        """Return a document of any length as it is read: nothing is left out of it.

        Sentences are kept whole and put together as long as there is room; mentions that a cut goes through
        are in none, unless *whole* asks for them.

        Args:
            document: its own mentions are not read.
            given: by the name of a knowledge base, the document with its mentions; they are sought where
                nothing is given.
            whole: by the name of a knowledge base, how many of its mentions, the first ones, are to be in a
                stretch. Behind the others come stretches with those that a cut goes through in the middle,
                and all else that lies there once more; a mention longer than a stretch is in none even so.
        """
        plain = Document(document.id, document.text, document.sentences)
        found = {
            name: given[name] if name in given else next(iter(one.generator(iter([plain]))))
            for name, one in self.knowledge.items()
        }
        pieces = self.tokens(document.text)
        room = self.room(1)
        begins = [pieces.within(*sentence)[0] for sentence in document.sentences or ()]
        ranges = {name: pieces.of(one.mentions or []) for name, one in found.items()}  # (M, 2)
        stretches = []
        parts = [(one.begin, one.end) for one in windows(len(pieces), begins, size=room, context=0)]
        cuts = [begin for begin, _ in parts]
        for name, count in (whole or {}).items():
            parts += _around(ranges[name][:count], cuts, len(pieces), room)
        for begin, end in parts:
            ids, special = self._framed([pieces.ids[begin:end]])
            known = {
                name: _within(ranges[name], one, begin, end, len(self.tokens.before))
                for name, one in found.items()
            }
            stretches.append(Text(ids, np.zeros(len(ids), np.int64), special, known))
        return stretches

    def batch(self, texts: Sequence[Text]) -> Batch:
        """Return texts padded to the longest."""
        import torch

        longest = max(len(one.ids) for one in texts)
        ids = np.full((len(texts), longest), self.padding, np.int64)
        types, mask = np.zeros_like(ids), np.zeros_like(ids)
        for row, one in enumerate(texts):
            ids[row, : len(one.ids)] = one.ids
            types[row, : len(one.ids)] = one.types
            mask[row, : len(one.ids)] = 1
        inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        if self.typed:
            inputs["token_type_ids"] = torch.from_numpy(types)
        knowledge = {
            name: _known([one.known[name] for one in texts], about) for name, about in self.knowledge.items()
        }
        return Batch(inputs, knowledge)

    def _read(self, texts: Sequence[str], found: Mapping[str, Sequence[Document]]) -> Text:
        pieces = [self.tokens(text) for text in texts]
        between = self.tokens.between if len(texts) > 1 else ()
        kept = _fitting([len(one) for one in pieces], self.room(len(texts)))
        if sum(kept) < sum(map(len, pieces)) and not self._cut:
            self._cut = True
            _log.warning("texts of more than %d word pieces are cut; this one has more", self.size)
        begins = [len(self.tokens.before), len(self.tokens.before) + kept[0] + len(between)]
        ids, special = self._framed([one.ids[:count] for one, count in zip(pieces, kept, strict=True)])
        types = np.zeros(len(ids), np.int64)
        if len(texts) > 1:
            types[begins[1] :] = self.tokens.second
        known = {
            name: _joined(
                [
                    _within(one.of(document.mentions or []), document, 0, count, begin)
                    for document, one, count, begin in zip(documents, pieces, kept, begins, strict=False)
                ]
            )
            for name, documents in found.items()
        }
        return Text(ids, types, special, known)

    def _framed(self, parts: Sequence[Numbers]) -> tuple[Numbers, NDArray[np.bool_]]:
        """Return one text, or two, with special pieces around them; and which are special."""
        tokens = self.tokens
        inside = [tokens.before, parts[0], *(part for one in parts[1:] for part in (tokens.between, one))]
        ids = [np.array(part, np.int64) for part in (*inside, tokens.after)]
        special = [np.full(len(part), place % 2 == 0) for place, part in enumerate(ids)]
        return np.concatenate(ids), np.concatenate(special)


def _way(manifest: "VectorsManifest") -> str:
    """Return a digest of how vectors are made, whatever build they are of."""
    left_out = {"taken_over"} | (_ELSEWHERE if "fingerprint" in manifest.config else set())
    config = {name: value for name, value in manifest.config.items() if name not in left_out}
    told = msgspec.json.encode([manifest.method, manifest.width, config], order="deterministic")
    return hashlib.blake2b(told, digest_size=6).hexdigest()


def _name(told: str) -> str:
    """Return `KB/NAME` of `KB@BUILD/NAME`."""
    kb, _, rest = told.partition("@")
    return f"{kb}/{rest.rpartition('/')[2]}"


def _build(told: str) -> str:
    """Return `BUILD` of `KB@BUILD/NAME`."""
    return told.partition("@")[2].rpartition("/")[0]


def _said(about: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({way})" for name, way in about.items())


def _fitting(lengths: Sequence[int], room: int) -> list[int]:
    """Return how many pieces of each text are kept: of a pair the longer is cut first."""
    if len(lengths) == 1:
        return [min(lengths[0], room)]
    first, second = lengths
    half = room // 2
    if first + second <= room:
        return [first, second]
    if first <= half:
        return [first, room - first]
    return [room - second, second] if second <= room - half else [half, room - half]


def _within(ranges: Numbers, document: Document, begin: int, end: int, shift: int) -> Known:
    """Return the mentions whose pieces (M, 2) lie from *begin* to *end*; *begin* stands at *shift*."""
    mentions = document.mentions or []
    there = (ranges[:, 0] < ranges[:, 1]) & (ranges[:, 0] >= begin) & (ranges[:, 1] <= end)
    places = np.flatnonzero(there)
    candidates = [mentions[place].candidates or NO_CANDIDATES for place in places.tolist()]
    return Known(ranges[places] - begin + shift, candidates, np.zeros(len(places), np.bool_), places)


def _around(ranges: Numbers, begins: Sequence[int], pieces: int, room: int) -> list[tuple[int, int]]:
    """Return parts of a document that hold the mentions (M, 2) that a cut goes through.

    Args:
        ranges: the word pieces of the mentions, end exclusive.
        begins: where the parts begin that the document has been cut into, ascending.
        pieces: how many the document has.
        room: how many a part has; mentions of more are left out.
    """
    first, last = ranges[:, 0], ranges[:, 1]
    part, part_of_last = (np.searchsorted(begins, one, side="right") for one in (first, last - 1))
    cut = (first < last) & (last - first <= room) & (part != part_of_last)  # (M,)
    found: list[tuple[int, int]] = []
    for begin, end in ranges[cut].tolist():
        if not found or begin < found[-1][0] or found[-1][1] < end:
            start = max(0, min(begin - (room - (end - begin)) // 2, pieces - room))
            found.append((start, start + room))
    return found


def _joined(parts: Sequence[Known]) -> Known:
    """Return the mentions of both texts of a pair together."""
    return Known(
        np.concatenate([one.spans for one in parts]),
        [candidates for one in parts for candidates in one.candidates],
        np.concatenate([one.masked for one in parts]),
        np.concatenate([one.places for one in parts]),
    )


def _known(texts: Sequence[Known], knowledge: Knowledge) -> "LinkerInputs":
    """Return what a linker reads of the mentions of B texts."""
    import torch

    sentences = [
        Sentence(
            np.arange(len(one.candidates)),
            [candidates.ids for candidates in one.candidates],
            [candidates.priors[:, None] for candidates in one.candidates],
        )
        for one in texts
    ]
    inputs = padded_once(sentences, knowledge.gather)
    shape = tuple(inputs.mentions.shape)
    spans, masked = np.zeros((*shape, 2), np.int64), np.zeros(shape, np.bool_)
    null = np.zeros((*shape, 1), np.float32)
    for row, one in enumerate(texts):
        count = len(one.candidates)
        spans[row, :count], masked[row, :count] = one.spans, one.masked
        null[row, :count, 0] = [candidates.null for candidates in one.candidates]
    return inputs._replace(
        spans=torch.from_numpy(spans),
        null_features=torch.from_numpy(null),
        masked=torch.from_numpy(masked) if masked.any() else None,
    )
