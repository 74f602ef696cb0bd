"""The client: whether it sent in time, and what one that waits for its answers would not have seen."""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.describe import mean, quantile
from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finding, finite
from steelyard.studies.colocation.findings.effects import mean_over_trials
from steelyard.studies.colocation.findings.usage import is_launched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from steelyard.model import Finding
    from steelyard.studies.colocation.bins import Requests
    from steelyard.studies.colocation.findings.isolation import CellTrials

LATE_S: Final = 100e-6
"""SOURCE: the promise of the open-loop client, at the 99th percentile, where a core is free for it."""

LEFT_OUT_SHARE: Final = 0.01
"""Requests that clients which suffice for the service alone may leave out."""


def client_findings(cell: CellTrials) -> Iterator[Finding]:
    """Give the error of the client itself, and what waiting clients would have hidden."""
    known = [(trial, trial.requests) for trial in cell.trials if trial.requests is not None]
    if not known:
        return
    # A command decides itself when it asks: that it asked in time says nothing.
    asked = [requests.late_s for trial, requests in known if not is_launched(trial)]
    late = [part[np.isfinite(part)] for part in asked]
    late = [part for part in late if part.size]
    if late:
        p99s = [quantile(part, 0.99) for part in late]
        yield finding(
            "client_error",
            cell.subject,
            "on time" if max(p99s) <= LATE_S else "late",
            estimates={
                "p50": mean_over_trials(
                    [quantile(part, 0.5) for part in late], "s", "median of sent less due"
                ),
                "p99": mean_over_trials(p99s, "s", "99th percentile of sent less due"),
                "largest": Estimate(finite(max(float(part.max()) for part in late)), "s", "largest"),
            },
            facts={
                "trials": len(late),
                "requests": sum(part.size for part in late),
                "never_sent": sum(int(np.isnan(part).sum()) for part in asked),
                "limit_us": 1e6 * LATE_S,
            },
            evidence=cell.evidence(("intended_ns", "sent_ns"), "quantiles of sent less intended"),
        )
    trial, requests = known[0]
    if trial.trial is not None and not trial.trial.plan["client"].get("closed_loop") and cell.is_loaded:
        alone = requests.where(trial.phases.before.holds(requests.intended_s))
        beside = requests.where(trial.phases.jobs.holds(requests.intended_s))
        if alone.latency_s.size and beside.latency_s.size:
            yield _waiting_finding(cell, enough_clients(alone), beside)


def waiting_clients(requests: Requests, clients: int) -> NDArray[np.bool_]:
    """Tell which requests would have been sent by clients that wait for each answer before they send again.

    A request is left out if, when it is due, every client still waits for an answer. The others keep the
    latency that they had: that the service would have been less busy without those left out is not allowed
    for, so that such clients hide at least as much.

    Parameters
    ----------
    requests : Requests
        In order of time.
    clients : int
        At least 1.

    Returns
    -------
    ndarray
        Shape (n,), bool.

    References
    ----------
    .. [1] Tene (2013), "How NOT to measure latency": coordinated omission.
    """
    free_at = [-math.inf] * clients
    sent = np.zeros(requests.intended_s.size, dtype=bool)
    for at, (due_s, took_s) in enumerate(zip(requests.intended_s, requests.latency_s, strict=True)):
        if free_at[0] <= due_s:
            heapq.heapreplace(free_at, float(due_s + took_s))
            sent[at] = True
    return sent


def enough_clients(alone: Requests) -> int:
    """Give the least number of waiting clients that would have sent nearly all requests to the service alone.

    Nearly all: without `LEFT_OUT_SHARE` of them.
    """
    low, high = 1, max(int(alone.latency_s.size), 1)
    while low < high:
        middle = (low + high) // 2
        if float(waiting_clients(alone, middle).mean()) >= 1 - LEFT_OUT_SHARE:
            high = middle
        else:
            low = middle + 1
    return low


def _waiting_finding(cell: CellTrials, clients: int, requests: Requests) -> Finding:
    """Say what waiting clients would have seen of the first trial while the jobs are there."""
    sent = waiting_clients(requests, clients)
    count = int(requests.latency_s.size)
    seen, whole = requests.latency_s[sent], requests.latency_s
    hidden = 100 * (1 - float(sent.mean())) if count else math.nan
    p99s = quantile(seen, 0.99), quantile(whole, 0.99)
    return finding(
        "waiting_client",
        cell.subject,
        "hides" if count and p99s[0] < p99s[1] else "hides nothing",
        estimates={
            "mean_seen": Estimate(finite(mean(seen)), "s", "mean of the requests that would have been sent"),
            "mean": Estimate(finite(mean(whole)), "s", "mean of all requests", measurements=count),
            "p99_seen": Estimate(finite(p99s[0]), "s", "99th percentile of those sent"),
            "p99": Estimate(finite(p99s[1]), "s", "99th percentile of all"),
            "hidden": Estimate(finite(hidden), "percent", "requests that would not have been sent"),
        },
        facts={"clients": clients, "requests": count},
        evidence=cell.evidence(
            ("intended_ns", "received_ns"), "requests that are due while no waiting client is free, left out"
        ),
    )
