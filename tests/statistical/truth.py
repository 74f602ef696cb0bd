"""How often the intervals and verdicts are right, computed and written as a page of the documentation.

``python -m statistical.truth --replicates 1000 --write docs/concepts/coverage.md`` (from ``tests/``;
``make truth`` does it). Every replicate has its own stream, so a row is the same on every machine.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import stats

import steelyard
from statistical import breaks, guarantee_tables
from statistical.kinds import kinds
from statistical.scenarios import Scenario, scenarios
from steelyard.analyse.comparison.equivalence import Margin, Verdict, ratio_test, verdict_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

SIZES: Final = (10, 30, 100, 1000)
LEVEL: Final = 0.95
RESAMPLES: Final = 1999
ROUNDING: Final = 1e-12
NOMINAL_PROMISE: Final = 0.93
"""A default 95 % interval covers at least this much wherever it says that it is guaranteed."""

MEAN_METHODS: Final = ("auto", "t", "percentile", "bca", "studentised")
RATIOS: Final = (1.0, 1.01, 1.02, 1.05, 1.1)
RUNS: Final = 10
"""Runs a side in the tables of verdicts."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one interval did in one scenario at one size.

    Parameters
    ----------
    covered, guaranteed, guaranteed_covered : int
        Replicates whose interval holds the truth; that claim to keep their level; both.
    replicates : int
        Of how many.
    """

    scenario: Scenario
    statistic: str
    method: str
    size: int
    replicates: int
    covered: int
    guaranteed: int
    guaranteed_covered: int

    @property
    def coverage(self) -> float:
        """Part of the intervals that hold the truth."""
        return self.covered / self.replicates

    @property
    def guaranteed_misses(self) -> int:
        """Intervals that claim their level and miss the truth."""
        return self.guaranteed - self.guaranteed_covered


def stream(table: int, scenario: Scenario, size: int, replicate: int) -> np.random.Generator:
    """Give the generator of one replicate."""
    return np.random.default_rng([table, ord(scenario.letter), size, replicate])


def coverage(scenario: Scenario, statistic: str, method: str, size: int, replicates: int) -> Row:
    """Count how often an interval holds the truth."""
    truth = {"mean": scenario.mean, "iqr": scenario.quartile_range}[statistic]
    covered = guaranteed = both = 0
    for replicate in range(replicates):
        values = scenario.draw(stream(1, scenario, size, replicate), size)
        found = steelyard.interval(
            values,
            statistic=statistic,
            method=method,
            level=LEVEL,
            clusters=scenario.processes(size) if method == "auto" else None,
            seed=replicate,
            resamples=RESAMPLES,
        )
        # Ticks make limits that equal the truth but for the rounding of a difference.
        slack = ROUNDING * truth
        holds = found.low - slack <= truth <= found.high + slack
        covered += holds
        guaranteed += found.guaranteed
        both += holds and found.guaranteed
    return Row(scenario, statistic, method, size, replicates, covered, guaranteed, both)


def run_values(scenario: Scenario, rng: np.random.Generator, iterations: int) -> NDArray[np.float64]:
    """Give the means of ten runs; in scenario I each run has a level of its own, as processes have."""
    if scenario.has_processes:
        return scenario.draw(rng, RUNS * iterations).reshape(RUNS, -1).mean(axis=1)
    return np.array([scenario.draw(rng, iterations).mean() for _ in range(RUNS)])


def verdicts(scenario: Scenario, ratio: float, replicates: int, iterations: int = 100) -> dict[Verdict, int]:
    """Count the verdicts on ten runs against ten runs that are slower by a true ratio."""
    counts = dict.fromkeys(Verdict, 0)
    for replicate in range(replicates):
        rng = stream(2, scenario, round(1000 * ratio), replicate)
        first, second = (run_values(scenario, rng, iterations) for _ in range(2))
        test = ratio_test(first, ratio * second, Margin())
        counts[verdict_of(test, test.p_different, test.p_equivalent)] += 1
    return counts


def compatible(misses: int, total: int, nominal: float) -> bool:
    """Whether so many misses can come from the nominal rate (one-sided, 1 in 1000)."""
    return total == 0 or float(stats.binom.sf(misses - 1, total, nominal)) > 0.001


def method_table(replicates: int, size: int = 30) -> Iterator[str]:
    """Give the coverage of every interval of the mean at one size."""
    yield "| scenario | " + " | ".join(MEAN_METHODS) + " |"
    yield "|---|" + "---:|" * len(MEAN_METHODS)
    for scenario in scenarios():
        rows = [coverage(scenario, "mean", method, size, replicates) for method in MEAN_METHODS]
        cells = " | ".join(f"{100 * row.coverage:.1f}" for row in rows)
        yield f"| {scenario.letter}: {scenario.text} | {cells} |"


def spread_table(replicates: int) -> Iterator[str]:
    """Give the coverage of the default interval of the interquartile range."""
    yield "| scenario | " + " | ".join(f"n = {size}" for size in SIZES) + " |"
    yield "|---|" + "---:|" * len(SIZES)
    for scenario in scenarios():
        rows = [coverage(scenario, "iqr", "auto", size, replicates) for size in SIZES]
        cells = " | ".join(f"{100 * row.coverage:.1f}" for row in rows)
        yield f"| {scenario.letter}: {scenario.text} | {cells} |"


def verdict_table(replicates: int) -> Iterator[str]:
    """Give how often ten runs are called different from ten runs, by the true difference."""
    heads = ["no difference", *(f"{100 * (ratio - 1):.0f} % slower" for ratio in RATIOS[1:])]
    yield "| scenario | " + " | ".join(heads) + " | equivalent at the margin |"
    yield "|---|" + "---:|" * (len(RATIOS) + 1)
    at_margin = 1 + Margin().relative
    for scenario in scenarios():
        counts = {ratio: verdicts(scenario, ratio, replicates) for ratio in RATIOS}
        different = [each[Verdict.SLOWER] + each[Verdict.FASTER] for each in counts.values()]
        cells = " | ".join(f"{100 * count / replicates:.1f}" for count in different)
        wrong = counts[at_margin][Verdict.EQUIVALENT]
        yield f"| {scenario.letter}: {scenario.text} | {cells} | {100 * wrong / replicates:.1f} |"


PAGE: Final = """# How often the intervals are right

