"""Which isolation shifts the mean, whether pinning helps, and whether identical cells look identical."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.equivalence import (
    OVER_HOSTS,
    WELCH,
    RatioTest,
    Verdict,
    ratio_test,
    verdict_of,
)
from steelyard.analyse.comparison.multiplicity import benjamini_hochberg
from steelyard.analyse.comparison.over_hosts import ratio_over_hosts
from steelyard.analyse.intervals.bootstrap import Statistic
from steelyard.analyse.intervals.clustering import choose_level
from steelyard.analyse.intervals.combine import combined_ratio
from steelyard.model import Estimate, Finding
from steelyard.studies.analysis_parts import FEW_UNITS, finding, finite, of_cells
from steelyard.studies.stability.findings.cells import NO_AFFINITY, SINGLE
from steelyard.studies.stability.findings.hosts import has_several_hosts, on_these_hosts, sides_by_host
from steelyard.studies.stability.findings.pairs import BASELINE, SANDBOXED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analyse.comparison.equivalence import Margin
    from steelyard.analyse.intervals.combine import Sides
    from steelyard.studies.analysis_options import AnalysisOptions
    from steelyard.studies.stability.findings.cells import CellData, Recorded

_METHODS: Final = {
    OVER_HOSTS: "t over hosts, geometric mean over cells",
    WELCH: "welch-log-ratio, geometric mean over cells",
}
_FEW: Final = f"{FEW_UNITS}: a cell has fewer than 5 independent units; run more blocks"
_FEW_HOSTS: Final = f"{FEW_UNITS}: fewer than 5 hosts, which are the units where there are several"

NOT_MEASURED: Final = "not measured"
_PINNING_VERDICTS: Final = {
    Verdict.SLOWER: "harms",
    Verdict.FASTER: "helps",
    Verdict.EQUIVALENT: "no difference",
    Verdict.INCONCLUSIVE: "undecided",
    Verdict.DESCRIPTIVE: "undecided",
    Verdict.NA: NOT_MEASURED,
}
_PLACEMENTS: Final = {
    "taskset": "on a CPU of its own",
    "taskset-multi": "on a set of CPUs of its own",
    "numa": "on the CPUs of one memory node",
    "noht": "on a core of its own whose other threads are idle",
}

Matched = tuple["CellData", "CellData"]


def location_shifts(recorded: Recorded, options: AnalysisOptions) -> Iterator[Finding]:
    """Compare the mean of each isolation with the baseline's, one worker alone, over all workloads."""
    margin = options.margin(Statistic.MEAN)
    compared = {isolation: _alone(recorded, isolation) for isolation in _others(recorded)}
    tests = {isolation: _combined(matched, Statistic.MEAN, margin) for isolation, matched in compared.items()}
    different = benjamini_hochberg([test.p_different for test in tests.values()])
    equivalent = benjamini_hochberg([test.p_equivalent for test in tests.values()])
    for (isolation, test), p_different, p_equivalent in zip(
        tests.items(), different, equivalent, strict=True
    ):
        matched = compared[isolation]
        yield finding(
            "location_shift",
            {"isolation": isolation, "baseline": BASELINE},
            verdict_of(test, p_different, p_equivalent, margin.level).value,
            estimates={"ratio": _estimate(test, matched), **on_these_hosts(matched, Statistic.MEAN, test)},
            facts={
                "workloads": len(matched),
                "margin_percent": options.margin_percent,
                "p_different": finite(p_different),
                "p_equivalent": finite(p_equivalent),
                "adds_sandbox": isolation in SANDBOXED,
            },
            evidence=of_cells(_numbers(matched), ("cpu",), "mean"),
            warnings=_few(test) if matched else [],
        )


def _others(recorded: Recorded) -> list[str]:
    """Give the isolations that are compared with the baseline; none where it is no level of the study."""
    if BASELINE not in recorded.isolations:
        return []
    return [isolation for isolation in recorded.isolations if isolation != BASELINE]


