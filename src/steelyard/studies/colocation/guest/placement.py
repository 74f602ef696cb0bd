"""A guest as the placement of trials: its programs, what it offers, and how long a request works in it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.run.executor.run_files import PLACE as FILES
from steelyard.run.guest.virtual_time import clock_shift, instruction_ns
from steelyard.run.isolation.interface import Availability
from steelyard.run.machine.cpu_groups import CpuController
from steelyard.run.programs import load_program, scheduler_program
from steelyard.studies.colocation.guest.sched_ext import find_emulator, find_sched_ext_kernel
from steelyard.studies.colocation.guest.trials import (
    GUEST_GROUPS,
    LOAD,
    PLACE,
    SCHEDULER,
    guest_places,
    trial_work_iterations,
)
from steelyard.studies.colocation.placement import Placement
from steelyard.studies.colocation.policies import Place
from steelyard.studies.colocation.scheduling import PROGRAM_REPAIR, Scheduling
from steelyard.studies.option_types import given

if TYPE_CHECKING:
    from steelyard.studies.colocation.options import ColocationOptions

GUEST: Final = "guest"
GROUPS_VERSION: Final = 2
IN_GUEST: Final = {SCHEDULER: f"{PLACE}/{SCHEDULER}"}
"""Where programs are in the guest."""


def guest_host(options: ColocationOptions) -> Placement:
    """Give the guest as the placement of a study.

    Raises
    ------
    CapabilityError
        If there is no kernel with sched_ext, or no emulator that is new enough.
    """
    kernel, emulator = find_sched_ext_kernel(), find_emulator()
    places = guest_places(options.vcpus)
    at_most_ns = given(options.instruction_ns)
    return Placement(
        place=Place(places.cpus, places.client_cpus, is_whole=False),
        host=guest_scheduling(),
        command=(sys.executable, "-m", "steelyard.studies.colocation.guest.trial", FILES, str(at_most_ns)),
        work_iterations=trial_work_iterations(options.work_us, options.vcpus, at_most_ns),
        facts={
            "ground": GUEST,
            "guest_kernel": kernel.name,
            "guest_emulator": f"QEMU {emulator.version}",
            "guest_clock_shift": clock_shift(options.vcpus, at_most_ns),
            "guest_instruction_ns": instruction_ns(options.vcpus, at_most_ns),
        },
    )


def guest_scheduling() -> Scheduling:
    """Give what the guest offers to policies: everything, if the scheduler is built."""
    works = Availability.yes("guest")
    is_built = scheduler_program() is not None
    missing = Availability.no(f"`{SCHEDULER}` is not built", PROGRAM_REPAIR)
    groups = CpuController(Path(GUEST_GROUPS), GROUPS_VERSION, frozenset({"cpu.weight", "cpu.idle"}))
    return Scheduling(groups, works, works, works if is_built else missing, works, IN_GUEST)


def guest_programs() -> dict[str, Path]:
    """Give the programs a guest gets, by name.

    Raises
    ------
    InternalError
        If the installation lacks the load program.
    """
    scheduler = scheduler_program()
    return {LOAD: load_program(), **({SCHEDULER: scheduler} if scheduler is not None else {})}
