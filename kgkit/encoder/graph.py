"""An encoder's computation as a graph of OpenVINO's, made from its config and its weights.

    n  texts    T  tokens of the longest    D  width    H  heads    L  layers

    ids (n, T) int64, mask (n, T) bool ──▶ outputs of some layers, joined (n, T, K · D) float32

It is made from `config.json` and files of safetensors alone, without torch or transformers. Architectures
differ in the names of their parameters and in how they number positions; their layers are alike. Types
that are not in `_KINDS`, and settings that are not built here, are left to transformers: `reason_against`
says why.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kgkit.encoder.folder import CONFIG, read_json, weight_files
from kgkit.encoder.weights import WeightFile
from kgkit.errors import SourceError
from kgkit.types import Matrix

_ACTIVATIONS: Final = {"gelu": "erf", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "relu": "relu"}

_BERT: Final = {
    "query": "attention.self.query", "key": "attention.self.key", "value": "attention.self.value",
    "out": "attention.output.dense", "out_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense", "down": "output.dense", "down_norm": "output.LayerNorm",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """Names and positions of an architecture.

    Attributes:
        prefix: what its parameters' names may begin with.
        layer: beginning of the names of a layer's parameters, with the layer's number for `{}`.
        parts: names of a layer's parts.
        after_padding: whether positions are counted from the padding piece's id, pieces alone.
        typed: whether it has segments, of which the first is added.
        projection: name of the map from the width of the embeddings to that of the layers.
        names: what settings are called that are called otherwise in BERT.
        defaults: settings that a config need not have.
    """

    prefix: str
    layer: str = "encoder.layer.{}."
    parts: Mapping[str, str]
    after_padding: bool = False
    typed: bool = True
    projection: str = ""
    names: Mapping[str, str]
    defaults: Mapping[str, Any]


def _kind(prefix: str, parts: Mapping[str, str] = _BERT, **rest: Any) -> _Kind:
    defaults = {
        "hidden_act": "gelu", "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "pad_token_id": 0,
        "type_vocab_size": 2, **rest.pop("defaults", {}),
    }  # fmt: skip
    return _Kind(prefix=prefix, parts=parts, names=rest.pop("names", {}), defaults=defaults, **rest)


_KINDS: Final = {
    "bert": _kind("bert."),
    "electra": _kind("electra.", projection="embeddings_project", defaults={"embedding_size": 128}),
    "roberta": _kind("roberta.", after_padding=True, defaults={"pad_token_id": 1}),
    "xlm-roberta": _kind("roberta.", after_padding=True, defaults={"pad_token_id": 1}),
    "mpnet": _kind(
        "mpnet.",
        {
            **_BERT, "query": "attention.attn.q", "key": "attention.attn.k", "value": "attention.attn.v",
            "out": "attention.attn.o", "out_norm": "attention.LayerNorm",
        },
        after_padding=True, typed=False, defaults={"pad_token_id": 1, "relative_attention_num_buckets": 32},
    ),
    "distilbert": _kind(
        "distilbert.",
        {
            "query": "attention.q_lin", "key": "attention.k_lin", "value": "attention.v_lin",
            "out": "attention.out_lin", "out_norm": "sa_layer_norm",
            "up": "ffn.lin1", "down": "ffn.lin2", "down_norm": "output_layer_norm",
        },
        layer="transformer.layer.{}.", typed=False,
        names={
            "hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers",
            "intermediate_size": "hidden_dim", "hidden_act": "activation",
        },
    ),
    "albert": _kind(
        "albert.",
        {
            "query": "attention.query", "key": "attention.key", "value": "attention.value",
            "out": "attention.dense", "out_norm": "attention.LayerNorm",
            "up": "ffn", "down": "ffn_output", "down_norm": "full_layer_layer_norm",
        },
        layer="encoder.albert_layer_groups.{}.albert_layers.0.",
        projection="encoder.embedding_hidden_mapping_in",
        defaults={
            "hidden_act": "gelu_new", "embedding_size": 128, "num_hidden_groups": 1, "inner_group_num": 1,
        },
    ),
}  # fmt: skip

_FARTHEST: Final = 128  # of MPNet: pieces that are further apart are so far apart


def reason_against(folder: Path) -> str:
    """Return why the encoder in *folder* is left to transformers; empty where a graph of it can be made."""
    if not (folder / CONFIG).exists():
        return f"it has no {CONFIG}"
    config = read_json(folder / CONFIG)
    name = str(config.get("model_type"))
    if name not in _KINDS:
        return f"it is of the type {name!r}"
    setting = Settings(config)
    asked = {
        "auto_map": "auto_map" in config or (folder / "adapter_config.json").exists(),
        "is_decoder": config.get("is_decoder"),
        "hidden_act": setting["hidden_act"] not in _ACTIVATIONS,
        "position_embedding_type": config.get("position_embedding_type", "absolute") != "absolute",
        "inner_group_num": setting.get("inner_group_num", 1) != 1,
    }
    for key, is_other in asked.items():
        if is_other:
            return f"its {key} is {setting.get(key)!r}"
    files = weight_files(folder)
    if not files or any(path.suffix != ".safetensors" for path in files):
        return "its weights are not in a file of safetensors"
    return "" if (folder / "tokenizer.json").exists() else "it has no tokenizer.json"


class Settings(Mapping[str, Any]):
    """The settings of a config under the names that BERT has for them."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.kind = _KINDS[str(config["model_type"])]
        self._config = {name: value for name, value in config.items() if value is not None}

    def __getitem__(self, name: str) -> Any:
        theirs = self.kind.names.get(name, name)
        return self._config[theirs] if theirs in self._config else self.kind.defaults[name]

    def __iter__(self) -> Any:
        return iter({*self._config, *self.kind.defaults})

    def __len__(self) -> int:
        return len({*self._config, *self.kind.defaults})


