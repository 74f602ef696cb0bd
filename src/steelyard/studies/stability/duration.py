"""How long a stability study will take: an expectation for people, never part of a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.studies.stability.missing import is_machine

if TYPE_CHECKING:
    from steelyard.model import Cell, Execution, Plan

START_S: Final[dict[str, float]] = {
    "docker": 3.0,
    "docker-sandbox": 3.0,
    "podman": 1.0,
    "crun": 0.3,
    "runc": 0.3,
    "bubblewrap": 0.1,
    "nspawn": 0.3,
    "isolate": 0.1,
}
"""Start of a worker, once per isolation and worker [s], upper ends of what small hosts show."""

MACHINE_BOOT_S: Final = 6.0
EMULATION_SLOWDOWN: Final = 8.0
"""Software-emulated code against native code; 5 to 10 were seen for the workloads of this study."""

BATCH_OVERHEAD_S: Final = 0.05
LAUNCH_S: Final = 0.002
EMULATED_LAUNCH_S: Final = 0.05
MEMORY_CONTENTION: Final = 1.5
"""Memory-copying neighbours slow a measured program by about this factor."""


def plan_seconds(plan: Plan) -> float:
    """Give the expected time of running a plan [s]; programs and hosts differ, it may err by a factor of 2.

    It is the sum over batches, plus one start of each worker of each isolation.
    """
    total = 0.0
    workers: dict[str, int] = {}
    for batch in plan.batches:
        cell = plan.cell_of(batch)
        execution = cell.execution
        if execution is not None:
            total += _batch_seconds(plan, cell, execution)
            workers[execution.isolation] = max(workers.get(execution.isolation, 0), execution.workers)
    return total + sum(_start_seconds(isolation) * count for isolation, count in workers.items())


def _start_seconds(isolation: str) -> float:
    return MACHINE_BOOT_S if isolation.startswith("vm") else START_S.get(isolation, 0.02)


def _batch_seconds(plan: Plan, cell: Cell, execution: Execution) -> float:
    iteration = float(plan.options.get("target_iteration_ms") or 0) / 1000
    cpus = int(plan.options.get("cpu_count") or 1)
    launch = LAUNCH_S
    if is_machine(cell.levels) and not plan.options.get("hardware_virtualisation"):
        iteration *= EMULATION_SLOWDOWN
        launch = EMULATED_LAUNCH_S
    neighbours = execution.neighbours.count if execution.neighbours is not None else 0
    if cell.levels["setup_type"] == "parallel-synth-memcpy":
        iteration *= MEMORY_CONTENTION
    crowding = max((execution.workers + neighbours) / cpus, 1.0)
    return BATCH_OVERHEAD_S + execution.iterations * (iteration + launch) * crowding
