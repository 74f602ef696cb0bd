"""``steelyard measure``: one command, run and measured."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from steelyard.cli.amounts import (
    Whole,
    WholeOrNone,
    parse_bytes,
    parse_counters,
    parse_cpus,
    parse_duration_ns,
    require_range,
)
from steelyard.cli.environment_note import note_unpassable
from steelyard.cli.measuring.measure_table import table
from steelyard.errors import UsageError
from steelyard.model.run_outcome import RunStatus
from steelyard.model.run_spec import Limits, OutputStream, Placement, RunSpec
from steelyard.run.environment import environment_hint, environment_record
from steelyard.run.executor.resident import (
    BARE,
    hidden_program,
    located,
    program_environment,
    require_input,
    require_started,
    resident,
)
from steelyard.run.shell_syntax import shell_hint
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model.run_outcome import RunOutcome

RESULT_SCHEMA = "steelyard/measure/1"
KEPT_OUTPUT_BYTES = 1 << 20
FAILED = 4
# A launcher that does not answer is dead: its own wall limit ends the program long before this.
UNBOUNDED_S = 30 * 24 * 3600.0

MOST_PROCESSES = 1 << 22
"""No kernel numbers more (proc(5), `pid_max`)."""
_WHY_LEAST_MEMORY = "because the child that becomes the program is set up within it"
_WHY_LEAST_DISK = "because its file system cannot be made smaller"


@Parameter(name="*")
@dataclass(frozen=True)
class LimitOptions:
    """Limits of the run.

    Parameters
    ----------
    cpu_time
        CPU time of the whole process tree, as in `1.5s` or `250ms`.
    wall_time
        Time from exec to exit.
    memory
        Peak memory of the whole tree, as in `64M`; at least `1M`.
    processes
        Processes and threads alive at once; in the sandbox by default 64, or four for each CPU where that
        is more, so that a tree that forks without end is ended in time.
    file_size
        Size of any one file it writes.
    output_size
        Standard output plus standard error; the run is ended when it writes more.
    open_files
        Open files per process.
    disk
        Size of the writable file system in a sandbox; at least `64K`.
    """

    cpu_time: str | None = None
    wall_time: str | None = None
    memory: str | None = None
    processes: WholeOrNone = None
    file_size: str | None = None
    output_size: str | None = None
    open_files: WholeOrNone = None
    disk: str | None = None

    def limits(self) -> Limits:
        """Give the limits as the launcher reads them."""
        times = {
            "cpu_time_ns": ("--cpu-time", self.cpu_time),
            "wall_time_ns": ("--wall-time", self.wall_time),
        }
        sizes = {
            "file_size_bytes": ("--file-size", self.file_size),
            "output_bytes": ("--output-size", self.output_size),
        }
        found = {
            key: parse_duration_ns(text, option) for key, (option, text) in times.items() if text is not None
        }
        found |= {key: parse_bytes(text, option) for key, (option, text) in sizes.items() if text is not None}
        if self.memory is not None:
            found["memory_bytes"] = parse_bytes(self.memory, "--memory", least="1M", why=_WHY_LEAST_MEMORY)
        if self.disk is not None:
            found["disk_bytes"] = parse_bytes(self.disk, "--disk", least="64K", why=_WHY_LEAST_DISK)
        return Limits(
            process_count=require_range(self.processes, "--processes", 1, MOST_PROCESSES),
            open_file_count=require_range(self.open_files, "--open-files", 1, _most_open_files()),
            **found,
        )


def _most_open_files() -> int:
    """Give how many files a process may be allowed to open here."""
    _, hard = getrlimit(RLIMIT_NOFILE)
    if os.geteuid() != 0:
        return hard
    try:
        return int(Path("/proc/sys/fs/nr_open").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return hard


@Parameter(name="*")
@dataclass(frozen=True)
class PlaceOptions:
    """Where and how the program runs.

    Parameters
    ----------
    isolation
        Isolation technology of the run: `bare`, `sandbox`, `docker`, `bubblewrap` ...; `steelyard doctor`
        lists what works here.
    cpus
        CPUs it may use, as in `0-2,5`.
    environment
        `NAME=VALUE` for the program, or `NAME` to pass a variable on; may be given several times. A bare
        program gets your environment as it is, an isolated one `PATH`, `HOME`, `LANG` and `TERM`.
    clean_environment
        A bare program also gets only `PATH`, `HOME`, `LANG`, `TERM` and what `--environment` names.
    show
        Further folder or file that an isolated program may read; may be given several times. The current
        folder is always shown, unless it is one of `/`, `/tmp` and `/dev/shm`: these are new inside. What is
        shown can be used: the program can connect to sockets and named pipes there.
    input
        File for standard input; empty input otherwise.
    """

    isolation: str = BARE
    cpus: str | None = None
    environment: Annotated[tuple[str, ...], Parameter(show_default=False)] = ()
    clean_environment: Annotated[bool, Parameter(negative="")] = False
    show: Annotated[tuple[Path, ...], Parameter(show_default=False)] = ()
    input: Path | None = None

    @property
    def inherits(self) -> bool:
        """Whether the program gets the environment of the caller."""
        return self.isolation == BARE and not self.clean_environment


_DEFAULT_LIMITS = LimitOptions()
_DEFAULT_PLACE = PlaceOptions()


def measure(
    *command: str,
    place: PlaceOptions = _DEFAULT_PLACE,
    limits: LimitOptions = _DEFAULT_LIMITS,
    iterations: Annotated[Whole, Parameter(name=["--iterations", "-n"])] = 1,
    counters: str | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Run one command and show what it used.

    CPU and wall time are stamped by the kernel at exec and exit of the program, and nothing that the command
    started survives it. The exit is the last instruction of the program: from Linux 6.16 on, the time the
    kernel needs to reclaim its memory is not counted; on older kernels it is. The peak memory of a process is
    the largest resident set of any single process, as GNU time prints it; that of the tree is the memory
    charged to its control group, without files that were already in memory. The exit code is 0 when every run
    completed, 4 otherwise.

    Parameters
    ----------
    command
        Program and arguments, after `--`.
    place
        Where the program runs.
    limits
        What the program may use.
    iterations
        Number of launches, one after the other.
    counters
        Further counters, separated by commas, as in `instructions,cache-misses`.
    as_json
        Print every outcome as JSON, with the program's output inside.

    Examples
    --------
    steelyard measure -- sleep 0.1

    steelyard measure --isolation sandbox --memory 64M --wall-time 2s -- ./solution

    steelyard measure -n 20 --json -- sort words.txt
    """
    if not command or not command[0]:
        message = "`steelyard measure` needs a command"
        raise UsageError(message, hint="steelyard measure -- sleep 0.1")
    if iterations < 1:
        message = f"`--iterations {iterations}`: allowed: 1 or more"
        raise UsageError(message)
    if limits.disk is not None and "sandbox" not in place.isolation:
        message = f"`--disk` limits the file system of a sandbox, but the isolation is `{place.isolation}`"
        raise UsageError(message, hint="add `--isolation sandbox`, or leave out `--disk`")
    spec = replace(
        specification(list(command), place, limits.limits()),
        iterations=iterations,
        counters=tuple(parse_counters(counters or "", "--counters")),
    )
    if place.inherits:
        note_unpassable()
    wall_ns = spec.limits.wall_time_ns
    patience_s = wall_ns / NS_PER_S + 60 if wall_ns else UNBOUNDED_S
    shown = (*place.show, *hidden_program(spec.command[0])) if place.isolation != BARE else place.show
    with resident(place.isolation, shown=shown, is_fed=place.input is not None) as worker:
        outcomes = worker.execute(spec, timeout_s=patience_s)
    if not as_json:
        require_started(outcomes, command[0], place.isolation)
    if as_json:
        record = environment_record(spec.environment, is_inherited=place.inherits)
        document = {**result(list(command), place.isolation, outcomes), "environment": record}
        sys.stdout.write(json.dumps(document, indent=1) + "\n")
    else:
        show(outcomes)
    failed = [outcome for outcome in outcomes if outcome.status.is_failure]
    if failed:
        said = "" if failed[0].standard_error is None else failed[0].standard_error.text
        hint = environment_hint(said, spec.environment, can_inherit=place.isolation == BARE)
        if failed[0].status is RunStatus.LAUNCHER_FAILED:
            hint = shell_hint(command[0])
        sys.stderr.write(f"hint: {hint}\n" if hint is not None else "")
    return FAILED if failed else 0


