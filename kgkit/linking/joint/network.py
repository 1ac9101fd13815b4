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
from kgkit.models.manifest import damaged
from kgkit.types import Matrix, Numbers

FILE: Final = "networks.npz"

_PRECISE: Final = ("ranking", "mean", "deviation")
LARGEST, SMALLEST = 1e7, 1e-6  # of what a file may have, and of its deviations
_WIDEST: Final = 6.0  # deviations: what lies further out is cut off


class Network(NamedTuple):
    """The members of one network.

    Attributes:
        ranking: (W,), w of log q.
        mean, deviation: (F,) of the features.
        project: (G, V, P).
        shift: (G, P), p.
        weight: (G, F + P, H), A.
        bias: (G, H), a.
        out: (G, H), w.
        direct: (G, F + P), u.
        constant: (G,), k.
    """

    ranking: Matrix
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
    """Write networks into a model's folder, in half precision but for what is of features and ranking."""
    arrays = {
        f"{name} {field}": array.astype(np.float32 if field in _PRECISE else np.float16)
        for name, network in networks.items()
        for field, array in network._asdict().items()
    }
    np.savez(folder / FILE, **arrays)


def load_network(folder: Path, name: str, shape: tuple[int, int], ranking: int) -> Network:
    """Read a network.

    Args:
        folder: folder of the model.
        name: name of the network.
        shape: features and numbers of vectors that there are.
        ranking: weights of log q.

    Raises:
        DamagedModel: if it cannot be read, or reads other numbers.
    """
    arrays = read_archive(folder / FILE)
    features, vectors = shape
    names = {field: f"{name} {field}" for field in Network._fields}
    if missing := [full for full in names.values() if full not in arrays]:
        raise damaged(folder, f"{FILE} has no {missing[0]}")
    network = Network(*(arrays[full].astype(np.float32) for full in names.values()))
    if network.project.ndim != 3 or network.out.ndim != 2 or not len(network.project):
        raise damaged(
            folder,
            f"{name} project and out in {FILE} have {network.project.ndim} and "
            f"{network.out.ndim} dimensions, expected are 3 and 2, of one member or more",
        )
    group, _, projected = network.project.shape
    hidden = network.out.shape[1]
    expected = {
        "ranking": (ranking,), "mean": (features,), "deviation": (features,),
        "project": (group, vectors, projected), "shift": (group, projected),
        "weight": (group, features + projected, hidden), "bias": (group, hidden), "out": (group, hidden),
        "direct": (group, features + projected), "constant": (group,),
    }  # fmt: skip
    for field, array in network._asdict().items():
        if array.shape != expected[field]:
            raise damaged(folder, f"{names[field]} in {FILE} is {array.shape}, expected is {expected[field]}")
        if not (np.abs(array) <= LARGEST).all():
            raise damaged(folder, f"{names[field]} in {FILE} has numbers beyond {LARGEST:g}")
    if not (network.deviation >= SMALLEST).all():
        raise damaged(folder, f"{names['deviation']} in {FILE} has numbers below {SMALLEST:g}")
    return network
