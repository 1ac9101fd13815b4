"""Names of lists and of columns of tables, to entities: `kgkit.reconcile`."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

from kgkit.errors import MissingExtra, UnknownName, UsageError
from kgkit.home import Home
from kgkit.kb import KnowledgeBase, open_kb
from kgkit.reconciling.reconciler import NameMatch, ReconcileConfig, Reconciler

__all__ = ["added_columns", "added_types", "check_column", "match_cells", "reconcile"]

TABLE_PACKAGES: Final = ("pandas", "polars", "pyarrow", "modin", "cudf")
"""Packages whose tables and columns narwhals reads."""

_CANDIDATE: Final[Mapping[str, type]] = {"key": str, "label": str, "score": float}


def reconcile(
    names: Any,
    kb: str | KnowledgeBase | None = None,
    *,
    column: str | None = None,
    kind: str | None = None,
    top: int = 1,
    threshold: float = 0.5,
    prefix: str = "",
    home: str | os.PathLike[str] | None = None,
) -> Any:
    """Return which entities names mean, through the forms in which people write names.

    Every call opens the knowledge base. For call after call, keep a `kgkit.Reconciler`.

    Args:
        names: a name; several, of which some may be None; a column of pandas, polars or Arrow; or a table of
            these.
        kb: handle, `NAME`, `NAME@BUILD`, or None if there is one KB only.
        column: column of a table with the names.
        kind: kind of the only entities (`synset`), one of their types, or `ATTRIBUTE=VALUE`; None for any.
        top: number of candidates of each name.
        threshold: least score, in [0, 1], of a match.
        prefix: beginning of the names of the columns that are added to a table.
        home: folder of the knowledge bases; `KGKIT_HOME` or the platform's place unless given.

    Returns:
        A `NameMatch` for a name, a list of them for several. For a column a table of the same package, with
        the names, and `key`, `label`, `score` and `match`; for a table the same rows with these columns
        added. With *top* above 1 further columns have the other candidates: `key_2`, `label_2`, `score_2`, …

    Raises:
        NotThere: if there is no such KB, or it has no index of its surfaces; names the command that adds it.
        UnknownName: if there is no such column, or no entity of that kind.
        UsageError: if a setting is out of range, a column is named that is not needed, none where one is
            needed, or a column that would be added is there.
        MissingExtra: if narwhals is not installed, for a table or a column.

    Examples:
        >>> kgkit.reconcile("hipopotamus", kb="wordnet").key
        'hippopotamus.n.01'
    """
    config = ReconcileConfig(kind=kind, top=top, threshold=threshold)
    is_table = type(names).__module__.partition(".")[0] in TABLE_PACKAGES
    if not is_table and column is not None:
        raise UsageError(f"column={column!r} is for a table; these names are of {type(names).__name__}")
    if isinstance(names, bytes | Mapping) or not (is_table or names is None or isinstance(names, Iterable)):
        raise TypeError(f"names are strings, a column or a table, not {type(names).__name__}")
    table = _table_of(names, column, config, prefix) if is_table else None
    with ExitStack() as stack:
        if not isinstance(kb, KnowledgeBase):
            kb = stack.enter_context(open_kb(kb or Home.find(home).default_kb().name, home))
        reconciler = Reconciler(kb, config)
        if table is not None:
            return _with_matches(*table, reconciler, prefix)
        return reconciler(names) if names is None or isinstance(names, str) else [*reconciler.pipe(names)]


def added_columns(columns: Sequence[str], config: ReconcileConfig, prefix: str = "") -> list[str]:
    """Return the names of the columns that are added to a table.

    Args:
        columns: columns that it has.
        config: settings of the reconciliation.
        prefix: beginning of each name.

    Raises:
        UsageError: if the table has one of them already.
    """
    further = [f"{name}_{rank}" for rank in range(2, config.top + 1) for name in _CANDIDATE]
    new_columns = [prefix + name for name in (*_CANDIDATE, "match", *further)]
    if clashes := [name for name in new_columns if name in columns]:
        raise UsageError(
            f"the table has a column {clashes[0]!r} already, and one of that name is to be added: "
            f"a prefix, as in `--prefix kb_` or prefix='kb_', makes it {'kb_' + clashes[0]!r}"
        )
    return new_columns


def added_types(top: int) -> list[type]:
    """Return the types of the cells of these columns: `str`, `float` or `bool`."""
    return [*_CANDIDATE.values(), bool, *[*_CANDIDATE.values()] * (top - 1)]


def match_cells(match: NameMatch, top: int) -> list[Any]:
    """Return the cells of a row for the columns that `added_columns` names."""
    cells: list[Any] = [match.key, match.label, match.score, match.match]
    for candidate in match.candidates[1:]:
        cells += candidate
    return cells + [None] * (len(added_types(top)) - len(cells))


def check_column(column: str, columns: Sequence[str]) -> None:
    """Make sure that a table has a column.

    Raises:
        UnknownName: if it does not; says which there are.
    """
    if column not in columns:
        raise UnknownName("column", column, [*columns])


def _table_of(names: Any, column: str | None, config: ReconcileConfig, prefix: str) -> tuple[Any, str]:
    """Return a table as a DataFrame of narwhals, and the name of its column of names."""
    try:
        import narwhals
    except ImportError:
        raise MissingExtra("narwhals", "columns") from None
    try:
        native = narwhals.from_native(_arrow_table(names), eager_only=True, allow_series=True)
    except TypeError as error:
        hint = "; .collect() makes a table of a LazyFrame" if "Lazy" in type(names).__name__ else ""
        raise UsageError(f"{type(names).__name__} is no table that can be read: {error}{hint}") from None
    if isinstance(native, narwhals.Series):
        if column is not None:
            raise UsageError(f"column={column!r} is for a table, and this is one column")
        column = native.name or "name"
        native = native.alias(column).to_frame()
    if column is None:
        raise UsageError(f"which column has the names? column=…: there are {', '.join(native.columns)}")
    check_column(column, native.columns)
    added_columns(native.columns, config, prefix)
    return native, column


def _arrow_table(names: Any) -> Any:
    """Return arrays and record batches of Arrow as what narwhals reads; anything else as it is."""
    if type(names).__module__.partition(".")[0] == "pyarrow":
        import pyarrow

        if isinstance(names, pyarrow.Array):
            return pyarrow.chunked_array([names])
        if isinstance(names, pyarrow.RecordBatch):
            return pyarrow.Table.from_batches([names])
    return names


def _with_matches(table: Any, column: str, reconciler: Reconciler, prefix: str) -> Any:
    import narwhals

    top = reconciler.config.top
    headings = added_columns(table.columns, reconciler.config, prefix)
    try:
        names = table[column].to_list()
    except (ArithmeticError, LookupError, ValueError) as error:  # a date that Python has no value for
        raise UsageError(f"column {column!r} has a cell that cannot be read: {error}") from None
    cells = zip(names, table[column].is_null().to_list(), strict=True)
    values = [None if is_null else _name_of_cell(cell, column) for cell, is_null in cells]
    rows = [match_cells(match, top) for match in reconciler.pipe(values)]
    dtypes: dict[type, Any] = {str: narwhals.String, float: narwhals.Float64, bool: narwhals.Boolean}
    series = [
        narwhals.new_series(
            heading, [row[position] for row in rows], dtypes[cell_type], backend=table.implementation
        )
        for position, (heading, cell_type) in enumerate(zip(headings, added_types(top), strict=True))
    ]
    return table.with_columns(*series).to_native()


def _name_of_cell(cell: Any, column: str) -> str:
    """Return a cell of a table that is not empty."""
    if isinstance(cell, str):
        return cell
    raise UsageError(f"column {column!r} has {cell!r}, of the type {type(cell).__name__}; names are strings")
