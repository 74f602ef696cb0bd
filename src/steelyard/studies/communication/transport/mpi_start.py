"""Starts two MPI ranks and leaves nothing behind; run by its path, so it needs nothing but Python.

    python mpi_start.py [--started FILE] [--start-limit-s N] -- MPIRUN ARGUMENT...

An `mpirun` says in pages, and each in its own words, what a user needs in one line; when it is killed it
leaves folders and shared memory; and where a host cannot be reached it may wait for ever. Hence:

- ``{scratch}`` in an argument is a folder in memory for the library's own files. It is removed at the
  end; those of a killed start are removed by the next one.
- FILE appears when both ranks work: where it does not within N seconds, the start has failed.
- What the ranks say goes through: lines of JSON, and errors; so do those of Slurm, which tell that it lost a
  node. What else `mpirun` says is kept back, and put in one line if it fails.
- On SIGTERM and SIGINT, and whenever `mpirun` ends, everything it started ends.

Exit status: 0 done, 1 failed, 2 wrong request, 3 a rank was lost, 4 the ranks could not be started,
127 there is no such `mpirun`, 128 + N ended by signal N.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple, NoReturn

PR_SET_PDEATHSIG = 1  # SOURCE: linux/prctl.h
PR_SET_CHILD_SUBREAPER = 36
PREFIX = "steelyard-mpi-"
LOST, NOT_STARTED, NO_PROGRAM = 3, 4, 127
START_LIMIT_S = 30.0
HOPELESS_S = 5.0
"""Time to end by itself after a host could not be reached; `mpirun` of MPICH waits for ever."""
PATIENCE_S = 5.0
"""Time between asking processes to end and ending them."""
KEPT_BYTES = 1 << 16
START_TIME_FIELD = 22  # SOURCE: proc(5), /proc/PID/stat
COMMAND_FIELD = 2


class Cause(NamedTuple):
    """What a text of an `mpirun` means."""

    pattern: str
    status: int
    meaning: str
    hint: str


HOSTS_HINT = "write one host per line into the hostfile, and try `ssh HOST true` for each"
REPEAT_HINT = "what was stamped until then is kept: repeat the run"
OF_RANKS = re.compile(rb"\{")
ERRORS = re.compile(rb"error: |srun: error: (?!\S+: tasks? )")
"""Those of the ranks, and what `srun` says of itself, not how a rank ended."""
STARTER_HINT = "start them by `--starter mpirun`; `srun --mpi=list` tells the plug-ins there are"
CAUSES = (
    Cause(
        r"two ranks are needed[\s\S]*srun: error|srun: error[\s\S]*two ranks are needed",
        NOT_STARTED,
        "each rank is alone: this MPI and the plug-in of `srun --mpi` do not know each other",
        STARTER_HINT,
    ),
    Cause(
        r"Invalid MPI type|cannot find mpi plugin|Couldn't find the specified plugin name for mpi",
        NOT_STARTED,
        "Slurm has no such plug-in of `srun --mpi`",
        STARTER_HINT,
    ),
    Cause(
        r"srun: error: task (\d+) launch failed: (.*)",
        NOT_STARTED,
        "Slurm cannot start rank {0} on its node: {1}",
        STARTER_HINT,
    ),
    Cause(
        r"srun: error: Task launch for \S+ failed on node (\S+): (.*)",
        NOT_STARTED,
        "Slurm cannot start a rank on `{0}`: {1}",
        "`sinfo` tells how its node is",
    ),
    Cause(
        r"execve\(\): (\S+): No such file",
        NOT_STARTED,
        "the rank program `{0}` is not on every node",
        "let all nodes see `~/.cache/steelyard` of the node that built it",
    ),
    Cause(r"unable to open (?:the |)host ?file:\s*(\S+)", 2, "cannot open the hostfile `{0}`", HOSTS_HINT),
    Cause(
        r"parse error in the hostfile:\s*(\S+)\s+It occured on line number (\d+)",
        2,
        "cannot read line {1} of the hostfile `{0}`",
        HOSTS_HINT,
    ),
    Cause(r"error parsing hostfile", 2, "cannot read the hostfile", HOSTS_HINT),
    Cause(
        r"not enough slots available",
        2,
        "the hostfile has not enough places for two ranks",
        "give each of two hosts one slot: `HOST slots=1`",
    ),
    Cause(r"(?:ssh: |link agent: )(.+)", NOT_STARTED, "cannot reach a host: {0}", HOSTS_HINT),
    Cause(
        r"unable to reliably start one or more daemons",
        NOT_STARTED,
        "cannot reach a host, or it lacks this MPI",
        HOSTS_HINT,
    ),
    Cause(
        r"(?:unable to find the specified executable|execvp error on file|unable to launch the specified).*",
        NOT_STARTED,
        "the rank program is not on every host, at the same place",
        "copy the folder of the built program to the other host",
    ),
    Cause(
        r"srun: error: \S+: task (\d+): (Killed|Terminated|.*signal.*)",
        LOST,
        "rank {0} was lost: {1}",
        REPEAT_HINT,
    ),
    Cause(
        r"process rank (\d+) [\s\S]*exited\s+on signal (\d+)",
        LOST,
        "rank {0} was killed by signal {1}",
        REPEAT_HINT,
    ),
    Cause(
        r"PID (\d+) RUNNING AT [\s\S]*EXIT STRING: [^\n]*signal (\d+)",
        LOST,
        "{rank} was killed by signal {1}",
        REPEAT_HINT,
    ),
)


class Stop(Exception):  # noqa: N818 - a request
    """A signal asked for the end."""


def main(words: list[str]) -> int:
    """Start, watch, clear up; give the exit status."""
    parser = argparse.ArgumentParser(description="start two MPI ranks", allow_abbrev=False)
    parser.add_argument("--started", type=Path)
    parser.add_argument("--start-limit-s", type=float, default=START_LIMIT_S)
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args(words)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    scratch = make_scratch()
    try:
        command = [word.replace("{scratch}", str(scratch)) for word in asked.command]
        return _watch(command, scratch, asked.started, asked.start_limit_s)
    except Stop as stop:
        return 128 + int(stop.args[0])
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        end_descendants()
        shutil.rmtree(scratch, ignore_errors=True)


def _stop(number: int, _frame: object) -> NoReturn:
    raise Stop(number)


def _watch(command: list[str], scratch: Path, started: Path | None, limit_s: float) -> int:
    libc = ctypes.CDLL(None)
    if started is not None:
        started.unlink(missing_ok=True)
    try:
        # TMPDIR as well: not every release knows the parameter for its folder.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(scratch)},
            process_group=0,
            preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),  # noqa: PLW1509
        )
    except OSError as error:
        _say(f"cannot start `{command[0]}`: {error.strerror}", "make deps-communication")
        return NO_PROGRAM
    said, is_in_time = _listen(process, started, limit_s)
    if is_in_time:
        status = process.wait()
        return status if status == 0 else explain(status, said, started)
    cause = find_cause(said)
    what = cause[1] if cause else f"both ranks were not at work within {limit_s:g} s"
    _say(what, cause[2] if cause else "are both hosts reachable, and is the machine overloaded?")
    return NOT_STARTED


def _listen(process: subprocess.Popen[bytes], started: Path | None, limit_s: float) -> tuple[str, bool]:
    """Pass on what the ranks say until `mpirun` ends; give what was said, and whether it began in time."""
    text = b""
    end = None if started is None else time.monotonic() + limit_s
    is_hopeless = False
    with _Ears(process) as ears:
        while True:
            if end is not None and started is not None and started.exists():
                end = None
            if end is not None and time.monotonic() > end:
                return text.decode(errors="replace"), False
            # A helper that outlives `mpirun` holds its pipes open: its end is looked for as well.
            has_ended = process.poll() is not None
            part = ears.hear(0.0 if has_ended else 0.2)
            text = (text + part)[-KEPT_BYTES:]
            if end is not None and not is_hopeless and re.search(rb"(?:ssh|link agent): ", text):
                is_hopeless, end = True, min(end, time.monotonic() + HOPELESS_S)
            if has_ended and not part:
                return text.decode(errors="replace"), True


class _Ears:
    """Both outputs of a process; whole lines of the ranks go through, to where they belong."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._selector = selectors.DefaultSelector()
        self._rest: dict[int, bytes] = {}
        for pipe, passed_on, output in (
            (process.stdout, OF_RANKS, sys.stdout),
            (process.stderr, ERRORS, sys.stderr),
        ):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe, selectors.EVENT_READ, (passed_on, output))
                self._rest[pipe.fileno()] = b""

    def __enter__(self) -> _Ears:
        return self

    def __exit__(self, *_error: object) -> None:
        self._selector.close()

    def hear(self, limit_s: float) -> bytes:
        """Give what is said within some time, both outputs together."""
        if not self._selector.get_map():
            time.sleep(limit_s / 10)
            return b""
        heard = b""
        for key, _ in self._selector.select(limit_s):
            part = os.read(key.fd, KEPT_BYTES)
            if not part:
                self._selector.unregister(key.fileobj)
            heard += part
            passed_on, output = key.data
            *lines, self._rest[key.fd] = (self._rest[key.fd] + (part or b"\n")).split(b"\n")
            for line in lines:
                if passed_on.match(line):
                    output.write(line.decode(errors="replace") + "\n")
            output.flush()
        return heard


