"""Comparisons of settings, each with the published relation, the relative difference and a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.describe import standard_deviation
from steelyard.analyse.device_variance import device_scatter
from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finding, finite
from steelyard.studies.replication.cell_findings import evidence_of
from steelyard.studies.replication.effects import (
    BY_DEVICE,
    CONTAINER,
    NATIVE,
    devices_of,
    is_played,
    pairs_of,
)
from steelyard.studies.replication.estimates import over_runs, published
from steelyard.studies.replication.run_parts import MEAN, P90, P99, THROUGHPUT, UNITS
from steelyard.studies.replication.verdicts import judge_family, relation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard.analyse.equivalence import Margin, RatioTest
    from steelyard.model import Finding
    from steelyard.studies.analysis_parts import Fact
    from steelyard.studies.replication.effects import Pair
    from steelyard.studies.replication.summaries import CellRuns, Key
    from steelyard.studies.replication.verdicts import Judged

METRICS: Final = {
    "e1": (THROUGHPUT,),
    "e2": (MEAN,),
    "e3": (MEAN, P99),
    "e4": (MEAN, P99, P90, THROUGHPUT),
}
"""What is compared in each experiment; of a benchmark that leaves a summary, what stands in it."""


CONFOUNDED: Final = "versions differ too"
"""Warning of a comparison whose sides ran different versions of a program."""


@dataclass(frozen=True, slots=True)
class _Asked:
    pair: Pair
    first: CellRuns
    second: CellRuns
    part: str
    metric: str


def comparison_findings(cells: Mapping[Key, CellRuns], margin: Margin) -> Iterator[Finding]:
    """Give one finding per comparison; the comparisons of an experiment are one family."""
    for experiment in METRICS:
        asked = list(_asked(cells, experiment))
        values = [
            tuple(side.values(each.part, each.metric) for side in (each.first, each.second)) for each in asked
        ]
        judged = judge_family([(first, second) for first, second in values], margin)
        for each, found in zip(asked, judged, strict=True):
            yield _finding(each, found, margin, len(asked))


def _asked(cells: Mapping[Key, CellRuns], experiment: str) -> Iterator[_Asked]:
    for configuration in dict.fromkeys(key[1] for key in cells if key[0] == experiment):
        settings = [key[2] for key in cells if key[:2] == (experiment, configuration)]
        for pair in pairs_of(settings):
            first, second = (cells[experiment, configuration, name] for name in (pair.first, pair.second))
            for part in first.part_names:
                for metric in METRICS[experiment]:
                    if first.values(part, metric) and second.values(part, metric):
                        yield _Asked(pair, first, second, part, metric)


def _finding(asked: _Asked, judged: Judged, margin: Margin, family: int) -> Finding:
    experiment, configuration, _ = asked.first.key
    first, second = (
        asked.first.values(asked.part, asked.metric),
        asked.second.values(asked.part, asked.metric),
    )
    unit = UNITS[asked.metric]
    software = _differing_software(asked.first, asked.second)
    played = is_played({asked.first.key: asked.first, asked.second.key: asked.second})
    return finding(
        "comparison",
        {
            "experiment": experiment,
            "configuration": configuration,
            "operation": asked.part,
            "metric": asked.metric,
            "effect": asked.pair.effect,
            "first": asked.pair.first,
            "second": asked.pair.second,
        },
        judged.verdict.value,
        estimates={
            "ratio": ratio_estimate(judged.test, margin.level),
            "first": over_runs(first, unit),
            "second": over_runs(second, unit),
        },
        facts={
            "relation": _relation(asked),
            "margin_percent": 100 * margin.relative,
            "p_different": finite(judged.p_different),
            "p_equivalent": finite(judged.p_equivalent),
            "family": family,
            "reason": judged.reason,
            "first_cv_percent": _cv_percent(first),
            "second_cv_percent": _cv_percent(second),
            "played": "played devices" if asked.pair.effect == BY_DEVICE and played else "",
            "software": software,
        },
        evidence=evidence_of((asked.first, asked.second), "ratio of the means over runs, second over first"),
        warnings=[f"{CONFOUNDED}: {software}"] if software else [],
    )


def _differing_software(first: CellRuns, second: CellRuns) -> str:
    """Name the programs of which two cells used different versions."""
    sides = first.software, second.software
    return ", ".join(
        f"{name} {sides[0][name]} against {sides[1][name]}"
        for name in sorted(sides[0].keys() & sides[1].keys())
        if sides[0][name] != sides[1][name]
    )


def ratio_estimate(test: RatioTest, level: float) -> Estimate:
    """Give the ratio of a test as an estimate."""
    low, high = finite(test.low), finite(test.high)
    return Estimate(
        finite(test.ratio),
        "ratio",
        f"{test.words} on the logarithms of run values",
        low,
        high,
        None if low is None else level,
        units=min(test.units),
        measurements=sum(test.units),
        guaranteed=test.is_guaranteed,
    )


def _relation(asked: _Asked) -> str:
    """Give the relation of the published intervals; empty where the source's rules have no interval."""
    sides = [side.pooled(asked.part) for side in (asked.first, asked.second)]
    if asked.metric == P99 or not all(pooled.size for pooled in sides):
        return ""
    return relation(*(published(pooled, asked.metric) for pooled in sides)).value


def _cv_percent(values: list[float]) -> Fact:
    numbers = np.array(values)
    return finite(100 * standard_deviation(numbers) / float(numbers.mean()))


def device_findings(cells: Mapping[Key, CellRuns], margin: Margin) -> Iterator[Finding]:
    """Give the scatter over devices, where there are three of them, and what a new one is expected to be."""
    for experiment, metrics in METRICS.items():
        for configuration in dict.fromkeys(key[1] for key in cells if key[0] == experiment):
            settings = [key[2] for key in cells if key[:2] == (experiment, configuration)]
            for technology in (NATIVE, CONTAINER):
                names = [
                    name for each in devices_of(settings) if (name := f"{each}-{technology}") in settings
                ]
                chosen = [cells[experiment, configuration, name] for name in names]
                for metric in metrics:
                    found = _scatter(chosen, technology, metric, margin)
                    if found is not None:
                        yield found


def _scatter(cells: list[CellRuns], technology: str, metric: str, margin: Margin) -> Finding | None:
    """Say how far devices differ; a new device is held against the middle of those measured."""
    runs = [np.array(values) for cell in cells if (values := cell.values("", metric))]
    found = device_scatter(runs, margin.level)
    if found is None:
        return None
    experiment, configuration, _ = cells[0].key
    bound = 1 + margin.relative
    holds = found.low >= 1 / bound and found.high <= bound
    new_device = Estimate(
        1.0,
        "ratio",
        "prediction of one more device, Student's t on logarithms",
        finite(found.low),
        finite(found.high),
        found.level,
        units=found.devices,
        measurements=sum(each.size for each in runs),
        guaranteed=False,
    )
    return finding(
        "devices",
        {
            "experiment": experiment,
            "configuration": configuration,
            "metric": metric,
            "technology": technology,
        },
        "a new device holds" if holds else "a new device may differ",
        estimates={"new_device": new_device},
        facts={
            "devices": found.devices,
            "between_percent": finite(100 * found.between_sd),
            "within_percent": finite(100 * found.within_sd),
            "width_percent": finite(100 * (found.high - found.low)),
            "margin_percent": 100 * margin.relative,
            "played": "played devices" if is_played({cell.key: cell for cell in cells}) else "",
        },
        evidence=evidence_of(tuple(cells), "components of variance of the logarithms of run values"),
    )
