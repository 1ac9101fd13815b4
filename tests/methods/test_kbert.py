"""A K-BERT from files to answers: what its facts tell it, and no control can know; what is refused."""

import json
import shutil
from dataclasses import replace

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from safetensors.torch import load_file

import kgkit
from kgkit.building import Alias, Entity, Triple
from kgkit.catalog import Catalog
from kgkit.catalog.runs import sha256_of
from kgkit.encoder import Encoder
from kgkit.errors import StaleModel, UnknownName, UsageError
from kgkit.evaluation.examples import Example
from kgkit.evaluation.tasks import find_task
from kgkit.heads import Classifier, ClassifierConfig, KBert
from kgkit.home import Home
from kgkit.inputs import TreeReader
from kgkit.kb import open_kb
from kgkit.methods import kbert
from kgkit.methods.answering import batch_of
from kgkit.methods.kbert import KBertMethod
from kgkit.methods.kbert_settings import KBERT, KBertTraining
from kgkit.methods.knowbert_settings import KNOWBERT
from kgkit.methods.settings import ChosenKB
from kgkit.models.folder import find_trained
from kgkit.models.manifest import MANIFEST
from kgkit.models.opening import open_model
from kgkit.training.tasks import train_method
from kgkit.trees import TreeBuilder, TreeConfig, generators_of
from tests.cli_helpers import run
from tests.small_kb import build
from tests.tiny_encoder import WIDTH, tiny_encoder

# Names that the encoder has no piece for; what they are only the knowledge base says.
NAMES = [f"name{number}" for number in range(30)]
KINDS = ["dog" if number % 2 else "tree" for number in range(30)]
RECORDS = [
    Entity("dog", "dog dog dog dog"), Entity("tree", "tree tree tree tree"),
    *(Entity(name) for name in NAMES),
    *(Alias(name, name) for name in NAMES),
    *(Triple(name, "is", kind) for name, kind in zip(NAMES, KINDS, strict=True)),
]  # fmt: skip
TASKS = ("classification", "pair", "ranking", "tagging")


def rows(task, names):
    """Return the lines of a file: whether a name is a dog."""
    of = dict(zip(NAMES, KINDS, strict=True))
    lines = {
        "classification": ["label\ttext_a", *(f"{int(of[one] == 'dog')}\tthe {one} eats" for one in names)],
        "pair": [f"{one}\tit\t{int(of[one] == 'dog')}" for one in names],
        "ranking": [
            "qid\ttext_a\ttext_b\tlabel",
            *(f"{place // 2}\tit\t{one}\t{int(of[one] == 'dog')}" for place, one in enumerate(names)),
        ],
        "tagging": [
            "text_a\tlabel",
            *(f"the {one} eats fruit\tO {'B-DOG' if of[one] == 'dog' else 'O'} O O" for one in names),
        ],
    }
    return "\n".join(lines[task]) + "\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for task in TASKS:
        (folder / f"{task}.tsv").write_text(rows(task, NAMES[:20] * 4), encoding="utf-8")
        (folder / f"{task}.test.tsv").write_text(rows(task, NAMES[20:]), encoding="utf-8")
    return {path.name: path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("tiny"), mask=True)


def settings(encoder, files, task, **others):
    common = {
        "encoder": str(encoder), "size": 16, "batch": 16, "epochs": 12, "lr": 3e-3, "lr_new": 1e-2,
        "bf16": False, "data": (files[f"{task}.tsv"],), "dev": (files[f"{task}.test.tsv"],),
    }  # fmt: skip
    return KBertTraining(task=task, **common | others)


def train_kbert(home, name, training, kbs=(), **others):
    return train_method(KBERT, home, name, training, [ChosenKB(kb, ()) for kb in kbs], **others)


def trained(home, name, training, **others):
    with open_kb("kinds", home.path) as kb:
        return train_kbert(home, name, training, [] if training.control else [kb], device="cpu", **others)


@pytest.fixture(scope="module")
def home(tmp_path_factory, encoder, files):
    """A home with the knowledge base, and a model of each task: not to be changed."""
    home = Home(tmp_path_factory.mktemp("home"))
    build(home.path, RECORDS, name="kinds").close()
    for task in TASKS:
        trained(home, task, settings(encoder, files, task), command="kgkit train …")
    trained(home, "control", settings(encoder, files, "classification", control=True))
    return home


