"""From a published knowledge base and edits to its next build."""

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final

import msgspec

from kgkit.building.build import Built
from kgkit.building.edits import read_edits
from kgkit.building.next_build import changing, publish_change
from kgkit.building.record_lists import is_record_list, written_records
from kgkit.building.registering import register
from kgkit.building.revision import Revision
from kgkit.errors import UsageError
from kgkit.home import Home
from kgkit.store import Manifest, StoreEditor
from kgkit.store.damage import report_damage

__all__ = ["edit_kb"]

log = logging.getLogger(__name__)

_SHOWN: Final = 5  # absent aliases and facts that the warning lists


def edit_kb(
    name: str,
    edits: str | os.PathLike[str] | Sequence[Mapping[str, Any]],
    *,
    home: str | os.PathLike[str] | None = None,
) -> Built:
    """Change, correct and retire entities of a published KB, in a new build of it.

    Entities keep their ids, and the id of a retired one is not dealt out again:
    vectors, indexes and models that were made before still fit, and propose no
    retired entity. `update` of `kgkit.embedding.embed` encodes the texts that
    have changed. Edits that say nothing new leave the KB as it is, so that they
    may be repeated; aliases and facts that they withdraw and that are not there
    are logged. As with `add_to_kb`, the base's files are compared with their checksums first; of the
    rows, those that change are read, and all aliases where an entity is retired.

    Args:
        name: name of the KB.
        edits: path of a file of JSON lines, or a list of dictionaries, an entity each: its `key`, fields
            that are changed (`label`, `description`, `kind`, `pos`, `types`, `attributes`), `aliases` it
            gets, and `remove_aliases`, `remove_facts`, `retire`. The manual has the format
            (`docs/editing.md`).
        home: folder of the knowledge bases; `KGKIT_HOME` or the platform's place unless given.

    Raises:
        NotThere: no such KB, or no such file.
        SourceError: a line that cannot be followed: an unknown key, field or relation, a contradiction;
            says in which line.
        FormatMismatch: the KB is of format 2, and has to be built again.
        KBBusy: another process is building or removing this KB.
        DamagedKB: the KB's files are not as they were written.
        WriteFailed: no room on the disk.

    Examples:
        >>> kgkit.edit_kb("towns", [{"key": "berlin", "label": "Berlin", "remove_aliases": ["Berlim"]}])
    """
    lines = nullcontext(Path(edits)) if isinstance(edits, str | os.PathLike) else _written(edits)
    with changing(name, home, "edits are for") as (staging, base), lines as path:
        base.store.alias_keys(0)  # refuses a format without them
        revision, old = Revision(base), base.manifest
        with report_damage(base.store.folder):
            info = read_edits(path, revision.take)
        if absent := revision.absent:
            shown = ", ".join(absent[:_SHOWN]) + (", …" if len(absent) > _SHOWN else "")
            log.warning("withdrawn by %s, but not in %r: %s", path.name, name, shown)
        if not isinstance(edits, str | os.PathLike):
            info = msgspec.structs.replace(info, path="")

        def change(store: StoreEditor) -> Manifest:
            return msgspec.structs.replace(revision.write(store), edited=(*old.edited, info))

        unchanged = Built(name, base.build, base.store.folder, old, {}, {})
        built = publish_change(staging, base, path, change) or unchanged
    if built is not unchanged:
        register(Home.find(home), built.name, built.build)
    return built


def _written(edits: Sequence[Mapping[str, Any]]) -> AbstractContextManager[Path]:
    """Give a file of a list of dictionaries, as `written_records` does.

    Raises:
        UsageError: if it is no such list.
    """
    if not is_record_list(edits):
        raise UsageError("edits are the path of a file, or a list of dictionaries, one for each entity")
    return written_records(edits)
