"""The guest kernel: a distribution's kernel, unpacked so that it boots without decompressing itself.

Software emulation boots an unpacked kernel by the PVH entry in 1.7 s, the packed one in 2.2 s.

References
----------
.. [1] Linux, Documentation/arch/x86/boot.rst: offsets of ``setup_sects``, ``payload_offset`` and
   ``payload_length`` in a bzImage.
.. [2] LZ4 legacy frame format, lz4_Frame_format.md.
"""

from __future__ import annotations

import bz2
import lzma
import os
import re
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError
from steelyard.run.state import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable

KERNEL_VARIABLE: Final = "STEELYARD_GUEST_KERNEL"
REPAIR: Final = "make deps-isolation"

MAGIC_OFFSET: Final = 0x202
MAGIC: Final = b"HdrS"
SECTORS_OFFSET: Final = 0x1F1
VERSION_OFFSET: Final = 0x20E
PAYLOAD_OFFSET: Final = 0x248
SECTOR_BYTES: Final = 512
SETUP_BASE: Final = 0x200
SIZE_BYTES: Final = 4
DEFAULT_SECTORS: Final = 4
LZ4_MAGIC: Final = 0x184C2102
LZ4_BLOCK_BYTES: Final = 8 << 20
ELF: Final = b"\x7fELF"
QUIET_PARAMETERS: Final = ("mitigations=off", "cryptomgr.notests", "damon_stat.enabled=N")
"""Parameters of a kernel that does nothing beside what is measured. Without them it checks its ciphers, for
seconds after the boot, and watches all the time which memory is in use."""


def guest_folder() -> Path:
    """Give the folder of the guest's files."""
    return cache_folder() / "guest"


def find_image(architecture: str = "x86_64") -> Path:
    """Give the packed kernel: the one named, the one `make deps-isolation` fetched, the host's own.

    Parameters
    ----------
    architecture : str
        Of another one than ``x86_64``, only the kernel that was fetched for it.

    Raises
    ------
    CapabilityError
        If there is none that can be read.
    """
    named = os.environ.get(KERNEL_VARIABLE)
    if architecture == "x86_64":
        folder, repair = guest_folder(), REPAIR
        candidates = [Path(named)] if named else []
        others = [Path(f"/boot/vmlinuz-{os.uname().release}")]
    else:
        folder, repair = guest_folder() / architecture, f"make deps-{architecture}"
        candidates, others = [], [folder / "vmlinuz-*"]
    candidates += sorted(folder.glob("vmlinuz-*"), key=_version_key, reverse=True)
    candidates += others
    for path in candidates:
        if os.access(path, os.R_OK):
            return path
    message = "there is no guest kernel: " + ", ".join(f"`{path}`" for path in candidates) + " cannot be read"
    raise CapabilityError(message, hint=repair, code="capability.guest-kernel")


def bootable(image: Path) -> Path:
    """Give the kernel in its fastest form: unpacked beside the cache's other files, else as it is.

    Parameters
    ----------
    image : Path
        A bzImage, or a kernel that is unpacked already.
    """
    content = image.read_bytes()
    if content[:4] == ELF:
        return image
    place = guest_folder() / f"vmlinux-{zlib.crc32(content):08x}"
    if place.exists():
        return place
    from pyarrow import ArrowException  # noqa: PLC0415 - only who unpacks a kernel pays for it

    try:
        unpacked = unpack(content)
    except (ValueError, OSError, lzma.LZMAError, zlib.error, ArrowException):
        return image
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = place.with_suffix(f".{os.getpid()}")
    temporary.write_bytes(unpacked)
    temporary.replace(place)
    return place


def release(image: bytes) -> str:
    """Give the release a bzImage states in its header, e.g. ``6.1.0-56-cloud-amd64``."""
    if image[MAGIC_OFFSET : MAGIC_OFFSET + 4] != MAGIC:
        return "unknown release"
    start = struct.unpack_from("<H", image, VERSION_OFFSET)[0] + SETUP_BASE
    return image[start : image.index(b"\0", start)].decode("ascii", errors="replace").split(" ", 1)[0]


def unpack(image: bytes) -> bytes:
    """Unpack a bzImage.

    Raises
    ------
    ValueError
        If it is no bzImage, or packed by a method not known here.
    """
    if image[MAGIC_OFFSET : MAGIC_OFFSET + 4] != MAGIC:
        message = "not a bzImage"
        raise ValueError(message)
    sectors = image[SECTORS_OFFSET] or DEFAULT_SECTORS
    offset, length = struct.unpack_from("<II", image, PAYLOAD_OFFSET)
    start = (sectors + 1) * SECTOR_BYTES + offset
    payload = image[start : start + length]
    for magic, decode in _METHODS:
        if payload.startswith(magic):
            unpacked = decode(payload)
            if unpacked[:4] != ELF:
                break
            return unpacked
    message = f"unknown packing, first bytes {payload[:6].hex()}"
    raise ValueError(message)


def _unpack_lz4(payload: bytes) -> bytes:
    """Unpack the legacy frame; the last four bytes of the payload are the unpacked size."""
    total = struct.unpack_from("<I", payload, len(payload) - SIZE_BYTES)[0]
    unpacked = bytearray()
    position = SIZE_BYTES
    while position < len(payload) - SIZE_BYTES:
        size = struct.unpack_from("<I", payload, position)[0]
        position += SIZE_BYTES
        if size == LZ4_MAGIC:
            continue
        wanted = min(LZ4_BLOCK_BYTES, total - len(unpacked))
        block = payload[position : position + size]
        unpacked += _decompress(block, wanted, "lz4_raw")
        position += size
    return bytes(unpacked)


def _unpack_zstd(payload: bytes) -> bytes:
    total = struct.unpack_from("<I", payload, len(payload) - SIZE_BYTES)[0]
    return _decompress(payload[:-SIZE_BYTES], total, "zstd")


def _decompress(packed: bytes, size: int, codec: str) -> bytes:
    from pyarrow import decompress  # noqa: PLC0415 - only who unpacks a kernel pays for it

    return bytes(decompress(packed, decompressed_size=size, codec=codec, asbytes=True))


def _unpack_gzip(payload: bytes) -> bytes:
    return zlib.decompressobj(wbits=31).decompress(payload)


def _unpack_xz(payload: bytes) -> bytes:
    return lzma.LZMADecompressor().decompress(payload)


def _unpack_bzip2(payload: bytes) -> bytes:
    return bz2.BZ2Decompressor().decompress(payload)


_METHODS: Final[tuple[tuple[bytes, Callable[[bytes], bytes]], ...]] = (
    (b"\x02\x21\x4c\x18", _unpack_lz4),
    (b"\x28\xb5\x2f\xfd", _unpack_zstd),
    (b"\x1f\x8b", _unpack_gzip),
    (b"\xfd7zXZ", _unpack_xz),
    (b"BZh", _unpack_bzip2),
)


def _version_key(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.name)]
