from __future__ import annotations

import numpy as np
import pytest

from steelyard.analyse.peaks.periodicity import SIGNIFICANT, Period, find_period

LENGTH = 10_000_000_000
STREAMS = 60


def found(times: np.ndarray) -> Period:
    inside = np.sort(times[(times > 0) & (times < LENGTH)]).astype(np.int64)
    return find_period(inside, 0, LENGTH, shortest_ns=1e5)


def ticks(
    rng: np.random.Generator, period: float, jitter: float, kept: float = 1.0, noise: int = 0
) -> np.ndarray:
    times = np.arange(period / 2, LENGTH, period)
    times = times + rng.normal(0, jitter * period, times.size)
    times = times[rng.uniform(size=times.size) < kept]
    return np.concatenate([times, rng.uniform(0, LENGTH, noise)])


@pytest.mark.parametrize(
    ("period", "jitter", "kept", "noise"),
    [(2e8, 0.02, 1.0, 0), (2e8, 0.1, 1.0, 0), (1e9, 0.02, 1.0, 0), (2e7, 0.1, 0.3, 100), (3e8, 0.0, 1.0, 0)],
)
def test_a_planted_period_is_found_with_its_interval(
    period: float, jitter: float, kept: float, noise: int
) -> None:
    rng = np.random.default_rng(5)
    all_found = [found(ticks(rng, period, jitter, kept, noise)) for _ in range(STREAMS // 3)]
    assert all(each.is_periodic for each in all_found)
    assert all(abs(each.period_ns / period - 1) < 0.02 for each in all_found)
    covered = sum(each.low_ns <= period <= each.high_ns for each in all_found)
    assert covered >= 0.75 * len(all_found)


@pytest.mark.parametrize("cycles", [25, 60, 250])
def test_of_a_sharp_period_no_part_of_it_is_reported(cycles: int) -> None:
    """All its multiples have the same power, and strays may put any of them first."""
    rng = np.random.default_rng(11)
    period = LENGTH / cycles
    all_found = [
        found(np.concatenate([ticks(rng, period, 1e-4), rng.uniform(0, LENGTH, 2)])) for _ in range(STREAMS)
    ]
    assert all(abs(each.period_ns / period - 1) < 0.02 for each in all_found)


@pytest.mark.parametrize("cycles", [3000, 20_000, 50_000])
def test_a_period_of_which_many_fit_in_is_itself(cycles: int) -> None:
    rng = np.random.default_rng(13)
    period = LENGTH / cycles
    one = find_period(np.sort(ticks(rng, period, 1e-3)).astype(np.int64), 0, LENGTH)
    assert one.low_ns <= period <= one.high_ns
    assert one.period_ns == pytest.approx(period, rel=1e-5)


@pytest.mark.parametrize("cycles", [80_000, 130_000, 200_000])
def test_a_period_shorter_than_any_that_is_looked_for_shows_as_none(cycles: int) -> None:
    rng = np.random.default_rng(17)
    period = LENGTH / cycles
    one = find_period(np.sort(ticks(rng, period, 1e-3)).astype(np.int64), 0, LENGTH)
    assert not one.is_periodic
    assert not one.reason
    assert period < one.shortest_ns < 2.5 * period * cycles / 65536


def test_a_peak_amid_two_cycles_does_not_halve_the_period() -> None:
    # As measured: bursts each 100 ms, and what else the host had to do after 1348.8 and 2348.8 ms.
    bursts = [0, *(99.6 + 100 * cycle for cycle in range(23) if cycle != 17), 1348.8, 2348.8]
    all_found = find_period(
        np.sort(np.array(bursts) * 1e6 + 97e6).astype(np.int64), 0, 2_500_000_000, shortest_ns=1e5
    )
    assert all_found.period_ns == pytest.approx(1e8, rel=0.01)


@pytest.mark.parametrize("calls_per_period", [150.0, 150.37, 12.0])
def test_an_interval_knows_that_times_are_those_of_calls(calls_per_period: float) -> None:
    """Ticks without jitter show as the begins of the calls during which they come."""
    call_ns = 1000.0
    period = calls_per_period * call_ns
    ticks_ns = np.arange(0.7 * period, 2e4 * call_ns, period)
    begins = (np.floor(ticks_ns / call_ns) * call_ns).astype(np.int64)
    one = find_period(begins, 0, int(2e4 * call_ns), shortest_ns=4 * call_ns, resolution_ns=call_ns)
    assert one.is_periodic
    assert one.low_ns < period < one.high_ns
    assert one.half_width_ns > 0.9 * period * call_ns / float(np.ptp(ticks_ns))


@pytest.mark.parametrize("kind", ["poisson", "clusters", "wide clusters", "regular", "trend", "burst"])
def test_streams_without_a_period_raise_no_alarm(kind: str) -> None:
    rng = np.random.default_rng(7)

    def draw() -> np.ndarray:
        if kind == "poisson":
            return rng.uniform(0, LENGTH, rng.poisson(100))
        if "clusters" in kind:
            width = 1e9 if kind == "wide clusters" else 1e7
            heads = rng.uniform(0, LENGTH, 20)
            return np.concatenate([head + rng.exponential(width, rng.poisson(5)) for head in heads])
        if kind == "regular":
            return np.cumsum(rng.gamma(4, LENGTH / 400, 150))
        if kind == "trend":
            return LENGTH * rng.uniform(0, 1, 200) ** 2
        return np.concatenate([rng.uniform(0, LENGTH, 50), LENGTH * rng.uniform(0.4, 0.42, 100)])

    alarms = sum(found(draw()).is_periodic for _ in range(STREAMS))
    # With the promised rate, two alarms of 60 come in 12 % of all tests, five in 0.03 %.
    assert alarms < 5, f"{alarms} of {STREAMS} at a level of {SIGNIFICANT}"


def test_too_few_events_and_too_short_a_time_are_said() -> None:
    few = find_period(np.array([1, 2, 3]), 0, 100)
    assert not few.is_periodic
    assert "at least 6" in few.reason
    short = find_period(np.arange(10), 0, 100, shortest_ns=50)
    assert "cycles" in short.reason
