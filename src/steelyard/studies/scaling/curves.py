"""Curves of speed-up over workers: points with intervals, each with the baseline it was measured against."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.scaling.speedup import Ratio, limits_of, median_of, ratio_of_medians

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from steelyard.studies.scaling.recorded import CellTrials, Recorded

    Vector = NDArray[np.float64]

ONE_WORKER: Final = "one worker of the same program"
SERIAL_WORDS: Final = "the serial program"
STATED: Final = "stated by the file"


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """The speed-up at one number of workers.

    Parameters
    ----------
    workers : int
        Workers.
    cell : CellTrials
        Where it was measured.
    baseline : CellTrials or None
        What it is compared with; ``None`` where a file states the speed-up.
    ratio : Ratio
        Speed-up.
    machine : Ratio or None
        Speed-up of as many threads that share nothing; ``None`` where it was not measured.
    """

    workers: int
    cell: CellTrials
    baseline: CellTrials | None
    ratio: Ratio
    machine: Ratio | None = None

    @property
    def of_machine(self) -> Point | None:
        """The point less the machine's own share: the speed-up times workers over the machine's."""
        if self.machine is None:
            return None
        ratio, scale = self.ratio, self.workers / self.machine.value
        with np.errstate(divide="ignore", invalid="ignore"):
            resampled = self.workers * ratio.resampled / self.machine.resampled
        low, high = limits_of(resampled) if math.isfinite(ratio.low) else (math.nan, math.nan)
        found = replace(ratio, value=scale * ratio.value, low=low, high=high, resampled=resampled)
        return replace(self, ratio=found)

    @property
    def rate(self) -> float:
        """Median rate; NaN where a file states the speed-up alone."""
        return math.nan if self.baseline is None else median_of(self.cell.values)


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Speed-up over workers of one combination of all other factors.

    Parameters
    ----------
    subject : dict
        The combination.
    points : tuple of Point
        By number of workers.
    against : str
        What speed-up is relative to, in words.
    """

    subject: dict[str, str]
    points: tuple[Point, ...]
    against: str

    @property
    def workers(self) -> Vector:
        """Numbers of workers, shape (n,)."""
        return np.array([point.workers for point in self.points], dtype=np.float64)

    @property
    def speedups(self) -> Vector:
        """Speed-ups, shape (n,)."""
        return np.array([point.ratio.value for point in self.points])

    @property
    def resampled(self) -> Vector | None:
        """Speed-ups of each resample, shape (resamples, n); nothing without trials."""
        if any(point.baseline is None or point.ratio.trials < 2 for point in self.points):  # noqa: PLR2004
            return None
        return np.stack([point.ratio.resampled for point in self.points], axis=1)

    @property
    def is_relative_to_machine(self) -> bool:
        """Whether the machine's own speed-up is known at every point."""
        return all(point.machine is not None for point in self.points)

    @property
    def of_machine(self) -> Curve:
        """Give what is left of the machine's own share: each speed-up times workers over the machine's.

        The curve itself where the machine's speed-up is not known at every point.
        """
        parts = [point.of_machine for point in self.points]
        points = tuple(point for point in parts if point is not None)
        return self.part(points) if len(points) == len(self.points) else self

    @property
    def peak(self) -> Point:
        """The point of the largest speed-up, the first of equal ones."""
        return max(self.points, key=lambda point: (point.ratio.value, -point.workers))

    def at(self, workers: int) -> Point | None:
        """Give the point at a number of workers, if there is one."""
        return next((point for point in self.points if point.workers == workers), None)

    def part(self, points: tuple[Point, ...]) -> Curve:
        """Give the curve of some of its points."""
        return Curve(self.subject, points, self.against)


def curves(recorded: Recorded) -> list[Curve]:
    """Give all curves, in order of their first cell."""
    groups: dict[tuple[str, ...], list[CellTrials]] = {}
    measured = [cell for cell in recorded.cells if not cell.is_serial]
    baselines = _Baselines(recorded)
    for cell in (*measured, *recorded.stated):
        groups.setdefault((cell.unit, *cell.identity.values()), []).append(cell)
    found = []
    for members in groups.values():
        points = sorted(_points(members, baselines, recorded), key=lambda point: point.workers)
        if any(point.baseline is not point.cell for point in points):
            found.append(Curve(members[0].identity, tuple(points), baselines.words(members[0])))
    return found


class _Baselines:
    """Which cell a cell's speed-up is relative to."""

    def __init__(self, recorded: Recorded) -> None:
        self._serial = {self._key(cell): cell for cell in recorded.cells if cell.is_serial}
        self._any_serial = {self._load(cell): cell for cell in reversed(self._serial.values())}
        self._first = {tuple(cell.identity.items()): cell for cell in recorded.cells if cell.workers == 1}

    def of(self, cell: CellTrials) -> CellTrials | None:
        """Give the serial program on the same sources, else on the same load, else one worker."""
        return (
            self._serial.get(self._key(cell))
            or self._any_serial.get(self._load(cell))
            or self._first.get(tuple(cell.identity.items()))
        )

    def words(self, cell: CellTrials) -> str:
        """Say what `of` gives."""
        found = self.of(cell)
        if cell.unit == "ratio":
            return STATED
        return SERIAL_WORDS if found is not None and found.is_serial else ONE_WORKER

    @staticmethod
    def _load(cell: CellTrials) -> tuple[str | None, ...]:
        return tuple(cell.levels.get(name) for name in ("load", "mean_work", "duration_ms"))

    def _key(self, cell: CellTrials) -> tuple[str | int | None, ...]:
        return (*self._load(cell), cell.workers)


def _points(members: list[CellTrials], baselines: _Baselines, recorded: Recorded) -> Iterator[Point]:
    for cell in members:
        if cell.unit == "ratio" and cell in recorded.stated:
            value = median_of(cell.values)
            yield Point(cell.workers, cell, None, Ratio(value, math.nan, math.nan, np.empty(0), 1))
            continue
        baseline = baselines.of(cell)
        if baseline is None:
            continue
        ratio = ratio_of_medians(cell.values, baseline.values, recorded.draws)
        if math.isfinite(ratio.value) and ratio.value > 0:
            yield Point(cell.workers, cell, baseline, ratio, recorded.machine_speedup(cell.workers))


def within_cores(curve: Curve, recorded: Recorded) -> tuple[Point, ...]:
    """Give the points with at most one worker per core; all where the cores are unknown.

    Which points to fit must not depend on how they came out.
    """
    return tuple(point for point in curve.points if not recorded.is_oversubscribed(point.workers))


def listed(points: tuple[Point, ...]) -> str:
    """Write the numbers of workers of some points."""
    return ", ".join(str(point.workers) for point in points)