@pytest.fixture
def copied(home, tmp_path):
    shutil.copytree(home.path, tmp_path / "copied", symlinks=True)
    return Home(tmp_path / "copied")


def method_of(encoder, reader, task, labels, find_mentions=None):
    """Return a K-BERT that was never trained."""
    classifier = Classifier(ClassifierConfig(hidden=WIDTH, labels=labels, answer=find_task(task).answer))
    return KBertMethod(task, KBert(encoder.model), classifier, encoder, reader, find_mentions)


def scored(home, name, task, files):
    examples = find_task(task).read(files[f"{task}.test.tsv"])
    with open_model(name, "predictor", home=home, device="cpu") as model:
        return find_task(task).score(examples, model.answers(examples, size=7), model.labels)


# -- what is learnt ---------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_a_fact_tells_of_names_that_were_never_read(home, files, task):
    scores = scored(home, task, task, files)
    assert next(iter(scores.values())) == 1.0
    results = KBERT.read(find_trained(home, task)).results
    assert scores == pytest.approx({metric: one for metric, one in results.items() if metric in scores})


def test_a_trained_model_injects_the_facts_of_both_its_knowledge_bases(tmp_path, encoder, files):
    home = Home(tmp_path)
    for name, kind in (("first", "dog"), ("second", "tree")):
        records = [Entity(kind), Entity(name), Alias(name, name), Triple(name, "is", kind)]
        build(home.path, records, name=name).close()
    training = settings(encoder, files, "classification", steps=1)
    with open_kb("first", home.path) as first, open_kb("second", home.path) as second:
        train_kbert(home, "both", training, [first, second], device="cpu")
    with open_model("both", "predictor", home=home, device="cpu") as model:
        [reading] = model.method.read([Example("1", ("the first and the second",))])
        tokenizer = model.method.encoder.tokenizer
    pieces = tokenizer.convert_ids_to_tokens(reading.content.tokens)
    assert {"dog", "tree"} <= {*pieces}


