"""The promises of the statistics design, held by simulation at fixed seeds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import steelyard
from statistical import breaks, truth
from statistical.scenarios import Scenario, scenarios
from steelyard.analyse.equivalence import Margin, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

BY_LETTER = {scenario.letter: scenario for scenario in scenarios()}
MISSES_PROMISED = 1 - truth.NOMINAL_PROMISE


@pytest.mark.parametrize("size", [30, 100])
@pytest.mark.parametrize("letter", list("ABCFI"))
def test_the_default_interval_of_the_mean_covers(
    letter: str, size: int, simulated: Callable[[int], int]
) -> None:
    row = truth.coverage(BY_LETTER[letter], "mean", "auto", size, simulated(400))
    assert truth.compatible(row.replicates - row.covered, row.replicates, MISSES_PROMISED), row


@pytest.mark.parametrize(("letter", "size"), [("G", 300), ("H", 1500)])
def test_it_covers_correlated_series_of_some_effective_size(
    letter: str, size: int, simulated: Callable[[int], int]
) -> None:
    row = truth.coverage(BY_LETTER[letter], "mean", "auto", size, simulated(400))
    assert truth.compatible(row.replicates - row.covered, row.replicates, MISSES_PROMISED), row


@pytest.mark.parametrize("size", [30, 100, 1000])
@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.letter)
def test_where_it_fails_it_does_not_claim_its_level(
    scenario: Scenario, size: int, simulated: Callable[[int], int]
) -> None:
    row = truth.coverage(scenario, "mean", "auto", size, simulated(300))
    failing = row.replicates - row.covered
    if truth.compatible(failing, row.replicates, MISSES_PROMISED):
        return
    # Of the intervals that miss, at most one in twenty says that it is guaranteed.
    assert truth.compatible(row.guaranteed_misses, failing, 0.05), row


@pytest.mark.parametrize("letter", list("ABCEFGJ"))
def test_where_it_claims_its_level_it_keeps_it(letter: str, simulated: Callable[[int], int]) -> None:
    row = truth.coverage(BY_LETTER[letter], "mean", "auto", 1000, simulated(300))
    assert row.guaranteed > row.replicates / 6, row
    assert truth.compatible(row.guaranteed_misses, row.guaranteed, MISSES_PROMISED), row


@pytest.mark.parametrize("letter", list("ABCDEF"))
def test_the_default_interval_of_the_quartile_range_covers(
    letter: str, simulated: Callable[[int], int]
) -> None:
    row = truth.coverage(BY_LETTER[letter], "iqr", "auto", 100, simulated(400))
    assert truth.compatible(row.replicates - row.covered, row.replicates, MISSES_PROMISED), row


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.letter)
def test_ten_runs_a_side_keep_both_error_rates(scenario: Scenario, simulated: Callable[[int], int]) -> None:
    replicates = simulated(400)
    same = truth.verdicts(scenario, 1.0, replicates)
    alarms = same[Verdict.SLOWER] + same[Verdict.FASTER]
    assert truth.compatible(alarms, replicates, 0.06), same
    at_margin = truth.verdicts(scenario, 1 + Margin().relative, replicates)
    assert truth.compatible(at_margin[Verdict.EQUIVALENT], replicates, 0.05), at_margin


@pytest.mark.slow
def test_ten_runs_of_normal_data_find_a_difference_of_ten_per_cent() -> None:
    counts = truth.verdicts(BY_LETTER["A"], 1.1, 100)
    assert counts[Verdict.SLOWER] == 100


def test_medians_of_runs_are_covered_however_many_iterations_they_have(
    simulated: Callable[[int], int],
) -> None:
    # Medians of runs are exp(level): their mean is that of a lognormal.
    sigma, studies, covered = 0.2 / np.sqrt(2), simulated(400), 0
    runs = np.repeat(np.arange(10), 101)
    for study in range(studies):
        rng = np.random.default_rng([73, study])
        values = np.exp(sigma * (rng.standard_normal(10)[runs] + rng.standard_normal(runs.size)))
        found = steelyard.interval(values, statistic="median", clusters=runs)
        covered += found.low <= float(np.exp(sigma**2 / 2)) <= found.high
    assert truth.compatible(studies - covered, studies, MISSES_PROMISED), covered


@pytest.mark.slow
def test_the_page_is_what_the_present_procedures_give() -> None:
    page = (Path(__file__).parents[2] / "docs" / "concepts" / "coverage.md").read_text(encoding="utf-8")
    replicates = re.search(r"known, (\d+) samples of each", page)
    assert replicates is not None
    row = truth.coverage(BY_LETTER["B"], "mean", "auto", 30, int(replicates[1]))
    assert f"| B: skewed | 30 | {truth.binomial(row.covered, row.replicates)} |" in page


@pytest.mark.slow
def test_the_pages_row_of_breakpoints_is_what_the_present_search_gives() -> None:
    page = (Path(__file__).parents[2] / "docs" / "concepts" / "coverage.md").read_text(encoding="utf-8")
    size = 300
    assert breaks.row(breaks.recovery(size, breaks.SAMPLES[size])) in page


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("size", [300, 1000, 10_000])
def test_breakpoints_are_found_covered_and_not_invented(size: int) -> None:
    found = breaks.recovery(size, breaks.SAMPLES[size] // 2)
    promised_exact, promised_alarms = (0.935, 0.025) if size < 1000 else (0.98, 0.005)
    assert truth.compatible(found.seeds - found.exact, found.seeds, 1 - promised_exact), found
    assert truth.compatible(found.false_alarms, found.seeds, promised_alarms), found
    for covered in found.covered:
        assert truth.compatible(found.exact - covered, found.exact, 0.05), found
