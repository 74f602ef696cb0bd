"""Several hosts: how far they differ in each cell, where one more would lie, and which ones stand apart."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from steelyard.analyse.comparison.multiplicity import benjamini_hochberg, holm
from steelyard.analyse.comparison.over_hosts import FEWEST_HOSTS, host_deviations
from steelyard.analyse.intervals.bootstrap import Statistic
from steelyard.analyse.intervals.combine import combined_ratio
from steelyard.analyse.intervals.device_variance import device_scatter, variance_between
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS
from steelyard.model import Estimate
from steelyard.record.placed.hosts import machines_of
from steelyard.studies.analysis_parts import finding, finite, of_cells
from steelyard.studies.placed.host_findings import listed_names, names_of, placed_findings
from steelyard.studies.stability.findings.cells import OWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.analyse.comparison.equivalence import RatioTest
    from steelyard.analyse.comparison.over_hosts import HostDeviation
    from steelyard.analyse.intervals.combine import Sides
    from steelyard.analyse.intervals.device_variance import BetweenHosts
    from steelyard.model import Finding
    from steelyard.studies.analysis_options import AnalysisOptions
    from steelyard.studies.stability.findings.cells import CellData, Recorded

    Matched = tuple[CellData, CellData]


def has_several_hosts(matched: Sequence[Matched]) -> bool:
    """Tell whether cells that are compared were measured on several machines."""
    return any(np.unique(cell.host).size > 1 for pair in matched for cell in pair)


def sides_by_host(matched: Sequence[Matched], statistic: Statistic) -> list[Sides]:
    """Give one value of each host on both sides of each pair; not a number where a host has none."""
    hosts = np.unique(np.concatenate([cell.host for pair in matched for cell in pair]))

    def values(cell: CellData) -> NDArray[np.float64]:
        found = np.full(hosts.size, np.nan)
        measured = np.unique(cell.labels()["host"])
        found[np.searchsorted(hosts, measured)] = cell.units(level="host").statistics(statistic)
        return found

    return [(values(first), values(second)) for first, second in matched]


def on_these_hosts(matched: Sequence[Matched], statistic: Statistic, test: RatioTest) -> dict[str, Estimate]:
    """Give the ratio over these hosts alone, where they are too few to say anything of others."""
    if not (has_several_hosts(matched) and test.is_descriptive):
        return {}
    cells = []
    for pair in matched:
        first, second = (cell.by_host() for cell in pair)
        cells += [
            (first[host].statistics(statistic), second[host].statistics(statistic))
            for host in first
            if host in second
        ]
    found = combined_ratio(cells)
    low = finite(found.low)
    return {
        "these_hosts": Estimate(
            finite(found.ratio),
            "ratio",
            "blocks within these hosts, which are taken as they are",
            low,
            finite(found.high),
            None if low is None else 0.95,
            min(found.units),
            sum(cell.values().size for pair in matched for cell in pair),
            guaranteed=min(found.units) >= FEWEST_UNITS,
        )
    }


def host_findings(result: Path, recorded: Recorded, options: AnalysisOptions) -> Iterator[Finding]:
    """Say what several hosts mean for this result; nothing of a result of one host."""
    host_ids = recorded.runs["host_id"].unique().to_list()
    if len(host_ids) < 2:  # noqa: PLR2004 - a host alone
        return
    yield from placed_findings(result, host_ids)
    machines = machines_of(host_ids)
    if len(machines) > 1:
        names = names_of(result, host_ids)
        labels = [listed_names([names[each] for each in hosts]) for hosts in machines.values()]
        cells = list(_cells(recorded))
        yield from _scatters(cells, options)
        yield from _outliers(cells, labels, options)


@dataclass(frozen=True, slots=True)
class _Measured:
    """A metric of a cell, by host: the mean of each block."""

    metric: str
    cell: CellData
    hosts: tuple[int, ...]
    units: tuple[NDArray[np.float64], ...]


def _cells(recorded: Recorded) -> Iterator[_Measured]:
    for metric in OWN:
        for cell in recorded.cells.values():
            by_host = {
                host: _positive(units.statistics(Statistic.MEAN))
                for host, units in cell.by_host(metric).items()
            }
            kept = {host: units for host, units in by_host.items() if units.size}
            if len(kept) > 1:
                yield _Measured(metric, cell, tuple(kept), tuple(kept.values()))


def _positive(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[np.isfinite(values) & (values > 0)]


def _scatters(cells: Sequence[_Measured], options: AnalysisOptions) -> Iterator[Finding]:
    """Give the component of variance between hosts of each cell, and the prediction of a further host."""
    for metric in OWN:
        chosen = [each for each in cells if each.metric == metric]
        found = [(each, between) for each in chosen if (between := variance_between(each.units)) is not None]
        adjusted = benjamini_hochberg([between.p_value for _, between in found])
        for (each, between), p_value in zip(found, adjusted, strict=True):
            yield _scatter(each, between, p_value, options)


def _scatter(each: _Measured, between: BetweenHosts, p_value: float, options: AnalysisOptions) -> Finding:
    margin = options.margin(Statistic.MEAN)
    if between.high <= margin.relative:
        verdict = "hosts agree"
    else:
        verdict = "hosts differ" if p_value < 1 - margin.level else "undecided"
    low = finite(between.low)
    measurements = int(each.cell.values(each.metric).size)
    component = Estimate(
        100 * between.sd,
        "percent",
        "component of variance between hosts, log means of blocks",
        None if low is None else 100 * low,
        None if low is None else finite(100 * between.high),
        None if low is None else 0.95,
        between.hosts,
        measurements,
        guaranteed=between.hosts >= FEWEST_HOSTS,
    )
    return finding(
        "host_scatter",
        {"metric": each.metric, **each.cell.key.subject()},
        verdict,
        estimates={"between": component, **_new_host(each, measurements)},
        facts={
            "hosts": between.hosts,
            "blocks": between.units,
            "within_percent": finite(100 * between.within_sd),
            "p_no_difference": finite(p_value),
            "margin_percent": 100 * margin.relative,
            "extreme_ratio_percent": 100 * (_widest(each) - 1),
        },
        evidence=of_cells([each.cell.number], (each.metric,), "means of blocks by host_id"),
    )


def _widest(each: _Measured) -> float:
    means = [float(np.log(units).mean()) for units in each.units]
    return math.exp(max(means) - min(means))


def _new_host(each: _Measured, measurements: int) -> dict[str, Estimate]:
    scatter = device_scatter(each.units)
    method = "prediction of one more host, Student's t on logarithms"
    if scatter is None:
        return {"new_host": Estimate(None, "ratio", method, units=len(each.units), measurements=measurements)}
    limits = (finite(scatter.low), finite(scatter.high), scatter.level)
    found = Estimate(1.0, "ratio", method, *limits, scatter.devices, measurements, guaranteed=False)
    return {"new_host": found}


def _outliers(
    cells: Sequence[_Measured], labels: Sequence[str], options: AnalysisOptions
) -> Iterator[Finding]:
    """Test each host in each cell whether it stands apart; any false outlier has a chance of 5 %."""
    margin = options.margin(Statistic.MEAN)
    tested: list[tuple[_Measured, int, HostDeviation]] = []
    for each in cells:
        enough = [
            (host, units)
            for host, units in zip(each.hosts, each.units, strict=True)
            if units.size >= FEWEST_UNITS
        ]
        if len(enough) < FEWEST_HOSTS:
            continue
        deviations = host_deviations([units for _, units in enough], margin.relative)
        tested += [(each, host, deviation) for (host, _), deviation in zip(enough, deviations, strict=True)]
    adjusted = holm([deviation.p_value for *_, deviation in tested])
    of_host: defaultdict[tuple[int, str], list[tuple[_Measured, HostDeviation, float]]] = defaultdict(list)
    for (each, host, deviation), p_value in zip(tested, adjusted, strict=True):
        of_host[host, each.metric].append((each, deviation, p_value))
    for (host, metric), members in sorted(of_host.items()):
        apart = [member for member in members if member[2] < 1 - margin.level]
        worst, deviation, p_value = min(
            members, key=lambda member: (member[2], -abs(math.log(member[1].ratio)))
        )
        yield finding(
            "host_outlier",
            {"host": labels[host], "metric": metric},
            "outlier" if apart else "not an outlier",
            estimates={
                "ratio": Estimate(
                    deviation.ratio,
                    "ratio",
                    "over the median of all hosts",
                    units=len(worst.hosts),
                    measurements=int(worst.cell.values(metric).size),
                    guaranteed=False,
                )
            },
            facts={
                "cells": len(members),
                "cells_apart": len(apart),
                "hosts": len(worst.hosts),
                "workload": worst.cell.key.label,
                "setup": worst.cell.key.setup,
                "isolation": worst.cell.key.isolation,
                "p_value": p_value,
                "comparisons": len(tested),
                "margin_percent": 100 * margin.relative,
                "error_percent": round(100 * (1 - margin.level), 6),
            },
            evidence=of_cells(
                (member[0].cell.number for member in members), (metric,), "means of blocks by host_id"
            ),
        )
