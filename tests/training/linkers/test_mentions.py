"""A linker that links the names of a tagger: its threshold and its defaults."""

import json
import shutil
from dataclasses import replace

import pytest
from msgspec import structs

pytest.importorskip("torch")
pytest.importorskip("transformers")

import kgkit
from kgkit.errors import UnknownName, UsageError
from kgkit.evaluation.el_files import read_gold_documents
from kgkit.home import Home
from kgkit.inputs import SpanConfig
from kgkit.linking import Linker
from kgkit.linking.auto import trained_linkers
from kgkit.linking.scoring import LinkDefaults
from kgkit.models.folder import find_trained
from kgkit.models.kinds import LINKER
from kgkit.tagging.tagger import Tagger
from kgkit.training.linkers import threshold
from kgkit.training.linkers.settings import LinkerTraining
from kgkit.training.linkers.threshold import choose_threshold
from kgkit.training.linkers.train import train_linker
from kgkit.training.tagging import TaggerTraining, train_tagger
from kgkit.types import Alias, Entity
from tests.cli_helpers import run
from tests.small_kb import build
from tests.training.test_tagging import READ, easy_encoder

RECORDS = (
    Entity("Dog", "Dog", "a person", attributes={"in_count": 9}),
    Entity("dog.n.01", "dog", "an animal", attributes={"in_count": 2}),
    Entity("Big_City", "Big City", "a place", attributes={"in_count": 5}),
    Entity("fruit.n.01", "fruit", "it is eaten", attributes={"in_count": 1}),
    Alias("Dog", "Dog", 3),
    Alias("Dog", "dog.n.01", 2),
    Alias("Big City", "Big_City", 2),
    Alias("fruit", "fruit.n.01", 2),
)
TOKENS = "Dog eats a fruit in Big City".split()
MENTIONS = [
    {"start": 0, "end": 1, "entity": "Dog", "type": "PER"},
    {"start": 5, "end": 7, "entity": "Big_City"},
]


def tokens_of(number):
    """Return the words of one of 32 documents, which differ in what stands behind the names."""
    return [*TOKENS, *("a" if number >> bit & 1 else "eats" for bit in range(5))]


def write_documents(path, count=20, **changes):
    records = (
        {"doc_id": number, "tokens": tokens_of(number), "mentions": MENTIONS} for number in range(count)
    )
    path.write_text("".join(json.dumps(record | changes) + "\n" for record in records))
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_documents(tmp_path_factory.mktemp("data") / "news.jsonl")


@pytest.fixture(scope="module")
def tagger_training(tmp_path_factory, data):
    encoder = easy_encoder(tmp_path_factory.mktemp("tiny"))
    return TaggerTraining(
        data=(data,), encoder=str(encoder), reader=READ, epochs=8, lr=3e-3, lr_new=3e-2, batch=64, bf16=False,
        patience=0,
    )  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory, tagger_training):
    """A home with a knowledge base, a tagger and a linker of its names: not to be changed."""
    home = Home(tmp_path_factory.mktemp("home"))
    with build(home.path, RECORDS, name="animals") as kb:
        train_tagger(home, "names", tagger_training, device="cpu")
        train_linker(kb, "news", LinkerTraining(data=tagger_training.data, mentions="names"), device="cpu")
    return home


@pytest.fixture
def kb(home):
    with kgkit.open_kb("animals", home=home.path) as kb:
        yield kb


# -- the threshold ----------------------------------------------------------


def test_the_threshold_is_the_lowest_of_those_with_the_best_f1(kb, data):
    documents = [*read_gold_documents(data)]
    chosen = choose_threshold(Linker(kb), documents)
    scores = {
        link.text: link.score for linked in Linker(kb)([documents[0].document.text]) for link in linked.links
    }
    assert scores["fruit"] > scores["Dog"], "the toy has a surface that is no gold mention"
    assert chosen.value == 0.0 and chosen.score.documents == len(documents)
    gold_less = [*read_gold_documents(data)][:1]
    weak = [type(gold_less[0])(gold_less[0].document, [None, None], [None, None], ["", ""])]
    assert choose_threshold(Linker(kb), weak).score.f1 == 0.0


