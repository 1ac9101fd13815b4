"""Encoders: what they are found by, what goes wrong, and that the fast way gives what the slow one does."""

import json
import logging
import random
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.encoder import Encoded, Encoder, pick_device  # noqa: E402
from kgkit.encoder import encoder as module  # noqa: E402
from kgkit.encoder.batches import batches  # noqa: E402
from kgkit.encoder.finding import find_in_package, find_model, is_offline  # noqa: E402
from kgkit.encoder.folder import sentence_settings  # noqa: E402
from kgkit.encoder.loading import load_as  # noqa: E402
from kgkit.errors import KgkitError, MissingExtra, NotThere, SourceError, UsageError  # noqa: E402
from tests.tiny_encoder import MINILM, PIECES, POSITIONS, WIDTH, WORDS, tiny_encoder, write  # noqa: E402
from tests.toys import run_python  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def tiny(folder):
    return Encoder.load(str(folder), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def minilm():
    if find_in_package(MINILM) is None:
        pytest.skip(f"{MINILM} is not installed")
    return Encoder.load(MINILM, device="cpu", dtype="float32")


def sentences(count: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randrange(0, 30))) for _ in range(count)]


def one_by_one(encoder: Encoder, texts: list[str], pooling: str = "mean") -> np.ndarray:
    """The slow twin: a text at a time, as Hugging Face's own tokenizer has it, in float32."""
    rows = []
    for text in texts:
        tokens = encoder.tokenizer(text, truncation=True, max_length=encoder.max_length, return_tensors="pt")
        with torch.no_grad():
            hidden = encoder.model(**tokens).last_hidden_state[0]
        if pooling == "mean":
            vector = sum(hidden) / len(hidden)
        else:
            vector = hidden[0] if pooling == "cls" else hidden.max(dim=0).values
        rows.append((vector / vector.norm()).numpy())
    return np.stack(rows)


# -- the fast way and the slow one ------------------------------------------


def test_many_texts_get_the_vectors_that_each_gets_alone(tiny):
    texts = sentences(200)
    found = tiny.encode(texts)
    assert found.shape == (200, WIDTH) and found.dtype == np.float32
    np.testing.assert_allclose(found, one_by_one(tiny, texts), atol=2e-6)


def test_a_padded_batch_gives_what_hugging_face_gives_for_the_same_batch(tiny):
    texts = ["dog", "the big red dog barks", "a cat"]
    tokens = tiny.tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = tiny.model(**tokens).last_hidden_state
    mask = tokens["attention_mask"][:, :, None]
    expected = (hidden * mask).sum(1) / mask.sum(1)
    found = tiny.encode(texts, normalize=False, batch_tokens=1_000)
    np.testing.assert_allclose(found, expected.numpy(), atol=2e-6)


@pytest.mark.parametrize("least, most", [(1, 1), (1, 40), (40, 40), (1_000, 10_000)])
def test_the_size_of_the_batches_does_not_matter(tiny, monkeypatch, least, most):
    texts = sentences(60, seed=2)
    expected = tiny.encode(texts)
    monkeypatch.setitem(module._BATCH, "cpu", (least, most))
    np.testing.assert_allclose(tiny.encode(texts), expected, atol=2e-6)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("old", [True, False])
def test_token_vectors_are_pooled_as_the_model_says(tmp_path, pooling, old):
    names = {
        "mean": "pooling_mode_mean_tokens",
        "cls": "pooling_mode_cls_token",
        "max": "pooling_mode_max_tokens",
    }
    config = {name: mode == pooling for mode, name in names.items()} if old else {"pooling_mode": pooling}
    made = tiny_encoder(tmp_path / "m", pooling={"word_embedding_dimension": WIDTH, **config})
    encoder = Encoder.load(str(made), device="cpu", dtype="float32")
    texts = sentences(30, seed=3)
    np.testing.assert_allclose(encoder.encode(texts), one_by_one(encoder, texts, pooling), atol=2e-6)


