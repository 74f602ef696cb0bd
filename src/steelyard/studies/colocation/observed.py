"""Trials as the analysis sees them, whether they were run, simulated, or read off a published figure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from steelyard.record.tables import MEASUREMENTS_NAME, read_measurements, read_runs
from steelyard.studies.colocation.bins import BIN_S, Bins, Requests, bin_trial
from steelyard.studies.colocation.latency_bins import (
    ALONE,
    BIN_START,
    JOBS_CPU,
    JOBS_START,
    JOBS_STOP,
    LATENCY,
    MEAN,
    NOT_STATED,
    P50,
    P99,
    REQUEST_START,
    WORK,
)
from steelyard.studies.colocation.recorded import read_recorded
from steelyard.studies.colocation.windows import Phases
from steelyard.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.model import Plan
    from steelyard.studies.colocation.recorded import RecordedTrial
    from steelyard.studies.colocation.trial import Trial

    Vector = NDArray[np.float64]


class Origin(StrEnum):
    """Where a trial comes from; a simulated one is never shown as a measured one."""

    HOST = "measured"
    GUEST = "measured in a virtual machine"
    REAL_GUEST = "measured in a virtual machine in real time"
    SIMULATED = "simulated"
    FIGURE = "read off a figure"
    IMPORTED = "imported"


MOST_BINS: Final = 100_000
"""Bins of an imported series of requests; one that lasts for longer than they do has wider ones."""

NO_REQUEST: Final = 0
"""A stamp of something that did not happen."""


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """One trial.

    Parameters
    ----------
    cell, block : int
        As in the plan; a block is a repetition.
    policy, load : str
        Levels of its cell; the load in percent of the CPUs.
    is_twin : bool
        Whether it belongs to the second cell of the A/A control.
    origin : Origin
        Where it comes from.
    place : str
        Folder of its files in the result, or the table of its values.
    phases : Phases
        When the jobs were there.
    bins : Bins
        The trial in bins of time.
    requests : Requests or None
        ``None`` where only bins are known.
    trial : Trial or None
        Its files; ``None`` for an imported series.
    jobs_cpu_s : ndarray or None
        CPU time of the jobs in each bin, where an imported series has it [s].
    """

    cell: int
    block: int
    policy: str
    load: str
    is_twin: bool
    origin: Origin
    place: str
    phases: Phases
    bins: Bins
    requests: Requests | None
    trial: Trial | None
    jobs_cpu_s: Vector | None = None

    @property
    def jobs_count(self) -> int | None:
        """Best-effort jobs that it had; ``None`` where a file does not say."""
        if self.trial is None:
            return 0 if self.policy == ALONE else None
        return int(self.trial.plan.get("best_effort", {}).get("jobs", 0))


def observe(result: Path, plan: Plan) -> tuple[tuple[Observed, ...], tuple[RecordedTrial, ...]]:
    """Give the trials that can be analysed, and the recorded ones that came to no end.

    Raises
    ------
    DataError
        If the recorded tables cannot be read.
    """
    if plan.options.get("mode") == "import":
        return tuple(_imported(result, plan)), ()
    recorded = read_recorded(result, plan)
    good = tuple(each for each in recorded if each.trial is not None and not each.problem)
    failed = tuple(each for each in recorded if each not in good)
    return tuple(observed_trial(each, plan) for each in good), failed


def observed_trial(recorded: RecordedTrial, plan: Plan) -> Observed:
    """Give a recorded trial in bins, with the latency of each request."""
    trial = recorded.trial
    if trial is None:
        raise AssertionError(recorded.place)  # the caller has chosen those that are there
    begin_ns = int(trial.header["start_ns"])
    phases = _phases(trial)
    requests = requests_of(trial)
    ends_s = (trial.iterations["end_ns"].astype(np.int64) - begin_ns) / NS_PER_S
    return Observed(
        cell=recorded.cell,
        block=recorded.block,
        policy=recorded.policy,
        load=recorded.load,
        is_twin=recorded.is_twin,
        origin=_origin(trial, plan),
        place=recorded.place,
        phases=phases,
        bins=bin_trial(requests, ends_s, phases.end_s),
        requests=requests,
        trial=trial,
    )


def requests_of(trial: Trial) -> Requests:
    """Give the latency of every request; one without an answer has waited until the end of the trial."""
    begin_ns, end_ns = int(trial.header["start_ns"]), int(trial.header["end_ns"])
    stamps = {name: trial.requests[name].astype(np.int64) for name in ("intended_ns", "sent_ns")}
    received = trial.requests["received_ns"].astype(np.int64)
    is_answered = received != NO_REQUEST
    until = np.where(is_answered, received, np.maximum(end_ns, stamps["intended_ns"]))
    late = (stamps["sent_ns"] - stamps["intended_ns"]) / NS_PER_S
    return Requests(
        intended_s=(stamps["intended_ns"] - begin_ns) / NS_PER_S,
        latency_s=(until - stamps["intended_ns"]) / NS_PER_S,
        is_answered=is_answered,
        is_long=trial.requests["kind"] == 1,
        late_s=np.where(stamps["sent_ns"] != NO_REQUEST, late, np.nan),
    )


def _phases(trial: Trial) -> Phases:
    """Give the phases as they were stamped; without jobs, as they were planned."""
    header, planned = trial.header, trial.plan["phases"]
    begin_ns = int(header["start_ns"])
    warm_up_s = planned["warm_up_ms"] * NS_PER_MS / NS_PER_S
    start_s = warm_up_s + planned["baseline_ms"] * NS_PER_MS / NS_PER_S
    stop_s = start_s + planned["best_effort_ms"] * NS_PER_MS / NS_PER_S

    def stamped(name: str, otherwise_s: float) -> float:
        stamp = int(header.get(name) or NO_REQUEST)
        return otherwise_s if stamp == NO_REQUEST else (stamp - begin_ns) / NS_PER_S

    stop_s = stamped("best_effort_stop_ns", stop_s)
    client_end_s = stamped("client_end_ns", stop_s + planned["recovery_ms"] * NS_PER_MS / NS_PER_S)
    return Phases(
        warm_up_end_s=warm_up_s,
        jobs_start_s=stamped("best_effort_start_ns", start_s),
        jobs_stop_s=stop_s,
        client_end_s=client_end_s,
        end_s=stamped("end_ns", client_end_s),
    )


def _origin(trial: Trial, plan: Plan) -> Origin:
    if trial.header.get("simulated") or trial.header.get("clock") == "simulated":
        return Origin.SIMULATED
    if plan.options.get("in_vm") is not True:
        return Origin.HOST
    return Origin.REAL_GUEST if plan.options.get("guest_time") == "real" else Origin.GUEST


def _imported(result: Path, plan: Plan) -> Iterator[Observed]:
    runs = pl.DataFrame(read_runs(result).select(["run_id", "cell", "block"]))
    measured = pl.DataFrame(read_measurements(result)).join(runs, on="run_id")
    moments = _jobs_time(measured, plan)
    for (cell, block), rows in measured.group_by("cell", "block", maintain_order=True):
        levels = plan.cells[int(str(cell))].levels
        bins, requests, jobs_cpu_s = _series(rows)
        end_s = float(bins.start_s[-1]) + bins.width_s
        start_s, stop_s = (
            _moment_s(rows, metric, otherwise)
            for metric, otherwise in zip((JOBS_START, JOBS_STOP), moments or (end_s / 2, end_s), strict=True)
        )
        yield Observed(
            cell=int(str(cell)),
            block=int(str(block)),
            policy=levels["policy"],
            load=levels["load"],
            is_twin=False,
            origin=Origin.IMPORTED if levels["load"] == NOT_STATED else Origin.FIGURE,
            place=MEASUREMENTS_NAME,
            phases=Phases(0.0, start_s, stop_s, min(stop_s, end_s), end_s),
            bins=bins,
            requests=requests,
            trial=None,
            jobs_cpu_s=jobs_cpu_s,
        )


def _jobs_time(measured: pl.DataFrame, plan: Plan) -> tuple[float, float] | None:
    """Give when jobs start and stop in series that do not say it, as that of a service alone."""
    found = []
    for name, metric in (("start", JOBS_START), ("stop", JOBS_STOP)):
        stated = plan.options.get(f"jobs_{name}_s")
        others = measured.filter(pl.col("metric") == metric)["value"].to_numpy()
        if stated is not None or others.size:
            found.append(float(np.median(others)) / NS_PER_S if stated is None else float(stated))
    return (found[0], found[1]) if len(found) == 2 else None  # noqa: PLR2004 - both


def _moment_s(rows: pl.DataFrame, metric: str, otherwise_s: float) -> float:
    found = rows.filter(pl.col("metric") == metric)["value"]
    return float(found[0]) / NS_PER_S if found.len() else otherwise_s


def _series(rows: pl.DataFrame) -> tuple[Bins, Requests | None, Vector | None]:
    """Give an imported series in bins, its requests if it has them, and the CPU time of the jobs."""
    if rows["metric"].is_in([REQUEST_START]).any():
        requests = _requests(_columns(rows, REQUEST_START, (LATENCY,)))
        end_s = float(requests.intended_s[-1]) + BIN_S
        width_s = BIN_S * max(math.ceil(end_s / BIN_S / MOST_BINS), 1)
        bins = bin_trial(requests, np.zeros(0), end_s, width_s)
        return replace(bins, iterations=np.full(bins.start_s.size, np.nan)), requests, None
    columns = _columns(rows, BIN_START, (MEAN, P50, P99, WORK, JOBS_CPU))
    begins, work = columns[BIN_START] / NS_PER_S, columns[WORK]
    unknown = np.full(begins.size, np.nan)
    bins = Bins(
        start_s=begins,
        width_s=float(np.median(np.diff(begins))) if begins.size > 1 else BIN_S,
        count=unknown,
        unanswered=unknown,
        mean_s=columns[MEAN] / NS_PER_S,
        p50_s=columns[P50] / NS_PER_S,
        p99_s=columns[P99] / NS_PER_S,
        iterations=unknown if np.isnan(work).all() else np.nan_to_num(work),
    )
    cpu = columns[JOBS_CPU] / NS_PER_S
    return bins, None, None if np.isnan(cpu).all() else np.nan_to_num(cpu)


def _requests(columns: dict[str, Vector]) -> Requests:
    """Give requests by the time they were due; one without a latency has waited until the last was over."""
    order = np.argsort(columns[REQUEST_START], kind="stable")
    due, latency = (columns[name][order] / NS_PER_S for name in (REQUEST_START, LATENCY))
    is_answered, count = np.isfinite(latency), order.size
    over_s = float(np.max(due + np.where(is_answered, latency, 0.0)))
    return Requests(
        intended_s=due,
        latency_s=np.where(is_answered, latency, over_s - due),
        is_answered=is_answered,
        is_long=np.zeros(count, dtype=np.bool_),
        late_s=np.full(count, np.nan),
    )


def _columns(rows: pl.DataFrame, begin: str, metrics: Sequence[str]) -> dict[str, Vector]:
    """Give each metric in order of its bins or requests; NaN where one lacks it."""
    bins = rows.filter(pl.col("metric") == begin).select("iteration", "value").sort("iteration")
    found = {begin: bins["value"].to_numpy().astype(np.float64)}
    for metric in metrics:
        values = rows.filter(pl.col("metric") == metric).select("iteration", pl.col("value").alias(metric))
        joined = bins.join(values, on="iteration", how="left", maintain_order="left")
        found[metric] = joined[metric].fill_null(float("nan")).to_numpy().astype(np.float64)
    return found
