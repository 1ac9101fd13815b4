"""Names in texts: files of CoNLL-2003 and scores, beside the rules of conlleval written out."""

import json
import lzma
import random

import pytest

from kgkit.errors import KgkitError, SourceError, UsageError
from kgkit.evaluation.ner import (
    Name,
    NameScore,
    NameScores,
    chunks,
    read_names,
    score_names,
    writing_names,
)

FILE = """\
Ada NNP I-NP I-PER
Lovelace NNP I-NP I-PER
met VBD I-VP O
Oslo NNP I-NP I-LOC
Bergen NNP I-NP B-LOC

in IN I-PP O
Ghent NNP I-NP I-LOC

-DOCSTART- -X- O O

UN NNP I-NP I-ORG
"""


@pytest.fixture
def put(tmp_path):
    def write(text, name="names.txt"):
        path = tmp_path / name
        path.write_bytes(lzma.compress(text.encode()) if name.endswith(".xz") else text.encode())
        return path

    return write


def told(path):
    return [
        [(one.document.text[name.start : name.end], name.type) for name in one.names]
        for one in read_names(path)
    ]


# -- tags -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("", []),
        ("O O", []),
        ("I-PER I-PER O", [(0, 2, "PER")]),  # IOB1
        ("B-PER I-PER O", [(0, 2, "PER")]),  # IOB2
        ("I-LOC B-LOC I-LOC", [(0, 1, "LOC"), (1, 3, "LOC")]),
        ("B-LOC B-LOC", [(0, 1, "LOC"), (1, 2, "LOC")]),
        ("I-LOC I-PER", [(0, 1, "LOC"), (1, 2, "PER")]),
        ("B-LOC I-PER O I-PER", [(0, 1, "LOC"), (1, 2, "PER"), (3, 4, "PER")]),
        ("B-A-B I-A-B", [(0, 2, "A-B")]),
    ],
)
def test_tags_mean_names_in_either_way_of_writing(tags, expected):
    assert chunks(tags.split()) == expected


def conlleval(tags):
    """The slow twin: the script's own two questions at each token, for the tags B, I and O."""
    spans, start = [], None
    before, kind_before = "O", ""
    for place, tag in enumerate([*tags, "O"]):
        now, _, kind = tag.partition("-")
        ends = before in "BI" and (now in "BO" or kind != kind_before)
        starts = now == "B" or (now == "I" and (before == "O" or kind != kind_before))
        if ends and start is not None:
            spans.append((start, place, kind_before))
            start = None
        if starts:
            start = place
        before, kind_before = now, kind
    return spans


def test_names_are_those_that_conlleval_reads():
    draw = random.Random(0)
    known = ["O", *(f"{prefix}-{kind}" for prefix in "BI" for kind in ("PER", "LOC"))]
    for _ in range(2_000):
        tags = draw.choices(known, k=draw.randrange(9))
        assert chunks(tags) == conlleval(tags), tags


@pytest.mark.parametrize("tag", ["X", "B", "I-", "E-PER", "o", "-PER"])
def test_a_tag_of_another_kind_is_refused(tag):
    with pytest.raises(UsageError, match="it is O, B-TYPE or I-TYPE"):
        chunks(["O", tag])


# -- files ------------------------------------------------------------------


def test_a_file_is_read_into_documents_and_sentences(put):
    first, second = read_names(put(FILE))
    assert first.document.id == "1"
    assert first.document.text == "Ada Lovelace met Oslo Bergen\nin Ghent"
    assert first.document.sentences == [(0, 28), (29, 37)]
    assert [first.document.text[a:b] for a, b in first.document.tokens] == first.document.text.split()
    assert first.names == [
        Name(0, 12, "PER"), Name(17, 21, "LOC"), Name(22, 28, "LOC"), Name(32, 37, "LOC"),
    ]  # fmt: skip
    assert (second.document.id, second.document.text, second.names) == ("2", "UN", [Name(0, 2, "ORG")])


def test_blank_lines_line_ends_columns_and_compression_change_nothing(put):
    plain = told(put(FILE))
    opened = "-DOCSTART- -X- O O\n\n" + FILE.replace("\n\n", "\n\n\n") + "\n-DOCSTART- -X- O O\n\n"
    two = "\n".join("\t".join(line.split(" ")[:: 3 if " " in line else 1]) for line in FILE.split("\n"))
    for text in (opened, FILE.replace("\n", "\r\n"), "\ufeff" + FILE, two, FILE.rstrip("\n")):
        assert told(put(text)) == plain
    assert told(put(FILE, "names.xz")) == plain


def test_a_name_ends_with_its_sentence(put):
    assert told(put("a I-LOC\n\nb I-LOC\n")) == [[("a", "LOC"), ("b", "LOC")]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no token in it"),
        ("-DOCSTART- O\n\n", "no token in it"),
        ("Oslo I-LOC\nBergen\n", r":2: expected a token and, in the last column, its tag"),
        ("Oslo I-LOC\nBergen NNP\n", r":2: a tag is 'NNP'; it is O, B-TYPE or I-TYPE"),
    ],
)
def test_a_file_of_another_kind_says_where(put, text, said):
    with pytest.raises(SourceError, match=said):
        list(read_names(put(text)))


