"""The workloads of the stability study: what is run, on which input, with which answer."""

from __future__ import annotations

import functools
import hashlib
import subprocess
from dataclasses import dataclass
from typing import Final

from steelyard.errors import RunError, UsageError
from steelyard.run.executor.neighbour_programs import neighbour_command
from steelyard.studies.stability.workload import Growth, Language, Readiness, Scale, Workload
from steelyard.units import NS_PER_MS

__all__ = [
    "INPUT_COUNT",
    "SOURCE_NAMES",
    "WORKLOADS",
    "Input",
    "Language",
    "Readiness",
    "Scale",
    "Workload",
    "calibrate",
    "expected_output",
    "inputs",
    "neighbour_command",
    "workload",
]

INPUT_COUNT: Final = 300
"""Different inputs per workload for the question of input dependence, as in the published study."""

_LAUNCH_TIMEOUT_S: Final = 300.0
_CALIBRATION_LAUNCHES: Final = 3
_CALIBRATION_ATTEMPTS: Final = 4
_CALIBRATION_TOLERANCE_RATIO: Final = 0.05


@dataclass(frozen=True, slots=True)
class Input:
    """One generated input.

    Parameters
    ----------
    label : str
        Level of the factor `input`.
    seed : int
        Seed of the generator, 0 to 2^64 - 1.
    """

    label: str
    seed: int


_QUICK: Final = {
    Language.NATIVE: {
        "exp_float": Scale(8192, 49152),
        "exp_double": Scale(8192, 49152),
        "bsearch": Scale(65536, 480000),
        "gray2bin": Scale(262144, 3145728),
        "insertion_sort": Scale(24000),
        "qsort": Scale(600000),
    },
    Language.C: {
        "exp_float": Scale(8192, 12288),
        "exp_double": Scale(8192, 12288),
        "bsearch": Scale(65536, 330000),
        "gray2bin": Scale(262144, 1310720),
        "insertion_sort": Scale(9800),
        "qsort": Scale(430000),
    },
}
"""About 40 ms of CPU time on a server processor of 2021.

Inputs are no larger than the published ones, where operations can make the work longer: a program that
generates and checks a large input is busy outside its own clock.
"""


def _kernels(prefixes: dict[str, str], language: Language) -> list[Workload]:
    operations, square, size_log_size = Growth.OPERATIONS, Growth.SQUARE, Growth.SIZE_LOG_SIZE
    kernels = [
        ("exp_float", Scale(65536, 65536), operations),
        ("exp_double", Scale(65536, 65536), operations),
        ("bsearch", Scale(65536, 1048576), operations),
        ("gray2bin", Scale(1048576, 1048576), operations),
        ("insertion_sort", Scale(16384), square),
        ("qsort", Scale(1048576), size_log_size),
    ]
    quick = _QUICK[language]
    return [
        Workload(f"{prefixes[kernel]}/{kernel}", kernel, language, published, quick[kernel], growth)
        for kernel, published, growth in kernels
    ]


_GROUPS: Final = {
    "exp_float": "exp",
    "exp_double": "exp",
    "bsearch": "bsearch",
    "gray2bin": "gray",
    "insertion_sort": "sort",
    "qsort": "sort",
}

_ALL: Final = (
    *_kernels(_GROUPS, Language.NATIVE),
    Workload("sort/qsort.py", "qsort", Language.PYTHON, Scale(131072), Scale(40000), Growth.SIZE_LOG_SIZE),
    Workload(
        "sort/qsort_java.sh", "qsort", Language.JAVA, Scale(131072), Scale(480000), Growth.SIZE_LOG_SIZE
    ),
    *_kernels(dict.fromkeys(_GROUPS, "c"), Language.C),
)

WORKLOADS: Final[dict[str, Workload]] = {entry.name: entry for entry in _ALL}
"""All workloads by name; those below ``c/`` are the kernels compiled from C without optimisation."""

SOURCE_NAMES: Final = tuple(name for name in WORKLOADS if not name.startswith("c/"))
"""The names of the published study, in its order."""


def workload(name: str) -> Workload:
    """Give a workload by name.

    Raises
    ------
    UsageError
        With the known names.
    """
    try:
        return WORKLOADS[name]
    except KeyError as error:
        known = ", ".join(f"`{each}`" for each in WORKLOADS)
        message = f"`{name}` is not a workload; known: {known}"
        raise UsageError(message, code="usage.workload") from error


