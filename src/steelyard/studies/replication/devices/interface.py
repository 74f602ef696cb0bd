"""A place of a role: one program of an experiment on one device, natively or in a container.

An experiment asks a place for everything it needs, and never looks at the device itself, so that the same
experiment is run natively, in a container and on another host::

    with place_of(asked, "app") as place:
        place.put(jar, "app.jar")
        process = place.start(("java", "-jar", place.path("app.jar")), log=folder / "log.app.txt")
        process.wait(60)
        place.get("calls.bin", folder / "calls.bin")
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType


class Process(ABC):
    """A program that was started at a place.

    Its exit status is that of the program, 128 more than the number of the signal that ended it, or 127 where
    there is no such program. It may be known only when nobody any more holds what the program writes to.
    """

    @abstractmethod
    def poll(self) -> int | None:
        """Give the exit status, or ``None`` as long as the program lives."""

    @abstractmethod
    def wait(self, timeout_s: float) -> int:
        """Wait for the end and give the exit status.

        Raises
        ------
        TimeoutError
            If the program still lives then.
        """

    @abstractmethod
    def terminate(self) -> None:
        """Ask the program to end (SIGTERM)."""

    @abstractmethod
    def kill(self) -> None:
        """End the program and everything it started; returns when it is gone."""


class Place(ABC):
    """Where one role of an experiment lives; entering makes it, leaving removes everything that was made."""

    @property
    @abstractmethod
    def address(self) -> str:
        """Address under which the other roles reach a port that the role listens on."""

    @abstractmethod
    def path(self, name: str) -> str:
        """Give the path, as the role's programs see it, of a file in the role's own folder (in memory)."""

    @abstractmethod
    def stored_path(self, name: str) -> str:
        """Give the path, as the role's programs see it, of a file on the storage of the role's setting."""

    @abstractmethod
    def put(self, source: Path, name: str) -> None:
        """Copy a file or a folder of this host into the role's own folder."""

    @abstractmethod
    def get(self, name: str, target: Path) -> None:
        """Copy a file of the role's own folder to this host.

        Raises
        ------
        RunError
            If there is no such file.
        """

    @abstractmethod
    def start(
        self,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        user: str = "",
    ) -> Process:
        """Start a program in the role's own folder; its output and errors go to a file of this host.

        Parameters
        ----------
        command : sequence of str
            Program and arguments as the place sees them. Programs of packages (``java``, ``postgres``) and
            what ``make deps-replication`` built are visible at every place, see `artefacts`.
        log : Path
            File of this host, appended to.
        environment : Mapping or None
            Added to a small fixed environment.
        user : str
            Account that runs it; empty: the place's own. A database refuses to be run by root.
        """

    @property
    @abstractmethod
    def artefacts(self) -> str:
        """Folder of what ``make deps-replication`` built, as the role's programs see it."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Give what is known of the device: host, kernel, processor, memory, limits, `is_played`."""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
