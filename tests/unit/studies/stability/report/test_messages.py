from __future__ import annotations

from steelyard.model.finding import Estimate, Finding
from steelyard.studies.stability.report import messages

CELL = {"workload": "sort/qsort", "isolation": "vm", "setup": "single,1"}


def finding(verdict: str = "counted", cv: float | None = None, **facts: str | float | None) -> Finding:
    estimates = {"cv": Estimate(cv, "percent", "m", 1.0, 9.0, 0.95), "ratio": Estimate(cv, "ratio", "m")}
    return Finding("id", "claim", dict(CELL), verdict, estimates, facts)


def test_the_largest_error_is_said_with_its_cell_and_interval() -> None:
    chosen = [finding(cv=0.4), finding(cv=7.25), finding(cv=None)]
    assert messages.errors_message(chosen) == (
        "1 of 2 cells at most 5 %; largest: 7.25 % (95 % interval 1 % to 9 %), sort/qsort in vm with single,1"
    )
    assert messages.errors_message([finding()]) == "no cell was measured"


def test_the_least_parallel_cell_and_the_middle_one_are_said() -> None:
    chosen = [finding(cv=0.99), finding(cv=0.8), finding(cv=0.95)]
    assert messages.parallel_message(chosen) == (
        "least 80 % (sort/qsort in vm with single,1), half of the 3 cells at least 95 %"
    )


def test_flags_are_summed_and_explained() -> None:
    def flagged(flag: str, count: int) -> Finding:
        return Finding("id", "contamination", {"flag": flag}, "flagged", {}, {"flagged": count, "runs": 9})

    chosen = [flagged("odd", 3), flagged("swapped", 1), flagged("odd", 4)]
    assert messages.contamination_message(chosen) == (
        "runs by flag: odd 7, swapped 1 (waited for pages while the host swapped)"
    )


def test_classes_are_counted_in_their_order_and_verdicts_by_frequency() -> None:
    chosen = [
        finding("slower", class_percentile="lesser"),
        finding("slower", class_percentile="higher"),
        finding("equivalent", class_percentile="lesser"),
    ]
    assert messages.comparison_message(chosen) == (
        "published class, first against second: 1 higher, 2 lesser; "
        "Steelyard, second against first: 2 slower, 1 equivalent"
    )
    assert messages.disagreement_message(chosen, 40).startswith("in 3 of 40 comparisons: ")


def test_groups_are_summed_over_all_rows() -> None:
    rows = [
        finding(cells=4, over_5=2, over_10=1, over_20=0),
        finding(cells=4, over_5=1, over_10=1, over_20=1),
    ]
    assert (
        messages.groups_message(rows)
        == "of 8 values of a clock in a cell, 3 over 5 %, 2 over 10 %, 1 over 20 %"
    )
