"""A knowledge base, opened by its name."""

import os

from kgkit.home import Home
from kgkit.kb.handle import KnowledgeBase
from kgkit.store import open_build


def open_kb(
    name: str | None = None, home: str | os.PathLike[str] | None = None, *, verify: bool = False
) -> KnowledgeBase:
    """Open a knowledge base for reading.

    Args:
        name: `NAME`, the published build, or `NAME@BUILD`; None for the default (`KGKIT_KB`, else what
            `kgkit kb default` has set), or the only one.
        home: folder of the knowledge bases; `KGKIT_HOME` or the platform's place unless given.
        verify: whether to read its files first (about 1 GB a second) and compare their SHA-256 with the
            manifest's. Without it only sizes are compared: damage within a file is met by the look-up that
            cannot decode a row, and what can be decoded is answered, right or wrong.

    Raises:
        NotThere: if it has not been built.
        UsageError: if none was named, there are several, and none of them is the default.
        FormatMismatch, DamagedKB: if it cannot be used as it is.

    Examples:
        >>> kgkit.open_kb("wordnet")["dog.n.01"].label
        'dog'
    """
    where = Home.find(home)
    build, store = open_build(where, name if name is not None else where.default_kb().name, verify=verify)
    return KnowledgeBase(store, build.name)
