"""What facts in a text cost K-BERT: one pass forward, over plain BERT on texts of the same length.

    python -m benchmarks.kbert --home HOME [--vocabulary VOCAB] [--device cuda] [--rounds 5]

HOME holds a build of `hownet`. The encoder has the shape of BERT-base and random weights.
"""

import argparse
import lzma
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from transformers import BertConfig, BertModel

from benchmarks.harness import REPOSITORY
from benchmarks.report import Table
from kgkit.candidates import AliasGenerator
from kgkit.encoder import Encoder
from kgkit.encoder.fresh import EncoderShape, fresh_encoder
from kgkit.heads import KBert, KBertInputs
from kgkit.inputs import TreeReader
from kgkit.kb import KnowledgeBase, open_kb
from kgkit.trees import TreeBuilder
from kgkit.types import Document

DATA: Final = REPOSITORY.parent / "shared" / "data"
TEXTS: Final = 8
SIZES: Final = (128, 256)
LARGER: Final = (512, 1024, 2048)
BERT, DENSE = "BERT", "K-BERT"

NOTES: Final = """
A batch of 8 texts of chnsenticorp, put together until they are long enough, with two facts of HowNet to a
mention; BERT-base (12 layers, 768 wide, random weights), one pass forward in evaluation mode. Plain BERT
reads as many word pieces, without facts. Variants in turn; CPU seconds of one thread, or milliseconds of
the device; the ratio is the median of those within a round.
"""


def chinese(size: int, count: int) -> tuple[list[str], list[str]]:
    """Return texts that leave room for facts, and longer ones without any."""
    with lzma.open(DATA / "chinese_tasks" / "chnsenticorp" / "test.tsv.xz", "rt", encoding="utf-8") as lines:
        text = "".join(line.rstrip("\n").split("\t")[1] for line in lines)
    # The text goes first: three quarters of the size leave room for facts.
    parts = [text[at * size : at * size + 3 * size // 4] for at in range(count)]
    return parts, [text[at * size : (at + 2) * size] for at in range(count)]


def read(
    kb: KnowledgeBase, encoder: Encoder, parts: Sequence[str], plain: Sequence[str], size: int
) -> tuple[KBertInputs, KBertInputs]:
    """Return a batch of trees, of the texts in *parts*, and one of *plain* texts as long."""
    batches = []
    for builder, texts in ((TreeBuilder([AliasGenerator(kb)]), parts), (TreeBuilder([]), plain)):
        reader = TreeReader(encoder, builder, size=size)
        batches.append(reader.batch([*reader([(Document("", text),) for text in texts])]))
    trees, texts_ = batches
    length = trees.ids.shape[1]
    return trees, texts_._replace(
        **{name: tensor[:, :length] for name, tensor in texts_._asdict().items() if tensor is not None}
    )


def read_chinese(kb: KnowledgeBase, vocabulary: Path, size: int) -> tuple[KBertInputs, KBertInputs]:
    """Return a batch of trees of chnsenticorp, and one of plain texts as long."""
    with tempfile.TemporaryDirectory() as folder:
        shape = EncoderShape(layers=1, width=8, heads=1, positions=4096)
        encoder = Encoder.load(str(fresh_encoder(Path(folder), vocabulary, shape)), device="cpu")
        return read(kb, encoder, *chinese(size, TEXTS), size)


def timed(device: torch.device) -> Callable[[Callable[[], object]], float]:
    """Return what measures a call: CPU seconds, or milliseconds on a device."""

    def on_cpu(call: Callable[[], object]) -> float:
        began = time.process_time()
        call()
        return time.process_time() - began

    def on_gpu(call: Callable[[], object]) -> float:
        torch.cuda.synchronize()
        began = time.perf_counter()
        call()
        torch.cuda.synchronize()
        return 1000 * (time.perf_counter() - began)

    return on_cpu if device.type == "cpu" else on_gpu


def rows_of(
    model: Any, sizes: tuple[int, ...], kb: KnowledgeBase, vocabulary: Path, rounds: int, device: torch.device
) -> list[list[str]]:
    """Return a row for each size and variant."""
    rows, measured = [], timed(device)
    for size in sizes:
        trees, plain = (batch.to(device) for batch in read_chinese(kb, vocabulary, size))
        every = {BERT: plain, DENSE: trees}
        times: dict[str, list[float]] = {name: [] for name in every}
        with torch.inference_mode():
            for number in range(rounds + 1):
                for name, inputs in every.items():
                    seconds = measured(lambda inputs=inputs: KBert(model)(inputs))  # type: ignore[misc]
                    if number:  # the first round warms up
                        times[name].append(seconds)
        facts = int(trees.branches.amax(1).sum())
        for name, seconds_ in times.items():
            ratio = statistics.median(mine / base for mine, base in zip(seconds_, times[BERT], strict=True))
            about = f"{int(trees.real.sum()):,} pieces, {facts} facts" if name != BERT else ""
            rows.append([f"{size}", name, about, f"{statistics.median(seconds_):.3g}", f"{ratio:.3f}"])
    return rows


def main() -> None:
    """Measure, and write the table to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kbert")
    parser.add_argument("--home", required=True)
    parser.add_argument("--vocabulary", type=Path, default=DATA / "bert_zh" / "google_vocab.txt")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    device = torch.device(chosen.device)
    torch.manual_seed(0)
    bert: Any = BertModel(BertConfig(vocab_size=21_128, max_position_embeddings=4096))
    model = bert.to(device).eval()
    sizes = SIZES if device.type == "cpu" else (*SIZES, *LARGER)
    with open_kb("hownet", chosen.home) as kb:
        rows = rows_of(model, sizes, kb, chosen.vocabulary, chosen.rounds, device)
    columns = ("size", "model", "batch", "CPU s" if device.type == "cpu" else "ms", "over BERT")
    print(Table(title="K-BERT: what facts cost", notes=NOTES, columns=columns, rows=rows).markdown())


if __name__ == "__main__":
    main()
