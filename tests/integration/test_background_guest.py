"""Best-effort commands and their governor on both versions of control groups, in a guest of their own."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest

from steelyard.errors import CapabilityError
from steelyard.run.guest.execution import GuestJob, execute_in_guest
from steelyard.run.guest.initramfs import Entry
from steelyard.run.guest.kernel import find_image
from steelyard.run.programs import govern_program

SCRIPT = Path(__file__).parents[1] / "fixtures" / "governed_guest.sh"


@pytest.mark.needs_vm
@pytest.mark.parametrize("layout", ["v2", "v1"])
def test_the_governor_throttles_parks_and_restores(layout: str) -> None:
    try:
        find_image()
    except CapabilityError as error:
        pytest.skip(error.message)
    busybox = shutil.which("busybox")
    if busybox is None or shutil.which("qemu-system-x86_64") is None:
        pytest.skip("needs busybox-static and qemu: make deps-isolation")
    said = io.StringIO()
    job = GuestJob(
        govern_program(),
        arguments=("background", "--", "/bin/sh", "/governed_guest.sh", layout),
        cgroup=layout,  # type: ignore[arg-type]
        timeout_s=90.0,
        memory_mib=512,
        # A kernel parameter: Debian's kernels have it off.
        environment=("psi=1",),
        tools=Path(busybox),
        files=(Entry.file("governed_guest.sh", SCRIPT.read_bytes(), 0o755),),
    )
    code = execute_in_guest(job, said)
    lines = said.getvalue().splitlines()
    assert not [line for line in lines if line.startswith("broken: ")], said.getvalue()
    assert "complete" in lines, said.getvalue()
    assert code == 0
    checks = [line for line in SCRIPT.read_text().splitlines() if line.startswith("check ")]
    assert sum(line.startswith("held: ") for line in lines) == len(checks)
