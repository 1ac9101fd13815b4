"""The networks of a joint linker: features of a mention's candidates in, one score for each out.

    z(m)   = tanh(P v(m) + p)
    h(c)   = [x(c), z(m)]
    s(c)   = mean over the members of  u·h + w·relu(A h + a) + k     x with mean 0 and deviation 1 in training
    p(c|m) = exp(s(c)) / (1 + Σ exp(s))                              the 1 is that of NIL

v(m) are vectors of the mention and of what stands beside it, as the encoder has them; a network that reads no
encoder has none.

M  mentions    R  candidates of all of them    F  features    V  numbers of v    G  members    P  width of z
H  hidden
"""

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from kgkit.linking.scoring import Scores
from kgkit.models.arrays import read_archive
from kgkit.models.manifest import checking_settings, damaged
from kgkit.types import Matrix, Numbers

FILE: Final = "networks.npz"

_WIDEST: Final = 6.0  # deviations: what lies further out is cut off


class Network(NamedTuple):
    """The members of one network.

    Attributes:
        mean, deviation: (F,) of the features.
        project: (G, V, P).
        shift: (G, P), p.
        weight: (G, F + P, H), A.
        bias: (G, H), a.
        out: (G, H), w.
        direct: (G, F + P), u.
        constant: (G,), k.
    """

    mean: Matrix
    deviation: Matrix
    project: Matrix
    shift: Matrix
    weight: Matrix
    bias: Matrix
    out: Matrix
    direct: Matrix
    constant: Matrix

    def __call__(self, features: Matrix, vectors: Matrix, sizes: Numbers) -> Scores:
        """Return s, (R,).

        Args:
            features: (R, F).
            vectors: (M, V); (M, 0) if there is no encoder.
            sizes: (M,) candidates of each mention.
        """
        scaled = np.clip((features - self.mean) / self.deviation, -_WIDEST, _WIDEST)
        total = np.zeros(len(features), np.float32)
        width = self.mean.shape[0]
        for member in range(len(self.out)):
            mention = np.tanh(vectors @ self.project[member] + self.shift[member])  # (M, P)
            weight, direct = self.weight[member], self.direct[member]
            of_mention = mention @ weight[width:] + self.bias[member]  # (M, H)
            hidden = scaled @ weight[:width] + np.repeat(of_mention, sizes, axis=0)
            total += (
                np.maximum(hidden, 0) @ self.out[member] + scaled @ direct[:width] + self.constant[member]
            )
            total += np.repeat(mention @ direct[width:], sizes)
        scores: Scores = total / np.float32(len(self.out))
        return scores

    @property
    def shape(self) -> tuple[int, int]:
        """Features and numbers of vectors that it reads."""
        return self.mean.shape[0], self.project.shape[1]


def save_networks(folder: Path, networks: dict[str, Network]) -> None:
    """Write networks into a model's folder, in half precision but for means and deviations."""
    arrays = {
        f"{name} {field}": array.astype(np.float32 if field in ("mean", "deviation") else np.float16)
        for name, network in networks.items()
        for field, array in network._asdict().items()
    }
    np.savez(folder / FILE, **arrays)


def load_network(folder: Path, name: str, shape: tuple[int, int]) -> Network:
    """Read a network.

    Args:
        folder: folder of the model.
        name: name of the network.
        shape: features and numbers of vectors that there are.

    Raises:
        DamagedModel: if it cannot be read, or reads other numbers.
    """
    arrays = read_archive(folder / FILE)
    with checking_settings(folder):
        network = Network(*(arrays[f"{name} {field}"].astype(np.float32) for field in Network._fields))
        features, vectors = shape
        group, _, projected = network.project.shape
        hidden = network.out.shape[1]
        expected = {
            "mean": (features,), "deviation": (features,), "project": (group, vectors, projected),
            "shift": (group, projected), "weight": (group, features + projected, hidden),
            "bias": (group, hidden), "out": (group, hidden), "direct": (group, features + projected),
            "constant": (group,),
        }  # fmt: skip
        for field, array in network._asdict().items():
            if array.shape != expected[field]:
                raise damaged(
                    folder, f"{name} {field} in {FILE} is {array.shape}, expected is {expected[field]}"
                )
        if not (network.deviation > 0).all() or not group:
            raise damaged(folder, f"{FILE} has no networks, or deviations that are not above 0")
    return network
