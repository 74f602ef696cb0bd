"""The launcher on 64-bit ARM: its own tests, the sandbox's attacks and its error, on an emulated machine.

A test executable is one static program that is test, launcher and test program in turn.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from fixtures.launcher_tests import built_launcher_tests
from steelyard.errors import CapabilityError, RunError
from steelyard.run.guest.execution import GuestJob, execute_in_guest
from steelyard.run.guest.initramfs import Entry
from steelyard.run.guest.kernel import find_image

ROOT = Path(__file__).parents[2]
TARGET = "aarch64-unknown-linux-gnu"
TIME_SCALE = 20
SMALLEST_CASES = {"launcher": 90, "sandbox": 50, "hostile": 30}
APPLETS = ("cat", "chmod", "cp", "echo", "head", "hostname", "ls", "pwd", "seq", "sort", "touch", "true")
EMULATION_COST = "the_filter_does_not_slow_system_calls"
"""Compares times of system calls on the processor itself."""
LARGEST_ERROR_SHARE = 0.5
"""Of what starting a program takes in emulation: it grows with the load of the machine as the error does."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs_vm,
    pytest.mark.needs_aarch64,
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def busybox() -> Path:
    try:
        found = find_image("aarch64").parent / "busybox"
    except CapabilityError as error:
        pytest.skip(f"{error.message}: {error.hint}")
    if shutil.which("qemu-system-aarch64") is None or not found.exists():
        pytest.skip("needs qemu-system-aarch64 and a busybox of ARM: make deps-aarch64")
    return found


@pytest.fixture(scope="module")
def programs(busybox: Path) -> dict[str, Path]:
    """Give what is built for ARM: the tests of the launcher, and the launcher itself."""
    compiler = ROOT / "scripts" / "aarch64.sh"
    asked = subprocess.run([compiler, "true"], check=False, capture_output=True, text=True, cwd=ROOT)
    if asked.returncode != 0:
        pytest.skip(asked.stderr)
    return built_launcher_tests(TARGET, compiler=(compiler,))


@pytest.fixture
def run_in_guest(programs: dict[str, Path], busybox: Path, tmp_path: Path, patience_s: float):
    """Give a function that runs a program on the emulated machine and gives what it wrote."""
    shutil.copy2(programs["steelyard-launch"], tmp_path)
    links = [Entry.link(f"bin/{name}", "busybox") for name in APPLETS]

    def run(program: str, *arguments: str) -> str:
        said = io.StringIO()
        job = GuestJob(
            programs[program],
            arguments=arguments,
            cpus=2,
            timeout_s=patience_s,
            environment=("STEELYARD_EXPECT_CGROUP=v2", f"STEELYARD_TIME_SCALE={TIME_SCALE}"),
            tools=busybox,
            files=(*links, Entry.link("usr/bin/id", "/bin/busybox")),
            architecture="aarch64",
            programs=tmp_path,
        )
        try:
            code = execute_in_guest(job, said)
        except RunError as error:
            pytest.fail(f"{error.message}; it wrote\n{said.getvalue()[-6000:]}")
        assert code == 0, said.getvalue()[-6000:]
        return said.getvalue()

    return run


@pytest.mark.parametrize("program", SMALLEST_CASES)
def test_the_tests_of_the_launcher_pass(program: str, run_in_guest) -> None:
    said = run_in_guest(program, "--color=never", f"--skip={EMULATION_COST}")
    verdict = next(line for line in said.splitlines() if line.startswith("test result: ok."))
    assert int(verdict.split()[3]) >= SMALLEST_CASES[program], verdict
    # Else the machine knows no 32-bit programs, and the filter's answer to their calls was not tried.
    assert program != "sandbox" or "call-by-arm: ended by the filter" in said


@pytest.mark.parametrize("isolation", ["bare", "sandbox"])
def test_stamps_and_meters_agree_with_a_program_that_knows_its_truth(isolation: str, run_in_guest) -> None:
    said = run_in_guest(
        "steelyard-launch", "calibrate", "--isolation", isolation, "--duration-ms", "300", "--runs", "20"
    )
    found = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    assert found["cgroup"] == "v2"
    for metric in ("wall_error_ns", "cpu_error_ns"):
        assert abs(found[metric]["median"]) < LARGEST_ERROR_SHARE * found["launch_of_true_ns"]["median"], (
            found
        )
