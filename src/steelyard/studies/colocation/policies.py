"""The policies: what each sets for the service and the best-effort jobs, and what it needs of a host.

A policy that a host lacks is recorded as unavailable with the reason; no other one is put in its place.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steelyard.studies.colocation.options import BASELINE, scheduler_words
from steelyard.studies.colocation.scheduling import SCHEDULER_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.run.isolation.interface import Availability
    from steelyard.studies.colocation.scheduling import Scheduling


class Need(Enum):
    """Something of the host that a policy cannot do without."""

    GROUPS = "control groups with weights"
    IDLE_GROUPS = "control groups that can be idle"
    REAL_TIME = "real-time priority"
    LOADABLE = "a loadable scheduling class"
    SCHED_EXT = "a kernel that loads schedulers"


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy.

    Parameters
    ----------
    name : str
        Level of the factor ``policy``.
    title : str
        What it is, in words.
    settings : mapping
        As ``policy`` of a trial takes them.
    needs : tuple of Need
        What the host must have.
    has_jobs : bool
        Whether there are best-effort jobs.
    """

    name: str
    title: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[Need, ...] = ()
    has_jobs: bool = True

    @property
    def program(self) -> str | None:
        """Program of a scheduler that is not Steelyard's own, as its command names it."""
        return self.settings["scheduler"][0] if Need.SCHED_EXT in self.needs else None

    @property
    def uses_groups(self) -> bool:
        """Whether service and jobs are in control groups of their own."""
        return Need.GROUPS in self.needs

    @property
    def is_real_time(self) -> bool:
        """Whether the service has real-time priority."""
        return Need.REAL_TIME in self.needs


HEAVIEST, LIGHTEST = 10_000, 1
"""SOURCE: the source's weights, the ends of the range of ``cpu.weight``."""

FIFO_PRIORITY: Final = 1
UNSHARED_LOAD_PERCENT: Final = 50
"""Load up to which a service at real-time priority may hold every CPU of a machine."""


LAYERS: Final = "{layers}"
"""In the command of a scheduler: the layers of service and jobs, as scx_layered takes them."""
LOWEST_NICE: Final = 19
_LAYERS: Final = (
    {
        "name": "jobs",
        "comment": f"best-effort jobs: nice {LOWEST_NICE}",
        "matches": [[{"NiceAbove": LOWEST_NICE - 1}]],
        "kind": {"Open": {"weight": LIGHTEST}},
    },
    {
        "name": "services",
        "comment": "everything else takes the CPUs of jobs",
        "matches": [[]],
        "kind": {"Open": {"preempt": True, "weight": HEAVIEST}},
    },
)


def _class(name: str, title: str, *switches: str) -> Policy:
    command = [SCHEDULER_NAME, "start", "--foreground", *switches, "--counters", "{counters}"]
    return Policy(name, title, {"best_effort_class": "idle", "scheduler": command}, (Need.LOADABLE,))


_ALL: Final = (
    Policy(BASELINE, "no best-effort jobs", has_jobs=False),
    Policy("default", "best-effort jobs with nothing set"),
    Policy("nice", f"best-effort jobs at nice {LOWEST_NICE}", {"best_effort_nice": LOWEST_NICE}),
    Policy(
        "weights",
        f"control groups of weight {HEAVIEST} : {LIGHTEST}",
        {"service_weight": HEAVIEST, "best_effort_weight": LIGHTEST},
        (Need.GROUPS,),
    ),
    Policy("idle", "best-effort jobs in SCHED_IDLE", {"best_effort_class": "idle"}),
    Policy(
        "cpu-idle",
        "best-effort jobs in a control group with cpu.idle",
        {"best_effort_cpu_idle": True},
        (Need.GROUPS, Need.IDLE_GROUPS),
    ),
    _class("be", "the best-effort class"),
    _class("be-no-entry", "the best-effort class without its entry check", "--no-entry"),
    _class("be-no-exit", "the best-effort class without its exit check", "--no-exit"),
    _class("be-no-local", "the best-effort class without its local check", "--no-local"),
    Policy(
        "fifo",
        "service in SCHED_FIFO",
        {"service_class": "fifo", "service_priority": FIFO_PRIORITY},
        (Need.REAL_TIME,),
    ),
)
POLICIES: Final[Mapping[str, Policy]] = {policy.name: policy for policy in _ALL}
"""By name, in the order of tables."""


def policy_of(name: str) -> Policy:
    """Give the policy of a name, or of the command of a scheduler (``scx:COMMAND``).

    Examples
    --------
    >>> policy_of("scx:scx_layered {layers}").settings["scheduler"][1][:16]
    '[{"name": "jobs"'
    """
    words = scheduler_words(name)
    if not words:
        return POLICIES[name]
    settings: dict[str, Any] = {"best_effort_class": "idle", "scheduler": words}
    title = f"the scheduler `{words[0]}`, best-effort jobs in SCHED_IDLE"
    if LAYERS in words:
        # It tells threads by their nice level, not by their policy.
        settings["best_effort_nice"] = LOWEST_NICE
        settings["scheduler"] = [json.dumps(_LAYERS) if word == LAYERS else word for word in words]
        title += f" at nice {LOWEST_NICE}"
    return Policy(name, title, settings, (Need.SCHED_EXT,))


@dataclass(frozen=True, slots=True)
class Place:
    """Where trials are run.

    Parameters
    ----------
    cpus : tuple of int
        CPUs that service and best-effort jobs share.
    client_cpus : tuple of int
        CPUs of the client.
    is_whole : bool
        Whether `cpus` are all CPUs of the machine.
    """

    cpus: tuple[int, ...]
    client_cpus: tuple[int, ...]
    is_whole: bool

    @property
    def shares_client(self) -> bool:
        """Whether the client takes time of CPUs that are measured."""
        return bool(set(self.cpus) & set(self.client_cpus))


def absence(policy: Policy, load_percent: int, place: Place, host: Scheduling) -> str | None:
    """Say why a policy cannot be run at a load, with what repairs it; ``None`` if it can."""
    for need in policy.needs:
        found = _offer(need, host)
        if not found.available:
            return f"{found.reason}{f' (repair: {found.repair})' if found.repair else ''}"
    if policy.program is not None and shutil.which(policy.program) is None:
        return f"`{policy.program}` is not installed (repair: install it, or give its path)"
    if policy.is_real_time and place.is_whole and load_percent > UNSHARED_LOAD_PERCENT:
        return (
            f"above {UNSHARED_LOAD_PERCENT} % load a service in SCHED_FIFO could stop a machine of which it "
            "has every CPU "
            f"(repair: `--in-vm`, or `--loads {UNSHARED_LOAD_PERCENT}`, or leave a CPU out of --cpus)"
        )
    return None


def _offer(need: Need, host: Scheduling) -> Availability:
    return {
        Need.GROUPS: host.weighted_groups,
        Need.IDLE_GROUPS: host.idle_groups,
        Need.REAL_TIME: host.real_time,
        Need.LOADABLE: host.loadable,
        Need.SCHED_EXT: host.sched_ext,
    }[need]


def settings_of(policy: Policy, programs: Mapping[str, str]) -> dict[str, Any]:
    """Give the object ``policy`` of a trial, with the path of the scheduler's program where one is known."""
    settings: dict[str, Any] = {"name": policy.name, **policy.settings}
    command: Sequence[str] | None = policy.settings.get("scheduler")
    if command is not None:
        program = programs.get(command[0]) or shutil.which(command[0]) or command[0]
        settings["scheduler"] = [str(Path(program).absolute()), *command[1:]]
    return settings
