from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import CapabilityError, DataError, UsageError
from steelyard.run.machine import tuning as tuning_module
from steelyard.run.machine.journal import find_journals, read_journal
from steelyard.run.machine.settings import (
    SETTINGS,
    Setting,
    interrupts_away_from,
    read_value,
    same_value,
    setting,
)
from steelyard.run.machine.tuning import Outcome, Tuning, idle_states_held

ASLR = "proc/sys/kernel/randomize_va_space"
HUGE = "sys/kernel/mm/transparent_hugepage/enabled"
GOVERNOR = "sys/devices/system/cpu/cpufreq/policy{}/scaling_governor"

TUNE_AND_WAIT = """
import sys, time
from pathlib import Path
from steelyard.run.machine.tuning import Tuning
with Tuning(Path(sys.argv[1]), Path(sys.argv[2])).applied(sys.argv[3:]) as tuned:
    print(len(tuned.changed), flush=True)
    time.sleep(60)
"""


def _fake(tmp_path: Path) -> tuple[Path, Tuning]:
    root = tmp_path / "host"
    for path, value in {ASLR: "2", GOVERNOR.format(0): "powersave", GOVERNOR.format(4): "schedutil"}.items():
        place = root / path
        place.parent.mkdir(parents=True)
        place.write_text(value + "\n")
    return root, Tuning(root, tmp_path / "state")


def _kill_in_the_middle(root: Path, state: Path, *names: str) -> None:
    command = [sys.executable, "-c", TUNE_AND_WAIT, str(root), str(state), *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert int(child.stdout.readline()) >= 1
        child.send_signal(signal.SIGKILL)
        child.wait(timeout=10)


def test_values_are_set_inside_and_restored_outside(tmp_path: Path) -> None:
    root, tuning = _fake(tmp_path)
    with tuning.applied(["aslr", "governor"]) as tuned:
        assert (root / ASLR).read_text() == "0"
        assert (root / GOVERNOR.format(4)).read_text() == "performance"
        assert [change.original for change in tuned.changed] == ["2", "powersave", "schedutil"]
        assert len(list(find_journals(tmp_path / "state"))) == 1
    assert (root / ASLR).read_text() == "2"
    assert (root / GOVERNOR.format(0)).read_text() == "powersave"
    assert (root / GOVERNOR.format(4)).read_text() == "schedutil"
    assert not list(find_journals(tmp_path / "state"))
    assert {one.outcome for one in tuning.restorations} == {Outcome.RESTORED}


def test_the_journal_is_on_disk_before_the_first_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, tuning = _fake(tmp_path)
    seen: list[str] = []
    original = tuning_module.write_value

    def watch(path: Path, value: str) -> str | None:
        journal = read_journal(next(find_journals(tmp_path / "state")))
        seen.extend(change.original for change in journal.changes)
        return original(path, value)

    monkeypatch.setattr(tuning_module, "write_value", watch)
    with tuning.applied(["aslr"]):
        assert seen == ["2"]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_restores(tmp_path: Path, kind: type[BaseException]) -> None:
    root, tuning = _fake(tmp_path)
    with pytest.raises(kind), tuning.applied(["aslr"]):
        raise kind
    assert (root / ASLR).read_text() == "2"


def test_a_killed_process_is_restored_from_its_journal(tmp_path: Path) -> None:
    root, tuning = _fake(tmp_path)
    _kill_in_the_middle(root, tmp_path / "state", "aslr", "governor")
    assert (root / ASLR).read_text() == "0"
    done = tuning.restore_abandoned()
    assert {one.outcome for one in done} == {Outcome.RESTORED}
    assert (root / ASLR).read_text() == "2"
    assert (root / GOVERNOR.format(4)).read_text() == "schedutil"
    assert tuning.restore_abandoned() == []


def test_two_killed_processes_are_undone_in_reverse_order(tmp_path: Path) -> None:
    root, tuning = _fake(tmp_path)
    _kill_in_the_middle(root, tmp_path / "state", "aslr")
    (root / ASLR).write_text("1")
    _kill_in_the_middle(root, tmp_path / "state", "aslr")
    outcomes = [one.outcome for one in tuning.restore_abandoned()]
    # The second puts back the 1 it found, which the first did not write and therefore leaves alone.
    assert outcomes == [Outcome.RESTORED, Outcome.FOREIGN]
    assert (root / ASLR).read_text() == "1"


def test_what_somebody_else_changed_stays_and_is_reported(tmp_path: Path) -> None:
    root, tuning = _fake(tmp_path)
    _kill_in_the_middle(root, tmp_path / "state", "aslr")
    (root / ASLR).write_text("1")
    (restoration,) = tuning.restore_abandoned()
    assert (restoration.outcome, restoration.found) == (Outcome.FOREIGN, "1")
    assert (root / ASLR).read_text() == "1"


def test_a_living_study_is_left_alone(tmp_path: Path) -> None:
    root, tuning = _fake(tmp_path)
    with tuning.applied(["aslr"]):
        assert Tuning(root, tmp_path / "state").restore_abandoned() == []
        assert (root / ASLR).read_text() == "0"


def test_a_reboot_makes_a_journal_void(tmp_path: Path) -> None:
    root, tuning = _fake(tmp_path)
    _kill_in_the_middle(root, tmp_path / "state", "aslr")
    path = next(find_journals(tmp_path / "state"))
    path.write_text(path.read_text().replace(read_journal(path).boot_id, "another-boot"))
    assert [one.outcome for one in tuning.restore_abandoned()] == [Outcome.REBOOTED]
    assert (root / ASLR).read_text() == "0"


def test_a_damaged_journal_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    _, tuning = _fake(tmp_path)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "1-1-0.json").write_text('{"changes": 3}')
    with pytest.raises(DataError, match=r"1-1-0\.json"):
        tuning.restore_abandoned()


