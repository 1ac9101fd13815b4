"""From a source to a published knowledge base."""

import datetime
import gc
import logging
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from kgkit.building.contract import Builder, Prose, Step, find_builder
from kgkit.building.engine_choice import (
    ENGINE_CHOSEN,
    READING_SHARE,
    choose_engine,
    default_memory,
    readable_size,
    used_memory,
)
from kgkit.building.grouping import BAD_RECORDS, Grouped, Grouper
from kgkit.building.occurrences import SurfaceHashes, count_occurrences
from kgkit.building.options import BuildOptions, bytes_of, path_list
from kgkit.building.registering import register
from kgkit.building.sources import (
    KB_SOURCE,
    Material,
    Source,
    SourceTexts,
    batches,
    name_source,
    open_source,
    reading_errors,
    select,
)
from kgkit.errors import BuildFailed, KgkitError, MissingExtra, SourceError, UsageError
from kgkit.home import Home, KBHome
from kgkit.plugins import kgkit_version
from kgkit.store import FORMAT, Manifest, Staging, StoreWriter
from kgkit.store.layout import SourceInfo, build_name, fingerprint
from kgkit.store.manifest import read_manifest
from kgkit.store.surface_index import write_index
from kgkit.store.writer import checksums
from kgkit.text import Folding, folding
from kgkit.types import Occurrences, Progress

if TYPE_CHECKING:  # DuckDB and Arrow are an extra
    from kgkit.building.engines.run import TableEngine

log = logging.getLogger(__name__)


class Built(NamedTuple):
    """A published build.

    Attributes:
        name: name of the KB.
        build: the BUILD.
        path: its folder.
        manifest: manifest of the build.
        dropped: number of records that could not be kept, of those that were just read, by reason.
        examples: some of these records, by reason.
    """

    name: str
    build: str
    path: Path
    manifest: Manifest
    dropped: Mapping[str, int]
    examples: Mapping[str, Sequence[str]]


