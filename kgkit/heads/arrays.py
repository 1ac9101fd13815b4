"""Layers of heads in NumPy, for inference, and the weights of a saved head.

    N  vectors    K, L  numbers of one

They compute in float32 what modules of torch do, but for the error function, whose approximation is off by
1.5e-7 at most: Abramowitz and Stegun (1964), 7.1.26.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from kgkit.encoder.weights import WeightFile
from kgkit.errors import DamagedModel, SourceError
from kgkit.heads.settings import CONFIG, WEIGHTS
from kgkit.types import Matrix

Shapes = Mapping[str, tuple[int, ...]]
"""The shape of each parameter of a head."""

_EPS: Final = 1e-5  # of every LayerNorm
_ERF: Final = 1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592  # of the 5th power to the 1st
_SLOPE: Final = 0.3275911


def read_arrays(folder: Path, shapes: Shapes) -> dict[str, Matrix]:
    """Return the weights of the head in *folder*, float32.

    Raises:
        DamagedModel: if they cannot be read, are not finite, or not of these names and shapes.
    """
    try:
        file = WeightFile(folder / WEIGHTS)
        if strange := sorted(shapes.keys() ^ file.keys()):
            raise DamagedModel(
                f"the head in {folder} cannot be loaded: {CONFIG} and {WEIGHTS} differ in {strange[0]}"
            )
        weights = {name: file[name] for name in shapes}
    except SourceError as error:
        raise DamagedModel(f"the head in {folder} cannot be loaded: {error}") from error
    for name, shape in shapes.items():
        if weights[name].shape != shape:
            raise DamagedModel(
                f"the head in {folder} cannot be loaded: {name} has the shape {weights[name].shape}, and "
                f"{CONFIG} asks for {shape}"
            )
    return weights


def linear_shapes(name: str, outside: int, inside: int) -> Shapes:
    """Return the shapes of a linear layer."""
    return {f"{name}.weight": (outside, inside), f"{name}.bias": (outside,)}


def norm_shapes(name: str, width: int) -> Shapes:
    """Return the shapes of a LayerNorm."""
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def linear(weights: Mapping[str, Matrix], name: str, vectors: Matrix) -> Matrix:
    """Return (…, L) for vectors (…, K)."""
    product: Matrix = vectors @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return product


def norm(weights: Mapping[str, Matrix], name: str, vectors: Matrix) -> Matrix:
    """Return vectors (…, K) after a LayerNorm."""
    centred = vectors - vectors.mean(-1, keepdims=True)
    deviations = np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(_EPS))
    normed: Matrix = centred / deviations * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    return normed


def gelu(numbers: Matrix) -> Matrix:
    """Return x Φ(x) of numbers, of any shape."""
    scaled = np.abs(numbers) * np.float32(np.sqrt(0.5))
    part = 1 / (1 + np.float32(_SLOPE) * scaled)
    powers = np.zeros_like(part)
    for factor in _ERF:
        powers = (powers + np.float32(factor)) * part
    erf = np.copysign(1 - powers * np.exp(-scaled * scaled), numbers)
    return np.asarray(np.float32(0.5) * numbers * (1 + erf))


def softmax(scores: Matrix) -> Matrix:
    """Return the softmax over the last dimension."""
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))
