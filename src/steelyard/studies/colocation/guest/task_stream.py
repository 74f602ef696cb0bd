"""What a guest of tasks sends: which task started, which ended, and what each left."""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.errors import RunError
from steelyard.studies.colocation.guest.task_init import LOG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOG_LINES: Final = 15


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """How a task ended.

    Parameters
    ----------
    name : str
        Of the task.
    folder : Path
        What it left; its output is the file `LOG` in it.
    exit_code : int
        Of its script; 143 or 137 where it exceeded its limit.
    """

    name: str
    folder: Path
    exit_code: int

    def log(self) -> str:
        """Give what the task wrote."""
        return (self.folder / LOG).read_text(encoding="utf-8", errors="replace")

    def require_success(self) -> None:
        """Raise an error with the last lines of the log unless the exit code is 0.

        Raises
        ------
        RunError
            If it is another.
        """
        if self.exit_code != 0:
            message = (
                f"`{self.name}` ended in the guest with status {self.exit_code}:\n{last_lines(self.log())}"
            )
            raise RunError(message, hint=f"its log is `{self.folder / LOG}`", code="run.guest-task")


class TaskStream:
    """Reader of the stream while it is being written.

    Parameters
    ----------
    stream : Path
        File that the guest's second serial port is written to.
    out : Path
        Folder that gets a folder per task.
    """

    def __init__(self, stream: Path, out: Path) -> None:
        self._stream = stream
        self._out = out
        self._position = 0
        self._running: str | None = None
        self.outcomes: list[TaskOutcome] = []
        self.is_complete = False

    def state(self) -> str:
        """Say how far the guest came."""
        ended = f"{len(self.outcomes)} tasks had ended"
        return ended if self._running is None else f"{ended}, `{self._running}` was running"

    def read(self) -> Iterator[tuple[str, TaskOutcome | None]]:
        """Give what arrived since: a task that started and None, or a task that ended and its outcome.

        Raises
        ------
        RunError
            If the stream cannot be understood.
        """
        with self._stream.open("rb") as stream:
            stream.seek(self._position)
            content = stream.read()
        used = 0
        while (end := content.find(b"\n", used)) >= 0:
            words = content[used:end].decode("ascii", errors="replace").split()
            match words:
                case ["start", name]:
                    self._running = name
                    used = end + 1
                    yield name, None
                case ["end", name, code, size] if code.isdigit() and size.isdigit():
                    begin = end + 1
                    if len(content) < begin + int(size):
                        break
                    self._unpack(name, content[begin : begin + int(size)])
                    used = begin + int(size)
                    outcome = TaskOutcome(name, self._out / name, int(code))
                    self.outcomes.append(outcome)
                    self._running = None
                    yield name, outcome
                case ["done"]:
                    self.is_complete = True
                    used = end + 1
                case _:
                    message = f"unexpected message from the guest: `{' '.join(words)[:80]}`"
                    raise RunError(message, code="run.guest-stream")
        self._position += used

    def _unpack(self, name: str, packed: bytes) -> None:
        try:
            with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
                archive.extractall(self._out, filter="data")
        except (tarfile.TarError, OSError, EOFError) as error:
            message = f"the files of `{name}` did not arrive complete: {error}"
            raise RunError(message, code="run.guest-stream") from error


def last_lines(text: str) -> str:
    """Give the last lines of a log."""
    return "\n".join(text.rstrip().splitlines()[-LOG_LINES:])
