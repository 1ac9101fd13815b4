"""What KAM-BERT costs, and what it gains on CoLA, RTE and STS-B.

    python -m benchmarks.kambert cost [--device cuda] [--rounds 5] [--layers 12] [--width 768]
    python -m benchmarks.kambert tasks cola|rte|sts --home HOME --out OUT_DIR --tagger NAME --chunker NAME \
        --pmi NAME [--row NAME … | --alpha X …] [--seed 0 …] [other options of `kgkit train kambert`]

The second trains each row with every seed, predicts GLUE's dev part once, and writes scores with paired tests
against the first row. `--alpha` trains the rows `plain`, and `KAM-BERT` with each α, instead; `--svg` draws
their scores over α. Predictions lie in OUT_DIR, and are read from there another time. HOME has the
tagger, the chunker and the PMI table, and for the row `with WordNet` the knowledge base `wordnet` and the
linker `wsd-minilm`.
"""

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, BertModel

from benchmarks.fine_tuning import GLUE_NOTES, GLUE_TASKS, Trainings, score_table
from benchmarks.kbert import timed
from benchmarks.report import Table, Target
from kgkit.encoder.attention import set_attention
from kgkit.heads import KamBert, KamBertConfig, KamBertInputs
from kgkit.inputs.maps import MAPS
from kgkit.methods.kambert_settings import KamBertTraining

SIZES: Final = (73, 128)
TEXTS: Final = 8
ALPHA: Final = "α = "
EAGER, SDPA, KERNEL, TERMS = "BERT, eager", "BERT, sdpa", "KAM-BERT", "KAM-BERT, 8 terms"

COST_NOTES: Final = """
The shape of BERT-base unless said otherwise, random weights, a batch of {texts} texts of as many word
pieces, four maps, a twentieth of whose cells are not zero; the maps are made beforehand. Multiply-adds of
one pass forward of one text, by `torch.utils.flop_counter`, which counts two operations for each. A step is
forward and backward, in training mode, without the optimizer; CPU seconds of one thread, or milliseconds of
the device. Variants in turn, {rounds} rounds; ratios are medians of those within a round, over eager.
"""


# -- cost -------------------------------------------------------------------


def batch(size: int, terms: int, vocabulary: int) -> KamBertInputs:
    """Return a batch of random word pieces, with maps a twentieth of which is not zero."""
    drawn = torch.Generator().manual_seed(size)
    ids = torch.randint(5, vocabulary, (TEXTS, size), generator=drawn)
    cells = torch.nonzero(torch.rand(TEXTS, len(MAPS), size, size, generator=drawn) < 0.05)
    auxiliary = torch.randint(5, vocabulary, (TEXTS, terms + 1 if terms else 0), generator=drawn)
    real = torch.arange(auxiliary.shape[1]).expand_as(auxiliary) > 0
    values = torch.rand(len(cells), generator=drawn)
    return KamBertInputs(ids, torch.ones_like(ids, dtype=torch.bool), cells, values, auxiliary, real)


def heads(config: BertConfig, device: torch.device) -> dict[str, KamBert]:
    """Return a head of each variant, in training mode, all with the same weights of their encoders."""
    settings: dict[str, dict[str, Any]] = {
        EAGER: {"plain": True}, SDPA: {"plain": True}, KERNEL: {}, TERMS: {},
    }  # fmt: skip
    heads_by_name = {}
    for name, chosen in settings.items():
        torch.manual_seed(0)
        model: Any = BertModel(config, add_pooling_layer=False)
        model.to(device)
        heads_by_name[name] = KamBert(model, KamBertConfig.of(model, maps=MAPS, **chosen)).to(device).train()
        if name == SDPA:
            set_attention(model, "sdpa")
    return heads_by_name


