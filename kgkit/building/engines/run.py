"""One build by an engine of tables: read the parts, group them, write the store."""

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from kgkit.building.contract import Builder
from kgkit.building.engines.parts import Observe, PartsFolder, ReadingProgress, observe_parts
from kgkit.building.engines.session import Session
from kgkit.building.engines.tables import Tables
from kgkit.building.grouping import Grouped
from kgkit.building.occurrences import SurfaceHashes, count_occurrences
from kgkit.building.options import GOING_ON, BuildOptions
from kgkit.building.sources import Material, Part
from kgkit.home import KBHome
from kgkit.plugins import kgkit_version
from kgkit.store.layout import FORMAT
from kgkit.store.writer import StoreWriter
from kgkit.text import FOLDING, folding

__all__ = ["TableEngine"]

Tell = Callable[[str], None]


class TableEngine:
    """Does one build; what it has read stays until `clean`, for a build that is stopped to go on from.

    Args:
        builder: builder of the records.
        material: material that the builder reads.
        options: options of the build.
        kb: home of the KB that it becomes.
    """

    def __init__(self, builder: Builder, material: Material, options: BuildOptions, kb: KBHome) -> None:
        self.builder, self.material, self.options = builder, material, options
        self.parts, self.texts = material.parts(), material.texts()
        self.folding = folding(language=options.language_of(material.properties.language))
        self.folder = PartsFolder(kb.unfinished, self._work(), self.folding)

    def _work(self) -> list[object]:
        """Return what decides what the parts hold."""
        builder, options = self.builder, self.options
        stats = [(str(file.absolute()), file.stat()) for file in self.material.files]
        return [
            (type(builder).__module__, type(builder).__qualname__, builder.version, kgkit_version()),
            _code_of(type(builder)),
            (FORMAT, FOLDING, self.folding.language),
            [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats],
            [(str(part.path.absolute()), part.name) for part in self.parts],
            (options.limit, sorted(options.types), options.deciding_options().get("columns"), options.bad),
        ]

    def group(self, store: StoreWriter, tell: Tell) -> Grouped:
        """Read, group, and write all tables but the manifest.

        Raises:
            SourceError: at the first thing that is not as it should be.
            BuildFailed: if memory does not suffice, or a worker was killed.
            WriteFailed: if the disk refuses.
        """
        if not self.options.resume:
            self.folder.remove()
        if read := sum(self.folder.observation(number) is not None for number in range(len(self.parts))):
            tell(f"{GOING_ON} {read} of {len(self.parts)} parts that were read before")
        properties = self.material.properties
        with self._session(tell) as (session, observe):

            def count(surfaces: Iterator[str], number: int) -> list[Path]:
                return self._count_surfaces(surfaces, number, observe, tell)

            tables = Tables(
                session,
                self.parts,
                store,
                inverses=properties.inverses,
                smoothing=properties.smoothing,
                folding=self.folding,
                generator=properties.generator,
                pieces=self.builder.pieces,
                min_count=self.options.min_count,
                tell=tell,
                count=count if self.builder.has_texts and self.texts else None,
            )
            return tables.write()

    def _count_surfaces(
        self, surfaces: Iterator[str], number: int, observe: Observe, tell: Tell
    ) -> list[Path]:
        """Read the source again, for its texts; return the files with the occurrences of *surfaces*."""
        tell("hashing surfaces")
        hashes = SurfaceHashes.of(surfaces, number, self.folding)
        folder = PartsFolder(self.folder.path / "texts", hashes.digest, self.folding)
        folder.create()
        hashes.save(folder.path)
        complete = self.options.limit is not None
        parts = [
            Part(
                part.path,
                part.name,
                partial(count_occurrences, part.read, folder.path, self.folding, complete_at_steps=complete),
            )
            for part in self.texts
        ]
        return observe(folder, parts, (), self._told(tell, "counting surfaces"))

    def _told(self, tell: Tell, doing: str) -> ReadingProgress:
        """Return a callback that says in words how far the reading is."""
        number, unit = len(self.parts), self.builder.unit
        return lambda parts, units: tell(f"{doing}: {parts} of {number} parts, {units:,} {unit}")

    def clean(self) -> None:
        """Remove what has been read."""
        self.folder.remove()

    @contextmanager
    def _session(self, tell: Tell) -> Iterator[tuple[Session, Observe]]:
        """Give the tables with the records, and what reads other parts in the same way."""
        options, reading = self.options, self._told(tell, "reading")
        steps = self.builder.unit != Builder.unit
        if options.engine == "spark":
            from kgkit.building.engines.spark import spark_tables

            with spark_tables(
                self.folder, self.parts, options, steps=steps, tell=reading, tell_stage=tell
            ) as session_and_observe:
                yield session_and_observe
            return
        from kgkit.building.engines.local import DuckDBSession

        observe = partial(observe_parts, workers=options.workers, steps=steps, limit=options.limit)
        files = observe(self.folder, self.parts, options.types, reading)
        with DuckDBSession(
            self.folder.path, files, memory=options.memory, threads=options.workers
        ) as session:
            yield session, observe


def _code_of(builder: type[Builder]) -> str:
    """Return the digest of the files that a builder is written in, as far as they can be found.

    What a builder has read before somebody mended it is not what it would read now.
    """
    module = sys.modules.get(builder.__module__)
    file = getattr(module, "__file__", None)
    if file is None:
        return ""
    path = Path(file)
    digest = hashlib.blake2b(digest_size=8)
    for source_file in sorted(path.parent.glob("*.py")) if getattr(module, "__package__", None) else [path]:
        digest.update(source_file.read_bytes())
    return digest.hexdigest()
