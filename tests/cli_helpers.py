"""Running the command line in tests: within this process, as a process of its own, on a terminal.

run(...)           quick: no process; standard output is a pipe
process(...)       a real process: signals, closed pipes, what is imported
on_terminal(...)   a real process whose standard output and error are a terminal
"""

import fcntl
import functools
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any, Final, NamedTuple

from typer import testing

from kb_builders.wordnet import WordNetBuilder
from kgkit.building.build import build_kb
from kgkit.commands.app import app
from tests.mini_wordnet import mini_wordnet
from tests.toys import child_env

# The tree of commands is made once, not for each command: it takes 50 ms.
testing._get_command = functools.cache(testing._get_command)  # type: ignore[attr-defined]

COMMAND: Final = (sys.executable, "-m", "kgkit.commands")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Ran(NamedTuple):
    """What a command left behind: its exit code, what it wrote to standard output and to standard error."""

    code: int
    out: str
    err: str


def run(*args: object, given: bytes = b"") -> Ran:
    """Run `kgkit ARGS` in this process, with *given* as standard input."""
    done = testing.CliRunner().invoke(app, [str(arg) for arg in args], input=given)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Ran(done.exit_code, done.stdout, done.stderr)


def process(*args: object, given: bytes = b"", **env: str) -> Ran:
    """Run `kgkit ARGS` as a process, with *given* as standard input."""
    done = subprocess.run(
        [*COMMAND, *map(str, args)],
        env=child_env(**env),
        input=given,
        capture_output=True,
        timeout=300,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def started(*args: object, **settings: Any) -> "subprocess.Popen[bytes]":
    """Start `kgkit ARGS` as a process."""
    env = child_env(**settings.pop("env", {}))
    env.pop("FORCE_COLOR", None)  # rich asks whether it is there
    return subprocess.Popen([*COMMAND, *map(str, args)], env=env, **settings)


def on_terminal(*args: object, columns: int = 80, colour: bool = False, keys: bytes = b"", **env: str) -> Ran:
    """Run `kgkit ARGS` on a terminal, where somebody types *keys*; `out` is all that it shows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    known = {
        "TERM": "xterm-256color",
        "COLUMNS": str(columns),
        "NO_COLOR": "",
        "PYTHONUTF8": "1",
    }
    with started(*args, stdin=theirs, stdout=theirs, stderr=theirs, env={**known, **env}) as child:
        os.close(theirs)
        if keys:
            os.write(ours, keys)
        shown = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            shown += more
        os.close(ours)
    text = shown.decode().replace("\r\n", "\n")
    return Ran(child.returncode, text if colour else colourless(text), "")


def colourless(text: str) -> str:
    """Return *text* without what only a terminal would obey."""
    return _ANSI.sub("", text)


def build_mini(folder: Path) -> Path:
    """Build the mini WordNet as the KB `mini` and return its home."""
    home = folder / "home"
    build_kb(WordNetBuilder(), mini_wordnet(folder / "source"), name="mini", home=home)
    return home


def install_builder(folder: Path, name: str, where: str) -> None:
    """Make *folder* look like one that holds an installed package with a builder called *name*."""
    info = folder / "a_stranger-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: a-stranger\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[kgkit.builders]\n{name} = {where}\n")


def read_documents(files, form):
    """The documents of files, as `kgkit link` reads them."""
    from kgkit.commands.corpora.documents import find_files, parse_entry, read_entries

    paths = find_files(files)
    return (parse_entry(entry).document for entry in read_entries(paths, form))
