"""Words in context: both kinds of file of WiC, and the accuracy counted by hand."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.evaluation.wic import PairScore, WordPair, read_pairs, score_pairs

RELEASE = "go\tV\t5-2\tHow fast does it go ?\tThe patient went .\nflight\tN\t1-0\tMy flight .\tFlight 7 .\n"


def json_line(text, label=1):
    return json.dumps({"label": label, "text": text}) + "\n"


def test_json_lines_carry_their_labels(tmp_path):
    first = json_line("Word: go. Sentence 1: How fast does it go ? Sentence 2: The patient went .", 0)
    second = json_line("Word: flight. Sentence 1: My flight . Sentence 2: Flight 7 .")
    (tmp_path / "x").write_text(first + "\n" + second, newline="\r\n")
    assert read_pairs(tmp_path / "x") == [
        WordPair("1", "go", "", "How fast does it go ?", "The patient went .", False),
        WordPair("2", "flight", "", "My flight .", "Flight 7 .", True),
    ]


def test_the_release_has_its_labels_in_another_file(tmp_path):
    (tmp_path / "x").write_text(RELEASE)
    (tmp_path / "gold").write_text("F\nT\n", newline="\r\n")
    assert read_pairs(tmp_path / "x", tmp_path / "gold") == [
        WordPair("1", "go", "v", "How fast does it go ?", "The patient went .", False),
        WordPair("2", "flight", "n", "My flight .", "Flight 7 .", True),
    ]
    assert [pair.label for pair in read_pairs(tmp_path / "x")] == [None, None]


def test_json_lines_may_have_no_labels(tmp_path):
    (tmp_path / "x").write_text('{"text": "Word: a. Sentence 1: A . Sentence 2: A ."}\n')
    assert read_pairs(tmp_path / "x")[0].label is None


def test_a_sentence_may_hold_what_begins_the_first_sentence(tmp_path):
    (tmp_path / "x").write_text(json_line("Word: it. Sentence 1: As it says . Sentence 1: b Sentence 2: it"))
    (pair,) = read_pairs(tmp_path / "x")
    assert (pair.word, pair.first, pair.second) == ("it", "As it says . Sentence 1: b", "it")


sentences = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: text.strip() and "Sentence 2:" not in text
)


@given(word=st.text("abz -'", min_size=1).filter(str.strip), first=sentences, second=sentences)
def test_what_was_put_in_a_text_is_read_out_of_it(tmp_path_factory, word, first, second):
    path = tmp_path_factory.getbasetemp() / "pair"
    path.write_text(json_line(f"Word: {word}. Sentence 1: {first} Sentence 2: {second}"))
    (pair,) = read_pairs(path)
    assert (pair.word, pair.first, pair.second) == (word.strip(), first.strip(), second.strip())


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "x: no pair in it: this is not a file of WiC"),
        ('{"text": 1}\n', 'x:1: expected {"label": 0 or 1'),
        (json_line("Word: a. Sentence 1: b Sentence 2: c", 2), 'x:1: expected {"label": 0 or 1'),
        (json_line("Word: a. Sentence 1: b"), "x:1: expected the text `Word: WORD"),
        (json_line("Word: a. Sentence 1:   Sentence 2: c"), "x:1: expected the text `Word: WORD"),
        (
            json_line("Word: a. Sentence 1: b Sentence 2: c Sentence 2: d"),
            "x:1: cannot tell where the second",
        ),
        ("go\tV\t1-2\tI go .\n", "x:1: expected 5 tab-separated fields .*, found 4"),
        ("go\tX\t1-2\tI go .\tGo !\n", "x:1: expected a word, N or V"),
        ("go\tV\t1\tI go .\tGo !\n", "x:1: expected a word, N or V"),
        ("go\tV\t1-0\tI go .\t \n", "x:1: expected a word, N or V"),
    ],
)
def test_what_is_no_such_file_is_told_with_its_line(tmp_path, content, told):
    (tmp_path / "x").write_text(content)
    with pytest.raises(SourceError, match=told):
        read_pairs(tmp_path / "x")


def test_gold_that_does_not_belong_to_the_pairs_is_refused(tmp_path):
    pairs, gold = tmp_path / "x", tmp_path / "gold"
    pairs.write_text(RELEASE)
    gold.write_text("T\nF\nF\n")
    with pytest.raises(
        SourceError, match=r"gold: 3 labels, but .*x has 2 pairs: give the gold file of these"
    ):
        read_pairs(pairs, gold)
    gold.write_text("T\nno\n")
    with pytest.raises(SourceError, match="gold:2: expected T or F"):
        read_pairs(pairs, gold)
    with pytest.raises(NotThere, match="no file"):
        read_pairs(pairs, tmp_path / "other")
    pairs.write_text(json_line("Word: a. Sentence 1: b Sentence 2: c"))
    with pytest.raises(UsageError, match="has its labels in its own lines: leave out the gold file"):
        read_pairs(pairs, gold)


def pairs_of(*labels):
    return [WordPair(str(n), "a", "", "a", "a", label) for n, label in enumerate(labels)]


def test_the_score_is_the_part_that_was_right_and_a_pair_without_an_answer_is_wrong():
    found = score_pairs(
        pairs_of(True, False, False, True, False), {"0": True, "1": True, "2": False, "x": True}
    )
    assert found == PairScore(pytest.approx(2 / 5), 5)
    assert score_pairs([], {}) == PairScore(0, 0)


def test_pairs_that_cannot_be_scored_are_told():
    with pytest.raises(UsageError, match="pair 1 has no label: score on a file with gold"):
        score_pairs(pairs_of(True, None), {})
    with pytest.raises(UsageError, match="two pairs have the id '0': score the pairs of one file"):
        score_pairs(pairs_of(True) + pairs_of(False), {})


def test_the_files_at_hand_are_read_whole(shared_data):
    parts = [read_pairs(shared_data / "wic" / name) for name in ("train_part1.jsonl.xz", "train_part2.jsonl")]
    assert [len(part) for part in parts] == [5_228, 200]
    assert [sum(pair.label for pair in part) for part in parts] == [2_615, 99]
    assert not any("Sentence " in pair.first + pair.second for part in parts for pair in part)
    assert score_pairs(parts[0], {pair.id: True for pair in parts[0]}).accuracy == pytest.approx(
        2_615 / 5_228
    )
