"""A KnowBert from files to links: stages, a training that was stopped, what is refused, and the commands."""

import dataclasses
import hashlib
import json
import shutil
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from msgspec import structs
from safetensors.torch import load_file

import kgkit
from benchmarks.recall import recall
from kgkit.catalog import Catalog
from kgkit.embedding.text import TextConfig, embed_text, update_text
from kgkit.encoder import Encoder
from kgkit.encoder.loading import language_class
from kgkit.errors import ClosedKB, DamagedModel, NotThere, SourceError, StaleModel, UnknownName, UsageError
from kgkit.evaluation import read_gold_documents
from kgkit.evaluation.plain_text import read_plain
from kgkit.heads import KAR
from kgkit.heads.knowbert import KARConfig, usual_layers
from kgkit.home import Home
from kgkit.inputs.knowbert import KnowBertReader
from kgkit.inputs.masking import NOTHING
from kgkit.kb import open_kb
from kgkit.linking import Linker
from kgkit.methods import hidden_words
from kgkit.methods import knowbert_model as trained_knowbert
from kgkit.methods.contract import group_parameters
from kgkit.methods.hidden_words import LanguageBatch
from kgkit.methods.knowbert import begin_knowbert, pretrained_parameters
from kgkit.methods.knowbert_model import KnowBertScorer, TrainedKnowBert
from kgkit.methods.knowbert_settings import KNOWBERT, KnowBertTraining, Supervision, linker_config
from kgkit.methods.settings import ChosenKB
from kgkit.models.folder import find_trained
from kgkit.models.kinds import LINKER
from kgkit.models.manifest import MANIFEST
from kgkit.training.knowbert.examples import LinkingBatch
from kgkit.training.knowbert.stages import stage_of
from kgkit.training.tasks import train_method
from kgkit.types import Document, Entity
from tests.cli_helpers import run
from tests.knowbert_toys import SENSES, TEMPLATE, links, plain, senses, with_vectors
from tests.small_kb import build
from tests.tiny_encoder import WIDTH, tiny_encoder

SIZE = 20
TEXT = "the dog barks in the city and a tree grows in the big city"
TAUGHT = "the big city grows and a company of the city eats fruit"  # of `links`
WORDS, PLACES = ("words",), ("places",)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("tiny"), mask=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    data, gold = senses(folder)
    return {
        "data": data, "gold": gold, "el": links(folder / "el.jsonl"), "text": plain(folder / "plain.txt"),
        "held": plain(folder / "held.txt", 5, seed=1),
    }  # fmt: skip


def settings(encoder, files, stage, /, **others):
    """What a stage is trained with."""
    common = {
        "encoder": str(encoder), "size": SIZE, "batch": 8, "epochs": 2, "lr": 1e-3, "lr_new": 3e-3,
        "bf16": False,
    }  # fmt: skip
    of = {
        "wsd": {"data": (files["data"],), "epochs": 4},
        "el": {"data": (files["el"],), "epochs": 2},
        "mlm": {"data": (files["text"],), "epochs": 1},
    }[stage]
    return KnowBertTraining(task=stage, **common | of | others)


def trained(home, name, training, kbs=(), **others):
    with ExitStack() as stack:
        chosen = [ChosenKB(stack.enter_context(open_kb(kb, home.path)), ("text",)) for kb in kbs]
        return train_method(KNOWBERT, home, name, training, chosen, device="cpu", **others)


def beside(files, kb="words"):
    if kb == "words":
        return Supervision(kb, files["data"])
    return Supervision(kb, files["el"])


@pytest.fixture(scope="module")
def home(tmp_path_factory, encoder, files):
    """A home with both knowledge bases, and a model of each stage: not to be changed."""
    home = Home(tmp_path_factory.mktemp("home"))
    loaded = Encoder.load(str(encoder), device="cpu", dtype="float32")
    for name in ("words", "places"):
        with_vectors(home.path, name, loaded).close()
    trained(home, "senses", settings(encoder, files, "wsd"), WORDS, command="kgkit train …")
    language = settings(encoder, files, "mlm", start="senses", linking=(beside(files),))
    trained(home, "language", language)
    trained(home, "both", settings(encoder, files, "el", start="language", epochs=8), PLACES)
    control = settings(encoder, files, "mlm", start="senses", control=True, linking=(beside(files),))
    trained(home, "control", control)
    return home


@pytest.fixture
def copied(home, tmp_path):
    shutil.copytree(home.path, tmp_path / "copied", symlinks=True)
    return Home(tmp_path / "copied")


@pytest.fixture
def words(home):
    with open_kb("words", home.path) as kb:
        yield kb


@pytest.fixture
def places(home):
    with open_kb("places", home.path) as kb:
        yield kb


def kars_of(home, name):
    return load_file(find_trained(home, name) / "knowbert" / "model.safetensors")


def encoder_of(home, name):
    return load_file(find_trained(home, name) / "knowbert" / "encoder" / "model.safetensors")


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def part(weights, prefix):
    return {name: one for name, one in weights.items() if name.startswith(prefix)}


# -- stages -----------------------------------------------------------------


def test_the_first_stage_trains_one_linker_and_nothing_else(home, encoder):
    found, bert = kars_of(home, "senses"), encoder_of(home, "senses")
    before = load_file(encoder / "model.safetensors")
    assert all(torch.equal(bert[f"bert.{name}"], one) for name, one in before.items())
    config = KARConfig(linker=linker_config("wsd", WIDTH, WIDTH), layer=0)
    new = KAR(config, torch.Generator().manual_seed(0)).state_dict()
    moved = {name for name, one in new.items() if not torch.equal(one, found[f"0.{name}"])}
    still = {"linker.mask", "linker.pool.attend.bias"}  # no loss reaches the one; the other moves no softmax
    linker = {name for name in new if name.startswith("linker.") and name not in still}
    assert moved == linker | {"back.weight", "back.bias"}  # which undo what the linker has learnt
    results = KNOWBERT.read(find_trained(home, "senses")).results
    assert results["held_out"] == 4 and results["texts"] == 11 and results["mentions"] == 44
    assert results["held_out_accuracy"] >= 0.75
    assert results["held_out_accuracy"] == max(one["accuracy"] for one in results["epochs"])
    best = next(one for one in results["epochs"] if one["accuracy"] == results["held_out_accuracy"])
    assert best["epoch"] == results["best_epoch"]


def test_the_second_stage_trains_all_and_scores_what_was_held_out(home):
    for names in (kars_of, encoder_of):
        before, after = names(home, "senses"), names(home, "language")
        assert before.keys() == after.keys()
        same = {name for name, one in before.items() if torch.equal(one, after[name])}
        assert same <= {"0.linker.pool.attend.bias"}
    results = KNOWBERT.read(find_trained(home, "language")).results
    assert results["passages"] > 99 and results["held_out"] == 2 and results["links"] == {"words": 11}
    assert set(results["epochs"][0]) == {"epoch", "perplexity", "accuracy"}
    assert results["linkers"]["words"]["held_out"] == 4


