"""Adapting the linker for names to documents: what it gains, and that it cannot make links worse."""

import json
import random

import msgspec
import numpy as np
import pytest

from kgkit.errors import BuildFailed, DamagedModel, StaleModel, UsageError
from kgkit.evaluation.el import LinkScore
from kgkit.home import Home
from kgkit.kb import open_kb
from kgkit.linking import Linker
from kgkit.linking.auto import auto_models
from kgkit.linking.joint.adaptation import (
    COUNTED,
    COUNTS_FILE,
    FEATURES,
    FILE,
    SCORE,
    Adaptation,
    SurfaceCounts,
)
from kgkit.models.folder import find_trained
from kgkit.models.kinds import LINKER
from kgkit.training.linkers.conditional_logit import fit_corrections
from kgkit.training.linkers.joint import PRECISIONS, is_better
from kgkit.training.linkers.settings import LinkerTraining, command_of
from kgkit.training.linkers.train import train_linker
from tests.cli_helpers import run
from tests.linking.joint.conftest import build_table

PEOPLE = {"koch": "Wilhelm Koch", "bauer": "Anna Bauer", "essen": "Essen", "ahlbeck": "Ahlbeck"}
TABLE = "id,name,aliases\n" + "".join(f"{key},{name},{name.split()[-1]}\n" for key, name in PEOPLE.items())
SENTENCES = (
    "Gestern fuhr Bauer mit dem Zug nach Ahlbeck und blieb dort.",
    "Herr Koch schrieb aus Ahlbeck, dass es regnet.",
    "Wir trafen Anna Bauer am Bahnhof von Ahlbeck.",
    "In Ahlbeck sah Wilhelm Koch das Meer.",
)
BULLETIN = "Unser Blatt Essen meldet: {}"
"""A text in which *Essen* looks like the town, and is none of the knowledge base."""


@pytest.fixture(autouse=True)
def _no_model_named(monkeypatch):
    monkeypatch.delenv("KGKIT_MODEL")


@pytest.fixture
def kb(tmp_path):
    """A knowledge base in a language that the encoder does not read."""
    build_people(tmp_path / "home")
    with open_kb("people", home=tmp_path / "home") as kb:
        yield kb


def build_people(home, name="people", table=TABLE):
    home.mkdir(exist_ok=True)
    build_table(home, name, table, "--aliases", "aliases|", "--language", "de")


def document(number, text, nothing=(), key=None):
    """Return a document as `kgkit link` writes it: links of names but *nothing*, perhaps all to *key*."""
    mentions, taken, text = [], set(), f"{text} ({number})"
    for entity, name in PEOPLE.items():
        for surface in (name, name.split()[-1]):
            start = text.find(surface)
            if start >= 0 and surface not in nothing and start + len(surface) not in taken:
                taken.add(start + len(surface))
                mentions.append({"start": start, "end": start + len(surface), "entity": key or entity})
    return {"id": str(number), "text": text, "mentions": mentions}


def write(path, documents):
    path.write_text("".join(json.dumps(each) + "\n" for each in documents), "utf-8")
    return path


@pytest.fixture
def helpful(tmp_path):
    """Documents that know better than the linker: *Essen* is a newspaper in them."""
    texts = (BULLETIN.format(SENTENCES[number % 4]) for number in range(20))
    return write(
        tmp_path / "helpful.jsonl", [document(*each, nothing=("Essen",)) for each in enumerate(texts)]
    )


def linked(kb, model, text):
    return {link.text: link.entity for link in next(Linker.open(kb, model=model)([text])).links}


def test_what_documents_know_better_is_learnt_and_auto_takes_it(kb, helpful):
    text = BULLETIN.format("Bauer wohnt in Ahlbeck.")
    everything = {"Essen": "essen", "Bauer": "bauer", "Ahlbeck": "ahlbeck"}
    assert linked(kb, "links-minilm", text) == everything
    manifest = LINKER.read(train_linker(kb, "mine", LinkerTraining(data=(helpful,))))
    rows = {row["model"]: row for row in manifest.results["compared"]}
    assert rows.keys() == {"prior", "links-minilm", "mine"}
    assert rows["mine"]["score"] > rows["links-minilm"]["score"] and rows["mine"]["documents"] == 20
    assert rows["mine"]["threshold"] == rows["links-minilm"]["threshold"] == 0.5
    assert rows["prior"]["threshold"] == 0.0 and manifest.results["mentions"] == 40
    assert rows["mine"]["precision"] > rows["links-minilm"]["precision"] and manifest.type == "joint"
    assert next(auto_models(kb)) == "mine"
    del everything["Essen"]
    assert linked(kb, "auto", text) == everything
    assert linked(kb, "links-minilm", text)["Essen"] == "essen"


