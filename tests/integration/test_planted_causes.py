"""Planted causes are found on real runs: the watcher sees them, and co-occurrence names them first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.analyse.peaks.call_times import summarise
from steelyard.analyse.peaks.co_occurrence import VerdictKind
from steelyard.analyse.peaks.peak_search import Rule, Threshold
from steelyard.analyse.peaks.run_peaks import RunPeaks, peaks_of_run
from steelyard.studies.replication.experiment_record import FORMAT, read_run, write_table
from steelyard.studies.replication.experiments.planted import BURNER, BURST_MS, PERIOD_MS, planting
from steelyard.studies.replication.experiments.watched import watching
from steelyard.studies.replication.values.call_series import find_series

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timing

PROGRAM = Path(__file__).parents[1] / "fixtures" / "busy_calls.py"
SECONDS = 2.5
CALL_US = 50
ATTEMPTS = 3
MOST_STOLEN = 0.02
"""Share of a run's time that the host may give to others, of all CPUs together."""
NAME = f"calls-{os.getpid()}"
"""Of the measured thread: another run on this host has another one."""


class Run:
    """What a planted and watched run needs of a conductor."""

    def __init__(self, folder: Path, cause: str) -> None:
        self.folder = folder
        self.header: dict[str, object] = {"format": FORMAT, "is_complete": True}
        self.reasons: list[str] = []
        asked = {
            "format": FORMAT,
            "experiment": "causes",
            "configuration": {"name": cause, "parameters": {"warm_up_calls": 100}},
            "setting": {"name": "native"},
        }
        (folder / "experiment.json").write_text(json.dumps(asked))

    def says(self, key: str, value: object) -> None:
        self.header[key] = value

    def missing(self, reason: str) -> None:
        self.reasons.append(reason)


@pytest.fixture
def above_the_rest() -> Iterator[None]:
    """Let what is measured, and what is planted, go before whatever else the host does."""
    before = os.sched_getscheduler(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pytest.skip("needs the rights of root: a real-time class keeps the rest of the host away")
    yield
    os.sched_setscheduler(0, before, os.sched_param(0))


def execute(folder: Path, cause: str, cpu: int | None) -> Run:
    run = Run(folder, cause)
    calls = folder / "calls.bin"
    place = [] if cpu is None else [str(cpu)]
    with watching(run, (NAME,)), planting(run, cause, name=NAME):
        subprocess.run([sys.executable, PROGRAM, NAME, calls, str(SECONDS), str(CALL_US), *place], check=True)
    records = np.fromfile(calls, "<u8").reshape(-1, 2)
    write_table(folder, "calls", {"start_ns": records[:, 0], "duration_ns": records[:, 1]})
    (folder / "header.json").write_text(json.dumps({**run.header, "missing": run.reasons}))
    if any("whole CPUs may not be watched" in reason for reason in run.reasons):
        pytest.skip("needs the right to watch whole CPUs (CAP_PERFMON)")
    assert run.reasons == []
    return run


def execute_undisturbed(folder: Path, cause: str, cpu: int | None) -> tuple[Path, Run]:
    """Repeat a run whose CPUs the host of this machine gave to others: it would be the cause, and is none."""
    for attempt in range(ATTEMPTS):
        place = folder / str(attempt)
        place.mkdir()
        run = execute(place, cause, cpu)
        taken = read_run(place).table("samples")["steal_ns"].to_numpy()
        if taken.size == 0 or taken[-1] - taken[0] < MOST_STOLEN * SECONDS * 1e9:
            break
    return place, run


def found_in(folder: Path, above_ns: float = 0.0) -> RunPeaks:
    ((series,),) = find_series(folder)
    # Usual calls take 10 us, and twice as long where a neighbour shares the core; what is planted, longer.
    usual_ns = summarise(lambda: (durations for _, durations in series.batches())).median_ns
    return peaks_of_run(series, Threshold(Rule.ABSOLUTE, max(above_ns, 6 * usual_ns)))


def a_cpu() -> int:
    return max(os.sched_getaffinity(0))


@pytest.mark.usefixtures("above_the_rest")
def test_a_background_job_is_seen_named_first_and_its_period_found(tmp_path: Path) -> None:
    folder, run = execute_undisturbed(tmp_path, "background", a_cpu())
    watch = run.header["watch"]
    assert isinstance(watch, dict)
    # The watcher itself must be small: one percent of a CPU, and not more than that here.
    assert 0 < watch["own_cpu_ns"] < 0.05 * (watch["end_ns"] - watch["start_ns"])
    assert watch["lost_records"] == 0
    switches = read_run(folder).table("switches").to_pylist()
    taken = [row for row in switches if row["next_name"] == BURNER]
    assert len(taken) >= SECONDS * 1000 / PERIOD_MS / 2
    assert all(row["is_preempted"] and row["on_ns"] > row["off_ns"] for row in taken)
    found = found_in(folder)
    explanation = found.explanation
    assert explanation is not None
    assert explanation.cause == f"off-CPU by {BURNER}", explanation.sentence
    assert explanation.verdict is VerdictKind.NAMED, explanation.sentence
    assert explanation.kinds[0].explained_share > 4 * explanation.kinds[0].chance_share
    bursts = found_in(folder, above_ns=BURST_MS * 500_000).period
    assert bursts.is_periodic
    assert bursts.period_ns == pytest.approx(PERIOD_MS * 1e6, rel=0.02)


@pytest.mark.usefixtures("above_the_rest")
def test_a_storm_of_migrations_is_named_first(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")
    folder, _ = execute_undisturbed(tmp_path, "migrations", None)
    run = read_run(folder)
    assert run.table("migrations").num_rows > 50
    found = found_in(folder)
    assert found.explanation is not None
    assert found.explanation.cause == "migration", found.explanation.sentence


@pytest.mark.usefixtures("above_the_rest")
def test_without_a_planted_cause_none_is_named(tmp_path: Path) -> None:
    execute(tmp_path, "none", a_cpu())
    found = found_in(tmp_path)
    assert found.explanation is not None
    planted = {f"off-CPU by {BURNER}", "migration", "gc"}
    named = {kind.kind for kind in found.explanation.kinds if kind.is_significant}
    assert not planted & named, found.explanation.sentence
