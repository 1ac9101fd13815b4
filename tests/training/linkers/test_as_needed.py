"""Linkers that are trained where no vectors of texts have been made: texts are encoded as they are needed."""

import shutil

import msgspec
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import kgkit
from kgkit.embedding.embed import update
from kgkit.embedding.entity_text import Template, text_digest
from kgkit.embedding.partial import PartialTextVectors
from kgkit.embedding.text import TextConfig, embed_text
from kgkit.encoder import Encoder
from kgkit.errors import NotThere, UsageError
from kgkit.linking import Linker
from kgkit.linking.text_vectors import open_text_vectors
from kgkit.models.kinds import LINKER
from kgkit.training.linkers.means import text_mean
from kgkit.training.linkers.train import train_linker
from kgkit.types import Alias, Entity, Triple
from kgkit.vectors import vectors_names
from kgkit.vectors.partial import partial_folders, partial_names
from kgkit.vectors.row_file import RowFile
from tests.cli_helpers import run
from tests.small_kb import build
from tests.tiny_encoder import tiny_encoder
from tests.training.linkers.test_linkers import RECORDS, TEXT, corpus, training
from tests.vector_toys import made

__all__ = ["corpus"]

NEVER = (
    Entity("city.n.01", "city", "a big city"),
    Entity("fruit.n.01", "fruit", "a fruit of the tree"),
    Entity("road.n.01", "road", "a small road"),
    Alias("city", "city.n.01", 1),
    Alias("fruit", "fruit.n.01", 1),
    Triple("dog.n.01", "lives in", "city.n.01"),
)
"""Entities that no mention of the data has among its candidates."""


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """Two encoders that read as many word pieces as `gloss` does."""
    where = tmp_path_factory.mktemp("encoders")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.tiny_encoder.POSITIONS", 160)
        return tiny_encoder(where / "tiny"), tiny_encoder(where / "second", seed=5)


@pytest.fixture
def folder(encoders):
    return encoders[0]


@pytest.fixture
def kb(tmp_path):
    with build(tmp_path / "home", (*RECORDS, *NEVER), name="words") as kb:
        yield kb


@pytest.fixture
def usual(monkeypatch, folder):
    """Let the encoder that is taken unless another is named be a small one."""
    monkeypatch.setitem(TextConfig.__init__.__kwdefaults__, "encoder", str(folder))


def as_needed(corpus, folder, **chosen):
    return training(corpus, **{"encoder": str(folder), **chosen})


def links(kb, model, **options):
    """Return the bytes of the links of some texts."""
    linker = Linker.open(kb, model=model, device="cpu", **options)
    return msgspec.json.encode([*linker([TEXT, "a tree eats a dog in the city"])])


def encoded(kb, name):
    """Return the digests of the texts that have a row in partial vectors."""
    [where] = partial_folders(kb.home, name)
    return {*RowFile(where.path, 16).keys.tolist()}


def digests(kb, *keys):
    template = Template(TextConfig.template)
    return {text_digest(template(kb[key])) for key in keys}


def files(model):
    """Return the content of a model's files but its manifest and its card, which have times."""
    return {path: (model / path).read_bytes() for path in LINKER.read(model).sizes}


def home_of(kb):
    return kb.home.path.parents[1]


# -- what is encoded --------------------------------------------------------


def test_the_texts_of_candidates_are_encoded_and_no_others(kb, corpus, folder):
    stages = []
    where = train_linker(
        kb, "m", as_needed(corpus, folder), device="cpu", progress=lambda *stage: stages.append(stage)
    )
    assert vectors_names(kb.home) == [] and partial_names(kb.home) == ["tiny"]
    assert encoded(kb, "tiny") == digests(kb, "dog.n.01", "dog.n.02", "tree.n.01")
    assert ("encoding texts", 0, 3) in stages and ("encoding texts", 3, 3) in stages
    names = [stage for stage, _, _ in stages]
    assert names.index("encoding texts") < names.index("reading set 1")
    manifest = LINKER.read(where)
    assert (manifest.vectors, manifest.version, manifest.needs.vectors) == ("tiny", "", ())
    assert manifest.encoder == str(folder) and manifest.texts == {
        "template": TextConfig.template,
        "kinds": [],
    }
    assert f"--encoder {folder}" in manifest.command


def test_the_texts_of_hypernyms_are_encoded_where_there_are_some(kb, corpus, folder, monkeypatch):
    monkeypatch.setattr("kgkit.training.linkers.train.HYPERNYM", "lives in")
    train_linker(kb, "m", as_needed(corpus, folder), device="cpu")
    assert encoded(kb, "tiny") == digests(kb, "dog.n.01", "dog.n.02", "tree.n.01", "city.n.01")


