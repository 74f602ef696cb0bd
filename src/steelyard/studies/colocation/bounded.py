"""A trial whose service has real-time priority, run so that it cannot take the machine with it.

A thread at such a priority that never waits keeps everything else from its CPU. Two bounds beside the
kernel's own throttling: a thread that does not wait for `LONGEST_SPELL_US` is ended, and where control groups
divide real-time time (version 1), all of the trial gets `REAL_TIME_RUNTIME_US` of each second of a CPU.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from steelyard.run.machine.cpu_groups import REAL_TIME_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BOUND_FILE: Final = "bounded.sh"
LONGEST_SPELL_US: Final = 2_000_000

_ENTER: Final = """echo $$ > {procs} || exit
"""
_BOUNDED: Final = """exec prlimit --rttime={spell}:{spell} -- {command}
"""


def bounded_script(command: Sequence[str], group: Path | None) -> str:
    """Give the script that runs a command within the bounds.

    It gets the share of real-time time of a group of version 1; no group is given where groups divide none.

    Examples
    --------
    >>> print(bounded_script(("load", "a b"), None), end="")
    exec prlimit --rttime=2000000:2000000 -- load 'a b'
    """
    enter = "" if group is None else _ENTER.format(procs=shlex.quote(str(group / "cgroup.procs")))
    return enter + _BOUNDED.format(spell=LONGEST_SPELL_US, command=shlex.join(command))


def divides_real_time(group: Path | None) -> bool:
    """Whether a group has a share of real-time time of its own."""
    return group is not None and (group / REAL_TIME_FILE).exists()
