"""The catalog follows what lies on disk: told of builds, catching up after crashes, in nobody's way."""

import datetime
import json
import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from kgkit.building.registering import agrees, reconcile, register
from kgkit.catalog import Build, Catalog, Changes, Run, Score
from kgkit.catalog.database import LONG_PATIENCE
from kgkit.commands.messages import Messages
from kgkit.errors import CatalogError
from kgkit.home import CATALOG_URL, Home
from kgkit.store import FORMAT, prune, remove
from kgkit.store.manifest import read_manifest
from tests.cli_helpers import process, run
from tests.mini_wordnet import mini_wordnet
from tests.toys import build_toy, child_env, entities, run_python

NOW = datetime.datetime(2026, 11, 21, 12, tzinfo=datetime.UTC)

DIES = """
import os, signal, sys
from pathlib import Path
from kgkit.building import registering
registering.register = lambda home, name, build: os.kill(os.getpid(), signal.SIGKILL)
from tests.toys import build_toy
home = Path(sys.argv[1])
build_toy(home.parent, home=home)
"""

ALL_AT_ONCE = """
import sys
from kgkit.building.registering import register
from kgkit.catalog import Catalog  # loaded before the start
import alembic.command
from kgkit.home import CATALOG_URL, Home
home = Home.find()
print("ready", flush=True)
for line in sys.stdin:
    register(home, sys.argv[1], "")
    print("done", flush=True)
"""


@pytest.fixture
def home(catalogued):
    """A home with the KB `toy`, registered."""
    built = build(catalogued, 2)
    register(catalogued, "toy", built)
    return catalogued


def build(home: Home, size: int, name: str = "toy") -> str:
    home.path.mkdir(exist_ok=True)
    return build_toy(home.path.parent, name=name, home=home.path, pages=entities(size)).build


def builds(home: Home, *, gone: bool = True) -> list[Build]:
    with Catalog.open(home) as catalog:
        return catalog.builds(include_removed=gone)


def states(home: Home) -> dict[str, str]:
    """Return what the catalog says of each build: published, kept or gone."""
    return {
        f"{row.kb.name}@{row.name}": "gone" if row.gone else "published" if row.published else "kept"
        for row in builds(home)
    }


def contents(home: Home) -> list[dict[str, object]]:
    """Return all that the catalog says of builds, but for the numbers of its rows."""
    columns = [column.name for column in Build.__table__.columns if column.name not in ("id", "kb_id")]
    return [{"kb": row.kb.name, **{name: getattr(row, name) for name in columns}} for row in builds(home)]


def forget(home: Home) -> None:
    """Take every row of the catalog."""
    with Catalog.open(home) as catalog, catalog.writing() as session:
        for row in catalog.builds(include_removed=True):
            session.delete(row)


# -- told of a build --------------------------------------------------------


def test_a_registered_build_has_what_its_manifest_says(home):
    [row] = builds(home)
    manifest = read_manifest(home.kb("toy").builds / row.name)
    same = "base", "builder", "builder_version", "kgkit_version", "format", "entities", "triples", "aliases"
    assert {name: getattr(row, name) for name in same} == {name: getattr(manifest, name) for name in same}
    assert (row.kb.name, row.name, row.published, row.gone) == ("toy", manifest.build, True, None)
    assert (row.source, row.source_version, row.licence) == ("Toy", "1", "CC0-1.0")
    assert row.source_sha256 == manifest.source.sha256
    assert row.created.isoformat(timespec="seconds") == manifest.created
    files = [home.kb("toy").current / name for name in ("data.mdb", "surfaces.trigrams")]
    assert row.size == sum(path.stat().st_size for path in files)


def test_the_catalog_knows_which_build_is_published_and_which_was_swept(home):
    one = home.kb("toy").published()
    two = build(home, 3)
    register(home, "toy", two)
    assert states(home) == {f"toy@{one}": "kept", f"toy@{two}": "published"}
    three = build(home, 4)
    register(home, "toy", three)
    assert states(home) == {f"toy@{one}": "gone", f"toy@{two}": "kept", f"toy@{three}": "published"}
    with Catalog.open(home) as catalog:
        [kb] = catalog.kbs()
        assert (kb.name, kb.published and kb.published.name) == ("toy", three)
        assert [row.name for row in catalog.builds("toy")] == [two, three]
        assert catalog.builds("other") == []


def test_registering_again_changes_nothing(home):
    before = [(row.id, row.created) for row in builds(home)]
    register(home, "toy", "")
    assert [(row.id, row.created) for row in builds(home)] == before
    assert reconcile(home) == ([], [], [])


