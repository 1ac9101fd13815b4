"""Folders of models that somebody else has written: no program of theirs runs, and nothing is read for it."""

import ast
import io
import json
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("safetensors")

import kgkit  # noqa: E402
from kgkit.encoder import Encoder  # noqa: E402
from kgkit.encoder.loading import load_as, load_tokenizer  # noqa: E402
from kgkit.errors import KgkitError, UsageError  # noqa: E402
from kgkit.heads import EBert, KBert, KnowBert, WordTagger, WordTaggerConfig  # noqa: E402
from tests.cli_helpers import process  # noqa: E402
from tests.model_folders import tagger_folder  # noqa: E402
from tests.tiny_encoder import tiny_encoder, write  # noqa: E402

PROGRAM = """
from pathlib import Path
Path(__file__).with_name("RAN").touch()
Path({marker!r}).touch()
from transformers import BertConfig as Config, BertModel as Model, BertTokenizerFast as Tokenizer
"""
CODE = {"AutoConfig": "program.Config", "AutoModel": "program.Model"}
CALLS = ("from_pretrained", "from_config", "_from_config")


def with_a_program(encoder: Path, marker: Path, file: str = "config.json") -> None:
    """Let the folder of an encoder say that a program in it is to be run, which leaves *marker*."""
    path = encoder / file
    told = json.loads(path.read_text())
    if file == "config.json":
        told |= {"model_type": "program", "auto_map": CODE}
    else:
        told |= {
            "tokenizer_class": "ProgramTokenizer",
            "auto_map": {"AutoTokenizer": [None, "program.Tokenizer"]},
        }
    write(path, told)
    (encoder / "program.py").write_text(PROGRAM.format(marker=str(marker)))


@pytest.fixture
def answering(monkeypatch, tmp_path):
    """Standard input says yes to whatever is asked; modules that are copied to be run go to *tmp_path*."""
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    answers = io.StringIO("y\nyes\n")
    monkeypatch.setattr(sys, "stdin", answers)
    return answers


def kbert(folder):
    KBert(Encoder.load(str(tiny_encoder(folder / "plain")), device="cpu").model).save_pretrained(
        folder / "head"
    )
    return folder / "head" / "encoder", lambda **as_model: KBert.from_pretrained(
        folder / "head", device="cpu", **as_model
    )


def ebert(folder):
    plain = Encoder.load(str(tiny_encoder(folder / "plain")), device="cpu")
    EBert(plain.model).save_pretrained(folder / "head")
    return folder / "head" / "encoder", lambda **as_model: EBert.from_pretrained(
        folder / "head", device="cpu", **as_model
    )


def knowbert(folder):
    plain = Encoder.load(str(tiny_encoder(folder / "plain")), device="cpu")
    KnowBert(plain.model, {}).save_pretrained(folder / "head")
    return folder / "head" / "encoder", lambda: KnowBert.from_pretrained(
        folder / "head", device="cpu", model="AutoModel"
    )


def tagger(folder):
    plain = Encoder.load(str(tiny_encoder(folder / "plain")), device="cpu")
    WordTagger(plain, WordTaggerConfig(types=("PER",))).save_pretrained(folder / "head")
    return folder / "head" / "encoder", lambda: WordTagger.from_pretrained(folder / "head", device="cpu")


def bare(folder):
    encoder = tiny_encoder(folder / "bare")
    return encoder, lambda: Encoder.load(str(encoder), device="cpu")


def around(folder):
    encoder = tiny_encoder(folder / "bare", mask=True)
    return encoder, lambda: load_as(encoder, "AutoModelForMaskedLM", "cpu")


def tokens(folder):
    encoder = tiny_encoder(folder / "bare")
    return encoder, lambda: load_tokenizer(encoder)


