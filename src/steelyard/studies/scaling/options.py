"""What a study file and the command line may say about the scaling study."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, Field

from steelyard.errors import UsageError
from steelyard.studies.option_types import StudyOptions, Workers

WORKERS_PLACE: Final = "{workers}"
MOST_WORK: Final = 1_000_000
MOST_DEPTH: Final = 1 << 20

LoadName = Literal["uniform", "exponential"]
StrategyName = Literal[
    "LockFree",
    "HomeQueue",
    "Awesome",
    "RandomQueue",
    "LastQueue",
    "work stealing",
    "shared MPMC",
    "batch dequeue",
    "leader/followers",
]
LockName = Literal[
    "TAS",
    "TTAS+backoff",
    "ticket",
    "std mutex",
    "pthread mutex",
    "parking_lot",
    "Anderson",
    "CLH",
    "MCS",
]
Work = Annotated[int, Field(ge=1, le=MOST_WORK)]
Depth = Annotated[int, Field(ge=1, le=MOST_DEPTH)]


class ScalingOptions(StudyOptions):
    """Everything a study file may say; what it does not say depends on `quick` and on `command`.

    The meaning, range and default of each key stand in ``docs/reference/study-file.md``.
    """

    study: Literal["scaling"] = "scaling"
    command: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "Your program, with `{workers}` in the place of its number of workers; by default the packets "
            "program of Steelyard."
        ),
    )
    baseline: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "With `--command`, the serial program to which speed-up is relative; by default the command "
            "with one worker."
        ),
    )
    trials: int | None = Field(default=None, ge=1, le=1000)
    workers: Workers | None = None
    duration_ms: int | None = Field(default=None, ge=1, le=600_000)
    lock_work: tuple[Work, ...] | None = None
    work: tuple[Work, ...] | None = Field(default=None, min_length=1)
    depths: tuple[Depth, ...] | None = Field(default=None, min_length=1)
    loads: tuple[LoadName, ...] = Field(default=("uniform", "exponential"), min_length=1)
    strategies: tuple[StrategyName, ...] | None = Field(default=None, min_length=1)
    locks: tuple[LockName, ...] | None = Field(default=None, min_length=1)
    lock_tests: tuple[LockName, ...] | None = None
    margin_percent: float = Field(default=2.0, gt=0, lt=100)


_EVERY_LOCK: Final = get_args(LockName)

_COMMAND: Final[dict[str, Any]] = {"trials": 11, "workers": "auto", "gate_retries": 1}
"""Eleven trials are the fewest whose interval is guaranteed."""

_QUICK_COMMAND: Final[dict[str, Any]] = {"trials": 5, "workers": "auto", "gate_retries": 0}

_FULL: Final[dict[str, Any]] = {
    "trials": 11,
    "workers": "auto",
    "duration_ms": 2000,
    "lock_work": (25, 50, 100, 200, 400, 800),
    "work": (1000, 2000, 4000, 8000),
    "depths": (8, 32),
    "strategies": get_args(StrategyName),
    "locks": ("pthread mutex", "Anderson"),
    "lock_tests": _EVERY_LOCK,
    "gate_retries": 1,
}
"""The source's experiments, its 11 trials of the exponential load under both, and the further strategies."""

_QUICK: Final[dict[str, Any]] = {
    "trials": 5,
    "workers": "auto",
    "duration_ms": 120,
    "lock_work": (25, 800),
    "work": (1000, 8000),
    "depths": (8, 32),
    "strategies": ("LockFree", "HomeQueue", "Awesome", "work stealing", "shared MPMC", "leader/followers"),
    "locks": ("pthread mutex",),
    "lock_tests": _EVERY_LOCK,
    "gate_retries": 0,
}
"""Below three minutes on two cores."""

_PACKETS_ONLY: Final = ("duration_ms", "lock_work", "work", "depths", "strategies", "locks", "lock_tests")


def settle(options: BaseModel) -> ScalingOptions:
    """Fill in what was left open; ``workers`` = ``"auto"`` stays open for the design.

    Raises
    ------
    UsageError
        If a command has no place for the workers, there is a baseline without a command, or keys of the
        packets program are given together with a command.
    """
    asked = ScalingOptions.model_validate(options.model_dump())
    _check(asked)
    if asked.command is not None:
        defaults = _QUICK_COMMAND if asked.quick else _COMMAND
    else:
        defaults = _QUICK if asked.quick else _FULL
    return asked.model_copy(
        update={name: value for name, value in defaults.items() if getattr(asked, name) is None}
    )


def _check(asked: ScalingOptions) -> None:
    if asked.command is None:
        if asked.baseline is not None:
            message = f"`--baseline {asked.baseline}` needs `--command`, which is missing"
            raise UsageError(message, hint=f"add --command 'prog --threads {WORKERS_PLACE}'")
        return
    if WORKERS_PLACE not in asked.command:
        message = f"`--command {asked.command}` has no place for the number of workers"
        hint = f"write {WORKERS_PLACE} where the number belongs: --command 'prog --threads {WORKERS_PLACE}'"
        raise UsageError(message, hint=hint)
    given = [name for name in _PACKETS_ONLY if getattr(asked, name) is not None]
    if given:
        message = f"`{given[0]}` belongs to the built-in packets program, which `command` replaces"
        raise UsageError(message, hint=f"leave out: {', '.join(given)}")


OPTIONS = ScalingOptions
