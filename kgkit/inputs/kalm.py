"""Words as KALM reads them: how texts are cut, the vocabulary, the vocabularies of types, P(type | word).

    V  words of the vocabulary    K  types; type 0 is that of general words

A text is read as one sequence of words; `<eos>` stands before it and behind each of its sentences. Words that
the vocabulary lacks are `<unk>`. Words are cut in one of two styles:

    cased     what white space separates, in its case: for text whose tokens stand apart, as CoNLL-2003's
    recipe    letters and digits in small letters; punctuation separates, and goes: after Parvez et al. (2018)

The vocabulary has the words of the training texts and those of the types of a knowledge base. A word with a
type is not among the general words. P(type | word) is that of the
counts of a knowledge base of types, in this very spelling (a look-up folds case, and *will* and *may* become
names), or in small letters where texts are read so. Of a word without a type it is 1 for type 0. A word with
types has a share of type 0 where another knowledge base counts it in other spellings too: WordNet's *may*
beside *May*. A tagger leaves that share out where a capital inside of a sentence says that the word is not
the other spelling (docs/decisions/kalm-case-prior.md).

With open names, a word with a capital that the knowledge base lacks may be of any type, so that its contexts
type it: it is in every vocabulary, and its prior is uniform. Capitals of the first word of a sentence, and of
sentences all in capitals, are no evidence; nor are those of function words, and of words that the texts have
more often without. `<Unk>` stands for such words in texts that are read later.

Batches come in two ways:

    B  rows    T  words that a row reads    S  words that it predicts    N  words of the whole sequence

Stretches: a model from left to right reads the sequence divided into B rows side by side, a stretch of each
at a time, and carries its states from one to the next. Each word but the first is predicted once; S = T.

    row 0   w0 w1 w2 │ w3 w4 w5 │ …          reads w0 w1 w2, predicts w1 w2 w3
    row 1   w9 …     │          │

Windows: a model of both directions reads windows that overlap, and carries nothing. It predicts the inner
words of each, so each word but the first and the last is predicted once; S = T − 2.

Departures:
    AWD-LSTM's code draws the length of each stretch, and scales the learning rate by it. Here the ends of
    stretches are moved by up to a tenth of one, so that an epoch has as many batches as any other.
    AWD-LSTM's code leaves out words that do not fill the rows; here they are read.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.building.records import StoredRecords
from kgkit.candidates.spelling import FUNCTION_WORDS
from kgkit.errors import DamagedModel, UsageError
from kgkit.evaluation.plain_text import check_plain, read_sentences
from kgkit.inputs.windows import Window, windows
from kgkit.kb import KnowledgeBase
from kgkit.text import fold
from kgkit.types import Numbers

if TYPE_CHECKING:
    import torch
    from torch import Tensor

UNKNOWN: Final = "<unk>"
UNKNOWN_NAME: Final = "<Unk>"
END: Final = "<eos>"

WordStyle = Literal["cased", "recipe"]

_WORD: Final[Mapping[str, re.Pattern[str]]] = {
    "cased": re.compile(r"\S+"),
    "recipe": re.compile(r"[^\W_]+"),
}


def word_spans(text: str, style: WordStyle) -> list[tuple[int, int]]:
    """Return the spans of the words of a text, end exclusive."""
    return [match.span() for match in _WORD[style].finditer(text)]


def spell_word(word: str, style: WordStyle) -> str:
    """Return a word as the vocabulary has it: of recipes in small letters."""
    return word.lower() if style == "recipe" else word


def cut_words(text: str, style: WordStyle) -> list[str]:
    """Return the words of a text.

    Examples:
        >>> cut_words("Mix 1/2 cup", "cased"), cut_words("Mix 1/2 cup", "recipe")
        (['Mix', '1/2', 'cup'], ['mix', '1', '2', 'cup'])
    """
    return [spell_word(text[start:end], style) for start, end in word_spans(text, style)]


def read_words(path: Path, style: WordStyle) -> Iterator[list[str]]:
    """Yield the words of each sentence of a file of plain text.

    Raises:
        NotThere, SourceError, UsageError: as `check_plain` and `read_sentences` do.
    """
    check_plain(path)
    for sentence in read_sentences(path):
        if words := cut_words(sentence.text, style):
            yield words


def may_be_names(words: Sequence[str]) -> list[bool]:
    """Return which words of a sentence have a capital that says something: see open names, above.

    Examples:
        >>> may_be_names("The Kremlin and I said so".split())
        [False, True, False, False, False, False]
    """
    if " ".join(words).isupper():
        return [False] * len(words)
    return [
        bool(number) and word[:1].isupper() and word not in FUNCTION_WORDS and word != "I"
        for number, word in enumerate(words)
    ]


class TypeCounts(NamedTuple):
    """What a knowledge base says of the types of words.

    Attributes:
        types: K names.
        counts: count of each type of a word, by word and type.
        general: count of what a word means beside its types, by word.
    """

    types: tuple[str, ...]
    counts: Mapping[str, Mapping[str, float]]
    general: Mapping[str, float]


def count_types(
    kb: KnowledgeBase, senses: KnowledgeBase | None = None, style: WordStyle = "cased"
) -> TypeCounts:
    """Return the counts of the types of words in a knowledge base, as the builder `type_vocabulary` makes it.

    Args:
        kb: knowledge base whose entities are types, with words as surfaces.
        senses: knowledge base with other senses of these words: what it counts of them in other spellings is
            of no type; None: no word with a type has a share of type 0.
        style: how the words are spelled: as the knowledge base has them, or in small letters.

    Raises:
        UsageError: if *kb* has other entities than types.
    """
    types = tuple(sorted(entity.key for entity in kb))
    if not types or any(entity.kind != "type" for entity in kb):
        raise UsageError(
            f"the knowledge base {kb.name} has entities that are no types of words: "
            f"`kgkit build-kb type_vocabulary kb:{kb.name}` makes one of it"
        )
    counts: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    spellings: dict[str, set[str]] = defaultdict(set)
    for surface, key, count in _weights(kb):
        if count > 0 and not re.search(r"\s", surface):
            word = spell_word(surface, style)
            counts[word][key] += count
            spellings[word] |= {word, surface}
    general: dict[str, float] = defaultdict(float)
    if senses is not None:
        by_fold = defaultdict(list)
        for word in counts:
            by_fold[fold(word)].append(word)
        for surface, _, count in _weights(senses):
            for word in by_fold.get(fold(surface), ()):
                if surface not in spellings[word]:
                    general[word] += count
    return TypeCounts(types, counts, general)


def _weights(kb: KnowledgeBase) -> Iterator[tuple[str, str, float]]:
    """Yield surfaces, keys of entities and their counts, smoothed as the knowledge base does."""
    smoothing = kb.manifest.smoothing
    for alias in StoredRecords(kb).aliases():
        yield alias.surface, alias.key, alias.count + smoothing


def count_typed_words(words: Iterable[str], types: TypeCounts) -> tuple[int, int]:
    """Return how many words have a type, as they are spelled and in any capitals, function words aside.

    Args:
        words: distinct words.
        types: types of words.

    Examples:
        >>> count_typed_words(["Oslo", "is"], TypeCounts(("LOC",), {"oslo": {"LOC": 1.0}}, {}))
        (0, 1)
    """
    content = [word for word in words if fold(word) not in FUNCTION_WORDS]
    in_any_case = {fold(word) for word in types.counts}
    exact = sum(word in types.counts for word in content)
    return exact, sum(fold(word) in in_any_case for word in content)


@dataclass(frozen=True)
class TypedVocabulary:
    """The words that a KALM knows, with the types that they may have.

    Attributes:
        words: V words, `<unk>` and `<eos>` first.
        types: K names.
        members: (1 + K, V) bool, the words of each type.
        prior: (V, 1 + K) float32, P(type | word).
        style: how texts are cut.
    """

    words: Sequence[str]
    types: tuple[str, ...]
    members: NDArray[np.bool_]
    prior: NDArray[np.float32]
    style: WordStyle
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ids", {word: number for number, word in enumerate(self.words)})

    def __len__(self) -> int:
        return len(self.words)

    @property
    def end(self) -> int:
        """The id of `<eos>`."""
        return self._ids[END]

    @property
    def unknown(self) -> int:
        """The id of `<unk>`."""
        return self._ids[UNKNOWN]

    @property
    def all_unknown(self) -> list[int]:
        """The ids that stand for words that are unknown: `<unk>`, with open names `<Unk>` too."""
        return [self._ids[word] for word in (UNKNOWN, UNKNOWN_NAME) if word in self._ids]

    def ids(self, words: Sequence[str]) -> list[int]:
        """Return the ids of the words of a sentence as they are spelled."""
        ids, unknown = [self._ids.get(word) for word in words], self.unknown
        name = self._ids.get(UNKNOWN_NAME, unknown)
        if None not in ids:
            names = [False] * len(ids)
        else:
            names = may_be_names(words)
        return [
            (name if is_name else unknown) if number is None else number
            for number, is_name in zip(ids, names, strict=True)
        ]

    def keeps_whole(self, word: str) -> bool:
        """Say whether a word that `kgkit.text` would cut is one word here, as *Al-Ain* or *U.S.*.

        It is if the vocabulary has it, but punctuation at its ends belongs to a word with types alone, since
        texts may have been learnt from whose words touch their punctuation.
        """
        number = self._ids.get(word)
        if number is None:
            return False
        if word[0].isalnum() and word[-1].isalnum():
            return True
        has_types = self.members[1:, number]
        is_open = len(has_types) > 1 and has_types.all()  # an open name is of every type
        return bool(has_types.any()) and not is_open

    def read(self, paths: Iterable[Path]) -> Numbers:
        """Return (N,), the words of files of plain text, `<eos>` first and behind each sentence.

        Raises:
            NotThere, SourceError, UsageError: as `read_words` does.
        """
        sequence = [self.end]
        for path in paths:
            for sentence in read_words(path, self.style):
                sequence += self.ids(sentence)
                sequence.append(self.end)
        return np.array(sequence, np.int64)

    def prior_of(self, words: Numbers, is_capital: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return P(type | word), (N, 1 + K), of words in a text.

        Args:
            words: (N,) words.
            is_capital: (N,) whether a word has a capital that says something, as `may_be_names` has it: a
                word that has types then has no share of type 0, which is that of other spellings.
        """
        prior = self.prior[words]
        # The prior of a word of any type, as open names have it, is uniform, and says nothing of it.
        is_open = self.members[:, words].all(0) & (prior == prior[:, :1]).all(-1)
        chosen = is_capital & (prior[:, 0] < 1) & ~is_open
        prior[chosen, 0] = 0
        prior[chosen] /= prior[chosen].sum(-1, keepdims=True)
        return prior

    def save(self, path: Path) -> None:
        """Write the words to a file, one a line."""
        path.write_text("".join(f"{word}\n" for word in self.words), encoding="utf-8", newline="\n")


