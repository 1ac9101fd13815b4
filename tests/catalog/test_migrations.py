"""The catalog's tables: made, changed and taken back by the same migrations in SQLite and in PostgreSQL."""

import shutil
import subprocess
import sys
import tomllib

import pytest
import sqlalchemy as sa
from alembic.config import CommandLine

from kgkit.catalog import Base, Catalog
from kgkit.catalog import migrating as migrating_module
from kgkit.catalog.database import catalog_url, engine_of, transaction, url_text
from kgkit.catalog.migrating import migrations, revision_of
from kgkit.errors import CatalogError, MissingExtra
from kgkit.home import Home
from tests.cli_helpers import process
from tests.conftest import ROOT
from tests.toys import child_env, run_python

TABLES = {"kbs", "builds", "vectors", "indexes", "models", "runs", "scores"}

SECOND = """
import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    with op.batch_alter_table("kbs") as table:
        table.add_column(sa.Column("note", sa.String(), nullable=False, server_default="none"))
        table.alter_column("name", type_=sa.String(64))
    {and_then}
"""


@pytest.fixture
def alembic(catalogued, monkeypatch):
    """The command `alembic`, as called in the checkout; the catalog is that of `catalogued`."""
    monkeypatch.chdir(ROOT)
    catalogued.path.mkdir()
    return lambda *args: CommandLine().main(argv=list(args))


@pytest.fixture
def next_kgkit(tmp_path, monkeypatch):
    """Make this a kgkit that knows one migration more."""

    def make(and_then: str = "pass") -> None:
        folder = tmp_path / "100% migrations"
        shutil.copytree(migrations(), folder, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "versions" / "0003_second.py").write_text(SECOND.replace("{and_then}", and_then))
        monkeypatch.setattr(migrating_module, "migrations", lambda: folder)

    return make


def tables(home: Home) -> set[str]:
    with transaction(engine_of(catalog_url(home))) as connection:
        return set(sa.inspect(connection).get_table_names())


def shape(engine: sa.Engine) -> dict[str, object]:
    """Return all that the database knows of its tables."""
    with transaction(engine) as connection:
        look = sa.inspect(connection)
        return {
            name: [
                [
                    (column["name"], str(column["type"]), column["nullable"])
                    for column in look.get_columns(name)
                ],
                look.get_pk_constraint(name),
                look.get_foreign_keys(name),
                sorted(look.get_unique_constraints(name), key=str),
                look.get_indexes(name),
            ]
            for name in sorted(TABLES)
        }


# -- up and down ------------------------------------------------------------


def test_an_empty_catalog_gets_its_tables_when_it_is_opened(catalogued):
    with Catalog.open(catalogued) as catalog:
        assert catalog.kbs() == catalog.builds() == []
    assert tables(catalogued) == {*TABLES, "alembic_version"}


def test_the_migrations_end_where_the_models_stand(alembic):
    alembic("upgrade", "head")
    alembic("check")


def test_a_column_that_no_migration_makes_fails_the_check(alembic, catalogued, capsys):
    alembic("upgrade", "head")
    with transaction(engine_of(catalog_url(catalogued)), writing=True) as connection:
        connection.execute(sa.text("ALTER TABLE kbs ADD COLUMN colour VARCHAR"))
    with pytest.raises(SystemExit):
        alembic("check")
    assert "colour" in capsys.readouterr().out


def test_what_goes_up_comes_down_and_goes_up_again(alembic, catalogued):
    alembic("upgrade", "head")
    alembic("downgrade", "base")
    assert tables(catalogued) == {"alembic_version"}
    with Catalog.open(catalogued):
        assert tables(catalogued) == {*TABLES, "alembic_version"}


def test_migrated_tables_and_those_of_the_models_are_alike_to_the_names_of_constraints(catalogued):
    with Catalog.open(catalogued):
        engine = engine_of(catalog_url(catalogued))
    migrated = shape(engine)
    with transaction(engine, writing=True) as connection:
        Base.metadata.drop_all(connection)
        Base.metadata.create_all(connection)
    assert migrated == shape(engine)
    assert "uq_builds_kb_id_name" in str(migrated)