def test_bf16_stays_near_float32_or_is_not_chosen(folder):
    texts = sentences(100)
    exact = Encoder.load(str(folder), device="cpu", dtype="float32").encode(texts)
    chosen = Encoder.load(str(folder), device="cpu")
    assert chosen.dtype in ("float32", "bfloat16")
    assert (chosen.encode(texts) * exact).sum(1).min() > 0.995
    half = Encoder.load(str(folder), device="cpu", dtype="bfloat16")
    assert half.dtype == "bfloat16" and (half.encode(texts) * exact).sum(1).min() > 0.995


def test_bf16_is_not_chosen_where_it_strays_too_far(folder, monkeypatch):
    monkeypatch.setattr(module, "has_bf16", lambda device: True)
    for agreement, dtype in ((1.1, "float32"), (0.9, "bfloat16")):
        monkeypatch.setattr(module, "_AGREEMENT", agreement)
        encoder = Encoder.load(str(folder), device="cpu")
        assert encoder.model is not None and encoder.dtype == dtype  # torch reads from now on


def test_what_cannot_multiply_bf16_does_not(folder, monkeypatch):
    monkeypatch.setattr(module, "has_bf16", lambda device: False)
    encoder = Encoder.load(str(folder), device="cpu")
    assert encoder.model is not None and encoder.dtype == "float32"  # torch reads from now on


# -- texts ------------------------------------------------------------------


def test_vectors_come_in_the_order_of_the_texts_and_equal_texts_are_encoded_once(tiny):
    texts = ["the dog", "a cat", "the dog", "", "a cat"]
    found = tiny.encode(texts)
    ((_, counts),) = tiny.encode_chunks(texts)
    assert counts.distinct == 3
    assert np.array_equal(found[0], found[2]) and np.array_equal(found[1], found[4])
    assert not np.array_equal(found[0], found[1])


def test_no_text_gives_no_vector_and_an_empty_text_gives_one(tiny):
    assert tiny.encode([]).shape == (0, WIDTH)
    assert np.linalg.norm(tiny.encode([""])[0]) == pytest.approx(1)


def test_vectors_have_length_1_unless_told_otherwise(tiny):
    texts = sentences(10)
    plain = tiny.encode(texts, normalize=False)
    lengths = np.linalg.norm(plain, axis=1)
    assert (np.abs(lengths - 1) > 0.01).any()
    np.testing.assert_allclose(tiny.encode(texts), plain / lengths[:, None], atol=1e-6)


def test_the_same_texts_get_the_same_bits(folder):
    texts = sentences(100)
    first, second = (Encoder.load(str(folder), device="cpu").encode(texts) for _ in range(2))
    assert np.array_equal(first, second)


def test_a_chunk_does_not_depend_on_those_before_it(tiny):
    texts = sentences(50)
    whole = np.concatenate([rows for rows, _ in tiny.encode_chunks(texts, chunk=20)])
    rest = np.concatenate([rows for rows, _ in tiny.encode_chunks(texts[20:], chunk=20)])
    assert np.array_equal(whole[20:], rest)


def test_chunks_are_read_one_ahead_and_no_further(tiny):
    read = []

    def texts():
        for text in sentences(40):
            read.append(text)
            yield text

    chunks = tiny.encode_chunks(texts(), chunk=10)
    next(chunks)
    assert len(read) == 20
    chunks.close()


def test_an_error_in_the_source_of_texts_comes_through(tiny):
    def texts():
        yield from sentences(15)
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match="the disk is gone"):
        list(tiny.encode_chunks(texts(), chunk=10))


def test_long_texts_are_cut_at_the_window_and_counted(tiny, caplog):
    fits, long = " ".join(["dog"] * (POSITIONS - 2)), " ".join(["dog"] * POSITIONS)
    with caplog.at_level(logging.WARNING):
        found = tiny.encode([fits, long, "a cat"])
    assert np.array_equal(found[0], found[1])
    assert f"1 of 3 texts are longer than the {POSITIONS} tokens" in caplog.text
    ((_, counts),) = tiny.encode_chunks([fits, long, long, "a cat"])
    assert counts == Encoded(texts=4, distinct=3, tokens=2 * POSITIONS + 4, cut=2)


