"""From which load on times scatter more, and how many workers a tolerance allows."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from steelyard.analyse.dispersion import Pooled, growth_starts, pooled_statistics
from steelyard.analyse.interval import Statistic
from steelyard.model import Estimate, Finding
from steelyard.studies.stability.analysis_cells import HOMOGENOUS, NO_AFFINITY, SINGLE
from steelyard.studies.stability.analysis_parts import estimate_of, finding, finite, of_cells

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.studies.stability.analysis_cells import CellData, CellKey, Recorded
    from steelyard.studies.stability.analysis_options import AnalysisOptions

METHOD: Final = "percentile-cluster-bootstrap"

Loads = dict[int, tuple["CellData", Pooled]]


def dispersion_findings(recorded: Recorded, options: AnalysisOptions) -> Iterator[Finding]:
    """Give where dispersion starts to grow, per isolation and workload, then the recommended workers."""
    loads = _loads(recorded, options)
    for (isolation, workload, given), by_load in loads.items():
        yield _growth(isolation, workload, given, by_load)
    for isolation in recorded.isolations:
        of_isolation = {key[1:]: by_load for key, by_load in loads.items() if key[0] == isolation}
        if of_isolation:
            yield _recommendation(isolation, of_isolation, options)


def _loads(recorded: Recorded, options: AnalysisOptions) -> dict[tuple[str, str, str], Loads]:
    """Give the pooled cv of cpu time by load; inputs measured at one load only say nothing about loads."""
    found: dict[tuple[str, str, str], Loads] = defaultdict(dict)
    for key, cell in recorded.cells.items():
        if _counts_as_load(key) and cell.values().size > 1:
            pooled = pooled_statistics(cell.units(), options.resampling(recorded.plan.seed, cell.number))
            found[key.isolation, key.workload, key.input][key.setup_size] = (cell, pooled[Statistic.CV])
    main: dict[tuple[str, str], str] = {}
    for (isolation, workload, given), by_load in found.items():
        widest = main.setdefault((isolation, workload), given)
        if len(by_load) > len(found[isolation, workload, widest]):
            main[isolation, workload] = given
    return {key: dict(sorted(found[key].items())) for key in sorted(found) if main[key[:2]] == key[2]}


def _counts_as_load(key: CellKey) -> bool:
    return key.affinity == NO_AFFINITY and (
        key.setup_type == HOMOGENOUS or (key.setup_type, key.setup_size) == SINGLE
    )


def _growth(isolation: str, workload: str, given: str, by_load: Loads) -> Finding:
    start = growth_starts([(workers, pooled) for workers, (_, pooled) in by_load.items()])
    if len(by_load) < 2:  # noqa: PLR2004 - growth needs two loads
        verdict = "not measured"
    else:
        verdict = "no growth seen" if start is None else f"grows at {start}"
    return finding(
        "dispersion_by_load",
        {"isolation": isolation, "workload": workload, "input": given},
        verdict,
        estimates={
            f"cv_{workers}": estimate_of(pooled, unit="percent", method=METHOD, scale=100.0)
            for workers, (_, pooled) in by_load.items()
        },
        facts={"starts_at": start, "loads": ", ".join(str(workers) for workers in by_load)},
        evidence=of_cells(
            (cell.number for cell, _ in by_load.values()), ("cpu",), "cv of all workers pooled"
        ),
    )


def _recommendation(
    isolation: str, workloads: dict[tuple[str, str], Loads], options: AnalysisOptions
) -> Finding:
    """Find the largest load up to which every workload keeps its cv within the tolerance."""
    loads = sorted({workers for by_load in workloads.values() for workers in by_load})
    tolerance = options.tolerance_percent / 100
    allowed, limiting, limit_cv = 0, None, None
    for workers in loads:
        worst = max(
            ((by_load[workers][1], name) for (name, _), by_load in workloads.items() if workers in by_load),
            key=lambda entry: (entry[0].value, entry[1]),
        )
        if not worst[0].value <= tolerance:
            limiting, limit_cv = worst[1], worst[0]
            break
        allowed = workers
    within = [by_load[allowed][1] for by_load in workloads.values() if allowed in by_load]
    certain = bool(within) and all(pooled.high <= tolerance for pooled in within)
    cells = [cell for by_load in workloads.values() for cell, _ in by_load.values()]
    return finding(
        "recommended_workers",
        {"isolation": isolation},
        "recommended" if allowed else "none",
        estimates={
            "workers": Estimate(
                float(allowed) if allowed else None,
                "workers",
                "largest load with every cv within the tolerance",
                units=min((pooled.units for pooled in within), default=0),
                measurements=sum(cell.values().size for cell in cells),
                guaranteed=certain,
            )
        },
        facts={
            "tolerance_percent": options.tolerance_percent,
            "limiting_workload": limiting,
            "limiting_cv_percent": None if limit_cv is None else finite(100 * limit_cv.value),
            "largest_load_measured": loads[-1],
            "worst_cv_percent": finite(100 * max((pooled.value for pooled in within), default=float("nan"))),
        },
        evidence=of_cells((cell.number for cell in cells), ("cpu",), "cv of all workers pooled, by load"),
        warnings=[]
        if certain or not allowed
        else ["uncertain: the upper limit of a coefficient of variation lies above the tolerance"],
    )
