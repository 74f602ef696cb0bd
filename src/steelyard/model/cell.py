"""A cell of a design: one combination of factor levels, and how it is run."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from steelyard.model.run_spec import Limits


class Affinity(StrEnum):
    """How parallel workers are bound to CPUs."""

    NONE = "none"
    """The scheduler decides."""
    CORE = "taskset"
    """One core per worker."""
    CORE_SET = "taskset-multi"
    """Equal, disjoint core sets."""
    MEMORY_NODE = "numa"
    """One memory node per worker, its cores and its memory."""
    NO_SMT = "noht"
    """One core per worker, only the first hardware thread of each core."""


class NeighbourKind(StrEnum):
    """Synthetic load beside the measured worker."""

    CPU = "cpu"
    """Busy arithmetic."""
    MEMCPY = "memcpy"
    """Busy memory copying."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Processes that load the machine during a batch and are not measured."""

    kind: NeighbourKind
    count: int


@dataclass(frozen=True, slots=True)
class Execution:
    """How a cell is run; the run stage knows this and nothing else of a study.

    Parameters
    ----------
    isolation : str
        Name of a registered isolation technology.
    command : tuple of str
        Program and arguments. ``{work}`` stands for the native workload program, ``{workloads}``
        for the folder of workload sources and built programs, as seen from inside the isolation;
        ``{workers}`` for the number of workers, ``{worker}`` for the worker's index, ``{block}``
        for the number of the block, from 1; ``{files}`` for a folder on the host that the run may read
        and write, kept in the result folder when it is over.
    workers : int
        Parallel measured workers, at least 1.
    iterations : int
        Launches per worker and batch, at least 1.
    affinity : Affinity
        Binding of workers to CPUs.
    neighbours : Neighbours or None
        Synthetic load.
    environment : dict
        Complete environment of the program.
    expected_output : str or None
        What standard output must be, stripped; anything else fails the run.
    counters : tuple of str
        Extra counters.
    limits : Limits
        Limits of each run.
    working_directory : str or None
        Folder in which the program starts, as seen from inside the isolation; the root by default.
    kept_error_bytes : int or None
        Bytes kept of what the program writes to standard error; nothing by default.
    """

    isolation: str
    command: tuple[str, ...]
    workers: int = 1
    iterations: int = 1
    affinity: Affinity = Affinity.NONE
    neighbours: Neighbours | None = None
    environment: dict[str, str] = field(default_factory=dict)
    expected_output: str | None = None
    counters: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    working_directory: str | None = None
    kept_error_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of levels.

    Parameters
    ----------
    number : int
        From 0, in the order of the factors.
    levels : dict
        Level of each factor, by the factor's name; all text.
    execution : Execution or None
        ``None`` for a missing cell.
    missing : str or None
        The rule or the absent capability that makes the cell missing.
    """

    number: int
    levels: dict[str, str]
    execution: Execution | None
    missing: str | None = None
