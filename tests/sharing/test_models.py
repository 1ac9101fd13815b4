"""Models that are packed here and unpacked in an empty home: their links and answers, to the byte."""

import json
import shutil

import msgspec
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import kgkit
from kgkit.encoder import Encoder
from kgkit.errors import DamagedModel, DamagedPack, NameConflict, NotThere, UsageError
from kgkit.home import Home
from kgkit.inputs.tagging import TaggingConfig
from kgkit.models.folder import find_trained
from kgkit.models.kinds import TaggerManifest
from kgkit.models.listing import describe_model
from kgkit.models.manifest import FORMAT, MANIFEST, Needs
from kgkit.models.publishing import stage_model, write_manifest
from tests.cli_helpers import run
from tests.pack_toys import Archive, contents_of

TEXTS = ["the big dog eats a dog", "a tree grows", "the dog barks and the tree"]


@pytest.fixture(scope="module")
def home(tmp_path_factory, trained_home, encoder_folder):
    """A home with a knowledge base, vectors, a linker, a tagger and a K-BERT: not to be changed."""
    folder = tmp_path_factory.mktemp("home")
    shutil.copytree(trained_home, folder / "home", symlinks=True)
    home = Home(folder / "home")
    write_tagger(home, "names", encoder_folder)
    (folder / "train.tsv").write_text("label\ttext_a\n" + "1\tthe dog eats\n0\ta tree grows\n" * 8)
    kgkit.train(
        "kbert", name="opinions", home=home.path, task="classification", data=folder / "train.tsv",
        encoder=encoder_folder, kbs="words", epochs=1, size=24, batch=8, device="cpu", linker="means",
        query="link",
    )  # fmt: skip
    return home


def write_tagger(home, name, folder, **fields):
    """Publish a tagger that nobody has trained."""
    from dataclasses import asdict

    from kgkit.heads import WordTagger, WordTaggerConfig

    with stage_model(home.models / name) as (staged, _):
        loaded = Encoder.load(str(folder), device="cpu")
        WordTagger(loaded, WordTaggerConfig(types=("PER", "ORG"))).save_pretrained(staged / "head")
        manifest = TaggerManifest(
            format=FORMAT, kind="tagger", name=name, types=("PER", "ORG"), encoder="tiny", fingerprint="",
            reader=asdict(TaggingConfig(size=16, context=3)), **fields,
        )  # fmt: skip
        write_manifest(staged, manifest)


def sent(home, tmp_path, *names, **settings):
    """Return what a pack of *names* becomes in an empty home, and that home."""
    path = kgkit.pack(names, tmp_path / "pack.tar.gz", home=home.path, **settings).path
    target = Home(tmp_path / "other")
    return kgkit.unpack(path, home=target.path), target


def links(home, kb, model):
    """Return the bytes of the links of some texts."""
    return msgspec.json.encode(kgkit.link(TEXTS, kb=kb, model=model, home=home.path, device="cpu"))


def titles(unpacked):
    return [item.title for item, _ in unpacked.items]


def test_the_links_of_prior_are_the_same(home, tmp_path):
    _, target = sent(home, tmp_path, "kb:words")
    assert links(target, "words", "prior") == links(home, "words", "prior")


def test_the_links_of_a_ridge_are_the_same_with_all_that_it_needs(home, tmp_path, encoder_folder):
    unpacked, target = sent(home, tmp_path, "means")
    assert titles(unpacked) == ["kb:words", "vectors:words/text", "model:means"]
    assert unpacked.encoders == (str(encoder_folder),) and unpacked.missing == ()
    assert links(target, "words", "means") == links(home, "words", "means")
    assert describe_model("means", target)["needs"] == describe_model("means", home)["needs"]


def test_the_names_of_a_tagger_are_the_same_and_its_encoder_is_packed(home, tmp_path):
    unpacked, target = sent(home, tmp_path, "model:names")
    assert titles(unpacked) == ["model:names"] and unpacked.encoders == ()
    ours, theirs = (
        [*kgkit.open_model("names", "tagger", home=where, device="cpu")(TEXTS)] for where in (home, target)
    )
    assert msgspec.json.encode(ours) == msgspec.json.encode(theirs)


def test_the_answers_of_a_kbert_are_the_same_and_its_linker_comes_with_it(home, tmp_path):
    unpacked, target = sent(home, tmp_path, "opinions")
    assert titles(unpacked) == ["kb:words", "vectors:words/text", "model:means", "model:opinions"]
    assert [item.requested for item, _ in unpacked.items] == [False, False, False, True]
    answers = []
    for where in (home, target):
        with kgkit.open_model("opinions", home=where, device="cpu") as model:
            answers.append(msgspec.json.encode([*map(repr, model(TEXTS))]))
    assert answers[0] == answers[1]


