"""An encoder from nothing: a vocabulary of word pieces, a shape, and weights that are drawn."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kgkit.building import text_lines
from kgkit.encoder.device import seeded_cpu
from kgkit.encoder.loading import quiet
from kgkit.errors import MissingExtra, SourceError, UsageError
from kgkit.ranges import check_range
from kgkit.versions import write_failures

_CAPITAL: Final = re.compile(r"[^\[<]*[A-Z]")
_SPECIAL: Final = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}


@dataclass(frozen=True, kw_only=True)
class EncoderShape:
    """How large a BERT is to be; the width between the two maps of a layer is 4 times *width*.

    Attributes:
        layers: transformer layers.
        width: numbers of a vector.
        heads: of attention; they divide *width*. None: one for each 64 numbers, as in BERT, or fewer.
        positions: word pieces that it can read, at most.

    Raises:
        UsageError: if a number is below 1, or the heads do not divide the width.
    """

    layers: int = 4
    width: int = 256
    heads: int | None = None
    positions: int = 512

    def __post_init__(self) -> None:
        check_range(self, "layers", "width", "heads", "positions", least=1)
        if self.width % self.attention_heads:
            raise UsageError(f"{self.heads} heads do not divide a width of {self.width}")

    @property
    def attention_heads(self) -> int:
        """Number of attention heads."""
        return self.heads or next(n for n in range(max(1, self.width // 64), 0, -1) if not self.width % n)


def fresh_encoder(folder: Path, vocabulary: Path, shape: EncoderShape, seed: int = 0) -> Path:
    """Write a BERT with random weights, and its tokenizer, to *folder*, and return it.

    Texts are lowercased, and lose their accents, unless the vocabulary has pieces with a capital.

    Args:
        folder: folder for its files, which is made if it is not there.
        vocabulary: file of a word piece a line, its number that of the line, as `vocab.txt` of BERT is.
        shape: shape of the encoder.
        seed: seed of the weights.

    Raises:
        MissingExtra: if torch or transformers is not installed.
        NotThere: if there is no such file.
        SourceError: if it lacks a special piece, or has a piece twice.
        WriteFailed: if the disk refuses.
    """
    try:
        import torch  # noqa: F401  # what is needed later is missed here
        from transformers import BertConfig, BertModel
    except ImportError as error:
        raise MissingExtra(error.name or "transformers", "train") from error
    pieces = read_vocabulary(vocabulary)
    config = BertConfig(
        vocab_size=max(pieces.values()) + 1, hidden_size=shape.width, num_hidden_layers=shape.layers,
        num_attention_heads=shape.attention_heads, intermediate_size=4 * shape.width,
        max_position_embeddings=shape.positions, pad_token_id=pieces["[PAD]"],
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    with write_failures(folder):
        with quiet(), seeded_cpu(seed):
            BertModel(config).save_pretrained(folder)
        _write_tokenizer(folder, pieces, shape)
    return folder


def read_vocabulary(path: Path) -> dict[str, int]:
    """Return the word pieces of a file, with their numbers.

    Raises: as `fresh_encoder` does.
    """
    pieces: dict[str, int] = {}
    for number, line in text_lines(path):
        piece = line.rstrip("\r\n")
        if piece in pieces:
            raise SourceError(
                f"the piece is that of line {pieces[piece] + 1} too", path=path, line=number, text=line
            )
        pieces[piece] = number - 1
    if missing := [piece for piece in _SPECIAL.values() if piece not in pieces]:
        raise SourceError(f"no vocabulary of BERT: it lacks {', '.join(missing)}", path=path)
    return pieces


def _write_tokenizer(folder: Path, pieces: dict[str, int], shape: EncoderShape) -> None:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordPiece(pieces, unk_token="[UNK]"))
    is_cased = any(_CAPITAL.match(piece) for piece in pieces)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=not is_cased)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    ends = [(piece, pieces[piece]) for piece in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = processors.BertProcessing(*ends)
    fast: Any = PreTrainedTokenizerFast
    tokenizer_files = fast(tokenizer_object=tokenizer, model_max_length=shape.positions, **_SPECIAL)
    tokenizer_files.save_pretrained(folder)
