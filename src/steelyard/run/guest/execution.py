"""One program in a guest of its own: booted for it, ended with it."""

from __future__ import annotations

import os
import re
import select
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import RunError, UsageError
from steelyard.run.guest.initramfs import Entry, guest_entries, is_static_program, pack
from steelyard.run.guest.kernel import bootable, find_image
from steelyard.run.guest.machine import Architecture, CgroupLayout, Machine, choose_accelerator
from steelyard.run.programs import launcher_path, workloads_path

if TYPE_CHECKING:
    from typing import TextIO

PLACE: Final = "steelyard/exec"
READ_BYTES: Final = 65536
VERDICT: Final = re.compile(r"^steelyard\.exec: (?:exit status: (\d+)|signal: (\d+).*)\s*$")
SIGNAL_BASE: Final = 128
TOOLS: Final = ("sh", "sleep")


@dataclass(frozen=True, slots=True)
class GuestJob:
    """What to run in a guest.

    Parameters
    ----------
    program : Path
        Static executable.
    arguments : tuple of str
        Without blanks and commas, which the kernel's command line cannot carry.
    cgroup : str
        Layout of the guest's control groups: ``v2``, ``v1``, ``hybrid``, ``none``.
    cpus : int
        Virtual CPUs.
    timeout_s : float
        The guest is ended after this time [s].
    memory_mib : int
        Memory of the guest [MiB].
    environment : tuple of str
        ``NAME=VALUE`` for the program, without blanks and quotes.
    tools : Path or None
        Static busybox that gives the guest a shell.
    files : tuple of Entry
        Further files and folders of the guest.
    architecture : str
        Processor of the guest: ``x86_64``, or ``aarch64``, which is always emulated.
    programs : Path or None
        Folder of the guest's programs, launcher among them; this machine's own if left out.
    """

    program: Path
    arguments: tuple[str, ...] = ()
    cgroup: CgroupLayout = "v2"
    cpus: int = 1
    timeout_s: float = 300.0
    memory_mib: int = 1024
    environment: tuple[str, ...] = ()
    tools: Path | None = None
    files: tuple[Entry, ...] = ()
    architecture: Architecture = "x86_64"
    programs: Path | None = None


def execute_in_guest(job: GuestJob, output: TextIO) -> int:
    """Boot a guest, run the program, write what it writes.

    Returns
    -------
    int
        Its exit code, or 128 plus the number of the signal that ended it.

    Raises
    ------
    UsageError
        If the program is not static, or an argument cannot be passed on.
    CapabilityError
        If there is no guest kernel.
    RunError
        If the guest does not end in time, or ends without saying how the program ended.
    """
    extra = [Entry.file(PLACE, _static_content(job.program), 0o755), *_tools(job.tools), *job.files]
    _check_words(job.arguments + job.environment)
    archive = pack(guest_entries(job.programs or launcher_path().parent, workloads_path(), extra))
    accelerator, _ = choose_accelerator() if job.architecture == "x86_64" else ("tcg", "")
    with tempfile.TemporaryDirectory(prefix="steelyard-guest-") as folder:
        initramfs = Path(folder) / "initramfs.cpio"
        initramfs.write_bytes(archive)
        words = ",".join([f"/{PLACE}", *job.arguments])
        machine = Machine(
            kernel=bootable(find_image(job.architecture)),
            initramfs=initramfs,
            console=Path("/dev/stdout"),
            accelerator=accelerator,
            architecture=job.architecture,
            name=f"steelyard-guest-{os.getpid()}",
            cgroup=job.cgroup,
            # The kernel gives what it does not know itself to its first process as environment.
            parameters=(f"steelyard.exec={words}", *job.environment),
            cpus=job.cpus,
            memory_mib=job.memory_mib,
        )
        return _watch(machine.command(), job.timeout_s, output)


def _tools(busybox: Path | None) -> list[Entry]:
    if busybox is None:
        return []
    links = [Entry.link(f"bin/{name}", "busybox") for name in TOOLS]
    return [Entry.folder("bin"), Entry.file("bin/busybox", _static_content(busybox), 0o755), *links]


def _check_words(words: tuple[str, ...]) -> None:
    for word in words:
        if re.search(r"[\s,\"]", word):
            message = f"cannot pass `{word}` to a guest: blanks, commas and quotes are not allowed"
            raise UsageError(message, code="usage.guest-argument")


def _static_content(program: Path) -> bytes:
    try:
        content = program.read_bytes()
    except OSError as error:
        message = f"cannot read `{program}`: {error.strerror}"
        raise UsageError(message, code="usage.guest-program") from error
    if not is_static_program(content):
        message = f"`{program}` is not a static program, and the guest has no libraries"
        raise UsageError(
            message, hint="build it with `-C target-feature=+crt-static`", code="usage.guest-program"
        )
    return content


def _watch(command: list[str], timeout_s: float, output: TextIO) -> int:
    """Copy the console until the machine ends; give the program's exit code."""
    machine = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert machine.stdout is not None  # noqa: S101 - a pipe
    deadline = time.monotonic() + timeout_s
    rest, code = "", None
    try:
        while True:
            ready, _, _ = select.select([machine.stdout], [], [], max(deadline - time.monotonic(), 0.0))
            if not ready:
                message = f"the guest did not end within {timeout_s:g} s"
                hint = "raise --timeout; its last lines are above"
                raise RunError(message, hint=hint, code="run.guest-timeout")
            chunk = os.read(machine.stdout.fileno(), READ_BYTES)
            if not chunk:
                break
            *lines, rest = (rest + chunk.decode(errors="replace")).split("\n")
            for line in lines:
                found = VERDICT.match(line)
                if found is None:
                    output.write(line.rstrip("\r") + "\n")
                else:
                    code = int(found[1]) if found[1] is not None else SIGNAL_BASE + int(found[2])
            output.flush()
    finally:
        machine.kill()
        machine.wait()
        machine.stdout.close()
    if code is None:
        message = "the guest ended without saying how the program ended"
        raise RunError(message, hint="its last lines are above", code="run.guest")
    return code
