from __future__ import annotations

import numpy as np
import pytest

from steelyard.analyse.peaks.co_occurrence import VerdictKind, explain
from steelyard.analyse.peaks.event_kinds import Depth, Events
from steelyard.analyse.peaks.peak_search import Episodes, find_episodes

LENGTH = 10_000_000
USUAL = 100.0


def peaks_at(starts: np.ndarray, lengths: np.ndarray) -> Episodes:
    return find_episodes(np.arange(starts.size) * 10, starts, lengths, USUAL)


def some(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.sort(rng.choice(LENGTH // 5000 - 1, count, replace=False)) * 5000


def test_a_cause_is_named_before_what_comes_by_chance() -> None:
    rng = np.random.default_rng(2)
    starts = some(rng, 60)
    peaks = peaks_at(starts, np.full(60, 3000))
    cause = Events("burner", starts + 50, starts + 2900)
    chance = some(rng, 200)
    other = Events("kworker", chance, chance + 500)
    found = explain(peaks, [other, cause], 0, LENGTH)
    assert (found.verdict, found.cause) == (VerdictKind.NAMED, "burner")
    main, rest = found.kinds
    assert main.lift_low > 1
    assert main.explained_share == pytest.approx(2850 / 2900)
    assert not rest.is_significant
    assert "`burner` explains 98 %" in found.sentence


def test_several_causes_share_the_excess_and_the_rest_is_said() -> None:
    rng = np.random.default_rng(3)
    starts = some(rng, 90)
    peaks = peaks_at(starts, np.full(90, 1100))
    first = Events("gc", starts[:60], starts[:60] + 1000, depth=Depth.PAUSE)
    second = Events("off-CPU by x", starts[60:75], starts[60:75] + 1000)
    found = explain(peaks, [second, first], 0, LENGTH)
    shares = {kind.kind: round(kind.attributed_share, 2) for kind in found.kinds}
    assert shares == {"gc": 0.67, "off-CPU by x": 0.17}
    assert found.unexplained_share == pytest.approx(1 / 6, abs=0.01)
    assert "besides `off-CPU by x` 17 %" in found.sentence


def test_a_collection_comes_before_the_waiting_that_it_makes() -> None:
    starts = some(np.random.default_rng(4), 40)
    peaks = peaks_at(starts, np.full(40, 2000))
    kinds = [
        Events("waiting", starts, starts + 1990, depth=Depth.WAITING),
        Events("safepoint", starts, starts + 1950, depth=Depth.SAFEPOINT),
        Events("gc", starts + 10, starts + 1900, depth=Depth.PAUSE),
    ]
    found = explain(peaks, kinds, 0, LENGTH)
    assert found.cause == "gc"
    assert sum(kind.attributed_share for kind in found.kinds) <= 1


def test_a_counter_explains_no_more_than_it_counted() -> None:
    starts = some(np.random.default_rng(5), 30)
    peaks = peaks_at(starts, np.full(30, 2100))
    amounts = np.full(30, 500.0)
    steal = Events("steal", starts - 100, starts + 3000, amounts, Depth.HOST)
    found = explain(peaks, [steal], 0, LENGTH)
    assert found.kinds[0].explained_share == pytest.approx(500 / 2000)
    assert found.verdict is VerdictKind.PARTLY


def test_instants_are_found_though_they_last_no_time() -> None:
    starts = some(np.random.default_rng(6), 50)
    peaks = peaks_at(starts, np.full(50, 1000))
    found = explain(peaks, [Events("migration", starts + 5, starts + 5)], 0, LENGTH)
    assert found.kinds[0].is_significant
    assert found.verdict is VerdictKind.UNEXPLAINED
    assert "explains hardly any" in found.sentence


def test_events_that_are_always_there_explain_nothing() -> None:
    starts = some(np.random.default_rng(7), 50)
    ticking = np.arange(0, LENGTH, 100)
    found = explain(peaks_at(starts, np.full(50, 1000)), [Events("tick", ticking, ticking + 60)], 0, LENGTH)
    assert found.kinds[0].share == 1
    assert found.kinds[0].expected_share == pytest.approx(1)
    assert found.verdict is VerdictKind.UNEXPLAINED
    assert found.unexplained_share == 1


def test_false_alarms_stay_below_the_promised_rate() -> None:
    rng = np.random.default_rng(8)
    alarms, runs = 0, 25
    for number in range(runs):
        kinds = []
        for kind in range(6):
            at = np.sort(rng.integers(0, LENGTH, 80))
            kinds.append(Events(f"kind {kind}", at, at + rng.integers(1, 3000, 80)))
        peaks = peaks_at(np.sort(rng.integers(0, LENGTH - 5000, 40)), rng.integers(500, 4000, 40))
        alarms += explain(peaks, kinds, 0, LENGTH, seed=number).cause is not None
    # 5 % promised; six of 25 come in 0.2 % of all tests.
    assert alarms < 6


def test_few_peaks_are_no_evidence() -> None:
    found = explain(peaks_at(np.array([1, 9000]), np.array([500, 500])), [], 0, LENGTH)
    assert found.verdict is VerdictKind.TOO_FEW
    assert "too few" in found.sentence
