"""What other processes of a host did while a study measured there: CPU time and turns, by name.

The look at processes costs CPU time itself; it is taken before the first run and after the last.
"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.run.machine.process_tree import OWN_PROGRAMS, own_tree
from steelyard.run.machine.sensors import MachineSensors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from steelyard.run.machine.host import Process
    from steelyard.run.machine.sensors import Sensors

ITSELF: Final = "Steelyard, waiting"
"""The process that conducts a study; it and the launcher are all that Steelyard leaves running."""
PLACING: Final = frozenset(
    ("slurmd", "slurmstepd", "munged", "sackd", "sshd", "sshd-session", "sshd-auth", "sftp-server")
)
"""Names of what brings parts to a host: daemons of Slurm, and of ssh with its sleeping shell's looks."""
OTHERS: Final = "others"
MOST_NAMED: Final = 12
_CHILDREN: Final = (13, 14)
"""Fields of ``/proc/PID/stat`` behind the name: CPU time of ended children, in ticks (proc(5): 16, 17)."""


@dataclass(frozen=True, slots=True)
class Used:
    """CPU time [ns] of a process and of its ended children, and how often it was given a CPU."""

    own_ns: int
    children_ns: int
    turns: int


@dataclass(frozen=True, slots=True)
class Look:
    """All processes of a host at one time.

    Parameters
    ----------
    at_s : float
        When [s], by the monotonic clock.
    processes : dict
        By id and start.
    used : dict
        What each has used so far.
    """

    at_s: float
    processes: dict[tuple[int, int], Process]
    used: dict[tuple[int, int], Used]


def look(sensors: Sensors | None = None, root: Path = Path("/proc")) -> Look:
    """Look at all processes that this one may see."""
    processes = {(each.id, each.start_ticks): each for each in (sensors or MachineSensors()).processes()}
    used = {key: found for key, each in processes.items() if (found := _used(root / str(each.id), each))}
    return Look(time.monotonic(), processes, used)


def _used(folder: Path, process: Process) -> Used | None:
    tick_ns = 10**9 // os.sysconf("SC_CLK_TCK")
    own_ns = turns = 0
    with suppress(OSError, ValueError, IndexError):
        for thread in (folder / "task").iterdir():
            with suppress(OSError):  # a thread that ended
                # SOURCE: Documentation/scheduler/sched-stats.rst of Linux: ns on a CPU, ns waiting, turns.
                ran, _, count = (thread / "schedstat").read_text().split()
                own_ns += int(ran)
                turns += int(count)
        words = (folder / "stat").read_text().rpartition(")")[2].split()
        children_ns = sum(int(words[field]) for field in _CHILDREN) * tick_ns
        # Threads that ended count in the process only, by ticks.
        return Used(max(own_ns, process.cpu_ticks * tick_ns - tick_ns), children_ns, turns)
    return None


def between(before: Look, after: Look, *, itself: int) -> dict[str, JsonValue]:
    """Say what processes that are no part of a study did between two looks.

    What a process used that ended in between is counted with its parent, if that waited for it.

    Parameters
    ----------
    before, after : Look
        The looks.
    itself : int
        Process that conducts the study: itself is listed, what it started is the study's.

    Returns
    -------
    dict
        ``seconds`` between the looks; ``of``: by name of the processes, ``cpu_ms`` and ``turns``, the busiest
        first. Those that place parts and the process itself are named, of others a dozen; the rest is put
        together.
    """
    trees = own_tree(before.processes.values(), [itself]) | own_tree(after.processes.values(), [itself])
    names = {each.id: each.name for each in after.processes.values()}
    debts = _already_counted(before, after)
    cpu_ns: Counter[str] = Counter()
    turns: Counter[str] = Counter()
    for key, now in after.used.items():
        process = after.processes[key]
        is_itself = process.id == itself
        if not is_itself and (process.id in trees or process.name.startswith(OWN_PROGRAMS)):
            continue
        then = before.used.get(key, Used(0, 0, 0))
        name = ITSELF if is_itself else _name(process, names.get(process.parent_id, ""))
        ended_ns = 0 if is_itself else max(now.children_ns - then.children_ns - debts[key], 0)
        cpu_ns[name] += max(now.own_ns - then.own_ns, 0) + ended_ns
        turns[name] += max(now.turns - then.turns, 0)
    busy = [name for name in sorted(cpu_ns, key=lambda each: (-cpu_ns[each], each)) if turns[name]]
    known = [name for name in busy if name in PLACING or name == ITSELF]
    named = [name for name in busy if name in {*known, *busy[:MOST_NAMED]}]
    said: dict[str, JsonValue] = {name: _said(cpu_ns[name], turns[name]) for name in named}
    if rest := [name for name in busy if name not in said]:
        said[OTHERS] = _said(sum(cpu_ns[name] for name in rest), sum(turns[name] for name in rest))
    return {"seconds": round(after.at_s - before.at_s, 3), "of": said}


def _said(cpu_ns: int, turns: int) -> JsonValue:
    return {"cpu_ms": round(cpu_ns / 1e6, 3), "turns": turns}


def _name(process: Process, parent: str) -> str:
    """Give the name that processes of one kind share: ``kworker/0:1-events`` is one of ``kworker``.

    The shell of a login by ssh counts with its server: by such a one parts are looked at.
    """
    name = parent if parent.startswith("sshd") else process.name
    return name.partition("/")[0].partition(":")[0]


def _already_counted(before: Look, after: Look) -> Mapping[tuple[int, int], int]:
    """Give what processes that ended had used before: it now stands with the parent that waited for them."""
    keys = {process.id: key for key, process in before.processes.items()}
    debts: defaultdict[tuple[int, int], int] = defaultdict(int)
    for key, used in before.used.items():
        parent: tuple[int, int] | None = key
        seen = set()
        while parent is not None and parent not in after.processes and parent not in seen:
            seen.add(parent)
            parent = keys.get(before.processes[parent].parent_id)
        if parent is not None and parent != key and key not in after.processes:
            debts[parent] += used.own_ns + used.children_ns
    return debts
