"""Lean imports: what is left out, that nothing else changes by it, and that it is there when asked for."""

import gc

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from kgkit.encoder import Encoder  # noqa: E402
from kgkit.encoder.import_stubs import lean_imports  # noqa: E402
from kgkit.encoder.loading import _CLASSES  # noqa: E402
from tests.tiny_encoder import tiny_encoder  # noqa: E402
from tests.toys import run_python  # noqa: E402

TEXTS = ["a dog barks", "the cat", "an apple tree grows in a small city"]

LEAN = """
import gc, sys
import torch
from kgkit.encoder import Encoder
from kgkit.encoder.import_stubs import only_encodes
only_encodes()
torch.set_num_threads(1)
encoder = Encoder.load(sys.argv[1], device="cpu", dtype="float32")
torch.save(encoder.model.state_dict(), sys.argv[2])
print(encoder.encode(TEXTS).tobytes().hex())
print(sorted({"torch._dynamo", "torch.distributed.tensor", "scipy.optimize"} & sys.modules.keys()))
assert gc.isenabled()
import torch, torch._dynamo, torch.distributed
assert torch.distributed.is_available()
from torch.distributed.tensor import DTensor
assert torch._dynamo.config.cache_size_limit and torch._dynamo.__file__
from transformers.masking_utils import TransformGetItemToIndex
with TransformGetItemToIndex():
    pass
try:
    import scipy
except ImportError:
    pass
else:
    from transformers.loss.loss_for_object_detection import linear_sum_assignment
    assert linear_sum_assignment([[1, 0], [0, 1]])[1].tolist() == [1, 0]
    import scipy.optimize._minimize
"""

BEFORE = """
import sys
from kgkit.encoder import import_stubs as lean
lean.only_encodes()
import torch
with lean.lean_imports():
    assert isinstance(sys.modules["torch._dynamo"], lean._StandIn)
    import torch._dynamo.config
    assert not isinstance(sys.modules.get("torch._dynamo"), lean._StandIn)
assert not any(isinstance(module, lean._StandIn) for module in sys.modules.values())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("tiny"))


def said(code, *arguments):
    done = run_python(code, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def assert_equal(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert tensor.dtype == theirs[name].dtype and torch.equal(tensor, theirs[name]), name


@pytest.mark.slow
def test_a_process_that_only_encodes_has_equal_weights_and_imports_the_compiler_when_it_is_asked_for(
    folder, tmp_path
):
    vectors, imported = said(LEAN.replace("TEXTS", repr(TEXTS)), folder, tmp_path / "weights")
    assert imported == "[]"
    usual = Encoder.load(str(folder), device="cpu", dtype="float32")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert usual.encode(TEXTS).tobytes().hex() == vectors
    finally:
        torch.set_num_threads(threads)
    assert_equal(torch.load(tmp_path / "weights"), usual.model.state_dict())


@pytest.mark.slow
def test_a_stand_in_gives_way_when_anything_else_is_asked_of_it():
    said(BEFORE)


def test_the_garbage_collector_is_as_it_was_before():
    for collects in (True, False):
        (gc.enable if collects else gc.disable)()
        try:
            with lean_imports():
                assert not gc.isenabled()
            assert gc.isenabled() is collects
        finally:
            gc.enable()


def test_classes_are_those_that_transformers_would_find():
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    assert {kind: MODEL_MAPPING_NAMES[kind] for kind in _CLASSES} == _CLASSES


def test_weights_are_equal_to_the_bit_to_what_transformers_loads(folder):
    theirs = transformers.AutoModel.from_pretrained(folder, local_files_only=True, dtype="float32")
    ours = Encoder.load(str(folder), device="cpu").model
    assert type(ours) is type(theirs) and not ours.training
    assert_equal(ours.state_dict(), theirs.state_dict())
