"""From a cell to run specifications: what the launcher is asked for."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

from steelyard.run.session import WORK

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Execution
    from steelyard.run.isolation.interface import Document
    from steelyard.run.worker import Worker

SCHEMA: Final = "steelyard/run-spec/1"
CAPTURE_SLACK_BYTES: Final = 4096
BARRIER_TIMEOUT_NS: Final = 60_000_000_000


def run_specification(execution: Execution, worker: Worker, run_id: str) -> Document:
    """Give the run specification of one worker, before its technology adapts it.

    Parameters
    ----------
    execution : Execution
        How the cell is executed.
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
    spec: Document = {
        "schema": SCHEMA,
        "id": run_id,
        "command": [fill(word, places) for word in execution.command],
        "environment": {name: fill(value, places) for name, value in execution.environment.items()},
        "limits": {name: value for name, value in asdict(execution.limits).items() if value is not None},
        "counters": list(execution.counters),
        "own_metrics": True,
        "iterations": execution.iterations,
    }
    if execution.working_directory is not None:
        spec["working_directory"] = execution.working_directory
    if execution.kept_error_bytes is not None:
        spec["standard_error"] = {"to": "capture", "limit_bytes": execution.kept_error_bytes}
    if execution.expected_output is not None:
        limit = len(execution.expected_output.encode()) + CAPTURE_SLACK_BYTES
        spec["standard_output"] = {"to": "capture", "limit_bytes": limit}
    return spec


def in_block(execution: Execution, block: int) -> Execution:
    """Give an execution with ``{block}`` in its command replaced by the number of the block, from 1.

    Parameters
    ----------
    execution : Execution
        How the cell is executed.
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


def with_barrier(spec: Document, folder: Path, name: str, parties: int) -> Document:
    """Let a batch's first iteration wait for the others at a barrier file.

    Parameters
    ----------
    spec : dict
        Run specification.
    folder : Path
        Folder of the barrier files, as the worker sees it.
    name : str
        Name of the file.
    parties : int
        Workers that meet.
    """
    barrier = {"path": str(folder / name), "parties": parties, "timeout_ns": BARRIER_TIMEOUT_NS}
    return {**spec, "barrier": barrier}
