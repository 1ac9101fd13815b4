"""A KAM-BERT from files to answers: what its maps tell it, and their sources."""

import json
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from safetensors.torch import load_file

import kgkit
from kgkit.building import Alias, Entity, Triple
from kgkit.encoder import Encoder
from kgkit.errors import (
    DamagedModel,
    MissingExtra,
    NotThere,
    SourceError,
    StaleModel,
    UnknownName,
    UsageError,
)
from kgkit.evaluation.examples import EntityMark, Example
from kgkit.heads import Classifier, KamBert, KamBertConfig
from kgkit.home import Home
from kgkit.inputs.kambert import WORDS, AnnotatedText, KamBertReader, MapBuilder
from kgkit.inputs.maps import PhraseSpan
from kgkit.methods.kambert import KamBertMethod, open_span_finder
from kgkit.methods.kambert_settings import KAMBERT, KamBertTraining
from kgkit.models.folder import find_trained
from kgkit.models.opening import open_model
from kgkit.training.testing import toy_data, toy_examples
from kgkit.types import Document
from tests.cli_helpers import run
from tests.model_folders import tagger_folder
from tests.pmi_toys import PMI, pmi_folder
from tests.small_kb import build
from tests.tiny_encoder import WIDTH, tiny_encoder

# Names that the encoder has no piece for; what they are only the knowledge base says.
NAMES = [f"name{number}" for number in range(40)]
RECORDS = [
    *(Entity(name) for name in (*NAMES, "dog", "tree")),
    *(Alias(name, name) for name in (*NAMES, "dog", "tree")),
    *(Triple(name, "is", "tree" if number % 2 else "dog") for number, name in enumerate(NAMES)),
]


def lines(numbers):
    """Return the lines of a file: whether a name is a dog or a tree, both of which the text has."""
    yield "text_a\tlabel"
    for number in numbers:
        yield f"{NAMES[number]} is the dog or the tree\tB-{'TREE' if number % 2 else 'DOG'} O O O O O O"