def test_a_kbert_is_packed_with_what_was_added_to_its_knowledge_base(home, tmp_path):
    copied = Home(tmp_path / "copied")
    shutil.copytree(home.path, copied.path, symlinks=True)
    (tmp_path / "more.jsonl").write_text('{"key": "cow", "label": "cow"}\n')
    kgkit.add_to_kb("words", str(tmp_path / "more.jsonl"), builder="jsonl", home=copied.path)
    packed = kgkit.pack(["opinions", "kb:words"], tmp_path / "pack.tar", home=copied.path)
    assert packed.items[0].version == copied.kb("words").published() and not packed.items[0].exact


def test_vectors_of_a_knowledge_base_with_a_retired_entity_are_unpacked(home, tmp_path):
    """They have a row for each id, and ids stay taken."""
    copied = Home(tmp_path / "copied")
    shutil.copytree(home.path, copied.path, symlinks=True)
    (tmp_path / "edits.jsonl").write_text('{"key": "fruit", "retire": true}\n')
    kgkit.edit_kb("words", str(tmp_path / "edits.jsonl"), home=copied.path)
    unpacked, target = sent(copied, tmp_path, "vectors:words/text")
    assert titles(unpacked) == ["kb:words", "vectors:words/text"]
    with kgkit.open_kb("words", home=target.path) as kb:
        assert len(kb.vectors("text")) == 4 > len(kb)


def test_a_model_is_packed_with_a_build_that_is_made_of_its_own(home, tmp_path):
    """Its own is gone, and the published one is another."""
    copied = Home(tmp_path / "copied")
    shutil.copytree(home.path, copied.path, symlinks=True)
    for name in ("cow", "goat", "hen"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"key": name, "label": name}))
        kgkit.add_to_kb("words", str(tmp_path / f"{name}.jsonl"), builder="jsonl", home=copied.path)
    extended = copied.kb("words").published()
    (tmp_path / "other.jsonl").write_text('{"key": "fish", "label": "fish"}\n')
    kgkit.build_kb("jsonl", tmp_path / "other.jsonl", name="words", home=copied.path)
    packed = kgkit.pack("opinions", tmp_path / "pack.tar", home=copied.path)
    assert packed.items[0].version == extended
    target = Home(tmp_path / "target")
    assert kgkit.unpack(tmp_path / "pack.tar", home=target.path).missing == ()
    with kgkit.open_model("opinions", home=target, device="cpu") as model:
        assert [*model(TEXTS[:1])]


def test_a_model_that_reads_its_very_build_is_packed_with_that(home, tmp_path):
    """As K-BERTs did that older versions have trained."""
    copied = Home(tmp_path / "copied")
    shutil.copytree(home.path, copied.path, symlinks=True)
    path = find_trained(copied, "opinions") / "model.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"needs": manifest["needs"] | {"exact": True}}))
    (tmp_path / "more.jsonl").write_text('{"key": "cow", "label": "cow"}\n')
    first = copied.kb("words").published()
    kgkit.add_to_kb("words", str(tmp_path / "more.jsonl"), builder="jsonl", home=copied.path)
    packed = kgkit.pack("opinions", tmp_path / "pack.tar", home=copied.path)
    assert packed.items[0].version == first and packed.items[0].exact
    with pytest.raises(UsageError, match="a pack holds one build"):
        kgkit.pack(["opinions", "kb:words"], tmp_path / "two.tar", home=copied.path)


def test_another_model_of_the_name_is_replaced_when_that_is_said(home, tmp_path, encoder_folder):
    path = kgkit.pack("model:names", tmp_path / "pack.tar", home=home.path).path
    target = Home(tmp_path / "other")
    write_tagger(target, "names", encoder_folder, task="other")
    with pytest.raises(NameConflict, match="model:names is here already"):
        kgkit.unpack(path, home=target.path)
    kgkit.unpack(path, home=target.path, replace=True)
    assert describe_model("names", target)["task"] == ""


def test_a_model_needs_what_is_there(home, tmp_path, encoder_folder):
    copied = Home(tmp_path / "copied")
    write_tagger(copied, "reader", encoder_folder, needs=Needs(models=("gone",)))
    with pytest.raises(NotThere, match="gone"):
        try:
            kgkit.pack("reader", tmp_path / "a.tar", home=copied.path)
        except UsageError as error:
            raise NotThere(str(error)) from error
    write_tagger(copied, "old", encoder_folder, needs=Needs(vectors=("words/text",)))
    assert not (tmp_path / "a.tar").exists()


def test_a_model_with_a_pickle_is_not_packed(home, tmp_path, encoder_folder):
    copied = Home(tmp_path / "copied")
    write_tagger(copied, "names", encoder_folder)
    folder = find_trained(copied, "names")
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    fields = json.loads((folder / MANIFEST).read_bytes())
    fields["sizes"]["pytorch_model.bin"] = 3
    (folder / MANIFEST).write_text(json.dumps(fields))
    with pytest.raises(UsageError, match=r"pytorch_model\.bin"):
        kgkit.pack("names", tmp_path / "a.tar", home=copied.path)


