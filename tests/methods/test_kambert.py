"""A KAM-BERT from files to answers: what its maps tell it, their sources, and `kgkit attention`."""

import hashlib
import json
import shutil
import sys
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")

import torch
import transformers
from safetensors.torch import load_file

import kgkit
from kgkit.building import Alias, Entity, Triple
from kgkit.encoder import Encoder
from kgkit.encoder.attention import attention_of
from kgkit.errors import DamagedModel, NotThere, SourceError, StaleModel, UnknownName, UsageError
from kgkit.evaluation.examples import EntityMark, Example
from kgkit.evaluation.facts import ClozeQuestion
from kgkit.heads import Classifier, KamBert, KamBertConfig
from kgkit.home import Home
from kgkit.inputs.kambert import WORDS, AnnotatedText, KamBertReader, MapBuilder
from kgkit.inputs.maps import PhraseSpan
from kgkit.inputs.masking import hide
from kgkit.methods import map_sources
from kgkit.methods.attention import text_attention
from kgkit.methods.cloze_opening import open_cloze_model, open_masked_lm, plain_cloze_model
from kgkit.methods.kambert import KamBertMethod
from kgkit.methods.kambert_language import hidden_logits, masked_maps
from kgkit.methods.kambert_settings import KamBertTraining
from kgkit.methods.other_texts import OtherTexts
from kgkit.models.folder import find_trained
from kgkit.models.kambert import KAMBERT
from kgkit.models.opening import open_model
from kgkit.training.testing import toy_data, toy_examples
from kgkit.types import Document
from tests.cli_helpers import run
from tests.cloze_toys import masked_lm_folder
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
    kgkit.train("kambert", name="all", home=home, kbs=["friends"], **settings(steps=2, terms=2, **sources))
    return home


def test_a_map_tells_names_apart_that_were_never_read_and_no_control_can(home, settings):
    manifest = KAMBERT.read(find_trained(home, "knows"))
    assert manifest.maps == ("knowledge",) and manifest.results.keys() >= {"f1", "examples"}
    assert (manifest.linker, manifest.needs.exact, list(manifest.needs.kbs)) == ("prior", False, ["friends"])
    control = kgkit.train(
        "kambert", name="control", home=home, kbs=["friends"], **settings(steps=2, control=True)
    ).manifest
    assert (control.maps, control.needs.kbs, control.linker) == ((), {}, "")
    shown = run("attention", "a dog", "--model", "control", "--device", "cpu", "--home", home.path)
    assert shown.code and "control reads no maps" in shown.err and not shown.out
    texts = ["name30 is the dog or the tree", "name31 is the dog or the tree"]  # [UNK] is the dog …
    for name, alike in (("knows", False), ("control", True)):
        with open_model(name, "predictor", home=home, device="cpu") as model:
            first, second = (answer.probabilities for answer in model(texts))
        assert np.allclose(first, second, atol=1e-5) == alike


@pytest.mark.slow
def test_a_training_with_maps_that_was_stopped_ends_as_one_that_was_not(home, settings, sources, tmp_path):
    arguments = settings(epochs=1, steps=4, terms=2, kernel="3", init="random", **sources)

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
    mixing = [name for name in undisturbed if name.endswith("weight") and name.startswith("kambert.")]
    assert mixing and not any(torch.equal(undisturbed[name], seeded[name]) for name in mixing)


def test_each_source_that_is_named_is_a_map(home, sources):
    manifest = KAMBERT.read(find_trained(home, "all"))
    assert manifest.maps == ("entity", "phrase", "correlation", "knowledge") and manifest.terms == 2
    assert manifest.sources.keys() == set(sources.values())
    assert all(len(digest) == 64 for digest in manifest.sources.values())
    with open_model("all", "predictor", home=home, device="cpu") as model:
        [maps] = model.method.maps_of([Example("1", ("a dog and name0",))])
        assert maps.auxiliary == ("bone", "barks") or maps.auxiliary == ("barks", "bone")
        assert maps.maps["knowledge"].nonzero() == 2 and maps.maps["correlation"].nonzero() == 4
        assert model.method.maps_of([Example("2", ("a dog and name0",))])[0] is maps
        [answer] = model(["a dog and name0"])
    assert len(answer.answer) == 4


