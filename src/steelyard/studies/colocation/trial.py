"""The files of one trial of colocation: a service, its client and best-effort jobs under one policy.

The program ``steelyard-load trial --plan trial.json --out DIR`` conducts a trial and leaves a folder.
A simulated trial has the same files, so that one analysis reads both.

``trial.json``
    What was asked for, as it was given: `format` (``steelyard/trial/1``), `seed`, `cpus` (list, shared by
    service and best-effort jobs), `client_cpus` (list), and the objects

    - `service`: `kind` (``pool``: worker threads; ``web``: HTTP with a second tier behind it; ``command``:
      neither service nor client, but the `command`, launched again and again), `threads`,
      `work_iterations` (loop length of one usual request, 0: as long as `work_us` takes here), `work_us`,
      `long_share` (share of long requests, 0 to 1), `long_factor` (their work over the usual);
    - `client`: `rate_per_s`, `arrivals` (``poisson`` or ``uniform``), `connections`, `closed_loop` (number
      of clients that each wait for their answer; 0: open loop, requests go out when they are due; 1, and
      nothing else, beside a ``command``);
    - `best_effort`: `kind` (``resize`` or ``spin``), `jobs`, `threads` (of each job); `jobs` 0: none;
    - `phases`: `warm_up_ms`, `baseline_ms`, `best_effort_ms`, `recovery_ms` (the jobs start after the
      baseline and stop before the recovery; then the service drains), `drain_limit_ms`;
    - `policy`: `name`, and what is set, each absent or null where it is left alone: `service_class`,
      `best_effort_class` (``other``, ``batch``, ``idle``, ``fifo``), `service_priority` (of fifo),
      `service_nice`, `best_effort_nice`, `service_weight`, `best_effort_weight` (1 to 10000, of a control
      group), `best_effort_cpu_idle` (``cpu.idle`` of its control group), `scheduler` (command of a
      sched_ext scheduler that is started before and ended after the trial; ``{counters}`` in a word stands
      for the path of ``scheduler.json``);
    - `groups`: folder of the cpu controller below which the trial makes its own groups, or null;
      `groups_version` (1 or 2).
``header.json``
    What the program says of itself and of what it did: `format`, `is_complete`, `host`, `kernel`, `cpus`,
    `clock` (``monotonic``), `start_ns`, `best_effort_start_ns`, `best_effort_stop_ns`, `client_end_ns`,
    `end_ns` (stamps; 0: not reached), `work_iterations` and `work_ns` (loop length of one request, and how
    long it takes alone), `applied` (what was set for the policy, one entry per setting with where it was
    written), `missing` (what could not be set, with the reason), and whatever else it knows.
``requests.bin``
    `REQUEST` records, one per scheduled request in order of intended time. The file has its full length
    from the begin; a request that was never answered has `received_ns` 0. Those of a ``command`` are its
    launches, or what it prints in lines ``latency_us NUMBER``; they are written at the end.
``iterations.bin``
    `ITERATION` records, one per finished iteration of a best-effort job.
``samples.bin``
    `SAMPLE` records, one every 100 ms: what the service and the best-effort jobs have used and waited so far.
``scheduler.json``
    Counters of the scheduler the trial was run under, if it wrote any.

All files are little-endian, all stamps are of the machine's monotonic clock [ns].
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from steelyard.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

FORMAT: Final = "steelyard/trial/1"
_HINT: Final = "the file is damaged, or the trial was interrupted: repeat it"

REQUEST: Final = np.dtype(
    [
        ("seq", "<u4"),
        ("kind", "<u4"),
        ("intended_ns", "<u8"),
        ("sent_ns", "<u8"),
        ("started_ns", "<u8"),
        ("finished_ns", "<u8"),
        ("received_ns", "<u8"),
    ]
)
"""Number from 0, kind (0: usual, 1: long), when it was to be sent, was sent, a worker took it, the worker was
done, the client had the answer. Latency counts from `intended_ns`."""

ITERATION: Final = np.dtype([("job", "<u4"), ("thread", "<u4"), ("end_ns", "<u8")])
"""Job and thread from 0, when the iteration ended."""

SAMPLE: Final = np.dtype(
    [
        ("time_ns", "<u8"),
        ("service_cpu_ns", "<u8"),
        ("service_wait_ns", "<u8"),
        ("best_effort_cpu_ns", "<u8"),
        ("best_effort_wait_ns", "<u8"),
        ("busy_ns", "<u8"),
    ]
)
"""Stamp; CPU time and time runnable but waiting (``schedstat``) summed over the threads of the service and of
the best-effort jobs; busy time of the trial's CPUs (``/proc/stat``, as fine as that is)."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """What a trial left.

    Parameters
    ----------
    plan : Mapping
        ``trial.json``.
    header : Mapping
        ``header.json``.
    requests : ndarray
        Shape (scheduled requests,), dtype `REQUEST`.
    iterations : ndarray
        Shape (finished iterations,), dtype `ITERATION`.
    samples : ndarray
        Dtype `SAMPLE`.
    scheduler : Mapping
        ``scheduler.json``; empty where there is none.
    """

    plan: Mapping[str, Any]
    header: Mapping[str, Any]
    requests: NDArray[np.void]
    iterations: NDArray[np.void]
    samples: NDArray[np.void]
    scheduler: Mapping[str, Any]


def read_trial(folder: Path) -> Trial:
    """Read the folder of a trial.

    Raises
    ------
    DataError
        If a file is missing, unreadable or of another format.
    """
    plan = _read_json(folder / "trial.json")
    header = _read_json(folder / "header.json")
    for name, content in (("trial.json", plan), ("header.json", header)):
        if content.get("format") != FORMAT:
            message = f"`{folder / name}` has the format `{content.get('format')}`; known: `{FORMAT}`"
            raise DataError(
                message, hint="it was written by another version of Steelyard", code="trial.format"
            )
    scheduler = folder / "scheduler.json"
    return Trial(
        plan=plan,
        header=header,
        requests=_read_records(folder / "requests.bin", REQUEST),
        iterations=_read_records(folder / "iterations.bin", ITERATION),
        samples=_read_records(folder / "samples.bin", SAMPLE),
        scheduler=_read_json(scheduler) if scheduler.exists() else {},
    )


def write_trial(folder: Path, trial: Trial) -> None:
    """Write a trial as the program does: for data that was simulated or came from elsewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("trial.json", trial.plan), ("header.json", trial.header)):
        whole = {"format": FORMAT, **content}
        (folder / name).write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    if trial.scheduler:
        (folder / "scheduler.json").write_text(json.dumps(dict(trial.scheduler)) + "\n", encoding="utf-8")
    (folder / "requests.bin").write_bytes(trial.requests.tobytes())
    (folder / "iterations.bin").write_bytes(trial.iterations.tobytes())
    (folder / "samples.bin").write_bytes(trial.samples.tobytes())


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"cannot read `{path}`: {error}"
        raise DataError(message, hint=_HINT, code="trial.file") from error
    if not isinstance(content, dict):
        message = f"`{path}` is not a JSON object"
        raise DataError(message, hint=_HINT, code="trial.file")
    return content


def _read_records(path: Path, kind: np.dtype[np.void]) -> NDArray[np.void]:
    try:
        content = path.read_bytes()
    except OSError as error:
        message = f"cannot read `{path}`: {error.strerror}"
        raise DataError(message, hint=_HINT, code="trial.file") from error
    if len(content) % kind.itemsize:
        message = f"`{path}` has {len(content)} bytes; expected a multiple of {kind.itemsize}"
        raise DataError(message, hint=_HINT, code="trial.file")
    return np.frombuffer(content, dtype=kind)
