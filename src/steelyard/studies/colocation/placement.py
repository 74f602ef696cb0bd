"""Where the trials are executed: what that offers, and how long a request works there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from steelyard.run.executor.run_files import PLACE
from steelyard.run.programs import load_program
from steelyard.studies.colocation.load_program import calibrated_iterations
from steelyard.studies.colocation.scheduling import read_scheduling
from steelyard.studies.colocation.trial_plan import TRIAL_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from steelyard.studies.colocation.options import ColocationOptions
    from steelyard.studies.colocation.policies import Place
    from steelyard.studies.colocation.scheduling import Scheduling

HOST: Final = "host"


@dataclass(frozen=True, slots=True)
class Ground:
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
        Further options of the plan: what is known of the ground.
    """

    place: Place
    host: Scheduling
    command: tuple[str, ...]
    work_iterations: int
    facts: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)


def own_host(options: ColocationOptions, place: Place) -> Ground:
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
    return Ground(place, read_scheduling(), conducting(program), iterations, {"ground": HOST})


def conducting(program: Path) -> tuple[str, ...]:
    """Give the command that conducts the trial of the folder of a run.

    Examples
    --------
    >>> from pathlib import Path
    >>> conducting(Path("/bin/steelyard-load"))
    ('/bin/steelyard-load', 'trial', '--plan', '{files}/trial.json', '--out', '{files}')
    """
    return (str(program), "trial", "--plan", f"{PLACE}/{TRIAL_FILE}", "--out", PLACE)
