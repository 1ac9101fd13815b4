"""Reading a pack: from a file, an address or the hub, in one pass, as it comes.

No more memory is taken than a chunk and the manifest, and nothing is believed before it has been compared
with the manifest: names, order, sizes, digests, and that nothing stands behind the end.
"""

import hashlib
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from kgkit.errors import DamagedPack, MissingExtra, NotThere, UsageError
from kgkit.network import check_online, open_url
from kgkit.sharing.layout import (
    CARD,
    LONGEST_MANIFEST,
    MANIFEST,
    PackedFile,
    PackItem,
    PackManifest,
    decode_pack,
)
from kgkit.sharing.tar import BLOCK, END, padding, parse_header
from kgkit.sharing.writing import CHUNK, GZIP_HEAD, checked_chunks

HUB: Final = "hf:"
"""What the address of a pack on the hub of Hugging Face begins with: `hf:ORG/NAME[/FILE][@REV]`."""

_HUB_ADDRESS: Final = re.compile(r"hf:([\w.-]+/[\w.-]+)((?:/[\w.-]+)*)(?:@([\w./-]+))?")
_TAR_MAGIC: Final = slice(257, 262)
_ARCHIVES: Final = (".tar", ".tar.gz", ".tgz")


class ByteStream(Protocol):
    """What a pack is read from."""

    def read(self, size: int, /) -> bytes:
        """Return up to *size* bytes; none at the end."""


class PackMember(NamedTuple):
    """A file of a pack, as it is reached.

    Attributes:
        item: what it belongs to.
        path: path within that.
        chunks: its content; the end has been compared with the digest.
    """

    item: PackItem
    path: str
    chunks: Iterator[bytes]


class PackReader:
    """A pack that is read from its beginning to its end.

    Args:
        stream: bytes of the pack.
        max_bytes: largest number of bytes of all its files.

    Attributes:
        manifest: what it says of itself.
        card: its README.md.

    Raises:
        DamagedPack: if it is none, or declares what it may not hold.
        UsageError: if it declares more than *max_bytes*.
    """

    manifest: PackManifest
    card: str

    def __init__(self, stream: ByteStream, max_bytes: int) -> None:
        self._bytes = _Inflater(stream)
        name, size = parse_header(self._exactly(BLOCK))
        if name != MANIFEST or size > LONGEST_MANIFEST:
            raise DamagedPack(f"its first file is not a {MANIFEST} of up to {LONGEST_MANIFEST:,} bytes")
        content = self._exactly(size)
        self._skip_padding(size)
        self.manifest = decode_pack(content)
        card = self.manifest.card
        if card.size > LONGEST_MANIFEST:
            raise DamagedPack(f"{CARD} is longer than {LONGEST_MANIFEST:,} bytes")
        if self.manifest.size > max_bytes:
            raise UsageError(
                f"the pack holds {self.manifest.size:,} bytes, and {max_bytes:,} are allowed: "
                "allow more with --max-size, if whoever made it is to be trusted with that"
            )
        self.card = b"".join(self._member(CARD, card)).decode("utf-8", "replace")

    def members(self) -> Iterator[PackMember]:
        """Yield the files of all items; each is read to its end before the next is asked for.

        Raises:
            DamagedPack: if the pack does not hold what its manifest says.
        """
        for item in self.manifest.items:
            for path, file in item.files.items():
                yield PackMember(item, path, self._member(f"{item.kind}/{item.name}/{path}", file))
        if self._exactly(len(END)) != END or self._bytes.read(1):
            raise DamagedPack("there is more in it than its manifest says")

    def _member(self, name: str, file: PackedFile) -> Iterator[bytes]:
        """Yield the content of the next file, which has to be this one."""
        if parse_header(self._exactly(BLOCK)) != (name, file.size):
            raise DamagedPack(f"another file stands where {name} is declared")
        yield from checked_chunks(self._bytes.read, file, name)
        self._skip_padding(file.size)

    def _exactly(self, size: int) -> bytes:
        """Return the next *size* bytes, a manifest at most."""
        chunks = []
        while size:
            chunk = self._bytes.read(min(size, CHUNK))
            if not chunk:
                raise DamagedPack("it ends too early")
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    def _skip_padding(self, size: int) -> None:
        if any(self._exactly(padding(size))):
            raise DamagedPack("there are bytes between its files")


class _Inflater:
    """The bytes of an archive, inflated as they are asked for if it is compressed."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._pending = b""
        self._digest, self._expected = hashlib.sha256(), b""
        self._inflate: zlib._Decompress | None = None
        self._checksum = self._size = 0
        start = len(GZIP_HEAD) + self._digest.digest_size
        while len(self._pending) < start and (more := stream.read(CHUNK)):
            self._pending += more
        if self._pending.startswith(GZIP_HEAD):
            self._expected = self._pending[len(GZIP_HEAD) : start]
            self._pending = self._pending[start:]
            self._digest.update(self._pending)
            self._inflate = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        elif not _begins_as_archive(self._pending):
            raise DamagedPack("it is no pack: `kgkit pack NAME --output FILE` writes one")

    def _fill(self) -> bytes:
        """Return the next bytes of a compressed pack; none at the end."""
        more = self._stream.read(CHUNK)
        self._digest.update(more)
        return more

    def read(self, size: int) -> bytes:
        """Return up to *size* bytes; none at the end.

        Raises:
            DamagedPack: if they cannot be inflated, or something stands behind them.
        """
        inflate = self._inflate
        if inflate is None:
            content = self._pending or self._stream.read(min(size, CHUNK))
            self._pending = content[size:]
            return content[:size]
        while not inflate.eof:
            self._pending = self._pending or self._fill()
            ended = not self._pending
            try:
                content = inflate.decompress(self._pending, min(size, CHUNK))
            except zlib.error as error:
                raise DamagedPack(f"it cannot be inflated: {error}") from error
            self._pending = inflate.unconsumed_tail
            if content:
                self._checksum, self._size = zlib.crc32(content, self._checksum), self._size + len(content)
                return content
            if ended:
                raise DamagedPack("it ends too early")
        self._check_end(inflate.unused_data)
        return b""

    def _check_end(self, trailer: bytes) -> None:
        """Compare what stands behind the compressed bytes with their checksum and their length."""
        while len(trailer) <= 8 and (more := self._fill()):
            trailer += more
        expected = self._checksum.to_bytes(4, "little") + (self._size & 0xFFFFFFFF).to_bytes(4, "little")
        if trailer != expected or self._digest.digest() != self._expected:
            raise DamagedPack("its checksum does not match what is in it")


def _begins_as_archive(content: bytes) -> bool:
    """Say whether bytes are the beginning of a tar archive, or a beginning too short to tell."""
    if content[_TAR_MAGIC] == b"ustar":
        return True
    return any(start.startswith(content[: len(start)]) for start in (GZIP_HEAD, MANIFEST.encode()))


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
    except DamagedPack as error:
        raise DamagedPack(f"the pack {source} was not unpacked: {error}") from error


@contextmanager
def _open_source(source: str, max_bytes: int) -> Iterator[ByteStream]:
    if source.lower().startswith(("http://", "https://")):
        with open_url(source, max_bytes) as download:
            yield download
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
        raise MissingExtra("transformers", "models") from None
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
