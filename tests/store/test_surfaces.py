"""Tries of surfaces in one file, beside a look at every surface."""

import os
import sys
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kgkit
from kgkit.candidates import AliasGenerator
from kgkit.errors import DamagedKB, MissingExtra, StoreError
from kgkit.kb import KnowledgeBase
from kgkit.store import StoreReader, codec, remove, verify
from kgkit.store.layout import SURFACES
from kgkit.store.surfaces import Surfaces, SurfaceWriter, cannot_be_sought
from tests.small_kb import surfaces_kb
from tests.toys import run_python
from tests.tries import with_tries

unhurried = settings(deadline=None)
letters = st.text(alphabet="ab -é苹👩", min_size=1, max_size=6)
many = st.lists(letters.map(lambda text: text + "-"), max_size=40, unique=True).map(sorted)


def written(folder: Path, surfaces: list[str], size: int = 500_000) -> Surfaces:
    """Write *surfaces*, and open what was written."""
    writer = SurfaceWriter(folder, size)
    writer.add(surfaces)
    name, row = writer.finish()
    assert name == b"surfaces"
    return Surfaces(folder / SURFACES, codec.decode_shards(row))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tries")


@pytest.fixture
def built(tmp_path):
    """A KB with tries of four surfaces each."""
    with surfaces_kb(tmp_path) as kb:
        return with_tries(kb.store.folder, tmp_path, "tries", 4)


# -- what begins a text ----------------------------------------------------------


@unhurried
@given(surfaces=many, texts=st.lists(letters, max_size=10), size=st.integers(1, 9))
def test_the_prefixes_of_a_text_are_all_surfaces_that_begin_it_however_they_are_divided(
    folder, surfaces, texts, size
):
    tries = written(folder, surfaces, size)
    assert len(tries) == len(surfaces)
    for text in [*texts, *surfaces, *[surface + text for surface in surfaces for text in texts]]:
        assert tries.prefixes(text) == [surface for surface in surfaces if text.startswith(surface)]
        assert (text in tries) == (text in surfaces)


@unhurried
@given(surfaces=many, tokens=st.lists(letters, max_size=10), size=st.integers(1, 9))
def test_a_token_that_no_surface_goes_on_from_has_no_matcher(folder, surfaces, tokens, size):
    tries = written(folder, surfaces, size)
    for token in [*tokens, *surfaces]:
        spaced, tight = tries.matchers(token)
        for matcher, begin in ((spaced, token + " "), (tight, token)):
            going_on = [surface for surface in surfaces if surface.startswith(begin) and surface != token]
            if matcher is None:
                assert not going_on
            else:
                for text in [begin + "b-", *going_on]:
                    assert matcher(text) == tries.prefixes(text)
        assert (tight is not None) >= (spaced is not None)


def test_a_trie_has_what_begins_its_first_surface_and_counts_its_own_only(tmp_path):
    tries = written(tmp_path, ["a -", "a - b", "a - b c", "a - b d", "b -"], 2)
    assert [(shard.first, shard.count) for shard in tries.shards] == [("", 2), ("a - b c", 2), ("b -", 1)]
    assert [shard.offset % 8 for shard in tries.shards] == [0, 0, 0]
    assert tries.prefixes("a - b d e") == ["a -", "a - b", "a - b d"]


def test_a_part_is_closed_by_its_length_too(tmp_path, monkeypatch):
    monkeypatch.setattr("kgkit.store.surfaces._CHARACTERS", 10)
    tries = written(tmp_path, ["aaaa -", "bbbb -", "cccc -", "dddd -"])
    assert [shard.first for shard in tries.shards] == ["", "cccc -"]


def test_single_words_are_left_out_and_odd_surfaces_put_aside(tmp_path):
    long = "é" * 300  # 600 bytes
    writer = SurfaceWriter(tmp_path)
    writer.add(["a b", "nul \0 here", "word", "wörd", long, "x" * 511 + " "])
    assert writer.aside == ["nul \0 here", long, "x" * 511 + " "]
    tries = Surfaces(tmp_path / SURFACES, codec.decode_shards(writer.finish()[1]))
    assert [surface for surface in ("a b", "word", "wörd") if surface in tries] == ["a b", "wörd"]
    assert len(tries) == 2
    assert tries.prefixes("a b\0 c") == ["a b"]
    assert cannot_be_sought("x" * 512) and not cannot_be_sought("x" * 511)