def make_vocabulary(
    sentences: Iterable[Sequence[str]],
    types: TypeCounts | None,
    *,
    style: WordStyle,
    open_names: bool = False,
    min_count: int = 1,
) -> TypedVocabulary:
    """Return the vocabulary of texts and of the types of a knowledge base.

    Args:
        sentences: words of the sentences of the texts.
        types: types of words; None: there are none, as of an AWD-LSTM.
        style: how the texts were cut.
        open_names: whether words with a capital that the knowledge base lacks may be of any type.
        min_count: occurrences of a word without a type in the texts, below which it is unknown.

    Raises:
        UsageError: if a type has no word.
    """
    counted, capitals = Counter[str](), set[str]()
    for sentence in sentences:
        counted.update(sentence)
        if open_names:
            capitals.update(compress(sentence, may_be_names(sentence)))
    names = () if types is None else types.types
    counts: Mapping[str, Mapping[str, float]] = {} if types is None else types.counts
    special = (UNKNOWN, END, UNKNOWN_NAME) if open_names else (UNKNOWN, END)
    any_type = {word for word in capitals if counted[word] >= counted[word.lower()]}
    frequent = [
        word
        for word, count in counted.most_common()
        if count >= min_count and word not in counts and word not in special
    ]
    general = [word for word in frequent if word not in any_type]
    typed = sorted(
        (word for word in counts if word not in special), key=lambda word: (sorted(counts[word]), word)
    )
    of_any_type = [*special[2:], *(word for word in frequent if word in any_type)]
    words = [*special[:2], *general, *of_any_type, *typed]
    members = np.zeros((1 + len(names), len(words)), np.bool_)
    prior = np.zeros((len(words), 1 + len(names)), np.float32)
    plain = 2 + len(general)
    members[0, :plain], prior[:plain, 0] = True, 1.0
    begin = plain + len(of_any_type)
    members[:, plain:begin], prior[plain:begin] = True, 1 / (1 + len(names))
    for number, word in enumerate(typed, begin):
        assert types is not None
        weights = np.array([types.general.get(word, 0.0), *(counts[word].get(name, 0.0) for name in names)])
        members[1:, number] = weights[1:] > 0
        prior[number] = weights / weights.sum()
    if empty := [name for name, row in zip(names, members[1:], strict=True) if not row.any()]:
        raise UsageError(f"the type {empty[0]} has no word: leave it out of the knowledge base")
    return TypedVocabulary(words, names, members, prior, style)


