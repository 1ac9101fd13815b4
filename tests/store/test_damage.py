"""Builds that were damaged, tampered with, or written in another format: refused, or found by `verify`."""

import os
import random
import shlex
import shutil
from pathlib import Path

import msgspec
import pytest

import kgkit
from kgkit.candidates import AliasGenerator
from kgkit.errors import DamagedKB, FormatMismatch, KgkitError, NotThere, StoreError
from kgkit.store import StoreReader, StoreWriter, codec, layout, publish, validate, verify
from kgkit.store.layout import Manifest, build_name, fingerprint
from kgkit.store.manifest import read_manifest, rebuild_command
from kgkit.store.writer import TableDigest
from kgkit.versions import file_sha256
from tests.toys import ENTITIES, build_toy, crafted_data, entities


@pytest.fixture
def built(tmp_path, toy_built):
    """A copy of the toy that may be damaged."""
    home = tmp_path / "home"
    shutil.copytree(toy_built.path.parents[3], home, symlinks=True)
    return toy_built._replace(path=home / "kbs/toy/builds" / toy_built.build)


def open_toy(built):
    return kgkit.open_kb("toy", home=built.path.parents[3])


def rewrite(built, **changes):
    """Change what a manifest says."""
    path = built.path / "manifest.json"
    path.write_bytes(msgspec.json.encode({**msgspec.json.decode(path.read_bytes()), **changes}))


# -- refused when it is opened ---------------------------------------------------


@pytest.mark.parametrize("kept", [0, 1, 4096, -4096, -1])
def test_a_truncated_data_file_is_refused_before_it_is_mapped(built, kept):
    data = built.path / "data.mdb"
    size = data.stat().st_size
    with data.open("rb+") as file:
        file.truncate(kept % size)
    with pytest.raises(DamagedKB, match=rf"{kept % size:,} bytes.* {size:,} bytes"):
        open_toy(built)


def test_a_data_file_that_has_grown_is_refused(built):
    with (built.path / "data.mdb").open("ab") as file:
        file.write(b"x")
    with pytest.raises(DamagedKB, match="its manifest says"):
        open_toy(built)


def test_a_missing_data_file_is_refused(built):
    (built.path / "data.mdb").unlink()
    with pytest.raises(DamagedKB, match=r"data\.mdb is missing"):
        open_toy(built)


def test_a_missing_manifest_is_refused(built):
    (built.path / "manifest.json").unlink()
    with pytest.raises(NotThere, match=r"no manifest\.json"):
        open_toy(built)


def test_a_damaged_kb_is_refused_with_the_command_that_rebuilds_it(built):
    (built.path / "data.mdb").unlink()
    home, source = built.path.parents[3], built.manifest.source.path
    with pytest.raises(DamagedKB) as caught:
        open_toy(built)
    assert f"`kgkit build-kb toy {source} --home {home}`" in str(caught.value)


GARBAGE = {
    "nothing": b"",
    "zeros": bytes(1000),
    "no JSON": b"garbage",
    "half": b'{"format": 1, "finger',
    "no UTF-8": b'{"format": 1, "fingerprint": "\xff\xfe"}',
    "a list": b"[]",
    "null": b"null",
    "a number that is a word": b'{"format": "one"}',
    "nested beyond reason": b"[" * 100_000,
    "nested within": b'{"x":' * 100_000,
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_a_manifest_of_garbage_is_refused(built, garbage):
    (built.path / "manifest.json").write_bytes(garbage)
    with pytest.raises(DamagedKB, match="cannot be read"):
        open_toy(built)


def test_a_manifest_that_is_right_in_format_only_is_refused(built):
    (built.path / "manifest.json").write_bytes(
        msgspec.json.encode({"format": layout.FORMAT, "fingerprint": fingerprint()})
    )
    with pytest.raises(DamagedKB, match="missing required field"):
        open_toy(built)


def test_a_manifest_that_names_no_file_is_refused(built):
    rewrite(built, files={})
    with pytest.raises(DamagedKB, match=r"data\.mdb"):
        open_toy(built)


def test_a_manifest_that_may_not_be_read_is_a_sentence(built):
    path = built.path / "manifest.json"
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match="Is a directory"):
        open_toy(built)


