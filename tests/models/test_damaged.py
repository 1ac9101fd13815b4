"""Folders of models whose files ask for the impossible: refused in one sentence, before memory is taken."""

import json
import os
import resource
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("safetensors")

from safetensors.torch import load_file, save_file  # noqa: E402

import kgkit  # noqa: E402
from kgkit.encoder import Encoder  # noqa: E402
from kgkit.encoder.folder import sentence_settings, weight_files  # noqa: E402
from kgkit.errors import DamagedModel, KgkitError, SourceError  # noqa: E402
from kgkit.heads import (  # noqa: E402
    KAR,
    Classifier,
    ClassifierConfig,
    EBert,
    EBertConfig,
    EntityLinker,
    EntityLinkerConfig,
    KARConfig,
    KBert,
    KnowBert,
    WordTagger,
    WordTaggerConfig,
)
from kgkit.linking.ridge import RidgeArrays  # noqa: E402
from kgkit.methods.ebert_settings import EBERT  # noqa: E402
from kgkit.methods.kbert_settings import KBERT  # noqa: E402
from kgkit.methods.knowbert_settings import KNOWBERT  # noqa: E402
from kgkit.models.arrays import read_archive, read_array  # noqa: E402
from kgkit.models.kinds import TAGGER  # noqa: E402
from kgkit.models.manifest import MANIFEST, ModelManifest, check_sizes, read_header  # noqa: E402
from kgkit.tagging.tagger import Tagger  # noqa: E402
from tests.model_folders import tagger_folder  # noqa: E402
from tests.tiny_encoder import WIDTH, tiny_encoder, write  # noqa: E402

HUGE = 10**12
NO_JSON = {
    "deep": b'{"a":' * 100_000,
    "deep list": b"[" * 100_000,
    "closed": b"[" * 100_000 + b"]" * 100_000,
    "no text": b'{"name": "\xff\xfe"}',
    "empty": b"",
    "a list": b"[]",
    "a long number": b'{"format": ' + b"9" * 10_000 + b"}",
}
LINKER = EntityLinkerConfig(hidden=WIDTH, width=8, stored=12, heads=2, inner=12, scorer=5, null=True)


@pytest.fixture(autouse=True)
def _little_memory():
    """Leave a gigabyte beside what is in use: asking for more is a MemoryError, which is no KgkitError."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("tiny"))


def saved(kind, encoder, folder):
    """Write a head into *folder*, and return what reads it."""
    read = Encoder.load(str(encoder), device="cpu")
    kar = KARConfig(linker=LINKER, layer=1, heads=2, inner=12)
    made = {
        "classifier": lambda: Classifier(ClassifierConfig(hidden=WIDTH, labels=("a", "b"))),
        "linker": lambda: EntityLinker(LINKER),
        "tagger": lambda: WordTagger(read, WordTaggerConfig(types=("PER",), shapes=4)),
        "kbert": lambda: KBert(read.model),
        "knowbert": lambda: KnowBert(read.model, {"words": kar}),
        "ebert": lambda: EBert(read.model, EBertConfig(stored=8, width=WIDTH), torch.zeros(WIDTH, 8)),
    }[kind]()
    made.save_pretrained(folder)
    return lambda: type(made).from_pretrained(folder, device="cpu")


HEADS = ("classifier", "linker", "tagger", "kbert", "knowbert", "ebert")


def numbers_in(settings, path=()):
    """Yield where each whole number of nested settings stands."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from numbers_in(value, (*path, name))
        elif isinstance(value, int) and not isinstance(value, bool):
            yield (*path, name)


def changed(settings, place, value):
    name, *rest = place
    return {**settings, name: changed(settings[name], rest, value) if rest else value}


@pytest.mark.parametrize("content", NO_JSON.values(), ids=NO_JSON)
@pytest.mark.parametrize("reads", [read_header, TAGGER.read, KNOWBERT.read, KBERT.read, EBERT.read])
def test_a_manifest_that_cannot_be_read_is_damage_whatever_the_kind(reads, content, tmp_path):
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(DamagedModel, match=r"model\.json cannot be read.*train it again"):
        reads(tmp_path)


@pytest.mark.parametrize("kind", HEADS)
def test_settings_of_a_head_that_cannot_be_read_are_damage(kind, encoder, tmp_path):
    opened = saved(kind, encoder, tmp_path / "head")
    for content in NO_JSON.values():
        (tmp_path / "head" / "config.json").write_bytes(content)
        with pytest.raises(KgkitError, match=r"config\.json"):
            opened()


