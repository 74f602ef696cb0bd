"""The command line of a virtual machine, which accelerator really works here, and the rate of its counter."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import platform
import subprocess
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from steelyard.run.guest.initramfs import cached_archive, guest_entries
from steelyard.run.guest.kernel import QUIET_PARAMETERS, bootable, find_image, guest_folder
from steelyard.run.isolation.attempt import first_line
from steelyard.run.programs import launcher_path, workloads_path

if TYPE_CHECKING:
    from collections.abc import Sequence

Accelerator = Literal["kvm", "tcg"]
Architecture = Literal["x86_64", "aarch64"]
CgroupLayout = Literal["v2", "v1", "hybrid", "none"]

EMULATOR: Final = "qemu-system-x86_64"
REPAIR: Final = "sudo apt-get install qemu-system-x86"
BOARDS: Final[dict[Architecture, tuple[str, str, str]]] = {
    "x86_64": ("pc", "max", "ttyS0"),
    # Without the algorithm of its own, emulated pointer authentication takes half of the time.
    "aarch64": ("virt", "max,pauth-impdef=on", "ttyAMA0"),
}
"""The board, its emulated processor and its first port."""
MEMORY_MIB: Final = 512
KVM_DEVICE: Final = Path("/dev/kvm")
KVM_BOOT_S: Final = 6.0
"""Software emulation needs 2 s; hardware that needs more is none."""
ACCELERATOR_ARGUMENTS: Final[dict[Accelerator, str]] = {"kvm": "kvm", "tcg": "tcg,thread=single"}
"""Emulated processors that each have a thread lose timer interrupts and lock up a busy guest."""
PORT: Final = "ttyS1"
"""The guest's end of the line protocol; its kernel writes to the first port, which is logged."""

_READ_COUNTER: Final = bytes.fromhex("0f31 48c1e220 4809d0 c3")  # rdtsc; shl rdx,32; or rax,rdx; ret
_COUNTER_WINDOW_NS: Final = 100_000_000
_COUNTER_ATTEMPTS: Final = 20


@dataclass(frozen=True, slots=True)
class Machine:
    """One virtual machine.

    Parameters
    ----------
    kernel : Path
        Unpacked or packed kernel.
    initramfs : Path
        Initial file system.
    console : Path
        Log of the guest's kernel.
    accelerator : str
        ``kvm`` or ``tcg``.
    name : str
        Shown in the process list; unique.
    control : Path or None
        Socket of the machine protocol.
    cgroup : str
        Layout of the guest's control groups.
    parameters : tuple of str
        Further kernel parameters.
    cpus : int
        Virtual CPUs.
    memory_mib : int
        Memory [MiB].
    architecture : str
        ``x86_64``, or ``aarch64``, which is emulated and has no port but the first.
    """

    kernel: Path
    initramfs: Path
    console: Path
    accelerator: Accelerator
    name: str
    control: Path | None = None
    cgroup: CgroupLayout = "v2"
    parameters: tuple[str, ...] = ()
    cpus: int = 1
    memory_mib: int = MEMORY_MIB
    architecture: Architecture = "x86_64"

    def command(self, host_cpus: Sequence[int] | None = None) -> list[str]:
        """Give the command; the machine ends with its parent, its protocol is standard input and output."""
        command = ["setpriv", "--pdeathsig", "KILL"]
        if host_cpus is not None:
            command += ["taskset", "--cpu-list", ",".join(map(str, host_cpus))]
        board, processor, _ = BOARDS[self.architecture]
        command += [
            f"qemu-system-{self.architecture}",
            "-name",
            self.name,
            "-M",
            board,
            "-accel",
            ACCELERATOR_ARGUMENTS[self.accelerator],
        ]
        command += [
            "-cpu",
            "host" if self.accelerator == "kvm" else processor,
            "-smp",
            str(self.cpus),
            "-m",
            str(self.memory_mib),
        ]
        command += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
        command += ["-serial", f"file:{self.console}"]
        if self.architecture == "x86_64":
            command += ["-serial", "stdio"]
        if self.control is not None:
            command += ["-qmp", f"unix:{self.control},server=on,wait=off"]
        command += ["-kernel", str(self.kernel), "-initrd", str(self.initramfs)]
        return [*command, "-append", self.kernel_parameters()]

    def kernel_parameters(self) -> str:
        """Give the guest's kernel command line."""
        words = [
            f"console={BOARDS[self.architecture][2]}",
            "quiet",
            "panic=-1",
            "reboot=t",
            *QUIET_PARAMETERS,
            "random.trust_cpu=on",
        ]
        words += _clock_parameters(self.accelerator) if self.architecture == "x86_64" else []
        words += [f"steelyard.cgroup={self.cgroup}", *self.parameters]
        return " ".join([*words, "--", "agent", f"/dev/{PORT}"])