@pytest.mark.parametrize(("kernel", "attention"), [("3", "eager"), ("1", "sdpa")])
def test_the_kernel_decides_which_attention_a_control_of_any_encoder_computes(
    home, settings, folder, tmp_path, caplog, kernel, attention
):
    """The heads of a DistilBERT cannot be mixed: a control mixes none."""
    copied = shutil.copytree(folder / "encoder", tmp_path / "distilbert")
    config = transformers.DistilBertConfig(
        vocab_size=len(Encoder.load(str(copied), device="cpu").tokenizer), dim=WIDTH, n_layers=1, n_heads=2,
        hidden_dim=8, max_position_embeddings=24,
    )  # fmt: skip
    transformers.DistilBertModel(config).save_pretrained(copied)
    arguments = settings(steps=1, control=True, kernel=kernel, encoder=str(copied))
    kgkit.train("kambert", name=f"distilled{kernel}", home=home, **arguments)
    assert "kernel" not in caplog.text  # which has an effect
    with open_model(f"distilled{kernel}", "predictor", home=home, device="cpu") as model:
        assert attention_of(model.method.encoder.model) == attention
        [answer] = model(["the dog barks"])
    assert len(answer.answer) == 3


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
        ({"terms": 4}, "4 auxiliary words: auxiliary words come from a PMI table; name one with --pmi"),
        ({"correlation": False}, "what has no map of correlations: auxiliary words come from a PMI table"),
        ({"alpha": 2.0}, "alpha is 2.0; it is from 0 to 1"),
        ({"terms": -1}, "terms is -1; it is 0 or more"),
        ({"linker": ""}, "no linker finds the entities of texts: name one"),
        ({"kernel": "5"}, "kernel is '5'; it is '3', '1' or 'none'"),
        ({"pmi": "x", "terms": 99, "size": 64}, "99 auxiliary words beside texts of 64 word pieces: --terms"),
        ({"pmi": "x", "terms": 0, "correlation": False}, "nothing is read from the PMI table x"),
    ):
        with pytest.raises(UsageError, match=sentence):
            KamBertTraining(**plain, **wrong)
    assert KamBertTraining(**plain).auxiliary == 0 and KamBertTraining(**plain, pmi="x").auxiliary == 8
    with pytest.raises(UsageError, match="links takes the links of a linker: name a knowledge base"):
        kgkit.train("kambert", name="x", home=home, **settings(tagger="links"))
    with pytest.raises(UnknownName, match="no tagger, spaCy pipeline or file of trees named 'nobody'"):
        kgkit.train("kambert", name="x", home=home, **settings(chunker="nobody"))
    with pytest.raises(UnknownName, match="no tagger named 'nobody'"):
        kgkit.train("kambert", name="x", home=home, **settings(tagger="nobody"))
    with pytest.raises(NotThere, match="no spaCy pipeline 'nobody' is installed as a package"):
        kgkit.train("kambert", name="x", home=home, **settings(chunker="spacy:nobody"))
    for useless in ({"linker": "gloss"}, {"coherence": "graph"}):
        with pytest.raises(UsageError, match="has nothing to link to: name a knowledge base with --kb"):
            kgkit.train("kambert", name="x", home=home, **settings(**useless))
    with pytest.raises(UsageError, match="there are no maps, so none of another text"):
        kgkit.train("kambert", name="x", home=home, **settings(other_maps=True))
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
    before = trees.read_text()
    trees.write_text(f"{before}no tree\n")
    with pytest.raises(SourceError, match="expected trees in brackets") as broken:
        open_model("trees", "predictor", home=home, device="cpu")
    assert "no tree" not in str(broken.value)
    trees.write_text(f"secret\n{before}")
    with pytest.raises(StaleModel, match="which does not begin with the trees that it had") as caught:
        open_model("trees", "predictor", home=home, device="cpu")
    assert "secret" not in str(caught.value)
    trees.unlink()
    with pytest.raises(StaleModel, match=r"file of trees .*/trees\.mrg, which is gone: restore that file$"):
        open_model("trees", "predictor", home=home, device="cpu")