def control_vocabulary(vocabulary: TypedVocabulary) -> TypedVocabulary:
    """Return the same words without types, as an AWD-LSTM has them, so that perplexities compare."""
    count = len(vocabulary)
    members, prior = np.ones((1, count), np.bool_), np.ones((count, 1), np.float32)
    return TypedVocabulary(vocabulary.words, (), members, prior, vocabulary.style)


def load_words(path: Path, count: int) -> list[str]:
    """Return the words that `TypedVocabulary.save` wrote.

    Args:
        path: file of the words.
        count: V, as the model has it.

    Raises:
        DamagedModel: if these are not that many words, each once, or `<unk>` or `<eos>` is lacking.
    """
    text = ""
    with suppress(OSError, UnicodeDecodeError):
        text = path.read_bytes().decode("utf-8")
    words = text.split("\n")[:-1]
    if len(words) != count or len({*words}) != count or not {UNKNOWN, END} <= {*words}:
        raise DamagedModel(
            f"{path} has {len(words):,} words; expected {count:,}, each once, with {UNKNOWN} and {END}"
        )
    return words


_MOVED = 10  # a part in so many of a stretch is what its end is moved by


class WordBatch(NamedTuple):
    """Words that are read, and those that are predicted.

    Attributes:
        words: (B, T) int64.
        lengths: (B,) int64, words of each row.
        targets: (B, S) int64.
        real: (B, S) bool, which of them are to be predicted.
        first: whether the states begin anew here.
    """

    words: "Tensor"
    lengths: "Tensor"
    targets: "Tensor"
    real: "Tensor"
    first: bool = True

    def to(self, device: "torch.device", **_: object) -> "WordBatch":
        """Return it on a device."""
        words, lengths, targets, real = (part.to(device) for part in self[:4])
        return WordBatch(words, lengths, targets, real, self.first)