def test_the_model_says_how_long_a_text_may_be(tmp_path):
    made = tiny_encoder(tmp_path, max_length=6)
    encoder = Encoder.load(str(made), device="cpu", dtype="float32")
    assert encoder.max_length == 6
    assert np.array_equal(*encoder.encode(["a dog barks it is red", "a dog barks it"]))


def test_a_model_that_wants_lowercase_gets_it(tmp_path):
    plain = Encoder.load(str(tiny_encoder(tmp_path / "1")), device="cpu", dtype="float32")
    lower = Encoder.load(str(tiny_encoder(tmp_path / "2", do_lower_case=True)), device="cpu", dtype="float32")
    assert not np.allclose(*plain.encode(["The Dog", "the dog"]))
    assert np.allclose(*lower.encode(["The Dog", "the dog"]))


def test_odd_characters_are_texts_too(tiny):
    found = tiny.encode(["dog \ud800", "dog \ufffd", "\x00", "🐕", "dog\n"])
    assert np.array_equal(found[0], found[1]) and np.isfinite(found).all()


@pytest.mark.parametrize("texts", ["dog", [None], [3], ["dog", b"cat"]])
def test_what_is_no_text_is_refused(tiny, texts):
    with pytest.raises(UsageError, match="string"):
        tiny.encode(texts)


@pytest.mark.parametrize("wrong", [{"chunk": 0}, {"batch_tokens": 0}])
def test_sizes_below_one_are_refused(tiny, wrong):
    with pytest.raises(UsageError, match="at least 1"):
        list(tiny.encode_chunks(["dog"], **wrong))


def test_progress_tells_how_many_distinct_texts_are_done(tiny, monkeypatch):
    told = []
    tiny.encode(["a", "b", "a"], progress=lambda stage, done, total: told.append((done, total)))
    assert told == [(2, 2)]


def test_the_tokenizer_of_the_encoder_is_not_changed_by_encoding(tiny):
    tiny.encode(sentences(20))
    assert len(tiny.tokenizer(" ".join(["dog"] * 40), verbose=False)["input_ids"]) == 42


# -- batches ----------------------------------------------------------------


def test_batches_hold_every_text_once_in_order_of_length():
    rng = random.Random(5)
    tokens = [[7] * rng.randrange(0, 12) for _ in range(300)]
    seen, last = [], 0
    for batch in batches(tokens, least=20, most=60, padding=9):
        lengths = [len(tokens[row]) for row in batch.rows]
        assert batch.ids.size <= 60 and lengths == sorted(lengths) and lengths[0] >= last
        assert (batch.mask is None) == (len(set(lengths)) == 1)
        for row, length, ids in zip(batch.rows, lengths, batch.ids, strict=True):
            assert ids.tolist() == tokens[row] + [9] * (batch.ids.shape[1] - length)
        if batch.mask is not None:
            assert batch.mask.sum(1).tolist() == lengths
        last = lengths[-1]
        seen += batch.rows.tolist()
    assert sorted(seen) == [row for row, text in enumerate(tokens) if text]


def test_a_batch_ends_where_a_longer_text_follows_if_it_is_large_enough():
    tokens = [[1]] * 4 + [[1, 1]] * 4
    assert [len(batch.rows) for batch in batches(tokens, least=4, most=100, padding=0)] == [4, 4]
    assert [len(batch.rows) for batch in batches(tokens, least=5, most=100, padding=0)] == [8]


def test_a_text_that_is_larger_than_a_batch_is_a_batch():
    found = list(batches([[1] * 9, [1] * 8], least=1, most=4, padding=0))
    assert [batch.ids.shape for batch in found] == [(1, 8), (1, 9)]


# -- word pieces and fingerprints -------------------------------------------


