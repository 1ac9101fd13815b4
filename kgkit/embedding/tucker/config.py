"""Settings of TuckER: those of a user, and those that are the same for everyone."""

from dataclasses import dataclass

from kgkit.ranges import check_range

RELATION_DIM = 30  # as Balažević et al. (2019) have it on WN18RR, like the dropouts
INPUT_DROPOUT, RELATION_DROPOUT, HIDDEN_DROPOUT = 0.2, 0.2, 0.3
BATCH_SIZE = 1_024  # triples of a step
NEGATIVES = 2_048  # entities drawn uniformly for a step, besides the tails of its triples
HELD_OUT, HELD_OUT_AT_MOST = 0.01, 2_000  # triples that are ranked and not trained
CANDIDATES = 1_000  # entities that held-out tails are ranked among
PATIENCE = 3  # rankings without a gain after which training stops
MIN_GAIN = 0.001  # least gain of the mean reciprocal rank


@dataclass(frozen=True, kw_only=True)
class TuckERConfig:
    """Settings of TuckER.

    Attributes:
        name: name of the vectors: KB/*name*.
        dim: width of entity vectors.
        epochs: passes over the triples at most.
        lr: learning rate of the core and the relations; that of entities is 100 times as high.
        seed: seed of everything that is drawn.
        device: `auto`, `cpu`, `cuda`, `cuda:1`, …

    Raises:
        UsageError: if a value is out of range.
    """

    name: str = "tucker"
    dim: int = 200
    epochs: int = 14
    lr: float = 1e-3
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        check_range(self, "dim", "epochs", least=1)
        check_range(self, "seed", least=0)
        check_range(self, "lr", above=0)
