from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from steelyard.errors import DataError
from steelyard.studies.replication.experiments.watched import (
    MIGRATION,
    SAMPLE,
    SWITCH,
    WATCH_FORMAT,
    keep_watched,
)

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, **said: object) -> None:
    switches = np.zeros(2, SWITCH)
    switches["thread"] = b"steelyard-calls"
    switches["next_name"] = [b"kworker/0:1", "bür".encode()]
    switches["off_ns"], switches["on_ns"] = [10, 30], [20, 35]
    # The kernel says -1 of a process that is ending.
    switches["next_process"], switches["flags"] = [77, -1], [1, 0]
    # A row that was being written when the watcher was ended.
    (folder / "switches.bin").write_bytes(switches.tobytes() + b"\1\2\3")
    (folder / "migrations.bin").write_bytes(np.zeros(1, MIGRATION).tobytes())
    (folder / "samples.bin").write_bytes(np.zeros(3, SAMPLE).tobytes())
    content = {"format": WATCH_FORMAT, "lost_records": 0, "left_out_rows": 0, "missing": {}, **said}
    (folder / "watch.json").write_text(json.dumps(content))


def test_the_files_of_a_watch_become_tables(tmp_path: Path) -> None:
    write(tmp_path, own_cpu_ns=5)
    reasons: list[str] = []
    said = keep_watched(tmp_path, tmp_path, missing=reasons.append)
    assert said["own_cpu_ns"] == 5
    assert reasons == []
    rows = pq.read_table(tmp_path / "switches.parquet").to_pylist()
    assert [(row["next_name"], row["next_process"]) for row in rows] == [("kworker/0:1", 77), ("bür", -1)]
    assert [(row["off_ns"], row["on_ns"], row["is_preempted"]) for row in rows] == [
        (10, 20, True),
        (30, 35, False),
    ]
    assert pq.read_table(tmp_path / "migrations.parquet").num_rows == 1
    assert pq.read_table(tmp_path / "samples.parquet").num_rows == 3


def test_what_was_lost_and_not_allowed_is_said(tmp_path: Path) -> None:
    write(tmp_path, lost_records=7, missing={"switches": "not allowed", "migrations": "not allowed"})
    reasons: list[str] = []
    keep_watched(tmp_path, tmp_path, missing=reasons.append)
    assert reasons[:2] == ["switches: not allowed", "migrations: not allowed"]
    assert "lost 7 records" in reasons[2]
    assert not (tmp_path / "switches.parquet").exists()
    assert (tmp_path / "samples.parquet").exists()


def test_a_killed_watcher_leaves_no_tables_and_a_reason(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read `"):
        keep_watched(tmp_path, tmp_path, missing=str)
    (tmp_path / "watch.json").write_text("{}")
    with pytest.raises(DataError, match="not of the format"):
        keep_watched(tmp_path, tmp_path, missing=str)
