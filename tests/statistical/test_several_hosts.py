"""Results of several hosts with planted effects: intervals hold for further hosts, outliers are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fixtures.simulated_result import Measure, Spec, Study
from steelyard.analyse.comparison.multiplicity import holm
from steelyard.analyse.comparison.over_hosts import host_deviations, ratio_over_hosts
from steelyard.analyse.intervals.bootstrap import Resampling, Statistic
from steelyard.analyse.intervals.clustering import HOST, Units
from steelyard.analyse.intervals.device_variance import variance_between
from steelyard.analyse.intervals.dispersion import pooled_statistics
from steelyard.report.slots import change_interval
from steelyard.studies.stability.analysis import analyse
from steelyard.studies.stability.report.answer import answer
from steelyard.studies.stability.report.page import build as build_page
from steelyard.studies.stability.report.sentences import PHRASING

if TYPE_CHECKING:
    from steelyard.model import Finding, FindingSet

Make = Callable[..., Path]
EXP = "exp/exp_float"
TRIALS = 500
FEWEST_COVERED = 0.92
"""Of 500 trials at 95 %: below it in two of 1000."""


def planted(effects: tuple[float, ...], mean: float = 0.2, noise: float = 0.002) -> Measure:
    """Give times of hosts that take blocks in turn, each slower by its effect."""

    def measure(rng: np.random.Generator, block: int, worker: int, count: int) -> dict[str, np.ndarray]:
        level = mean * np.exp(effects[block % len(effects)] + noise * rng.standard_normal())
        own = level * np.exp(0.003 * rng.standard_normal(count))
        return {"cpu": own, "wall": own * 1.01}

    return measure


def study_on(
    make_result: Make, effects: tuple[float, ...], hosts: tuple[str, ...], ratio: float = 1.0
) -> Path:
    """Give a result of two isolations on hosts; `docker` is slower by `ratio`."""
    specs = [
        Spec("bare", "single", 1, EXP, planted(effects)),
        Spec("docker", "single", 1, EXP, planted(effects, 0.2 * ratio)),
    ]
    return make_result(specs, Study(blocks=8 * len(hosts), iterations=4, hosts=hosts))


def hosts_named(count: int) -> tuple[str, ...]:
    return tuple(f"{number:016x}" for number in range(count))


def said(finding: Finding) -> str:
    return "".join(part.text for part in PHRASING.say(finding).parts)


def of(findings: FindingSet, claim: str, **subject: str) -> list[Finding]:
    return [
        each
        for each in findings.of(claim)
        if all(each.subject.get(key) == value for key, value in subject.items())
    ]


@pytest.mark.parametrize("hosts", [2, 3, 5])
def test_the_interval_of_a_ratio_covers_that_of_further_hosts(hosts: int) -> None:
    rng = np.random.default_rng(hosts)
    covered = 0
    for _ in range(TRIALS):
        speeds = 0.1 * rng.standard_normal(hosts)
        own_ratios = 0.03 + 0.02 * rng.standard_normal(hosts)
        found = ratio_over_hosts([(np.exp(speeds), np.exp(speeds + own_ratios))])
        covered += found.low <= np.exp(0.03) <= found.high
    assert covered / TRIALS > FEWEST_COVERED


@pytest.mark.parametrize("hosts", [2, 4, 6])
def test_the_interval_of_a_dispersion_covers_that_within_a_host(hosts: int) -> None:
    rng = np.random.default_rng(hosts)
    covered = 0
    for _ in range(TRIALS):
        spreads = 0.02 * np.exp(0.4 * rng.standard_normal(hosts))
        values = tuple(
            np.exp(0.3 * rng.standard_normal() + spread * rng.standard_normal(200)) for spread in spreads
        )
        found = pooled_statistics(Units(HOST, values), Resampling(1, 0))[Statistic.CV]
        covered += found.low <= 0.02 <= found.high
    assert covered / TRIALS > FEWEST_COVERED


@pytest.mark.parametrize(("sizes", "between"), [((8, 8), 0.03), ((3, 9, 5, 12, 6), 0.02), ((6,) * 5, 0.002)])
def test_the_component_between_hosts_is_covered(sizes: tuple[int, ...], between: float) -> None:
    rng = np.random.default_rng(len(sizes))
    covered = 0
    for _ in range(TRIALS):
        units = [np.exp(rng.normal(rng.normal(0, between), 0.01, size)) for size in sizes]
        found = variance_between(units)
        assert found is not None
        assert found.low <= found.sd <= found.high
        covered += found.low <= between <= found.high
    assert covered / TRIALS > FEWEST_COVERED


def test_any_false_outlier_among_all_hosts_and_cells_is_rare() -> None:
    rng = np.random.default_rng(1)
    false, found = 0, 0
    for _ in range(TRIALS):
        p_values: list[float] = []
        for _ in range(6):
            # At the edge of what counts as none, with the noise of every cell on its own.
            effects = np.log(1.02) * np.array([0, 0, 0.5, 1.0, 0.0])
            units = [np.exp(rng.normal(effect, 0.01, 6)) for effect in effects]
            p_values += [each.p_value for each in host_deviations(units, 0.02)]
        false += min(holm(p_values)) < 0.05
        units = [np.exp(rng.normal(effect, 0.01, 6)) for effect in (0, 0.005, 0.1, -0.005)]
        alone = holm([each.p_value for each in host_deviations(units, 0.02)])
        found += [p < 0.05 for p in alone] == [False, False, True, False]
    assert false / TRIALS < 0.08
    assert found / TRIALS > 0.9


def test_of_two_equal_groups_of_hosts_none_is_the_odd_one() -> None:
    near, far = np.linspace(0.99, 1.01, 8), np.linspace(1.19, 1.21, 8)
    assert min(each.p_value for each in host_deviations([near, near, far, far], 0.02)) > 0.5
    assert [each.p_value < 0.001 for each in host_deviations([near, near, far], 0.02)] == [False, False, True]
    assert {each.p_value for each in host_deviations([near, far], 0.02)} == {1.0}


def test_hosts_that_differ_are_said_and_the_slow_one_is_named(make_result: Make) -> None:
    names = hosts_named(6)
    effects = (0.0, 0.004, -0.003, 0.15, 0.002, -0.004)
    result = study_on(make_result, effects, names, ratio=1.1)
    findings = analyse(result)
    assert [each.verdict for each in of(findings, "hosts")] == ["independent"]
    assert {each.verdict for each in of(findings, "host_scatter")} == {"hosts differ"}
    assert {each.estimates["new_host"].units for each in of(findings, "host_scatter")} == {6}
    outliers = [each for each in of(findings, "host_outlier") if each.verdict == "outlier"]
    assert {each.subject["host"] for each in outliers} == {names[3]}
    (mean,) = of(findings, "mean_comparison", first="bare", second="docker")
    # The speed of a host falls out of a ratio that each host measures on itself.
    assert (mean.verdict, mean.facts["unit"], mean.facts["units_first"]) == ("slower", "host", 6)
    assert mean.estimates["ratio"].high < 1.11
    (steady, _) = of(findings, "least_steady_cell")
    assert steady.estimates["cv"].value < 2.0
    assert "stands apart from most of 6 hosts" in said(outliers[0])
    assert any(section.id == "hosts" for section in build_page(result).sections)


def test_two_hosts_give_no_verdict_beyond_themselves(make_result: Make) -> None:
    result = study_on(make_result, (0.0, 0.05), hosts_named(2), ratio=1.1)
    findings = analyse(result)
    (told,) = of(findings, "hosts")
    assert told.verdict == "two independent"
    (mean,) = of(findings, "mean_comparison", first="bare", second="docker")
    assert (mean.verdict, mean.facts["unit"]) == ("descriptive", "host")
    here = mean.estimates["these_hosts"]
    assert here.low < 1.1 < here.high < 1.11
    shift = next(each for each in of(findings, "location_shift") if each.subject["isolation"] == "docker")
    (answered,) = answer(replace(findings, findings=(shift,)))
    for told_here in (said(mean), said(shift), answered.text):
        assert "on these hosts alone" in told_here
        assert change_interval(here) in told_here
    assert of(findings, "host_scatter")[0].estimates["new_host"].value is None
    assert of(findings, "host_outlier") == []
    assert "need not hold on a third" in said(told)
    assert any(section.id == "hosts" for section in build_page(result).sections)


def test_alike_hosts_are_not_called_different(make_result: Make) -> None:
    findings = analyse(study_on(make_result, (0.0,) * 6, hosts_named(6)))
    assert {each.verdict for each in of(findings, "host_scatter")} == {"hosts agree"}
    assert {each.verdict for each in of(findings, "host_outlier")} == {"not an outlier"}


def test_nodes_of_one_machine_are_no_independent_hosts(make_result: Make) -> None:
    nodes = tuple(f"00000000000000aa:n{number}" for number in range(1, 7))
    result = study_on(make_result, (0.0,) * 6, nodes, ratio=1.1)
    findings = analyse(result)
    assert [each.verdict for each in of(findings, "hosts")] == ["one machine"]
    assert of(findings, "host_scatter") + of(findings, "host_outlier") == []
    (mean,) = of(findings, "mean_comparison", first="bare", second="docker")
    assert mean.facts["unit"] == "block"
    assert "nodes of one machine" in said(of(findings, "hosts")[0])


def test_nodes_that_share_a_machine_count_once(make_result: Make) -> None:
    nodes = ("00000000000000aa:n1", "00000000000000aa:n2", "00000000000000bb", "00000000000000cc")
    findings = analyse(study_on(make_result, (0.0,) * 4, nodes))
    assert [each.verdict for each in of(findings, "hosts")] == ["some share a machine"]
    assert {each.facts["hosts"] for each in of(findings, "host_scatter")} == {3}
