"""Lines of the heads: K-BERT; what knowledge costs KnowBert."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.gpu import stand_ins
from benchmarks.gpu.clocks import measure_calls, now, peak_memory
from benchmarks.gpu.lines import Row, Setting, attempt, line

if TYPE_CHECKING:
    from kgkit.heads import KBertInputs

TEXTS: Final = 32
LENGTHS: Final = ((128, True), (256, True), (512, True), (512, False), (1024, True), (2048, True))
ROWS: Final = 7_000_000
SPANS: Final = 0.75  # mentions a word, as many as KnowBert's table of Wikipedia finds
FREE: Final = 0.8  # of the disk

KBERT_NOTES: Final = f"""
`benchmarks.kbert`: a pass forward of BERT-base's shape (random weights), {TEXTS} sentence trees of the
stand-in knowledge base, three quarters text, beside plain BERT on as many word pieces. Milliseconds, the
middle of 10; memory is what the pass takes beside weights and inputs.
"""
KNOWBERT_NOTES: Final = f"""
`benchmarks.knowbert`: a pass forward and backward, 32 × 80 word pieces, BERT-base's shape (random weights),
{SPANS} mentions a word for each of two knowledge bases, 30 candidates each, drawn of all entities of the
stand-in; vectors in a file mapped into the host's memory. The middle of the rounds; ratios are those of the
middles.
"""


@line(
    "kbert",
    "K-BERT on a GPU: one pass",
    limit=150,
    order=1,
    notes=KBERT_NOTES,
    needs=("torch", "transformers", "lmdb"),
    stand_ins=True,
)
def kbert(setting: Setting) -> Iterator[Row]:
    """Yield plain BERT and K-BERT, length by length."""
    import torch
    from transformers import BertConfig, BertModel

    from benchmarks.kbert import BERT, DENSE

    shape: dict[str, Any] = {"max_position_embeddings": 4096}
    if setting.small:
        shape |= {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    torch.manual_seed(0)
    bert: Any = BertModel(BertConfig(**shape))
    model = bert.to(setting.device).eval()
    for size, bf16 in ((32, False),) if setting.small else LENGTHS:
        trees, plain = (batch.to(torch.device(setting.device)) for batch in _trees(setting, size))
        every = {BERT: plain, DENSE: trees}
        facts = int(trees.branches.amax(1).sum())
        about = f"{int(trees.real.sum()):,} pieces of {len(trees.ids)} trees, {facts:,} facts"
        base = None
        for name, inputs in every.items():
            what = f"{size}, {'bfloat16' if bf16 else 'float32'}: {name}"
            note = about if base is not None else ""
            row = attempt(what, lambda: _pass(what, setting, model, inputs, bf16, base, note))  # noqa: B023
            base = row if base is None else base
            yield row


def _pass(
    what: str,
    setting: Setting,
    model: Any,
    inputs: "KBertInputs",
    bf16: bool,
    base: Row | None,
    note: str,
) -> Row:
    """Return the row of one model on one batch."""
    import torch

    from kgkit.heads import KBert

    kbert = KBert(model)
    device = torch.device(setting.device)
    with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=bf16):
        took = measure_calls(setting.device, lambda: kbert(inputs), rounds=setting.size(10, 2))
    return Row(
        what=what, value=1000 * took.median, unit="ms", control="" if base is None else "BERT",
        control_value=None if base is None else base.value, memory=took.memory, note=note,
    )  # fmt: skip


def _trees(setting: Setting, size: int) -> "tuple[KBertInputs, KBertInputs]":
    """Return a batch of trees of the stand-ins, and one of plain texts as long."""
    from benchmarks.kbert import read
    from kgkit.encoder import Encoder
    from kgkit.encoder.fresh import EncoderShape, fresh_encoder

    folder, words = Path(setting.scratch) / "long-encoder", stand_ins.plain_words(setting)
    if not folder.exists():
        shape = EncoderShape(layers=1, width=8, heads=1, positions=4096)
        fresh_encoder(folder, Path(setting.scratch) / "vocabulary.txt", shape)
    encoder, count = Encoder.load(str(folder), device="cpu"), setting.size(TEXTS, 2)
    pieces = 1.2  # of a word: one in five is in two
    part, full = int(0.75 * size / pieces), size
    starts = [at * size % max(1, len(words) - full) for at in range(count)]
    with stand_ins.open_stand_in(setting) as kb:
        return read(
            kb,
            encoder,
            [" ".join(words[at : at + part]) for at in starts],
            [" ".join(words[at : at + full]) for at in starts],
            size,
        )


@line(
    "knowbert",
    "KnowBert on a GPU: what knowledge costs",
    limit=110,
    order=2,
    notes=KNOWBERT_NOTES,
    needs=("torch", "transformers", "lmdb"),
    stand_ins=True,
)
def knowbert(setting: Setting) -> Iterator[Row]:
    """Yield passes of the variants over plain BERT, and the candidates' share of the time."""
    import torch
    from transformers import BertConfig

    from benchmarks import knowbert as bench

    rows, about = _rows(setting)
    encoder = stand_ins.stand_in_encoder(setting, "cpu")
    words = stand_ins.plain_words(setting)
    lines = ((" ".join(words[at : at + 90]),) for at in range(0, len(words) - 90, 90))
    device, rounds = torch.device(setting.device), setting.size(10, 1)
    with stand_ins.open_stand_in(setting) as kb:
        kbs = dict.fromkeys(bench.STORED, kb)
        count = setting.size(bench.SENTENCES, 2)
        reading = bench.read(encoder, kbs, lines, rows, Path(setting.scratch), SPANS, count)
        batch = reading.batch()
        gathered = measure_calls(setting.device, reading.batch, rounds=rounds, memory=False).median
    labels = reading.labels.to(device)
    moved = measure_calls(setting.device, lambda: batch.to(device), rounds=rounds, memory=False).median
    on_device = batch.to(device)
    shape = None
    if setting.small:
        shape = BertConfig(
            vocab_size=len(encoder.tokenizer), hidden_size=16, num_hidden_layers=4, num_attention_heads=2,
            intermediate_size=16,
        )  # fmt: skip
    variants = {
        name: model.to(device)
        for name, model in bench.models(torch.Generator().manual_seed(0), batch, shape).items()
    }
    full = [*variants][-1]
    yield Row(what="the batch: layout, vectors from memory", value=1000 * gathered, unit="ms", note=about)
    yield Row(
        what=f"the batch, to the {setting.name}", value=1000 * moved, unit="ms", note=bench.described(batch)
    )
    for bf16 in (False, True):
        kind = "bfloat16" if bf16 else "float32"
        seconds: dict[str, list[float]] = {name: [] for name in variants}
        peaks: dict[str, int | None] = {}
        warm = setting.size(2, 1)
        for turn in range(rounds + warm):
            for name, model in variants.items():
                began = now(setting.device)
                bench.forward_backward(model, on_device, labels, device, bf16=bf16)
                spent = now(setting.device) - began
                model.zero_grad(set_to_none=True)
                if turn >= warm:  # the first ones warm up
                    seconds[name].append(spent)
        for name, model in variants.items() if setting.on_gpu else ():
            peaks[name] = peak_memory(
                setting.device,
                lambda: bench.forward_backward(model, on_device, labels, device, bf16=bf16),  # noqa: B023
            )
            model.zero_grad(set_to_none=True)
        middles = {name: sorted(some)[len(some) // 2] for name, some in seconds.items()}
        plain, *_ = middles.values()
        for name, middle in middles.items():
            first = name == next(iter(middles))
            yield Row(
                what=f"{name}, {kind}", value=1000 * middle, unit="ms", control="" if first else "BERT",
                control_value=None if first else 1000 * plain, memory=peaks.get(name),
            )  # fmt: skip
        every = gathered + moved + middles[full]
        yield Row(
            what=f"{full}, {kind}: the candidates' share", value=100 * (every - plain) / every, unit="%",
            note=f"of {1000 * every:.1f} ms: {1000 * gathered:.1f} for the batch, {1000 * moved:.1f} to the "
            f"{setting.name}, {1000 * (middles[full] - plain):.1f} in the layers",
        )  # fmt: skip


def _rows(setting: Setting) -> tuple[dict[str, int], str]:
    """Return how many rows the matrices have, and a note: fewer, where the disk is too small."""
    from benchmarks.knowbert import STORED

    width, free = STORED["aida"], shutil.disk_usage(setting.scratch).free
    target = setting.size(ROWS, 300)
    most = int(FREE * free / (4 * width))
    rows = min(target, most)
    note = f"{rows:,} × {width} of one knowledge base"
    if rows < target:
        note += f" (the disk has no room for {target:,})"
    return {"aida": rows, "wordnet": setting.size(117_659, 300)}, note