def test_a_second_knowledge_base_stands_above_the_first_which_it_leaves_alone(home):
    assert equal(encoder_of(home, "both"), encoder_of(home, "language"))
    before, after = kars_of(home, "language"), kars_of(home, "both")
    assert equal(part(after, "0."), before) and part(after, "1.").keys() == {
        *(name.replace("0.", "1.", 1) for name in before), "1.linker.null",
    }  # fmt: skip
    config = json.loads((find_trained(home, "both") / "knowbert" / "config.json").read_text())
    assert [(name, one["layer"], one["linker"]["null"]) for name, one in config["kbs"].items()] == [
        ("words", usual_layers(2, 1)[0], False), ("places", usual_layers(2, 1)[0] + 1, True),
    ]  # fmt: skip
    assert KNOWBERT.read(find_trained(home, "both")).results["held_out"] == 5  # NULL is held out, too


def test_a_control_has_no_knowledge_and_learns_no_links(home):
    manifest = KNOWBERT.read(find_trained(home, "control"))
    assert manifest.kbs == {} and kars_of(home, "control") == {}
    assert manifest.results["links"] == manifest.results["linkers"] == {}
    assert not equal(encoder_of(home, "control"), encoder_of(home, "senses"))
    with TrainedKnowBert.open("control", home=home, device="cpu") as model:
        [found] = model(["a dog"])
    assert found.vectors.shape == (2, WIDTH)


def batches_of(home, training):
    """The first epoch of a stage, batch by batch."""
    with ExitStack() as stack:
        model = begin_knowbert(home, training, (), "cpu", stack)
        batches = stage_of(training, model, None).batches
        return list(batches.epoch(0, range(len(batches))))


def test_a_control_reads_the_passages_of_the_other_and_rests_where_that_learns_links(home, encoder, files):
    told = {"start": "senses", "linking": (beside(files),)}
    knowing = batches_of(home, settings(encoder, files, "mlm", **told))
    control = batches_of(home, settings(encoder, files, "mlm", control=True, **told))
    assert len(knowing) == len(control)
    kinds = {LinkingBatch: 0, LanguageBatch: 0}
    for one, other in zip(knowing, control, strict=True):
        kinds[type(one)] += 1
        if isinstance(one, LinkingBatch):
            assert other is None
        else:
            assert torch.equal(one.batch.inputs["input_ids"], other.batch.inputs["input_ids"])
            assert torch.equal(one.labels, other.labels)
    assert all(kinds.values())
    # Where no links are named for the other, there is nothing to rest from.
    assert None not in batches_of(home, settings(encoder, files, "mlm", control=True, start="senses"))


def of_mentions(folder):
    """Write plain text of which every other word is a mention of `words`."""
    path = folder / "mentions.txt"
    path.write_text("\n\n".join(["the dog the tree\na tree a dog and the dog"] * 60) + "\n")
    return path


def told_of_hidden_words(monkeypatch):
    """Note of what perplexity is measured on: of each mention with a hidden piece whether it is masked."""
    found, measure = [], hidden_words.score_passages

    def score_passages(knowbert, reader, masking, passages, **others):
        def watched(text, generator):
            masked = masking(text, generator)
            hidden = masked.labels != NOTHING
            for kb, known in masked.text.mentions.items():
                for (first, end), is_masked, candidates, own in zip(
                    known.spans, known.masked, known.candidates, text.mentions[kb].candidates, strict=True
                ):
                    if hidden[first:end].any():
                        found.append(bool(is_masked))
                    assert candidates is own
            return masked

        return measure(knowbert, reader, watched, passages, **others)

    monkeypatch.setattr(hidden_words, "score_passages", score_passages)
    return found