def test_a_source_that_the_manifest_does_not_identify_is_not_read(home, settings, tmp_path):
    """A model from a stranger may name any file."""
    trees = tmp_path / "trees.mrg"
    trees.write_text("(S (NP (DT a) (NN dog)))\n")
    kgkit.train("kambert", name="before", home=home, **settings(steps=1, chunker=str(trees)))
    secret = tmp_path / "secret"
    secret.write_text("(S (NP (DT my) (NN password)))\n")
    path = find_trained(home, "before") / "model.json"
    manifest = json.loads(path.read_text())
    for sources in ({}, {str(secret): "trees"}, {str(secret): "trees 1 x"}, {str(secret): "trees -1 x"},
                    {str(secret): f"trees 0 {hashlib.sha256().hexdigest()}"},
                    {str(secret): f"trees 1 {hashlib.sha256(b'(').hexdigest()}"},
                    {str(secret): next(iter(manifest["sources"].values()))}):  # fmt: skip
        path.write_text(json.dumps(manifest | {"chunker": str(secret), "sources": sources}))
        wrong = "of which it has no checksum" if "trees" in sources.values() else "which does not begin with"
        with pytest.raises(StaleModel, match=rf"the file of trees .*/secret, {wrong}"):
            open_model("before", "predictor", home=home, device="cpu")


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


def test_a_model_of_that_name_goes_before_a_file(home, settings, folder, tmp_path, monkeypatch):
    tagger_folder(home.models / "chunks")
    (tmp_path / "chunks").write_text("no tree\n")
    monkeypatch.chdir(tmp_path)
    model = kgkit.train("kambert", name="by_name", home=home, **settings(steps=1, chunker="chunks"))
    assert model.manifest.chunker == "chunks" and model.manifest.needs.models == ("chunks",)
    assert set(model.manifest.data) == {str(folder / "train.tsv"), str(folder / "test.tsv")}
    assert "`train.tsv`, `test.tsv`. " in (model.folder / "kambert" / "README.md").read_text()


def test_a_control_reads_no_file_of_trees(home, settings, folder, tmp_path, monkeypatch):
    (tmp_path / "trees.mrg").write_text("no tree\n")
    monkeypatch.chdir(tmp_path)
    arguments = settings(steps=1, chunker="./trees.mrg", control=True)
    model = kgkit.train("kambert", name="treeless", home=home, **arguments)
    assert set(model.manifest.data) == {str(folder / "train.tsv"), str(folder / "test.tsv")}


def test_auxiliary_words_go_without_their_map(home, settings, sources):
    arguments = settings(steps=1, pmi=sources["pmi"], correlation=False, terms=1, kernel="1")
    model = kgkit.train("kambert", name="words", home=home, **arguments)
    assert model.manifest.maps == () and model.manifest.terms == 1
    with open_model("words", "predictor", home=home, device="cpu") as opened:
        [maps] = opened.method.maps_of([Example("1", ("a dog",))])
    assert maps.auxiliary == ("barks",) and not maps.maps