def multiply_adds(head: KamBert, inputs: KamBertInputs) -> float:
    """Return the multiply-adds of a pass forward, of one text."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        head(inputs)
    return float(counter.get_total_flops()) / 2 / len(inputs.ids)


def peak_megabytes(head: KamBert, inputs: KamBertInputs) -> str:
    """Return the greatest memory of a step on a GPU; "" elsewhere."""
    if inputs.ids.device.type != "cuda":
        return ""
    torch.cuda.reset_peak_memory_stats()
    step(head, inputs)
    return f"{torch.cuda.max_memory_allocated() / 1e6:,.0f}"


def step(head: KamBert, inputs: KamBertInputs) -> None:
    """Compute the gradients of a batch."""
    torch.autograd.backward(head(inputs).last_hidden_state.square().mean())
    head.zero_grad()


def cost(
    config: BertConfig,
    rounds: int,
    device: torch.device,
    sizes: Sequence[int] = SIZES,
    timed_sizes: Sequence[int] = SIZES,
) -> Table:
    """Return the table of parameters, multiply-adds and time.

    Args:
        config: shape of the encoder.
        rounds: rounds of steps that are timed.
        device: torch device.
        sizes: word pieces of a text.
        timed_sizes: those of *sizes* whose steps are timed.
    """
    models, measured, rows, targets = heads(config, device), timed(device), [], []
    for size in sizes:
        is_timed = size in timed_sizes
        inputs = {
            name: batch(size, 8 if name == TERMS else 0, config.vocab_size).to(device) for name in models
        }
        times: dict[str, list[float]] = {name: [] for name in models}
        for number in range(rounds + 1 if is_timed else 0):
            for name, head in models.items():
                seconds = measured(lambda head=head, read=inputs[name]: step(head, read))  # type: ignore[misc]
                if number:  # the first round warms up
                    times[name].append(seconds)
        for name, head in models.items():
            base = SDPA if name == SDPA else EAGER
            own = sum(parameter.numel() for parameter in head.mixing.parameters())
            every = sum(parameter.numel() for parameter in head.parameters())
            counts = f"{every:,}", f"{own:,}", f"{multiply_adds(head, inputs[name]) / 1e9:.2f}"
            if not is_timed:
                rows.append([f"{size}", name, *counts, "", "", ""])
                continue
            ratio = statistics.median(
                mine / plain for mine, plain in zip(times[name], times[base], strict=True)
            )
            rows.append([
                f"{size}", name, *counts, f"{statistics.median(times[name]):.3g}", f"{ratio:.3f}",
                peak_megabytes(head, inputs[name]),
            ])  # fmt: skip
            if size == max(sizes) and name in (KERNEL, TERMS):
                targets.append(
                    Target(what=f"{name}, over {base}", value=ratio, aim=1.25, unit="times", at_most=True)
                )
    columns = (
        "size", "model", "parameters", "of its own", "G multiply-adds",
        "CPU s" if device.type == "cpu" else "ms", "ratio", "peak MB",
    )  # fmt: skip
    notes = COST_NOTES.format(texts=TEXTS, rounds=rounds)
    return Table(title="KAM-BERT: what it costs", notes=notes, columns=columns, rows=rows, targets=targets)


# -- tasks ------------------------------------------------------------------


def rows_of(tagger: str, chunker: str, pmi: str) -> dict[str, list[str]]:
    """Return the options of each row; the first is what others are compared with."""
    sources = {"entity": ["--tagger", tagger], "phrase": ["--chunker", chunker], "PMI": ["--pmi", pmi]}
    every = [word for words in sources.values() for word in words]
    without = {
        f"without {name}": [word for other, words in sources.items() if other != name for word in words]
        for name in sources
    }
    return {
        "plain": ["--control"], "KAM-BERT": every, **without,
        "with WordNet": [*every, "--kb", "wordnet", "--linker", "wsd-minilm"], "without any map": [],
    }  # fmt: skip


def alpha_rows(rows: Mapping[str, list[str]], alphas: Sequence[str]) -> dict[str, list[str]]:
    """Return the options of the control, and of KAM-BERT with each α; its default is the row `KAM-BERT`."""
    chosen = {"plain": rows["plain"]}
    for alpha in alphas:
        words = [] if float(alpha) == KamBertTraining.alpha else ["--alpha", alpha]
        chosen[f"{ALPHA}{float(alpha):g}"] = [*rows["KAM-BERT"], *words]
    return chosen


def draw_alphas(table: Table, path: Path) -> None:
    """Draw scores over α: their means, a dot for each seed, and the mean of the control as a line.

    Args:
        table: table of `score_table` with the rows of `alpha_rows`.
        path: SVG or another format of matplotlib.
    """
    from matplotlib.figure import Figure

    scores = {row[0]: [float(score) for score in row[3].split(", ")] for row in table.rows}
    points = sorted(
        (float(name.removeprefix(ALPHA)), own) for name, own in scores.items() if name.startswith(ALPHA)
    )
    figure = Figure(figsize=(5, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot([alpha for alpha, _ in points], [statistics.mean(own) for _, own in points], label="KAM-BERT")
    for alpha, own in points:
        axes.scatter([alpha] * len(own), own, s=12, color="C0", alpha=0.6)
    axes.axhline(statistics.mean(scores["plain"]), color="C1", linestyle="--", label="plain encoder")
    axes.set_xticks([alpha for alpha, _ in points], [f"{alpha:g}" for alpha, _ in points])
    axes.set_xlabel("α")
    axes.set_ylabel(f"{table.columns[1]}, × 100")
    axes.legend(fontsize=8, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def parse(arguments: Sequence[str] | None = None) -> tuple[argparse.Namespace, list[str]]:
    """Return the options, and what `tasks` passes on to `kgkit train kambert`; None: those of the process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kambert")
    commands = parser.add_subparsers(dest="command", required=True)
    of_cost, of_tasks = commands.add_parser("cost"), commands.add_parser("tasks")
    of_cost.add_argument("--device", default="cpu")
    for option, usual in (("--rounds", 5), ("--layers", 12), ("--width", 768)):
        of_cost.add_argument(option, type=int, default=usual)
    of_cost.add_argument(
        "--timed-size", type=int, action="append", choices=SIZES, help="word pieces of steps that are timed"
    )
    of_tasks.add_argument("set", choices=GLUE_TASKS)
    of_tasks.add_argument("--home", type=Path, required=True)
    of_tasks.add_argument("--out", type=Path, required=True, metavar="OUT_DIR")
    for option in ("--tagger", "--chunker", "--pmi"):
        of_tasks.add_argument(option, required=True)
    rows = of_tasks.add_mutually_exclusive_group()
    rows.add_argument("--row", action="append", choices=[*rows_of("", "", "")])
    rows.add_argument("--alpha", action="append")
    of_tasks.add_argument("--svg", type=Path, metavar="FILE", help="with --alpha: a picture of the scores")
    of_tasks.add_argument("--seed", type=int, action="append")
    chosen, words = parser.parse_known_args(arguments)
    if words and chosen.command == "cost":
        of_cost.error(f"unrecognized arguments: {' '.join(words)}")
    if chosen.command == "tasks" and chosen.svg and not chosen.alpha:
        of_tasks.error("--svg draws scores over α: name some with --alpha")
    return chosen, words


