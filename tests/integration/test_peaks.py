"""`steelyard peaks`: imported MooBench files, folders of runs, wrong requests; the watcher as any user."""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.cli import execute
from steelyard.run.programs import watch_program
from steelyard.studies.replication.experiment_record import FORMAT, write_table

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timing

USUAL_NS = 1000


def peaks(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert execute(["peaks", *words, "--json"]) == 0
    content: dict[str, object] = json.loads(capsys.readouterr().out)
    return content


def recorded(folder: Path, calls: int, every: int, *, warm_up: int = 0) -> None:
    """Lay down a run whose every so many calls is a peak during which `burner` had the CPU."""
    folder.mkdir(parents=True)
    asked = {
        "format": FORMAT,
        "experiment": "e2",
        "configuration": {"name": "none-baseline", "parameters": {"warm_up_calls": warm_up}},
        "setting": {"name": "native"},
    }
    (folder / "experiment.json").write_text(json.dumps(asked))
    (folder / "header.json").write_text(json.dumps({"format": FORMAT}))
    durations = USUAL_NS + np.arange(calls) % 7
    durations[warm_up + every - 1 :: every] = 50_000
    durations[:warm_up] = 9_000
    starts = np.cumsum(durations) - durations
    write_table(folder, "calls", {"start_ns": starts, "duration_ns": durations})
    high = starts[durations == 50_000]
    columns: dict[str, object] = {"off_ns": high + 500, "on_ns": high + 49_500, "cpu": np.zeros(high.size)}
    columns |= {"thread": ["calls"] * high.size, "next_name": ["burner"] * high.size}
    columns |= {"is_preempted": [True] * high.size, "next_process": np.ones(high.size)}
    write_table(folder, "switches", columns)


def test_all_rows_of_an_imported_file_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    durations = [int(value) for value in rng.gamma(50, 250, 5000)]
    durations[1000::500] = [100_000] * len(durations[1000::500])
    raw = tmp_path / "raw-1-10-2.csv"
    raw.write_text("".join(f"0;{value}\n" for value in durations))
    assert execute(["import", "moobench", str(raw), "--out", str(tmp_path / "imported")]) == 0
    capsys.readouterr()
    (cell,) = peaks(capsys, str(tmp_path / "imported"))["cells"]
    assert (cell["calls"], cell["max_ns"]) == (5000, 100_000)
    assert cell["mean_ns"] == pytest.approx(statistics.fmean(durations))
    assert cell["sd_ns"] == pytest.approx(statistics.stdev(durations))
    middle = statistics.median(durations)
    high = middle + 10 * statistics.median(abs(value - middle) for value in durations)
    assert cell["peaks"] == sum(value > high for value in durations) == 8
    assert cell["published_ci95_ns"] == pytest.approx(1.959964 * statistics.stdev(durations) / 5000**0.5)


def test_runs_of_a_cell_are_observations_and_the_warm_up_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        recorded(tmp_path / "runs" / f"{number}", 4000, 200, warm_up=2000)
    (cell,) = peaks(capsys, str(tmp_path))["cells"]
    assert cell["cell"] == {"experiment": "e2", "configuration": "none-baseline", "setting": "native"}
    assert (cell["calls"], cell["peaks"], len(cell["runs"])) == (6000, 30, 3)
    assert cell["rate_per_call"]["value"] == pytest.approx(30 / 6000)
    assert cell["causes"] == {"off-CPU by burner": 3}
    (whole,) = peaks(capsys, str(tmp_path), "--all")["cells"]
    assert whole["calls"] == 12_000
    assert execute(["peaks", str(tmp_path), "--threshold", "absolute:20000"]) == 0
    text = capsys.readouterr().out
    assert "`off-CPU by burner` explains 100 % of the excess time of 10 peaks" in text
    assert "6000" in text
    assert "20000 ns" in text


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["EMPTY"], 5, "has no calls"),
        (["nowhere"], 2, "is not a folder"),
        (["EMPTY", "--threshold", "mean"], 2, "`--threshold mean`: allowed: `robust`"),
    ],
)
def test_a_wrong_request_says_what_to_do(
    words: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["peaks", *[word.replace("EMPTY", str(tmp_path)) for word in words]]) == code
    error = capsys.readouterr().err
    assert said in error
    assert "hint:" in error


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Give a folder that everybody reaches and may write to."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.mark.needs_root
def test_a_user_without_rights_gets_samples_and_the_reason(open_folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs the rights of root, to become somebody without")
    if int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) <= 0:
        pytest.skip("needs a host that does not let everybody watch whole CPUs")
    program = open_folder / "steelyard-watch"
    shutil.copy(watch_program(), program)
    out = open_folder / "out"
    words = [str(program), "--out", str(out), "--names", "nobody-has-it"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, user=65534, group=65534, extra_groups=[]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    said = json.loads((out / "watch.json").read_text())
    assert "CAP_PERFMON" in said["missing"]["switches"]
    assert said["rows"]["samples"] >= 1
