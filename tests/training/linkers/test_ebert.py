"""An E-BERT-MLM from files to links: training, refinement, packed spans, new entities."""

import json
import shutil
from contextlib import ExitStack
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from safetensors.torch import load_file

import kgkit
from kgkit.building.add import add_to_kb
from kgkit.candidates import generator_for
from kgkit.embedding.text import TextConfig, embed_text, update_text
from kgkit.encoder import Encoder
from kgkit.errors import NotThere, StaleModel, UsageError
from kgkit.evaluation import read_gold_documents
from kgkit.home import Home
from kgkit.kb import open_kb
from kgkit.linking import Linker
from kgkit.methods.ebert_linking import EBertScorer
from kgkit.methods.ebert_settings import EBERT, EBertTraining
from kgkit.methods.settings import ChosenKB
from kgkit.models.folder import find_trained
from kgkit.models.opening import open_model
from kgkit.training.linkers import ebert as module
from kgkit.training.linkers.ebert import (
    begin_ebert_linker,
    loss,
    masked_batch,
    masked_examples,
    score_labelled,
)
from kgkit.training.linkers.labelled import labelled_spans
from kgkit.types import CANDIDATE, NO_SENSE, Candidates, Document, Mention
from tests.cli_helpers import run
from tests.ebert_linking_toys import mapped_kb, masked_lm
from tests.knowbert_toys import TEMPLATE, links, plain, senses

