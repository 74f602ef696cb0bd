"""What is expected of the packets program, with sizes; a plan keeps it before anything is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.studies.scaling.hypotheses import Hypothesis

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.studies.scaling.options import ScalingOptions


def expectations(options: ScalingOptions, workers: tuple[int, ...], cores: int) -> list[Hypothesis]:
    """Give the hypotheses of a study; a command of a user's has those of every parallel program."""
    if options.command is not None:
        return list(_of_any_program(workers, cores))
    return [
        *_of_locks(options),
        *_of_speedup(options, workers, cores),
        *_of_crowding(options, workers),
        *_of_sleepers(options, cores),
    ]


def _of_any_program(workers: tuple[int, ...], cores: int) -> Iterator[Hypothesis]:
    if cores in workers and cores > 1:
        yield Hypothesis(
            f"With one worker per core the program is at least half as fast as ideal ({cores} workers)",
            "speedup",
            {"workers": str(cores)},
            "efficiency",
            0.5,
            1.0,
        )


def _of_locks(options: ScalingOptions) -> Iterator[Hypothesis]:
    works = options.lock_work or ()
    if not works or "HomeQueue" not in (options.strategies or ()):
        return
    for lock in options.locks or ():
        subject = {"load": "uniform", "depth": str(max(options.depths or (0,))), "lock": lock}
        yield Hypothesis(
            f"An idle {lock} costs a visible share of small packets (W = {works[0]}), though far from the "
            "ten times of a bare counter: up to 15 %",
            "overhead",
            {**subject, "mean_work": str(works[0])},
            "overhead",
            1.0,
            1.15,
        )
        yield Hypothesis(
            f"An idle {lock} costs little of larger packets (W = {works[-1]}): up to 5 %",
            "overhead",
            {**subject, "mean_work": str(works[-1])},
            "overhead",
            0.98,
            1.05,
        )


def _imbalance(largest: dict[str, str], workers: tuple[int, ...], cores: int) -> Hypothesis:
    """Give the expectation for the most workers that leave a core to the dispatcher, at least two."""
    alone = [count for count in workers if 2 <= count < cores]  # noqa: PLR2004 - one source is balanced
    text = "Under exponential load the heaviest source holds LockFree back: sum of the means over the largest"
    if alone:
        subject = {**largest, "strategy": "LockFree", "workers": str(alone[-1])}
        return Hypothesis(f"{text}, within 10 %", "imbalance", subject, "relative", 0.9, 1.1)
    subject = {**largest, "strategy": "LockFree", "workers": str(cores)}
    shared = f"{text}, less up to 30 % for the dispatcher, which shares the {cores} cores"
    return Hypothesis(shared, "imbalance", subject, "relative", 0.7, 1.1)


def _of_speedup(options: ScalingOptions, workers: tuple[int, ...], cores: int) -> Iterator[Hypothesis]:
    works, depth = options.work or (), str(max(options.depths or (0,)))
    largest = {"mean_work": str(max(works)), "depth": depth}
    if "LockFree" in (options.strategies or ()):
        yield Hypothesis(
            f"One LockFree worker is as fast as the serial program on large packets (W = {max(works)}): at "
            "most 1.5 % shy of ideal",
            "speedup",
            {**largest, "load": "uniform", "strategy": "LockFree", "workers": "1"},
            "shy",
            None,
            1.5,
        )
        if cores > 1 and "exponential" in options.loads:
            yield _imbalance(largest, workers, cores)
    for lock in (options.locks or ()) if "Awesome" in (options.strategies or ()) and cores > 1 else ():
        if "exponential" in options.loads:
            yield Hypothesis(
                f"Awesome ({lock}) removes the imbalance: at least 10 % faster than LockFree under "
                f"exponential load with {cores} workers",
                "gain",
                {
                    **largest,
                    "load": "exponential",
                    "workers": str(cores),
                    "contender": f"Awesome ({lock})",
                },
                "gain",
                1.1,
                None,
            )


def _of_crowding(options: ScalingOptions, workers: tuple[int, ...]) -> Iterator[Hypothesis]:
    works, depth = options.work or (), str(max(options.depths or (0,)))
    for strategy in ("Awesome", "work stealing"):
        if strategy in (options.strategies or ()):
            yield Hypothesis(
                f"{strategy} does not collapse with {workers[-1]} workers, as the source's Awesome did "
                "by 89 to 96 %: it keeps at least 90 % of its rate",
                "oversubscription",
                {
                    "load": "exponential" if "exponential" in options.loads else "uniform",
                    "mean_work": str(max(works)),
                    "depth": depth,
                    "strategy": strategy,
                    "workers": str(workers[-1]),
                },
                "kept",
                90.0,
                None,
            )


def _of_sleepers(options: ScalingOptions, cores: int) -> Iterator[Hypothesis]:
    for lock in ("pthread mutex", "std mutex"):
        if lock in (options.lock_tests or ()):
            yield Hypothesis(
                f"Who waits for a {lock} whose holder sleeps leaves the cores to others: at most a fifth "
                f"of one",
                "lock_contest",
                {"test": "sleeper", "lock": lock, "workers": str(max(cores, 2))},
                "cores_used",
                None,
                0.2,
            )
