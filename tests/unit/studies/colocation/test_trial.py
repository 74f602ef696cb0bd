from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.errors import DataError
from steelyard.studies.colocation.trial import (
    FORMAT,
    ITERATION,
    REQUEST,
    SAMPLE,
    Trial,
    read_trial,
    write_trial,
)

if TYPE_CHECKING:
    from pathlib import Path


def _trial(*, scheduler: dict[str, object] | None = None) -> Trial:
    requests = np.zeros(3, dtype=REQUEST)
    requests["seq"] = np.arange(3)
    requests["intended_ns"] = [2**63, 2**63 + 1, 2**64 - 1]
    iterations = np.array([(0, 1, 77)], dtype=ITERATION)
    samples = np.array([(1, 2, 3, 4, 5, 6), (7, 8, 9, 10, 11, 12)], dtype=SAMPLE)
    header = {"is_complete": True, "missing": []}
    return Trial({"seed": 7, "cpus": [0, 1]}, header, requests, iterations, samples, scheduler or {})


def test_a_trial_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = _trial(scheduler={"counters": {"exit_runs": 3}})
    write_trial(tmp_path / "trial", written)
    found = read_trial(tmp_path / "trial")
    assert dict(found.plan) == {"format": FORMAT, "seed": 7, "cpus": [0, 1]}
    assert dict(found.header) == {"format": FORMAT, "is_complete": True, "missing": []}
    assert found.scheduler == {"counters": {"exit_runs": 3}}
    for name in ("requests", "iterations", "samples"):
        assert np.array_equal(getattr(found, name), getattr(written, name))


def test_a_trial_without_a_scheduler_has_no_counters(tmp_path: Path) -> None:
    write_trial(tmp_path, _trial())
    assert not (tmp_path / "scheduler.json").exists()
    assert read_trial(tmp_path).scheduler == {}


@pytest.mark.parametrize(
    ("name", "size"), [("requests.bin", 48), ("iterations.bin", 16), ("samples.bin", 48)]
)
def test_a_cut_file_is_named_with_its_size(tmp_path: Path, name: str, size: int) -> None:
    write_trial(tmp_path, _trial())
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-1])
    left = path.stat().st_size
    with pytest.raises(DataError, match=rf"{name}.*{left} bytes.*multiple of {size}") as caught:
        read_trial(tmp_path)
    assert caught.value.code == "trial.file"
    assert caught.value.hint


@pytest.mark.parametrize("name", ["trial.json", "header.json"])
def test_a_file_of_another_format_is_refused(tmp_path: Path, name: str) -> None:
    write_trial(tmp_path, _trial())
    path = tmp_path / name
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": "steelyard/trial/2"}))
    with pytest.raises(DataError, match=r"steelyard/trial/2.*steelyard/trial/1") as caught:
        read_trial(tmp_path)
    assert caught.value.code == "trial.format"


@pytest.mark.parametrize("content", ["", "[1]", '{"format": '])
def test_what_is_no_json_object_is_refused(tmp_path: Path, content: str) -> None:
    write_trial(tmp_path, _trial(scheduler={"active": True}))
    (tmp_path / "scheduler.json").write_text(content)
    with pytest.raises(DataError, match=r"scheduler\.json"):
        read_trial(tmp_path)


@pytest.mark.parametrize("name", ["trial.json", "header.json", "requests.bin", "samples.bin"])
def test_an_absent_file_is_named(tmp_path: Path, name: str) -> None:
    write_trial(tmp_path, _trial())
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match=name):
        read_trial(tmp_path)