def inputs(study_seed: int, of: Workload, scale: Scale, count: int = 1) -> tuple[Input, ...]:
    """Give the first inputs of a workload; the same kernel has the same inputs in every language.

    Parameters
    ----------
    study_seed : int
        The seed of the plan.
    of : Workload
        The workload.
    scale : Scale
        Its scale, which names the inputs.
    count : int
        Number of inputs, 1 to `INPUT_COUNT`.

    Returns
    -------
    tuple of Input
        The first one carries the label of the scale alone, the others their number behind it.

    Examples
    --------
    >>> [each.label for each in inputs(1, workload("sort/qsort"), Scale(1048576), 3)]
    ['1048576', '1048576#1', '1048576#2']
    """
    if not 1 <= count <= INPUT_COUNT:
        message = f"{count} inputs are asked for; allowed: 1 to {INPUT_COUNT}"
        raise UsageError(message, code="usage.inputs")
    labels = [scale.label, *(f"{scale.label}#{number}" for number in range(1, count))]
    return tuple(Input(label, _seed_of(study_seed, of.kernel, k)) for k, label in enumerate(labels))


def _seed_of(study_seed: int, kernel: str, number: int) -> int:
    """First eight bytes, big-endian, of a SHA-256 over the names: no seed depends on another one."""
    text = f"steelyard/stability/input/{study_seed}/{kernel}/{number}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


@functools.cache
def expected_output(kernel: str, scale: Scale, seed: int) -> str:
    """Give the checksum a workload must print, computed by the native program.

    The native program checks its result by another algorithm than the one that computed it, so
    this is an answer and no mere echo.

    Parameters
    ----------
    kernel : str
        `Workload.kernel`.
    scale : Scale
        Size and operations.
    seed : int
        Seed of the input.

    Returns
    -------
    str
        Sixteen hexadecimal digits.
    """
    native = next(each for each in _ALL if each.kernel == kernel and each.language is Language.NATIVE)
    return _execute(native.host_command(scale, seed)).strip()


def calibrate(
    of: Workload,
    target_ms: int,
    *,
    start: Scale | None = None,
    tolerance_ratio: float = _CALIBRATION_TOLERANCE_RATIO,
    seed: int = 1,
) -> Scale:
    """Search the scale at which an iteration takes a given CPU time on this host.

    Each attempt takes the shortest of a few launches, since disturbances only add time.

    Parameters
    ----------
    of : Workload
        The workload.
    target_ms : int
        Wanted CPU time of an iteration [ms]; 100 to 500 is sensible.
    start : Scale or None
        Where to begin; the published scale by default.
    tolerance_ratio : float
        A scale whose time is this close to the target, relative to it, is kept.
    seed : int
        Seed of the input.

    Returns
    -------
    Scale
        Within the tolerance where the program's time grows as its kind says.
    """
    scale = of.published if start is None else start
    for _ in range(_CALIBRATION_ATTEMPTS):
        taken_ns = max(_shortest_ns(of, scale, seed), 1)
        ratio = target_ms * NS_PER_MS / taken_ns
        if abs(taken_ns / (target_ms * NS_PER_MS) - 1) <= tolerance_ratio:
            break
        following = of.scaled(scale, min(max(ratio, 1e-3), 1e3))
        if following == scale:
            break
        scale = following
    return scale


def _shortest_ns(of: Workload, scale: Scale, seed: int) -> float:
    command = (*of.host_command(scale, seed), "--metrics-stdout")
    return min(_own_cpu_ns(_execute(command)) for _ in range(_CALIBRATION_LAUNCHES))


def _own_cpu_ns(output: str) -> float:
    for line in output.splitlines():
        words = line.split()
        if words[:2] == ["#steelyard", "cpu"]:
            return float(words[2])
    message = f"a workload reported no CPU time; it wrote: {output[:200]!r}"
    raise RunError(message, code="run.workload")


def _execute(command: tuple[str, ...]) -> str:
    try:
        answer = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=_LAUNCH_TIMEOUT_S, env={}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        message = f"cannot run `{' '.join(command)}`: {error}"
        raise RunError(message, code="run.workload") from error
    if answer.returncode != 0:
        message = f"`{' '.join(command)}` ended with {answer.returncode}: {answer.stderr.strip()[-500:]}"
        raise RunError(message, code="run.workload")
    return answer.stdout