def test_a_control_reads_the_maps_of_another_text_as_far_as_its_own_goes(home, settings, monkeypatch):
    kgkit.train("kambert", name="others", home=home, kbs=["friends"], **settings(steps=1, other_maps=True))
    example = Example("1", ("name30 is the dog or the tree",))
    with open_model("others", "predictor", home=home, device="cpu") as opened:
        [maps] = opened.method.maps_of([example])
        again = opened.method._others(example.texts)
        assert again != example.texts and maps.size == 7 and maps.maps["knowledge"].nonzero() == 2
        monkeypatch.setattr(OtherTexts, "__call__", lambda *_: ("the dog is it and name30 is the tree",))
        [maps] = opened.method.maps_of([Example("2", ("it eats",))])
    assert maps.size == 2 and not maps.maps["knowledge"].nonzero()  # cells beyond the text are cut
    folder = find_trained(home, "others")
    content = (folder / "other_texts.json").read_text()
    for damaged in (content.replace("[", "{", 1), '[[], ["x"], ["y"]]', '[["a", "b", "c"], ["x"]]'):
        (folder / "other_texts.json").write_text(damaged)
        with pytest.raises(DamagedModel, match=r"other_texts\.json cannot be read"):
            OtherTexts.open(folder)
    with pytest.raises(UsageError, match="maps of other texts need two texts at least"):
        OtherTexts([("a dog",), ("a dog",)])


def test_the_other_text_is_of_like_length_and_never_the_text_itself():
    texts = [("dog " * number,) for number in range(1, 60)]
    others = OtherTexts(texts)
    for text in texts:
        other = others(text)
        assert other != text and abs(len(other[0]) - len(text[0])) <= 4 * 17
    assert len({others(text) for text in texts}) > 30
    assert others(("a cat",)) == OtherTexts(texts[::-1])(("a cat",))


def test_maps_of_another_text_are_cut_and_auxiliary_words_stay_behind():
    builder = MapBuilder(("entity", "correlation"), PMI, auxiliary=1)
    maps = builder([AnnotatedText("it dog barks", names=[(3, 12)])])
    assert maps.auxiliary == ("bone",)
    shorter, longer = maps.fitted(2), maps.fitted(5)
    assert shorter.size == 2 and shorter.maps["entity"].dense().tolist() == [[0, 0], [0, 1]]
    assert np.argwhere(shorter.maps["correlation"].dense()).tolist() == [[1, 2], [2, 1]]
    assert longer.maps["entity"].nonzero() == 4 and longer.maps["correlation"].size == 6
    cells = np.argwhere(longer.maps["correlation"].dense()).tolist()
    assert cells == [[1, 2], [1, 5], [2, 1], [2, 5], [5, 1], [5, 2]]


def test_names_and_chunks_of_a_spacy_pipeline_are_found(monkeypatch):
    def pipe(texts):
        for text in texts:
            spans = [SimpleNamespace(start_char=0, end_char=3, text=text[:3])]
            yield SimpleNamespace(
                ents=spans, noun_chunks=[*spans, SimpleNamespace(start_char=4, end_char=7, text="")]
            )

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=lambda name: SimpleNamespace(pipe=pipe)))
    monkeypatch.setattr(map_sources, "_pipeline_version", lambda name: "3.8.0" if name == "en_toy" else None)
    home = Home.find(None)
    documents = [Document("1", "the dog"), Document("2", "the dog")]
    for kind, count in (("names", 1), ("chunks", 2)):
        found = [*map_sources.open_span_finder("en_toy", kind, home, "cpu")(documents)]
        assert [len(document.mentions) for document in found] == [count, count]
    with pytest.raises(UnknownName):
        map_sources.open_span_finder("en_other", "names", home, "cpu")
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(UsageError, match=r"pip install 'kgkit\[spacy\]'"):
        map_sources.open_span_finder("en_toy", "names", home, "cpu")
    described = replace(KamBertTraining(task="pair", data=("x",)), tagger="en_toy")
    assert map_sources.source_identities(described, ("entity",), 0, home) == {"en_toy": "en_toy 3.8.0"}


def test_a_package_that_needs_spacy_and_is_no_pipeline_is_refused(monkeypatch):
    def load(name):
        raise OSError("[E050] Can't find model 'en_toy'")

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load))
    monkeypatch.setattr(map_sources, "_pipeline_version", lambda name: "1.0")
    with pytest.raises(UsageError, match=r"en_toy cannot be loaded as a spaCy pipeline .*E050"):
        map_sources.open_span_finder("en_toy", "names", Home.find(None), "cpu")


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
    second = AnnotatedText("dog barks", phrases=[PhraseSpan(0, 9, 1)])
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