def test_alembic_runs_as_a_command_in_the_checkout(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "upgrade", "head"],
        cwd=ROOT,
        env=child_env(KGKIT_HOME=str(tmp_path / "new")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert tables(Home(tmp_path / "new")) >= TABLES


# -- which revision ---------------------------------------------------------


def test_a_wheel_has_the_migrations_where_they_are_looked_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"alembic": "kgkit/catalog/migrations"}
    assert "/alembic" in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert migrations() in (ROOT / "alembic", ROOT / "kgkit" / "catalog" / "migrations")


def test_a_catalog_that_is_as_it_should_be_is_opened_without_alembic(tmp_path):
    with Catalog.open(Home(tmp_path)):
        pass
    code = "import sys; from kgkit.catalog import Catalog; Catalog.open(); print('alembic' in sys.modules)"
    assert run_python(code, KGKIT_HOME=str(tmp_path)).stdout == "False\n"


def test_a_catalog_of_a_newer_kgkit_is_refused_and_left_alone(catalogued):
    with Catalog.open(catalogued) as catalog, catalog.writing() as session:
        session.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(CatalogError, match="9999"):
        Catalog.open(catalogued)
    with transaction(engine_of(catalog_url(catalogued))) as connection:
        assert revision_of(connection) == "9999"


def test_an_older_catalog_is_migrated_and_keeps_its_rows(catalogued, next_kgkit):
    with Catalog.open(catalogued) as catalog, catalog.writing() as session:
        session.execute(sa.text("INSERT INTO kbs (id, home, name) VALUES (7, '.', 'birds')"))
        session.execute(
            sa.text("INSERT INTO models (id, home, name, kind, config, created)"
                    " VALUES (1, '.', 'm', 'k', '{}', '2026-11-21 12:00:00')")
        )  # fmt: skip
    next_kgkit()
    with Catalog.open(catalogued) as catalog, catalog.reading() as session:
        assert session.execute(sa.text("SELECT id, name, note FROM kbs")).all() == [(7, "birds", "none")]
        assert session.execute(sa.text("SELECT name FROM models")).all() == [("m",)]


def test_a_table_that_others_refer_to_can_be_replaced(catalogued, next_kgkit):
    with Catalog.open(catalogued) as catalog, catalog.writing() as session:
        session.execute(sa.text("INSERT INTO runs (id, home, command, config, seeds, data, versions, device,"
                                " started, status) VALUES (1, '.', 'c', '{}', '[]', '{}', '{}', 'cpu',"
                                " '2026-11-21 12:00:00', 'done')"))  # fmt: skip
        session.execute(sa.text("INSERT INTO scores (run_id, task, dataset, metric, value, n)"
                                " VALUES (1, 'wsd', 'd', 'f1', 0.5, 2)"))  # fmt: skip
    next_kgkit('with op.batch_alter_table("runs", recreate="auto") as table:\n'
               '        table.alter_column("status", new_column_name="state")')  # fmt: skip
    with Catalog.open(catalogued) as catalog:
        with catalog.reading() as session:
            query = "SELECT state, value FROM scores JOIN runs ON runs.id = run_id"
            assert session.execute(sa.text(query)).all() == [("done", 0.5)]
        with pytest.raises(CatalogError, match=r"(?i)foreign key"), catalog.writing() as session:
            session.execute(sa.text("UPDATE scores SET run_id = 5"))


def test_a_migration_that_fails_leaves_the_catalog_as_it_was(catalogued, next_kgkit):
    with Catalog.open(catalogued):
        before = shape(engine_of(catalog_url(catalogued)))
    next_kgkit('op.execute("SELECT nonsense FROM nowhere")')
    with pytest.raises(CatalogError, match="nowhere"):
        Catalog.open(catalogued)
    engine = engine_of(catalog_url(catalogued))
    assert shape(engine) == before
    with transaction(engine) as connection:
        assert revision_of(connection) == "0002"


# -- which database ---------------------------------------------------------


def test_the_catalog_is_a_file_in_the_home_unless_a_url_names_another(monkeypatch):
    home = Home.find("somewhere")
    assert catalog_url(home).database == str(home.path / "catalog.db")
    monkeypatch.setenv("KGKIT_CATALOG_URL", "sqlite:////elsewhere/file.db")
    assert catalog_url(home).database == "/elsewhere/file.db"


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+psycopg", "postgres"])
def test_postgresql_is_reached_through_psycopg_however_it_is_written(scheme, monkeypatch):
    monkeypatch.setenv("KGKIT_CATALOG_URL", f"{scheme}://me@host/db?connect_timeout=3")
    found = catalog_url(Home.find("home")).render_as_string()
    assert found == "postgresql+psycopg://me@host/db?connect_timeout=3"


