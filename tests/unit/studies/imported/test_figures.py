from __future__ import annotations

import json

import pytest

from steelyard.model.finding import Estimate, Finding, FindingSet
from steelyard.studies.imported.report.figures import opening_figure


@pytest.mark.parametrize(
    ("unit", "mean", "shown_unit", "shown"),
    [
        ("ns", 35_085_000.0, "ms", 35.085),
        ("ns", 12.5, "ns", 12.5),
        ("s", 0.0025, "ms", 2.5),
        ("s", 7.0, "s", 7.0),
        ("count", 35_085_000.0, "count", 35_085_000.0),
    ],
)
def test_an_axis_of_times_has_the_unit_in_which_they_are_short(
    unit: str, mean: float, shown_unit: str, shown: float
) -> None:
    estimates = {"mean": Estimate(mean, unit, "", 0.9 * mean, 1.1 * mean, 0.95)}
    cells = [
        Finding(f"cell/{name}", "cell", {"workload": name, "metric": "time"}, "quiet", estimates)
        for name in ("sort", "search")
    ]
    figure = opening_figure(FindingSet("imported", "p", 1, {}, tuple(cells)))
    assert figure is not None
    assert f"mean time [{shown_unit}]" in json.dumps(figure.spec)
    values, lows, highs = (figure.datasets["intervals"].columns[name] for name in ("value", "low", "high"))
    assert values == pytest.approx([shown, shown])
    assert lows == pytest.approx([0.9 * shown] * 2)
    assert highs == pytest.approx([1.1 * shown] * 2)