@contextmanager
def no_garbage() -> Iterator[None]:
    """Disable the garbage collector: it would walk millions of records, which form no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@no_garbage()
def build_kb(
    builder: str | Builder,
    source: Source | None = None,
    *,
    name: str | None = None,
    home: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    engine: str | None = None,
    workers: int = 1,
    memory: int | str | None = None,
    limit: int | None = None,
    types: str | Sequence[str] = (),
    min_count: float = 0,
    resume: bool = True,
    priors: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    master: str | None = None,
    url_pattern: str | None = None,
    identifiers: str | Sequence[str] | None = None,
    language: str | None = None,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    bad: Literal["stop", "skip"] = "stop",
) -> Built:
    """Build a knowledge base, publish it, and tell the catalog.

    Until the last step the KB of that name, if there is one, stays as it is;
    a build that fails or is killed leaves it so.

    Args:
        builder: the name of an installed builder, or a builder.
        source: source that it reads: a path, several, or `kb:NAME` for another KB; for `jsonl` a list of
            dictionaries, too; None lets the builder obtain it.
        name: name of the KB; the builder's name unless given.
        home: folder of the knowledge bases; `KGKIT_HOME` or the platform's place unless given.
        progress: callback that is told how far the build is.
        engine: `memory` groups the records in memory; `local` on the disk, with DuckDB; `spark` on a
            cluster. All make the same KB (`memory` a slower one to search texts with, of over a million
            aliases). None: `memory` for a source of up to 100 MB that fits in *memory*, `local` for
            larger ones, which progress and log say, and for builders that need it.
        workers: processes that read the parts of the source, and threads that group (not `memory`). More
            than one needs the caller's script to be importable, as Python's `multiprocessing` does.
        memory: memory that the build may use, roughly, in bytes or as `4GB` (`spark`: on one machine).
            None: 4 GB, or half of the free memory if that is less.
        limit: largest number of pages, lines or records of the source: for trying out.
        types: kinds or types of the only entities to be taken.
        min_count: least count of a pair of surface and entity; those that were counted less often are left
            out.
        resume: whether to go on from what a stopped build has read; else it begins again (not `memory`).
        priors: a file of further counts of aliases, or several, see `docs/priors.md`.
        master: address of Spark's master (`spark`).
        url_pattern: pattern of the addresses of entities on the web, which links carry:
            `https://example.org/{key}`; None leaves it to the source and its builder.
        identifiers: names of the attributes that are identifiers of entities elsewhere, which links carry:
            `wikidata`; None leaves them to the source and its builder.
        language: BCP 47 tag of the surfaces, as `en`, by which function words are no mentions, and letters
            i are folded (`tr`, `az`); empty when mixed; None leaves it to the source and its builder.
        columns: names of the columns of a table, for the builder `table`, as
            `{"key": "id", "label": "name", "aliases": "aliases|"}`; those that are not named are guessed.
        bad: what a line of the source that cannot be read does: `stop` with an error, or be left out and
            counted (`skip`), of builders that read line by line.

    Raises:
        UnknownName: no such builder, or engine.
        UsageError: an option out of range, or not for this engine.
        NotThere: nothing at *source*.
        SourceError: the source is not as the builder expects; says where.
        DamagedKB: the KB at *source* has files that are not as they were written.
        BuildFailed: memory does not suffice, or a worker was killed.
        MissingExtra: what the engine needs is not installed.
        KBBusy: another process is building or removing this KB.
        WriteFailed: no room on the disk.

    Examples:
        >>> build_kb("wordnet").manifest.counts.entities
        {'synset': 117659, 'lemma': 206949}
    """
    tell = progress or silent
    options = BuildOptions(
        engine=engine,
        workers=workers,
        memory=default_memory() if memory is None else bytes_of(memory),
        limit=limit,
        types=path_list(types),
        min_count=min_count,
        resume=resume,
        priors=[*map(Path, path_list(priors))],
        master=master,
        url_pattern=url_pattern,
        identifiers=None if identifiers is None else path_list(identifiers),
        language=language,
        columns={role: path_list(names) for role, names in (columns or {}).items()},
        bad=bad,
    ).check()
    reader = find_builder(builder) if isinstance(builder, str) else builder
    if not isinstance(reader, Builder):
        raise UsageError(f"the builder is {reader!r}; expected a Builder, or the name of one")
    if options.columns:
        reader = reader.with_columns(options.columns)
    if options.bad == "skip":
        reader = reader.skipping_bad()
    builder_name = builder if isinstance(builder, str) else reader.name
    where = Home.find(home)
    kb = where.kb(name if name is not None else builder_name)
    if (engine or reader.engine) == "memory" and reader.pieces:
        raise UsageError(
            f"the builder {builder_name} tells entities in pieces, which --engine local puts together"
        )
    with Staging(kb) as staging, open_source(reader, source, where, options.priors) as material:
        if engine is None:
            engine, reason = choose_engine(reader, material.size, options.memory)
            if engine != reader.engine:
                _tell_engine(engine, reason, tell)
        tables_of, grouped = None, None
        if engine == "memory":
            with StoreWriter(staging.folder) as store:
                if (grouped := _group(reader, material, store, options, tell)) is not None:
                    tables = store.finish()
        if grouped is None:
            if engine == "memory":
                reason = f"the source needs more memory than --memory {readable_size(options.memory)}"
                if options.engine is not None:
                    raise BuildFailed(f"{reason}: --engine local builds it, or give more memory")
                _tell_engine("local", reason, tell)
                shutil.rmtree(staging.folder)
            tables_of = _engine(reader, material, options, kb)
            with StoreWriter(staging.folder) as store:
                with name_source(material.path):
                    grouped = tables_of.group(store, lambda stage: tell(stage, 0, 0))
                tables = store.finish()
        if not grouped.entities:
            restriction = f" of the types {', '.join(options.types)}" if options.types else ""
            bad_records = "".join(
                f"; {grouped.counts.dropped[BAD_RECORDS]:,} lines cannot be read, the first one: {first}"
                for first in grouped.examples.get(BAD_RECORDS, ())
            )
            message = f"holds no entity{restriction}: nothing to build{bad_records}"
            raise SourceError(message, path=material.path)
        tell("checksums", 0, 0)
        older = _published_manifest(kb)
        published = staging.publish(
            _manifest(reader, builder_name, material, grouped, tables, options, staging.folder)
        )
        # While nobody else can sweep it.
        manifest = read_manifest(published.folder)
        if older is not None and _is_of_other_sources(manifest.source, older.source):
            log.warning(
                "%s is built in the place of the older %s (source %s): `kgkit kb publish %s@%s` brings that "
                "back, and another name builds both",
                kb.name, kb.name, _name_of_source(older.source), kb.name, older.build,
            )  # fmt: skip
        built = Built(*published, manifest, grouped.counts.dropped, grouped.examples)
        if tables_of is not None:
            tables_of.clean()
    register(where, built.name, built.build)
    return built


def _tell_engine(engine: str, reason: str, tell: Progress) -> None:
    log.info("engine %s: %s", engine, reason)
    tell(f"{ENGINE_CHOSEN} {engine}: {reason}", 0, 0)


def _published_manifest(kb: KBHome) -> Manifest | None:
    """Return the manifest of the published build; None if there is none that can be read."""
    with suppress(KgkitError):
        if (build := kb.published()) is not None:
            return read_manifest(kb.builds / build)
    return None


def _is_of_other_sources(source: SourceInfo, older: SourceInfo) -> bool:
    """Say whether a source has other content than the older one, and another path: it is no later state."""
    if source.sha256 and source.sha256 == older.sha256:
        return False
    is_kb = source.path.startswith(KB_SOURCE) and older.path.startswith(KB_SOURCE)
    paths = [each.path.partition("@")[0] if is_kb else each.path for each in (source, older)]
    return paths[0] != paths[1]


def _name_of_source(source: SourceInfo) -> str:
    """Return the first path of a source, or its name where it was no file."""
    path, *others = source.path.split(os.pathsep) if not source.path.startswith(KB_SOURCE) else [source.path]
    return f"{path or source.name}{f' and {len(others)} more' if others else ''}"


def _group(
    builder: Builder, material: Material, store: StoreWriter, options: BuildOptions, tell: Progress
) -> Grouped | None:
    """Read and group in memory; write all tables but the manifest.

    None if that would take more memory than the options allow: then the store is to be thrown away.
    """
    properties = material.properties
    most = used_memory() + READING_SHARE * options.memory
    grouper = Grouper(
        store,
        inverses=properties.inverses,
        smoothing=properties.smoothing,
        folding=folding(language=options.language_of(properties.language)),
        min_count=options.min_count,
    )
    read = 0
    steps = builder.unit != Builder.unit
    for batch in batches(material, limit=options.limit, types=options.types, steps=steps):
        with name_source(material.path):
            grouper.take(batch)
        read += len(batch)
        tell("reading", read, 0)
        if used_memory() > most:
            return None
    if texts := material.texts():
        tell("counting surfaces", 0, 0)
        grouper.count(_occurrences(texts, grouper.surfaces(), grouper.folding, options, steps=steps))
    tell("writing", 0, 0)
    with name_source(material.path):
        return grouper.write()


def _occurrences(
    texts: Sequence[SourceTexts],
    surfaces: SurfaceHashes,
    folding: Folding,
    options: BuildOptions,
    *,
    steps: bool,
) -> Iterator[Occurrences]:
    """Yield how often *surfaces* occur in those texts that `limit` lets be read."""

    def read() -> Iterator[Prose | Step]:
        """Yield the texts of all parts; an error names the source that it is of."""
        for part in texts:
            with reading_errors("read", part.path), name_source(part.path):
                yield from part.read()

    for record in select(
        count_occurrences(read, surfaces, folding, complete_at_steps=steps and options.limit is not None),
        limit=options.limit,
        types=(),
        steps=steps,
    ):
        if isinstance(record, Occurrences):
            yield record


def _engine(builder: Builder, material: Material, options: BuildOptions, kb: KBHome) -> "TableEngine":
    of_spark = options.engine == "spark"
    try:
        import marisa_trie  # noqa: F401  # what is needed in the end is missed here and now

        from kgkit.building.engines.run import TableEngine

        if of_spark:
            from kgkit.building.engines.spark_start import checked_for_spark
        else:
            import kgkit.building.engines.local  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "duckdb", "spark" if of_spark else "scale") from error
    if of_spark:
        checked_for_spark()
    return TableEngine(builder, material, options, kb)


def _manifest(
    builder: Builder,
    builder_name: str,
    material: Material,
    grouped: Grouped,
    tables: dict[str, str],
    options: BuildOptions,
    folder: Path,
) -> Manifest:
    properties = material.properties
    identifiers = properties.identifiers if options.identifiers is None else options.identifiers
    pattern = properties.url_pattern if options.url_pattern is None else options.url_pattern
    return stamp(
        Manifest(
            format=FORMAT,
            fingerprint=fingerprint(),
            build="",
            builder=builder_name,
            builder_version=builder.version,
            kgkit_version="",
            created="",
            source=material.info(),
            entities=grouped.entities,
            triples=grouped.triples,
            aliases=grouped.aliases,
            alias_rows=grouped.alias_rows,
            counts=grouped.counts,
            tables=tables,
            files={},
            smoothing=properties.smoothing,
            generator=properties.generator,
            language=options.language_of(properties.language),
            url_pattern=pattern,
            identifiers=tuple(identifiers),
            options=options.deciding_options(),
        ),
        folder,
    )


def stamp(manifest: Manifest, folder: Path) -> Manifest:
    """Index the surfaces of the data in *folder*; return *manifest* with what is known then.

    That is when it was built, how large its files are, and its name.
    """
    write_index(folder, folder, manifest.folding)
    files, checked = checksums(folder, manifest.sha256)
    manifest = msgspec.structs.replace(
        manifest,
        kgkit_version=kgkit_version(),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        files=files,
        sha256=checked,
    )
    return msgspec.structs.replace(manifest, build=build_name(manifest))


def silent(stage: str, count: int, total: int) -> None:
    """Tell nobody."""


__all__ = ["Built", "build_kb", "no_garbage", "silent", "stamp"]
