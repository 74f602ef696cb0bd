"""A replication study of real programs: run, killed, resumed."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.integration.study_process import environment, execute, start

from steelyard.model.plan import read_plan
from steelyard.record.tables import read_runs
from steelyard.studies.replication.experiment_record import read_run
from steelyard.studies.replication.programs import BENCHMARKS, find_programs

STUDY_FILE = """
study = "replication"
quick = true
blocks = 5
experiments = ["e2"]
configurations = ["none-baseline"]
settings = ["native"]
containers = "none"

[e2]
unprobed_calls = 2000
"""
RUNS = 10
PATIENCE_S = 60


def has_programs() -> bool:
    found = find_programs()
    return "java" in found.installed and BENCHMARKS in found.built


pytestmark = [
    pytest.mark.long("a study that is killed and resumed"),
    pytest.mark.needs_replication,
    pytest.mark.skipif(not has_programs(), reason="needs Java and `make deps-replication`"),
]


def descendants(root: int) -> list[int]:
    """Give a process and those it has started, the root first."""
    found = [root]
    for each in found:
        for thread in Path(f"/proc/{each}/task").glob("*/children"):
            found += map(int, thread.read_text(encoding="ascii").split())
    return found


def test_a_killed_study_of_real_programs_resumes_and_every_launch_counts_once(tmp_path: Path) -> None:
    result, file = tmp_path / "result", tmp_path / "study.toml"
    file.write_text(STUDY_FILE, encoding="utf-8")
    with environment() as env:
        process = start(["run", "replication", "--study-file", file, "--out", result], env)
        deadline = time.monotonic() + PATIENCE_S
        try:
            while len(list(result.glob("traces/0*"))) < 2:
                assert process.poll() is None, process.communicate()[1]
                assert time.monotonic() < deadline
                time.sleep(0.02)
        finally:
            for each in descendants(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            process.communicate()
        before = {path.name for path in result.glob("traces/0*")}
        done = execute(["run", "replication", "--out", result, "--resume"], env)
        assert done.returncode == 0, done.stderr
    plan = read_plan(result / "plan.json")
    runs = read_runs(result).to_pylist()
    assert sorted(row["batch"] for row in runs) == list(range(RUNS)) == [each.number for each in plan.batches]
    assert {row["status"] for row in runs} == {"completed"}
    folders = [result / "traces" / f"{row['batch']:06d}.{row['attempt']:02d}" for row in runs]
    kept = {path.name for path in folders}
    assert len(before - kept) <= 1, "a crash loses at most the run that was under way"
    assert before & kept, "nothing was kept of what was there"
    for folder in folders:
        run = read_run(folder)
        assert (run.header["is_complete"], run.header["outcome"]) == (True, "completed")
        assert run.table("calls").num_rows == 2000
    findings = json.loads((result / "findings.json").read_text(encoding="utf-8"))
    assert findings["study"] == "replication"
    assert (result / "report.html").stat().st_size > 0
