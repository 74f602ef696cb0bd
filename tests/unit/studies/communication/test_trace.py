from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.errors import DataError
from steelyard.studies.communication.trace import (
    BLOCK,
    OPERATION,
    PROBE,
    Endpoint,
    Operation,
    Trace,
    read_trace,
    write_trace,
)

if TYPE_CHECKING:
    from pathlib import Path


def _trace(finished: int, planned: int) -> Trace:
    operations = np.zeros(planned, dtype=OPERATION)
    operations["seq"] = np.arange(planned)
    operations["op"] = Operation.PINGPONG
    operations["size"] = 8
    operations["start_ns"] = 1000 * np.arange(planned) + 1
    operations["end_ns"][:finished] = operations["start_ns"][:finished] + 500
    blocks = np.zeros(2, dtype=BLOCK)
    blocks["time_ns"] = (1, 2)
    header = {"is_complete": finished == planned}
    ends = (Endpoint(header, operations, blocks), Endpoint(header, operations, blocks))
    return Trace(ends, np.zeros(0, dtype=PROBE))


def test_a_trace_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_trace(tmp_path, _trace(3, 3))
    found = read_trace(tmp_path)
    assert found.is_complete
    assert found.endpoints[1].operations["end_ns"].tolist() == [501, 1501, 2501]
    assert found.endpoints[0].header["rank"] == 0


def test_what_a_killed_endpoint_had_stamped_is_there(tmp_path: Path) -> None:
    write_trace(tmp_path, _trace(2, 5))
    found = read_trace(tmp_path)
    assert not found.is_complete
    assert found.endpoints[0].operations["seq"].tolist() == [0, 1]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    write_trace(tmp_path, _trace(2, 2))
    (tmp_path / "operations.1.bin").write_bytes(b"x" * 41)
    with pytest.raises(DataError, match=r"operations\.1\.bin.*41 bytes.*multiple of 40"):
        read_trace(tmp_path)


def test_a_folder_without_a_header_is_no_trace(tmp_path: Path) -> None:
    write_trace(tmp_path, _trace(2, 2))
    (tmp_path / "header.1.json").unlink()
    with pytest.raises(DataError, match=r"header\.1\.json"):
        read_trace(tmp_path)


def test_operations_out_of_order_are_refused(tmp_path: Path) -> None:
    trace = _trace(3, 3)
    trace.endpoints[0].operations["seq"] = (0, 2, 1)
    write_trace(tmp_path, trace)
    with pytest.raises(DataError, match="out of order"):
        read_trace(tmp_path)


def test_a_warm_up_is_left_out_of_both_endpoints() -> None:
    trace = _trace(3, 3)
    kept = trace.after(1)
    assert [each.operations["seq"].tolist() for each in kept.endpoints] == [[1, 2], [1, 2]]
    assert [each.operations["seq"].tolist() for each in trace.endpoints] == [[0, 1, 2], [0, 1, 2]]
    assert trace.after(0) is trace