def _alone(recorded: Recorded, isolation: str) -> list[Matched]:
    """Match the cells of one worker alone with those of the baseline."""
    return [
        (recorded.cells[other], cell)
        for key, cell in recorded.cells.items()
        if key.isolation == isolation
        and (key.setup_type, key.setup_size) == SINGLE
        and key.affinity == NO_AFFINITY
        and (other := replace(key, isolation=BASELINE)) in recorded.cells
    ]


def pinning_effects(recorded: Recorded, options: AnalysisOptions) -> Iterator[Finding]:
    """Compare the spread of pinned cells with that of the same cells without affinity, per way of pinning."""
    margin = options.margin(Statistic.SD)
    for isolation in recorded.isolations:
        pairs: dict[str, list[Matched]] = defaultdict(list)
        for key, cell in recorded.cells.items():
            other = recorded.cells.get(replace(key, affinity=NO_AFFINITY))
            if key.isolation == isolation and key.affinity != NO_AFFINITY and other is not None:
                pairs[key.affinity].append((other, cell))
        if not pairs:
            yield finding("pinning_effect", {"isolation": isolation}, NOT_MEASURED, facts={"cells": 0})
        for affinity, matched in sorted(pairs.items()):
            test = _combined(matched, Statistic.SD, margin)
            verdict = verdict_of(test, test.p_different, test.p_equivalent, margin.level)
            yield finding(
                "pinning_effect",
                {"isolation": isolation, "affinity": affinity},
                _PINNING_VERDICTS[verdict],
                estimates={"ratio": _estimate(test, matched)},
                facts={
                    "cells": len(matched),
                    "margin_percent": 100 * margin.relative,
                    "placement": _PLACEMENTS.get(affinity, affinity),
                },
                evidence=of_cells(_numbers(matched), ("cpu",), "sd, pinned over not pinned"),
                warnings=_few(test),
            )


def identical_cells(recorded: Recorded, options: AnalysisOptions) -> Iterator[Finding]:
    """Compare the A/A pair: two cells with the same levels, run like two different ones."""
    if recorded.twins is None:
        return
    first, second = recorded.twins
    margin = options.margin(Statistic.MEAN)
    if has_several_hosts([(first, second)]):
        test = ratio_over_hosts(sides_by_host([(first, second)], Statistic.MEAN), margin)
    else:
        test = ratio_test(*_sides(first, second, Statistic.MEAN), margin)
    differs = not test.is_descriptive and test.p_different < 1 - margin.level
    yield finding(
        "a_a",
        {"workload": first.key.workload, "setup": first.key.setup},
        "difference" if differs else "no difference",
        estimates={"ratio": _estimate(test, [(first, second)])},
        facts={
            "isolation": first.key.isolation,
            "p_different": finite(test.p_different),
            "nominal_error_percent": round(100 * (1 - margin.level), 6),
        },
        evidence=of_cells(_numbers([(first, second)]), ("cpu",), "mean"),
        warnings=_few(test),
    )


def _combined(matched: Sequence[Matched], statistic: Statistic, margin: Margin) -> RatioTest:
    if has_several_hosts(matched):
        return ratio_over_hosts(sides_by_host(matched, statistic), margin)
    return combined_ratio([_sides(first, second, statistic) for first, second in matched], margin)


def _sides(first: CellData, second: CellData, statistic: Statistic) -> Sides:
    level = choose_level([cell.labels() for cell in (first, second)])
    return (
        first.units(level=level).statistics(statistic),
        second.units(level=level).statistics(statistic),
    )


def _few(test: RatioTest) -> list[str]:
    if not test.is_descriptive:
        return []
    return [_FEW_HOSTS if test.method == OVER_HOSTS else _FEW]


def _numbers(matched: Sequence[Matched]) -> list[int]:
    return [cell.number for pair in matched for cell in pair]


def _estimate(test: RatioTest, matched: Sequence[Matched]) -> Estimate:
    low = finite(test.low)
    return Estimate(
        finite(test.ratio),
        "ratio",
        _METHODS.get(test.method, _METHODS[WELCH]),
        low,
        finite(test.high),
        None if low is None else 0.95,
        min(test.units),
        sum(cell.values().size for pair in matched for cell in pair),
        guaranteed=test.is_guaranteed,
    )
