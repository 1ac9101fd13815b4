"""Loading a model and its tokenizer from a folder: the device, the errors, and silence.

All that transformers reads for kgkit is read here, and no program that lies in a folder is run: transformers
would ask on the terminal whether it may, and take the answer from standard input, where texts come.
"""

import logging
import math
import os
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kgkit.encoder.device import pick_device
from kgkit.encoder.folder import CONFIG, check_files, first_line, read_json, weight_files
from kgkit.encoder.tokenizing import ADVICE, check_length
from kgkit.encoder.weights import WeightFile, check_type, not_finite
from kgkit.errors import MissingExtra, NotThere, SourceError, UnknownName, UsageError

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_UNUSED: Final = "pooler"
"""The part of a BERT that stands behind the token vectors; many models are published without it."""

_TRUST: Final = "trust_remote_code"
"""An option that transformers names where it refuses to run a program."""

_MOST_PARTS: Final = 65_536
"""Layers, heads, labels … of a model: more than any encoder has."""

_LARGER: Final = 16
"""So many times may a model be larger than its weights, which may have 4 bits for each float32 …"""

_MOST_DRAWN: Final = 64_000_000
"""… and bytes of what is not in them: a pooler, or what a task needs."""

_LOADING: Final = threading.RLock()
"""Held while transformers loads a model, which replaces methods of its classes meanwhile: two threads would
restore each other's replacements, and no later model of the process would have its weights tied."""

_OF_CONFIG: Final = "Validation error for field"
"""The beginning of what transformers says of a config with a field of another type."""

_USUAL_LENGTH: Final = 512
_OTHERWISE: Final = frozenset(["electra", "funnel"])  # their pretraining guesses no words


def check_folder(folder: Path) -> None:
    """Make sure that *folder* holds an encoder, as far as files say that are not weights.

    Raises:
        UsageError: if the model is no encoder.
        NotThere: if the folder lacks a part.
        SourceError: if the config cannot be read.
    """
    config = read_json(_file_in(folder, CONFIG))
    if "model_type" not in config:
        raise SourceError("it names no model type, so it is no config of a transformer", path=folder / CONFIG)
    if config.get("is_encoder_decoder"):
        raise UsageError(f"{folder} holds an encoder with a decoder; kgkit takes encoders alone")
    files = weight_files(folder)
    if not files or not all(path.exists() for path in files):
        missing = next((path.name for path in files if not path.exists()), "model.safetensors")
        raise NotThere(f"{folder} has a {CONFIG} but no weights: there is no {missing}")
    check_files(folder)
    check_config(folder)


def load_parts(
    folder: Path, device: str, tokenizer: "PreTrainedTokenizerBase | None" = None
) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase]":
    """Return the model in *folder*, in float32 and ready to be asked, and its tokenizer if none is given.

    Raises:
        MissingExtra: if torch or transformers is not installed.
        UsageError: if there is no such device, or the model is no encoder.
        NotThere: if the folder lacks a part.
        SourceError: if a file of it cannot be read, or the weights are not those of the config.
    """
    check_installed()
    # oneDNN keeps a kernel for each shape of a batch, a thousand of them unless told otherwise: a gigabyte.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    where = pick_device(device)
    check_folder(folder)
    tokenizer = tokenizer or load_tokenizer(folder)
    return _model(folder, weight_files(folder)[0], where), tokenizer


def load_as(
    folder: Path, kind: str, device: str
) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase, frozenset[str]]":
    """Return the encoder in *folder* with what a class of transformers has on top of it, and its tokenizer.

    What is on top is drawn at random, from torch's generator, where the folder has none: the names of such
    parameters are returned too.

    Args:
        folder: folder of an encoder.
        kind: class of transformers, as `AutoModelForPreTraining`.
        device: name of the torch device.

    Raises: as `load_parts` does.
    """
    bare, tokenizer = load_parts(folder, "cpu")  # says what is wrong with a folder
    if kind == "AutoModel":
        encoder: Any = bare
        return encoder.to(pick_device(device)), tokenizer, frozenset()
    model: Any
    model, missing = pretrained(folder, kind, {"dtype": "float32"})
    return model.to(pick_device(device)).eval(), tokenizer, missing