def test_registering_one_kb_leaves_the_others_to_the_list(home):
    build(home, 2, "other")
    forget(home)
    register(home, "toy", "")
    assert {name.partition("@")[0] for name in states(home)} == {"toy"}


# -- catching up ------------------------------------------------------------


def test_the_list_finds_what_was_copied_by_hand(home):
    build = home.kb("toy").published()
    shutil.copytree(home.path / "kbs" / "toy", home.path / "kbs" / "copy", symlinks=True)
    assert run("kb", "list").code == 0
    assert states(home) == {f"copy@{build}": "published", f"toy@{build}": "published"}


def test_the_list_marks_what_is_gone_and_unmarks_what_is_back(home):
    old = home.kb("toy").published()
    new = build(home, 3)
    prune(home.kb("toy"))
    reconcile(home)
    assert states(home) == {f"toy@{new}": "published", f"toy@{old}": "gone"}
    shutil.copytree(home.path / "kbs", home.path / "saved", symlinks=True)
    remove(home.kb("toy"))
    assert run("kb", "list").err.startswith("no knowledge base")
    assert set(states(home).values()) == {"gone"}
    with Catalog.open(home) as catalog:
        assert catalog.kbs() == catalog.builds() == []
    shutil.rmtree(home.path / "kbs")
    (home.path / "saved").rename(home.path / "kbs")
    assert reconcile(home) == ([f"toy@{new}"], [], [])
    assert states(home) == {f"toy@{new}": "published", f"toy@{old}": "gone"}


def test_a_score_keeps_its_build_when_that_is_gone(home):
    with Catalog.open(home) as catalog:
        [row] = catalog.builds()
        measured = Run(
            home=catalog.home, command="kgkit …", config={"build": row.id}, seeds=[1], data={}, versions={},
            device="cpu", started=NOW, status="done",
            scores=[Score(task="wsd", dataset="all", metric="f1", value=0.8, n=9)],
        )  # fmt: skip
        catalog.add(measured)
    remove(home.kb("toy"))
    reconcile(home)
    with Catalog.open(home) as catalog, catalog.reading() as session:
        assert session.get_one(Run, measured.id).scores[0].value == 0.8
        assert session.get_one(Build, row.id).gone is not None


def test_a_deleted_catalog_is_made_again_from_the_manifests(tmp_path, monkeypatch):
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path / "home"))
    home = Home(tmp_path / "home")
    for size in 2, 3:
        register(home, "toy", build(home, size))
    register(home, "other", build(home, 2, "other"))
    before = contents(home)
    home.catalog.unlink()
    assert run("kb", "list").err == ""
    assert len(before) == 3
    assert contents(home) == before


@pytest.mark.slow
def test_a_build_killed_before_it_was_registered_is_found_by_the_next_list(catalogued):
    done = run_python(DIES, catalogued.path)
    assert done.returncode == -signal.SIGKILL, done.stderr
    published = catalogued.kb("toy").published()
    assert published
    assert builds(catalogued) == []
    assert process("kb", "list").code == 0
    assert states(catalogued) == {f"toy@{published}": "published"}


def test_a_build_that_cannot_be_read_keeps_what_was_known_of_it(home):
    build(home, 2, "other")
    forget(home)
    register(home, "toy", "")
    for name in "toy", "other":
        manifest = home.kb(name).current / "manifest.json"
        manifest.write_text(manifest.read_text().replace(f'"format": {FORMAT}', '"format": 99'))
    assert reconcile(home) == ([], [], [])
    assert agrees(home) == (os.environ.get("KGKIT_CATALOG_URL") is None)
    assert states(home) == {f"toy@{home.kb('toy').published()}": "published"}


# -- homes ------------------------------------------------------------------


def test_a_copied_home_has_a_catalog_that_is_right(tmp_path):
    home = Home(tmp_path / "home")
    register(home, "toy", build(home, 2))
    shutil.copytree(home.path, tmp_path / "copy", symlinks=True)
    assert reconcile(Home(tmp_path / "copy")) == ([], [], [])
    assert states(Home(tmp_path / "copy")) == states(home)


def test_homes_that_share_a_database_do_not_see_each_other(catalogued, tmp_path, monkeypatch):
    if "KGKIT_CATALOG_URL" not in os.environ:
        monkeypatch.setenv("KGKIT_CATALOG_URL", f"sqlite:///{tmp_path}/shared.db")
    one, two = Home(tmp_path / "one"), Home(tmp_path / "two")
    register(one, "toy", build(one, 2))
    register(two, "toy", build(two, 3))
    remove(one.kb("toy"))
    assert len(reconcile(one).removed) == 1
    assert reconcile(two) == ([], [], [])
    assert list(states(one).values()) == ["gone"]
    assert list(states(two).values()) == ["published"]