@pytest.mark.slow
@pytest.mark.parametrize("asked", [{}, {"query": "link", "linker": "prior"}], ids=["longest", "link"])
def test_the_facts_of_each_of_two_knowledge_bases_are_read(tmp_path, encoder, files, asked):
    home = Home(tmp_path)
    for number, name in enumerate(("first", "second")):  # each knows half of the dogs, and of the trees
        known = [place for place in range(len(NAMES)) if place % 4 // 2 == number]
        records = [Entity("dog", "dog dog dog dog"), Entity("tree", "tree tree tree tree")]
        records += [Entity(NAMES[place]) for place in known]
        records += [Alias(NAMES[place], NAMES[place]) for place in known]
        records += [Triple(NAMES[place], "is", KINDS[place]) for place in known]
        build(home.path, records, name=name).close()
    with open_kb("first", home.path) as first, open_kb("second", home.path) as second:
        training = settings(encoder, files, "classification", **asked)
        train_kbert(home, "two", training, [first, second], device="cpu")
    assert list(KBERT.read(find_trained(home, "two")).kbs) == ["first", "second"]
    assert KBERT.read(find_trained(home, "two")).results["accuracy"] == 1.0  # as it was read to be trained
    assert scored(home, "two", "classification", files)["accuracy"] == 1.0  # as it is read when opened


def test_a_control_cannot_know(home, files):
    assert scored(home, "control", "classification", files)["accuracy"] <= 0.7
    manifest = KBERT.read(find_trained(home, "control"))
    assert manifest.kbs == {} and manifest.config["control"]


@pytest.mark.slow
def test_a_control_learns_from_the_same_batches_and_little_of_them_is_padding(
    copied, encoder, files, tmp_path, monkeypatch
):
    lines = [f"{number % 2}\tthe {NAMES[number % 30]}{' eats' * (number % 11)}" for number in range(640)]
    path = tmp_path / "long_and_short.tsv"
    path.write_text("\n".join(["label\ttext_a", *lines]), encoding="utf-8")
    read, made = KBertMethod.read, []

    def recorded(self, examples):
        batch = [*examples]
        if batch[0].gold is not None and len(batch) <= 8:  # what is answered has none; more are a sample
            made.append(batch)
        return read(self, batch)

    monkeypatch.setattr(KBertMethod, "read", recorded)
    training = settings(encoder, files, "classification", data=(path,), epochs=1, batch=8)
    for control in (False, True):
        trained(copied, "x", replace(training, control=control))
    assert len(made) == 160 and made[:80] == made[80:]
    lengths = [[len(one.texts[0]) for one in some] for some in made[:80]]
    assert sum(8 * max(some) for some in lengths) < 1.3 * sum(map(sum, lengths))


def test_two_trainings_alike_make_one_model_and_another_seed_another(copied, encoder, files):
    def weights(name):
        return load_file(find_trained(copied, name) / "classifier" / "model.safetensors")["label.weight"]

    few = settings(encoder, files, "pair", steps=3)
    for name, training in (
        ("one", few),
        ("two", few),
        ("other", settings(encoder, files, "pair", steps=3, seed=1)),
    ):
        trained(copied, name, training)
    assert torch.equal(weights("one"), weights("two")) and not torch.equal(weights("one"), weights("other"))


def test_a_training_that_was_stopped_ends_as_if_it_had_not_been(home, copied, encoder, files):
    def stop(what, done, total):
        if done == total // 2:
            raise KeyboardInterrupt

    training = settings(encoder, files, "tagging")
    with pytest.raises(KeyboardInterrupt):
        trained(copied, "again", training, progress=stop)
    assert not (copied.models / "again").exists()
    trained(copied, "again", training)
    for path in ("kbert/encoder/model.safetensors", "classifier/model.safetensors"):
        first, second = (
            load_file(find_trained(one, name) / path) for one, name in ((home, "tagging"), (copied, "again"))
        )
        assert all(torch.equal(first[key], second[key]) for key in first)
    assert not list((copied.path / "runs").iterdir())


def test_a_part_is_held_out_where_no_other_is_named_and_a_question_stays_whole(copied, encoder, files):
    training = settings(encoder, files, "ranking", dev=(), steps=1)
    trained(copied, "part", training)
    results = KBERT.read(find_trained(copied, "part")).results
    assert (results["examples"], results["held_out"]) == (72, 8)  # 4 of 40 questions, with two answers each


@pytest.mark.parametrize("task", TASKS)
def test_of_several_files_a_tenth_is_held_out_too(copied, encoder, files, task):
    both = (files[f"{task}.tsv"], files[f"{task}.test.tsv"])
    trained(copied, "two", settings(encoder, files, task, data=both, dev=(), steps=1))
    results = KBERT.read(find_trained(copied, "two")).results
    assert results["examples"] + results["held_out"] == 90 and results["held_out"] in (8, 9)


def test_what_only_dev_has_is_told(copied, encoder, files, tmp_path, caplog):
    dev = tmp_path / "dev.tsv"
    dev.write_text("label\ttext_a\n2\tthe dog\n1\tthe cat\n")
    trained(copied, "odd", settings(encoder, files, "classification", dev=(dev,), steps=1))
    assert "the data teach nothing of 2, which --dev has" in caplog.text
    assert KBERT.read(find_trained(copied, "odd")).results["labels"] == ["0", "1"]


def test_what_a_model_says_of_itself(home, encoder, files):
    manifest = KBERT.read(find_trained(home, "tagging"))
    with open_kb("kinds", home.path) as kb:
        assert manifest.kbs == {"kinds": kb.build}
    assert (manifest.kind, manifest.task, manifest.encoder, manifest.size) == (
        "kbert",
        "tagging",
        str(encoder),
        16,
    )
    assert (manifest.query, manifest.linker, manifest.max_facts, manifest.relations) == (
        "longest",
        "",
        2,
        False,
    )
    assert KBERT.read(find_trained(home, "pair")).relations
    assert set(manifest.data) == {str(files["tagging.tsv"]), str(files["tagging.test.tsv"])}
    assert manifest.results["labels"] == ["O", "B-DOG"] and manifest.command == "kgkit train …"


# -- reading ----------------------------------------------------------------


def test_the_weights_of_the_encoder_are_written_once(copied, encoder, files, monkeypatch):
    from transformers import BertModel

    written, save = [], BertModel.save_pretrained

    def counted(model, folder, **settings):
        written.append(folder)
        save(model, folder, **settings)

    monkeypatch.setattr(BertModel, "save_pretrained", counted)
    training = settings(encoder, files, "classification", epochs=1)
    folder = trained(copied, "once", training)
    assert [path.name for path in written] == ["encoder"]
    held = sorted(path.name for path in (folder / "kbert" / "encoder").iterdir())
    assert held == ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    assert Encoder.load(str(folder / "kbert" / "encoder"), device="cpu").tokenizer.mask_token == "[MASK]"
    with open_model("once", "predictor", home=copied, device="cpu") as model:
        assert [*model([Example("1", ("the name1 eats",))])]


def test_a_tag_is_read_at_the_first_piece_of_its_token(encoder):
    loaded = Encoder.load(str(encoder), device="cpu", dtype="float32")
    reader = TreeReader(loaded, TreeBuilder([]), size=8)
    labels = ("O", "B-X")
    method = method_of(loaded, reader, "tagging", labels)
    example = Example(
        "1", ("dogs the cat",), tokens=((0, 3), (3, 4), (5, 8), (9, 12)), gold=("B-X", "O", "B-X", "O")
    )
    [reading] = method.read([example])
    assert reading.positions.tolist() == [[1], [2], [3], [4]]
    more = (13, 16), (17, 20), (21, 25)
    long = example._replace(
        texts=("dogs the cat and the tree",), tokens=(*example.tokens, *more), gold=("O",) * 7
    )
    [cut] = method.read([long])
    assert cut.positions[:, 0].tolist() == [1, 2, 3, 4, 5, 6, -1]
    batch = batch_of(method, [example, long])
    assert batch.rows.tolist() == [0] * 4 + [1] * 6 and batch.gold.tolist() == [1, 0, 1, 0] + [0] * 6
    assert batch.items.tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 4, 5]
    odd = Example("2", ("\ufeffdog \u200b cat",), tokens=((0, 4), (5, 6), (7, 10)), gold=("O", "O", "O"))
    [found] = method.read([odd])  # a character that no piece has may begin a token, or be one
    assert found.positions[:, 0].tolist() == [1, -1, 2]
    with pytest.raises(UsageError, match="has the label 'B-Y'; the labels are: O, B-X"):
        batch_of(method, [example._replace(gold=("B-Y", "O", "O", "O"))])


