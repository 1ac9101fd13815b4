"""Damage within a file of the right size: who finds it, and that nobody makes it sound."""

import shutil
import struct
from pathlib import Path

import lmdb
import msgspec
import pytest

import kgkit
from kb_builders.wordnet import WordNetBuilder
from kgkit import versions
from kgkit.building import Alias, Builder, Entity, Occurrences
from kgkit.building.records import StoredRecords
from kgkit.candidates import AliasConfig, AliasGenerator, LemmaGenerator, SegmentGenerator
from kgkit.errors import DamagedKB, KgkitError
from kgkit.home import Home
from kgkit.kb import differences
from kgkit.store import layout, validate, verify
from kgkit.store.damage import damage_error, what_to_do
from kgkit.store.layout import Manifest
from tests import stress_flips
from tests.cli_helpers import build_mini, run
from tests.mini_wordnet import mini_wordnet
from tests.small_kb import build as build_small
from tests.store.test_damage import Forged, built, forged, open_toy  # noqa: F401 - fixtures
from tests.toys import build_toy

GARBAGE = b"\xc1"  # the one byte that MessagePack never uses


@pytest.fixture(scope="module")
def mini_home(tmp_path_factory):
    """A home with the miniature WordNet as `mini`: not to be changed."""
    return build_mini(tmp_path_factory.mktemp("mini"))


@pytest.fixture
def mini(mini_home, tmp_path):
    """A copy of that home, to be damaged."""
    return shutil.copytree(mini_home, tmp_path / "home", symlinks=True)


def build_of(home, name="mini"):
    kb = Home(home).kb(name)
    return kb.builds / kb.published()


def flip(folder, *, at=-2000, bit=4):
    """Change one bit of the data of a build."""
    data = bytearray((folder / "data.mdb").read_bytes())
    data[at] ^= bit
    (folder / "data.mdb").write_bytes(data)


def overwrite(folder, table, key, value):
    """Write a row into a published build, and its new size into the manifest; checksums stay as they were."""
    with lmdb.open(
        str(folder), max_dbs=len(layout.TABLES) + len(layout.OPTIONAL), lock=False, map_size=1 << 26
    ) as environment:
        db = environment.open_db(table.encode(), create=False, integerkey=table in layout.BY_ID)
        with environment.begin(write=True) as transaction:
            if value is None:
                transaction.delete(key, db=db)
            else:
                transaction.put(key, value, db=db)
    path = folder / layout.MANIFEST
    manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    sizes = {layout.DATA: (folder / layout.DATA).stat().st_size}
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(manifest, files=sizes)))


# -- many flips --------------------------------------------------------------------


def flipped(folder, flips, seed, most):
    kgkit.build_kb(WordNetBuilder(), mini_wordnet(folder / "source"), name="kb", home=folder / "home")
    return stress_flips.Stress(folder, folder / "home", seed, most, add=True).run(flips, seed)


@pytest.mark.slow
def test_after_any_of_many_flips_verify_refuses_look_ups_answer_or_say_what_is_wrong(tmp_path):
    """Slow: 400 flips, after each of which everything is looked up in a process of its own."""
    counts = flipped(tmp_path, 400, 0, 300)
    assert stress_flips.broken(counts) == []
    assert counts["verify", "refused"] == counts["quick", "refused"] == 400
    assert counts["kb add", "refused: DamagedKB"] == 400


# -- what a build is made of ----------------------------------------------------------


def test_nothing_is_added_to_a_damaged_kb_and_the_error_says_what_to_do(mini, tmp_path):
    folder = build_of(mini)
    flip(folder)
    records = tmp_path / "new.jsonl"
    records.write_text(stress_flips.NEW)
    with pytest.raises(DamagedKB) as caught:
        kgkit.add_to_kb("mini", records, home=mini)
    said = str(caught.value)
    assert f"knowledge base mini@{folder.name} is damaged: file: data.mdb is damaged" in said
    assert f"`kgkit kb verify mini@{folder.name} --home {mini}` tells more" in said
    assert "run `kgkit build-kb wordnet --name mini" in said
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_nothing_is_built_of_a_damaged_kb_or_added_from_it_or_exported(mini, tmp_path):
    build_toy(tmp_path)
    flip(build_of(mini))
    with pytest.raises(DamagedKB, match=r"data\.mdb is damaged"):
        kgkit.build_kb(Derived(), "kb:mini", name="derived", home=mini)
    with pytest.raises(DamagedKB, match=r"data\.mdb is damaged"):
        kgkit.add_to_kb("toy", "kb:mini", home=mini)
    done = run("kb", "export", "mini", "-o", tmp_path / "mini.jsonl", "--home", mini)
    assert (done.code, "data.mdb is damaged" in done.err) == (1, True)
    assert not (tmp_path / "mini.jsonl").exists()