def test_a_linker_with_a_tagger_keeps_both_and_needs_both(home, kb):
    manifest = LINKER.read(find_trained(home, "news"))
    assert (manifest.mentions, manifest.needs.models) == ("names", ("names",))
    assert manifest.results["linked_f1"] == 1.0 and manifest.results["linked_documents"] == 2
    assert manifest.threshold == manifest.results["threshold"]
    with Linker.open("animals", home=home.path, model="news", device="cpu") as linker:
        assert linker.scorer.defaults == LinkDefaults("names", manifest.threshold)
    done = run("models", "info", "news", "--home", home.path, "--json")
    assert json.loads(done.out)["mentions"] == "names", done.err


def test_the_comparison_is_kept(home):
    rows = LINKER.read(find_trained(home, "news")).results["compared"]
    assert {(row["model"], row["trained"], row["mentions"]) for row in rows} == {
        (model, model == "news", mentions)
        for model in ("prior", "links-minilm", "news")
        for mentions in ("names", "kb")
    }
    scores = {(row["model"], row["mentions"]): row["score"] for row in rows}
    assert {row["measure"] for row in rows} == {"F1"}
    assert scores["news", "names"] == 1.0 > scores["prior", "kb"]


class NoNames:
    """A tagger that finds nothing."""

    name = "names"

    def __call__(self, documents):
        for document in documents:
            yield structs.replace(document, mentions=[])


def test_the_names_of_the_knowledge_base_are_linked_where_those_of_the_tagger_do_worse(
    home, data, tmp_path, monkeypatch
):
    shutil.copytree(home.path, tmp_path / "home", symlinks=True)
    monkeypatch.setattr(threshold.MentionTagger, "open", lambda *_, **__: NoNames())
    with kgkit.open_kb("animals", home=tmp_path / "home") as kb:
        manifest = LINKER.read(
            train_linker(kb, "own", LinkerTraining(data=(data,), mentions="names"), device="cpu")
        )
        assert (manifest.mentions, manifest.needs.models) == ("", ())
        assert manifest.results["linked_f1"] > 0
        with Linker.open(kb, model="own") as linker:
            assert linker.scorer.defaults == LinkDefaults(None, manifest.threshold)
            assert linker.tagger is None and next(linker([" ".join(TOKENS)])).links


def contradiction(path):
    """Write documents in which *Dog* is an animal, but a person in each tenth, which is held out."""
    animal = [{**MENTIONS[0], "entity": "dog.n.01"}, MENTIONS[1]]
    records = (
        {"doc_id": number, "tokens": tokens_of(number), "mentions": animal if number % 10 else MENTIONS}
        for number in range(1, 21)
    )
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_what_is_worse_than_no_training_is_not_published(home, tmp_path, monkeypatch):
    monkeypatch.delenv("KGKIT_MODEL", raising=False)
    where = tmp_path / "home"
    shutil.copytree(home.path, where, symlinks=True)
    before = find_trained(Home(where), "news")
    common = ("train", "linker", "--data", contradiction(tmp_path / "x.jsonl"))
    for name in ("news", "other"):
        done = run(*common, "--mentions", "names", "--home", where, "--name", name, "--device", "cpu")
        assert done.code == 1 and done.out == ""
        assert "prior" in done.err and "names" in done.err and "kb" in done.err  # the table
    assert find_trained(Home(where), "news") == before and not (where / "models" / "other").exists()
    with Linker.open("animals", home=where, model="auto") as linker:
        assert linker.scorer.name == "news"


def test_without_held_out_documents_it_is_said_that_nothing_was_compared(home, tmp_path, monkeypatch):
    monkeypatch.delenv("KGKIT_MODEL", raising=False)
    where, data = tmp_path / "home", write_documents(tmp_path / "x.jsonl", count=9)
    shutil.copytree(home.path, where, symlinks=True)
    shutil.rmtree(where / "models" / "news")
    common = ("--data", data, "--mentions", "names", "--home", where, "--device", "cpu")
    done = run("train", "linker", *common, "--name", "few")
    assert done.code == 0 and "--model few" in done.err
    manifest = LINKER.read(find_trained(Home(where), "few"))
    assert (manifest.results["compared"], manifest.mentions) == ([], "names")
    with kgkit.open_kb("animals", home=where) as kb:
        assert "few" not in trained_linkers(kb)


