"""A guest as the placement of trials: its programs, what it offers, and how long a request works in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, UsageError
from steelyard.run.executor.run_files import PLACE as FILES
from steelyard.run.guest.machine import choose_accelerator
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
from steelyard.studies.colocation.options import ColocationOptions, is_counted
from steelyard.studies.colocation.placement import Placement, calibrated_iterations
from steelyard.studies.colocation.policies import Place
from steelyard.studies.colocation.scheduling import PROGRAM_REPAIR, Scheduling
from steelyard.studies.option_types import given

if TYPE_CHECKING:
    from pydantic import BaseModel

GUEST: Final = "guest"
REAL: Final = "real"
GROUPS_VERSION: Final = 2
IN_GUEST: Final = {SCHEDULER: f"{PLACE}/{SCHEDULER}"}
"""Where programs are in the guest."""


def with_vm_time(options: BaseModel) -> ColocationOptions:
    """Let the time of a guest be real where that is left open and hardware virtualisation boots one."""
    asked = ColocationOptions.model_validate(options.model_dump())
    # Who says how long an instruction takes wants them counted.
    is_open = asked.in_vm and asked.vm_time is None and asked.instruction_ns is None
    is_real = is_open and accelerator()[0] == "kvm"
    return asked.model_copy(update={"vm_time": "real"}) if is_real else asked


def accelerator() -> tuple[str, str]:
    """Give how a guest is run here, and why so."""
    try:
        return choose_accelerator()
    except CapabilityError as error:
        return "tcg", f"hardware virtualisation cannot be tried: {error.message}"


def guest_host(options: ColocationOptions) -> Placement:
    """Give the guest as the placement of a study.

    Raises
    ------
    CapabilityError
        If there is no kernel with sched_ext, no emulator that is new enough, or no hardware virtualisation
        where the time of the guest is to be real.
    UsageError
        If the guest is to have more CPUs than there are, and its time is real.
    """
    kernel, emulator = find_sched_ext_kernel(), find_emulator()
    places = guest_places(options.vcpus)
    facts: dict[str, str | int] = {
        "ground": GUEST,
        "guest_kernel": kernel.name,
        "guest_emulator": f"QEMU {emulator.version}",
    }
    if not is_counted(options):
        own = sorted(os.sched_getaffinity(0))
        _require_real_time(places.cpu_count, len(own))
        return Placement(
            place=Place(places.cpus, places.client_cpus, is_whole=False),
            host=guest_scheduling(),
            command=(sys.executable, "-m", "steelyard.studies.colocation.guest.trial", FILES),
            # A virtual CPU executes as fast as a real one; measured once, all trials have the same work.
            work_iterations=calibrated_iterations(load_program(), options.work_us, own[0]),
            facts={**facts, "guest_time": REAL},
        )
    at_most_ns = given(options.instruction_ns)
    return Placement(
        place=Place(places.cpus, places.client_cpus, is_whole=False),
        host=guest_scheduling(),
        command=(sys.executable, "-m", "steelyard.studies.colocation.guest.trial", FILES, str(at_most_ns)),
        work_iterations=trial_work_iterations(options.work_us, options.vcpus, at_most_ns),
        facts={
            **facts,
            "guest_clock_shift": clock_shift(options.vcpus, at_most_ns),
            "guest_instruction_ns": instruction_ns(options.vcpus, at_most_ns),
        },
    )


def _require_real_time(cpus: int, own: int) -> None:
    found, reason = accelerator()
    if found != "kvm":
        message = f"cannot run a guest in real time: {reason}"
        hint = "leave out --vm-time, or use a machine with hardware virtualisation"
        raise CapabilityError(message, hint=hint, code="capability.kvm")
    if cpus > own:
        message = f"cannot run a guest of {cpus} CPUs in real time: this process may use {own}"
        raise UsageError(message, hint="lower --vcpus, or add `--vm-time instructions`")


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
