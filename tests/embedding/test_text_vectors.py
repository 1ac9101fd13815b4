"""Vectors of the texts of entities: which text, which row, and that stopping changes nothing."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import kgkit
from kgkit.building import Entity
from kgkit.embedding import text as module
from kgkit.embedding.entity_text import Template, text_digest
from kgkit.embedding.text import TEXTS, TextConfig, embed_text, update_text
from kgkit.encoder import Encoder
from kgkit.encoder.finding import find_in_package
from kgkit.errors import NotThere, UnknownEntity, UnknownName, UsageError
from kgkit.vectors import Work
from tests.small_kb import build
from tests.tiny_encoder import MINILM, WIDTH, tiny_encoder
from tests.toys import child_env

ANIMALS = (
    Entity("dog", "dog", "a big red dog", kind="thing", attributes={"lemmas": ["dog"]}),
    Entity("cat", "cat", "it eats the fruit", kind="thing"),
    Entity("hound", "dog", "a big red dog", kind="thing"),  # the text of dog
    Entity("nameless", "", "not a cat", kind="thing"),
    Entity("plain", "tree", "", kind="thing"),
    Entity("dog%1", "dog", kind="word"),
    Entity("cat%1", "cat", kind="word"),
)
TEXTS_OF_ANIMALS = ["dog: a big red dog", "cat: it eats the fruit", "dog: a big red dog", "not a cat", "tree"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def encoder(folder):
    return Encoder.load(str(folder), device="cpu", dtype="float32")


@pytest.fixture
def animals(tmp_path):
    with build(tmp_path / "home", ANIMALS, name="animals") as kb:
        yield kb


def many(count: int) -> list[Entity]:
    """Return entities of which every third has the text of another."""
    words = "dog cat fruit company tree city".split()
    texts = [" ".join(words[n // 6**k % 6] for k in range(1 + n % 4)) for n in range(count)]
    return [Entity(f"e{n}", "", texts[n // 3 if n % 3 == 2 else n], kind="thing") for n in range(count)]


def one_by_one(kb, encoder, template="{lemmas|label}: {description}"):
    """The slow twin: the text of each entity alone."""
    write = Template(template)
    return np.concatenate([encoder.encode([write(entity)]) for entity in kb])


# -- templates --------------------------------------------------------------

DOG = Entity(
    "dog.n.01", "dog", "an animal", kind="synset", pos="n", types=("food", "pet"),
    attributes={"lemmas": ["dog", "domestic dog"], "count": 3, "none": [], "deep": {"a": 1}, "no": None},
)  # fmt: skip
BARE = Entity("dog", "dog")
NAMELESS = Entity("dog", "", "an animal")


@pytest.mark.parametrize(
    "pattern, dog, bare, nameless",
    [
        ("{label}: {description}", "dog: an animal", "dog", "an animal"),
        ("{label} ({description})", "dog (an animal)", "dog", "an animal)"),
        ("A {label}, that is {description}.", "A dog, that is an animal.", "A dog", "an animal."),
        ("{lemmas}: {description}", "dog, domestic dog: an animal", "", "an animal"),
        ("{lemmas|label}: {description}", "dog, domestic dog: an animal", "dog", "an animal"),
        ("{ label }", "dog", "dog", ""),
        ("{key} {pos} {kind} {types}", "dog.n.01 n synset food, pet", "dog", "dog"),
        ("{label}, {count}: {description}", "dog, 3: an animal", "dog", "an animal"),
        ("{none}{deep}{no}{label}", "dog", "dog", ""),
    ],
)
def test_a_template_writes_what_an_entity_has(pattern, dog, bare, nameless):
    write = Template(pattern)
    assert [write(DOG), write(BARE), write(NAMELESS)] == [dog, bare, nameless]


@pytest.mark.parametrize("pattern", ["", "dog", "{}", "{label|}", "{label", "label}", "{{label}}"])
def test_a_template_without_a_field_or_with_a_stray_brace_is_refused(pattern):
    with pytest.raises(UsageError, match="template"):
        TextConfig(template=pattern)


def test_an_attribute_that_no_entity_has_is_told(animals, encoder):
    with pytest.raises(UsageError, match="names lemas"):
        embed_text(animals, TextConfig(template="{lemas}: {description}"), encoder=encoder)
    embed_text(animals, TextConfig(template="{lemas|label}: {description}"), encoder=encoder)


def test_the_digest_of_a_text_does_not_change_between_versions():
    assert text_digest("dog") == 0x9F9C5ED2C1C78439
    assert text_digest("\ud800") != text_digest("\ufffd")


# -- rows -------------------------------------------------------------------


def test_each_entity_with_a_text_has_its_vector_in_its_row(animals, encoder):
    vectors = embed_text(animals, encoder=encoder)
    assert vectors.name == "animals/text" and vectors.matrix.shape == (5, WIDTH)
    np.testing.assert_allclose(vectors.matrix, encoder.encode(TEXTS_OF_ANIMALS), atol=2e-6)
    assert np.array_equal(vectors.matrix[0], vectors.matrix[2])
    assert animals.vectors("text").manifest.version == vectors.manifest.version
    assert [one.entity.key for one in animals.nearest("dog", 1)] == ["hound"]


def test_the_manifest_says_how_the_vectors_were_made(animals, encoder):
    manifest = embed_text(animals, TextConfig(name="t"), encoder=encoder).manifest
    assert (manifest.method, manifest.covered, manifest.width) == ("text", 5, WIDTH)
    assert manifest.config["encoder"] == str(encoder.folder)
    assert manifest.config["fingerprint"] == encoder.fingerprint
    assert manifest.config["dtype"] == "float32" and manifest.config["device"] == "cpu"
    wanted = {"texts": 5, "distinct": 4, "encoded": 4, "taken_over": 0, "cut": 0}
    assert {key: manifest.results[key] for key in wanted} == wanted


def test_kinds_without_descriptions_are_left_out_unless_asked_for(animals, encoder):
    words = embed_text(animals, TextConfig(kinds=("word",)), encoder=encoder)
    assert words.matrix.shape == (7, WIDTH) and not words.matrix[:5].any()
    np.testing.assert_allclose(words.matrix[5:], encoder.encode(["dog", "cat"]), atol=2e-6)
    both = embed_text(animals, TextConfig(kinds=("word", "thing")), encoder=encoder)
    assert both.manifest.covered == 7


def test_without_any_description_all_with_a_label_have_a_vector(tmp_path, encoder):
    entities = [Entity("1", "dog", kind="a"), Entity("2", "", kind="a"), Entity("3", "cat", kind="b")]
    with build(tmp_path, entities) as kb:
        vectors = embed_text(kb, encoder=encoder)
        assert vectors.matrix.any(axis=1).tolist() == [True, False, True]


def test_a_kb_without_texts_is_told(tmp_path, encoder):
    with build(tmp_path, [Entity("1"), Entity("2")]) as kb, pytest.raises(UsageError, match="has a text"):
        embed_text(kb, encoder=encoder)


def test_a_kind_that_is_not_there_is_told(animals, encoder):
    with pytest.raises(UnknownName, match="word"):
        embed_text(animals, TextConfig(kinds=("wrod",)), encoder=encoder)


@pytest.mark.parametrize("wrong", [{"chunk": 0}, {"batch_tokens": 0}, {"dtype": "int8"}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(UsageError):
        TextConfig(**wrong)


@pytest.mark.parametrize("chunk", [1, 7, 8_192])
def test_chunks_and_copies_give_what_a_text_gets_alone(tmp_path, encoder, chunk):
    with build(tmp_path, many(100)) as kb:
        vectors = embed_text(kb, TextConfig(chunk=chunk), encoder=encoder)
        np.testing.assert_allclose(vectors.matrix, one_by_one(kb, encoder), atol=2e-6)


def test_each_distinct_text_is_encoded_once_in_the_whole_kb(tmp_path, encoder, monkeypatch):
    encoded = []
    prepare = Encoder._prepare
    monkeypatch.setattr(
        Encoder, "_prepare", lambda self, texts: encoded.extend(texts) or prepare(self, texts)
    )
    with build(tmp_path, many(90)) as kb:
        embed_text(kb, TextConfig(chunk=10), encoder=encoder)
        assert len(encoded) == len(set(encoded)) == len({entity.description for entity in kb})


def test_the_encoder_is_loaded_by_the_name_in_the_settings(animals, folder):
    vectors = embed_text(animals, TextConfig(encoder=str(folder), device="cpu", dtype="float32"))
    assert vectors.manifest.covered == 5
    with pytest.raises(NotThere, match="no encoder"):
        embed_text(animals, TextConfig(encoder="nobody/nothing", offline=True))


# -- stopping and going on --------------------------------------------------


class Stop(Exception):
    """What a test stops a job with."""


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 10, 30])
@pytest.mark.parametrize("every", [0.0, 1e9], ids=["recorded each chunk", "never recorded"])
def test_a_job_that_was_stopped_comes_to_the_same_numbers(tmp_path, encoder, monkeypatch, after, every):
    monkeypatch.setattr(module, "_RECORD_EVERY", every)
    config = TextConfig(chunk=10)

    def stop(stage, done, total):
        if done >= after:
            raise Stop

    with build(tmp_path / "1", many(100)) as kb:
        whole = embed_text(kb, config, encoder=encoder)
    with build(tmp_path / "2", many(100)) as kb:
        with pytest.raises(Stop):
            embed_text(kb, config, encoder=encoder, progress=stop)
        told = []
        found = embed_text(kb, config, encoder=encoder, progress=lambda stage, *how: told.append(how))
        assert told[0][0] == (after if every == 0 else 0) and told[-1][0] == told[-1][1]
        assert found.matrix.tobytes() == whole.matrix.tobytes()
        assert found.manifest.version == whole.manifest.version
        assert found.manifest.results["tokens"] == whole.manifest.results["tokens"]


def test_a_matrix_that_was_lost_is_not_taken_for_done(tmp_path, encoder, monkeypatch):
    monkeypatch.setattr(module, "_RECORD_EVERY", 0.0)

    def stop(stage, done, total):
        if done >= 30:
            raise Stop

    with build(tmp_path, many(60)) as kb:
        with pytest.raises(Stop):
            embed_text(kb, TextConfig(chunk=10), encoder=encoder, progress=stop)
        next(kb.home.unfinished_vectors.glob("*/matrix.npy")).unlink()
        assert embed_text(kb, TextConfig(chunk=10), encoder=encoder).manifest.covered == 60


def test_a_job_can_be_begun_anew(tmp_path, encoder):
    def stop(stage, done, total):
        if done:
            raise Stop

    with build(tmp_path, many(60)) as kb:
        config = TextConfig(chunk=10)
        with pytest.raises(Stop):
            embed_text(kb, config, encoder=encoder, progress=stop)
        told = []
        embed_text(
            kb, config, encoder=encoder, resume=False, progress=lambda stage, done, _: told.append(done)
        )
        assert told[0] == 0


def test_another_setting_does_not_go_on_with_the_job(tmp_path, encoder):
    with build(tmp_path, many(60)) as kb:
        folders = {
            Work(kb, "text", module.settings_of(config, encoder)).folder
            for config in (TextConfig(), TextConfig(template="{description}"), TextConfig(normalize=False))
        }
        assert len(folders) == 3


KILLED = """
import os, signal, sys, time
import kgkit
from kgkit.embedding import text
from kgkit.encoder import Encoder
from kgkit.encoder.finding import find_in_package
home, folder, moment = sys.argv[1:]
text._RECORD_EVERY = 0
passed = 0
def tick(*_):
    global passed
    passed += 1
    if passed == int(moment):
        os.kill(os.getpid(), signal.SIGKILL)
