"""One handle over the catalog of a home."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, NamedTuple, Self

from sqlalchemy import select
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session

from kgkit.catalog.database import catalog_url, engine_of, home_in, told, transaction
from kgkit.catalog.migrating import upgrade
from kgkit.catalog.models import KB, Base, Build
from kgkit.errors import CatalogError
from kgkit.home import Home


class FoundKB(NamedTuple):
    """A KB as it lies on disk.

    Attributes:
        name: of the KB.
        published: the BUILD that the name stands for.
        builds: what each build's manifest says, as columns of `Build`; None where that cannot be read.
    """

    name: str
    published: str | None
    builds: Mapping[str, Mapping[str, Any] | None]


class Changes(NamedTuple):
    """What a reconciliation had to change: builds, as `NAME@BUILD`.

    Attributes:
        added: were not in the catalog, or had been gone and are back.
        changed: it said something else of them.
        gone: are no longer on disk.
    """

    added: Sequence[str] = ()
    changed: Sequence[str] = ()
    gone: Sequence[str] = ()


class Catalog:
    """What a home has and had: an index over its manifests, and a diary of its runs.

    A catalog that is opened is of the newest revision: it is made or migrated
    if need be. Rows are read in one snapshot and stay readable when it is over.
    There is one writer at a time; a second one waits. What its block did is
    written when the block ends, or, if it fails, not at all.

    Example:
        >>> with Catalog.open() as catalog:
        ...     [(build.kb.name, build.name, build.entities) for build in catalog.builds()]
        [('wordnet', '045c9aea91c8', 324608)]
    """

    def __init__(self, engine: Engine, home: str) -> None:
        self._engine, self.home = engine, home

    @classmethod
    def open(cls, home: Home | None = None) -> Self:
        """Open the catalog of *home*, or of the home that `KGKIT_HOME` names.

        Raises:
            CatalogError: if it cannot be reached or made, or is newer than this kgkit.
            MissingExtra: if it is in PostgreSQL and the driver is not installed.
        """
        home = home or Home.find()
        url = catalog_url(home)
        here = home_in(url, home)
        if here == ".":
            try:
                home.path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise CatalogError(f"no catalog can be made in {home.path}: {error.strerror}") from error
        engine = engine_of(url)
        upgrade(engine)
        return cls(engine, here)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.dispose()

    def __repr__(self) -> str:
        return f"<catalog of {self.home} in {told(self._engine.url)}>"

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Give a session that sees one snapshot; what is done to its rows is not kept."""
        with transaction(self._engine) as connection, _session(connection) as session:
            yield session
            session.expunge_all()

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Give a session that is the only one that writes; it is committed at the end of the block."""
        with transaction(self._engine, writing=True) as connection, _session(connection) as session:
            yield session
            session.flush()

    def add(self, *rows: Base) -> None:
        """Write new rows: a run, its scores, a model; afterwards they have their `id`."""
        with self.writing() as session:
            session.add_all(rows)

    def kbs(self) -> list[KB]:
        """Return the KBs of this home that are there, by name."""
        with self.reading() as session:
            rows = session.scalars(select(KB).where(KB.home == self.home).order_by(KB.name)).all()
            return [kb for kb in rows if kb.published]

    def builds(self, kb: str | None = None, *, gone: bool = False) -> list[Build]:
        """Return the builds of this home, or of one KB: by name, then by age.

        Args:
            kb: of this KB only.
            gone: those too that are no longer on disk.
        """
        query = select(Build).join(Build.kb).where(KB.home == self.home)
        if kb is not None:
            query = query.where(KB.name == kb)
        if not gone:
            query = query.where(Build.gone.is_(None))
        with self.reading() as session:
            return list(session.scalars(query.order_by(KB.name, Build.created, Build.name)).unique())

    def reconcile(self, look: Callable[[], Sequence[FoundKB]], kb: str | None = None) -> Changes:
        """Make the catalog say what is on disk.

        Args:
            look: says what there is; called within a transaction, possibly twice.
            kb: compare this KB only.
        """
        # What another process registers was on disk before it was in the catalog. So the catalog is read
        # first and the disk looked at second: what then is missing is gone, and not merely younger.
        with self.reading() as session:
            known = self._known(session, kb)
            changes = _compare(session, self.home, known, look())
        if not any(changes):
            return changes  # most often; and nothing has been locked
        with self.writing() as session:
            known = self._known(session, kb)
            return _compare(session, self.home, known, look())

    def _known(self, session: Session, kb: str | None) -> dict[str, KB]:
        query = select(KB).where(KB.home == self.home)
        if kb is not None:
            query = query.where(KB.name == kb)
        return {row.name: row for row in session.scalars(query)}


def _session(connection: Any) -> Session:
    return Session(connection, autoflush=False, expire_on_commit=False)


def _compare(session: Session, home: str, known: Mapping[str, KB], found: Sequence[FoundKB]) -> Changes:
    """Change the rows to what was found, and say which were changed."""
    added, changed, gone = list[str](), list[str](), list[str]()
    seen = set()
    for there in found:
        kb = known.get(there.name)
        if kb is None:
            kb = KB(home=home, name=there.name)
            session.add(kb)
        rows = {row.name: row for row in kb.builds}
        for name, says in there.builds.items():
            row, build = rows.get(name), f"{there.name}@{name}"
            if row is None and says is None:
                continue  # made by another kgkit, or damaged: there is nothing to say of it
            seen.add(build)
            says = {**(says or {}), "published": name == there.published, "gone": None}
            if row is None:
                kb.builds.append(Build(name=name, **says))
                added.append(build)
            elif differing := {key: value for key, value in says.items() if getattr(row, key) != value}:
                (added if "gone" in differing else changed).append(build)
                for key, value in differing.items():
                    setattr(row, key, value)
    for kb in known.values():
        for row in kb.builds:
            build = f"{kb.name}@{row.name}"
            if build not in seen and row.gone is None:
                row.published, row.gone = False, datetime.now(UTC)
                gone.append(build)
    return Changes(added, changed, gone)
