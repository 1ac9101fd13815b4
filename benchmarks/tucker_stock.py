"""PyKEEN's own pipeline on the subset: TuckER with a stock training loop, measured by the clock.

Nothing of its training is ours: model, loop, optimizer and loss come from `pykeen.pipeline.pipeline`. A
callback stops the clock, ranks the validation triples (by our evaluator, which agrees with PyKEEN's), and
starts it again; at the end of the time the test triples are ranked too.
"""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pykeen.pipeline import pipeline
from pykeen.training.callbacks import TrainingCallback
from pykeen.triples import CoreTriplesFactory

from benchmarks.tucker_subset import Subset
from kgkit.embedding.tucker.scoring import RankingScores, ranks
from kgkit.embedding.tucker.triples import TrueTails, both_ways


def factory(subset: Subset, triples: np.ndarray) -> CoreTriplesFactory:
    """Return *triples* as PyKEEN takes them."""
    return CoreTriplesFactory(
        mapped_triples=torch.as_tensor(triples),
        num_entities=len(subset.entities),
        num_relations=len(subset.relations),
        create_inverse_triples=True,
    )


class OutOfTime(Exception):
    """The run has had its time."""


class Clock(TrainingCallback):
    """Measures the model every so many seconds of training, outside the clock, and ends the run.

    Args:
        subset: what is trained on.
        limit: seconds of training.
        every: seconds of training between two measurements.
        log: lines of JSON are added to it.
    """

    def __init__(self, subset: Subset, limit: float, every: float, log: Path) -> None:
        super().__init__()
        self.valid, self.test = both_ways(subset.valid), both_ways(subset.test)
        self.true_tails = TrueTails(both_ways(np.concatenate([subset.train, subset.valid, subset.test])))
        self.limit, self.every, self.log = limit, every, log
        self.spent, self.steps, self.next = 0.0, 0, every
        self.started = time.process_time()
        self.losses: list[float] = []

    def pre_batch(self, **kwargs: Any) -> None:
        """Time from here; the first batch has paid for the set-up."""
        if not self.steps:
            self.started = time.process_time()

    def on_batch(self, epoch: int, batch: Any, batch_loss: float, **kwargs: Any) -> None:
        """Keep the loss."""
        self.losses.append(batch_loss)

    def post_batch(self, epoch: int, batch: Any, **kwargs: Any) -> None:
        """Count a step."""
        self.steps += 1
        spent = self.spent + time.process_time() - self.started
        if spent < min(self.next, self.limit):
            return
        over = spent >= self.limit
        self.spent, self.next = spent, spent + self.every
        self.write(epoch, self.test if over else self.valid, "test" if over else "valid")
        if over:
            raise OutOfTime
        self.started = time.process_time()

    def write(self, epoch: int, questions: np.ndarray, part: str) -> None:
        """Rank and note."""
        scores = RankingScores.of(ranks(self.model.eval(), questions, self.true_tails))
        self.model.train()
        line = {
            "seconds": round(self.spent, 1), "epoch": epoch, "steps": self.steps,
            "seconds_a_step": self.spent / self.steps, "loss": float(np.mean(self.losses[-200:])),
            "part": part, **vars(scores),
        }  # fmt: skip
        with self.log.open("a") as file:
            file.write(json.dumps(line) + "\n")


def run(subset: str, log: str, seconds: float, every: float, settings: dict[str, Any], seed: int = 0) -> None:
    """Train for *seconds*; `settings` are added to the call of PyKEEN's pipeline."""
    data = Subset.load(Path(subset))
    torch.set_num_threads(1)
    clock = Clock(data, seconds, every, Path(log))
    try:
        pipeline(
            training=factory(data, data.train),
            testing=factory(data, data.test),
            model="TuckER",
            device="cpu",
            random_seed=seed,
            **{
                **settings,
                "training_kwargs": {
                    "num_epochs": 10_000, "callbacks": clock, "use_tqdm": False, **settings["training_kwargs"]
                },
            },
        )  # fmt: skip
    except OutOfTime:
        return