@pytest.mark.parametrize("kind", [kind for kind in HEADS if kind != "kbert"])  # it has no numbers
def test_a_head_that_is_larger_than_its_weights_is_damage_before_room_is_made(kind, encoder, tmp_path):
    opened = saved(kind, encoder, tmp_path / "head")
    path = tmp_path / "head" / "config.json"
    whole = json.loads(path.read_text())
    heads = {"layer", "heads"}  # these ask for no room
    places = [place for place in numbers_in(whole) if place[-1] not in heads]
    assert places
    for place in places:
        for size in (HUGE, 10**6, 10**30):
            write(path, changed(whole, place, size))
            with pytest.raises(DamagedModel, match=r"cannot be loaded|is no configuration"):
                opened()
    write(path, whole)
    assert opened()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
@pytest.mark.parametrize("kind", HEADS)
def test_a_weight_that_is_not_finite_is_damage_in_a_head_and_in_its_encoder(kind, number, encoder, tmp_path):
    opened = saved(kind, encoder, tmp_path / "head")
    paths = sorted((tmp_path / "head").rglob("model.safetensors"))
    assert len(paths) == (1 if kind in ("classifier", "linker") else 2)
    for path in paths:
        whole = load_file(path)
        for name in list(whole)[:3]:  # of an encoder without weights of its own there is none
            wrong = whole[name].clone()
            wrong.view(-1)[-1] = number
            save_file({**whole, name: wrong}, path, metadata={"format": "pt"})
            with pytest.raises((DamagedModel, SourceError), match=rf"{name}\b.* not finite"):
                opened()
        save_file(whole, path, metadata={"format": "pt"})
    assert opened()


@pytest.mark.parametrize("dtype", [torch.complex64, torch.int64, torch.bool, torch.uint8])
@pytest.mark.parametrize("kind", [kind for kind in HEADS if kind != "kbert"])  # it has no weights of its own
def test_weights_that_are_no_floating_point_numbers_are_damage(kind, dtype, encoder, tmp_path):
    opened = saved(kind, encoder, tmp_path / "head")
    path = tmp_path / "head" / "model.safetensors"
    whole = load_file(path)
    for name in [*whole][:4]:
        save_file({**whole, name: whole[name].to(dtype)}, path)
        with pytest.raises(DamagedModel, match=name):
            opened()
    save_file({name: weight.to(torch.float8_e5m2) for name, weight in whole.items()}, path)
    with pytest.raises(DamagedModel, match="float8_e5m2"):
        opened()
    for precision in (torch.float16, torch.bfloat16, torch.float64):
        save_file({name: weight.to(precision) for name, weight in whole.items()}, path)
        assert opened()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bare", "tagger", "kbert", "knowbert"])
def test_an_encoder_that_is_larger_than_its_weights_is_refused_before_room_is_made(kind, encoder, tmp_path):
    if kind == "bare":
        folder = tiny_encoder(tmp_path / "encoder")

        def opened():
            return Encoder.load(str(folder), device="cpu")
    else:
        opened, folder = saved(kind, encoder, tmp_path / "head"), tmp_path / "head" / "encoder"
    whole = json.loads((folder / "config.json").read_text())
    sizes = ("hidden_size", "vocab_size", "intermediate_size", "max_position_embeddings", "type_vocab_size")
    for name in (*sizes, "num_hidden_layers", "num_attention_heads", "num_labels"):
        for size in (10**9, HUGE, 10**30):
            write(folder / "config.json", whole | {name: size})
            with pytest.raises((DamagedModel, SourceError)) as caught:
                opened()
            if size < HUGE and name != "num_attention_heads":
                assert "asks for a model of" in str(caught.value) or "expected 0 to 65,536" in str(
                    caught.value
                )
            assert "MemoryError" not in str(caught.value)
    for content in NO_JSON.values():
        (folder / "config.json").write_bytes(content)
        with pytest.raises(KgkitError):
            opened()


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "tokenizer_config.json", "modules.json",
                                  "sentence_bert_config.json", "1_Pooling/config.json"])  # fmt: skip
def test_no_file_in_the_folder_of_an_encoder_ends_in_a_traceback(file, tmp_path):
    folder = tiny_encoder(tmp_path, pooling={"pooling_mode": "mean"}, max_length=8)
    for content in (*NO_JSON.values(), b"7", b'{"pooling_mode": 7}', b'[{"type": "x.Pooling", "path": 3}]'):
        (folder / file).write_bytes(content)
        try:
            Encoder.load(str(folder), device="cpu")
        except KgkitError:
            continue
    if "Pooling" in file:
        with pytest.raises(KgkitError):
            sentence_settings(folder)


