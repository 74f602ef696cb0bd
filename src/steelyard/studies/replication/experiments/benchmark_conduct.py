"""Runs a benchmark of the user's own: deploy and start every role, load, read results, judge."""

from __future__ import annotations

import http.client
import re
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import numpy as np

from steelyard.errors import DataError, RunError
from steelyard.studies.replication.experiments.benchmark_results import Measured, read_results
from steelyard.studies.replication.experiments.conduct import BenchmarkFailed
from steelyard.studies.replication.experiments.database import last_line, stop
from steelyard.studies.replication.experiments.deployment import DRIVER
from steelyard.studies.replication.experiments.files import write_table
from steelyard.studies.replication.experiments.own_benchmark import fill_in, read_benchmark
from steelyard.studies.replication.experiments.verdict import Criterion, judge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.studies.replication.devices.interface import Place, Process
    from steelyard.studies.replication.experiments.conduct import Conducted
    from steelyard.studies.replication.experiments.own_benchmark import (
        OwnBenchmark,
        Requirements,
        RoleCommands,
    )

STOP_LIMIT_S: Final = 60.0
LOOK_S: Final = 0.05
HTTP_LIMIT_S: Final = 5.0
FIRST_GOOD: Final = 200
FIRST_BAD: Final = 300
FAILED_STATUS: Final = 500
GOOD_STATUS: Final = 200
"""Statuses of HTTP in the table of requests, for results that only say whether a request failed."""
PASSED_ON: Final[tuple[str, ...]] = (
    "seed",
    "rate_per_s",
    "seconds",
    "warm_up_seconds",
    "connections",
    "rows",
)


def conduct_own(run: Conducted) -> None:
    """Run the benchmark that the parameters of a run describe.

    Raises
    ------
    StudyFileError
        If it is not described well.
    DataError
        If its setting lacks a role, or its results are not what was described.
    BenchmarkFailed
        If a role does not start, the load fails or takes too long, or too little is reached.
    """
    benchmark = read_benchmark(run.parameters)
    run.says("own_benchmark", benchmark.model_dump(mode="json"))
    with ExitStack() as stack:
        names = dict.fromkeys([*benchmark.roles, DRIVER])
        places = {name: stack.enter_context(run.place(name)) for name in names}
        words = _Words(run, benchmark, places)
        for name, commands in benchmark.roles.items():
            stack.enter_context(_started(run, words, name, commands))
        measured = _loaded(run, words, benchmark)
    reasons = judge(run, _criteria(measured, benchmark.requires))
    if reasons:
        raise BenchmarkFailed("; ".join(reasons))


class _Words:
    """Commands of a benchmark, with the values of a run in them."""

    def __init__(self, run: Conducted, benchmark: OwnBenchmark, places: Mapping[str, Place]) -> None:
        self.places = places
        self._settings = benchmark.settings
        asked = {**run.parameters, "seed": run.asked["seed"]}
        self._values = {key: f"{asked[key]}" for key in PASSED_ON if key in asked}
        self._values |= {f"address.{name}": place.address for name, place in places.items()}

    def fill(self, role: str, text: str) -> str:
        """Put values into a text of a role."""
        place = self.places[role]
        own = {"folder": place.path(""), "storage": place.stored_path("")}
        return fill_in(text, {**self._values, **own})

    def start(self, run: Conducted, role: str, command: Sequence[str]) -> Process:
        """Start a command of a role."""
        settings = {name: self.fill(role, value) for name, value in self._settings.items()}
        words = [self.fill(role, word) for word in command]
        return self.places[role].start(words, log=run.log(role), environment=settings)

    def put(self, role: str, files: Sequence[str]) -> None:
        """Copy files of the user into the folder of a role."""
        for name in files:
            source = Path(name).expanduser()
            if not source.exists():
                message = f"`own_benchmark` names `{name}`, which does not exist"
                raise DataError(message, hint="give its full path on this host", code="experiment.benchmark")
            self.places[role].put(source, source.name)


@contextmanager
def _started(run: Conducted, words: _Words, role: str, commands: RoleCommands) -> Iterator[None]:
    """Deploy and start a role, and end it in order."""
    words.put(role, commands.files)
    begin_ns = time.monotonic_ns()
    if commands.deploy:
        _finish(run, role, "deploy", words.start(run, role, commands.deploy), commands.limit_s)
    deployed_ns = time.monotonic_ns()
    run.says("start_up_ns", {f"{role} deploy": deployed_ns - begin_ns})
    if not commands.start:
        yield
        return
    log = run.log(role)
    before = log.stat().st_size if log.exists() else 0
    process = words.start(run, role, commands.start)
    try:
        address = words.fill(role, commands.ready_http)
        _await_ready(run, role, commands, _Signs(process, address, before))
        run.says("start_up_ns", {f"{role} start": time.monotonic_ns() - deployed_ns})
        yield
    finally:
        stop(run, process, role, STOP_LIMIT_S)