# -- what is refused --------------------------------------------------------


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ({"task": "parsing"}, "no task"),
        ({"task": "relation"}, "the task relation marks names, and the sentence trees of a K-BERT carry no"),
        ({"size": 7}, "size is 7; it is 8 or more"),
        ({"query": "all"}, "query is 'all'; it is 'longest', 'jieba' or 'link'"),
        ({"data": ()}, "no training data"),
        ({"query": "link"}, "asks a linker"),
        ({"linker": "prior"}, "the query longest asks no linker: leave prior out"),
        ({"max_facts": 0}, "max_facts is 0; it is 1 or more"),
        ({"lr": 0.0}, "lr is 0.0; it is above 0"),
    ],
)
def test_settings_that_do_not_fit_are_told(encoder, files, others, told):
    with pytest.raises(UsageError, match=told):
        settings(encoder, files, "pair", **others) if "task" not in others else KBertTraining(
            data=(files["pair.tsv"],), **others
        )


def test_without_a_knowledge_base_a_control_is_asked_for(home, encoder, files):
    with pytest.raises(UsageError, match="name one with --kb, or say --control"):
        train_kbert(home, "x", settings(encoder, files, "pair"), [], device="cpu")


def test_a_model_reads_the_facts_that_it_was_trained_with(copied, files):
    before = scored(copied, "classification", "classification", files)
    turned = [*RECORDS[:-30], *(Triple(name, "is", "tree") for name in NAMES)]
    build(copied.path, turned, name="kinds").close()
    assert scored(copied, "classification", "classification", files) == before
    pruned = run("kb", "prune", "kinds", "--home", copied.path)
    assert f"warning: the model classification needs {pruned.out}".rstrip() in pruned.err
    assert "control" not in pruned.err
    with pytest.raises(StaleModel, match=r"reads facts of kinds@\w+, which is gone; here is kinds@"):
        open_model("classification", "predictor", home=copied, device="cpu")