def test_candidates_of_hidden_words_are_never_told_where_perplexity_is_reported(
    copied, tmp_path, monkeypatch
):
    told = told_of_hidden_words(monkeypatch)
    done = run(
        "evaluate", "ppl", "--data", of_mentions(tmp_path), "--model", "language", "--home", copied.path,
        "--device", "cpu",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert len(told) > 30 and all(told)  # in training a fifth of them are not masked


def test_candidates_of_hidden_words_are_never_told_where_perplexity_chooses_the_epoch(
    copied, encoder, files, tmp_path, monkeypatch
):
    told = told_of_hidden_words(monkeypatch)
    more = settings(
        encoder, files, "mlm", start="senses", linking=(beside(files),), dev=(of_mentions(tmp_path),), steps=1
    )
    trained(copied, "more", more)
    assert len(told) > 30 and all(told)


def test_the_way_back_undoes_what_a_linker_has_learnt_until_all_has_been_trained(
    home, copied, encoder, files
):
    def undoes(where, name):
        found = kars_of(where, name)
        inverse = torch.linalg.pinv(found["0.linker.project.weight"].double()).float()
        return torch.allclose(found["0.back.weight"], inverse, atol=1e-4)

    assert undoes(home, "senses") and not undoes(home, "language")
    idle = settings(encoder, files, "mlm", start="senses", steps=1, lr=1e-12, lr_new=1e-12)
    trained(copied, "idle", idle)
    assert undoes(copied, "idle")
    trained(copied, "silent", dataclasses.replace(idle, back="nothing"))
    assert float(kars_of(copied, "silent")["0.back.weight"].abs().max()) < 1e-9
    trained(copied, "more", settings(encoder, files, "wsd", start="language", steps=2))
    assert torch.equal(kars_of(copied, "more")["0.back.weight"], kars_of(home, "language")["0.back.weight"])
    assert not equal(kars_of(copied, "more"), kars_of(home, "language"))


def test_the_encoder_has_a_learning_rate_of_its_own(copied, encoder, files):
    def moved(start, **rates):
        few = settings(encoder, files, "mlm", start=start, steps=2, **rates)
        trained(copied, "few", few)
        return [
            max(float((one - before[name]).abs().max()) for name, one in after.items() if kind in name) > 1e-4
            for before, after, kind in (
                (encoder_of(copied, start), encoder_of(copied, "few"), "bert.encoder"),
                (kars_of(copied, start), kars_of(copied, "few"), "0."),
                (encoder_of(copied, start), encoder_of(copied, "few"), "seq_relationship"),
            )
        ]

    # What guesses words is new until it has been trained.
    assert moved("senses", lr=1e-2, lr_new=1e-9) == [True, False, False]
    assert moved("senses", lr=1e-9, lr_new=1e-2) == [False, True, True]
    assert moved("language", lr=1e-2, lr_new=1e-9) == [True, False, True]
    assert moved("language", lr=1e-9, lr_new=1e-2) == [False, True, False]


def test_a_masked_language_model_without_the_next_sentence_guesses_words_all_the_same(
    encoder, files, tmp_path
):
    from transformers import BertForMaskedLM

    BertForMaskedLM.from_pretrained(encoder).save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(encoder / name, tmp_path)
    with ExitStack() as stack:
        training = settings(tmp_path, files, "mlm", control=True)
        model = begin_knowbert(Home(tmp_path), training, [], "cpu", stack)
        stage = stage_of(training, model, None)
        rates = {
            id(one): group["lr"]
            for group in group_parameters(stage.model, pretrained_parameters(model), training)
            for one in group["params"]
        }
        named = {name: rates[id(one)] for name, one in model.knowbert.model.named_parameters()}
    assert model.language_model
    new = {name for name, rate in named.items() if rate == training.lr_new}
    assert {name.rpartition(".")[0] for name in new} == {"bert.pooler.dense", "cls.seq_relationship"}
    assert set(named.values()) == {training.lr, training.lr_new}


def test_too_few_data_to_hold_some_out_are_told(copied, encoder, files, tmp_path, caplog):
    few = tmp_path / "few.txt"
    few.write_text("the dog barks. A cat eats.\n\na tree grows. It is big.\n", encoding="utf-8")
    trained(copied, "few", settings(encoder, files, "mlm", data=(few,), steps=1, control=True))
    assert "too few data to hold some out: no epoch is chosen" in caplog.text
    assert KNOWBERT.read(find_trained(copied, "few")).results["epochs"] == []
    trained(copied, "few", settings(encoder, files, "mlm", data=(few,), dev=(few,), steps=1, control=True))
    assert "2 held-out passages are few to choose an epoch by" in caplog.text


def test_what_is_held_out_is_not_learnt_from(home, encoder, files):
    training = settings(encoder, files, "mlm", start="senses", linking=(beside(files),))
    with ExitStack() as stack:
        model = begin_knowbert(home, training, (), "cpu", stack)
        mixture = stage_of(training, model, None).batches
    learnt = "\n".join(text for passage in mixture.passages for text in passage.texts)
    documents = list(read_plain(files["text"]))
    assert sum(max(told, key=len) not in learnt for told in documents) == 1
    assert len(documents) == 60 and len(mixture.examples["words"]) == 11
    with ExitStack() as stack:
        own = settings(encoder, files, "mlm", start="senses", dev=(files["held"],))
        every = stage_of(own, begin_knowbert(home, own, (), "cpu", stack), None).batches
    assert len(every.passages) > len(mixture.passages) and not every.examples


def test_a_temperature_that_was_learnt_is_kept_and_used(copied, encoder, files, monkeypatch):
    told = iter((2.5, 3.5))
    monkeypatch.setattr(
        "kgkit.training.knowbert.stages.best_temperature",
        lambda scored, usual: next(told) if scored else usual,
    )
    trained(copied, "warm", settings(encoder, files, "el", steps=1), PLACES)
    assert KNOWBERT.read(find_trained(copied, "warm")).kbs["places"].temperature == 2.5
    few = settings(encoder, files, "mlm", steps=1, start="warm", linking=(beside(files, "places"),))
    trained(copied, "warm", few)
    with TrainedKnowBert.open("warm", home=copied, device="cpu") as model:
        assert KnowBertScorer(model, "places").temperature == 3.5
    # Where no links are learnt beside, it stays.
    trained(copied, "warmer", settings(encoder, files, "mlm", steps=1, start="warm"))
    assert KNOWBERT.read(find_trained(copied, "warmer")).kbs["places"].temperature == 3.5


def test_several_at_once_stand_from_the_bottom_up_and_dev_files_choose(copied, encoder, files):
    both = settings(encoder, files, "mlm", dev=(files["held"],), steps=2, seed=1)
    manifest = KNOWBERT.read(trained(copied, "x", both, (*WORDS, *PLACES)))
    assert [*manifest.kbs] == ["words", "places"]
    assert all(one.joint and not one.task for one in manifest.kbs.values())
    assert manifest.results["held_out"] > 5 and str(files["held"]) in manifest.data


def test_what_a_model_says_of_itself(home, encoder, files):
    told = json.loads((find_trained(home, "both") / MANIFEST).read_text())
    assert (told["format"], told["kind"], told["name"], told["task"]) == (2, "knowbert", "both", "el")
    assert told["kbs"] == {
        "words": {
            "vectors": ["text"],
            "task": "wsd",
            "temperature": 1.0,
            "joint": True,
        },
        "places": {
            "vectors": ["text"],
            "task": "el",
            "temperature": 1.0,
            "joint": False,
        },
    }
    assert (told["encoder"], told["start"], told["size"]) == (str(encoder), "language", SIZE)
    assert told["config"]["lr_new"] == 3e-3 and told["config"]["data"] == [str(files["el"])]
    assert told["data"] == {str(files["el"]): hashlib.sha256(files["el"].read_bytes()).hexdigest()}
    first = KNOWBERT.read(find_trained(home, "senses"))
    assert set(first.data) == {str(files["data"]), str(files["gold"])} and first.command == "kgkit train …"
    assert first.kbs["words"].task == "wsd" and not first.kbs["words"].joint
    language = KNOWBERT.read(find_trained(home, "language"))
    assert set(language.data) == {str(files[one]) for one in ("text", "data", "gold")}
    assert language.kbs["words"].joint and language.start == "senses"
    where = {"knowbert/config.json", "knowbert/encoder/model.safetensors", "knowbert/encoder/tokenizer.json"}
    assert where <= set(told["sizes"])
    config = json.loads((find_trained(home, "both") / "knowbert" / "config.json").read_text())
    assert config["model"] == "BertForPreTraining"
    assert [*config["trained_with"]] == ["words", "places"]
    assert not list((home.path / "runs").iterdir())
    assert [path.name for path in home.models.iterdir() if path.name.startswith(".")] == []


# -- stopped ----------------------------------------------------------------


def stop(stage, done, total):
    if stage.startswith("training") and done == max(1, total // 2):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("stage", "kbs", "like", "others"),
    [
        ("wsd", WORDS, "senses", {}),
        ("mlm", (), "language", {"start": "senses"}),
        ("el", PLACES, "both", {"start": "language", "epochs": 8}),
    ],
    ids=["wsd", "mlm", "el"],
)
def test_a_training_that_was_stopped_ends_as_if_it_had_not_been(
    home, copied, encoder, files, stage, kbs, like, others
):
    linking = {"linking": (beside(files),)} if stage == "mlm" else {}
    training = settings(encoder, files, stage, **others, **linking)
    with pytest.raises(KeyboardInterrupt):
        trained(copied, "again", training, kbs, progress=stop)
    assert not (copied.models / "again").exists()
    [work] = (copied.path / "runs").iterdir()
    assert (work / "checkpoint.pt").exists()
    steps = []
    trained(copied, "again", training, kbs, progress=lambda *told: steps.append(told))
    steps = [(done, total) for what, done, total in steps if what.startswith("training")]
    assert len(steps) > 1 and steps[0][0] == steps[0][1] // 2 + 1  # it goes on, it does not begin
    assert equal(kars_of(copied, "again"), kars_of(home, like))
    assert equal(encoder_of(copied, "again"), encoder_of(home, like))
    told = [KNOWBERT.read(find_trained(one, name)) for one, name in ((copied, "again"), (home, like))]
    assert told[0].kbs == told[1].kbs
    assert told[0].results["epochs"] == told[1].results["epochs"]
    assert not list((copied.path / "runs").iterdir())


def test_a_training_goes_on_with_what_it_began_with_only(copied, encoder, files, tmp_path):
    other = tiny_encoder(tmp_path / "other", mask=True)
    anew = settings(other, files, "wsd")

    def begin(training=anew):
        with pytest.raises(KeyboardInterrupt):
            trained(copied, "x", training, WORDS, progress=stop)
        return len(list((copied.path / "runs").iterdir()))

    assert begin() == 1
    assert begin(settings(other, files, "wsd", seed=1)) == 2
    tiny_encoder(tmp_path / "other", mask=True, seed=1)  # of the same name, with other weights
    assert begin() == 3
    data, _ = senses(tmp_path, 11)
    assert begin(settings(other, files, "wsd", data=(data,))) == 4
    senses(tmp_path, 10)
    assert begin(settings(other, files, "wsd", data=(data,))) == 5


# -- refused ----------------------------------------------------------------


def embedded(kb, encoder, template=TEMPLATE):
    config = TextConfig(encoder=str(encoder), device="cpu", dtype="float32", template=template)
    embed_text(kb, config, encoder=Encoder.load(str(encoder), device="cpu", dtype="float32"))


def test_a_model_of_another_build_is_refused(copied, encoder, files):
    before = KNOWBERT.read(find_trained(copied, "senses"))
    more = (*SENSES, Entity("cat.n.01", "cat", "not a dog"))
    with open_kb("words", copied.path) as old:
        build = old.build
    loaded = Encoder.load(str(encoder), device="cpu", dtype="float32")
    with with_vectors(copied.path, "words", loaded, more) as new:  # made alike
        assert build != new.build
        told = (
            rf"the model was trained with words@{build}/text \(\w+\); here is words@{new.build}/text "
            r"\(\w+\): open the build that it was trained with \(KB@BUILD\).* or train it again"
        )
        with pytest.raises(StaleModel, match=told):
            Linker.open(new, model="senses", device="cpu")
    with pytest.raises(StaleModel, match=told):
        TrainedKnowBert.open("both", home=copied)
    with pytest.raises(StaleModel, match=told):
        trained(copied, "x", settings(encoder, files, "mlm", start="senses"))
    done = run("evaluate", "ppl", "--model", "language", "--data", files["held"], "--home", copied.path)
    assert done.code == 1 and "open the build that it was trained with" in done.err
    assert KNOWBERT.read(find_trained(copied, "senses")) == before


def test_while_a_newer_build_has_no_vectors_a_model_takes_that_it_was_trained_with(copied):
    with open_kb("words", copied.path) as old:
        before = old.build
    build(copied.path, [*SENSES, Entity("cat.n.01", "cat")], name="words").close()
    with TrainedKnowBert.open("senses", home=copied, device="cpu") as model:
        assert model.reader.knowledge["words"].generator.kb.build == before
    with open_kb("words", copied.path) as new:
        assert new.build != before


@pytest.mark.parametrize("pos", ["", "n", "a part of speech that is new"])
def test_a_build_that_only_adds_to_that_of_a_model_is_as_good(copied, encoder, tmp_path, pos):
    with open_kb("words", copied.path) as kb:
        before = next(Linker.open(kb, model="senses", device="cpu")([TEXT]))
    more = tmp_path / "more.jsonl"
    cat = {"key": "cat.n.01", "label": "cat", "description": "not a dog"} | ({"pos": pos} if pos else {})
    more.write_text(json.dumps(cat) + "\n")
    kgkit.add_to_kb("words", more, builder="jsonl", home=copied.path)
    with open_kb("words", copied.path) as kb:
        update_text(kb, encoder=Encoder.load(str(encoder), device="cpu", dtype="float32"))
    with open_kb("words", copied.path) as kb:
        after, cat = Linker.open(kb, model="senses", device="cpu")([TEXT, "a cat"])
    assert [(link.entity, link.score) for link in after.links] == [
        (link.entity, pytest.approx(link.score, abs=1e-5)) for link in before.links
    ]
    assert [link.entity for link in cat.links] == ["cat.n.01"]


def test_a_model_of_other_vectors_is_refused(copied, encoder, files):
    with open_kb("words", copied.path) as kb:
        embedded(kb, encoder, "{label}")
    with open_kb("words", copied.path) as kb, pytest.raises(StaleModel, match="or train it again"):
        Linker.open(kb, model="senses", device="cpu")
    with pytest.raises(StaleModel, match="or train it again"):
        trained(copied, "x", settings(encoder, files, "mlm", start="senses"))


def test_a_model_whose_files_changed_is_refused(copied):
    path = find_trained(copied, "senses") / "knowbert" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedModel, match=r"knowbert/model.safetensors is not the file of .*train it again"):
        TrainedKnowBert.open("senses", home=copied)