def test_a_manifest_with_any_byte_changed_is_refused_or_found_by_verify_or_says_the_same(built):
    path = built.path / "manifest.json"
    good = path.read_bytes()
    unnamed = {"created", "kgkit_version", "options"}  # neither content nor a promise
    generator = random.Random(0)
    for at in generator.sample(range(len(good)), 300):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1 << generator.randrange(8)]) + good[at + 1 :])
        try:
            problems = verify(built.path)
        except KgkitError:
            continue
        said = msgspec.to_builtins(msgspec.json.decode(path.read_bytes(), type=Manifest))
        meant = msgspec.to_builtins(msgspec.json.decode(good, type=Manifest))
        differing = {key for key in meant if said[key] != meant[key]}
        same_source = all(
            said["source"][key] == meant["source"][key] for key in ("name", "version", "sha256")
        )
        if problems == []:
            assert differing <= unnamed | {"source"}
            assert same_source


def test_a_data_file_of_garbage_that_has_the_right_size_is_refused(built):
    data = built.path / "data.mdb"
    data.write_bytes(bytes(data.stat().st_size))
    with pytest.raises(DamagedKB, match="not a readable knowledge base"):
        open_toy(built)
    assert verify(built.path) == [
        "file: data.mdb is damaged: its checksum is not the one that the manifest has"
    ]


@pytest.mark.parametrize("left_out", ["meta", "facts"])
def test_an_environment_without_one_of_its_tables_is_refused(built, tmp_path, left_out, monkeypatch):
    tables = {name: text for name, text in layout.TABLES.items() if name != left_out}
    monkeypatch.setattr("kgkit.store.writer.TABLES", tables)
    with StoreWriter(tmp_path / "new") as store:
        store.finish()
    data = tmp_path / "new/data.mdb"
    rewrite(built, files={"data.mdb": data.stat().st_size})
    data.replace(built.path / "data.mdb")
    with pytest.raises(DamagedKB, match="not a readable knowledge base"):
        open_toy(built)


def test_an_environment_with_nothing_in_it_is_refused(built, tmp_path):
    with StoreWriter(tmp_path / "new") as store:
        store.finish()
    data = tmp_path / "new/data.mdb"
    rewrite(built, files={"data.mdb": data.stat().st_size})
    data.replace(built.path / "data.mdb")
    for _ in range(2):  # the second time too: the first let go of what it opened
        with pytest.raises(DamagedKB, match="no 'relations' in its table 'meta'"):
            open_toy(built)


# -- another format ----------------------------------------------------------------


@pytest.mark.parametrize(
    "change", [{"format": 0}, {"format": layout.FORMAT + 1}, {"fingerprint": "00000000"}]
)
def test_a_kb_of_another_format_is_refused_with_the_command_that_rebuilds_it(built, change):
    rewrite(built, **change)
    home, source = built.path.parents[3], built.manifest.source.path
    with pytest.raises(FormatMismatch, match=f"this kgkit reads format {layout.FORMAT}") as caught:
        open_toy(built)
    assert f"run `kgkit build-kb toy {source} --home {home}`" in str(caught.value)


def test_the_command_that_rebuilds_names_the_kb_if_it_is_not_called_as_its_builder(tmp_path, monkeypatch):
    built = build_toy(tmp_path, name="fruit")
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path / "home"))
    rewrite(built, format=0, source={"path": "/with space"})
    with pytest.raises(FormatMismatch) as caught:
        kgkit.open_kb("fruit")
    assert "run `kgkit build-kb toy --name fruit '/with space'`" in str(caught.value)


@pytest.mark.parametrize(
    "path, told",
    [
        (os.pathsep.join(["/a", "/b"]), "/a /b"),
        ("kb:wordnet@12", "kb:wordnet@12"),
        ("/a:b", "/a:b"),
    ],
)
def test_the_command_that_rebuilds_names_every_source(built, path, told):
    rewrite(built, format=0, source={"path": path})
    with pytest.raises(FormatMismatch, match=f"build-kb toy {told} --home"):
        open_toy(built)


def test_a_format_of_which_nothing_is_known_is_refused_too(built):
    (built.path / "manifest.json").write_text('{"what": "ever"}')
    with pytest.raises(FormatMismatch, match="run `kgkit build-kb BUILDER --name toy"):
        open_toy(built)


def test_a_kb_of_another_format_is_replaced_by_the_next_build(tmp_path):
    built = build_toy(tmp_path)
    rewrite(built, format=0)
    assert build_toy(tmp_path).path == built.path
    assert verify(built.path) == []


# -- verify --------------------------------------------------------------------------


def test_a_sound_build_has_nothing_wrong_with_it(toy_built):
    assert verify(toy_built.path) == []


