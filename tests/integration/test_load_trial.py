"""The trials that `steelyard-load` conducts: their files, their settings, and that nothing is left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from steelyard.run.programs import load_program
from steelyard.studies.colocation.trial import FORMAT, Trial, read_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.timing

CPUS: Final = sorted(os.sched_getaffinity(0))
V1_CPU: Final = Path("/sys/fs/cgroup/cpu")
needs_v1_groups = pytest.mark.skipif(
    not (V1_CPU / "cpu.shares").exists() or os.geteuid() != 0,
    reason="needs the cpu controller of cgroup version 1, and root",
)


def plan_of(**changes: Any) -> dict[str, Any]:
    plan: dict[str, Any] = {
        "format": FORMAT,
        "seed": 3,
        "cpus": [CPUS[0]],
        "client_cpus": [CPUS[-1]],
        "service": {"kind": "pool", "threads": 2, "work_iterations": 200_000, "work_us": 0},
        "client": {"rate_per_s": 200.0, "arrivals": "poisson", "connections": 2, "closed_loop": 0},
        "best_effort": {"kind": "resize", "jobs": 2, "threads": 1},
        "phases": {
            "warm_up_ms": 100,
            "baseline_ms": 300,
            "best_effort_ms": 500,
            "recovery_ms": 300,
            "drain_limit_ms": 5000,
        },
        "policy": {"name": "idle", "best_effort_class": "idle"},
        "groups": None,
        "groups_version": 1,
    }
    for place, value in changes.items():
        plan[place] = {**plan[place], **value} if isinstance(value, dict) else value
    return plan


def conduct(folder: Path, plan: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command_of(folder, plan), check=False, capture_output=True, text=True, timeout=60)


def command_of(folder: Path, plan: dict[str, Any]) -> list[str]:
    path = folder / "trial.json"
    path.write_text(json.dumps(plan), encoding="utf-8")
    return [str(load_program()), "trial", "--plan", str(path), "--out", str(folder)]


def trial_of(folder: Path, plan: dict[str, Any]) -> Trial:
    answer = conduct(folder, plan)
    assert (answer.returncode, answer.stderr) == (0, "")
    return read_trial(folder)


@contextlib.contextmanager
def conducting(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command) as conductor:
        try:
            yield conductor
        finally:
            conductor.kill()


def wait_until(is_so: Callable[[], bool], limit_s: float = 20.0) -> None:
    end = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_every_request_is_recorded_and_phases_are_kept(tmp_path: Path) -> None:
    # Jobs of the service's own class: a busy machine may starve others for the whole of their phase.
    policy = {"name": "batch", "best_effort_class": "batch"}
    trial = trial_of(tmp_path, plan_of(policy=policy, phases={"best_effort_ms": 2000}))
    requests, header = trial.requests, trial.header
    classes = {entry["setting"]: entry["value"] for entry in header["applied"]}
    assert (classes["best_effort_0_class"], classes["best_effort_1_class"]) == ("batch", "batch")
    assert header["is_complete"] is True
    assert header["missing"] == []
    assert np.array_equal(requests["seq"], np.arange(len(requests)))
    assert np.all(np.diff(requests["intended_ns"].astype(np.int64)) >= 0)
    for earlier, later in (
        ("intended_ns", "sent_ns"),
        ("sent_ns", "started_ns"),
        ("started_ns", "finished_ns"),
        ("finished_ns", "received_ns"),
    ):
        assert np.all(requests[earlier] <= requests[later]), (earlier, later)
    stamps = [header[name] for name in ("start_ns", "best_effort_start_ns", "best_effort_stop_ns", "end_ns")]
    assert stamps == sorted(stamps)
    assert stamps[1] >= stamps[0] + 400_000_000
    ends = trial.iterations["end_ns"]
    assert len(ends) > 0
    assert set(trial.iterations["job"]) <= {0, 1}
    assert np.all(ends > header["best_effort_start_ns"])
    assert np.all(np.diff(trial.samples["time_ns"].astype(np.int64)) > 0)
    for name in ("service_cpu_ns", "best_effort_cpu_ns", "busy_ns"):
        assert np.all(np.diff(trial.samples[name].astype(np.int64)) >= 0)
    # Each answered request has cost the service its work; what is sampled must hold it.
    assert trial.samples["service_cpu_ns"][-1] > 0.5 * header["work_ns"] * len(requests)
    assert trial.samples["best_effort_cpu_ns"][-1] > 0


def test_the_seed_decides_when_requests_are_due(tmp_path: Path) -> None:
    def offsets(name: str, seed: int) -> list[int]:
        folder = tmp_path / name
        folder.mkdir()
        plan = plan_of(seed=seed, best_effort={"jobs": 0}, phases={"best_effort_ms": 0, "recovery_ms": 0})
        trial = trial_of(folder, plan)
        return (trial.requests["intended_ns"] - trial.header["start_ns"]).tolist()  # type: ignore[no-any-return]

    assert offsets("first", 5) == offsets("second", 5)
    assert offsets("other", 6) != offsets("third", 7)


def test_long_requests_take_longer(tmp_path: Path) -> None:
    trial = trial_of(tmp_path, plan_of(service={"long_share": 0.3, "long_factor": 20.0}))
    took = (trial.requests["finished_ns"] - trial.requests["started_ns"]).astype(np.int64)
    is_long = trial.requests["kind"] == 1
    assert 0.1 < is_long.mean() < 0.5
    # Disturbances only ever add: the shortest of the long ones has at least its work.
    assert took[is_long].min() > 10 * took[~is_long].min()


def test_the_web_service_asks_its_second_tier_for_long_requests(tmp_path: Path) -> None:
    service = {"kind": "web", "long_share": 0.3, "long_factor": 10.0}
    trial = trial_of(tmp_path, plan_of(service=service, client={"rate_per_s": 100.0}))
    client = trial.header["client"]
    assert client["answered"] == client["scheduled"] == len(trial.requests)
    assert (client["wrong_results"], client["unexpected_answers"]) == (0, 0)
    parts = {entry["setting"] for entry in trial.header["applied"]}
    assert {"service_cpus", "service_moderation_cpus", "client_cpus"} <= parts
    took = (trial.requests["finished_ns"] - trial.requests["started_ns"]).astype(np.int64)
    is_long = trial.requests["kind"] == 1
    assert took[is_long].min() > 5 * took[~is_long].min()


def test_a_closed_loop_hides_what_requests_wait_before_they_are_sent(tmp_path: Path) -> None:
    # One client and more work than a CPU can do: each request is sent when the one before is answered.
    service = {"work_iterations": 2_000_000}
    client = {"rate_per_s": 1000.0, "closed_loop": 1}
    plan = plan_of(service=service, client=client, best_effort={"jobs": 0}, phases={"drain_limit_ms": 1000})
    trial = trial_of(tmp_path, plan)
    sent = trial.requests[trial.requests["received_ns"] > 0]
    assert 0 < len(sent) < len(trial.requests)
    assert np.all(sent["sent_ns"][1:] >= sent["received_ns"][:-1])
    hidden = trial.header["client"]["latency_from_send"]["p50_ns"]
    assert trial.header["client"]["latency"]["p50_ns"] > 3 * hidden


def test_a_plan_that_cannot_be_is_refused(tmp_path: Path) -> None:
    answer = conduct(tmp_path, plan_of(policy={"service_class": "round-robin"}))
    assert answer.returncode == 2
    assert '`policy.service_class` is `"round-robin"`; allowed: other, batch, idle, fifo' in answer.stderr
    assert not (tmp_path / "header.json").exists()


def test_a_policy_that_cannot_be_set_is_told_and_not_measured(tmp_path: Path) -> None:
    policy = {"name": "weights", "service_weight": 10_000, "best_effort_weight": 1}
    (tmp_path / "groups").mkdir()
    answer = conduct(tmp_path / "groups", plan_of(policy=policy))
    assert answer.returncode == 3
    assert (
        "`service_weight` could not be set, so the policy was not measured: `groups` is null" in answer.stderr
    )
    trial = read_trial(tmp_path / "groups")
    assert trial.header["is_complete"] is False
    assert [entry["setting"] for entry in trial.header["missing"]] == ["service_weight", "best_effort_weight"]
    answer = conduct(tmp_path, plan_of(policy={"scheduler": ["/bin/false"]}))
    assert answer.returncode == 3
    unfinished = read_trial(tmp_path)
    assert unfinished.header["is_complete"] is False
    assert [entry["setting"] for entry in unfinished.header["missing"]] == ["scheduler"]
    assert len(unfinished.requests) == 0


def test_an_interrupted_trial_keeps_what_it_has_and_ends_its_parts(tmp_path: Path) -> None:
    samples = tmp_path / "samples.bin"
    with conducting(command_of(tmp_path, plan_of(phases={"recovery_ms": 60_000}))) as conductor:
        wait_until(lambda: samples.exists() and samples.stat().st_size > 48 * 10)
        parts = children_of(conductor.pid)
        assert len(parts) == 4
        conductor.terminate()
        assert conductor.wait(20) == 128 + signal.SIGTERM
    assert not any(Path(f"/proc/{part}").exists() for part in parts)
    trial = read_trial(tmp_path)
    assert trial.header["is_complete"] is False
    assert np.count_nonzero(trial.requests["received_ns"]) > 10
    assert len(trial.requests) > 10_000


def children_of(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    return [int(word) for word in text.split()]


@pytest.fixture
def groups() -> Iterator[Path]:
    folder = V1_CPU / f"steelyard-test-{os.getpid()}"
    folder.mkdir()
    yield folder
    for group in folder.glob("steelyard-trial-*"):
        group.rmdir()
    folder.rmdir()


@needs_v1_groups
def test_groups_are_set_and_removed_also_after_a_kill(tmp_path: Path, groups: Path) -> None:
    policy = {"name": "weights", "service_weight": 200, "best_effort_weight": 1, "best_effort_class": None}
    plan = plan_of(policy=policy, groups=str(groups), phases={"recovery_ms": 60_000})
    with conducting(command_of(tmp_path, plan)) as conductor:
        wait_until(lambda: len(list(groups.glob("*/cpu.shares"))) == 2)
        wait_until((tmp_path / "samples.bin").exists)
        service = next(groups.glob("*-service"))
        jobs = next(groups.glob("*-jobs"))
        assert (service / "cpu.shares").read_text(encoding="ascii") == "2048\n"
        assert (jobs / "cpu.shares").read_text(encoding="ascii") == "10\n"
        parts = children_of(conductor.pid)
        conductor.kill()
    wait_until(lambda: not any(Path(f"/proc/{part}").exists() for part in parts))
    assert len(list(groups.glob("steelyard-trial-*"))) == 2
    following = tmp_path / "following"
    following.mkdir()
    trial = trial_of(following, plan_of(policy={**policy, "best_effort_cpu_idle": True}, groups=str(groups)))
    assert trial.header["missing"] == []
    assert trial.header["groups_left_over"] == 2
    assert list(groups.glob("steelyard-trial-*")) == []


def test_a_real_time_service_is_set_or_told_as_missing(tmp_path: Path) -> None:
    # A few per cent of a CPU for less than a second, beneath the throttling that the program demands.
    policy = {"name": "fifo", "service_class": "fifo", "service_priority": 5, "best_effort_class": None}
    plan = plan_of(policy=policy, phases={"baseline_ms": 200, "best_effort_ms": 200, "recovery_ms": 100})
    answer = conduct(tmp_path, plan)
    if answer.returncode == 3:
        assert "does not throttle real-time tasks" in answer.stderr
        return
    header = read_trial(tmp_path).header
    told = {entry["setting"]: entry for entry in header["applied"] + header["missing"]}
    assert {"service_class", "client_class", "conductor_class"} <= told.keys()
    assert told["service_class"]["value"] == {"class": "fifo", "priority": 5}
    assert told["client_class"]["value"] == {"class": "fifo", "priority": 6}
    assert answer.returncode == (3 if header["missing"] else 0)


def park(*words: str) -> dict[str, Any]:
    command = [str(load_program()), "park", "--cpus", str(CPUS[0]), "--before-ms", "200", *words]
    answer = subprocess.run(command, check=False, capture_output=True, text=True, timeout=100)
    assert answer.returncode in {0, 4}, answer.stderr
    return json.loads(answer.stdout)  # type: ignore[no-any-return]


def test_parked_work_ends_with_the_right_answer_and_its_connection_alive() -> None:
    # In the class of the hogs, so that a busy machine does not park it for minutes.
    found = park("--seconds", "3", "--units", "250", "--class", "other")
    assert found["is_right"] is True
    works = {work["kind"]: work for work in found["works"]}
    assert works.keys() == {"cpu", "tcp", "file"}
    for work in works.values():
        assert work["units_before"] + work["units_during"] + work["units_after"] == 250
    link = works["tcp"]
    assert link["keep_alive"]["expires_s"] < 3
    assert link["is_connection_alive"] is True
    # Somebody has answered since the connection would have been given up.
    assert link["last_ack_before_end_of_park_ms"] < 3000


def test_a_parked_process_can_be_killed() -> None:
    found = park("--seconds", "1", "--kill", "2")
    times = found["killed_ns"]
    assert len(times) == 2
    assert all(time_ns is not None and time_ns > 0 for time_ns in times)
    assert found["is_right"] is all(time_ns < found["limit_ns"] for time_ns in times)
