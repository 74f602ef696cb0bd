"""What a study file and the command line may say about the colocation study."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, Field
from pydantic.functional_validators import AfterValidator

from steelyard.design.study_file import unknown_name
from steelyard.errors import UsageError
from steelyard.run.guest.virtual_time import instruction_ns
from steelyard.studies.option_types import Flag, StudyOptions

if TYPE_CHECKING:
    from steelyard.model import Plan

EVERY_POLICY: Final = (
    "none",
    "default",
    "nice",
    "weights",
    "idle",
    "cpu-idle",
    "be",
    "be-no-entry",
    "be-no-exit",
    "be-no-local",
    "fifo",
)
"""Policies that have a name; `FOREIGN` and a command is one too."""

FOREIGN: Final = "scx:"
"""Begin of a policy that is any sched_ext scheduler, named by the command that starts it."""


def scheduler_words(name: str) -> list[str]:
    """Give the command of a scheduler that a policy names.

    Raises
    ------
    ValueError
        If it is no command.

    Examples
    --------
    >>> scheduler_words("scx:scx_lavd --performance"), scheduler_words("idle")
    (['scx_lavd', '--performance'], [])
    """
    if not name.startswith(FOREIGN):
        return []
    words = shlex.split(name.removeprefix(FOREIGN))
    if not words:
        message = "allowed: a command, e.g. `scx:scx_lavd --performance`"
        raise ValueError(message)
    return words


def _known_policy(name: str) -> str:
    if name not in EVERY_POLICY and not scheduler_words(name):
        raise unknown_name([*EVERY_POLICY, f"{FOREIGN}COMMAND"])
    return name


def _command(text: str) -> str:
    if not shlex.split(text):
        message = "allowed: a command, e.g. `hackbench -g 2 -l 100`"
        raise ValueError(message)
    return text


PolicyName = Annotated[str, AfterValidator(_known_policy)]
ServiceKind = Literal["pool", "web"]
JobKind = Literal["resize", "spin"]
ArrivalKind = Literal["poisson", "uniform"]
VmTime = Literal["real", "instructions"]

OF_SERVICE: Final = (
    "loads",
    "kind",
    "threads",
    "work_us",
    "long_share",
    "arrivals",
    "connections",
    "closed_loop",
)
"""Options of the service and its requests, whose place the option `client` takes."""

BASELINE: Final = "none"
"""Policy without best-effort jobs: what every other one is compared with."""

MOST_LOAD_PERCENT: Final = 150
MOST_CPUS: Final = 1024

Load = Annotated[int, Field(ge=1, le=MOST_LOAD_PERCENT)]
CpuNumber = Annotated[int, Field(ge=0, lt=1 << 16)]
Milliseconds = Annotated[int, Field(ge=0, le=3_600_000)]


def _percent(word: str) -> int:
    return int(word.removesuffix("%"))


def _cpu_range(word: str) -> tuple[int, ...]:
    """Read a CPU, or a range of them.

    Examples
    --------
    >>> _cpu_range("0-2"), _cpu_range("5")
    ((0, 1, 2), (5,))
    """
    first, _, last = word.partition("-")
    return tuple(range(int(first), int(last or first) + 1))


def read_share(word: str) -> float:
    """Read a share, as a percentage or as a number.

    Examples
    --------
    >>> read_share("2%"), read_share("0.02")
    (0.02, 0.02)
    """
    return float(word.removesuffix("%")) / 100 if word.endswith("%") else float(word)


class ColocationOptions(StudyOptions):
    """Everything a study file may say; what it does not say depends on `quick` and on `in_vm`.

    The meaning, range and default of each key stand in ``docs/reference/study-file.md``.
    """

    study: Literal["colocation"] = "colocation"
    policies: tuple[PolicyName, ...] | None = Field(
        default=None,
        min_length=1,
        description=(
            "Policies, separated by commas: none, default, nice, weights, idle, cpu-idle, be, be-no-entry, "
            "be-no-exit, be-no-local, fifo; scx:COMMAND is any sched_ext scheduler. Those that do not work "
            "here are recorded with the reason."
        ),
    )
    loads: Annotated[
        tuple[Load, ...] | None,
        Flag(read=_percent, allowed="whole numbers separated by commas, e.g. `85,95`"),
    ] = Field(
        default=None,
        min_length=1,
        description="CPU time that the requests alone need [percent of the CPUs], separated by commas.",
    )
    repetitions: Annotated[int | None, Flag(names=("repetitions", "seeds"))] = Field(
        default=None,
        ge=1,
        le=1000,
        description="Trials of each policy and load; each repetition has arrivals of its own.",
    )
    in_vm: bool = Field(
        default=False,
        description=(
            "Run every trial in a virtual machine whose kernel can load a scheduler: in real time where "
            "hardware virtualisation boots one, else emulated."
        ),
    )
    vm_time: VmTime | None = Field(
        default=None,
        description=(
            "Time of that machine: real, by hardware virtualisation, or counted in instructions by an "
            "emulator: the same on every machine."
        ),
    )
    vcpus: int = Field(
        default=2,
        ge=1,
        le=8,
        description="Number of processors of that machine.",
    )
    instruction_ns: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description=(
            "Time that an instruction takes on each of them while all are busy [ns]; default and "
            "minimum: their number. Slower ones are simulated faster, and the kernel's own work weighs "
            "more there."
        ),
    )
    cpus: Annotated[
        tuple[CpuNumber, ...] | None,
        Flag(read=_cpu_range, allowed="numbers and ranges separated by commas, e.g. `0-3`"),
    ] = Field(
        default=None,
        min_length=1,
        description="CPUs that service and best-effort jobs share, separated by commas, such as `0-2,5`.",
    )
    client_cpus: tuple[CpuNumber, ...] | None = Field(default=None, min_length=1)
    client: Annotated[str, AfterValidator(_command)] | None = Field(
        default=None,
        description=(
            "Command that is the load, in the place of service and requests: it is launched again and again, "
            "and a latency is the time of a launch, or what it prints in lines `latency_us NUMBER`."
        ),
    )
    kind: ServiceKind = Field(
        default="pool",
        description="Service of worker threads (pool), or over HTTP with a second tier behind it (web).",
    )
    threads: int | None = Field(default=None, ge=1, le=MOST_CPUS)
    work_us: int = Field(default=6000, ge=10, le=1_000_000)
    long_share: Annotated[
        float, Flag(read=read_share, allowed="a percentage, e.g. `2%`, or a number from 0 to 1")
    ] = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Share of requests that are long, such as `2%`.",
    )
    long_factor: int = Field(default=50, ge=2, le=10_000)
    arrivals: ArrivalKind | None = None
    connections: int = Field(default=16, ge=1, le=4096)
    closed_loop: int = Field(default=0, ge=0, le=4096)
    best_effort: JobKind | None = None
    jobs: int = Field(default=2, ge=1, le=256)
    job_threads: int | None = Field(default=None, ge=1, le=MOST_CPUS)
    warm_up_ms: Milliseconds | None = None
    baseline_ms: Annotated[int, Field(ge=100, le=3_600_000)] | None = None
    best_effort_ms: Annotated[int, Field(ge=100, le=3_600_000)] | None = None
    recovery_ms: Milliseconds | None = None
    drain_limit_ms: Milliseconds | None = None
    tolerance_percent: float = Field(default=10.0, gt=0, le=100)


_FULL: Final[dict[str, Any]] = {
    "policies": EVERY_POLICY,
    "loads": (85, 95, 100),
    "repetitions": 5,
    "arrivals": "uniform",
    "best_effort": "resize",
    "warm_up_ms": 2000,
    "baseline_ms": 9000,
    "best_effort_ms": 19_000,
    "recovery_ms": 2000,
    "drain_limit_ms": 30_000,
    "gate_retries": 0,
}
"""As in the source: the jobs start 11 s after the begin and stop at 30 s."""

_QUICK: Final[dict[str, Any]] = {
    "policies": ("none", "nice", "weights", "idle", "cpu-idle", "be", "fifo"),
    "loads": (85,),
    "repetitions": 2,
    "arrivals": "uniform",
    "best_effort": "resize",
    "warm_up_ms": 500,
    "baseline_ms": 2500,
    "best_effort_ms": 4000,
    "recovery_ms": 1000,
    "drain_limit_ms": 5000,
    "gate_retries": 0,
}
"""About three minutes on two cores."""

_FULL_GUEST: Final[dict[str, Any]] = {
    **_FULL,
    "loads": (50, 70),
    "arrivals": "poisson",
    "best_effort": "spin",
    "warm_up_ms": 4000,
    "baseline_ms": 5000,
    "best_effort_ms": 10_000,
    "recovery_ms": 1000,
    "drain_limit_ms": 10_000,
}
"""A second of the guest takes up to about four seconds of a core. Its processors are slower than real ones,
so that the kernel's own work weighs more: at 85 % little is left of them, as for some seconds after the boot.
Repetitions differ by their arrivals alone, so these are drawn. Scaling an image takes a second there.
"""

_QUICK_GUEST: Final[dict[str, Any]] = {
    **_QUICK,
    "policies": ("none", "weights", "idle", "be", "fifo"),
    "loads": (70,),
    "arrivals": "poisson",
    "best_effort": "spin",
    "warm_up_ms": 4000,
    "baseline_ms": 2000,
    "best_effort_ms": 5000,
}


def settle(options: BaseModel) -> ColocationOptions:
    """Fill in what was left open; ``cpus``, ``client_cpus`` and threads stay open for the design.

    Raises
    ------
    UsageError
        If options contradict each other.
    """
    asked = ColocationOptions.model_validate(options.model_dump())
    _check(asked)
    if is_counted(asked):
        defaults = _QUICK_GUEST if asked.quick else _FULL_GUEST
        defaults = {**defaults, "vm_time": "instructions", "instruction_ns": instruction_ns(asked.vcpus, 1)}
    else:
        defaults = _QUICK if asked.quick else _FULL
    excluded = () if asked.client is None else OF_SERVICE
    return asked.model_copy(
        update={
            name: value
            for name, value in defaults.items()
            if getattr(asked, name) is None and name not in excluded
        }
    )


def is_counted(options: ColocationOptions) -> bool:
    """Whether trials run in a virtual machine whose time is counted in instructions."""
    return options.in_vm and options.vm_time != "real"


def _check(asked: ColocationOptions) -> None:
    if asked.in_vm and (asked.cpus is not None or asked.client_cpus is not None):
        message = "`--cpus` names CPUs of this machine, and `--in-vm` measures inside a virtual one"
        raise UsageError(message, hint="give the number of its processors with --vcpus")
    if asked.instruction_ns is not None:
        _check_clock(asked.instruction_ns, asked)
    for name in ("policies", "loads", "cpus", "client_cpus"):
        values = getattr(asked, name)
        if values is not None and len(set(values)) != len(values):
            twice = next(value for value in values if values.count(value) > 1)
            message = f"`{name}` names `{twice}` twice"
            raise UsageError(message, hint="name each once; --repetitions runs it several times")
    if asked.vm_time is not None and not asked.in_vm:
        message = "`vm_time` is of a virtual machine, and the study measures this one"
        raise UsageError(message, hint="leave it out, or add --in-vm")
    if is_counted(asked) and asked.arrivals == "uniform" and asked.repetitions != 1:
        message = "`arrivals` is `uniform`, and a guest counts its time: every repetition would be the same"
        raise UsageError(message, hint="leave `arrivals` out, or give --repetitions 1")
    if asked.client is not None:
        _check_client(asked)
    if asked.closed_loop and asked.kind == "web":
        message = "`closed_loop` is for the service of kind `pool`, and `kind` is `web`"
        raise UsageError(message, hint="leave one of them out")


def _check_client(asked: ColocationOptions) -> None:
    fields = ColocationOptions.model_fields
    for name in OF_SERVICE:
        if getattr(asked, name) != fields[name].default:
            message = f"`client` is a load of its own, and `{name}` is for Steelyard's service and requests"
            raise UsageError(message, hint="leave one of them out")


def _check_clock(asked_ns: int, asked: ColocationOptions) -> None:
    if not is_counted(asked):
        message = "`instruction_ns` is of a virtual machine whose time is counted in instructions"
        raise UsageError(message, hint="leave it out, or add `--in-vm --vm-time instructions`")
    least_ns = instruction_ns(asked.vcpus, 1)
    if asked_ns < least_ns:
        message = (
            f"`instruction_ns` is {asked_ns}; {asked.vcpus} busy processors take at least {least_ns} each"
        )
        raise UsageError(message, hint="leave it out for the least")


def options_of(plan: Plan) -> ColocationOptions:
    """Give the options a plan was designed from."""
    asked = json.loads(str(plan.options["request"]))
    return settle(ColocationOptions.model_validate(asked, strict=False))


OPTIONS = ColocationOptions
