"""Whether the spikes of a program come with a period.

Not every beat of a cause makes a spike, and a beat may make two, so that one run shows a period and another
one a whole part of it. The **common period** is the longest one that two runs show, alike within
`ALIKE`; a single run is believed. **Periodic**: at least half of the runs with spikes enough show it or
a whole part of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finding
from steelyard.studies.replication.findings.estimates import over_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analyse.peaks.periodicity import Period
    from steelyard.model import Evidence, Finding

OFTEN: Final = 0.5
"""Share of the runs with spikes enough in which a period must show."""
ALIKE: Final = 0.02
"""Relative difference of periods that are one."""
MOST_PARTS: Final = 25
"""Parts of a period that are looked at; beyond, any number is near to one of them."""
FEWEST_ALIKE: Final = 2

PERIODIC: Final = "periodic"
NOT_PERIODIC: Final = "no period"
TOO_FEW: Final = "too few spikes"


def period_finding(setting: str, periods: Sequence[Period], evidence: Evidence) -> Finding:
    """Say whether the spikes of the program as it is come with a period."""
    looked = [each for each in periods if not each.reason]
    found = [each for each in looked if each.is_periodic]
    whole = _whole_periods(found)
    period = Estimate(None, "ns", "no period that two runs show")
    locked = Estimate(None, "percent", period.method)
    agreeing = []
    shortest = Estimate(
        max((each.shortest_ns for each in looked), default=None), "ns", "shortest period looked for"
    )
    verdict = NOT_PERIODIC if looked else TOO_FEW
    if whole:
        period = _over_runs(whole)
        agreeing = [each for each in found if _is_part(each.period_ns, period.value or 0.0)]
        locked = over_runs([100 * each.locked_share for each in agreeing], "percent")
        if len(agreeing) >= OFTEN * len(looked):
            verdict = PERIODIC
    return finding(
        "spike_period",
        {"setting": setting},
        verdict,
        estimates={"period": period, "locked": locked, "shortest": shortest},
        facts={
            "runs": len(periods),
            "looked_at": len(looked),
            "periodic_runs": len(found),
            "agreeing_runs": len(agreeing),
            "reason": next((each.reason for each in periods if each.reason), ""),
        },
        evidence=evidence,
    )


def _over_runs(whole: Sequence[Period]) -> Estimate:
    """Give the period over runs; its interval is no narrower than that within a run, however alike runs are.

    The runs have the same calls and so the same resolution, which more of them do not make finer.
    """
    found = over_runs([each.period_ns for each in whole], "ns")
    if found.value is None or found.low is None or found.high is None:
        return found
    within = sum(each.half_width_ns for each in whole) / len(whole)
    low, high = min(found.low, found.value - within), max(found.high, found.value + within)
    return replace(found, low=low, high=high)


def _whole_periods(found: Sequence[Period]) -> list[Period]:
    """Give the runs that show the common period itself."""
    fewest = min(FEWEST_ALIKE, len(found))
    for longest in sorted(found, key=lambda each: -each.period_ns):
        alike = [each for each in found if abs(each.period_ns / longest.period_ns - 1) <= ALIKE]
        if len(alike) >= fewest:
            return alike
    return []


def _is_part(period_ns: float, whole_ns: float) -> bool:
    """Whether a period is a whole part of another.

    The tolerance shrinks as parts do: a period at random passes with a probability below a tenth.

    Examples
    --------
    >>> [_is_part(each, 100.0) for each in (100.5, 49.9, 7.692, 70.0, 150.0)]
    [True, True, True, False, False]
    """
    parts = round(whole_ns / period_ns)
    return 1 <= parts <= MOST_PARTS and abs(whole_ns / parts / period_ns - 1) <= ALIKE / parts + 1 / 1000
