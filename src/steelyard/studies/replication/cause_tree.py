"""The cause tree: ordered interventions, each against the row before and against the program as it is.

**Spikes gone**: the whole interval of the rate of spikes over that of the program as it is lies below
`GONE_SHARE`. **Fewer spikes**: the whole interval lies below one. Else **still spikes**, or **more spikes**
where the whole interval lies above one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scipy import special

from steelyard.analyse.event_rate import LEVEL, Events, event_rate, rate_ratio
from steelyard.model import Estimate, Evidence
from steelyard.studies.analysis_parts import finding, finite
from steelyard.studies.replication.estimates import over_runs
from steelyard.studies.replication.run_parts import MEAN, WHOLE
from steelyard.studies.replication.spikes import RULE, excess_of, measured_calls, spikes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.analyse.event_rate import RateInterval
    from steelyard.model import Finding
    from steelyard.studies.replication.spikes import Spikes
    from steelyard.studies.replication.summaries import CellRuns, Key

EXPERIMENT: Final = "causes"
AS_IT_IS: Final = "as-it-is"
GONE_SHARE: Final = 0.25
"""Rate of spikes that may be left, of that of the program as it is, where they count as gone."""

NAMED_SHARE: Final = 0.2
"""Share of spikes beyond chance that an event must surely stand beside to be named as their cause."""

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
    def events(self) -> Events:
        """Spikes of each run, over millions of calls."""
        return Events(
            tuple(each.count for each in self.spikes),
            tuple(each.calls / PER_MILLION for each in self.spikes),
        )


def cause_findings(cells: Mapping[Key, CellRuns], sentences: Mapping[str, str]) -> Iterator[Finding]:
    """Give the rows of the cause tree, what stands beside the spikes, and the conclusion, by setting.

    Parameters
    ----------
    cells : mapping
        All cells of the result.
    sentences : mapping
        What each intervention changes, in words.
    """
    for setting in dict.fromkeys(key[2] for key in cells if key[0] == EXPERIMENT):
        chosen = [cell for key, cell in cells.items() if (key[0], key[2]) == (EXPERIMENT, setting)]
        first = cells.get((EXPERIMENT, AS_IT_IS, setting))
        if first is None:
            continue
        rows, excess = _rows(first, chosen)
        found = [
            _row_finding(rows, place, excess, sentences.get(row.name, "")) for place, row in enumerate(rows)
        ]
        causes = list(_beside_findings(rows[0], setting))
        yield from found
        yield from causes
        yield _conclusion(setting, found, causes)


def _rows(first: CellRuns, cells: Sequence[CellRuns]) -> tuple[list[Row], float]:
    """Give the rows in order, the program as it is first; one run is read after the other."""
    of_first = [run.recorded.run for run in first.runs if run.recorded.run is not None]
    excess = _common_excess([excess_of([measured_calls(run)[1]]) for run in of_first])
    ordered = [first, *(cell for cell in cells if cell is not first)]
    rows = [
        Row(
            cell,
            tuple(spikes_of(run.recorded.run, excess) for run in cell.runs if run.recorded.run is not None),
        )
        for cell in ordered
    ]
    return rows, excess


def _common_excess(found: Sequence[float]) -> float:
    ascending = sorted(found)
    return ascending[len(ascending) // 2]


def _row_finding(rows: Sequence[Row], place: int, excess: float, sentence: str) -> Finding:
    row, first = rows[place], rows[0]
    pooled = row.cell.pooled(WHOLE)
    calls = pooled.size
    against = None if place == 0 else rate_ratio(first.events, row.events)
    estimates = {
        "mean": over_runs(row.cell.values(WHOLE, MEAN), "ns", calls),
        "cv": _plain(pooled.sd / pooled.mean, calls),
        "max_over_mean": _plain(pooled.high / pooled.mean, calls),
        "peaks": _rate(event_rate(row.events), row),
    }
    if against is not None:
        estimates["over_first"] = _ratio(against, first, row)
        estimates["over_before"] = _ratio(
            rate_ratio(rows[place - 1].events, row.events), rows[place - 1], row
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
            "spikes": row.events.total,
            "calls": calls,
            "runs": len(row.spikes),
            "excess_ns": excess,
            "rule": RULE,
            "gone_percent": 100 * GONE_SHARE,
        },
        evidence=_evidence(row.cell, "spikes per 10^6 calls after the first half, over runs"),
    )


def judged(ratio: RateInterval) -> str:
    """Judge the rate of spikes over that of the program as it is.

    Examples
    --------
    >>> from steelyard.analyse.event_rate import RateInterval
    >>> judged(RateInterval(0.05, 0.02, 0.1, 1.0)), judged(RateInterval(0.9, 0.7, 1.2, 1.0))
    ('spikes gone', 'still spikes')
    """
    if ratio.high < GONE_SHARE:
        return GONE
    if ratio.high < 1:
        return FEWER
    return MORE if ratio.low > 1 else STILL


def _beside_findings(row: Row, setting: str) -> Iterator[Finding]:
    """Say of every kind of event how many spikes of the program as it is it stands beside, beyond chance."""
    total = row.events.total
    names = dict.fromkeys(name for each in row.spikes for name in each.beside)
    for name in names:
        beside = sum(each.beside.get(name, 0) for each in row.spikes)
        by_chance = math.fsum(each.by_chance.get(name, 0.0) for each in row.spikes)
        if not total:
            continue
        chance = by_chance / total
        limits = _share_limits(beside, total)
        explained = [max(0.0, (share - chance) / (1 - chance)) if chance < 1 else 0.0 for share in limits]
        is_named = explained[0] >= NAMED_SHARE and total >= FEWEST_SPIKES
        yield finding(
            "beside_spikes",
            {"cause": name, "setting": setting},
            "named" if is_named else "not named",
            estimates={
                "share": Estimate(
                    100 * beside / total,
                    "percent",
                    "Clopper-Pearson",
                    100 * limits[0],
                    100 * limits[1],
                    LEVEL,
                    units=total,
                    measurements=total,
                ),
                "explained": Estimate(
                    100 * max(0.0, (beside / total - chance) / (1 - chance)) if chance < 1 else 0.0,
                    "percent",
                    "share beyond that of events shifted in time",
                    100 * explained[0],
                    100 * explained[1],
                    LEVEL,
                    units=total,
                    measurements=total,
                ),
            },
            facts={"spikes": total, "beside": beside, "by_chance_percent": 100 * chance},
            evidence=_evidence(row.cell, "spikes during which an event lies"),
        )


def _share_limits(hits: int, total: int) -> tuple[float, float]:
    """Give the exact limits of a share (Clopper & Pearson 1934)."""
    tail = (1 - LEVEL) / 2
    low = float(special.betaincinv(hits, total - hits + 1, tail)) if hits else 0.0
    high = float(special.betaincinv(hits + 1, total - hits, 1 - tail)) if hits < total else 1.0
    return low, high


def _conclusion(setting: str, rows: Sequence[Finding], causes: Sequence[Finding]) -> Finding:
    """Say which intervention removes the spikes, and what stands beside them."""
    total = int(rows[0].facts["spikes"] or 0)
    removing = [each for each in rows[1:] if each.verdict == GONE]
    fewer = [each for each in rows[1:] if each.verdict == FEWER]
    named = sorted(
        (each for each in causes if each.verdict == "named"),
        key=lambda each: -(each.estimates["explained"].value or 0.0),
    )
    if total < FEWEST_SPIKES:
        verdict = "hardly any spikes"
    elif removing:
        verdict = "removed"
    else:
        verdict = "reduced" if fewer else "not removed"
    best = min(removing or fewer, key=_left, default=None)
    return finding(
        "cause_tree",
        {"setting": setting},
        verdict,
        estimates={} if best is None else {"left": best.estimates["over_first"]},
        facts={
            "spikes": total,
            "removed_by": "" if best is None else best.subject["intervention"],
            "sentence": "" if best is None else best.facts["sentence"],
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


def _rate(rate: RateInterval, row: Row) -> Estimate:
    return Estimate(
        finite(rate.value),
        "per 10^6 calls",
        _method(rate, "exact Poisson limits"),
        finite(rate.low),
        finite(rate.high),
        LEVEL,
        units=len(row.spikes),
        measurements=row.events.total,
    )


def _ratio(ratio: RateInterval, first: Row, second: Row) -> Estimate:
    high = finite(ratio.high)
    return Estimate(
        finite(ratio.value),
        "ratio",
        _method(ratio, "conditional binomial limits"),
        finite(ratio.low) if high is not None else None,
        high,
        LEVEL if high is not None else None,
        units=min(len(first.spikes), len(second.spikes)),
        measurements=first.events.total + second.events.total,
    )


def _method(interval: RateInterval, name: str) -> str:
    return name if interval.dispersion == 1 else f"{name}, counts over the dispersion of runs"


def _plain(value: float, calls: int) -> Estimate:
    return Estimate(finite(value), "ratio", "all calls after the first half", measurements=calls)


def _evidence(cell: CellRuns, statistic: str) -> Evidence:
    return Evidence("traces/*/calls.parquet", {"folder": cell.places}, ("start_ns", "duration_ns"), statistic)
