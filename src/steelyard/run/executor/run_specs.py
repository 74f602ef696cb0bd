"""From a cell to run specifications: what the launcher is asked for."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.model.run_spec import Barrier, OutputStream, RunSpec
from steelyard.run.session import WORK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.model import Execution
    from steelyard.run.executor.worker import Worker

CAPTURE_SLACK_BYTES: Final = 4096
BARRIER_TIMEOUT_NS: Final = 60_000_000_000
_BARRIER_BYTES: Final = 64


def run_specification(execution: Execution, worker: Worker, run_id: str) -> RunSpec:
    """Give the run specification of one worker, before its technology adapts it.

    Parameters
    ----------
    execution : Execution
        How the cell is run.
    worker : Worker
        Whose view of the file system the placeholders take.
    run_id : str
        Id of the batch's runs.
    """
    technology, site = worker.technology, worker.site
    places = {
        "work": str(technology.programs(site) / WORK),
        "workloads": str(technology.workloads(site)),
        "workers": str(execution.workers),
        "worker": str(site.worker),
    }
    expected, kept_bytes = execution.expected_output, execution.kept_error_bytes
    return RunSpec(
        id=run_id,
        command=tuple(fill(word, places) for word in execution.command),
        environment={name: fill(value, places) for name, value in execution.environment.items()},
        working_directory=execution.working_directory,
        standard_output=OutputStream()
        if expected is None
        else OutputStream.captured(len(expected.encode()) + CAPTURE_SLACK_BYTES),
        standard_error=OutputStream() if kept_bytes is None else OutputStream.captured(kept_bytes),
        limits=execution.limits,
        counters=execution.counters,
        own_metrics=True,
        iterations=execution.iterations,
    )


def in_block(execution: Execution, block: int) -> Execution:
    """Give an execution with ``{block}`` in its command replaced by the number of the block, from 1.

    Parameters
    ----------
    execution : Execution
        How the cell is run.
    block : int
        From 0, as in the plan.
    """
    place = {"block": str(block + 1)}
    return replace(execution, command=tuple(fill(word, place) for word in execution.command))


def fill(text: str, places: dict[str, str]) -> str:
    """Replace the placeholders that are known; everything else in braces stays.

    Examples
    --------
    >>> fill("{work}/{x}", {"work": "/bin"})
    '/bin/{x}'
    """
    for name, value in places.items():
        text = text.replace("{" + name + "}", value)
    return text


def with_barrier(spec: RunSpec, folder: Path, name: str, parties: int) -> RunSpec:
    """Let a batch's first iteration wait for the others at a barrier file.

    Parameters
    ----------
    spec : RunSpec
        Of one worker.
    folder : Path
        Folder of the barrier files, as the worker sees it.
    name : str
        Name of the file.
    parties : int
        Workers that meet.
    """
    return replace(spec, barrier=Barrier(str(folder / name), parties, BARRIER_TIMEOUT_NS))


@contextmanager
def barrier_file(folder: Path, name: str) -> Iterator[Path]:
    """Give the zeroed file on a memory file system in which a batch's workers meet; remove it at the end."""
    path = folder / name
    path.write_bytes(bytes(_BARRIER_BYTES))
    path.chmod(0o666)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