PAIRS = {("dog", "bone"): 0.5, ("dog", "barks"): 1.0, ("a", "milk"): 0.2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    tiny_encoder(folder / "encoder", mask=True, words=("bone", "milk"))
    (folder / "train.tsv").write_text("\n".join(lines([*range(30)] * 4)) + "\n")
    (folder / "test.tsv").write_text("\n".join(lines(range(30, 40))) + "\n")
    return folder


@pytest.fixture(scope="module")
def sources(folder):
    """Return the names of sources: folders of a tagger and of a PMI table."""
    return {
        "tagger": str(tagger_folder(folder / "names")), "chunker": str(folder / "names"),
        "pmi": str(pmi_folder(folder / "table", PAIRS)),
    }  # fmt: skip


@pytest.fixture(scope="module")
def settings(folder):
    def of(**others):
        return {
            "task": "tagging", "data": folder / "train.tsv", "dev": folder / "test.tsv",
            "encoder": str(folder / "encoder"), "size": 16, "batch": 20, "epochs": 1,
            "lr": 3e-3, "lr_new": 3e-2, "bf16": False, "device": "cpu", **others,
        }  # fmt: skip

    return of


@pytest.fixture(scope="module")
def home(tmp_path_factory, settings, sources):
    """Return a home with a knowledge base and models: not to be changed."""
    home = Home(tmp_path_factory.mktemp("home"))
    build(home.path, RECORDS, name="friends").close()
    kgkit.train("kambert", name="knows", home=home, kbs=["friends"], **settings(steps=5))
    kgkit.train("kambert", name="all", home=home, kbs=["friends"], **settings(steps=2, **sources))
    return home


def test_a_map_tells_names_apart_that_were_never_read_and_no_control_can(home, settings):
    manifest = KAMBERT.read(find_trained(home, "knows"))
    assert manifest.maps == ("knowledge",) and manifest.results.keys() >= {"f1", "examples"}
    assert (manifest.linker, manifest.needs.exact, list(manifest.needs.kbs)) == ("prior", False, ["friends"])
    control = kgkit.train(
        "kambert", name="control", home=home, kbs=["friends"], **settings(steps=2, control=True)
    ).manifest
    assert (control.maps, control.needs.kbs, control.linker) == ((), {}, "")
    texts = ["name30 is the dog or the tree", "name31 is the dog or the tree"]  # [UNK] is the dog …
    for name, alike in (("knows", False), ("control", True)):
        with open_model(name, "predictor", home=home, device="cpu") as model:
            first, second = (answer.probabilities for answer in model(texts))
        assert np.allclose(first, second, atol=1e-5) == alike


@pytest.mark.slow
def test_a_training_with_maps_that_was_stopped_ends_as_one_that_was_not(home, settings, sources, tmp_path):
    arguments = settings(epochs=1, steps=4, **sources)

    def stop(stage, done, total):
        if stage.startswith("training") and done == total // 2:
            raise KeyboardInterrupt

    def weights_of(name):
        paths = sorted(find_trained(home, name).rglob("*.safetensors"))
        return {
            f"{path.parent.name}.{key}": value for path in paths for key, value in load_file(path).items()
        }

    kgkit.train("kambert", name="undisturbed", home=home, kbs=["friends"], **arguments)
    with pytest.raises(KeyboardInterrupt):
        kgkit.train("kambert", name="stopped", home=home, kbs=["friends"], progress=stop, **arguments)
    kgkit.train("kambert", name="stopped", home=home, kbs=["friends"], **arguments)
    kgkit.train("kambert", name="seeded", home=home, kbs=["friends"], **arguments | {"seed": 1})
    undisturbed, stopped, seeded = map(weights_of, ("undisturbed", "stopped", "seeded"))
    assert all(torch.equal(weight, stopped[name]) for name, weight in undisturbed.items())
    assert not all(torch.equal(weight, seeded[name]) for name, weight in undisturbed.items())


def test_each_source_that_is_named_is_a_map(home, sources):
    manifest = KAMBERT.read(find_trained(home, "all"))
    assert manifest.maps == ("entity", "phrase", "correlation", "knowledge") and manifest.terms == 8
    assert manifest.sources.keys() == set(sources.values())
    assert all(len(digest) == 64 for digest in manifest.sources.values())
    with open_model("all", "predictor", home=home, device="cpu") as model:
        [maps] = model.method.maps_of([Example("1", ("a dog and name0",))])
        assert sorted(maps.auxiliary) == ["barks", "bone", "milk"]
        assert maps.maps["knowledge"].nonzero() == 2 and maps.maps["correlation"].nonzero() == 6
        assert model.method.maps_of([Example("2", ("a dog and name0",))])[0] is maps
        [answer] = model(["a dog and name0"])
    assert len(answer.answer) == 4


def test_links_of_the_data_are_not_read_and_that_is_told_once(home, caplog):
    text = "the name0 eats fruit"
    linked = Example("1", (text,), tokens=((0, 3),), links=(EntityMark(0, 4, 9, "name0"),))
    with open_model("knows", "predictor", home=home, device="cpu") as model:
        for _ in range(2):
            [*model.method.read([linked])]
    assert caplog.text.count("examples have links, which are not read") == 1


def test_a_source_that_was_changed_since_is_noticed(home, sources, settings, tmp_path):
    table = pmi_folder(tmp_path / "table", {("dog", "bone"): 0.5})
    kgkit.train("kambert", name="stale", home=home, **settings(steps=1, pmi=str(table)))
    assert KAMBERT.read(find_trained(home, "stale")).terms == 8
    manifest = table / "model.json"
    manifest.write_text(manifest.read_text().replace('"window":5', '"window":6'))
    with pytest.raises(
        StaleModel, match=r"the model stale reads maps made by .*table, which has been trained ag"
    ):
        open_model("stale", "predictor", home=home, device="cpu")


def test_a_knowledge_base_without_facts_is_warned_of(home, settings, caplog, tmp_path):
    path = tmp_path / "lonely.jsonl"
    path.write_text('{"key": "alice", "label": "Alice"}\n')
    kgkit.build_kb("jsonl", path, name="lonely", home=home.path)
    kgkit.train("kambert", name="lonely", home=home, kbs=["lonely", "friends"], **settings(steps=1))
    assert "lonely has no facts: no two of its entities are neighbours" in caplog.text
    assert "friends has no facts" not in caplog.text


def test_settings_that_do_not_fit_are_refused(home, settings, sources):
    plain = {"task": "classification", "data": ("x.tsv",)}
    for wrong, sentence in (
        ({"alpha": 2.0}, "alpha is 2.0; it is from 0 to 1"),
        ({"linker": ""}, "no linker finds the entities of texts: name one"),
    ):
        with pytest.raises(UsageError, match=sentence):
            KamBertTraining(**plain, **wrong)
    with pytest.raises(UsageError, match="links takes the links of a linker: name a knowledge base"):
        kgkit.train("kambert", name="x", home=home, **settings(tagger="links"))
    with pytest.raises(UnknownName, match="nobody"):
        kgkit.train("kambert", name="x", home=home, **settings(chunker="nobody"))
    with pytest.raises(UnknownName, match="no tagger named 'nobody'"):
        kgkit.train("kambert", name="x", home=home, **settings(tagger="nobody"))
    with pytest.raises(NotThere, match="nobody"):
        kgkit.train("kambert", name="x", home=home, **settings(chunker="spacy:nobody"))
    with pytest.raises(UsageError, match="has nothing to link to: name a knowledge base with --kb"):
        kgkit.train("kambert", name="x", home=home, **settings(linker="gloss"))
    with pytest.raises(UsageError, match="finds no mentions in plain text"):
        kgkit.train("kambert", name="x", home=home, **settings(tagger=sources["pmi"]))
    with pytest.raises(UsageError, match="knows is a KAM-BERT, and no encoder: begin as"):
        kgkit.train("kambert", name="x", home=home, **settings(encoder="knows"))


def test_a_source_named_by_its_folder_in_the_home_is_needed_all_the_same(settings, tmp_path):
    home = Home(tmp_path)
    for by_path in (False, True):
        name = "path" if by_path else "name"
        table = pmi_folder(home.models / f"by_{name}", PAIRS)
        source = str(table) if by_path else table.name
        kgkit.train("kambert", name=name, home=home, **settings(steps=1, pmi=source))
        assert KAMBERT.read(find_trained(home, name)).needs.models == (table.name,)
        done = run("models", "rm", table.name, "--home", home.path)
        assert done.code == 2 and f"{name} cannot be opened without the model {table.name}" in done.err
        assert table.is_dir()


def test_links_can_be_the_names(home, settings):
    model = kgkit.train(
        "kambert", name="links", home=home, kbs=["friends"], **settings(steps=1, tagger="links")
    )
    assert model.manifest.maps == ("entity", "knowledge") and not model.manifest.sources
    with open_model("links", "predictor", home=home, device="cpu") as opened:
        [maps] = opened.method.maps_of([Example("1", ("the name0 eats name4",))])
    assert np.flatnonzero(maps.maps["entity"].dense().diagonal()).tolist() == [1, 3]
    assert maps.maps["knowledge"].nonzero() == 0


def test_phrases_of_several_levels_come_from_a_file_of_trees(home, settings, tmp_path, monkeypatch):
    trees = tmp_path / "trees.mrg"
    trees.write_text("(S (NP (DT a) (NN dog)) (VP (VBZ is) (NP (DT the) (NN tree))))\n(S (NN fruit))\n")
    monkeypatch.chdir(tmp_path)
    model = kgkit.train("kambert", name="trees", home=home, **settings(steps=1, chunker="./trees.mrg"))
    assert model.manifest.maps == ("phrase",) and model.manifest.chunker == str(trees)
    assert str(trees.name) in model.manifest.data and model.manifest.needs.models == ()
    plain = {"task": "classification", "data": (trees,), "chunker": "./trees.mrg"}
    assert [path.name for path in KamBertTraining(**plain).files] == ["trees.mrg"] * 2
    assert KamBertTraining(**plain, control=True).files == (trees,)
    with trees.open("a") as file:  # trees of texts that are asked later
        file.write("(S (NP (NNS dogs)) (VP (VBP are) (NP (NNS trees))))\n")
    monkeypatch.chdir("/")
    with open_model("trees", "predictor", home=home, device="cpu") as opened:
        examples = [Example(text, (text,)) for text in ("a dog is the tree", "dogs are trees", "dogs bark")]
        maps = [text.maps["phrase"].dense() for text in opened.method.maps_of(examples)]
        assert len([*opened([example.texts[0] for example in examples])]) == 3
    assert maps[0][0].tolist() == pytest.approx([1, 1, 1 / 3, 1 / 3, 1 / 3])
    assert maps[0][2].tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 2, 1 / 2, 1 / 2])
    assert maps[1][1].tolist() == pytest.approx([1 / 3, 1 / 2, 1 / 2]) and not maps[2].any()
    trees.write_text("no tree\n")
    with pytest.raises(SourceError, match="trees"):
        open_model("trees", "predictor", home=home, device="cpu")
    trees.unlink()
    with pytest.raises(StaleModel, match=r"trees\.mrg"):
        open_model("trees", "predictor", home=home, device="cpu")