@pytest.mark.parametrize(
    "made", [bare, around, tokens, tagger, ebert, kbert, knowbert], ids=lambda maker: maker.__name__
)
def test_a_program_in_the_folder_of_an_encoder_is_not_run_and_nobody_is_asked(made, answering, tmp_path):
    encoder, opened = made(tmp_path)
    with_a_program(encoder, tmp_path / "RAN")
    if made is tokens:
        with_a_program(encoder, tmp_path / "RAN", "tokenizer_config.json")
    asked = {"model": "AutoModel"} if made in (ebert, kbert) else {}
    with pytest.raises(UsageError, match=r"needs a program of its own.*runs no program that comes with"):
        opened(**asked)
    assert not (tmp_path / "RAN").exists()
    assert answering.read() == "y\nyes\n"


@pytest.mark.slow
def test_the_texts_on_standard_input_are_no_answer_to_a_question(tmp_path):
    folder = tagger_folder(tmp_path / "model")
    with_a_program(folder / "head" / "encoder", tmp_path / "RAN")
    done = process(
        "tag", "--model", folder, given=b"y\nThe dog barks.\n",
        HF_MODULES_CACHE=str(tmp_path / "modules"), HF_HUB_OFFLINE="1",
    )  # fmt: skip
    assert done.code == 2 and "needs a program of its own" in done.err and "[y/N]" not in done.err + done.out
    assert len(done.err.splitlines()) == 1
    assert not (tmp_path / "RAN").exists()


@pytest.mark.parametrize(
    "name", ["pipeline", "AutoTokenizer", "__name__", "models", "BertTokenizer", "Trainer"]
)
def test_a_class_that_is_none_of_models_is_refused(tmp_path, name):
    _, opened = kbert(tmp_path)
    config = tmp_path / "head" / "config.json"
    write(config, json.loads(config.read_text()) | {"model": name})
    with pytest.raises(KgkitError, match=f"stands in a {name}, which transformers lacks"):
        opened()


def sources():
    [root] = kgkit.__path__
    folders = (Path(root), Path(root).parent / "kb_builders", Path(root).parent / "benchmarks")
    return [path for folder in folders for path in sorted(folder.rglob("*.py"))]


def own_classes() -> set[str]:
    """Return the names of kgkit's own classes that have a `from_pretrained`, or inherit one of ours."""
    [root] = kgkit.__path__
    trees = [ast.parse(path.read_text("utf-8")) for path in sorted(Path(root).rglob("*.py"))]
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    own = {
        node.name
        for node in classes
        if any(isinstance(part, ast.FunctionDef) and part.name == "from_pretrained" for part in node.body)
    }
    while heirs := {
        node.name
        for node in classes
        if node.name not in own and any(isinstance(base, ast.Name) and base.id in own for base in node.bases)
    }:
        own |= heirs
    return own


def asks_transformers(call: ast.Call, own: set[str]) -> bool:
    """Say whether a call is one that lets transformers load something."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in CALLS
    if not isinstance(function, ast.Attribute) or function.attr not in CALLS:
        return False
    if isinstance(function.value, ast.Call):
        return not (isinstance(function.value.func, ast.Name) and function.value.func.id == "super")
    return not (isinstance(function.value, ast.Name) and function.value.id in own)


@pytest.mark.slow
def test_wherever_transformers_loads_something_it_is_told_to_run_no_program():
    own, seen = own_classes(), 0
    assert {"KBert", "KnowBert", "WordTagger", "Classifier", "EntityLinker"} <= own
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "trust_remote_code":
                assert isinstance(node.value, ast.Constant) and node.value.value is False, (path, node.lineno)
            if isinstance(node, ast.Call) and asks_transformers(node, own):
                seen += 1
                assert any(keyword.arg == "trust_remote_code" for keyword in node.keywords), (
                    f"{path}:{node.lineno}"
                )
            if isinstance(node, ast.Constant) and node.value in CALLS:  # getattr(model, "from_pretrained")
                raise AssertionError(f"{path}:{node.lineno} names {node.value!r} where it cannot be checked")
    assert seen >= 2  # encoders and tokenizers
