"""The ground a role stands on: how its words become a command of this host, and what was made for it."""

from __future__ import annotations

import os
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import RunError
from steelyard.run.isolation.attempt import attempt
from steelyard.run.state import cache_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from steelyard.run.isolation.attempt import Attempt

PATIENCE_S: Final = 60.0
SIGNALLED: Final = 128
"""An exit status above it: the number of the signal that ended the program is added (sh's convention)."""


def artefacts_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Give the folder of this host in which ``make deps-replication`` leaves what it builds."""
    return cache_folder(environment) / "replication"


@dataclass(frozen=True, slots=True)
class Account:
    """Who runs a program: name, user and group by number."""

    name: str
    user_id: int
    group_id: int


def as_account(account: Account | None) -> list[str]:
    """Give the words in front of a command that is run by an account; none for ``None``."""
    if account is None:
        return []
    return ["setpriv", f"--reuid={account.user_id}", f"--regid={account.group_id}", "--clear-groups"]


class Ground(ABC):
    """One way of running programs; `open` makes what it needs, `close` removes it."""

    own: str = ""
    """The role's own folder as its programs see it."""
    stored: str = ""
    """The folder on the role's storage as its programs see it."""
    artefacts: str = ""
    """Folder of what was built, as the role's programs see it."""
    ends_all: bool = True
    """Whether `close` ends whatever a program that has ended left behind."""

    @abstractmethod
    def open(self) -> None:
        """Make what the role needs."""

    @abstractmethod
    def close(self) -> None:
        """Remove it; may be called twice, and after a failed `open`."""

    @abstractmethod
    def enter(self, words: Sequence[str], account: Account | None = None) -> list[str]:
        """Give the command of this host that runs words there, by default as the ground's own account."""

    def enter_aside(self, words: Sequence[str]) -> list[str]:
        """Give the command that runs words there outside the device's limits: to look and to tidy up."""
        return self.enter(words)

    def aside(self, words: Sequence[str], *, timeout_s: float = PATIENCE_S) -> Attempt:
        """Run a short command there, outside the device's limits."""
        return attempt(self.enter_aside(words), timeout_s=timeout_s)

    def require(self, words: Sequence[str], *, timeout_s: float = PATIENCE_S) -> str:
        """Run a short command there that must succeed, and give what it says.

        Raises
        ------
        RunError
            If it does not.
        """
        done = self.aside(words, timeout_s=timeout_s)
        if not done.succeeded:
            message = f"`{' '.join(words[:2])}` failed at the place of a role: {done.last_words}"
            raise RunError(message, hint="steelyard doctor", code="run.place")
        return done.output

    def look(self, script: str) -> str:
        """Give what a script says on the device itself, its first word the folder on the storage."""
        return self.aside(["sh", "-c", script, "sh", self.stored]).output

    @abstractmethod
    def account(self, user: str) -> Account | None:
        """Give the account that stands for a name, ``None`` where programs cannot change theirs."""

    @abstractmethod
    def put(self, source: Path, name: str) -> None:
        """Copy a file or a folder of this host into the role's own folder."""

    @abstractmethod
    def get(self, name: str, target: Path) -> None:
        """Copy a file of the role's own folder to this host."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Give what this way of running adds to what is known of the device."""


def spawn(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own; what it writes is appended to a file.

    Raises
    ------
    RunError
        If it cannot be started.
    """
    try:
        with log.open("ab") as output:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
    except OSError as error:
        message = f"cannot start `{command[0]}`: {error.strerror}"
        raise RunError(message, hint="steelyard doctor", code="run.place") from error
