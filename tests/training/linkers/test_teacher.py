"""A portable head that learns what a teacher says of plain text; linkers that read neighbours' texts."""

import lzma
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.candidates import generator_for
from kgkit.embedding.text import TextConfig, embed_text
from kgkit.encoder import Encoder
from kgkit.errors import KgkitError, NotThere, UnknownName, UsageError
from kgkit.home import Home
from kgkit.inputs import SpanConfig
from kgkit.linking import Linker
from kgkit.linking.scoring import PriorScorer, Scorer
from kgkit.models.folder import find_model_folder
from kgkit.models.kinds import LINKER
from kgkit.training.linkers import head as head_training
from kgkit.training.linkers import sources, train
from kgkit.training.linkers.head import HeadConfig, labelled_sentences, likeliest, prior_sentences
from kgkit.training.linkers.labelled import taught_documents
from kgkit.training.linkers.means import fit_means
from kgkit.training.linkers.settings import LinkerTraining
from kgkit.training.linkers.train import train_linker
from kgkit.types import Alias, Entity, Triple
from tests.cli_helpers import run
from tests.small_kb import build
from tests.tiny_encoder import tiny_encoder

READ = SpanConfig(layers=(-1, 1), size=16, context=2)
RECORDS = (
    Entity("dog", "dog", "a big red dog barks"),
    Entity("hot dog", "hot dog", "the fruit that it eats"),
    Entity("tree", "tree", "a tree grows"),
    Alias("dog", "dog", 3),
    Alias("dog", "hot dog", 2),
    Alias("hot dog", "hot dog", 1),
    Alias("tree", "tree", 1),
    Triple("hot dog", "kind", "tree"),
    Triple("dog", "eats", "hot dog"),
)
BARKS, EATS = "A big dog barks.", "It eats the hot dog and the dog."


class Oracle(Scorer):
    """Says that a dog barks where the text does, and that it is eaten elsewhere; part of it is NULL's."""

    name = "oracle"

    def __call__(self, documents):
        return [
            [
                np.where(mention.candidates.ids == mention.candidates.ids[0], *self.likely(document))
                / max(1, len(mention.candidates))
                for mention in document.mentions or ()
            ]
            for document in documents
        ]

    @staticmethod
    def likely(document):
        return (0.9, 0.1) if "barks" in document.text else (0.1, 0.9)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return Encoder.load(str(tiny_encoder(tmp_path_factory.mktemp("tiny"))), device="cpu", dtype="float32")


@pytest.fixture
def kb(tmp_path, encoder):
    with build(tmp_path / "home", RECORDS, name="words") as kb:
        text = TextConfig(encoder=encoder.name, device="cpu", dtype="float32", template="{description}")
        embed_text(kb, text, encoder=encoder)
        yield kb


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "plain.txt"
    path.write_text("\n\n".join([BARKS, "Nothing is in it.", EATS] * 15) + "\n")
    return path


@pytest.fixture
def oracle(monkeypatch):
    """The model `large`, which no folder has."""
    find_scorer = sources.find_scorer
    monkeypatch.setattr(
        sources,
        "find_scorer",
        lambda name, *rest, **options: Oracle() if name == "large" else find_scorer(name, *rest, **options),
    )
    monkeypatch.setattr("kgkit.training.linkers.train.manifest_digest", lambda *_: "large")


def taught(plain, **settings):
    head = HeadConfig(portable="kb", width=16, epochs=30, batch=16, lr=1e-2)
    usual = {"task": "text", "data": (plain,), "type": "head", "teacher": "large", "head": head}
    return LinkerTraining(**{**usual, "reader": READ, **settings})


# -- what a teacher says ----------------------------------------------------


def test_plain_text_comes_with_what_the_teacher_says_of_it(kb, plain):
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    documents = [*taught_documents(generator, Oracle(), plain)]
    assert len(documents) == 30  # a third has no mention
    first, second, *_ = documents
    assert (first.document.text, second.document.text) == (BARKS, EATS)
    np.testing.assert_allclose(first.targets[0], [0.9, 0.1], atol=1e-6)  # what NULL had is shared out
    assert first.right[0].tolist() == [True, False]
    assert [mention.text for mention in second.document.mentions] == ["hot dog", "dog"]  # the longest
    assert second.right[1].tolist() == [False, True]
    assert all(targets.sum() == pytest.approx(1) for each in documents for targets in each.targets)


