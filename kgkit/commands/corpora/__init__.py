"""Corpora: any number of documents from files, through a linker or a tagger, into a file that is whole.

    files ──entries──▶ chunks ──documents, answers──▶ bytes, in order ──journal──▶ the output

`entries` reads files of any form, one document's bytes at a time; `kgkit.commands.documents` makes documents
of them, and `mentions` reads the mentions that they came with. `chunks` answers some hundred of them, in this
process or in `workers`; `formats` writes answers as JSON lines or Parquet; `journal` keeps what is written
until it is whole, and lets a run that was stopped go on. `job` puts them together.
"""
