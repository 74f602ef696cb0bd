"""Folders for what Steelyard remembers about a machine, and for what can be made again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from steelyard.errors import CapabilityError

_SYSTEM_STATE: Final = Path("/var/lib/steelyard")


def user_state_folder() -> Path:
    """Give the folder of this user's state, as the XDG base directory specification says."""
    base = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state"
    return folder / "steelyard"


def cache_folder() -> Path:
    """Give the folder of what can be made again, as the XDG base directory specification says.

    Raises
    ------
    CapabilityError
        If there is neither such a folder nor a home.
    """
    # A relative path is to be ignored.
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if chosen.is_absolute():
        return chosen / "steelyard"
    try:
        return Path.home() / ".cache" / "steelyard"
    except RuntimeError as error:
        message = f"cannot find a folder for what Steelyard builds: {error}"
        raise CapabilityError(message, hint="set XDG_CACHE_HOME", code="capability.cache") from error


def machine_state_folder() -> Path:
    """Give the folder of state that concerns the whole machine.

    Only root changes machine settings, so root's place is one for all; anybody else uses their own.
    """
    return _SYSTEM_STATE if os.geteuid() == 0 else user_state_folder()


def write_durably(path: Path, text: str) -> None:
    """Write a file so that it is whole on disk, with its name, when this returns.

    Raises
    ------
    OSError
        If the folder cannot be made or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
