"""What a study file may say about the stability study."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationInfo
from pydantic.functional_validators import AfterValidator, BeforeValidator

from steelyard.design.study_file import require_known
from steelyard.model import Limits
from steelyard.units import NS_PER_S

SetupType = Literal["single", "parallel-homogenous", "parallel-synth-cpu", "parallel-synth-memcpy"]
AffinityName = Literal["none", "taskset", "taskset-multi", "numa", "noht"]
GatePolicy = Literal["record", "strict"]

BYTES_PER_MIB: Final = 1 << 20
MOST_WORKERS: Final = 1024
MOST_RETRIES: Final = 10
INPUT_COUNT: Final = 300
"""SOURCE: different inputs per workload in the evaluation this study repeats."""

_CLOSED: Final = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _known(kind: str) -> AfterValidator:
    def check(name: str, info: ValidationInfo) -> str:
        return require_known(kind, name, info)

    return AfterValidator(check)


def _list_or_auto(value: object) -> object:
    if value == "auto" or isinstance(value, tuple):
        return value
    message = 'allowed: "auto" or a list of whole numbers'
    raise ValueError(message)


def _choice(value: object) -> str:
    return "auto" if isinstance(value, str) else "list"


IsolationName = Annotated[str, _known("isolation")]
WorkloadName = Annotated[str, _known("workload")]
TuningName = Annotated[str, _known("tuning")]
CounterName = Annotated[str, _known("counter")]
WorkerCount = Annotated[int, Field(ge=1, le=MOST_WORKERS)]
Workers = Annotated[
    Annotated[Literal["auto"], Tag("auto")]
    | Annotated[tuple[WorkerCount, ...], Field(min_length=1), Tag("list")],
    Discriminator(_choice),
    BeforeValidator(_list_or_auto),
]


class LimitOptions(BaseModel):
    """Bounds of each run; a run that reaches one is ended and says so in its status."""

    model_config = _CLOSED

    cpu_time_s: float | None = Field(default=None, gt=0, le=86_400)
    wall_time_s: float | None = Field(default=600.0, gt=0, le=86_400)
    memory_mib: int | None = Field(default=None, ge=1, le=1 << 30)
    process_count: int | None = Field(default=None, ge=1, le=1 << 22)
    file_size_mib: int | None = Field(default=None, ge=0, le=1 << 30)
    output_mib: int | None = Field(default=None, ge=0, le=1 << 20)

    def limits(self) -> Limits:
        """Give the limits in ns and bytes."""
        return Limits(
            cpu_time_ns=_scaled(self.cpu_time_s, NS_PER_S),
            wall_time_ns=_scaled(self.wall_time_s, NS_PER_S),
            memory_bytes=_scaled(self.memory_mib, BYTES_PER_MIB),
            process_count=self.process_count,
            file_size_bytes=_scaled(self.file_size_mib, BYTES_PER_MIB),
            output_bytes=_scaled(self.output_mib, BYTES_PER_MIB),
        )


def _scaled(value: float | None, size: int) -> int | None:
    return None if value is None else round(value * size)


class StabilityOptions(BaseModel):
    """Everything a study file may say; what it does not say depends on `quick`.

    The meaning, range and default of each key stand in ``docs/reference/study-file.md``.
    """

    model_config = _CLOSED

    study: Literal["stability"] = "stability"
    seed: int = Field(default=1, ge=0, le=2**63 - 1)
    quick: bool = False
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
    limits: LimitOptions = LimitOptions()
    gate: GatePolicy = "record"
    gate_retries: int | None = Field(default=None, ge=0, le=MOST_RETRIES)
    tuning: tuple[TuningName, ...] = ()
    out: str | None = Field(default=None, min_length=1)


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
