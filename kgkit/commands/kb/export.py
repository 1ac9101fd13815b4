"""`kgkit kb export`: a knowledge base as a file of another program."""

import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from kgkit.commands.messages import Messages, Tell
from kgkit.commands.options import HomeOption, QuietOption, opened
from kgkit.commands.output import check_place, whole_file, write_bytes
from kgkit.errors import NotThere, UsageError

FORMATS: Final = ("csv", "graphml", "jsonl", "kgtk", "ntriples", "tsv", "turtle", "wn-lmf")
"""As the help lists them; a test compares them with those there are."""

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help=f"One of {', '.join(FORMATS)}; unless given, what the name of the file says.",
    ),
]


def export(
    name: Annotated[str, typer.Argument(metavar="KB", help="NAME or NAME@BUILD.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to; `-` is standard output; a folder for csv."
        ),
    ],
    format: FormatOption = None,
    home: HomeOption = None,
    quiet: QuietOption = False,
) -> None:
    """Write a knowledge base in the format of another program.

    `kgkit kb import` brings it back; what tsv and wn-lmf lose is said when they are written.
    """
    from kgkit.building.records import StoredRecords
    from kgkit.exchange import find_format, guess_format

    messages = Messages(quiet=quiet)
    to_stdout = str(output) == "-"
    if to_stdout and format is None:
        raise UsageError(f"to standard output in which format? --format FORMAT, one of {', '.join(FORMATS)}")
    made = find_format(format) if format is not None else guess_format(output)
    if to_stdout and made.folder:
        raise UsageError(f"{made.title} is a folder of files: name one with --output")
    if not to_stdout:
        check_folder(output) if made.folder else check_place(output)
    began = time.monotonic()
    with opened(name, home, verify=True) as kb, messages.progress(f"writing {made.title}") as tell:
        files = made.files(StoredRecords(kb))
        losses = list(made.losses)
        if kb.store.has_occurrences and not made.has_occurrences:
            losses.append("how often surfaces occur in texts, and so link probabilities")
        if losses:
            messages.say(f"{made.title} does not carry: {'; '.join(losses)}")
        if made.folder:
            _write_folder(files, output, tell)
        elif to_stdout:
            for content in files[""]:
                write_bytes(content)
        else:
            with whole_file(output) as write:
                for content in _packed(_told(files[""], tell), output.suffix):
                    write(content)
    if not to_stdout:
        messages.say(f"wrote {name} as {made.title} in {time.monotonic() - began:.1f} s: {output}")


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


def _write_folder(files: Mapping[str, Iterator[bytes]], path: Path, tell: Tell) -> None:
    """Write *files* beside *path* and rename their folder, so that it appears whole or not at all."""
    beside = path.absolute().with_name(f".{secrets.token_hex(8)}.part")
    beside.mkdir()
    try:
        for name, contents in files.items():
            with (beside / name).open("wb") as file:
                file.writelines(_told(contents, tell))
                file.flush()
                os.fsync(file.fileno())
        beside.rename(path.absolute())
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _packed(contents: Iterator[bytes], suffix: str) -> Iterator[bytes]:
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


def _told(contents: Iterator[bytes], tell: Tell) -> Iterator[bytes]:
    written = 0
    for content in contents:
        yield content
        written += len(content)
        tell(f"{written / 1e6:,.0f} MB")
