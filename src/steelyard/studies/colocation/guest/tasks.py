"""Tasks in a guest: booted once, they are run one after the other and what each leaves comes back.

In deterministic mode the guest's time is the number of instructions (`steelyard.run.guest.virtual_time`), its
entropy is seeded and it reads nothing from outside while it runs: two executions of the same tasks leave the
same bytes. Everything arrives in files of the emulator, which never make it wait.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, RunError, UsageError
from steelyard.run.guest.initramfs import Entry, is_static_program, pack
from steelyard.run.guest.kernel import QUIET_PARAMETERS
from steelyard.run.guest.machine import choose_accelerator
from steelyard.run.guest.virtual_time import INSTRUCTION_NS, clock_arguments
from steelyard.studies.colocation.guest.sched_ext import (
    find_emulator,
    find_sched_ext_kernel,
    kernel_configuration,
)
from steelyard.studies.colocation.guest.task_init import FOLDERS, TASKS, task_entries
from steelyard.studies.colocation.guest.task_stream import TaskOutcome, TaskStream, last_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
CONSOLE: Final = "console.log"
POLL_S: Final = 0.1
START: Final = "2026-01-01T00:00:00"
PARAMETERS: Final = (
    *("console=ttyS0", "quiet", "panic=-1", "reboot=t", "nokaslr", "tsc=reliable"),
    *QUIET_PARAMETERS,
    # Each session would be a group of its own, and what a nice level weighs would end at it.
    "noautogroup",
)
PORT: Final = (
    # Without `ioeventfd` the device works while the virtual CPU waits: no other thread decides when.
    *("-device", "virtio-serial-pci,ioeventfd=off,max_ports=2"),
    *("-device", "virtserialport,chardev=stream,nr=1"),
)
MANY_CPUS: Final = 256
"""The older of the emulator's machines has a byte for the number of a CPU."""
PANIC: Final = re.compile(r"^.*(Kernel panic.*)$", re.MULTILINE)

_PROGRAMS: Final = "steelyard/bin"
_LIBRARY: Final = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_LOADER_TIMEOUT_S: Final = 30


@dataclass(frozen=True, slots=True)
class GuestTask:
    """One task.

    Parameters
    ----------
    name : str
        Name of its folder; letters, digits, ``.``, ``_``, ``-``.
    script : str
        For a POSIX shell, in the folder ``$OUT``: what it leaves there comes back, and what it writes to
        standard output and error is `LOG` there. Control groups go below ``$GROUPS_FOLDER``.
    files : Mapping
        Content of further files beside the script, which are at ``$TASK``.
    limit_s : float
        The task is ended after so much of the guest's time [s].
    """

    name: str
    script: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    limit_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Guest:
    """The machine the tasks are run in.

    Parameters
    ----------
    programs : Mapping
        From the name below ``/steelyard/bin`` to a program on this machine; libraries come along.
    cpus : int
        Virtual CPUs, 1 to 64.
    sockets : int
        Processors that they are on, each with a last-level cache of its own; divides the CPUs.
    possible_cpus : int or None
        CPUs that the kernel makes room for, in further sockets; None: as many as `cpus`.
    threads : int
        Hardware threads of each core; divides the CPUs of a socket. An emulator's share nothing.
    has_nodes : bool
        Each socket has a part of the memory; else all of it is one node.
    memory_mib : int
        Memory [MiB].
    is_deterministic : bool
        Time is counted in instructions. False: hardware virtualisation in real time.
    instruction_ns : int
        What an instruction takes at most while all CPUs are busy, where time is counted in them [ns].
    seed : int
        Of the guest's entropy.
    timeout_s : float
        The guest is ended after so much time of this machine [s].
    kernel : Path or None
        Kernel; None: the one with sched_ext that ``make deps-colocation`` fetched.
    """

    programs: Mapping[str, Path]
    cpus: int = 2
    sockets: int = 1
    possible_cpus: int | None = None
    threads: int = 1
    has_nodes: bool = False
    memory_mib: int = 1024
    is_deterministic: bool = True
    instruction_ns: int = INSTRUCTION_NS
    seed: int = 1
    timeout_s: float = 1800.0
    kernel: Path | None = None

    def __post_init__(self) -> None:
        """Refuse CPUs that do not fill their sockets and cores, and fewer possible ones than there are."""
        if self.sockets < 1 or self.cpus % self.sockets:
            message = f"{self.cpus} CPUs cannot be spread evenly over {self.sockets} sockets"
            hint = "give a number of sockets that divides the CPUs"
            raise UsageError(message, hint=hint, code="usage.guest-sockets")
        if self.threads < 1 or self.cpus // self.sockets % self.threads:
            message = f"{self.cpus // self.sockets} CPUs of a socket in cores of {self.threads} threads"
            hint = "give a number of threads that divides the CPUs of a socket"
            raise UsageError(message, hint=hint, code="usage.guest-threads")
        possible = self.cpus if self.possible_cpus is None else self.possible_cpus
        if possible < self.cpus or possible % (self.cpus // self.sockets):
            message = f"{possible} possible CPUs in sockets of {self.cpus // self.sockets}"
            hint = f"allowed: full sockets, and {self.cpus} at least"
            raise UsageError(message, hint=hint, code="usage.guest-cpus")


def execute_tasks(
    tasks: Sequence[GuestTask],
    out: Path,
    guest: Guest,
    *,
    progress: Callable[[str, TaskOutcome | None], None] | None = None,
) -> list[TaskOutcome]:
    """Boot a guest, run the tasks one after the other, bring back what each left.

    Parameters
    ----------
    tasks : sequence of GuestTask
        In order; names differ.
    out : Path
        Folder that gets a folder per task, as soon as the task has ended, and the guest's `CONSOLE`.
    guest : Guest
        The machine.
    progress : callable or None
        Called with a name and None when a task starts, with its outcome when it has ended.

    Raises
    ------
    CapabilityError
        If there is no kernel, emulator, busybox, or hardware virtualisation where it is asked for.
    UsageError
        If a name or a program cannot be used.
    RunError
        If the guest's kernel panics, or the guest does not end in time; what had ended is in `out`.
    """
    _check_names(tasks)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="steelyard-guest-") as scratch:
        initramfs = Path(scratch) / "initramfs.cpio"
        kernel = guest.kernel or find_sched_ext_kernel()
        programs = [*_program_entries(guest.programs), *_configuration(kernel)]
        initramfs.write_bytes(pack(task_entries(_busybox(), programs, _task_files(tasks))))
        stream, console = Path(scratch) / "stream", out / CONSOLE
        for path in (stream, console):
            path.write_bytes(b"")
        command, environment = guest_command(replace(guest, kernel=kernel), initramfs, console, stream)
        reader = TaskStream(stream, out)
        _watch(command, environment, guest.timeout_s, console, reader, progress)
    return reader.outcomes


