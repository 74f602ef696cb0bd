"""How often a gate is red without a change, and what it finds: computed from real runs, written as a page.

``benches/gate_jobs.py`` records: a suite of real benchmarks of several harnesses, the same revision twice but
for its documentation, sides in random order, each session with builds of its own. Here these runs are dealt
out to jobs again, which the measuring loop of ``steelyard bench`` itself works off with a clock of its own:
what it would have run next is the next recorded pair of runs. A change is planted by multiplying the times of
the second side.

``python -m statistical.gate --write docs/concepts/gate.md`` (from ``tests/``; ``make truth`` does it).
"""

from __future__ import annotations

import argparse
import json
import math
import operator
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import numpy as np
import polars as pl
from scipy import stats

from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.studies.comparison.contender import Commands, Side
from steelyard.studies.comparison.outcome import Measured, conclude
from steelyard.studies.comparison.run import measuring as loop
from steelyard.studies.comparison.run.execution import Unwatched
from steelyard.studies.comparison.terms import Terms, draw_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

RECORDED: Final = Path(__file__).with_name("gate-jobs.parquet")
COUNTED: Final = Path(__file__).with_name("gate-instructions.json")
MINUTES: Final = (0.5, 1.0, 2.0, 4.0)
PLANTED: Final = (1.02, 1.05, 1.10)
MARGIN: Final = 0.02
MOST_BLOCKS: Final = 300
LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True)
class Stream:
    """Pairs of runs of one benchmark in the order of time.

    Parameters
    ----------
    values : ndarray, shape (n, 2)
        Times of the two sides [ns].
    costs : ndarray, shape (n,)
        What a pair took, start of processes included [s].
    """

    values: NDArray[np.float64]
    costs: NDArray[np.float64]


Session = dict[str, Stream]


def sessions(path: Path = RECORDED) -> list[Session]:
    """Read what was recorded."""
    table = pl.read_parquet(path).sort("session", "benchmark", "pair")
    found: dict[int, Session] = {}
    for (session, benchmark), rows in table.group_by("session", "benchmark", maintain_order=True):
        values = rows.select("baseline_ns", "contender_ns").to_numpy().astype(np.float64)
        costs = rows["cost_s"].to_numpy().astype(np.float64)
        found.setdefault(int(str(session)), {})[str(benchmark)] = Stream(values, costs)
    return list(found.values())


class Exhausted(Exception):  # noqa: N818 - a signal
    """A benchmark of the session has no further pair."""


