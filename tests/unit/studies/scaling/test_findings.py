from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np
import pytest

from steelyard.analyse.scaling.speedup import draw_blocks
from steelyard.model import Estimate, FindingSet, Plan
from steelyard.studies.analysis_parts import finding
from steelyard.studies.scaling.contests import contest_findings
from steelyard.studies.scaling.curves import curves, within_cores
from steelyard.studies.scaling.findings.explanation import explanation_findings
from steelyard.studies.scaling.findings.fit import OPEN, fit_findings
from steelyard.studies.scaling.findings.program import program_findings
from steelyard.studies.scaling.findings.recommendations import UNDECIDED, recommendation_findings
from steelyard.studies.scaling.findings.speedup import speedup_findings
from steelyard.studies.scaling.findings.strategy import (
    choice_findings,
    families,
    overhead_findings,
    winner_findings,
)
from steelyard.studies.scaling.hypotheses import Hypothesis, answered, written
from steelyard.studies.scaling.lost_cells import LostCell
from steelyard.studies.scaling.rates import RESPONSES
from steelyard.studies.scaling.recorded import CellTrials, Recorded
from steelyard.studies.scaling.report.answer import cards
from steelyard.studies.scaling.report.figures import speedup_figure
from steelyard.studies.scaling.report.sentences import PHRASING

TRIALS = 11
MARGIN = 0.02
NO_DATA: dict[str, np.ndarray] = {}


def plan(**options: str) -> Plan:
    return Plan("scaling", 1, {}, (), (), TRIALS, dict(options))


def cell(strategy: str, workers: int, rate: float, **given: str) -> CellTrials:
    """Give trials of 1 % scatter around a rate, the same scatter for the same name and workers."""
    levels = {"load": "uniform", "mean_work": "1000", "depth": "32", "lock": "none"}
    levels |= {"strategy": strategy, "workers": str(workers), "duration_ms": "100"} | given
    if strategy == "serial":
        levels["depth"] = "none"
    stream = np.random.default_rng([workers, *map(ord, strategy + levels["lock"] + levels["load"])])
    values = rate * stream.lognormal(0, 0.01, TRIALS)
    return CellTrials(workers, levels, workers, values, "packets/ms", NO_DATA, NO_DATA)


def recorded(*cells: CellTrials, cores: int | None = 4, **contests: tuple[CellTrials, ...]) -> Recorded:
    draws = draw_blocks(TRIALS, resamples=500, seed=1)
    given = (contests.get("contests", ()), contests.get("machine", ()))
    return Recorded(plan(), cells, (), *given, (), cores, draws, frozenset(), None)


def serial(*workers: int, **given: str) -> list[CellTrials]:
    return [cell("serial", count, 100.0, **given) for count in workers]


def test_speed_up_is_against_the_serial_program_on_the_same_sources() -> None:
    cells = [*serial(1, 4), cell("LockFree", 1, 99.0), cell("LockFree", 4, 300.0), cell("LockFree", 8, 150.0)]
    data = recorded(*cells)
    found = list(speedup_findings(curves(data), data, MARGIN))
    verdicts = {each.subject["workers"]: each.verdict for each in found if each.claim == "speedup"}
    assert verdicts == {"1": "ideal", "4": "shy of ideal", "8": "shy of ideal"}
    (crowded,) = [each for each in found if each.claim == "oversubscription"]
    assert crowded.verdict == "lost"
    assert crowded.estimates["drop"].value == pytest.approx(50, abs=1.5)
    (peak,) = [each for each in found if each.claim == "peak"]
    assert (peak.verdict, peak.facts["workers"]) == ("inside", 4)


def test_efficiency_and_what_is_lacking_follow_from_the_speed_up() -> None:
    data = recorded(*serial(1, 4), cell("LockFree", 4, 300.0))
    (found,) = [each for each in speedup_findings(curves(data), data, MARGIN) if each.claim == "speedup"]
    speedup, efficiency, shy = (found.estimates[name] for name in ("speedup", "efficiency", "shy"))
    for each in (speedup, efficiency, shy):
        assert each.value is not None
        assert each.low is not None
        assert each.high is not None
        assert each.low < each.value < each.high
    assert speedup.value is not None
    assert speedup.value == pytest.approx(3.0, rel=0.02)
    assert efficiency.value == pytest.approx(speedup.value / 4)
    assert shy.value == pytest.approx(100 * (1 - speedup.value / 4))


