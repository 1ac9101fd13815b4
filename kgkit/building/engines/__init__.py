"""Builds that need not fit into memory.

    parts ──observe, in worker processes──▶ one Parquet file a part ──SQL──▶ sorted rows ──▶ the store

`columns` says what a record is as a row, `parts` observes and remembers what is done,
`queries` groups, `tables` writes what comes out, `pieces` puts entities together. An engine is
a `Session` that runs the queries: DuckDB on one machine (`local`), Spark on several (`spark`).
The text of the queries is the same for both, so that they cannot come to differ.
"""
