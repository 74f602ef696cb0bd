"""Computations in processes of their own: few at a time, and ended when they take too long."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import signal
import threading
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from polars.exceptions import PolarsError

from steelyard.errors import DataError, SteelyardError
from steelyard.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

PATIENCE_S: Final = 60.0
"""Longest computation of a page [s]."""
WORKERS: Final = 2
MOST_MEMORY: Final = 4 * 1024**3
"""Memory of each process that computes [bytes]."""
MOST_WAITING: Final = 32

Parameters = ParamSpec("Parameters")
Found = TypeVar("Found")


class TooBusyError(SteelyardError):
    """The server has too much to do, or a computation took too long."""

    code = "serve.busy"
    exit_code = 6


@contextmanager
def named_faults() -> Iterator[None]:
    """Name what a damaged or a stranger's folder makes of its reading: no fault of the server."""
    try:
        yield
    except TimeoutError:
        raise
    except (ArithmeticError, LookupError, OSError, PolarsError, TypeError, ValueError) as error:
        message = f"cannot compute this page: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        hint = "`steelyard verify` says whether the result is whole"
        raise DataError(message, hint=hint, code="data.corrupt") from error


class Computing:
    """Computes for pages; nothing of it exists before the first page that needs it.

    A result folder may be damaged or a stranger's: what its reading does to memory and time ends with the
    process that reads it.

    Parameters
    ----------
    patience_s : float
        Longest computation [s].
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._pool: ProcessPoolExecutor | None = None
        self._places = asyncio.Semaphore(WORKERS)
        self._waiting = 0
        self._is_over = False

    async def run(
        self, function: Callable[Parameters, Found], /, *values: Parameters.args, **named: Parameters.kwargs
    ) -> Found:
        """Compute something that takes and gives what can be pickled.

        Raises
        ------
        TooBusyError
            If too many wait, it takes too long, or its process ended.
        SteelyardError
            From the function.
        """
        if self._waiting >= MOST_WAITING:
            message = f"{self._waiting} computations are waiting"
            raise TooBusyError(message, hint="try again in a minute")
        self._waiting += 1
        try:
            async with self._places:
                return await self._result(lambda pool: pool.submit(function, *values, **named))
        finally:
            self._waiting -= 1

    async def _result(self, submit: Callable[[ProcessPoolExecutor], Future[Found]]) -> Found:
        if self._is_over:
            message = "the server is ending"
            raise TooBusyError(message, hint="start it again: `steelyard serve`")
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(WORKERS, mp_context=context, initializer=_begin)
        try:
            with named_faults():
                return await asyncio.wait_for(asyncio.wrap_future(submit(self._pool)), self._patience_s)
        except TimeoutError as error:
            self.close()
            message = f"the computation took longer than {self._patience_s:g} s and was ended"
            raise TooBusyError(
                message, hint="`steelyard report` and `steelyard analyse` have no limit"
            ) from error
        except (BrokenExecutor, MemoryError) as error:
            self.close()
            message = "the computation ended without an answer"
            raise TooBusyError(
                message, hint=f"it may have needed more than {format_bytes(MOST_MEMORY)} of memory"
            ) from error

    def end(self) -> None:
        """End all processes, and begin none any more."""
        self._is_over = True
        self.close()

    def close(self) -> None:
        """End all processes."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        processes = list((pool._processes or {}).values())  # noqa: SLF001 - Python 3.14 has `kill_workers`
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            with suppress(ProcessLookupError, AttributeError, ValueError):
                process.kill()


def _begin() -> None:
    """Leave interruptions to the server, and the machine to whoever measures on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A table of a few megabytes may unfold into more than the machine has.
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = MOST_MEMORY if most == resource.RLIM_INFINITY else min(MOST_MEMORY, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))
    with suppress(OSError):
        os.nice(10)
    threading.Thread(target=_end_with_server, daemon=True).start()


def _end_with_server() -> None:
    """End when the server does, also when it was killed and could not say so."""
    server = multiprocessing.parent_process()
    if server is not None:
        server.join()
        os._exit(1)
