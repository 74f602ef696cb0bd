from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fixtures.outcomes import make_outcome, make_plan
from steelyard.errors import DataError
from steelyard.record.ledger import Ledger
from steelyard.record.provenance import begin_provenance, read_provenance, write_provenance
from steelyard.record.schema import (
    MEASUREMENTS_SCHEMA,
    METRICS,
    RUN_COLUMNS,
    factor_columns,
    measurements_schema,
    table_metadata,
    unit_of,
)
from steelyard.record.seal import altered_tables
from steelyard.record.table_file import TableWriter, ahead, read_batches, read_table
from steelyard.record.tables import read_attempts, read_measurements, read_runs, write_tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.model import Plan

FILES = ["runs.parquet", "attempts.parquet", "measurements/values.parquet"]


@pytest.fixture
def result(tmp_path: Path) -> Path:
    """A study of four batches: one interrupted once, the last still open."""
    plan = make_plan()
    plan.write(tmp_path / "plan.json")
    with Ledger(tmp_path / "ledger.sqlite", plan.id) as ledger:
        interrupted = ledger.begin_attempt(1)
        ledger.record(1, interrupted, 0, make_outcome(1, status="interrupted", own=[]))
        for batch in range(3):
            record(ledger, batch)
        ledger.record(3, ledger.begin_attempt(3), 0, make_outcome(1))
    return tmp_path


def record(ledger: Ledger, batch: int) -> None:
    attempt = ledger.begin_attempt(batch)
    for worker in (1, 0):
        for iteration in (2, 1):
            ledger.record(batch, attempt, worker, make_outcome(iteration))
    ledger.complete(batch, attempt, 4)


def column(table: pa.Table, name: str) -> list[Any]:
    found: list[Any] = table[name].to_pylist()
    return found


def test_only_runs_of_complete_attempts_are_in_the_tables(result: Path) -> None:
    write_tables(result)
    runs = read_runs(result)
    assert sorted(set(zip(column(runs, "batch"), column(runs, "attempt"), strict=True))) == [
        (0, 1),
        (1, 2),
        (2, 1),
    ]
    assert set(column(read_measurements(result), "run_id")) == set(column(runs, "run_id"))


def test_runs_of_other_attempts_are_kept_apart_with_their_state(result: Path) -> None:
    write_tables(result)
    attempts = read_attempts(result)
    found = zip(
        *(column(attempts, name) for name in ("batch", "attempt", "attempt_state", "status")), strict=True
    )
    assert sorted(found) == [(1, 1, "interrupted", "interrupted"), (3, 1, "open", "completed")]


def test_runs_are_sorted_by_cell_run_iteration(result: Path) -> None:
    write_tables(result)
    runs = read_runs(result)
    keys = [tuple(row.values()) for row in runs.select(["cell", "batch", "worker", "iteration"]).to_pylist()]
    assert keys == sorted(keys)
    assert column(runs, "run_id")[:2] == ["000001.02.000.000001", "000001.02.000.000002"]


def test_factors_stand_in_columns_of_their_own(result: Path) -> None:
    write_tables(result)
    runs = read_runs(result)
    assert factor_columns(runs.schema) == ("isolation", "workload")
    assert all(row["workload"] == f"w{row['cell']}" for row in runs.to_pylist())


def test_every_column_says_its_meaning_and_every_quantity_its_unit(result: Path) -> None:
    write_tables(result)
    schema = pq.read_schema(result / "runs.parquet")
    assert schema.metadata[b"steelyard.schema"] == b"steelyard/runs/1"
    for field in schema:
        assert field.metadata[b"description"]
        assert field.metadata.get(b"unit", b"").decode() == (unit_of(field.name) or "")
    assert all(schema.field(metric).metadata[b"unit"] for metric in METRICS)


def test_the_metrics_are_those_of_the_launcher(pytestconfig: pytest.Config) -> None:
    source = (pytestconfig.rootpath / "crates/model/src/quantity.rs").read_text(encoding="utf-8")
    enum = source.partition("pub enum Metric {")[2].partition("\n}")[0]
    names = [line.strip().rstrip(",") for line in enum.splitlines() if line.strip() and "///" not in line]
    snake = [
        "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)[1:] for name in names
    ]
    assert tuple(snake) == METRICS


def test_writing_again_changes_nothing_and_new_batches_come_in(result: Path) -> None:
    write_tables(result)
    before = {name: (result / name).read_bytes() for name in FILES}
    write_tables(result)
    assert {name: (result / name).read_bytes() for name in FILES} == before
    with Ledger(result / "ledger.sqlite") as ledger:
        record(ledger, 3)
    write_tables(result)
    assert read_runs(result).num_rows == 16
    assert not list(result.glob("**/.*.tmp"))


def test_provenance_holds_the_hashes_of_the_tables(result: Path) -> None:
    plan = make_plan()
    write_provenance(result, begin_provenance(plan, ["steelyard"], host_id="h1"))
    write_tables(result)
    assert set(read_provenance(result).tables) == {*FILES, "plan.json"}
    assert altered_tables(result) == []
    assert set(column(read_runs(result), "host_id")) == {"h1"}
    (result / "runs.parquet").write_bytes(b"")
    (result / "attempts.parquet").unlink()
    (result / "measurements/more.parquet").touch()
    assert altered_tables(result) == [
        "`attempts.parquet` is absent",
        "`measurements/more.parquet` was added after the tables were written",
        "`runs.parquet` was changed after it was written",
    ]


