"""``steelyard scheduler``: the class, or the governor that takes its place."""

from __future__ import annotations

import json as json_text
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from steelyard.errors import UsageError
from steelyard.run.best_effort.prometheus import exposition
from steelyard.run.best_effort.service import Siblings, read_status, start_protection, stop_protection

Groups = Annotated[tuple[Path, ...], Parameter(negative="", show_default=False)]
Group = Annotated[Path | None, Parameter(show_default=False)]


def start(
    *,
    service: Groups = (),
    best_effort: Group = None,
    siblings: Siblings = "allow",
    governor: bool = False,
    foreground: bool = False,
) -> int:
    """Start the scheduling class, or a governor where the host has none.

    The class needs a kernel with sched_ext, and root; what is missing is named. The governor needs neither:
    while a service waits for CPUs it throttles the commands of `steelyard background`, and releases them
    when the service is calm. Both end with `steelyard scheduler stop`. Starting twice is allowed. What is
    not at work within 10 s is ended, with the reason.

    Parameters
    ----------
    service
        Control group of a service that the governor protects; may be given several times. Without it,
        everything that is not best-effort is protected. The class protects everything.
    best_effort
        Control group below which everything is best-effort, such as the one of a Kubernetes node's
        best-effort pods: the class marks the groups directly below it with `cpu.idle`, the governor throttles
        it instead of the commands of `steelyard background`.
    siblings
        What best-effort commands may do on a hardware thread of a core that runs a service on another one:
        `allow` it, `avoid` it where another core is idle, or `forbid` it: such a thread then idles. Needs
        the class.
    governor
        Start the governor even where the class could be started.
    foreground
        Stay in the foreground until a signal comes, as a service manager expects it.

    Examples
    --------
    steelyard scheduler start

    steelyard scheduler start --service /sys/fs/cgroup/system.slice/web.service

    steelyard scheduler start --siblings forbid

    steelyard scheduler start --best-effort /sys/fs/cgroup/kubepods.slice/kubepods-besteffort.slice
    """
    protection = start_protection(
        service,
        best_effort=best_effort,
        siblings=siblings,
        wants_governor=governor,
        in_foreground=foreground,
    )
    for line in protection.missing:
        sys.stderr.write(f"the class is not available: {line}\n")
    sys.stdout.write(
        f"{_START[protection.is_class]}{'' if protection.is_new else ' (was started already)'}\n"
    )
    return 0


_START = {
    True: "level strict: the class schedules",
    False: "level idle: the governor throttles best-effort commands while a service waits",
}


def stop() -> int:
    """Stop the scheduling class and the governor, and restore everything.

    It succeeds where nothing was started. A best-effort command that is running continues, under SCHED_IDLE.

    Examples
    --------
    steelyard scheduler stop
    """
    ended = stop_protection()
    sys.stdout.write(f"ended: {', '.join(ended)}\n" if ended else "nothing was started\n")
    return 0


def status(
    *,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    prometheus: bool = False,
) -> int:
    """Show how well services are protected from best-effort commands, and what was counted.

    The levels are `strict` (the class schedules: a best-effort command runs only where nothing else wants
    to), `idle` (SCHED_IDLE and a governor) and `none` (SCHED_IDLE alone: nothing was started).

    Parameters
    ----------
    as_json
        Print JSON instead of lines.
    prometheus
        Print metrics in the text format of Prometheus.

    Examples
    --------
    steelyard scheduler status

    steelyard scheduler status --prometheus
    """
    if as_json and prometheus:
        message = "`--json` and `--prometheus` exclude each other"
        raise UsageError(message)
    found = read_status()
    if prometheus:
        sys.stdout.write(exposition(found))
    elif as_json:
        sys.stdout.write(json_text.dumps(found.document(), indent=1) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in found.lines())
    return 0
