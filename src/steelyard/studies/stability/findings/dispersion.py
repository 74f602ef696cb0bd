"""From which load on times scatter more, and how many workers a tolerance allows."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from steelyard.analyse.intervals.bootstrap import Statistic
from steelyard.analyse.intervals.dispersion import BOOTSTRAP, Pooled, growth_starts, pooled_statistics
from steelyard.analyse.mapping.over_cells import map_each
from steelyard.model import Estimate, Finding
from steelyard.studies.analysis_parts import estimate_of, finding, finite, of_cells
from steelyard.studies.stability.findings.cells import HOMOGENOUS, NO_AFFINITY, SINGLE
from steelyard.studies.stability.missing import is_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from steelyard.analyse.mapping.over_cells import OverCells
    from steelyard.studies.analysis_options import AnalysisOptions
    from steelyard.studies.stability.findings.cells import CellData, CellKey, Recorded

Loads = dict[int, tuple["CellData", Pooled]]


def dispersion_findings(recorded: Recorded, options: AnalysisOptions, over: OverCells) -> Iterator[Finding]:
    """Give where dispersion starts to grow, the least steady cell at each load, the recommended workers."""
    loads = _loads(recorded, options, over)
    for (isolation, workload, given), by_load in loads.items():
        yield _growth(isolation, workload, given, by_load)
    for isolation in recorded.isolations:
        of_isolation = {key[1:]: by_load for key, by_load in loads.items() if key[0] == isolation}
        if of_isolation:
            for workers, cells in _pooled_by_load(of_isolation).items():
                worst = _worst(cells, lambda pooled: pooled.value)
                yield _least_steady(isolation, workers, worst, options)
            yield _recommendation(isolation, of_isolation, recorded, options)


def _loads(
    recorded: Recorded, options: AnalysisOptions, over: OverCells
) -> dict[tuple[str, str, str], Loads]:
    """Give the pooled cv of cpu time by load; inputs measured at one load only say nothing about loads."""
    found: dict[tuple[str, str, str], Loads] = defaultdict(dict)
    cells = [each for each in recorded.named() if _counts_as_load(each[1].key) and each[1].values().size > 1]
    spreads = map_each(over, partial(_spread, seed=recorded.plan.seed, options=options), cells)
    for (_, cell), spread in zip(cells, spreads, strict=True):
        found[cell.key.isolation, cell.key.workload, cell.key.input][cell.key.setup_size] = (cell, spread)
    main: dict[tuple[str, str], str] = {}
    for (isolation, workload, given), by_load in found.items():
        widest = main.setdefault((isolation, workload), given)
        if len(by_load) > len(found[isolation, workload, widest]):
            main[isolation, workload] = given
    return {key: dict(sorted(found[key].items())) for key in sorted(found) if main[key[:2]] == key[2]}


def _spread(cell: CellData, *, seed: int, options: AnalysisOptions) -> Pooled:
    return pooled_statistics(cell.units(), options.resampling(seed, cell.number))[Statistic.CV]


def _counts_as_load(key: CellKey) -> bool:
    return key.affinity == NO_AFFINITY and (
        key.setup_type == HOMOGENOUS or (key.setup_type, key.setup_size) == SINGLE
    )


def _growth(isolation: str, workload: str, given: str, by_load: Loads) -> Finding:
    least, largest = min(by_load), max(by_load)
    start = growth_starts([(workers, pooled) for workers, (_, pooled) in by_load.items()])
    if len(by_load) < 2:  # noqa: PLR2004 - growth needs two loads
        verdict = "not measured"
    else:
        verdict = "no growth seen" if start is None else f"grows at {start}"
    return finding(
        "dispersion_by_load",
        {"isolation": isolation, "workload": workload, "input": given},
        verdict,
        estimates={f"cv_{workers}": _percent(pooled) for workers, (_, pooled) in by_load.items()},
        facts={
            "starts_at": start,
            "loads": ", ".join(str(workers) for workers in by_load),
            "least_load": least,
            "least_load_percent": finite(100 * by_load[least][1].value),
            "largest_load": largest,
            "largest_load_percent": finite(100 * by_load[largest][1].value),
        },
        evidence=of_cells(
            (cell.number for cell, _ in by_load.values()), ("cpu",), "cv of all workers pooled"
        ),
    )


@dataclass(frozen=True, slots=True)
class _CellAtLoad:
    """A cell of an isolation at one load."""

    workload: str
    cv: Pooled
    cell: CellData


def _pooled_by_load(workloads: dict[tuple[str, str], Loads]) -> dict[int, list[_CellAtLoad]]:
    """Give the cells at each load, loads ascending."""
    found: dict[int, list[_CellAtLoad]] = defaultdict(list)
    for (name, _), by_load in workloads.items():
        for workers, (cell, cv) in by_load.items():
            found[workers].append(_CellAtLoad(name, cv, cell))
    return dict(sorted(found.items()))


def _worst(cells: list[_CellAtLoad], of: Callable[[Pooled], float]) -> _CellAtLoad:
    """Give the cell where a statistic is largest; one that does not exist is larger than any."""
    return max(cells, key=lambda each: (math.isnan(of(each.cv)), of(each.cv), each.workload))


def _least_steady(isolation: str, workers: int, worst: _CellAtLoad, options: AnalysisOptions) -> Finding:
    """Say how unsteady the least steady cell is, and on which side of the tolerance its interval lies."""
    tolerance = options.tolerance_percent / 100
    verdict = "reaches across the tolerance"
    if worst.cv.high <= tolerance:
        verdict = "within the tolerance"
    elif worst.cv.low > tolerance:
        verdict = "beyond the tolerance"
    return finding(
        "least_steady_cell",
        {"isolation": isolation, "load": str(workers)},
        verdict,
        estimates={"cv": _percent(worst.cv)},
        facts={
            "workload": worst.workload,
            "workers": workers,
            "setup": worst.cell.key.setup,
            "tolerance_percent": options.tolerance_percent,
        },
        evidence=of_cells([worst.cell.number], ("cpu",), "cv of all workers pooled"),
    )


def _percent_of(worst: _CellAtLoad | None) -> Estimate:
    return Estimate(None, "percent", BOOTSTRAP) if worst is None else _percent(worst.cv)


def _percent(pooled: Pooled) -> Estimate:
    return estimate_of(pooled, unit="percent", scale=100.0)


def _recommendation(
    isolation: str, workloads: dict[tuple[str, str], Loads], recorded: Recorded, options: AnalysisOptions
) -> Finding:
    """Find the largest load up to which the interval of every cv lies within the tolerance.

    Where not even one worker is so steady, none is recommended only if some program's whole interval lies
    beyond the tolerance; else it is undecided.
    """
    tolerance = options.tolerance_percent / 100
    by_load = _pooled_by_load(workloads)
    allowed = _last_before(by_load, lambda pooled: not pooled.high <= tolerance)
    # A dispersion that does not exist (not a number) is not within any tolerance.
    possible = _last_before(by_load, lambda pooled: not pooled.low <= tolerance)
    beyond = next((load for load in by_load if load > allowed), None)
    worst = _worst(by_load[allowed], lambda pooled: pooled.value) if allowed else None
    verdict = "recommended" if allowed else "undecided" if possible else "none"
    # None is proved by an interval beyond the tolerance, more only hindered by one that is not within it.
    end = attrgetter("low" if verdict == "none" else "high")
    limit = None if beyond is None else _worst(by_load[beyond], end)
    cells = [cell for loads in workloads.values() for cell, _ in loads.values()]
    return finding(
        "recommended_workers",
        {"isolation": isolation},
        verdict,
        estimates={
            "workers": Estimate(
                float(allowed) if allowed else None,
                "workers",
                "largest load with the interval of every cv within the tolerance",
                units=worst.cv.units if worst else 0,
                measurements=sum(cell.values().size for cell in cells),
            ),
            "worst": _percent_of(worst),
            "limiting": _percent_of(limit),
        },
        facts={
            "tolerance_percent": options.tolerance_percent,
            "worst_workload": worst.workload if worst else None,
            "worst_cv_percent": finite(100 * worst.cv.value) if worst else None,
            "limiting_workload": limit.workload if limit else None,
            "limiting_workers": beyond,
            "limiting_cv_percent": finite(100 * limit.cv.value) if limit else None,
            "possible_workers": possible if possible > allowed else None,
            "largest_load_measured": max(by_load),
            "next_step": next_step(recorded, isolation) if verdict == "none" else None,
        },
        evidence=of_cells((cell.number for cell in cells), ("cpu",), "cv of all workers pooled, by load"),
    )


def _last_before(by_load: dict[int, list[_CellAtLoad]], is_beyond: Callable[[Pooled], bool]) -> int:
    """Give the last load before the first at which a cell is beyond; 0 where that is the first of all."""
    found = 0
    for load, cells in by_load.items():
        if any(is_beyond(each.cv) for each in cells):
            break
        found = load
    return found


def next_step(recorded: Recorded, isolation: str) -> str:
    """Say what to do where no number of workers is within the tolerance."""
    if is_machine({"isolation": isolation}) and recorded.plan.options.get("hardware_virtualisation") is False:
        return "measure on a host with hardware virtualisation, since here software emulated the machine"
    return (
        "free the machine of other load (`steelyard doctor`), bind the workers to CPUs, "
        "or accept more (`steelyard analyse --tolerance`)"
    )
