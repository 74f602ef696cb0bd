"""Cells computed by the workers of a cluster of Dask, which read the tables themselves."""

from __future__ import annotations

import asyncio
import logging
import platform
import sys
import time
import traceback
from concurrent.futures import wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import uuid4

import dask
import distributed
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker
from distributed.system import MEMORY_LIMIT

from steelyard.errors import AnalysisError, CapabilityError, DataError
from steelyard.record.seal import hash_file
from steelyard.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from pathlib import Path

    from steelyard.analyse.mapping.over_cells import CellTask, Found

Answer = TypeVar("Answer")

ANSWER_S: Final = 5.0
"""How long a scheduler may take to answer [s]."""
WORKERS_S: Final = 30.0
"""How long a scheduler may have no worker [s]: one that was lost is often started again."""
SILENT_S: Final = 30.0
"""How long a scheduler may not answer while it is waited for [s]: one that is busy answers late."""
QUESTION_S: Final = 60.0
"""How long all workers may take to say what they are [s]: they load this program first."""
COMPARED: Final = ("steelyard", "numpy", "polars", "pyarrow", "scipy")
"""Packages that decide on the bits of a finding."""
_LOGGERS: Final = ("distributed", "distributed.client", "tornado.application", "tornado", "asyncio")
_NO_PAGES: Final[dict[str, list[str]]] = {
    f"distributed.{role}.http.routes": [] for role in ("scheduler", "worker")
}
_LEAVE_INTERRUPTIONS: Final = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
"""Run by each worker of ours: Ctrl-C is for the process that asks, which ends them."""
_STRANGE: Final = (
    *(OSError, TimeoutError, CommClosedError, EOFError, MemoryError),
    *(ArithmeticError, LookupError, TypeError, ValueError),
)
"""What an address that is none, or somebody else's answer, makes of a connection."""
_LOOK_S: Final = 2.0
_DEEPEST_FRAMES: Final = 50
"""Frames of an error that are sent: the client waits for ever for one that is too deep to be pickled."""
_WORKER_BYTES: Final = 300 << 20
"""What a worker takes before it reads anything: Python, NumPy, polars, Dask."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """What each worker must have: this result, and these versions."""

    plan: Path
    digest: str
    versions: tuple[str, ...]

    def problem(self) -> str:
        """Say what the process that asks lacks, with the name of its host; empty for nothing."""
        for name, wanted, found in zip(COMPARED, self.versions, _versions(), strict=True):
            if wanted != found:
                return _difference(platform.node(), name, found, wanted)
        try:
            found = _digest(self.plan, self.plan.stat().st_mtime_ns)
        except OSError as error:
            return f"`{platform.node()}` does not see `{self.plan}`: {error.strerror}"
        if found != self.digest:
            return f"`{platform.node()}` sees another result at `{self.plan}`: its plan differs"
        return ""


@lru_cache(maxsize=1)
def _versions() -> tuple[str, ...]:
    return tuple(_version(name) for name in COMPARED)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


@lru_cache(maxsize=4)
def _digest(path: Path, _changed_ns: int) -> str:
    return hash_file(path)


def _perform(task: CellTask[Found], folder: _Folder) -> Found:
    """Compute a task on a worker, which may have joined after the others were checked."""
    problem = folder.problem()
    if problem:
        raise _unfit(problem)
    worker = distributed.get_worker()
    limit = (worker.memory_manager.memory_limit or 0) // worker.state.nthreads
    needed = _WORKER_BYTES + task.needed_bytes()
    if limit and needed > limit:
        raise _too_large(
            task, f"it takes about {format_bytes(needed)}, each thread of a worker has {format_bytes(limit)}"
        )
    try:
        return task.compute()
    except MemoryError as error:
        raise _too_large(task, "the memory of the host is used up") from error
    except OSError as error:  # of the worker, which is not to be taken for one of the connection
        problem = f"`{platform.node()}` fails at {task.name}: {error}"
        raise _unfit(problem) from error
    except Exception as error:
        if len(frames := traceback.extract_tb(error.__traceback__)) > _DEEPEST_FRAMES:
            error.add_note("".join(traceback.format_list(frames[-_DEEPEST_FRAMES:])))
            raise error.with_traceback(None) from error.__cause__
        raise


def _too_large(task: CellTask[object], reason: str) -> AnalysisError:
    message = f"cannot compute {task.name} on `{platform.node()}`: {reason}"
    hint = "start fewer workers with more memory each"
    return AnalysisError(message, hint=hint, code="analysis.worker-memory")


def _difference(where: str, name: str, found: object, wanted: str) -> str:
    if isinstance(found, PackageNotFoundError) or not found:
        return f"`{where}` has no {name}, this process has {wanted}"
    return f"`{where}` has {name} {found}, this process {wanted}"


def _unfit(problem: str) -> DataError:
    message = f"cannot compute on a worker: {problem}"
    hint = "workers need this folder at the same path, and the same versions of the packages"
    return DataError(message, hint=hint, code="data.worker")


class Cluster:
    """The workers of a scheduler.

    Parameters
    ----------
    client : distributed.Client
        Connection to it.
    address : str
        How messages name it.
    result : Path
        Result folder, which each worker must see.

    Raises
    ------
    CapabilityError
        If there is no worker.
    DataError
        If a worker sees no or another folder, or has other versions.
    """

    def __init__(self, client: distributed.Client, address: str, result: Path) -> None:
        self._client = client
        self._address = address
        try:
            client.sync(client.wait_for_workers, 1, timeout=ANSWER_S, callback_timeout=2 * ANSWER_S)
        except TimeoutError as error:
            raise self._no_worker() from error
        # Asked by functions of Python alone: a worker with another Steelyard may not know ours.
        for name, wanted in zip(COMPARED, _versions(), strict=True):
            for where, found in self._asked(version, name).items():
                if found != wanted:
                    raise _unfit(_difference(where, name, found, wanted))
        plan = result.resolve() / "plan.json"
        self._folder = _Folder(plan, hash_file(plan), _versions())
        for where, found in self._asked(self._folder.problem).items():
            if found:
                raise _unfit(found if isinstance(found, str) else f"`{where}`: {found}")

    @property
    def workers(self) -> int:
        """How many tasks are computed at once."""
        threads: dict[str, int] = self._awaited(self._client.nthreads)
        return max(2, sum(threads.values()))

    def map(self, tasks: Sequence[CellTask[Found]]) -> list[Found]:
        """Give what each task finds, in the order of the tasks."""
        token = uuid4().hex
        # Some tasks bring their values along, which is meant: no advice on standard error.
        quiet = dask.config.set({"distributed.admin.large-graph-warning-threshold": sys.maxsize})
        keys = [f"steelyard-{token}-{place}" for place in range(len(tasks))]
        with quiet:
            futures = self._client.map(partial(_perform, folder=self._folder), tasks, key=keys, pure=False)
        try:
            found: list[Found] = self._awaited(self._client.gather, futures)
        except KilledWorker as error:
            lost = tasks[keys.index(str(error.task))]
            message = f"cannot compute {lost.name}: {error.allowed_failures + 1} workers died of it"
            hint = "often it is memory: start fewer workers with more memory each"
            raise AnalysisError(message, hint=hint, code="analysis.worker") from error
        except distributed.CancelledError as error:
            raise self._lost() from error
        finally:
            # What has not begun never does, whoever waited for it.
            with suppress(OSError):
                self._client.sync(self._client.cancel, futures, force=True, callback_timeout=ANSWER_S)
        return found

    def _awaited(self, ask: Callable[..., Awaitable[Answer]], *values: object) -> Answer:
        """Wait for an answer, however long it takes while the scheduler lives and has a worker.

        Dask itself waits for ever: for a scheduler whose host was lost without a word, or without workers.
        """

        async def answer() -> Answer:
            return await ask(*values)

        asked = asyncio.run_coroutine_threadsafe(answer(), self._client.loop.asyncio_loop)
        lived_s = worked_s = time.monotonic()
        try:
            while True:
                if wait([asked], _LOOK_S).done:
                    return asked.result()
                with suppress(OSError):
                    threads = self._client.sync(self._client.nthreads, callback_timeout=ANSWER_S)
                    lived_s = time.monotonic()
                    worked_s = lived_s if threads else worked_s
                if time.monotonic() - lived_s > SILENT_S:
                    raise self._lost()
                if lived_s - worked_s > WORKERS_S:
                    raise self._no_worker()
        except OSError as error:
            raise self._lost() from error
        finally:
            asked.cancel()

    def _asked(self, question: Callable[..., object], *values: object) -> dict[str, object]:
        """Ask each worker; what it raises is its answer."""
        try:
            answers: dict[str, object] = self._client.sync(
                self._client.run, question, *values, on_error="return", callback_timeout=QUESTION_S
            )
        except TimeoutError as error:
            where = f"the scheduler at `{self._address}`"
            message = f"cannot compute: {where} and its workers do not all answer within {QUESTION_S:g} s"
            hint = "its log says which are there: end those that hang, and repeat it; nothing was written"
            raise CapabilityError(message, hint=hint, code="capability.dask") from error
        except OSError as error:
            raise self._lost() from error
        return answers

    def _no_worker(self) -> CapabilityError:
        message = f"cannot compute: the scheduler at `{self._address}` has no worker"
        return CapabilityError(message, hint="start some: `dask worker ADDRESS`", code="capability.dask")

    def _lost(self) -> CapabilityError:
        message = f"cannot go on: the scheduler at `{self._address}` does not answer any more"
        hint = "nothing was written; start it again and repeat it, or leave out `--on` to compute here"
        return CapabilityError(message, hint=hint, code="capability.dask")


@contextmanager
def connected(address: str, result: Path) -> Iterator[Cluster]:
    """Use the workers of a scheduler that runs; addresses and TLS as `distributed.Client` takes them.

    Raises
    ------
    CapabilityError
        If it does not answer as a scheduler does, or has no worker.
    """
    _quieten()
    try:
        # A client waits for whatever accepts its connection.
        asyncio.run(asyncio.wait_for(_identity(address), ANSWER_S))
        client = distributed.Client(address, timeout=ANSWER_S)
    except _STRANGE as error:
        reason = " ".join(str(error).split()) or f"no answer within {ANSWER_S:g} s"
        if isinstance(error, MemoryError):
            reason = "what answers there is none"  # its first bytes, taken for a length
        message = f"no scheduler of Dask answers at `{address}`: {reason}"
        hint = "`dask scheduler` says its address, like tcp://HOST:8786; tls:// needs the settings of Dask"
        raise CapabilityError(message, hint=hint, code="capability.dask") from error
    try:
        yield Cluster(client, address, result)
    finally:
        with suppress(TimeoutError):
            client.close(timeout=ANSWER_S)


@contextmanager
def local_cluster(workers: int, result: Path) -> Iterator[Cluster]:
    """Start a scheduler and workers of one thread on this machine, which end with this process.

    They listen on the loopback interface alone; the memory of the machine is divided among them.

    Raises
    ------
    CapabilityError
        If a worker cannot be started.
    """
    _quieten()
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(_NO_PAGES))
        try:
            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                    memory_limit=MEMORY_LIMIT // workers,
                    # As many threads as workers, not their square; the bits do not depend on it.
                    env={"RAYON_NUM_THREADS": "1"},
                    preload=[_LEAVE_INTERRUPTIONS],
                )
            )
            client = stack.enter_context(distributed.Client(cluster))
        except (RuntimeError, OSError) as error:
            message = f"cannot start {workers} workers of Dask on this machine: {error}"
            hint = "if something ended one, often for want of memory: start fewer, or leave out `--on`"
            raise CapabilityError(message, hint=hint, code="capability.dask") from error
        yield Cluster(client, cluster.scheduler_address, result)


async def _identity(address: str) -> None:
    settings = distributed.Security().get_connection_args("client")
    async with distributed.core.rpc(address, connection_args=settings) as scheduler:
        await scheduler.identity()


def _quieten() -> None:
    """Leave messages to us: Dask logs what it survives, with tracebacks."""
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