def test_one_home_by_two_paths_is_one_home(catalogued, tmp_path):
    register(catalogued, "toy", build(catalogued, 2))
    (tmp_path / "alias").symlink_to(catalogued.path)
    assert reconcile(Home(tmp_path / "alias")) == ([], [], [])


def test_looking_at_an_empty_folder_leaves_nothing_in_it(tmp_path):
    assert run("kb", "list", "--home", tmp_path / "none").code == 0
    assert run("kb", "list", "--home", tmp_path).code == 0
    assert list(tmp_path.iterdir()) == []


# -- many at once -----------------------------------------------------------


@pytest.mark.slow
def test_eight_processes_register_at_once_in_an_empty_catalog_and_again_in_one_with_tables(catalogued):
    names = [f"kb{number}" for number in range(8)]
    made = {f"{name}@{build(catalogued, 2, name)}": "published" for name in names}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", ALL_AT_ONCE, name],
            env=child_env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for name in names
    ]  # fmt: skip
    said(children, "ready")
    for prepare in empty, forget:
        prepare(catalogued)
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        said(children, "done")
        assert states(catalogued) == made
    assert [child.communicate(timeout=300) for child in children] == [("", "")] * 8


def said(children: Sequence["subprocess.Popen[str]"], word: str) -> None:
    """Wait until all of them have said *word*."""
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == f"{word}\n"


def empty(home: Home) -> None:
    """Make the catalog what it was before anybody opened it."""
    if "KGKIT_CATALOG_URL" not in os.environ:
        home.catalog.unlink(missing_ok=True)
        return
    import sqlalchemy as sa

    from kgkit.catalog.database import catalog_url, engine_of, transaction

    with transaction(engine_of(catalog_url(home)), writing=True) as connection:
        connection.execute(sa.text("DROP SCHEMA public CASCADE"))
        connection.execute(sa.text("CREATE SCHEMA public"))


def test_a_glance_at_the_file_says_whether_there_is_anything_to_change(tmp_path):
    home = Home(tmp_path / "home")

    def check(right: bool) -> None:
        assert agrees(home) == right
        assert any(reconcile(home)) != right
        assert agrees(home)

    assert agrees(home)
    first = build(home, 2)
    home.catalog.unlink(missing_ok=True)
    check(False)
    shutil.copytree(home.path / "kbs" / "toy", home.path / "kbs" / "copy", symlinks=True)
    check(False)
    register(home, "toy", build(home, 3))
    check(True)
    prune(home.kb("toy"))
    check(False)
    remove(home.kb("copy"))
    check(False)
    second = home.kb("toy").published()
    register(home, "toy", build(home, 2))
    home.kb("toy").current.unlink()
    home.kb("toy").current.symlink_to(Path("builds", str(second)))
    check(False)
    assert states(home)[f"toy@{first}"] == "kept"
    home.catalog.write_text("Dear diary")
    assert not agrees(home)


def test_a_list_that_has_nothing_to_change_does_not_load_sqlalchemy(tmp_path):
    home = Home(tmp_path / "home")
    register(home, "toy", build(home, 2))
    code = (
        "import sys; from kgkit.commands.kb.list_kbs import list_kbs; from pathlib import Path\n"
        "list_kbs(Path(sys.argv[1])); print('sqlalchemy' in sys.modules)"
    )
    assert run_python(code, home.path).stdout.splitlines()[-1] == "False"


