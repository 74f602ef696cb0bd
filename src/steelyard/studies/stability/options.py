"""What a study file may say about the stability study."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from steelyard.studies.option_types import StudyOptions, Workers, known_name

SetupType = Literal["single", "parallel-homogenous", "parallel-synth-cpu", "parallel-synth-memcpy"]
AffinityName = Literal["none", "taskset", "taskset-multi", "numa", "noht"]

INPUT_COUNT: Final = 300
"""SOURCE: different inputs per workload in the evaluation this study repeats."""

IsolationName = Annotated[str, known_name("isolation")]
WorkloadName = Annotated[str, known_name("workload")]
CounterName = Annotated[str, known_name("counter")]


class StabilityOptions(StudyOptions):
    """Everything a study file may say; what it does not say depends on `quick`.

    The meaning, range and default of each key stand in ``docs/reference/study-file.md``.
    """

    study: Literal["stability"] = "stability"
    blocks: int | None = Field(default=None, ge=1, le=1000)
    iterations: int | None = Field(default=None, ge=1, le=100_000)
    emulated_iterations: int | None = Field(default=None, ge=1, le=100_000)
    workers: Workers | None = None
    isolation: tuple[IsolationName, ...] | None = Field(default=None, min_length=1)
    setups: tuple[SetupType, ...] | None = Field(default=None, min_length=1)
    affinity: tuple[AffinityName, ...] | None = Field(default=None, min_length=1)
    workloads: tuple[WorkloadName, ...] | None = Field(default=None, min_length=1)
    inputs: int = Field(default=1, ge=1, le=INPUT_COUNT)
    target_iteration_ms: int | None = Field(default=None, ge=1, le=60_000)
    tolerance_percent: float | None = Field(default=None, gt=0, le=100)
    margin_percent: float = Field(default=2.0, gt=0, lt=100)
    counters: tuple[CounterName, ...] | None = None


def settle(options: StabilityOptions) -> StabilityOptions:
    """Fill in what was left open: the defaults of a quick or of a full study.

    What depends on the machine (``isolation``, ``workers`` = ``"auto"``) stays open for the design.
    """
    defaults = _QUICK if options.quick else _FULL
    open_fields = {name: value for name, value in defaults.items() if getattr(options, name) is None}
    settled = options.model_copy(update=open_fields)
    if settled.emulated_iterations is not None:
        return settled
    native = settled.iterations
    fewer = min(native, _QUICK_EMULATED) if options.quick and native is not None else native
    return settled.model_copy(update={"emulated_iterations": fewer})


_FULL: Final[dict[str, Any]] = {
    "blocks": 5,
    "iterations": 20,
    "workers": "auto",
    "setups": ("single", "parallel-homogenous", "parallel-synth-cpu", "parallel-synth-memcpy"),
    "affinity": ("none", "taskset", "taskset-multi", "numa", "noht"),
    "target_iteration_ms": 200,
    "gate_retries": 1,
    "tolerance_percent": 2.0,
    "counters": (
        "page-faults",
        "L1-dcache-loads",
        "L1-dcache-load-misses",
        "L1-dcache-stores",
        "LLC-loads",
        "LLC-load-misses",
        "LLC-stores",
        "LLC-store-misses",
    ),
}
"""100 iterations per worker as in the source, spread over 5 blocks."""

_QUICK_EMULATED: Final = 3
"""Iterations of a quick study in a machine that software emulates, where each takes several times as long;
three in each of five blocks leave as many independent units as anywhere else."""

_QUICK: Final[dict[str, Any]] = {
    "blocks": 5,
    "iterations": 10,
    "workers": (1, 2),
    "setups": ("single", "parallel-homogenous"),
    "affinity": ("none",),
    "gate_retries": 0,
    "workloads": ("exp/exp_float", "bsearch/bsearch", "gray/gray2bin", "sort/insertion_sort"),
    "target_iteration_ms": 40,
    "tolerance_percent": 5.0,
    "counters": (),
}
"""Below three minutes on two quiet cores, a software-emulated machine included.

40 ms are long against the step of every clock (1 ms at worst) and against what a program needs to start;
50 values per worker cannot tell 2 % from 3 %, so the tolerance is wider than that of a full study.
"""


OPTIONS = StabilityOptions


def known_names() -> dict[str, tuple[str, ...]]:
    """Give the names there are of what a study file names."""
    # Loaded here: the other parts of the study ask for the options alone.
    from steelyard._native import counter_names  # noqa: PLC0415
    from steelyard.run.isolation.registry import TECHNOLOGIES  # noqa: PLC0415
    from steelyard.studies.stability.workloads import WORKLOADS  # noqa: PLC0415

    return {
        "isolation": TECHNOLOGIES.names(),
        "workload": tuple(WORKLOADS),
        "counter": tuple(counter_names()),
    }
