"""Where the catalog is, and how it is spoken to: SQLite and PostgreSQL alike.

A transaction that writes takes a lock first and is the only one that writes: it may read, decide and
write without another process coming in between. In SQLite that is `BEGIN IMMEDIATE`, in PostgreSQL an
advisory lock. Who has to wait does so for five seconds, and for half a minute to write runs and models, which
cannot be had again. Migrations are such transactions too.

SQLite keeps its journal in the ordinary way, not as a write-ahead log: the catalog is one file, which can be
copied and be read where nothing can be written, and what is written to it is a few rows at a time.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from kgkit.errors import CatalogError, MissingExtra
from kgkit.home import CATALOG_URL, Home

PATIENCE: Final = 5
"""Seconds until another writer has to be done."""

LONG_PATIENCE: Final = 30
"""The same, for those who write what cannot be had again."""

_REACH: Final = 5  # seconds until a server has to answer
_NO_DATABASE: Final = ("file is not a database", "database disk image is malformed")  # SQLite's words
_LOCKED: Final = "database is locked"
_HIDDEN: Final = "***"
_LOCK: Final = 0x6B676B69_74636174  # "kgkitcat"; advisory locks are numbers


def catalog_url(home: Home) -> URL:
    """Return the URL of the catalog of *home*.

    Raises:
        CatalogError: if `KGKIT_CATALOG_URL` is no URL of a database that kgkit can use.
    """
    text = os.environ.get(CATALOG_URL)
    if not text:
        return URL.create("sqlite", database=str(home.catalog))
    try:
        url = sa.make_url(text)
    except (SQLAlchemyError, ValueError):  # a port that is no number is the latter
        raise CatalogError(
            f"{CATALOG_URL} is no database URL; one looks like postgresql://user@host/database"
        ) from None
    is_file = not (url.host or url.port or url.username or url.password)
    if url.drivername == "sqlite" and is_file and url.database and url.database != ":memory:":
        return url
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    raise CatalogError(
        f"{CATALOG_URL} is {url_text(url)}: a catalog is a file of SQLite (sqlite:////path/to/file) or a "
        "database of PostgreSQL (postgresql://user@host/database)"
    )


def url_text(url: URL) -> str:
    """Return what to call a catalog in a message: a file's path, or a URL without what may be secret.

    User, password and the values of the query are hidden: PostgreSQL takes a password from either.
    """
    if url.drivername == "sqlite" and url.database and not url.host:
        return url.database
    host = (url.host or "").rpartition("@")[2] or None  # before an @ it is the end of a password that has one
    address = URL.create(url.drivername, host=host, port=url.port, database=url.database).render_as_string()
    if url.username or url.password:
        address = address.replace("://", f"://{_HIDDEN}@", 1)
    if url.query:
        address += "?" + "&".join(f"{name}={_HIDDEN}" for name in url.query)
    return address


def engine_of(url: URL, patience: int = PATIENCE) -> Engine:
    """Return an engine whose transactions are real ones.

    Args:
        url: URL of the catalog.
        patience: seconds until another writer has to be done.

    Raises:
        MissingExtra: if the database is PostgreSQL and its driver is not installed.
        CatalogError: if an option in the query of the URL is none that the driver knows.
    """
    sqlite = url.get_backend_name() == "sqlite"
    # Nothing is pooled: a catalog is opened for a moment.
    settings: dict[str, Any] = {
        "poolclass": sa.NullPool,
        "execution_options": {"kgkit_patience": patience},
    }
    if sqlite:
        settings["connect_args"] = {"timeout": patience}
    elif "connect_timeout" not in url.query:
        settings["connect_args"] = {"connect_timeout": _REACH}
    try:
        engine = sa.create_engine(url, **settings)
    except ModuleNotFoundError as error:
        raise MissingExtra("psycopg", "postgres") from error
    except (SQLAlchemyError, ValueError):  # which may show the value
        raise CatalogError(
            f"the catalog {url_text(url)} cannot be used: an option in its query is not one of the driver's, "
            "or has a value that it does not take"
        ) from None
    if sqlite:
        event.listen(engine, "connect", _set_pragmas)
        event.listen(engine, "begin", _begin)
    return engine


@contextmanager
def transaction(engine: Engine, *, writing: bool = False, rebuilding: bool = False) -> Iterator[Connection]:
    """Give a connection in a transaction, which is committed at the end of the block if that ends well.

    Args:
        engine: engine as `engine_of` makes it.
        writing: whether to take the lock.
        rebuilding: whether to let SQLite look away while a migration replaces tables that others refer to.

    Raises:
        CatalogError: for everything the database complains of.
    """
    try:
        with engine.connect().execution_options(kgkit_writing=writing) as connection:
            if rebuilding and engine.dialect.name == "sqlite":
                # Has no effect within a transaction, so it comes before one.
                connection.connection.execute("PRAGMA foreign_keys = OFF")
            with connection.begin():
                if writing and engine.dialect.name == "postgresql":
                    patience = engine.get_execution_options()["kgkit_patience"]
                    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{patience}s'")
                    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
                yield connection
    except SQLAlchemyError as error:
        raise CatalogError(
            f"the catalog {url_text(engine.url)} cannot be used: {_reason(error, engine)}"
        ) from error


def home_in(url: URL, home: Home) -> str:
    """Return what the rows of *home* say in their column `home`."""
    # Not `Path.resolve`: that raises for links in a circle, before the database can say what is wrong.
    real = os.path.realpath
    inside = url.get_backend_name() == "sqlite" and real(str(url.database)) == real(home.catalog)
    return "." if inside else real(home.path)


def _set_pragmas(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # or the module begins transactions where it sees fit
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: Connection) -> None:
    writing = connection.get_execution_options().get("kgkit_writing")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _reason(error: SQLAlchemyError, engine: Engine) -> str:
    """Return the first line of what the database itself said, and what helps where that is plain."""
    message = str(getattr(error, "orig", None) or error).strip()
    reason = message.splitlines()[0] if message else type(error).__name__
    url = engine.url
    secrets = [url.username, url.password]
    host = url.host or ""
    if "@" in host:
        reason = reason.replace(host, host.rpartition("@")[2])
        reason += ". A password with @ in it has %40 there"
    for values in url.query.values():
        secrets += [values] if isinstance(values, str) else values
    for secret in filter(None, secrets):  # libpq quotes the values that it does not take
        for quote in "'\"":
            reason = reason.replace(f"{quote}{secret}{quote}", f"{quote}{_HIDDEN}{quote}")
    if reason == _LOCKED:
        patience = engine.get_execution_options()["kgkit_patience"]
        reason += f": another process has been writing to it for {patience} s"
    if reason in _NO_DATABASE:
        reason += ". Move the file away, and `kgkit kb list` makes a new one"
    return reason
