"""A spaCy pipeline as a tagger: `--mentions spacy:PIPELINE`."""

import json

import pytest

import kgkit
from kgkit.errors import DamagedModel, NotThere, UsageError
from kgkit.tagging.mention_tagger import MentionTagger, TaggedMention
from kgkit.types import Document, Mention
from tests.cli_helpers import run
from tests.toys import run_python as python

spacy = pytest.importorskip("spacy")
from spacy.training import Example  # noqa: E402

from kgkit.tagging.spacy_tagger import SpacyTagger  # noqa: E402

TEXT = "😀 In New York the apple of Apple costs more."
PATTERNS = [
    {"label": "GPE", "pattern": "New York"}, {"label": "ORG", "pattern": "Apple"},
    {"label": "GPE", "pattern": "東京"},
]  # fmt: skip


def ruler():
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns(PATTERNS)
    return nlp


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a pipeline whose rules know three names."""
    path = tmp_path_factory.mktemp("pipelines") / "rules"
    ruler().to_disk(path)
    return path


def test_a_folder_in_the_current_directory_is_named_as_a_path(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    assert MentionTagger.open(f"spacy:./{folder.name}").types == ("GPE", "ORG")
    with pytest.raises(NotThere) as caught:
        MentionTagger.open(f"spacy:{folder.name}")
    assert f"./{folder.name}" in str(caught.value)
    with pytest.raises(NotThere):
        MentionTagger.open("spacy:./nothere")
    with pytest.raises(UsageError):
        MentionTagger.open("spacy:")


def test_entities_of_a_pipeline_are_mentions_in_code_points(folder):
    tagger = MentionTagger.open(f"spacy:{folder}")
    assert (tagger.name, tagger.types) == (f"spacy:{folder}", ("GPE", "ORG"))
    [document] = tagger([TEXT])
    assert document.mentions == [
        TaggedMention(5, 13, "New York", type="GPE"), TaggedMention(27, 32, "Apple", type="ORG"),
    ]  # fmt: skip
    assert [TEXT[mention.start : mention.end] for mention in document.mentions] == ["New York", "Apple"]
    assert [document.mentions for document in tagger(["", "no name", "東京"])] == [
        [], [], [TaggedMention(0, 2, "東京", type="GPE")]
    ]  # fmt: skip


def test_mentions_that_were_given_stay(folder):
    given = [Mention(0, 1, "😀")]
    [document] = MentionTagger.open(f"spacy:{folder}")([Document("a", TEXT, mentions=given)])
    assert document.mentions == given


def test_words_are_the_tokens_of_the_pipeline_with_types_of_probability_one(folder):
    tagger = MentionTagger.open(f"spacy:{folder}")
    words = tagger.typed_words([Document("a", "Apple eats.")])[0]
    assert [(word.start, word.end, word.probabilities) for word in words] == [
        (0, 5, (0.0, 0.0, 1.0)), (6, 10, (1.0, 0.0, 0.0)), (10, 11, (1.0, 0.0, 0.0)),
    ]  # fmt: skip
    assert tagger.text_words("Apple eats.") == [(0, 5), (6, 10), (10, 11)]
    assert [word.likeliest() for word in words] == [2, 0, 0]


def test_a_trained_recogniser_is_read_with_what_it_stands_on(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("ner").add_label("GPE")
    examples = [Example.from_dict(nlp.make_doc("in Oslo"), {"entities": [(3, 7, "GPE")]})]
    nlp.initialize(lambda: examples)
    for _ in range(30):
        nlp.update(examples)
    nlp.to_disk(tmp_path / "trained")
    tagger = MentionTagger.open(f"spacy:{tmp_path / 'trained'}")
    assert tagger.types == ("GPE",)
    assert next(iter(tagger(["in Oslo"]))).mentions == [TaggedMention(3, 7, "Oslo", type="GPE")]


def test_a_linker_links_the_entities_of_a_pipeline_alone(folder, toy_home):
    kb = {"kb": "toy", "home": toy_home, "model": "prior"}
    without, names = kgkit.link(TEXT, **kb), kgkit.link(TEXT, mentions=f"spacy:{folder}", **kb)
    assert [link.text for link in names] == ["New York", "Apple"]
    assert len(list(without)) > 2


def test_the_command_line_tags_and_links_with_a_pipeline(folder, toy_home, tmp_path):
    text = tmp_path / "a.txt"
    text.write_text(TEXT, encoding="utf-8")
    tagged = run("tag", text, "--model", f"spacy:{folder}", "--home", toy_home)
    assert tagged.code == 0, tagged.err
    [line] = map(json.loads, tagged.out.splitlines())
    assert [(each["start"], each["end"], each["type"]) for each in line["mentions"]] == [
        (5, 13, "GPE"), (27, 32, "ORG"),
    ]  # fmt: skip
    linked = run("link", text, "--kb", "toy", "--mentions", f"spacy:{folder}", "--home", toy_home)
    assert linked.code == 0, linked.err
    assert [link["text"] for link in json.loads(linked.out)["links"]] == ["New York", "Apple"]
    missing = run("link", text, "--kb", "toy", "--mentions", "spacy:not_there", "--home", toy_home)
    assert missing.code == 3 and missing.out == ""
    assert missing.err.startswith("error: no spaCy pipeline 'not_there': install one of spaCy's own")


def test_what_is_no_pipeline_of_names_is_refused(folder, tmp_path):
    with pytest.raises(
        UsageError, match=r"finds no names: none of its components .* \(there are: sentencizer\)"
    ):
        nlp = spacy.blank("en")
        nlp.add_pipe("sentencizer")
        SpacyTagger(nlp)
    with pytest.raises(UsageError, match="there are: none"):
        SpacyTagger(spacy.blank("en"))
    with pytest.raises(NotThere, match="no spaCy pipeline 'not_there'"):
        MentionTagger.open("spacy:not_there")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DamagedModel, match="cannot be loaded"):
        MentionTagger.open(f"spacy:{tmp_path / 'empty'}")
    (tmp_path / "empty" / "config.cfg").write_text("[nlp\nlang=")
    (tmp_path / "empty" / "meta.json").write_text("{}")
    with pytest.raises(DamagedModel, match="cannot be loaded"):
        MentionTagger.open(f"spacy:{tmp_path / 'empty'}")


def test_a_text_longer_than_the_pipeline_takes_names_document_and_limit():
    tagger = SpacyTagger(ruler())
    tagger.nlp.max_length = 10
    with pytest.raises(
        UsageError, match="document '0' has 44 characters, and spacy:en_pipeline takes 10 at most"
    ):
        list(tagger([TEXT]))


@pytest.mark.slow
def test_a_pipeline_without_models_of_torch_loads_no_torch(folder, toy_home):
    loaded = python(
        "import sys, kgkit\n"
        f"links = kgkit.link('New York', kb='toy', home={str(toy_home)!r}, model='prior', "
        f"mentions='spacy:{folder}')\n"
        "print([link.text for link in links], 'kgkit.encoder' in sys.modules, 'transformers' in sys.modules)"
    )
    assert loaded.stdout.splitlines()[-1] == "['New York'] False False"
