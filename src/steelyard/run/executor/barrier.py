"""The rendezvous of a batch's workers: a small file on a memory file system."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BARRIER_BYTES: Final = 64


@contextmanager
def barrier_file(folder: Path, name: str) -> Iterator[Path]:
    """Give a zeroed barrier file, and remove it afterwards.

    Parameters
    ----------
    folder : Path
        On a memory file system all workers see.
    name : str
        Unique among the batches in flight.
    """
    path = folder / name
    path.write_bytes(bytes(BARRIER_BYTES))
    path.chmod(0o666)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
