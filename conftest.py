"""What holds for every test.

- No entropy: property tests draw the same examples each time; `tests/fuzz` draws new ones.
- Limits of time hold on slow machines: they grow with what starting an interpreter takes.
- Modules run in the order of their recorded durations, longest first, so that parallel workers end together.
- Results of tests are listed in a catalogue of the session, not in the user's.
- Studies do not wait for a quiet machine: what tests ask of them does not depend on it.
- A test above 5 s is marked `slow` (left to `make test-all`) or `long` (in `make test`, with the reason); one
  that is not fails the session.
- Where capabilities are promised (`--promised`, as in continuous integration), a test that needs no other one
  must not skip.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None, parent=settings.get_profile("default"))
settings.load_profile("steady")
os.environ["STEELYARD_LONGEST_WAIT_S"] = "0"
_DATA = tempfile.TemporaryDirectory(prefix="steelyard-tests-")
os.environ["STEELYARD_CATALOGUE"] = str(Path(_DATA.name) / "catalogue.sqlite")

DURATIONS: Final = Path(__file__).parent / "tests" / "durations.json"
RECORDED_DATA: Final = Path(__file__).resolve().parents[1] / "shared" / "data"
USUAL_START_S: Final = 0.012
"""What starting an interpreter takes on a machine that is not slow [s]."""
PATIENCE: Final = 0.8
"""Share of a test's limit."""
LONGEST_S: Final = 5.0
"""What a test may take that is neither `slow` nor `long` [s]."""
NOISE: Final = 3.0
"""How much longer than usual a test may take once, beside another one."""
RECORDED_S: Final = 0.2
"""What is shorter is not recorded [s]."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the lanes."""
    group = parser.getgroup("lanes")
    group.addoption("--record-durations", action="store_true", help=f"write {DURATIONS.name} again")
    group.addoption(
        "--check-durations", action="store_true", help="fail where a recorded test is too long or gone"
    )
    group.addoption(
        "--promised",
        default="",
        help="capabilities that are there, e.g. `needs_vm,needs_mpi`: no test may skip them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Watch the durations, in the process that sees all of them."""
    # A shell starts what is in its background with interrupts ignored, and so would be all that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Durations(config), "durations")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Stretch the limits of time; put what is long first."""
    scale = _time_scale()
    recorded = _stored()["tests"]
    module_s: dict[str, float] = defaultdict(float)
    for item in items:
        item.add_marker(pytest.mark.timeout(scale * _limit_s(item)), append=False)
        item.user_properties.append(("limit_s", scale * _duration_limit_s(item)))
        if item.get_closest_marker("needs_recorded_data") and not RECORDED_DATA.is_dir():
            item.add_marker(pytest.mark.skip("needs ../shared/data: recorded measurements"))
        module_s[_module(item.nodeid)] += recorded.get(item.nodeid, 0.0)
    items.sort(key=lambda item: -module_s[_module(item.nodeid)])
    if config.getoption("--check-durations"):
        _check_durations(items, recorded)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> object:
    """Let a test fail that skips what is promised."""
    report = yield
    promised = set(filter(None, item.config.getoption("--promised").split(",")))
    needed = {marker.name for marker in item.iter_markers() if marker.name.startswith("needs_")}
    if promised and report.skipped and not hasattr(report, "wasxfail") and needed <= promised:
        report.outcome = "failed"
        report.longrepr = f"skipped, though everything that it needs is promised here: {report.longrepr[-1]}"
    return report


@pytest.fixture
def patient_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let gates wait for a quiet machine as long as those of users do."""
    monkeypatch.delenv("STEELYARD_LONGEST_WAIT_S")


@pytest.fixture
def patience_s(request: pytest.FixtureRequest) -> float:
    """How long a test may wait for one program [s]: less than its own limit, to say what was written."""
    limit = request.node.get_closest_marker("timeout")
    return PATIENCE * float(limit.args[0])


class _Durations:
    """How long each test took, and which took longer than it may."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._taken_s: dict[str, float] = defaultdict(float)
        self._over: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up setup, call and teardown; what a module's fixtures take is not the test's."""
        self._taken_s[report.nodeid] += report.duration
        limit_s = dict(report.user_properties).get("limit_s", math.inf)
        if report.when == "call" and report.duration > NOISE * limit_s:
            self._over[report.nodeid] = report.duration

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Record, and fail where a test was too long."""
        if self._over and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self._config.getoption("--record-durations"):
            stored = _stored()
            taken_s = {name: round(seconds, 1) for name, seconds in self._taken_s.items()}
            known = {**stored["tests"], **taken_s}
            stored["tests"] = {name: known[name] for name in known if known[name] >= RECORDED_S}
            DURATIONS.write_text(json.dumps(stored, indent=0, sort_keys=True) + "\n", encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name what was too long."""
        for name, taken_s in sorted(self._over.items()):
            terminalreporter.write_line(
                f"error: {name} took {taken_s:.1f} s, and is marked neither `slow` nor `long`",
                red=True,
            )


def _check_durations(items: list[pytest.Item], recorded: dict[str, float]) -> None:
    limits_s = {item.nodeid: _duration_limit_s(item) for item in items}
    problems = [
        f"{name} took {taken_s} s: mark it `slow`, or `long` with the reason to wait for it"
        for name, taken_s in recorded.items()
        if taken_s > limits_s.get(name, math.inf)
    ]
    problems += [f"{name} is recorded and gone" for name in recorded if name not in limits_s]
    if problems:
        message = f"{DURATIONS.name} is not that of the tests:\n" + "\n".join(problems)
        raise pytest.UsageError(message)


def _module(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _stored() -> dict[str, dict[str, float]]:
    return (
        json.loads(DURATIONS.read_text(encoding="utf-8"))
        if DURATIONS.exists()
        else {"lanes": {}, "tests": {}}
    )


def _limit_s(item: pytest.Item) -> float:
    own = item.get_closest_marker("timeout")
    return float(own.args[0] if own else item.config.getini("timeout"))


def _duration_limit_s(item: pytest.Item) -> float:
    is_marked = item.get_closest_marker("slow") or item.get_closest_marker("long")
    return math.inf if is_marked else LONGEST_S


def _time_scale() -> int:
    starts_s = []
    for _ in range(10):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-S", "-c", ""], check=True)
        starts_s.append(time.perf_counter() - begin)
    return math.ceil(min(starts_s) / USUAL_START_S)