def test_what_was_found_is_written_as_conlleval_reads_it(put, tmp_path):
    first, second = read_names(put(FILE))
    with writing_names(tmp_path / "out.txt") as write:
        write(first, [Name(0, 12, "PER"), Name(17, 28, "LOC")])
        write(second, [])
    lines = (tmp_path / "out.txt").read_text().splitlines()
    assert lines[:8] == [
        "-DOCSTART- O O", "", "Ada B-PER B-PER", "Lovelace I-PER I-PER", "met O O", "Oslo B-LOC B-LOC",
        "Bergen B-LOC I-LOC", "",
    ]  # fmt: skip
    assert lines[-2:] == ["UN B-ORG O", ""]
    assert told(tmp_path / "out.txt")[0][1] == ("Oslo Bergen", "LOC")  # the last column
    with (
        pytest.raises(UsageError, match="does not begin and end where tokens do"),
        writing_names(tmp_path / "x") as write,
    ):
        write(second, [Name(0, 1, "ORG")])


# -- scores -----------------------------------------------------------------


def test_span_and_type_must_be_right_and_spans_are_scored_beside_them():
    gold = [Name(0, 2, "PER"), Name(3, 4, "LOC"), Name(5, 6, "LOC"), Name(8, 9, "ORG")]
    found = [Name(0, 2, "PER"), Name(3, 4, "ORG"), Name(5, 7, "LOC")]
    scores = score_names(gold, found)
    assert scores.by_type == {"LOC": NameScore(0, 1, 2), "ORG": NameScore(0, 1, 1), "PER": NameScore(1, 1, 1)}
    assert scores.overall == NameScore(1, 3, 4)
    assert scores.spans == NameScore(2, 3, 4)
    assert (scores.overall.precision, scores.overall.recall) == (1 / 3, 1 / 4)
    assert scores.overall.f1 == pytest.approx(2 / 7)
    assert NameScore().f1 == NameScore().precision == NameScore().recall == 0


def test_tokens_are_scored_by_the_type_of_the_name_that_they_lie_in_wherever_it_ends():
    tokens = [(0, 2), (3, 5), (6, 8), (9, 11)]
    gold = [Name(0, 5, "PER"), Name(6, 8, "PER")]
    found = [Name(0, 8, "PER"), Name(9, 11, "LOC")]  # two names have melted into one
    scores = score_names(gold, found, tokens)
    assert scores.overall == NameScore(0, 2, 2)
    assert scores.tokens_by_type == {"LOC": NameScore(0, 1, 0), "PER": NameScore(3, 3, 3)}
    assert scores.tokens == NameScore(3, 4, 3) and (scores + scores).tokens == NameScore(6, 8, 6)
    assert scores.as_dict()["tokens_by_type"]["PER"]["f1"] == 1.0
    assert score_names(gold, found).tokens == NameScore()


def test_scores_of_documents_add_up():
    parts = [([Name(0, 1, "A")], [Name(0, 1, "A")]), ([Name(0, 1, "A")], []), ([], [Name(2, 3, "B")])]
    together = sum((score_names(*part) for part in parts), NameScores())
    assert together.by_type == {"A": NameScore(1, 1, 2), "B": NameScore(0, 1, 0)}
    assert together.as_dict()["overall"] == {
        "right": 1, "found": 2, "gold": 2, "precision": 0.5, "recall": 0.5, "f1": 0.5,
    }  # fmt: skip


def test_a_span_that_comes_twice_is_refused():
    twice = [Name(0, 1, "A"), Name(0, 1, "B")]
    with pytest.raises(UsageError, match="1 of 2 gold names have the span of another"):
        score_names(twice, [])
    with pytest.raises(UsageError, match="names that were found"):
        score_names([], twice)


# -- names of documents with links ------------------------------------------


def linked(path, mentions):
    """Write a document with links."""
    tokens = "Dog eats a fruit in Big City".split()
    path.write_text(json.dumps({"doc_id": 0, "tokens": tokens, "mentions": mentions}) + "\n")
    return path


def test_mentions_of_linked_documents_are_names_to_learn(tmp_path):
    dog = {"start": 0, "end": 1, "entity": "Dog", "type": "PER"}
    city = {"start": 5, "end": 7, "entity": "City"}
    [document] = read_names(linked(tmp_path / "x.jsonl", [dog, city]))
    names = [(document.document.text[name.start : name.end], name.type) for name in document.names]
    assert names == [("Dog", "PER"), ("Big City", "NAME")]
    assert document.document.mentions is None


@pytest.mark.parametrize(
    "mentions",
    [
        [{"start": 0, "end": 2, "entity": "A"}, {"start": 1, "end": 3, "entity": "B"}],
        [{"start": 0, "end": 1, "entity": "A", "type": "a b"}],
    ],
    ids=["overlap", "type with a space"],
)
def test_mentions_that_are_no_names_are_refused_with_their_document(tmp_path, mentions):
    path = linked(tmp_path / "x.jsonl", mentions)
    with pytest.raises(KgkitError) as error:
        list(read_names(path))
    assert "'0'" in str(error.value) and str(path) in str(error.value)


@pytest.mark.slow
def test_the_files_of_conll_have_the_counts_that_are_published(shared_data):
    counts = {"train": (946, 23_499), "testa": (216, 5_942), "testb": (231, 5_648)}
    for part, expected in counts.items():
        documents = list(read_names(shared_data / "conll2003" / f"eng.{part}.xz"))
        assert (len(documents), sum(len(one.names) for one in documents)) == expected
