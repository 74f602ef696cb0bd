from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.outcomes import make_outcome, make_plan
from steelyard.record.ledger_reader import LedgerRow
from steelyard.record.outcome_rows import measurement_rows, own_metric, run_row
from steelyard.record.schema import METRICS

if TYPE_CHECKING:
    from steelyard.record.table_file import Value


def row(**changes: Any) -> LedgerRow:
    return LedgerRow(0, 1, 0, 1, "complete", make_outcome(**changes))


def measured(**changes: Any) -> dict[str, tuple[Value, Value]]:
    return {
        str(each["metric"]): (each["value"], each["unit"]) for each in measurement_rows(row(**changes), "id")
    }


def test_a_missing_quantity_is_null_and_keeps_the_source_that_failed() -> None:
    plan = make_plan()
    found = run_row(row(), plan, plan.batches[0], "host")
    assert found["peak_memory_bytes"] is None
    assert found["peak_memory_bytes_source"] == "cgroup2"
    assert (found["wall_ns"], found["wall_ns_source"]) == (50_000, "perf_record")
    assert (found["cell"], found["workload"], found["stamp_source"]) == (1, "w1", "perf_record")


def test_the_launcher_gives_the_outside_view_where_the_isolation_gives_none() -> None:
    found = measured()
    assert found["outside-cpu"] == (49_000, "ns")
    assert found["outside-wall"] == (50_000, "ns")
    assert found["cpu"] == (48_000, "ns")


NOT_THE_PROGRAMS = ("outside-cpu", "outside-wall", "start-wall", "counter:page-faults", *METRICS)


@pytest.mark.parametrize("name", NOT_THE_PROGRAMS)
def test_a_program_cannot_give_a_value_of_another_origin(name: str) -> None:
    own = [{"metric": name, "value": 1.0, "unit": "ns", "iteration": 1, "phase": "measure"}]
    forged = list(measurement_rows(row(own=own), "id"))
    honest = list(measurement_rows(row(own=[]), "id"))
    assert [each for each in forged if each["metric"] != f"own:{name}"] == honest
    assert [each["value"] for each in forged if each["metric"] == f"own:{name}"] == [1.0]


@given(st.lists(st.from_regex(r"(own:|outside-|start-|counter:)?[a-z]{1,4}", fullmatch=True), unique=True))
def test_two_names_of_a_program_stay_two(names: list[str]) -> None:
    assert len({own_metric(name) for name in names}) == len(names)


def test_counters_without_a_value_give_no_measurement() -> None:
    found = measured()
    assert found["counter:page-faults"] == (12, "count")
    assert "counter:LLC-loads" not in found


def test_the_start_keeps_every_digit() -> None:
    start = next(each for each in measurement_rows(row(), "id") if each["metric"] == "start-wall")
    assert start["printed"] == "1700000000.123456790"
    assert start["unit"] == "s"


def test_a_run_that_never_started_measures_nothing() -> None:
    assert measured(quantities={}, counters={}, own=[], start_utc_ns=None) == {}