@pytest.mark.parametrize("shards", [["a"], {"a": 1}, "a", {"a": ["b"]}])
def test_an_index_of_shards_that_names_no_files_is_refused(shards, tmp_path):
    write(tmp_path / "model.safetensors.index.json", {"weight_map": shards})
    with pytest.raises(SourceError, match="names no files"):
        weight_files(tmp_path)


def header_of(shape, kind="<f4"):
    """Return a `.npy` file of so many numbers, with a few bytes of them."""
    stream = BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})
    return stream.getvalue() + b"\0" * 64


NO_ARRAYS = [
    header_of((HUGE,)), header_of((HUGE, HUGE)), header_of((2**62, 4)), header_of((4, 4), "|O"),
    header_of((4,), "<U4"), b"", b"\x93NUMPY", b"text", header_of((4,))[:-60],
    b"\x93NUMPY\x01\x00\xff\x1f" + b"(" * 8191, b"\x80\x04]",
]  # fmt: skip


@pytest.mark.parametrize("content", NO_ARRAYS, ids=range(len(NO_ARRAYS)))
def test_an_array_that_is_longer_than_its_file_is_damage(content, tmp_path):
    (tmp_path / "mean.npy").write_bytes(content)
    with pytest.raises(DamagedModel, match=r"mean\.npy is no array of numbers"):
        read_array(tmp_path / "mean.npy")
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(tmp_path / "x.npz", "w", compression) as archive:
            archive.writestr("mean 0.npy", content)
        with pytest.raises(DamagedModel, match=r"x\.npz"):
            read_archive(tmp_path / "x.npz")


@pytest.mark.parametrize("file", ["words.txt", "inner/model.npy"])
def test_a_pipe_or_a_device_in_the_folder_of_a_model_is_refused_and_not_waited_for(file, tmp_path):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    (tmp_path / MANIFEST).touch()
    os.mkfifo(path)
    header = ModelManifest(format=1, kind="pmi", name="x")
    for _ in range(2):
        with pytest.raises(DamagedModel, match=rf"{path.name} is a device or a pipe, or a link to one; exp"):
            check_sizes(tmp_path, header)
        path.unlink()
        path.symlink_to("/dev/zero")
    path.unlink()
    check_sizes(tmp_path, header)


def test_archives_are_read_as_numpy_reads_them(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b 0": np.asfortranarray(np.eye(3, 2, dtype=np.float32)),
              "c": np.zeros((0, 4)), "d": np.array(3)}  # fmt: skip
    np.savez(tmp_path / "x.npz", **arrays)
    found = read_archive(tmp_path / "x.npz")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype and found[name].shape == array.shape


def ridge_arrays():
    meanings = np.arange(3, dtype=np.uint32)
    return RidgeArrays(
        meanings, np.zeros((3, 8), np.float16), np.ones(3, np.float32), np.zeros((5, 8), np.float32),
        np.zeros(8, np.float32), np.zeros(4, np.float32), np.zeros(4, np.float32),
    )  # fmt: skip


def test_arrays_that_do_not_fit_each_other_are_damage(tmp_path):
    arrays = ridge_arrays()
    for name in arrays._fields:
        arrays.save(tmp_path)
        assert RidgeArrays.load(tmp_path)._fields == arrays._fields
        for other in (np.zeros((2, 2), np.float32), np.zeros(9, np.float32), np.float32(1)):
            np.save(tmp_path / f"{name}.npy", other)
            with pytest.raises(DamagedModel):
                RidgeArrays.load(tmp_path)
        (tmp_path / f"{name}.npy").write_bytes(header_of((HUGE,)))
        with pytest.raises(DamagedModel, match="is no array of numbers"):
            RidgeArrays.load(tmp_path)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 3e38])
def test_numbers_that_are_not_finite_or_too_large_to_be_summed_are_damage(number, tmp_path):
    arrays = ridge_arrays()
    for name in arrays._fields[1:]:
        whole = getattr(arrays, name)
        if whole.dtype == np.float16 and number == 3e38:
            continue  # it has no such number
        wrong = whole.copy()
        wrong.reshape(-1)[-1] = number
        arrays._replace(**{name: wrong}).save(tmp_path)
        with pytest.raises(DamagedModel, match=rf"{name}\.npy has numbers that are not finite, or above"):
            RidgeArrays.load(tmp_path)
        for other in (-whole, whole.astype(whole.dtype.newbyteorder())):
            arrays._replace(**{name: other}).save(tmp_path)
            assert RidgeArrays.load(tmp_path)
    np.savez(tmp_path / "x.npz", **{"mean 0": np.zeros(3), "deviation 0": np.full(3, number)})
    with pytest.raises(DamagedModel, match=r"'deviation 0' in x\.npz"):
        read_archive(tmp_path / "x.npz")


