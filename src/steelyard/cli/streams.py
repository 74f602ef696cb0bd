"""Standard output and standard error of the command line: what they cannot take is told, once."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed import ReadableBuffer as Buffer


class _Output(io.FileIO):
    """Standard output whose errors say so: the system's error of a write names no file."""

    def write(self, data: Buffer) -> int:
        """Write, and name standard output where that fails."""
        try:
            return super().write(data)
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from error


class OutputError(OSError):
    """Standard output takes nothing any more."""


class _ErrorOutput(io.FileIO):
    """Standard error that loses what it cannot take, so that a result still goes out, and remembers why."""

    lost_because: ClassVar[str | None] = None

    def __init__(
        self, file: int | str, mode: str, *, closefd: bool = True, reason: str | None = None
    ) -> None:
        super().__init__(file, mode, closefd=closefd)
        self._reason = reason

    def write(self, data: Buffer) -> int:
        """Write, or remember why that is not possible."""
        size = memoryview(data).nbytes
        if self._reason is not None:
            _ErrorOutput.lost_because = self._reason
            return size
        try:
            return super().write(data)
        except OSError as error:
            _ErrorOutput.lost_because = error.strerror
            return size


def require_said() -> None:
    """Refuse to call a command line done of which something could not be said.

    Raises
    ------
    DataError
        If standard error lost something; standard output has its part.
    """
    if _ErrorOutput.lost_because is None:
        return
    from steelyard.errors import DataError  # noqa: PLC0415 - start-up time

    message = f"cannot write to standard error: {_ErrorOutput.lost_because}"
    raise DataError(message, hint="free space, or redirect it elsewhere", code="data.output")


def name_output_in_errors() -> None:
    """Let errors of standard output be told from others, and those of standard error cost nothing else."""
    if sys.stdout is not None:
        output = _Output(sys.stdout.fileno(), "wb", closefd=False)
        sys.stdout = _text(
            output, sys.stdout.encoding, sys.stdout.errors, line_buffering=bool(sys.stdout.line_buffering)
        )
    if sys.stderr is not None:
        errors = _ErrorOutput(sys.stderr.fileno(), "wb", closefd=False)
        sys.stderr = _text(errors, sys.stderr.encoding, sys.stderr.errors, line_buffering=True)


def _text(
    raw: io.FileIO, encoding: str = "utf-8", errors: str | None = "backslashreplace", *, line_buffering: bool
) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors=errors, line_buffering=line_buffering
    )


def write_lines(lines: Iterable[str]) -> None:
    """Print lines in which no sign of a name is hidden, and no name makes a line of its own."""
    from steelyard.report.shown_text import shown  # noqa: PLC0415 - start-up time

    sys.stdout.writelines("{}\n".format(shown(line.replace("\n", r"\n"))) for line in lines)


def require_streams() -> None:
    """Refuse to work for a closed standard output; what goes to a closed standard error is counted as lost.

    Raises
    ------
    DataError
        If nothing could be said.
    """
    if sys.stderr is None:
        sys.stderr = _text(_ErrorOutput(os.devnull, "wb", reason="it is closed"), line_buffering=True)
    if sys.stdout is None:
        from steelyard.errors import DataError  # noqa: PLC0415 - start-up time

        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as long as the process
        message = "cannot write to standard output: it is closed"
        raise DataError(message, hint="redirect it to a file or to `/dev/null`", code="data.output")
