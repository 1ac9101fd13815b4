"""A PostgreSQL server for the tests: a real one, in a folder of its own, which only this machine can reach.

Debian's package `postgresql` has what it takes. The server listens on a Unix socket alone. It refuses to run
as root, so root starts it as the user `postgres`, who came with the package.
"""

import getpass
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

# Nothing here is worth keeping: what a crash of the machine would lose may be lost.
CARELESS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "16MB"}


class Unavailable(Exception):
    """There is no server on this machine that could be started; says why."""


class Server(NamedTuple):
    """A server that runs: the folder of its socket, the user to connect as, how to run its programs."""

    folder: Path
    user: str
    bin: Path
    prefix: Sequence[str]

    def url(self, database: str) -> str:
        """Return the URL of one of its databases."""
        return f"postgresql://{self.user}@/{database}?host={quote(str(self.folder))}"

    def create(self, database: str) -> str:
        """Create an empty database and return its URL."""
        call = ["createdb", "--host", str(self.folder), "--username", self.user, database]
        _run([*self.prefix, str(self.bin / call[0]), *call[1:]], self.folder)
        return self.url(database)


@contextmanager
def server() -> Iterator[Server]:
    """Start a server, and end it."""
    programs, prefix, user = _programs(), *_someone()
    folder = Path(tempfile.mkdtemp(prefix="kgkit-pg-"))
    data = folder / "data"
    try:
        if prefix:
            folder.chmod(0o755)
            shutil.chown(folder, user)
        start = [str(programs / "initdb"), "--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C"]
        _run([*prefix, *start, f"--username={user}", f"--pgdata={data}"], folder)
        settings = {**CARELESS, "listen_addresses": "", "unix_socket_directories": str(folder)}
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        call = [*prefix, str(programs / "postgres"), "-D", str(data), *options]
        with (
            (folder / "log").open("wb") as log,
            subprocess.Popen(call, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as running,
        ):
            try:
                _wait(running, [str(programs / "pg_isready"), "--host", str(folder)], folder)
                yield Server(folder, user, programs, prefix)
            finally:
                running.send_signal(3)  # SIGQUIT: at once
                running.wait(timeout=300)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    initdb = found[-1] if found else shutil.which("initdb")
    if initdb is None:
        raise Unavailable("no PostgreSQL on this machine: apt-get install postgresql")
    return Path(initdb).resolve().parent


def _someone() -> tuple[Sequence[str], str]:
    """Return what runs a program as somebody who is not root, and who that is."""
    if os.geteuid() != 0:
        return [], getpass.getuser()
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        raise Unavailable("PostgreSQL does not run as root, and there is no user postgres") from None
    ids = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return ["setpriv", *ids, "--"], "postgres"


def _wait(running: "subprocess.Popen[bytes]", ready: Sequence[str], folder: Path) -> None:
    until = time.monotonic() + 30
    while subprocess.run(ready, capture_output=True, check=False).returncode:
        if running.poll() is not None or time.monotonic() > until:
            raise AssertionError((folder / "log").read_text(errors="replace"))
        time.sleep(0.02)


def _run(call: Sequence[str], folder: Path) -> None:
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
