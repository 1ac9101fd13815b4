"""One handle over the catalog of a home."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, NamedTuple, Self

from sqlalchemy import select
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session

from kgkit.catalog.database import PATIENCE, catalog_url, engine_of, home_in, transaction, url_text
from kgkit.catalog.migrating import upgrade
from kgkit.catalog.models import KB, Base, Build, Index, Model, Run, Vectors
from kgkit.errors import CatalogError
from kgkit.home import Home


class VectorsOnDisk(NamedTuple):
    """Vectors as they lie on disk.

    Attributes:
        build: the BUILD that they were made for.
        columns: manifest, as columns of `Vectors`.
        indexed: their index, as columns of `Index`; None without one.
    """

    build: str
    columns: Mapping[str, Any]
    indexed: Mapping[str, Any] | None = None


class KBOnDisk(NamedTuple):
    """A KB as it lies on disk.

    Attributes:
        name: name of the KB.
        published: the BUILD that the name stands for.
        builds: manifest of each build, as columns of `Build`; None where that cannot be read.
        vectors: its vectors, by name.
    """

    name: str
    published: str | None
    builds: Mapping[str, Mapping[str, Any] | None]
    vectors: Mapping[str, VectorsOnDisk] = {}


class Changes(NamedTuple):
    """What a reconciliation had to change: builds, as `NAME@BUILD`, vectors, as `NAME@BUILD/VECTORS`.

    Attributes:
        added: those that were not in the catalog, or had been removed and are back.
        changed: those of which it said something else.
        removed: builds and vectors that are no longer on disk.
    """

    added: list[str]
    changed: list[str]
    removed: list[str]


class Catalog:
    """What a home has and had: an index over its manifests, and a diary of its runs.

    A catalog that is opened is of the newest revision: it is made or migrated
    if need be. Rows are read in one snapshot and stay readable when it is over.
    There is one writer at a time; a second one waits. What its block did is
    written when the block ends, or, if it fails, not at all.

    Examples:
        >>> with Catalog.open() as catalog:
        ...     [(build.kb.name, build.name, build.entities) for build in catalog.builds()]
        [('wordnet', '045c9aea91c8', 324608)]
    """

    def __init__(self, engine: Engine, home: str) -> None:
        self._engine, self.home = engine, home

    @classmethod
    def open(cls, home: Home | None = None, *, patience: int = PATIENCE) -> Self:
        """Open the catalog of *home*, or of the home that `KGKIT_HOME` names.

        Args:
            home: home of the catalog.
            patience: seconds until another writer has to be done.

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
        engine = engine_of(url, patience)
        upgrade(engine)
        return cls(engine, here)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.dispose()

    def __repr__(self) -> str:
        return f"<catalog of {self.home} in {url_text(self._engine.url)}>"

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

    def builds(self, kb: str | None = None, *, include_removed: bool = False) -> list[Build]:
        """Return the builds of this home, or of one KB: by name, then by age.

        Args:
            kb: name of the only KB; None for all.
            include_removed: whether to return those too that are no longer on disk.
        """
        query = select(Build).join(Build.kb).where(KB.home == self.home)
        if kb is not None:
            query = query.where(KB.name == kb)
        if not include_removed:
            query = query.where(Build.gone.is_(None))
        with self.reading() as session:
            return list(session.scalars(query.order_by(KB.name, Build.created, Build.name)).unique())

    def vectors(self, kb: str | None = None, *, include_removed: bool = False) -> list[Vectors]:
        """Return the vectors of this home, or of one KB, by KB, name and age; each names its build.

        Args:
            kb: name of the only KB; None for all.
            include_removed: whether to return those too that are no longer on disk.
        """
        query = select(Vectors).join(Vectors.build).join(Build.kb).where(KB.home == self.home)
        if kb is not None:
            query = query.where(KB.name == kb)
        if not include_removed:
            query = query.where(Vectors.gone.is_(None))
        with self.reading() as session:
            return list(session.scalars(query.order_by(KB.name, Vectors.name, Vectors.created)).unique())

    def indexes(self, kb: str | None = None) -> list[Index]:
        """Return the indexes on disk in this home, or over the vectors of one KB; each names its vectors."""
        query = select(Index).join(Index.vectors).join(Vectors.build).join(Build.kb)
        query = query.where(KB.home == self.home, Index.gone.is_(None))
        if kb is not None:
            query = query.where(KB.name == kb)
        with self.reading() as session:
            return list(session.scalars(query.order_by(KB.name, Vectors.name)).unique())

    def runs(self, model: str | None = None) -> list[Run]:
        """Return the runs of this home, or of one model, newest first; each has its scores.

        Args:
            model: name of the only model.
        """
        query = select(Run).where(Run.home == self.home)
        if model is not None:
            query = query.join(Run.model).where(Model.name == model)
        with self.reading() as session:
            return list(session.scalars(query.order_by(Run.started.desc(), Run.id.desc())).unique())

    def reconcile(self, look: Callable[[], Sequence[KBOnDisk]], kb: str | None = None) -> Changes:
        """Make the catalog say what is on disk.

        Args:
            look: function that returns what there is; called within a transaction, possibly twice.
            kb: name of the only KB to compare.
        """
        # What another process registers was on disk before it was in the catalog. So the catalog is read
        # first and the disk looked at second: what then is missing is gone, and not merely younger.
        with self.reading() as session:
            rows = self._kb_rows(session, kb)
            changes = _compare(session, self.home, rows, look())
        if not any(changes):
            return changes  # most often; and nothing has been locked
        with self.writing() as session:
            rows = self._kb_rows(session, kb)
            return _compare(session, self.home, rows, look())

    def _kb_rows(self, session: Session, kb: str | None) -> dict[str, KB]:
        query = select(KB).where(KB.home == self.home)
        if kb is not None:
            query = query.where(KB.name == kb)
        return {row.name: row for row in session.scalars(query)}


