"""Which ways of scheduling this host has: groups, idle groups, real-time priority, loadable classes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.run.isolation.attempt import attempt
from steelyard.run.isolation.interface import Availability
from steelyard.run.machine.cpu_groups import CpuController, cpu_controller
from steelyard.run.programs import scheduler_program

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEDULER_NAME: Final = "steelyard-scheduler"
THROTTLE: Final = Path("proc/sys/kernel/sched_rt_runtime_us")
LOADABLE: Final = Path("sys/kernel/sched_ext")
KERNEL_REPAIR: Final = "Linux 6.12 or newer built with CONFIG_SCHED_CLASS_EXT, or `--in-vm`"
PROGRAM_REPAIR: Final = "make scheduler"


@dataclass(frozen=True, slots=True)
class Scheduling:
    """What a host offers to policies.

    Parameters
    ----------
    groups : CpuController
        Where control groups with weights can be made.
    idle_groups : Availability
        Whether such a group can be made idle (``cpu.idle``).
    real_time : Availability
        Whether a thread may be given SCHED_FIFO, and the kernel throttles it.
    loadable : Availability
        Whether Steelyard's own sched_ext scheduler can be loaded.
    sched_ext : Availability
        Whether the kernel loads schedulers, and this user may.
    programs : mapping
        Path of the scheduler program by name.
    """

    groups: CpuController
    idle_groups: Availability
    real_time: Availability
    loadable: Availability
    sched_ext: Availability
    programs: Mapping[str, str] = field(default_factory=dict)

    @property
    def weighted_groups(self) -> Availability:
        """Whether control groups with weights can be made."""
        if self.groups.folder is None:
            return Availability.no(self.groups.reason, self.groups.repair)
        return Availability.yes(f"version {self.groups.version} at `{self.groups.folder}`")


def read_scheduling(root: Path = Path("/")) -> Scheduling:
    """Try what this host offers; ``/proc`` and ``/sys`` lie below `root`."""
    groups = cpu_controller(root)
    program = scheduler_program()
    return Scheduling(
        groups=groups,
        idle_groups=_idle_groups(groups),
        real_time=_real_time(root),
        loadable=_loadable(root, program),
        sched_ext=_sched_ext(root),
        programs={SCHEDULER_NAME: str(program)} if program is not None else {},
    )


def _idle_groups(groups: CpuController) -> Availability:
    if groups.folder is None:
        return Availability.no(groups.reason, groups.repair)
    if "cpu.idle" not in groups.files:
        return Availability.no("this kernel's groups have no `cpu.idle`", "Linux 5.15 or newer")
    return Availability.yes(f"version {groups.version} at `{groups.folder}`")


def _real_time(root: Path) -> Availability:
    """Whether this process may take real-time priority, tried on the calling thread for an instant."""
    try:
        runtime_us = int((root / THROTTLE).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return Availability.no("whether the kernel throttles real-time threads cannot be read")
    if runtime_us < 0:
        return Availability.no(
            "the kernel does not throttle real-time threads here: the service could stop the machine",
            "sysctl -w kernel.sched_rt_runtime_us=950000",
        )
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError as error:
        return Availability.no(f"the kernel refuses SCHED_FIFO: {error.strerror}", "run as root")
    os.sched_setscheduler(0, policy, parameters)
    return Availability.yes(f"throttled at {runtime_us} us of each period")


def _sched_ext(root: Path) -> Availability:
    if not (root / LOADABLE).is_dir():
        return Availability.no("this kernel has no sched_ext", KERNEL_REPAIR)
    if os.geteuid() != 0:
        return Availability.no("only root may load a scheduler", "run as root")
    return Availability.yes("sched_ext")


def _loadable(root: Path, program: Path | None) -> Availability:
    if not (root / LOADABLE).is_dir():
        return Availability.no("this kernel has no sched_ext", KERNEL_REPAIR)
    if program is None:
        return Availability.no(f"`{SCHEDULER_NAME}` is not built", PROGRAM_REPAIR)
    answer = attempt([program, "probe", "--json"], timeout_s=30)
    try:
        found = json.loads(answer.output)
        is_available, reasons = bool(found["available"]), [str(each) for each in found.get("reasons", ())]
    except (ValueError, KeyError, TypeError):
        return Availability.no(f"`{SCHEDULER_NAME} probe` says: {answer.last_words}")
    return (
        Availability.yes("sched_ext") if is_available else Availability.no("; ".join(reasons), KERNEL_REPAIR)
    )