def test_sentences_of_plain_text_are_those_that_its_ends_tell(kb, tmp_path):
    path = tmp_path / "plain.txt"
    path.write_text(f"{BARKS} A tree grows.\nIt eats.\n\n\nA dog.")
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    first, second = taught_documents(generator, PriorScorer(), path)
    text = f"{BARKS} A tree grows. It eats."
    assert first.document.text == text and second.document.text == "A dog."
    sentences = [text[begin:end] for begin, end in first.document.sentences]
    assert sentences == [BARKS, "A tree grows.", "It eats."]


def test_plain_text_may_be_compressed_and_must_be_there(kb, plain, tmp_path):
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    packed = tmp_path / "plain.txt.xz"
    packed.write_bytes(lzma.compress(plain.read_bytes()))
    expected = [each.document.text for each in taught_documents(generator, PriorScorer(), plain)]
    assert [each.document.text for each in taught_documents(generator, PriorScorer(), packed)] == expected
    with pytest.raises(NotThere):
        next(taught_documents(generator, PriorScorer(), tmp_path / "none.txt"))


def test_of_a_teacher_s_probabilities_the_likeliest_is_right():
    assert likeliest(np.array([0.2, 0.5, 0.3], np.float32)).tolist() == [False, True, False]
    assert likeliest(np.array([True, True, False])).tolist() == [True, True, False]
    assert likeliest(np.empty(0, np.float32)).tolist() == []


# -- what is learnt of it ---------------------------------------------------


def test_a_head_learns_what_its_teacher_says(kb, plain, oracle):
    folder = train_linker(kb, "small", taught(plain), device="cpu")
    manifest = LINKER.read(folder)
    assert manifest.task == "text" and manifest.type == "head" and not manifest.build
    assert manifest.results["held_out_accuracy"] == 1.0  # as the teacher says
    barking, eating = Linker.open(kb, model="small")([BARKS, EATS])
    assert barking.links[0].entity == "dog" and eating.links[-1].entity == "hot dog"
    assert all(link.score < 0.95 for link in (barking.links[0], eating.links[-1]))  # no surer than taught


@pytest.mark.slow
def test_two_trainings_by_a_teacher_are_equal(kb, plain, oracle):
    weights = [
        (train_linker(kb, name, taught(plain), device="cpu") / "head" / "model.safetensors").read_bytes()
        for name in ("once", "again")
    ]
    assert weights[0] == weights[1]


def test_a_teacher_that_is_not_there_is_told_with_those_there_are(kb, plain):
    with pytest.raises(UnknownName, match="no model named 'huge'; there are: prior, gloss"):
        train_linker(kb, "small", taught(plain, teacher="huge"), device="cpu")


def test_text_without_a_mention_teaches_nothing(kb, tmp_path, oracle):
    path = tmp_path / "none.txt"
    path.write_text("Nothing is in it.\n")
    with pytest.raises(UsageError, match="no training examples"):
        train_linker(kb, "small", taught(path), device="cpu")


def test_text_without_a_choice_is_refused_before_the_teacher_reads_it(
    kb, labelled, plain, tmp_path, oracle, monkeypatch
):
    def read(*_):
        raise AssertionError("the teacher has read it")

    monkeypatch.setattr(Oracle, "__call__", read)
    trees, none = tmp_path / "trees.txt", tmp_path / "none.txt"
    trees.write_text("A tree grows.\n\nNothing is in it.\n")
    none.write_text("Nothing is in it.\n")
    with pytest.raises(UsageError, match=r"no mention has several candidates .* link with --model prior"):
        train_linker(kb, "small", taught(trees), device="cpu")
    with pytest.raises(UsageError, match=r"no mention of words is in .*none.txt: .* files with --data$"):
        train_linker(kb, "small", taught(none), device="cpu")
    with pytest.raises(UsageError, match=r"no mention of words is in .*none.txt: .* with --text, or leave"):
        train_linker(kb, "both", mixed(labelled, none), device="cpu")
    with pytest.raises(AssertionError, match="the teacher has read it"):  # gold has a choice
        train_linker(kb, "both", mixed(labelled, trees), device="cpu")


