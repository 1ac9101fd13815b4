"""Handles in other processes: pickled, spawned, forked while other threads read."""

import pickle
from pathlib import Path

import pytest

import kgkit
from kgkit.errors import ClosedKB, StaleKB
from kgkit.home import Home
from kgkit.store import StoreReader, remove
from tests.toys import ENTITIES, build_toy, entities, run_python


def keys(kb):
    return [entity.key for entity in kb]


@pytest.mark.slow
def test_a_pickled_handle_opens_the_same_build_in_a_spawned_process(tmp_path):
    build_toy(tmp_path, all=entities(3))
    code = """if True:
        import multiprocessing, sys
        from pathlib import Path
        import kgkit
        from tests.store.test_forks import read_in_pool
        from tests.toys import build_toy, entities
        if __name__ == "__main__":
            kb = kgkit.open_kb("toy", home=Path(sys.argv[1]) / "home")
            build_toy(Path(sys.argv[1]), all=entities(4))  # the pickled handle is not of the current build
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                print(pool.map(read_in_pool, [kb, kb]))
                try:
                    pool.apply(look_up, (kb, "nobody"))
                except kgkit.errors.UnknownEntity as error:
                    print(error.entity, error)
    """.replace("look_up", "kgkit.KnowledgeBase.__getitem__")
    done = run_python(code, tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "[(3, 'e2', [1]), (3, 'e2', [1])]"
    hint = "kb.search(TEXT) searches keys and surfaces"
    assert second == f"nobody no entity 'nobody' in knowledge base 'toy'; {hint}"


def read_in_pool(kb):
    return len(kb), kb.key(2), kb.neighbors(0).tolist()


def test_a_pickled_handle_whose_build_is_gone_is_stale(tmp_path):
    build_toy(tmp_path, all=entities(3))
    kb = kgkit.open_kb("toy", home=tmp_path / "home")
    pickled = pickle.dumps(kb)
    kb.close()
    for count in (4, 5):
        build_toy(tmp_path, all=entities(count))
    with pytest.raises(StaleKB, match="no longer"):
        pickle.loads(pickled)
    remove(Home(tmp_path / "home").kb("toy"))
    with pytest.raises(StaleKB, match="no longer"):
        pickle.loads(pickled)
    other = build_toy(tmp_path, all=entities(6))
    other.path.rename(other.path.with_name(kb.build))
    with pytest.raises(StaleKB, match="now holds"):
        pickle.loads(pickled)


def test_a_closed_handle_cannot_be_pickled(toy_home):
    kb = kgkit.open_kb("toy", home=toy_home)
    assert keys(pickle.loads(pickle.dumps(kb))) == ENTITIES
    kb.close()
    with pytest.raises(ClosedKB, match="pickled"):
        pickle.dumps(kb)


def test_a_relative_path_is_pickled_so_that_it_holds_elsewhere(tmp_path, monkeypatch):
    built = build_toy(tmp_path)
    monkeypatch.chdir(built.path)
    pickled = pickle.dumps(StoreReader.open(Path()))
    monkeypatch.chdir(tmp_path)
    assert pickle.loads(pickled).manifest.build == built.build


def forked(code: str, folder: Path) -> str:
    """Run *code* in a process that may fork: `kb` is open there, `child(f)` gives f's answer in a child."""
    prelude = """if True:
        import os, pickle, sys, threading, time
        from pathlib import Path
        import kgkit
        from kgkit.home import Home
        from kgkit.store import environments, prune, remove
        from tests.toys import build_toy, entities

        folder, home = Path(sys.argv[1]), Path(sys.argv[1]) / "home"
        kb = kgkit.open_kb("toy", home=home)

        def keys(kb):
            return [entity.key for entity in kb]

        def child(ask):
            out, into = os.pipe()
            pid = os.fork()
            if pid == 0:
                try:
                    answer = ask()
                except Exception as error:
                    answer = error
                os.write(into, pickle.dumps(answer))
                os._exit(0)
            os.close(into)
            with open(out, "rb") as answers:
                answer = answers.read()
            assert os.waitpid(pid, 0)[1] == 0
            return pickle.loads(answer)
    """
    done = run_python(prelude + code, folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def ring(tmp_path):
    build_toy(tmp_path, all=entities(40))
    return tmp_path


def test_a_forked_child_reads_on_and_so_does_its_parent(ring):
    code = """
        everything = keys(kb)
        assert child(lambda: keys(kb)) == everything == keys(kb)
        assert child(lambda: kb["e3"].id) == 3
        assert child(lambda: kb.key(3)) == "e3"
        assert child(lambda: kb.neighbors(3).tolist()) == [4]
        assert child(lambda: kb.candidates("name 3").ids.tolist()) == [3]
        assert child(lambda: child(lambda: keys(kb))) == everything  # a grandchild
        other = kgkit.open_kb("toy", home=home)
        assert child(lambda: (other.close(), keys(kb))[1]) == everything
        assert keys(other) == keys(kb) == everything
        print("done")
    """
    assert forked(code, ring) == "done\n"


def test_what_a_child_closes_stays_open_for_its_parent(ring):
    code = """
        def close_and_open():
            kb.close()
            with kgkit.open_kb("toy", home=home) as again:
                return keys(again)

        everything = keys(kb)
        assert child(kb.close) is None
        assert child(close_and_open) == everything == keys(kb)
        error = child(lambda: (kb.close(), kb.key(0)))
        assert type(error) is kgkit.errors.ClosedKB, error
        running = iter(kb)
        assert next(running).key == "e0"
        assert child(lambda: [e.key for e in running]) == everything[1:]
        assert [e.key for e in running] == everything[1:]
        kb.close()
        error = child(lambda: kb.key(0))
        assert type(error) is kgkit.errors.ClosedKB, error
        assert child(close_and_open) == everything
        assert environments._open == {}
        print("done")
    """
    assert forked(code, ring) == "done\n"


def test_a_child_reads_on_when_its_build_is_gone_and_opens_the_new_one_by_name(ring):
    code = """
        def rebuild_and_read():
            build_toy(folder, all=entities(41))
            prune(Home(home).kb("toy"))
            with kgkit.open_kb("toy", home=home) as new:
                return len(keys(new)), len(keys(kb)), kb.key(3)

        assert child(rebuild_and_read) == (41, 40, "e3")
        assert len(keys(kb)) == 40
        print("done")
    """
    assert forked(code, ring) == "done\n"


@pytest.mark.slow
def test_a_child_that_ends_as_a_program_does_ends(ring):
    # A closing that waits for threads which the child does not have would wait for ever.
    code = """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)

        def read():
            while True:
                keys(kb)

        for _ in range(4):
            threading.Thread(target=read, daemon=True).start()
        for _ in range(10):
            pid = os.fork()
            if pid == 0:
                keys(kb)
                kb.close()
                sys.exit(7)
            assert os.waitpid(pid, 0)[1] == 7 << 8
        print("done", flush=True)
    """
    assert forked(code, ring) == "done\n"


def test_forks_while_other_threads_open_read_and_close(ring):
    code = """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # threads and fork: that is what is tried
        everything, stop = keys(kb), threading.Event()

        def read():
            while not stop.is_set():
                assert keys(kb) == everything
                with kgkit.open_kb("toy", home=home) as own:
                    own.candidates("name 3")

        threads = [threading.Thread(target=read, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(25):
            assert child(lambda: keys(kb)) == everything
        for _ in range(5):
            def in_threads():
                seen = []
                own = [threading.Thread(target=lambda: seen.append(keys(kb))) for _ in range(4)]
                for thread in own: thread.start()
                for thread in own: thread.join()
                kb.close()
                return seen == [everything] * 4
            assert child(in_threads)
        stop.set()
        for thread in threads:
            thread.join()
        assert keys(kb) == everything
        print("done")
    """
    assert forked(code, ring) == "done\n"