def test_a_list_that_has_nothing_to_change_waits_for_nobody(tmp_path):
    home = Home(tmp_path / "home")
    register(home, "toy", build(home, 2))
    with closing(sqlite3.connect(home.catalog, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert reconcile(home) == Changes([], [], [])


# -- a catalog that fails ---------------------------------------------------


@pytest.fixture
def broken(tmp_path):
    """A home with a KB, whose catalog cannot be opened."""
    home = Home(tmp_path / "home")
    build(home, 2)
    home.catalog.unlink(missing_ok=True)
    home.catalog.mkdir()
    return home


def test_a_build_is_a_success_even_if_the_catalog_cannot_be_told(broken, caplog):
    register(broken, "toy", "0123456789ab")
    [said] = caplog.messages
    assert said.startswith(
        "toy@0123456789ab is published but not in the catalog; `kgkit kb list` will catch up: "
    )
    assert str(broken.catalog) in said
    assert "\n" not in said
    assert caplog.records[0].levelno == logging.WARNING


def test_the_command_says_in_one_line_that_the_catalog_could_not_be_told(tmp_path):
    source = mini_wordnet(tmp_path / "source")
    (tmp_path / "home" / "catalog.db").mkdir(parents=True)
    args = ("build-kb", "wordnet", source, "--home", tmp_path / "home")
    done = run(*args)
    assert done.code == 0
    [warning] = [line for line in done.err.splitlines() if line.startswith("warning: ")]
    assert warning.startswith("warning: wordnet@")
    assert run(*args, "--quiet").err == ""


def test_the_list_goes_without_the_catalog_with_one_warning(broken):
    done = run("kb", "list", "--home", broken.path)
    assert done.code == 0
    assert done.out.splitlines()[1].startswith("toy\t")
    assert done.err.startswith(f"warning: the catalog {broken.catalog} cannot be used: ")
    assert len(done.err.splitlines()) == 1
    [kb] = json.loads(run("kb", "list", "--home", broken.path, "--json").out)
    assert kb["name"] == "toy"
    assert run("kb", "list", "--home", broken.path, "--quiet").err == ""


def test_a_catalog_that_is_a_link_in_a_circle_is_one_that_cannot_be_used(tmp_path, caplog):
    home = Home(tmp_path / "home")
    name = build(home, 2)
    home.catalog.unlink(missing_ok=True)
    home.catalog.symlink_to(home.catalog)
    register(home, "toy", name)
    assert "cannot be used" in caplog.text


def test_the_list_goes_without_a_catalog_that_is_newer_or_not_there_or_nonsense(tmp_path, monkeypatch):
    home = Home(tmp_path / "home")
    register(home, "toy", build(home, 2))
    for url in (
        "nonsense",
        "postgresql://user@host:port/db",
        f"postgresql:///db?host={tmp_path}",
        f"sqlite:///{tmp_path}/no/folder/catalog.db",
    ):
        monkeypatch.setenv("KGKIT_CATALOG_URL", url)
        done = run("kb", "list", "--home", home.path)
        assert (done.code, len(done.out.splitlines()), len(done.err.splitlines())) == (0, 2, 1), url
        assert done.err.startswith("warning: ")
    monkeypatch.delenv("KGKIT_CATALOG_URL")
    with closing(sqlite3.connect(home.catalog)) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    shutil.copytree(home.path / "kbs" / "toy", home.path / "kbs" / "copy", symlinks=True)
    done = run("kb", "list", "--home", home.path)
    assert (done.code, len(done.out.splitlines())) == (0, 3)
    assert "Upgrade kgkit" in done.err


def test_what_the_library_warns_of_during_a_command_is_a_line_on_standard_error(capsys, monkeypatch):
    with Messages().progress("building"):
        logging.getLogger("kgkit.somewhere").warning("%s may be wrong", "this")
        logging.getLogger("kgkit.somewhere").info("nobody asked")
    monkeypatch.setattr(Messages, "quiet", True)
    with Messages().progress("building"):
        logging.getLogger("kgkit.somewhere").warning("not this")
    assert capsys.readouterr().err == "warning: this may be wrong\n"


# -- a catalog that another process holds -----------------------------------------


@pytest.fixture
def waits(home, monkeypatch):
    """The seconds that connections to a locked catalog would wait; they do not."""
    seconds, connect = [], sqlite3.connect

    def connect_at_once(*args, timeout=5.0, **kwargs):
        seconds.append(timeout)
        return connect(*args, timeout=0, **kwargs)

    if os.environ.get(CATALOG_URL):
        pytest.skip("readers of PostgreSQL do not wait for writers")
    monkeypatch.setattr(sqlite3, "connect", connect_at_once)
    monkeypatch.setattr(sqlite3.dbapi2, "connect", connect_at_once)
    with closing(connect(home.catalog, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        yield seconds
        holder.execute("ROLLBACK")


def test_a_locked_catalog_keeps_a_listing_waiting_for_some_seconds_in_all(home, waits):
    assert not agrees(home)
    with pytest.raises(CatalogError):
        reconcile(home)
    assert 0 < sum(waits) <= 5


def test_a_locked_catalog_keeps_a_build_waiting_for_some_seconds_and_nothing_is_lost(home, waits, caplog):
    second = build(home, 3)
    assert 0 < sum(waits) <= 5
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert home.kb("toy").published() == second


def test_the_scores_of_a_run_are_waited_with_for_longer(home, waits):
    with pytest.raises(CatalogError):
        Catalog.open(home, patience=LONG_PATIENCE)
    assert max(waits) == LONG_PATIENCE