def test_the_command_has_a_model_taught_by_another(kb, plain, tmp_path, monkeypatch):
    monkeypatch.setattr("kgkit.training.linkers.settings.SpanConfig", lambda **_: READ)
    home = kb.home.path.parents[1]
    settings = ("--name", "small", "--data", plain, "--home", home, "--epochs", "2")
    done = run("train", "linker", "--teacher", "prior", "--type", "head", "--portable", "kb", *settings)
    assert done.code == 0, done.err
    assert "small: head, text, for any knowledge base" in done.out
    text = tmp_path / "a.txt"
    text.write_text(BARKS)
    assert '"model":"small"' in run("link", text, "--model", "small", "--home", home).out
    refused = run("train", "linker", "--teacher", "prior", *settings[:-2])
    assert refused.code == 2 and "add --type head --portable kb" in refused.err


# -- a teacher beside gold --------------------------------------------------


def mixed(labelled, plain, **settings):
    return taught(plain, **{"task": "el", "data": (labelled,), "text": (plain,), **settings})


@pytest.mark.slow
@pytest.mark.parametrize("portable", ["kb", "data"])
def test_a_head_learns_from_gold_and_from_its_teacher(portable, kb, labelled, plain, oracle):
    head = HeadConfig(portable=portable, width=16, epochs=30, batch=16, lr=1e-2)
    folder = train_linker(kb, "both", mixed(labelled, plain, head=head), device="cpu")
    manifest = LINKER.read(folder)
    assert manifest.task == "el" and not manifest.build
    assert {str(labelled), str(plain)} == manifest.data.keys()
    assert "--task el" in manifest.command and f"--text {plain}" in manifest.command
    barking, eating = Linker.open(kb, model="both")([BARKS, EATS])
    if portable == "kb":  # twenty documents are too few to count priors on without one of them
        assert barking.links[0].entity == "dog" and eating.links[-1].entity == "hot dog"


def test_what_a_teacher_says_is_not_counted(kb, labelled, plain, oracle, monkeypatch):
    seen = {}

    def keep(data, counts, portable, ranks):
        sentences = [*prior_sentences(data, counts, portable, ranks)]
        seen.update(data=data, counts=counts, sentences=sentences)
        return iter(sentences)

    monkeypatch.setattr(head_training, "prior_sentences", keep)
    head = HeadConfig(portable="data", width=16, epochs=1, batch=16)
    train_linker(kb, "both", mixed(labelled, plain, head=head), device="cpu")
    data = seen["data"]
    gold, text = data.parts
    assert not gold.has_targets and text.has_targets
    assert seen["counts"].counts.sum() == data.sums().counts.sum() == gold.sums().counts.sum() == 20
    priors = [each.priors for each in chain.from_iterable(each.candidates for each in text.labelled)]
    of_text = [sentence.sentence for sentence in seen["sentences"] if sentence.part == 1]
    deviations = (values for sentence in of_text for values in sentence.features)
    assert sum(len(values) for values in deviations) == sum(map(len, priors))
    counts = {part: [] for part in (0, 1)}
    arrays = fit_means(data.sums(), data.vectors, gold.mean, data.text_mean(), data.ridge)
    for sentence in labelled_sentences(data, data.sums(), arrays, None):
        counts[sentence.part] += [np.expm1(values[:, 0]) for values in sentence.sentence.features]
    # Each mention of the gold without its own document, each of the text beside all of the gold.
    assert {round(float(values.sum())) for values in counts[0]} == {19}
    assert {round(float(values.sum())) for values in counts[1] if len(values) == 2} == {20}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task": "el", "text": ()}, "name files of plain text with --text"),
        ({"task": "text"}, "--text is plain text beside data with gold"),
        ({"data": ()}, "there are none: name them with --data"),
        ({"teacher": ""}, "plain text has no gold: name the model"),
        ({"type": "ridge", "head": None}, "add --type head --portable kb"),
        ({"head": HeadConfig()}, "add --type head --portable kb"),
    ],
)
def test_a_teacher_beside_gold_has_text_and_teaches_a_portable_head(settings, message, labelled, plain):
    with pytest.raises(UsageError, match=message):
        mixed(labelled, plain, **settings)


def test_text_without_a_mention_beside_gold_is_refused(kb, labelled, tmp_path, oracle):
    path = tmp_path / "none.txt"
    path.write_text("Nothing is in it.\n")
    with pytest.raises(UsageError, match=r"no mention of words is in .*none\.txt"):
        train_linker(kb, "both", mixed(labelled, path), device="cpu")


