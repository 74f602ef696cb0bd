"""What a study file and the command line may say about the replication study."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, Field

from steelyard.errors import UsageError
from steelyard.studies.option_types import CLOSED, LimitOptions, StudyOptions
from steelyard.studies.replication.experiments.own_benchmark import OwnBenchmark

if TYPE_CHECKING:
    from collections.abc import Collection

    from steelyard.model import Plan

ExperimentName = Literal["e1", "e2", "e3", "e4", "causes"]
ComparedName = Literal["e1", "e2", "e3", "e4"]
ContainerChoice = Literal["auto", "none", "docker", "podman", "crun"]
PlantedCause = Literal["none", "background", "allocation", "migrations"]

EVERY_EXPERIMENT: Final = get_args(ExperimentName)
FEWEST_BLOCKS: Final = 5
"""Launches of a cell below which an interval between launches says next to nothing."""

MOST_CALLS: Final = 1_000_000_000
MOST_SECONDS: Final = 86_400
MOST_MINUTES: Final = 10_080
SHARE_TOLERANCE: Final = 1e-6
"""Of shares that are typed with a few digits."""

Calls = Annotated[int, Field(ge=100, le=MOST_CALLS)]
Seconds = Annotated[float, Field(gt=0, le=MOST_SECONDS)]
Words = tuple[str, ...]
CpuNumber = Annotated[int, Field(ge=0, lt=1 << 16)]


class MicroOptions(BaseModel):
    """E1: one fork of JMH per launch."""

    model_config = CLOSED

    warm_up_iterations: int | None = Field(default=None, ge=0, le=10_000)
    iterations: int | None = Field(default=None, ge=1, le=10_000)
    iteration_ms: int | None = Field(default=None, ge=10, le=600_000)


class CauseTreeOptions(BaseModel):
    """Causes: one loop of calls per launch.

    Its calls last long enough for what comes a few times in a second to come in every loop.
    """

    model_config = CLOSED

    calls: Calls | None = None
    depth: int = Field(default=10, ge=1, le=1000)
    method_ns: int = Field(default=5000, ge=0, le=1_000_000_000)
    jvm_options: Words = ()


class MonitoringOptions(CauseTreeOptions):
    """E2: one loop of calls per launch; in `calls` those of Java below a probe."""

    method_ns: int = Field(default=0, ge=0, le=1_000_000_000)
    unprobed_calls: Calls | None = None
    python_calls: Calls | None = None
    unprobed_python_calls: Calls | None = None


class LoadOptions(BaseModel):
    """E4: one deployment and load per launch."""

    model_config = CLOSED

    rate_per_s: float | None = Field(default=None, gt=0, le=1_000_000)
    seconds: Seconds | None = None
    warm_up_seconds: Annotated[float, Field(ge=0, le=MOST_SECONDS)] | None = None
    connections: int = Field(default=16, ge=1, le=4096)
    rows: int | None = Field(default=None, ge=1, le=100_000_000)


class ServiceOptions(LoadOptions):
    """E3: the same, with a mix of operations."""

    mix: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        default={"create": 0.1, "read": 0.6, "update": 0.2, "list": 0.1}
    )


class InterventionOptions(BaseModel):
    """A user's own intervention of the cause tree: what is changed of the program as it is."""

    model_config = CLOSED

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")
    sentence: str = Field(min_length=1, max_length=300)
    depth: int | None = Field(default=None, ge=1, le=1000)
    method_ns: int | None = Field(default=None, ge=0, le=1_000_000_000)
    jvm_options: Words | None = None
    app_options: Words | None = None
    cpus: tuple[CpuNumber, ...] | None = Field(default=None, min_length=1)
    nice: int | None = Field(default=None, ge=-20, le=19)

    def change(self) -> dict[str, Any]:
        """Give the parameters that it changes, by name."""
        return self.model_dump(mode="json", exclude={"name", "sentence"}, exclude_none=True)


class ReplicationOptions(StudyOptions):
    """Everything a study file may say; what it does not say depends on `quick`.

    The meaning, range and default of each key stand in ``docs/reference/study-file.md``.
    """

    study: Literal["replication"] = "replication"
    experiments: tuple[ExperimentName, ...] | None = Field(
        default=None,
        min_length=1,
        description=(
            "Experiments, separated by commas: e1 (JMH), e2 (overhead of monitoring), e3 (web service), e4 "
            "(macro benchmark), causes (cause tree). By default all; with `--quick` e1, e2, e3 and "
            "causes."
        ),
    )
    configurations: Words | None = Field(
        default=None,
        min_length=1,
        description=(
            "Configurations to measure, separated by commas; `steelyard plan replication` lists them."
        ),
    )
    settings: Words | None = Field(default=None, min_length=1)
    devices: str | None = Field(
        default=None,
        min_length=1,
        description="TOML device file; by default this host, and two parts of it as devices.",
    )
    placement: dict[str, str] = Field(default_factory=dict)
    containers: ContainerChoice = Field(
        default="auto",
        description="Container technology: auto (the first that works), none, docker, podman or crun.",
    )
    causes: Words | None = Field(
        default=None,
        min_length=1,
        description="Interventions of the cause tree, separated by commas, in their order; all by default.",
    )
    interventions: tuple[InterventionOptions, ...] = ()
    planted: PlantedCause = Field(
        default="none",
        description="A cause planted into the cause tree: none, background, allocation or migrations.",
    )
    blocks: int | None = Field(default=None, ge=FEWEST_BLOCKS, le=1000)
    budget_minutes: float | None = Field(default=None, gt=0, le=MOST_MINUTES)
    e1: MicroOptions = MicroOptions()
    e2: MonitoringOptions = MonitoringOptions()
    e3: ServiceOptions = ServiceOptions()
    e4: LoadOptions = LoadOptions()
    own_benchmark: OwnBenchmark = OwnBenchmark()
    cause_tree: CauseTreeOptions = CauseTreeOptions()
    margin_percent: float = Field(default=5.0, gt=0, lt=100)
    margins: dict[ComparedName, Annotated[float, Field(gt=0, lt=100)]] | None = None
    lessons: Words = ()
    licences: Words = ()
    limits: LimitOptions = LimitOptions(wall_time_s=7200.0)