def test_a_name_that_is_added_is_read_without_training(copied, files, tmp_path):
    """The model has never read the name; what it is, only the fact that came says."""
    with open_model("tagging", "predictor", home=copied, device="cpu") as model:
        assert [answer.answer for answer in model([["the", "rex", "eats"]])] == [("O", "O", "O")]
    for number, kind in enumerate(["tree", "tree", "tree", "dog"]):  # more additions than builds that stay
        name = "rex" if kind == "dog" else f"oak{number}"
        path = tmp_path / f"{name}.jsonl"
        lines = {"key": name, "label": name}, {"subject": name, "relation": "is", "object": kind}
        path.write_text("\n".join(map(json.dumps, lines)))
        kgkit.add_to_kb("kinds", str(path), builder="jsonl", home=copied.path)
    with open_model("tagging", "predictor", home=copied, device="cpu") as model:
        answers = [answer.answer for answer in model([["the", "rex", "eats"], ["the", "oak0", "eats"]])]
    assert answers == [("O", "B-DOG", "O"), ("O", "O", "O")]
    pruned = run("kb", "prune", "kinds", "--home", copied.path)
    assert "warning" not in pruned.err


def test_what_was_made_of_its_build_serves_beside_a_knowledge_base_that_was_built_anew(copied, tmp_path):
    for number in range(3):
        path = tmp_path / f"{number}.jsonl"
        path.write_text(json.dumps({"key": f"oak{number}", "label": f"oak{number}"}))
        kgkit.add_to_kb("kinds", str(path), builder="jsonl", home=copied.path)
    with kgkit.open_kb("kinds", home=copied.path) as kb:
        extended = kb.build
    other = [Entity(name) for name in reversed(NAMES)]
    source = tmp_path / "other.jsonl"
    source.write_text("\n".join(json.dumps({"key": record.key}) for record in other))
    built = run("build-kb", "jsonl", source, "--name", "kinds", "--home", copied.path)
    assert built.code == 0 and "train it again" not in built.err
    with open_model("tagging", "predictor", home=copied, device="cpu") as model:
        assert [answer.answer for answer in model([["the", "name21", "eats"]])] == [("O", "B-DOG", "O")]
        assert model.method.reader.builder._by_name["kinds"].build == extended
    pruned = run("kb", "prune", "kinds", "--home", copied.path)
    assert "warning: the model tagging needs kinds@" in pruned.err
    with pytest.raises(StaleModel, match="which is gone; here is kinds@"):
        open_model("tagging", "predictor", home=copied, device="cpu")


def pretend_linker(home, name, monkeypatch):
    """Return the manifest of a linker that is none: what is linked by it is linked by priors."""
    opened = kbert.MultiKBLinker.open
    monkeypatch.setattr(
        kbert.MultiKBLinker, "open", lambda kbs, **_: opened(kbs, model="prior", device="cpu")
    )
    manifest = home.models / name / MANIFEST
    manifest.parent.mkdir()
    manifest.write_text("{}")
    return manifest


def test_a_model_notices_that_its_linker_was_trained_again(copied, encoder, files, monkeypatch):
    linker = pretend_linker(copied, "senses", monkeypatch)
    asked = settings(encoder, files, "pair", query="link", linker="senses", steps=1)
    trained(copied, "linked", asked)
    trained(copied, "plain", replace(asked, control=True))
    assert KBERT.read(find_trained(copied, "linked")).linker_sha256 == sha256_of(linker)
    open_model("linked", "predictor", home=copied, device="cpu").close()
    for change in (lambda: linker.write_text("{ }"), linker.unlink):
        change()
        open_model("plain", "predictor", home=copied, device="cpu").close()  # it asks no linker
        with pytest.raises(StaleModel, match="reads links of the model senses, which has been trained again"):
            open_model("linked", "predictor", home=copied, device="cpu")


def test_a_model_does_not_replace_the_linker_that_it_asks(copied, encoder, files, monkeypatch):
    linker = pretend_linker(copied, "own", monkeypatch)
    linking = settings(encoder, files, "pair", query="link", linker="own", steps=1)
    with pytest.raises(
        UsageError, match="the model own would replace the model own, which it is trained with"
    ):
        trained(copied, "own", linking)
    assert linker.read_text() == "{}"