def test_the_mean_of_texts_is_that_of_the_candidates(kb, corpus, folder):
    where = train_linker(kb, "m", as_needed(corpus, folder), device="cpu")
    config = TextConfig(encoder=str(folder), name="tiny", device="cpu")
    texts = PartialTextVectors.open(kb, config).gather(
        [kb.id(key) for key in ("dog.n.01", "dog.n.02", "tree.n.01")]
    )
    expected = (texts / np.linalg.norm(texts, axis=1, keepdims=True)).mean(0)
    np.testing.assert_allclose(np.load(where / "gloss_mean.npy"), expected, atol=1e-6)


def test_the_mean_over_published_vectors_is_that_of_all_rows(kb, corpus, folder):
    vectors = embed_text(kb, TextConfig(encoder=str(folder), device="cpu"))
    where = train_linker(kb, "m", training(corpus), device="cpu")
    total = np.zeros(16, np.float64)
    lengths = np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    total += (vectors.matrix / np.where(lengths > 0, lengths, 1)).sum(0, dtype=np.float64)
    expected = (total / (lengths > 0).sum()).astype(np.float32)
    assert np.load(where / "gloss_mean.npy").tobytes() == expected.tobytes() == text_mean(vectors).tobytes()
    assert text_mean(vectors, np.arange(len(vectors), dtype=np.uint32)).tobytes() == expected.tobytes()


# -- what comes of it -------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ridge", "head"])
def test_a_linker_links_the_same_once_all_texts_are_encoded(kb, corpus, folder, monkeypatch, kind):
    monkeypatch.setattr("kgkit.training.linkers.train.FEWEST", 1 if kind == "head" else 5_000)
    chosen = as_needed(corpus, folder, epochs=2)
    where = train_linker(kb, "m", chosen, device="cpu")
    again = train_linker(kb, "again", chosen, device="cpu")
    assert files(where) == files(again)
    before = links(kb, "m")
    with monkeypatch.context() as patch:  # what was trained with, and what was linked, is kept
        patch.setattr(Encoder, "encode_chunks", lambda *_, **__: pytest.fail("a text is encoded again"))
        assert links(kb, "m") == before
    vectors = update(kb, "tiny", index=False)
    assert partial_names(kb.home) == [] and vectors.manifest.results["encoded"] > 0
    assert links(kb, "m") == before
    assert [*vectors_names(kb.home)] == ["tiny"] and LINKER.read(where).version == ""


def test_a_training_goes_on_where_it_was_stopped_unless_vectors_have_come(kb, corpus, folder, monkeypatch):
    monkeypatch.setattr("kgkit.training.linkers.train.FEWEST", 1)
    chosen = as_needed(corpus, folder)

    def stop(stage, done, total):
        if stage.startswith("training") and done == total // 2:
            raise KeyboardInterrupt

    expected = files(train_linker(kb, "whole", chosen, device="cpu"))
    steps = []
    with pytest.raises(KeyboardInterrupt):
        train_linker(kb, "m", chosen, device="cpu", progress=stop)
    where = train_linker(kb, "m", chosen, device="cpu", progress=lambda *step: steps.append(step))
    assert files(where) == expected
    resumed = min(count for stage, count, _ in steps if stage.startswith("training"))
    with pytest.raises(KeyboardInterrupt):
        train_linker(kb, "m", chosen, device="cpu", progress=stop)
    update(kb, "tiny", index=False)
    del steps[:]
    train_linker(kb, "m", chosen, device="cpu", progress=lambda *step: steps.append(step))
    assert min(count for stage, count, _ in steps if stage.startswith("training")) < resumed


def test_a_linker_trained_so_is_packed_with_its_knowledge_base(kb, corpus, folder, tmp_path):
    train_linker(kb, "m", as_needed(corpus, folder), device="cpu")
    path = kgkit.pack("m", tmp_path / "pack.tar", home=home_of(kb)).path
    unpacked = kgkit.unpack(path, home=tmp_path / "target")
    assert [item.title for item, _ in unpacked.items] == ["kb:words", "model:m"]
    assert unpacked.encoders == (str(folder),) and unpacked.missing == ()
    with kgkit.open_kb("words", home=tmp_path / "target") as there:
        assert links(there, "m") == links(kb, "m")


# -- which vectors ----------------------------------------------------------


@pytest.mark.usefixtures("usual")
def test_without_an_encoder_the_usual_one_is_taken(kb, corpus, folder):
    made(home_of(kb), [[1, 0], [0, 1]], kb="words", name="plane")
    made(home_of(kb), [[1, 0], [0, 1]], kb="words", name="sphere")
    where = train_linker(kb, "m", training(corpus), device="cpu")
    assert LINKER.read(where).vectors == "text" and partial_names(kb.home) == ["text"]
    assert links(kb, "m")
    named = train_linker(kb, "n", as_needed(corpus, folder), device="cpu")
    assert LINKER.read(named).vectors == "text" and files(named) == files(where)