def test_vectors_that_are_gone_are_told(copied, encoder, files):
    shutil.rmtree(copied.path / "kbs" / "words" / "vectors")
    with pytest.raises(NotThere, match="text"):
        TrainedKnowBert.open("senses", home=copied)
    with pytest.raises(NotThere, match="text"):
        trained(copied, "x", settings(encoder, files, "wsd"), WORDS)


@pytest.mark.parametrize(
    ("stage", "others", "told"),
    [
        ("mlm", {"data": ()}, "there are no training data: name one or more files of data"),
        ("wsd", {"control": True}, "wsd trains the linker of a knowledge base: a control has none"),
        ("el", {"linking": (Supervision("a", Path("x")),)}, "beside the task mlm, not beside el"),
    ],
)
def test_settings_that_do_not_fit_are_told(encoder, files, stage, others, told):
    with pytest.raises(UsageError, match=told):
        settings(encoder, files, stage, **others)


@pytest.mark.slow
def test_trainings_that_cannot_be_are_told(home, encoder, files, tmp_path):
    def of(stage, **others):
        return settings(encoder, files, stage, **others)

    none = tmp_path / "none.txt"
    none.write_text("\n")
    alone = tmp_path / "alone.txt"
    alone.write_text("a dog")
    data, gold = senses(tmp_path, 2)
    gold.write_text(gold.read_text().replace("%", "%%"))
    bare = tiny_encoder(tmp_path / "bare")
    for name, training, kbs, error, told in (
        ("prior", of("mlm"), (), UsageError, "'prior' cannot name a model"),
        ("x", of("wsd"), (), UsageError, "there is no knowledge base: name one with --kb, or say --control"),
        ("x", of("wsd", start="control"), (), UsageError,
         "wsd trains the linker of a knowledge base: name one with --kb"),
        ("x", of("wsd"), (*WORDS, *PLACES), UsageError,
         "wsd trains the linker of one knowledge base: put in words first, then places, with --from"),
        ("x", of("wsd", start="language"), WORDS, UsageError,
         "language has the knowledge base words already: leave out --kb words"),
        ("x", of("mlm"), ("words", "words"), UsageError, "the model has the knowledge base words already"),
        ("x", of("mlm", control=True, start="language"), (), UsageError,
         "the encoder of language was trained with its knowledge bases, and is no control: begin as one"),
        ("x", of("el", start="senses"), (), UsageError,
         "the linker of words was made for the task wsd, not for el: the two differ in their loss"),
        ("x", of("wsd", start="both"), (), UsageError, "was made for the task el, not for wsd"),
        ("x", of("mlm", linking=(beside(files, "places"),)), WORDS, UsageError,
         "--linking places=…: the model has no such knowledge base; it has: words"),
        ("x", of("mlm", data=(none,)), WORDS, SourceError, "none.txt: no text in it"),
        ("x", of("mlm", data=(alone,)), WORDS, UsageError, "the only document has no sentence that another"),
        ("x", of("mlm", data=(tmp_path / "y",)), WORDS, NotThere, "no file .*y"),
        ("x", of("wsd", data=(data,)), WORDS, UsageError,
         "no training examples: .* are not in the knowledge base words@.*: was it built"),
        ("x", of("mlm", linking=(Supervision("words", data),)), WORDS, UsageError,
         "no training examples: no mention has its gold entity among"),
        ("x", of("mlm", encoder=str(bare)), WORDS, UsageError, r"has no \[MASK\]"),
        ("x", of("mlm", encoder=str(tmp_path / "z")), WORDS, NotThere, "no encoder .*z"),
        ("x", of("mlm", start="nope"), (), UnknownName,
         "no KnowBert named 'nope'; there are: both, control, language, senses"),
        ("x", of("mlm", size=25), WORDS, UsageError, "texts of 25 pieces; .* reads 5 to 24"),
    ):  # fmt: skip
        with pytest.raises(error, match=told):
            trained(home, name, training, kbs)
    assert not (home.models / "x").exists()