_AS_IN_SOURCE: Final = {
    "calls": 2_000_000,
    "python_calls": 2_000_000,
    "unprobed_calls": 2_000_000,
    "unprobed_python_calls": 2_000_000,
}

_FULL: Final[dict[str, Any]] = {
    "experiments": EVERY_EXPERIMENT,
    "blocks": 10,
    "gate_retries": 0,
    "e1": {"warm_up_iterations": 5, "iterations": 5, "iteration_ms": 1000},
    "e2": _AS_IN_SOURCE,
    "e3": {"rate_per_s": 200.0, "seconds": 60.0, "warm_up_seconds": 30.0, "rows": 10_000},
    "e4": {"rate_per_s": 100.0, "seconds": 60.0, "warm_up_seconds": 30.0, "rows": 10_000},
    "cause_tree": {"calls": 2_000_000},
}
"""As in the source: 2 000 000 calls in each of 10 loops."""

_QUICK: Final[dict[str, Any]] = {
    "experiments": ("e1", "e2", "e3", "causes"),
    "blocks": 40,
    "budget_minutes": 13.0,
    "margins": {"e2": 10.0, "e3": 20.0},
    "gate_retries": 0,
    "e1": {"warm_up_iterations": 2, "iterations": 4, "iteration_ms": 250},
    "e2": {
        "calls": 60_000,
        "python_calls": 6_000,
        "unprobed_calls": 1_000_000,
        "unprobed_python_calls": 100_000,
    },
    "e3": {"rate_per_s": 40.0, "seconds": 5.0, "warm_up_seconds": 4.0, "rows": 1000},
    "e4": {"rate_per_s": 40.0, "seconds": 6.0, "warm_up_seconds": 6.0, "rows": 1000},
    "cause_tree": {"calls": 600_000},
}
"""A quarter of an hour on two cores, with what precedes and follows the runs. Short launches differ more than
long ones, most of all those of a service: e2 and e3 have wider margins than what is asked of a night."""

_QUICK_CAUSES: Final = ("object-pools", "one-core", "no-recursion")
"""Interventions of a quick study that plants nothing, besides those of the user."""


def settle(options: BaseModel) -> ReplicationOptions:
    """Fill in what was left open.

    Raises
    ------
    UsageError
        If a list names something twice, or the mix of operations is none.
    """
    asked = ReplicationOptions.model_validate(options.model_dump())
    _check(asked)
    update: dict[str, Any] = {}
    if asked.quick and asked.causes is None and asked.planted == "none":
        update["causes"] = (*_QUICK_CAUSES, *(each.name for each in asked.interventions))
    for name, default in (_QUICK if asked.quick else _FULL).items():
        value = getattr(asked, name)
        if value is None:
            update[name] = default
        elif isinstance(value, BaseModel):
            left_open = {key: each for key, each in default.items() if getattr(value, key) is None}
            update[name] = value.model_copy(update=left_open)
    return asked.model_copy(update=update)


def _check(asked: ReplicationOptions) -> None:
    for name in ("experiments", "configurations", "settings", "causes"):
        _require_once(name, getattr(asked, name) or ())
    _require_once("interventions", [each.name for each in asked.interventions])
    total = sum(asked.e3.mix.values())
    if abs(total - 1) > SHARE_TOLERANCE:
        message = f"the shares of `e3.mix` sum to {total:g}; allowed: shares that sum to 1"
        raise UsageError(message, hint="mix = { create = 0.1, read = 0.6, update = 0.2, list = 0.1 }")


def _require_once(name: str, values: Collection[str]) -> None:
    if len(set(values)) != len(values):
        twice = next(value for value in values if list(values).count(value) > 1)
        message = f"`{name}` names `{twice}` twice"
        raise UsageError(message, hint="name each once; each runs in every block")


def options_of(plan: Plan) -> ReplicationOptions:
    """Give the options a plan was designed from."""
    asked = json.loads(str(plan.options["request"]))
    return settle(ReplicationOptions.model_validate(asked, strict=False))


OPTIONS = ReplicationOptions