@pytest.mark.parametrize("name", FILES)
def test_damage_of_a_table_is_named_with_the_way_out(result: Path, name: str) -> None:
    write_tables(result)
    path = result / name
    whole = path.read_bytes()
    readers = {"runs.parquet": read_runs, "attempts.parquet": read_attempts}
    read = readers.get(name, read_measurements)
    for damaged in (b"", b"PAR1", whole[: len(whole) // 2], whole[:-1], b"x" * len(whole)):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="is damaged: expected a Parquet file") as caught:
            read(result)
        assert str(path) in caught.value.message
        assert "steelyard analyse" in (caught.value.hint or "")
    path.unlink()
    with pytest.raises(DataError, match="does not exist"):
        read(result)


def test_a_changed_byte_of_the_data_is_noticed(result: Path) -> None:
    write_tables(result)
    path = result / "measurements/values.parquet"
    whole = path.read_bytes()
    expected = read_measurements(result)
    unnoticed = 0
    for position in range(4, len(whole), 7):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        try:
            unnoticed += not read_measurements(result).equals(expected)
        except DataError:
            continue
    assert unnoticed == 0


def test_another_schema_is_refused(result: Path) -> None:
    write_tables(result)
    (result / "runs.parquet").write_bytes((result / "attempts.parquet").read_bytes())
    with pytest.raises(DataError, match=r"has schema `steelyard/attempts/1`; expected: `steelyard/runs/1`"):
        read_runs(result)


def test_a_table_without_a_column_is_refused(result: Path) -> None:
    write_tables(result)
    path = result / "runs.parquet"
    table = pq.read_table(path)
    index = table.schema.get_field_index("wall_ns")
    wrong = table.set_column(index, "wall_ns", table["wall_ns"].cast(pa.float64())).drop_columns(["status"])
    pq.write_table(wrong, path)
    with pytest.raises(DataError, match="column `status` is absent") as caught:
        read_runs(result)
    assert "column `wall_ns` is double; expected: int64" in caught.value.message


def test_tables_of_two_writings_are_not_mixed(result: Path) -> None:
    write_tables(result)
    old = (result / "runs.parquet").read_bytes()
    with Ledger(result / "ledger.sqlite") as ledger:
        record(ledger, 3)
    write_tables(result)
    (result / "runs.parquet").write_bytes(old)
    with pytest.raises(DataError, match="were not written together"):
        read_measurements(result)


def other_plan(plan: Plan) -> Plan:
    return replace(plan, seed=2).freeze()


def test_a_ledger_of_another_plan_is_refused(result: Path) -> None:
    other_plan(make_plan()).write(result / "plan.json")
    with pytest.raises(DataError, match="contains runs of a different plan"):
        write_tables(result)


def test_a_ledger_with_a_batch_the_plan_lacks_is_refused(result: Path) -> None:
    plan = make_plan(blocks=1)
    plan.write(result / "plan.json")
    (result / "ledger.sqlite").unlink()
    with Ledger(result / "ledger.sqlite") as ledger:
        record(ledger, 7)
    with pytest.raises(DataError, match="contains batch 7"):
        write_tables(result)


def test_a_table_that_cannot_be_written_is_named_and_the_old_one_stays(result: Path) -> None:
    write_tables(result)
    before = (result / "runs.parquet").read_bytes()
    (result / "measurements/values.parquet").unlink()
    (result / "measurements").rmdir()
    (result / "measurements").touch()
    with pytest.raises(DataError, match="cannot write `"):
        write_tables(result)
    assert (result / "runs.parquet").read_bytes() == before


def test_a_second_table_that_cannot_be_begun_leaves_nothing_of_the_first(result: Path) -> None:
    (result / f".attempts.parquet.{os.getpid()}.tmp").mkdir()
    with pytest.raises(DataError, match=r"cannot write .*attempts.parquet`"):
        write_tables(result)
    assert not [path for path in result.rglob("*") if path.is_file() and path.name.endswith(".tmp")]


def test_no_column_is_named_twice() -> None:
    assert len(RUN_COLUMNS) == len(set(RUN_COLUMNS))


def test_texts_that_are_written_as_codes_are_read_as_texts(tmp_path: Path) -> None:
    schema = measurements_schema(table_metadata(MEASUREMENTS_SCHEMA, "plan", "generation"))
    text = {"phase": "measure", "metric": "time", "unit": "ns"}
    rows: list[dict[str, Any]] = [
        {**text, "run_id": f"0.1.0.{place // 4}", "iteration": place, "value": place / 8}
        for place in range(12)
    ]
    files = {
        "plain": (),
        "coded": ("phase", "metric", "unit"),
        "with runs": ("run_id", "phase", "metric", "unit"),
    }
    for name, coded in files.items():
        with TableWriter(tmp_path / name, schema, coded=coded) as writer:
            for row in rows[:5]:
                writer.add(row)
            writer.add_table(pa.Table.from_pylist(rows[5:], schema=schema))
    plain, coded_file = (read_table(tmp_path / name, MEASUREMENTS_SCHEMA) for name in ("plain", "with runs"))
    assert coded_file.equals(plain, check_metadata=True)
    assert (tmp_path / "coded").read_bytes() == (tmp_path / "plain").read_bytes()
    for with_codes in (False, True):
        batches = read_batches(tmp_path / "with runs", MEASUREMENTS_SCHEMA, schema, with_codes=with_codes)
        found = pa.Table.from_batches(batches)
        assert pa.types.is_dictionary(found.schema.field("run_id").type) == with_codes
        assert found.to_pylist() == plain.to_pylist()


def test_an_error_of_the_second_thread_is_raised_where_its_part_is_asked_for() -> None:
    def parts() -> Iterator[int]:
        yield 1
        message = "damaged"
        raise DataError(message, hint="", code="data.corrupt")

    found = ahead(parts())
    assert next(found) == 1
    with pytest.raises(DataError, match="damaged"):
        next(found)
