"""Whether the spikes of a program come with a period.

**Periodic**: at least half of the runs that have spikes enough show a period by themselves, and the interval
of the period over those runs is narrow, at most `MOST_SPREAD` of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finding
from steelyard.studies.replication.estimates import over_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analyse.periodicity import Period
    from steelyard.model import Evidence, Finding

OFTEN: Final = 0.5
"""Share of the runs with spikes enough in which a period must show."""
MOST_SPREAD: Final = 0.2
"""Half width of the interval over the middle one of the runs' periods; beyond it they are different ones."""

PERIODIC: Final = "periodic"
NOT_PERIODIC: Final = "no period"
TOO_FEW: Final = "too few spikes"


def period_finding(setting: str, periods: Sequence[Period], evidence: Evidence) -> Finding:
    """Say whether the spikes of the program as it is come with a period.

    Parameters
    ----------
    setting : str
        Where the runs were measured.
    periods : sequence of Period
        What was found of each run, one or more.
    evidence : Evidence
        Where the runs lie.
    """
    looked = [each for each in periods if not each.reason]
    found = [each for each in looked if each.is_periodic]
    period = locked = Estimate(None, "ns", "no run shows a period")
    verdict = NOT_PERIODIC if looked else TOO_FEW
    if found:
        period = over_runs([each.period_ns for each in found], "ns")
        locked = over_runs([100 * each.locked_share for each in found], "percent")
        if len(found) >= OFTEN * len(looked) and _is_one(period.value, period.low, period.high):
            verdict = PERIODIC
    return finding(
        "spike_period",
        {"setting": setting},
        verdict,
        estimates={"period": period, "locked": locked},
        facts={
            "runs": len(periods),
            "looked_at": len(looked),
            "periodic_runs": len(found),
            "reason": next((each.reason for each in periods if each.reason), ""),
        },
        evidence=evidence,
    )


def _is_one(value: float | None, low: float | None, high: float | None) -> bool:
    """Tell one period from several; a single run is believed."""
    if value is None:
        return False
    return low is None or high is None or (high - low) / 2 <= MOST_SPREAD * value
