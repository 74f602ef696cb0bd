"""A resident launcher for commands that a user gives by hand, without a study around it."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.errors import CapabilityError, RunError, UsageError
from steelyard.model import RunStatus
from steelyard.run.environment import inherited_environment
from steelyard.run.executor.worker import Worker
from steelyard.run.isolation.registry import sweep_all, technology
from steelyard.run.isolation.root_view import PROGRAMS
from steelyard.run.session import Site, open_session
from steelyard.run.shell_syntax import shell_hint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.model import RunOutcome

BARE = "bare"
"""The isolation that is none."""

PASSED_ON = ("PATH", "HOME", "LANG", "TERM")
"""Variables a program gets without being asked for, where it does not get all."""

MADE_INSIDE = tuple(Path(name) for name in ("/", "/tmp", "/box", "/dev/shm"))  # noqa: S108 - not written to
"""Folders that are new wherever a program is isolated: those of the host cannot be shown there."""

KERNEL_FOLDERS = tuple(Path(name) for name in ("/proc", "/sys", "/dev"))
"""Folders of which the same holds with all below them."""


@contextmanager
def resident(isolation: str, *, shown: Sequence[Path] = (), is_fed: bool = False) -> Iterator[Worker]:
    """Give one worker, as `residents` does."""
    with residents(isolation, shown=shown, is_fed=is_fed) as (worker,):
        yield worker


@contextmanager
def residents(
    isolation: str,
    cpu_sets: Sequence[tuple[int, ...] | None] = (None,),
    *,
    shown: Sequence[Path] = (),
    is_fed: bool = False,
) -> Iterator[list[Worker]]:
    """Give workers in an isolation, with the current folder shown inside unless it is new there.

    Parameters
    ----------
    isolation : str
        Name of the technology.
    cpu_sets : sequence
        One worker for each: the CPUs it is bound to, ``None`` for any.
    shown : sequence of Path
        Further files and folders of the host that programs inside may read.
    is_fed : bool
        Whether programs read a file of the host as standard input.

    Raises
    ------
    CapabilityError
        If the technology does not work on this machine.
    UsageError
        If there is none of that name, or it cannot show what is asked for.
    """
    chosen = technology(isolation)
    _require_shown(shown, chosen.name)
    answer = chosen.probe()
    if not answer.available:
        message = f"isolation `{chosen.name}` does not work on this machine: {answer.reason}"
        raise CapabilityError(message, hint=answer.repair, code="capability.isolation")
    if not chosen.shows_host and (shown or is_fed):
        message = f"`--show` and `--input` name files of the host, which `{chosen.name}` does not show"
        raise UsageError(message, hint="choose another isolation, such as `sandbox`")
    everything = (*_current_folder(), *(path.resolve() for path in shown))
    with open_session(None, sweep_all, everything) as session:
        try:
            with ExitStack() as stack:
                workers = []
                for number, cpus in enumerate(cpu_sets):
                    site = Site(session, chosen.name, number, cpus=cpus)
                    workers.append(stack.enter_context(Worker(chosen, site)))
                    workers[-1].start()
                yield workers
        finally:
            chosen.close(session)


def _require_shown(shown: Sequence[Path], isolation: str) -> None:
    """Refuse to show what is not there, or where nothing is hidden."""
    if shown and isolation == BARE:
        message = (
            f"`--show {shown[0]}`: a `{BARE}` program sees every file; `--show` is for isolated programs"
        )
        raise UsageError(message, hint="leave out `--show`, or add `--isolation sandbox`")
    for path in shown:
        if not path.exists():
            message = f"`--show {path}`: no such file or folder"
            raise UsageError(message, hint="give a file or folder that exists; a relative path begins here")


def require_input(path: Path | None) -> None:
    """Refuse a file for standard input that cannot be read as one.

    Raises
    ------
    UsageError
        If it is absent or a folder.
    """
    if path is None or path.is_file():
        return
    if path.is_dir():
        reason = "it is a folder"
    elif path.exists():
        reason = "it is not a regular file"
    else:
        reason = "no such file"
    message = f"`--input {path}`: {reason}; allowed: a regular file"
    raise UsageError(message, hint="give a file; without `--input`, standard input is empty")


def is_made_inside(folder: Path) -> bool:
    """Whether a folder is a new one wherever a program is isolated.

    Examples
    --------
    >>> is_made_inside(Path("/")), is_made_inside(Path("/proc/1")), is_made_inside(Path("/tmp/data"))
    (True, True, False)
    """
    is_kernels = any(folder.is_relative_to(place) for place in KERNEL_FOLDERS)
    return folder in MADE_INSIDE or (is_kernels and not folder.is_relative_to("/dev/shm"))  # noqa: S108 - as above


def _current_folder() -> list[Path]:
    current = Path.cwd()
    return [] if is_made_inside(current) else [current]


def hidden_program(program: str) -> tuple[Path, ...]:
    """Give the file of a program in a folder that cannot be shown: it has to be shown by itself."""
    path = Path(program)
    is_hidden = path.is_absolute() and is_made_inside(path.parent) and path.is_file()
    return (path,) if is_hidden else ()


def located(program: str, folder: Path | None = None) -> str:
    """Give a program given by a path relative to a folder as an absolute one; names are looked up later."""
    return str((folder or Path.cwd()) / program) if "/" in program else program


def require_executable(program: str, environment: Mapping[str, str]) -> None:
    """Refuse a program that a run would not find.

    Parameters
    ----------
    program : str
        As `located` gives it.
    environment : mapping
        Of the run; a name is looked up in its ``PATH``.

    Raises
    ------
    UsageError
        If there is none, or it is not executable.

    Examples
    --------
    >>> require_executable("/bin/sh", {})
    >>> require_executable("no-such-program", {"PATH": "/bin"})
    Traceback (most recent call last):
    ...
    steelyard.errors.UsageError: cannot find a program `no-such-program` on the PATH
    """
    if shutil.which(program, path=environment.get("PATH", os.defpath)) is not None:
        return
    if "/" not in program:
        message = f"cannot find a program `{program}` on the PATH"
        raise UsageError(
            message,
            hint="check the spelling; a program outside the folders of PATH needs its path: `./prog`",
        )
    if not os.path.lexists(program):
        message = f"cannot find the program `{program}`"
        raise UsageError(message, hint="check the spelling; a relative path begins at the working directory")
    message = f"cannot run `{program}`: it is not an executable file"
    raise UsageError(message, hint=f"chmod +x {shlex.quote(program)}")


def program_environment(given: Sequence[str], *, inherits: bool = False) -> dict[str, str]:
    """Give the environment of a program: a few variables of ours or all of them, and those the user names.

    Parameters
    ----------
    given : sequence of str
        ``NAME=VALUE``, or ``NAME`` to pass a variable on.
    inherits : bool
        Whether it gets every variable of this process.

    Raises
    ------
    UsageError
        If an entry is neither.
    """
    kept = inherited_environment()
    if not inherits:
        kept = {name: kept[name] for name in PASSED_ON if name in kept}
    for entry in given:
        name, separator, value = entry.partition("=")
        if not name or (not separator and name not in os.environ):
            message = f"`--environment {entry}`: allowed: `NAME=VALUE`, or the name of a variable that is set"
            raise UsageError(message)
        kept[name] = value if separator else os.environ[name]
    return kept


def require_started(outcomes: Sequence[RunOutcome], program: str, isolation: str) -> None:
    """Check that the program was started at all: without it there is nothing to show.

    Parameters
    ----------
    outcomes : sequence of RunOutcome
        At least one.
    program, isolation : str
        For the message.

    Raises
    ------
    RunError
        If no launch got as far as the program.
    """
    if all(outcome.status is RunStatus.LAUNCHER_FAILED for outcome in outcomes):
        said = outcomes[0].message or ""
        if isolation != BARE and "`working_directory`" in said:
            message = f"cannot run `{program}`: `{isolation}` has no folder `{Path.cwd()}`"
            raise RunError(message, hint="cd to a folder of your own first", code="run.not-executed")
        message = f"cannot run `{program}`: {said}"
        hint = shell_hint(program) or (
            "give an executable program, by its path or a name in `PATH`; `--show` what it needs"
        )
        if "sandbox" in isolation and "EACCES" in said:
            hint = barred(located(program)) or hint
        if not technology(isolation).shows_host:
            hint = f"`{isolation}` contains only Steelyard's own programs, in `{PROGRAMS}`"
        raise RunError(message, hint=hint, code="run.not-executed")


def barred(program: str) -> str | None:
    """Say what keeps the sandbox's user from a program of root's; ``None`` where nothing does.

    Parameters
    ----------
    program : str
        Absolute path.
    """
    if os.geteuid() != 0 or not program.startswith("/"):
        # Somebody else is the same user inside.
        return None
    for path in (*reversed(Path(program).parents), Path(program)):
        try:
            mode = path.stat().st_mode
        except OSError:
            return None
        if not mode & stat.S_IXOTH:
            doing = "enter" if stat.S_ISDIR(mode) else "execute"
            return (
                f"the sandbox runs programs as a user of its own, who may not {doing} `{path}` "
                f"(mode {stat.S_IMODE(mode):04o}): chmod o+x {shlex.quote(str(path))}, or copy the program"
            )
    return None