def specification(command: list[str], place: PlaceOptions, limits: Limits) -> RunSpec:
    """Give the run specification of a command line."""
    require_input(place.input)
    cpus = None if place.cpus is None else tuple(parse_cpus(place.cpus, "--cpus"))
    return RunSpec(
        id="measure",
        command=(located(command[0]), *command[1:]),
        environment=program_environment(place.environment, inherits=place.inherits),
        working_directory=str(Path.cwd()),
        standard_input=None if place.input is None else str(place.input.resolve()),
        standard_output=OutputStream.captured(KEPT_OUTPUT_BYTES),
        standard_error=OutputStream.captured(KEPT_OUTPUT_BYTES),
        limits=limits,
        placement=Placement(cpus=cpus, maximal_weight=True),
        own_metrics=True,
    )


def result(command: list[str], isolation: str, outcomes: Sequence[RunOutcome]) -> dict[str, Any]:
    """Give the JSON document of a measurement: the figures of the first run, and every outcome."""
    first = outcomes[0]
    figures = {name: quantity.value for name, quantity in first.quantities.items()}
    return {
        "schema": RESULT_SCHEMA,
        "command": command,
        "isolation": isolation,
        "status": first.status,
        "exit_code": first.exit_code,
        "signal": first.signal,
        "limit": first.limit,
        **figures,
        "outcomes": [outcome.document() for outcome in outcomes],
    }


def show(outcomes: Sequence[RunOutcome]) -> None:
    """Print the program's output and then the table."""
    for outcome in outcomes:
        for kept, stream in ((outcome.standard_output, sys.stdout), (outcome.standard_error, sys.stderr)):
            if kept is not None and kept.text:
                stream.write(kept.text)
                stream.write("" if kept.text.endswith("\n") else "\n")
                stream.flush()
    sys.stdout.write(table(outcomes))
