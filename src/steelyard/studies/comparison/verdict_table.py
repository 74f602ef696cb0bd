"""The verdicts of a suite as one table: what changed first, and what this job could have seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy

from steelyard.analyse.comparison.equivalence import Verdict
from steelyard.analyse.comparison.quantile_ratio import Quantile, quantile_of
from steelyard.report.shown_text import inert, shown
from steelyard.studies.comparison.claim import WITHIN_WORDS, signed_percent
from steelyard.studies.comparison.contender import short
from steelyard.studies.comparison.sample import values_of
from steelyard.studies.comparison.text import closing_lines, written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.studies.comparison.claim import Claim
    from steelyard.studies.comparison.outcome import Comparison

NOT_MEASURED: Final = "not measured"
NOT_SETTLED: Final = "not settled"
_NAMED: Final = 3
"""Benchmarks that a sentence names."""
POWER: Final = 0.8
"""How surely a change must be found that a job is said to see."""
_ORDER: Final = (
    *("slower", NOT_MEASURED, "faster", NOT_SETTLED, "slightly slower", "slightly faster", "equivalent"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One verdict of a suite.

    Parameters
    ----------
    benchmark, side, baseline : str
        What was measured, in which revision, against which.
    claim : Claim
        Everything that is claimed.
    medians : tuple of float
        Medians of baseline and contender, or the quantiles that are compared, in the unit of the metric; for
        people, no claim.
    """

    benchmark: str
    side: str
    baseline: str
    claim: Claim
    medians: tuple[float, ...]

    @property
    def word(self) -> str:
        """The verdict in a word or two.

        A difference that is sure and within the margin is a slight one: it fails nothing.
        """
        claim = self.claim
        if claim.is_regression or claim.is_improvement:
            return str(claim.verdict)
        if claim.verdict in {Verdict.EQUIVALENT, Verdict.NA}:
            return "equivalent" if claim.verdict is Verdict.EQUIVALENT else NOT_MEASURED
        is_sure = claim.verdict in {Verdict.SLOWER, Verdict.FASTER}
        return f"slightly {claim.verdict}" if is_sure and claim.is_settled else NOT_SETTLED

    @property
    def change(self) -> str:
        """The estimate; `-` where there is none."""
        return signed_percent(self.claim.ratio) if math.isfinite(self.claim.ratio) else "-"

    @property
    def interval(self) -> str:
        """The interval on which the verdict rests; `-` where there is none."""
        claim = self.claim
        low, high = claim.narrow if claim.verdict is Verdict.EQUIVALENT else (claim.low, claim.high)
        return f"{signed_percent(low)} to {signed_percent(high)}" if 0 < low <= high < math.inf else "-"

    @property
    def visible(self) -> float | None:
        """Smallest slowdown that a job like this calls slower in 80 of 100 cases, as a ratio less 1.

        Two things must come true: the interval excludes 1, so the estimate is above its half-width, and the
        estimate is above the margin. For a power above one half the slowdown must be larger than either by as
        many standard errors as the normal distribution asks for.
        """
        claim = self.claim
        if not (0 < claim.low <= claim.high < math.inf):
            return None
        half = math.log(claim.high / claim.low) / 2
        error = (1 - claim.level) / claim.family
        quantile = scipy.special.ndtri
        standard_error = half / float(quantile(1 - error / 2))
        needed = max(half, math.log1p(claim.margin))
        return math.expm1(needed + float(quantile(POWER)) * standard_error)


def rows_of(found: Comparison) -> list[Row]:
    """Give the verdicts, what changed beyond its margin first, then the larger change first."""
    numbers = {contender.name: contender for contender in found.contenders}
    rows = []
    for claim in found.claims:
        first, second = numbers[claim.baseline], numbers[claim.contender]
        medians = tuple(_middle(found, claim, contender.number) for contender in (first, second))
        rows.append(
            Row(
                f"{second.benchmark or second.name}{claim.suffix}",
                second.side or f"{second.name}{claim.suffix}",
                first.side or first.name,
                claim,
                medians,
            )
        )
    return sorted(rows, key=lambda row: (_ORDER.index(row.word), -abs(_log(row.claim.ratio))))


def _middle(found: Comparison, claim: Claim, number: int) -> float:
    """Give the quantile of a command that is compared; else its median."""
    if not claim.suffix:
        return found.summaries[number].median
    values, _ = values_of(found.runs, number, found.terms.metric.quantity)
    return quantile_of(np.sort(values), Quantile.parse(claim.statistic).share) if values.size else math.nan


