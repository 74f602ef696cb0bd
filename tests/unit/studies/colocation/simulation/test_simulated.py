"""Simulated trials: their files, and the source's shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.studies.colocation.simulation.simulated import SimulationOptions, simulate, with_policy
from steelyard.studies.colocation.simulation.simulated_table import outcome_of
from steelyard.studies.colocation.trial import read_trial, write_trial
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.studies.colocation.simulation.simulated_table import Outcome


def outcome(name: str, **changes: object) -> Outcome:
    options = with_policy(SimulationOptions(**changes), name)  # type: ignore[arg-type]
    return outcome_of(simulate(options), options.load)


def test_a_simulated_trial_is_read_as_an_executed_one(tmp_path: Path) -> None:
    options = SimulationOptions(duration_ns=4 * NS_PER_S, arrivals="poisson")
    trial = simulate(options)
    write_trial(tmp_path, trial)
    read = read_trial(tmp_path)
    assert read.header["simulated"] is True
    assert read.header["is_complete"] is True
    for name in ("requests", "iterations", "samples"):
        assert np.array_equal(getattr(read, name), getattr(trial, name))
    requests = read.requests
    assert (np.diff(requests["intended_ns"].astype(np.int64)) >= 0).all()
    assert (requests["received_ns"] >= requests["started_ns"]).all()
    assert (requests["started_ns"] >= requests["intended_ns"]).all()
    assert abs(len(requests) / (4 * options.rate_per_s) - 1) < 0.1
    assert read.scheduler["switches"] == {"local": True, "entry": True, "exit": True}


def test_the_same_seed_gives_the_same_bits() -> None:
    options = SimulationOptions(duration_ns=2 * NS_PER_S, arrivals="poisson")
    first, second, other = (
        simulate(each).requests.tobytes()
        for each in (
            options,
            options,
            SimulationOptions(duration_ns=2 * NS_PER_S, arrivals="poisson", seed=2),
        )
    )
    assert first == second != other


@pytest.mark.parametrize("load", [0.85, 0.95])
def test_the_shapes_of_the_source(load: float) -> None:
    weights, idle, be, fifo = (
        outcome(name, load=load).mean_ratio for name in ("weights", "idle", "be", "fifo")
    )
    assert weights > 2  # the source: 2.26 at 85 %, 4.05 at 95 %
    assert 1.2 < idle < weights  # 1.23 and 2.12
    assert be < 1.01
    assert fifo < 1.01


def test_an_overloaded_fifo_service_is_throttled_once_the_jobs_run_and_be_is_not() -> None:
    fifo, be = (outcome(name, load=1.0) for name in ("fifo", "be"))
    assert fifo.counters["throttled"] > 10
    assert fifo.iterations_per_s > 10
    assert fifo.after.p99_ms > 3 * be.after.p99_ms
    assert be.counters["throttled"] == 0
    assert be.iterations_per_s < 1


def test_each_check_buys_something_when_arrivals_are_random() -> None:
    seeds = range(1, 4)
    whole, *without = (
        np.mean([outcome(name, arrivals="poisson", seed=seed).violation_share for seed in seeds])
        for name in ("be", "be-no-local", "be-no-entry", "be-no-exit")
    )
    assert whole < 0.001
    assert all(each > 20 * whole for each in without)
