"""The tables of the catalog.

    kbs       a name in a home                          home, name
    builds    one build of a KB, from its manifest      kb, name
    vectors   a matrix with a row for each entity       build, name
    indexes   what finds near rows of such a matrix     vectors, kind
    models    what links or predicts                    home, name
    runs      one training or evaluation
    scores    what a run measured                       run, task, dataset, metric

The columns on the right are unique together. What lies on disk has a column `gone`: empty while it is
there, else the moment it was missed. Rows are never deleted, so what a score refers to can always be named.

`home` is `.` in the catalog that lies in the home itself, so that a copied home stays right, and the
home's absolute path in a catalog that lies elsewhere and may serve several homes.

Whoever changes a table adds a file to `alembic/versions/`; a test runs `alembic check`.
"""

from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Integer,
    MetaData,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship
from sqlalchemy.types import TypeDecorator


class Moment(TypeDecorator[datetime]):
    """A moment with its time zone. SQLite has none to store: there it is the time in UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return a time as the column stores it: in SQLite in UTC, without a time zone."""
        if value is None or dialect.name != "sqlite":
            return value
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return a time of the column in UTC, with its time zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """What all tables share: named constraints, which migrations can name, and types of columns."""

    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: Moment,
        float: Double,
        int: BigInteger,
        dict[str, Any]: JSON,
        list[int]: JSON,
        list[str]: JSON,
    }

    # An Integer, not a BigInteger: SQLite numbers rows by themselves only in a column of that very type.
    id: Mapped[int] = mapped_column(Integer, primary_key=True, sort_order=-1)


class KB(Base):
    """A knowledge base: a name, under which builds come and go."""

    __tablename__ = "kbs"
    __table_args__ = (UniqueConstraint("home", "name"),)

    home: Mapped[str]
    name: Mapped[str]
    builds: Mapped[list["Build"]] = relationship(
        back_populates="kb", lazy="selectin", order_by="Build.created, Build.name"
    )

    @property
    def published(self) -> "Build | None":
        """The build that the name stands for; None if there is none any more."""
        return next((build for build in self.builds if build.published), None)


class Build(Base):
    """A build of a KB: what its manifest says.

    Attributes:
        name: name of the build, by its content.
        source: name of the source; `source_version` and `source_sha256` say which it was.
        base: the BUILD whose ids are a prefix of this one's.
        size: bytes on disk, without the manifest.
        published: whether the KB's name stands for it.
        url_pattern: pattern of the addresses of its entities; empty if there is none.
        identifiers: names of the attributes that are identifiers of its entities elsewhere.
    """

    __tablename__ = "builds"
    __table_args__ = (UniqueConstraint("kb_id", "name"),)

    kb_id: Mapped[int] = mapped_column(ForeignKey("kbs.id"))
    name: Mapped[str]
    base: Mapped[str | None]
    builder: Mapped[str]
    builder_version: Mapped[str]
    kgkit_version: Mapped[str]
    format: Mapped[int]
    source: Mapped[str]
    source_version: Mapped[str]
    source_sha256: Mapped[str]
    licence: Mapped[str]
    entities: Mapped[int]
    triples: Mapped[int]
    aliases: Mapped[int]
    size: Mapped[int]
    created: Mapped[datetime]
    published: Mapped[bool]
    gone: Mapped[datetime | None]
    url_pattern: Mapped[str]
    identifiers: Mapped[list[str]]
    kb: Mapped[KB] = relationship(back_populates="builds", lazy="joined")


class Vectors(Base):
    """A matrix `KB/NAME`: row i belongs to entity i of one build.

    Attributes:
        width: width of a row.
        dtype: number type as NumPy calls it: `float32`.
        config: settings that decided the numbers.
    """

    __tablename__ = "vectors"
    __table_args__ = (UniqueConstraint("build_id", "name"),)

    build_id: Mapped[int] = mapped_column(ForeignKey("builds.id"))
    name: Mapped[str]
    method: Mapped[str]
    rows: Mapped[int]
    width: Mapped[int]
    dtype: Mapped[str]
    config: Mapped[dict[str, Any]]
    created: Mapped[datetime]
    gone: Mapped[datetime | None]
    build: Mapped[Build] = relationship(lazy="joined")


class Index(Base):
    """What finds the rows of a matrix that are near a vector."""

    __tablename__ = "indexes"
    __table_args__ = (UniqueConstraint("vectors_id", "kind"),)

    vectors_id: Mapped[int] = mapped_column(ForeignKey("vectors.id"))
    kind: Mapped[str]
    params: Mapped[dict[str, Any]]
    created: Mapped[datetime]
    gone: Mapped[datetime | None]
    vectors: Mapped[Vectors] = relationship(lazy="joined")


class Model(Base):
    """A trained model, and what it was trained for: `KB@BUILD` and the vectors it takes, if it takes any."""

    __tablename__ = "models"
    __table_args__ = (UniqueConstraint("home", "name"),)

    home: Mapped[str]
    name: Mapped[str]
    kind: Mapped[str]
    encoder: Mapped[str | None]
    build_id: Mapped[int | None] = mapped_column(ForeignKey("builds.id"))
    vectors_id: Mapped[int | None] = mapped_column(ForeignKey("vectors.id"))
    config: Mapped[dict[str, Any]]
    created: Mapped[datetime]
    gone: Mapped[datetime | None]
    build: Mapped[Build | None] = relationship(lazy="joined")
    vectors: Mapped[Vectors | None] = relationship(lazy="joined")


class Run(Base):
    """One training or evaluation: enough to do it again, and what it took.

    Attributes:
        command: command as it was typed.
        data: the SHA-256 of each file that was read, by path.
        versions: versions of kgkit and of the libraries that decide the numbers.
        seconds: seconds of wall-clock time.
        peak_memory: bytes.
        status: `running`, `done`, `failed` or `interrupted`.
        exit_code: exit code of the command.
    """

    __tablename__ = "runs"

    home: Mapped[str]
    command: Mapped[str]
    model_id: Mapped[int | None] = mapped_column(ForeignKey("models.id"))
    config: Mapped[dict[str, Any]]
    seeds: Mapped[list[int]]
    data: Mapped[dict[str, Any]]
    versions: Mapped[dict[str, Any]]
    device: Mapped[str]
    started: Mapped[datetime]
    ended: Mapped[datetime | None]
    seconds: Mapped[float | None]
    peak_memory: Mapped[int | None]
    status: Mapped[str]
    exit_code: Mapped[int | None]
    model: Mapped[Model | None] = relationship(lazy="joined")
    scores: Mapped[list["Score"]] = relationship(back_populates="run", lazy="selectin", order_by="Score.id")


class Score(Base):
    """One number that a run measured; `n` says over how many items."""

    __tablename__ = "scores"
    __table_args__ = (UniqueConstraint("run_id", "task", "dataset", "metric"),)

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"))
    task: Mapped[str]
    dataset: Mapped[str]
    metric: Mapped[str]
    value: Mapped[float]
    n: Mapped[int]
    run: Mapped[Run] = relationship(back_populates="scores")