class Dealer:
    """Deals the pairs of a session to jobs, each pair once."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.places = dict.fromkeys(session, 0)

    def cost_s(self, benchmark: str) -> float:
        """Give what the next pair of a benchmark will take."""
        stream, place = self.session[benchmark], self.places[benchmark]
        if place == len(stream.costs):
            raise Exhausted
        return float(stream.costs[place])

    def next(self, benchmark: str) -> tuple[NDArray[np.float64], float]:
        """Give the next pair of a benchmark, and what it took."""
        cost_s, place = self.cost_s(benchmark), self.places[benchmark]
        self.places[benchmark] += 1
        return self.session[benchmark].values[place], cost_s


class _Recorded:
    """Launches of a job: every run is a recorded one, and takes its time on a clock of its own."""

    def __init__(self, dealer: Dealer, planted: Mapping[str, float]) -> None:
        self.now_s = 0.0
        self._dealer = dealer
        self._planted = planted
        self._pair: dict[str, tuple[NDArray[np.float64], float]] = {}

    def monotonic(self) -> float:
        return self.now_s

    def execute(self, contender: Any, *_: object) -> Any:
        pair = self._pair.pop(contender.benchmark, None)
        if pair is None:
            pair = self._pair[contender.benchmark] = self._dealer.next(contender.benchmark)
        values, cost_s = pair
        self.now_s += cost_s / 2
        is_second = contender.side == "second"
        value = values[int(is_second)] * (self._planted.get(contender.benchmark, 1.0) if is_second else 1.0)
        return SimpleNamespace(
            status="completed",
            exit_code=0,
            flags=(),
            own=(),
            quantities={},
            start_ns=None,
            end_ns=None,
            value=lambda _: value,
        )

    def ignore(self, *_: object) -> None:
        """Keep nothing."""


def red(dealer: Dealer, minutes: float, planted: Mapping[str, float], seed: int) -> set[str]:
    """Give the benchmarks that a job calls slower by more than the margin.

    Raises
    ------
    Exhausted
        If the session has not so many pairs left.
    """
    names = tuple(dealer.session)
    sides = (Side("first", Path()), Side("second", Path()))
    commands = Commands(names, names, sides=sides, margins=(MARGIN,) * len(names))
    entrants = commands.field()
    extent = Extent(blocks_max=MOST_BLOCKS, budget_s=60 * minutes, is_strict=True)
    terms = Terms(margin=Margin(MARGIN, LEVEL), extent=extent, seed=seed, margins=entrants.margins)
    recorded = _Recorded(dealer, planted)
    silent = SimpleNamespace(
        admit=recorded.ignore, keep=recorded.ignore, note=recorded.ignore, settle=recorded.ignore
    )
    launches = SimpleNamespace(execute=recorded.execute, judge=recorded.ignore)
    with mock.patch.object(loop, "time", recorded), mock.patch.object(loop, "execute_line", recorded.ignore):
        plan = draw_plan(entrants, terms)
        job: Any = loop.Measuring(plan, entrants, terms, launches, silent)  # type: ignore[arg-type]
        job.execute(Unwatched())
        duels = tuple(job.duels)
        measured = Measured(terms, entrants.contenders, tuple(job.runs), duels, job.end, recorded.now_s)
    numbers = {contender.name: contender.benchmark for contender in entrants.contenders}
    return {numbers[claim.contender] for claim in conclude(measured, (), None).claims if claim.is_regression}


@dataclass(frozen=True, slots=True)
class Fixed:
    """Pairs that fit into the minutes if each benchmark gets the same part of them: what other rules see."""

    values: dict[str, NDArray[np.float64]]
    before: dict[str, float]

    @classmethod
    def deal(cls, dealer: Dealer, minutes: float, before: dict[str, float]) -> Fixed:
        """Deal a job."""
        share_s = 60 * minutes / len(dealer.session)
        values = {}
        for name in dealer.session:
            pairs: list[NDArray[np.float64]] = []
            left_s = share_s
            while not pairs or dealer.cost_s(name) <= left_s:
                pair, cost_s = dealer.next(name)
                pairs.append(pair)
                left_s -= cost_s
            values[name] = np.array(pairs)
        return cls(values, before)


def disjoint(job: Fixed, planted: Mapping[str, float]) -> set[str]:
    """Give the benchmarks whose 95 % intervals of the means do not overlap, the second one above."""
    found = set()
    for name, values in job.values.items():
        if len(values) < 2:
            continue
        means = values.mean(axis=0) * [1, planted.get(name, 1.0)]
        errors = values.std(axis=0, ddof=1) / math.sqrt(len(values)) * [1, planted.get(name, 1.0)]
        half = float(stats.t.ppf(0.975, len(values) - 1))
        if means[1] - half * errors[1] > means[0] + half * errors[0]:
            found.add(name)
    return found


def threshold(job: Fixed, planted: Mapping[str, float], most: float) -> set[str]:
    """Give the benchmarks whose mean is so many times that of the job before, which ran on another day."""
    return {
        name
        for name, values in job.values.items()
        if name in job.before and values[:, 1].mean() * planted.get(name, 1.0) > most * job.before[name]
    }


RULES: Final[dict[str, Callable[[Fixed, Mapping[str, float]], set[str]]]] = {
    "disjoint 95 % intervals, same job": disjoint,
    "5 % above the job before": lambda job, planted: threshold(job, planted, 1.05),
    "10 % above the job before": lambda job, planted: threshold(job, planted, 1.10),
    "twice the job before (default of github-action-benchmark)": lambda job, planted: threshold(
        job, planted, 2
    ),
}


def jobs(recorded: Sequence[Session], minutes: float) -> Iterator[tuple[int, Dealer]]:
    """Give a dealer for each job that the sessions suffice for; the places say where the last one ended."""
    number = 0
    for session in recorded:
        dealer = Dealer(session)
        while True:
            before = dict(dealer.places)
            try:
                Fixed.deal(dealer, minutes, {})
            except Exhausted:
                break
            dealer.places = before
            yield number, dealer
            if dealer.places == before:
                break
            number += 1


@dataclass(slots=True)
class Tally:
    """Jobs, those that were red, and planted changes found of all."""

    jobs: int = 0
    red: int = 0
    planted: int = 0
    found: int = 0

    def add(self, said: set[str], planted: Mapping[str, float]) -> None:
        """Count a job."""
        self.jobs += 1
        self.red += bool(said - planted.keys())
        self.planted += len(planted)
        self.found += len(said & planted.keys())


def tally(recorded: Sequence[Session], minutes: float, size: float) -> dict[str, Tally]:
    """Let all rules judge the same jobs; a quarter of the benchmarks has the planted change, if any."""
    found = {"steelyard bench": Tally()} | {name: Tally() for name in RULES}
    before: dict[str, float] = {}
    for number, dealer in jobs(recorded, minutes):
        names = sorted(dealer.session)
        random = np.random.default_rng([number, round(100 * size)])
        chosen = random.choice(names, max(len(names) // 4, 1), replace=False) if size > 1 else ()
        planted = {str(name): size for name in chosen}
        places = dict(dealer.places)
        try:
            ours = red(dealer, minutes, planted, number)
        except Exhausted:
            dealer.places = places  # nothing of the session is left
            continue
        after = dict(dealer.places)
        dealer.places = places
        fixed = Fixed.deal(dealer, minutes, before)
        dealer.places = {name: max(after[name], dealer.places[name]) for name in after}
        found["steelyard bench"].add(ours, planted)
        for name, rule in RULES.items():
            found[name].add(rule(fixed, planted), planted)
        before = {name: float(values[:, 0].mean()) for name, values in fixed.values.items()}
    return found


PAGE: Final = """# How often a gate is wrong

