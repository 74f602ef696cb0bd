"""The runs of a comparison in memory, and the sample of each command."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.bootstrap import MAD_SCALE
from steelyard.analyse.intervals.describe import mad, mean, quantile, standard_deviation
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS
from steelyard.model.run_outcome import PADDING, RANDOMISED
from steelyard.studies.comparison.terms import MEASURE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.model import RunOutcome

SLOW_FIRST: Final = 1.5
"""How many times as long as usual a first run must take to be spoken of: own choice."""
OUTLIER_MADS: Final = 10
"""A run beyond so many median absolute deviations above the median is labelled, and stays."""

REPORTED: Final = "reported"
"""Name under which the value that the harness of a benchmark reports is recorded."""

RUN_COLUMNS: Final = (
    "block",
    "position",
    "phase",
    "status",
    "exit_code",
    "wall_ns",
    "cpu_ns",
    "cpu_user_ns",
    "cpu_system_ns",
    "peak_memory_bytes",
)
"""What the table of runs and a run here have under the same name."""


@dataclass(slots=True)
class Run:
    """One run.

    Parameters
    ----------
    contender : int
        Number of the command.
    block, position : int
        Block, and place in the order of execution, from 0.
    phase : str
        ``warmup`` or ``measure``.
    status : str
        How it ended.
    exit_code : int or None
        When the program chose one.
    wall_ns, cpu_ns, peak_memory_bytes : int or None
        ``None`` where it could not be measured.
    flags : list of str
        Remarks; nothing is removed because of one.
    cpu_user_ns, cpu_system_ns : int or None
        What the CPU time consists of.
    reported_ns : float or None
        What the harness of a benchmark reports, where one does.
    start_ns, end_ns : int or None
        exec and exit, monotonic clock [ns].
    environment_padding_bytes : int or None
        Added to the environment, where the layout was drawn.
    randomised_addresses : bool or None
        Whether the kernel drew the addresses, where the layout was drawn.
    """

    contender: int
    block: int
    position: int
    phase: str
    status: str
    exit_code: int | None
    wall_ns: int | None
    cpu_ns: int | None
    peak_memory_bytes: int | None
    flags: list[str] = field(default_factory=list)
    cpu_user_ns: int | None = None
    cpu_system_ns: int | None = None
    reported_ns: float | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    environment_padding_bytes: int | None = None
    randomised_addresses: bool | None = None

    @classmethod
    def of(cls, outcome: RunOutcome, place: tuple[int, int, int], phase: str) -> Run:
        """Give the run of an outcome, at its place: contender, block, position."""
        is_drawn = PADDING in outcome.quantities
        return cls(
            *place,
            phase,
            outcome.status,
            outcome.exit_code,
            wall_ns=outcome.value("wall_ns"),
            cpu_ns=outcome.value("cpu_ns"),
            peak_memory_bytes=outcome.value("peak_memory_bytes"),
            flags=list(outcome.flags),
            cpu_user_ns=outcome.value("cpu_user_ns"),
            cpu_system_ns=outcome.value("cpu_system_ns"),
            reported_ns=next((each.value for each in outcome.own if each.metric == REPORTED), None),
            start_ns=outcome.start_ns,
            end_ns=outcome.end_ns,
            environment_padding_bytes=outcome.value(PADDING) if is_drawn else None,
            randomised_addresses=bool(outcome.value(RANDOMISED)) if is_drawn else None,
        )


def values_of(runs: Sequence[Run], contender: int, quantity: str) -> tuple[NDArray[np.float64], list[Run]]:
    """Give the measured values of a command, in order, with their runs; warm-up does not count."""
    measured = [run for run in runs if run.contender == contender and run.phase == MEASURE]
    found = [(value, run) for run in measured if (value := getattr(run, quantity)) is not None]
    return np.array([value for value, _ in found], dtype=np.float64), [run for _, run in found]


@dataclass(frozen=True, slots=True)
class Summary:
    """One command's measured runs, described.

    Parameters
    ----------
    count : int
        Runs with a value.
    median, mean, sd, least, most : float
        In the unit of the metric; NaN without runs.
    spread : float
        Scaled median absolute deviation over the median.
    flags : dict
        Runs by remark.
    outliers : int
        Runs beyond `OUTLIER_MADS`; they count like any other.
    user_ns, system_ns : float
        Mean CPU time in the program and in the kernel for it [ns]; NaN where it was not measured.
    """

    count: int
    median: float
    mean: float
    sd: float
    least: float
    most: float
    spread: float
    flags: dict[str, int]
    outliers: int
    user_ns: float = np.nan
    system_ns: float = np.nan


def is_outlier(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Label values beyond the median by more than `OUTLIER_MADS` median absolute deviations."""
    distance = mad(values) / MAD_SCALE
    return values > quantile(values, 0.5) + OUTLIER_MADS * distance


def summarise(values: NDArray[np.float64], runs: Sequence[Run]) -> Summary:
    """Describe the runs of one command."""
    flags: dict[str, int] = {}
    for run in runs:
        for flag in run.flags:
            flags[flag] = flags.get(flag, 0) + 1
    median = quantile(values, 0.5)
    size = values.size
    return Summary(
        count=size,
        median=median,
        mean=mean(values),
        sd=standard_deviation(values),
        least=float(values.min()) if size else np.nan,
        most=float(values.max()) if size else np.nan,
        spread=mad(values) / median if size and median > 0 else np.nan,
        flags=dict(sorted(flags.items())),
        outliers=int(is_outlier(values).sum()) if size else 0,
        user_ns=_mean_of(runs, "cpu_user_ns"),
        system_ns=_mean_of(runs, "cpu_system_ns"),
    )


def _mean_of(runs: Sequence[Run], quantity: str) -> float:
    known = [value for run in runs if (value := getattr(run, quantity)) is not None]
    return mean(np.array(known, dtype=np.float64)) if known else np.nan


def slow_first_run(runs: Sequence[Run], contender: int) -> tuple[float, float, bool] | None:
    """Give the wall time of the first run of a command where it stands apart from all others.

    Parameters
    ----------
    runs : sequence of Run
        Of all commands in order of execution, warm-up included.
    contender : int
        Number of the command.

    Returns
    -------
    tuple or None
        Time of the first run and median of the others [ns], and whether the first one counts (was no
        warm-up); ``None`` where it is not longer than all others, beyond `OUTLIER_MADS` and half as long
        again, or where there are fewer than 5 others.
    """
    of_command = [run for run in runs if run.contender == contender and run.wall_ns]
    if len(of_command) <= FEWEST_UNITS:
        return None
    first, others = of_command[0], np.array([run.wall_ns for run in of_command[1:]], dtype=np.float64)
    longest, usual = float(first.wall_ns or 0), quantile(others, 0.5)
    is_apart = longest > max(float(others.max()), SLOW_FIRST * usual)
    if not is_apart or longest <= usual + OUTLIER_MADS * mad(others) / MAD_SCALE:
        return None
    return longest, usual, first.phase == MEASURE
