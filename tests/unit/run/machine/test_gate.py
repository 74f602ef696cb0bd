from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from steelyard.errors import GateError, UsageError
from steelyard.run.machine.gate import LONGEST_WAIT, Decision, Gate, Observation, Patience, Policy, Thresholds
from steelyard.run.machine.host import Activity, CpuTicks, Pressure, PressureLine, Process, SwapActivity
from steelyard.run.machine.sensors import MachineSensors

TICK_NS = 10_000_000


pytestmark = pytest.mark.usefixtures("patient_gates")


class ScriptedSensors:
    """A machine whose next windows are written down: what happens in each, then quiet."""

    def __init__(self, *windows: dict[str, int], processes: tuple[Process, ...] = ()) -> None:
        self._windows = list(windows)
        self._listed = processes
        self.slept_s = 0.0
        self.study: str | None = None
        self._now = Activity(
            monotonic_ns=1,
            total=CpuTicks(),
            by_cpu={0: CpuTicks(), 1: CpuTicks()},
            tick_ns=TICK_NS,
            runnable_count=1,
            load=(0.0, 0.0, 0.0),
            pressure={"cpu": Pressure(PressureLine())},
            throttle_count=0,
        )

    def activity(self) -> Activity:
        return self._now

    def processes(self) -> tuple[Process, ...]:
        return self._listed

    def other_study(self) -> str | None:
        return self.study

    def start(self, process: Process) -> None:
        self._listed += (process,)

    def work(self, ticks: dict[int, int]) -> None:
        self._listed = tuple(replace(p, cpu_ticks=p.cpu_ticks + ticks.get(p.id, 0)) for p in self._listed)

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds
        event = self._windows.pop(0) if self._windows and seconds == 0.5 else {}
        own = event.get("own", 0)
        self._listed = tuple(
            replace(p, cpu_ticks=p.cpu_ticks + own) if p.id == os.getpid() else p for p in self._listed
        )
        now = self._now
        waited = now.pressure["cpu"].some.total_us + event.get("waited_us", 0)
        self._now = replace(
            now,
            monotonic_ns=now.monotonic_ns + int(seconds * 1e9),
            total=replace(
                now.total,
                user=now.total.user + event.get("user", 0),
                steal=now.total.steal + event.get("steal", 0),
            ),
            swap=SwapActivity(now.swap.pages_in + event.get("swapped", 0), 0),
            throttle_count=(now.throttle_count or 0) + event.get("throttled", 0),
            pressure={"cpu": Pressure(PressureLine(total_us=waited))},
        )


def _gate(sensors: ScriptedSensors, policy: Policy = Policy.RECORD) -> Gate:
    return Gate(patience=Patience(window_s=0.5, pause_s=1.0, bound_s=4.0), policy=policy, sensors=sensors)


def test_a_quiet_machine_passes_at_once() -> None:
    sensors = ScriptedSensors({"user": 2})
    seen = _gate(sensors).before()
    assert (seen.decision, seen.quiet, seen.attempts, seen.reasons) == (Decision.PASS, True, 1, ())
    assert seen.foreign_cpu_ratio == pytest.approx(0.02)
    assert sensors.slept_s == 0.5


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"user": 50}, "other processes use 50% of the CPU time"),
        ({"steal": 5}, "the hypervisor takes 5.0% of the CPU time"),
        ({"swapped": 1}, "1 pages were swapped"),
        ({"throttled": 2}, "2 thermal throttle events"),
        ({"waited_us": 100_000}, "tasks wait for a CPU 20% of the time"),
    ],
)
def test_each_disturbance_is_named_with_its_value(event: dict[str, int], words: str) -> None:
    seen = _gate(ScriptedSensors(event)).look()
    assert seen.decision is Decision.RETRY
    assert seen.reasons == (words,)


def test_a_passing_disturbance_is_waited_for() -> None:
    seen = _gate(ScriptedSensors({"user": 50}, {"user": 50})).before()
    assert (seen.quiet, seen.attempts, seen.waited_s) == (True, 3, 3.5)


def test_lasting_noise_is_recorded_by_default_and_waiting_is_bounded() -> None:
    sensors = ScriptedSensors(*[{"user": 50}] * 50)
    seen = _gate(sensors).before()
    assert (seen.decision, seen.quiet) == (Decision.PASS, False)
    assert sensors.slept_s <= 4.5
    stored = seen.as_dict()
    assert stored["quiet"] is False
    assert stored["foreign_cpu_ratio"] == pytest.approx(0.5)


