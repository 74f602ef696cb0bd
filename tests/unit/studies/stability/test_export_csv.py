from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.outcomes import make_outcome, make_plan
from steelyard.errors import DataError
from steelyard.model import Affinity, Batch, Cell, Execution, Plan
from steelyard.record.ledger import Ledger
from steelyard.record.tables import write_tables
from steelyard.studies.stability.export_csv import CsvFormat, export_csv
from steelyard.studies.stability.recodex import IMPORTER

if TYPE_CHECKING:
    from pathlib import Path


def stability_plan() -> Plan:
    """Two blocks of: an ordinary cell, the same with counters, the twin of the first."""
    levels = {
        "isolation": "sandbox",
        "setup_type": "parallel-homogenous",
        "setup_size": "2",
        "affinity": "taskset",
        "workload": "exp/exp_float",
        "input": "65536",
        "counters": "off",
    }
    execution = Execution("sandbox", ("true",), workers=2, iterations=2, affinity=Affinity.CORE)
    cells = (
        Cell(0, levels, execution),
        Cell(1, {**levels, "counters": "on"}, execution),
        Cell(2, levels, execution),
    )
    batches = tuple(Batch(number, number // 3, number % 3) for number in range(6))
    factors: dict[str, tuple[str, ...]] = {name: (level,) for name, level in levels.items()}
    return Plan("stability", 1, factors, cells, batches, 2, {}, (0, 2)).freeze()


def execute(result: Path, plan: Plan, **changes: Any) -> None:
    plan.write(result / "plan.json")
    with Ledger(result / "ledger.sqlite", plan.id) as ledger:
        for batch in plan.batches:
            attempt = ledger.begin_attempt(batch.number)
            for worker in range(2):
                for iteration in (1, 2):
                    ledger.record(batch.number, attempt, worker, make_outcome(iteration, **changes))
            ledger.complete(batch.number, attempt)
    write_tables(result)


def rows_of(result: Path, form: CsvFormat) -> list[list[str]]:
    out = io.StringIO()
    count = export_csv(result, form, out)
    rows = list(csv.reader(io.StringIO(out.getvalue())))
    assert count == len(rows) - (form is CsvFormat.CSV)
    return rows


def test_nine_columns_fold_the_affinity_and_count_blocks_on_as_iterations(tmp_path: Path) -> None:
    execute(tmp_path, stability_plan())
    rows = rows_of(tmp_path, CsvFormat.RECODEX)
    own = [row for row in rows if row[7] == "cpu"]
    setup = ["sandbox", "parallel-homogenous-taskset", "2"]
    assert sorted(own) == [
        [*setup, str(worker), "exp/exp_float", "65536", str(iteration), "cpu", "0.000048"]
        for worker in range(2)
        for iteration in range(1, 5)
    ]
    assert {row[7] for row in rows} == {"cpu", "wall", "iso-cpu", "iso-wall", "start-wall"}


def test_times_in_ns_become_seconds_exactly(tmp_path: Path) -> None:
    own = [{"metric": "cpu", "value": 123_456_789.0, "unit": "ns", "iteration": 1, "phase": "measure"}]
    execute(tmp_path, stability_plan(), own=own)
    rows = rows_of(tmp_path, CsvFormat.RECODEX)
    assert {row[8] for row in rows if row[7] == "cpu"} == {"0.123456789"}
    assert "1700000000.123456790" in {row[8] for row in rows if row[7] == "start-wall"}


def test_what_nine_columns_export_can_be_imported(tmp_path: Path) -> None:
    execute(tmp_path, stability_plan())
    rows = rows_of(tmp_path, CsvFormat.RECODEX)
    (tmp_path / "out.csv").write_text("\n".join(map(",".join, rows)), encoding="utf-8")
    IMPORTER.import_file(tmp_path / "out.csv", tmp_path / "again")
    assert sorted(rows_of(tmp_path / "again", CsvFormat.RECODEX)) == sorted(rows)


def test_failed_runs_and_warm_up_are_left_out_of_nine_columns_only(tmp_path: Path) -> None:
    execute(tmp_path, stability_plan(), status="nonzero_exit")
    assert rows_of(tmp_path, CsvFormat.RECODEX) == []
    assert len(rows_of(tmp_path, CsvFormat.CSV)) > 1


def test_the_long_table_holds_every_measurement_with_every_factor(tmp_path: Path) -> None:
    execute(tmp_path, stability_plan())
    header, *rows = rows_of(tmp_path, CsvFormat.CSV)
    assert header[:10] == ["run_id", "study", "cell", *stability_plan().factors]
    assert len(rows) == 6 * 4 * 6
    twin = dict(zip(header, rows[-1], strict=True))
    assert (twin["cell"], twin["status"], twin["iteration"]) == ("2", "completed", "2")


def test_a_metric_measured_several_times_in_a_run_does_not_fit(tmp_path: Path) -> None:
    line = {"metric": "cpu", "value": 1.0, "unit": "s", "iteration": 1, "phase": "measure"}
    execute(tmp_path, stability_plan(), own=[line, {**line, "iteration": 2}])
    with pytest.raises(DataError, match="measured `cpu` several times"):
        rows_of(tmp_path, CsvFormat.RECODEX)


def test_a_study_without_the_factors_does_not_fit(tmp_path: Path) -> None:
    execute(tmp_path, replace(make_plan(), blocks=2).freeze())
    with pytest.raises(DataError, match="has no factor `setup_type`"):
        rows_of(tmp_path, CsvFormat.RECODEX)
    assert rows_of(tmp_path, CsvFormat.CSV)


def test_a_metric_that_is_no_time_does_not_fit(tmp_path: Path) -> None:
    line = {"metric": "cpu", "value": 1.0, "unit": "count", "iteration": 1, "phase": "measure"}
    execute(tmp_path, stability_plan(), own=[line])
    with pytest.raises(DataError, match="unit `count`, which is not a unit of time"):
        rows_of(tmp_path, CsvFormat.RECODEX)
