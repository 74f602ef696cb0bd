"""The cause tree: ordered interventions, each against the row before and against the program as it is.

**Spikes gone**: the whole interval of the rate of spikes over that of the program as it is lies below
`GONE_SHARE`. **Fewer spikes**: the whole interval lies below one. Else **still spikes**, or **more spikes**
where the whole interval lies above one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.rate_ratio import LEVEL, RunCounts, dispersed_rate_ratio
from steelyard.analyse.peaks.co_occurrence import MAIN_SHARE, PART_SHARE
from steelyard.analyse.peaks.peak_search import estimate_rate
from steelyard.model import Estimate, Evidence
from steelyard.studies.analysis_parts import finding, finite
from steelyard.studies.replication.findings.estimates import over_runs
from steelyard.studies.replication.findings.spike_period import period_finding
from steelyard.studies.replication.findings.spikes import (
    RULE,
    common_excess,
    excess_of,
    measured_calls,
    spikes_of,
)
from steelyard.studies.replication.run_parts import MEAN, WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.analyse.comparison.rate_ratio import DispersedRatio
    from steelyard.analyse.peaks.co_occurrence import CoOccurrence
    from steelyard.analyse.peaks.peak_search import Rate
    from steelyard.model import Finding
    from steelyard.studies.replication.findings.spikes import Spikes
    from steelyard.studies.replication.values.summaries import CellRuns, Key

EXPERIMENT: Final = "causes"
AS_IT_IS: Final = "as-it-is"
GONE_SHARE: Final = 0.25
"""Rate of spikes that may be left, of that of the program as it is, where they count as gone."""

OFTEN: Final = 0.5
"""Share of the runs with enough spikes in which an event must significantly come together with them."""

FEWEST_SPIKES: Final = 10
PER_MILLION: Final = 1e6

GONE: Final = "spikes gone"
FEWER: Final = "fewer spikes"
STILL: Final = "still spikes"
MORE: Final = "more spikes"
FIRST_ROW: Final = "the program as it is"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the tree: a cell with the spikes of each of its runs."""

    cell: CellRuns
    spikes: tuple[Spikes, ...]

    @property
    def name(self) -> str:
        """Name of the intervention."""
        return self.cell.key[1]

    @property
    def counts(self) -> RunCounts:
        """Spikes of each run, over millions of calls."""
        return RunCounts(
            tuple(each.count for each in self.spikes),
            tuple(each.calls / PER_MILLION for each in self.spikes),
        )


def cause_findings(
    cells: Mapping[Key, CellRuns], sentences: Mapping[str, str], seed: int
) -> Iterator[Finding]:
    """Give the rows of the cause tree, what stands beside the spikes, and the conclusion, by setting."""
    for setting in dict.fromkeys(key[2] for key in cells if key[0] == EXPERIMENT):
        chosen = [cell for key, cell in cells.items() if (key[0], key[2]) == (EXPERIMENT, setting)]
        first = cells.get((EXPERIMENT, AS_IT_IS, setting))
        if first is None:
            continue
        rows, excess = _rows(first, chosen, seed)
        found = [
            _row_finding(rows, place, excess, sentences.get(row.name, "")) for place, row in enumerate(rows)
        ]
        causes = list(_beside_findings(rows[0], setting))
        yield from found
        yield from causes
        yield from _period_findings(rows[0], setting)
        yield _conclusion(setting, found, causes)


def _rows(first: CellRuns, cells: Sequence[CellRuns], seed: int) -> tuple[list[Row], float]:
    """Give the rows in order, the program as it is first; one run is read after the other."""
    of_first = [run.recorded.run for run in first.runs if run.recorded.run is not None]
    excess = common_excess([excess_of(measured_calls(run)[1]) for run in of_first])
    ordered = [first, *(cell for cell in cells if cell is not first)]
    return [_row(cell, excess, seed if cell is first else None) for cell in ordered], excess


def _row(cell: CellRuns, excess: float, seed: int | None) -> Row:
    runs = [run.recorded.run for run in cell.runs if run.recorded.run is not None]
    return Row(cell, tuple(spikes_of(run, excess, seed) for run in runs))


def _row_finding(rows: Sequence[Row], place: int, excess: float, sentence: str) -> Finding:
    row, first = rows[place], rows[0]
    pooled = row.cell.pooled(WHOLE)
    calls = pooled.size
    against = None if place == 0 else dispersed_rate_ratio(first.counts, row.counts)
    estimates = {
        "mean": over_runs(row.cell.values(WHOLE, MEAN), "ns", calls),
        "cv": _plain(pooled.sd / pooled.mean, calls),
        "max_over_mean": _plain(pooled.high / pooled.mean, calls),
        "peaks": _rate(estimate_rate(row.counts.counts, row.counts.exposures), row),
        "lost": over_runs([each.lost_ns / each.calls for each in row.spikes], "ns", row.counts.total),
    }
    if against is not None:
        estimates["over_first"] = _ratio(against, first, row)
        estimates["over_before"] = _ratio(
            dispersed_rate_ratio(rows[place - 1].counts, row.counts), rows[place - 1], row
        )
    return finding(
        "cause_row",
        {"intervention": row.name, "setting": row.cell.key[2]},
        FIRST_ROW if against is None else judged(against),
        estimates=estimates,
        facts={
            "order": place,
            "before": "" if place == 0 else rows[place - 1].name,
            "sentence": sentence,
            "sigma_ns": finite(pooled.sd),
            "min_ns": finite(pooled.low),
            "max_ns": finite(pooled.high),
            "spikes": row.counts.total,
            "calls": calls,
            "runs": len(row.spikes),
            "excess_ns": excess,
            "rule": RULE,
            "gone_percent": 100 * GONE_SHARE,
        },
        evidence=_evidence(row.cell, "spikes per 10^6 calls after the first half, over runs"),
    )


