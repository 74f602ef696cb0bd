"""What starts the parts of a study on other hosts, whatever it is: the one interface of all engines."""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

PART_VERB: Final = "run-part"


@dataclass(frozen=True, slots=True)
class Pending:
    """Parts that are not over.

    Parameters
    ----------
    parts : frozenset of str
        Names of the parts whose process runs, or may still begin to.
    reasons : tuple of str
        Why parts wait, in words of the engine.
    lost : frozenset of str
        Names of the parts that are given up and may go on all the same: their journal may still grow.
    """

    parts: frozenset[str]
    reasons: tuple[str, ...] = ()
    lost: frozenset[str] = frozenset()


class Engine(Protocol):
    """Starts parts and knows which are not over. Nothing of it runs on a host while that measures.

    A part is a folder; its process is `part_command`. It may be started again after it was lost: what it
    has completed before is not run twice.
    """

    @property
    def is_here(self) -> bool:
        """Whether parts run on this host."""

    @property
    def size(self) -> int:
        """Hosts that are asked for, whether they answer or not."""

    @property
    def width(self) -> int:
        """Hosts that work at the same time, as far as it is known."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names that `place` takes; none where it does not place by name."""

    def place(self, parts: Sequence[Path], hosts: Sequence[str] = (), /) -> None:
        """Let each part be run by one host, the first ones first.

        Parameters
        ----------
        parts : sequence of Path
            Their folders.
        hosts : sequence of str
            Those that each part has for itself, by `names`; its process runs on one of them. Without any
            it is one host, whichever.

        Raises
        ------
        CapabilityError, RunError
            If the engine cannot take them.
        """

    def pending(self) -> Pending | None:
        """Tell which parts that were placed are not over, also by an earlier process; ``None``: not now."""

    def cancel(self) -> None:
        """End what runs and forget what waits."""


@contextmanager
def running(part: Path) -> Iterator[None]:
    """Show that the process of a part lives, to this host; the kernel takes it back however it ends.

    A second start of a part is not refused: over a network the lock of a dead host may stay.
    """
    descriptor = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def is_running(part: Path) -> bool:
    """Whether a process of this host runs a part."""
    descriptor = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def part_command(part: Path) -> tuple[str, ...]:
    """Give the command that runs a part, by the Python that runs this."""
    return (sys.executable, "-m", "steelyard", PART_VERB, str(part))
