"""Design of the colocation study: policies and loads, repetitions in random order, one trial each.

A cell is one policy at one load. A block is one repetition: each cell once, in an order drawn from the seed,
all of them with the same arrivals. A run is one trial: `steelyard-load` conducts the service, its client and
the best-effort jobs through all phases, and leaves a folder that is kept in the result. Inside a virtual
machine a run is one boot with one trial, so that no trial sees what another left.

**A/A control.** One cell stands in the plan twice. The twin is last.
"""

from __future__ import annotations

import shlex
import shutil
from itertools import product
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from steelyard.design.blocks import draw_batches
from steelyard.errors import CapabilityError, UsageError
from steelyard.model import Cell, Execution, Plan
from steelyard.run.executor.resident import program_environment
from steelyard.run.executor.run_files import PLACE
from steelyard.run.guest.virtual_time import instruction_ns
from steelyard.run.machine.host import read_topology
from steelyard.studies.colocation.bounded import BOUND_FILE
from steelyard.studies.colocation.guest.placement import guest_host, with_vm_time
from steelyard.studies.colocation.options import BASELINE, is_counted, options_of, settle
from steelyard.studies.colocation.placement import own_host
from steelyard.studies.colocation.policies import POLICIES, Place, absence, policy_of
from steelyard.studies.colocation.trial_plan import trial_seconds
from steelyard.studies.option_types import given
from steelyard.study import written_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from steelyard.design.technology import Technology
    from steelyard.run.machine.host import Topology
    from steelyard.studies.colocation.options import ColocationOptions
    from steelyard.studies.colocation.placement import Placement
    from steelyard.studies.colocation.policies import Policy

ISOLATION: Final = "bare"
KEPT_ERROR_BYTES: Final = 4096
MOST_SHARED_CPUS: Final = 4
"""SOURCE: cores of the source's experiments; further CPUs are left to the client."""

AROUND_TRIAL_S: Final = 1.5
GUEST_BOOT_S: Final = 10.0
GUEST_SLOWNESS: Final = 1.5
"""Seconds of a core of ours for a second of a guest whose processors together execute an instruction in a
nanosecond, as seen with QEMU 10."""


def plan_here(options: BaseModel, technologies: Mapping[str, Technology]) -> Plan:
    """Plan a colocation study for this machine, or for a guest of it.

    Raises
    ------
    UsageError
        If the options contradict each other, or name CPUs that this process may not use.
    CapabilityError
        If no requested policy works here, or no guest can be booted.
    """
    technologies.get(ISOLATION)  # is tried, and stands in the provenance
    settled = settle(with_vm_time(options))
    placement = (
        guest_host(settled) if settled.in_vm else own_host(settled, place_here(settled, read_topology()))
    )
    return plan(settled, placement)


def plan(options: ColocationOptions, placement: Placement) -> Plan:
    """Design a colocation study."""
    _require_time(options)
    asked = given(options.policies)
    names = list(dict.fromkeys(name for name in (*POLICIES, *asked) if name in asked))
    loads = (
        [_program_of(options.client)]
        if options.client is not None
        else [str(load) for load in sorted(given(options.loads))]
    )
    cells = [
        _cell(number, policy_of(name), load, options, placement)
        for number, (load, name) in enumerate(product(loads, names))
    ]
    runnable = [cell for cell in cells if cell.missing is None]
    if not runnable:
        message = f"no requested policy works here: {cells[0].levels['policy']}: {cells[0].missing}"
        raise CapabilityError(
            message,
            hint="leave out `--policies` to measure those that do, or add `--in-vm`",
            code="capability.policy",
        )
    first = next((cell for cell in runnable if cell.levels["policy"] == BASELINE), runnable[0])
    twin = Cell(len(cells), dict(first.levels), first.execution)
    blocks = given(options.repetitions)
    numbers = [cell.number for cell in (*runnable, twin)]
    place = placement.place
    return Plan(
        study="colocation",
        seed=options.seed,
        factors={"policy": tuple(names), "load": tuple(loads)},
        cells=(*cells, twin),
        batches=draw_batches(numbers, blocks=blocks, seed=options.seed),
        blocks=blocks,
        twin=(first.number, twin.number),
        options={
            "mode": "quick" if options.quick else "full",
            "origin": "executed",
            "tolerance_percent": options.tolerance_percent,
            "in_vm": options.in_vm,
            "cpus": ",".join(map(str, place.cpus)),
            "client_cpus": ",".join(map(str, place.client_cpus)),
            "client_shares_cpus": place.shares_client,
            "work_us": options.work_us,
            "work_iterations": placement.work_iterations,
            **placement.facts,
            "gate": options.gate,
            "gate_retries": options.gate_retries,
            "tuning": ",".join(options.tuning),
            "request": written_request(options),
        },
    ).freeze()