def test_what_does_not_help_is_refused_and_changes_nothing(kb, tmp_path):
    home, data = kb.home.path.parents[1], tmp_path / "x.jsonl"
    write(data, [document(number, SENTENCES[number % 4]) for number in range(20)])
    common = ("train", "linker", "--kb", "people", "--data", data, "--name", "mine", "--home", home)
    done = run(*common)
    assert done.code == 1 and done.out == "" and "links-minilm" in done.err and "prior" in done.err
    assert not (home / "models" / "mine").exists() and next(auto_models(kb)) == "links-minilm"
    done = run(*common, "--keep")
    assert done.code == 0 and "mine: joint, el, for people@" in done.out
    assert next(auto_models(kb)) == "links-minilm"
    assert linked(kb, "mine", SENTENCES[1]) == {"Koch": "koch", "Ahlbeck": "ahlbeck"}
    assert "--keep" in LINKER.read(find_trained(Home(home), "mine")).command


def test_wrong_labels_are_refused(kb, tmp_path):
    draw = random.Random(1)
    documents = [document(number, SENTENCES[number % 4]) for number in range(20)]
    for each in documents:
        for mention in each["mentions"]:
            mention["entity"] = draw.choice([key for key in PEOPLE if key != mention["entity"]])
    data = write(tmp_path / "shuffled.jsonl", documents)
    with pytest.raises(UsageError):  # nothing could mean what they say
        train_linker(kb, "mine", LinkerTraining(data=(data,)))
    right = [document(number, text) for number, text in enumerate(SENTENCES, 100)]
    write(data, right + documents[:8])
    with pytest.raises(UsageError):
        train_linker(kb, "mine", LinkerTraining(data=(data,)))
    write(data, [document(each, SENTENCES[each % 4]) for each in range(100, 112)] + documents[:8])
    with pytest.raises(BuildFailed):
        train_linker(kb, "mine", LinkerTraining(data=(data,)))
    assert next(auto_models(kb)) == "links-minilm"


def test_keys_of_the_next_row_are_named_with_an_example(kb, tmp_path):
    following = dict(zip(PEOPLE, [*PEOPLE][1:] + [*PEOPLE][:1], strict=True))
    documents = [document(number, SENTENCES[number % 4]) for number in range(8)]
    for each in documents:
        for mention in each["mentions"]:
            mention["entity"] = following[mention["entity"]]
    data = write(tmp_path / "next.jsonl", [document(100, SENTENCES[2]), *documents])
    with pytest.raises(UsageError, match=r"16 of 18 .*'Bauer' → essen.*bauer"):
        train_linker(kb, "mine", LinkerTraining(data=(data,), keep=True))


@pytest.mark.parametrize(
    ("documents", "problem"),
    [
        ([document(1, SENTENCES[0])], "1 text"),
        ([document(1, "Es regnet."), document(2, "Es schneit.")], "no training examples"),
        ([document(number, SENTENCES[0], key="Q5") for number in range(3)], "not in the knowledge base"),
    ],
)  # fmt: skip
def test_documents_that_teach_nothing_are_refused(kb, tmp_path, documents, problem):
    data = write(tmp_path / "x.jsonl", documents)
    with pytest.raises(UsageError, match=problem):
        train_linker(kb, "mine", LinkerTraining(data=(data,), keep=True))


def test_corrected_links_are_learnt_from(kb, tmp_path, caplog):
    texts = [BULLETIN.format(SENTENCES[number % 4]) for number in range(20)]
    data = write(tmp_path / "linked.jsonl", [document(*each) for each in enumerate(texts)])
    data.write_text(data.read_text() + json.dumps(document(20, SENTENCES[0])) + "\n")
    table = tmp_path / "corrections.csv"
    table.write_text("text,entity,document\n" + "".join(f"Essen,,{number}\n" for number in range(20)))
    manifest = LINKER.read(train_linker(kb, "mine", LinkerTraining(data=(data,), corrections=table)))
    assert manifest.results["linked_documents"] == 20 and manifest.results["helps"] is True
    assert "1 of 21 documents" in caplog.text
    assert "Essen" not in linked(kb, "mine", BULLETIN.format("Bauer kommt."))


TRAPS = ("Unser Blatt Essen meldet: {}.", "Das Essen kam {} auf den Tisch.", "Essen, schrieb sie am {}.")