def test_intervals_of_the_laws_hold_what_was_put_in() -> None:
    counts = (1, 2, 3, 4)
    rates = [100 * p / (1 + 0.1 * (p - 1)) for p in counts]
    cells = [*serial(*counts), *(cell("LockFree", p, rate) for p, rate in zip(counts, rates, strict=True))]
    data = recorded(*cells)
    found = {each.claim: each for each in fit_findings(curves(data), data, MARGIN)}
    contention = found["amdahl"].estimates["contention"]
    assert contention.low is not None
    assert contention.high is not None
    assert contention.low <= 0.1 <= contention.high
    assert found["amdahl"].facts["point_set"] == "1, 2, 3, 4"
    assert found["regression"].verdict == "slope differs from 1"


def turns_at_a_lock(share: float, p: int, *, is_random: bool) -> float:
    """Give the rate of threads that hold one lock for a share of their work, one turn after the other."""
    stream = np.random.default_rng(p)
    free = 0.0
    threads = [(float(at), at) for at in range(p)]
    for _ in range(4000):
        now, thread = heapq.heappop(threads)
        outside, inside = stream.exponential(size=2) if is_random else (1.0, 1.0)
        free = max(now + (1 - share) * outside, free) + share * inside
        heapq.heappush(threads, (free, thread))
    return 4000 / free


@pytest.mark.parametrize("share", [0.2, 0.4, 0.7])
@pytest.mark.parametrize("is_random", [False, True])
@pytest.mark.parametrize("counts", [(1, 2), (1, 2, 3), (1, 2, 3, 4), (1, 2, 3, 4, 7, 8), (1, 2, 4, 8, 16)])
def test_a_ceiling_that_is_told_holds_the_true_one_of_a_lock(
    *,
    share: float,
    is_random: bool,
    counts: tuple[int, ...],
) -> None:
    rates = [100 * turns_at_a_lock(share, p, is_random=is_random) for p in counts]
    data = recorded(
        *(cell("LockFree", p, rate) for p, rate in zip(counts, rates, strict=True)), cores=counts[-1]
    )
    claims = {each.claim: each for each in fit_findings(curves(data), data, MARGIN)}
    if len(counts) == 2:
        assert set(claims) == {"no_law"}
        return
    ceiling = claims["amdahl"].estimates["ceiling"]
    if ceiling.value is not None:
        assert ceiling.low is not None
        assert ceiling.high is not None
        assert ceiling.low <= 1 / share <= ceiling.high
    else:
        assert claims["amdahl"].verdict != "the limit is in reach of the points"


@pytest.mark.parametrize("counts", [(1, 2), (1, 2, 3), (1, 2, 3, 4), (1, 2, 3, 7, 13, 14)])
@pytest.mark.parametrize("shared", [0.0, 0.15])
def test_a_program_that_loses_only_what_the_machine_takes_has_no_ceiling(
    counts: tuple[int, ...], shared: float
) -> None:
    machine = [p / (1 + shared * (p - 1)) for p in counts]
    own = [cell("LockFree", p, 100 * rate) for p, rate in zip(counts, machine, strict=True)]
    alone = tuple(cell("machine", p, 7 * rate) for p, rate in zip(counts, machine, strict=True))
    data = recorded(*own, machine=alone, cores=counts[-1])
    found = {each.claim: each for each in fit_findings(curves(data), data, MARGIN)}
    assert all(found[law].verdict == OPEN for law in ("amdahl", "usl") if law in found)
    for each in speedup_findings(curves(data), data, MARGIN):
        fraction = each.estimates.get("serial_fraction")
        if fraction is not None and fraction.value is not None:
            assert fraction.value == pytest.approx(0, abs=0.02)


def test_points_above_the_cores_are_left_out_of_every_fit() -> None:
    data = recorded(*serial(1, 4, 8), *(cell("LockFree", p, 100.0 * p) for p in (1, 4, 8)))
    (curve,) = curves(data)
    assert [point.workers for point in within_cores(curve, data)] == [1, 4]


