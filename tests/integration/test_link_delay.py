"""The delay of a link, where the kernel has netem: in a virtual machine with a distribution's kernel."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest

from fixtures.guest_python import PLACE, entries, loader, modules_of_kernel, place_of, python
from steelyard.errors import CapabilityError, RunError
from steelyard.run.guest.execution import GuestJob, execute_in_guest
from steelyard.run.guest.initramfs import Entry
from steelyard.run.guest.kernel import find_image

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
MODULES = ("veth", "sch_htb", "sch_tbf", "sch_netem")
NEEDED = (
    *(
        "steelyard.studies.communication.transport.link",
        "steelyard.studies.communication.transport.link_options",
        "ctypes",
        "subprocess",
    ),
    *(
        "encodings.idna",
        "encodings.latin_1",
        "encodings.ascii",
        "json",
        "socket",
        "tempfile",
        "_posixsubprocess",
    ),
)
DELAYS_MS = (10, 60)
LOSSY = "rate=50mbit/delay=1ms/loss=2.5%/shaper=tbf/burst=8kb"


@pytest.mark.slow
@pytest.mark.needs_vm
@pytest.mark.needs_tc
@pytest.mark.timeout(360)
def test_a_round_trip_takes_longer_by_twice_the_delay(tmp_path: Path, patience_s: float) -> None:
    try:
        find_image()
    except CapabilityError as error:
        pytest.skip(error.message)
    busybox, ip, tc = (shutil.which(name) for name in ("busybox", "ip", "tc"))
    if busybox is None or ip is None or tc is None or shutil.which("qemu-system-x86_64") is None:
        pytest.skip("needs busybox-static, iproute2 and qemu: make deps-isolation")
    modules = modules_of_kernel(MODULES)
    if not modules:
        pytest.skip("needs the modules of the guest's kernel: make deps-isolation")
    programs = [FIXTURES / "guest_link.py", FIXTURES / "transfer.py"]
    packed = entries(NEEDED, (ip, tc), programs, tmp_path)
    packed += [Entry.folder("modules"), Entry.link("bin/cat", "busybox")]
    packed += [Entry.file("etc/hosts", b"127.0.0.1 localhost\n")]
    packed += [Entry.file(f"modules/{path.name}", path.read_bytes()) for path in modules]
    said = io.StringIO()
    # A comma separates the guest's arguments.
    wishes = [LOSSY, *(f"rate=100mbit/delay={delay}ms" for delay in DELAYS_MS)]
    job = GuestJob(
        loader(),
        arguments=(str(python()), *(str(place_of(path)) for path in programs), *wishes),
        timeout_s=patience_s,
        environment=(f"PYTHONPATH={PLACE}", "PATH=/bin:/usr/bin:/usr/sbin:/sbin"),
        tools=Path(busybox),
        files=tuple(packed),
    )
    try:
        code = execute_in_guest(job, said)
    except RunError as error:
        pytest.fail(f"{error.message}; it wrote\n{said.getvalue()[-6000:]}")
    assert code == 0, said.getvalue()[-6000:]
    lines = said.getvalue().splitlines()
    found = [json.loads(line.partition(" ")[2]) for line in lines if line.startswith("RESULT ")]
    assert [line for line in lines if line.startswith("LEFT ")] == ["LEFT []"]
    assert [one["facts"]["shaped"]["missing"] for one in found] == [[], [], []]
    lossy, *found = found
    assert lossy["facts"]["shaped"]["shaper"] == "tbf"
    assert lossy["facts"]["truth"]["loss_percent"] == pytest.approx(2.5)
    assert lossy["facts"]["truth"]["credit_bytes"] == pytest.approx(8192, abs=7)
    assert [one["facts"]["truth"]["delay_ns"] for one in found] == [each * 1_000_000 for each in DELAYS_MS]
    # The shortest of the round trips: emulation makes single ones longer, and every timer late by about
    # as much, so the delay is what two links differ by.
    short, long = (min(one["times_ns"]) for one in found)
    assert short >= 2 * DELAYS_MS[0] * 1_000_000
    assert long - short == pytest.approx(2 * (DELAYS_MS[1] - DELAYS_MS[0]) * 1_000_000, rel=0.02)
