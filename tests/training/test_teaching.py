"""What a tagger teaches: plain text in words as it knows them, and the names that it finds there."""

import re

import pytest

from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.tagging.mention_tagger import MentionTagger, TaggedMention, TypedWord
from kgkit.training.pmi.settings import PMITraining
from kgkit.training.tagging import read_untagged, teach
from kgkit.types import Document, Mention


class Capitals(MentionTagger):
    """Finds each word with a capital, and says that it is a person."""

    types = ("PER",)

    def text_words(self, text):
        return [match.span() for match in re.finditer(r"\S+", text)]

    def mentions(self, documents):
        return [
            [
                TaggedMention(start, end, document.text[start:end], type="PER", score=1.0)
                for start, end in document.tokens
                if document.text[start].isupper()
            ]
            for document in documents
        ]

    def typed_words(self, documents):
        return [[TypedWord(*span, (0.0, 1.0)) for span in document.tokens] for document in documents]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("it is  Anna . She sings .\nthe end\n\n\nBert's dog\n")
    return path


def test_a_document_has_its_sentences_and_the_words_of_its_teacher(text):
    first, second = read_untagged([text], Capitals("teacher"))
    assert first.text == "it is  Anna .\nShe sings .\nthe end" and second.text == "Bert's dog"
    assert [first.text[slice(*span)] for span in first.sentences] == first.text.split("\n")
    assert [first.text[slice(*span)] for span in first.tokens] == first.text.split()
    assert second.sentences == [(0, 10)] and (first.id, second.id) == ("text.txt:1", "text.txt:2")


def test_documents_of_several_files_have_ids_of_their_own(text, tmp_path):
    (tmp_path / "more.txt").write_text("Carl\n")
    ids = [document.id for document in read_untagged([text, tmp_path / "more.txt"], Capitals("teacher"))]
    assert ids == ["text.txt:1", "text.txt:2", "more.txt:1"]


def test_the_names_that_are_learnt_are_those_that_the_teacher_finds(text):
    named = list(teach(Capitals("teacher"), read_untagged([text], Capitals("teacher"))))
    names = [[document.document.text[name.start : name.end] for name in document.names] for document in named]
    assert names == [["Anna", "She"], ["Bert's"]]
    assert {name.type for document in named for name in document.names} == {"PER"}
    assert all(document.document.mentions is None for document in named), (
        "what is learnt from has no mentions"
    )
    assert named[0].document.sentences == next(read_untagged([text], Capitals("teacher"))).sentences


def test_mentions_without_a_type_teach_nothing():
    class Plain(Capitals):
        """Finds mentions, of which it knows no type."""

        def mentions(self, documents):
            return [[Mention(0, 4, "Anna")] for _ in documents]

    [named] = teach(Plain("plain"), [Document("1", "Anna sings", [(0, 10)], [(0, 4), (5, 10)])])
    assert named.names == []


def test_a_text_that_is_not_there_or_has_no_words_is_an_error(tmp_path):
    (tmp_path / "empty.txt").write_text("\n\n")
    for name, error in (("none.txt", NotThere), ("empty.txt", SourceError)):
        with pytest.raises(error, match=name):
            list(read_untagged([tmp_path / name], Capitals("teacher")))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "Anna B-PER\nsings O\n\nBert B-PER\n",
            "has a label at the end of each line, and is read as plain text",
        ),
        ('{"text": "Anna sings."}\n', "has records of JSON, and is read as plain text"),
    ],
)
def test_files_with_labels_and_records_are_no_plain_text(content, message, text, tmp_path):
    path = tmp_path / "labelled.txt"
    path.write_text(content)
    with pytest.raises(UsageError, match=f"labelled.txt {message}"):
        list(read_untagged([text, path], Capitals("teacher")))
    with pytest.raises(UsageError, match=message):
        list(PMITraining(data=(text, path)).sentences)
