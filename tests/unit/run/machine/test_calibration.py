from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from steelyard.errors import CapabilityError
from steelyard.model.run_spec import Sandbox
from steelyard.run.machine import calibration as module
from steelyard.run.machine.calibration import (
    ISOLATIONS,
    Spread,
    calibrate,
    latest_calibration,
    valid_calibration,
)
from steelyard.run.machine.gate import Gate, Patience

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timing

HASTY = Gate(patience=Patience(window_s=0.05, bound_s=0.05))


def test_the_spread_of_known_values() -> None:
    spread = Spread.of([5, 1, 3, 2, 4])
    assert (spread.count, spread.mean_ns, spread.median_ns, spread.largest_ns) == (5, 3, 3, 5)
    assert spread.sd_ns == pytest.approx(2.5**0.5)
    assert spread.p95_ns == pytest.approx(4.8)


def test_the_launcher_is_measured_against_a_program_that_knows_its_truth(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    calibration = calibrate(
        5, work_ms=10, progress=lambda done, total: seen.append((done, total)), gate=HASTY, folder=tmp_path
    )
    assert seen[-1] == (10, 10)
    assert {error.isolation for error in calibration.errors} | set(calibration.missing) == set(ISOLATIONS)
    bare = calibration.errors[0]
    assert bare.isolation == "bare"
    assert bare.wall.count == bare.cpu.count == bare.launch.count == 5
    # The program's first and last instruction lie inside the launcher's window; how far depends on load.
    assert 0 < bare.wall.median_ns < 5_000_000
    assert 0 < bare.launch.median_ns < 1_000_000_000
    assert latest_calibration(calibration.host_id, tmp_path) == calibration


def test_the_newest_whole_calibration_counts(tmp_path: Path) -> None:
    first = calibrate(5, work_ms=1, gate=HASTY, folder=tmp_path)
    second = calibrate(5, work_ms=1, gate=HASTY, folder=tmp_path)
    assert second.measured_utc > first.measured_utc
    assert latest_calibration(second.host_id, tmp_path) == second
    (tmp_path / second.host_id / "2999-01-01T000000.000Z.json").write_text("{damaged")
    assert latest_calibration(second.host_id, tmp_path) == second
    assert latest_calibration("0" * 16, tmp_path) is None


@pytest.mark.long("three calibrations")
def test_a_study_measures_what_no_stored_calibration_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STUDY_RUNS", 10)
    calls: list[tuple[int, int]] = []

    def count(done: int, total: int) -> None:
        calls.append((done, total))

    calibrate(5, work_ms=1, gate=HASTY, folder=tmp_path)
    measured = valid_calibration(progress=count, folder=tmp_path)
    assert calls, "five runs are too few for a study"
    assert all(error.wall.count == 10 for error in measured.errors)
    calls.clear()
    assert valid_calibration(progress=count, folder=tmp_path) == measured
    assert not calls, "one of today holds"
    for stored in (tmp_path / measured.host_id).glob("*.json"):
        stored.write_text(stored.read_text().replace(measured.kernel_release, "0.1"))
    assert valid_calibration(progress=count, folder=tmp_path).kernel_release == measured.kernel_release
    assert calls, "one of another kernel does not"


def test_an_isolation_that_does_not_work_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Sandbox", lambda **_: Sandbox(root="/no/such/tree"))
    calibration = calibrate(5, work_ms=1, gate=HASTY, folder=tmp_path)
    assert [error.isolation for error in calibration.errors] == ["bare"]
    assert "/no/such/tree" in calibration.missing["sandbox"]
    monkeypatch.setattr(module, "ISOLATIONS", ("sandbox",))
    with pytest.raises(CapabilityError, match="cannot calibrate any isolation"):
        calibrate(5, work_ms=1, gate=HASTY, folder=tmp_path)


def test_a_calibration_that_cannot_be_stored_is_an_error_with_a_hint(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(CapabilityError, match="cannot store the calibration as") as caught:
        calibrate(5, work_ms=1, gate=HASTY, folder=blocked / "state")
    assert caught.value.hint is not None