def test_maps_lack_nothing_that_they_are_made_from():
    with pytest.raises(UsageError, match="correlations and auxiliary words come from a PMI table"):
        MapBuilder(("correlation",))
    with pytest.raises(UsageError, match="correlations and auxiliary words come from a PMI table"):
        MapBuilder((), auxiliary=3)
    with pytest.raises(UsageError, match="the map of a knowledge base needs one"):
        MapBuilder(("knowledge",))


# -- `kgkit attention` ------------------------------------------------------


def test_attention_that_is_not_finite_is_damage(home):
    with open_model("knows", "predictor", home=home, device="cpu") as opened:
        shown = text_attention(opened, ["the name0 and the dog"])
        layers = opened.method.model.head.config.layers
        assert (shown.layer, shown.head, shown.auxiliary) == (layers, 0, 0)
        next(opened.method.model.head.mixing.parameters()).data.fill_(float("nan"))
        with pytest.raises(DamagedModel, match="knows pays attention that is not finite"):
            text_attention(opened, ["the name0 and the dog"])


def test_attention_tells_how_many_cells_of_a_map_are_not_zero(home):
    done = run(
        "attention", "the name0 and the dog", "--model", "knows", "--device", "cpu", "--home", home.path
    )
    assert done.code == 0, done.err
    assert [line.split("\t") for line in done.out.splitlines()] == [
        ["map", "cells", "of"], ["knowledge", "2", "25"],
    ]  # fmt: skip


def test_attention_with_maps_is_drawn_beside_that_of_the_plain_encoder(home, tmp_path):
    arguments = (
        "attention",
        "a dog <eats>",
        "the dog barks",
        "--model",
        "all",
        "--device",
        "cpu",
        "--home",
        home.path,
    )
    drawn = tmp_path / "attention.svg"
    done = run(*arguments, "--svg", drawn, "--json", "--layer", 1, "--head", 2)
    assert done.code == 0 and f"drawn: {drawn}" in done.err, done.err
    shown = json.loads(done.out)
    plain, mixed = np.array(shown["plain"]), np.array(shown["mixed"])
    assert plain.shape == (11, 11) and mixed.shape == (14, 14) and len(shown["pieces"]) == 14
    assert shown["pieces"][11] == "∅" and np.allclose(mixed.sum(1), 1) and not mixed[:, 11].any()
    panels = ElementTree.parse(drawn).getroot().findall("{http://www.w3.org/2000/svg}g")
    names = [panel.find("{http://www.w3.org/2000/svg}text").text for panel in panels]
    assert names[:4] == ["entity", "phrase", "correlation", "knowledge"] and names[5] == "with maps"
    page = tmp_path / "attention.html"
    assert run(*arguments, "--svg", page, "--plain", "none", "--quiet").code == 0
    assert page.read_text().startswith("<!DOCTYPE html>") and page.read_text().count("<g ") == 5
    mean = json.loads(run(*arguments, "--json", "--layer", 1).out)
    first = json.loads(run(*arguments, "--json", "--layer", 1, "--head", 1).out)
    assert np.allclose(np.array(mean["mixed"]) * 2, np.array(first["mixed"]) + mixed, atol=1e-6)


def test_attention_that_cannot_be_shown_is_refused(home, tmp_path, sources, settings):
    arguments = ("attention", "a dog", "--device", "cpu", "--home", home.path, "--model")
    for wrong, sentence in (
        (("knows", "--layer", 3), "there is no layer 3: the model has 2"),
        (("knows", "--head", 3), "there is no head 3: the model has 2"),
        (("knows", "--svg", tmp_path / "x.png"), "it draws SVG, so its name ends in .svg or .html"),
        (("nobody",), "nobody"),
        ((sources["pmi"],), "answers no task"),
    ):
        done = run(*arguments, *wrong)
        assert done.code and sentence in done.err, done.err
    other = tmp_path / "other"
    vocabulary = tiny_encoder(other) / "tokenizer.json"
    vocabulary.write_text(vocabulary.read_text().replace('"dog"', '"hound"'))
    done = run(*arguments, "knows", "--plain", other)
    assert done.code == 2 and "other has other word pieces than the model: name one with the same" in done.err
    kgkit.train("kbert", name="trees", home=home, **settings(steps=1, kbs=["friends"]))
    done = run(*arguments, "trees")
    assert done.code and "the model trees is a K-BERT, which mixes no maps with its attention" in done.err


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


