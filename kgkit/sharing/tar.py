"""The headers of a tar archive: those that kgkit writes, and no others.

A header is 512 bytes of POSIX.1-1988 (`ustar`): a regular file with the mode 0644, of nobody, from 1970.
Sizes beyond 8 GiB are binary, as GNU tar and libarchive write them. What is read has to be, byte for byte,
what would have been written for its name and size: there are no links, no folders, no devices, and none of
the extensions whose own size is read before anything could be checked.
"""

from typing import Final

from kgkit.errors import DamagedPack, UsageError

BLOCK: Final = 512
END: Final = bytes(2 * BLOCK)
"""What stands behind the last file."""

_NAME, _PREFIX, _SIZE = slice(0, 100), slice(345, 500), slice(124, 136)
_LARGEST_OCTAL: Final = 8**11 - 1


def tar_header(name: str, size: int) -> bytes:
    """Return the header of a file.

    Args:
        name: path in the archive, of ASCII characters.
        size: bytes of the file, below 2 to the power of 63.

    Raises:
        UsageError: if the name is too long for a header.
    """
    prefix, base = _split(name)
    length = b"%011o\0" % size if size <= _LARGEST_OCTAL else b"\x80" + size.to_bytes(11, "big")
    owner = b"%07o\0" % 0
    before = base.encode("ascii").ljust(100, b"\0") + b"%07o\0" % 0o644 + owner * 2 + length + b"%011o\0" % 0
    tail = b"0" + bytes(100) + b"ustar\x0000" + bytes(64) + owner * 2
    tail += prefix.encode("ascii").ljust(155, b"\0") + bytes(12)
    checksum = sum(before) + sum(b" " * 8) + sum(tail)
    return before + b"%06o\0 " % checksum + tail


def parse_header(block: bytes) -> tuple[str, int]:
    """Return the name and the size of the file that a header describes.

    Raises:
        DamagedPack: if it is not the header that `tar_header` writes for them.
    """
    try:
        base, prefix = (block[field].rstrip(b"\0").decode("ascii") for field in (_NAME, _PREFIX))
        digits = block[_SIZE]
        size = int.from_bytes(digits[1:], "big") if digits[0] == 0x80 else int(digits[:11], 8)
        name = f"{prefix}/{base}" if prefix else base
        if size < 1 << 63 and tar_header(name, size) == block:
            return name, size
    except (UnicodeError, ValueError, LookupError, UsageError):
        pass
    raise DamagedPack("a header in it is not of a regular file as kgkit writes it")


def padding(size: int) -> int:
    """Return how many zeros stand behind a file of *size* bytes."""
    return -size % BLOCK


def _split(name: str) -> tuple[str, str]:
    """Return the two parts of a path that a header has room for."""
    if len(name) <= 100:
        return "", name
    at = name.rfind("/", 0, 156)
    if at < 1 or len(name) - at - 1 > 100:
        raise UsageError(f"the path {name!r} is too long for a pack")
    return name[:at], name[at + 1 :]