def explain(status: int, said: str, started: Path | None) -> int:
    """Say in one line why `mpirun` failed, unless a rank has said it; give the exit status."""
    folder = None if started is None else started.parent
    spoken = re.search(r"^error: ", said, re.MULTILINE)
    cause = find_cause(said, folder)
    if spoken and cause is None:
        return status if 0 < status <= LOST else 1
    if cause is not None:
        _say(*cause[1:])
        return cause[0]
    if status < 0:
        _say(f"`mpirun` was killed by signal {-status}", REPEAT_HINT)
        return LOST
    lines = [line for line in said.splitlines() if re.search(r"[a-z]{3}", line)]
    last = f": {lines[-1].strip()}" if lines else ""
    if started is not None and started.exists():
        _say(f"a rank was lost, `mpirun` ended with status {status}{last}", REPEAT_HINT)
        return LOST
    _say(f"`mpirun` ended with status {status}{last}", "try the same by hand with `mpirun -np 2 hostname`")
    return status if 0 < status <= LOST else 1


def find_cause(said: str, folder: Path | None = None) -> tuple[int, str, str] | None:
    """Find what an `mpirun` means: exit status, what happened, the next step."""
    for cause in CAUSES:
        found = re.search(cause.pattern, said)
        if found:
            rank = _rank_of(found.group(1), folder) if found.groups() else ""
            return cause.status, cause.meaning.format(*found.groups(), rank=rank), cause.hint
    return None


