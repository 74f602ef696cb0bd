"""What users of other tools look for: mean, user and system time, ranking, factors, a slow first run."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from steelyard.analyse.comparison.duel import Duel, difference_of
from steelyard.analyse.comparison.equivalence import Verdict
from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.analyse.comparison.sequential import Design, SequentialComparison
from steelyard.studies.comparison.claim import Claim
from steelyard.studies.comparison.contender import Contender, Field
from steelyard.studies.comparison.outcome import Comparison, Measured, conclude
from steelyard.studies.comparison.run.execution import MOST_SLOWDOWN, _slowdown
from steelyard.studies.comparison.run.live import progress_text
from steelyard.studies.comparison.run.measuring import BudgetClock, Measuring
from steelyard.studies.comparison.sample import Run, slow_first_run
from steelyard.studies.comparison.terms import Terms
from steelyard.studies.comparison.text import closing_lines, ranking_lines, remaining_text, render

if TYPE_CHECKING:
    from collections.abc import Sequence

MS = 1_000_000


def runs_of(*walls_ms: Sequence[float], warmup: int = 0) -> tuple[Run, ...]:
    """Give interleaved runs of commands; the first `warmup` blocks are warm-up."""
    return tuple(
        Run(
            contender,
            block,
            block * len(walls_ms) + contender,
            "warmup" if block < warmup else "measure",
            "completed",
            0,
            wall_ns=round(walls[block] * MS),
            cpu_ns=2 * MS,
            peak_memory_bytes=1 << 20,
            cpu_user_ns=round(1.5 * MS),
            cpu_system_ns=round(0.5 * MS),
        )
        for block in range(len(walls_ms[0]))
        for contender, walls in enumerate(walls_ms)
    )


def compared(*walls_ms: Sequence[float], warmup: int = 0, **changes: Any) -> Comparison:
    contenders = tuple(Contender(at, name, name, (name,)) for at, name in zip(range(3), "abc", strict=True))
    duels = []
    for at in range(1, len(walls_ms)):
        duel = Duel(0, at, SequentialComparison(Design(family=len(walls_ms) - 1)))
        duel.differences = [difference_of(*pair) for pair in zip(walls_ms[0], walls_ms[at], strict=True)]
        duel.look(1.0)
        duels.append(duel)
    runs = runs_of(*walls_ms, warmup=warmup)
    measured = Measured(
        Terms(warmup=warmup), contenders[: len(walls_ms)], runs, tuple(duels), "settled", elapsed_s=4.0
    )
    return conclude(replace(measured, **changes), (), None)


def spread(middle: float, count: int = 20) -> list[float]:
    return [middle * (1 + 0.01 * math.sin(1.7 * at)) for at in range(count)]


def test_commands_are_ranked_with_mean_deviation_user_and_system_time() -> None:
    found = compared(spread(20.0), spread(10.0), spread(30.0))
    head, *rows, _, _ = ranking_lines(found)
    assert head.split() == ["by", "median", "times", "least", "mean", "sd", "user", "system"]
    assert [row.split()[:3] for row in rows] == [["1", "b", "1"], ["2", "a", "2"], ["3", "c", "3"]]
    assert "1.500 ms" in rows[0]
    assert "500.0 us" in rows[0]
    summary = found.summaries[1]
    assert (summary.user_ns, summary.system_ns) == (1.5 * MS, 0.5 * MS)
    assert found.as_dict()["commands"][1]["user_ns"] == 1.5 * MS
    assert max(map(len, ranking_lines(found))) <= 80


def test_the_answer_begins_with_the_verdict_and_the_table() -> None:
    lines = render(compared(spread(20.0), spread(10.0))).splitlines()
    assert lines[0].startswith("`b` ")
    assert lines[1] == ""
    assert lines[2].startswith("command")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "`a` ran 1.5 times faster than `b` (1.4 to 1.6)"),
        (
            {"verdict": Verdict.FASTER, "ratio": 0.5, "low": 0.4, "high": 0.625},
            "`b` ran 2 times faster than `a` (1.6 to 2.5)",
        ),
        ({"metric": "cpu"}, "`a` used 1.5 times less CPU time than `b` (1.4 to 1.6)"),
        ({"metric": "memory"}, "`a` used 1.5 times less memory than `b` (1.4 to 1.6)"),
        ({"verdict": Verdict.EQUIVALENT}, ""),
        ({"verdict": Verdict.INCONCLUSIVE}, ""),
        ({"verdict": Verdict.DESCRIPTIVE, "high": math.inf}, ""),
    ],
)
def test_how_many_times_faster_says_the_same_as_the_verdict(changes: dict[str, Any], said: str) -> None:
    claim = Claim(
        *("a", "b", "wall", Verdict.SLOWER, 1.5, 1.4, 1.6),
        level=0.95,
        margin=0.02,
        runs=(20, 20),
        mean_ratio=1.5,
        further_runs=None,
        is_settled=True,
    )
    assert replace(claim, **changes).times_faster == said


@pytest.mark.parametrize(
    ("walls", "warmup", "expected"),
    [
        ([300.0, *spread(10.0)], 0, (300.0, True)),
        ([300.0, *spread(10.0)], 1, (300.0, False)),
        (spread(10.0), 0, None),
        ([12.0, *spread(10.0)], 0, None),  # apart, but not by much
        ([*spread(10.0), 300.0], 0, None),  # an outlier elsewhere
        ([300.0, *spread(10.0), 310.0], 0, None),  # not the only one
        ([300.0, 10.0, 10.1], 0, None),  # too few to know what is usual
    ],
)
def test_a_slow_first_run_is_told_from_outliers(
    walls: list[float], warmup: int, expected: tuple[float, bool] | None
) -> None:
    found = slow_first_run(runs_of(walls, warmup=warmup), 0)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert (found[0] / MS, found[2]) == expected


def test_a_slow_first_run_gets_the_option_that_is_meant() -> None:
    slow = [300.0, *spread(10.0)]
    warnings = "\n".join(compared(slow, slow).warnings)
    assert (
        "first: the first run of `a` took 300.0 ms, the others 9.995 ms; it counts; `--warmup 1`" in warnings
    )
    warnings = "\n".join(compared(slow, slow, warmup=1).warnings)
    assert "does not count, as warm-up; `--prepare`" in warnings


def growing(differences: list[float], clock: BudgetClock | None = None, budget_s: float = 60.0) -> Measuring:
    contenders = tuple(Contender(at, name, name, (name,)) for at, name in enumerate("ab"))
    entrants = Field(contenders, ((0, 1),), (frozenset({0, 1}),))
    terms = Terms(extent=Extent(budget_s=budget_s, is_strict=True))
    unused = cast("Any", None)
    found = Measuring(
        cast("Any", SimpleNamespace(id="plan", batches=())), entrants, terms, unused, unused, clock
    )
    found.duels[0].differences = differences
    found.contests[0].blocks = len(differences)
    return found


def test_the_live_line_shows_the_estimate_from_the_first_pair_on() -> None:
    assert progress_text(growing([])).endswith("b ?")
    assert progress_text(growing([math.log(1.25)])).endswith("b +25.0 % so far")
    assert progress_text(growing([0.0, math.log(1.1), math.log(3.0)])).endswith("b +10.0 % so far")


def test_the_budget_includes_what_passed_before_the_first_run_and_follows_the_last() -> None:
    now_s = time.monotonic()
    assert growing([], BudgetClock(now_s - 5.0)).elapsed_s >= 5.0
    fresh = growing([0.0], BudgetClock(now_s), budget_s=6.0)
    fresh._judge(fresh.contests[0])
    assert not fresh.is_spent
    coming = (BudgetClock(now_s, closing_s=6.5), BudgetClock(now_s, first_look_s=6.5))
    for clock in (BudgetClock(now_s - 6.0), *coming):
        spent = growing([0.0], clock, budget_s=6.0)
        spent._judge(spent.contests[0])
        assert spent.is_spent


def test_no_block_begins_that_the_slowest_of_late_would_not_fit_in() -> None:
    measuring = growing([0.0], BudgetClock(time.monotonic()), budget_s=6.0)
    (contest,) = measuring.contests
    contest._block_s.extend([0.01] * 10 + [6.5])
    measuring._judge(contest)
    assert contest.block_s == pytest.approx(0.01)
    assert measuring.is_spent


def test_the_first_look_is_paid_for_once() -> None:
    looked = growing([0.0], BudgetClock(time.monotonic(), first_look_s=6.5), budget_s=6.0)
    looked.duels[0].look(0.5)
    looked._judge(looked.contests[0])
    assert not looked.is_spent


def test_what_follows_the_last_run_takes_longer_beside_load() -> None:
    assert [_slowdown(*each) for each in ((1.0, 1.0), (4.0, 1.0), (0.5, 1.0), (1.0, 0.0))] == [1, 4, 1, 1]
    assert _slowdown(1000.0, 1.0) == MOST_SLOWDOWN


def test_the_time_of_the_start_is_said_and_not_multiplied() -> None:
    found = compared(spread(20.0), spread(10.0), startup_s=3.0)
    assert next(iter(closing_lines(found))).startswith(
        "settled after 4.0 s, 3.0 s of them before the first run"
    )
    claim = replace(found.claims[0], further_runs=180, is_settled=False)
    assert remaining_text(claim, 4.0, 3.0).endswith("--budget 13s")
