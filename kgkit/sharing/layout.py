"""The form of a pack: a tar archive, as it is or compressed by gzip.

    kgkit-pack.json            `PackManifest`: what is in it, with the size and the SHA-256 of every file
    README.md                  the card: what it is, scores, data, licences, the lines that use it
    kb/NAME/…                  a build of a knowledge base: manifest.json, data.mdb, surfaces.*
    vectors/KB/NAME/…          vectors: vectors.json, matrix.npy, keys.npy, …
    model/NAME/…               a trained model: model.json, …

The files follow each other as the manifest lists them, the manifest of each item first.
"""

import hashlib
import re
from pathlib import PurePosixPath
from typing import Annotated, Final, Literal, Protocol

import msgspec

from kgkit.errors import DamagedPack
from kgkit.home import is_name
from kgkit.models.manifest import MANIFEST as MODEL_MANIFEST
from kgkit.store.layout import MANIFEST as KB_MANIFEST
from kgkit.vectors.layout import MANIFEST as VECTORS_MANIFEST

FORMAT: Final = 1
MANIFEST: Final = "kgkit-pack.json"
CARD: Final = "README.md"

LONGEST_MANIFEST: Final = 64_000_000
"""Bytes of the manifest of a pack, or of something in it, that are read into memory."""

LARGEST_PACK: Final = 100_000_000_000
"""Bytes of all files of a pack that are unpacked unless a caller allows more."""

MOST_FILES: Final = 20_000
"""Files of a pack."""

CHUNK: Final = 1 << 20
"""Bytes that are read at once."""

ItemKind = Literal["kb", "vectors", "model"]

MANIFESTS: Final[dict[ItemKind, str]] = {
    "kb": KB_MANIFEST, "vectors": VECTORS_MANIFEST, "model": MODEL_MANIFEST,
}  # fmt: skip
"""The file in which something says what it is, which is its first."""

SUFFIXES: Final = frozenset((
    ".json", ".jsonl", ".marisa", ".md", ".mdb", ".model", ".npy", ".npz", ".safetensors", ".trigrams",
    ".tsv", ".txt",
))  # fmt: skip
"""Ends of the names of files that a pack may hold: what reads them executes nothing."""

_PART: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_RESERVED: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # of Windows
_MOST_PARTS: Final = 8


class PackedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of a pack: its size in bytes, and its SHA-256 in hexadecimal."""

    size: Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class ByteStream(Protocol):
    """A binary stream."""

    def read(self, size: int, /) -> bytes:
        """Return up to *size* bytes; none at the end."""


class CheckedStream:
    """A binary stream whose content is compared with a digest once it has been read.

    Args:
        stream: stream of the content.
        file: size and digest of the content.
        title: name of the file, for errors.

    Raises:
        DamagedPack: at the end of the content, if it is not that of *file*.
    """

    def __init__(self, stream: ByteStream, file: PackedFile, title: str) -> None:
        self._stream, self._file, self._title = stream, file, title
        self._digest, self._remaining = hashlib.sha256(), file.size

    def read(self, size: int = CHUNK) -> bytes:
        """Return up to *size* bytes; none at the end."""
        chunk = self._stream.read(min(size, self._remaining))
        self._digest.update(chunk)
        self._remaining -= len(chunk)
        if not chunk and self._remaining:
            raise DamagedPack(f"{self._title} ends {self._remaining:,} bytes too early")
        if not self._remaining and self._digest.hexdigest() != self._file.sha256:
            raise DamagedPack(f"{self._title} has another content than was recorded (SHA-256): it is damaged")
        return chunk


class PackItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A knowledge base, vectors or a model in a pack.

    Attributes:
        kind: what it is.
        name: name, of vectors KB/NAME.
        version: BUILD of a knowledge base, VERSION of vectors, SHA-256 of a model's manifest.
        files: files by their paths, its manifest first.
        requested: whether somebody asked for it, and not only for what needs it.
        exact: whether a model in the pack reads this very build, and none that adds to it.
    """

    kind: ItemKind
    name: str
    version: str
    files: dict[str, PackedFile]
    requested: bool = True
    exact: bool = False

    @property
    def title(self) -> str:
        """What people call it, as `kb:NAME`."""
        return f"{self.kind}:{self.name}"

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(file.size for file in self.files.values())

    @property
    def kb(self) -> str:
        """Name of the knowledge base that it is, or belongs to; empty for a model."""
        return "" if self.kind == "model" else self.name.partition("/")[0]


class PackManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a pack says of itself.

    Attributes:
        format: of the pack.
        kgkit_version: of the kgkit that wrote it.
        items: what is in it, in the order in which it can be published.
        card: the file README.md.
        encoders: names of the encoders that models and vectors in it need, and that are not in it.
    """

    format: int
    kgkit_version: str
    items: tuple[PackItem, ...]
    card: PackedFile
    encoders: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files of the items."""
        return sum(item.size for item in self.items)


class _FormatOnly(msgspec.Struct):
    """The part of a manifest that every kgkit reads."""

    format: int


def decode_pack(content: bytes) -> PackManifest:
    """Return the manifest of a pack, every name in it checked.

    Raises:
        DamagedPack: if it cannot be read, or declares what a pack may not hold.
    """
    try:
        version = msgspec.json.decode(content, type=_FormatOnly).format
        if version != FORMAT:
            raise DamagedPack(f"it has format {version}, this kgkit reads packs of format {FORMAT}")
        manifest = msgspec.json.decode(content, type=PackManifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedPack(f"{MANIFEST} cannot be read: {error}") from error
    if not manifest.items:
        raise DamagedPack("there is nothing in it")
    if manifest.card.size > LONGEST_MANIFEST:
        raise DamagedPack(f"{CARD} is longer than {LONGEST_MANIFEST:,} bytes")
    if sum(len(item.files) for item in manifest.items) > MOST_FILES:
        raise DamagedPack(f"it declares more than {MOST_FILES:,} files")
    titles = [item.title.lower() for item in manifest.items]
    if len(set(titles)) < len(titles):
        raise DamagedPack("it declares something twice")
    if not any(item.requested for item in manifest.items):
        raise DamagedPack("nothing in it is what somebody asked for")
    for item in manifest.items:
        _check_item(item)
    return manifest


def _check_item(item: PackItem) -> None:
    """Make sure that the names of an item and of its files can be those of folders and files everywhere."""
    parts = item.name.split("/")
    if len(parts) != (2 if item.kind == "vectors" else 1) or not all(map(is_name, parts)):
        raise DamagedPack(f"{item.name[:80]!r} is no name of a {item.kind}")
    if not is_name(item.version):
        raise DamagedPack(f"{item.version[:80]!r} is no version of {item.title}")
    manifest = MANIFESTS[item.kind]
    if next(iter(item.files), None) != manifest:
        raise DamagedPack(f"the first file of {item.title} is not its {manifest}")
    if item.files[manifest].size > LONGEST_MANIFEST:
        raise DamagedPack(f"{manifest} of {item.title} is longer than {LONGEST_MANIFEST:,} bytes")
    for path in item.files:
        if problem := path_problem(path):
            raise DamagedPack(f"the file {path[:80]!r} of {item.title} {problem}")
    lower = {path.lower() for path in item.files}
    folders = {str(parent).lower() for path in item.files for parent in PurePosixPath(path).parents}
    if len(lower) < len(item.files) or lower & folders:
        raise DamagedPack(f"two files of {item.title} have one path")


def path_problem(path: str) -> str:
    """Return why a pack may not hold a file of this path, as the end of a sentence; empty if it may."""
    parts = path.split("/")
    if len(parts) > _MOST_PARTS:
        return "lies too deep"
    if any(not _PART.fullmatch(part) or part.endswith(".") or _RESERVED.fullmatch(part) for part in parts):
        return "has a name that is not safe everywhere: letters, digits, '_', '-' and '.', no '..'"
    suffix = PurePosixPath(path).suffix
    if suffix not in SUFFIXES:
        return (
            f"ends in {suffix or 'nothing'!r}; a pack holds files that end in {', '.join(sorted(SUFFIXES))}"
        )
    return ""
