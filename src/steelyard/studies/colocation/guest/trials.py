"""Trials of colocation in a guest: the same program and the same files as on the host.

`execute_trials` boots one guest, runs the plans one after the other and leaves a folder per trial, which
`steelyard.studies.colocation.trial.read_trial` reads. In deterministic mode the same plans leave the same
bytes.

What a plan for a guest has to say:

- `cpus` and `client_cpus` are CPUs of the guest, from 0 to `Guest.cpus` - 1: those of `guest_places`, where
  the client has CPUs of its own, as if it were another machine;
- `service.work_iterations` is given and not 0, by `trial_work_iterations`: a guest whose time is counted in
  instructions cannot measure how long a loop takes when all CPUs are busy;
- `groups` is `GUEST_GROUPS`, `groups_version` 2;
- `policy.scheduler` names programs by their place in the guest, ``/steelyard/bin/...``;
- each trial has a warm-up phase: what runs first after a boot is slower than what follows.

All virtual CPUs of a deterministic guest share one budget of instructions
(`steelyard.run.guest.virtual_time`). A best-effort job on another CPU therefore slows the service as a
neighbour on the same core would, under every policy alike: compare a policy with best-effort jobs with FIFO
with best-effort jobs, not with no jobs.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from steelyard.errors import UsageError
from steelyard.run.guest.virtual_time import INSTRUCTION_NS, work_iterations
from steelyard.studies.colocation.guest.task_init import GROUPS
from steelyard.studies.colocation.guest.tasks import Guest, GuestTask, execute_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from steelyard.studies.colocation.guest.task_stream import TaskOutcome

GUEST_GROUPS: Final = GROUPS
"""Folder of the guest below which a trial makes its control groups (version 2)."""
LOAD: Final = "steelyard-load"
SCHEDULER: Final = "steelyard-scheduler"
PLACE: Final = "/steelyard/bin"
WATCH_FILE: Final = "watch.json"
"""What ``steelyard-scheduler watch`` counted during a trial: the strictness of any policy."""
LOAD_INSTRUCTIONS: Final = 5.5
"""Instructions of one iteration of the work of `LOAD`: 22 for four, as it is compiled (``objdump -d``)."""
WATCH_LOOKS: Final = 200
"""How often it is looked whether the meter of strictness is attached, each tenth of a second."""
CPUS_PER_CLIENT: Final = 4
"""CPUs of the service whose requests one CPU of the client can send and receive."""
SETTLING_S: Final = 80.0
"""Beyond its phases a trial starts the meter and a scheduler (20 s each at most), makes its processes and
writes its files."""


class GuestPlaces(NamedTuple):
    """CPUs of a guest.

    Parameters
    ----------
    cpus : tuple of int
        Of the service and the jobs.
    client_cpus : tuple of int
        Of the client alone.
    """

    cpus: tuple[int, ...]
    client_cpus: tuple[int, ...]

    @property
    def cpu_count(self) -> int:
        """The CPUs that the guest has."""
        return len(self.cpus) + len(self.client_cpus)


def guest_places(cpus: int, sockets: int = 1) -> GuestPlaces:
    """Give the CPUs of a guest in which service and jobs share so many, spread evenly over its sockets.

    The client has as many CPUs on each socket.

    Examples
    --------
    >>> guest_places(2)
    GuestPlaces(cpus=(0, 1), client_cpus=(2,))
    >>> guest_places(8).client_cpus, guest_places(4, sockets=2)
    ((8, 9), GuestPlaces(cpus=(0, 1, 3, 4), client_cpus=(2, 5)))
    """
    each = -(-cpus // sockets)
    of_client = -(-each // CPUS_PER_CLIENT)
    whole = range(sockets * (each + of_client))
    shared = tuple(cpu for cpu in whole if cpu % (each + of_client) < each)
    return GuestPlaces(shared, tuple(cpu for cpu in whole if cpu not in shared))


def is_counted(plan: Mapping[str, Any]) -> bool:
    """Whether the scheduler of a trial counts its strictness, so that the meter need not watch from beside.

    Examples
    --------
    >>> is_counted({"policy": {"scheduler": ["/programs/steelyard-scheduler", "start"]}})
    True
    >>> is_counted({"policy": {"scheduler": ["scx_bpfland"]}}), is_counted({"policy": {"scheduler": None}})
    (False, False)
    """
    return [PurePath(word).name for word in (plan["policy"].get("scheduler") or ())][:1] == [SCHEDULER]


@dataclass(frozen=True, slots=True)
class GuestTrial:
    """One trial.

    Parameters
    ----------
    name : str
        Name of its folder; letters, digits, ``.``, ``_``, ``-``.
    plan : Mapping
        Content of ``trial.json``.
    is_watched : bool
        Count beside it how long service threads waited while best-effort ones ran, into `WATCH_FILE`;
        needs `SCHEDULER` among the guest's programs.
    """

    name: str
    plan: Mapping[str, Any]
    is_watched: bool = False

    def limit_s(self) -> float:
        """Give the time after which the trial is ended [s]: its phases, and what it does around them."""
        phases_ms = sum(float(length) for length in self.plan.get("phases", {}).values())
        return phases_ms / 1000 + SETTLING_S


def execute_trials(
    trials: Sequence[GuestTrial],
    out: Path,
    guest: Guest,
    *,
    progress: Callable[[str, TaskOutcome | None], None] | None = None,
) -> list[TaskOutcome]:
    """Boot one guest and run the trials in it, one after the other.

    Parameters
    ----------
    trials : sequence of GuestTrial
        In order; names differ.
    out : Path
        Folder that gets one folder per trial as soon as it has ended, and ``console.log``.
    guest : Guest
        The machine; its programs include `LOAD`.
    progress : callable or None
        Called with the name of a trial and None when it starts, with its outcome when it has ended.

    Returns
    -------
    list of TaskOutcome
        In order. A trial that failed has another exit code than 0 and its ``log.txt``; the others are
        run all the same. `TaskOutcome.require_success` makes an error of it.

    Raises
    ------
    CapabilityError
        If there is no kernel with sched_ext, no emulator that is new enough, no static busybox.
    UsageError
        If a name, a plan or a program cannot be used.
    RunError
        If the guest's kernel panics, or the guest does not end in time; what had ended is in `out`.
    """
    if LOAD not in guest.programs:
        message = f"the guest's programs lack `{LOAD}`: {', '.join(sorted(guest.programs)) or 'none'}"
        raise UsageError(message, code="usage.guest-program")
    tasks = [_task(trial, guest) for trial in trials]
    return execute_tasks(tasks, out, guest, progress=progress)


def trial_work_iterations(work_us: float, cpus: int, at_most_ns: int = INSTRUCTION_NS) -> int:
    """Give `work_iterations` of a request that takes a given time [us] on a busy virtual CPU.

    An instruction takes at most `at_most_ns` while the service's `cpus` are busy.
    """
    return work_iterations(work_us, LOAD_INSTRUCTIONS, cpus, at_most_ns)


def _task(trial: GuestTrial, guest: Guest) -> GuestTask:
    service = trial.plan.get("service", {})
    if guest.is_deterministic and not service.get("command") and not service.get("work_iterations"):
        message = f"the plan of `{trial.name}` leaves `service.work_iterations` to be measured in the guest"
        hint = "give it, by `trial_work_iterations`: time is counted in instructions there"
        raise UsageError(message, hint=hint, code="usage.guest-trial")
    command = shlex.join([f"{PLACE}/{LOAD}", "trial", "--plan"]) + ' "$TASK/trial.json" --out "$OUT"'
    if trial.is_watched:
        if SCHEDULER not in guest.programs:
            message = f"`{trial.name}` is to be watched, and the guest's programs lack `{SCHEDULER}`"
            raise UsageError(message, code="usage.guest-program")
        watch = f'{PLACE}/{SCHEDULER} watch --counters "$OUT/{WATCH_FILE}"'
        # It writes the file once it is attached; until then the check of its program keeps a CPU busy.
        is_coming = f'[ ! -s "$OUT/{WATCH_FILE}" ] && kill -0 $watch && [ $looks -lt {WATCH_LOOKS} ]'
        command = (
            f"{watch} &\nwatch=$!\nlooks=0\n"
            f"while {is_coming}; do sleep 0.1; looks=$((looks + 1)); done\n"
            f"{command}\ncode=$?\nkill -TERM $watch\nwait $watch\nexit $code"
        )
    plan = json.dumps(dict(trial.plan), indent=1) + "\n"
    return GuestTask(trial.name, command, {"trial.json": plan.encode()}, trial.limit_s())