@pytest.mark.parametrize("data", ["as written", "corrected", "with NIL"])
def test_names_that_mean_nothing_are_learnt_by_themselves(kb, tmp_path, data):
    home, texts, table = kb.home.path.parents[1], tmp_path / "texts", tmp_path / "corrections.csv"
    texts.mkdir()
    for number in range(18):
        (texts / f"{number}.txt").write_text(TRAPS[number % 3].format(number), "utf-8")
    table.write_text("text,entity,document\n" + "".join(f"Essen,,{number}.txt\n" for number in range(18)))
    links, common = tmp_path / "links.jsonl", ("--kb", "people", "--home", home)
    options = {
        "as written": (),
        "corrected": ("--corrections", table),
        "with NIL": ("--corrections", table, "--nil"),
    }
    run("link", texts, "-o", links, *options[data], *common)
    corrections = ("--corrections", table) if data == "as written" else ()
    done = run("train", "linker", "--data", links, "--name", "mine", *corrections, *common)
    assert done.code == 0 and "accuracy" in done.out
    results = LINKER.read(find_trained(Home(home), "mine")).results
    assert results["helps"] is True and results["mentions"] == 0
    rows = {row["model"]: row["score"] for row in results["compared"]}
    assert rows["mine"] == 1 and rows["links-minilm"] < 0.5 and next(auto_models(kb)) == "mine"
    assert linked(kb, "auto", f"{TRAPS[0].format(99)} {SENTENCES[3]}") == {
        "Ahlbeck": "ahlbeck", "Wilhelm Koch": "koch",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("other", "number", "refused"), [("essen", 1, False), ("Q5", 1, True), ("essen", 30, True)]
)
def test_a_link_that_cannot_be_learnt_spoils_no_more_names_than_it_has(kb, tmp_path, other, number, refused):
    documents = [document(each, TRAPS[0].format("es"), nothing=("Essen",)) for each in range(20)]
    lost = [{"start": 0, "end": 4, "entity": other}]  # of a word that is no name of the knowledge base
    documents += [{"id": f"r{each}", "text": f"Ruhr {each}", "mentions": lost} for each in range(number)]
    training = LinkerTraining(data=(write(tmp_path / "x.jsonl", documents),), keep=refused)
    if refused:
        with pytest.raises(UsageError):
            train_linker(kb, "mine", training)
    else:
        assert LINKER.read(train_linker(kb, "mine", training)).results["helps"] is True


def test_of_names_that_mean_nothing_what_does_not_help_is_refused(kb, tmp_path):
    texts = [TRAPS[0].format(number) for number in range(3)]
    data = write(tmp_path / "few.jsonl", [document(*each, nothing=("Essen",)) for each in enumerate(texts)])
    with pytest.raises(BuildFailed):
        train_linker(kb, "mine", LinkerTraining(data=(data,)))
    manifest = LINKER.read(train_linker(kb, "mine", LinkerTraining(data=(data,), keep=True)))
    assert manifest.results["helps"] is False and next(auto_models(kb)) == "links-minilm"


def test_a_text_that_comes_twice_is_one(kb, tmp_path):
    data = [write(tmp_path / f"{name}.jsonl", [document(1, SENTENCES[0])]) for name in "ab"]
    with pytest.raises(UsageError, match="1 text"):
        train_linker(kb, "mine", LinkerTraining(data=tuple(data)))


def test_epochs_are_for_networks(kb, helpful):
    with pytest.raises(UsageError, match="--epochs"):
        train_linker(kb, "mine", LinkerTraining(data=(helpful,), epochs=2))
    assert "--keep" not in command_of("people", "mine", LinkerTraining(data=(helpful,)))


@pytest.fixture
def folder(kb, helpful):
    return train_linker(kb, "mine", LinkerTraining(data=(helpful,)))


@pytest.mark.parametrize("file", [FILE, COUNTS_FILE])
@pytest.mark.parametrize("content", [b"", b"Essen\tessen\t-1\n", b"\xff\x00"])
def test_a_damaged_model_is_told(kb, folder, file, content):
    path = folder / file
    content = content or (b"x" if file == COUNTS_FILE else b"")
    path.write_bytes(content)
    manifest = msgspec.json.decode((folder / "model.json").read_bytes())
    manifest["sizes"][file] = len(content)
    (folder / "model.json").write_bytes(msgspec.json.encode(manifest))
    with pytest.raises(DamagedModel, match=file):
        Linker.open(kb, model="mine")


@pytest.mark.parametrize("weights", [np.ones((161, 2)), np.full(161, 1e14), np.ones(3)])
def test_weights_that_are_none_are_refused(kb, folder, weights):
    with np.load(folder / FILE) as arrays:
        np.savez(folder / FILE, **{**arrays, "weights": weights.astype(np.float32)})
    manifest = msgspec.json.decode((folder / "model.json").read_bytes())
    manifest["sizes"][FILE] = (folder / FILE).stat().st_size
    (folder / "model.json").write_bytes(msgspec.json.encode(manifest))
    with pytest.raises(DamagedModel, match=FILE):
        Linker.open(kb, model="mine")