def test_what_is_missing_or_as_wanted_is_said_and_needs_no_journal(tmp_path: Path) -> None:
    root, tuning = _fake(tmp_path)
    (root / ASLR).write_text("0\n")
    with tuning.applied(["aslr", "turbo"]) as tuned:
        assert tuned.kept == ("aslr",)
        assert [(one.setting, one.reason) for one in tuned.refused] == [
            ("turbo", "this host has no such setting")
        ]
        assert not (tmp_path / "state").exists()


def test_a_refused_value_is_a_recorded_reason(tmp_path: Path) -> None:
    root, _ = _fake(tmp_path)
    # A setting that this machine's kernel refuses: the largest CPU time of perf is a percentage.
    path = Path("/proc/sys/kernel/perf_cpu_time_max_percent")
    if not os.access(path, os.W_OK):
        pytest.skip("needs the rights of root: /proc/sys cannot be written")
    before = path.read_text()
    refusing = Setting("x", "", (str(path.relative_to("/")),), "101")
    with Tuning(Path("/"), tmp_path / "state").applied([refusing]) as tuned:
        assert tuned.changed == ()
        assert [one.reason for one in tuned.refused] == ["Invalid argument"]
    assert path.read_text() == before
    assert root.exists()


def test_without_a_journal_nothing_is_changed(tmp_path: Path) -> None:
    root, _ = _fake(tmp_path)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(CapabilityError, match="journal"), Tuning(root, blocked / "state").applied(["aslr"]):
        pass
    assert (root / ASLR).read_text() == "2\n"


def test_unknown_settings_are_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="`turbos` is not a machine setting; allowed: governor, turbo"):
        setting("turbos")


def test_interrupts_go_to_the_other_cpus(tmp_path: Path) -> None:
    root = tmp_path / "host"
    for number, cpus in {"24": "0-3", "25": "1", "default_smp_affinity": "f"}.items():
        place = root / "proc" / "irq" / number
        place.mkdir(parents=True)
        (place / "smp_affinity_list").write_text(cpus)
    with Tuning(root, tmp_path / "state").applied([interrupts_away_from([0, 1], range(4))]) as tuned:
        assert (root / "proc/irq/24/smp_affinity_list").read_text() == "2,3"
        assert len(tuned.changed) == 2
    assert (root / "proc/irq/25/smp_affinity_list").read_text() == "1"
    with pytest.raises(UsageError, match="none is left"):
        interrupts_away_from([0, 1], range(2))


@given(st.sets(st.integers(0, 300), min_size=1))
def test_two_spellings_of_a_cpu_list_are_one_value(cpus: set[int]) -> None:
    listed = ",".join(map(str, sorted(cpus)))
    ranges = ",".join(f"{cpu}-{cpu}" for cpu in sorted(cpus))
    assert same_value(listed, ranges)
    assert not same_value(listed, f"{listed},301")


def test_every_setting_can_be_shown_here() -> None:
    states = Tuning().show()
    assert [state.name for state in states] == list(SETTINGS)
    for state in states:
        assert (state.unavailable is None) == bool(state.values)


@pytest.mark.needs_root
@pytest.mark.parametrize(("name", "path"), [("aslr", ASLR), ("transparent-huge-pages", HUGE)])
def test_this_machine_is_restored_after_a_kill(tmp_path: Path, name: str, path: str) -> None:
    file = Path("/") / path
    before = read_value(file)
    if before is None or not os.access(file, os.W_OK):
        pytest.skip(f"needs the rights of root: `{file}` cannot be written")
    changed = "always" if name.startswith("transparent") else "1"
    try:
        if before == SETTINGS[name].wanted:
            file.write_text(changed)
        expected = read_value(file)
        _kill_in_the_middle(Path("/"), tmp_path, name)
        assert read_value(file) == SETTINGS[name].wanted
        (restoration,) = Tuning(Path("/"), tmp_path).restore_abandoned()
        assert restoration.outcome is Outcome.RESTORED
        assert read_value(file) == expected
    finally:
        file.write_text(before)
    assert read_value(file) == before


def test_idle_states_are_held_or_the_reason_is_given(tmp_path: Path) -> None:
    with idle_states_held(tmp_path) as reason:
        assert reason is not None
        assert "cpu_dma_latency" in reason
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "cpu_dma_latency").write_bytes(b"\xff" * 4)
    with idle_states_held(tmp_path) as reason:
        assert reason is None
    assert (tmp_path / "dev" / "cpu_dma_latency").read_bytes() == bytes(4)