def test_an_encoder_guesses_words_though_its_pretraining_does_not(copied, encoder, files, tmp_path):
    from transformers import ElectraConfig, ElectraModel

    config = ElectraConfig(
        vocab_size=40, embedding_size=WIDTH, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=24,
    )  # fmt: skip
    ElectraModel(config).save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(encoder / name, tmp_path)
    trained(copied, "electra", settings(tmp_path, files, "mlm", steps=1), WORDS)
    trained(copied, "more", settings(tmp_path, files, "mlm", start="electra", steps=1))
    with TrainedKnowBert.open("more", home=copied, around=None, device="cpu") as model:
        assert type(model.knowbert.model).__name__ == "ElectraForMaskedLM"


@pytest.mark.parametrize(
    ("kind", "around"),
    [
        ("bert", "AutoModelForPreTraining"),
        ("roberta", "AutoModelForPreTraining"),
        ("modernbert", "AutoModelForMaskedLM"),
        ("electra", "AutoModelForMaskedLM"),
    ],
)
def test_the_class_around_an_encoder_guesses_words(tmp_path, kind, around):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    assert language_class(tmp_path) == around


def test_an_encoder_that_guesses_no_words_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "vit"}')
    with pytest.raises(UsageError, match="nothing that guesses words for encoders of the type 'vit'"):
        language_class(tmp_path)


def test_a_knowbert_is_no_tagger_and_what_is_of_another_kind_is_no_knowbert(home, words, tmp_path):
    folder = find_trained(home, "senses")
    with pytest.raises(UsageError, match="senses is a KnowBert, not a linker: link with `--model senses`"):
        LINKER.read(folder)
    said = "is a KnowBert, and finds no mentions in plain text: link with `--model senses`"
    with pytest.raises(UsageError, match=said):
        Linker.open(words, mentions="senses")
    told = json.loads((folder / MANIFEST).read_text())
    for kind in ("linker", "tagger"):
        (tmp_path / MANIFEST).write_text(json.dumps(told | {"kind": kind}))
        said = f"senses is a {kind}, not a KnowBert: .*; `kgkit train knowbert` makes a KnowBert"
        with pytest.raises(UsageError, match=said):
            TrainedKnowBert.open(str(tmp_path), home=home)
    (tmp_path / MANIFEST).write_text(json.dumps(told | {"format": 1, "command": "kgkit train knowbert …"}))
    with pytest.raises(DamagedModel, match=r"format 1"):
        TrainedKnowBert.open(str(tmp_path), home=home)
    with pytest.raises(UnknownName, match="no KnowBert named 'prior'; there are: both, control, language"):
        TrainedKnowBert.open("prior", home=home)


def test_a_linker_says_what_a_model_does_not_have(words, places):
    with pytest.raises(UsageError, match="the model senses has no knowledge base 'places'; it has: words"):
        Linker.open(places, model="senses", device="cpu")
    with pytest.raises(UsageError, match="has no knowledge base 'words'; it has: none"):
        Linker.open(words, model="control", device="cpu")
    with pytest.raises(UsageError, match="the vectors that it was trained with: leave out --vectors"):
        Linker.open(words, model="senses", vectors="text", device="cpu")


# -- vectors in context -----------------------------------------------------


def test_vectors_are_those_of_the_whole_model_in_evaluation_mode(home):
    texts = [TEXT, "", "a dog", "many " * 30]
    with TrainedKnowBert.open("both", home=home, device="cpu") as model:
        assert not any(part.training for part in model.knowbert.modules())
        found = list(model(texts))
        for text, one in zip(texts, found, strict=True):
            [read] = model.reader([(text,)])
            batch = model.reader.batch([read])
            with torch.no_grad():
                states = model.knowbert(batch.knowledge, **batch.inputs).model.last_hidden_state[0, 1:-1]
            assert one.text == text and len(one.spans) == len(one.vectors) == len(states)
            np.testing.assert_allclose(one.vectors, states.numpy(), atol=1e-5)
        assert [TEXT[first:end] for first, end in found[0].spans[:3]] == ["the", "dog", "barks"]
        assert len(found[3].vectors) == SIZE - 2
        handles = [known.generator.kb for known in model.reader.knowledge.values()]
    for kb in handles:
        with pytest.raises(ClosedKB):
            kb.id("dog")


# -- as a linker ------------------------------------------------------------


def documents_of(kb, texts):
    linker = Linker.open(kb, overlaps="keep")
    documents = [Document(str(n), text) for n, text in enumerate(texts)]
    return [document for document, *_ in linker._mentions(documents)]


def by_hand(model, kb, document):
    """For each mention of a text that is read at once: what the whole model says of it, and NULL's share."""
    [text] = model.reader([(document.text,)])
    batch = model.reader.batch([text])
    with torch.no_grad():
        scores = model.knowbert(batch.knowledge, **batch.inputs).linked[kb].scores[0].double().numpy()
    null = model.knowbert.kars[kb].linker.config.null
    known, found = text.mentions[kb], {}
    for told, place, candidates in zip(scores, known.indices.tolist(), known.candidates, strict=False):
        powers = np.exp(told[np.isfinite(told)])
        assert len(powers) == len(candidates) + null
        shares = powers / powers.sum()
        found[place] = shares[: len(candidates)], shares[len(candidates) :].sum()
    return found


