"""`kgkit kb export`: a knowledge base as a file of another program."""

import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from kgkit.commands.messages import Messages, ProgressCallback
from kgkit.commands.options import HomeOption, QuietOption, open_chosen_kb
from kgkit.commands.output import check_output_path, open_output, write_bytes
from kgkit.errors import NotThere, UsageError

FORMATS: Final = ("csv", "graphml", "jsonl", "kgtk", "ntriples", "tsv", "turtle", "wn-lmf")
"""As the help lists them; a test compares them with those there are."""

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help=f"One of {', '.join(FORMATS)}; by default chosen by the name of the file.",
    ),
]


def export(
    name: Annotated[str, typer.Argument(metavar="KB", help="NAME or NAME@BUILD.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File to write; `-` is standard output; a folder for csv."
        ),
    ],
    format: FormatOption = None,
    home: HomeOption = None,
    quiet: QuietOption = False,
) -> None:
    """Write a knowledge base in the format of another program.

    `kgkit kb import` reads it back; for tsv and wn-lmf a message names what is lost.
    """
    from kgkit.building.records import StoredRecords
    from kgkit.exchange import find_format, guess_format

    messages = Messages(quiet=quiet)
    to_stdout = str(output) == "-"
    if to_stdout and format is None:
        raise UsageError(f"to standard output in which format? --format FORMAT, one of {', '.join(FORMATS)}")
    file_format = find_format(format) if format is not None else guess_format(output)
    if to_stdout and file_format.folder:
        raise UsageError(f"{file_format.title} is a folder of files: name one with --output")
    if not to_stdout:
        check_folder(output) if file_format.folder else check_output_path(output)
    began = time.monotonic()
    with (
        open_chosen_kb(name, home, verify=True) as kb,
        messages.progress(f"writing {file_format.title}") as tell,
    ):
        files = file_format.files(StoredRecords(kb))
        losses = list(file_format.losses)
        if kb.store.has_occurrences and not file_format.has_occurrences:
            losses.append("how often surfaces occur in texts, and so link probabilities")
        if losses:
            messages.write(f"{file_format.title} does not carry: {'; '.join(losses)}")
        if file_format.folder:
            _write_folder(files, output, tell)
        elif to_stdout:
            for content in files[""]:
                write_bytes(content)
        else:
            with open_output(output) as write:
                for content in _compress(_report_bytes(files[""], tell), output.suffix):
                    write(content)
    if not to_stdout:
        messages.write(f"wrote {name} as {file_format.title} in {time.monotonic() - began:.1f} s: {output}")


def check_folder(path: Path) -> None:
    """Say so at once if no new folder can be put at *path*.

    Raises:
        NotThere: if there is no folder to put it in.
        UsageError: if something is there already.
    """
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} is there already: remove it, or name another folder")
    if not path.absolute().parent.is_dir():
        raise NotThere(f"no folder {path.parent} to write {path.name} to: `mkdir -p {path.parent}` makes it")


def _write_folder(files: Mapping[str, Iterator[bytes]], path: Path, tell: ProgressCallback) -> None:
    """Write *files* beside *path* and rename their folder, so that it appears whole or not at all."""
    temporary = path.absolute().with_name(f".{secrets.token_hex(8)}.part")
    temporary.mkdir()
    try:
        for name, contents in files.items():
            with (temporary / name).open("wb") as file:
                file.writelines(_report_bytes(contents, tell))
                file.flush()
                os.fsync(file.fileno())
        temporary.rename(path.absolute())
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _compress(contents: Iterator[bytes], suffix: str) -> Iterator[bytes]:
    """Yield *contents* compressed as the name of their file says."""
    packer: Any
    match suffix:
        case ".gz":
            import zlib

            packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
        case ".bz2":
            import bz2

            packer = bz2.BZ2Compressor()
        case ".xz":
            import lzma

            packer = lzma.LZMACompressor()
        case _:
            yield from contents
            return
    for content in contents:
        yield packer.compress(content)
    yield packer.flush()


def _report_bytes(contents: Iterator[bytes], tell: ProgressCallback) -> Iterator[bytes]:
    written = 0
    for content in contents:
        yield content
        written += len(content)
        tell(f"{written / 1e6:,.0f} MB")