class Derived(Builder):
    """Makes a KB of another one."""

    def look(self, source):
        raise NotImplementedError

    def observe(self, source, part):
        raise NotImplementedError

    def derive(self, records):
        yield from records.entities()


# -- who wants to know first ------------------------------------------------------------


def test_a_kb_is_verified_before_it_is_opened_if_that_is_asked_for(mini):
    kgkit.open_kb("mini", home=mini, verify=True).close()
    flip(build_of(mini))
    kgkit.open_kb("mini", home=mini).close()
    with pytest.raises(DamagedKB, match=r"data\.mdb is damaged.*kgkit build-kb wordnet"):
        kgkit.open_kb("mini", home=mini, verify=True)


def test_quick_verification_finds_what_happened_to_the_files_and_reads_no_table(mini, monkeypatch):
    monkeypatch.setattr(validate, "StoreReader", None)
    done = run("kb", "verify", "mini", "--quick", "--home", mini)
    assert (done.code, done.out) == (0, f"mini@{build_of(mini).name}: sound\n")
    flip(build_of(mini))
    done = run("kb", "verify", "mini", "--quick", "--home", mini)
    assert (done.code, "data.mdb is damaged" in done.out) == (1, True)


def test_a_file_that_cannot_be_read_is_a_problem_and_no_crash(mini, monkeypatch):
    def broken(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(versions.hashlib, "file_digest", broken)
    names = ("data.mdb", "surfaces.trigrams")
    assert verify(build_of(mini)) == [f"file: {name} cannot be read: Input/output error" for name in names]


# -- verify, of damage that has the right checksum ---------------------------------------


@pytest.mark.parametrize(
    ("table", "check", "value"),
    [
        ("entities", validate._entities, GARBAGE),
        ("keys", validate._keys, b"\0" * 5),
        ("aliases", validate._aliases, GARBAGE),
        ("aliases", validate._aliases, b"\xff\xff\xff" + bytes(40)),
        ("facts", validate._facts, b"\0" * 9),
        ("incoming", validate._facts, b"\0" * 11),
        ("starts", validate._counts_and_meta, GARBAGE),
        ("forms", validate._counts_and_meta, GARBAGE),
    ],
)
def test_a_row_that_cannot_be_decoded_is_said_to_be_in_its_table(forged, table, check, value):  # noqa: F811
    key = sorted(forged.tables[table])[0]
    forged.tables[table][key] = value
    problems = check(forged)
    assert any(repr(table) in problem for problem in problems if not problem.startswith("digest")), problems


def test_a_row_that_cannot_be_decoded_hides_nothing_of_those_beside_it(forged):  # noqa: F811
    aliases = forged.tables["aliases"]
    sound = aliases[b"apple"]
    aliases[b"apple"] = sound[:8] + (99).to_bytes(4, "little") + sound[12:]
    aliases[sorted(aliases)[-1]] = GARBAGE
    problems = validate._aliases(forged)
    assert "alias: b'apple' names an entity that is not there" in problems
    assert not any(problem.startswith("count: ") for problem in problems), problems

    forms = forged.tables["starts"]
    first, second = sorted(forms)[:2]
    forms[first] = forms[second] = GARBAGE
    assert (
        len([problem for problem in validate._counts_and_meta(forged) if "'starts' has a row" in problem])
        == 2
    )


def test_what_a_check_does_wrong_is_no_damage(forged, monkeypatch):  # noqa: F811
    def wrong(*_):
        raise TypeError("a mistake of the check")

    for name, check in {"_hash": validate._facts, "_alias_rows": validate._aliases}.items():
        monkeypatch.setattr(validate, name, wrong)
        with pytest.raises(TypeError, match="a mistake of the check"):
            check(forged)


def test_an_alias_whose_spellings_have_rows_that_are_not_there_is_found(forged):  # noqa: F811
    rows = forged.tables["aliases"]
    key, row = next((key, row) for key, row in sorted(rows.items()) if row[-1:] == b"\x90")
    rows[key] = row[:-2] + b"\x91\x63\x91\xcb" + bytes(8)
    assert f"alias: {key!r} has a spelling of rows that are not there" in validate._aliases(forged)


# -- look-ups ---------------------------------------------------------------------------


def test_a_look_up_that_cannot_decode_a_row_names_the_kb_and_what_tells_more(mini):
    folder = build_of(mini)
    with kgkit.open_kb("mini", home=mini) as kb:
        number = kb.id("dog.n.01")
        puppy = kb.id("puppy.n.01")
    overwrite(folder, "entities", number.to_bytes(4, "little"), GARBAGE)
    overwrite(folder, "aliases", b"dog", GARBAGE)
    overwrite(folder, "forms", b"mice", GARBAGE)
    overwrite(folder, "starts", b"hot", GARBAGE)
    with kgkit.open_kb("mini", home=mini) as kb:
        for look_up in (
            lambda: kb["dog.n.01"],
            lambda: kb.get(number),
            lambda: kb.key(number),
            lambda: kb.neighbors("puppy.n.01"),
            lambda: [*kb],
            lambda: [*kb.keys()],
            lambda: kb.candidates("dog"),
            lambda: kb.path("puppy.n.01", "animal.n.01"),
            lambda: [*kb.match(puppy)],
            lambda: [*kb.walk(puppy, "hypernym")],
            lambda: LemmaGenerator(kb).mentions("dog"),
            lambda: LemmaGenerator(kb).mentions("mice"),
            lambda: LemmaGenerator(kb).mentions("hot"),
            lambda: [*kgkit.Linker(kb)(["A dog."])],
        ):
            with pytest.raises(DamagedKB, match=f"mini@{folder.name}"):
                look_up()
    done = run("show", "dog.n.01", "--kb", "mini", "--home", mini)
    assert (done.code, f"`kgkit kb verify mini@{folder.name} --home" in done.err) == (1, True)


def test_what_refers_to_a_row_that_is_not_there_is_damage(mini):
    with kgkit.open_kb("mini", home=mini) as kb:
        number = kb.id("dog.n.01")
    overwrite(build_of(mini), "entities", number.to_bytes(4, "little"), None)
    with kgkit.open_kb("mini", home=mini) as kb:
        for look_up in (
            lambda: kb["dog.n.01"],
            lambda: kb.decode(kb.candidates("dog")),
            lambda: kb.neighbors("puppy.n.01"),
            lambda: [*kb.match("puppy.n.01")],
            lambda: kb.subgraph("puppy.n.01"),
        ):
            with pytest.raises(DamagedKB, match="is damaged"):
                look_up()


def test_a_fact_of_a_relation_that_is_not_there_is_damage(mini):
    with kgkit.open_kb("mini", home=mini) as kb:
        number = kb.id("dog.n.01")
    fact = (1).to_bytes(4, "little") + (4000).to_bytes(4, "little")
    overwrite(build_of(mini), "facts", number.to_bytes(4, "little"), fact)
    with kgkit.open_kb("mini", home=mini) as kb:
        for look_up in (
            lambda: [*kb.match("dog.n.01")],
            lambda: [*kb.match()],
            lambda: kb.degree(number, None, "in"),
        ):
            with pytest.raises(DamagedKB, match="a fact has relation 2,000 of"):
                look_up()


def test_differences_name_the_kb_that_is_damaged(mini_home, mini):
    overwrite(build_of(mini), "forms", b"mice", GARBAGE)
    path = build_of(mini) / layout.MANIFEST
    manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    changed = msgspec.structs.replace(manifest, tables={**manifest.tables, "forms": "0"})
    path.write_bytes(msgspec.json.encode(changed))
    with kgkit.open_kb("mini", home=mini_home) as sound, kgkit.open_kb("mini", home=mini) as damaged:
        for pair in ((sound, damaged), (damaged, sound)):
            with pytest.raises(DamagedKB, match="--home " + str(mini)):
                list(differences(*pair))


SPELLED = [
    Entity("a"), Entity("b"), Alias("Dog", "a", 3), Alias("dOG", "b", 1), Alias("Hot Dog", "b", 2),
    Alias("Take Off", "a", 1), Alias("Dogs", "a", 1), Occurrences("Dog", 8, 2),
]  # fmt: skip


@pytest.fixture
def spelled(tmp_path):
    """A KB whose aliases have spellings, and occurrences; to be damaged."""
    with build_small(tmp_path, SPELLED) as kb:
        pass
    return tmp_path, kb.store.folder


@pytest.mark.parametrize(
    "row", [b"", b"\x01", bytes(7), b"\x02\0\0\0" + bytes(9), b"\x01" + bytes(20) + GARBAGE]
)
@pytest.mark.parametrize("generator", [AliasGenerator, SegmentGenerator, LemmaGenerator])
def test_a_generator_that_cannot_decode_an_alias_names_the_kb(spelled, generator, row):
    home, folder = spelled
    for key in (b"dog", b"hot dog", b"take off"):
        overwrite(folder, "aliases", key, row)
    texts = ("a Dog", "A DOG", "dog", "Hot Dog", "a hot dog", "a take-off", "the hot-Dog days")
    with kgkit.open_kb("small", home=home) as kb:
        for text in texts:
            sought = (
                generator(kb, lambda text: [(0, len(text))])
                if generator is SegmentGenerator
                else generator(kb)
            )
            try:
                sought.mentions(text)
            except KgkitError as error:
                assert isinstance(error, DamagedKB), repr(error)
                assert f"small@{folder.name} is damaged: a row cannot be read" in str(error)
        if len(row) < 20:
            for text in ("a Dog", "a Hot Dog"):
                with pytest.raises(DamagedKB, match="is damaged"):
                    AliasGenerator(kb, AliasConfig(matches="all")).mentions(text)


@pytest.mark.parametrize("row", [b"", b"1234", struct.pack("<ff", 1, 2)])
def test_occurrences_that_cannot_be_name_the_kb_and_what_tells_more(spelled, tmp_path, row):
    home, folder = spelled
    with build_small(tmp_path / "sound", [*SPELLED[:-1], Occurrences("Dog", 9, 2)]) as sound:
        overwrite(folder, "occurrences", b"dog", row)
        with kgkit.open_kb("small", home=home) as kb:
            for look_up in (
                lambda: kb.link_probability("Dog"),
                lambda: [*StoredRecords(kb).occurrences()],
                lambda: AliasGenerator(kb).mentions("a Dog"),
                lambda: [*differences(kb, sound)],
                lambda: [*differences(sound, kb)],
            ):
                with pytest.raises(
                    DamagedKB, match=f"small@{folder.name} is damaged: .*`kgkit kb verify small@"
                ):
                    look_up()


def test_occurrences_that_lmdb_cannot_read_are_damage(spelled, monkeypatch):
    class Refusing:
        def get(self, *_):
            raise lmdb.CorruptedError("a page that is none")

        def renew(self):
            pass

    home, _ = spelled
    with kgkit.open_kb("small", home=home) as kb:
        monkeypatch.setattr(kb.store, "_local", Refusing())
        with pytest.raises(DamagedKB, match="a page that is none"):
            kb.link_probability("Dog")


def test_an_alias_that_cannot_be_read_does_not_end_the_check_of_occurrences(spelled, monkeypatch):
    home, _ = spelled
    with kgkit.open_kb("small", home=home) as kb:

        def row(table, key):
            raise damage_error(kb.store.folder, "no")

        monkeypatch.setattr(kb.store, "row", row)
        assert any(
            "table: 'aliases' cannot be read" in problem for problem in validate._occurrences(kb.store)
        )


@pytest.mark.parametrize("folder", ["builds/x", "n/builds/x", "x", "."])
def test_what_to_do_about_a_build_by_a_short_path_is_to_build_it_again(folder):
    assert what_to_do(Path(folder)) == "build it again"
    assert "knowledge base" in str(damage_error(Path(folder), "no"))