@pytest.mark.parametrize(("kb", "name"), [("words", "senses"), ("words", "both"), ("places", "both")])
def test_probabilities_are_those_of_the_whole_model_and_null_takes_the_rest(home, kb, name):
    with open_kb(kb, home.path) as handle, TrainedKnowBert.open(name, home=home, device="cpu") as model:
        [document] = documents_of(handle, [TEXT])
        wanted = by_hand(model, kb, document)
        [found] = KnowBertScorer(model, kb)([document])
        assert len(found) == len(wanted) > 1
        for place, scores in enumerate(found):
            shares, null = wanted[place]
            np.testing.assert_allclose(scores, shares, atol=1e-5)
            assert scores.sum() == pytest.approx(1 - null, abs=1e-5)
            assert (null > 0) == (kb == "places")
        assert any(not np.allclose(scores, mention.candidates.priors, atol=1e-3)
                   for scores, mention in zip(found, document.mentions, strict=True))  # fmt: skip


def test_what_stands_beside_a_document_changes_nothing(home, places, monkeypatch):
    texts = [TEXT, "", "a dog", "the big city " * 20, "it is red", "the city eats fruit"]
    with TrainedKnowBert.open("both", home=home, device="cpu") as model:
        documents, scorer = documents_of(places, texts), KnowBertScorer(model, "places")
        whole = scorer(documents)
        for at_once in (1, 3):
            monkeypatch.setattr(trained_knowbert, "_AT_ONCE", at_once)
            for some in (scorer(documents), scorer(documents[::-1])[::-1],
                         [one for document in documents for one in scorer([document])]):  # fmt: skip
                for one, other in zip(some, whole, strict=True):
                    assert len(one) == len(other)
                    for scores, told in zip(one, other, strict=True):
                        np.testing.assert_allclose(scores, told, atol=1e-5)


def test_in_a_long_document_each_mention_is_scored_in_its_stretch(home, places):
    sentence = "the city grows fruit and it is big "
    text = sentence * 12  # of 8 pieces: two fit, and a part of a third
    with TrainedKnowBert.open("both", home=home, device="cpu") as model:
        [document] = documents_of(places, [text])
        [found] = KnowBertScorer(model, "places")([document])
        stretches = model.reader.read_document(document, {"places": document})
        assert len(stretches) == 6 and len(found) == 24
        read = {}
        for stretch in stretches:
            batch = model.reader.batch([stretch])
            with torch.no_grad():
                told = model.knowbert(batch.knowledge, **batch.inputs).linked["places"].probabilities[0]
            for place, shares in zip(stretch.mentions["places"].indices.tolist(), told, strict=False):
                read[place] = shares
        assert [*read] == list(range(24))
        for place, scores in enumerate(found):
            np.testing.assert_allclose(scores, read[place][: len(scores)], atol=1e-5)


def test_mentions_are_read_among_those_that_training_would_show(home, words, places, monkeypatch):
    with TrainedKnowBert.open("both", home=home, device="cpu") as model:
        read, make = [], model.reader.batch
        monkeypatch.setattr(model.reader, "batch", lambda texts: read.extend(texts) or make(texts))
        # Where NULL is a candidate, all mentions of the text are shown; else those of the data.
        for kb, handle, shown in (("words", words, 1), ("places", places, 3)):
            [document] = documents_of(handle, [TEXT])
            scorer, last = KnowBertScorer(model, kb), document.mentions[-1:]
            [whole] = scorer([document])
            [found] = scorer([structs.replace(document, mentions=last)])
            assert len(found) == 1
            np.testing.assert_allclose(found[0], whole[-1], atol=1e-3)
            assert len(read[-1].mentions[kb].indices) == shown
            assert read[-1].mentions[kb].candidates[0].ids.tolist() == last[0].candidates.ids.tolist()


def test_a_mention_that_a_cut_goes_through_is_read_around_itself(home, places):
    text = "many " * (SIZE - 3) + "big city " * 2  # the cut is behind 18 pieces, the first `big`
    with TrainedKnowBert.open("both", home=home, device="cpu") as model:
        [document] = documents_of(places, [text])
        names = [mention.text for mention in document.mentions]
        assert names == ["big city", "city", "big city", "city"]
        found = KnowBertScorer(model, "places")([document])[0]
        stretches = model.reader.read_document(document, {"places": document}, uncut={"places": 4})
        assert [one.mentions["places"].indices.tolist() for one in stretches] == [[], [1, 2, 3], [0, 1, 2, 3]]
        for stretch, own in zip(stretches[1:], ([1, 2, 3], [0]), strict=True):
            batch = model.reader.batch([stretch])
            with torch.no_grad():
                told = model.knowbert(batch.knowledge, **batch.inputs).linked["places"].probabilities[0]
            for place, shares in zip(stretch.mentions["places"].indices.tolist(), told, strict=False):
                if place in own:
                    np.testing.assert_allclose(found[place], shares[: len(found[place])], atol=1e-5)
    assert all(0 < scores.sum() < 1 for scores in found)


def test_each_mention_is_read_whole_wherever_cuts_are(home, places):
    drawn = np.random.default_rng(0)
    with TrainedKnowBert.open("both", home=home, device="cpu") as model:
        for _ in range(20):
            words = drawn.choice(["many", "big city", "big city", "the", "company", "barks"], 60)
            [document] = documents_of(places, [" ".join(words)])
            stretches = model.reader.read_document(
                document, {"places": document}, uncut={"places": len(document.mentions)}
            )
            read = {place for one in stretches for place in one.mentions["places"].indices.tolist()}
            assert read == set(range(len(document.mentions)))
            assert max(len(one.ids) for one in stretches) <= SIZE
            plain = model.reader.read_document(document, {"places": document})
            for one, other in zip(stretches[: len(plain)], plain, strict=True):
                assert one.ids.tolist() == other.ids.tolist()


def test_a_mention_that_no_window_holds_means_nothing_where_null_is_a_candidate(home, words, places):
    text = "dog " + "many " * SIZE + "city"
    with TrainedKnowBert.open("both", home=home, device="cpu") as model:
        for kb, handle, name in (("places", places, "city"), ("words", words, "dog")):
            [[mention]] = [one.mentions for one in documents_of(handle, [name])]
            long = structs.replace(mention, start=0, end=len(text), text=text)
            [[scores]] = KnowBertScorer(model, kb)([Document("1", text, mentions=[long])])
            expected = [0, 0] if kb == "places" else mention.candidates.priors.tolist()
            assert scores.tolist() == expected


