"""What the folder of an encoder says without being loaded.

    config.json                      of the model
    model.safetensors                weights; or shards with an index; or pytorch_model.bin
    tokenizer.json, …
    modules.json                     of sentence-transformers: what makes one vector of a text, in steps
    sentence_bert_config.json        … the length at which texts are cut
    1_Pooling/config.json            … how token vectors become one

The last three are optional: without them a text's vector is the mean over its tokens. A file may be a link to
one, as in the cache of huggingface_hub; a link to a device or a pipe is refused, as it may never end.
"""

import json
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Literal

from kgkit.errors import SourceError, UsageError

CONFIG: Final = "config.json"
ENCODER: Final = "encoder"
"""The folder of an encoder inside of that of a head, or of a trained model, which has it with it."""

WEIGHTS: Final = ("model.safetensors", "model.safetensors.index.json")
OLD_WEIGHTS: Final = ("pytorch_model.bin", "pytorch_model.bin.index.json")

FLOATS: Final = frozenset(["F16", "BF16", "F32", "F64"])
"""The floating point types of weights, by safetensors' names; those of 8 bits cannot be computed with."""

Pooling = Literal["mean", "cls", "max"]
POOLINGS: Final = ("mean", "cls", "max")

_STEPS: Final = ("Transformer", "Pooling", "Normalize")
_LONGEST_JSON: Final = 256_000_000
"""Bytes of a file of settings, or of a tokenizer: more than the largest vocabularies take."""

_SAMPLES: Final = 64  # places of a file of weights that its fingerprint looks at …
_SAMPLE: Final = 4_096  # … and bytes at each


@dataclass(frozen=True, kw_only=True)
class SentenceSettings:
    """How a model makes one vector of a text, as sentence-transformers writes it.

    Attributes:
        pooling: mean over the tokens, the first token's vector, or the greatest number of each column.
        max_length: tokens at which a text is cut; None: as the model can.
        lowercase: whether texts are lowercased first.
    """

    pooling: Pooling = "mean"
    max_length: int | None = None
    lowercase: bool = False


def sentence_settings(folder: Path) -> SentenceSettings:
    """Return what *folder* says of the vector of a text.

    Raises:
        UsageError: if it makes vectors in a way that kgkit does not know.
        SourceError: if a file of it cannot be read.
    """
    pooling: Pooling = "mean"
    if (folder / "modules.json").exists():
        for step in _steps(folder / "modules.json"):
            kind = str(step.get("type", "")).rpartition(".")[2]
            if kind not in _STEPS:
                raise UsageError(
                    f"the encoder in {folder} makes its vectors with a step {kind!r}; kgkit knows "
                    f"{', '.join(_STEPS)}"
                )
            if kind == "Pooling":
                pooling = _pooling(folder / str(step.get("path", "")) / CONFIG)
    path = folder / "sentence_bert_config.json"
    settings = read_json(path) if path.exists() else {}
    longest = settings.get("max_seq_length")
    return SentenceSettings(
        pooling=pooling,
        max_length=longest if isinstance(longest, int) and longest > 0 else None,
        lowercase=bool(settings.get("do_lower_case")),
    )


def settings_files(folder: Path) -> dict[Path, bytes]:
    """Return the files of *folder* that say how the vector of a text is made, by their paths in it."""
    paths = folder / "modules.json", folder / "sentence_bert_config.json", *folder.glob(f"*_Pooling/{CONFIG}")
    return {path.relative_to(folder): path.read_bytes() for path in paths if path.is_file()}


def _steps(path: Path) -> list[dict[str, Any]]:
    steps = _json(path)
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise SourceError("expected a list of steps", path=path)
    return steps


def _pooling(path: Path) -> Pooling:
    config = read_json(path)
    modes = config.get("pooling_mode")
    if modes is None:  # as it was written before sentence-transformers 5
        names = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max"}
        modes = [
            names.get(key.removeprefix("pooling_mode_"), key)
            for key, on in config.items()
            if key.startswith("pooling_mode_") and on
        ]
    modes = list(modes) if isinstance(modes, list) else [modes]
    for pooling in POOLINGS:
        if modes == [pooling]:
            return pooling
    raise UsageError(
        f"{path} asks for pooling by {', '.join(map(str, modes))}; kgkit knows {', '.join(POOLINGS)}"
    )


def weight_files(folder: Path) -> list[Path]:
    """Return the files that hold the weights, in order; none if there are none."""
    for single, index in (WEIGHTS, OLD_WEIGHTS):
        if (folder / single).exists():
            return [folder / single]
        if (folder / index).exists():
            shards = read_json(folder / index).get("weight_map", {})
            if not isinstance(shards, dict) or not all(isinstance(shard, str) for shard in shards.values()):
                raise SourceError("its weight_map names no files", path=folder / index)
            return [folder / str(shard) for shard in sorted(set(shards.values()))]
    return []


def fingerprint(folder: Path) -> str:
    """Return a digest that tells two encoders apart, without reading all of their weights.

    It covers the small files that decide the vectors, and of each file of
    weights its size and samples from its beginning (the header, in safetensors) to
    its end: a training step changes them all.
    """
    digest = blake2b(digest_size=8)
    for name in (CONFIG, "tokenizer.json", "vocab.txt", "modules.json", "sentence_bert_config.json"):
        path = folder / name
        digest.update(_bytes(path) if path.exists() else b"-")
    for path in sorted(folder.glob(f"*_Pooling/{CONFIG}")):
        digest.update(_bytes(path))
    for path in weight_files(folder):
        size = path.stat().st_size
        digest.update(size.to_bytes(8, "little"))
        with path.open("rb") as weights:
            for number in range(_SAMPLES + 1):
                weights.seek(max(0, size - _SAMPLE) * number // _SAMPLES)
                digest.update(weights.read(_SAMPLE))
    return digest.hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in *path*.

    Raises:
        SourceError: if it cannot be read as one.
    """
    content = _json(path)
    if not isinstance(content, dict):
        raise SourceError("expected a JSON object", path=path)
    return content


def check_files(folder: Path) -> None:
    """Make sure that what lies in a folder are files and folders, or links to such.

    Raises:
        SourceError: if something is a device or a pipe: who reads it might read for ever.
    """
    for path in folder.iterdir():
        if path.exists() and not path.is_file() and not path.is_dir():
            raise SourceError("is a device or a pipe, or a link to one; expected a file", path=path)


def _bytes(path: Path) -> bytes:
    """Return what is in a small file.

    Raises:
        SourceError: if it is no file, or a large one.
        OSError: if it cannot be read.
    """
    if path.exists() and not path.is_file():
        raise SourceError("is a folder, a device or a pipe; expected a file", path=path)
    if (size := path.stat().st_size) > _LONGEST_JSON:
        raise SourceError(f"has {size:,} bytes; expected {_LONGEST_JSON:,} at most", path=path)
    return path.read_bytes()


def _json(path: Path) -> Any:
    try:
        return json.loads(_bytes(path))
    except (OSError, ValueError, RecursionError) as error:  # brackets in brackets, a hundred thousand deep
        raise SourceError(f"cannot be read as JSON: {first_line(error)}", path=path) from error


def first_line(error: BaseException) -> str:
    """Return the first line of what *error* says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
