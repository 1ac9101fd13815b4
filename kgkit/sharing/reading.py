"""Reading a pack: from a file, an address or the hub, in one pass, as it comes.

No more memory is taken than a few chunks and the manifest. The files have to be those of the manifest, in its
order, with its sizes and digests.
"""

import gzip
import io
import re
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kgkit.errors import DamagedPack, MissingExtra, NotThere, UsageError
from kgkit.network import check_online, open_url
from kgkit.sharing.layout import (
    CARD,
    CHUNK,
    LONGEST_MANIFEST,
    MANIFEST,
    CheckedStream,
    PackedFile,
    PackManifest,
    decode_pack,
)

HUB: Final = "hf:"
"""Beginning of the address of a pack on the hub of Hugging Face: `hf:ORG/NAME[/FILE][@REV]`."""

_HUB_ADDRESS: Final = re.compile(r"hf:([\w.-]+/[\w.-]+)((?:/[\w.-]+)*)(?:@([\w./-]+))?")
_ARCHIVES: Final = (".tar", ".tar.gz", ".tgz")
_GZIP: Final = b"\x1f\x8b"
_LONGEST_NAME: Final = 1024  # bytes of a name that does not fit in a header
_NONE: Final = "it is no pack: `kgkit pack NAME --output FILE` writes one"


class PackReader:
    """A pack that is read from its beginning to its end.

    Args:
        stream: bytes of the pack.
        max_bytes: largest number of bytes of all its files.

    Attributes:
        manifest: manifest of the pack.
        card: its README.md.

    Raises:
        DamagedPack: if it is no pack, or declares what a pack may not hold.
        UsageError: if it declares more than *max_bytes*.
    """

    manifest: PackManifest
    card: str

    def __init__(self, stream: io.BufferedReader, max_bytes: int) -> None:
        self._archive = _open_archive(stream)
        first = self._archive.next()
        if first is None or first.name != MANIFEST:
            raise DamagedPack(_NONE)
        if first.size > LONGEST_MANIFEST:
            raise DamagedPack(f"{MANIFEST} is longer than {LONGEST_MANIFEST:,} bytes")
        content = self._archive.extractfile(first)
        self.manifest = decode_pack(b"" if content is None else content.read())
        if self.manifest.size > max_bytes:
            raise UsageError(
                f"the pack holds {self.manifest.size:,} bytes, and {max_bytes:,} are allowed: "
                "allow more with --max-size, if whoever made it is to be trusted with that"
            )
        self.card = self.file(CARD, self.manifest.card).read(LONGEST_MANIFEST).decode("utf-8", "replace")

    def file(self, name: str, file: PackedFile) -> CheckedStream:
        """Return the next file of the pack, which has to be this one, for reading.

        Args:
            name: name in the archive.
            file: size and digest of it.

        Raises:
            DamagedPack: if another file stands there.
        """
        member = self._archive.next()
        content = None if member is None else self._archive.extractfile(member)
        if member is None or content is None or (member.name, member.size) != (name, file.size):
            raise DamagedPack(f"{name} of {file.size:,} bytes is declared, and is not there")
        return CheckedStream(content, file, name)

    def check_end(self) -> None:
        """Refuse a pack that has further files.

        Raises:
            DamagedPack: if there is one.
        """
        if (member := self._archive.next()) is not None:
            raise DamagedPack(f"there is more in it than its manifest says: {member.name[:80]!r}")


class _RegularFile(tarfile.TarInfo):
    """A member of an archive that is neither a link, a folder nor a device.

    Of tar's extensions, which are read into memory, only long names are accepted.
    """

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        is_name = self.type == tarfile.GNUTYPE_LONGNAME and 0 <= self.size <= _LONGEST_NAME
        if not is_name and (self.type != tarfile.REGTYPE or self.size < 0):
            raise DamagedPack(f"{self.name[:80]!r} in it is not a regular file as kgkit writes it")
        return super()._proc_member(archive)  # type: ignore[misc, no-any-return]


def _open_archive(stream: io.BufferedReader) -> tarfile.TarFile:
    """Return the archive in a stream, inflated as it is read if it is compressed by gzip."""
    opened = gzip.GzipFile(fileobj=stream) if stream.peek(2).startswith(_GZIP) else stream
    try:
        return tarfile.open(fileobj=opened, mode="r|", bufsize=CHUNK, tarinfo=_RegularFile)
    except tarfile.ReadError as error:
        raise DamagedPack(_NONE) from error


@contextmanager
def open_pack(source: str, max_bytes: int) -> Iterator[PackReader]:
    """Open a pack.

    Args:
        source: path, address of http or https, or `hf:ORG/NAME[/FILE][@REV]`.
        max_bytes: largest number of bytes of all its files.

    Raises:
        NotThere: if there is none.
        NetworkForbidden: if it would have to be fetched, and `KGKIT_OFFLINE` is set.
        DamagedPack: if it cannot be read, also within the block; names the source.
    """
    try:
        with _open_source(source, max_bytes) as stream:
            yield PackReader(stream, max_bytes)
    except (DamagedPack, tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, RecursionError) as error:
        raise DamagedPack(f"the pack {source} was not unpacked: {error}") from error


@contextmanager
def _open_source(source: str, max_bytes: int) -> Iterator[io.BufferedReader]:
    if source.lower().startswith(("http://", "https://")):
        with open_url(source, max_bytes) as download:
            yield io.BufferedReader(download, CHUNK)
        return
    path = _from_hub(source, max_bytes) if source.startswith(HUB) else Path(source)
    if path.is_dir():
        raise UsageError(f"{path} is a folder; a pack is a file")
    if not path.is_file():
        raise NotThere(f"no file {path}")
    with path.open("rb") as file:
        yield file


def _from_hub(source: str, max_bytes: int) -> Path:
    """Return the file of a pack on the hub, fetched.

    Raises:
        UsageError: if the address is none, or the repository has several packs.
        NotThere: if there is no such pack, or the hub cannot be asked.
        MissingExtra: if huggingface_hub is not installed.
    """
    match = _HUB_ADDRESS.fullmatch(source)
    if match is None:
        raise UsageError(
            f"{source!r} is no address on the hub: write it as hf:ORG/NAME@REV, or hf:ORG/NAME/FILE@REV"
        )
    repository, name, revision = match[1], match[2][1:], match[3]
    check_online(source)
    try:
        from huggingface_hub import HfApi, hf_hub_download
    except ImportError:
        raise MissingExtra("huggingface_hub", "neural") from None
    from kgkit.encoder.finding import SECONDS, hub_errors, is_offline

    if is_offline():
        raise NotThere(f"{source} is not fetched: HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE forbids the hub")
    with hub_errors(repository, f"no pack {source}", "see whether its name is spelled so"):
        about = HfApi().model_info(repository, revision=revision, timeout=SECONDS, files_metadata=True)
        sizes = {file.rfilename: file.size or 0 for file in about.siblings or ()}
        names = sorted(each for each in sizes if each.endswith(_ARCHIVES))
        if not name and len(names) > 1:
            raise UsageError(
                f"{source} has several packs: name one, as hf:{repository}/{names[0]}; "
                f"there are: {', '.join(names)}"
            )
        name = name or next(iter(names), "")
        if name not in sizes:
            raise NotThere(f"no pack {name or 'at all'} in {source}; there are: {', '.join(names) or 'none'}")
        if sizes[name] > max_bytes:
            raise UsageError(
                f"{name} of {source} has {sizes[name]:,} bytes, and {max_bytes:,} are allowed: "
                "allow more with --max-size"
            )
        return Path(hf_hub_download(repository, name, revision=revision or about.sha))
