"""Tables of many runs: what importing them takes of memory, and Parquet that is not as it should be."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard.errors import DataError
from steelyard.record.importers import table
from steelyard.record.importers.columnar import ColumnarRuns
from steelyard.record.importers.foreign import ForeignFile, Source
from steelyard.record.importers.reading import ReadOptions
from steelyard.record.tables import read_measurements, read_runs

PROGRAM = """
import re, sys
from pathlib import Path
from steelyard.record.importers.interface import importer
from steelyard.record.importers.reading import ReadOptions

def peak():
    # Not ru_maxrss: it begins with the peak of the process that forked.
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

small, large, folder = map(Path, sys.argv[1:])
importer("csv").import_files([small], folder / "small", ReadOptions(unit="ms"))
before = peak()
importer("csv").import_files([large], folder / "large", ReadOptions(unit="ms"))
print(peak() - before)
"""


def _table(rows: int, runs: int) -> pa.Table:
    run = np.arange(rows) * runs // rows
    value = np.round(np.random.default_rng(4).gamma(20, 0.5, rows), 6)
    return pa.table({"workload": [f"w{each % 7}" for each in run], "run": run, "value": value})


def _csv(path: Path, rows: int, runs: int) -> Path:
    found = _table(rows, runs).to_pydict()
    lines = (f"{w},{r},{v}" for w, r, v in zip(*found.values(), strict=True))
    path.write_text("\n".join(["workload,run,value", *lines, ""]))
    return path


def test_many_runs_take_little_memory(tmp_path: Path) -> None:
    small, large = _csv(tmp_path / "s.csv", 1000, 10), _csv(tmp_path / "l.csv", 30_000, 30_000)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, small, large, tmp_path], capture_output=True, check=True, text=True
    )
    assert int(done.stdout) < 120 * 1024, "KiB: 4 a run; one object for each run took 9"


def test_runs_in_any_order_are_written_by_cell(tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    run, value = random.integers(0, 40, 3000), random.random(3000).round(6)
    path = tmp_path / "t.csv"
    path.write_text(
        "workload,run,value\n" + "".join(f"w{r % 3},{r},{v}\n" for r, v in zip(run, value, strict=True))
    )
    table.IMPORTER.import_files([path], tmp_path / "r", ReadOptions(unit="ns"))
    runs = read_runs(tmp_path / "r").to_pylist()
    assert [(each["cell"], each["iteration"]) for each in runs] == sorted(
        (each["cell"], each["iteration"]) for each in runs
    )
    measured: dict[str, list[float]] = {each["run_id"]: [] for each in runs}
    for row in read_measurements(tmp_path / "r").to_pylist():
        measured[row["run_id"]].append(row["value"])
        assert row["iteration"] == len(measured[row["run_id"]])
    expected = [value[run == each].tolist() for each in dict.fromkeys(run.tolist())]
    assert sorted(measured.values()) == sorted(expected)


def _read(found: pa.Table, tmp_path: Path, **options: Any) -> ForeignFile:
    path = tmp_path / "t.parquet"
    pq.write_table(found, path, **options)
    return table.read(Source(path, path.read_bytes(), table.EXPECTED), ReadOptions(unit="ms"))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([0.1, 1e-7, 1e15, 123456789.125, 1e22, 5e-324 * 0, 1e16, 9.99e-5]),
        pa.array(10.0 ** np.arange(-12, 25)),
        pa.array(np.random.default_rng(8).lognormal(0, 12, 300)),
        pa.array(np.random.default_rng(8).lognormal(10, 3, 300).round(1)),
        pa.array([1, 2, 3_000_000_000], pa.int64()),
        pa.array([0.1, 2.5], pa.float32()),
        pa.array(["1.5", "2e-3"]),
        pa.array(["1.5", "2", "1.5"]).dictionary_encode(),
    ],
)
def test_parquet_by_column_is_what_its_rows_give(tmp_path: Path, values: pa.Array) -> None:
    rows = pa.table({"value": values, "run": pa.array(range(len(values)))})
    found = _read(rows, tmp_path)
    assert isinstance(found.table, ColumnarRuns)
    printed = [str(value) for value in values.to_pylist()]
    assert [each.sections[0].printed for each in found.table] == printed
    text = "value,run\n" + "".join(f'"{each}",{run}\n' for run, each in enumerate(printed))
    by_rows = table.read(Source(Path("t.csv"), text.encode(), table.EXPECTED), ReadOptions(unit="ms"))
    assert [list(run.sections) for run in found.table] == [list(run.sections) for run in by_rows.runs]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (pa.array([1.0, None]), "line 2: value is ``"),
        (pa.array([1.0, float("nan")]), "line 2: value is `nan`"),
        (pa.array([float("inf")]), "line 1: value is `inf`"),
        (pa.array([1.0, -2.0]), "line 2: value is `-2.0`"),
        (pa.array([True]), "line 1: value is `True`"),
        (pa.array([[1.0]]), "line 1: value is `[1.0]`"),
        (pa.array([{"a": 1.0}]), "line 1: value is `{'a': 1.0}`"),
        (pa.array([dt.datetime(2024, 1, 2, tzinfo=dt.UTC)]), "line 1: value is `2024-01-02"),
        (pa.array([b"\xff"]), "line 1: value is"),
        (pa.array(["fast"]), "line 1: value is `fast`"),
        (pa.array([None, None]), "lines 1-2: value is ``"),
    ],
)
def test_parquet_with_something_else_than_values_is_refused(
    tmp_path: Path, values: pa.Array, said: str
) -> None:
    with pytest.raises(DataError) as raised:
        _read(pa.table({"value": values}), tmp_path)
    assert said in raised.value.message


def test_damaged_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(_table(5000, 5), path)
    whole = path.read_bytes()
    for damaged in (whole[:4], whole[:-9], whole[: len(whole) // 2], whole[:200] + whole[400:], b"PAR1" * 9):
        with pytest.raises(DataError, match=r"no Parquet file|has .* problem"):
            table.read(Source(path, damaged, table.EXPECTED), ReadOptions(unit="ms"))


def test_parquet_without_rows_has_no_value(tmp_path: Path) -> None:
    assert not _read(pa.table({"value": pa.array([], pa.float64())}), tmp_path).holds_values
    with pytest.raises(DataError, match="no column of values"):
        _read(pa.table({"other": [1.0]}), tmp_path)