@pytest.mark.parametrize(
    "url",
    [
        "nonsense", "mysql://me:secret@host/db", "mysql://host/db?passwd=secret", "sqlite://",
        "sqlite:///:memory:", "sqlite://me:secret@host/file.db", "sqlite://host/file.db",
        "postgresql+asyncpg://h/d?password=secret",
    ],
)  # fmt: skip
def test_a_url_of_another_kind_is_refused_with_what_one_looks_like(url, monkeypatch):
    monkeypatch.setenv("KGKIT_CATALOG_URL", url)
    with pytest.raises(CatalogError, match="postgresql://user@host/database") as caught:
        Catalog.open(Home.find("home"))
    assert "secret" not in str(caught.value)


def test_a_password_with_an_at_sign_is_not_printed_in_part(monkeypatch, tmp_path):
    pytest.importorskip("psycopg")
    monkeypatch.setenv("KGKIT_CATALOG_URL", "postgresql://me:sec@ret@127.0.0.1:1/x")
    with pytest.raises(CatalogError) as failed:
        Catalog.open(Home(tmp_path))
    assert "ret@" not in str(failed.value) and "***@127.0.0.1:1/x" in str(failed.value)
    assert "A password with @ in it has %40 there" in str(failed.value)


def test_a_server_that_does_not_answer_is_named_without_its_password(monkeypatch, tmp_path):
    monkeypatch.setenv("KGKIT_CATALOG_URL", f"postgresql://me:secret@/db?host={tmp_path}")
    pytest.importorskip("psycopg")
    with pytest.raises(CatalogError, match=r"^the catalog postgresql\+psycopg://\*\*\*@") as caught:
        Catalog.open(Home(tmp_path))
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_driver_is_named_with_its_extra(monkeypatch):
    monkeypatch.setenv("KGKIT_CATALOG_URL", "postgresql://host/db")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"kgkit\[postgres\]"):
        Catalog.open(Home.find("home"))


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "catalog.db").write_text("Dear diary, " * 1000)
    with pytest.raises(CatalogError, match=r"catalog\.db"):
        Catalog.open(Home(tmp_path))
    assert (tmp_path / "catalog.db").read_text().startswith("Dear diary")


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    ["user=me&password=secret", "password=other&password=secret", "sslmode=secret", "connect_timeout=secret"],
)
def test_what_stands_in_the_query_of_a_url_is_never_shown(query, monkeypatch, tmp_path):
    """libpq takes user and password from there too, and quotes the values that it does not take."""
    pytest.importorskip("psycopg")
    monkeypatch.setenv("KGKIT_CATALOG_URL", f"postgresql://127.0.0.1:1/db?{query}")
    with pytest.raises(CatalogError, match=r"127\.0\.0\.1:1/db\?.*=\*\*\* cannot be used") as caught:
        Catalog.open(Home(tmp_path))
    assert "secret" not in str(caught.value) and "=me" not in str(caught.value)
    done = process("kb", "list", KGKIT_CATALOG_URL=f"postgresql://127.0.0.1:1/db?{query}")
    assert "secret" not in done.err + done.out and "Traceback" not in done.err


def test_an_option_of_sqlite_that_cannot_be_read_is_one_sentence_without_its_value(monkeypatch, tmp_path):
    monkeypatch.setenv("KGKIT_CATALOG_URL", f"sqlite:///{tmp_path}/c.db?uri=true&timeout=secret")
    with pytest.raises(CatalogError, match="an option in its query") as caught:
        Catalog.open(Home(tmp_path))
    assert "secret" not in str(caught.value)


def test_a_url_is_told_as_a_path_or_without_what_may_be_secret():
    assert url_text(sa.make_url("sqlite:////data/catalog.db")) == "/data/catalog.db"
    assert url_text(sa.make_url("postgresql://host:5/db")) == "postgresql://host:5/db"
    assert url_text(sa.make_url("postgresql://me:secret@host/db")) == "postgresql://***@host/db"
    written = url_text(sa.make_url("postgresql://host/db?user=me&password=secret"))
    assert written == "postgresql://host/db?user=***&password=***"
