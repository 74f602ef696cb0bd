"""Synthetic load beside the measured worker: started before a batch, verified, ended after it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from steelyard.errors import RunError
from steelyard.run.cleanup import SESSION_VARIABLE
from steelyard.run.executor.neighbour_programs import neighbour_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.model import NeighbourKind
    from steelyard.run.session import Session

LONGEST_S: Final = 86_400
SETTLE_S: Final = 0.15
"""The load is there this long before the first run."""


class Load:
    """Running neighbours.

    Parameters
    ----------
    processes : sequence
        One per neighbour.
    program : str
        Which stressor it is.
    """

    def __init__(self, processes: Sequence[subprocess.Popen[bytes]], program: str) -> None:
        self.processes = processes
        self.program = program

    def require_alive(self) -> None:
        """Check that every neighbour still loads the machine.

        Raises
        ------
        RunError
            If one ended: the batch did not have the load it claims.
        """
        ended = [process for process in self.processes if process.poll() is not None]
        if ended:
            message = (
                f"{len(ended)} of {len(self.processes)} neighbours (`{self.program}`) ended during the "
                f"batch, the first with exit code {ended[0].returncode}"
            )
            raise RunError(
                message, hint="check this host for a limit of memory or processes", code="run.neighbours"
            )


@contextmanager
def neighbours(
    session: Session, kind: NeighbourKind | None, cpu_sets: Sequence[Sequence[int] | None]
) -> Iterator[Load]:
    """Load the machine.

    Parameters
    ----------
    session : Session
        Its key marks the processes.
    kind : NeighbourKind or None
        ``None`` for no load.
    cpu_sets : sequence
        CPUs of each neighbour; ``None`` leaves it to the scheduler.
    """
    if kind is None or not cpu_sets:
        yield Load((), "none")
        return
    stressor = neighbour_command(kind, LONGEST_S)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        processes.extend(_start(stressor, cpus, session) for cpus in cpu_sets)
        load = Load(processes, stressor[0])
        time.sleep(SETTLE_S)
        load.require_alive()
        yield load
    finally:
        for process in processes:
            _end(process)


def _start(stressor: Sequence[str], cpus: Sequence[int] | None, session: Session) -> subprocess.Popen[bytes]:
    command = ["setpriv", "--pdeathsig", "KILL"]
    if cpus is not None:
        command += ["taskset", "--cpu-list", ",".join(map(str, cpus))]
    return subprocess.Popen(
        [*command, *stressor],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=session.folder,
        env={**os.environ, SESSION_VARIABLE: session.key},
        start_new_session=True,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