def test_a_teacher_is_not_replaced_and_another_of_its_name_is_another_training(kb, labelled, plain):
    home = kb.home.path.parents[1]
    head = HeadConfig(portable="kb", width=16, epochs=30, batch=16, lr=1e-2)
    teacher = LinkerTraining(task="el", data=(labelled,), type="head", head=head, reader=READ)
    train_linker(kb, "big", teacher, device="cpu")
    with pytest.raises(UsageError, match="would replace the model big"):
        train_linker(kb, "big", taught(plain, teacher="big"), device="cpu")
    training = taught(plain, teacher="big")
    [digest] = train._teacher(Home(home), training)
    train_linker(kb, "big", replace(teacher, head=replace(head, seed=1)), device="cpu")
    assert train._teacher(Home(home), training) != (digest,)
    assert train._teacher(Home(home), replace(training, teacher="prior")) == ()


def test_the_command_reads_gold_and_a_teacher_s_text(kb, labelled, plain, monkeypatch):
    monkeypatch.setattr("kgkit.training.linkers.settings.SpanConfig", lambda **_: READ)
    home = kb.home.path.parents[1]
    options = ("--task", "el", "--data", labelled, "--text", plain, "--type", "head", "--portable", "data")
    done = run("train", "linker", "--teacher", "prior", *options, "--name", "both", "--epochs", "2",
               "--home", home)  # fmt: skip
    assert done.code == 0, done.err
    assert "both: head, el, for any knowledge base" in done.out
    figures = dict(line.split("\t") for line in done.out.splitlines() if line.count("\t") == 1)
    results = LINKER.read(find_model_folder("both", Home(home))).results
    assert figures["mentions"] == "20"
    assert int(figures["mentions of teacher"]) == results["mentions_of_teacher"] > 0
    refused = run("train", "linker", *options, "--name", "both", "--home", home)
    assert refused.code == 2 and "with --teacher" in refused.err


# -- texts of neighbours ----------------------------------------------------


@pytest.fixture
def labelled(tmp_path):
    lines = []
    for number in range(20):
        words, entity = (["big", "dog", "barks"], "dog") if number % 2 else (["eats", "dog", "it"], "hot dog")
        tokens = "[" + ", ".join(f'"{word}"' for word in words) + "]"
        mention = f'{{"start": 1, "end": 2, "entity": "{entity}"}}'
        lines.append(f'{{"doc_id": {number}, "tokens": {tokens}, "mentions": [{mention}]}}\n')
    path = tmp_path / "el.jsonl"
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize("model_type", ["ridge", "head"])
def test_a_linker_that_reads_neighbours_is_opened_as_it_was_trained(kb, labelled, model_type):
    head = HeadConfig(width=16, epochs=8, batch=16, lr=5e-3) if model_type == "head" else None
    training = LinkerTraining(
        task="el", data=(labelled,), type=model_type, reader=READ, head=head, neighbours=("kind", "any")
    )
    folder = train_linker(kb, "around", training, device="cpu")
    assert LINKER.read(folder).neighbours == ("kind", "any")
    linker = Linker.open(kb, model="around")
    assert linker.scorer.vectors.width == 3 * 16
    barking, eating = linker(["big dog barks", "eats dog it"])
    assert [barking.links[0].entity, eating.links[0].entity] == ["dog", "hot dog"]


def test_a_kb_without_the_relation_is_refused_when_a_model_is_trained(kb, labelled):
    training = LinkerTraining(task="el", data=(labelled,), reader=READ, neighbours=("kinds",))
    with pytest.raises(KgkitError, match="no relation in 'words' named 'kinds'; there are: kind, eats"):
        train_linker(kb, "around", training, device="cpu")


def test_a_kb_without_facts_has_no_neighbours_to_read(encoder, labelled, tmp_path, monkeypatch):
    monkeypatch.setattr(train, "sources_of", lambda *_, **__: pytest.fail("data are read"))
    training = LinkerTraining(task="el", data=(labelled,), reader=READ, neighbours=("any",))
    alone = [record for record in RECORDS if not isinstance(record, Triple)]
    with (
        build(tmp_path / "alone", alone, name="alone") as kb,
        pytest.raises(UsageError, match="alone has no facts, and so no neighbours: leave out --neighbours"),
    ):
        train_linker(kb, "around", training, device="cpu")
