from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from steelyard.cli import execute
from steelyard.cli.measuring import doctor as verb
from steelyard.cli.measuring.doctor_page import Examination, Technology, show
from steelyard.run.isolation.interface import Availability
from steelyard.run.machine.calibration import Calibration, OutsideError, Spread
from steelyard.run.machine.host import Capability, NoiseFact, Verdict, read_host

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def found() -> Examination:
    """Give what a doctor could have found: this machine, with findings that do not depend on it."""
    host = replace(
        read_host(),
        capabilities=(
            Capability("perf.task-clock", "exact CPU time", available=True, mechanism="m", reason="whole"),
            Capability("cgroup", "accounting", available=True, mechanism="m", reason="version 2"),
            Capability(
                "tracefs",
                "tracepoints",
                available=False,
                mechanism="m",
                reason="not mounted",
                repair="mount -t tracefs tracefs /sys/kernel/tracing",
            ),
        ),
        noise=(
            NoiseFact(
                "swap", "swap", Verdict.FAIL, "12 MiB in use", "A page read back stops the run.", "swapoff -a"
            ),
            NoiseFact("turbo", "turbo, boost", Verdict.UNKNOWN, "no interface", "With turbo the rate moves."),
            NoiseFact("aslr", "address randomisation", Verdict.PASS, "off", "Layouts differ."),
        ),
    )
    spread = Spread(60, 65_123.0, 9_876.0, 64_000.0, 80_000.0, 90_000.0)
    calibration = Calibration(
        host_id=host.fingerprint.host_id,
        kernel_release="6.1",
        measured_utc="2026-01-02T03:04:05.678+00:00",
        work_ms=50,
        clocks=host.clocks,
        errors=(OutsideError("bare", spread, spread, spread, "perf_record", "v2", 3, ()),),
        missing={"sandbox": "no namespaces"},
        gate={"quiet": True},
    )
    technologies = (
        Technology("bare", "no isolation", Availability.yes("1")),
        Technology("docker", "a container", Availability.no("no engine", "systemctl start docker")),
    )
    return Examination(host, technologies, calibration)


def _page(found: Examination) -> str:
    stream = io.StringIO()
    show(found, Console(file=stream, width=80, no_color=True, highlight=False))
    return stream.getvalue()


def test_the_page_says_what_can_be_done_what_cannot_and_what_repairs_it(found: Examination) -> None:
    text = _page(found)
    for heading in ("This machine", "Steelyard's own error here", "Can do", "Cannot do", "Noise"):
        assert f"\n{heading}\n" in text
    assert "mount -t tracefs tracefs /sys/kernel/tracing" in text
    assert "isolation docker: a container" in text
    assert "repair: systemctl start docker" in text
    assert "65.1 us" in text
    assert "sandbox: not measured: no namespaces" in text
    assert "FAIL    swap: 12 MiB in use" in text
    assert "A page read back stops the run." in text
    assert "UNKNOWN turbo, boost: no interface" in text
    assert "PASS    address randomisation" in text
    assert text.endswith("1 of 2 isolation technologies work\nnoise: 1 FAIL, 0 CAUTION, 1 UNKNOWN, 1 PASS\n")


def test_the_page_fits_80_columns_without_colour(found: Examination) -> None:
    text = _page(found)
    assert "\x1b" not in text
    wide = [line for line in text.splitlines() if len(line) > 80 and "repair:" not in line]
    assert wide == []
    assert all(line == line.rstrip() or "launch" in line for line in text.splitlines())


def test_without_a_calibration_the_page_says_how_to_measure_one(found: Examination) -> None:
    assert "measure: steelyard doctor --calibrate" in _page(replace(found, calibration=None))


def test_the_document_holds_everything(
    found: Examination, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verb, "examine", lambda *, measure: found if not measure else None)
    assert execute(["doctor", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "steelyard/doctor/1"
    assert document["host"]["fingerprint"]["host_id"] == found.host.fingerprint.host_id
    assert document["isolation"][1]["repair"] == "systemctl start docker"
    assert document["calibration"]["errors"][0]["wall"]["count"] == 60


@pytest.mark.slow
def test_this_machine_can_be_examined(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["doctor"]) == 0
    assert "isolation technologies work" in capsys.readouterr().out


def test_nothing_to_restore_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("steelyard.run.machine.tuning.machine_state_folder", lambda: tmp_path)
    assert execute(["restore"]) == 0
    assert capsys.readouterr().out == "nothing to restore\n"
    assert execute(["restore", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