def test_files_without_labels_are_refused_before_anything_is_learnt(copied, encoder, files, tmp_path):
    bare = tmp_path / "bare.tsv"
    bare.write_text("text_a\ttext_b\nname1\tit\n", encoding="utf-8")
    for names in ({"dev": (bare,)}, {"data": (bare,)}):
        with pytest.raises(UsageError, match="1 of 1 examples have no label, the first is 2: give"):
            trained(copied, "bare", settings(encoder, files, "pair", **names))
    assert not (copied.models / "bare").exists()


def test_labels_that_are_texts_are_noticed(copied, encoder, tmp_path, caplog):
    path = tmp_path / "nohead.tsv"
    path.write_text("".join(f"{place % 2}\tthe {one} eats\n" for place, one in enumerate(NAMES)))
    asked = KBertTraining(
        task="classification", data=(path,), encoder=str(encoder), size=16, control=True, steps=1
    )
    train_kbert(copied, "nohead", asked, device="cpu")
    assert "30 labels in 27 examples, as 'the name0 eats': is that the column of labels?" in caplog.messages


def test_a_few_examples_of_many_labels_may_be_held_out(copied, encoder, tmp_path):
    for name, times in (("train", 4), ("dev", 1)):
        lines = [f"the {one}\tlabel{place}\n" for place, one in enumerate(NAMES)] * times
        (tmp_path / f"{name}.tsv").write_text("".join(lines))
    asked = KBertTraining(
        task="classification", data=(tmp_path / "train.tsv",), dev=(tmp_path / "dev.tsv",),
        encoder=str(encoder), size=16, control=True, steps=1,
    )  # fmt: skip
    assert len(KBERT.read(train_kbert(copied, "many", asked, device="cpu")).results["labels"]) == 30


def test_an_encoder_is_one_that_was_trained_without_knowledge(copied, encoder, files):
    with pytest.raises(UsageError, match="pair is a K-BERT, and no encoder"):
        trained(copied, "x", settings("pair", files, "classification"))
    folder = copied.models / "knowing"
    folder.mkdir()
    known = {"vectors": ["text"], "joint": True}
    told = {
        "format": 2, "kind": "knowbert", "name": "knowing", "task": "mlm", "kbs": {"kinds": known},
        "encoder": "x", "size": 16, "start": "", "config": {},
    }  # fmt: skip
    (folder / MANIFEST).write_text(json.dumps(told))
    with pytest.raises(UsageError, match="the encoder of knowing was trained with its knowledge bases"):
        trained(copied, "x", settings("knowing", files, "classification"))


@pytest.mark.slow
def test_three_classes_are_told_apart_and_of_two_that_of_the_label_1_is_scored(copied, encoder, tmp_path):
    dogs = {name: int(kind == "dog") for name, kind in zip(NAMES, KINDS, strict=True)}
    for name, labels in (("xnli", "012"), ("law_qa", "01")):
        path = tmp_path / f"{name}.tsv"
        lines = [f"{dogs[one]}\tthe {one}\t{'dog' if dogs[one] else 'tree'}" for one in NAMES * 4]
        lines += [f"2\tthe {one}\tfruit" for one in NAMES * 2 if name == "xnli"]
        path.write_text("\n".join(["label\ttext_a\ttext_b", *lines]) + "\n", encoding="utf-8")
        asked = KBertTraining(
            task="pair", data=(path,), encoder=str(encoder), size=16, batch=16, epochs=12, lr=3e-3,
            lr_new=1e-2, bf16=False,
        )  # fmt: skip
        results = KBERT.read(trained(copied, name, asked)).results
        assert results["labels"] == [*labels] and results["accuracy"] == 1.0
        positive = {metric: results.get(metric) for metric in ("f1", "precision", "recall")}
        assert positive == dict.fromkeys(positive, 1.0 if name == "law_qa" else None)


def test_values_are_read_again_by_a_model_that_learnt_with_them(copied, encoder, files):
    build(
        copied.path, [Entity("n", "cat", attributes={"is": "the dog"}), Alias("name1", "n")], name="told"
    ).close()
    with open_kb("told", copied.path) as kb:
        for attributes, pieces in ((False, 3), (True, 6)):
            asked = settings(encoder, files, "classification", attributes=attributes, steps=1)
            train_kbert(copied, "told", asked, [kb], device="cpu")
            with open_model("told", "predictor", home=copied, device="cpu") as model:
                [read] = model.method.read([Example("1", ("name1",))])
            assert len(read.content) == pieces


