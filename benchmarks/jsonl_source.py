"""What programs that write a source for the builder `jsonl` share: their command line, and lines of JSON."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import REPOSITORY


def source_parser(program: str, description: str, folder: str) -> argparse.ArgumentParser:
    """Return a parser of a command line with the folder to write, and that of the data.

    Args:
        program: name of the module.
        description: what is written.
        folder: name of the folder that is read, in that of the data.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{program}", description=description)
    parser.add_argument("out", type=Path, metavar="OUT_DIR", help="folder for the files")
    parser.add_argument(
        "--data",
        type=Path,
        default=REPOSITORY.parent / "shared" / "data",
        help=f"folder with {folder}/ (default: shared/data beside the checkout)",
    )
    parser.set_defaults(folder=folder)
    return parser


def run_writer(
    parser: argparse.ArgumentParser, write: Callable[[argparse.Namespace, Path], Mapping[str, int]]
) -> None:
    """Write what the command line asks for, and say how many lines; *write* gets the folder that is read."""
    arguments = parser.parse_args()
    folder = arguments.data / arguments.folder
    if not folder.is_dir():
        parser.error(f"no folder {folder}: --data names the one that holds {arguments.folder}/")
    lines = write(arguments, folder)
    print(", ".join(f"{count:,} {name}" for name, count in lines.items()), file=sys.stderr)


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> int:
    """Write *lines*, and return how many; without any, leave no file, as its reader would not take it."""
    texts = [json.dumps(line, ensure_ascii=False) + "\n" for line in lines]
    if texts:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(texts), encoding="utf-8", newline="\n")
    else:
        path.unlink(missing_ok=True)
    return len(texts)