def test_sources_are_found_from_another_directory(settings, tmp_path, monkeypatch):
    home = Home(tmp_path / "home")
    table, tagger = pmi_folder(tmp_path / "table", PAIRS), tagger_folder(tmp_path / "tagger")
    monkeypatch.chdir(tmp_path)
    build(home.path, RECORDS, name="friends").close()
    tagger_folder(tmp_path / "links")  # `links` are those of the linker all the same
    linked = settings(steps=1, tagger="links", kbs=["friends"])
    assert kgkit.train("kambert", name="linked", home=home, **linked).manifest.tagger == "links"
    model = kgkit.train(
        "kambert", name="near", home=home, **settings(steps=1, pmi="./table", tagger="./tagger")
    )
    assert (model.manifest.pmi, model.manifest.tagger) == (str(table), str(tagger))
    monkeypatch.chdir("/")
    with open_model("near", "predictor", home=home, device="cpu") as opened:
        assert opened.method.reader.builder.maps == ("entity", "correlation")


def test_a_manifest_that_does_not_fit_the_head_is_damage(home, tmp_path):
    shutil.copytree(home.path, tmp_path / "copied", symlinks=True)
    copied = Home(tmp_path / "copied")
    path = find_trained(copied, "knows") / "model.json"
    manifest = json.loads(path.read_text())
    for change, sentence in (
        ({"maps": ["entity"]}, "and the head has"),
        ({"maps": ["nothing"]}, "model.json cannot be read"),
        ({"terms": -1}, "model.json cannot be read"),
        ({"size": 1}, "a setting in model.json is out of range"),
    ):
        path.write_text(json.dumps(manifest | change))
        with pytest.raises(DamagedModel, match=sentence):
            open_model("knows", "predictor", home=copied, device="cpu")


