"""The attention that a KAM-BERT pays to a text, beside its maps and a plain encoder's attention: Figure 3.

N  word pieces of a text    M  N and the auxiliary word pieces behind an empty place    m  attention heads
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import torch

from kgkit.encoder import Encoder
from kgkit.encoder.attention import attention
from kgkit.errors import UsageError
from kgkit.evaluation.examples import Example
from kgkit.inputs.kambert import MappedText
from kgkit.inputs.maps import nonzero_cells
from kgkit.methods.kambert import KamBertMethod
from kgkit.methods.predicting import Predictor
from kgkit.models.kinds import find_method
from kgkit.models.manifest import broken_weights
from kgkit.types import Matrix

if TYPE_CHECKING:
    from kgkit.heads.kambert import KamBertInputs


_NOTHING: Final = "∅"


class TextAttention(NamedTuple):
    """What a text's word pieces attend to.

    Attributes:
        pieces: the M word pieces; the empty place before auxiliary words is `∅`.
        maps: maps by name, (M, M).
        cells: number of cells of each map that are not zero, counted in words.
        words: number of words.
        plain: weights of attention of the plain encoder, (N, N); None if there was none.
        mixed: weights of attention of the KAM-BERT, (M, M); rows are what attends.
        auxiliary: number of pieces of auxiliary words, the last of *pieces*.
        layer: number of the layer, from 1; 0 if it is not known.
        head: number of the attention head, from 1; 0: the mean of all.
    """

    pieces: list[str]
    maps: dict[str, Matrix]
    cells: dict[str, int]
    words: int
    plain: Matrix | None
    mixed: Matrix
    auxiliary: int = 0
    layer: int = 0
    head: int = 0


def text_attention(
    predictor: Predictor,
    texts: Sequence[str],
    *,
    plain: Encoder | None = None,
    layer: int = 0,
    head: int = 0,
) -> TextAttention:
    """Return the maps of a text, or of a pair, and the attention that is paid to it.

    Args:
        predictor: trained KAM-BERT.
        texts: one text, or two.
        plain: encoder with the same tokenizer whose attention is shown too.
        layer: number of the layer, from 1; 0: the last one.
        head: number of the attention head, from 1; 0: the mean of all.

    Raises:
        UsageError: if the model mixes no maps, there is no such layer or head, or the plain encoder has other
            word pieces.
        DamagedModel: if the attention is not finite.
    """
    method: Any = predictor.method
    if not isinstance(method, KamBertMethod):
        raise UsageError(
            f"the model {predictor.manifest.name} is {find_method(predictor.manifest.kind).title}, which "
            "mixes no maps with its attention; `kgkit train kambert` makes one that does"
        )
    kambert: Any = method.model.head
    for what, number, most in (
        ("layer", layer, kambert.config.layers),
        ("head", head, kambert.config.heads),
    ):
        if not 0 <= number <= most:
            raise UsageError(f"there is no {what} {number}: the model has {most}")
    [reading] = method.read([Example("", tuple(texts))])
    text: MappedText = reading.content
    inputs: KamBertInputs = method.reader.batch([text]).to(kambert.model.device)
    with torch.inference_mode():
        output = kambert(inputs, output_attentions=True)
        dense = kambert.dense_maps(inputs)[0].cpu().numpy()  # (k, M, M)
        expected = None if plain is None else _plain_attention(plain, method.encoder, inputs)
    tokenizer: Any = method.encoder.tokenizer
    pieces = tokenizer.convert_ids_to_tokens(inputs.ids[0].tolist())
    auxiliary = tokenizer.convert_ids_to_tokens(inputs.auxiliary[0].tolist())
    mixed = _chosen(output.attentions, layer, head)
    finite = all(bool(torch.isfinite(weights).all()) for weights in output.attentions)
    if not (finite and np.isfinite(dense).all()):
        raise broken_weights(predictor.manifest.name, "pays attention that is not finite")
    return TextAttention(
        [*pieces, *[_NOTHING][: len(auxiliary)], *auxiliary[1:]],
        dict(zip(kambert.config.maps, dense, strict=True)),
        nonzero_cells(text.maps.maps, text.maps.size),
        text.maps.size,
        None if expected is None else _chosen(expected, layer, head),
        mixed,
        len(auxiliary[1:]),
        layer or kambert.config.layers,
        head,
    )


def _plain_attention(plain: Encoder, encoder: Encoder, inputs: "KamBertInputs") -> Any:
    """Return the weights of attention of an encoder that reads a text without maps, (1, m, N, N) a layer."""
    pieces = inputs.ids[0].tolist()
    own, other = (part.tokenizer.convert_ids_to_tokens(pieces) for part in (encoder, plain))
    if own != other:
        raise UsageError(
            f"{plain.name} has other word pieces than the model: name one with the same tokenizer"
        )
    arguments: dict[str, Any] = {"input_ids": inputs.ids, "attention_mask": inputs.real.long()}
    if inputs.types is not None:
        arguments["token_type_ids"] = inputs.types
    model: Any = plain.model
    with attention(model, "eager"):
        moved = {name: tensor.to(model.device) for name, tensor in arguments.items()}
        return model(**moved, output_attentions=True).attentions


def _chosen(weights: Sequence[torch.Tensor], layer: int, head: int) -> Matrix:
    """Return the weights of one layer, and of one head or of all on average."""
    heads = weights[layer - 1][0].float().cpu()
    matrix: Matrix = (heads[head - 1] if head else heads.mean(0)).numpy()
    return matrix