@dataclass(frozen=True, slots=True)
class _Signs:
    """Where readiness shows: the process, its address, and where in the log its words begin."""

    process: Process
    address: str
    log_start: int


def _await_ready(run: Conducted, role: str, commands: RoleCommands, signs: _Signs) -> None:
    log = run.log(role)
    pattern = re.compile(commands.ready_log, re.MULTILINE) if commands.ready_log else None
    deadline = time.monotonic() + commands.limit_s
    while time.monotonic() < deadline:
        said = log.read_bytes()[signs.log_start :].decode("utf-8", errors="replace")
        if (pattern is None or pattern.search(said)) and (not signs.address or _answers(signs.address)):
            return
        status = signs.process.poll()
        if status is not None:
            reason = f"`{role}` ended with status {status} before it was ready: {last_line(log)}"
            raise BenchmarkFailed(reason)
        time.sleep(LOOK_S)
    reason = f"`{role}` was not ready within {commands.limit_s:g} s: {last_line(log)}"
    raise BenchmarkFailed(reason)


def _answers(address: str) -> bool:
    """Whether an address is answered with a status of success."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=HTTP_LIMIT_S)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("GET", target)
        return FIRST_GOOD <= connection.getresponse().status < FIRST_BAD
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _finish(run: Conducted, role: str, name: str, process: Process, limit_s: float) -> None:
    """Wait for a command that must succeed."""
    try:
        status = process.wait(limit_s)
    except TimeoutError as error:
        process.kill()
        reason = f"`{name}` of `{role}` did not end within {limit_s:g} s"
        raise BenchmarkFailed(reason) from error
    if status != 0:
        reason = f"`{name}` of `{role}` failed with status {status}: {last_line(run.log(role))}"
        raise BenchmarkFailed(reason)


def _loaded(run: Conducted, words: _Words, benchmark: OwnBenchmark) -> Measured:
    words.put(DRIVER, benchmark.files)
    begin_ns = time.monotonic_ns()
    run.says("measure_start_ns", begin_ns)
    _finish(run, DRIVER, "command", words.start(run, DRIVER, benchmark.command), benchmark.limit_s)
    seconds = (time.monotonic_ns() - begin_ns) / 1e9
    with tempfile.TemporaryDirectory(dir=run.folder) as folder:
        path = Path(folder) / "results"
        try:
            words.places[DRIVER].get(benchmark.results.file, path)
        except RunError as error:
            reason = f"the load left no results `{benchmark.results.file}`: {last_line(run.log(DRIVER))}"
            raise BenchmarkFailed(reason) from error
        measured = read_results(path, benchmark.results, seconds)
        path.replace(run.folder / f"results.{benchmark.results.format}")
    _keep(run, measured, begin_ns)
    return measured


def _keep(run: Conducted, measured: Measured, begin_ns: int) -> None:
    """Keep what was reached, and the single requests where their begins are known."""
    numbers = {name: getattr(measured, name) for name in ("throughput_per_s", "p90_ms", "errors_percent")}
    run.says("reached", numbers)
    requests = measured.requests
    if requests is None:
        run.missing("the results are a summary without single requests")
        return
    if requests.begin_ns is None:
        run.missing(
            "the results do not say when requests were due (`begin`), so there is no table of requests"
        )
        return
    order = np.argsort(requests.begin_ns, kind="stable")
    intended_ns = requests.begin_ns[order] + begin_ns
    write_table(
        run.folder,
        "requests",
        {
            "operation": requests.operation[order],
            "intended_ns": intended_ns,
            "sent_ns": intended_ns,
            "received_ns": intended_ns + requests.response_ns[order],
            "status": np.where(requests.has_failed[order], FAILED_STATUS, GOOD_STATUS),
        },
    )
    run.says("stamps", "the first request is put at the begin of the load; it was sent when it was due")


def _criteria(measured: Measured, requires: Requirements) -> list[Criterion]:
    found = []
    if requires.throughput_per_s is not None:
        found.append(
            Criterion("throughput", "1/s", measured.throughput_per_s, least=requires.throughput_per_s)
        )
    if requires.p90_ms is not None:
        found.append(
            Criterion("90th percentile of response times", "ms", measured.p90_ms, most=requires.p90_ms)
        )
    if measured.errors_percent is not None:
        found.append(
            Criterion("share of failed requests", "%", measured.errors_percent, most=requires.errors_percent)
        )
    return found