class Stretches:
    """The batches of a sequence in rows, for a model that carries its states: see `Batches`.

    Args:
        sequence: (N,) words.
        rows: B, at most.
        length: words of a stretch.
        seed: seed of what the ends of stretches are moved by in an epoch; None: they stay.
    """

    def __init__(self, sequence: Numbers, rows: int, length: int, seed: int | None = None) -> None:
        import torch

        count = max(len(sequence) - 1, 0)  # words that are predicted
        self.rows, self.length, self.seed = max(1, min(rows, count)), length, seed
        self.width = -(-count // self.rows)  # words of a row
        size = self.rows * self.width + 1
        padded = torch.from_numpy(np.pad(sequence, (0, size - len(sequence)), mode="edge"))
        self.read = padded[:-1].view(self.rows, self.width)
        self.targets = padded[1:].view(self.rows, self.width)
        self.real = (torch.arange(size - 1) < count).view(self.rows, self.width)

    def __len__(self) -> int:
        return -(-self.width // self.length)

    def epoch(self, number: int, indices: Sequence[int]) -> Iterator[WordBatch]:
        """Yield the stretches at *indices* of an epoch, in their order."""
        import torch

        ends = np.arange(1, len(self)) * self.length
        if self.seed is not None:
            most = self.length // _MOVED
            ends = ends + np.random.default_rng([self.seed, number]).integers(-most, most + 1, len(ends))
        cuts = [0, *np.minimum(ends, self.width - 1).tolist(), self.width]
        for index in indices:
            part = slice(cuts[index], cuts[index + 1])
            words = self.read[:, part]
            lengths = torch.full((self.rows,), words.shape[1])
            yield WordBatch(words, lengths, self.targets[:, part], self.real[:, part], first=index == 0)


def word_windows(count: int, *, length: int, context: int) -> list[Window]:
    """Return the windows of a sequence for a model of both directions; each has three words at least.

    Args:
        count: N.
        length: words of a window, at most.
        context: words on each side that are read for the others' sake.
    """
    if count < 3:
        return []
    every = windows(count, (), size=length, context=context)
    # The first word alone, or the last one, is not predicted.
    return [window for window in every if window.own < count - 1 and window.own_end > 1]


def window_batch(sequences: Sequence[Numbers], parts: Sequence[Window]) -> WordBatch:
    """Return windows as a batch, each of a sequence (N,) of its own."""
    import torch

    lengths = [part.end - part.begin for part in parts]
    words = np.zeros((len(parts), max(lengths)), np.int64)
    real = np.zeros(words.shape, np.bool_)
    for row, (sequence, part) in enumerate(zip(sequences, parts, strict=True)):
        words[row, : lengths[row]] = sequence[part.begin : part.end]
        real[row, part.own - part.begin : part.own_end - part.begin] = True
        real[row, [0, lengths[row] - 1]] = False
    read, predicted = torch.from_numpy(words), torch.from_numpy(real)
    return WordBatch(read, torch.tensor(lengths), read[:, 1:-1], predicted[:, 1:-1])
