"""Writing a pack."""

import hashlib
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Final, NamedTuple

import msgspec

from kgkit.errors import DamagedPack, UsageError
from kgkit.files import check_compression, compression_of
from kgkit.home import Home
from kgkit.models.publishing import kgkit_version
from kgkit.sharing.card import pack_card
from kgkit.sharing.layout import CARD, FORMAT, MANIFEST, PackedFile, PackItem, PackManifest
from kgkit.sharing.selection import Content, select
from kgkit.sharing.tar import END, padding, tar_header
from kgkit.types import Progress
from kgkit.versions import replace_file

GZIP_HEAD: Final = b"\x1f\x8b\x08\x04\x00\x00\x00\x00\x00\xff\x24\x00KG\x20\x00"
"""What a compressed pack begins with: no time, no name, and a field of 32 bytes.

The field has the SHA-256 of all that follows it. gzip's own checksum is one of the content: bits that no
content comes from, as those between the last block and the next byte, it does not see.
"""

CHUNK: Final = 1 << 20
"""Bytes that are read at once."""

_COMPRESSED: Final = (".gz", ".tgz")


class Packed(NamedTuple):
    """A pack that has been written.

    Attributes:
        path: file of the pack.
        items: what is in it.
        encoders: names of the encoders that these need, and that are not in it.
        size: bytes of the file.
    """

    path: Path
    items: tuple[PackItem, ...]
    encoders: tuple[str, ...]
    size: int


def pack(
    names: str | Sequence[str],
    output: str | os.PathLike[str],
    *,
    home: str | os.PathLike[str] | None = None,
    alone: bool = False,
    licence: str = "",
    progress: Progress | None = None,
) -> Packed:
    """Write knowledge bases, vectors and models into one file, with what they need.

    An encoder that is not part of a model is named in it and not packed. The same content gives the same
    file, to the byte.

    Args:
        names: what is packed: `kb:NAME`, `kb:NAME@BUILD`, `vectors:KB/NAME`, `model:NAME`; a name alone where
            one thing only has it.
        output: file to write; it is compressed if its name ends in `.gz` or `.tgz`.
        home: folder of the data; `KGKIT_HOME` or the platform's place unless given.
        alone: whether what they need is left out: whoever unpacks it has to have that.
        licence: licence of the models, for the card; those of knowledge bases are on it anyway.
        progress: callback that is told how many bytes have been written.

    Raises:
        UsageError: if a name is ambiguous, two builds of one knowledge base would be packed, or the name of
            the file asks for another compression.
        NotThere: if something is not there.
        StaleModel, StaleVectors: if a build that something needs is gone.
        StoreError: if something on disk is damaged.
        OSError: if the disk refuses; no file is left behind.

    Examples:
        >>> kgkit.pack("model:mine", "mine.tar.gz").items[0].title
        'kb:names'
    """
    target = Path(output)
    if target.is_dir():
        raise UsageError(f"{target} is a folder: name a file")
    check_compression(target)
    if compression_of(target) not in ("", ".gz"):
        raise UsageError(
            f"{target}: a pack is a tar archive, as it is or compressed by gzip: name it .tar.gz"
        )
    chosen = select([names] if isinstance(names, str) else [*names], Home.find(home), alone=alone)
    items = tuple(content.item for content in chosen.contents)
    card = pack_card(chosen, licence=licence, file=target.name).encode()
    manifest = PackManifest(
        format=FORMAT, kgkit_version=kgkit_version(), items=items, encoders=chosen.encoders,
        card=PackedFile(len(card), hashlib.sha256(card).hexdigest()),
    )  # fmt: skip
    described = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    compressed = target.name.lower().endswith(_COMPRESSED)

    def write(path: Path) -> None:
        """Write the file; remove it if that fails."""
        try:
            with path.open("wb") as file:
                chunks = _chunks([(MANIFEST, described), (CARD, card)], chosen.contents, progress)
                if compressed:
                    _write_compressed(file, chunks)
                else:
                    file.writelines(chunks)
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    replace_file(target, write)
    return Packed(target, items, chosen.encoders, target.stat().st_size)


def _chunks(
    texts: Iterable[tuple[str, bytes]], contents: Sequence[Content], progress: Progress | None
) -> Iterator[bytes]:
    """Yield the bytes of an archive.

    Raises:
        DamagedPack: if a file is not what the manifests say, as one that is damaged or was replaced.
    """
    for name, text in texts:
        yield tar_header(name, len(text)) + text + bytes(padding(len(text)))
    written, total = 0, sum(content.item.size for content in contents)
    for content in contents:
        item = content.item
        for path, file in item.files.items():
            yield tar_header(f"{item.kind}/{item.name}/{path}", file.size)
            with (content.folder / path).open("rb") as stream:
                for chunk in checked_chunks(stream.read, file, f"{path} of {item.title}"):
                    yield chunk
                    written += len(chunk)
                    if progress is not None:
                        progress("packing", written, total)
            yield bytes(padding(file.size))
    yield END


def checked_chunks(read: Callable[[int], bytes], file: PackedFile, title: str) -> Iterator[bytes]:
    """Yield the content of a file as it is read.

    Args:
        read: function that returns the next bytes, as many as requested at most.
        file: what is known of the file.
        title: name of the file, for errors.

    Raises:
        DamagedPack: after the last bytes, if they are not those of the file.
    """
    digest, remaining = hashlib.sha256(), file.size
    while remaining:
        chunk = read(min(CHUNK, remaining))
        if not chunk:
            raise DamagedPack(f"{title} ends {remaining:,} bytes too early")
        digest.update(chunk)
        remaining -= len(chunk)
        yield chunk
    if digest.hexdigest() != file.sha256:
        raise DamagedPack(f"{title} has another content than was written down (SHA-256): it is damaged")


def _write_compressed(file: IO[bytes], chunks: Iterable[bytes]) -> None:
    """Write a gzip file, and its digest into the field of its header."""
    digest = hashlib.sha256()
    file.write(GZIP_HEAD + bytes(digest.digest_size))
    for chunk in _compress(chunks):
        digest.update(chunk)
        file.write(chunk)
    file.seek(len(GZIP_HEAD))
    file.write(digest.digest())


def _compress(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a gzip file behind its header."""
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    checksum = size = 0
    for chunk in chunks:
        checksum, size = zlib.crc32(chunk, checksum), size + len(chunk)
        yield deflate.compress(chunk)
    yield deflate.flush() + checksum.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")