TEXT = "the big city grows and a company of the city eats fruit"  # of `links`
SIZE = 22


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = masked_lm(tmp_path_factory.mktemp("lm"))
    return Encoder.load(str(folder), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    data, gold = senses(folder)
    return {
        "data": data,
        "gold": gold,
        "el": links(folder / "el.jsonl"),
        "dev": links(folder / "dev.jsonl", 4),
    }


def settings(encoder, files, task="el", **others):
    common = {
        "task": task, "encoder": encoder.name, "size": SIZE, "batch": 8, "lr": 3e-3, "bf16": False,
        "data": (files["el"],), "dev": (files["dev"],), "epochs": 3,
    }  # fmt: skip
    if task == "wsd":
        common |= {"data": (files["data"],), "dev": ()}
    return common | others


def train(home, name, encoder, files, **others):
    arguments = settings(encoder, files, **others)
    kbs = ["words" if arguments["task"] == "wsd" else "places"]
    return kgkit.train("ebert", name=name, home=home, device="cpu", kbs=kbs, **arguments)


@pytest.fixture(scope="module")
def home(tmp_path_factory, encoder, files):
    """A home with both knowledge bases and some models: not to be changed."""
    home = Home(tmp_path_factory.mktemp("home"))
    for name in ("words", "places"):
        mapped_kb(home.path, name, encoder).close()
    train(home, "entities", encoder, files, packed=True, epochs=6)
    train(home, "senses", encoder, files, task="wsd")
    return home


@pytest.fixture
def copied(home, tmp_path):
    return Home(shutil.copytree(home.path, tmp_path / "home", symlinks=True))


@pytest.fixture
def places(home):
    with open_kb("places", home.path) as kb:
        yield kb


@pytest.fixture
def start(home, encoder, files, places):
    """Begin a model that is not trained, with settings of its own."""
    with ExitStack() as stack:

        def begin(**others):
            training = EBertTraining(**settings(encoder, files, **others))
            return begin_ebert_linker(home, training, [ChosenKB(places, ("text",))], "cpu", stack)

        yield begin


def results_of(home, name):
    return EBERT.read(find_trained(home, name)).results


def weights_of_model(home, name):
    return load_file(find_trained(home, name) / "ebert" / "encoder" / "model.safetensors")


def test_training_raises_what_chooses_the_epoch(home):
    trained = results_of(home, "entities")
    assert trained["epochs"][0]["f1"] < trained["f1"] > 0.5
    assert trained["epochs"][int(trained["best_epoch"]) - 1]["f1"] == trained["f1"]
    assert results_of(home, "senses")["accuracy"] == 1.0


def test_a_packed_model_links_in_one_round_and_another_in_three(home):
    for name, expected in (("entities", (True, 1)), ("senses", (False, 3))):
        linking = EBERT.read(find_trained(home, name)).linking
        assert (linking.packed, linking.rounds) == expected


@pytest.fixture
def seen(monkeypatch):
    """Record the documents that are learnt from, and those that are scored: their hits, and the rounds."""
    seen = SimpleNamespace(learnt=[], scored=[], rounds=[], hits=[])

    def examples(documents, *args, **others):
        seen.learnt += [document.document.id for document in documents]
        return masked_examples(documents, *args, **others)

    def score(scorer, documents):
        seen.scored.append([document.document.id for document in documents])
        seen.rounds.append(scorer.rounds)
        scored = score_labelled(scorer, documents)
        seen.hits.append(sum(bool(right[:-1][scores[:-1].argmax()]) for scores, right in scored
                             if scores.argmax() < len(right) - 1))  # fmt: skip
        return scored

    monkeypatch.setattr(module, "masked_examples", examples)
    monkeypatch.setattr(module, "score_labelled", score)
    return seen


def test_nothing_is_learnt_from_the_documents_that_choose_the_epoch(copied, encoder, files, seen):
    train(copied, "tenth", encoder, files, dev=(), epochs=1)
    every = [gold.document.id for gold in read_gold_documents(files["el"])]
    [scored] = seen.scored
    assert scored and not {*scored} & {*seen.learnt}
    assert sorted([*scored, *seen.learnt]) == sorted(every)


def test_mentions_without_their_gold_are_missed_in_what_chooses_the_epoch_after_one_round(
    copied, encoder, files, tmp_path, seen
):
    records = [json.loads(line) for line in files["dev"].read_text().splitlines()]
    for record in records:
        record["mentions"][0]["entity"] = "Nowhere"
    path = tmp_path / "lost.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    train(copied, "lost", encoder, files, dev=(path,))
    mentions = sum(len(record["mentions"]) for record in records)
    recalls = [epoch["recall"] for epoch in results_of(copied, "lost")["epochs"]]
    assert any(recalls) and recalls == pytest.approx([hits / mentions for hits in seen.hits])
    assert {*seen.rounds} == {1}


def test_only_what_is_trained_differs_from_the_masked_language_model(home, encoder):
    before = load_file(encoder.folder / "model.safetensors")

    trained = weights_of_model(home, "entities")
    same = {name for name in before if torch.equal(before[name], trained[name])}
    assert "bert.embeddings.word_embeddings.weight" in same
    assert "bert.embeddings.position_embeddings.weight" not in same
    assert "cls.predictions.transform.dense.weight" not in same


def test_a_model_links_and_is_scored_by_the_commands(copied, files):
    on = ["--home", copied.path, "--device", "cpu"]
    found = run(
        "link", "--kb", "places", "--model", "entities", "--overlaps", "score", *on, given=TEXT.encode()
    )
    [document] = map(json.loads, found.out.splitlines())
    assert document["model"] == "entities"
    assert {link["text"] for link in document["links"]} >= {"big city"}
    command = "evaluate", "el", "--data", str(files["dev"]), "--kb", "places", "--model", "entities", "--json"
    scored = json.loads(run(*command, "--overlaps", "score", *on).out)
    assert scored["together"]["micro"]["f1"] > 0.5
    command = "evaluate", "wsd", "--data", str(files["data"]), "--gold", str(files["gold"]), "--kb", "words"
    scored = json.loads(run(*command, "--model", "senses", "--json", *on).out)
    assert scored["together"]["overall"]["f1"] == 1.0
    refused = run("predict", "--model", "senses", files["el"], *on)
    assert refused.code == 2
    assert "answers no task: `kgkit link --model senses` links with it" in refused.err
    refused = run("evaluate", "task", "--model", "entities", "--data", files["el"], *on)
    assert refused.code == 2 and "the model entities" in refused.err


def test_links_are_the_same_however_many_documents_are_read_together(home, files):
    documents = [gold.document for gold in read_gold_documents(files["dev"])]
    texts = [document.text for document in documents] + [TEXT[:22], "fruit", TEXT + " " + TEXT, "a dog"]
    with open_kb("places", home.path) as kb:
        linker = Linker.open(kb, home=home.path, model="entities", overlaps="score", device="cpu")
        linker.scorer.rounds, linker.scorer.reader.packed = 3, False
        together = [linked.links for linked in linker(texts)]
        linker.scorer.batch_size = 1
        alone = [linked.links for linked in linker(texts)]
    assert any(together)
    for batched, expected in zip(together, alone, strict=True):
        assert [(link.start, link.end, link.entity) for link in batched] == [
            (link.start, link.end, link.entity) for link in expected
        ]
        assert [link.score for link in batched] == pytest.approx([link.score for link in expected], abs=1e-5)


def document_of(text, *mentions):
    made = []
    for words, ids, priors in mentions:
        rows = np.array(
            [(entity, NO_SENSE, prior) for entity, prior in zip(ids, priors, strict=True)], CANDIDATE
        )
        begin = text.index(words)
        made.append(Mention(begin, begin + len(words), words, Candidates(rows)))
    return Document("x", text, mentions=made)


def test_a_window_with_one_span_has_the_same_numbers_packed_and_unpacked(start):
    document = document_of("the city eats fruit", ("city", [0, 1, 2], [0.5, 0.3, 0.2]))
    [[scores]], [[packed]] = (
        EBertScorer(begun.linker, begun.reader)([document]) for begun in (start(), start(packed=True))
    )
    assert scores.tolist() == packed.tolist()
    assert 0 < scores.sum() < 1


def test_rounds_read_the_surest_links_as_entities(start, monkeypatch):
    begun = start()
    kinds = [("big city", [0, 1], [0.6, 0.4]), ("company", [1, 2], [0.5, 0.5]), ("fruit", [2, 0], [0.9, 0.1])]
    document = document_of("the big city and a company and fruit", *kinds)
    scorer, read = EBertScorer(begun.linker, begun.reader, rounds=3), []
    likely = {0: [0.5, 0.2, 0.3], 1: [0.3, 0.6, 0.1], 2: [0.2, 0.1, 0.7]}

    def probabilities(passes):
        masked = [begun.reader.mask(*one) for one in passes]
        read.append([(one.spans[0].mention, one.sequence.entities) for one in masked])
        return (np.array(likely[one.spans[0].mention], np.float32) for one in masked)

    monkeypatch.setattr(scorer, "_probabilities", probabilities)
    [scores] = scorer([document])
    assert read == [
        [(0, ((0, 1),)), (1, ((1, 2),)), (2, ((2, 0),))],
        [(0, ((0, 1), (2,))), (2, ((2,), (2, 0)))],  # the company is the second candidate, 2
        # the second round links the big city: ceil(2 * 2 / 3) = 2
        [(2, ((0,), (2,), (2, 0)))],
    ]
    assert [row.tolist() for row in scores] == [pytest.approx(row[:2]) for row in likely.values()]


def test_of_mentions_that_overlap_one_is_chosen_where_that_is_asked_for(start, monkeypatch):
    begun = start()
    document = document_of("the big city grows", ("big city", [0], [1.0]), ("city", [1], [1.0]))
    rows = {0: np.array([0.6, 0.4], np.float32), 1: np.array([0.8, 0.2], np.float32)}
    for exclusive, expected in ((True, [[0.0], [0.8]]), (False, [[0.6], [0.8]])):
        scorer = EBertScorer(begun.linker, begun.reader, exclusive=exclusive)
        shares = {scorer: lambda passes: (rows[span.mention] for _, spans, _ in passes for span in spans)}
        monkeypatch.setattr(scorer, "_probabilities", shares[scorer])
        [scores] = scorer([document])
        assert [row.tolist() for row in scores] == [pytest.approx(row) for row in expected]


def test_what_is_never_read_means_nothing_or_has_its_prior(home, start, files):
    long = " ".join(["fruit"] * SIZE)
    document = document_of(long + " city", (long, [0], [0.7]), ("city", [0], [0.7]))
    begun = start()
    [scores] = EBertScorer(begun.linker, begun.reader)([document])
    assert scores[0].tolist() == [0.0]
    assert 0 < scores[1][0] < 1
    with open_kb("words", home.path) as kb:
        scorer = open_model("senses", "linker", home=home, kb=kb, device="cpu")
        assert not scorer.scores_null
        assert scorer([document])[0][0].tolist() == pytest.approx([0.7])


def test_a_span_whose_gold_is_no_candidate_teaches_nothing(start, places, files, tmp_path):
    mentions = [{"start": 1, "end": 3, "entity": "Fruit"}, {"start": 5, "end": 6, "entity": "Big_City"}]
    mentions.append({"start": 8, "end": 9, "entity": None})
    tokens = "the big city and the city of a company eats fruit".split()
    record = {"doc_id": 1, "tokens": tokens, "sentences": [[0, 11]], "mentions": mentions}
    (tmp_path / "x.jsonl").write_text(json.dumps(record) + "\n")
    documents = list(labelled_spans(places, generator_for(places, overlaps=True), tmp_path / "x.jsonl"))
    begun = start()
    examples = list(masked_examples(documents, begun.reader, null=True))
    [document] = documents

    def words(index):
        return document.document.mentions[index].text

    assert [words(index) for index in document.unmatched] == ["big city"]
    taught = [
        (words(span.mention), bool(right.any()))
        for example in examples
        for span, right in zip(example.spans, example.right, strict=True)
    ]
    assert taught == [("city", False), ("city", True), ("company", False), ("fruit", False)]
    batch = masked_batch(examples, begun.reader, null=True)
    assert batch.gold.sum(1).tolist() == [1] * 4
    value, count = loss(begun.linker.eval(), batch)
    likely = torch.log_softmax(begun.linker(batch.inputs), -1)[batch.gold]
    assert (float(value.detach()), count) == (pytest.approx(-float(likely.detach().mean()), abs=1e-5), 4.0)


def stop(stage, done, total):
    if stage.startswith("training, loss") and done == 4:
        raise KeyboardInterrupt


def test_a_training_that_was_stopped_ends_as_if_it_had_not_been(copied, encoder, files, monkeypatch):
    for name, others in {"undisturbed": {}, "stopped": {"progress": stop}}.items():
        try:
            train(copied, name, encoder, files, epochs=2, **others)
        except KeyboardInterrupt:
            train(copied, name, encoder, files, epochs=2)
        else:
            assert name == "undisturbed"
    undisturbed, resumed = (
        [load_file(path) for path in sorted((find_trained(copied, name) / "ebert").rglob("*.safetensors"))]
        for name in ("undisturbed", "stopped")
    )
    assert len(undisturbed) == len(resumed) == 3
    for weights, others in zip(undisturbed, resumed, strict=True):
        assert all(torch.equal(weights[name], others[name]) for name in weights)


def test_an_entity_that_came_later_is_linked_without_training(copied, encoder, tmp_path):
    town = {
        "key": "Tree_Town",
        "label": "tree town",
        "description": "a city of many trees",
        "aliases": ["tree"],
    }
    new = tmp_path / "new.jsonl"
    new.write_text(json.dumps(town) + "\n")
    add_to_kb("places", new, home=copied.path)
    with open_kb("places", copied.path) as kb:
        update_text(kb, encoder=encoder)
    with open_kb("places", copied.path) as kb:
        linker = Linker.open(kb, home=copied.path, model="entities", device="cpu", nil=True)
        [linked] = linker(["a tree grows in the city"])
    tree = next(link for link in linked.links if link.text == "tree")
    assert [candidate.entity for candidate in tree.candidates] == ["Tree_Town"]
    assert 0 < tree.candidates[0].score < 1


def test_a_masked_language_model_of_kgkit_is_what_it_begins_as(copied, encoder, files, tmp_path):
    text = plain(tmp_path / "plain.txt", 12)
    kgkit.train(
        "knowbert", name="base", home=copied, device="cpu", task="mlm", control=True, data=text,
        encoder=encoder.name, size=SIZE, steps=2, epochs=1, bf16=False,
    )  # fmt: skip
    with pytest.raises(NotThere, match="base"):
        train(copied, "from-base", Renamed("base"), files)
    with open_kb("places", copied.path) as kb:
        map_of(kb, copied)
    train(copied, "from-base", Renamed("base"), files, steps=2)
    manifest = EBERT.read(find_trained(copied, "from-base"))
    assert manifest.encoder == "base"
    with open_kb("places", copied.path) as kb:
        assert open_model("from-base", "linker", home=copied, kb=kb, device="cpu")(
            [Document("x", TEXT, mentions=[])]
        )
    with pytest.raises(UsageError):
        train(copied, "from-entities", Renamed("entities"), files)


class Renamed:
    def __init__(self, name):
        self.name = name


def map_of(kb, home):
    from kgkit.methods.cloze_opening import open_masked_lm
    from tests.ebert_toys import save_map

    with open_masked_lm("base", home, "cpu") as masked_lm:
        save_map(kb.vectors("text"), masked_lm.encoder)


def test_a_model_of_other_vectors_or_another_knowledge_base_is_refused(copied, encoder, home):
    with open_kb("words", copied.path) as kb, pytest.raises(UsageError, match="no knowledge base 'words'"):
        open_model("entities", "linker", home=copied, kb=kb, device="cpu")
    with open_kb("places", copied.path) as kb:
        with pytest.raises(UsageError, match="leave out --vectors"):
            open_model("entities", "linker", home=copied, kb=kb, device="cpu", vectors="text")
        config = TextConfig(encoder=encoder.name, device="cpu", dtype="float32", template=TEMPLATE + " ")
        embed_text(kb, config, encoder=encoder)
    with open_kb("places", copied.path) as kb, pytest.raises(StaleModel):
        open_model("entities", "linker", home=copied, kb=kb, device="cpu")


def test_an_encoder_that_is_no_masked_language_model_or_untied_is_refused(copied, files, tmp_path, encoder):
    from tests.tiny_encoder import tiny_encoder

    bare = tiny_encoder(tmp_path / "bare", mask=True, words=("/", "*"))
    with pytest.raises(UsageError, match="no trained head for masked words"):
        train(copied, "x", Renamed(str(bare)), files)
    untied = Encoder.load(str(masked_lm(tmp_path / "untied", tied=False)), device="cpu", dtype="float32")
    with open_kb("places", copied.path) as kb:
        from tests.ebert_toys import save_map

        save_map(kb.vectors("text"), untied)
    with pytest.raises(UsageError, match="weights of its own"):
        train(copied, "x", untied, files)


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"control": True}, "a control has none"),
        ({"data": ()}, "there are no training data"),
    ],
)
def test_settings_that_do_not_fit_are_refused(encoder, files, others, message):
    with pytest.raises(UsageError, match=message):
        EBertTraining(**settings(encoder, files) | others)
