"""Which cells of an import are alternatives, and what their comparison says."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.equivalence import Margin, Verdict, verdict_of
from steelyard.analyse.comparison.multiplicity import benjamini_hochberg
from steelyard.analyse.intervals.run_length import ratio_test_of_runs
from steelyard.model import Estimate, Evidence, Finding
from steelyard.studies.analysis_parts import MEASUREMENTS, finding, finite
from steelyard.studies.imported.samples import level_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.analyse.comparison.equivalence import RatioTest
    from steelyard.model import Plan
    from steelyard.studies.imported.samples import Sample

WORKLOAD: Final = "workload"
MOST_LEVELS: Final = 20
"""A factor of more levels is a size, not a choice; its levels are not compared with the first."""
FEW_RUNS: Final = "too few runs on a side for a verdict: import at least 5 runs (or files) of each"
IN_TURN: Final = (
    "the sides were measured one after the other: a change in between looks like a difference between them;"
    " import at least 5 files (or blocks), each with both sides"
)
_OPPOSITE: Final = {Verdict.SLOWER: Verdict.FASTER, Verdict.FASTER: Verdict.SLOWER}
Pair = tuple[str, "Sample", "Sample"]
Tested = tuple["RatioTest", str]


def pairs_of(samples: list[Sample], plan: Plan) -> list[Pair]:
    """Give what is compared, each with its factor: alternatives with the first of them.

    The plan's option `alternatives` says which (``factors``, ``cells`` or ``none``).
    """
    rule = plan.options.get("alternatives")
    found = _of_cells(samples) if rule == "cells" else _of_factors(samples, plan) if rule == "factors" else ()
    return list(found)


def comparisons(pairs: list[Pair], tested: list[Tested]) -> Iterator[Finding]:
    """Judge the test of each pair; p-values are corrected inside each factor and metric."""
    families: dict[tuple[str, str], list[tuple[Pair, Tested]]] = defaultdict(list)
    for pair, test in zip(pairs, tested, strict=True):
        families[pair[0], pair[1].metric].append((pair, test))
    for family in families.values():
        members, found = zip(*family, strict=True)
        tests = [test for test, _ in found]
        different = benjamini_hochberg([test.p_different for test in tests])
        equivalent = benjamini_hochberg([test.p_equivalent for test in tests])
        for pair, (test, remark), *p_values in zip(members, found, different, equivalent, strict=True):
            yield _finding(pair, test, remark, (p_values[0], p_values[1]))


def _of_cells(samples: list[Sample]) -> Iterator[Pair]:
    by_metric: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for sample in samples:
        by_metric[sample.metric, sample.unit].append(sample)
    for members in by_metric.values():
        yield from (("cell", members[0], other) for other in members[1:])


def _of_factors(samples: list[Sample], plan: Plan) -> Iterator[Pair]:
    for factor, levels in plan.factors.items():
        if factor == WORKLOAD or not 1 < len(levels) <= MOST_LEVELS:
            continue
        groups: dict[tuple[str, ...], list[Sample]] = defaultdict(list)
        for sample in samples:
            others = (level for name, level in sample.levels.items() if name != factor)
            groups[*others, sample.metric, sample.unit].append(sample)
        for members in groups.values():
            yield from ((factor, members[0], other) for other in members[1:])


def test_of(first: Sample, second: Sample, margin: float) -> Tested:
    """Give the test, and a remark where not all values count.

    A relative difference up to `margin` counts as none.
    """
    level = level_of(first, second)
    test, remark = ratio_test_of_runs(first.units(level), second.units(level), Margin(margin))
    return test, remark.replace("run", level)


def _finding(pair: Pair, test: RatioTest, remark: str, p_values: tuple[float, float]) -> Finding:
    family, first, second = pair
    verdict = verdict_of(test, *p_values)
    if first.is_rate:
        verdict = _OPPOSITE.get(verdict, verdict)
    names, level = _names(family, first, second), level_of(first, second)
    shared = {key: value for key, value in first.levels.items() if family not in ("cell", key)}
    ratio = Estimate(
        finite(test.ratio),
        "ratio",
        f"{test.words} on the logarithms of {level} means",
        finite(test.low),
        finite(test.high),
        None if finite(test.low) is None else 0.95,
        min(test.units),
        first.count + second.count,
        guaranteed=test.is_guaranteed and first.is_mixed_with(second),
    )
    return finding(
        "comparison",
        {**shared, "family": family, "metric": first.metric, "first": names[0], "second": names[1]},
        verdict.value,
        estimates={"ratio": ratio},
        facts={
            "p_different": p_values[0],
            "p_equivalent": p_values[1],
            "further_units": test.further_units,
            "units_first": test.units[0],
            "units_second": test.units[1],
        },
        evidence=Evidence(
            MEASUREMENTS,
            {"cell": f"{first.cell},{second.cell}", "metric": first.metric, "phase": "measure"},
            ("value",),
            f"ratio of the geometric means of the {level} means, second over first",
        ),
        warnings=[*_warnings(first, second, test), *([remark] if remark else [])],
    )


def _warnings(first: Sample, second: Sample, test: RatioTest) -> list[str]:
    """Say why the comparison may miss its level."""
    if test.is_descriptive:
        return [FEW_RUNS]
    in_turn = [] if first.is_mixed_with(second) else [IN_TURN]
    return [*in_turn, *(f"not guaranteed: {reason}" for reason in test.objections)]


def _names(family: str, first: Sample, second: Sample) -> tuple[str, str]:
    """Give what tells the two sides apart."""
    if family != "cell":
        return first.levels[family], second.levels[family]
    differing = [name for name in first.levels if first.levels[name] != second.levels[name]]
    if WORKLOAD in differing:
        differing = [WORKLOAD]
    sides = [", ".join(sample.levels[name] for name in differing) for sample in (first, second)]
    return sides[0], sides[1]