def _program_of(command: str) -> str:
    """Give the name of the program of a command, by which its load is called.

    Raises
    ------
    UsageError
        If it is not installed.
    """
    program = shlex.split(command)[0]
    if shutil.which(program) is None:
        message = f"cannot launch `client`: `{program}` is not installed"
        raise UsageError(message, hint="install it, or give its path")
    return PurePath(program).name


def place_here(options: ColocationOptions, topology: Topology) -> Place:
    """Choose the CPUs: those asked for, else up to four, with one left to the client if possible.

    Raises
    ------
    UsageError
        If a CPU that was asked for cannot be used.
    """
    allowed = tuple(sorted(topology.allowed))
    for name in ("cpus", "client_cpus"):
        strange = sorted(set(getattr(options, name) or ()) - set(allowed))
        if strange:
            message = f"`{name}` names CPU {strange[0]}, which this process may not use"
            raise UsageError(message, hint=f"allowed: {', '.join(map(str, allowed))}")
    cpus = options.cpus or allowed[: min(MOST_SHARED_CPUS, max(len(allowed) - 1, 2))]
    left = tuple(cpu for cpu in allowed if cpu not in cpus)
    return Place(cpus, options.client_cpus or left or cpus, is_whole=set(cpus) >= set(topology.online))


def _require_time(options: ColocationOptions) -> None:
    limit_s = options.limits.wall_time_s
    if options.in_vm or limit_s is None:
        return
    needed_s = trial_seconds(options) + given(options.drain_limit_ms) / 1000
    if needed_s >= limit_s:
        message = f"a trial takes up to {needed_s:g} s, and `limits.wall_time_s` is {limit_s:g}"
        raise UsageError(message, hint="shorten the phases, or raise the limit")


def _cell(number: int, policy: Policy, load: str, options: ColocationOptions, placement: Placement) -> Cell:
    levels = {"policy": policy.name, "load": load}
    # What a command needs of the CPUs is not known: it may be all of them.
    missing = absence(policy, int(load) if load.isdecimal() else 100, placement.place, placement.host)
    if missing is not None:
        return Cell(number, levels, None, missing)
    is_bound = policy.is_real_time and not options.in_vm
    execution = Execution(
        isolation=ISOLATION,
        command=("sh", f"{PLACE}/{BOUND_FILE}") if is_bound else placement.command,
        environment=program_environment(()),
        limits=options.limits.limits(),
        working_directory="/",
        kept_error_bytes=KEPT_ERROR_BYTES,
    )
    return Cell(number, levels, execution)


def trials_seconds(plan: Plan) -> float:
    """Give the expected time of running a plan [s].

    A guest is booted for each trial, and a second of it takes longer the more it runs.
    """
    options = options_of(plan)
    each_s = trial_seconds(options)
    if options.in_vm and not is_counted(options):
        return len(plan.batches) * (GUEST_BOOT_S + each_s)
    if options.in_vm:
        slowness = (
            GUEST_SLOWNESS * options.vcpus / instruction_ns(options.vcpus, given(options.instruction_ns))
        )
        return len(plan.batches) * (GUEST_BOOT_S + each_s * slowness)
    return len(plan.batches) * (AROUND_TRIAL_S + each_s)
