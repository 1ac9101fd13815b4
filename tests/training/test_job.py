"""A job: settings and data decide its folder, what is trained there is published, nothing is left over."""

import time

import pytest

from kgkit.errors import KBBusy, UsageError
from kgkit.home import Home
from kgkit.models.folder import find_trained
from kgkit.models.kinds import Kind
from kgkit.models.manifest import ModelManifest, read_header
from kgkit.training.job import Outcome, Plan, run_job


class Toy(ModelManifest, frozen=True, kw_only=True):
    answer: int


TOY = Kind(name="toy", title="a toy", manifest=Toy, roles={}, use="look at it", command="kgkit train toy")


def job(home, *, settings="s", identity=1, answer=42, files=(), train=None, seed=None, works=None):
    """Train a toy; *train* is called in the folder of the job."""

    def save(staged, results):
        (staged / "weights").write_text(str(results["answer"]))
        return {"answer": answer, "task": "toys"}

    def trained(work):
        if works is not None:
            works.append(work)
        if train is not None:
            train(work)
        return Outcome({"answer": answer}, save)

    return run_job(TOY, home, "m", settings, lambda _: Plan(identity, trained), files=files, seed=seed)


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


def test_what_was_trained_is_published_with_all_that_is_known_of_it(home, tmp_path):
    data = tmp_path / "data.txt"
    data.write_text("a")
    folder = job(home, files=[data])
    manifest = TOY.read(folder)
    assert (manifest.kind, manifest.name, manifest.task, manifest.answer) == ("toy", "m", "toys", 42)
    assert manifest.results["answer"] == 42 and manifest.results["seconds"] >= 0
    assert manifest.results["peak_memory"] > 0
    assert manifest.data[str(data)].startswith("ca978112ca1bbdca")
    assert manifest.sizes == {"weights": 2} and list(manifest.sha256) == ["weights"] and manifest.created
    assert find_trained(home, "m") == folder
    assert not list((tmp_path / "runs").glob("*"))


def test_a_training_of_a_few_milliseconds_took_some_time(home):
    folder = job(home, train=lambda _: time.sleep(0.01))
    assert TOY.read(folder).results["seconds"] >= 0.01


def test_settings_data_and_what_is_begun_with_decide_the_folder(home, tmp_path):
    data, works = tmp_path / "data.txt", []

    def stop(work):
        (work / "checkpoint").write_text("so far")
        raise RuntimeError("stopped")

    for settings, identity, content in (
        ("s", 1, "a"),
        ("s", 1, "a"),
        ("t", 1, "a"),
        ("s", 2, "a"),
        ("s", 1, "bb"),
    ):
        data.write_text(content)
        with pytest.raises(RuntimeError, match="stopped"):
            job(home, settings=settings, identity=identity, files=[data], train=stop, works=works)
    assert works[0] == works[1] and len(set(works)) == 4
    job(home, settings="s", identity=1, files=[data])
    assert not list((tmp_path / "runs").glob("*"))  # those that stopped ones have left are swept


def test_a_training_that_fails_leaves_the_older_model(home):
    before = job(home)

    def fail(_):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        job(home, answer=43, train=fail)
    assert find_trained(home, "m") == before and read_header(before).results["answer"] == 42
    assert TOY.read(job(home, answer=44)).answer == 44
    assert not before.exists()


def test_the_same_training_runs_once_at_a_time(home):
    def again(_):
        with pytest.raises(KBBusy, match="another process is training the same model"):
            job(home)

    job(home, train=again)


def test_a_name_that_cannot_be_one_is_refused_before_data_are_read(home):
    def prepare(_):
        raise AssertionError("read")

    with pytest.raises(UsageError, match="cannot name a model"):
        run_job(TOY, home, "../m", "s", prepare, files=())


def test_a_seed_decides_what_is_drawn_while_a_model_is_begun(home):
    torch = pytest.importorskip("torch")
    drawn = []

    def prepare(_):
        drawn.append(float(torch.rand(1)))
        return Plan(0, lambda _: Outcome({}, lambda staged, _: {"answer": 1}))

    for seed in (3, 3, 4):
        run_job(TOY, home, "m", "s", prepare, files=(), seed=seed)
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_seed_that_numpy_does_not_take_is_refused_before_data_are_read(home):
    for seed in (-1, 2**32):
        with pytest.raises(UsageError, match=f"seed is {seed}; it is from 0 to 4294967295"):
            job(home, seed=seed)
