"""Two results of the scaling study side by side: their curves, number of workers by number of workers."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from steelyard.analyse.comparison.equivalence import Margin, ratio_test
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS
from steelyard.analyse.scaling.speedup import median_of
from steelyard.errors import UsageError
from steelyard.record.provenance import host_id_of
from steelyard.studies.analysis_options import read_options
from steelyard.studies.scaling.curves import curves
from steelyard.studies.scaling.findings.strategy import contender_of
from steelyard.studies.scaling.recorded import read_recorded
from steelyard.studies.study_plan import plan_of_study

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.analyse.comparison.equivalence import RatioTest
    from steelyard.studies.scaling.curves import Point

    Vector = NDArray[np.float64]
    Key = tuple[tuple[str, str], ...]
    Side = dict[tuple[Key, int], Point]

STUDY: Final = "scaling"
SPEEDUP: Final = "speed-up"
RATE: Final = "rate"
HIGHER: Final = "higher"
LOWER: Final = "lower"
EQUAL: Final = "equal within the margin"
UNDECIDED: Final = "undecided"
LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True)
class PointComparison:
    """One number of workers of one curve in both results.

    Parameters
    ----------
    curve : dict
        What tells the curve from others.
    workers : int
        Workers.
    quantity : str
        `SPEEDUP` or `RATE`.
    first, second : float
        Medians of both results.
    ratio, low, high : float
        Second over first with its interval, which holds for all comparisons together; NaN without trials.
    trials : tuple of int
        Trials of both.
    answer : str
        `HIGHER`, `LOWER`, `EQUAL` or `UNDECIDED`.
    """

    curve: dict[str, str]
    workers: int
    quantity: str
    first: float
    second: float
    ratio: float
    low: float
    high: float
    trials: tuple[int, int]
    answer: str


@dataclass(frozen=True, slots=True)
class CurveComparison:
    """Two results.

    Parameters
    ----------
    points : tuple of PointComparison
        What both have.
    alone : tuple of str
        What one of them has.
    margin : float
        Largest relative difference that counts as none.
    """

    points: tuple[PointComparison, ...]
    alone: tuple[str, ...]
    margin: float

    @property
    def is_slower(self) -> bool:
        """Whether a speed-up or a rate is lower, surely and by more than the margin."""
        return any(point.answer == LOWER for point in self.points)

    @property
    def differs(self) -> bool:
        """Whether one is lower or higher, surely and by more than the margin."""
        return any(point.answer in {LOWER, HIGHER} for point in self.points)

    @property
    def is_undecided(self) -> bool:
        """Whether one is neither different nor equal, or is in one result alone."""
        return bool(self.alone) or any(point.answer == UNDECIDED for point in self.points)

    def document(self) -> dict[str, Any]:
        """Give it as JSON values."""
        points = [asdict(point) for point in self.points]
        for point in points:
            point.update(
                {
                    name: value if math.isfinite(value) else None
                    for name, value in point.items()
                    if isinstance(value, float)
                }
            )
        return {
            "schema": "steelyard/scaling-differences/1",
            "differs": self.differs,
            "margin": self.margin,
            "level": LEVEL,
            "points": points,
            "alone": list(self.alone),
        }

    def lines(self) -> Iterator[str]:
        """Give it as text."""
        counts = ", ".join(
            f"{sum(point.answer == answer for point in self.points)} {answer}"
            for answer in (LOWER, HIGHER, EQUAL, UNDECIDED)
        )
        yield f"Curves within {100 * self.margin:g} %, {100 * LEVEL:g} % certain of all: {counts}"
        said = None
        for point in self.points:
            name = f"{_name(point.curve)}{point.quantity}"
            if name != said:
                yield name
                said = name
            interval = f" [{point.low:.3g}, {point.high:.3g}]" if math.isfinite(point.low) else ""
            yield (
                f"  {point.workers:>4} {'worker ' if point.workers == 1 else 'workers'} {point.first:.4g} -> "
                f"{point.second:.4g}, ratio {point.ratio:.4g}{interval}, {point.trials[0]} and "
                f"{point.trials[1]} trials: {point.answer}"
            )
        for text in self.alone:
            yield f"not compared: {text}"


def compare_folders(first: Path, second: Path, margin: float | None = None) -> CurveComparison:
    """Compare two results of the scaling study.

    Speed-ups are compared wherever they were measured; rates only where both results are of one host, since
    those of two differ anyway. Each ratio has Welch's interval on the logarithms of the trials, at a level
    that is corrected for the number of comparisons (Bonferroni).

    Parameters
    ----------
    first, second : Path
        Result folders.
    margin : float or None
        Largest relative difference that counts as none; ``None`` takes that of the first result.

    Raises
    ------
    DataError
        If a folder is of another study, or damaged.
    UsageError
        If they have no curve in common.
    """
    one, other = (_points(folder) for folder in (first, second))
    allowed = _margin(first) if margin is None else margin
    if one.keys().isdisjoint(other):
        message = f"`{first}` and `{second}` have no curve with a common number of workers"
        raise UsageError(message, hint="measure the same program with the same numbers of workers")
    hosts = [host_id_of(folder) for folder in (first, second)]
    return compare_points(one, other, allowed, with_rates=bool(hosts[0]) and hosts[0] == hosts[1])


def compare_points(first: Side, second: Side, margin: float, *, with_rates: bool) -> CurveComparison:
    """Compare the points of two results."""
    common = [key for key in first if key in second]
    pairs = [
        (key, quantity)
        for quantity in (SPEEDUP, *((RATE,) if with_rates else ()))
        for key in common
        if (first[key].baseline is not first[key].cell if quantity == SPEEDUP else first[key].baseline)
    ]
    terms = Margin(margin, 1 - (1 - LEVEL) / max(len(pairs), 1))
    points = tuple(
        _compared(key, quantity, (values_of(first[key], quantity), values_of(second[key], quantity)), terms)
        for key, quantity in pairs
    )
    return CurveComparison(points, tuple(_alone((first, second))), margin)


def values_of(point: Point, quantity: str) -> Vector:
    """Give the speed-up, or the rate, of each trial; a speed-up is relative to the baseline of its block."""
    if quantity == RATE or point.baseline is None:
        return point.cell.values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(point.cell.values / point.baseline.values)


def _points(folder: Path) -> Side:
    plan = plan_of_study(folder, STUDY)
    recorded = read_recorded(folder, plan, read_options(folder, plan).resamples)
    return {
        (tuple(curve.subject.items()), point.workers): point
        for curve in curves(recorded)
        for point in curve.points
    }


def _margin(folder: Path) -> float:
    return read_options(folder, plan_of_study(folder, STUDY)).margin_percent / 100


def _compared(
    key: tuple[Key, int], quantity: str, sides: tuple[Vector, Vector], terms: Margin
) -> PointComparison:
    curve, workers = key
    test = ratio_test(*sides, terms)
    one, other = (median_of(side) for side in sides)
    interval = (test.ratio, test.low, test.high)
    answer = _answer(test, terms)
    return PointComparison(dict(curve), workers, quantity, one, other, *interval, test.units, answer)


def _answer(test: RatioTest, terms: Margin) -> str:
    if min(test.units) < FEWEST_UNITS or not math.isfinite(test.low):
        return UNDECIDED
    least, most = 1 / (1 + terms.relative), 1 + terms.relative
    if least <= test.low and test.high <= most:
        return EQUAL
    return HIGHER if test.low > most else LOWER if test.high < least else UNDECIDED


def _alone(sides: Sequence[Side]) -> Iterator[str]:
    for side, other, which in ((sides[0], sides[1], "first"), (sides[1], sides[0], "second")):
        for curve, workers in side:
            if (curve, workers) not in other:
                yield f"{_name(dict(curve))}workers {workers} are only in the {which} result"


def _name(curve: dict[str, str]) -> str:
    if "strategy" not in curve:
        return ""
    where = f"{curve['load']} load, W = {curve['mean_work']}, depth {curve['depth']}"
    return f"{contender_of(curve)}, {where}: "
