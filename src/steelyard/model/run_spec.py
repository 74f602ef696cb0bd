"""What a launcher is asked for.

``crates/model/src/spec.rs`` reads what is written here; the examples in ``tests/contract`` hold both to the
same document.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA: Final = "steelyard/run-spec/1"


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds for each run; ``None`` is no limit. Times in ns, sizes in bytes.

    CPU time, memory and the number of processes are those of the whole process tree; sizes of files and the
    number of open files are those of any one of them.
    """

    cpu_time_ns: int | None = None
    wall_time_ns: int | None = None
    memory_bytes: int | None = None
    process_count: int | None = None
    file_size_bytes: int | None = None
    output_bytes: int | None = None
    open_file_count: int | None = None
    stack_bytes: int | None = None
    disk_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class OutputStream:
    """Where standard output or error of a run goes.

    Parameters
    ----------
    to : str
        ``discard``: it is counted and thrown away; ``capture``: the outcome holds its beginning; ``file``:
        it is appended to a file.
    limit_bytes : int or None
        Bytes captured.
    path : str or None
        The file.
    """

    to: Literal["discard", "capture", "file"] = "discard"
    limit_bytes: int | None = None
    path: str | None = None

    @classmethod
    def captured(cls, limit_bytes: int) -> Self:
        """Keep so many bytes of it in the outcome."""
        return cls("capture", limit_bytes=limit_bytes)

    @classmethod
    def appended(cls, path: str) -> Self:
        """Append it to a file."""
        return cls("file", path=path)


@dataclass(frozen=True, slots=True)
class SchedulingPolicy:
    """Scheduling class of a run: ``normal``, ``batch``, ``idle`` or ``fifo`` with its priority, 1 to 99."""

    name: Literal["normal", "batch", "idle", "fifo"] = "normal"
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and with which priority a run is run.

    Parameters
    ----------
    cpus, memory_nodes : tuple of int or None
        What it may use; ``None`` leaves what the launcher may use.
    policy : SchedulingPolicy
        Scheduling class.
    maximal_weight : bool
        Whether its control group gets the largest CPU weight, so that a competitor on the same CPU cannot
        slow it.
    randomise_addresses : bool or None
        Layout of its address space; ``None`` keeps the host's setting.
    """

    cpus: tuple[int, ...] | None = None
    memory_nodes: tuple[int, ...] | None = None
    policy: SchedulingPolicy = field(default_factory=SchedulingPolicy)
    maximal_weight: bool = False
    randomise_addresses: bool | None = None


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The launcher's own sandbox around a run.

    Parameters
    ----------
    root : str or None
        Tree that the program sees as ``/``; ``None`` shows the host's programs and libraries.
    read_only, writable : tuple of str
        Further paths of the host, shown at the same place.
    network : str
        ``none`` or ``host``.
    user_id : int or None
        User it runs as; ``None`` takes one that no account uses.
    """

    root: str | None = None
    read_only: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    network: Literal["none", "host"] = "none"
    user_id: int | None = None


@dataclass(frozen=True, slots=True)
class Barrier:
    """A file at which several launchers on one kernel meet before their first run.

    Parameters
    ----------
    path : str
        On a memory file system, as the launcher sees it.
    parties : int
        Launchers that meet, at least 1.
    timeout_ns : int
        When to give up.
    """

    path: str
    parties: int
    timeout_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """One run, or a batch of runs of the same command one after the other.

    Parameters
    ----------
    id : str
        Every outcome carries it.
    command : tuple of str
        Program and arguments; a program without a slash is looked up in `PATH` of `environment`.
    environment : dict
        The complete environment: nothing is inherited.
    working_directory : str or None
        ``None`` is ``/``, in a sandbox its writable ``/box``.
    standard_input : str or None
        A file, opened again for each run; ``None`` is ``/dev/null``.
    standard_output, standard_error : OutputStream
        Where they go.
    sandbox : Sandbox or None
        Isolation by the launcher itself.
    limits : Limits
        What each run may use.
    placement : Placement
        CPUs, scheduling class, weight.
    counters : tuple of str
        Further counters by name.
    own_metrics : bool
        Whether the program is offered a descriptor for its own measurements.
    stamp_source : str or None
        Take the stamps from this source or fail; ``None`` takes the best.
    iterations, first_iteration : int
        Number of launches and the number of the first one, from 1.
    barrier : Barrier or None
        Where it meets others before its first launch.
    """

    id: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    working_directory: str | None = None
    standard_input: str | None = None
    standard_output: OutputStream = field(default_factory=OutputStream)
    standard_error: OutputStream = field(default_factory=OutputStream)
    sandbox: Sandbox | None = None
    limits: Limits = field(default_factory=Limits)
    placement: Placement = field(default_factory=Placement)
    counters: tuple[str, ...] = ()
    own_metrics: bool = False
    stamp_source: str | None = None
    iterations: int = 1
    first_iteration: int = 1
    barrier: Barrier | None = None

    def document(self) -> dict[str, Any]:
        """Give the JSON document, as the launcher would write it."""
        return {
            "schema": SCHEMA,
            "id": self.id,
            "command": list(self.command),
            "environment": dict(self.environment),
            **_present(self, "working_directory"),
            "standard_input": _input(self.standard_input),
            "standard_output": _present(self.standard_output, "to", "limit_bytes", "path"),
            "standard_error": _present(self.standard_error, "to", "limit_bytes", "path"),
            "isolation": _isolation(self.sandbox),
            "limits": _present(self.limits, *Limits.__slots__),
            "placement": _placement(self.placement),
            "counters": list(self.counters),
            "own_metrics": self.own_metrics,
            **_present(self, "stamp_source", "iterations", "first_iteration"),
            **({} if self.barrier is None else {"barrier": _present(self.barrier, *Barrier.__slots__)}),
        }


def _present(value: object, *names: str) -> dict[str, Any]:
    """Give the named fields that are not ``None``: an absent field is written as no field."""
    return {name: found for name in names if (found := getattr(value, name)) is not None}


def _input(path: str | None) -> dict[str, str]:
    return {"from": "null"} if path is None else {"from": "file", "path": path}


def _isolation(sandbox: Sandbox | None) -> dict[str, Any]:
    if sandbox is None:
        return {"kind": "bare"}
    view = {"view": "host"} if sandbox.root is None else {"view": "directory", "path": sandbox.root}
    return {
        "kind": "sandbox",
        "root": view,
        "read_only": list(sandbox.read_only),
        "writable": list(sandbox.writable),
        "network": sandbox.network,
        **_present(sandbox, "user_id"),
    }


def _placement(placement: Placement) -> dict[str, Any]:
    return {
        **_present(placement, "cpus", "memory_nodes"),
        "policy": {"class": placement.policy.name, **_present(placement.policy, "priority")},
        **_present(placement, "maximal_weight", "randomise_addresses"),
    }