def _session(connection: Any) -> Session:
    return Session(connection, autoflush=False, expire_on_commit=False)


def _compare(session: Session, home: str, kb_rows: Mapping[str, KB], kbs: Sequence[KBOnDisk]) -> Changes:
    """Change the rows to what was found, and say which were changed."""
    changes = Changes([], [], [])
    present = set[str]()
    for on_disk in kbs:
        kb = kb_rows.get(on_disk.name)
        if kb is None:
            kb = KB(home=home, name=on_disk.name)
            session.add(kb)
        rows = {row.name: row for row in kb.builds}
        for name, columns in on_disk.builds.items():
            row, build = rows.get(name), f"{on_disk.name}@{name}"
            if row is None and columns is None:
                continue  # made by another kgkit, or damaged: there is nothing to say of it
            present.add(build)
            columns = {**(columns or {}), "published": name == on_disk.published, "gone": None}
            if row is None:
                kb.builds.append(Build(name=name, **columns))
                changes.added.append(build)
            else:
                _alter(row, columns, build, changes)
        _compare_vectors(session, kb, on_disk.vectors, changes)
    named = {on_disk.name for on_disk in kbs}
    for kb in kb_rows.values():
        for row in kb.builds:
            build = f"{kb.name}@{row.name}"
            if build not in present and row.gone is None:
                row.published, row.gone = False, datetime.now(UTC)
                changes.removed.append(build)
        if kb.name not in named:
            _compare_vectors(session, kb, {}, changes)
    return changes


def _compare_vectors(
    session: Session, kb: KB, on_disk: Mapping[str, VectorsOnDisk], changes: Changes
) -> None:
    """Change the rows of one KB's vectors and their indexes to what was found."""
    builds = {build.name: build for build in kb.builds}
    rows: dict[tuple[str, str], Vectors] = {}
    indexes: dict[int, list[Index]] = {}
    if kb.id is not None:  # else it is new, and has none
        query = select(Vectors).join(Vectors.build).where(Build.kb_id == kb.id)
        rows = {(row.build.name, row.name): row for row in session.scalars(query)}
        of_kb = select(Index).join(Index.vectors).join(Vectors.build).where(Build.kb_id == kb.id)
        for index in session.scalars(of_kb):
            indexes.setdefault(index.vectors_id, []).append(index)
    for name, vectors in on_disk.items():
        if vectors.build not in builds:
            continue  # it was gone before the catalog heard of it
        row, called = rows.get((vectors.build, name)), f"{kb.name}@{vectors.build}/{name}"
        columns = {**vectors.columns, "gone": None}
        if row is None:
            row = Vectors(build=builds[vectors.build], name=name, **columns)
            session.add(row)
            changes.added.append(called)
        else:
            _alter(row, columns, called, changes)
        _compare_index(session, row, indexes.get(row.id, []), vectors.indexed, changes)
    for (build, name), row in rows.items():
        if row.gone is None and (name not in on_disk or on_disk[name].build != build):
            row.gone = datetime.now(UTC)
            changes.removed.append(f"{kb.name}@{build}/{name}")
            _compare_index(session, row, indexes.get(row.id, []), None, changes)


def _compare_index(
    session: Session,
    vectors: Vectors,
    rows: Sequence[Index],
    on_disk: Mapping[str, Any] | None,
    changes: Changes,
) -> None:
    """Change the rows of the indexes over *vectors*: of all kinds there have been, one may be there now."""
    called = f"{vectors.build.kb.name}@{vectors.build.name}/{vectors.name}"
    by_kind = {row.kind: row for row in rows}
    for kind, row in by_kind.items():
        if row.gone is None and (on_disk is None or on_disk["kind"] != kind):
            row.gone = datetime.now(UTC)
            _note(changes, called)
    if on_disk is None:
        return
    if on_disk["kind"] not in by_kind:
        session.add(Index(vectors=vectors, gone=None, **on_disk))
        _note(changes, called)
    else:
        fresh = Changes([], [], [])
        _alter(by_kind[on_disk["kind"]], {**on_disk, "gone": None}, called, fresh)
        if any(fresh):
            _note(changes, called)


def _note(changes: Changes, called: str) -> None:
    if not any(called in names for names in changes):
        changes.changed.append(called)


def _alter(row: Base, columns: Mapping[str, Any], called: str, changes: Changes) -> None:
    differing = {key: value for key, value in columns.items() if getattr(row, key) != value}
    if differing:
        (changes.added if "gone" in differing else changes.changed).append(called)
        for key, value in differing.items():
            setattr(row, key, value)