def test_a_kb_without_a_surface_of_several_tokens_has_an_empty_trie(tmp_path):
    tries = written(tmp_path, ["one", "two"])
    assert len(tries) == 0
    assert tries.prefixes("one two") == []
    assert tries.matchers("one") == (None, None)


@pytest.mark.parametrize("surfaces", [["b -", "a -"], ["a -", "a -"]])
def test_surfaces_that_do_not_ascend_are_refused(tmp_path, surfaces):
    with pytest.raises(StoreError, match="do not ascend at 'a -'"):
        SurfaceWriter(tmp_path).add(surfaces)
    writer = SurfaceWriter(tmp_path)
    writer.add(surfaces[:1])
    with pytest.raises(StoreError, match="do not ascend at 'a -'"):
        writer.add(surfaces[1:])


def test_a_lone_surrogate_in_a_token_begins_nothing(tmp_path):
    assert written(tmp_path, ["a -", "b -"], 1).matchers("\ud800") == (None, None)


def test_a_full_disk_is_an_error_that_says_how_much_was_written(tmp_path):
    code = """if True:
        import resource, signal, sys
        from pathlib import Path
        from kgkit.errors import WriteFailed
        from kgkit.store.surfaces import SurfaceWriter
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        try:
            SurfaceWriter(Path(sys.argv[1]), 1).add(["a -", "b -", "c -", "d -", "e -"])
        except WriteFailed as error:
            print(error.written, error.where)
    """
    done = run_python(code, tmp_path)
    assert done.stdout.split() == ["8176", str(tmp_path)], done.stderr


# -- a build that has them -----------------------------------------------------------


def test_a_build_with_tries_lists_their_file_and_is_sound(built):
    manifest = StoreReader.open(built.folder).manifest
    assert {*manifest.files} == {*manifest.sha256} == {"data.mdb", SURFACES}
    assert manifest.files[SURFACES] == (built.folder / SURFACES).stat().st_size
    assert verify(built.folder) == []


def test_opening_and_looking_up_load_no_trie_and_a_text_does(built, tmp_path):
    code = """if True:
        import sys
        import kgkit
        from kgkit.candidates import AliasGenerator
        with kgkit.open_kb("tries", home=sys.argv[1]) as kb:
            kb.candidates("new york"), kb["Road"]
            generator = AliasGenerator(kb)
            print("marisa_trie" in sys.modules)
            print(len(generator.mentions("in New York")), "marisa_trie" in sys.modules)
    """
    done = run_python(code, tmp_path)
    assert done.stdout.split() == ["False", "1", "True"], done.stderr


def test_where_marisa_is_missing_the_extra_is_named_and_look_ups_work(built, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "marisa_trie", None)
    with kgkit.open_kb("tries", home=tmp_path) as kb:
        assert len(kb.candidates("new york")) == 2
        with pytest.raises(MissingExtra, match=r"'marisa-trie': pip install 'kgkit\[scale\]'"):
            AliasGenerator(kb).mentions("in New York")
    with pytest.raises(MissingExtra):
        SurfaceWriter(tmp_path)
    (tmp_path / "marisa_trie.py").write_text("raise ImportError\n")
    monkeypatch.syspath_prepend(tmp_path)  # for the process that reads the tables
    with pytest.raises(MissingExtra) as error:
        verify(built.folder)
    assert error.value.package == "marisa-trie"


def test_a_truncated_file_is_refused_before_it_is_mapped(built):
    os.truncate(built.folder / SURFACES, 5000)
    with pytest.raises(DamagedKB, match=rf"{SURFACES} has 5,000 bytes, its manifest says"):
        StoreReader.open(built.folder)


def test_a_missing_file_is_refused(built):
    (built.folder / SURFACES).unlink()
    with pytest.raises(DamagedKB, match=rf"{SURFACES} is missing"):
        StoreReader.open(built.folder)


def test_a_manifest_that_does_not_list_the_file_is_refused(built):
    reader = StoreReader.open(built.folder)
    manifest = msgspec.structs.replace(reader.manifest, files={"data.mdb": reader.manifest.files["data.mdb"]})
    reader.close()
    for _ in range(2):  # the second time too: the first let go of what it opened
        with pytest.raises(DamagedKB, match=rf"does not list {SURFACES}"):
            StoreReader(built.folder, manifest)


