"""Where the trials run: what that offers, and how long a request works there."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from steelyard.errors import RunError
from steelyard.run.executor.run_files import PLACE
from steelyard.run.isolation.attempt import attempt
from steelyard.run.programs import load_program
from steelyard.studies.colocation.scheduling import read_scheduling
from steelyard.studies.colocation.trial_plan import TRIAL_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from steelyard.studies.colocation.options import ColocationOptions
    from steelyard.studies.colocation.policies import Place
    from steelyard.studies.colocation.scheduling import Scheduling

HOST: Final = "host"

_CALIBRATION_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a study is run.

    Parameters
    ----------
    place : Place
        CPUs of the trials.
    host : Scheduling
        What the machine, or the guest, offers to policies.
    command : tuple of str
        Conducts the trial of the folder ``{files}``.
    work_iterations : int
        Loop length of one usual request.
    facts : mapping
        Further options of the plan: what is known about the placement.
    """

    place: Place
    host: Scheduling
    command: tuple[str, ...]
    work_iterations: int
    facts: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)


def own_host(options: ColocationOptions, place: Place) -> Placement:
    """Give this machine, with the work of a request measured on it once.

    Raises
    ------
    InternalError
        If the installation lacks the load program.
    RunError
        If the work cannot be measured.
    """
    program = load_program()
    iterations = calibrated_iterations(program, options.work_us, place.cpus[0])
    return Placement(place, read_scheduling(), conducting(program), iterations, {"ground": HOST})


def conducting(program: Path) -> tuple[str, ...]:
    """Give the command that conducts the trial of the folder of a run.

    Examples
    --------
    >>> from pathlib import Path
    >>> conducting(Path("/bin/steelyard-load"))
    ('/bin/steelyard-load', 'trial', '--plan', '{files}/trial.json', '--out', '{files}')
    """
    return (str(program), "trial", "--plan", f"{PLACE}/{TRIAL_FILE}", "--out", PLACE)


def calibrated_iterations(program: Path, work_us: int, cpu: int) -> int:
    """Measure once how many iterations of the load program's loop take a given time [us] on a CPU."""
    command: list[str | Path] = [
        "taskset",
        "--cpu-list",
        str(cpu),
        program,
        "calibrate",
        "--work-us",
        str(work_us),
    ]
    answer = attempt(command, timeout_s=_CALIBRATION_S)
    try:
        return int(json.loads(answer.output)["iterations"])
    except (ValueError, KeyError, TypeError) as error:
        message = f"cannot measure the work of a request: {answer.last_words}"
        raise RunError(
            message, hint=f"try `{program} calibrate --work-us {work_us}`", code="run.work"
        ) from error
