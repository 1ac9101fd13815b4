"""Names of another tagger: read for the documents of the data, and counted by document or sentence."""

import pytest

from kgkit.errors import SourceError
from kgkit.evaluation.ner import (
    Name,
    NamedDocument,
    name_columns,
    read_names,
    read_predicted_names,
    writing_names,
)
from kgkit.types import Document

GOLD = """-DOCSTART- O

Ann B-PER
met O
Bo B-PER

Rome B-LOC
grows O

-DOCSTART- O

Oslo B-LOC
sleeps O
"""
SINGLE = GOLD.replace("-DOCSTART- O\n", "")


@pytest.fixture
def documents(tmp_path):
    def of(text=GOLD, name="gold.txt"):
        path = tmp_path / name
        path.write_text(text)
        return [*read_names(path)]

    return of


@pytest.fixture
def predicted(tmp_path):
    """A file as `--predictions` writes it: the first name of each document, of another type in the first."""

    def of(gold):
        path = tmp_path / "predicted.jsonl"  # whatever it is called
        with writing_names(path) as write:
            for number, document in enumerate(gold):
                names = [Name(name.start, name.end, "LOC") for name in document.names]
                write(document, names[:1] if number else names)
        return path

    return of


def test_names_are_read_for_each_document(documents, predicted):
    gold = documents()
    names = read_predicted_names(predicted(gold + gold), {"one": gold, "two": gold})
    assert names["one"] == [
        [Name(0, 3, "LOC"), Name(8, 10, "LOC"), Name(11, 15, "LOC")],
        [Name(0, 4, "LOC")],
    ]
    assert [len(own) for own in names["two"]] == [1, 1]


def test_names_stand_where_the_tokens_of_the_data_do(tmp_path):
    text = Document("a", "Ann   met Bo.", None, [(0, 3), (6, 9), (10, 12), (12, 13)])
    path = tmp_path / "predicted"
    path.write_text("-DOCSTART- O O\n\nAnn O B-PER\nmet O O\nBo O B-PER\n. O O\n")
    names = read_predicted_names(path, {"x": [NamedDocument(text, [])]})
    assert names == {"x": [[Name(0, 3, "PER"), Name(10, 12, "PER")]]}


def test_a_unit_is_a_document_or_in_a_file_without_documents_a_sentence(documents):
    gold, single = documents(), documents(SINGLE)
    assert name_columns(gold, [[each.names for each in gold]]).columns.tolist() == [[[3, 3, 3], [1, 1, 1]]]
    columns = name_columns(single, [[[single[0].names[2]]]]).columns
    assert columns.tolist() == [[[0, 0, 2], [1, 1, 1], [0, 0, 1]]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("met O O", "saw O O", "in the document '1' of x token 2 is 'saw'; the data have 'met'"),
        ("Rome B-LOC B-LOC\n", "", "token 4 is 'grows'; the data have 'Rome'"),
        ("grows O O\n", "", "in the document '1' of x token 5 is none"),
        ("sleeps O O\n", "sleeps O O\n\n-DOCSTART- O O\n\nmore O O\n", "it has another, 'more'"),
        ("-DOCSTART- O O\n\nOslo B-LOC B-LOC\nsleeps O O\n", "", "it ends before the document '2' of x"),
        ("met O O", "met O X", r":4: a tag is 'X'"),
    ],
)
def test_a_file_of_other_data_is_refused(documents, predicted, old, new, message):
    gold = documents()
    path = predicted(gold)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(SourceError, match=message):
        read_predicted_names(path, {"x": gold})
