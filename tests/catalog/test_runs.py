"""The diary of runs: what is kept of one that succeeds, fails, is interrupted or killed."""

import datetime
import hashlib
import logging
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from kgkit.catalog import Catalog, Model, Run
from kgkit.catalog.runs import sha256_of
from kgkit.errors import BuildFailed, NotThere, UsageError
from kgkit.home import Home
from kgkit.training import recorded
from tests.toys import run_python

KILLED = """
import os, signal, sys
from kgkit.home import Home
from kgkit.training import recorded
with recorded(Home.find(), command="kgkit train linker", config={}) as run:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def runs(home: Home) -> list[Run]:
    with Catalog.open(home) as catalog:
        return catalog.runs()


def record(home: Home, **says):
    return recorded(home, **{"command": "kgkit train linker", "config": {}, **says})


@dataclass(frozen=True)
class Settings:
    lr: float = 3e-5
    groups: tuple[float, ...] = (1.0, 2.0)
    file: Path = Path("mine.txt")
    bound: float = float("nan")


def test_a_run_that_succeeds_is_kept_with_all_that_it_takes_to_do_it_again(catalogued, tmp_path):
    train, test = tmp_path / "train.txt", tmp_path / "test"
    train.write_bytes(b"one")
    test.mkdir()
    (test / "b.key").write_bytes(b"two")
    before = datetime.datetime.now(datetime.UTC)
    with record(
        catalogued, command="kgkit train linker --type head", config=Settings(), seeds=[np.int64(3), 4],
        data=[train, str(test)], device="cuda:0",
    ) as run:  # fmt: skip
        [begun] = runs(catalogued)
        assert (begun.status, begun.ended, begun.exit_code) == ("running", None, None)
        run.score("wsd", "semeval2007", "f1", 0.7, n=455)
        run.score("wsd", "semeval2007", "accuracy", np.float32(0.5), n=np.int64(455))
    [row] = runs(catalogued)
    assert row.id == begun.id
    assert row.command == "kgkit train linker --type head"
    assert row.config == {"lr": 3e-5, "groups": [1.0, 2.0], "file": "mine.txt", "bound": None}
    assert (row.seeds, row.device) == ([3, 4], "cuda:0")
    assert row.data == {
        str(train): hashlib.sha256(b"one").hexdigest(),
        str(test / "b.key"): hashlib.sha256(b"two").hexdigest(),
    }
    assert row.versions["python"] == sys.version.split()[0]
    assert row.versions["numpy"] == np.__version__
    assert (row.status, row.exit_code, row.model) == ("done", 0, None)
    assert row.ended is not None
    assert before <= row.started <= row.ended
    assert row.seconds is not None
    assert 0 < row.seconds < 60
    assert row.peak_memory is not None
    assert 10 * 2**20 < row.peak_memory < 2**40
    assert [(score.metric, score.value, score.n) for score in row.scores] == [
        ("f1", 0.7, 455), ("accuracy", 0.5, 455),
    ]  # fmt: skip


class Exit(RuntimeError):
    """As the command line ends itself."""

    exit_code = 130


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (BuildFailed("the loss is nan"), "failed", 1),
        (ZeroDivisionError(), "failed", 1),
        (UsageError("no such device"), "failed", 2),
        (NotThere("no KB"), "failed", 3),
        (KeyboardInterrupt(), "interrupted", 130),
        (Exit(), "interrupted", 130),
        (SystemExit(4), "failed", 4),
        (SystemExit("no"), "failed", 1),
        (SystemExit(), "done", 0),
    ],
)
def test_a_run_that_ends_otherwise_says_how_and_keeps_its_scores(error, status, code, tmp_path):
    home = Home(tmp_path)
    with pytest.raises(type(error)) as raised, record(home) as run:
        run.score("el", "testa", "f1", 0.5, n=2)
        raise error
    assert raised.value is error
    [row] = runs(home)
    assert (row.status, row.exit_code, row.scores[0].value) == (status, code, 0.5)


def test_a_run_that_was_killed_stays_running(catalogued):
    assert run_python(KILLED).returncode == -signal.SIGKILL
    [row] = runs(catalogued)
    assert (row.status, row.ended) == ("running", None)


def test_a_run_names_the_model_that_it_made(catalogued):
    with record(catalogued) as run:
        with Catalog.open(catalogued) as catalog:
            catalog.add(
                Model(
                    home=catalog.home, name="mine", kind="head", config={},
                    created=datetime.datetime.now(datetime.UTC),
                )
            )  # fmt: skip
        run.model = "mine"
    [row] = runs(catalogued)
    assert row.model is not None
    assert row.model.name == "mine"


def test_a_model_that_the_catalog_does_not_know_is_left_out(tmp_path):
    with record(Home(tmp_path), model="mine"):
        pass
    [row] = runs(Home(tmp_path))
    assert (row.status, row.model) == ("done", None)


def test_the_last_value_of_a_metric_counts_and_what_is_no_number_does_not(tmp_path, caplog):
    with record(Home(tmp_path)) as run:
        run.score("el", "testa", "f1", 0.1, n=2)
        run.score("el", "testa", "f1", 0.2, n=2)
        run.score("el", "testb", "f1", float("nan"), n=0)
    [row] = runs(Home(tmp_path))
    assert [(score.dataset, score.value) for score in row.scores] == [("testa", 0.2)]
    assert "f1 of el on testb is nan: not recorded" in caplog.text


def test_a_file_is_read_once_until_it_changes(tmp_path, monkeypatch):
    path, read = tmp_path / "data", []
    digest = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *args: (read.append(args), digest(*args))[1])
    path.write_bytes(b"one")
    assert sha256_of(path) == sha256_of(path) == hashlib.sha256(b"one").hexdigest()
    assert len(read) == 1
    path.write_bytes(b"three")
    assert sha256_of(path) == hashlib.sha256(b"three").hexdigest()


def test_data_that_cannot_be_read_has_no_checksum(tmp_path):
    with record(Home(tmp_path), data=[tmp_path / "nowhere"]):
        pass
    [row] = runs(Home(tmp_path))
    assert row.data == {str(tmp_path / "nowhere"): None}


@pytest.mark.parametrize("url", [None, "postgresql://nobody@127.0.0.1:1/none", "mysql://x/y"])
def test_a_catalog_that_cannot_be_reached_takes_nothing_from_the_run(url, tmp_path, monkeypatch, caplog):
    home = Home(tmp_path / "home")
    if url is None:
        home.path.mkdir()
        home.catalog.write_bytes(b"no database at all, but long enough to be one" * 50)
    else:
        pytest.importorskip("psycopg")
        monkeypatch.setenv("KGKIT_CATALOG_URL", url)
    with record(home) as run:
        run.score("el", "testa", "f1", 0.1, n=2)
    assert [entry.levelno for entry in caplog.records] == [logging.WARNING] * 2
    assert "this run and its scores are not in the catalog: " in caplog.text
    with pytest.raises(ZeroDivisionError), record(home):
        1 / 0  # noqa: B018


def test_a_run_whose_catalog_came_back_is_written_whole(tmp_path, caplog):
    home = Home(tmp_path)
    home.catalog.write_bytes(b"no database at all, but long enough to be one" * 50)
    with record(home, seeds=[1]) as run:
        home.catalog.unlink()
        run.score("el", "testa", "f1", 0.1, n=2)
    [row] = runs(home)
    assert (row.status, row.seeds, row.scores[0].value) == ("done", [1], 0.1)
    assert "not in the catalog yet" in caplog.text


def test_the_first_of_several_processes_keeps_the_diary(tmp_path, monkeypatch):
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        with record(Home(tmp_path), seeds=[int(rank)]) as run:
            run.score("el", "testa", "f1", 0.1, n=2)
    assert [row.seeds for row in runs(Home(tmp_path))] == [[0]]
