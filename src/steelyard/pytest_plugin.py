"""A plug-in of pytest: the fixture ``steelyard``, which measures a call."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PROPERTY: Final = "steelyard"
_ROUNDS_PER_SPAN: Final = 20
"""A round of several calls lasts a part of the time, so that the clock is read seldom and rounds are many."""
_NS_PER_S: Final = 1_000_000_000


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("steelyard", "measured calls (fixture `steelyard`)")
    group.addoption(
        "--steelyard-seconds",
        type=float,
        default=0.2,
        metavar="S",
        help="how long a call is measured, over and over [s]; 0.2 by default",
    )
    group.addoption("--steelyard-json", metavar="FILE", help="write the rounds of the last test into a file")


class MeasuredCall:
    """Measures a call over and over; the fixture of a test.

    Parameters
    ----------
    seconds : float
        How long [s].
    """

    def __init__(self, seconds: float) -> None:
        self._span_ns = seconds * _NS_PER_S
        self.rounds_ns: list[float] = []
        self.calls_per_round = 0

    def __call__(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function until the time is over, and give what the last call returned.

        Parameters
        ----------
        function : callable
            What is measured; the loop around it, some 30 ns a call, is part of its time.
        *args, **kwargs
            Its arguments, the same objects in each call.

        Raises
        ------
        RuntimeError
            If the test has measured a call before.
        """
        if self.rounds_ns:
            message = "cannot measure a second call: a test with the fixture `steelyard` measures one"
            raise RuntimeError(message)
        result = function(*args, **kwargs)  # the first call pays for what all later ones find
        calls = 1
        while (took_ns := self._round(calls, function, args, kwargs)) * _ROUNDS_PER_SPAN < self._span_ns:
            calls *= 2
        self.calls_per_round = calls
        end_ns = time.perf_counter_ns() + self._span_ns - took_ns
        self.rounds_ns.append(took_ns / calls)
        while time.perf_counter_ns() < end_ns:
            self.rounds_ns.append(self._round(calls, function, args, kwargs) / calls)
        return result

    @staticmethod
    def _round(calls: int, function: Callable[..., Any], args: Any, kwargs: Any) -> int:
        begin_ns = time.perf_counter_ns()
        for _ in range(calls):
            function(*args, **kwargs)
        return time.perf_counter_ns() - begin_ns


@pytest.fixture
def steelyard(request: pytest.FixtureRequest) -> Iterator[MeasuredCall]:
    """Measure a call: ``steelyard(function, *args, **kwargs)`` gives what the function returns."""
    config = request.config
    found = MeasuredCall(config.getoption("--steelyard-seconds"))
    yield found
    if not found.rounds_ns:
        return
    from statistics import median  # noqa: PLC0415 - runs without the fixture load nothing

    rounds = found.rounds_ns
    # A property of the test reaches the process that writes the table, also from workers of xdist.
    properties = (median(rounds), min(rounds), max(rounds), len(rounds), found.calls_per_round)
    request.node.user_properties.append((_PROPERTY, properties))
    if target := config.getoption("--steelyard-json"):
        content = {"test": request.node.nodeid, "calls_per_round": found.calls_per_round, "rounds_ns": rounds}
        Path(target).write_text(json.dumps(content), encoding="utf-8")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write the table of what was measured."""
    rows = [
        (report.nodeid, found)
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, found in getattr(report, "user_properties", ())
        if name == _PROPERTY and report.when == "teardown"
    ]
    if not rows:
        return
    from steelyard.units import format_seconds  # noqa: PLC0415 - runs without the fixture load nothing

    def shown(value_ns: float) -> str:
        return format_seconds(value_ns / _NS_PER_S)

    width = max(len("test"), *(len(name) for name, _ in rows))
    terminalreporter.section("steelyard: time of a call, in one process")
    terminalreporter.write_line(
        f"{'test':<{width}}" + "".join(f"{head:>12}" for head in ("median", "least", "most", "rounds"))
    )
    for name, (median, least, most, count, calls) in rows:
        cells = (shown(median), shown(least), shown(most), f"{count} x {calls}")
        terminalreporter.write_line(f"{name:<{width}}" + "".join(f"{cell:>12}" for cell in cells))
    terminalreporter.write_line("whether a change made it slower: `steelyard bench`, kind `pytest`")
