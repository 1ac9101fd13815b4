"""What TuckER is trained with: every setting, and two sets of them that belong together."""

from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal, Self

from kgkit.errors import UnknownName, UsageError
from kgkit.ranges import check_range

Scoring = Literal["all", "shared"]


@dataclass(frozen=True, kw_only=True)
class TuckERConfig:
    """Settings of TuckER.

    Attributes:
        name: name of the vectors: KB/*name*.
        dim: width of entity vectors.
        relation_dim: width of relation vectors.
        epochs: passes over the triples at most.
        batch_size: triples (with `scoring` all: heads with a relation) of a step; batch normalization needs
            two.
        scoring: choice of what is scored: `all` entities, or negatives that a batch has `shared`.
        negatives: number of entities drawn uniformly for a batch, besides the tails of its triples.
        loss: `crossentropy` or `bcewithlogits`.
        label_smoothing: share of a label that goes to the other entities.
        half: whether to multiply queries and candidates in bfloat16 (cross entropy with shared negatives).
        optimizer: `rows` is Adagrad for the entities of a batch and Adam for the rest; `adam` moves all rows
            in every step.
        lr: learning rate of Adam.
        row_factor: factor of the entities' learning rate, which with `rows` is `lr * row_factor`.
        row_eps: bound: with `rows`, gradients much smaller than it move their rows but little.
        row_decay: share that, with `rows`, rows lose of themselves in an epoch by being drawn as negatives,
            in learning rates; each time they are met otherwise takes as much as one drawing.
        lr_decay: factor of the learning rates after each epoch.
        input_dropout: dropout of heads.
        relation_dropout: dropout of the core contracted with a relation ("hidden dropout 1" in the paper's
            code).
        hidden_dropout: dropout of queries ("hidden dropout 2").
        entity_std: deviation of the normal numbers that entities begin as; None is Xavier's.
        held_out: share of the triples that are not trained but ranked.
        held_out_at_most: largest number of held-out triples.
        candidates: number of entities, a sample, that held-out tails are ranked among; None: all.
        evaluate_every: epochs between two rankings.
        patience: number of rankings without a gain after which training stops; 0 trains all epochs.
        min_gain: least gain of the mean reciprocal rank.
        seed: seed of everything that is drawn.
        device: `auto`, `cpu`, `cuda`, `cuda:1`, …
        checkpoint_seconds: seconds between two checkpoints.

    Raises:
        UsageError: if a value is out of range.
    """

    name: str = "tucker"
    dim: int = 200
    relation_dim: int = 30
    epochs: int = 14
    batch_size: int = 1024
    scoring: Scoring = "shared"
    negatives: int = 2048
    loss: Literal["crossentropy", "bcewithlogits"] = "crossentropy"
    label_smoothing: float = 0.0
    half: bool = True
    optimizer: Literal["rows", "adam"] = "rows"
    lr: float = 1e-3
    row_factor: float = 100.0
    row_eps: float = 1e-4
    row_decay: float = 3.3
    lr_decay: float = 0.85
    input_dropout: float = 0.2
    relation_dropout: float = 0.2
    hidden_dropout: float = 0.3
    entity_std: float | None = 0.001
    held_out: float = 0.01
    held_out_at_most: int = 2_000
    candidates: int | None = 1_000
    evaluate_every: int = 1
    patience: int = 3
    min_gain: float = 0.001
    seed: int = 0
    device: str = "auto"
    checkpoint_seconds: float = 300.0

    def __post_init__(self) -> None:
        check_range(
            self, "dim", "relation_dim", "epochs", "negatives", "candidates", "evaluate_every", least=1,
        )  # fmt: skip
        check_range(self, "batch_size", least=2)
        check_range(
            self,
            "patience",
            "seed",
            "held_out_at_most",
            "min_gain",
            "checkpoint_seconds",
            "row_decay",
            least=0,
        )
        check_range(self, "lr", "row_factor", "row_eps", "lr_decay", "entity_std", above=0)
        check_range(
            self, "input_dropout", "relation_dropout", "hidden_dropout", "label_smoothing", "held_out",
            least=0, below=1,
        )  # fmt: skip
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise UsageError(f"{name} is {getattr(self, name)!r}; it is one of {', '.join(choices)}")

    @classmethod
    def preset(cls, preset: str, /, **changes: Any) -> Self:
        """Return the settings called *preset*, with *changes*.

        `cpu` is what gained most in minutes on two cores; `paper` is Balažević et al. (2019).

        Raises:
            UnknownName: if there are none of that name.
            UsageError: if there is no such setting, or its value is out of range.
        """
        if preset not in PRESETS:
            raise UnknownName("preset of TuckER", preset, sorted(PRESETS))
        if unknown := changes.keys() - {field.name for field in fields(cls)}:
            raise UnknownName("setting of TuckER", min(unknown), sorted(field.name for field in fields(cls)))
        return replace(cls(**PRESETS[preset]), **changes)

    def decay_a_touch(self, steps: int, entities: int) -> float:
        """Return the share of itself that a row loses when a step meets it, in learning rates."""
        share = 1.0 if self.scoring == "all" else min(self.negatives / entities, 1.0)
        return self.row_decay / max(steps * share, 1.0)


PRESETS: Final[dict[str, dict[str, Any]]] = {
    "cpu": {},
    # Balažević et al. (2019), appendix A: dropouts, smoothing and width as for WN18RR, learning rate and
    # decay as for WN18 (WN18RR: 0.01, no decay; relations 30 wide on both). Batches and epochs: their code.
    "paper": {
        "relation_dim": 200,
        "epochs": 500,
        "batch_size": 128,
        "scoring": "all",
        "loss": "bcewithlogits",
        "label_smoothing": 0.1,
        "half": False,
        "optimizer": "adam",
        "lr": 0.005,
        "lr_decay": 0.995,
        "input_dropout": 0.2,
        "relation_dropout": 0.2,
        "hidden_dropout": 0.3,
        "entity_std": None,
        "evaluate_every": 5,
        "patience": 10,
    },
}
_CHOICES: Final = {
    "scoring": ("all", "shared"),
    "loss": ("crossentropy", "bcewithlogits"),
    "optimizer": ("rows", "adam"),
}
