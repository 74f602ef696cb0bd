"""Values of a cell: those of the cell alone, and an envelope that leaves no spike out."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard.errors import DataError
from steelyard.serve.cell_values import MOST_DRAWN, cell_csv, cell_list, cell_values

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 20_000
SPIKE_AT = 12_345


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = np.random.default_rng(1)
    cells = [0] * 2 + [1] * 2 + [2]
    runs = [f"{batch}.1.0.1" for batch in (7, 2, 4, 9, 1)]
    pl.DataFrame(
        {
            "run_id": runs,
            "cell": cells,
            "status": ["completed"] * 4 + ["nonzero_exit"],
            "workload": [f"w{cell}" for cell in cells],
        }
    ).write_parquet(tmp_path / "runs.parquet")
    values = random.lognormal(15, 0.01, COUNT)
    values[SPIKE_AT] = 1e9
    of_runs = [runs[0]] * 5 + [runs[2]] * (COUNT // 2) + [runs[3]] * (COUNT // 2)
    (tmp_path / "measurements").mkdir()
    pl.DataFrame(
        {
            "run_id": of_runs,
            "iteration": range(1, COUNT + 6),
            "phase": ["measure"] * (COUNT + 5),
            "metric": ["wall"] * (COUNT + 5),
            "value": np.concatenate([np.full(5, 2e6), values]),
            "unit": ["ns"] * (COUNT + 5),
        }
    ).write_parquet(tmp_path / "measurements" / "values.parquet", row_group_size=3000)
    return tmp_path


def written(folder: Path, cell: int) -> str:
    path = folder / "written.csv"
    cell_csv(folder, cell, "", path)
    return path.read_text()


def test_cells_are_listed_with_their_runs(folder: Path) -> None:
    found = cell_list(folder, "", 1)
    assert [(row.number, row.levels, row.runs, row.failed) for row in found.rows] == [
        (0, ("w0",), 2, 0),
        (1, ("w1",), 2, 0),
        (2, ("w2",), 1, 1),
    ]
    assert [row.number for row in cell_list(folder, "W1", 1).rows] == [1]
    assert cell_list(folder, ".*", 1).total == 0, "a filter is words, not a pattern"


def test_an_envelope_keeps_the_spike(folder: Path) -> None:
    found = cell_values(folder, 1, "")
    assert found.count == COUNT > MOST_DRAWN
    assert dict(found.summary)["maximum"] == "1.000 s"
    order = found.figures[1].datasets["values"]
    assert len(order) == 600
    assert max(float(str(high)) for high in order.columns["high"]) == 1000, "ms"
    middle = [float(str(value)) for value in order.columns["middle"]]
    assert 3 < min(middle) <= max(middle) < 4
    bins = found.figures[0].datasets["bins"]
    assert sum(int(str(count)) for count in bins.columns["count"]) == pytest.approx(COUNT * 0.999, abs=1)


def test_a_cell_has_its_own_values_alone(folder: Path) -> None:
    assert cell_values(folder, 0, "wall").count == 5
    assert cell_values(folder, 2, "").count == 0, "its run failed before it measured anything"
    assert written(folder, 0).count("\n") == 6


@pytest.mark.parametrize("name", ["g[1]", "*", "what?", "{a,b}", "~"])
def test_the_name_of_a_folder_is_no_pattern(folder: Path, name: str) -> None:
    odd = folder / name
    odd.mkdir()
    (folder / "runs.parquet").rename(odd / "runs.parquet")
    (folder / "measurements").rename(odd / "measurements")
    assert cell_list(odd, "", 1).total == 3
    assert cell_values(odd, 0, "wall").count == 5


def test_a_spreadsheet_computes_nothing_of_what_is_written(folder: Path) -> None:
    path = folder / "measurements" / "values.parquet"
    table = pl.read_parquet(path)
    names = ["=1+1", "+1", "-1", "@SUM(1)", "\t=1"]
    table.head(5).with_columns(pl.Series("metric", names), value=pl.lit(-2.5)).write_parquet(path)
    rows = written(folder, 0).splitlines()[1:]
    assert [row.split(",")[2] for row in rows] == [f"'{name}" for name in names]
    assert {row.split(",")[3] for row in rows} == {"-2.5"}


def test_what_is_not_there_is_said(folder: Path) -> None:
    with pytest.raises(DataError, match="has no runs"):
        cell_values(folder, 99, "")
    with pytest.raises(DataError, match="cell 1 measured wall"):
        cell_values(folder, 1, "nonsense")
    (folder / "runs.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="cannot read"):
        cell_list(folder, "", 1)


def test_rows_of_several_metrics_and_phases_are_told_apart(tmp_path: Path) -> None:
    _several_metrics(tmp_path, 500)
    found = cell_values(tmp_path, 1, "")
    assert found.metrics == ("alloc", "wall")
    assert (found.metric, found.count) == ("wall", 2 * 499), "the first value of each run is a warm-up"
    assert dict(found.summary)["maximum"] == "3.499 us", "of run 3, not of the cells beside it"
    assert cell_values(tmp_path, 1, "alloc").unit == "bytes"
    cell_csv(tmp_path, 1, "wall", tmp_path / "values.csv")
    lines = (tmp_path / "values.csv").read_text(encoding="utf-8").splitlines()
    assert lines[1] == "00002.1,2,wall,2001.0,ns"


def test_memory_does_not_grow_with_the_cell(tmp_path: Path) -> None:
    program = (
        "import re, sys; from pathlib import Path;"
        "from steelyard.serve.cell_values import cell_csv, cell_values;"
        # Not ru_maxrss: it begins with the peak of the process that forked.
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]);"
        "cell_values(Path(sys.argv[1]), 1, ''); before = peak();"
        "assert cell_values(Path(sys.argv[2]), 1, '').count > 3 * 10**5; print(peak() - before)"
    )
    small, large = tmp_path / "small", tmp_path / "large"
    _several_metrics(small, 1000)
    _several_metrics(large, 200_000)
    done = subprocess.run(
        [sys.executable, "-c", program, small, large], capture_output=True, check=True, text=True
    )
    assert int(done.stdout) < 60 * 1024, "KiB: 800 000 rows as a whole take twice as much"


def _several_metrics(folder: Path, count: int) -> None:
    """Write 5 runs of 3 cells, each with a warm-up, and two metrics that take turns."""
    (folder / "measurements").mkdir(parents=True)
    runs = [f"{number:05d}.1" for number in range(5)]
    cells = [0, 0, 1, 1, 2]
    pl.DataFrame(
        {"run_id": runs, "cell": cells, "status": "completed", "workload": [f"w{cell}" for cell in cells]}
    ).write_parquet(folder / "runs.parquet")
    place = np.arange(5 * 2 * count)
    run, section = place // (2 * count), place % (2 * count) // 2
    table = pa.table(
        {
            "run_id": pa.array(runs).take(pa.array(run)),
            "iteration": pa.array(section + 1, pa.int32()),
            "phase": pa.array(["warmup", "measure"]).take(pa.array((section > 0).astype(int))),
            "metric": pa.array(["alloc", "wall"]).take(pa.array(place % 2)),
            "value": run * 1000.0 + section % 500,
            "unit": pa.array(["bytes", "ns"]).take(pa.array(place % 2)),
        }
    )
    pq.write_table(table, folder / "measurements" / "values.parquet", row_group_size=65_536)