class EncoderGraph:
    """The encoder in a folder, before it is compiled.

    Args:
        folder: folder for which `reason_against` says nothing.

    Attributes:
        width: D.
        depth: L.
        positions: number of tokens that it has positions for.
        words: (V, E) input embeddings.
        types: number of segments; 0: it has none.

    Raises:
        SourceError: if its config lacks a setting or has an impossible one, its weights are damaged, are not
            those of the config, are no floating point numbers, or not finite.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._config = Settings(read_json(folder / CONFIG))
        self._kind = self._config.kind
        self._files = [WeightFile(path) for path in weight_files(folder)]
        self._names = {self._plain(name): (file, name) for file in self._files for name in file}
        self.width, self.depth = self._count("hidden_size"), self._count("num_hidden_layers", least=0)
        self._heads, self._padding = self._count("num_attention_heads"), self._count("pad_token_id", least=0)
        if self.width % self._heads:
            raise self._wrong("num_attention_heads", self._heads, f"a divisor of {self.width}")
        table = self._count("max_position_embeddings")
        self.positions = table - (self._padding + 1 if self._kind.after_padding else 0)
        self._inside = self._count("embedding_size") if self._kind.projection else self.width
        self._weights = self._read(table)
        self.words = self._weights["embeddings.word_embeddings.weight"]
        self.types = self._count("type_vocab_size") if self._kind.typed else 0

    def model(self, layers: Sequence[int]) -> Any:
        """Return the graph, an `openvino.Model`, whose output is those of some layers, joined.

        Args:
            layers: layers from 0, the embeddings, to L.
        """
        import openvino
        from openvino import opset13 as ops

        build = _Ops(ops, self._weights)
        ids = ops.parameter([-1, -1], np.int64, name="ids")
        mask = ops.parameter([-1, -1], np.bool_, name="mask")
        states = build.rows("embeddings.word_embeddings.weight", ids)
        states = ops.add(states, self._positions(build, ids))
        states = build.norm("embeddings.LayerNorm", states, self._config["layer_norm_eps"])
        if self._kind.projection and f"{self._kind.projection}.weight" in self._weights:
            states = build.linear(self._kind.projection, states)
        visible = self._visible(build, ids, mask)
        outputs = [states]
        for number in range(max(layers)):
            outputs.append(self._layer(build, number, outputs[-1], visible))
        chosen = [outputs[layer] for layer in layers]
        joined = chosen[0] if len(chosen) == 1 else ops.concat(chosen, -1)
        return openvino.Model([ops.result(joined)], [ids, mask], "encoder")

    # -- parts of the graph ---------------------------------------------------

    def _positions(self, build: "_Ops", ids: Any) -> Any:
        """Return the sum of other embeddings than those of pieces: (T, E), or (n, T, E)."""
        ops, table = build.ops, self._weights["embeddings.position_embeddings.weight"]
        if self._kind.typed:
            table = table + self._weights["embeddings.token_type_embeddings.weight"][0]
        if not self._kind.after_padding:
            return ops.slice(
                ops.constant(table), build.whole(0), ops.unsqueeze(build.length(ids), build.one(0)),
                build.whole(1), build.whole(0),
            )  # fmt: skip
        padding = build.one(self._padding)
        real = ops.convert(ops.not_equal(ids, padding), np.int64)
        counted = ops.multiply(ops.cum_sum(real, build.one(1)), real)
        return ops.gather(ops.constant(table), ops.add(counted, padding), build.one(0))

    def _visible(self, build: "_Ops", ids: Any, mask: Any) -> Any:
        """Return which pieces are attended to, bool (n, 1, 1, T); of MPNet what is added, (n, H, T, T)."""
        ops, seen = build.ops, build.ops.unsqueeze(mask, build.whole(1, 2))
        if "encoder.relative_attention_bias.weight" not in self._weights:
            return seen
        farthest = self.positions
        buckets = _buckets(np.arange(-farthest, farthest + 1), self._config["relative_attention_num_buckets"])
        bias = self._weights["encoder.relative_attention_bias.weight"][buckets].T  # (H, 2 · positions + 1)
        places = ops.range(build.one(0), build.length(ids), build.one(1), "i64")  # (T,)
        apart = ops.subtract(ops.unsqueeze(places, build.one(0)), ops.unsqueeze(places, build.one(1)))
        bias = ops.gather(
            ops.constant(np.ascontiguousarray(bias)), ops.add(apart, build.one(farthest)), build.one(1)
        )
        # Not the lowest number: in bfloat16 it is an infinity, and 0 times that is no number.
        return ops.select(seen, ops.unsqueeze(bias, build.one(0)), ops.constant(np.float32(-1e9)))

    def _layer(self, build: "_Ops", number: int, states: Any, visible: Any) -> Any:
        ops, eps = build.ops, self._config["layer_norm_eps"]
        name = {part: self._part(number, part) for part in self._kind.parts}
        heads = build.whole(0, 0, self._heads, self.width // self._heads)
        query, key, value = (
            ops.transpose(ops.reshape(build.linear(name[part], states), heads, True), build.whole(0, 2, 1, 3))
            for part in ("query", "key", "value")
        )
        read = ops.scaled_dot_product_attention(query, key, value, visible)  # (n, H, T, D / H)
        read = ops.reshape(ops.transpose(read, build.whole(0, 2, 1, 3)), build.whole(0, 0, self.width), True)
        states = build.norm(name["out_norm"], ops.add(build.linear(name["out"], read), states), eps)
        inner = build.linear(name["up"], states)
        kind = _ACTIVATIONS[self._config["hidden_act"]]
        inner = ops.relu(inner) if kind == "relu" else ops.gelu(inner, kind)
        return build.norm(name["down_norm"], ops.add(build.linear(name["down"], inner), states), eps)

    # -- the files --------------------------------------------------------------

    def _read(self, table: int) -> dict[str, Matrix]:
        """Return the parameters, each of the shape that the config asks for."""
        width, inner = self.width, self._count("intermediate_size")
        shapes: dict[str, tuple[int, ...]] = {
            "embeddings.word_embeddings.weight": (self._count("vocab_size"), self._inside),
            "embeddings.position_embeddings.weight": (table, self._inside),
            **_norm("embeddings.LayerNorm", self._inside),
        }
        if self._kind.typed:
            types = self._count("type_vocab_size")
            shapes["embeddings.token_type_embeddings.weight"] = (types, self._inside)
        if self._kind.projection and (
            self._inside != width or f"{self._kind.projection}.weight" in self._names
        ):
            shapes |= _linear(self._kind.projection, width, self._inside)
        if "relative_attention_num_buckets" in self._kind.defaults:
            buckets = self._count("relative_attention_num_buckets")
            shapes["encoder.relative_attention_bias.weight"] = (buckets, self._heads)
        for number in range(self.depth):
            for part in ("query", "key", "value", "out"):
                shapes |= _linear(self._part(number, part), width, width)
            shapes |= _linear(self._part(number, "up"), inner, width)
            shapes |= _linear(self._part(number, "down"), width, inner)
            for part in ("out_norm", "down_norm"):
                shapes |= _norm(self._part(number, part), width)
        if absent := sorted(shapes.keys() - self._names.keys()):
            raise SourceError(
                f"{len(absent)} parameters of the model are not in it, as {absent[0]!r}: these weights "
                "belong to another config",
                path=self._files[0].path,
            )
        return {name: self._parameter(name, shape) for name, shape in shapes.items()}

    def _parameter(self, name: str, shape: tuple[int, ...]) -> Matrix:
        file, theirs = self._names[name]
        if file.shapes[theirs] != shape:
            raise SourceError(
                f"the parameter {theirs!r} has the shape {file.shapes[theirs]}, and {CONFIG} asks for "
                f"{shape}: these weights belong to another config",
                path=file.path,
            )
        return file[theirs]

    def _part(self, number: int, part: str) -> str:
        """Return the beginning of the names of the parameters of a part of a layer."""
        groups = self._config.get("num_hidden_groups")
        if groups is not None:  # of ALBERT: layers have their weights in common
            number = int(number / (self.depth / groups))
        return self._kind.layer.format(number) + self._kind.parts[part]

    def _plain(self, name: str) -> str:
        """Return the name of a parameter as the encoder alone has it; files of 2018 call two otherwise."""
        name = name.removeprefix(self._kind.prefix)
        return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")

    def _count(self, name: str, *, least: int = 1) -> int:
        try:
            number = self._config[name]
        except KeyError:
            raise self._wrong(name, None, "a number") from None
        if not isinstance(number, int) or isinstance(number, bool) or number < least:
            raise self._wrong(name, number, f"a number of {least} or more")
        return number

    def _wrong(self, name: str, value: object, expected: str) -> SourceError:
        return SourceError(f"{name} is {value}; expected {expected}", path=self._folder / CONFIG)


class _Ops:
    """Operations on parameters, which are read from where they lie."""

    def __init__(self, ops: Any, weights: Mapping[str, Matrix]) -> None:
        self.ops, self._weights = ops, weights

    def one(self, number: int) -> Any:
        """Return a whole number."""
        return self.ops.constant(np.int64(number))

    def whole(self, *numbers: int) -> Any:
        """Return (N,) whole numbers."""
        return self.ops.constant(np.array(numbers, np.int64))

    def length(self, ids: Any) -> Any:
        """Return T."""
        return self.ops.gather(self.ops.shape_of(ids), self.one(1), self.one(0))

    def rows(self, name: str, ids: Any) -> Any:
        """Return the rows of a table."""
        return self.ops.gather(self._constant(name), ids, self.one(0))

    def linear(self, name: str, states: Any) -> Any:
        """Return the output of a linear layer."""
        product = self.ops.matmul(states, self._constant(f"{name}.weight"), False, True)
        return self.ops.add(product, self._constant(f"{name}.bias"))

    def norm(self, name: str, states: Any, eps: float) -> Any:
        """Return states after a LayerNorm."""
        normed = self.ops.mvn(states, self.whole(-1), True, float(eps), "inside_sqrt")
        scaled = self.ops.multiply(normed, self._constant(f"{name}.weight"))
        return self.ops.add(scaled, self._constant(f"{name}.bias"))

    def _constant(self, name: str) -> Any:
        return self.ops.constant(self._weights[name], shared_memory=True)


def _linear(name: str, outside: int, inside: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (outside, inside), f"{name}.bias": (outside,)}


def _norm(name: str, width: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def _buckets(apart: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return MPNet's classes of distances between pieces, as T5 has them: the nearest each by itself."""
    side = count // 2  # of those before, and of those behind
    exact, away = side // 2, np.abs(apart)
    steps = np.log(np.maximum(away, 1).astype(np.float32) / exact) / math.log(_FARTHEST / exact)
    far = np.minimum(exact + (steps * (side - exact)).astype(np.int64), side - 1)
    return np.where(apart > 0, side, 0) + np.where(away < exact, away, far)