# -- what is read -----------------------------------------------------------


@pytest.fixture(scope="module")
def encoder(folder):
    return Encoder.load(str(folder / "encoder"), device="cpu", dtype="float32")


def test_maps_of_a_pair_are_one_and_stand_at_its_word_pieces(encoder):
    reader = KamBertReader(
        encoder, MapBuilder(("entity", "phrase", "correlation"), PMI, auxiliary=1), size=16
    )
    first = AnnotatedText("the dogs eats", names=[(4, 8)], phrases=[PhraseSpan(0, 8, 2)])
    second = AnnotatedText("dog barks", phrases=[PhraseSpan(0, 9)])
    text = reader.read([first, second])
    # [CLS] the dog ##s eats [SEP] dog barks [SEP] - bone
    assert text.text.mentions[WORDS].spans.tolist() == [[1, 2], [2, 4], [4, 5], [6, 7], [7, 8]]
    inputs = reader.batch([text])
    assert inputs.ids.shape == (1, 9) and inputs.auxiliary.shape == (1, 2)
    assert inputs.auxiliary_real.tolist() == [[False, True]]
    head = KamBert(encoder.model, KamBertConfig.of(encoder.model, maps=("entity", "phrase", "correlation")))
    entity, phrase, correlation = head.dense_maps(inputs)[0].numpy()
    assert entity.sum() == 4 and entity[2:4, 2:4].all()
    assert phrase[1:4, 1:4].tolist() == [[0.5] * 3] * 3 and phrase[6:8, 6:8].all() and phrase.sum() == 8.5
    assert correlation[6, 7] == pytest.approx(0.9) and correlation[10, 7] == pytest.approx(0.3)
    assert not correlation[[0, 5, 8, 9]].any() and not correlation[:, 9].any()
    with pytest.raises(UsageError, match="a text or a pair of texts is read, not 3 texts"):
        reader.read([first, first, second])


