"""A run of TuckER that is killed, and one that goes on where it stopped: the same numbers, bit for bit."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pykeen")

import kgkit  # noqa: E402
from kgkit.embedding.tucker import embed_tucker  # noqa: E402
from kgkit.embedding.tucker.config import TuckERConfig  # noqa: E402
from kgkit.embedding.tucker.watch import Watch  # noqa: E402
from tests.graph_toys import ring_kb  # noqa: E402
from tests.toys import REPOSITORY  # noqa: E402

# Everything that has a state: dropout draws from torch, the scheduler counts, Adagrad and Adam remember.
SETTINGS = TuckERConfig(
    dim=8, relation_dim=4, epochs=6, batch_size=16, negatives=6, held_out=0.1, device="cpu", half=False,
    hidden_dropout=0.3, input_dropout=0.2, lr_decay=0.9, checkpoint_seconds=0.0, patience=0,
)  # fmt: skip


class Stopped(Exception):
    """The run is over, for whatever reason."""


def stop_at(step):
    """Return a progress callback that ends the run after *step* steps."""

    def progress(stage, done, of):
        if done == step:
            raise Stopped

    return progress


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ring")
    ring_kb(folder, 30).close()
    return folder


@pytest.fixture
def kb(home):
    with kgkit.open_kb("small", home=home) as opened:
        yield opened


@pytest.fixture(scope="module")
def undisturbed(home):
    with kgkit.open_kb("small", home=home) as kb:
        return embed_tucker(kb, replace(SETTINGS, name="whole"))


def without_seconds(vectors):
    lines = map(json.loads, (vectors.folder / "curve.jsonl").read_text().splitlines())
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def same(one, other):
    files = [np.array_equal(one.matrix, other.matrix)]
    files.append(
        (one.folder / "rest.safetensors").read_bytes() == (other.folder / "rest.safetensors").read_bytes()
    )
    return all(files)


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 6, 7, 20, 35])  # six steps an epoch: within one, at its end, in the last
def test_a_run_that_is_stopped_and_goes_on_makes_what_one_in_one_go_makes(kb, undisturbed, step):
    with pytest.raises(Stopped):
        embed_tucker(kb, replace(SETTINGS, name=f"cut{step}"), progress=stop_at(step))
    assert same(embed_tucker(kb, replace(SETTINGS, name=f"cut{step}")), undisturbed)


def test_a_run_may_be_stopped_many_times(kb, undisturbed):
    for step in (3, 9, 10, 22):
        with pytest.raises(Stopped):
            embed_tucker(kb, replace(SETTINGS, name="often"), progress=stop_at(step))
    vectors = embed_tucker(kb, replace(SETTINGS, name="often"))
    assert same(vectors, undisturbed)
    assert without_seconds(vectors) == without_seconds(undisturbed)


def ranked(monkeypatch, *scores):
    """Let the next epochs rank so, whatever the model."""
    found = iter(scores)
    monkeypatch.setattr("kgkit.embedding.tucker.watch.ranks", lambda *_: np.array([1 / next(found)]))


@pytest.fixture
def behind(monkeypatch):
    """Return what ends a run in its third epoch, with a checkpoint from the second: before it was ranked."""
    save = Watch.save
    monkeypatch.setattr(Watch, "save", lambda self: save(self) if self.training_loop._epoch == 1 else None)
    return stop_at(14)


def test_the_state_of_a_ranking_behind_the_checkpoint_is_not_taken_for_the_best_before(
    kb, monkeypatch, behind
):
    ranked(monkeypatch, 0.1, 0.9, 0.1, 0.1, 0.1, 0.1)
    second = embed_tucker(kb, replace(SETTINGS, name="second"))
    ranked(monkeypatch, 0.5, 0.9)
    with pytest.raises(Stopped):
        embed_tucker(kb, replace(SETTINGS, name="behind"), progress=behind)
    ranked(monkeypatch, 0.2, 0.1, 0.1, 0.1, 0.1)  # as on a GPU: the second epoch is not what it was
    found = embed_tucker(kb, replace(SETTINGS, name="behind"))
    assert (found.manifest.results["epoch"], found.manifest.results["mrr"]) == (2, 0.2)
    assert same(found, second)


def test_a_best_that_is_forgotten_buys_no_more_time(kb, monkeypatch, behind):
    settings = replace(SETTINGS, patience=3, min_gain=0.01, name="no-more")
    ranked(monkeypatch, 0.5, 0.505)
    with pytest.raises(Stopped):
        embed_tucker(kb, settings, progress=behind)
    ranked(monkeypatch, 0.505, 0.4, 0.4, 0.4, 0.4)
    results = embed_tucker(kb, settings).manifest.results
    assert (results["epochs"], results["epoch"]) == (4, 2)


def test_a_run_begun_anew_forgets_what_was_done(kb, undisturbed):
    with pytest.raises(Stopped):
        embed_tucker(kb, replace(SETTINGS, name="anew"), progress=stop_at(12))
    told = []
    vectors = embed_tucker(
        kb, replace(SETTINGS, name="anew"), resume=False, progress=lambda stage, done, of: told.append(done)
    )
    assert told[0] == 1
    assert same(vectors, undisturbed)


def test_a_run_that_goes_on_does_not_do_again_what_was_done(kb):
    with pytest.raises(Stopped):
        embed_tucker(kb, replace(SETTINGS, name="on"), progress=stop_at(12))
    told = []
    embed_tucker(kb, replace(SETTINGS, name="on"), progress=lambda stage, done, of: told.append(done))
    assert told == list(range(12, 37))  # the checkpoint before step 12 holds 11


def test_other_settings_do_not_go_on_from_a_checkpoint(kb, undisturbed):
    with pytest.raises(Stopped):
        embed_tucker(kb, replace(SETTINGS, name="other"), progress=stop_at(12))
    told = []
    embed_tucker(
        kb, replace(SETTINGS, seed=5, name="other"), progress=lambda stage, done, of: told.append(done)
    )
    assert told[0] == 1


def test_how_often_checkpoints_are_made_does_not_matter(kb, undisturbed):
    rarely = embed_tucker(kb, replace(SETTINGS, checkpoint_seconds=1e9, name="rarely"))
    assert same(rarely, undisturbed)
    assert rarely.manifest.config.keys() == undisturbed.manifest.config.keys()


def test_patience_survives_a_stop(kb):
    settings = replace(SETTINGS, patience=2, min_gain=1.0, epochs=50)
    with pytest.raises(Stopped):
        embed_tucker(kb, replace(settings, name="patient"), progress=stop_at(14))
    assert embed_tucker(kb, replace(settings, name="patient")).manifest.results["epochs"] == 3


def test_a_run_killed_after_its_last_epoch_only_publishes(kb, monkeypatch):
    settings = replace(SETTINGS, patience=1, min_gain=1.0, epochs=50)

    def fail(self, *args, **kwargs):
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr("kgkit.vectors.Work.publish", fail)
        with pytest.raises(Stopped):
            embed_tucker(kb, replace(settings, name="late"))
    assert embed_tucker(kb, replace(settings, name="late")).manifest.results["epochs"] == 2


def test_a_checkpoint_holds_tensors_and_plain_values_only(kb):
    with pytest.raises(Stopped):
        embed_tucker(kb, replace(SETTINGS, name="plain"), progress=stop_at(8))
    (path,) = kb.home.unfinished_vectors.glob("plain-*/checkpoint.pt")
    state = torch.load(path, weights_only=True)
    assert (state["epoch"], state["step"]) == (1, 1)


RUN = """
import json, sys
from dataclasses import replace
import torch
torch.set_num_threads(1)
import kgkit
from kgkit.embedding.tucker import embed_tucker
from kgkit.embedding.tucker.config import TuckERConfig
with kgkit.open_kb("small", home=sys.argv[1]) as kb:
    embed_tucker(kb, replace(TuckERConfig(**json.loads(sys.argv[2])), name="killed"))
"""


@pytest.fixture
def one_thread():
    """What the killed process has: with more, sums may come out otherwise."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.slow  # each process loads torch
def test_a_run_killed_with_signal_9_goes_on_to_the_same_matrix(home, kb, one_thread):
    settings = replace(SETTINGS, epochs=12, evaluate_every=5)
    command = [sys.executable, "-c", RUN, str(home), json.dumps(asdict(settings))]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
    }
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_for(kb.home.unfinished_vectors, process)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    assert kb.home.vectors.joinpath("killed").exists() is False
    told = []
    vectors = embed_tucker(
        kb, replace(settings, name="killed"), progress=lambda stage, done, of: told.append(done)
    )
    assert told[0] > 1
    assert same(vectors, embed_tucker(kb, replace(settings, name="unharmed")))


def wait_for(folder: Path, process):
    """Wait until the run has made a checkpoint."""
    for _ in range(1200):
        if list(folder.glob("killed-*/checkpoint.pt")) or process.poll() is not None:
            return
        time.sleep(0.05)