def test_a_link_scores_above_the_threshold_of_the_model_where_that_is_asked_for(home, words, places):
    with TrainedKnowBert.open("both", home=home, device="cpu") as model:
        assert KnowBertScorer(model, "places").threshold is None
        assert KnowBertScorer(model, "words", use_threshold=True).threshold is None  # it has none
        scorer = KnowBertScorer(model, "places", use_threshold=True)
        assert scorer.threshold == 0.0 and scorer.scores_null
        [document] = documents_of(places, [TAUGHT])
        [text] = model.reader([(TAUGHT,)])
        batch = model.reader.batch([text])
        with torch.no_grad():
            psi = model.knowbert(batch.knowledge, **batch.inputs).linked["places"].scores[0].double().numpy()
        finite = np.sort(psi[np.isfinite(psi)])
        for delta in (finite[0] - 1, *(finite[1:] + finite[:-1]) / 2, finite[-1] + 1):
            scorer.threshold = float(delta)
            [found] = scorer([document])
            assert len(found) == len(psi) == 5
            for scores, own in zip(found, psi, strict=True):
                *candidates, null = own[np.isfinite(own)]
                powers = [np.exp(one / scorer.temperature) if one > delta else 0 for one in candidates]
                whole = sum(powers) + np.exp(null / scorer.temperature)
                np.testing.assert_allclose(scores, np.array(powers) / whole, atol=1e-5)


def test_all_mentions_are_scored_together_and_the_best_links_stay(home, places, monkeypatch):
    read = []
    make = KnowBertReader.batch
    monkeypatch.setattr(KnowBertReader, "batch", lambda self, texts: read.extend(texts) or make(self, texts))
    linker = Linker.open(places, model="both", device="cpu", overlaps="score", nil=True, top_k=9)
    [linked] = linker([TAUGHT])
    assert linker.scorer.threshold == 0.0
    [text] = read
    assert text.mentions["places"].indices.tolist() == [0, 1, 2, 3, 4]  # big city, city, company, city, fruit
    # Of `big city` and `city` one stays, whether it is a link or NIL.
    assert [link.text for link in linked.links] in (
        ["big city", "company", "city", "fruit"],
        ["city", "company", "city", "fruit"],
    )
    for link in linked.links:
        assert link.nil or max(one.score for one in link.candidates) == link.score > 0


@pytest.mark.slow
def test_null_decides_where_links_are_scored_as_where_they_are_made(copied, places, files, tmp_path):
    written = tmp_path / "links.tsv"
    for overlaps in ("longest", "keep", "score"):
        linker = Linker.open(places, model="both", device="cpu", overlaps=overlaps)
        documents = read_gold_documents(files["el"])
        wanted = [
            (gold.document.id, link.start, link.end, link.entity)
            for gold in documents
            for link in next(linker([structs.replace(gold.document, mentions=None)])).links
        ]
        done = run(
            "evaluate", "el", "--data", files["el"], "--kb", "places", "--model", "both", "--predictions",
            written, "--overlaps", overlaps, "--home", copied.path, "--device", "cpu",
        )  # fmt: skip
        assert done.code == 0, done.err
        lines = [line.split("\t") for line in written.read_text().splitlines()]
        found = [(name, int(start), int(end), entity) for name, start, end, entity in lines if entity]
        assert found == wanted and "fruit" not in {TAUGHT[start:end] for _, start, end, _ in found}


def test_scores_are_divided_by_the_temperature(home, words):
    with TrainedKnowBert.open("senses", home=home, device="cpu") as model:
        documents = documents_of(words, [TEXT])
        told = []
        for temperature in (1.0, 2.0):
            scorer = KnowBertScorer(model, "words")
            assert scorer.temperature == 1.0
            scorer.temperature = temperature
            told.append(scorer(documents)[0][0])
    shares = np.sqrt(told[0]) / np.sqrt(told[0]).sum()
    np.testing.assert_allclose(told[1], shares, rtol=1e-4)


def test_a_model_links(home, words, places):
    [linked] = Linker.open(words, model="senses", device="cpu")([TEXT])
    assert linked.model == "senses"
    assert [link.text for link in linked.links] == ["dog", "tree"]
    scores = {one.entity: one.score for one in linked.links[0].candidates}
    assert set(scores) == {"dog.n.01", "dog.n.02"} and sum(scores.values()) == pytest.approx(1, abs=1e-5)
    assert linked.links[0].entity == max(scores, key=scores.get)
    [linked] = Linker.open(places, model=str(home.models / "both"), device="cpu")([TAUGHT])
    assert linked.model == "both" and {"company", "city"} <= {link.text for link in linked.links}
    assert all(0 < sum(one.score for one in link.candidates) < 1 for link in linked.links)


# -- commands ---------------------------------------------------------------