def test_word_pieces_are_the_tokens_and_their_input_embeddings(tiny):
    pieces, table = tiny.word_pieces()
    assert pieces == PIECES and table.shape == (len(PIECES), WIDTH)
    weight = tiny.model.get_input_embeddings().weight
    assert np.array_equal(table, weight.detach().numpy())
    table[:] = 0
    assert weight.abs().sum() > 0


def test_a_fingerprint_tells_models_of_one_name_apart(tmp_path):
    made = tiny_encoder(tmp_path / "m")
    first = Encoder.load(str(made)).fingerprint
    assert Encoder.load(str(made)).fingerprint == first
    shutil.copytree(made, tmp_path / "copy")
    assert Encoder.load(str(tmp_path / "copy")).fingerprint == first
    tiny_encoder(made, seed=1)
    assert Encoder.load(str(made)).fingerprint != first
    tiny_encoder(made, pooling={"pooling_mode": "cls"})
    assert Encoder.load(str(made)).fingerprint != first


# -- names ------------------------------------------------------------------


def test_a_folder_is_found_by_its_path(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    for name in (str(folder), Path(folder.name), f"./{folder.name}"):
        assert find_model(name) == folder


def test_a_name_is_not_that_of_a_folder_in_the_current_directory(folder, tmp_path, monkeypatch):
    packaged = package(tmp_path, monkeypatch, "model") / "data" / "model"
    shutil.copytree(folder, tmp_path / "here" / "a_model")
    (tmp_path / "here" / "carries_a_model").mkdir()  # an empty one
    shutil.copytree(folder, tmp_path / "here" / "other")
    monkeypatch.chdir(tmp_path / "here")
    assert find_model("a_model") == find_model("carries_a_model") == packaged
    assert find_model("./a_model") == find_model(Path("a_model")) == tmp_path / "here" / "a_model"
    with pytest.raises(NotThere) as caught:
        find_model("other", offline=False)  # nor is the hub asked
    assert "./other" in str(caught.value)
    assert Encoder.load(Path("other"), device="cpu").name == "./other"


def test_a_folder_without_an_encoder_does_not_keep_the_hub_from_being_asked(tmp_path, monkeypatch):
    (tmp_path / "no-such-model").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotThere) as caught:
        find_model("no-such-model", offline=True)
    assert "./no-such-model" not in str(caught.value)


def package(tmp_path, monkeypatch, *models):
    root = tmp_path / "site" / "carries_a_model"
    root.mkdir(parents=True)
    (root / "__init__.py").write_text("raise RuntimeError('imported')")
    write(root / "config.json", {"colour": "red"})  # of something else
    for model in models:
        tiny_encoder(root / "data" / model, pooling={"pooling_mode": "mean"})
    info = tmp_path / "site" / "A_Model-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: A-Model\nVersion: 1\n")
    (info / "RECORD").write_text("carries_a_model/__init__.py,,\nA_Model-1.dist-info/METADATA,,\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return root


@pytest.mark.parametrize("name", ["carries_a_model", "carries-a-model", "A-Model", "a_model"])
def test_a_package_that_carries_a_model_is_found_without_being_imported(tmp_path, monkeypatch, name):
    root = package(tmp_path, monkeypatch, "deep/down")
    assert find_model(name) == root / "data" / "deep" / "down"
    assert "carries_a_model" not in sys.modules


def test_of_a_package_with_several_models_one_must_be_named(tmp_path, monkeypatch):
    package(tmp_path, monkeypatch, "one", "two")
    with pytest.raises(UsageError, match="2 models: name the folder"):
        find_model("carries_a_model")


def test_a_package_without_a_model_is_none():
    assert find_in_package("numpy") is None and find_in_package("no_such_package_at_all") is None


@pytest.mark.parametrize("name", ["bert-base-uncased", "nobody/nothing"])
def test_what_is_nowhere_says_what_was_tried_and_what_needs_no_network(name, monkeypatch):
    monkeypatch.setattr("kgkit.encoder.finding.find_in_package", lambda package: None)
    with pytest.raises(NotThere, match=r"cache.*gt-all"):
        find_model(name, offline=True)


def test_what_is_nowhere_names_the_encoder_that_is_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "kgkit.encoder.finding.find_in_package",
        lambda package: tmp_path if package.startswith("gt-") else None,
    )
    with pytest.raises(NotThere, match="is installed and needs no network: `--encoder gt-all") as caught:
        find_model("nobody/nothing", offline=True)
    assert "pip install" not in str(caught.value)


