"""Where cells can be computed: in this process, in others of this machine, on a cluster of Dask."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from steelyard.analyse.mapping.over_cells import IN_TURN
from steelyard.errors import AnalysisError, CapabilityError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from steelyard.analyse.mapping.over_cells import CellTask, Found, OverCells

ALLOWED: Final = "`pool[:N]`, `local-cluster[:N]` or `dask:ADDRESS`"
_NUMBERED: Final = re.compile(r"(pool|local-cluster)(?::([1-9]\d{0,3}))?")
_DASK: Final = "dask:"


class _Pool:
    """Processes of this machine."""

    def __init__(self, executor: ProcessPoolExecutor, workers: int) -> None:
        self._executor = executor
        self.workers = max(2, workers)

    def map(self, tasks: Sequence[CellTask[Found]]) -> list[Found]:
        """Give what each task finds, in the order of the tasks."""
        futures = [self._executor.submit(task.compute) for task in tasks]
        try:
            return [future.result() for future in futures]
        except BrokenProcessPool as error:
            lost = next(task for task, future in zip(tasks, futures, strict=True) if _is_lost(future))
            message = f"a process of the pool was ended, perhaps for want of memory, at {lost.name}"
            raise AnalysisError(message, hint="use fewer processes", code="analysis.worker") from error


def _is_lost(future: object) -> bool:
    return isinstance(getattr(future, "exception", lambda: None)(), BrokenProcessPool)


@contextmanager
def opened(on: str | None, result: Path) -> Iterator[OverCells]:
    """Give where to compute.

    Parameters
    ----------
    on : str or None
        ``pool[:N]``, ``local-cluster[:N]`` or ``dask:ADDRESS``; ``None`` for this process.
    result : Path
        Result folder, which every worker must see.

    Raises
    ------
    UsageError
        If `on` names nothing of it.
    CapabilityError
        If Dask is not installed, the cluster does not answer, or a worker cannot compute this result.
    """
    numbered = _NUMBERED.fullmatch(on or "")
    count = int(numbered[2] or os.cpu_count() or 1) if numbered else 0
    if on is None:
        yield IN_TURN
    elif numbered is not None and numbered[1] == "pool":
        with _pool(count) as pool:
            yield pool
    elif numbered is not None or (on.startswith(_DASK) and on != _DASK):
        try:
            from steelyard.analyse.mapping.dask_cluster import (  # noqa: PLC0415 - an extra
                connected,
                local_cluster,
            )
        except ModuleNotFoundError as error:
            message = f"cannot use `--on {on}`: the Python package `{error.name}` is not installed"
            hint = "pip install 'steelyard[dask]'"
            raise CapabilityError(message, hint=hint, code="capability.package") from error
        where = local_cluster(count, result) if numbered else connected(on.removeprefix(_DASK), result)
        with where as cluster:
            yield cluster
    else:
        message = f"cannot compute on `{on}`: unknown place; allowed: {ALLOWED}"
        raise UsageError(message, hint="leave out `--on` to compute in this process")


@contextmanager
def _pool(count: int) -> Iterator[_Pool]:
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(count, mp_context=context, initializer=_begin)
    try:
        yield _Pool(executor, count)
    finally:
        processes = list((executor._processes or {}).values())  # noqa: SLF001 - until Python 3.14
        executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        for process in processes:
            process.join()


def _begin() -> None:
    """Leave interruptions to the process that asks, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # As many threads as processes, not their square; the bits do not depend on it.
    os.environ["RAYON_NUM_THREADS"] = "1"
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