def guest_command(
    guest: Guest, initramfs: Path, console: Path, stream: Path
) -> tuple[list[str], dict[str, str]]:
    """Give the emulator's command line and environment; the machine ends with its parent.

    Raises
    ------
    CapabilityError
        As `execute_tasks`.
    """
    emulator = find_emulator()
    command = ["setpriv", "--pdeathsig", "KILL", *emulator.words()]
    possible = guest.possible_cpus or guest.cpus
    command += ["-name", f"steelyard-tasks-{os.getpid()}", "-M", "pc" if possible < MANY_CPUS else "q35"]
    if guest.is_deterministic:
        command += ["-accel", "tcg,thread=single", "-cpu", "max,-rdrand,-rdseed"]
        command += [*clock_arguments(guest.cpus, guest.instruction_ns), "-seed", str(guest.seed)]
        command += ["-rtc", f"base={START},clock=vm"]
    else:
        accelerator, reason = choose_accelerator()
        if accelerator != "kvm":
            message = f"a guest in real time needs hardware virtualisation; here is {reason}"
            hint = "leave the guest deterministic, or use a machine with KVM"
            raise CapabilityError(message, hint=hint, code="capability.kvm")
        command += ["-accel", "kvm", "-cpu", "host"]
    each = guest.cpus // guest.sockets
    cores = f"cores={each // guest.threads},threads={guest.threads}"
    command += ["-smp", f"{guest.cpus},maxcpus={possible},sockets={possible // each},{cores}"]
    command += ["-m", str(guest.memory_mib)]
    for node in range(possible // each if guest.has_nodes else 0):
        size = guest.memory_mib * each // possible
        command += ["-object", f"memory-backend-ram,id=node{node},size={size}M"]
        first = node * each
        command += ["-numa", f"node,nodeid={node},cpus={first}-{first + each - 1},memdev=node{node}"]
    command += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    command += ["-serial", f"file:{console}", *PORT]
    command += ["-chardev", f"file,id=stream,path={stream}"]
    command += ["-kernel", str(guest.kernel or find_sched_ext_kernel()), "-initrd", str(initramfs)]
    return [*command, "-append", " ".join(PARAMETERS)], emulator.environment()


def _check_names(tasks: Sequence[GuestTask]) -> None:
    names = [task.name for task in tasks]
    wrong = [name for name in names if not NAME.fullmatch(name)]
    if wrong or len(set(names)) < len(names):
        message = f"names of tasks: {', '.join(f'`{name}`' for name in wrong) or 'one is there twice'}"
        hint = "letters, digits, `.`, `_`, `-`; each once"
        raise UsageError(message, hint=hint, code="usage.guest-task")


def _task_files(tasks: Sequence[GuestTask]) -> list[Entry]:
    entries = []
    for number, task in enumerate(tasks):
        place = f"{TASKS}/{number:05d}"
        script = f"TASK=/{place}\nexport TASK\n{task.script}\n"
        entries.append(Entry.folder(place))
        entries.append(Entry.file(f"{place}/task", f"{task.name} {task.limit_s:.0f}\n".encode()))
        entries.append(Entry.file(f"{place}/script", script.encode(), 0o755))
        entries += [Entry.file(f"{place}/{name}", content) for name, content in sorted(task.files.items())]
    return entries


def _configuration(kernel: Path) -> list[Entry]:
    """Give the kernel's configuration where programs look for it."""
    found = kernel_configuration(kernel)
    if found is None:
        return []
    release, content = found
    return [Entry.folder("boot"), Entry.file(f"boot/config-{release}", content)]


def _busybox() -> bytes:
    found = shutil.which("busybox")
    content = Path(found).read_bytes() if found else b""
    if not is_static_program(content):
        message = f"the guest needs a static busybox; here: {f'`{found}` is not static' if found else 'none'}"
        raise CapabilityError(message, hint="make deps-colocation", code="capability.busybox")
    return content


def _watch(
    command: list[str],
    environment: dict[str, str],
    timeout_s: float,
    console: Path,
    reader: TaskStream,
    progress: Callable[[str, TaskOutcome | None], None] | None,
) -> None:
    """Read the guest's stream until it ends."""
    deadline = time.monotonic() + timeout_s
    machine = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
    )
    assert machine.stderr is not None  # noqa: S101 - a pipe
    try:
        has_ended = False
        while not has_ended:
            has_ended = machine.poll() is not None
            for name, outcome in reader.read():
                if progress is not None:
                    progress(name, outcome)
            if time.monotonic() > deadline:
                message = f"the guest did not end within {timeout_s:g} s; {reader.state()}"
                hint = f"raise the limit; its console is `{console}`"
                raise RunError(message, hint=hint, code="run.guest-timeout")
            if not has_ended:
                time.sleep(POLL_S)
        said = machine.stderr.read()
    finally:
        machine.kill()
        machine.wait()
        machine.stderr.close()
    if not reader.is_complete:
        raise _ended_early(console, reader, said)


