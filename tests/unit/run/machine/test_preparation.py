from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from steelyard.errors import GateError, UsageError
from steelyard.run.machine.gate import Patience, Policy
from steelyard.run.machine.host import Process
from steelyard.run.machine.lock import MachineLock
from steelyard.run.machine.preparation import BatchGate, MachineRequest, machine_prepared
from steelyard.run.machine.tuning import Tuning
from unit.run.machine.test_gate import ScriptedSensors

if TYPE_CHECKING:
    from pathlib import Path

ASLR = "proc/sys/kernel/randomize_va_space"
pytestmark = pytest.mark.usefixtures("patient_gates")

HASTY = Patience(window_s=0.01, pause_s=0.01, bound_s=0.01)


def _host(tmp_path: Path) -> tuple[Path, Tuning]:
    file = tmp_path / "host" / ASLR
    file.parent.mkdir(parents=True)
    file.write_text("2\n")
    return file, Tuning(tmp_path / "host", tmp_path / "state")


def test_a_prepared_machine_is_locked_tuned_and_released(tmp_path: Path) -> None:
    file, tuning = _host(tmp_path)
    lock = tmp_path / "lock"
    with machine_prepared(
        MachineRequest(tunings=("aslr", "turbo"), patience=HASTY), tuning=tuning, lock=lock
    ) as machine:
        assert file.read_text() == "0"
        with pytest.raises(GateError, match="another study"), MachineLock(lock):
            pass
        machine.gate(0)
        machine.gate(1)
    assert file.read_text() == "2"
    changed, refused = machine.tuning_records()
    assert (changed["found"], changed["set"], changed["restored"]) == ("2", "0", True)
    assert refused["refused"] == "this host has no such setting"
    moments = [(record["batch"], record["moment"]) for record in machine.gate.records()]
    assert moments == [(0, "before"), (0, "after"), (1, "before"), (1, "after")]
    with MachineLock(lock):
        pass


def test_beside_another_study_nothing_is_tuned_and_the_strict_policy_refuses(tmp_path: Path) -> None:
    file, tuning = _host(tmp_path)
    lock = tmp_path / "lock"
    wishes = MachineRequest(tunings=("aslr",), patience=HASTY, lock_patience_s=0)
    with MachineLock(lock):
        with machine_prepared(wishes, tuning=tuning, lock=lock) as machine:
            assert file.read_text() == "2\n"
            assert "another study is measuring" in machine.tuning_records()[0]["refused"]
        strict = MachineRequest(Policy.STRICT, lock_patience_s=0)
        with (
            pytest.raises(GateError, match="another study"),
            machine_prepared(strict, tuning=tuning, lock=lock),
        ):
            pass


def test_everything_is_taken_back_after_an_error(tmp_path: Path) -> None:
    file, tuning = _host(tmp_path)
    wishes = MachineRequest(tunings=("aslr",), patience=HASTY)
    with pytest.raises(KeyboardInterrupt), machine_prepared(wishes, tuning=tuning, lock=tmp_path / "lock"):
        raise KeyboardInterrupt
    assert file.read_text() == "2"
    with MachineLock(tmp_path / "lock"):
        pass


def test_an_unknown_tuning_changes_and_locks_nothing(tmp_path: Path) -> None:
    file, tuning = _host(tmp_path)
    wishes = MachineRequest(tunings=("aslr", "warp"))
    with (
        pytest.raises(UsageError, match="`warp`"),
        machine_prepared(wishes, tuning=tuning, lock=tmp_path / "lock"),
    ):
        pass
    assert file.read_text() == "2\n"
    assert not (tmp_path / "lock").exists()


def test_waiting_on_a_noisy_machine_is_bounded_over_the_whole_study() -> None:
    sensors = ScriptedSensors(*[{"user": 50}] * 10_000)
    gate = BatchGate(MachineRequest(patience=Patience(window_s=0.5, pause_s=1.0, bound_s=8.0)), sensors)
    for batch in range(40):
        gate(batch)
        sensors.sleep(6.0)
    # One window per batch, and a geometric series of waits.
    assert sensors.slept_s - 40 * 6.0 < 40 * 0.5 + 2 * 8.0 + 6


def test_one_look_stands_for_the_batches_of_the_next_seconds() -> None:
    sensors = ScriptedSensors()
    gate = BatchGate(MachineRequest(patience=Patience(0.5, 1.0, 4.0)), sensors)
    for batch in range(4):
        gate(batch)
        sensors.sleep(2.0)
    attempts = [record["attempts"] for record in gate.records() if record["moment"] == "before"]
    assert attempts == [1, 0, 0, 1]


def test_a_strict_study_keeps_its_patience_and_ends_with_an_error() -> None:
    sensors = ScriptedSensors(*[{"user": 50}] * 1000)
    gate = BatchGate(MachineRequest(Policy.STRICT, patience=Patience(0.5, 1.0, 4.0)), sensors)
    with pytest.raises(GateError, match="did not become quiet within 4 s"):
        gate(0)


def test_workers_that_a_study_starts_in_containers_are_not_left_over() -> None:
    sensors = ScriptedSensors()
    gate = BatchGate(MachineRequest(patience=Patience(0.5, 1.0, 1.0)), sensors)
    gate(0)
    worker = Process(900_001, 1, "launcher", "S", 0, 7, ("pids:/docker/1/steelyard-9",))
    sensors.start(worker)
    sensors.sleep(10.0)
    gate(1)
    assert gate.records()[-1]["quiet"] is True
    assert gate.records()[-1]["attempts"] == 1
