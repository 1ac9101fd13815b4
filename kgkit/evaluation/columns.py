"""Files with tabs between their columns, and a first line that names them.

    qid <TAB> text_a <TAB> text_b <TAB> label
    1 <TAB> 番茄是水果吗？ <TAB> 番茄是一种蔬菜。 <TAB> 1

Columns come in any order, and those that are not needed are not read. In the first line neither case nor
white space around a name counts. Fields are not quoted. A file may be compressed.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kgkit.errors import SourceError
from kgkit.files import lines


class Row(NamedTuple):
    """A line of such a file.

    Attributes:
        number: of the line, from 1; that which names the columns counts.
        line: as it is.
        fields: by the name of the column, in lower case.
    """

    number: int
    line: str
    fields: Mapping[str, str]


def rows(path: Path, needed: Sequence[str]) -> Iterator[Row]:
    """Yield the lines of a file but for the first, and for those that are blank.

    Args:
        path: the file.
        needed: names of columns, in lower case, that it must have.

    Raises (when the first is asked for, or later):
        NotThere: if there is no such file.
        SourceError: if it cannot be read, the first line does not name each needed column or one twice, a
            line has another number of fields, or there are none behind the first.
    """
    numbered = lines(path)
    expected = f"expected a first line that names the columns {', '.join(needed)}, with tabs between them"
    first = next(numbered, None)
    if first is None:
        raise SourceError(f"there is nothing in it: {expected}", path=path)
    names = [name.strip().lower() for name in first[1].split("\t")]
    missing = [f"{name} is not there" for name in needed if name not in names]
    twice = [f"{name} comes more than once" for name in names if names.count(name) > 1]
    for problem in (*missing, *twice):
        raise SourceError(f"{expected}: {problem}", path=path, line=first[0], text=first[1])
    number = first[0]
    for number, line in numbered:
        fields = line.split("\t")
        if len(fields) != len(names):
            raise SourceError(
                f"expected {len(names)} tab-separated fields ({', '.join(names)}), found {len(fields)}",
                path=path, line=number, text=line,
            )  # fmt: skip
        yield Row(number, line, dict(zip(names, fields, strict=True)))
    if number == first[0]:
        raise SourceError("it names columns, and ends: there is no row in it", path=path, line=number)