def test_words_that_are_cut_off_are_in_no_map(encoder):
    reader = KamBertReader(encoder, MapBuilder(("entity",)), size=8)
    text = reader.read(
        [AnnotatedText("the dog eats the fruit in a big city", names=[(4, 7), (28, 36), (23, 30)])]
    )
    inputs = reader.batch([text])
    assert inputs.cells[:, 2:].tolist() == [[2, 2], [6, 6]]


def test_markers_between_words_move_their_cells(encoder):
    encoder = Encoder.load(str(encoder.folder), device="cpu", dtype="float32")
    data = toy_data("typing")
    specials = data.task.specials(data.learn)
    encoder.tokenizer.add_tokens(list(specials), special_tokens=True)
    encoder.model.resize_token_embeddings(len(encoder.tokenizer))

    def annotate(texts):
        return [AnnotatedText(text, names=[(4, 7), (8, 12)]) for text in texts]

    classifier = Classifier(data.classifier_config(WIDTH))
    reader = KamBertReader(encoder, MapBuilder(("entity",)), size=16)
    head = KamBert(encoder.model, KamBertConfig.of(encoder.model, maps=("entity",)))
    method = KamBertMethod("typing", head, classifier, encoder, reader, specials, annotate)
    [reading] = method.read(toy_examples("typing")[:1])  # [CLS] the [E] dog [/E] eats
    cells = method.collate([reading.content]).cells[:, 2:].tolist()
    assert cells == [[3, 3], [5, 5]] and reading.positions.tolist() == [[2]]


def test_facts_that_are_added_are_cells_of_the_map_without_training(home, tmp_path):
    copied = Home(tmp_path / "copied")
    shutil.copytree(home.path, copied.path, symlinks=True)
    for number in range(3):
        path = tmp_path / f"{number}.jsonl"
        fact = {"subject": f"new{number}", "relation": "is", "object": "dog"}
        path.write_text("\n".join(map(json.dumps, ({"key": f"new{number}"}, fact))))
        kgkit.add_to_kb("friends", str(path), builder="jsonl", home=copied.path)
    with open_model("knows", "predictor", home=copied, device="cpu") as opened:
        [maps] = opened.method.maps_of([Example("1", ("new2 is the dog",))])
    assert maps.maps["knowledge"].nonzero() == 2


def test_a_knowledge_base_that_is_gone_is_told(home, tmp_path):
    shutil.copytree(home.path, tmp_path / "copied", symlinks=True)
    shutil.rmtree(tmp_path / "copied" / "kbs")
    with pytest.raises(NotThere, match="friends"):
        open_model("knows", "predictor", home=tmp_path / "copied", device="cpu")


def test_a_model_does_not_replace_a_source_of_its_maps(home, sources, settings, tmp_path):
    copied = Home(tmp_path)
    for name in ("tagger", "pmi"):
        shutil.copytree(sources[name], copied.models / name)
        steps: list[str] = []

        def note(stage, *_, steps=steps):
            steps.append(stage)

        with pytest.raises(UsageError, match=f"the model {name} "):
            kgkit.train("kambert", name=name, home=copied, progress=note, **settings(), **{name: name})
        assert not any(step.startswith("training") for step in steps)
        assert (copied.models / name / "model.json").exists()


def test_chunks_of_a_spacy_pipeline_are_found(monkeypatch):
    def pipe(texts):
        for text in texts:
            yield SimpleNamespace(noun_chunks=[SimpleNamespace(start_char=0, end_char=3, text=text[:3])])

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=lambda name: SimpleNamespace(pipe=pipe)))
    documents = [Document("1", "the dog"), Document("2", "the dog")]
    found = [*open_span_finder("spacy:en_toy", "chunks", Home.find(None), "cpu")(documents)]
    assert [len(document.mentions) for document in found] == [1, 1]
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtra):
        open_span_finder("spacy:en_toy", "chunks", Home.find(None), "cpu")
