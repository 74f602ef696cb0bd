"""What holds for every test.

- No entropy: property tests draw the same examples each time; `tests/fuzz` draws new ones.
- Limits of time hold on slow machines: they grow with what starting an interpreter takes.
- Where tests have an end (``STEELYARD_TEST_END``, as in continuous integration) the long ones come last, and
  those for which no time is left are skipped, by name. Without it everything is executed.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from datetime import datetime
from typing import Final

import pytest
from hypothesis import settings

from steelyard.record.clock import now_utc

settings.register_profile("steady", derandomize=True, parent=settings.get_profile("default"))
settings.load_profile("steady")

USUAL_START_S: Final = 0.012
"""What starting an interpreter takes on a machine that is not slow [s]."""
PATIENCE: Final = 0.8
"""Share of a test's limit."""
END: Final = "STEELYARD_TEST_END"
"""Time of day after which no test begins [s since 1970]."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Stretch the limits of time; put what is long last where time is limited."""
    scale = _time_scale()
    for item in items:
        item.add_marker(pytest.mark.timeout(scale * _limit_s(item)), append=False)
    if END in os.environ:
        items.sort(key=_is_long)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test for which no time is left."""
    left_s = float(os.environ.get(END, "inf")) - datetime.fromisoformat(now_utc()).timestamp()
    # What may take long is stopped by its limit at the latest, and is expected to need a part of it.
    needed_s = _limit_s(item) / 4 if _is_long(item) else 0.0
    if left_s < needed_s:
        pytest.skip(f"{max(left_s, 0):.0f} s are left until {END}, and this needs {needed_s:.0f}")


@pytest.fixture
def patience_s(request: pytest.FixtureRequest) -> float:
    """How long a test may wait for one program [s]: less than its own limit, to say what was written."""
    limit = request.node.get_closest_marker("timeout")
    return PATIENCE * float(limit.args[0])


def _is_long(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None


def _limit_s(item: pytest.Item) -> float:
    own = item.get_closest_marker("timeout")
    return float(own.args[0] if own else item.config.getini("timeout"))


def _time_scale() -> int:
    starts_s = []
    for _ in range(10):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-S", "-c", ""], check=True)
        starts_s.append(time.perf_counter() - begin)
    return math.ceil(min(starts_s) / USUAL_START_S)