def test_any_flipped_bit_in_the_data_is_found_without_walking_it(built):
    data = built.path / "data.mdb"
    good = data.read_bytes()
    generator = random.Random(0)
    for at in [0, len(good) - 1, *generator.sample(range(len(good)), 60)]:
        data.write_bytes(good[:at] + bytes([good[at] ^ 1 << generator.randrange(8)]) + good[at + 1 :])
        assert verify(built.path) == [
            "file: data.mdb is damaged: its checksum is not the one that the manifest has"
        ]
    data.write_bytes(good)
    assert verify(built.path) == []


def test_a_damaged_build_is_replaced_by_the_same_build_and_a_sound_one_is_not_written_again(tmp_path):
    built = build_toy(tmp_path)
    data = built.path / "data.mdb"
    whole, written = data.read_bytes(), data.stat().st_mtime_ns
    assert build_toy(tmp_path) == built
    assert data.stat().st_mtime_ns == written

    data.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
    assert verify(built.path)
    assert build_toy(tmp_path).build == built.build
    assert verify(built.path) == []

    (built.path / "manifest.json").write_bytes(b"")
    build_toy(tmp_path)
    assert verify(built.path) == []


def test_a_folder_that_is_not_called_as_its_build_is_found(built):
    moved = built.path.rename(built.path.with_name("000000000000"))
    assert verify(moved) == [f"name: the folder is called 000000000000, the build {built.build}"]


def test_a_manifest_that_was_changed_is_found(built):
    rewrite(built, language="en")
    (problem,) = verify(built.path)
    assert problem.startswith("name: the manifest was changed")


class Forged:
    """A reader whose tables are not what they should be; `verify`'s checks are asked directly."""

    def __init__(self, built):
        self.reader = StoreReader.open(built.path)
        self.tables = {table: dict(self.reader.items(table)) for table in layout.TABLES}

    def __getattr__(self, name):
        return getattr(self.reader, name)

    def items(self, table):
        return iter(sorted(self.tables[table].items()))

    def id_of(self, key):
        found = self.tables["keys"].get(key.encode())
        return None if found is None else int.from_bytes(found, "little")


@pytest.fixture
def forged(built):
    forged = Forged(built)
    yield forged
    forged.reader.close()


def test_a_key_that_answers_with_another_entity_is_found(forged):
    forged.tables["keys"][b"Apple"] = (4).to_bytes(4, "little")
    assert "key: 'Apple' is answered with 4, not 0" in validate._entities(forged)
    forged.tables["keys"][b"Apple"] = (99).to_bytes(4, "little")
    assert "key: one names an entity that is not there" in validate._keys(forged)
    del forged.tables["keys"][b"Apple"]
    assert any(problem.startswith("count: ") for problem in validate._keys(forged))


def test_an_entity_out_of_its_place_is_found(forged):
    rows = forged.tables["entities"]
    first, second = sorted(rows)[:2]
    rows[first], rows[second] = rows[second], rows[first]
    problems = validate._entities(forged)
    assert "id: the record at place 0 says it is 1" in problems
    assert "digest: table 'entities' is not what was written" in problems
    del rows[first]
    assert any(problem.startswith("count: 6 entities") for problem in validate._entities(forged))


def test_an_alias_of_nobody_or_with_priors_that_do_not_add_up_is_found(forged):
    rows = forged.tables["aliases"]
    sound = rows[b"apple"]
    rows[b"apple"] = sound[:8] + (99).to_bytes(4, "little") + sound[12:]
    assert "alias: b'apple' names an entity that is not there" in validate._aliases(forged)
    rows[b"apple"] = sound[:16] + sound[28:32] + sound[20:]  # the first prior is that of the second row
    assert "alias: the priors of b'apple' do not descend to a sum of 1" in validate._aliases(forged)


def test_surfaces_of_an_entity_that_are_not_those_of_the_aliases_are_found(forged):
    message = "name: table 'names' does not list for each entity the aliases that can mean it"
    rows = forged.tables["names"]
    first, second = sorted(rows)[:2]
    sound = dict(rows)
    for change in (
        {first: codec.encode([b"apple"])},
        {first: sound[second], second: sound[first]},
        {first: codec.encode(codec.decode_alias_keys(sound[first])[::-1])},
    ):
        rows |= sound | change
        forged.reader.manifest.tables["names"] = table_digest(rows)
        assert validate._aliases(forged) == [message]
    rows[first] = b"\xc1"
    assert any("'names' has a row that cannot be decoded" in each for each in validate._aliases(forged))


