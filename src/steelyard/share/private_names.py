"""Names of this user and this host that a package would tell everybody."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.share.archive import Part

_CHUNK_BYTES: Final = 1 << 20
_SHORTEST: Final = 3
"""Characters; shorter names occur in ordinary words."""

_OF_NOBODY: Final = frozenset(
    {"root", "localhost", "localhost.localdomain", "user", "nobody", "debian", "ubuntu"}
)
"""Names that very many machines have; they tell nothing."""


def names_here() -> tuple[str, ...]:
    """Give the names of this user and this host that tell who they are."""
    found = [
        Path.home().name,
        os.environ.get("USER", ""),
        os.environ.get("LOGNAME", ""),
        socket.gethostname(),
    ]
    return tuple(
        dict.fromkeys(name for name in found if len(name) >= _SHORTEST and name.casefold() not in _OF_NOBODY)
    )


def private_names(parts: Iterable[Part], names: Sequence[str] | None = None) -> dict[str, tuple[str, ...]]:
    """Say which parts of a package hold a name of this user or host, as a whole word.

    Parameters
    ----------
    parts : iterable of Part
        What is packed. Compressed columns of tables are searched as they are: they hold numbers and levels.
    names : sequence of str or None
        What is looked for; those of this user and host by default.

    Returns
    -------
    dict
        Names of files, by the name that they hold; empty where none does.
    """
    wanted = names_here() if names is None else names
    if not wanted:
        return {}
    words = re.compile(
        b"|".join(rb"(?<![A-Za-z0-9_])" + re.escape(name.encode()) + rb"(?![A-Za-z0-9_])" for name in wanted)
    )
    found: dict[str, list[str]] = {}
    for part in parts:
        for name in sorted({match.decode() for match in _matches(part, words)}):
            found.setdefault(name, []).append(part.name)
    return {name: tuple(files) for name, files in found.items()}


def _matches(part: Part, words: re.Pattern[bytes]) -> set[bytes]:
    if isinstance(part.content, bytes):
        return set(words.findall(part.content))
    found: set[bytes] = set()
    kept = b""
    with part.content.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            found.update(words.findall(kept + chunk))
            kept = chunk[-256:]
    return found