@cache
def _clock_parameters(accelerator: Accelerator) -> list[str]:
    """Give what makes the guest's clocks run at the right rate.

    Hardware acceleration has a clock of its own. Under emulation the guest is told the counter's
    rate, or, where it is not known, is made to use a timer that the emulator keeps exactly.
    """
    if accelerator == "kvm":
        return []
    rate = counter_khz()
    return (
        ["clocksource=hpet"] if rate is None else [f"tsc_early_khz={rate}", "tsc=reliable", "clocksource=tsc"]
    )


def guest_files(programs: Path, workloads: Path) -> tuple[Path, Path]:
    """Give the kernel and the initial file system with the static programs of two folders.

    Raises
    ------
    CapabilityError
        If there is no guest kernel.
    """
    return bootable(find_image()), cached_archive(guest_entries(programs, workloads))


def choose_accelerator() -> tuple[Accelerator, str]:
    """Give the accelerator that boots the guest, and how it was found.

    The device of the hardware accelerator may exist and still not boot a guest within reason
    (nested virtualisation), so the guest is really booted. The answer holds until the host is
    restarted or its emulator changes, and is kept in the cache.
    """
    if not os.access(KVM_DEVICE, os.R_OK | os.W_OK):
        return "tcg", f"software emulation, `{KVM_DEVICE}` cannot be used"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    key = f"{boot} {first_line([EMULATOR, '--version'])}"
    note = guest_folder() / "accelerator.json"
    try:
        known = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    if known.get("key") != key:
        known = {"key": key, "kvm": _boots_with_kvm()}
        note.write_text(json.dumps(known), encoding="utf-8")
    if known["kvm"]:
        return "kvm", "hardware virtualisation"
    return "tcg", f"software emulation, `{KVM_DEVICE}` is there but boots no guest within {KVM_BOOT_S:g} s"


def _boots_with_kvm() -> bool:
    kernel, initramfs = guest_files(launcher_path().parent, workloads_path())
    name = f"steelyard-kvm-{os.getpid()}"
    machine = Machine(kernel, initramfs, Path("/dev/null"), "kvm", name)
    process = subprocess.Popen(
        machine.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        output, _ = process.communicate(input=b'{"request":"quit"}\n', timeout=KVM_BOOT_S)
    except subprocess.TimeoutExpired:
        return False
    else:
        return b'"hello"' in output
    finally:
        process.kill()
        process.wait()


def counter_khz() -> int | None:
    """Measure the rate of the host's time stamp counter [kHz]; ``None`` where there is none to read.

    Software emulation gives a guest the host's counter. A guest calibrates it against an emulated timer
    and errs by a factor (1001 instead of 2600 MHz was seen) when the host is loaded meanwhile; then all
    its clocks run wrong. So the rate is measured here and told to the guest.

    Two readings 100 ms apart, each the tightest of 20 between two readings of the clock: the error
    is below 10 ppm even on a loaded host.
    """
    if platform.machine() != "x86_64":
        return None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return None
    page.write(_READ_COUNTER)
    anchor = ctypes.c_char.from_buffer(page)
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(anchor))
    first_ns, first = _tightest(read)
    time.sleep(_COUNTER_WINDOW_NS / 1e9)
    last_ns, last = _tightest(read)
    del read, anchor
    page.close()
    return round((last - first) * 1_000_000 / (last_ns - first_ns))


def _tightest(read: ctypes._FuncPointer) -> tuple[int, int]:
    """Give the time [ns] and the counter of the reading with the shortest bracket."""
    best: tuple[int, int, int] | None = None
    for _ in range(_COUNTER_ATTEMPTS):
        before = time.monotonic_ns()
        counter = read()
        after = time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) // 2, counter)
    assert best is not None  # noqa: S101 - at least one attempt
    return best[1], best[2]
