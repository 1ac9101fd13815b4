"""Does what a page of the manual says, block by block, and compares what comes out.

    ```python     is run; the blocks of a page share their names, as one session would
    ```text       behind it: what it prints
    ```console    commands behind `$ `, each followed by what a terminal of 100 columns shows
    `NAME`:       on the line before a block: the block is the content of that file

Other blocks are for reading only. In what a page shows, … stands for anything, and alone on a line
for any lines.
"""

import fcntl
import gc
import io
import os
import pty
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
COLUMNS = 100

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w./-]+)`[^`\n]*:\n\n?\Z")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Block(NamedTuple):
    """A fenced block of a page.

    Attributes:
        kind: `python`, `text`, `console` …
        content: without the fences.
        file: the file whose content it is; empty if it is none.
        line: of the page, where the content begins.
    """

    kind: str
    content: str
    file: str
    line: int


class Session:
    """One reader at the keyboard: what a page's blocks do happens in one folder."""

    def __init__(self, folder: Path) -> None:
        gc.freeze()  # what is there already need not be looked through at the end: seconds a page
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self._ports: dict[str, str] = {}  # free ones in the place of those that the page names
        self._groups: list[int] = []  # of processes, of which some may run in the background
        programs = folder / ".bin"
        programs.mkdir()
        command = programs / "kgkit"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m kgkit.commands "$@"\n')
        command.chmod(0o755)
        self._environment = {
            **os.environ,
            "COLUMNS": str(COLUMNS),
            "LINES": "50",
            "NO_COLOR": "1",
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "PYTHONUTF8": "1",
            "TERM": "xterm",
        }

    def end(self) -> None:
        """Let go of what the blocks have opened, and end what they have started."""
        for group in self._groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self.names.clear()
        gc.collect()
        gc.unfreeze()

    def python(self, block: Block, page: str) -> str:
        """Run a block of Python and return what it printed."""
        code = compile("\n" * (block.line - 1) + block.content, page, "exec")
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(code, self.names)
        return printed.getvalue()

    def command(self, line: str) -> tuple[int, str]:
        """Run a command line in a terminal; return its exit code and what it said: messages, then results."""
        for port in re.findall(r"--port (\d+)", line):
            self._ports.setdefault(port, _free_port())
        for port, free in self._ports.items():
            line = re.sub(rf"\b{port}\b", free, line)
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
        shown: list[bytes] = []
        reader = threading.Thread(target=lambda: shown.extend(_read(ours)))
        reader.start()
        with subprocess.Popen(
            ["sh", "-c", line], cwd=self.folder, env=self._environment, stdin=subprocess.DEVNULL,
            stdout=theirs, stderr=subprocess.PIPE, start_new_session=True,
        ) as done:  # fmt: skip
            self._groups.append(done.pid)
            messages = done.communicate(timeout=300)[1]
        os.close(theirs)
        reader.join()
        os.close(ours)
        results = _ANSI.sub("", b"".join(shown).decode()).replace("\r\n", "\n")
        return done.returncode, messages.decode() + results


def pages() -> list[str]:
    """Return the pages that have blocks to do, from the root of the checkout."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        path.relative_to(ROOT).as_posix()
        for path in found
        if any(block.kind in ("python", "console") for block in blocks(path))
    ]


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        file = _FILE.search(text, 0, match.start())
        line = text.count("\n", 0, match.start(2)) + 1
        found.append(Block(match[1], match[2], file[1] if file else "", line))
    return found


def differences(page: str, session: Session, *, compare: bool) -> Iterator[str]:
    """Do what *page* says and yield a sentence for each thing that comes out otherwise.

    Args:
        page: its path from the root of the checkout.
        session: where to do it.
        compare: False only asks that every block runs, on a KB that may not have all its entities.
    """
    found = blocks(ROOT / page)
    for place, block in enumerate(found):
        if block.file:
            path = session.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.content, encoding="utf-8")
        elif block.kind == "python":
            printed = session.python(block, page)
            after = found[place + 1] if place + 1 < len(found) else None
            if compare and after is not None and after.kind == "text" and not fits(printed, after.content):
                yield f"{page}:{block.line} prints\n{printed}"
        elif block.kind == "console":
            for line, told in commands(block):
                code, said = session.command(line)
                fails = told.startswith("error:")
                if (code != 0) != fails and (compare or code != 3):  # 3: an entity that is not there
                    yield f"{page}: `{line}` ends with {code}\n{said}"
                elif compare and not fits(said, told):
                    yield f"{page}: `{line}` says\n{said}"


def commands(block: Block) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with what is shown behind it."""
    found: list[tuple[str, str]] = []
    for line in block.content.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].rstrip("\n"), ""))
        else:
            command, told = found[-1]
            found[-1] = command, told + line
    return found


def fits(actual: str, shown: str) -> bool:
    """Say whether *actual* is what a page shows, white space at the ends of lines aside."""
    pattern = ""
    for line in shown.rstrip().splitlines():
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(map(re.escape, line.rstrip().split("…"))) + r"[ \t]*\n"
    return re.fullmatch(pattern, actual.rstrip() + "\n" if actual.strip() else "") is not None


def _free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def _read(handle: int) -> Iterator[bytes]:
    while True:
        try:
            read = os.read(handle, 1 << 16)
        except OSError:  # the other end is closed
            return
        if not read:
            return
        yield read
