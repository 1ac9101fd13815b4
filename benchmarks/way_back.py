"""How far what comes back from a knowledge base carries the words of a KnowBert, and what it costs.

    python -m benchmarks.way_back MODEL … --home HOME --text heldout.txt [--passages 64]

Of each knowledge base: the mean length of a word piece's vector as the encoder has it, projected, behind the
block, and of what is added to it; and perplexity as the model is, without entities, and with nothing coming
back. `benchmarks.english` writes the text.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.report import Table
from kgkit.evaluation.plain_text import read_plain
from kgkit.heads import KAR
from kgkit.inputs.masking import masking_of
from kgkit.inputs.passages import measure_sentences, single_passages
from kgkit.methods.hidden_words import perplexity
from kgkit.methods.knowbert_model import TrainedKnowBert


@contextmanager
def hooked(*hooks: tuple[torch.nn.Module, Callable[..., Any]]) -> Iterator[None]:
    """Let hooks see, or change, what modules return."""
    handles = [module.register_forward_hook(hook) for module, hook in hooks]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def lengths(kar: KAR, run: Callable[[], float]) -> list[float]:
    """Return the mean lengths of words, projected words, what leaves the block, and what is added."""
    norms: list[list[float]] = [[], [], [], []]

    def add(index: int, vectors: Tensor) -> None:
        norms[index].append(float(vectors.float().norm(dim=-1).mean()))

    with hooked(
        (kar, lambda _, inputs, __: add(0, inputs[0].hidden)),
        (kar.linker.project, lambda _, __, output: add(1, output)),
        (kar.back, lambda _, inputs, __: add(2, inputs[0])),
        (kar.back, lambda _, __, output: add(3, output)),
    ):
        run()
    return [sum(own) / len(own) for own in norms]


def rows_of(model: TrainedKnowBert, text: Path, count: int) -> Iterator[list[str]]:
    """Yield a row for each knowledge base."""
    room = model.reader.room(1)
    all_passages = list(single_passages(measure_sentences(read_plain(text), model.reader.tokens, room), room))
    passages = all_passages[:: max(1, len(all_passages) // count)][:count]
    masking = masking_of(model.encoder, "mask")

    def run() -> float:
        return perplexity(model.knowbert, model.reader, masking, passages).perplexity

    for kb, kar in model.knowbert.kars.items():
        means = lengths(kar, run)
        with hooked((kar.linker, lambda _, __, output: output._replace(weighted=0 * output.weighted))):
            without_entities = run()
        with hooked((kar.back, lambda _, __, output: torch.zeros_like(output))):
            nothing = run()
        yield [kb, *(f"{figure:.1f}" for figure in (*means, run(), without_entities, nothing))]


def main() -> None:
    """Measure, and write the table to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.way_back")
    parser.add_argument("model", nargs="+")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--passages", type=int, default=64)
    chosen, rows = parser.parse_args(), []
    for name in chosen.model:
        with TrainedKnowBert.open(name, home=chosen.home, around=None, device="cpu") as model:
            rows += [[name, *row] for row in rows_of(model, chosen.text, chosen.passages)]
    columns = ("model", "KB", "word", "projected", "behind the block", "added")
    columns += ("perplexity", "no entities", "nothing back")
    notes = f"{chosen.passages} passages of {chosen.text.name}."
    print(Table(title="The way back", notes=notes, columns=columns, rows=rows).markdown())


if __name__ == "__main__":
    main()