def test_a_model_without_checksums_is_not_packed(tmp_path, encoder_folder):
    home = Home(tmp_path / "home")
    write_tagger(home, "names", encoder_folder)
    path = find_trained(home, "names") / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), "sha256": {}}))
    with pytest.raises(DamagedModel, match="no checksums"):
        kgkit.pack("names", tmp_path / "a.tar", home=home.path)


@pytest.fixture
def archive(home, tmp_path):
    """A pack of the tagger, taken apart."""
    return Archive(kgkit.pack("model:names", tmp_path / "names.tar", home=home.path).path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "strange"}, "of the kind 'strange', which no installed package knows"),
        ({"format": 99}, "it has format 99"),
        ({"types": 3}, "cannot be read"),
        ({"sizes": {}}, "not those that its manifest names"),
        ({"sizes": {"../x.json": 1}}, "not those that its manifest names"),
        ({"sha256": {}}, "other digests"),
    ],
)
def test_a_model_that_says_something_else_of_itself_is_refused(archive, tmp_path, fields, message):
    archive.edit_json("model:names", MANIFEST, **fields)
    item = archive.item("model:names")
    item["version"] = item["files"][MANIFEST]["sha256"]
    with pytest.raises((DamagedModel, DamagedPack), match=message):
        kgkit.unpack(archive.write(tmp_path / "pack.tar"), home=tmp_path / "other")
    assert contents_of(tmp_path / "other") == []


def test_a_model_of_another_version_than_its_digest_is_refused(archive, tmp_path):
    archive.item("model:names")["version"] = "0" * 64
    with pytest.raises(DamagedPack, match="another version"):
        kgkit.unpack(archive.write(tmp_path / "pack.tar"), home=tmp_path / "other")


def test_weights_whose_header_promises_more_than_there_is_are_refused(archive, tmp_path):
    path = "head/model.safetensors"
    content = (10**9).to_bytes(8, "little") + archive.files[f"model/names/{path}"][8:]
    archive.set_file("model:names", path, content)
    entry = archive.item("model:names")["files"]
    remaining = {name: file for name, file in entry.items() if name != MANIFEST}
    archive.edit_json(
        "model:names", MANIFEST, sha256={name: file["sha256"] for name, file in remaining.items()}
    )
    item = archive.item("model:names")
    item["version"] = item["files"][MANIFEST]["sha256"]
    with pytest.raises(DamagedPack, match="its header is to be"):
        kgkit.unpack(archive.write(tmp_path / "pack.tar"), home=tmp_path / "other")
    assert contents_of(tmp_path / "other") == []


# -- cards ------------------------------------------------------------------


def test_a_training_writes_a_card_with_scores_data_and_the_lines_that_use_it(home):
    card = (find_trained(home, "opinions") / "README.md").read_text()
    assert card.startswith("# opinions\n\n`opinions` is a K-BERT, for the task classification.")
    assert "`kgkit predict --model opinions`" in card and 'kgkit.open_model("opinions")' in card
    assert "the knowledge base `words`" in card and "`train.tsv`, SHA-256 `" in card
    assert "## Scores" in card and "accuracy" in card and "Not stated." in card
    assert str(home.path.parent) not in card
    assert run("models", "verify", "opinions", "--home", home.path).code == 0


def test_the_card_of_a_pack_has_the_cards_of_its_models_and_the_licence_that_was_named(home, tmp_path):
    unpacked, _ = sent(home, tmp_path, "opinions")
    assert unpacked.card.startswith("# `model:opinions`") and "kgkit unpack pack.tar.gz" in unpacked.card
    assert "## opinions" in unpacked.card and "## means" in unpacked.card
    path = kgkit.pack("names", tmp_path / "b.tar", home=home.path, licence="CC-BY-4.0").path
    assert "CC-BY-4.0." in kgkit.unpack(path, home=tmp_path / "third").card


def test_the_card_of_the_model_that_comes_with_kgkit_is_its_own(home, tmp_path):
    unpacked, _ = sent(home, tmp_path, "model:wsd-minilm")
    assert "non-commercial" in unpacked.card and "## wsd-minilm" in unpacked.card


def test_a_card_that_somebody_added_to_goes_along_and_damages_nothing(home, tmp_path):
    copied = Home(tmp_path / "copied")
    shutil.copytree(home.path, copied.path, symlinks=True)
    card = find_trained(copied, "opinions") / "README.md"
    card.write_text(card.read_text() + "\nF1 on my data: 90\n")
    assert run("models", "verify", "opinions", "--home", copied.path).code == 0
    unpacked, target = sent(copied, tmp_path, "opinions")
    assert "F1 on my data: 90" in unpacked.card
    assert (find_trained(target, "opinions") / "README.md").read_text() == card.read_text()
