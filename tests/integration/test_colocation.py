"""The colocation study end to end with real programs: plan, run, record, report, verify, resume."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fixtures.guest_needs import require_sched_ext_guest
from integration.study_process import COMMAND
from steelyard.cli import execute
from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.record.tables import read_runs
from steelyard.run.machine.cpu_groups import cpu_controller
from steelyard.run.programs import scheduler_program
from steelyard.share.verify import verify
from steelyard.studies.colocation.recorded import read_recorded
from steelyard.studies.colocation.scheduling import read_scheduling

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timing  # groups share what the host grants to real-time tasks

USAGE = 2
RUNS_FAILED = 4
SHORT = """
study = "colocation"
policies = [{policies}]
loads = [30]
repetitions = 1
work_us = 1000
warm_up_ms = {warm_up_ms}
baseline_ms = 400
best_effort_ms = 500
recovery_ms = 100
drain_limit_ms = 3000
"""


@pytest.fixture(autouse=True)
def state_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="sy-") as state:  # short: sockets lie below it
        monkeypatch.setenv("STEELYARD_STATE", state)
        yield


def study_file(folder: Path, *policies: str, warm_up_ms: int = 100) -> str:
    path = folder / "study.toml"
    named = ", ".join(f'"{name}"' for name in policies)
    path.write_text(SHORT.format(policies=named, warm_up_ms=warm_up_ms), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("colocation")
    file = study_file(folder, "none", "nice", "weights", "idle", "cpu-idle", "be", "fifo")
    with tempfile.TemporaryDirectory(prefix="sy-") as state, pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEELYARD_STATE", state)
        assert execute(["run", "colocation", "--study-file", file, "--out", str(folder / "result")]) == 0
    return folder / "result"


@pytest.mark.long("the one study of the module, which the tests behind it share")
def test_every_policy_this_host_has_leaves_a_complete_trial(measured: Path) -> None:
    plan = read_plan(measured / "plan.json")
    trials = read_recorded(measured, plan)
    executed = {cell.number for cell in plan.cells if cell.execution is not None}
    assert {trial.cell for trial in trials} == executed
    for trial in trials:
        assert (trial.status, trial.problem) == ("completed", "")
        assert trial.trial is not None
        requests = trial.trial.requests
        assert len(requests) > 50
        assert (requests["received_ns"] > 0).all()
        assert (requests["intended_ns"] <= requests["sent_ns"]).all()
        has_jobs = trial.policy != "none"
        assert (len(trial.trial.iterations) > 0) == has_jobs
        set_now = {str(entry) for entry in trial.trial.header["applied"]}
        assert bool(set_now)


def test_what_this_host_lacks_stands_in_the_plan_with_its_reason(measured: Path) -> None:
    plan, host = read_plan(measured / "plan.json"), read_scheduling()
    missing = {cell.levels["policy"]: cell.missing for cell in plan.cells if cell.missing is not None}
    assert ("be" in missing) == (not host.loadable.available)
    assert ("weights" in missing) == (not host.weighted_groups.available)
    page = (measured / "report.html").read_text(encoding="utf-8")
    for policy, reason in missing.items():
        assert policy in page
        assert str(reason).partition(" (repair")[0] in page.replace("<code>", "`").replace("</code>", "`")


def test_a_result_verifies_and_its_trials_are_part_of_that(measured: Path) -> None:
    assert verify(measured) == []
    path = next(measured.glob("traces/*/requests.bin"))
    before = path.read_bytes()
    try:
        path.write_bytes(before[:8] + bytes([before[8] ^ 1]) + before[9:])
        assert any(path.parent.name in problem for problem in verify(measured))
    finally:
        path.write_bytes(before)


def test_no_control_group_is_left(measured: Path) -> None:
    assert measured.exists()
    folder = cpu_controller().folder
    if folder is None:
        pytest.skip("cgroup.cpu: no groups can be made here")
    assert not (folder / f"steelyard-{os.getpid()}").exists()


@pytest.mark.long("a study that is killed and resumed")
def test_a_killed_study_resumes(tmp_path: Path) -> None:
    result = tmp_path / "result"
    words = ["run", "colocation", "--study-file", study_file(tmp_path, "none", "nice"), "--out", str(result)]
    process = subprocess.Popen(
        [*COMMAND, *words], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    try:
        while not list(result.glob("traces/0*")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
    finally:
        process.wait()
    assert execute(["run", "colocation", "--resume", "--out", str(result)]) == 0
    runs = read_runs(result).to_pylist()
    assert [run["status"] for run in runs] == ["completed"] * 3
    assert verify(result) == []


@pytest.mark.long("a study of its own load")
def test_any_command_is_a_load(tmp_path: Path) -> None:
    """One launch prints its latencies, the next does not."""
    script, result = tmp_path / "ask", tmp_path / "result"
    lines = 'echo started; for n in 1 2 3 4 5; do echo "latency_us $((1000 * n))"; sleep 0.01; done'
    script.write_text(f"#!/bin/sh\nif mkdir {tmp_path}/turn; then {lines}; else rmdir {tmp_path}/turn; fi\n")
    script.chmod(0o755)
    text = SHORT.format(policies='"none", "nice"', warm_up_ms=100)
    file = tmp_path / "study.toml"
    file.write_text(re.sub("(?m)^(loads|work_us).*\n", "", text), encoding="utf-8")
    words = ["--study-file", str(file), "--client", str(script), "--out", str(result)]
    assert execute(["run", "colocation", *words]) == 0
    trials = read_recorded(result, read_plan(result / "plan.json"))
    assert [trial.status for trial in trials] == ["completed"] * 3
    for trial in trials:
        assert trial.load == "ask"
        assert trial.trial is not None
        requests = trial.trial.requests
        took_us = (requests["received_ns"] - requests["intended_ns"]) / 1000
        printed = took_us % 1000 == 0
        assert np.count_nonzero(printed) > 5 * np.count_nonzero(~printed) / 2 > 0
        assert set(took_us[printed]) <= {1000, 2000, 3000, 4000, 5000}
    page = (result / "report.html").read_text(encoding="utf-8")
    assert "A closed loop" in page
    # It asks when it likes, so that nothing is said of whether it asked in time.
    assert not read_findings(result / "findings.json").of("client_error")
    assert verify(result) == []


def test_a_load_that_fails_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = study_file(tmp_path, "none")
    text = Path(file).read_text(encoding="utf-8")
    Path(file).write_text(re.sub("(?m)^(loads|work_us).*\n", "", text), encoding="utf-8")
    words = ["--study-file", file, "--client", "false", "--out", str(tmp_path / "result")]
    assert execute(["run", "colocation", *words]) == RUNS_FAILED
    assert "false` has ended with exit status: 1" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.needs_sched_ext_guest
@pytest.mark.timeout(400)
def test_in_a_guest_equal_trials_leave_equal_bytes(tmp_path: Path) -> None:
    require_sched_ext_guest()
    policies = ("none", "be") if scheduler_program() is not None else ("none",)
    result = tmp_path / "result"
    file = study_file(tmp_path, *policies, warm_up_ms=300)
    words = ["--study-file", file, "--in-vm", "--vm-time", "instructions"]
    assert execute(["run", "colocation", *words, "--out", str(result)]) == 0
    plan = read_plan(result / "plan.json")
    trials = {trial.cell: trial for trial in read_recorded(result, plan)}
    assert all((trial.status, trial.problem) == ("completed", "") for trial in trials.values())
    assert plan.twin is not None
    first, twin = plan.twin
    for name in ("requests.bin", "samples.bin", "guest.json"):
        assert (trials[first].folder / name).read_bytes() == (trials[twin].folder / name).read_bytes()
    if "be" in policies:
        (class_trial,) = (trial for trial in trials.values() if trial.policy == "be")
        assert class_trial.trial is not None
        assert class_trial.trial.scheduler["counters"]["scheduling_events"] > 0
    assert verify(result) == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--policies", "none,luck"], USAGE, "`none`"),
        (["--loads", "0"], USAGE, "--loads"),
        (["--loads", "high"], USAGE, "whole numbers"),
        (["--in-vm", "--cpus", "0"], USAGE, "--vcpus"),
        (["--cpus", "60000"], USAGE, "may not use"),
        (["--kind", "lottery"], USAGE, "`pool`"),
        (["--long-share", "many"], USAGE, "percentage"),
    ],
)
def test_wrong_requests_say_what_is_allowed(
    words: list[str], code: int, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert execute(["run", "colocation", *words, "--out", str(tmp_path / "result")]) == code
    told = capfd.readouterr().err
    assert said in told
    assert "Traceback" not in told