This page is computed, not claimed: {kinds} kinds of data whose truth is known, {of_kinds} samples of each
in the first four tables, and of ten of them {replicates} samples in the others. A percentage of {of_kinds}
samples is known to {error_of_kinds:.1f} points (95 %), of {replicates} to {error:.1f}. `make truth` computes
this page again; the same promises are tests.

## What is guaranteed: the interval of the mean

Every output says whether it is *guaranteed* to keep its level, by [one rule](intervals.md#not-guaranteed).
The promise: where it says so, at least 93 % of the 95 % intervals contain the mean; and it says so in nine of
ten samples of the **bold** kinds from 30 values on, so that the flag means something. A cell is *claimed,
%*: *covers where claimed, %*; a rate of fewer than 20 claims is not given.

No rule can see what did not come: a sample of 30 without one of the 1 % spikes looks like one of a program
that has none. Its interval is judged by the mean of what came. The coverage of the mean with what
did not come is in brackets, where it differs: `unseen_share` of the result says how often such a value may
come.

The promise is not kept everywhere. Where few samples of a kind are guaranteed, those are the ones that look
better than they are: correlation of 0.5 in 30 values without labels, processes of random scale without labels
from 300 values on, and lognormal 1.5 with few values miss it; in comparisons without labels, correlation of
0.3 and 0.5. Labels of the runs leave none of these but the lognormal one.

Without labels of runs, n values in the order of measurement; kinds with processes have ten of them:

{series}

With labels, runs x values in each:

{runs}

## What is guaranteed: comparisons

Two samples of the same kind, called different at the 5 % level. A cell is *claimed, %*: *false alarms where
claimed, %* (*in all pairs, %*). With labels, runs of the first side : runs of the second; a run of a
series, drift or process is the mean of ten values:

{labelled_alarms}

Without labels, values of the first side : values of the second, both in the order of measurement:

{series_alarms}

## Every interval of the mean at n = 30

The default (`auto`) knows the processes of scenario I, as it knows those of a recorded result; the others
treat the values as independent. No method keeps its level with autocorrelation or processes that it does not
know of.

{methods}

## The default interval of the interquartile range

{spread}

## Verdicts: ten runs of 100 iterations against ten

How often a difference is found, in per cent; the first column is the rate of false alarms (nominal 5). The
last one is how often two programs that differ by the whole margin of {margin:.0f} % are called equivalent.

{verdicts}

## Breakpoints of piecewise models

Planted: message sizes 10^U(0, 7); 5 us below 3000 bytes, 4.2 us + 1.112 ns a byte up to 65 000, 415.5 us +
8.497 ns a byte beyond; noise factor 1 + lognormal(ln 0.05, 1), and spikes of 0.1 ms times Pareto(1.5) on 1 %
of the messages. The search (default options) knows nothing of this. Errors are |found / planted - 1|, median
and 95 % quantile; coverage is that of the 95 % intervals of fits with exactly two breaks, which do not say
how certain that number is. The last column is one straight line with the same noise.

{breaks}
"""


def page(replicates: int) -> str:
    """Compute the whole page."""
    return PAGE.format(
        replicates=replicates,
        error=_error(replicates),
        kinds=len(kinds()),
        of_kinds=guarantee_tables.REPLICATES,
        error_of_kinds=_error(guarantee_tables.REPLICATES),
        series="\n".join(guarantee_tables.series_table()),
        runs="\n".join(guarantee_tables.runs_table()),
        labelled_alarms="\n".join(guarantee_tables.labelled_alarm_table()),
        series_alarms="\n".join(guarantee_tables.series_alarm_table()),
        methods="\n".join(method_table(replicates)),
        spread="\n".join(spread_table(replicates)),
        verdicts="\n".join(verdict_table(replicates)),
        breaks="\n".join(breaks.table()),
        margin=100 * Margin().relative,
    )


def _error(replicates: int) -> float:
    """Give 1.96 standard errors of a rate of 95 %, in points."""
    return 100 * 1.96 * math.sqrt(0.05 * 0.95 / replicates)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    text = page(options.replicates)
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