def table_digest(rows):
    digest = TableDigest()
    digest.update(sorted(rows.items()))
    return digest.hexdigest()


@pytest.mark.parametrize(
    ("table", "entity", "relation"),
    [("facts", 3, "before"), ("facts", 0, "in_category"), ("incoming", 0, "mentions")],
)
def test_a_fact_that_is_told_at_one_end_only_is_found(forged, table, entity, relation):
    del forged.tables[table][entity.to_bytes(4, "little")]
    assert any(
        problem.startswith("fact: relation ") and repr(relation) in problem
        for problem in validate._facts(forged)
    )


def test_a_fact_of_an_unknown_entity_is_found(forged):
    forged.tables["facts"][(0).to_bytes(4, "little")] = (99).to_bytes(4, "little") + bytes(4)
    assert "fact: table 'facts' has one of an unknown end or relation" in validate._facts(forged)


def test_what_a_manifest_counts_wrongly_is_found(built):
    counts = {"entities": 8, "triples": 11, "aliases": 9, "alias_rows": 10}
    for name, count in counts.items():
        manifest = msgspec.structs.replace(built.manifest, **{name: count})
        manifest = msgspec.structs.replace(manifest, build=build_name(manifest))
        (built.path / "manifest.json").write_bytes(msgspec.json.encode(manifest))
        assert any(problem.startswith("count: ") for problem in verify(built.path)), name


def test_verifying_a_large_relation_takes_no_time_for_every_pair(tmp_path):
    from kgkit.building import Entity, Triple

    many = 20_000
    hub = [Entity("hub"), *(Entity(f"e{n}") for n in range(many))]
    facts = [Triple(f"e{n}", "part_of", "hub") for n in range(many)]
    also = [Triple("hub", "mentions", "e0")]
    assert verify(build_toy(tmp_path, all=[*hub, *facts, *also]).path) == []


def test_the_current_build_can_be_verified_through_its_link(toy_built):
    assert verify(toy_built.path.parents[1] / "current") == []


def test_damages_are_told_without_raising(built):
    assert publish.damages(built.path) == []
    assert publish.damages(Path("/nowhere")) == ["no knowledge base in /nowhere: it has no manifest.json"]


def test_an_error_of_every_kind_survives_a_pickle(built):
    import copy
    import pickle

    from kgkit import errors

    examples = [
        errors.SourceError("short", path=Path("a.txt"), line=3, text="x" * 200),
        errors.UnknownModel("model", "wsd", ["prior"]),
        errors.MissingExtra("pandas", "pandas"),
        errors.UnknownEntity("dgo.n.01", "wordnet"),
        errors.WriteFailed("full", written=1, free=2, where=Path("/")),
        errors.NoPath("none"), errors.BuildFailed("no memory"),
        errors.ClosedKB("closed"), errors.KBBusy("busy"), errors.StaleKB("stale"),
        errors.FormatMismatch("old"), errors.DamagedKB("damaged"), errors.CatalogError("away"),
        errors.DamagedVectors("damaged"), errors.StaleVectors("stale"),
        errors.DamagedModel("damaged"), errors.StaleModel("stale"), errors.DamagedPack("damaged"),
        errors.NameConflict("taken"), errors.NetworkForbidden("a pack"), errors.UnsupportedPlatform("win32"),
    ]  # fmt: skip
    leaves = {
        kind for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, KgkitError) and not kind.__subclasses__()
    }  # fmt: skip
    assert leaves == {type(example) for example in examples}
    for example in examples:
        for again in (pickle.loads(pickle.dumps(example)), copy.copy(example)):
            assert type(again) is type(example)
            assert str(again) == str(example)
            assert vars(again) == vars(example)


def test_what_a_toy_holds_is_what_was_written(toy):
    assert [entity.key for entity in toy] == ENTITIES
    assert len(entities(3)) == 9


# -- read in a child ---------------------------------------------------------------


def replace_data(built, content):
    """Write another data.mdb into a build, with its checksum."""
    data = built.path / "data.mdb"
    data.unlink()
    data.write_bytes(content)
    rewrite(built, sha256={**built.manifest.sha256, "data.mdb": file_sha256(data)})


def test_a_page_that_ends_the_process_that_reads_it_is_damage(built):
    replace_data(built, crafted_data((built.path / "data.mdb").read_bytes()))
    (problem,) = verify(built.path)
    assert problem.startswith("table: ")


