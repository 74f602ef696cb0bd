"""Cells that are described apart, in any order and elsewhere, give the bytes of one analysis."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from steelyard.analyse.mapping.over_cells import split
from steelyard.cli import execute
from steelyard.studies.imported import analysis, cell_tasks
from steelyard.studies.imported.analysis import analyse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analyse.mapping.over_cells import CellTask, Found

Sent = TypeVar("Sent")
GOLDEN = Path(__file__).resolve().parents[3] / "golden/importers"
SHAPES = ("hyperfine", "google-benchmark", "pytest-benchmark", "pyperf", "failed", "mixed")
MIXED = "\n".join(
    [
        "workload,run,iteration,phase,metric,value,exit_code",
        # The second metric appears late, the third in the last cell alone, and before the first there.
        *(
            f"{work}-{cc},{run},{step},{'warmup' if step < 2 else 'measure'},{metric},"
            f"{1 + (7 * run + 3 * step + len(cc)) % 11 / 10},{int(work == 'lost' and run % 2 == 0)}"
            for work in ("sort", "lost", "scan")
            for cc in ("gcc", "clang")
            for run in range(6)
            for metric in (("z", "a", "m") if work == "scan" else ("m", "a") if cc == "clang" else ("m",))
            for step in range(7)
        ),
        "",
    ]
)
FAILED = [
    {"command": name, "times": [1.0, 1.5, 2.0], "mean": 1.5, "median": 1.5, "exit_codes": codes}
    for name, codes in {"good": [0, 0, 0], "lost": [0, 1, 0], "gone": [1, 1, 1]}.items()
]


class Scattered:
    """Computes copies of tasks, the last one first."""

    workers = 3

    def map(self, tasks: Sequence[CellTask[Found]]) -> list[Found]:
        """Give what each finds, in the order of the tasks."""
        return [sent(sent(task).compute()) for task in reversed(tasks)][::-1]


def sent(value: Sent) -> Sent:
    """Give what arrives elsewhere."""
    copy: Sent = pickle.loads(pickle.dumps(value))  # noqa: S301 - our own
    return copy


@pytest.fixture(params=SHAPES)
def result(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    words = [request.param, str(GOLDEN / f"{request.param}.json")]
    if request.param == "failed":
        (tmp_path / "failed.json").write_text(json.dumps({"results": FAILED}), encoding="utf-8")
        words = ["hyperfine", str(tmp_path / "failed.json")]
    if request.param == "mixed":
        (tmp_path / "mixed.csv").write_text(MIXED, encoding="utf-8")
        words = ["csv", str(tmp_path / "mixed.csv"), "--unit", "s"]
    assert execute(["import", *words, "--out", str(tmp_path / "result")]) == 0
    return tmp_path / "result"


@pytest.mark.parametrize("together_bytes", [0, 1 << 28])
def test_scattered_cells_give_the_same_files(
    result: Path, together_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_tasks, "_TOGETHER_BYTES", together_bytes)
    copy = shutil.copytree(result, result.with_name("copy"))
    analyse(result)
    analyse(copy, None, Scattered())
    require_same_files(result, copy)


def test_cells_that_are_read_in_parts_give_the_same_files(
    result: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copytree(result, result.with_name("copy"))
    analyse(result)
    monkeypatch.setattr(analysis, "MOST_RUNS", 0)
    monkeypatch.setattr(analysis, "RUNS_PER_PART", 2)
    analyse(copy)
    require_same_files(result, copy)


def require_same_files(result: Path, copy: Path) -> None:
    files = sorted(path.relative_to(result) for path in result.rglob("*") if path.is_file())
    assert [path.suffix for path in files].count(".csv") == 3
    for path in files:
        assert (copy / path).read_bytes() == (result / path).read_bytes(), path


def test_parts_cover_everything_once_and_are_of_equal_size() -> None:
    for count in (0, 1, 23, 24, 25, 1000):
        parts = split(range(count), Scattered())
        assert [each for part in parts for each in part] == list(range(count))
        assert len({len(part) for part in parts}) <= 2
        assert len(parts) == min(count, 24)
