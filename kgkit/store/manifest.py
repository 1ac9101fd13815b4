"""The manifest of a build: read and checked before anything else is, and what it says of building anew."""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from kgkit.errors import DamagedKB, FormatMismatch, NotThere, StaleKB, StoreError
from kgkit.home import Home
from kgkit.store.layout import DATA, FORMAT, MANIFEST, FormatOnly, Manifest, fingerprint, readable_formats
from kgkit.urls import check_url_pattern

MOST_BASES: Final = 10_000
"""Builds that a build says it extends, at most: an addition an hour for a year. Older ones are forgotten."""

_BUILD: Final = re.compile(r"[\w-]{1,64}")

GARBAGE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that it cannot read."""


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of the build in *folder*, its format and file sizes checked.

    Raises:
        NotThere, FormatMismatch, DamagedKB: as `StoreReader.open` does.
        StoreError: if it may not be read.
    """
    path = folder / MANIFEST
    try:
        written = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise NotThere(f"no knowledge base in {folder}: it has no {MANIFEST}") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    try:
        head = msgspec.json.decode(written, type=FormatOnly)
        if readable_formats().get(head.format) != head.fingerprint:
            raise FormatMismatch(
                f"{folder} has format {head.format} ({head.fingerprint or 'no fingerprint'}), this kgkit "
                f"reads format {FORMAT} ({fingerprint()}): "
                f"run `{rebuild_command(folder, head)}` to build it again"
            )
        manifest = msgspec.json.decode(written, type=Manifest)
        if manifest.url_pattern:
            check_url_pattern(manifest.url_pattern)
        _check_bases(manifest)
    except (*GARBAGE, ValueError) as error:
        raise DamagedKB(f"{path} cannot be read: {error}; build the knowledge base again") from error
    for name, size in {DATA: -1, **manifest.files}.items():
        # Before anything is mapped: reading past the end of a truncated file
        # would end the process with SIGBUS.
        try:
            actual: int | None = (folder / name).stat().st_size
        except (OSError, ValueError):
            if not path.exists():
                raise NotThere(f"no knowledge base in {folder}: it was removed a moment ago") from None
            actual = None
        if actual != size:
            problem = "is missing" if actual is None else f"has {actual:,} bytes"
            raise DamagedKB(
                f"{folder / name} {problem}, its manifest says {size:,} bytes: "
                f"run `{rebuild_command(folder, head)}` to build it again"
            )
    return manifest


def _check_bases(manifest: Manifest) -> None:
    """Make sure that the builds that a build extends have names of builds, and are not too many.

    Raises:
        ValueError: if not.
    """
    if len(manifest.bases) > MOST_BASES:
        raise ValueError(f"bases has {len(manifest.bases):,} builds, and {MOST_BASES:,} at most are expected")
    for build in (*filter(None, [manifest.base]), *manifest.bases):
        if not _BUILD.fullmatch(build):
            raise ValueError(f"{build[:40]!r} among its bases is no name of a build")


def read_manifest_of(folder: Path, build: str) -> Manifest:
    """Return the manifest in *folder*, if it still is that of a build.

    Args:
        folder: folder of a build.
        build: name of the build, which was read from there before.

    Raises:
        StaleKB: if there is none any more, or that of another build.
    """
    try:
        manifest = read_manifest(folder)
    except NotThere:
        raise StaleKB(
            f"build {build} is no longer at {folder}: open the knowledge base by name again"
        ) from None
    if manifest.build != build:
        raise StaleKB(f"{folder} now holds build {manifest.build}, the handle was opened on {build}")
    return manifest


def full_name(folder: Path) -> str:
    """Return what people call the build in *folder*: NAME@BUILD, or the folder where it lies in no home."""
    if folder.parent.name == "builds" and (name := folder.parents[1].name):
        return f"{name}@{folder.name}"
    return str(folder)


def home_of(folder: Path) -> Path | None:
    """Return HOME of HOME/kbs/NAME/builds/BUILD; None where the path does not tell."""
    return folder.parents[3] if folder.parent.name == "builds" and len(folder.parents) > 3 else None


def rebuild_command(folder: Path, manifest: FormatOnly | Manifest) -> str:
    """Return the command that builds anew what lies at HOME/kbs/NAME/builds/BUILD, as far as can be told."""
    words = ["kgkit", "build-kb", manifest.builder or "BUILDER"]
    if (home := home_of(folder)) is not None:
        name = folder.parents[1].name
        words += ["--name", name] if name != manifest.builder else []
        words += _sources(manifest.source.path)
        words += _option_words(manifest.options) if isinstance(manifest, Manifest) else []
        words += ["--home", str(home)] if Home.named or home != Home.find().path else []
    return shlex.join(words)


def _option_words(options: Mapping[str, Any]) -> list[str]:
    """Return the options of a build as they are written on the command line."""
    words: list[str] = []
    for name, value in options.items():
        for each in map(str, value if isinstance(value, list) else [value]):
            role, _, column = each.partition("=")
            words += [f"--{role}", column] if name == "columns" else [f"--{name.replace('_', '-')}", each]
    return words


def _sources(path: str) -> list[str]:
    """Return the sources that a manifest names: several are absolute paths, joined as a search path is."""
    paths = path.split(os.pathsep)
    return paths if all(map(os.path.isabs, paths)) else [path] if path else []