def test_without_known_cores_nothing_is_chosen_by_its_outcome_or_claimed_of_them() -> None:
    rates = {1: 100.0, 2: 190.0, 4: 300.0, 8: 240.0, 16: 150.0}
    points = [cell("LockFree", p, rate) for p, rate in rates.items()]
    heavy = {"load": "exponential", "mean_work": "8000"}
    others = [
        *serial(2, **heavy),
        cell("LockFree", 2, 150.0, **heavy),
        cell("LockFree", 1, 900.0, mean_work="25"),
    ]
    data = recorded(*points, *others, cores=None)
    found = curves(data)
    laws = [each for each in fit_findings(found, data, MARGIN) if each.claim in {"amdahl", "usl"}]
    assert {each.facts["point_set"] for each in laws} == {"1, 2, 4, 8, 16"}
    assert all(each.verdict != "the limit is in reach of the points" for each in laws)
    claims = {each.claim for each in speedup_findings(found, data, MARGIN)}
    assert "oversubscription" not in claims
    claims = {each.claim for each in explanation_findings(found, data, MARGIN)}
    assert not claims & {"imbalance", "dispatcher"}


def program_cell(workers: int, wall_ms: float, cpu_ms: float, noise: float = 0.01) -> CellTrials:
    """Give runs of a user's program: one over their wall time is the rate."""
    stream = np.random.default_rng(workers)
    wall = 1e6 * wall_ms * stream.lognormal(0, noise, TRIALS)
    metrics = {"outside-wall": wall, "outside-cpu": wall * cpu_ms / wall_ms}
    levels = {"program": "program", "workers": str(workers)}
    return CellTrials(workers, levels, workers, 1e9 / wall, "1/s", metrics, {})


def started(*cells: CellTrials, cores: int = 4) -> Recorded:
    """Give a result in which starting a process takes a millisecond."""
    wall = np.full(TRIALS, 100e6)
    metrics = {"outside-wall": wall + 1e6, "wall": wall}
    levels = {"program": "machine", "workers": "1"}
    machine = CellTrials(99, levels, 1, np.full(TRIALS, 7.0), "1/s", metrics, {})
    return replace(recorded(*cells, machine=(machine,), cores=cores), response=RESPONSES[-1])


@pytest.mark.parametrize(
    ("wall_ms", "cpu_ms", "verdict"),
    [
        ({1: 100.0, 2: 100.0, 4: 100.0}, {1: 100.0, 2: 100.0, 4: 100.0}, "more workers use no more cores"),
        # All cores whatever it is told.
        ({1: 25.0, 2: 25.0, 4: 25.0}, {1: 100.0, 2: 100.0, 4: 100.0}, "more workers use no more cores"),
        ({1: 100.0, 2: 52.0, 4: 28.0}, {1: 100.0, 2: 101.0, 4: 104.0}, "more workers use more cores"),
        # One lock, and workers that spin for it.
        ({1: 100.0, 2: 100.0, 4: 100.0}, {1: 100.0, 2: 199.0, 4: 396.0}, "more workers use more cores"),
        # Waits for something else: cores say nothing.
        ({1: 100.0, 2: 50.0, 4: 25.0}, {1: 2.0, 2: 1.0, 4: 0.5}, "undecided"),
    ],
)
def test_a_program_that_ignores_its_workers_is_told_from_one_that_does_not_scale(
    wall_ms: dict[int, float], cpu_ms: dict[int, float], verdict: str
) -> None:
    data = started(*(program_cell(p, wall_ms[p], cpu_ms[p]) for p in wall_ms))
    (found,) = [each for each in program_findings(curves(data), data) if each.claim == "thread_count"]
    assert found.verdict == verdict
    laws = {each.claim for each in fit_findings(curves(data), data, MARGIN)} & {"amdahl", "usl"}
    assert bool(laws) is (verdict != "more workers use no more cores")


def test_a_program_that_ignores_its_workers_is_named_beside_other_load() -> None:
    data = started(*(program_cell(workers, 100.0, 100.0, noise=0.3) for workers in (1, 2, 4)))
    (found,) = [each for each in program_findings(curves(data), data) if each.claim == "thread_count"]
    assert found.verdict == "more workers use no more cores"


def test_runs_that_starting_dominates_are_named_and_not_fitted() -> None:
    data = started(*(program_cell(p, 40.0 / p, 40.0) for p in (1, 2, 3, 4)))
    (found,) = [each for each in program_findings(curves(data), data) if each.claim == "short_runs"]
    assert found.facts["workers"] == "3, 4"
    verdicts = {
        each.subject["workers"]: each.verdict
        for each in speedup_findings(curves(data), data, MARGIN)
        if each.claim == "speedup"
    }
    assert verdicts["2"] == "ideal"
    assert {verdicts[count] for count in ("3", "4")} == {"too short to judge"}
    assert {each.claim for each in fit_findings(curves(data), data, MARGIN)} == {"regression", "no_law"}


