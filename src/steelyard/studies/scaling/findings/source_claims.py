"""What the write-up of the published data says, computed again from the data.

SOURCE: A. Miller, CMSC 23010 HW3b write-up, 29 May 2021 (University of Chicago). Claims are checked where
the imported files are the very ones the write-up describes, known by their hashes. A printed number agrees
if it is the computed one with further digits rounded or cut off: the write-up does both.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.scaling.speedup import fit_slope, median_of, shy_percent
from steelyard.studies.analysis_parts import finding
from steelyard.studies.scaling.findings.estimates import NO_TRIALS, number, of_trials
from steelyard.studies.scaling.findings.strategy import winners
from steelyard.studies.scaling.published import FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from steelyard.model import Finding
    from steelyard.studies.scaling.recorded import CellTrials, Recorded

AGREES: Final = "agrees"
CONTRADICTS: Final = "contradicts"
UNIFORM: Final = "uniform"
EXPONENTIAL: Final = "exponential"
WORKS: Final = (1000, 2000, 4000, 8000)
WORKERS: Final = (1, 2, 3, 7, 13, 27)
FREE: Final = ("LockFree", "none")
HOME: Final = (("HomeQueue", "pthread mutex"), ("HomeQueue", "Anderson"))
AWESOME: Final = (("Awesome", "pthread mutex"), ("Awesome", "Anderson"))
Contender = tuple[str, str]


class Data:
    """The published medians, by what the write-up calls them."""

    def __init__(self, recorded: Recorded) -> None:
        self._speedups = {_key(cell): cell for cell in recorded.stated}
        self._rates = {_key(cell): cell for cell in recorded.cells}

    def cell(self, load: str, work: int, contender: Contender, workers: int) -> CellTrials:
        """Give a cell of the speed-up table."""
        return self._speedups[load, work, *contender, workers]

    def speedup(self, load: str, work: int, contenders: tuple[Contender, ...], workers: int) -> float:
        """Give a speed-up; the mean over several contenders, as the write-up takes it for Awesome."""
        return float(np.mean([median_of(self.cell(load, work, each, workers).values) for each in contenders]))

    def row(self, load: str, work: int, contenders: tuple[Contender, ...]) -> np.ndarray:
        """Give the speed-ups of all numbers of workers."""
        return np.array([self.speedup(load, work, contenders, each) for each in WORKERS])

    def rate(self, work: int, contender: Contender) -> float:
        """Give a rate of the first experiment [packets/ms]."""
        return median_of(self._rates[UNIFORM, work, *contender, 1].values)

    def overhead(self, work: int, contender: Contender) -> float:
        """Give LockFree over HomeQueue."""
        return self.rate(work, FREE) / self.rate(work, contender)


@dataclass(frozen=True, slots=True)
class SourceClaim:
    """One sentence of the write-up.

    Parameters
    ----------
    section, text : str
        Where, and what it says.
    printed : str
        Number with all its digits.
    compute : callable
        Computes it from the data.
    instead : tuple of (str, callable) or None
        Where the number may come from if it does not follow from what the sentence names.
    """

    section: str
    text: str
    printed: str
    compute: Callable[[Data], float]
    instead: tuple[str, Callable[[Data], float]] | None = None

    def is_met_by(self, value: float) -> bool:
        """Whether a value is the printed number, rounded or cut off."""
        printed = Decimal(self.printed)
        cut = Decimal(value).quantize(printed, rounding=ROUND_DOWN)
        # A number that lies half-way is not told apart by its binary digits.
        return cut == printed or abs(value - float(printed)) <= 0.5 * 10.0**-self.digits * (1 + 1e-9)

    @property
    def digits(self) -> int:
        """Digits behind the point of the printed number."""
        return len(self.printed.partition(".")[2])


def source_claim_findings(recorded: Recorded) -> Iterator[Finding]:
    """Check every claim where the files are the published ones."""
    if not recorded.hashes >= FILES:
        return
    data = Data(recorded)
    for place, claim in enumerate(CLAIMS, start=1):
        yield _checked(place, claim, data, recorded)


def _checked(place: int, claim: SourceClaim, data: Data, recorded: Recorded) -> Finding:
    value = claim.compute(data)
    agrees = claim.is_met_by(value)
    note = ""
    if not agrees and claim.instead is not None:
        label, compute = claim.instead
        note = f"{claim.printed} follows from {label}" if claim.is_met_by(compute(data)) else ""
    cells = recorded.cells if claim.section == OVERHEAD else recorded.stated
    return finding(
        "source_claim",
        {"claim_number": f"{place:02d}", "section": claim.section, "text": claim.text},
        AGREES if agrees else CONTRADICTS,
        estimates={"recomputed": number(value, "", "from the published medians")},
        facts={
            "printed": claim.printed,
            "recomputed_digits": f"{value:.{claim.digits}f}",
            "note": note,
        },
        evidence=of_trials(cells, "the statistic the sentence names"),
        warnings=(NO_TRIALS,),
    )


def _key(cell: CellTrials) -> tuple[str | int, ...]:
    levels = cell.levels
    return (levels["load"], int(levels["mean_work"]), levels["strategy"], levels["lock"], cell.workers)


OVERHEAD: Final = "idle lock overhead"


def _peak(load: str, work: int, who: tuple[Contender, ...]) -> Callable[[Data], float]:
    return lambda data: float(data.row(load, work, who).max())


def _drop(load: str, work: int, who: tuple[Contender, ...]) -> Callable[[Data], float]:
    return lambda data: float(100 * (1 - data.row(load, work, who)[-1] / data.row(load, work, who)[-2]))


def _shy(load: str, who: tuple[Contender, ...], workers: int) -> Callable[[Data], float]:
    return lambda data: float(shy_percent(data.speedup(load, WORKS[-1], who, workers), workers))


def _slope(load: str, who: tuple[Contender, ...], name: str, count: int) -> Callable[[Data], float]:
    def compute(data: Data) -> float:
        workers = np.array(WORKERS[:count], dtype=np.float64)
        return float(getattr(fit_slope(workers, data.row(load, WORKS[-1], who)[:count]), name))

    return compute


def _wins(load: str, winner: Contender, others: tuple[Contender, ...]) -> Callable[[Data], float]:
    """Count the combinations in which one contender alone is the fastest."""

    def compute(data: Data) -> float:
        names = {str(each): each for each in (winner, *others)}
        places = [(work, workers) for work in WORKS for workers in WORKERS]
        best = [
            winners({name: data.cell(load, work, each, workers) for name, each in names.items()})
            for work, workers in places
        ]
        return float(sum(found == [str(winner)] for found in best))

    return compute


def _lock_change(lock: int, first: int, second: int) -> Callable[[Data], float]:
    return lambda data: 100 * (data.overhead(second, HOME[lock]) - data.overhead(first, HOME[lock]))


def _anderson_gain(data: Data) -> float:
    works = (25, 50, 100, 200, 400, 800)
    totals = [sum(data.rate(work, each) for work in works) for each in HOME]
    return 100 * (totals[1] / totals[0] - 1)


def _free_beats_awesome(data: Data) -> float:
    return float(
        sum(
            data.speedup(EXPONENTIAL, work, (FREE,), workers)
            > data.speedup(EXPONENTIAL, work, AWESOME, workers)
            for work in WORKS
            for workers in WORKERS
        )
    )


def _fall_inside(load: str, who: tuple[Contender, ...]) -> Callable[[Data], float]:
    """Give the fall from 7 to 13 workers at W = 1000 [percent]."""
    return lambda data: float(100 * (1 - data.row(load, WORKS[0], who)[4] / data.row(load, WORKS[0], who)[3]))


def _overheads() -> Iterator[SourceClaim]:
    yield SourceClaim(
        OVERHEAD,
        "largest slowdown of a lock, W = 25, pthread mutex [%]",
        "10.2",
        lambda data: max(100 * (data.overhead(work, each) - 1) for work in (25, 50, 800) for each in HOME),
    )
    yield SourceClaim(
        OVERHEAD,
        "largest slowdown at W = 800 is below 5 % [% rounded]",
        "5",
        lambda data: max(100 * (data.overhead(800, each) - 1) for each in HOME),
    )
    falls = (("pthread mutex", 0, 25, 800, "-8.55"), ("Anderson", 1, 25, 800, "-2.26"))
    rises = (
        ("pthread mutex", 0, 200, 400, "1.88"),
        ("Anderson", 1, 100, 200, "2.06"),
        ("Anderson", 1, 200, 400, "1.35"),
    )
    for lock, place, first, second, printed in (*falls, *rises):
        text = f"change of the slowdown with {lock} from W = {first} to {second} [points]"
        yield SourceClaim(OVERHEAD, text, printed, _lock_change(place, first, second))
    yield SourceClaim(
        OVERHEAD,
        "HomeQueue with Anderson processes more from W = 25 to 50 [%]",
        "23.54",
        lambda data: 100 * (data.rate(50, HOME[1]) / data.rate(25, HOME[1]) - 1),
    )
    yield SourceClaim(OVERHEAD, "Anderson processes more than the mutex in all [%]", "4.92", _anderson_gain)


def _lists(
    section: str, load: str, who: tuple[Contender, ...], peaks: tuple[str, ...], drops: tuple[str, ...]
) -> Iterator[SourceClaim]:
    for work, printed in zip(WORKS, peaks, strict=True):
        yield SourceClaim(section, f"largest speed-up at W = {work}", printed, _peak(load, work, who))
    for work, printed in zip(WORKS, drops, strict=True):
        yield SourceClaim(
            section, f"drop from 13 to 27 workers at W = {work} [%]", printed, _drop(load, work, who)
        )


def _shy_list(
    section: str, load: str, who: tuple[Contender, ...], printed: tuple[str, ...]
) -> Iterator[SourceClaim]:
    for workers, text in zip(WORKERS, printed, strict=True):
        title = f"shy of ideal at W = 8000 with {workers} {'worker' if workers == 1 else 'workers'} [%]"
        instead = ("the uniform load", _shy(UNIFORM, who, workers)) if load == EXPONENTIAL else None
        yield SourceClaim(section, title, text, _shy(load, who, workers), instead)


def _lines(
    section: str, load: str, who: tuple[Contender, ...], slope: str, r_squared: str
) -> Iterator[SourceClaim]:
    """Give the claims about the line through "the first five points"."""
    for title, printed, name in (("slope", slope, "slope"), ("R2", r_squared, "r_squared")):
        yield SourceClaim(
            section,
            f"{title} of the first five points at W = 8000",
            printed,
            _slope(load, who, name, 5),
            ("the first four points", _slope(load, who, name, 4)),
        )


_UNIFORM_SHY: Final = ("1.39900", "2.11900", "2.47233", "2.87243", "3.83815", "63.86867")


def _uniform() -> Iterator[SourceClaim]:
    section = "uniform load"
    yield from _lists(
        section,
        UNIFORM,
        (FREE,),
        ("4.5327", "8.81198", "12.06142", "12.50104"),
        ("42.51357", "46.15841", "18.47162", "21.96281"),
    )
    text = "fall from 7 to 13 workers at W = 1000 [%]"
    yield SourceClaim(section, text, "4.85", _fall_inside(UNIFORM, (FREE,)))
    yield from _shy_list(section, UNIFORM, (FREE,), _UNIFORM_SHY)
    yield from _lines(section, UNIFORM, (FREE,), "0.9686", "0.9999")
    instead = ("LockFree against Awesome", _wins(UNIFORM, FREE, AWESOME))
    title = "LockFree is fastest of LockFree and HomeQueue [of 24]"
    yield SourceClaim(section, title, "18", _wins(UNIFORM, FREE, HOME), instead)
    title = "HomeQueue is faster with the mutex than with Anderson [of 24]"
    yield SourceClaim(section, title, "15", _wins(UNIFORM, HOME[0], HOME[1:]))


def _exponential() -> Iterator[SourceClaim]:
    section = "exponential load"
    yield from _lists(
        section,
        EXPONENTIAL,
        (FREE,),
        ("4.24745", "6.28448", "6.54938", "6.79314"),
        ("49.64061", "45.00404", "32.43803", "34.95114"),
    )
    yield from _shy_list(section, EXPONENTIAL, (FREE,), _UNIFORM_SHY)
    yield from _lines(section, EXPONENTIAL, (FREE,), "0.4659", "0.9977")
    title = "LockFree is fastest of LockFree and HomeQueue [of 24]"
    yield SourceClaim(section, title, "20", _wins(EXPONENTIAL, FREE, HOME))
    title = "HomeQueue is faster with the mutex than with Anderson [of 24]"
    yield SourceClaim(section, title, "20", _wins(EXPONENTIAL, HOME[0], HOME[1:]))


def _awesome() -> Iterator[SourceClaim]:
    section = "Awesome under exponential load"
    yield from _lists(
        section,
        EXPONENTIAL,
        AWESOME,
        ("4.1294", "8.25264", "12.40724", "13.121275"),
        ("96.36501", "95.84060", "94.20250", "88.70518"),
    )
    yield SourceClaim(
        section, "fall from 7 to 13 workers at W = 1000 [%]", "7.09", _fall_inside(EXPONENTIAL, AWESOME)
    )
    shy = ("1.96100", "1.63550", "1.92183", "1.56429", "-0.93288", "94.51102")
    yield from _shy_list(section, EXPONENTIAL, AWESOME, shy)
    yield from _lines(section, EXPONENTIAL, AWESOME, "0.9850", "0.9999")
    title = "Awesome is faster with the mutex than with Anderson [of 24]"
    yield SourceClaim(section, title, "18", _wins(EXPONENTIAL, AWESOME[0], AWESOME[1:]))
    yield SourceClaim(section, "LockFree outperforms Awesome [of 24]", "9", _free_beats_awesome)


CLAIMS: Final = (*_overheads(), *_uniform(), *_exponential(), *_awesome())
"""Every number of the write-up's analysis of depth 32 that its data can answer."""
