"""What the printed intervals and rows of the replication study's source give, computed."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from golden.printed import as_printed
from steelyard.studies.replication.findings.published import comparisons, markdown, rows, statements

HERE = Path(__file__).resolve().parent / "replication-source"
DOCS = Path(__file__).resolve().parents[2] / "docs" / "studies" / "replication.md"
FACTS = list(csv.DictReader((HERE / "facts.csv").read_text(encoding="utf-8").splitlines()))
QUOTIENTS = {
    "from SSP'18": ("0.268", "117"),
    "object pools": ("0.936", "2433"),
    "parallel GC": ("0.292", "143"),
    "time measurement": ("0.239", "89.1"),
    "one CPU core": ("0.867", "27.5"),
    "no recursion": ("0.102", "191"),
}
"""Standard deviation and largest value over the mean, divided by hand."""


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: f"{fact['what']}: {fact['second']}")
def test_the_printed_intervals_give_the_facts_of_the_source(fact: dict[str, str]) -> None:
    subject = {name: fact[name] for name in ("experiment", "what", "first", "second")}
    (found,) = (each for each in comparisons() if each.subject == subject)
    ratio = found.estimates["ratio"]
    assert ratio.value is not None
    # Of what it finds alike the source prints no number.
    if fact["change_percent"]:
        assert 100 * (ratio.value - 1) == as_printed(fact["change_percent"])
    assert found.verdict == fact["verdict"]


def test_the_printed_rows_give_spread_and_largest_value_over_the_mean() -> None:
    found = {
        each.subject["intervention"]: (each.estimates["cv"].value, each.estimates["max_over_mean"].value)
        for each in rows()
    }
    assert found.keys() == QUOTIENTS.keys()
    for name, (cv, largest) in QUOTIENTS.items():
        assert found[name][0] == as_printed(cv)
        assert found[name][1] == as_printed(largest)


def test_a_spread_of_three_times_the_mean_does_not_follow_from_the_rows() -> None:
    found = {each.subject["statement"]: each for each in statements()}
    sigma = found["sigma = 3 mu"]
    assert sigma.verdict == "does not follow from the rows"
    assert sigma.estimates["largest"].value == pytest.approx(142.5 / 152.3)
    assert found["max = 125 mu"].verdict == "does not follow from the rows"
    assert found["max = 125 mu"].facts["nearest_row"] == "from SSP'18"


def test_the_page_shows_the_tables_as_they_are_computed() -> None:
    assert markdown() in DOCS.read_text(encoding="utf-8")
