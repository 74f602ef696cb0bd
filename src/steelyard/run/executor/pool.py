"""The workers of a study: started when first needed, kept across batches, closed when done with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.run.executor.worker import Worker
from steelyard.run.session import Site

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.run.isolation.interface import Isolation
    from steelyard.run.session import Session

    Cpus = tuple[int, ...] | None
    Nodes = tuple[int, ...] | None
    Key = tuple[str, int, Cpus, Nodes]

MOST_IDLE: Final = 16
"""Idle workers kept; beyond, those longest unused are closed."""


class WorkerPool:
    """Workers by technology, index, CPUs and memory nodes; a context manager that closes them all.

    Parameters
    ----------
    session : Session
        Folders and names.
    most_idle : int
        Idle workers to keep.
    """

    def __init__(self, session: Session, most_idle: int = MOST_IDLE) -> None:
        self._session = session
        self._most_idle = most_idle
        self._workers: dict[Key, Worker] = {}
        self._technologies: dict[str, Isolation] = {}
        self._serial = 0

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def take(
        self, technology: Isolation, cpu_sets: Sequence[Cpus], memory_nodes: Sequence[Nodes] | None = None
    ) -> list[Worker]:
        """Give one awake worker per set of CPUs; starts those that are not there.

        Parameters
        ----------
        technology : Isolation
            Where they live.
        cpu_sets : sequence
            CPUs of each; ``None`` leaves it to the scheduler.
        memory_nodes : sequence or None
            Memory nodes each may allocate from; ``None`` binds nobody's memory.

        Raises
        ------
        CapabilityError, RunError
            If one cannot be started.
        """
        self._technologies[technology.name] = technology
        nodes = memory_nodes or [None] * len(cpu_sets)
        taken = [
            self._worker((technology.name, index, *where), technology)
            for index, where in enumerate(zip(cpu_sets, nodes, strict=True))
        ]
        for worker in taken:
            worker.resume()
        return taken

    def give_back(self, workers: Sequence[Worker]) -> None:
        """Let workers rest; close those longest unused if there are too many."""
        for worker in workers:
            worker.pause()
        while len(self._workers) > max(self._most_idle, len(workers)):
            self._drop(next(iter(self._workers)))

    def discard(self, workers: Sequence[Worker]) -> None:
        """Close workers whose state is unknown, at once."""
        for key in [key for key, worker in self._workers.items() if worker in workers]:
            self._drop(key, patience_s=0.0)

    def release(self, technology: str) -> None:
        """Close all workers of a technology that is not needed again."""
        for key in [key for key in self._workers if key[0] == technology]:
            self._drop(key)

    def close(self) -> None:
        """Close everything, then what the technologies shared."""
        for key in list(self._workers):
            self._drop(key)
        for technology in self._technologies.values():
            technology.close(self._session)
        self._technologies.clear()

    def _worker(self, key: Key, technology: Isolation) -> Worker:
        name, index, cpus, nodes = key
        worker = self._workers.pop(key, None)
        if worker is not None and not worker.is_alive:
            worker.close(0.0)
            worker = None
        if worker is None:
            self._serial += 1
            site = Site(self._session, name, index, self._serial, cpus, nodes)
            worker = Worker(technology, site)
            self._workers[key] = worker
            try:
                worker.start()
            except BaseException:
                self._drop(key, patience_s=0.0)
                raise
        self._workers[key] = worker  # the youngest entry: insertion order is order of use
        return worker

    def _drop(self, key: Key, patience_s: float = 5.0) -> None:
        self._workers.pop(key).close(patience_s)