@pytest.mark.parametrize("name", ["/no/such/folder", "./no", "~/no-such-folder", "a/b/c"])
def test_what_looks_like_a_path_is_not_sought_elsewhere(name):
    with pytest.raises(NotThere, match="there is no such folder"):
        find_model(name)


def test_a_name_that_no_hub_can_have_is_not_asked_for():
    with pytest.raises(NotThere, match="cannot be a hub id"):
        find_model("two words")


def test_a_file_is_no_encoder(folder):
    with pytest.raises(NotThere, match="is a file"):
        find_model(str(folder / "config.json"))


@pytest.mark.parametrize("value, offline", [("1", True), ("true", True), ("0", False), ("", False)])
def test_the_variables_of_the_hub_are_obeyed(monkeypatch, value, offline):
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "")
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    assert is_offline() == offline


def hub_cache(tmp_path, name: str, folder):
    """Lay *folder* out as huggingface_hub keeps what it has fetched."""
    model = tmp_path / "hub" / f"models--{name.replace('/', '--')}"
    shutil.copytree(folder, model / "snapshots" / "abc123")
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text("abc123")
    return {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}


@pytest.mark.slow
def test_what_the_hub_gave_before_is_found_offline_and_nothing_is_said(tmp_path, folder, monkeypatch):
    for name, value in hub_cache(tmp_path, "some/bert", folder).items():
        monkeypatch.setenv(name, value)
    done = run_python(
        "from kgkit.encoder import Encoder; "
        "print(Encoder.load('some/bert', device='cpu').encode(['dog']).shape)"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"(1, {WIDTH})\n", "")


@pytest.fixture
def hub(monkeypatch):
    """The hub, as a function that is told what it shall answer."""
    import huggingface_hub

    def answers(what):
        def model_info(self, name, timeout):
            assert timeout <= 10
            raise what

        monkeypatch.setattr(huggingface_hub.HfApi, "model_info", model_info)

    return answers


def test_a_hub_that_cannot_be_reached_is_one_sentence(hub, monkeypatch):
    monkeypatch.setattr("kgkit.encoder.finding.find_in_package", lambda package: None)
    hub(ConnectionError("name resolution failed\nmany lines"))
    with pytest.raises(
        NotThere, match=r"the hub cannot be reached \(name resolution failed\); `pip install"
    ) as e:
        find_model("nobody/nothing", offline=False)
    assert "\n" not in str(e.value)


def test_a_bug_is_not_told_as_a_hub_that_cannot_be_reached(hub):
    hub(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        find_model("nobody/nothing", offline=False)


def test_what_is_not_in_the_cache_is_fetched(monkeypatch, folder):
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    asked = []

    class File:
        rfilename = "model.safetensors"

    class Info:
        siblings = (File,)

    def download(name, local_files_only=False, allow_patterns=None, **others):
        if local_files_only:
            raise LocalEntryNotFoundError("not there")
        asked.append((name, allow_patterns))
        return str(folder)

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda self, name, timeout: Info)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert find_model("some/bert", offline=False) == folder
    ((name, wanted),) = asked
    assert name == "some/bert" and "model*.safetensors" in wanted and "pytorch_model*.bin" not in wanted


# -- folders that lack something --------------------------------------------


def spoilt(tmp_path, folder, *lacking: str):
    made = tmp_path / "spoilt"
    shutil.copytree(folder, made)
    for name in lacking:
        (made / name).unlink()
    return str(made)


