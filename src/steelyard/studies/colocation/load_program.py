"""The load program: where it is, and how long its loop must be for a given work."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from steelyard.errors import RunError
from steelyard.run.isolation.attempt import attempt

if TYPE_CHECKING:
    from pathlib import Path

CALIBRATION_S: Final = 60.0


def calibrated_iterations(program: Path, work_us: int, cpu: int) -> int:
    """Measure once how many iterations of its loop take a given time on a CPU.

    Parameters
    ----------
    program : Path
        The load program.
    work_us : int
        Time of one request's work [us].
    cpu : int
        CPU it is measured on.

    Raises
    ------
    RunError
        If the program does not say it.
    """
    command: list[str | Path] = [
        "taskset",
        "--cpu-list",
        str(cpu),
        program,
        "calibrate",
        "--work-us",
        str(work_us),
    ]
    answer = attempt(command, timeout_s=CALIBRATION_S)
    try:
        return int(json.loads(answer.output)["iterations"])
    except (ValueError, KeyError, TypeError) as error:
        message = f"cannot measure the work of a request: {answer.last_words}"
        raise RunError(
            message, hint=f"try `{program} calibrate --work-us {work_us}`", code="run.work"
        ) from error
