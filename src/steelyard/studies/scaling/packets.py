"""Cells of the packets program: the source's four experiments as one set of combinations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.model import Cell
from steelyard.studies.scaling.findings.strategy import HOME_QUEUE, LOCK_FREE, NO_LOCK
from steelyard.studies.scaling.packet_files import LOADS, LOCKS, STRATEGIES
from steelyard.studies.scaling.recorded import MACHINE, SERIAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard.model import Execution, Plan
    from steelyard.studies.scaling.options import ScalingOptions

WITH_LOCK: Final = frozenset(
    {"HomeQueue", "Awesome", "RandomQueue", "LastQueue", "batch dequeue", "leader/followers"}
)
"""Strategies that take a lock."""

LAUNCH_MS: Final = 30
"""Beside the time a trial is given: starting the threads, ending them, keeping the outcome."""

NO_DEPTH: Final = "none"
MACHINE_WORK: Final = 1000
"""Rounds of a fingerprint of the threads that share nothing: long enough that looking for the end is not."""

UNIFORM: Final = "uniform"
Levels = dict[str, str]


def packets_cells(options: ScalingOptions, workers: tuple[int, ...], execution: Execution) -> list[Cell]:
    """Give the cells, each combination once, in the order of the experiments."""
    combinations: dict[tuple[str, ...], Levels] = {}
    for levels in (*_overhead(options), *_speedup(options, workers)):
        combinations.setdefault(tuple(levels.values()), levels)
    (program,) = execution.command
    return [
        Cell(number, levels, replace(execution, command=command_of(program, levels)))
        for number, levels in enumerate(combinations.values())
    ]


def packets_seconds(plan: Plan) -> float | None:
    """Give the expected time of running a plan [s]; nothing for a command, whose time nobody knows."""
    durations = plan.factors.get("duration_ms")
    if durations is None:
        return None
    return len(plan.batches) * (int(durations[0]) + LAUNCH_MS) / 1000


def command_of(program: str, levels: Mapping[str, str]) -> tuple[str, ...]:
    """Give the command line of the source's programs; the seed is the number of the trial.

    Examples
    --------
    >>> levels = {"load": "uniform", "mean_work": "25", "depth": "8", "strategy": "HomeQueue", "lock": "MCS",
    ...           "workers": "2", "duration_ms": "2000"}
    >>> " ".join(command_of("packets", levels))
    'packets parallel 2000 2 25 t {block} 8 m H'
    """
    load = _code(LOADS, levels["load"])
    shared = (levels["duration_ms"], levels["workers"], levels["mean_work"], load, "{block}")
    if levels["strategy"] == SERIAL:
        return (program, "serial", *shared)
    return (
        program,
        "parallel",
        *shared,
        levels["depth"],
        _code(LOCKS, levels["lock"]),
        _code(STRATEGIES, levels["strategy"]),
    )


def machine_levels(options: ScalingOptions, workers: tuple[int, ...], cores: int) -> Iterator[Levels]:
    """Give the levels of the cells that tell how the machine itself scales, up to one thread per core."""
    for count in sorted({1, *(each for each in workers if each <= cores)}):
        yield _levels(options, NO_LOCK, MACHINE_WORK, count, (NO_DEPTH, MACHINE, NO_LOCK))


def machine_command(program: str, threads: int, duration_ms: int) -> tuple[str, ...]:
    """Give the command line of threads that share nothing.

    Examples
    --------
    >>> " ".join(machine_command("packets", 2, 100))
    'packets independent 1000 2 100'
    """
    return (program, "independent", str(MACHINE_WORK), str(threads), str(duration_ms))


def _overhead(options: ScalingOptions) -> Iterator[Levels]:
    for work in options.lock_work or ():
        yield _levels(options, UNIFORM, work, 1)
        for depth in options.depths or ():
            for strategy, lock in _contenders(options):
                if strategy in {LOCK_FREE, HOME_QUEUE}:
                    yield _levels(options, UNIFORM, work, 1, (depth, strategy, lock))


def _speedup(options: ScalingOptions, workers: tuple[int, ...]) -> Iterator[Levels]:
    for load in dict.fromkeys(options.loads):
        for work in options.work or ():
            for count in _counts(options, workers):
                yield _levels(options, load, work, count)
                for depth in options.depths or ():
                    for strategy, lock in _contenders(options):
                        if not _is_left_out(options, depth, strategy):
                            yield _levels(options, load, work, count, (depth, strategy, lock))


def _counts(options: ScalingOptions, workers: tuple[int, ...]) -> list[int]:
    """Give the numbers of workers; a quick study keeps the first, the last and a quarter of the last.

    That quarter is the number of cores, where levels are automatic.
    """
    if not options.quick or isinstance(options.workers, tuple):
        return list(workers)
    full = max(count for count in workers if 4 * count <= workers[-1] or count == workers[0])
    return sorted({workers[0], full, workers[-1]})


def _is_left_out(options: ScalingOptions, depth: int, strategy: str) -> bool:
    """Whether a quick study leaves a combination out: shallow queues of all but one strategy."""
    return options.quick and depth != max(options.depths or (depth,)) and strategy != LOCK_FREE


def _contenders(options: ScalingOptions) -> Iterator[tuple[str, str]]:
    for strategy in dict.fromkeys(options.strategies or ()):
        if strategy in WITH_LOCK:
            yield from ((strategy, lock) for lock in dict.fromkeys(options.locks or ()))
        else:
            yield strategy, NO_LOCK


def _levels(
    options: ScalingOptions,
    load: str,
    work: int,
    workers: int,
    contender: tuple[int | str, str, str] | None = None,
) -> Levels:
    depth, strategy, lock = contender or (NO_DEPTH, SERIAL, NO_LOCK)
    return {
        "load": load,
        "mean_work": str(work),
        "depth": str(depth),
        "strategy": strategy,
        "lock": lock,
        "workers": str(workers),
        "duration_ms": str(options.duration_ms),
    }


def _code(names: Mapping[str, str], name: str) -> str:
    return next(code for code, each in names.items() if each == name)