def test_a_linker_does_not_replace_the_tagger_that_it_needs(home, kb, data):
    with pytest.raises(UsageError, match="the model names would replace the model names"):
        train_linker(kb, "names", LinkerTraining(data=(data,), mentions="names"), device="cpu")
    assert find_trained(home, "names")


@pytest.mark.parametrize("model_type", ["ridge", "head"])
def test_linkers_that_read_texts_take_a_tagger_too(
    home, data, tagger_training, model_type, tmp_path, monkeypatch
):
    monkeypatch.setattr("kgkit.training.linkers.train.FEWEST", 1 if model_type == "head" else 5_000)
    shutil.copytree(home.path, tmp_path / "home")
    training = LinkerTraining(
        data=(data,), encoder=tagger_training.encoder, mentions="names", epochs=1,
        reader=SpanConfig(size=16, context=2),
    )  # fmt: skip
    with kgkit.open_kb("animals", home=tmp_path / "home") as kb:
        manifest = LINKER.read(train_linker(kb, "own", training, device="cpu"))
        assert (manifest.type, manifest.mentions) == (model_type, "names")
        assert manifest.results["linked_documents"] == 2
        # Before anything is read of the data, which are none here.
        for other, problem in (("own", "finds no mentions"), ("nobody", "no tagger named 'nobody'")):
            with pytest.raises(UsageError, match=problem):
                train_linker(kb, "two", replace(training, mentions=other, data=(home.path,)), device="cpu")


def test_a_linker_links_the_names_of_its_tagger_by_default(home, kb):
    text = " ".join(TOKENS)
    with Linker.open(kb, model="news") as linker:
        assert isinstance(linker.tagger, Tagger)
        assert linker.settings.threshold == linker.scorer.defaults.threshold
        assert [link.text for linked in linker([text]) for link in linked.links] == ["Dog", "Big City"]
    with kgkit.open_kb("animals", home=home.path) as other:
        linked = kgkit.link(text, other, model="news", mentions="kb", threshold=0.0, nil=True)
    assert [link.text for link in linked.links] == ["Dog", "fruit", "Big City"]
    with Linker.open("animals", home=home.path, model="news", overlaps="keep") as linker:
        assert linker.tagger is None  # whose names do not overlap


def test_auto_takes_the_tagger_and_the_threshold_of_the_linker_that_it_finds(home, monkeypatch):
    monkeypatch.delenv("KGKIT_MODEL", raising=False)
    with Linker.open("animals", home=home.path, model="auto") as linker:
        assert (linker.scorer.name, linker.tagger.name) == ("news", "names")
        assert linker.settings.threshold == linker.scorer.defaults.threshold
    with Linker.open("animals", home=home.path, model="auto", overlaps="keep") as linker:
        assert (linker.scorer.name, linker.tagger) == ("news", None)  # names do not overlap
    monkeypatch.setenv("KGKIT_MODEL", "prior")
    with Linker.open("animals", home=home.path, model="auto") as linker:
        assert (linker.scorer.name, linker.tagger, linker.settings.threshold) == ("prior", None, 0.0)


def test_the_commands_use_the_defaults_of_a_linker(home, data, tmp_path):
    (tmp_path / "text.txt").write_text(" ".join(TOKENS))
    common = ("--kb", "animals", "--model", "news", "--device", "cpu", "--home", home.path)
    texts = {}
    for options in ((), ("--mentions", "kb", "--threshold", 0, "--nil")):
        done = run("link", tmp_path / "text.txt", *common, *options)
        assert done.code == 0, done.err
        texts[options] = [link["text"] for link in json.loads(done.out)["links"]]
    assert [len(found) for found in texts.values()] == [2, 3]
    done = run("evaluate", "el", "--data", data, *common, "--json")
    scores = json.loads(done.out)
    assert (scores["mentions"], scores["together"]["micro"]["f1"]) == ("names", 1.0), done.err


def test_a_linker_of_senses_has_no_tagger(data):
    with pytest.raises(UsageError, match="--mentions"):
        LinkerTraining(data=(data,), gold=(data,), mentions="names")


def test_a_tagger_that_is_not_there_is_told(home, kb, data):
    with pytest.raises(UnknownName, match="nobody"):
        train_linker(kb, "own", LinkerTraining(data=(data,), mentions="nobody"), device="cpu")