# -- masked language models -------------------------------------------------


@pytest.fixture(scope="module")
def masked_lm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("masked")
    return masked_lm_folder(folder / "bare", folder / "lm")


@pytest.fixture(scope="module")
def plain_text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    nouns = ("dog", "cat", "tree", "fruit", "city")
    documents = [f"the {noun} eats fruit\nit is a big {noun}\n" for noun in nouns * 12]
    path.write_text("\n".join(documents))
    return path


@pytest.fixture(scope="module")
def language_model(home, masked_lm, plain_text, sources):
    arguments = {
        "task": "mlm", "data": plain_text, "encoder": str(masked_lm), "size": 16, "batch": 8, "lr_new": 1e-6,
        "steps": 3, "bf16": False, "device": "cpu", "pmi": sources["pmi"], "terms": 0, "tagger": "links",
    }  # fmt: skip
    return kgkit.train("kambert", name="guessing", home=home, kbs=["friends"], **arguments)


def test_the_new_weights_alone_are_trained_as_a_masked_language_model(language_model, masked_lm):
    manifest = language_model.manifest
    assert manifest.maps == ("entity", "correlation", "knowledge") and manifest.task == "mlm"
    assert (
        manifest.results.keys() >= {"perplexity", "accuracy", "passages"} and "gain" not in manifest.results
    )
    before = load_file(masked_lm / "model.safetensors")
    after = load_file(language_model.folder / "kambert" / "encoder" / "model.safetensors")
    assert len(before) > 30 and all(torch.equal(weight, after[name]) for name, weight in before.items())
    mixing = load_file(language_model.folder / "kambert" / "model.safetensors")
    assert mixing["weight"][:, :, -3:].any()