def main() -> None:
    """Measure, and write the table to the standard output."""
    chosen, words = parse()
    if chosen.command == "cost":
        config = BertConfig(
            num_hidden_layers=chosen.layers, hidden_size=chosen.width, num_attention_heads=chosen.width // 64,
            intermediate_size=4 * chosen.width,
        )  # fmt: skip
        timed_sizes = chosen.timed_size or SIZES
        table = cost(config, chosen.rounds, torch.device(chosen.device), timed_sizes=timed_sizes)
        print(table.markdown())
        for target in table.targets:
            print(" | ".join(target.row()))
        return
    chosen.out.mkdir(parents=True, exist_ok=True)
    every = rows_of(chosen.tagger, chosen.chunker, chosen.pmi)
    rows = {name: every[name] for name in chosen.row or every}
    if chosen.alpha:
        rows = alpha_rows(every, chosen.alpha)
    trainings = Trainings(chosen.home, chosen.out, "kambert", GLUE_TASKS[chosen.set], words)
    seeds, title = chosen.seed or [0, 1, 2], f"KAM-BERT: {chosen.set}"
    table = score_table(trainings, rows, seeds, title, GLUE_NOTES)
    print(table.markdown())
    if chosen.svg:
        draw_alphas(table, chosen.svg)


if __name__ == "__main__":
    main()
