"""The cell that a recommendation names is the one that its verdict rests on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from steelyard.analyse.intervals.dispersion import Pooled
from steelyard.studies.stability.findings import dispersion
from steelyard.studies.stability.findings.dispersion import _recommendation


def _loads(cells: dict[str, tuple[float, float, float]]) -> dict[tuple[str, str], Any]:
    """Give programs with one worker each, by estimate and limits [percent]."""
    found: dict[tuple[str, str], Any] = {}
    for number, (name, (value, low, high)) in enumerate(cells.items()):
        pooled = Pooled(value / 100, low / 100, high / 100, units=5, measurements=50, guaranteed=True)
        cell = SimpleNamespace(
            number=number, values=lambda: np.zeros(50), key=SimpleNamespace(setup="single")
        )
        found[name, ""] = {1: (cell, pooled)}
    return found


@pytest.mark.parametrize(
    ("cells", "verdict", "named"),
    [
        # The least steady one reaches across the tolerance; another one is beyond it.
        ({"wide": (8.2, 3.4, 9.8), "sure": (7.6, 5.7, 8.2)}, "none", "sure"),
        ({"wide": (8.2, 3.4, 9.8), "calm": (2.0, 1.5, 2.5)}, "undecided", "wide"),
    ],
)
def test_the_limiting_cell_proves_the_verdict(
    monkeypatch: pytest.MonkeyPatch, cells: dict[str, tuple[float, float, float]], verdict: str, named: str
) -> None:
    monkeypatch.setattr(dispersion, "next_step", lambda *_: "")
    options: Any = SimpleNamespace(tolerance_percent=5.0)
    recorded: Any = SimpleNamespace()
    found = _recommendation("bare", _loads(cells), recorded, options)
    assert (found.verdict, found.facts["limiting_workload"]) == (verdict, named)