def _rank_of(process_id: str, folder: Path | None) -> str:
    for rank in (0, 1):
        header = folder / f"header.{rank}.json" if folder else None
        if header and header.exists() and re.search(rf'"pid": {process_id}\b', header.read_text("utf-8")):
            return f"rank {rank}"
    return "a rank"


def _say(what: str, hint: str) -> None:
    sys.stderr.write(f"error: {what}\nhint: {hint}\n")
    sys.stderr.flush()


def make_scratch() -> Path:
    """Make a folder in memory that bears this process's name, and remove those of dead ones."""
    memory = Path("/dev/shm")  # noqa: S108 - the place of POSIX shared memory, and a new folder in it
    base = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
    for other in base.glob(f"{PREFIX}*"):
        words = other.name.removeprefix(PREFIX).split("-")
        if len(words) == 3 and words[0].isdigit() and start_time(int(words[0])) != words[1]:  # noqa: PLR2004
            shutil.rmtree(other, ignore_errors=True)
    own = f"{PREFIX}{os.getpid()}-{start_time(os.getpid())}-"
    return Path(tempfile.mkdtemp(prefix=own, dir=base))


def start_time(process_id: int) -> str | None:
    """Give when a living process was started [ticks since boot]; with its id it is a name for ever."""
    try:
        text = Path(f"/proc/{process_id}/stat").read_text("utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()[START_TIME_FIELD - COMMAND_FIELD - 1]


def end_descendants() -> None:
    """End everything this process has started, also what went on when its own parent ended."""
    for number, patience_s in ((signal.SIGTERM, PATIENCE_S), (signal.SIGKILL, PATIENCE_S)):
        end = time.monotonic() + patience_s
        told: set[int] = set()
        while (living := _descendants()) and time.monotonic() < end:
            for process_id in living - told:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process_id, number)
            told |= living
            time.sleep(0.01)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def _descendants() -> set[int]:
    found: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        parent = waiting.pop()
        with contextlib.suppress(OSError):
            for children in Path(f"/proc/{parent}/task").glob("*/children"):
                new = {int(word) for word in children.read_text("ascii").split()} - found
                found |= new
                waiting += new
    return found


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