def language_class(folder: Path) -> str:
    """Return the class of transformers that guesses words with an encoder, and next sentences if one does.

    Raises:
        UsageError: if there is none for encoders of its type.
    """
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        MODEL_FOR_PRETRAINING_MAPPING_NAMES,
    )

    kind = read_json(_file_in(folder, CONFIG)).get("model_type", "")
    if kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        raise UsageError(f"transformers has nothing that guesses words for encoders of the type {kind!r}")
    both = kind in MODEL_FOR_PRETRAINING_MAPPING_NAMES and kind not in _OTHERWISE
    return "AutoModelForPreTraining" if both else "AutoModelForMaskedLM"


def pretrained(
    folder: Path, kind: str, settings: Mapping[str, Any] | None = None
) -> "tuple[PreTrainedModel, frozenset[str]]":
    """Return the model in *folder* as a class of transformers, and the parameters that its files lack.

    Models that several threads ask for are loaded one after the other: see `_LOADING`.

    Args:
        folder: folder with `config.json` and weights, absolute.
        kind: class of transformers, as `AutoModelForPreTraining`.
        settings: settings of that class, as `{"num_labels": 3}`, and `dtype`.

    Raises:
        UnknownName: if transformers has no such class of models.
        UsageError: if the model needs a program of its own.
        SourceError: if its config asks for too much, or a weight is not finite.
        Exception: whatever the reader of the weights raises: safetensors, pickle and torch have their own.
    """
    kind_of_model = _model_class(kind)
    check_files(folder)
    with _LOADING, _without_programs(folder), quiet():
        _check_weights(folder, kind_of_model)
        model, report = kind_of_model.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            **(settings or {}),
        )
    _check_finite(folder, model)
    return model, frozenset(report["missing_keys"])


def _check_finite(folder: Path, model: "PreTrainedModel") -> None:
    """Make sure that all weights of a model are finite: attention reads NaN as 0, and answers look plausible.

    A sum is not finite where one of its numbers is not, and costs as much as reading them: 15 ms for the
    23 million of all-MiniLM-L6-v2, a tenth of what a test of each number does.

    Raises:
        SourceError: if one is not.
    """
    for name, tensor in model.state_dict().items():
        if not tensor.is_floating_point() or tensor.sum().isfinite():
            continue
        wrong = int((~tensor.isfinite()).sum())  # none, where a sum of large numbers overflows
        if wrong:
            raise not_finite(next(iter(weight_files(folder)), folder), name, wrong, tensor.numel())


def _check_weights(folder: Path, kind: Any) -> None:
    """Make sure that the weights of a model are such as its config asks for, before room is made for them.

    What its files lack is drawn at random, so a config of a few bytes could ask for terabytes. Whole numbers
    would be converted, and complex ones lose a half.

    Raises:
        SourceError: if the model is much larger than its weights, these are no floating point numbers, or the
            config cannot be read.
    """
    import torch
    from transformers import AutoConfig

    check_config(folder)
    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    with torch.device("meta"):  # where tensors take no memory
        auto = kind.__name__.startswith("AutoModel")
        model = kind.from_config(config, trust_remote_code=False) if auto else kind(config)
    size = sum(tensor.numel() * tensor.element_size() for tensor in (*model.parameters(), *model.buffers()))
    held = sum(tensor.stat().st_size for tensor in weight_files(folder) if tensor.is_file())
    if size > _LARGER * held + _MOST_DRAWN:
        raise SourceError(
            f"it asks for a model of {size / 1e6:,.0f} MB; the weights beside it have {held / 1e6:,.1f}",
            path=folder / CONFIG,
        )
    prefix = f"{getattr(model, 'base_model_prefix', '')}."
    own = {name.removeprefix(prefix) for name, part in model.state_dict().items() if part.is_floating_point()}
    for path in weight_files(folder):
        _check_types(path, own, prefix)