def test_the_environment_limits_every_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LONGEST_WAIT, "0")
    sensors = ScriptedSensors(*[{"user": 50}] * 50)
    seen = _gate(sensors).before()
    assert (seen.quiet, seen.attempts, sensors.slept_s) == (False, 1, 0.5)
    for text in ("-1", "soon", "nan"):
        monkeypatch.setenv(LONGEST_WAIT, text)
        with pytest.raises(UsageError, match=rf"is `{text}`; allowed: seconds, from 0"):
            _gate(ScriptedSensors()).before()


def test_lasting_noise_is_an_error_under_the_strict_policy() -> None:
    with pytest.raises(GateError, match="within 4 s: other processes use 50%"):
        _gate(ScriptedSensors(*[{"user": 50}] * 50), Policy.STRICT).before()


def test_our_own_work_is_not_foreign() -> None:
    me = Process(os.getpid(), 1, "python", "R", 0, 5)
    seen = _gate(ScriptedSensors({"user": 50, "own": 50}, processes=(me,))).look()
    assert seen.quiet
    assert seen.foreign_cpu_ratio == 0


def test_leftovers_and_other_studies_are_named() -> None:
    processes = (
        Process(os.getpid(), 1, "python", "R", 0, 5),
        Process(900_001, os.getpid(), "steelyard-work", "R", 0, 5),
        Process(900_002, 1, "burn", "S", 0, 5, ("pids:/steelyard-77/run",)),
        Process(900_003, 1, "stress-ng", "S", 0, 5),
        Process(900_004, 1, "stress-ng", "Z", 0, 5),
    )
    sensors = ScriptedSensors(processes=processes)
    sensors.study = "process 5 (`x`)"
    seen = _gate(sensors).look()
    assert seen.reasons == (
        "left over from a study: burn (900002), stress-ng (900003)",
        "another study is measuring on this machine: process 5 (`x`)",
    )


def test_what_happened_during_the_batch_is_said_afterwards() -> None:
    sensors = ScriptedSensors({}, {"steal": 9, "user": 90})
    gate = _gate(sensors)
    before = gate.before()
    sensors.sleep(0.5)
    after = gate.after(before)
    assert after.decision is Decision.RETRY
    assert after.reasons == ("the hypervisor takes 9.0% of the CPU time",)
    assert after.foreign_cpu_ratio == 0, "no other process is listed"


def test_load_of_others_during_a_batch_is_told_from_our_own() -> None:
    processes = (
        Process(os.getpid(), 1, "python", "R", 0, 5),
        Process(900_001, os.getpid(), "steelyard-launc", "S", 0, 5),
        Process(900_002, 1, "steelyard-launc", "S", 0, 5, ("pids:/docker/1",)),
        Process(900_003, 1, "kernels", "R", 0, 5, ("pids:/docker/1/steelyard-9/run",)),
        Process(900_004, 1, "make", "R", 0, 5),
    )

    def batch(ticks: dict[int, int]) -> Observation:
        sensors = ScriptedSensors(processes=processes)
        gate = _gate(sensors)
        before = gate.before()
        sensors.sleep(1.0)
        sensors.work(ticks)
        return gate.after(before)

    ours = batch({os.getpid(): 60, 900_001: 60, 900_002: 60, 900_003: 60})
    assert (ours.decision, ours.reasons, ours.foreign_cpu_ratio) == (Decision.PASS, (), 0)
    theirs = batch({900_003: 60, 900_004: 50})
    assert theirs.decision is Decision.RETRY
    assert theirs.reasons == ("other processes used 25% of the CPU time: make (900004)",)
    assert batch({900_004: 10}).quiet, "5 % is admissible"


def test_a_busy_process_elsewhere_is_seen_on_this_machine() -> None:
    class Alone(MachineSensors):
        def other_study(self) -> str | None:
            return None

    # The busy child is taken out of our tree by naming a root that has no children.
    gate = Gate(
        Thresholds(foreign_cpu_ratio=0.1),
        patience=Patience(window_s=0.6, bound_s=0.6),
        own_roots=lambda: (),
        sensors=Alone(),
    )
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            seen = gate.look()
        finally:
            busy.kill()
    assert seen.foreign_cpu_ratio is not None
    assert seen.foreign_cpu_ratio > 0.1
    assert any("other processes use" in reason for reason in seen.reasons)