def judged(ratio: DispersedRatio) -> str:
    """Judge the rate of spikes over that of the program as it is.

    Examples
    --------
    >>> from steelyard.analyse.comparison.rate_ratio import DispersedRatio
    >>> judged(DispersedRatio(0.05, 0.02, 0.1, 1.0)), judged(DispersedRatio(0.9, 0.7, 1.2, 1.0))
    ('spikes gone', 'still spikes')
    """
    if ratio.high < GONE_SHARE:
        return GONE
    if ratio.high < 1:
        return FEWER
    return MORE if ratio.low > 1 else STILL


def _beside_findings(row: Row, setting: str) -> Iterator[Finding]:
    """Say of every kind of event whether it comes together with the spikes of the program as it is.

    Each run is explained by itself. Named: in at least half of the runs the event comes together with spikes
    more often than by chance, and over runs it explains half of their time; in part: a tenth.
    """
    explained = [
        each.explanation for each in row.spikes if each.explanation is not None and each.explanation.kinds
    ]
    found = []
    for kind in dict.fromkeys(each.kind for one in explained for each in one.kinds):
        rows = [next((each for each in one.kinds if each.kind == kind), None) for one in explained]
        found.append(_beside(kind, setting, rows, row))
    yield from sorted(found, key=lambda each: -(each.estimates["explained"].value or 0.0))


def _beside(kind: str, setting: str, rows: Sequence[CoOccurrence | None], row: Row) -> Finding:
    present = [each for each in rows if each is not None]
    often = sum(each.is_significant for each in present)
    explained = over_runs(
        [0.0 if each is None else 100 * each.attributed_share for each in rows], "percent", row.counts.total
    )
    share = over_runs([0.0 if each is None else 100 * each.share for each in rows], "percent")
    by_chance = over_runs([0.0 if each is None else 100 * each.expected_share for each in rows], "percent")
    value = (explained.value or 0.0) / 100
    verdict = "not named"
    if often >= OFTEN * len(rows):
        verdict = "named" if value >= MAIN_SHARE else "named in part" if value >= PART_SHARE else verdict
    return finding(
        "beside_spikes",
        {"cause": kind, "setting": setting},
        verdict,
        estimates={"explained": explained, "share": share},
        facts={
            "runs": len(rows),
            "significant_runs": often,
            "events": sum(each.events for each in present),
            "beside": sum(each.overlapping for each in present),
            "by_chance_percent": by_chance.value,
        },
        evidence=_evidence(row.cell, "time of spikes during which an event lasts, over runs"),
    )


def _period_findings(row: Row, setting: str) -> Iterator[Finding]:
    periods = [each.period for each in row.spikes if each.period is not None]
    if periods:
        yield period_finding(setting, periods, _evidence(row.cell, "begins of spikes, by run"))


def _conclusion(setting: str, rows: Sequence[Finding], causes: Sequence[Finding]) -> Finding:
    """Say which intervention removes the spikes, and what stands beside them."""
    total = int(rows[0].facts["spikes"] or 0)
    removing = [each for each in rows[1:] if each.verdict == GONE]
    fewer = [each for each in rows[1:] if each.verdict == FEWER]
    named = [each for each in causes if each.verdict != "not named"]
    if total < FEWEST_SPIKES:
        verdict = "hardly any spikes"
    elif removing:
        verdict = "removed"
    else:
        verdict = "reduced" if fewer else "not removed"
    best = min(removing or fewer, key=_left, default=None)
    nearest = best or min(rows[1:], key=_left, default=None)
    estimates = {"peaks": rows[0].estimates["peaks"]}
    if nearest is not None:
        estimates["left"] = nearest.estimates["over_first"]
    return finding(
        "cause_tree",
        {"setting": setting},
        verdict,
        estimates=estimates,
        facts={
            "spikes": total,
            "removed_by": "" if best is None else best.subject["intervention"],
            "sentence": "" if best is None else best.facts["sentence"],
            "nearest": "" if nearest is None else nearest.subject["intervention"],
            "all_removing": ", ".join(each.subject["intervention"] for each in removing),
            "all_reducing": ", ".join(each.subject["intervention"] for each in fewer),
            "cause": named[0].subject["cause"] if named else "",
            "cause_percent": named[0].estimates["explained"].value if named else None,
            "other_causes": ", ".join(each.subject["cause"] for each in named[1:]),
            "interventions": len(rows) - 1,
        },
        evidence=rows[0].evidence[0],
    )


def _left(row: Finding) -> float:
    value = row.estimates["over_first"].value
    return math.inf if value is None else value


def _rate(rate: Rate, row: Row) -> Estimate:
    return Estimate(
        rate.value,
        "per 10^6 calls",
        "exact Poisson limits" if rate.method == "poisson" else "negative binomial over runs",
        rate.low,
        rate.high,
        rate.level,
        units=len(row.spikes),
        measurements=rate.count,
    )


def _ratio(ratio: DispersedRatio, first: Row, second: Row) -> Estimate:
    high = finite(ratio.high)
    return Estimate(
        finite(ratio.value),
        "ratio",
        "conditional binomial limits, counts over the dispersion of runs",
        finite(ratio.low) if high is not None else None,
        high,
        LEVEL if high is not None else None,
        units=min(len(first.spikes), len(second.spikes)),
        measurements=first.counts.total + second.counts.total,
    )


def _plain(value: float, calls: int) -> Estimate:
    return Estimate(finite(value), "ratio", "all calls after the first half", measurements=calls)


def _evidence(cell: CellRuns, statistic: str) -> Evidence:
    return Evidence("traces/*/calls.parquet", {"folder": cell.places}, ("start_ns", "duration_ns"), statistic)