def test_meanings_out_of_order_are_damage_as_none_would_be_looked_up(tmp_path):
    arrays = ridge_arrays()
    for wrong in (arrays.meanings[::-1], arrays.meanings * 0):
        arrays._replace(meanings=wrong).save(tmp_path)
        with pytest.raises(DamagedModel, match=r"meanings\.npy is not in ascending order"):
            RidgeArrays.load(tmp_path)


@pytest.mark.parametrize("value", [10**30, "\ud800"])
@pytest.mark.parametrize("kind", [kind for kind in HEADS if kind != "kbert"])
def test_what_libraries_say_of_settings_is_told_in_one_line(kind, value, encoder, tmp_path):
    opened = saved(kind, encoder, tmp_path / "head")
    path = tmp_path / "head" / "config.json"
    whole = json.loads(path.read_text())
    for place in numbers_in(whole):
        write(path, changed(whole, place, value))
        with pytest.raises(KgkitError) as caught:
            opened()
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


def test_a_tagger_is_refused_for_whatever_in_its_folder_makes_no_sense(tmp_path):
    folder = tagger_folder(tmp_path / "model")
    assert list(Tagger.open(str(folder), device="cpu")(["a dog"]))
    manifest = json.loads((folder / MANIFEST).read_text())
    for reader in ({"size": "x"}, {"size": -1}, {"context": -1}):
        write(folder / MANIFEST, manifest | {"reader": reader})
        with pytest.raises(DamagedModel, match=r"a setting in model\.json"):
            Tagger.open(str(folder), device="cpu")


@pytest.mark.parametrize("most", [-1, 0, "x", [], {}, None])
def test_a_tokenizer_whose_limit_is_no_number_of_tokens_is_refused(most, tmp_path):
    folder = tiny_encoder(tmp_path / "encoder")
    config = folder / "tokenizer_config.json"
    write(config, json.loads(config.read_text()) | {"model_max_length": most})
    try:
        encoder = Encoder.load(str(folder), device="cpu")
    except KgkitError as refused:
        assert "model_max_length" in str(refused)
    else:
        assert most is None and encoder.window > 1


def test_the_layer_of_a_knowledge_base_has_its_shapes_without_numbers():
    config = KARConfig(linker=LINKER, layer=1, heads=2, inner=12)
    with torch.device("meta"):
        shapes = {name: weight.shape for name, weight in KAR(config).state_dict().items()}
    assert shapes == {name: weight.shape for name, weight in KAR(config).state_dict().items()}


PROCESSORS = {
    "bert": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", HUGE // 1000]},
    "roberta": {"type": "RobertaProcessing", "sep": ["[SEP]", 10_000], "cls": ["[CLS]", 2],
                "trim_offsets": True, "add_prefix_space": True},
    "pairs": {
        "type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
                 {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"[SEP]": {"id": "[SEP]", "ids": [5_000], "tokens": ["[SEP]"]}},
    },
    "types": {
        "type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 7}}],
        "special_tokens": {},
    },
}  # fmt: skip
"""Post-processors that give ids, or types, that a tiny encoder has not."""
PROCESSORS["in a sequence"] = {"type": "Sequence", "processors": [PROCESSORS["bert"]]}


@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_post_processor_that_gives_ids_beyond_the_vocabulary_is_damage(processor, tmp_path):
    folder = tagger_folder(tmp_path / "model")
    [path] = folder.rglob("tokenizer.json")
    settings = json.loads(path.read_bytes())
    path.write_text(json.dumps({**settings, "post_processor": PROCESSORS[processor]}))
    manifest = json.loads((folder / MANIFEST).read_bytes())
    manifest["sizes"][str(path.relative_to(folder))] = path.stat().st_size
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(SourceError) as caught:
        Encoder.load(str(path.parent), device="cpu")
    assert caught.value.path == path.resolve()
    with pytest.raises(DamagedModel):
        kgkit.open_model(folder, "tagger", home=tmp_path, device="cpu")


@pytest.mark.parametrize("number", [200, HUGE // 1000])
def test_an_added_piece_beyond_the_vocabulary_is_damage(number, tmp_path):
    path = tiny_encoder(tmp_path / "encoder") / "tokenizer.json"
    settings = json.loads(path.read_bytes())
    settings["added_tokens"].append({**settings["added_tokens"][0], "id": number, "content": "[NEW]"})
    path.write_text(json.dumps(settings))
    with pytest.raises(KgkitError):
        Encoder.load(str(path.parent), device="cpu")
