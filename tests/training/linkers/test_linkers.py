"""Training the linker of means, from files to links: against the definition, and what goes wrong."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.candidates import generator_for
from kgkit.embedding.text import TextConfig, embed_text
from kgkit.encoder import Encoder
from kgkit.errors import (
    BuildFailed,
    DamagedModel,
    KgkitError,
    NotThere,
    SourceError,
    StaleModel,
    UsageError,
)
from kgkit.evaluation.ner import read_names
from kgkit.inputs import SpanConfig, SpanReader
from kgkit.inputs.mention_vectors import features
from kgkit.linking import Corrections, Linker
from kgkit.linking.auto import trained_linkers
from kgkit.linking.prior_features import candidate_features
from kgkit.linking.ridge import RidgeArrays
from kgkit.linking.scoring import meanings
from kgkit.models.kinds import LINKER
from kgkit.models.manifest import MANIFEST
from kgkit.models.publishing import older
from kgkit.training.linkers import ridge
from kgkit.training.linkers.head import labelled_sentences
from kgkit.training.linkers.labelled import (
    MissingGold,
    labelled_entities,
    labelled_examples,
    labelled_senses,
    labelled_spans,
    letters,
)
from kgkit.training.linkers.means import RIDGE, LinkerData, TrainingSet, add_sums, fit_means, text_mean
from kgkit.training.linkers.settings import LinkerTraining
from kgkit.training.linkers.train import sources_of, train_linker
from kgkit.types import Alias, Document, Entity, Mention
from tests.cli_helpers import run
from tests.small_kb import build
from tests.tiny_encoder import tiny_encoder

READ = SpanConfig(layers=(-1, 1), size=16, context=2)
RECORDS = (
    Entity("dog.n.01", "dog", "a big red dog barks"),
    Entity("dog.n.02", "dog", "it eats the fruit"),
    Entity("tree.n.01", "tree", ""),
    Entity("dog%1", "dog"),
    Entity("dog%2", "dog"),
    Entity("tree%1", "tree"),
    Alias("dog", "dog.n.01", 3, "dog%1"),
    Alias("dog", "dog.n.02", 2, "dog%2"),
    Alias("tree", "tree.n.01", 1, "tree%1"),
)
USAGE = (
    Entity("dog.n.01", "dog", "a big red dog barks", attributes={"examples": ["a dog barks", "it barks"]}),
    Entity("dog.n.02", "dog", "it eats the fruit", attributes={"examples": ["the dog eats the fruit"]}),
    *RECORDS[2:],
)
"""The same with usage examples."""
SENTENCES = (
    "dog%1 a big dog barks",
    "dog%2 the dog eats fruit",
    "dog%1 a small dog",
    "tree%1 the tree grows",
)
TEXT = "\n".join(sentence.partition(" ")[2] for sentence in SENTENCES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def encoder(folder):
    return Encoder.load(str(folder), device="cpu", dtype="float32")


@pytest.fixture
def kb(tmp_path, encoder, folder):
    with build(tmp_path / "home", RECORDS, name="words") as kb:
        text = TextConfig(
            encoder=str(folder), device="cpu", dtype="float32", template="{label}: {description}"
        )
        embed_text(kb, text, encoder=encoder)
        yield kb


@pytest.fixture
def corpus(tmp_path):
    """Twenty documents of the same four sentences, in the format of the framework."""
    texts, keys = [], []
    for number in range(20):
        sentences = []
        for place, line in enumerate(SENTENCES):
            key, *words = line.split()
            target = key.split("%")[0]
            name = f"d{number}.s{place}.t0"
            keys.append(f"{name} {key}\n")
            tokens = [
                f'<instance id="{name}" lemma="{word}" pos="NOUN">{word}</instance>'
                if word == target
                else f'<wf lemma="{word}" pos="X">{word}</wf>'
                for word in words
            ]
            sentences.append(f'<sentence id="d{number}.s{place}">{"".join(tokens)}</sentence>')
        texts.append(f'<text id="d{number}">{"".join(sentences)}</text>')
    data, gold = tmp_path / "x.data.xml", tmp_path / "x.gold.key.txt"
    data.write_text(f"<corpus>{''.join(texts)}</corpus>")
    gold.write_text("".join(keys))
    return data, gold


def training(corpus, **settings):
    data, gold = corpus
    return LinkerTraining(data=(data,), gold=(gold,), reader=READ, **settings)


@pytest.fixture
def network(monkeypatch):
    """Have a network trained beside the means of a few mentions."""
    monkeypatch.setattr("kgkit.training.linkers.train.FEWEST", 1)


# -- what is learnt from ----------------------------------------------------


def test_senses_are_taught_by_lemma_or_by_surface(kb, corpus):
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    for lemmas in (True, False):
        first = next(iter(labelled_senses(kb, generator, *corpus, lemmas=lemmas)))
        assert [mention.text for mention in first.document.mentions] == ["dog", "dog", "dog", "tree"]
        assert [right.tolist() for right in first.right] == [
            [True, False],
            [False, True],
            [True, False],
            [True],
        ]


def test_examples_teach_the_mention_that_they_illustrate(tmp_path):
    kb = build(tmp_path / "usage", USAGE, name="usage")
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    found = list(labelled_examples(kb, generator))
    assert [(one.document.id, one.document.mentions[0].text) for one in found] == [
        ("dog.n.01:0", "dog"),
        ("dog.n.02:0", "dog"),
    ]  # `it barks` does not name the dog
    seen = frozenset({letters("The DOG, eats: the fruit!")})
    assert [one.document.id for one in labelled_examples(kb, generator, without=seen)] == ["dog.n.01:0"]


def test_entities_are_taught_and_nil_has_no_right_candidate(kb, tmp_path):
    data = tmp_path / "el.jsonl"
    mentions = [{"start": 1, "end": 2, "entity": "dog.n.02"}, {"start": 3, "end": 4, "entity": None}]
    data.write_text(json.dumps({"doc_id": 1, "tokens": ["the", "dog", "eats", "tree"], "mentions": mentions}))
    [one] = labelled_entities(kb, generator_for(kb, max_candidates=None, overlaps=True), data)
    assert [right.tolist() for right in one.right] == [[False, True], [False]]


def test_documents_with_a_correction_of_their_own_are_taught_and_no_others(kb, tmp_path):
    data, table = tmp_path / "linked.jsonl", tmp_path / "corrections.csv"
    link = {"start": 4, "end": 7, "entity": "dog.n.01"}
    texts = {"a": "the dog and the tree and the dog", "b": "the dog", "c": "one tree"}
    data.write_text(
        "".join(
            json.dumps({"id": name, "text": text, "links": [link]}) + "\n" for name, text in texts.items()
        )
    )
    table.write_text("text,entity,document,start\ndog,dog.n.02,a,29\ntree,,,\n")
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    [one] = labelled_entities(kb, generator, data, corrections=Corrections.open(kb, table))
    assert [(mention.start, mention.text) for mention in one.document.mentions] == [
        (4, "dog"), (16, "tree"), (29, "dog"),
    ]  # fmt: skip
    assert [right.tolist() for right in one.right] == [[True, False], [False], [False, True]]


def test_corrections_that_are_about_none_of_the_texts_are_refused(kb, tmp_path):
    data, table = tmp_path / "linked.jsonl", tmp_path / "corrections.csv"
    data.write_text('{"id": "a", "text": "the dog", "links": []}\n')
    table.write_text("text,entity,document\ndog,dog.n.02,b\n")
    training = LinkerTraining(data=(data,), corrections=table)
    with pytest.raises(UsageError, match=r"corrections\.csv"):
        train_linker(kb, "mine", training)
    with pytest.raises(UsageError, match="--mentions"):
        LinkerTraining(data=(data,), corrections=table, mentions="tagger")


def test_any_of_the_entities_of_a_mention_is_taught(kb, tmp_path):
    data = tmp_path / "el.jsonl"
    for entities, right, lost in (
        (["Q144", "dog.n.02"], [False, True], 0),
        (["dog.n.02", "Q144"], [False, True], 0),
        (["dog.n.02", "dog.n.01"], [True, True], 0),
        (["Q144", "Q5"], [False, False], 1),
    ):
        mention = {"start": 1, "end": 2, "entity": entities}
        data.write_text(json.dumps({"doc_id": 1, "tokens": ["the", "dog"], "mentions": [mention]}))
        for documents in (labelled_entities, labelled_spans):
            missing = MissingGold(kb)
            [one] = documents(kb, generator_for(kb, max_candidates=None, overlaps=True), data, missing)
            assert [each.tolist() for each in one.right] == [right]
            assert (missing.labelled, missing.mentions) == (1, lost)


def test_entities_are_taught_from_every_format_that_is_evaluated(kb, tmp_path):
    records = {
        "kgkit": {
            "doc_id": 1,
            "tokens": ["the", "dog"],
            "mentions": [{"start": 1, "end": 2, "entity": "dog.n.02"}],
        },
        "linked": {"text": "the dog", "mentions": [{"start": 4, "end": 7, "entity": "dog.n.02"}]},
        "elevant": {"id": 1, "text": "the dog", "labels": [{"span": [4, 7], "entity_id": "dog.n.02"}]},
    }
    for name, record in records.items():
        data = tmp_path / f"{name}.jsonl"
        data.write_text(json.dumps(record))
        for documents in (labelled_entities, labelled_spans):
            [one] = documents(kb, generator_for(kb, max_candidates=None, overlaps=True), data)
            assert [mention.text for mention in one.document.mentions] == ["dog"], name
            assert [right.tolist() for right in one.right] == [[False, True]], name
        [named] = read_names(data)
        assert [(word.start, word.end, word.type) for word in named.names] == [(4, 7, "NAME")], name


# -- features ---------------------------------------------------------------


def documents(count):
    return [
        Document(f"d{n}", "the big dog eats", mentions=[Mention(8, 11, "dog"), Mention(4, 7, "big")][: n % 3])
        for n in range(count)
    ]


def test_features_are_read_once_and_go_on_where_they_stopped(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr("kgkit.inputs.mention_vectors._AT_ONCE", 4)
    reader = SpanReader(encoder, READ)
    whole = np.array(features(reader, documents(20), tmp_path / "a"))
    told = []

    def stop(stage, done, total):
        told.append((done, total))
        if done == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        features(reader, documents(20), tmp_path / "b", progress=stop)
    assert told == [(4, 20), (8, 20), (12, 20)]
    again = []
    found = features(reader, documents(20), tmp_path / "b", progress=lambda stage, *done: again.append(done))
    assert again == [(16, 20), (20, 20)]
    assert np.array_equal(found, whole)
    monkeypatch.setattr(SpanReader, "__call__", None)  # nothing is read any more
    assert np.array_equal(features(reader, documents(20), tmp_path / "b"), whole)
    with pytest.raises(TypeError):
        features(reader, documents(19), tmp_path / "b")


def test_features_that_two_want_at_once_are_read_once(encoder, tmp_path):
    reader, read, found = SpanReader(encoder, READ), [], []

    def told(stage, done, total):
        read.append(done)
        if len(read) == 1:
            second.start()
            second.join(0.3)
            assert not found

    def other():
        found.append(
            features(reader, documents(40), tmp_path, progress=lambda stage, done, _: read.append(-done))
        )

    second = threading.Thread(target=other)
    first = np.array(features(reader, documents(40), tmp_path, progress=told))
    second.join()
    assert np.array_equal(found[0], first)
    assert first.any(axis=1).all()
    assert read == [32, 40]


# -- the model --------------------------------------------------------------


def slow_arrays(kb, encoder, corpus):
    """Return means and map by the equations, from vectors read one document at a time."""
    taught = list(labelled_senses(kb, generator_for(kb, max_candidates=None, overlaps=True), *corpus))
    reader = SpanReader(encoder, READ)
    rows, meant, entities = [], [], []
    for one in taught:
        [(_, vectors)] = reader([one.document])
        for mention, right, vector in zip(one.document.mentions, one.right, vectors, strict=True):
            parts = vector.astype(np.float16).astype(np.float64).reshape(2, -1)
            joined = np.concatenate([part / np.linalg.norm(part) for part in parts])
            rows.append(joined / np.linalg.norm(joined))
            meant.append(int(meanings(mention.candidates)[right][0]))
            entities.append(int(mention.candidates.ids[right][0]))
    mean = np.mean(rows, axis=0)
    q = [(row - mean) / np.linalg.norm(row - mean) for row in rows]
    ids = sorted(set(meant))
    centroids, counts, texts = [], [], []
    matrix = kb.vectors("text").matrix
    unit = [row / np.linalg.norm(row) for row in matrix if row.any()]
    for meaning in ids:
        chosen = [row for row, one in zip(q, meant, strict=True) if one == meaning]
        total = np.sum(chosen, axis=0)
        centroids.append(total / np.linalg.norm(total))
        counts.append(len(chosen))
        text = matrix[entities[meant.index(meaning)]]
        text = text / np.linalg.norm(text) - np.mean(unit, axis=0)
        texts.append(np.append(text / np.linalg.norm(text), 1))
    counted = np.diag(np.array(counts, float))
    texts, centroids = np.array(texts), np.array(centroids)
    square = texts.T @ counted @ texts + RIDGE * np.eye(texts.shape[1])
    return ids, centroids, np.linalg.solve(square, texts.T @ counted @ centroids), mean


def test_means_and_map_are_those_of_the_equations(kb, encoder, corpus):
    arrays = RidgeArrays.load(train_linker(kb, "m", training(corpus), device="cpu"))
    ids, centroids, weight, mean = slow_arrays(kb, encoder, corpus)
    assert arrays.meanings.tolist() == ids
    np.testing.assert_allclose(arrays.centroids, centroids, atol=2e-3)
    np.testing.assert_allclose(arrays.mean, mean, atol=1e-5)
    np.testing.assert_allclose(arrays.weight, weight, atol=2e-3)
    assert arrays.counts.tolist() == [40, 20, 20]


def test_a_trained_linker_links_what_it_was_taught(kb, corpus):
    folder = train_linker(kb, "taught", training(corpus), device="cpu")
    manifest = LINKER.read(folder)
    assert (manifest.type, manifest.task, manifest.kb, manifest.build) == ("ridge", "wsd", "words", kb.build)
    assert manifest.results["mentions"] == 80
    assert manifest.results["held_out_accuracy"] == 1.0
    assert manifest.results["calibration_error"] <= manifest.results["calibration_error_before"]
    for model in ("taught", str(folder)):
        linker = Linker.open(kb, model=model)
        [linked] = linker([TEXT])
        assert [link.entity for link in linked.links] == ["dog.n.01", "dog.n.02", "dog.n.01", "tree.n.01"]
        assert linked.model == "taught"
        assert all(0 < link.score <= 1 for link in linked.links)


def test_a_small_training_does_not_make_scores_sure(kb, corpus, caplog):
    folder = train_linker(kb, "small", training(corpus), device="cpu")
    assert LINKER.read(folder).temperature == 1.0
    assert "are too few to calibrate scores with" in caplog.text


def test_what_the_kb_lacks_is_warned_of_and_all_of_it_is_refused(kb, corpus, tmp_path, caplog):
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    gold = corpus[1]
    keys = gold.read_text().splitlines(keepends=True)
    gold.write_text("".join([*keys[:76], *(line.replace("dog%", "cat%") for line in keys[76:])]))
    list(sources_of(kb, generator, training(corpus), None))
    lost = "are not in the knowledge base: these mentions are not trained on"
    assert f"2 gold entities, of 3 of 80 mentions, {lost}" in caplog.text
    el = tmp_path / "el.jsonl"
    entities = ["dog.n.01", "wolf", "wolf", "fox", None]
    mentions = [{"start": at, "end": at + 1, "entity": one} for at, one in enumerate(entities)]
    el.write_text(json.dumps({"doc_id": 1, "tokens": ["dog"] * 5, "mentions": mentions}))
    list(sources_of(kb, generator, LinkerTraining(data=(el,)), None))
    assert f"2 gold entities, of 3 of 4 mentions, {lost}" in caplog.text
    gold.write_text("".join(line.replace("%", "%9") for line in keys))
    asked = f"the gold entities of 80 of 80 mentions are not in .* words@{kb.build}: was it built"
    with pytest.raises(UsageError, match=asked):
        list(sources_of(kb, generator, training(corpus), None))
    caplog.clear()
    gold.write_text("".join(f"{line.split()[0]} {'tree%1' if 'dog' in line else 'dog%1'}\n" for line in keys))
    with pytest.raises(UsageError, match=r"its gold entity among its candidates$"):
        list(sources_of(kb, generator, training(corpus), None))
    assert lost not in caplog.text


@pytest.mark.parametrize("model_type", ["ridge", "head"])
def test_of_few_documents_none_is_held_out_and_it_is_said_what_is_taken(
    kb, corpus, caplog, model_type, monkeypatch
):
    monkeypatch.setattr("kgkit.training.linkers.train.FEWEST", 1 if model_type == "head" else 5)
    data, gold = corpus
    count = 9 if model_type == "head" else 1
    texts = data.read_text().removeprefix("<corpus>").split("</text>")[:count]
    data.write_text(f"<corpus>{''.join(f'{text}</text>' for text in texts)}</corpus>")
    gold.write_text("".join(gold.read_text().splitlines(keepends=True)[: 4 * count]))
    folder = train_linker(kb, "small", training(corpus, epochs=1), device="cpu")
    [warning] = [message for message in caplog.messages if "none was held out" in message]
    assert warning == (
        "fewer than ten documents: none was held out, the last epoch is taken, temperature 3"
        if model_type == "head"
        else "a single document: none was held out, weights are the usual ones, temperature 1"
    )
    assert LINKER.read(folder).temperature == float(warning.rpartition(" ")[2])


def test_gold_of_other_data_is_refused_with_the_first_instance_that_is_not_in_them(kb, corpus):
    gold = corpus[1]
    gold.write_text("".join(f"x{line}" for line in gold.read_text().splitlines(keepends=True)))
    asked = (
        r"x\.gold\.key\.txt: 80 of 80 gold instances are not in the data, the first is 'xd0\.s0\.t0': do the"
    )
    with pytest.raises(SourceError, match=asked):
        list(sources_of(kb, generator_for(kb), training(corpus), None))


def test_a_model_knows_the_command_that_trains_it_again(kb, corpus):
    data, gold = corpus
    assert older(kb.home.path.parents[1] / "models" / "m") == ""
    folder = train_linker(kb, "m", training(corpus, vectors="text"), device="cpu")
    files = f"--data {data} --gold {gold}"
    command = f"kgkit train linker --name m --kb words {files} --vectors text"
    assert LINKER.read(folder).command == command
    assert older(folder) == "the older m (ridge, for words)"


def test_other_data_are_another_training(kb, corpus, network):
    """One that was stopped does not go on with data that have been changed since."""

    def stop(stage, done, total):
        if stage.startswith("training") and done == total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_linker(kb, "m", head_training(corpus), device="cpu", progress=stop)
    data, _ = corpus
    data.write_text(data.read_text().replace("small", "red"))
    other = train_linker(kb, "m", head_training(corpus), device="cpu")
    fresh = train_linker(kb, "n", head_training(corpus), device="cpu")
    assert read_weights(other) == read_weights(fresh)


def test_usage_examples_of_senses_are_learnt_unless_they_are_in_the_data(tmp_path, corpus, encoder, folder):
    with build(tmp_path / "usage", USAGE, name="usage") as kb:
        embed_text(kb, TextConfig(encoder=str(folder), device="cpu", dtype="float32"), encoder=encoder)
        counts = [LINKER.read(train_linker(kb, "m", training(corpus), device="cpu")).results["mentions"]]
        corpus[0].write_text(corpus[0].read_text().replace('<wf lemma="big" pos="X">big</wf>', ""))
        counts.append(LINKER.read(train_linker(kb, "m", training(corpus), device="cpu")).results["mentions"])
    assert counts == [82, 81]


# -- the head ---------------------------------------------------------------


def read_weights(folder):
    return (folder / "head" / "model.safetensors").read_bytes()


def head_training(corpus, **settings):
    return training(corpus, **{"epochs": 8, **settings})


def test_a_trained_head_links_what_it_was_taught(kb, corpus, network):
    folder = train_linker(kb, "deep", head_training(corpus), device="cpu")
    manifest = LINKER.read(folder)
    assert manifest.type == "head" and manifest.results["held_out_accuracy"] == 1.0
    assert "head/model.safetensors" in manifest.sizes
    [linked] = Linker.open(kb, model="deep")([TEXT])
    assert [link.entity for link in linked.links] == ["dog.n.01", "dog.n.02", "dog.n.01", "tree.n.01"]
    assert not list((kb.home.path.parents[1] / "runs").iterdir())


@pytest.mark.slow
def test_two_heads_of_one_seed_are_equal_and_so_is_one_that_was_stopped(kb, corpus, network):
    weights = read_weights
    once = weights(train_linker(kb, "m", head_training(corpus), device="cpu"))
    other = weights(train_linker(kb, "n", head_training(corpus, seed=1), device="cpu"))
    assert other != once

    def stop(stage, done, total):
        if stage.startswith("training") and done == total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_linker(kb, "m2", head_training(corpus), device="cpu", progress=stop)
    assert (
        weights(train_linker(kb, "m2", head_training(corpus, seed=1), device="cpu")) == other
    )  # another job
    with pytest.raises(KeyboardInterrupt):
        train_linker(kb, "m2", head_training(corpus), device="cpu", progress=stop)
    assert weights(train_linker(kb, "m2", head_training(corpus), device="cpu")) == once


def test_traits_leave_the_mention_s_own_document_out(kb, encoder, corpus, tmp_path):
    """The slow twin: sums over the other documents alone."""
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    taught = list(labelled_senses(kb, generator, *corpus))[:3]
    taught[1] = taught[1]._replace(right=[~right for right in taught[1].right])
    reader, vectors = SpanReader(encoder, READ), kb.vectors("text")
    part = TrainingSet(reader, taught, tmp_path / "features", None)
    sums = add_sums([part.sums()])
    arrays = fit_means(sums, vectors, part.mean, text_mean(vectors))
    told = list(labelled_sentences(LinkerData(reader, vectors, [part]), sums, arrays, None))
    assert len(told) == 12
    query = part.queries_of(np.arange(12), part.mean)
    for place, one in enumerate(told):
        document = place // 4
        mention = taught[document].document.mentions[place % 4]
        for at, meaning in enumerate(meanings(mention.candidates).tolist()):
            seen = [
                query[row]
                for row, own, meant in zip(part.rows, part.documents, part.meanings, strict=True)
                if own != document and meant == meaning
            ]
            row = one.sentence.features[0][at]
            assert row[0] == pytest.approx(np.log1p(len(seen)), abs=1e-6)
            assert row[5] == float(bool(seen))
            total = np.sum(seen, axis=0) if seen else np.zeros(query.shape[1])
            length = np.linalg.norm(total) or 1
            assert row[6] == pytest.approx(float(total @ query[place]) / length, abs=1e-4)


def test_traits_are_those_of_their_names():
    found = candidate_features(
        np.array([2.0, 0.0, 2.0, 0.0], np.float32),
        np.array([0.5, 0.9, 0.1, 0.0], np.float32),
        np.array([3, 0, 1]),
    )
    third = 2.5 / 5.5
    expected = [
        [np.log(3), third, np.log(third), 3 / 4, 0.5, 1, 0.5],
        [0, 0.5 / 5.5, np.log(0.5 / 5.5), 1 / 3, 0, 0, 0],
        [np.log(3), third, np.log(third), 3 / 4, 0.5, 1, 0.1],
        [0, 1, 0, 1, 1, 0, 0],
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_a_head_scores_alike_whatever_stands_beside_a_document(kb, corpus, network):
    train_linker(kb, "deep", head_training(corpus), device="cpu")
    linker = Linker.open(kb, model="deep")
    several = ["dog", TEXT, "", "tree " * 30, "the dog eats fruit\na tree"]
    for linked in linker(several):
        [alone] = linker([linked.text])
        for one, other in zip(alone.links, linked.links, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)
            assert one.entity == other.entity


def test_two_trainings_are_equal_and_the_second_takes_the_place_of_the_first(kb, corpus):
    first = train_linker(kb, "m", training(corpus), device="cpu")
    arrays = [np.array(array) for array in RidgeArrays.load(first)]
    second = train_linker(kb, "m", training(corpus), device="cpu")
    assert second.parent == first.parent
    for one, other in zip(arrays, RidgeArrays.load(second), strict=True):
        assert np.array_equal(one, other)
    assert {path.name for path in first.parent.iterdir()} == {"current", "lock", second.name}


def test_two_trainings_of_a_name_that_end_together_leave_the_model_of_one(kb, corpus):
    with ThreadPoolExecutor(2) as both:
        futures = [both.submit(train_linker, kb, "m", training(corpus), device="cpu") for _ in range(2)]
        folders = [future.result() for future in futures]
    [there] = [folder for folder in folders if folder.exists()]
    assert {path.name for path in there.parent.iterdir()} == {"current", "lock", there.name}
    assert LINKER.read(there).name == "m"
    assert Linker.open(kb, model="m").scorer.name == "m"


def test_a_training_that_fails_leaves_the_old_model(kb, corpus, monkeypatch):
    folder = train_linker(kb, "m", training(corpus), device="cpu")
    before = (folder / MANIFEST).read_bytes()

    def full(self, place):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RidgeArrays, "save", full)
    with pytest.raises(Exception, match="No space left"):
        train_linker(kb, "m", training(corpus), device="cpu")
    assert (folder / MANIFEST).read_bytes() == before
    assert {path.name for path in folder.parent.iterdir()} == {"current", "lock", folder.name}


def test_a_model_of_another_kb_or_build_or_of_other_vectors_is_refused(kb, corpus, tmp_path, folder, encoder):
    train_linker(kb, "m", training(corpus), device="cpu")
    with build(tmp_path / "home", RECORDS[:-1], name="words") as other:
        embed_text(other, TextConfig(encoder=str(folder), dtype="float32", device="cpu"), encoder=encoder)
        with pytest.raises(
            StaleModel, match=f"was trained for words@{kb.build}, this is words@{other.build}"
        ):
            Linker.open(other, model="m")
    with (
        build(tmp_path / "home", RECORDS, name="others") as others,
        pytest.raises(
            UsageError, match="for the knowledge base 'words', not for 'others': link with --kb words"
        ),
    ):
        Linker.open(others, model=str(kb.home.path.parents[1] / "models" / "m"))
    tuned = tiny_encoder(tmp_path / "tuned", seed=5)
    embed_text(kb, TextConfig(encoder=str(tuned), name="tuned", dtype="float32", device="cpu"))
    with pytest.raises(StaleModel, match="those here were made by another"):
        Linker.open(kb, model="m", vectors="tuned")


def test_a_head_whose_features_are_not_those_that_it_is_told_of_is_damage(kb, corpus, network):
    folder = train_linker(kb, "m", head_training(corpus), device="cpu")
    scale = np.load(folder / "scale.npy")
    features = scale.shape[1]
    wrong = (
        scale[0], scale[0, 0], scale[:1], scale[None], scale[:, : features - 1],
        np.concatenate([scale, scale], axis=1), scale * 0, -scale, scale * np.float32(np.nan),
    )  # fmt: skip
    manifest = json.loads((folder / MANIFEST).read_text())
    for array in wrong:
        np.save(folder / "scale.npy", array)
        size = (folder / "scale.npy").stat().st_size
        told = manifest | {"sizes": manifest["sizes"] | {"scale.npy": size}}
        (folder / MANIFEST).write_text(json.dumps(told))
        with pytest.raises(DamagedModel, match=r"features|deviations|not finite"):
            Linker.open(kb, model="m", device="cpu")
    np.save(folder / "scale.npy", scale)
    builds = {} if manifest["needs"].get("kbs") else {kb.name: kb.build}  # the other kind of head
    (folder / MANIFEST).write_text(json.dumps(manifest | {"needs": {"kbs": builds}}))
    with pytest.raises(DamagedModel, match="train it again"):
        Linker.open(kb, model="m", device="cpu")


@pytest.mark.parametrize("older", [{"ranks": "listed"}, {"ranks": None}, {"heads": 3}, {"ridge": 1.0}])
def test_a_head_of_an_older_version_is_refused_with_what_to_do(kb, corpus, network, older):
    path = train_linker(kb, "m", head_training(corpus, epochs=1), device="cpu") / MANIFEST
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"config": {"head": manifest["config"]["head"] | older}}))
    with pytest.raises(StaleModel, match="train it again"):
        Linker.open(kb, model="m", device="cpu")


@pytest.mark.parametrize("file", [MANIFEST, "weight.npy", "centroids.npy"])
def test_a_damaged_model_is_told(kb, corpus, file):
    folder = train_linker(kb, "m", training(corpus), device="cpu")
    (folder / file).write_bytes((folder / file).read_bytes()[:-3])
    with pytest.raises(DamagedModel, match="train it again"):
        Linker.open(kb, model="m")


@pytest.mark.parametrize("model_type", ["ridge", "head"])
def test_a_model_whose_settings_make_no_sense_is_told_when_it_is_opened(kb, corpus, model_type, monkeypatch):
    monkeypatch.setattr("kgkit.training.linkers.train.FEWEST", 1 if model_type == "head" else 5_000)
    folder = train_linker(kb, "m", training(corpus), device="cpu")
    manifest = json.loads((folder / MANIFEST).read_text())
    for setting, value in (
        ("layers", []), ("layers", ["x", "y"]), ("layers", "ab"), ("layers", [None]), ("layers", [-1, 1.5]),
        ("size", "x"), ("size", None), ("size", -1), ("context", None), ("context", []), ("scope", "x"),
    ):  # fmt: skip
        told = manifest | {"reader": manifest["reader"] | {setting: value}}
        (folder / MANIFEST).write_text(json.dumps(told))
        with pytest.raises(KgkitError):
            Linker.open(kb, model="m", device="cpu")
    for value in (0, -1, 1e308, 1e-308):
        (folder / MANIFEST).write_text(json.dumps(manifest | {"temperature": value}))
        with pytest.raises(DamagedModel, match=r"model\.json cannot be read"):
            Linker.open(kb, model="m", device="cpu")


def test_a_linker_is_compared_with_the_prior_on_what_is_held_out(kb, corpus, monkeypatch):
    manifest = LINKER.read(train_linker(kb, "m", training(corpus), device="cpu"))
    prior, own = manifest.results["compared"]
    assert (prior["model"], prior["trained"], own["model"], own["trained"]) == ("prior", False, "m", True)
    assert own["score"] == 1.0 > prior["score"] and manifest.results["helps"]
    monkeypatch.setattr(ridge, "prior_accuracy", lambda scored: {"prior_accuracy": 1.5})
    with pytest.raises(BuildFailed, match="prior"):
        train_linker(kb, "worse", training(corpus), device="cpu")
    assert not (kb.home.path.parents[1] / "models" / "worse").exists()
    kept = LINKER.read(train_linker(kb, "kept", training(corpus, keep=True), device="cpu"))
    assert not kept.results["helps"] and {"worse", "kept"}.isdisjoint(trained_linkers(kb))


def test_without_held_out_documents_nothing_is_compared_and_auto_does_not_take_it(kb, corpus):
    data, gold = corpus
    data.write_text(f"{data.read_text().partition('</text>')[0]}</text></corpus>")
    gold.write_text("".join(gold.read_text().splitlines(keepends=True)[:4]))
    manifest = LINKER.read(train_linker(kb, "few", training(corpus), device="cpu"))
    assert manifest.results["compared"] == [] and "few" not in trained_linkers(kb)


@pytest.mark.parametrize("removed", [{"coherence": {"rounds": 3}}, {"type": "prior"}])
def test_a_model_of_a_removed_kind_is_refused_with_what_to_do(kb, corpus, removed):
    folder = train_linker(kb, "m", training(corpus), device="cpu")
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | removed))
    with pytest.raises(StaleModel, match="train it again"):
        Linker.open(kb, model="m", device="cpu")


def test_settings_that_do_not_go_together_are_refused(kb, corpus, tmp_path):
    _, gold = corpus
    with pytest.raises(UsageError, match="no training data"):
        LinkerTraining(data=())
    with pytest.raises(NotThere):
        train_linker(kb, "m", training((tmp_path / "no", gold)), device="cpu")
    with pytest.raises(SourceError):
        train_linker(kb, "m", training((gold, gold)), device="cpu")
    gold.write_text("d0.s0.t0 cat%1\n")
    with pytest.raises(UsageError, match="no mention has its gold entity among its candidates"):
        train_linker(kb, "m", training(corpus), device="cpu")
    for name in ("a/b", "gloss", "prior"):
        with pytest.raises(UsageError, match="cannot name a model"):
            train_linker(kb, name, training(corpus), device="cpu")


def test_the_command_trains_and_the_others_use_it_by_name(kb, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("kgkit.training.linkers.settings.SpanConfig", lambda **_: READ)
    home, (data, gold) = kb.home.path.parents[1], corpus
    done = run("train", "linker", "--name", "m", "--data", data, "--gold", gold, "--home", home)
    assert done.code == 0, done.err
    assert "m: ridge, wsd, for words@" in done.out
    assert "held out accuracy\t1.000" in done.out
    text = tmp_path / "a.txt"
    text.write_text(TEXT)
    linked = json.loads(run("link", text, "--model", "m", "--home", home).out)
    assert linked["links"][1]["entity"] == "dog.n.02"
    scored = run("evaluate", "wsd", "--data", data, "--gold", gold, "--model", "m", "--home", home, "--json")
    assert json.loads(scored.out)["together"]["overall"]["f1"] == 1.0
    unknown = run("link", text, "--model", "n", "--home", home)
    assert unknown.code == 3 and "there are: prior, gloss" in unknown.err


def test_a_folder_is_no_data(kb, tmp_path):
    home = kb.home.path.parents[1]
    for command in (["train", "linker", "--name", "m"], ["evaluate", "el"]):
        done = run(*command, "--data", tmp_path, "--home", home)
        assert done.code == 2
        assert f"{tmp_path} is a folder; name the files in it" in done.err
