"""Whether the load driver was on time: what it was late by itself, against the latencies that it measured.

Latency counts from the time at which a request was due, so what the driver is late by is in it, and is taken
for the service's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from steelyard.model import Evidence
from steelyard.studies.analysis_parts import finding
from steelyard.studies.replication.findings.cells import SUMMARY
from steelyard.studies.replication.findings.estimates import over_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard.analyse.comparison.equivalence import Margin
    from steelyard.model import Estimate, Finding
    from steelyard.studies.replication.values.summaries import CellRuns, Key

ON_TIME: Final = "on time"
LATE: Final = "late"
UNDECIDED: Final = "undecided"
JUDGED: Final = {"mean": "mean_ns", "p99": "p99_ns"}
"""What is judged, by its name in the summary of the driver."""


def lateness_findings(cells: Mapping[Key, CellRuns], margins: Mapping[str, Margin]) -> Iterator[Finding]:
    """Give one finding per cell whose driver says how late it was itself."""
    for key, cell in cells.items():
        drivers = [each.recorded.header.get("driver") for each in cell.runs]
        said = [each for each in drivers if isinstance(each, dict) and _has_both(each)]
        if said:
            yield _finding(cell, said, margins[key[0]])


def _has_both(driver: Mapping[str, Any]) -> bool:
    sides = (driver.get("own_lateness"), driver.get("latency"))
    return all(isinstance(side, dict) and side.get("count") for side in sides)


def _finding(cell: CellRuns, said: list[Any], margin: Margin) -> Finding:
    experiment, configuration, setting = cell.key
    estimates = {}
    for role, name in JUDGED.items():
        late = [float(each["own_lateness"][name]) for each in said]
        whole = [float(each["latency"][name]) for each in said]
        estimates[role] = over_runs(late, "ns")
        shares = [100 * one / other for one, other in zip(late, whole, strict=True) if other > 0]
        estimates[f"{role}_share"] = over_runs(shares, "percent")
    shares_found = [estimates[f"{role}_share"] for role in JUDGED]
    return finding(
        "driver_lateness",
        {"experiment": experiment, "configuration": configuration, "setting": setting},
        judged(shares_found, 100 * margin.relative),
        estimates=estimates,
        facts={"margin_percent": 100 * margin.relative, "runs": len(said)},
        evidence=Evidence(
            SUMMARY[0],
            {"folder": cell.places},
            ("driver.own_lateness", "driver.latency"),
            "lateness over latency of each run, then over runs",
        ),
    )


def judged(shares: list[Estimate], most_percent: float) -> str:
    """Judge a driver by the share of its own lateness in latencies.

    On time: both shares are below the margin of the experiment with the whole interval, so that no verdict
    can come of the driver alone; late: one is above with the whole interval.

    Examples
    --------
    >>> from steelyard.model import Estimate
    >>> small, large = Estimate(1.0, "percent", "", 0.5, 1.5), Estimate(50.0, "percent", "", 40.0, 60.0)
    >>> judged([small, small], 5.0), judged([small, large], 5.0), judged([large], 45.0)
    ('on time', 'late', 'undecided')
    """
    if any(each.low is not None and each.low > most_percent for each in shares):
        return LATE
    if all(each.high is not None and each.high < most_percent for each in shares):
        return ON_TIME
    return UNDECIDED