@pytest.mark.parametrize(
    "lacking, said",
    [
        (["config.json"], "is no encoder: it has no config.json"),
        (["model.safetensors"], "no weights: there is no model.safetensors"),
        (["tokenizer.json", "tokenizer_config.json"], "no tokenizer"),
    ],
)
def test_a_folder_says_what_it_lacks(tmp_path, folder, lacking, said):
    with pytest.raises(NotThere, match=said):
        Encoder.load(spoilt(tmp_path, folder, *lacking))


def test_a_tokenizer_that_is_slow_is_refused(folder, monkeypatch):
    import transformers

    monkeypatch.setattr(transformers.PreTrainedTokenizerFast, "is_fast", False)
    with pytest.raises(NotThere, match=r"no fast tokenizer.*save_pretrained"):
        Encoder.load(str(folder)).tokenizer  # noqa: B018


def test_weights_that_are_cut_off_are_told(tmp_path, folder):
    made = tmp_path / "cut"
    shutil.copytree(folder, made)
    weights = made / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(SourceError, match="cannot be loaded") as e:
        Encoder.load(str(made))
    assert e.value.path == weights


def test_weights_of_another_model_are_told(tmp_path, folder):
    made = tmp_path / "other"
    shutil.copytree(folder, made)
    config = json.loads((made / "config.json").read_text())
    write(made / "config.json", {**config, "num_hidden_layers": 3})
    with pytest.raises(SourceError, match=r"parameters of the model are not in it, as 'encoder\.layer\.2"):
        Encoder.load(str(made))


@pytest.mark.parametrize(
    "config, error", [("{", SourceError), ("[]", SourceError), ('{"colour": 1}', SourceError)]
)
def test_a_config_that_is_none_is_told(tmp_path, folder, config, error):
    made = tmp_path / "config"
    shutil.copytree(folder, made)
    (made / "config.json").write_text(config)
    with pytest.raises(error, match=r"config\.json"):
        Encoder.load(str(made))


def test_a_model_with_a_decoder_is_refused(tmp_path, folder):
    made = tmp_path / "both"
    shutil.copytree(folder, made)
    write(made / "config.json", {"model_type": "t5", "is_encoder_decoder": True})
    with pytest.raises(UsageError, match="takes encoders alone"):
        Encoder.load(str(made))


@pytest.mark.parametrize("config", [{"pooling_mode": ["mean", "max"]}, {"pooling_mode": "lasttoken"}])
def test_pooling_that_is_not_known_is_refused(tmp_path, config):
    made = tiny_encoder(tmp_path / "m", pooling=config)
    with pytest.raises(UsageError, match="kgkit knows mean, cls, max"):
        sentence_settings(made)


def test_a_step_that_is_not_known_is_refused(tmp_path):
    made = tiny_encoder(tmp_path / "m", pooling={"pooling_mode": "mean"})
    write(made / "modules.json", [{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}])
    with pytest.raises(UsageError, match="a step 'Dense'"):
        Encoder.load(str(made))


@pytest.mark.parametrize("device", ["tpux", "", "cuda:x", "meta"])
def test_what_is_no_device_is_refused(folder, device):
    with pytest.raises(UsageError, match="it is auto, cpu, cuda"):
        Encoder.load(str(folder), device=device)


def test_a_gpu_that_is_not_there_is_told(folder):
    with pytest.raises(UsageError, match=r"finds .* GPUs here: use --device auto or cpu"):
        Encoder.load(str(folder), device="cuda:99")


def test_a_dtype_that_is_not_known_is_refused(folder):
    with pytest.raises(UsageError, match="it is one of auto, float32, bfloat16"):
        Encoder.load(str(folder), dtype="int8")


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_a_missing_package_is_told_with_its_extra(folder, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra) as e:
        Encoder.load(str(folder), device="cuda")
    assert (e.value.package, e.value.extra) == (package, "train")