def test_what_chooses_the_epoch_hides_the_same_pieces_each_time(
    home, masked_lm, plain_text, sources, monkeypatch
):
    scored = []

    def logits(kambert, batch):
        if not kambert.training:
            scored.append((batch.inputs.ids.tolist(), batch.labels.tolist()))
        return hidden_logits(kambert, batch)

    monkeypatch.setattr("kgkit.training.masked_lm.kambert.hidden_logits", logits)
    arguments = {
        "task": "mlm", "data": plain_text, "dev": plain_text, "encoder": str(masked_lm), "size": 16,
        "batch": 32, "epochs": 2, "bf16": False, "device": "cpu", "pmi": sources["pmi"], "terms": 0,
    }  # fmt: skip
    kgkit.train("kambert", name="twice", home=home, **arguments)
    first, second = scored[: len(scored) // 2], scored[len(scored) // 2 :]
    assert first and first == second


def test_it_answers_cloze_questions_as_the_masked_language_model_at_first(home, language_model, masked_lm):
    questions = [
        ClozeQuestion("1.subject", "eats", "the dog eats fruit", (4, 7), "subject"),
        ClozeQuestion("2.object", "eats", "a tree in the big city", (14, 22), "object", None, ((2, 6),)),
        ClozeQuestion("3.object", "eats", "a dog", (5, 5), "object"),
    ]
    with (
        open_cloze_model("guessing", home, "cpu") as model,
        open_masked_lm(str(masked_lm), home, "cpu") as plain,
    ):
        assert [*model.hidden_pieces(questions[1])] == [
            *plain.encoder.tokenizer.convert_tokens_to_ids(["big", "city"])
        ]
        answers, expected = model.predict(questions), plain_cloze_model(plain).predict(questions)
        assert answers.counts == expected.counts == [1, 2, 0]
        assert torch.equal(answers.gold, expected.gold)
        torch.testing.assert_close(answers.logits, expected.logits, atol=1e-3, rtol=1e-3)
        assert model.predict(questions[2:]).counts == [0]
    with pytest.raises(UsageError, match="answers no task"):
        open_model("guessing", "predictor", home=home, device="cpu")
    with pytest.raises(UsageError, match="guesses no words"):
        open_model("knows", "language_model", home=home, device="cpu")


def test_maps_say_nothing_of_a_hidden_word(encoder):
    builder = MapBuilder(("entity", "correlation"), PMI, auxiliary=1)
    text = AnnotatedText("it dog barks", names=[(0, 6), (7, 12)])
    open_maps, hidden = builder([text]), builder([text], [1])
    assert open_maps.maps["correlation"].nonzero() > 0 and open_maps.auxiliary == ("bone",)
    assert hidden.maps["entity"].dense().tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert not hidden.maps["correlation"].dense()[1].any() and hidden.auxiliary == ("dog",)
    reader = KamBertReader(encoder, builder, size=16)
    [read] = reader([("it dog barks",)])
    batch = masked_maps(reader, [[text]], [hide(read, np.array([2]), 7)])
    assert batch.labels.tolist() == [[-100, -100, int(read.ids[2]), -100, -100]]
    assert [*batch.inputs.cells[batch.inputs.cells[:, 1] == 0, 2].tolist()] == [3]


def test_a_question_is_annotated_with_its_answer_blanked_out(home, language_model, monkeypatch):
    with open_cloze_model("guessing", home, "cpu") as model:
        seen = []
        annotate = model._annotate

        def watched(texts):
            seen.extend(texts := [*texts])
            return annotate(texts)

        model._annotate = watched
        model.predict(
            [ClozeQuestion("1.subject", "eats", "the dog eats fruit", (4, 7), "subject", None, ((8, 12),))]
        )
    assert seen == ["the ___ ____ fruit"]


def test_a_language_model_has_no_control_and_no_gold(plain_text, tmp_path):
    plain = {"task": "mlm", "data": (plain_text,)}
    for wrong in ({"control": True}, {"other_maps": True}):
        with pytest.raises(UsageError, match="leave out controls"):
            KamBertTraining(**plain, **wrong)
    with pytest.raises(UsageError, match="gold"):
        KamBertTraining(**plain, gold=(plain_text,))


@pytest.mark.parametrize("task", ["tagging", "mlm"])
def test_a_model_does_not_replace_a_source_of_its_maps(
    task, home, sources, settings, masked_lm, plain_text, tmp_path
):
    copied = Home(tmp_path)
    for name in ("tagger", "pmi"):
        shutil.copytree(sources[name], copied.models / name)
        language = {"task": task, "data": plain_text, "dev": (), "encoder": str(masked_lm)}
        arguments = settings(**(language if task == "mlm" else {}))
        steps: list[str] = []

        def note(stage, *_, steps=steps):
            steps.append(stage)

        with pytest.raises(UsageError, match=f"^the model {name} would replace the model {name}, "):
            kgkit.train("kambert", name=name, home=copied, progress=note, **arguments, **{name: name})
        assert not any(step.startswith("training") for step in steps)
        assert (copied.models / name / "model.json").exists()


def test_a_model_without_weights_of_its_own_is_not_trained(home, masked_lm, plain_text):
    arguments = {"task": "mlm", "data": plain_text, "encoder": str(masked_lm), "size": 16, "device": "cpu"}
    with pytest.raises(UsageError, match="the kernel none has no weights to train"):
        kgkit.train("kambert", name="x", home=home, kernel="none", skip=False, **arguments)
    for others in ({"kernel": "1"}, {"alpha": 0.0, "skip": False}):
        with pytest.raises(UsageError, match="has no weights to train as it is set"):
            kgkit.train("kambert", name="x", home=home, **others, **arguments)
