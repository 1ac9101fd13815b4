"""The examples of a task as KnowBert reads them: special pieces where names stand, tags at tokens."""

import logging

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.evaluation.examples import Example
from kgkit.inputs import KnowBertReader
from kgkit.methods.knowbert_reading import ExampleReader
from tests.inputs.test_knowbert import encoder, knowledge
from tests.tiny_encoder import tiny_encoder

__all__ = ["encoder", "knowledge"]

MARKERS = ("[E1]", "[/E1]", "[E2]", "[/E2]")
TAIL = ("[SUBJECT=DOG]", "[OBJECT=CITY]")
SPECIALS = (*MARKERS, *TAIL, "[E]", "[/E]")
TEXT = "the dog barks in the big city"
DOG, CITY = (4, 7), (21, 29)


def relation(text=TEXT, marks=(DOG, CITY), tail=(), name="1"):
    return Example(name, (text,), marks, tail=tail)


# -- reading ----------------------------------------------------------------


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """An encoder that has the special pieces."""
    loaded = Encoder.load(str(tiny_encoder(tmp_path_factory.mktemp("taught"))), device="cpu", dtype="float32")
    loaded.tokenizer.add_tokens(list(SPECIALS), special_tokens=True)
    torch.manual_seed(0)
    loaded.model.resize_token_embeddings(len(loaded.tokenizer))
    return loaded


@pytest.fixture
def reading(taught, knowledge):
    def of(size=24, specials=SPECIALS):
        reader = KnowBertReader(taught, {"words": knowledge}, size=size)
        return ExampleReader(reader, taught.tokenizer, specials)

    return of


def said(taught, ids):
    return " ".join(taught.tokenizer.convert_ids_to_tokens([int(one) for one in ids]))


def test_names_are_marked_and_read_where_they_begin(reading, taught):
    [one] = reading()([relation(tail=TAIL)])
    assert said(taught, one.content.ids) == (
        "[CLS] the [E1] dog [/E1] barks in the [E2] big city [/E2] [SUBJECT=DOG] [OBJECT=CITY] [SEP]"
    )
    assert one.positions.tolist() == [[2, 8]]
    known = one.content.mentions["words"].spans.tolist()
    assert [said(taught, one.content.ids[slice(*span)]) for span in known] == ["dog", "big city"]
    pieces = said(taught, one.content.ids).split()
    assert one.content.special.tolist() == [piece[0] == "[" for piece in pieces]


@pytest.mark.parametrize(
    ("marks", "wanted"),
    [
        ((DOG, (8, 13)), "the [E1] dog [/E1] [E2] barks [/E2] in the big city"),
        (((8, 13), DOG), "the [E2] dog [/E2] [E1] barks [/E1] in the big city"),
        ((CITY, (25, 29)), "the dog barks in the [E1] big [E2] city [/E2] [/E1]"),
        (((21, 24), CITY), "the dog barks in the [E2] [E1] big [/E1] city [/E2]"),
        ((DOG, DOG), "the [E1] [E2] dog [/E2] [/E1] barks in the big city"),
        (((4, 5), (17, 24)), "the [E1] dog [/E1] barks in [E2] the big [/E2] city"),
        (((7, 8), (29, 29)), "the dog [E1] [/E1] barks in the big city [E2] [/E2]"),
        ((DOG,), "the [E] dog [/E] barks in the big city"),
        ((), TEXT),
    ],
)
def test_wherever_names_stand_each_begins_and_ends(reading, taught, marks, wanted):
    [one] = reading()([relation(marks=marks)])
    assert said(taught, one.content.ids) == f"[CLS] {wanted} [SEP]"
    pieces = said(taught, one.content.ids).split()
    opening = [["[E]"], ["[E1]", "[E2]"]][len(marks) // 2][: len(marks)] or ["[CLS]"]
    assert [pieces[position] for position in one.positions[0]] == opening


def test_a_text_that_says_what_a_marker_is_called_is_read_at_the_marker(reading, taught):
    [one] = reading()([relation("[E1] the dog", ((9, 12), (5, 8)))])
    assert said(taught, one.content.ids) == "[CLS] [E1] [E2] the [/E2] [E1] dog [/E1] [SEP]"
    assert one.positions.tolist() == [[5, 2]]


@pytest.mark.parametrize("size", range(11, 17))
def test_nothing_is_longer_than_asked_for_and_names_that_are_cut_off_are_read_last(
    reading, taught, size, caplog
):
    reader = reading(size=size)
    with caplog.at_level(logging.WARNING):
        [one, same] = reader([relation(tail=TAIL), relation(tail=TAIL)])
    assert len(one.content.ids) == min(size, 15) and (same.positions == one.positions).all()
    pieces = said(taught, one.content.ids).split()
    assert [pieces[position] for position in one.positions[0]] == ["[E1]", "[E2]"]
    assert pieces[-3:-1] == [*TAIL]
    words = TEXT.split()[: size - 8]
    assert [piece for piece in pieces if piece[0] != "["] == words
    assert pieces[one.positions[0, 1] + 1] == ("big" if "big" in words else words[-1])
    assert sum("cut off" in record.message for record in caplog.records) == ("big" not in words)
    if size == 11:
        assert " ".join(pieces) == (
            "[CLS] the [E1] dog [/E1] [E2] barks [/E2] [SUBJECT=DOG] [OBJECT=CITY] [SEP]"
        )


def test_pairs_leave_room_too_and_keep_their_types(reading, taught):
    [one] = reading(size=9)([Example("1", ("the dog barks", "a tree grows"), (DOG,))])
    assert said(taught, one.content.ids) == "[CLS] the [E] dog [/E] [SEP] a tree [SEP]"
    [two] = reading()([Example("1", ("the dog", "a tree"), (DOG,), tail=TAIL[:1])])
    assert said(taught, two.content.ids) == "[CLS] the [E] dog [/E] [SEP] a tree [SUBJECT=DOG] [SEP]"
    assert two.content.types.tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]