This page is computed, not claimed, from {runs:,} recorded runs of {benchmarks} real benchmarks
({harnesses}) on a shared virtual machine with two CPUs beside other work: the same
revision twice, but for its documentation, in {sessions} sessions with builds of their own. The runs are dealt
out to jobs again, which the measuring loop of `steelyard bench` works off (margin {margin:g} %). The other
rules see the same runs, as many pairs of each benchmark as fit into the same minutes.

## Jobs without a change

Jobs of which at least one benchmark is red; interval of 95 % (Clopper and Pearson).

| minutes a job | jobs | {heads} |
|---:|---:|{rulers}|
{reds}

## Planted changes

A quarter of the benchmarks takes longer by so much; found, of all that were planted.

| slower by | minutes a job | {heads} |
|---:|---:|{rulers}|
{founds}

## Instructions instead of time

`valgrind --tool=cachegrind` counts the instructions of the {counted} benchmarks that are native programs: of
an iteration, or of the whole command. (The harnesses of Go and Python choose their iterations by the clock.)
Two builds of the same source and {repetitions} runs of each differ by at most {spread} %: a gate by counts
is red in no job without a change. What it finds is more instructions, not more time: of a cache that is
missed, a lock that is waited for, or a slower instruction it sees nothing.

| more work | instructions more | benchmarks above 1 % | above 5 % |
|---:|---:|---:|---:|
{counts}

`make truth` computes this page again; `benches/gate_jobs.py` records anew,
`benches/gate_instructions.py` counts anew.
"""


def page(path: Path = RECORDED) -> str:
    """Compute the whole page."""
    recorded = sessions(path)
    heads = ("steelyard bench", *RULES)
    reds, founds = [], []
    for minutes in MINUTES:
        counts = tally(recorded, minutes, 1.0)
        cells = [_share(counts[name].red, counts[name].jobs) for name in heads]
        reds.append(f"| {minutes:g} | {counts[heads[0]].jobs} | {' | '.join(cells)} |")
    for size in PLANTED:
        for minutes in MINUTES:
            counts = tally(recorded, minutes, size)
            cells = [_share(counts[name].found, counts[name].planted, with_interval=False) for name in heads]
            founds.append(f"| {100 * (size - 1):.0f} % | {minutes:g} | {' | '.join(cells)} |")
    names = sorted({name for session in recorded for name in session})
    kinds = sorted({name.partition("/")[0] for name in names})
    return PAGE.format(
        runs=2 * sum(len(stream.costs) for session in recorded for stream in session.values()),
        benchmarks=len(names),
        harnesses=", ".join(kinds),
        sessions=len(recorded),
        margin=100 * MARGIN,
        heads=" | ".join(heads),
        rulers="---:|" * (len(heads) - 1) + "---:",
        reds="\n".join(reds),
        founds="\n".join(founds),
        **instructions(),
    )


def instructions(path: Path = COUNTED) -> dict[str, str]:
    """Write what the counted instructions show."""
    counted = json.loads(path.read_text(encoding="utf-8"))
    baseline, contender = counted.pop("baseline"), counted.pop("contender")
    spread = max(
        (max(runs) - min(runs)) / min(runs)
        for runs in map(operator.add, baseline.values(), contender.values())
    )
    rows = []
    for size, counts in counted.items():
        more = [runs[0] / baseline[name][0] - 1 for name, runs in counts.items()]
        above = [f"{sum(each > least for each in more)} of {len(more)}" for least in (0.01, 0.05)]
        rows.append(f"| {size} | {100 * min(more):.1f} to {100 * max(more):.1f} % | {' | '.join(above)} |")
    return {
        "counted": str(len(baseline)),
        "repetitions": str(len(next(iter(baseline.values())))),
        "spread": f"{100 * spread:.2g}",
        "counts": "\n".join(rows),
    }


def _share(count: int, of: int, *, with_interval: bool = True) -> str:
    """Write a rate with its interval."""
    if not of:
        return "-"
    text = f"{100 * count / of:.1f} %"
    if not with_interval:
        return text
    interval = stats.binomtest(count, of).proportion_ci()
    return f"{text} ({100 * interval.low:.1f} to {100 * interval.high:.1f})"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recorded", type=Path, default=RECORDED)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    text = page(options.recorded)
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
