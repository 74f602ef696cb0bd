from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from steelyard.studies.replication.experiments.conduct import BenchmarkFailed, Conducted
from steelyard.studies.replication.experiments.files import REQUESTS
from steelyard.studies.replication.experiments.load import RECORD, keep, read_records, require_right_answers
from steelyard.studies.replication.experiments.macro import require_passed

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.studies.replication.experiments.load import Loaded

MS = 1_000_000


def _loaded(folder: Path, **changes: int) -> Loaded:
    """Give 2000 requests, one per ms, the first 1000 warm-up; each is answered after 5 ms."""
    records = np.zeros(2000, RECORD)
    records["intended_ns"] = MS * np.arange(2000) + MS
    records["sent_ns"] = records["intended_ns"] + 10
    records["received_ns"] = records["intended_ns"] + 5 * MS
    records["operation"] = np.arange(2000) % 4
    records["status"] = 200
    summary: dict[str, Any] = {
        "program": "steelyard-load 9.9",
        "operations": ["create", "read", "update", "list"],
        "measure_start_ns": MS * 1001,
        "measure_end_ns": MS * 2001,
        "scheduled": 1000,
        "answered": 1000,
        "wrong_status": 0,
        "wrong_body": 0,
        **changes,
    }
    records.tofile(folder / "requests.bin")
    (folder / "http.json").write_text(json.dumps(summary), encoding="utf-8")
    return read_records(folder)


def test_rates_count_what_happened_while_the_measurement_lasted(tmp_path: Path) -> None:
    loaded = _loaded(tmp_path)
    assert loaded.measured.size == 1000
    assert loaded.injected_per_s == pytest.approx(1000)
    # Answers to the last requests of the warm-up come then, those to the last ones afterwards.
    assert loaded.throughput_per_s == pytest.approx(1000)
    loaded.records["received_ns"][-500:] = 0
    loaded.records["flags"][1000:1100] = 2
    # Four answers to the warm-up, 500 to the first half of the measurement, 100 of them wrong.
    assert loaded.throughput_per_s == pytest.approx(4 + 500 - 100)


def test_a_service_that_falls_behind_does_not_follow(tmp_path: Path) -> None:
    loaded = _loaded(tmp_path)
    assert loaded.followed_per_s(0.0) == pytest.approx(996), "four answers come after the end"
    assert loaded.followed_per_s(0.05) == pytest.approx(1000)
    run = Conducted({"experiment": "e4", "configuration": {}}, tmp_path)
    require_passed(run, loaded, p90_limit_ms=5.0)
    with pytest.raises(
        BenchmarkFailed, match=r"^90th percentile of latency is 5 ms; required: at most 4.9 ms$"
    ):
        require_passed(run, loaded, p90_limit_ms=4.9)
    # Every request takes a tenth of a millisecond longer than the one before.
    loaded.records["received_ns"] += MS // 10 * np.arange(2000)
    behind = loaded.followed_per_s(0.05)
    # Of those due in the measurement, number i is answered at 1001 + 1.1 i + 105 ms, until 2051 ms.
    assert behind == pytest.approx((2051 - 1106) / 1.1, abs=1)
    with pytest.raises(BenchmarkFailed, match=rf"^throughput is {behind:g} 1/s; required: at least 950 1/s"):
        require_passed(run, loaded, p90_limit_ms=1000.0)


def test_a_request_that_waited_for_a_connection_counts_as_any_other(tmp_path: Path) -> None:
    loaded = _loaded(tmp_path)
    loaded.records["flags"] = 1
    assert loaded.throughput_per_s == pytest.approx(1000)


def test_one_wrong_answer_in_a_thousand_is_allowed_and_two_are_not(tmp_path: Path) -> None:
    require_right_answers(_loaded(tmp_path, wrong_body=1))
    with pytest.raises(BenchmarkFailed, match=r"0.20 % of 1000 .*status: 1, another body: 1, no answer: 0"):
        require_right_answers(_loaded(tmp_path, wrong_body=1, wrong_status=1))
    with pytest.raises(BenchmarkFailed, match="no answer: 2"):
        require_right_answers(_loaded(tmp_path, answered=998))


def test_all_requests_are_kept_with_the_names_of_their_operations(tmp_path: Path) -> None:
    run = Conducted({"experiment": "e3", "configuration": {}}, tmp_path)
    keep(run, _loaded(tmp_path))
    table = pq.read_table(tmp_path / "requests.parquet")
    assert table.schema.equals(REQUESTS)
    assert table.num_rows == 2000
    assert table.column("operation").to_pylist()[:4] == ["create", "read", "update", "list"]
    run.ends("completed")
    header = json.loads((tmp_path / "header.json").read_text(encoding="utf-8"))
    assert header["measure_start_ns"] == MS * 1001
    assert header["software"] == {"steelyard-load": "9.9"}
    assert header["throughput_per_s"] == pytest.approx(1000)