def _check_types(path: Path, floating: Collection[str], prefix: str) -> None:
    """Make sure that weights are floating point numbers in their file, where they are such in the model.

    Args:
        path: file of weights; an older one, a pickle, is not looked into.
        floating: names of the weights that are, without *prefix*.
        prefix: what names may begin with in the file or in the model.

    Raises:
        SourceError: if some are not. A file that cannot be read is left to who reads it.
    """
    if path.suffix != ".safetensors":
        return
    try:
        types = WeightFile(path).types
    except SourceError:
        return
    for name, kind in types.items():
        if name.removeprefix(prefix) in floating:
            check_type(path, name, kind)


def check_config(folder: Path) -> None:
    """Make sure that the numbers of a config are such as a model can have.

    Parts of a model are made one by one, so their number is bounded. Dropout of NaN is noticed by nothing
    until the model is trained.

    Raises:
        SourceError: if one is not, or the config cannot be read.
    """
    path = folder / CONFIG
    for name, number in read_json(path).items():
        if "dropout" in name and isinstance(number, str):
            raise SourceError(f"{name} is {number!r}; expected a probability, 0 to 1", path=path)
        if isinstance(number, bool) or not isinstance(number, int | float):
            continue
        if name.startswith(("num_", "n_")) and isinstance(number, int) and not 0 <= number <= _MOST_PARTS:
            raise SourceError(f"{name} is {number}; expected 0 to {_MOST_PARTS:,}", path=path)
        if "dropout" in name and not 0 <= number <= 1:
            raise SourceError(f"{name} is {number}; expected a probability, 0 to 1", path=path)
        if name.endswith("_eps") and not 0 <= number < math.inf:
            raise SourceError(f"{name} is {number}; expected a number of 0 or more", path=path)
        if math.isnan(number):
            raise SourceError(f"{name} is {number}; expected a number", path=path)


def _model_class(name: str) -> Any:
    """Return a class of transformers' models, or one that finds them, as `AutoModel`.

    Raises:
        UnknownName: if there is none.
    """
    import transformers

    model_class = getattr(transformers, name, None)
    is_model = isinstance(model_class, type) and (
        name.startswith("AutoModel") or issubclass(model_class, transformers.PreTrainedModel)
    )
    if not is_model:
        raise UnknownName("class of transformers' models", name, ("AutoModel", "BertModel", "…"))
    return model_class


@contextmanager
def _without_programs(folder: Path) -> Iterator[None]:
    """Say so where transformers refuses to run a program that lies in *folder*.

    Raises:
        UsageError: where it does.
    """
    try:
        yield
    except ValueError as error:
        if _TRUST not in str(error):
            raise
        raise UsageError(
            f"the model in {folder} needs a program of its own, which its files name (auto_map), and kgkit "
            "runs no program that comes with a model: take a model of a type that transformers knows"
        ) from error


def check_installed(hint: str = "") -> None:
    """Check that torch and transformers are there.

    Args:
        hint: why they are needed, if it is not plain.

    Raises:
        MissingExtra: if one is not.
    """
    for package in ("torch", "transformers"):
        try:
            __import__(package)
        except ImportError:
            raise MissingExtra(package, "train", hint) from None


def check_vocabulary(folder: Path, tokenizer: "Tokenizer", count: int, types: object) -> None:
    """Make sure that a model has an embedding for each id that its tokenizer gives.

    These are the ids of the vocabulary, added pieces among them, and those that the post-processor puts
    around a text and between two, with their types.

    Args:
        folder: folder of both.
        tokenizer: tokenizer that cuts no text.
        count: number of embeddings.
        types: number of types, if it has such.

    Raises:
        SourceError: if it has not: the first text with such a piece would end in an error of torch's.
    """
    path = folder / "tokenizer.json"
    ids: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
    pair = tokenizer.encode("a", "a")
    for encoding in (pair, tokenizer.encode("a")):
        for piece, number in zip(encoding.tokens, encoding.ids, strict=True):
            ids[piece] = max(number, ids.get(piece, 0))
    if max(ids.values(), default=-1) >= count:
        piece = max(ids, key=ids.__getitem__)
        raise SourceError(
            f"the word piece {piece!r} has the id {ids[piece]:,}; the model has {count:,} embeddings: "
            "the tokenizer belongs to another model",
            path=path,
        )
    if isinstance(types, int) and types > 1 and max(pair.type_ids, default=0) >= types:
        raise SourceError(
            f"pieces of the second of two texts have the type {max(pair.type_ids)}, the model has {types} "
            "types: the tokenizer belongs to another model",
            path=path,
        )


