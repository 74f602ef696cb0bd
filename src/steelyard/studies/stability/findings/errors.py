"""How far the view from outside lies from the program's own clocks, and which clock can be trusted."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.bootstrap import Statistic
from steelyard.analyse.intervals.clustering import choose_level, group_units
from steelyard.analyse.intervals.describe import mean
from steelyard.analyse.intervals.dispersion import pooled_statistics
from steelyard.analyse.mapping.over_cells import map_each
from steelyard.studies.analysis_parts import estimate_of, finding, of_cells
from steelyard.studies.stability.findings.cells import NO_AFFINITY, OWN, UNSTATED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from steelyard.analyse.mapping.over_cells import OverCells
    from steelyard.model import Finding
    from steelyard.studies.analysis_options import AnalysisOptions
    from steelyard.studies.stability.findings.cells import CellData, Recorded

LIMITS_PERCENT: Final = (20, 10, 5)
"""SOURCE: the evaluation of isolate counts groups with a relative error above 20, 10 and 5 percent."""


def outside_errors(recorded: Recorded, options: AnalysisOptions, over: OverCells) -> list[Finding]:
    """Give the error |outside - own| of each cell without affinity, largest relative spread first."""
    cells = [each for each in recorded.named() if each[1].key.affinity == NO_AFFINITY]
    found = []
    for metric in OWN:
        error = partial(_error, metric=metric, seed=recorded.plan.seed, options=options)
        of_metric = [each for each in map_each(over, error, cells) if each is not None]
        found += sorted(of_metric, key=lambda each: (-(each.estimates["cv"].value or 0.0), each.id))
    return found


def _error(cell: CellData, *, metric: str, seed: int, options: AnalysisOptions) -> Finding | None:
    own, outside = cell.clocks[metric], cell.clocks[f"outside-{metric}"]
    paired = np.isfinite(own) & np.isfinite(outside)
    if not paired.any():
        return None
    labels = {level: label[paired] for level, label in cell.all_labels().items()}
    level = choose_level([labels])
    units = group_units(level, labels[level], np.abs(outside - own)[paired])
    found = pooled_statistics(units, options.resampling(seed, cell.number))
    typical = mean(own[paired])
    spread = found[Statistic.SD]
    relative = replace(
        spread, value=spread.value / typical, low=spread.low / typical, high=spread.high / typical
    )
    subject = {"metric": metric, **cell.key.subject()}
    cv_percent = 100 * relative.value
    return finding(
        "outside_error",
        subject,
        group_of(cv_percent),
        estimates={
            "mean": estimate_of(found[Statistic.MEAN], unit="s"),
            "sd": estimate_of(spread, unit="s"),
            "cv": estimate_of(relative, unit="percent", scale=100.0),
        },
        facts={"n": int(paired.sum()), "mean_own_s": typical},
        evidence=of_cells(
            [cell.number], (metric, f"outside-{metric}"), "mean, sd of |outside - own|; 100 sd / mean(own)"
        ),
    )


def group_of(cv_percent: float) -> str:
    """Name the group of a relative error.

    Examples
    --------
    >>> group_of(7.5), group_of(0.3), group_of(150)
    ('over 5 %', 'up to 5 %', 'over 20 %')
    """
    for limit in LIMITS_PERCENT:
        if cv_percent > limit:
            return f"over {limit} %"
    return f"up to {LIMITS_PERCENT[-1]} %"


def error_groups(errors: Iterable[Finding]) -> Iterator[Finding]:
    """Count the cells above each limit, per metric, setup and isolation."""

    def group(each: Finding) -> tuple[str, str, str]:
        return each.subject["metric"], each.subject["isolation"], each.subject["setup"]

    for (metric, isolation, setup), members in groupby(sorted(errors, key=group), key=group):
        values = [each.estimates["cv"].value or 0.0 for each in members]
        facts = {
            f"over_{limit}": sum(value > limit for value in values) for limit in reversed(LIMITS_PERCENT)
        }
        yield finding(
            "outside_error_groups",
            {"metric": metric, "setup": setup, "isolation": isolation},
            "counted",
            facts={"cells": len(values), **facts},
        )


def _error_percent(error: Finding) -> float:
    return error.estimates["cv"].value or 0.0


def clock_trust(errors: Iterable[Finding], options: AnalysisOptions) -> Iterator[Finding]:
    """Say up to which load each outside clock keeps its error within the tolerance, for every workload."""

    def clock(each: Finding) -> tuple[str, str]:
        return each.subject["metric"], each.subject["isolation"]

    stated = [each for each in errors if not each.subject["setup"].startswith(UNSTATED)]
    for (metric, isolation), members in groupby(sorted(stated, key=clock), key=clock):
        worst: dict[int, Finding] = {}
        for each in members:
            workers = int(each.subject["setup"].rpartition(",")[2])
            worst[workers] = max(worst.get(workers, each), each, key=_error_percent)
        trusted, shown = 0, None
        for workers in sorted(worst):
            if _error_percent(worst[workers]) > options.tolerance_percent:
                # The cell that ends the trust is named; with none, the worst of those within it.
                shown = worst[workers]
                break
            trusted = workers
        shown = shown or max(worst.values(), key=_error_percent)
        yield finding(
            "clock_trust",
            {"clock": f"outside-{metric}", "isolation": isolation},
            "trusted" if trusted else "not trusted",
            estimates={"worst": shown.estimates["cv"]},
            facts={
                "trusted_up_to_workers": trusted,
                "tolerance_percent": options.tolerance_percent,
                "largest_load": max(worst),
                "worst_error_percent": max(map(_error_percent, worst.values())),
                "shown_workload": shown.subject["workload"],
                "shown_setup": shown.subject["setup"],
            },
        )
