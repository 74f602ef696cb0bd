"""What a run of an experiment left is read as it was written; what is damaged is refused by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.errors import DataError
from steelyard.studies.replication.experiment_record import (
    CALLS,
    EXPERIMENT_FILE,
    FORMAT,
    HEADER_FILE,
    read_run,
    write_table,
)

if TYPE_CHECKING:
    from pathlib import Path


def _folder(tmp_path: Path) -> Path:
    for name in (EXPERIMENT_FILE, HEADER_FILE):
        (tmp_path / name).write_text(json.dumps({"format": FORMAT}))
    return tmp_path


def test_calls_are_read_as_they_were_written(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    start = np.cumsum(np.array([5, 2**40, 17, 3]))
    write_table(folder, "calls", {"start_ns": start, "duration_ns": [1, 2, 2**62, 0]})
    read = read_run(folder).table("calls")
    assert read.column("start_ns").to_pylist() == start.tolist()
    assert read.column("duration_ns").to_pylist() == [1, 2, 2**62, 0]


def test_a_table_that_is_absent_is_empty(tmp_path: Path) -> None:
    found = read_run(_folder(tmp_path))
    assert not found.has("calls")
    assert found.table("calls").schema == CALLS
    assert found.table("calls").num_rows == 0


def test_a_table_of_other_columns_is_refused(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    write_table(folder, "migrations", {"thread": ["a"], "time_ns": [1], "from_cpu": [0], "to_cpu": [1]})
    (folder / "migrations.parquet").rename(folder / "calls.parquet")
    with pytest.raises(DataError, match="from_cpu"):
        read_run(folder).table("calls")


@pytest.mark.parametrize("content", ["{", "[]", '{"format": "steelyard/experiment/0"}'])
def test_a_damaged_header_is_refused_by_name(tmp_path: Path, content: str) -> None:
    folder = _folder(tmp_path)
    (folder / HEADER_FILE).write_text(content)
    with pytest.raises(DataError, match=r"header\.json"):
        read_run(folder)