def test_a_check_that_is_killed_finds_no_damage(built, monkeypatch, tmp_path):
    (tmp_path / "lmdb.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(StoreError) as error:
        verify(built.path)
    assert type(error.value) is StoreError


def test_the_check_imports_nothing_from_the_current_directory(built, monkeypatch, tmp_path):
    for name in ("lmdb", "json", "msgspec", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(7)\n")
    monkeypatch.chdir(tmp_path)
    assert verify(built.path) == []


def test_a_table_without_an_end_is_damage(built, monkeypatch):
    def endless(self, table, prefix=b""):
        while True:
            yield bytes(4), bytes(4)

    monkeypatch.setattr(StoreReader, "items", endless)
    with pytest.raises(DamagedKB):
        validate.check_tables(built.path, built.manifest)


# -- what is written over ------------------------------------------------------------


@pytest.mark.parametrize("change", ["add", "edit"])
def test_a_table_that_is_not_what_was_written_gets_no_new_digest(built, change):
    home = built.path.parents[3]
    replace_data(built, (built.path / "data.mdb").read_bytes().replace(b"A fruit.", b"A vegan."))
    with pytest.raises(DamagedKB) as error:
        if change == "add":
            kgkit.add_to_kb("toy", [{"key": "Pear", "label": "Pear"}], home=home)
        else:
            kgkit.edit_kb("toy", [{"key": "Apple_Inc.", "description": "A firm."}], home=home)
    assert "'entities'" in str(error.value)
    assert [path.name for path in built.path.parent.iterdir()] == [built.build]


def test_a_name_whose_spellings_cannot_be_read_is_damage_where_its_plural_is_met(tmp_path):
    record = {"key": "rapid", "label": "Grand rapid"}
    path = kgkit.build_kb("jsonl", [record], name="toy", home=tmp_path, language="en").path / "data.mdb"
    document = kgkit.Document("", "the Grand rapids")
    with kgkit.open_kb("toy", home=tmp_path) as kb:
        assert [len(each.mentions[0].candidates) for each in AliasGenerator(kb)([document])] == [1]
    tail = codec.encode("Grand rapid")
    path.write_bytes(path.read_bytes().replace(tail, b"\xc1" + tail[1:]))  # a byte that MessagePack has not
    with kgkit.open_kb("toy", home=tmp_path) as kb, pytest.raises(DamagedKB):
        next(AliasGenerator(kb)([document]))


def test_a_read_that_fails_leaves_the_other_rows_readable(built):
    path = built.path / "data.mdb"
    content = bytearray(path.read_bytes())
    with open_toy(built) as kb:
        sound = [kb[number].key for number in range(kb.id_count)]
    pages = range(2, len(content) // 4096)
    tried = 0
    for page in pages:
        damaged = bytearray(content)
        damaged[page * 4096 + 10] = 0  # the kind of the page
        path.write_bytes(damaged)
        try:
            kb = open_toy(built)
        except DamagedKB:
            continue
        with kb:
            first, again = ([answer(kb, number) for number in range(kb.id_count)] for _ in range(2))
            assert first == again
            tables = [answer_table(kb.store, table) for table in sorted(kb.manifest.tables)]
            alone = []
            for table in sorted(kb.manifest.tables):
                with open_toy(built) as other:
                    alone.append(answer_table(other.store, table))
            assert tables == alone
            tried += tables.count(False) > 0
            assert (kb.store.damage_found != "") == (False in tables or None in first)
    path.write_bytes(content)
    assert tried
    with open_toy(built) as kb:
        assert [kb[number].key for number in range(kb.id_count)] == sound


def answer(kb, number):
    try:
        return kb[number].key
    except DamagedKB:
        return None


def answer_table(store, table):
    """Say whether a row of a table can be read, by its key."""
    try:
        store.row(table, b"\0\0\0\0")
    except DamagedKB:
        return False
    return True


def test_the_command_that_builds_again_has_the_options_of_the_build(tmp_path):
    source = tmp_path / "names.csv"
    source.write_text("id,name,variants\na,Anna,Ann|Anne\nb,Ben,\n")
    built = kgkit.build_kb(
        "table", source, name="t", home=tmp_path, limit=2, columns={"aliases": "variants|", "label": "name"}
    )
    folder = tmp_path / "kbs" / "t" / "builds" / built.build
    command = shlex.split(rebuild_command(folder, read_manifest(folder)))
    command.remove(str(source))
    options = dict(zip(command[3::2], command[4::2], strict=True))
    assert (options["--aliases"], options["--label"], options["--limit"]) == ("variants|", "name", "2")
