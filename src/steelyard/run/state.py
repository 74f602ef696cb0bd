"""Folders for what Steelyard remembers about a machine, and for what can be made again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError

if TYPE_CHECKING:
    from collections.abc import Mapping

_SYSTEM_STATE: Final = Path("/var/lib/steelyard")


def user_state_folder() -> Path:
    """Give the folder of this user's state, as the XDG base directory specification says."""
    return _base_folder("XDG_STATE_HOME", ".local/state") / "steelyard"


def user_data_folder() -> Path:
    """Give the folder of this user's data, as the XDG base directory specification says."""
    return _base_folder("XDG_DATA_HOME", ".local/share") / "steelyard"


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Give the folder of what can be made again, as the XDG base directory specification says.

    Parameters
    ----------
    environment : mapping
        Of the process that uses it.

    Raises
    ------
    CapabilityError
        If there is neither such a folder nor a home.
    """
    return _base_folder("XDG_CACHE_HOME", ".cache", environment) / "steelyard"


def _base_folder(variable: str, below_home: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Give a base folder; a relative path in its variable is to be ignored."""
    chosen = Path(environment.get(variable, ""))
    if chosen.is_absolute():
        return chosen
    try:
        home = Path.home() if environment is os.environ else Path(environment["HOME"])
        return home / below_home
    except (RuntimeError, KeyError) as error:
        message = f"cannot find your home folder: {error}"
        raise CapabilityError(message, hint=f"set HOME or {variable}", code="capability.home") from error


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