def test_the_commands_train_link_and_score(copied, words, encoder, files):
    common = ("--home", copied.path, "--device", "cpu")
    small = ("--size", SIZE, "--batch", 8, "--steps", 3, "--lr-new", 3e-3, "--seed", 1)
    done = run(
        "train", "knowbert", "--task", "wsd", "--data", files["data"], "--kb", "words", "--vectors",
        "words/text", "--encoder", encoder, "--name", "small", *small, *common,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.out.startswith("small: wsd, words\n") and "held out accuracy\t" in done.out
    assert "trained small in " in done.err
    made = KNOWBERT.read(find_trained(copied, "small"))
    assert made.config["seed"] == 1 and made.config["steps"] == 3 and made.kbs["words"].vectors == ("text",)
    done = run(
        "train", "knowbert", "--task", "mlm", "--data", files["text"], "--from", "small", "--linking",
        f"words={files['data']}", "--name", "small", "--json", *small, *common,
    )  # fmt: skip
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["task"] == "mlm" and told["kbs"]["words"]["joint"] and told["path"].endswith("/small")
    assert told["config"]["bf16"] == made.config["bf16"] == "auto"
    assert "in the place of the older small (knowbert, for words)" in done.err
    with Catalog.open(copied) as catalog:
        runs = list(catalog.runs())
        assert {one.model.name for one in runs} == {"small"}
        told_of = [{score.metric: score.value for score in one.scores} for one in runs]
    [wsd, mlm] = sorted(told_of, key=len)
    assert wsd == {"accuracy": made.results["held_out_accuracy"]}
    assert mlm["perplexity"] == told["results"]["epochs"][-1]["perplexity"]

    linked = run("link", "--kb", "words", "--model", "senses", *common, given=TEXT.encode())
    assert linked.code == 0, linked.err
    [alone] = Linker.open(words, model="senses", device="cpu")([TEXT])
    assert [(link["entity"], link["score"]) for link in json.loads(linked.out)["links"]] == [
        (link.entity, pytest.approx(link.score, abs=1e-5)) for link in alone.links
    ]
    scored = run(
        "evaluate", "wsd", "--data", files["data"], "--gold", files["gold"], "--kb", "words", "--model",
        "senses", "--json", *common,
    )  # fmt: skip
    assert scored.code == 0, scored.err
    assert json.loads(scored.out)["together"]["overall"]["f1"] >= 0.75
    scored = run(
        "evaluate", "el", "--data", files["el"], "--kb", "places", "--model", "both", "--json", *common
    )
    assert scored.code == 0, scored.err


def test_the_command_scores_hidden_words(home, files, tmp_path):
    common = ("--home", home.path, "--device", "cpu", "--model", "language")
    done = run("evaluate", "ppl", "--data", files["held"], "--json", *common)
    assert done.code == 0, done.err
    [whole] = json.loads(done.out)["sets"]
    assert whole["name"] == "held" and whole["pieces"] > 9 and whole["perplexity"] > 1
    table = run("evaluate", "ppl", "--data", files["held"], "--data", files["text"], "--batch", 3, *common)
    lines = [line.split("\t") for line in table.out.splitlines()]
    assert lines[0] == ["data", "pieces", "perplexity", "accuracy"]
    assert lines[1] == [
        "held", f"{whole['pieces']:,}", f"{whole['perplexity']:.3f}", f"{100 * whole['accuracy']:.2f}",
    ]  # fmt: skip
    assert lines[2][0] == "plain"
    other = json.loads(run("evaluate", "ppl", "--data", files["held"], "--seed", 1, "--json", *common).out)
    assert other["sets"][0]["perplexity"] != whole["perplexity"]
    assert other["sets"][0]["pieces"] == whole["pieces"]


def asked(told):
    """Return the number of questions, those that are left out among them."""
    return told["sets"][0]["vocabulary"]["questions"] + told["no_word"] + told["too_long"]


def test_the_command_asks_for_facts(home, tmp_path):
    facts = [
        {"subject": "dog", "relation": "P1", "object": "big city"},
        {"subject": "tree", "relation": "P1", "object": "city"},
        {"subject": "the dogs", "relation": "P2", "object": "fruit"},
        {"subject": "a", "relation": "P2", "object": " ".join(["many"] * 30)},
        {"subject": "a", "relation": "P9", "object": "b"},
    ]
    templates = [
        {"relation": "P1", "template": "the [X] grows in the [Y]"},
        {"relation": "P2", "template": "[X] eats [Y]"},
    ]
    paths = tmp_path / "facts.jsonl", tmp_path / "templates.jsonl"
    for path, records in zip(paths, (facts, templates), strict=True):
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    common = (
        "evaluate", "cloze", "--data", paths[0], "--templates", paths[1], "--model", "language", "--home",
        home.path, "--device", "cpu",
    )  # fmt: skip
    done = run(*common, "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (asked(told), told["without_template"]) == (4, {"P9": 1})
    recalled = recall(home, "language", *paths)
    assert (recalled.instances, recalled.pieces) == (7, 10) and 0 < recalled.mrr <= 1
    assert {name: count for name, (_, count) in recalled.relations.items()} == {"P1": 4, "P2": 3}
    assert "no template for 1 facts of P9" in done.err
    few = json.loads(run(*common, "--limit", 1, "--json").out)
    assert asked(few) == 2
    paths[1].write_text(json.dumps({"relation": "P8", "template": "[X] [Y]"}))
    done = run(*common)
    assert done.code == 2 and "has a template for none of the relations: P1, P2, P9" in done.err


TRAIN = ("train", "knowbert", "--name", "y")


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ((*TRAIN, "--task", "mlm", "--data", "no.txt", "--control"), 3, "no file no.txt"),
        ((*TRAIN, "--task", "wsd", "--data", "HELD", "--kb", "words"), 3, "no senses beside"),
        ((*TRAIN, "--task", "el", "--data", "EL"), 2, "name one with --kb, or say --control"),
        ((*TRAIN, "--task", "el", "--data", "EL", "--kb", "nope"), 3, "nope"),
        ((*TRAIN, "--task", "el", "--data", "EL", "--kb", "places", "--vectors", "text"), 2,
         "--vectors text: write KB/NAME, with one of the knowledge bases of --kb"),
        ((*TRAIN, "--task", "el", "--data", "EL", "--kb", "places", "--vectors", "words/text"), 2,
         "--vectors words/text: write KB/NAME"),
        ((*TRAIN, "--task", "el", "--data", "EL", "--kb", "places", "--vectors", "places/nope"), 3, "nope"),
        ((*TRAIN, "--task", "mlm", "--data", "HELD", "--linking", "words"), 2,
         "write KB=FILE"),
        ((*TRAIN, "--task", "mlm", "--data", "HELD", "--linking", "=a"), 2, "write KB=FILE"),
        ((*TRAIN, "--task", "mlm", "--data", "HELD", "--kb", "words", "--linking", "words=no.xml"), 3,
         "no file no.xml"),
        ((*TRAIN, "--task", "mlm", "--data", "HELD", "--from", "language", "--encoder", "x"), 2,
         "--from language has an encoder: leave out --encoder"),
        ((*TRAIN, "--task", "mlm", "--data", "HELD", "--from", "nope"), 3,
         "no KnowBert named 'nope'; there are: both, control, language, senses"),
        ((*TRAIN, "--task", "mlm", "--data", "HELD", "--from", "senses", "--linking", "places=EL"), 2,
         "--linking places=…: the model has no such knowledge base; it has: words"),
        (("evaluate", "ppl", "--data", "HELD", "--model", "nope"), 3,
         "no language model named 'nope'; there are: both, control, language"),
        (("evaluate", "ppl", "--data", "no.txt", "--model", "language"), 3, "no file no.txt"),
        (("evaluate", "ppl", "--data", "EMPTY", "--model", "language"), 1, "no text in it"),
        (("evaluate", "cloze", "--data", "HELD", "--templates", "EL", "--model", "language"), 1,
         "not a fact"),
        (("evaluate", "cloze", "--data", "no.txt", "--templates", "EL", "--model", "language"), 3, "no file"),
        (("link", "EL", "--kb", "places", "--model", "senses"), 2, "senses has no knowledge base 'places'"),
        (("tag", "EL", "--model", "senses"), 2, "is a KnowBert, and finds no mentions"),
        (("evaluate", "task", "--data", "HELD", "--model", "language"), 2, "language"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_one_line(home, encoder, files, tmp_path, args, code, said):
    (tmp_path / "empty.txt").write_text("")
    named = {"HELD": files["held"], "EL": files["el"], "EMPTY": tmp_path / "empty.txt"}
    given = [str(named.get(arg, arg)).replace("=EL", f"={files['el']}") for arg in args]
    if args[0] == "train":
        given += (
            ["--size", str(SIZE)] if "--from" in args else ["--size", str(SIZE), "--encoder", str(encoder)]
        )
    done = run(*given, "--home", home.path)
    assert (done.code, done.out) == (code, ""), done.err
    assert done.err.splitlines()[-1].startswith("error: ") or said in done.err
    assert said in done.err
    assert not (home.models / "y").exists()


def test_a_model_that_was_not_taught_to_guess_words_is_not_asked(home, files):
    assert not KNOWBERT.read(find_trained(home, "senses")).language_model
    assert KNOWBERT.read(find_trained(home, "both")).language_model  # its encoder was
    done = run("evaluate", "ppl", "--data", files["held"], "--model", "senses", "--home", home.path)
    assert done.code == 2 and "the model senses is a KnowBert" in done.err