def test_published_vectors_of_the_encoder_are_taken(kb, corpus, encoders):
    folder, second = encoders
    embed_text(kb, TextConfig(encoder=str(second), device="cpu"))
    embed_text(kb, TextConfig(encoder=str(folder), name="mine", device="cpu"))
    where = train_linker(kb, "m", as_needed(corpus, folder), device="cpu")
    assert LINKER.read(where).needs.vectors == ("words/mine",) and partial_names(kb.home) == []
    named = train_linker(kb, "n", training(corpus, vectors="mine"), device="cpu")
    assert files(where) == files(named)
    assert open_text_vectors(kb, "mine", encoder=str(folder)).name == "words/mine"
    embed_text(kb, TextConfig(encoder=str(folder), name="other", device="cpu"))
    with pytest.raises(UsageError, match="words/mine, words/other; name one with --vectors"):
        open_text_vectors(kb, encoder=str(folder))
    embed_text(kb, TextConfig(encoder=str(folder), name="tiny", device="cpu"))
    assert open_text_vectors(kb, encoder=str(folder)).name == "words/tiny"


def test_texts_that_the_encoder_has_read_are_taken_whatever_their_name(kb, corpus, folder):
    config = TextConfig(encoder=str(folder), name="mine", device="cpu")
    PartialTextVectors.open(kb, config, device="cpu").prepare([kb.id("city.n.01")])
    where = train_linker(kb, "m", as_needed(corpus, folder), device="cpu")
    assert LINKER.read(where).vectors == "mine" and partial_names(kb.home) == ["mine"]


def test_vectors_that_are_not_there_or_of_another_encoder_are_refused(kb, corpus, encoders):
    folder, second = encoders
    for options in ({"vectors": "mine"}, {"vectors": "text"}, {"vectors": "mine", "encoder": str(folder)}):
        with pytest.raises(NotThere, match="knowledge base 'words' has no vectors"):
            train_linker(kb, "m", training(corpus, **options), device="cpu")
    with pytest.raises(NotThere, match="no encoder 'no/such/folder'"):
        train_linker(kb, "m", as_needed(corpus, "no/such/folder"), device="cpu")
    embed_text(kb, TextConfig(encoder=str(second), name="tiny", device="cpu"))
    problem = f"words/tiny were made by the encoder {second}, and the encoder {folder} is another"
    with pytest.raises(UsageError, match=problem):
        train_linker(kb, "m", as_needed(corpus, folder, vectors="tiny"), device="cpu")
    with pytest.raises(UsageError, match="words/tiny is the name of vectors that it has not made"):
        train_linker(kb, "m", as_needed(corpus, folder), device="cpu")
    made(home_of(kb), [[1, 0], [0, 1]], kb="words", name="plane")
    with pytest.raises(UsageError, match="words/plane were made by hand, and"):
        train_linker(kb, "m", as_needed(corpus, folder, vectors="plane"), device="cpu")


def test_an_encoder_whose_name_cannot_be_that_of_vectors_says_what_to_do(kb, corpus, folder, tmp_path):
    named = tmp_path / "two words"
    shutil.copytree(folder, named)
    with pytest.raises(UsageError, match="'two words' cannot be the name of its vectors") as refused:
        train_linker(kb, "m", as_needed(corpus, named), device="cpu")
    assert f"--encoder '{named}' --name NAME`" in str(refused.value)
    link = tmp_path / "an encoder"
    link.symlink_to(folder)
    assert open_text_vectors(kb, encoder=str(link)).name == "words/tiny"  # the folder that it stands for


def test_an_encoder_called_text_leaves_that_name_to_the_vectors_of_the_usual_encoder(kb, folder, tmp_path):
    named = tmp_path / "text"
    shutil.copytree(folder, named)
    assert open_text_vectors(kb, encoder=str(named)).name == "words/text-encoder"


def test_the_command_trains_with_an_encoder(kb, corpus, folder):
    data, gold = corpus
    common = ("--name", "m", "--data", data, "--gold", gold, "--device", "cpu")
    done = run("train", "linker", *common, "--encoder", folder, "--home", home_of(kb))
    assert done.code == 0, done.err
    assert "m: ridge, wsd, for words@" in done.out
    scored = run(
        "evaluate", "wsd", "--data", data, "--gold", gold, "--model", "m", "--home", home_of(kb), "--quiet"
    )
    assert scored.code == 0, scored.err
