"""The exception tree of Steelyard: one class per phase, each with a stable code and an exit code."""

from __future__ import annotations

import errno
from typing import ClassVar, Final

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class SteelyardError(Exception):
    """Base of every error Steelyard raises on purpose.

    Parameters
    ----------
    message : str
        What happened and to which input.
    hint : str or None
        The next step, as a command where there is one.
    code : str or None
        Stable dotted code; the class's own by default.
    """

    code: str = "steelyard"
    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, hint: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with all fields, so that an error crosses process borders whole."""
        return _rebuild, (type(self), self.message, self.hint, self.code)


def _rebuild(kind: type[SteelyardError], message: str, hint: str | None, code: str) -> SteelyardError:
    return kind(message, hint=hint, code=code)


class UsageError(SteelyardError):
    """The command line asks for something that does not exist."""

    code = "usage"
    exit_code = 2


class StudyFileError(SteelyardError):
    """A study file is wrong; the message lists every problem with its path and line."""

    code = "study-file"
    exit_code = 2


class DesignError(SteelyardError):
    """A design cannot be built from the given factors."""

    code = "design"
    exit_code = 2


class CapabilityError(SteelyardError):
    """The machine cannot do what was asked; the message names the capability and the repair."""

    code = "capability"
    exit_code = 3


class GateError(SteelyardError):
    """The machine never became admissible."""

    code = "gate"
    exit_code = 4


class RunError(SteelyardError):
    """Runs failed."""

    code = "run"
    exit_code = 4


class DataError(SteelyardError):
    """Recorded data are damaged, of another schema, or must not be mixed."""

    code = "data"
    exit_code = 5


class AnalysisError(SteelyardError):
    """The data do not allow the analysis: too few measurements, a singular model, no convergence."""

    code = "analysis"
    exit_code = 6


class InternalError(SteelyardError):
    """A bug in Steelyard."""

    code = "internal"
    exit_code = 70


class InterruptedByUser(SteelyardError):  # noqa: N818 - an interruption is no error of ours
    """The user stopped the work; everything finished so far is on disk."""

    code = "interrupted"
    exit_code = 130


def unwritable(path: object, error: OSError, hint: str) -> DataError:
    """Give the error for a file or folder that cannot be written.

    Parameters
    ----------
    path : object
        The file or folder.
    error : OSError
        What the system said; a full disk gets the code ``data.disk-full``, all else
        ``data.unwritable``.
    hint : str
        The next step, where it is not to make room.
    """
    reason = error.strerror or str(error)
    if error.errno in _NO_ROOM:
        hint = f"free space on the file system of `{path}`, then repeat the command"
        return DataError(f"cannot write `{path}`: {reason}", hint=hint, code="data.disk-full")
    return DataError(f"cannot write `{path}`: {reason}", hint=hint, code="data.unwritable")
