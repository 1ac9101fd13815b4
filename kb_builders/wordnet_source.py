"""Where WordNet 3.0 comes from when nobody says where it is.

Tried in this order, the first that works wins:

    1  an installed wordnet-base          /usr/share/wordnet
    2  what an earlier call left          CACHE/wordnet-3.0
    3  the Debian package wordnet-base    `apt-get download`, `dpkg-deb -x`; neither needs root
    4  Princeton's release of 3.0         the archive with the sources: the one with the database
                                          alone lacks the lists of irregular forms

The package is checked by apt against Debian's signatures, the archive against
the SHA-256 below, which Homebrew and Nixpkgs both publish for it. Files are
gathered in a temporary folder beside their final place and renamed into it at
once, so a folder called CACHE/wordnet-3.0 is always complete.
"""

import hashlib
import logging
import os
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from kgkit.building import check_online
from kgkit.errors import NotThere

log = logging.getLogger(__name__)

PARTS: Final = ("noun", "verb", "adj", "adv")
FILES: Final = (
    *(f"data.{part}" for part in PARTS),
    *(f"index.{part}" for part in PARTS),
    *(f"{part}.exc" for part in PARTS),
    "cntlist.rev",
)

INSTALLED: Final = Path("/usr/share/wordnet")
PACKAGE: Final = "wordnet-base"
URL: Final = "https://wordnetcode.princeton.edu/3.0/WordNet-3.0.tar.bz2"
SHA256: Final = "6c492d0c7b4a40e7674d088191d3aa11f373bb1da60762e098b8ee2dda96ef22"
TIMEOUT: Final = 600  # seconds, for one command of apt; the lists are some 10 MB, the package 5


class Failed(Exception):
    """One way of obtaining the files did not work; says why."""


def obtain(cache: Path) -> Path:
    """Return a folder with WordNet's database files, fetching them if need be.

    Args:
        cache: folder that keeps fetched files for the next time; made if it does not exist.

    Raises:
        NotThere: every way failed; the message says how each of them did.
        NetworkForbidden: they are not on this machine, and `KGKIT_OFFLINE` is set.
    """
    if is_complete(INSTALLED):
        return INSTALLED
    folder = cache / "wordnet-3.0"
    if is_complete(folder):
        return folder
    check_online("WordNet 3.0, which is not on this machine,", "name a folder that has it")
    tried = [f"{INSTALLED}: no WordNet there"]
    ways: Sequence[tuple[str, Callable[[Path, Path], None]]] = (
        (f"the Debian package {PACKAGE}", _from_debian),
        (URL, _from_princeton),
    )
    for name, way in ways:
        log.info("WordNet 3.0 is not on this machine; trying %s", name)
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".wordnet-", dir=cache.resolve()) as scratch:
                files = Path(scratch, "files")
                files.mkdir()
                way(Path(scratch), files)
                missing = [file for file in FILES if not (files / file).is_file()]
                if missing:
                    raise Failed(f"it lacks {', '.join(missing)}")
                _publish(files, folder)
            return folder
        except (Failed, OSError) as error:
            tried.append(f"{name}: {error}")
    raise NotThere(
        "WordNet 3.0 is not on this machine and could not be fetched:\n    "
        + "\n    ".join(tried)
        + f"\nInstall {PACKAGE}, or name a folder that holds data.noun and the other files"
    )


def is_complete(folder: Path) -> bool:
    """Say whether *folder* holds every file that the builder reads."""
    return all((folder / file).is_file() for file in FILES)


def _publish(files: Path, folder: Path) -> None:
    """Rename the complete *files* to *folder*; where another process was first, keep what it put there."""
    try:
        files.rename(folder)
    except OSError:
        if is_complete(folder):
            return
        shutil.rmtree(folder)  # complete folders only are put there: somebody has taken files out of it
        files.rename(folder)


# --- the Debian package ----------------------------------------------------


def _from_debian(scratch: Path, files: Path) -> None:
    """Download the package as any user may, and unpack it without installing it."""
    for command in ("apt-get", "dpkg-deb"):
        if shutil.which(command) is None:
            raise Failed(f"{command} is not on this machine")
    deb = _download_package(scratch)
    unpacked = scratch / "unpacked"
    _run(["dpkg-deb", "-x", str(deb), str(unpacked)], scratch)
    for file in FILES:
        path = unpacked / "usr/share/wordnet" / file
        if path.is_file() and not path.is_symlink():
            path.rename(files / file)


def _download_package(scratch: Path) -> Path:
    """Fetch the package with the machine's own lists, else with lists fetched for this one call.

    A fresh machine has no lists yet, and only root may fetch them to where they
    belong; apt is content with private ones anywhere.
    """
    # As root, apt would hand the download to a user who may not write to our folder, and say so.
    download = ["apt-get", "-q", "-o", "APT::Sandbox::User=root"]
    try:
        _run([*download, "download", PACKAGE], scratch)
    except Failed:
        lists, cached = scratch / "lists", scratch / "archives"
        (lists / "partial").mkdir(parents=True)
        (cached / "partial").mkdir(parents=True)
        private = [*download, "-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={cached}"]
        _run([*private, "update"], scratch)
        _run([*private, "download", PACKAGE], scratch)
    debs = sorted(scratch.glob("*.deb"))
    if not debs:
        raise Failed("apt-get downloaded nothing")
    return debs[0]


def _run(command: Sequence[str], folder: Path) -> None:
    """Run *command* in *folder*; its first complaint is the reason of a failure."""
    try:
        result = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{command[0]} had not finished after {TIMEOUT} s") from None
    if result.returncode != 0:
        complaints = [line for line in result.stderr.splitlines() if line.startswith("E:")]
        reason = (complaints or result.stderr.split("\n"))[0].strip()
        raise Failed(f"{command[0]} failed: {reason or f'exit code {result.returncode}'}")


# --- Princeton's archive ---------------------------------------------------


def _from_princeton(scratch: Path, files: Path) -> None:
    """Download the archive, compare its checksum, and take the wanted files out of it."""
    archive = scratch / "WordNet-3.0.tar.bz2"
    digest = hashlib.sha256()
    with urllib.request.urlopen(URL, timeout=60) as answer, archive.open("wb") as out:
        while block := answer.read(1 << 20):
            digest.update(block)
            out.write(block)
    if digest.hexdigest() != SHA256:
        size = archive.stat().st_size
        raise Failed(f"the download ({size:,} bytes) has SHA-256 {digest.hexdigest()}, expected {SHA256}")
    try:
        _take(archive, files)
    except (tarfile.TarError, EOFError) as error:
        raise Failed(f"the archive cannot be read: {error}") from error


def _take(archive: Path, files: Path) -> None:
    """Copy the wanted members by content alone: no path, link or mode of the archive is followed."""
    with tarfile.open(archive, "r:bz2") as members:
        for member in members:
            path = PurePosixPath(member.name)
            content = members.extractfile(member) if member.isreg() else None
            if content is not None and path.parent.name == "dict" and path.name in FILES:
                with content, (files / path.name).open("wb") as out:
                    shutil.copyfileobj(content, out)