def test_a_number_of_workers_whose_runs_all_failed_keeps_its_row() -> None:
    lost = LostCell(7, {"program": "program", "workers": "4"}, "ended by SIGSEGV", 11)
    data = replace(started(program_cell(1, 100.0, 100.0), program_cell(2, 50.0, 100.0)), lost=(lost,))
    rows = [each for each in speedup_findings(curves(data), data, MARGIN) if each.claim == "speedup"]
    assert [each.subject["workers"] for each in rows] == ["1", "2", "4"]
    assert rows[-1].verdict == "ended by SIGSEGV"
    assert rows[-1].estimates["speedup"].value is None


def test_a_lock_costs_only_where_the_interval_says_so() -> None:
    held = {"lock": "MCS"}
    costly = recorded(*serial(1), cell("LockFree", 1, 110.0), cell("HomeQueue", 1, 100.0, **held))
    free = recorded(*serial(1), cell("LockFree", 1, 100.0), cell("HomeQueue", 1, 100.0, **held))
    assert [each.verdict for each in overhead_findings(costly, MARGIN)] == ["the lock costs"]
    assert [each.verdict for each in overhead_findings(free, MARGIN)] == ["no relevant cost"]


def test_equal_medians_are_ties_and_count_for_nobody() -> None:
    first = cell("LockFree", 2, 100.0)
    second = CellTrials(9, {**first.levels, "strategy": "Awesome"}, 2, first.values, "x", NO_DATA, NO_DATA)
    found = list(winner_findings(recorded(first, second)))
    assert {(each.facts["wins"], each.facts["ties"]) for each in found} == {(0, 1)}


def test_the_locks_of_a_strategy_are_counted_apart() -> None:
    contenders = {"LockFree": "LockFree", "Awesome (a)": "Awesome", "Awesome (b)": "Awesome"}
    assert [family.name for family in families(contenders)] == ["all", "locks of Awesome"]


def test_the_best_is_recommended_where_another_is_certainly_worse() -> None:
    sure = recorded(cell("LockFree", 2, 100.0), cell("Awesome", 2, 150.0), cell("work stealing", 2, 150.2))
    (found,) = recommendation_findings(sure, MARGIN)
    assert found.verdict in {"Awesome", "work stealing"}
    assert found.facts["worst"] == "LockFree"
    unsure = recorded(cell("LockFree", 2, 100.0), cell("Awesome", 2, 100.1))
    assert [each.verdict for each in recommendation_findings(unsure, MARGIN)] == [UNDECIDED]
    (choice,) = choice_findings(sure, MARGIN)
    assert choice.facts["slowest"] == "LockFree"


@pytest.mark.parametrize(
    ("best", "needs"),
    [
        ("leader/followers", "needs a source that workers may draw from themselves"),
        ("LockFree", "needs a worker for each source"),
        ("Awesome", ""),
    ],
)
def test_a_recommendation_says_what_its_strategy_needs(best: str, needs: str) -> None:
    (found,) = recommendation_findings(recorded(cell(best, 2, 150.0), cell("HomeQueue", 2, 100.0)), MARGIN)
    assert found.verdict == best
    sentence = PHRASING.say(found).text
    assert f"use {best}, which {needs}" in sentence if needs else "which" not in sentence


def test_a_strategy_that_balances_exceeds_the_bound_of_the_heaviest_source() -> None:
    heavy = {"load": "exponential", "mean_work": "8000"}
    cells = [*serial(3, **heavy), cell("LockFree", 3, 195.0, **heavy), cell("Awesome", 3, 290.0, **heavy)]
    data = recorded(*cells)
    found = {
        each.subject["strategy"]: each.verdict
        for each in explanation_findings(curves(data), data, MARGIN)
        if each.claim == "imbalance"
    }
    assert found == {"LockFree": "as predicted", "Awesome": "above the bound: balanced"}


def test_the_bound_of_the_heaviest_source_confirms_no_strategy_that_balances() -> None:
    heavy = {"load": "exponential", "mean_work": "8000"}
    at_bound = [cell(name, 3, 195.0, **heavy) for name in ("LockFree", "Awesome", "leader/followers")]
    data = recorded(*serial(1, 3, **heavy), *at_bound, cell("LockFree", 1, 99.0, **heavy))
    found = {
        (each.subject["strategy"], each.facts["workers"]): each.verdict
        for each in explanation_findings(curves(data), data, MARGIN)
        if each.claim == "imbalance"
    }
    assert found == {
        ("LockFree", 3): "as predicted",
        ("LockFree", 1): "one source: nothing to balance",
        ("Awesome", 3): "below the bound",
        ("leader/followers", 3): "below the bound",
    }


