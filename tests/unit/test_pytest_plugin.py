"""The plug-in of pytest, run by a pytest of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from steelyard.pytest_plugin import MeasuredCall

if TYPE_CHECKING:
    from pathlib import Path

TESTS = """
import time

def test_pause(steelyard):
    assert steelyard(time.sleep, 0.001) is None

def test_sort(steelyard):
    assert steelyard(sorted, [3, 1, 2], reverse=True) == [3, 2, 1]

def test_not_used(steelyard):
    pass

def test_plain():
    pass
"""


def pytest_of(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "steelyard.pytest_plugin", "-W", "error", *words],
        cwd=folder,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )


def test_calls_are_measured_and_shown(tmp_path: Path) -> None:
    (tmp_path / "test_speed.py").write_text(TESTS, encoding="utf-8")
    done = pytest_of(tmp_path, "--steelyard-seconds=0.02", "--steelyard-json=found.json", "-k", "not sort")
    assert done.returncode == 0, done.stdout
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("test_speed.py::")]
    assert [(row[0], row[2]) for row in rows] == [("test_speed.py::test_pause", "ms")]
    assert float(rows[0][1]) >= 1
    found = json.loads((tmp_path / "found.json").read_bytes())
    assert found["test"] == "test_speed.py::test_pause"
    assert min(found["rounds_ns"]) >= 1e6
    done = pytest_of(tmp_path, "--steelyard-seconds=0.001", "-k", "sort")
    assert done.returncode == 0, done.stdout


def test_a_run_without_the_fixture_shows_and_loads_nothing(tmp_path: Path) -> None:
    unwanted = {"numpy", "statistics", "steelyard.units"}
    text = f"import sys\ndef test_it(): assert not {unwanted} & set(sys.modules)\n"
    (tmp_path / "test_speed.py").write_text(text, encoding="utf-8")
    done = pytest_of(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "steelyard" not in done.stdout


def test_short_calls_are_measured_in_rounds_of_many() -> None:
    found = MeasuredCall(0.01)
    assert found(len, "abc") == 3
    assert found.calls_per_round > 100
    assert len(found.rounds_ns) > 1
    with pytest.raises(RuntimeError, match="cannot measure a second call"):
        found(len, "abc")