def test_a_kbert_is_no_linker_no_tagger_and_no_knowbert(home):
    folder = find_trained(home, "pair")
    with pytest.raises(UsageError, match="pair is a K-BERT, and links nothing: `kgkit predict --model"):
        open_model("pair", "linker", home=home)
    with pytest.raises(UsageError, match="pair is a K-BERT, and finds no mentions in plain text"):
        open_model(str(folder), "tagger", home=home)
    with pytest.raises(UsageError, match=r"pair is a K-BERT, not a KnowBert: .*`kgkit train knowbert` makes"):
        KNOWBERT.read(folder)
    with pytest.raises(UnknownName, match="no predictor named 'nope'; there are: classification, control"):
        open_model("nope", "predictor", home=home)


# -- links ------------------------------------------------------------------


def test_an_ambiguous_name_brings_the_facts_of_what_is_meant(tmp_path, encoder):
    from kgkit.linking import Linker
    from kgkit.linking.multi_kb import MultiKBLinker

    records = [
        Entity("bank.1", "bank"), Entity("bank.2", "bank"), Entity("dog", "dog"), Entity("tree", "tree"),
        Alias("bank", "bank.1", 9), Alias("bank", "bank.2", 1), Alias("tree", "bank.2", 1),
        Triple("bank.1", "is", "dog"), Triple("bank.2", "is", "tree"),
    ]  # fmt: skip
    with build(tmp_path, records, name="banks") as kb:
        loaded = Encoder.load(str(encoder), device="cpu", dtype="float32")
        config = TreeConfig(max_facts=1, relations=False)
        trees = TreeReader(loaded, TreeBuilder(generators_of([kb], "link"), config), size=16)
        linkers = MultiKBLinker.open([kb], model="prior", device="cpu")
        method = method_of(loaded, trees, "classification", ("0", "1"), linkers)
        [read] = method.read([Example("1", ("the tree",))])
        [linked] = Linker.open(kb, model="prior")(["the tree"])
        assert [link.entity for link in linked.links] == ["bank.2"]
        assert len(read.content) == 5 and read.content.hooks.tolist() == [0, 0, 1, 1, 0]


# -- commands ---------------------------------------------------------------