def test_what_reads_texts_is_told_where_nothing_does(folder, monkeypatch):
    for package in ("openvino", "torch"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra) as e:
        Encoder.load(str(folder))
    assert (e.value.package, e.value.extra) == ("openvino", "neural")


def test_importing_the_encoder_loads_no_torch():
    done = run_python(
        "import sys, kgkit.encoder; print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    assert done.stdout == "False False\n"


def test_every_error_of_loading_is_one_of_kgkits(tmp_path):
    for name in ("", ".", "..", "-", "a b", str(tmp_path), "\x00"):
        with pytest.raises(KgkitError):
            Encoder.load(name, offline=True)


# -- a real one -------------------------------------------------------------


def test_minilm_reads_256_tokens_and_says_what_is_alike(minilm):
    assert (minilm.width, minilm.max_length) == (384, 256)
    dog, cat, bank = minilm.encode(["a dog", "a puppy", "a bank takes money"])
    assert dog @ cat > 0.7 > 0.4 > dog @ bank


def test_minilm_gives_what_it_gives_a_text_at_a_time(minilm):
    texts = ["a dog", "", "the act of buying", "x" * 400, "人工智能", "a very long text " * 200]
    np.testing.assert_allclose(minilm.encode(texts), one_by_one(minilm, texts), atol=1e-5)


def test_minilm_in_bf16_keeps_a_cosine_of_999(minilm):
    texts = [
        "a dog",
        "",
        "the act of buying",
        "an animal of the genus Canis",
        "人工智能",
        "a long text " * 40,
    ]
    half = Encoder.load(MINILM, device="cpu", dtype="bfloat16").encode(texts)
    assert (half * minilm.encode(texts)).sum(1).min() > 0.999


def test_minilm_has_the_word_pieces_of_bert(minilm):
    pieces, table = minilm.word_pieces()
    assert table.shape == (30_522, 384) and len(pieces) == len(set(pieces)) == 30_522
    assert pieces[101] == "[CLS]" and pieces[minilm.tokenizer("dog")["input_ids"][1]] == "dog"


def test_a_device_that_is_not_here_is_refused_with_what_to_do():
    with pytest.raises(UsageError, match="use --device auto or cpu"):
        pick_device("cuda:99")
    with pytest.raises(UsageError, match="it is auto, cpu, cuda"):
        pick_device("abacus")
    assert pick_device("cpu").type == "cpu"
    assert pick_device("auto").type in ("cpu", "cuda")


def test_models_loaded_by_two_threads_leave_transformers_as_it_was(folder):
    from transformers import PreTrainedModel

    tie_weights = PreTrainedModel.tie_weights
    with ThreadPoolExecutor(4) as threads:
        models = threads.map(lambda _: load_as(folder, "AutoModelForMaskedLM", "cpu")[0], range(24))
        assert all(model.get_output_embeddings().weight.device.type == "cpu" for model in models)
    assert PreTrainedModel.tie_weights is tie_weights


def test_an_encoder_is_saved_with_its_settings_after_its_folder_has_gone(tmp_path):
    """A model that a training begins as may be trained anew meanwhile."""
    folder = tiny_encoder(tmp_path / "old", pooling={"pooling_mode": "cls"}, max_length=7)
    encoder = Encoder.load(str(folder), device="cpu")
    assert encoder.model is not None
    shutil.rmtree(folder)
    encoder.save(tmp_path / "new")
    again = Encoder.load(str(tmp_path / "new"), device="cpu")
    assert (again.settings, again.max_length) == (encoder.settings, 7)


def test_an_encoder_behind_a_link_is_that_of_the_folder_it_led_to(tmp_path):
    folder = tiny_encoder(tmp_path / "one")
    link = tmp_path / "current"
    link.symlink_to(folder)
    encoder = Encoder.load(str(link), device="cpu")
    link.unlink()
    assert (encoder.name, encoder.folder) == (str(link), folder)
    assert encoder.fingerprint == Encoder.load(str(folder), device="cpu").fingerprint