def length_limit(model: "PreTrainedModel", longest: int | None) -> int:
    """Return how many tokens the model can read, of which its tokenizer says *longest*, if anything."""
    limits = [longest] if longest else []
    positions = getattr(model.config, "max_position_embeddings", None)
    if isinstance(positions, int) and positions > 0:
        # RoBERTa and its like count positions from behind the padding token's id.
        table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
        padding = getattr(table, "padding_idx", None)
        limits.append(positions - (0 if padding is None else padding + 1))
    return min(limits, default=_USUAL_LENGTH)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep progress bars, warnings and load reports of transformers and huggingface_hub off the terminal."""
    import huggingface_hub.utils

    bars_of_hub: Any = huggingface_hub.utils
    hub = logging.getLogger("huggingface_hub")
    with ExitStack() as stack:
        if "transformers" in sys.modules:
            import transformers.utils.logging

            theirs: Any = transformers.utils.logging
            stack.callback(theirs.set_verbosity, theirs.get_verbosity())
            if theirs.is_progress_bar_enabled():
                stack.callback(theirs.enable_progress_bar)
            theirs.set_verbosity(logging.CRITICAL)
            theirs.disable_progress_bar()
        if not bars_of_hub.are_progress_bars_disabled():
            stack.callback(bars_of_hub.enable_progress_bars)
        stack.callback(hub.setLevel, hub.level)
        bars_of_hub.disable_progress_bars()
        hub.setLevel(logging.CRITICAL)
        yield


def _file_in(folder: Path, name: str) -> Path:
    if not (folder / name).exists():
        raise NotThere(f"{folder} is no encoder: it has no {name}")
    return folder / name


def load_tokenizer(folder: Path) -> "PreTrainedTokenizerBase":
    """Return the fast tokenizer in *folder*.

    Raises:
        NotThere: if there is none that can be read.
        SourceError: if the config beside it cannot be read.
        UsageError: if it needs a program of its own.
    """
    from transformers import AutoTokenizer

    check_files(folder)
    if (folder / CONFIG).exists():
        check_config(folder)  # the config is read for the tokenizer too
    try:
        with _without_programs(folder), quiet():
            tokenizer: Any = AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
    except UsageError:
        raise
    except Exception as error:  # it raises whatever the parser of the day raises
        if str(error).startswith(_OF_CONFIG):  # transformers reads the config first
            raise SourceError(" ".join(str(error).split()), path=folder / CONFIG) from error
        raise NotThere(
            f"{folder} has no tokenizer that can be read ({first_line(error)}): {ADVICE}"
        ) from error
    # Without its files, transformers makes one that knows its special tokens and no others.
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise NotThere(f"{folder} has no tokenizer: {ADVICE}")
    if not tokenizer.is_fast:
        raise NotThere(f"{folder} has no fast tokenizer: {ADVICE}")
    check_length(folder, tokenizer.model_max_length)
    return tokenizer  # type: ignore[no-any-return]


def _model(folder: Path, weights: Path, device: "torch.device") -> "PreTrainedModel":
    model: Any
    try:
        model, missing = pretrained(folder, "AutoModel", {"dtype": "float32"})
    except (UsageError, SourceError):
        raise
    except Exception as error:  # safetensors, pickle, torch: each has its own
        raise SourceError(
            f"cannot be loaded: {type(error).__name__}: {first_line(error)}", path=weights
        ) from error
    if absent := sorted(name for name in missing if _UNUSED not in name):
        raise SourceError(
            f"{len(absent)} parameters of the model are not in it, as {absent[0]!r}: these weights belong "
            "to another config",
            path=weights,
        )
    return model.to(device).eval()  # type: ignore[no-any-return]
