"""An encoder that is compiled for the processor, by OpenVINO: what reads texts where nothing is trained.

    n  texts of a batch    T  tokens of the longest    D  width    K  layers that are read

The numbers of a text are the same in any batch without padding, and with any number of threads: OpenVINO sums
the products of a row in one order. `tests/encoder/test_network.py` holds it to that.
"""

import os
import threading
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from kgkit.encoder.batches import TokenBatch
from kgkit.encoder.graph import EncoderGraph
from kgkit.errors import MissingExtra
from kgkit.types import Matrix

_PACKAGE: Final = "openvino"
_HINTS: Final = {"float32": "f32", "bfloat16": "bf16"}
_KERNELS: Final = 200
"""Kernels that are kept for shapes of batches; by default thousands are, of 0.4 MB a shape, for no gain."""


def is_installed() -> bool:
    """Say whether OpenVINO is; it is not loaded."""
    return find_spec(_PACKAGE) is not None


class Network:
    """The encoder in a folder, compiled when it is first asked for some layers; threads wait for each other.

    Args:
        folder: folder for which `kgkit.encoder.graph.reason_against` says nothing.

    Attributes:
        graph: encoder before it is compiled.

    Raises:
        MissingExtra: if OpenVINO is not installed.
        SourceError: as `EncoderGraph` does.
    """

    def __init__(self, folder: Path) -> None:
        if not is_installed():
            raise MissingExtra(_PACKAGE, "neural")
        self.graph = EncoderGraph(folder)
        self._requests: dict[tuple[tuple[int, ...], str], Any] = {}
        self._reading = threading.Lock()  # a request that runs cannot be made again

    @property
    def has_bf16(self) -> bool:
        """Whether the processor multiplies bfloat16 faster than float32."""
        return str(_core().get_property("CPU", "INFERENCE_PRECISION_HINT").to_string()) == "bf16"

    def __call__(
        self,
        batch: TokenBatch,
        layers: Sequence[int],
        dtype: Literal["float32", "bfloat16"],
    ) -> Matrix:
        """Return the outputs of layers, joined: (n, T, K · D); behind a shorter text stands anything.

        Args:
            batch: texts.
            layers: layers, -1 being the last and 0 the embeddings.
            dtype: type of the products.
        """
        depth = self.graph.depth + 1
        key = tuple(layer % depth for layer in layers), dtype
        mask = np.ones(batch.ids.shape, np.bool_) if batch.mask is None else batch.mask.astype(np.bool_)
        with self._reading:
            if key not in self._requests:
                self._requests[key] = self._compiled(*key)
            states: Matrix = self._requests[key].infer([batch.ids, mask], share_inputs=True)[0]
        return states

    def forget(self, dtype: str) -> None:
        """Free what was compiled for products of a type."""
        self._requests = {key: request for key, request in self._requests.items() if key[1] != dtype}

    def _compiled(self, layers: tuple[int, ...], dtype: str) -> Any:
        settings = {"INFERENCE_PRECISION_HINT": _HINTS[dtype], "CPU_RUNTIME_CACHE_CAPACITY": str(_KERNELS)}
        threads = os.environ.get("OMP_NUM_THREADS", "")
        if threads.isdecimal() and int(threads):
            settings["INFERENCE_NUM_THREADS"] = threads
        return _core().compile_model(self.graph.model(layers), "CPU", settings).create_infer_request()


@cache
def _core() -> Any:
    """Return OpenVINO's core: one, which is never freed.

    With `faulthandler`, its plug-in gives the thread that loads it another stack for signals. Freed in
    another thread it would take that stack away, and the next signal would end the process.
    """
    import openvino

    return openvino.Core()