def _ended_early(console: Path, reader: TaskStream, said: str) -> RunError:
    text = console.read_text(encoding="utf-8", errors="replace")
    panic = PANIC.search(text)
    what = f"the guest's kernel stopped: {panic[1].strip()}" if panic else "the guest ended early"
    tail = last_lines(text if text.strip() else said)
    message = f"{what}; {reader.state()}\n{tail}"
    return RunError(message, hint=f"its console is `{console}`", code="run.guest")


def _program_entries(programs: Mapping[str, Path]) -> list[Entry]:
    """Give the programs by their names below ``/steelyard/bin``, and the libraries and folders they need."""
    entries = []
    libraries: set[Path] = set()
    for name, path in sorted(programs.items()):
        try:
            content = path.read_bytes()
        except OSError as error:
            message = f"cannot read `{path}`: {error.strerror}"
            raise UsageError(message, code="usage.guest-program") from error
        entries.append(Entry.file(f"{_PROGRAMS}/{name}", content, 0o755))
        if content.startswith(b"\x7fELF") and not is_static_program(content):
            libraries |= _libraries(path)
    folders: set[str] = set()
    for library in libraries:
        folders |= {str(parent)[1:] for parent in PurePosixPath(library).parents if str(parent) != "/"}
    entries += [Entry.folder(name) for name in sorted(folders - set(FOLDERS))]
    entries += [Entry.file(str(path)[1:], path.read_bytes(), 0o755) for path in sorted(libraries)]
    return entries


def _libraries(program: Path) -> set[Path]:
    """Give the libraries as the loader of this machine finds them."""
    command = ["/usr/bin/ldd", str(program)]
    answer = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_LOADER_TIMEOUT_S)
    missing = re.findall(r"^\s*(\S+) => not found", answer.stdout, re.MULTILINE)
    if answer.returncode != 0 or missing:
        message = f"cannot copy `{program}` into a guest: {', '.join(missing) or answer.stderr.strip()}"
        raise UsageError(message, hint="install its libraries", code="usage.guest-program")
    return {Path(found) for found in _LIBRARY.findall(answer.stdout)}
