from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import DataError
from steelyard.share import verify
from steelyard.share.verify import says_the_same

if TYPE_CHECKING:
    from pathlib import Path

NOW = {"schema": "steelyard/cost-model/2", "latency_s": 1e-6, "measured_bytes": {"delay": [1, 8]}}
BEFORE = {"schema": "steelyard/cost-model/1", "latency_s": 1e-6}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (NOW, True),
        (BEFORE, True),
        (BEFORE | {"latency_s": 2e-6}, False),
        (BEFORE | {"measured_bytes": {"delay": [1, 8]}}, False),
        (BEFORE | {"own": 1}, False),
        (
            {"schema": "steelyard/cost-model/1"} | {"schema": "steelyard/cost-model/2", "latency_s": 1e-6},
            False,
        ),
        (BEFORE | {"schema": "steelyard/cost-model/3"}, False),
        (BEFORE | {"schema": 1}, False),
        ([], False),
    ],
)
def test_an_earlier_version_says_the_same_with_fewer_fields(written: object, expected: bool) -> None:  # noqa: FBT001
    assert says_the_same(json.dumps(written).encode(), json.dumps(NOW).encode()) is expected


def test_what_is_no_document_is_not_the_same() -> None:
    assert not says_the_same(b"{", json.dumps(NOW).encode())


@pytest.mark.parametrize("name", ["looks.json", "measurements/values.parquet"])
def test_a_pipe_in_a_result_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "result" / "measurements").mkdir(parents=True)
    (tmp_path / "copy").mkdir()
    os.mkfifo(tmp_path / "result" / name)
    with pytest.raises(DataError, match=rf"cannot verify `.*{name}`: it is neither a regular file"):
        verify._copy_raw(tmp_path / "result", tmp_path / "copy")