@pytest.mark.parametrize(("rate", "certain"), [(150.0, True), (101.0, False)])
def test_a_card_claims_no_more_than_the_interval(rate: float, *, certain: bool) -> None:
    noisy = [cell(name, 2, 100.0) for name in ("LockFree", "Awesome", "work stealing")]
    noisy[1] = cell("Awesome", 2, rate)
    noisy[2] = cell("work stealing", 2, 40.0)
    findings = tuple(recommendation_findings(recorded(*noisy), MARGIN))
    (group,) = cards(FindingSet("scaling", "", 1, {}, findings))
    (card,) = group.cards
    assert card.value == "Awesome"
    assert ("not certainly faster" in card.note) is not certain
    assert "95 % interval" in card.note
    assert "depth 32" in card.title


def test_the_fastest_lock_of_a_group_is_named() -> None:
    contests = (
        cell("counter", 2, 1000.0, lock="TAS"),
        cell("counter", 2, 500.0, lock="MCS"),
        cell("counter", 1, 2000.0, lock="TAS"),
    )
    found = list(contest_findings(recorded(contests=contests)))
    verdicts = {(each.subject["lock"], each.subject["workers"]): each.verdict for each in found}
    assert verdicts == {("TAS", "2"): "fastest", ("MCS", "2"): "slower", ("TAS", "1"): "fastest"}
    slowdown = found[0].estimates["slowdown"].value
    assert slowdown == pytest.approx(2, rel=0.05)


def test_no_lock_is_the_fastest_that_another_may_equal() -> None:
    contests = tuple(cell("counter", 2, rate, lock=lock) for lock, rate in (("TAS", 1000.0), ("MCS", 1000.1)))
    found = list(contest_findings(recorded(contests=contests)))
    assert {each.verdict for each in found} == {"not certainly slower"}


def test_one_trial_of_each_strategy_recommends_nothing() -> None:
    cells = [cell("LockFree", 2, 100.0), cell("Awesome", 2, 150.0), cell("work stealing", 2, 50.0)]
    for each in cells:
        each.values[1:] = np.nan
    data = recorded(*cells)
    assert [each.verdict for each in recommendation_findings(data, MARGIN)] == ["descriptive"]
    assert [each.verdict for each in choice_findings(data, MARGIN)] == ["descriptive"]


def test_a_picture_names_the_depth_and_the_load_of_every_panel() -> None:
    cells = [cell("LockFree", p, 99.0 * p, depth=depth) for p in (1, 2) for depth in ("8", "32")]
    data = recorded(*serial(1, 2), *cells)
    figure = speedup_figure(
        FindingSet("scaling", "", 1, {}, tuple(speedup_findings(curves(data), data, MARGIN)))
    )
    assert figure is not None
    panels = set(figure.datasets["speedups"].columns["panel"])
    assert panels == {"W = 1000, uniform, depth 8", "W = 1000, uniform, depth 32"}
    assert figure.spec["columns"] == 1


@pytest.mark.parametrize(
    ("low", "high", "limits", "verdict"),
    [
        (1.0, 2.0, (1.2, 1.8), "confirmed"),
        (1.0, None, (0.5, 0.9), "contradicted"),
        (None, 1.0, (0.9, 1.1), "inconclusive"),
        (None, 1.0, (1.1, 1.2), "contradicted"),
    ],
)
def test_an_expectation_is_answered_by_the_interval(
    low: float | None, high: float | None, limits: tuple[float, float], verdict: str
) -> None:
    expected = Hypothesis("it is so", "gain", {"load": "uniform"}, "gain", low, high)
    estimate = Estimate(sum(limits) / 2, "ratio", "", *limits, level=0.95)
    given = finding("gain", {"load": "uniform", "workers": "2"}, "x", estimates={"gain": estimate})
    (found,) = answered(plan(hypotheses=written([expected])), [given])
    assert (found.verdict, found.facts["answered_by"]) == (verdict, given.id)


def test_an_expectation_about_what_was_not_measured_says_so() -> None:
    expected = Hypothesis("it is so", "gain", {"load": "uniform"}, "gain", 1.0)
    (found,) = answered(plan(hypotheses=written([expected])), [])
    assert found.verdict == "not measured"
