"""Design of the scaling study: levels of workers, cells, A/A control, order of execution.

The cells of a command are its numbers of workers, and the baseline where one is given. Those of the
packets program are the union of the source's four experiments, each strategy at each place once, and
lock tests:

1. lock overhead: one worker, small work, LockFree and HomeQueue with each lock, uniform load;
2. to 4. speed-up: work x load x workers x strategy x lock x depth, and the serial program on the same
   sources;
5. lock tests: threads that contend for one lock, counting or sleeping.

Beside both, threads that share nothing tell how the machine itself scales.

**A/A control.** One cell stands in the plan twice. The twin is the
last cell, and is left out of everything but the A/A claim.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from steelyard.design.blocks import draw_batches
from steelyard.errors import InternalError, UsageError
from steelyard.model import Cell, Execution, Plan
from steelyard.run.executor.resident import located, program_environment, require_executable
from steelyard.run.programs import packets_program
from steelyard.studies.host_facts import host_facts
from steelyard.studies.scaling.contests import contest_command, contest_levels
from steelyard.studies.scaling.expectations import expectations
from steelyard.studies.scaling.hypotheses import OPTION, written
from steelyard.studies.scaling.options import WORKERS_PLACE, ScalingOptions, settle
from steelyard.studies.scaling.packets import machine_command, machine_levels, packets_cells
from steelyard.studies.scaling.recorded import MACHINE, SERIAL
from steelyard.study import written_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from steelyard.design.technology import Technology
    from steelyard.design.worker_counts import HostFacts

ISOLATION: Final = "bare"
PROGRAM: Final = "program"
MACHINE_MS: Final = 100
"""Time the threads that share nothing are given beside a program of the user's."""

T = TypeVar("T")


def plan_here(options: BaseModel, technologies: Mapping[str, Technology]) -> Plan:
    """Plan a scaling study for this machine.

    Raises
    ------
    UsageError
        If the options contradict each other, a command cannot be split into words, or its program is
        not there.
    InternalError
        If the installation lacks the packets program.
    """
    technologies.get(ISOLATION)  # is tried, and stands in the provenance
    settled = settle(options)
    found = plan(settled, host_facts(), str(packets_program()))
    executions = [cell.execution for cell in found.cells if cell.execution is not None]
    for name in dict.fromkeys(execution.command[0] for execution in executions):
        require_executable(name, executions[0].environment)
    return found


def plan(options: ScalingOptions, host: HostFacts, program: str) -> Plan:
    """Design a scaling study."""
    workers = options.workers
    levels = tuple(sorted(set(workers))) if isinstance(workers, tuple) else worker_levels(host.core_count)
    execution = Execution(
        isolation=ISOLATION,
        command=(program,),
        environment=program_environment(()),
        limits=options.limits.limits(),
        working_directory=str(Path.cwd()),
    )
    if options.command is not None:
        cells = _command_cells(options, levels, execution)
        cells += _machine_cells(levels, host, execution, len(cells))
    else:
        cells = packets_cells(options, levels, execution)
        cells += [
            Cell(number, found, replace(execution, command=_machine_command(program, found)))
            for number, found in enumerate(machine_levels(options, levels, host.core_count), len(cells))
        ]
        cells += _contest_cells(options, levels, host, execution, len(cells))
    first = cells[0]
    twin = Cell(len(cells), dict(first.levels), first.execution)
    trials = _given(options.trials)
    everything = (*cells, twin)
    return Plan(
        study="scaling",
        seed=options.seed,
        factors={name: tuple(dict.fromkeys(cell.levels[name] for cell in cells)) for name in first.levels},
        cells=everything,
        batches=draw_batches([cell.number for cell in everything], blocks=trials, seed=options.seed),
        blocks=trials,
        twin=(first.number, twin.number),
        options={
            "mode": "quick" if options.quick else "full",
            "origin": "executed",
            "margin_percent": options.margin_percent,
            "gate": options.gate,
            "gate_retries": options.gate_retries,
            "tuning": ",".join(options.tuning),
            "request": written_request(options),
            "cpu_count": host.cpu_count,
            "core_count": host.core_count,
            OPTION: written(expectations(options, levels, host.core_count)),
        },
    ).freeze()


def worker_levels(cores: int) -> tuple[int, ...]:
    """Give the numbers of workers worth measuring: few, half, all but one, all; twice and four times all.

    Examples
    --------
    >>> worker_levels(2), worker_levels(14)
    ((1, 2, 4, 8), (1, 2, 3, 7, 13, 14, 28, 56))
    """
    small = [count for count in (1, 2, 3, cores // 2, cores - 1) if 1 <= count <= cores]
    return tuple(sorted({*small, cores, 2 * cores, 4 * cores}))


def _contest_cells(
    options: ScalingOptions, levels: tuple[int, ...], host: HostFacts, execution: Execution, first: int
) -> list[Cell]:
    (program,) = execution.command
    return [
        Cell(number, found, replace(execution, command=contest_command(program, found)))
        for number, found in enumerate(contest_levels(options, levels, host.core_count), start=first)
    ]


def _command_cells(options: ScalingOptions, levels: tuple[int, ...], execution: Execution) -> list[Cell]:
    command = _words(_given(options.command))
    cells = [
        Cell(
            number,
            {PROGRAM: PROGRAM, "workers": str(count)},
            replace(execution, command=tuple(word.replace(WORKERS_PLACE, str(count)) for word in command)),
        )
        for number, count in enumerate(levels)
    ]
    if options.baseline is not None:
        levels_of_baseline = {PROGRAM: SERIAL, "workers": "1"}
        serial = replace(execution, command=_words(options.baseline))
        cells.append(Cell(len(cells), levels_of_baseline, serial))
    elif 1 not in levels:
        message = "`workers` has no 1 and no baseline is given, but speed-up needs one of them"
        raise UsageError(message, hint="add 1 to `workers`, or --baseline 'prog --serial'")
    return cells


def _machine_cells(levels: tuple[int, ...], host: HostFacts, execution: Execution, first: int) -> list[Cell]:
    (program,) = execution.command
    counts = sorted({1, *(count for count in levels if count <= host.core_count)})
    found = [{PROGRAM: MACHINE, "workers": str(count)} for count in counts]
    return [
        Cell(number, each, replace(execution, command=_machine_command(program, each)))
        for number, each in enumerate(found, start=first)
    ]


def _machine_command(program: str, levels: Mapping[str, str]) -> tuple[str, ...]:
    return machine_command(program, int(levels["workers"]), int(levels.get("duration_ms", MACHINE_MS)))


def _words(text: str) -> tuple[str, ...]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        message = f"cannot split `{text}` into words: {str(error).lower()}"
        raise UsageError(message, hint="close the quotation") from error
    if not words:
        message = f"`{text}` contains no program"
        raise UsageError(message, hint=f"--command 'prog --threads {WORKERS_PLACE}'")
    return (located(words[0]), *words[1:])


def _given(value: T | None) -> T:
    """Give a value that settling has filled in."""
    if value is None:
        message = "an option of the scaling study was not settled"
        raise InternalError(message, code="internal.options")
    return value