def test_a_model_serves_the_build_that_it_was_trained_for(kb, folder, tmp_path):
    home = tmp_path / "home"
    build_people(home, "others")
    with pytest.raises(UsageError, match="people"):
        Linker.open("others", home=home, model=str(folder))
    build_people(home, table=TABLE + "meer,Meer,\n")
    with pytest.raises(StaleModel):
        Linker.open("people", home=home, model="mine")


# -- parts ------------------------------------------------------------------------


def test_counts_are_kept_and_what_is_taken_away_was_never_there(kb, tmp_path):
    counts, ids = SurfaceCounts(), [kb.id("koch"), kb.id("essen")]
    for surface, entity in (("Koch", ids[0]), ("koch", None), ("Wilhelm\nKoch", ids[0]), ('K\t"o', ids[1])):
        counts.add(surface, entity)
    counts.add("Essen", ids[1])
    counts.add("Essen", ids[1], -1)
    counts.save(tmp_path, kb)
    read = SurfaceCounts.load(tmp_path, kb)
    candidates, shares = [np.array(ids, np.uint32)] * 3, [np.array([0.5, 0.2], np.float32)] * 3
    surfaces = ["KOCH", "Essen", "wilhelm  koch"]
    features = read.features(surfaces, candidates, shares)
    np.testing.assert_allclose(features, counts.features(surfaces, candidates, shares))
    np.testing.assert_allclose(features[2:4, -1], 0)  # of a surface that was not seen
    assert features[0, 0] > 0 == features[1, 0] and features[0, -1] > features[1, -1]


def test_without_weights_the_scores_are_those_of_the_linker_itself(kb):
    linker = Linker.open(kb, model="links-minilm")
    before = [link.score for link in next(linker([SENTENCES[0]])).links]
    zeros = np.zeros(len(FEATURES), np.float32)
    scaled = np.ones(len(FEATURES) - len(SCORE + COUNTED), np.float32)
    linker.scorer.adaptation = Adaptation(SurfaceCounts(), zeros, scaled, scaled).gain
    assert [link.score for link in next(linker([SENTENCES[0]])).links] == before


def test_corrections_of_scores_are_where_the_loss_is_least():
    draw = np.random.default_rng(3)
    sizes = np.array([1, 3, 2, 4])
    terms, offsets = draw.normal(size=(10, 3)), draw.normal(size=10)
    begins = np.cumsum(sizes) - sizes
    correct = np.zeros(10, bool)
    correct[begins + sizes - 1] = True
    precisions = [1.0, 2.0, 0.5]

    def loss(weights):
        scores = terms @ weights + offsets
        total = 0.5 * (precisions * weights**2).sum()
        for begin, size in zip(begins, sizes, strict=True):
            part = scores[begin : begin + size]
            total += np.log(np.exp(part).sum()) - part[correct[begin : begin + size]].sum()
        return total

    found = fit_corrections(terms, offsets, correct, sizes, precisions)
    for _ in range(50):
        assert loss(found) <= loss(found + draw.normal(size=3) * 0.01) + 1e-9
    assert PRECISIONS[0][0] > 0


def score(right, links, mentions):
    return LinkScore(right=right, link_nowhere=links - right, missed=mentions - right, documents=1)


def test_a_difference_of_a_few_links_is_chance():
    same = [score(3, 4, 4)] * 20
    assert not is_better(same, same)
    assert not is_better([score(4, 4, 4), *same[1:10], score(2, 4, 4), *same[11:]], same)
    assert is_better([score(4, 4, 4)] * 10 + same[10:], same)
    assert not is_better(same, [score(4, 4, 4)] * 10 + same[10:])
    assert not is_better([score(4, 4, 4)] * 4 + same[4:], same)
    assert is_better([score(4, 4, 4)] * 5 + same[5:], same)
    assert not is_better([score(4, 4, 4)] * 6 + [score(2, 4, 4)] * 3 + same[9:], same)
    assert not is_better([score(40, 40, 40), *same[1:]], [score(3, 40, 40), *same[1:]])
    wrong = [score(0, 2, 0)] * 20
    assert is_better([score(0, 1, 0)] * 5 + wrong[5:], wrong)
    assert not is_better([score(0, 1, 0)] * 4 + wrong[4:], wrong) and not is_better(wrong, wrong)
    assert not is_better(wrong, [score(0, 1, 0)] * 5 + wrong[5:])
