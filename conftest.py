"""What holds for every test.

- No entropy: property tests draw the same examples each time; `tests/fuzz` draws new ones.
- Limits of time hold on slow machines: they grow with what starting an interpreter takes.
- Where time is given (``STEELYARD_TEST_SECONDS``, as continuous integration does) the long tests come last,
  and those for which none is left are skipped, by name. Without it everything is executed.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from typing import Final

import pytest
from hypothesis import settings

settings.register_profile("steady", derandomize=True, parent=settings.get_profile("default"))
settings.load_profile("steady")

USUAL_START_S: Final = 0.012
"""What starting an interpreter takes on a machine that is not slow [s]."""
SECONDS: Final = "STEELYARD_TEST_SECONDS"
_END: Final = pytest.StashKey[float]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Stretch the limits of time; put what is long last where time is limited."""
    scale = _time_scale()
    for item in items:
        item.add_marker(pytest.mark.timeout(scale * _limit_s(item)), append=False)
    if SECONDS in os.environ:
        config.stash[_END] = time.monotonic() + float(os.environ[SECONDS])
        items.sort(key=_is_long)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test for which no time is left."""
    left_s = item.config.stash.get(_END, float("inf")) - time.monotonic()
    # What may take long is stopped by its limit at the latest, and is expected to need a part of it.
    needed_s = _limit_s(item) / 4 if _is_long(item) else 0.0
    if left_s < needed_s:
        pytest.skip(f"the time that {SECONDS} gives is over: this needs {needed_s:.0f} s")


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
