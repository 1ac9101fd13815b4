"""Writing a knowledge base in the format of another program, and building one from such a file."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kgkit.building.build import Built, build_kb
from kgkit.building.records import StoredRecords
from kgkit.errors import NotThere
from kgkit.exchange import find_format, guess_format
from kgkit.exchange.contract import Format
from kgkit.files import check_folder, check_output_path, new_folder, written
from kgkit.kb import KnowledgeBase
from kgkit.types import Progress

__all__ = ["check_target", "chosen_format", "export_kb", "import_kb", "losses_of"]


def export_kb(
    kb: KnowledgeBase,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    progress: Progress | None = None,
) -> list[str]:
    """Write a knowledge base in the format of another program; the file appears whole or not at all.

    Args:
        kb: open knowledge base.
        path: file to write, which may be compressed by its suffix; a new folder for `neo4j`.
        format: `graphml`, `jsonl`, `kgtk`, `neo4j`, `ntriples`, `tsv`, `turtle` or `wn-lmf`; None: as the
            name of the file says.
        progress: callback that is told how many bytes have been written.

    Returns:
        What the format cannot carry, a phrase each: it does not come back by `import_kb`.

    Raises:
        UnknownName: if there is no such format.
        UsageError: if the name of the file says no format, or nothing can be written there.
        NotThere: if there is no folder to put the file in.
        MissingExtra: if a package that the format needs is not installed.
        DamagedKB: if rows cannot be read.

    Examples:
        >>> kgkit.export_kb(kgkit.open_kb("wordnet"), "wordnet.nt.gz")
        []
    """
    target = Path(path)
    file_format = chosen_format(target, format)
    check_target(target, file_format)
    files = file_format.files(StoredRecords(kb))
    if file_format.folder:
        with new_folder(target) as folder:
            for name, contents in files.items():
                with written(folder / name) as stream:
                    stream.writelines(_report_bytes(contents, progress))
    else:
        with written(target) as stream:
            stream.writelines(_report_bytes(files[""], progress))
    return losses_of(file_format, kb)


def import_kb(
    source: str | os.PathLike[str],
    name: str | None = None,
    *,
    format: str | None = None,
    home: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Built:
    """Build a knowledge base from a file of another program, and publish it.

    The same as `build_kb` with the builder of that format.

    Args:
        source: file to read; a folder for `neo4j`.
        name: name of the KB; that of the file, up to its first dot, unless given.
        format: name of the format, as in `export_kb`; None: as the name of the file says.
        home: folder of the knowledge bases; `KGKIT_HOME` or the platform's place unless given.
        progress: callback that is told how far the build is.
        options: further arguments of `build_kb`, as `types`.

    Raises:
        NotThere: if there is no such file.
        UnknownName: if there is no such format.
        UsageError: if the name of the file says no format, or cannot name a knowledge base.
        SourceError: if the file is not as the format has it; says where.

    Examples:
        >>> kgkit.import_kb("oewn-2024.xml", "oewn").manifest.entities
    """
    path = Path(source)
    if not path.exists():
        raise NotThere(f"no file {path}")
    file_format = chosen_format(path, format)
    return build_kb(
        file_format.builder,
        path,
        name=name if name is not None else path.absolute().name.split(".")[0],
        home=home,
        progress=progress,
        **options,
    )


def chosen_format(path: Path, format: str | None) -> Format:
    """Return the format of that name; None: the one that the name of *path* says.

    Raises:
        UnknownName: if there is no such format.
        UsageError: if the name of *path* says none.
    """
    return find_format(format) if format is not None else guess_format(path)


def losses_of(file_format: Format, kb: KnowledgeBase) -> list[str]:
    """Return what a format cannot carry of a knowledge base, a phrase each."""
    losses = list(file_format.losses)
    if kb.store.has_occurrences and not file_format.has_occurrences:
        losses.append("how often surfaces occur in texts, and so link probabilities")
    return losses


def check_target(path: Path, file_format: Format) -> None:
    """Say so at once if nothing of that format can be put at *path*.

    Raises:
        NotThere: if there is no folder to put it in.
        UsageError: if it is a folder, or of a format of several files: if something is there already.
    """
    check_folder(path) if file_format.folder else check_output_path(path)


def _report_bytes(contents: Iterator[bytes], progress: Progress | None) -> Iterator[bytes]:
    size = 0
    tell: Callable[[str, int, int], None] = progress or (lambda stage, count, total: None)
    for content in contents:
        yield content
        size += len(content)
        tell("writing", size, 0)