def test_the_commands_train_and_score(copied, encoder, files, tmp_path):
    common = ("--home", copied.path, "--device", "cpu")
    small = ("--encoder", encoder, "--size", 16, "--batch", 16, "--lr", 3e-3, "--lr-new", 1e-2)
    held = files["tagging.test.tsv"]
    done = run(
        "train", "kbert", "--task", "tagging", "--data", files["tagging.tsv"], "--dev", held, "--kb", "kinds",
        "--name", "mine", "--epochs", 12, *small, *common,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.out.startswith("mine: tagging, kinds\n") and "labels: O, B-DOG" in done.out
    assert "trained mine in " in done.err
    place = tmp_path / "tags.txt"
    scored = run("evaluate", "task", "--data", held, "--model", "mine", "--predictions", place, *common)
    assert scored.code == 0, scored.err
    heading, row = (line.split("\t") for line in scored.out.splitlines())
    assert heading == ["data", "examples", "f1", "precision", "recall", "untyped f1"]
    assert row[:3] == ["tagging.test", "10", "100.00"]
    assert place.read_text().splitlines()[1] == "2\tO B-DOG O O"
    with Catalog.open(copied) as catalog:
        last = max(catalog.runs(), key=lambda one: one.id)
        assert {one.metric: one.value for one in last.scores}["f1"] == 1.0
    again = run(
        "train", "kbert", "--task", "pair", "--data", files["pair.tsv"], "--control", "--name", "plain",
        "--epochs", 1, "--json", *small, *common,
    )  # fmt: skip
    assert again.code == 0 and json.loads(again.out)["needs"].get("kbs", {}) == {}
    asked = ("evaluate", "task", "--data", files["pair.test.tsv"], "--model", "plain", "--json")
    told = run(*asked, *common)
    [one] = json.loads(told.out)["sets"]
    assert one["examples"] == 10 and 0 <= one["accuracy"] <= 1
    place = tmp_path / "ranks.txt"
    ranked = run("evaluate", "task", "--data", files["ranking.test.tsv"], "--model", "ranking", "--json",
                 "--predictions", place, *common)  # fmt: skip
    assert json.loads(ranked.out)["sets"][0]["mrr"] == 1.0
    right = [float(line.split("\t")[1]) for line in place.read_text().splitlines()]
    assert all(yes > no for no, yes in zip(right[::2], right[1::2], strict=True))


def test_a_folder_has_the_parts_of_a_task(copied, encoder, files, tmp_path):
    common = ("--encoder", encoder, "--size", 16, "--epochs", 1, "--home", copied.path, "--device", "cpu")
    folder = tmp_path / "pairs"
    folder.mkdir()
    train = ("train", "kbert", "--task", "pair", "--name", "x", "--data", folder, *common)
    shutil.copy(files["pair.test.tsv"], folder / "dev.tsv")
    lacking = run(*train)
    assert lacking.code == 3 and f"no train.* in {folder} (dev.tsv): name the file" in lacking.err
    shutil.copy(files["pair.tsv"], folder / "train.tsv")
    assert run(*train).code == 0
    assert [*KBERT.read(find_trained(copied, "x")).kbs] == ["kinds"]  # the only one need not be named
    assert [*KBERT.read(find_trained(copied, "x")).data] == [f"{folder}/train.tsv", f"{folder}/dev.tsv"]
    shutil.copy(files["pair.tsv"], folder / "train.txt")
    twice = run(*train)
    assert twice.code == 2 and "has train.tsv, train.txt: name the file with --data" in twice.err


def test_labels_that_lack_or_that_nobody_tells_are_said(home, files, tmp_path):
    common = ("--home", home.path, "--device", "cpu")
    asked = ("evaluate", "task", "--model", "pair", "--data")
    contents = {
        "bare": "text_a\ttext_b\nname1\tit\n",
        "some": '{"text_a": "name1", "text_b": "it", "label": 1}\n{"text_a": "name2", "text_b": "it"}\n',
        "others": "name1\tit\tyes\n",
        "known": "name1\tit\t1\nname2\tit\tyes\n",
    }
    places = {}
    for name, content in contents.items():
        places[name] = tmp_path / f"{name}.tsv"
        places[name].write_text(content, encoding="utf-8")
    beside = run(*asked, places["bare"], "--data", files["pair.test.tsv"], *common)
    assert beside.code == 0 and "not scored, as the examples have no labels: bare\n" in beside.err
    partly = run(*asked, places["some"], *common)
    assert partly.code == 2 and "1 of 2 examples have no label, the first is 2: give each" in partly.err
    known = run(*asked, places["known"], *common)
    assert known.code == 0 and "known.tsv has labels that the model pair does not tell: yes\n" in known.err
    misspelt = run("evaluate", "task", "--model", "pear", "--data", places["bare"], *common)
    assert misspelt.code == 3 and "no predictor named 'pear'; there are: classification" in misspelt.err
    strange = run(*asked, places["others"], *common)
    assert strange.code == 2 and "(yes) is one that the model pair tells (0, 1)" in strange.err


TRAIN = ("train", "kbert", "--task", "pair", "--name", "x", "--data")


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ((*TRAIN, "no.tsv", "--control"), 3, "no file no.tsv"),
        ((*TRAIN, "PAIR", "--kb", "nope"), 3, "nope"),
        ((*TRAIN, "PAIR", "--kb", "kinds", "--query", "link"), 2, "the query link asks a linker"),
        (("evaluate", "task", "--data", "PAIR", "--model", "nope"), 3, "no predictor named 'nope'"),
        (("evaluate", "task", "--data", "PAIR", "--data", "PAIR", "--model", "pair"), 2,
         "is named twice with --data"),
        (("evaluate", "task", "--data", "PAIR", "--model", "ranking"), 1,
         "names the columns qid, text_a, text_b"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_one_line(home, files, args, code, said):
    done = run(*(files["pair.tsv"] if arg == "PAIR" else arg for arg in args), "--home", home.path)
    assert done.code == code and said in done.err, done.err
    assert done.err.count("error:") == 1 and "Traceback" not in done.err
