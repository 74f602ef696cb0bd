from __future__ import annotations

import pytest

from steelyard.model.finding import Estimate, Finding, FindingSet
from steelyard.studies.stability.report.figures import least_steady_first
from steelyard.studies.stability.report.load_figures import dispersion_figure, shift_figure, workers_figure
from steelyard.studies.stability.report.subjects import Subjects

SUBJECTS = Subjects(("bare", "vm"), ("single,1",), ("a", "b"), frozenset({"cpu"}), (1, 2))


def estimate(value: float, low: float, high: float, unit: str = "percent") -> Estimate:
    return Estimate(value, unit, "m", low, high, 0.95)


def dispersion(isolation: str, workload: str, *loads: tuple[float, float, float]) -> Finding:
    roles = {f"cv_{workers}": estimate(*limits) for workers, limits in enumerate(loads, start=1)}
    subject = {"isolation": isolation, "workload": workload}
    return Finding(f"{isolation}/{workload}", "dispersion_by_load", subject, "grows at 2", roles)


def shift(isolation: str, low: float, high: float) -> Finding:
    ratio = estimate((low + high) / 2, low, high, "ratio")
    return Finding(
        isolation, "location_shift", {"isolation": isolation, "baseline": "bare"}, "slower", {"ratio": ratio}
    )


def found(*findings: Finding) -> FindingSet:
    settings = Finding("settings", "settings", {}, "stated", {}, {"tolerance_percent": 5.0})
    return FindingSet("stability", "", 1, {}, (*findings, settings))


@pytest.mark.parametrize(
    ("second", "is_apart"), [((4.0, 3.1, 5.0), True), ((4.0, 2.9, 5.0), False), ((0.5, 0.1, 0.9), True)]
)
def test_a_load_whose_interval_leaves_that_of_the_first_gets_a_ring(
    second: tuple[float, float, float],
    is_apart: bool,  # noqa: FBT001 - what is expected
) -> None:
    figure = dispersion_figure(found(dispersion("bare", "a", (2.0, 1.0, 3.0), second)), SUBJECTS)
    assert figure is not None
    assert figure.datasets["dispersion"].columns["is_apart"] == (False, is_apart)
    assert "tolerance of 5 %" in figure.caption


def test_a_shift_is_drawn_with_the_interval_and_the_verdict_of_its_finding() -> None:
    figure = shift_figure(found(shift("vm", 1.01, 1.2), shift("podman", 0.99, 1.02)))
    assert figure is not None
    columns = figure.datasets["intervals"].columns
    assert columns["name"] == ("vm", "podman")
    assert columns["low"] == pytest.approx((1, -1), rel=1e-5)
    assert columns["high"] == pytest.approx((20, 2), rel=1e-5)
    assert columns["verdict"] == ("slower", "slower")


@pytest.mark.parametrize(
    ("verdict", "workers", "possible", "drawn"),
    [
        ("recommended", 4.0, 8, (4, 4, 8)),
        ("recommended", 8.0, None, (8, None, None)),
        ("undecided", None, 2, (None, 0, 2)),
        ("none", None, None, (0, None, None)),
    ],
)
def test_recommended_workers_reach_to_what_is_not_excluded(
    verdict: str, workers: float | None, possible: int | None, drawn: tuple[float | None, ...]
) -> None:
    facts: dict[str, str | int | float | bool | None] = {"possible_workers": possible}
    facts["largest_load_measured"] = 8
    estimates = {"workers": Estimate(workers, "workers", "m")}
    one = Finding("w", "recommended_workers", {"isolation": "vm"}, verdict, estimates, facts)
    figure = workers_figure(found(one))
    assert figure is not None
    columns = figure.datasets["intervals"].columns
    assert tuple(columns[name][0] for name in ("value", "low", "high")) == drawn
    assert columns["band_high"] == (8,)


def test_menus_begin_with_the_least_steady_program() -> None:
    findings = found(
        dispersion("bare", "a", (1.0, 1.0, 1.0)),
        dispersion("bare", "b", (1.0, 1.0, 1.0), (9.0, 8.0, 10.0)),
        dispersion("vm", "c", (8.0, 8.0, 8.0)),
    )
    assert least_steady_first(findings, {"c", "b", "a"}) == ("b", "a", "c")
    assert least_steady_first(found(), {"y", "x"}) == ("x", "y")
    assert least_steady_first(found(), ()) == ()