@pytest.mark.parametrize("size", [0, 4096])
def test_a_file_that_is_shorter_than_its_tries_is_refused_whatever_the_manifest_says(built, size):
    manifest = StoreReader.open(built.folder).manifest
    os.truncate(built.folder / SURFACES, size)
    with pytest.raises(DamagedKB, match=SURFACES):
        StoreReader(built.folder, manifest)


def test_a_flipped_byte_is_found_by_verify(built):
    content = bytearray((built.folder / SURFACES).read_bytes())
    content[2000] ^= 1
    (built.folder / SURFACES).write_bytes(content)
    assert verify(built.folder) == [
        f"file: {SURFACES} is damaged: its checksum is not the one that the manifest has"
    ]


def test_a_file_of_garbage_is_refused_when_it_is_first_asked(built):
    size = (built.folder / SURFACES).stat().st_size
    (built.folder / SURFACES).write_bytes(bytes(size))
    kb = KnowledgeBase(StoreReader.open(built.folder), "tries")
    with kb, pytest.raises(DamagedKB, match=f"{SURFACES} cannot be read"):
        AliasGenerator(kb).mentions("New York")


def test_verify_finds_tries_that_are_not_of_the_aliases(built, tmp_path):
    reader = StoreReader.open(built.folder)
    here = [surface for surface in reader.iter_surfaces() if surface != "new york"]
    (tmp_path / "other").mkdir()
    writer = SurfaceWriter(tmp_path / "other", 4)
    writer.add(sorted([*here, "nowhere in it"]))
    shards = codec.decode_shards(writer.finish()[1])
    (tmp_path / "other" / SURFACES).replace(built.folder / SURFACES)
    reader.surfaces = Surfaces(built.folder / SURFACES, shards)
    from kgkit.store.validate import _surfaces

    wrong = _surfaces(reader)
    assert wrong[0] == "surface: 'new york' is in no trie and not in table 'starts'"
    count = len(reader.surfaces)
    assert wrong[1] == f"surface: the tries have {count} surfaces, of which {count - 1} are aliases"


def test_an_open_handle_keeps_its_tries_when_the_build_is_removed(built, tmp_path):
    kb = kgkit.open_kb("tries", home=tmp_path)
    remove(kgkit.home.Home(tmp_path).kb("tries"))
    assert not built.folder.exists()
    assert [mention.text for mention in AliasGenerator(kb).mentions("New York Times")] == ["New York Times"]
    kb.close()


def test_what_a_closed_handle_has_mapped_is_not_read_from_a_hole(built, tmp_path):
    kb = kgkit.open_kb("tries", home=tmp_path)
    spaced, tight = kb.store.surfaces.matchers("new")
    kb.close()
    assert kb.store.surfaces is None
    assert spaced("new york") == tight("new york") == ["new york"]


def test_many_threads_may_be_the_first_to_ask(built, tmp_path):
    with kgkit.open_kb("tries", home=tmp_path) as kb:
        generator, found = AliasGenerator(kb), []
        gate = threading.Barrier(8)

        def ask() -> None:
            gate.wait()
            for _ in range(200):
                found.append(
                    [mention.text for mention in generator.mentions("北京大学, New York Times, C++")]
                )

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 1600
    assert all(texts == ["北京大学", "New York Times", "C++"] for texts in found)


def test_a_forked_child_and_a_pickled_copy_match_too(built, tmp_path):
    code = """if True:
        import os, pickle, sys
        import kgkit
        from kgkit.candidates import AliasGenerator
        kb = kgkit.open_kb("tries", home=sys.argv[1])
        for asked_before in (False, True):
            generator = AliasGenerator(kb)
            if asked_before:
                generator.mentions("New York")
            child = os.fork()
            if not child:
                os._exit(len(generator.mentions("New York Times Square, hot-dog")))
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        again = pickle.loads(pickle.dumps(generator))
        print(len(again.mentions("New York Times Square, hot-dog")), again.kb.store.surfaces is not None)
    """
    done = run_python(code, tmp_path)
    assert done.stdout.split() == ["2", "2", "2", "True"], done.stderr
