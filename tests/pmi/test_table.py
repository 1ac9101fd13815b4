"""PMI tables: values of pairs, the words that go best with others, arrays that are none."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kgkit
from kgkit.errors import DamagedModel, UsageError
from kgkit.pmi import AssociatedWord, PMITable, text_words
from kgkit.pmi.table import ARRAYS
from kgkit.text import fold, tokens
from tests.pmi_toys import pmi_folder

WORDS = ["and", "barks", "dog", "naïve", "the", "苹"]


def table_of(pairs, counts=None, words=WORDS, changed=()):
    """Return a table of {(word, word): value}, each pair given once; some of its arrays may be others."""
    ordered = sorted(words, key=str.encode)
    rows = {(ordered.index(a), ordered.index(b)): value for a, b in pairs for value in [pairs[a, b]]}
    rows |= {(b, a): value for (a, b), value in rows.items()}
    keys = sorted(rows)
    arrays = {
        "words": list("".join(ordered).encode()),
        "ends": np.cumsum([len(word.encode()) for word in ordered]),
        "counts": [(counts or {}).get(word, 1) for word in ordered],
        "starts": np.searchsorted([a for a, _ in keys], range(len(words) + 1)),
        "columns": [b for _, b in keys],
        "values": [rows[key] for key in keys],
    }
    return PMITable(
        {name: np.array((arrays | dict(changed))[name], kind) for name, kind in ARRAYS.items()}, "mine"
    )


TABLE = {
    ("dog", "barks"): 1.0,
    ("dog", "naïve"): 0.25,
    ("dog", "dog"): 0.5,
    ("the", "naïve"): 0.5,
    ("苹", "barks"): 0.5,
}


def test_a_pair_has_one_value_in_both_directions_however_it_is_written():
    table = table_of(TABLE)
    assert table.value("dog", "barks") == table.value("Barks", "DOG") == 1
    assert table.value("NAÏVE", "dog") == table.value("dog", "nai\u0308ve") == 0.25
    assert table.value("dog", "dog") == 0.5 and table.value("the", "the") == 0
    assert table.value("dog", "the") == table.value("dog", "unknown") == table.value("unknown", "dog") == 0


def test_values_of_words_and_others_are_a_matrix():
    table = table_of(TABLE)
    sentence = ["The", "dog", "barks", "?"]
    expected = [[table.value(a, b) for b in sentence] for a in sentence]
    assert table.values(sentence).tolist() == expected
    assert table.values(sentence).dtype == np.float32
    assert table.values(["dog"], ["苹", "naïve"]).tolist() == [[0, 0.25]]
    assert table.values([], ["dog"]).shape == (0, 1) and table.values(["dog"], []).shape == (1, 0)


def test_a_table_knows_its_words_and_how_often_they_occur():
    table = table_of(TABLE, {"dog": 7})
    assert len(table) == 6 and list(table.words) == sorted(WORDS, key=str.encode)
    assert "Dog" in table and "苹" in table and "do" not in table and 5 not in table
    assert table.count("DOG") == 7 and table.count("cat") == 0


def test_the_strongest_words_are_those_of_the_highest_mean_that_the_sentence_lacks():
    table = table_of(TABLE, {"苹": 3})
    assert table.strongest(["dog", "Dog", "the", "unknown"], 2) == [
        AssociatedWord("barks", 0.5), AssociatedWord("naïve", 0.375),
    ]  # fmt: skip
    assert table.strongest(["barks", "the"], 5) == [("dog", 0.5), ("苹", 0.25), ("naïve", 0.25)]
    assert table.strongest(["dog", "barks", "naïve", "the", "苹"]) == []
    assert table.strongest(["unknown"]) == table.strongest(["and"]) == table.strongest([]) == []
    with pytest.raises(UsageError, match="k is 0"):
        table.strongest(["dog"], 0)


@given(
    st.dictionaries(st.tuples(*[st.sampled_from(range(12))] * 2), st.sampled_from([0.25, 0.5, 1.0])),
    st.lists(st.sampled_from(range(14))), st.integers(1, 8),
)  # fmt: skip
def test_the_strongest_words_are_those_of_brute_force(pairs, sentence, k):
    words = [f"w{number:02}" for number in range(12)]
    pairs = {(words[a], words[b]): value for (a, b), value in pairs.items() if a <= b}
    counts = {word: 1 + number % 3 for number, word in enumerate(words)}
    table = table_of(pairs, counts, words)
    own = sorted({f"w{number:02}" for number in sentence} & set(words))
    means = {
        word: sum(pairs.get((a, word), pairs.get((word, a), 0)) for a in own) / len(own)
        for word in words if own and word not in own
    }  # fmt: skip
    best = sorted((-mean, -counts[word], word) for word, mean in means.items() if mean)[:k]
    assert table.strongest([f"w{number:02}" for number in sentence], k) == [
        (word, pytest.approx(-mean)) for mean, _, word in best
    ]


@given(st.text())
def test_the_words_of_a_text_are_its_folded_tokens_with_a_letter_or_digit(text):
    assert text_words(text) == [fold(token) for token in tokens(text) if any(map(str.isalnum, fold(token)))]


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"ends": [3, 2]}, "not of one number of words"),
        ({"ends": [3, 8, 11, 17, 20, 24]}, r"ends\.npy does not ascend from 0 to 23"),
        ({"ends": [3, 8, 11, 9, 20, 23]}, r"ends\.npy does not ascend"),
        ({"starts": [0, 1, 2, 3, 4, 5, 2**60]}, r"starts\.npy does not ascend"),
        ({"starts": [-5, 1, 2, 3, 4, 5, 9]}, r"starts\.npy does not ascend"),
        ({"columns": [1, 2]}, "not of one number of pairs"),
        ({"counts": [[1, 1, 1, 1, 1, 1]]}, r"counts\.npy holds int64 \(1, 6\), expected a row of int64"),
    ],
)
def test_arrays_that_do_not_fit_each_other_are_refused(changed, what):
    with pytest.raises(DamagedModel, match=f"the PMI table mine cannot be used: .*{what}"):
        table_of(TABLE, changed=changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"columns": [2, 5, 1, 2, 2_000_000_000, 2, 4, 3, 1]},
        {"columns": [2, 5, -1, 2, 3, 2, 4, 3, 1]},
        {"columns": [2, 5, 3, 2, 1, 2, 4, 3, 1]},
        {"values": [1, 0.5, float("nan"), 0.5, 0.25, 0.25, 0.5, 0.5, 0.5]},
        {"values": [1, 0.5, 1, -0.5, 0.25, 0.25, 0.5, 0.5, 0.5]},
    ],
)
def test_pairs_that_are_none_are_refused_when_they_are_read(changed):
    assert table_of(TABLE).value("dog", "dog") == 0.5
    table = table_of(TABLE, changed=changed)
    for ask in (lambda: table.value("dog", "dog"), lambda: table.strongest(["dog"])):
        with pytest.raises(DamagedModel, match="the pairs of the word 'dog' are none"):
            ask()


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"words": 7}, "its arrays have 5 words, its manifest 7"),
        ({"pairs": 4}, "its arrays have 9 values, its manifest 4 pairs"),
        ({"pairs": 8}, "its arrays have 9 values, its manifest 8 pairs"),
    ],
)
def test_a_manifest_of_other_numbers_than_its_arrays_is_damage(numbers, message, tmp_path):
    folder = pmi_folder(tmp_path / "mine", TABLE)
    assert len(kgkit.open_model(folder, home=tmp_path)) == 5  # five pairs, one of a word with itself
    path = folder / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | numbers))
    with pytest.raises(DamagedModel, match=f"the PMI table mine cannot be used: {message}; train it again"):
        kgkit.open_model(folder, home=tmp_path)


def test_words_that_are_no_text_are_refused():
    with pytest.raises(DamagedModel, match="the word of number 3 is not UTF-8"):
        table_of(TABLE, changed={"words": list(b"andbarksdogna" + b"\xff\xffvethe" + "苹".encode())})


def test_words_that_do_not_ascend_and_counts_below_zero_are_refused():
    """A word behind a greater one would not be there for a search that halves."""
    for words in ("andbarksdognaïveth苹", "anddogbarksnaïvethe苹"):
        ends = [3, 6, 11, 17, 20, 23] if words.startswith("anddog") else [3, 8, 11, 17, 17, 22]
        with pytest.raises(DamagedModel, match=r"the word of number \d is not behind the one before it"):
            table_of(TABLE, changed={"words": list(words.encode()), "ends": ends})
    with pytest.raises(DamagedModel, match=r"counts\.npy has counts below 0"):
        table_of(TABLE, changed={"counts": [1, 1, 1, -1, 1, 1]})


def test_a_text_is_not_taken_for_the_words_of_its_letters():
    table = table_of(TABLE)
    for call, words in (
        (table.strongest, ["dog"]),
        (table.values, ["dog"]),
        (table.values, [["dog"], "the"]),
    ):
        with pytest.raises(TypeError, match="words are expected, not one text"):
            call(*words)
