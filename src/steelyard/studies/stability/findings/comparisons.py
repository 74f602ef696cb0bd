"""Two cells compared on five statistics: the published class, and Steelyard's own verdict beside it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.comparison.equivalence import Margin, RatioTest, Verdict, ratio_test, verdict_of
from steelyard.analyse.comparison.multiplicity import benjamini_hochberg
from steelyard.analyse.comparison.over_hosts import ratio_over_hosts
from steelyard.analyse.comparison.published_rule import PublishedClass, published_class
from steelyard.analyse.intervals.bootstrap import Statistic, bootstrap_intervals
from steelyard.analyse.intervals.clustering import HOST, choose_level, intraclass_share
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS
from steelyard.analyse.mapping.over_cells import map_each
from steelyard.model import Estimate, Finding
from steelyard.studies.analysis_parts import FEW_UNITS, SHARED_BATCHES, finding, finite, of_cells
from steelyard.studies.stability.findings.hosts import on_these_hosts, sides_by_host

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.intervals.bootstrap import Intervals
    from steelyard.analyse.intervals.clustering import Units
    from steelyard.analyse.mapping.over_cells import OverCells
    from steelyard.studies.analysis_options import AnalysisOptions
    from steelyard.studies.stability.findings.cells import CellData, Recorded
    from steelyard.studies.stability.findings.pairs import Pair

METRIC: Final = "cpu"
KINDS: Final = ("percentile", "basic")
_DECIDED: Final = (PublishedClass.HIGHER, PublishedClass.LESSER)
_OF_CLASS: Final = {PublishedClass.HIGHER: Verdict.FASTER, PublishedClass.LESSER: Verdict.SLOWER}
_CLUSTERED_SHARE: Final = 0.05


@dataclass(frozen=True, slots=True)
class _Level:
    """What the units of a cell at one level give, computed once for all its pairs."""

    statistics: dict[Statistic, NDArray[np.float64]]
    distances: NDArray[np.float64]
    between_share: float | None


@dataclass(frozen=True, slots=True)
class Side:
    """One cell of a comparison, prepared once."""

    cell: CellData
    intervals: dict[Statistic, Intervals]
    _levels: dict[str, _Level] = field(default_factory=dict)

    def at(self, level: str) -> _Level:
        """Give what its units at a level give."""
        if level not in self._levels:
            self._levels[level] = _level(self.cell.units(METRIC, level))
        return self._levels[level]


def _level(units: Units) -> _Level:
    # Brown and Forsythe's distances from the median, averaged per unit.
    distances = [float(np.mean(np.abs(unit - np.median(unit)))) for unit in units.values]
    statistics = {statistic: units.statistics(statistic) for statistic in Statistic}
    return _Level(statistics, np.array(distances), intraclass_share(units))


@dataclass(frozen=True, slots=True)
class Comparison:
    """One pair on one statistic, before the correction for its family."""

    pair: Pair
    statistic: Statistic
    sides: tuple[Side | None, Side | None]
    level: str
    test: RatioTest
    between_share: float | None
    p_spread: float | None

    def published(self, kind: str) -> PublishedClass:
        """Give the class from percentile or basic intervals."""
        limits = [
            None if side is None else getattr(side.intervals[self.statistic], kind) for side in self.sides
        ]
        return published_class(*limits)


def compare_cells(
    recorded: Recorded, pairs: Sequence[Pair], options: AnalysisOptions, over: OverCells
) -> list[Finding]:
    """Compare every pair on every statistic; p-values are corrected within (statistic, family)."""
    # An interval needs two values.
    cells = [each for each in recorded.named() if each[1].values(METRIC).size > 1]
    found_of = map_each(over, partial(_prepared, seed=recorded.plan.seed, options=options), cells)
    prepared = {
        cell.key: Side(cell, intervals, {name: level})
        for (_, cell), (intervals, name, level) in zip(cells, found_of, strict=True)
    }
    found = []
    for statistic in Statistic:
        compared = [
            _compare(pair, statistic, (prepared.get(pair.first), prepared.get(pair.second)), options)
            for pair in pairs
        ]
        found += list(_judged(compared, options))
    return found


def _prepared(
    cell: CellData, *, seed: int, options: AnalysisOptions
) -> tuple[dict[Statistic, Intervals], str, _Level]:
    """Give the intervals of a cell, and what its units give at the level at which it is mostly compared."""
    intervals = bootstrap_intervals(cell.values(METRIC), options.resampling(seed, cell.number))
    units = cell.units(METRIC)
    return intervals, units.level, _level(units)


def _compare(
    pair: Pair, statistic: Statistic, sides: tuple[Side | None, Side | None], options: AnalysisOptions
) -> Comparison:
    first, second = sides
    if first is None or second is None:
        nothing = ratio_test(np.empty(0), np.empty(0))
        return Comparison(pair, statistic, sides, "worker", nothing, None, None)
    level = choose_level([side.cell.labels(METRIC) for side in (first, second)])
    units = [side.at(level) for side in (first, second)]
    margin = options.margin(statistic)
    if level == HOST:
        test = ratio_over_hosts(sides_by_host([(first.cell, second.cell)], statistic), margin)
    else:
        test = ratio_test(units[0].statistics[statistic], units[1].statistics[statistic], margin)
    shares = [each.between_share for each in units if each.between_share is not None]
    p_spread = None
    if not statistic.is_location and not test.is_descriptive:
        p_spread = ratio_test(units[0].distances, units[1].distances).p_different
    return Comparison(pair, statistic, sides, level, test, max(shares, default=None), p_spread)


def _judged(compared: Sequence[Comparison], options: AnalysisOptions) -> Iterator[Finding]:
    """Correct p-values within each family and write the findings."""
    families: dict[str, list[int]] = defaultdict(list)
    for place, each in enumerate(compared):
        if min(each.test.units) >= FEWEST_UNITS:
            families[each.pair.family].append(place)
    adjusted: dict[int, tuple[float, float]] = {}
    for places in families.values():
        different = benjamini_hochberg([compared[place].test.p_different for place in places])
        equivalent = benjamini_hochberg([compared[place].test.p_equivalent for place in places])
        adjusted |= dict(zip(places, zip(different, equivalent, strict=True), strict=True))
    for place, each in enumerate(compared):
        p_different, p_equivalent = adjusted.get(place, (1.0, 1.0))
        yield _finding(each, p_different, p_equivalent, options)


def _finding(each: Comparison, p_different: float, p_equivalent: float, options: AnalysisOptions) -> Finding:
    margin = options.margin(each.statistic)
    verdict = verdict_of(each.test, p_different, p_equivalent, margin.level)
    if verdict is Verdict.NA and None not in each.sides:
        verdict = (
            Verdict.DESCRIPTIVE
        )  # both sides were measured, but no unit has a value, e.g. sd of one iteration
    published = {kind: each.published(kind) for kind in KINDS}
    first, second = each.pair.sides
    key = each.pair.second
    has_test = not each.test.is_descriptive
    return finding(
        f"{each.statistic}_comparison",
        {
            "statistic": each.statistic.value,
            "metric": METRIC,
            "workload": key.workload,
            "input": key.subject()["input"],
            "setup": each.pair.setup,
            "family": each.pair.family,
            "first": first,
            "second": second,
        },
        verdict.value,
        estimates=_estimates(each, margin),
        facts={
            **{f"class_{kind}": published[kind].value for kind in KINDS},
            "disagreement": explain(published["percentile"], verdict, each, margin),
            "unit": each.level,
            "units_first": each.test.units[0],
            "units_second": each.test.units[1],
            "p_different": p_different if has_test else None,
            "p_equivalent": p_equivalent if has_test else None,
            "p_brown_forsythe": each.p_spread,
            "margin_percent": 100 * margin.relative,
            "further_units": each.test.further_units if verdict is Verdict.INCONCLUSIVE else None,
            "between_units_share": each.between_share,
        },
        evidence=of_cells(
            (side.cell.number for side in each.sides if side is not None), (METRIC,), each.statistic.value
        ),
        warnings=_warnings(each),
    )


def _estimates(each: Comparison, margin: Margin) -> dict[str, Estimate]:
    is_ratio = each.statistic is Statistic.CV
    found = {}
    for role, side, units in zip(("first", "second"), each.sides, each.test.units, strict=True):
        if side is None:
            continue
        factor = 100.0 if is_ratio else 1.0
        interval = side.intervals[each.statistic].scaled(factor)
        found[role] = Estimate(
            finite(interval.estimate),
            "percent" if is_ratio else "s",
            "published-percentile-bootstrap",
            finite(interval.percentile[0]),
            finite(interval.percentile[1]),
            margin.level,
            units,
            int(side.cell.values(METRIC).size),
            guaranteed=False,
        )
    measurements = sum(int(side.cell.values(METRIC).size) for side in each.sides if side is not None)
    found["ratio"] = Estimate(
        finite(each.test.ratio),
        "ratio",
        f"{each.test.method}, second over first",
        finite(each.test.low),
        finite(each.test.high),
        None if finite(each.test.low) is None else margin.level,
        min(each.test.units),
        measurements,
        guaranteed=each.test.is_guaranteed and not _shares_batches(each),
    )
    first, second = each.sides
    if first is not None and second is not None:
        found |= on_these_hosts([(first.cell, second.cell)], each.statistic, each.test)
    return found


def _shares_batches(each: Comparison) -> bool:
    """Whether units are workers of few common batches, whose common disturbance no interval covers."""
    if each.level != "worker":
        return False
    return any(
        side is not None and np.unique(side.cell.block).size < units
        for side, units in zip(each.sides, each.test.units, strict=True)
    )


def _warnings(each: Comparison) -> list[str]:
    if None in each.sides:
        return []
    if each.test.is_descriptive:
        count = min(each.test.units)
        if each.level == HOST:
            return [f"{FEW_UNITS}: a side has {count} hosts, a verdict needs {FEWEST_UNITS}; add hosts"]
        units = f"{count} independent unit{'s' * (count != 1)} (workers of a batch)"
        return [f"{FEW_UNITS}: a side has {units}, a verdict needs {FEWEST_UNITS}; run more blocks"]
    if _shares_batches(each):
        units = f"workers of fewer than {FEWEST_UNITS} batches"
        return [f"{SHARED_BATCHES}: units are {units}; what disturbs a whole batch is not in the interval"]
    return []


def class_counts(comparisons: Iterable[Finding]) -> Iterator[Finding]:
    """Count the published classes over workloads, per statistic, family, setup, pair and kind of interval."""
    counts: dict[tuple[str, ...], Counter[str]] = {}
    for each in comparisons:
        for kind in KINDS:
            subject = tuple(
                each.subject[name] for name in ("statistic", "family", "setup", "first", "second")
            )
            counter = counts.setdefault((*subject, kind), Counter())
            counter[str(each.facts[f"class_{kind}"])] += 1
    names = ("statistic", "family", "setup", "first", "second", "published")
    for values, counter in counts.items():
        yield finding(
            "class_counts",
            dict(zip(names, values, strict=True)),
            "counted",
            facts={each.value: counter[each.value] for each in PublishedClass},
        )


def explain(published: PublishedClass, verdict: Verdict, compared: Comparison, margin: Margin) -> str | None:
    """Say why the published class and the verdict differ; nothing if they agree or no verdict is offered."""
    if published is PublishedClass.NA or verdict in {Verdict.NA, Verdict.DESCRIPTIVE}:
        return None
    if published in _DECIDED:
        return _against_decided(published, verdict, compared, margin)
    if verdict in {Verdict.SLOWER, Verdict.FASTER}:
        return (
            "overlapping intervals do not test the difference: the interval of the ratio itself, from "
            f"{_units(compared)}, excludes 1"
        )
    if published is PublishedClass.SAME and verdict is Verdict.INCONCLUSIVE:
        return (
            "an interval inside the other does not show equality: the ratio may lie outside "
            f"the margin of {_percent(margin.relative)}"
        )
    return None


def _against_decided(
    published: PublishedClass, verdict: Verdict, compared: Comparison, margin: Margin
) -> str | None:
    if verdict is _OF_CLASS[published]:
        return None
    if verdict is Verdict.EQUIVALENT:
        return f"the difference is inside the margin of {_percent(margin.relative)}, so it is not relevant"
    if verdict is Verdict.INCONCLUSIVE:
        return _clustering(compared)
    if compared.statistic in {Statistic.MEAN, Statistic.SD, Statistic.CV}:
        return "a few extreme iterations dominate the pooled statistic; the typical unit moves the other way"
    return "the pooled values mix units of different level; the typical unit moves the other way"


def _clustering(compared: Comparison) -> str:
    pooled = sum(side.cell.values().size for side in compared.sides if side is not None)
    share = compared.between_share
    if share is not None and share >= _CLUSTERED_SHARE:
        return (
            f"the rule treats {pooled} iterations as independent, but they come from {_units(compared)}, "
            f"and {_percent(share)} of the variance lies between units"
        )
    return f"the rule treats {pooled} iterations as independent, but they come from {_units(compared)}"


def _units(compared: Comparison) -> str:
    names = {"host": "hosts", "block": "blocks", "worker": "workers of a batch"}
    first, second = compared.test.units
    return f"{first} and {second} {names[compared.level]}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
