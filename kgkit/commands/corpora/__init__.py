"""Corpora: any number of documents from files, through a linker or a tagger, into a file that is whole.

    files ──documents──▶ chunks ──linkers or taggers──▶ lines of JSON ──answers──▶ the output

`documents` reads files of any form, one document at a time. `chunks` answers some hundred of them, in this
process or in `workers`. `answers` keeps the lines until all are there, and lets a run that was stopped go on.
`parquet` makes Parquet of them. `job` puts them together.
"""