def around(function):
    def wrapped(*args, **kwargs):
        tick()
        done = function(*args, **kwargs)
        tick()
        return done
    return wrapped
for name in ("_record", "_copy", "_digests"):
    setattr(text, name, around(getattr(text, name)))
for name in ("replace", "link", "symlink", "rename"):
    setattr(os, name, around(getattr(os, name)))
encoder = Encoder.load(folder, device="cpu", dtype="float32")
with kgkit.open_kb("small", home=home) as kb:
    text.embed_text(kb, text.TextConfig(chunk=10), encoder=encoder, progress=tick)
"""


@pytest.mark.slow  # each process loads torch
def test_a_job_that_is_killed_anywhere_comes_to_the_same_numbers(tmp_path, folder, encoder):
    config = TextConfig(chunk=10)
    with build(tmp_path / "whole", many(70)) as kb:
        whole = embed_text(kb, config, encoder=encoder)
    home = tmp_path / "killed"
    build(home, many(70)).close()
    for moment in (5, 12):  # each goes on where the one before was killed
        command = [sys.executable, "-c", KILLED, str(home), str(folder), str(moment)]
        code = subprocess.run(command, env=child_env(), check=False).returncode
        assert code == -signal.SIGKILL
        with kgkit.open_kb("small", home=home) as kb, pytest.raises(NotThere):
            kb.vectors("text")
    with kgkit.open_kb("small", home=home) as kb:
        found = embed_text(kb, config, encoder=encoder)
    assert found.matrix.tobytes() == whole.matrix.tobytes()
    assert np.array_equal(np.load(found.folder / TEXTS), np.load(whole.folder / TEXTS))


# -- bringing vectors to another build --------------------------------------

LATER = (
    Entity("new", "city", "a small city", kind="thing"),
    Entity("cat", "cat", "it eats many fruit", kind="thing"),  # told otherwise
    *(entity for entity in ANIMALS if entity.key not in ("cat", "hound")),
)


def test_an_update_encodes_what_is_new_or_changed_and_nothing_else(tmp_path, encoder, monkeypatch):
    with build(tmp_path, ANIMALS) as kb:
        old = embed_text(kb, TextConfig(name="t"), encoder=encoder)
        rows = {entity.key: old.matrix[entity.id].copy() for entity in kb.entities("thing")}
    with build(tmp_path, LATER) as kb:
        encoded = []
        prepare = Encoder._prepare
        monkeypatch.setattr(
            Encoder, "_prepare", lambda self, texts: encoded.extend(texts) or prepare(self, texts)
        )
        found = update_text(kb, "t", encoder=encoder)
        assert sorted(encoded) == ["cat: it eats many fruit", "city: a small city"]
        assert found.manifest.build == kb.build != old.manifest.build
        assert found.manifest.config == old.manifest.config
        assert found.manifest.results["taken_over"] == 3
        for entity in kb.entities("thing"):
            if entity.key not in ("new", "cat"):
                assert np.array_equal(found.matrix[entity.id], rows[entity.key])
        slow = embed_text(kb, TextConfig(name="slow"), encoder=encoder)
        np.testing.assert_allclose(found.matrix, slow.matrix, atol=2e-6)


def test_an_update_keeps_the_settings(tmp_path, folder):
    config = TextConfig(
        name="t", encoder=str(folder), device="cpu", dtype="bfloat16", template="{description}",
        kinds=("thing",), normalize=False, chunk=3,
    )  # fmt: skip
    with build(tmp_path, ANIMALS) as kb:
        old = embed_text(kb, config)
    with build(tmp_path, LATER) as kb:
        assert update_text(kb, "t", device="cpu").manifest.config == old.manifest.config


def test_an_update_that_was_stopped_goes_on(tmp_path, encoder, monkeypatch):
    monkeypatch.setattr(module, "_RECORD_EVERY", 0.0)

    def stop(stage, done, total):
        if done:
            raise Stop

    with build(tmp_path, many(20)) as kb:
        embed_text(kb, TextConfig(chunk=10), encoder=encoder)
    with build(tmp_path, many(80)) as kb:
        with pytest.raises(Stop):
            update_text(kb, encoder=encoder, progress=stop)
        told = []
        found = update_text(kb, encoder=encoder, progress=lambda stage, done, _: told.append(done))
        assert told[0] == 10
        np.testing.assert_allclose(found.matrix, one_by_one(kb, encoder), atol=2e-6)


def test_an_update_with_an_encoder_that_has_changed_is_refused(tmp_path, encoder):
    changed = Encoder.load(str(tiny_encoder(tmp_path / "m", seed=9)), device="cpu", dtype="float32")
    with build(tmp_path / "home", ANIMALS) as kb:
        embed_text(kb, encoder=encoder)
        with pytest.raises(UsageError, match=r"made with another .* make them anew with `kgkit embed"):
            update_text(kb, encoder=changed)


def test_an_update_of_what_is_not_there_or_no_text_is_refused(animals, encoder):
    with pytest.raises(NotThere):
        update_text(animals, "nothing", encoder=encoder)
    with Work(animals, "hand", {}) as work:
        work.matrix(1, 2)[:] = 1
        work.publish("hand")
    with pytest.raises(UsageError, match="not of texts, but of the method 'hand'"):
        update_text(animals, "hand", encoder=encoder)


# -- a real encoder ---------------------------------------------------------


@pytest.mark.skipif(find_in_package(MINILM) is None, reason=f"{MINILM} is not installed")
def test_what_minilm_finds_near_is_near(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    glosses = {
        "dog": "a domesticated animal that barks", "wolf": "a wild animal that hunts in packs",
        "bank": "an institution that lends money", "loan": "money that is lent at interest",
    }  # fmt: skip
    with build(tmp_path, [Entity(key, key, gloss, kind="thing") for key, gloss in glosses.items()]) as kb:
        embed_text(kb)
        assert [one.entity.key for one in kb.nearest("dog", 1)] == ["wolf"]
        assert [one.entity.key for one in kb.nearest("bank", 1)] == ["loan"]
    assert os.environ["HF_HUB_OFFLINE"] == "1"


def test_a_text_has_nearest_entities_by_the_encoder_that_made_the_vectors(animals, encoder):
    vectors = embed_text(animals, encoder=encoder)
    expected = animals.nearest(encoder.encode(["a red dog"])[0], 3)
    found = animals.nearest(module.encoder_of(vectors).encode(["a red dog"])[0], 3)
    assert [each.entity.key for each in found] == [each.entity.key for each in expected]
    assert vectors.name == "animals/text"
    for unknown in ("barks", "a red dog"):
        with pytest.raises(UnknownEntity):
            animals.nearest(unknown)
