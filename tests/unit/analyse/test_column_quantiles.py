"""Quantiles and histograms of Parquet columns, beside numpy's of the whole column."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard.analyse import column_quantiles as column_quantiles_module
from steelyard.analyse.column_quantiles import column_quantiles
from steelyard.errors import AnalysisError, DataError

if TYPE_CHECKING:
    from pathlib import Path

PROBABILITIES = (0.0, 0.001, 0.25, 0.5, 0.95, 0.99, 0.9999, 1.0)
DRAW = np.random.default_rng(7)
SAMPLES = {
    "log-normal": DRAW.lognormal(10.0, 2.0, 300_001),
    "both signs": DRAW.normal(0.0, 1.0, 300_000),
    "few values": DRAW.integers(-3, 4, 200_000).astype(float),
    "constant": np.full(1000, 1e300),
    "one": np.array([-0.0]),
    "two": np.array([5e-324, 1.0]),
    "neighbours": np.array([1.0, np.nextafter(1.0, 2.0)] * 500),
    "extremes": np.array([-1.7e308, -5e-324, 0.0, -0.0, 5e-324, 1.7e308]),
}


def _write(path: Path, values: object, **options: object) -> Path:
    pq.write_table(pa.table({"value": values}), path, **options)
    return path


@pytest.mark.parametrize("kept", [0, 1000, 1 << 22])
@pytest.mark.parametrize("name", SAMPLES)
def test_equals_numpy_on_the_whole_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kept: int
) -> None:
    monkeypatch.setattr(column_quantiles_module, "_KEPT", kept)
    values = SAMPLES[name]
    path = _write(tmp_path / "v.parquet", values, row_group_size=70_000)
    found = column_quantiles(path, "value", probabilities=PROBABILITIES, bins=50)
    assert found.count == len(values)
    assert (found.smallest, found.largest) == (values.min(), values.max())
    ordered = np.sort(values)
    with np.errstate(over="ignore"):
        expected = np.quantile(ordered, PROBABILITIES)
    assert np.array(list(found.quantiles.values())) == pytest.approx(expected, rel=1e-15)
    assert found.counts.sum() == len(values)
    if len(found.counts) == 50:
        whole, edges = np.histogram(values, 50)
        assert np.array_equal(found.counts, whole)
        assert np.array_equal(found.edges, edges)


def test_whole_numbers_are_read_as_numbers(tmp_path: Path) -> None:
    path = _write(tmp_path / "v.parquet", pa.array([1, 2, 10], pa.int32()))
    assert column_quantiles(path, "value", probabilities=(0.5,)).quantiles == {0.5: 2.0}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1.0, None], "row 2"),
        ([1.0, 2.0, float("nan")], "row 3"),
        ([float("-inf")], "row 1"),
        (["1.0"], "not numbers"),
        ([[1.0]], "not numbers"),
        ([True], "not numbers"),
    ],
)
def test_refuses_what_is_not_a_finite_number(tmp_path: Path, values: list[object], reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        column_quantiles(_write(tmp_path / "v.parquet", values), "value")


def test_refuses_damaged_files(tmp_path: Path) -> None:
    path = _write(tmp_path / "v.parquet", SAMPLES["both signs"])
    whole = path.read_bytes()
    for damaged in (b"", b"PAR1", whole[: len(whole) // 2], whole[:1000] + whole[5000:]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="cannot read"):
            column_quantiles(path, "value")
    with pytest.raises(DataError, match="cannot read"):
        column_quantiles(tmp_path / "absent.parquet", "value")


def test_names_the_columns_there_are(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column `wall`"):
        column_quantiles(_write(tmp_path / "v.parquet", [1.0]), "wall")


def test_refuses_no_rows_and_requests_out_of_range(tmp_path: Path) -> None:
    with pytest.raises(AnalysisError, match="no values"):
        column_quantiles(_write(tmp_path / "v.parquet", pa.array([], pa.float64())), "value")
    path = _write(tmp_path / "v.parquet", [1.0])
    for request in ({"probabilities": (1.1,)}, {"probabilities": (float("nan"),)}, {"bins": 0}):
        with pytest.raises(AnalysisError, match="out of range"):
            column_quantiles(path, "value", **request)


def test_memory_does_not_grow_with_the_column(tmp_path: Path) -> None:
    program = (
        "import re, sys; from pathlib import Path;"
        "from steelyard.analyse.column_quantiles import column_quantiles;"
        # Not ru_maxrss: it begins with the peak of the process that forked.
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]);"
        "column_quantiles(Path(sys.argv[1]), 'value'); small = peak();"
        "column_quantiles(Path(sys.argv[2]), 'value'); print(peak() - small)"
    )
    small = _write(tmp_path / "small.parquet", DRAW.random(200_000), row_group_size=65_536)
    large = _write(tmp_path / "large.parquet", DRAW.random(8_000_000), row_group_size=262_144)
    done = subprocess.run(
        [sys.executable, "-c", program, small, large], capture_output=True, check=True, text=True
    )
    assert int(done.stdout) < 32 * 1024, "KiB more: half of the values would fit"


def test_interpolates_where_the_difference_is_no_number(tmp_path: Path) -> None:
    path = _write(tmp_path / "v.parquet", [-1.7e308, 1.7e308])
    assert column_quantiles(path, "value", probabilities=(0.5,)).quantiles == {0.5: 0.0}


def test_refuses_a_file_that_changes_between_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _write(tmp_path / "v.parquet", DRAW.random(1000))
    read = column_quantiles_module._settle

    def change(*given: Any) -> object:
        _write(path, DRAW.random(1000) + 7.0)
        return read(*given)

    monkeypatch.setattr(column_quantiles_module, "_settle", change)
    with pytest.raises(DataError, match="changed while it was read"):
        column_quantiles(path, "value")