def test_examples_of_several_kinds_are_read_in_order(reading):
    some = [relation(tail=TAIL), relation(marks=()), relation(), relation(marks=()), relation(marks=(DOG,))]
    together = list(reading()(some))
    for one, found in zip(some, together, strict=True):
        [alone] = reading()([one])
        np.testing.assert_array_equal(alone.content.ids, found.content.ids)
        np.testing.assert_array_equal(alone.positions, found.positions)


def test_types_of_names_that_are_not_known_are_left_out_and_said_once(reading, taught, caplog):
    with caplog.at_level(logging.WARNING):
        some = list(reading()([relation(tail=("[SUBJECT=CAT]", TAIL[1]))] * 2))
    assert said(taught, some[0].content.ids).endswith("city [/E2] [OBJECT=CITY] [SEP]")
    assert [record.message for record in caplog.records] == [
        "types that the model does not know are not read, as that of 1"
    ]


def test_what_cannot_be_read_is_told(reading):
    with pytest.raises(UsageError, match=r"the tokenizer lacks the special piece \[E3\]: add it"):
        reading(specials=("[E1]", "[E3]"))
    with pytest.raises(UsageError, match=r"marked with \[E1\], which is not among the special pieces: \[E\]"):
        list(reading(specials=("[E]",))([relation()]))
    with pytest.raises(UsageError, match="of which 6 are markers, leave no room for words: read 11 or more"):
        list(reading(size=10)([relation(tail=TAIL, name="x")._replace(texts=("a", "b"))]))


def test_a_tag_is_read_at_the_first_piece_of_its_token(reading, taught):
    tokens = ((0, 3), (4, 8), (9, 12), (13, 16), (17, 21))
    [whole] = reading()([Example("1", ("the dogs eat big trees",), tokens=tokens)])
    pieces = said(taught, whole.content.ids).split()
    assert [pieces[position] for position in whole.positions[:, 0]] == ["the", "dog", "[UNK]", "big", "tree"]
    [cut] = reading(size=6)([Example("1", ("the dogs eat big trees",), tokens=tokens)])
    assert cut.positions[:, 0].tolist() == [1, 2, 4, -1, -1]
    [joined] = reading()([Example("1", ("dogs",), tokens=((0, 3), (3, 4)))])
    assert joined.positions[:, 0].tolist() == [1, 2]
    [within] = reading()([Example("1", ("the",), tokens=((0, 1), (1, 3)))])
    assert within.positions[:, 0].tolist() == [1, -1]  # no piece begins in the second token