def summary_of(rows: list[Row]) -> str:
    """Give the first line: how many verdicts of which kind."""
    counts = {word: sum(row.word == word for row in rows) for word in _ORDER}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def warnings_of(found: Comparison) -> Iterator[str]:
    """Give the warnings, of each kind the first ones."""
    kinds: dict[str, list[str]] = {}
    for warning in found.warnings:
        kinds.setdefault(warning.partition(":")[0], []).append(warning)
    for kind, warnings in kinds.items():
        shown_of_kind = warnings if kind in {"machine", "revisions", "failed"} else warnings[:1]
        yield from shown_of_kind
        if len(warnings) > len(shown_of_kind):
            yield f"{kind}: {len(warnings) - len(shown_of_kind)} more of this kind"


def reading_of(found: Comparison, rows: list[Row]) -> Iterator[str]:
    """Say what the verdicts rest on, and what could have been seen."""
    claim = found.claims[0]
    error = 100 * (1 - claim.level)
    together = "" if len(rows) == 1 else f" for all {len(rows)} verdicts together"
    yield (
        "A benchmark counts as slower if it certainly is, and by more than its margin; an error is made in "
        f"at most {error:.3g} % of jobs{together}."
    )
    yield from _statistics(rows)
    seen = [row.visible for row in rows if row.visible is not None]
    if seen:
        least, most = (f"{100 * value:.2g} %" for value in (min(seen), max(seen)))
        span = least if least == most else f"{least} to {most}, by benchmark"
        yield f"Smallest slowdown that this job finds in 80 of 100 cases: {span}."


def _statistics(rows: Sequence[Row]) -> Iterator[str]:
    """Say which benchmarks are compared by another statistic of a process than its mean."""
    named: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.claim.within:
            named.setdefault(row.claim.within, {})[row.benchmark] = None
    for statistic, names in named.items():
        shown_names = ", ".join(f"`{short(name)}`" for name in list(names)[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield (
            f"The time of {shown_names}{more} is the {WITHIN_WORDS[statistic]} of what a process measures, "
            "not the mean."
        )


def cells_of(row: Row, metric: str) -> tuple[str, ...]:
    """Give a row as texts: benchmark, before, after, change, interval, verdict, margin, runs."""
    return (
        row.benchmark,
        written(row.medians[0], metric),
        written(row.medians[1], metric),
        row.change,
        row.interval,
        row.word,
        f"{100 * row.claim.margin:.3g} %",
        str(max(row.claim.runs)),
    )


HEADS: Final = ("benchmark", "before", "after", "change", "interval", "verdict", "margin", "runs")
_SHOWN: Final = 6
"""Columns of it on a terminal."""
_TERMINAL_WIDTH: Final = 80
_SHORTEST_NAME: Final = 16
_GAP: Final = "  "


def render_suite(found: Comparison) -> str:
    """Give the verdicts of a suite for a terminal; it ends with a line feed."""
    rows, metric = rows_of(found), str(found.terms.metric)
    table = _fitting([HEADS[:_SHOWN], *(cells_of(row, metric)[:_SHOWN] for row in rows)])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [summary_of(rows)]
    # Revisions have one heading for each that is compared; the table is sorted within it.
    for baseline, side in dict.fromkeys((row.baseline, row.side) for row in rows):
        lines += ["", f"`{side}` against `{baseline}`, {found.terms.metric.words}", _line(table[0], widths)]
        lines += [
            _line(cells, widths)
            for row, cells in zip(rows, table[1:], strict=True)
            if (row.baseline, row.side) == (baseline, side)
        ]
    lines += ["", *reading_of(found, rows)]
    lines += [f"warning: {warning}" for warning in warnings_of(found)]
    lines += ["", *closing_lines(found, says_what_would_settle=False)]
    return inert("\n".join(map(shown, lines)) + "\n")


def _fitting(table: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Make a table fit on a terminal: where names are long, without the median before, then shortened."""
    table = [(shown(name), *others) for name, *others in table]

    def room() -> int:
        others = [max(map(len, column)) for column in zip(*(row[1:] for row in table), strict=True)]
        return _TERMINAL_WIDTH - sum(others) - len(_GAP) * len(others)

    longest = max(len(row[0]) for row in table)
    if longest > room():
        table = [(name, *others) for name, _, *others in table]
    return [(short(name, max(room(), _SHORTEST_NAME)), *others) for name, *others in table]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Write a row of the table: names and verdicts to the left, numbers to the right."""
    return _GAP.join(
        cell.ljust(width) if at in {0, len(cells) - 1} else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ).rstrip()


def _log(ratio: float) -> float:
    return math.log(ratio) if 0 < ratio < math.inf else 0.0
