r"""Do injected facts help less where more is learnt: K-BERT beside its control, by texts of training.

    python -m benchmarks.learning_curve --home HOME --out OUT_DIR --encoder ENCODER --point 5000:5 \
        --point 20000:2 --point all:1 [--kb hownet] [--seed 0 …] [--size 256] --svg FILE [other options]

A point is a number of texts, the first of the training part, and of epochs; after another colon seeds of its
own may stand, as `all:1:0,1`. Each is trained and its test
part predicted as `benchmarks.injected` does, whose predictions in OUT_DIR are used again; other options go to
`kgkit train kbert`. The table goes to the standard output, the picture to FILE.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.injected import VARIANTS, KBertTrainings, counts, part_of_test
from benchmarks.report import Table
from benchmarks.significance import NOTES, OVER_SEEDS, chance, f1_of, seeds_cell, spread
from kgkit.inputs.texts import SIZE

COLUMNS = "texts", "epochs", "control", "seeds", "K-BERT", "seeds", "difference", "p", OVER_SEEDS


class CurvePoint(NamedTuple):
    """How much is trained on.

    Attributes:
        texts: number of texts; None: all.
        epochs: how often each is read.
        seeds: seeds of its own; empty: those of all points.
    """

    texts: int | None
    epochs: int
    seeds: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "CurvePoint":
        """Return the point of `TEXTS:EPOCHS` or `TEXTS:EPOCHS:SEED,SEED`; TEXTS may be `all`.

        Raises:
            ValueError: if it is none.
        """
        texts, epochs, *seeds = text.split(":", 2)
        own = tuple(int(seed) for seed in seeds[0].split(",")) if seeds else ()
        return cls(None if texts == "all" else int(texts), int(epochs), own)


Counts = Mapping[CurvePoint, Mapping[str, NDArray[np.int64]]]
"""Counts (S, N, 3) of `benchmarks.injected.counts` of each point, by variant."""


def curve_table(measured: Counts, kb: str) -> Table:
    """Return the table of scores and differences by point."""
    rows = []
    for point, variants in measured.items():
        control, injected = variants["control"], variants[kb]
        scores = [100 * f1_of(each.sum(1)) for each in (control, injected)]  # (S,) each
        rows.append([
            "all" if point.texts is None else f"{point.texts:,}", str(point.epochs),
            *(cell for own in scores for cell in (spread(own), ", ".join(f"{score:.2f}" for score in own))),
            f"{scores[1].mean() - scores[0].mean():+.2f}", f"{chance(control, injected):.4f}",
            seeds_cell(*scores),
        ])  # fmt: skip
    return Table(title=f"K-BERT over {kb} by texts of training", notes=NOTES, columns=COLUMNS, rows=rows)


def draw_curve(measured: Counts, kb: str, all_texts: int, path: Path) -> None:
    """Draw the means over texts of training, a line for each variant, with a dot for each seed.

    Args:
        measured: counts of each point.
        kb: variant beside the control.
        all_texts: number of texts of the training part.
        path: SVG or another format of matplotlib.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.6), layout="constrained")
    axes = figure.subplots()
    sizes = [point.texts or all_texts for point in measured]
    for color, (variant, label) in enumerate([("control", "control"), (kb, f"K-BERT over {kb}")]):
        scores = [100 * f1_of(each[variant].sum(1)) for each in measured.values()]
        axes.plot(sizes, [own.mean() for own in scores], label=label, color=f"C{color}")
        for size, own in zip(sizes, scores, strict=True):
            axes.scatter([size] * len(own), own, s=10, color=f"C{color}", alpha=0.6)
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("texts of training")
    axes.set_ylabel("F1 of names with types")
    axes.legend(fontsize=8, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and predict, write the table, and draw the picture."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning_curve")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="OUT_DIR")
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--task", default="msra_ner", choices=["msra_ner", "medical_ner"])
    parser.add_argument("--kb", default="hownet", choices=[name for name in VARIANTS if name != "control"])
    parser.add_argument("--point", type=CurvePoint.parse, action="append", required=True)
    parser.add_argument("--seed", type=int, action="append")
    parser.add_argument("--size", type=int, default=SIZE, help="word pieces of a tree")
    parser.add_argument("--svg", type=Path, required=True, metavar="FILE")
    chosen, options = parser.parse_known_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    test = part_of_test(chosen.task)
    measured: dict[CurvePoint, dict[str, NDArray[np.int64]]] = {}
    for point in chosen.point:
        trainings = KBertTrainings(
            chosen.home, chosen.out, chosen.encoder, [*options, "--epochs", str(point.epochs)], chosen.size,
            point.texts,
        )  # fmt: skip
        measured[point] = {
            variant: np.stack([
                counts(test.examples, trainings.predictions(chosen.task, variant, seed))[test.is_new]
                for seed in point.seeds or chosen.seed or [0, 1, 2]
            ])
            for variant in ("control", chosen.kb)
        }  # fmt: skip
        print(curve_table(measured, chosen.kb).rows[-1], file=sys.stderr, flush=True)
    print(curve_table(measured, chosen.kb).markdown())
    draw_curve(measured, chosen.kb, test.learnt, chosen.svg)


if __name__ == "__main__":
    main()
