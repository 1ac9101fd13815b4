"""Packs for tests: a home with a knowledge base and vectors, and packs that were written by hand.

`toy_pack` packs both; `Archive` takes a pack apart, lets a test change what it likes, and writes it again,
with digests that fit unless the test says otherwise.
"""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

import kgkit
from kgkit.sharing.layout import CARD, MANIFEST
from tests.toys import build_toy
from tests.vector_toys import made


def toy_home(folder: Path) -> Path:
    """Return a home with the toy of `tests/toys.py` and vectors of it."""
    folder.mkdir(parents=True, exist_ok=True)
    home = build_toy(folder).path.parents[3]
    made(home)
    return home


def toy_pack(folder: Path, name: str = "toy.tar") -> Path:
    """Return a pack of the toy's vectors, and so of the toy."""
    return kgkit.pack("vectors:toy/plane", folder / name, home=toy_home(folder)).path


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    assert stream is not None
    return stream.read()


class Archive:
    """The members of a pack by their names, and its manifest as plain values.

    Attributes:
        manifest: fields of `PackManifest`.
        files: content of each member but the manifest.
    """

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            members = {member.name: _content(archive, member) for member in archive}
        self.manifest: dict[str, Any] = msgspec.json.decode(members.pop(MANIFEST))
        self.files = members

    def item(self, title: str) -> dict[str, Any]:
        """Return the entry of `kb:toy` or another thing."""
        kind, _, name = title.partition(":")
        return next(each for each in self.manifest["items"] if (each["kind"], each["name"]) == (kind, name))

    def set_file(self, title: str, path: str, content: bytes) -> None:
        """Put a file in, and what the manifest says of it."""
        self.files[f"{title.replace(':', '/')}/{path}"] = content
        self.item(title)["files"][path] = {
            "size": len(content), "sha256": hashlib.sha256(content).hexdigest(),
        }  # fmt: skip

    def edit_json(self, title: str, path: str, **fields: Any) -> None:
        """Change fields of a JSON file, and what the manifest says of it."""
        content = msgspec.json.decode(self.files[f"{title.replace(':', '/')}/{path}"])
        self.set_file(title, path, msgspec.json.encode({**content, **fields}))

    def set_data(self, title: str, content: bytes) -> None:
        """Give a knowledge base another data.mdb, with the checksums of its files and its own build name."""
        manifest = msgspec.json.decode(self.files[f"{title.replace(':', '/')}/manifest.json"])
        sums = {**manifest["sha256"], "data.mdb": hashlib.sha256(content).hexdigest()}
        self.edit_json(title, "manifest.json", sha256=sums)
        self.set_file(title, "data.mdb", content)

    def names(self) -> list[str]:
        """Return the names of the members as the manifest orders them."""
        return [
            f"{item['kind']}/{item['name']}/{path}"
            for item in self.manifest["items"]
            for path in item["files"]
        ]

    def write(self, path: Path) -> Path:
        """Write the archive, and return its path."""
        members = [(MANIFEST, msgspec.json.encode(self.manifest)), (CARD, self.files[CARD])]
        members += [(name, self.files.get(name, b"")) for name in self.names()]
        return write_archive(path, members)


def write_archive(path: Path, members: Iterable[tuple[str, bytes]], tail: bytes = b"") -> Path:
    """Write a tar archive of texts by their names, and bytes behind it; return its path."""
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
        for name, text in members:
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    with path.open("ab") as file:
        file.write(tail)
    return path


def contents_of(home: Path) -> list[str]:
    """Return the paths of all that lies in a home; none if there is none."""
    return sorted(str(path.relative_to(home)) for path in home.rglob("*")) if home.exists() else []
