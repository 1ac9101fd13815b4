"""What dropout of attention costs a training step on a processor, by the length of the texts.

    python -m benchmarks.attention_dropout [--pieces 4096] [--size 64 …] [--rounds 3]

torch has no fast kernel for attention with dropout on a processor: with it the N × N probabilities of each
head and layer are made, drawn and kept. Two models of all-MiniLM-L6-v2's shape and random weights, one with
dropout of 0.1 of the probabilities, one without; other dropout is 0.1 in both. A step is forward, backward
and AdamW over a masked language model, products in bfloat16 where the processor multiplies it natively.
"""

import argparse
import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import torch
from transformers import BertConfig, BertForMaskedLM

from benchmarks.kbert import timed
from benchmarks.report import Table
from kgkit.encoder.device import has_bf16

SIZES: Final = (64, 128, 256, 512)
HIDDEN_SHARE: Final = 0.15
NOTES: Final = """
CPU seconds of one thread for a step over {pieces:,} word pieces, in texts of one length; {form}. Medians of
{rounds} rounds, both in turn; the ratio is the median within a round.
"""


class Training:
    """A masked language model of MiniLM's shape in training.

    Args:
        dropout: share of the probabilities of attention that is dropped.
        bf16: whether products are in bfloat16.
    """

    def __init__(self, dropout: float, bf16: bool) -> None:
        torch.manual_seed(0)
        shape = BertConfig(
            hidden_size=384, num_hidden_layers=6, intermediate_size=1536, attention_probs_dropout_prob=dropout
        )
        self.model: Any = BertForMaskedLM(shape).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-4)
        self.bf16 = bf16

    def step(self, ids: torch.Tensor, hidden: torch.Tensor) -> None:
        """Do one step over word pieces (B, N), of which those of a mask (B, N) are predicted."""
        with torch.autocast("cpu", torch.bfloat16, self.bf16):
            states = self.model.bert(ids, attention_mask=torch.ones_like(ids)).last_hidden_state
            logits = self.model.cls(states[hidden])
        torch.nn.functional.cross_entropy(logits.float(), ids[hidden]).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def measure(pieces: int, sizes: Sequence[int], rounds: int) -> Table:
    """Return the table of the costs."""
    torch.set_num_threads(1)
    device = torch.device("cpu")
    bf16, seconds_of = has_bf16(device), timed(device)
    trainings = [Training(dropout, bf16) for dropout in (0.1, 0.0)]
    generator = torch.Generator().manual_seed(0)
    rows = []
    for size in sizes:
        shape = (max(1, pieces // size), size)
        ids = torch.randint(1000, 30_000, shape, generator=generator)
        hidden = torch.rand(shape, generator=generator) < HIDDEN_SHARE
        steps = [partial(each.step, ids, hidden) for each in trainings]
        times = [[*map(seconds_of, steps)] for _ in range(rounds + 1)][1:]  # the first warms up
        with_dropout, without = (statistics.median(column) for column in zip(*times, strict=True))
        ratio = statistics.median(first / second for first, second in times)
        rows.append([f"{shape[0]} × {size}", f"{with_dropout:.2f}", f"{without:.2f}", f"{ratio:.2f}"])
    return Table(
        title="Dropout of attention on a processor",
        notes=NOTES.format(pieces=pieces, rounds=rounds, form="bfloat16" if bf16 else "float32"),
        columns=("texts × word pieces", "with, CPU s", "without", "over"),
        rows=rows,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for, and write the table to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attention_dropout")
    parser.add_argument("--pieces", type=int, default=4096)
    parser.add_argument("--size", type=int, action="append", metavar="N", help="word pieces of a text")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    print(measure(chosen.pieces, chosen.size or SIZES, chosen.rounds).markdown())


if __name__ == "__main__":
    main()
