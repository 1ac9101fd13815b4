"""From texts to what K-BERT reads: word pieces, segments, padding."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from kgkit.building import Alias, Entity, Triple
from kgkit.candidates import AliasGenerator
from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.heads import KBert
from kgkit.inputs import TreeReader
from kgkit.trees import TreeBuilder
from kgkit.types import Document
from tests.small_kb import build
from tests.tiny_encoder import PIECES, tiny_encoder

RECORDS = [
    Entity("city"), Entity("big", "big"), Entity("tree", "red fruits"), Alias("big city", "city"),
    Alias("dogs", "big"), Triple("city", "has", "big"), Triple("big", "eats", "tree"),
]  # fmt: skip


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tiny_encoder(tmp_path_factory.mktemp("tiny"), mask=True)
    return Encoder.load(str(folder), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def builder(tmp_path_factory):
    with build(tmp_path_factory.mktemp("kb"), RECORDS) as kb:
        yield TreeBuilder([AliasGenerator(kb)])


def read(reader, *texts):
    return [*reader([tuple(Document("", text) for text in one) for one in texts])]


def pieces(ids):
    names = [*PIECES, "[MASK]"]
    return " ".join(names[one] for one in ids)


def test_a_tree_is_word_pieces_with_special_ones_around_them(encoder, builder):
    [tree] = read(TreeReader(encoder, builder, size=20), ("dogs [MASK] the big city",))
    said = "[CLS] dog ##s eats red fruit ##s [MASK] the big city [UNK] big [SEP]"
    assert pieces(tree.tokens) == said
    assert tree.positions.tolist() == [0, 1, 2, 3, 4, 5, 6, 3, 4, 5, 6, 7, 8, 7]
    assert tree.hooks.tolist() == [0, 1, 1, 1, 1, 1, 1, 0, 0, 2, 2, 2, 2, 0]
    assert tree.starts.tolist() == [-1, 0, 3, -1, -1, -1, -1, 5, 12, 16, 20, -1, -1, -1]


def test_a_batch_is_padded_and_the_second_text_has_a_segment_of_its_own(encoder, builder):
    reader = TreeReader(encoder, builder, size=20)
    batch = reader.batch(read(reader, ("the dog",), ("a cat", "big city")))
    assert batch.ids[0].tolist()[4:] == [0] * 5 and batch.real.sum(1).tolist() == [4, 9]
    assert batch.types.tolist() == [[0] * 9, [0] * 4 + [1] * 5]
    assert pieces(batch.ids[1].tolist()) == "[CLS] a cat [SEP] big city [UNK] big [SEP]"
    assert KBert(encoder.model)(batch).last_hidden_state.shape[:2] == (2, 9)


def test_without_knowledge_bases_trees_are_the_texts(encoder):
    reader = TreeReader(encoder, TreeBuilder([]), size=20)
    batch = reader.batch(read(reader, ("dogs in the big city",), ("a", "the dog")))
    for row, texts in enumerate((("dogs in the big city",), ("a", "the dog"))):
        plain = encoder.tokenizer(*texts)
        count = len(plain["input_ids"])
        assert batch.ids[row, :count].tolist() == plain["input_ids"]
        assert batch.positions[row, :count].tolist() == [*range(count)]
    assert not batch.hooks.any() and not batch.branches.any()


def test_a_text_that_is_cut_is_said_once(encoder, builder, caplog):
    reader = TreeReader(encoder, builder, size=6)
    long, _ = read(reader, ("the big city grows not",), ("a dog eats a cat and a tree",))
    assert pieces(long.tokens) == "[CLS] the big city grows [SEP]"
    assert [one.getMessage() for one in caplog.records] == [
        "texts of more than 6 word pieces are cut; the first such has 7: 'the big city grows not'"
    ]


def test_what_cannot_be_read_is_told(encoder, builder):
    with pytest.raises(UsageError, match=r"trees of 4 pieces; .* reads 5 to 24"):
        TreeReader(encoder, builder, size=4)
    with pytest.raises(UsageError, match="reads 5 to 24"):
        TreeReader(encoder, builder, size=25)
    with pytest.raises(UsageError, match="a text or a pair of texts is read, not 3 texts"):
        read(TreeReader(encoder, builder, size=20), ("a", "b", "c"))


def test_numbers_are_those_of_torch(encoder, builder):
    reader = TreeReader(encoder, builder, size=20)
    batch = reader.batch(read(reader, ("dogs",)))
    assert {one.dtype for name, one in batch._asdict().items() if name != "real"} == {torch.int64}
    assert batch.real.dtype == torch.bool
