"""Start, end and look at what keeps best-effort commands back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from steelyard.errors import CapabilityError, UsageError
from steelyard.run.programs import govern_program, scheduler_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Document = dict[str, Any]
Siblings = Literal["allow", "avoid", "forbid"]

SCHEMA: Final = "steelyard/best-effort-status/1"
NO_PROGRAM: Final = (
    "its loader is not installed: the wheel for x86_64 brings it, in a checkout `make scheduler` builds it"
)
START_LIMIT_S: Final = 10.0
"""Everything that a start does happens within this time, or is ended."""
PATIENCE_S: Final = 30.0
NS_PER_S: Final = 1e9
NS_PER_MS: Final = 1e6


@dataclass(frozen=True, slots=True)
class Protection:
    """What was started.

    Parameters
    ----------
    is_class : bool
        The scheduling class, and not the governor.
    is_new : bool
        It was not started already.
    missing : tuple of str
        Why it is not the class, one reason each.
    """

    is_class: bool
    is_new: bool
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BestEffortStatus:
    """How far best-effort commands stand back.

    Parameters
    ----------
    scheduler : Mapping
        What ``steelyard-scheduler status --json`` says; empty where its loader is not at work. After the
        kernel has ended the class the loader waits and attaches it again: then `state` is not ``active``.
    governor : Mapping
        What the governor says of itself; empty where none is started.
    state : str
        State of ``sched_ext``: ``unsupported``, ``inactive``, ``foreign`` or ``active``.
    name : str
        Name of the scheduler that is loaded, or empty.
    """

    scheduler: Mapping[str, Any] = field(default_factory=dict)
    governor: Mapping[str, Any] = field(default_factory=dict)
    state: str = "unsupported"
    name: str = ""

    @property
    def level(self) -> str:
        """``strict``, ``idle`` or ``none``."""
        if self.state == "active":
            return "strict"
        return "idle" if self.governor else "none"

    def document(self) -> Document:
        """Give it for programs."""
        return {
            "schema": SCHEMA,
            "level": self.level,
            "sched_ext": {"state": self.state, "name": self.name},
            "scheduler": dict(self.scheduler) or None,
            "governor": dict(self.governor) or None,
        }

    def lines(self) -> list[str]:
        """Give it for people.

        Examples
        --------
        >>> BestEffortStatus().lines()
        ['level: none (nothing is started: `steelyard background` uses SCHED_IDLE alone)']
        """
        return [f"level: {self.level} ({_LEVELS[self.level]})", *self._class_lines(), *self._governor_lines()]

    def _class_lines(self) -> list[str]:
        if self.state == "foreign":
            return [f"sched_ext: another scheduler is loaded, `{self.name}`"]
        if self.state != "active":
            reason = self.scheduler.get("last_exit")
            return [f"class: the kernel has ended it, and its loader tries again: {reason}"] if reason else []
        counters = self.scheduler.get("counters", {})
        counted = ", ".join(f"{name} {count}" for name, count in counters.items())
        lines = [f"class: `{self.name}`, ejected {self.scheduler.get('ejections', 0)} times"]
        policy = self.scheduler.get("siblings", "allow")
        if policy != "allow":
            longest_ns = (self.scheduler.get("strictness") or {}).get("longest_beside_ns", 0)
            lines.append(
                f"siblings: {policy}; a job ran beside a service on one core for "
                f"{longest_ns / NS_PER_MS:.2f} ms at most"
            )
        return lines + ([f"counters: {counted}"] if counted else [])

    def _governor_lines(self) -> list[str]:
        if not self.governor:
            return []
        one = self.governor
        quota = one.get("quota_cpus")
        limit = f" to {quota:.2f} CPUs" if quota is not None else ""
        alone = one.get("pressure_alone")
        without = f", without them {alone:.1%}" if alone is not None else ""
        counters = one["counters"]
        lines = [
            f"governor: watches {one['watches']}",
            f"best-effort commands: {one['allowance']}{limit}; waiting: {one['pressure']:.1%}{without}",
            (
                f"throttled {counters['throttles']} times for {counters['limited_ns'] / NS_PER_S:.1f} s, "
                f"parked {counters['parks']} times for {counters['parked_ns'] / NS_PER_S:.1f} s, "
                f"released {counters['releases']} times"
            ),
        ]
        return lines + ([f"problem: {one['problem']}"] if one.get("problem") else [])


_LEVELS: Final = {
    "strict": "the class runs best-effort commands only where nothing else wants to",
    "idle": "SCHED_IDLE, and a governor that throttles while a service waits",
    "none": "nothing is started: `steelyard background` uses SCHED_IDLE alone",
}


def start_protection(
    services: Sequence[Path],
    *,
    best_effort: Path | None = None,
    siblings: Siblings = "allow",
    wants_governor: bool = False,
    in_foreground: bool = False,
) -> Protection:
    """Start the class where it can be had, else the governor.

    Parameters
    ----------
    services : sequence of Path
        Control groups the governor protects; empty: all but what is best-effort.
    best_effort : Path or None
        Control group below which everything is best-effort: the class marks the groups directly below it,
        the governor throttles it. None: that of the commands of ``steelyard background``.
    siblings : {'allow', 'avoid', 'forbid'}
        What best-effort tasks may do on a hardware thread of a core on which a service runs, too; the class
        alone knows another answer than ``allow``.
    wants_governor : bool
        Leave the class out.
    in_foreground : bool
        Become the program; this function then does not return.

    Raises
    ------
    UsageError
        If a group is not there, or the class is started already with another policy for siblings.
    CapabilityError
        If neither can be started, or not within `START_LIMIT_S`: then nothing is left of it. If only the
        governor can, and `siblings` needs the class.
    """
    deadline = time.monotonic() + START_LIMIT_S
    missing = ("it was not asked for",) if wants_governor else _missing(deadline)
    found = read_status(deadline)
    if not missing:
        is_new = _start_class(found, best_effort, siblings, deadline, in_foreground=in_foreground)
        return Protection(is_class=True, is_new=is_new)
    if siblings != "allow":
        message = f"`--siblings {siblings}` needs the class: {'; '.join(missing)}"
        hint = "without `--siblings` the governor is started"
        raise CapabilityError(message, hint=hint, code="capability.best-effort")
    if found.state == "active":
        message = "the class is active, and a governor beside it would hold best-effort commands back twice"
        raise CapabilityError(message, hint="steelyard scheduler stop", code="capability.best-effort")
    command = [str(govern_program()), "start"]
    for service in services:
        command += ["--service", str(service)]
    if best_effort is not None:
        command += ["--group", str(best_effort)]
    if in_foreground:
        sys.stderr.writelines(f"the class is not available: {line}\n" for line in missing)
        _become(command)
    said = _run(command, deadline)
    return Protection(is_class=False, is_new=said.strip() == "started", missing=missing)


def _start_class(
    found: BestEffortStatus,
    best_effort: Path | None,
    siblings: Siblings,
    deadline: float,
    *,
    in_foreground: bool,
) -> bool:
    """Start the class unless that was done; give whether it was not."""
    program = scheduler_program()
    assert program is not None  # noqa: S101 - it would be missing
    if found.state == "active" or found.scheduler:
        active = found.scheduler.get("siblings") or "allow"
        if active != siblings:
            message = f"the class is started already, with `--siblings {active}`"
            raise UsageError(message, hint="steelyard scheduler stop")
        return False
    # Two that hold back would hold back twice.
    _run([str(govern_program()), "stop"], deadline)
    command = [str(program), "start"]
    if best_effort is not None:
        command += ["--best-effort-below", str(best_effort)]
    if siblings != "allow":
        command += ["--siblings", siblings]
    if in_foreground:
        _become(command)
    # What is killed here, by us or with us, takes along what it has started.
    _run([*command, "--starter", str(os.getpid())], deadline)
    return True


def stop_protection() -> tuple[str, ...]:
    """End the class and the governor; give what was ended."""
    ended = []
    deadline = time.monotonic() + PATIENCE_S
    program = scheduler_program()
    if program is not None and _ask([str(program), "status", "--json"], deadline).get("pid"):
        _run([str(program), "stop"], deadline)
        ended.append("class")
    said = _run([str(govern_program()), "stop"], deadline).strip()
    if said != "not started":
        ended.append("governor")
    return tuple(ended)


def read_status(deadline: float | None = None) -> BestEffortStatus:
    """Look at both, before a time of the monotonic clock [s]; None: within `PATIENCE_S`."""
    deadline = time.monotonic() + PATIENCE_S if deadline is None else deadline
    answer = _ask([str(govern_program()), "status", "--json"], deadline)
    found = answer.get("class") or {}
    program = scheduler_program()
    scheduler = _ask([str(program), "status", "--json"], deadline) if program is not None else {}
    return BestEffortStatus(
        scheduler=scheduler if scheduler.get("pid") else {},
        governor=answer.get("governor") or {},
        state=found.get("state", "unsupported"),
        name=found.get("name", ""),
    )


def _missing(deadline: float) -> tuple[str, ...]:
    """Why the class cannot be started, in the words of its loader; empty: it can."""
    program = scheduler_program()
    if program is None:
        return (*_kernel_lacks(), NO_PROGRAM)
    found = _ask([str(program), "probe", "--json"], deadline)
    if found.get("available"):
        return ()
    return tuple(str(reason) for reason in found.get("reasons", ())) or ("cannot run its loader",)


def _kernel_lacks() -> tuple[str, ...]:
    lacks = []
    if not Path("/sys/kernel/sched_ext").is_dir():
        release = os.uname().release
        lacks.append(f"kernel {release} has no sched_ext: Linux 6.12 with CONFIG_SCHED_CLASS_EXT is needed")
    if not Path("/sys/kernel/btf/vmlinux").exists():
        lacks.append("the kernel has no BTF: CONFIG_DEBUG_INFO_BTF is needed")
    if os.geteuid() != 0:
        lacks.append("root is needed")
    return tuple(lacks)


def _ask(command: list[str], deadline: float) -> Document:
    try:
        found = json.loads(_answer(command, deadline).stdout)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _become(command: list[str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], [*command, "--foreground"])  # noqa: S606 - a service manager watches us


def _run(command: list[str], deadline: float) -> str:
    """Run a verb of one of the programs; give what it says."""
    answer = _answer(command, deadline)
    if answer.returncode != 0:
        message, _, hint = answer.stderr.strip().partition("\n\nhint: ")
        message = message.removeprefix("error: ").removeprefix("steelyard-scheduler: ")
        message = message or f"`{' '.join(command)}` failed"
        if answer.returncode == UsageError.exit_code:
            raise UsageError(message, hint="steelyard scheduler start --help")
        raise CapabilityError(message, hint=hint or None, code="capability.best-effort")
    return answer.stdout


def _answer(command: list[str], deadline: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=max(deadline - time.monotonic(), 0),
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        message = f"`{' '.join(command)}` did not end in time, and was ended"
        hint = "try again on a quieter machine; `steelyard scheduler status` says what is started"
        raise CapabilityError(message, hint=hint, code="capability.best-effort") from error
    except OSError as error:
        message = f"cannot run `{command[0]}`: {error.strerror}"
        hint = "`pip install --force-reinstall steelyard`, or `make setup scheduler` in a checkout"
        raise CapabilityError(message, hint=hint, code="capability.best-effort") from error
