"""Run a list of messages in SimGrid: the rank program, unchanged, in simulated time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.errors import CapabilityError, RunError
from steelyard.run.programs import PACKAGE
from steelyard.studies.communication.export.simgrid_files import HOSTS, PLATFORM, RENAMED, write_simgrid
from steelyard.studies.communication.export.simgrid_noise import build_noise_library
from steelyard.studies.communication.trace import Endpoint, Operation, Trace, read_trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from steelyard.studies.communication.export.simgrid_model import SimGridModel
    from steelyard.studies.communication.export.simgrid_noise import SimGridNoise

    Vector = NDArray[np.float64]

HINT: Final = "install SimGrid: `make deps-communication`, or `apt-get install libsimgrid-dev`"
_BUILD_TIMEOUT_S: Final = 120.0
_SHOWN_CHARACTERS: Final = 500
_FIRST: Final = "pingpong,0\n"
"""Goes before what is asked for: at the begin of a block rank 1 is not waiting yet. One block holds all."""


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """What a simulation answered, operation by operation.

    Parameters
    ----------
    trace : Trace
        As the rank program wrote it.
    seconds_per_stamp : float
        Unit of its stamps: 1e-12, so that rounding is no part of an error.
    """

    trace: Trace
    seconds_per_stamp: float

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Sizes of the operations [bytes]; shape (operations,)."""
        return np.asarray(self.trace.endpoints[0].operations["size"].astype(np.int64))

    @property
    def half_round_trips_s(self) -> Vector:
        """Half of the time from a send to its reply; NaN for operations without; shape (operations,)."""
        records = self.trace.endpoints[0].operations
        half = (records["end_ns"] - records["start_ns"]) * (self.seconds_per_stamp / 2)
        return np.where(records["op"] == Operation.PINGPONG, half, np.nan)

    @property
    def send_durations_s(self) -> Vector:
        """Duration of the blocking send; NaN for operations without; shape (operations,)."""
        records = self.trace.endpoints[0].operations
        is_pingpong = records["op"] == Operation.PINGPONG
        returned = np.where(is_pingpong, records["mid_ns"], records["end_ns"])
        duration = (returned - records["start_ns"]) * self.seconds_per_stamp
        has_send = np.isin(
            records["op"], (Operation.PINGPONG, Operation.STREAM, Operation.SEND, Operation.RECV)
        )
        return np.where(has_send, duration, np.nan)


def simulate(
    simgrid: SimGridModel,
    sizes: ArrayLike,
    *,
    operations: Sequence[str] | str = "pingpong",
    noise: SimGridNoise | None = None,
    timeout_s: float = 300.0,
) -> Simulated:
    """Run operations one after the other in SimGrid.

    Parameters
    ----------
    simgrid : SimGridModel
        The network.
    sizes : array_like
        Shape (n,), bytes.
    operations : str or sequence of str
        Name of each operation, or one for all.
    noise : SimGridNoise, optional
        Draw the times instead of predicting them.
    timeout_s : float
        Real time after which the simulation is ended.

    Returns
    -------
    Simulated
        One record per operation.

    Raises
    ------
    CapabilityError
        If SimGrid, or for noise a C++ compiler, is missing or cannot compile.
    RunError
        If the simulation fails or takes too long. Neither processes nor files are left behind.
    """
    size = np.asarray(sizes, dtype=np.int64)
    names = [operations] * len(size) if isinstance(operations, str) else list(operations)
    rows = "".join(f"{name},{each}\n" for name, each in zip(names, size, strict=True))
    with tempfile.TemporaryDirectory(prefix="steelyard-simgrid-") as place:
        folder = Path(place)
        version = simgrid_version()
        build_rank_program(folder / "rank")
        write_simgrid(folder, simgrid, version)
        platform = PLATFORM if noise is None else build_noise_library(folder, simgrid, noise, version).name
        (folder / "plan.csv").write_text(f"op,size\n{_FIRST}{rows}", encoding="utf-8")
        (folder / "trace").mkdir()
        words = ["./rank", "--plan", "plan.csv", "--out", "trace", "--transport", "simgrid", "--stamps-ps"]
        words += ["--block", str(len(size) + 1), "--probes", "0"]
        _smpirun(folder, platform, version, words, timeout_s)
        return _simulated(folder / "trace", len(size))


def simulate_trace(
    simgrid: SimGridModel, trace: Trace, *, noise: SimGridNoise | None = None, timeout_s: float = 300.0
) -> Simulated:
    """Run what endpoint 0 finished of a trace, in its order, in SimGrid; see `simulate`."""
    records = trace.endpoints[0].operations
    names = [Operation(code).name.lower() for code in records["op"]]
    return simulate(simgrid, records["size"], operations=names, noise=noise, timeout_s=timeout_s)


def build_rank_program(program: Path) -> None:
    """Compile the rank program for simulated time.

    Raises
    ------
    CapabilityError
        If ``smpicc`` is missing or fails.
    """
    source = PACKAGE / "_workloads" / "mpi" / "rank.c"
    compiler = _tool("smpicc")
    command = [compiler, "-O2", "-DSTEELYARD_SIMULATED", str(source), "-o", str(program)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_TIMEOUT_S, check=False)
    if answer.returncode != 0:
        message = f"`{compiler}` cannot compile the rank program:\n{_end_of(answer.stderr)}"
        raise CapabilityError(message, hint=HINT, code="capability.simgrid")


def simgrid_version() -> tuple[int, int]:
    """Give the version of the SimGrid that is installed.

    Raises
    ------
    CapabilityError
        If there is none.
    """
    command = [_tool("smpirun"), "-version"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_TIMEOUT_S, check=False)
    words = answer.stdout.split("version", 1)[-1].split(".")
    with suppress(ValueError, IndexError):
        return int(words[0]), int(words[1])
    message = f"`smpirun -version` does not print a version, but: {_end_of(answer.stdout + answer.stderr)}"
    raise CapabilityError(message, hint=HINT, code="capability.simgrid")


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        message = f"`{name}` is not on the PATH, but SimGrid needs it"
        raise CapabilityError(message, hint=HINT, code="capability.simgrid")
    return found


def _smpirun(
    folder: Path, platform: str, version: tuple[int, int], program: Sequence[str], timeout_s: float
) -> None:
    precision = "precision/timing" if version >= RENAMED else "surf/precision"
    command = [
        *(_tool("smpirun"), "-np", "2", "-platform", platform, "-hostfile", HOSTS),
        f"--cfg={precision}:1e-12",
        # What the rank program computes between its calls is no part of the network.
        "--cfg=smpi/simulate-computation:no",
        "--log=root.thres:critical",
        *program,
    ]
    with _started(command, folder) as process:
        try:
            said, complaint = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            message = f"the simulation did not end within {timeout_s:g} s"
            raise RunError(message, hint="simulate fewer operations", code="run.simulation") from error
    if process.returncode != 0:
        message = f"SimGrid ended with status {process.returncode}:\n{_end_of(complaint or said)}"
        raise RunError(message, hint="check the export: `steelyard export simgrid`", code="run.simulation")


@contextmanager
def _started(command: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process in a session of its own, and end all of it in any case."""
    # Relative, because `smpirun` splits a path with blanks.
    environment = {**os.environ, "TMPDIR": "."}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _simulated(folder: Path, expected: int) -> Simulated:
    whole = read_trace(folder)
    first, second = (_without_first(endpoint) for endpoint in whole.endpoints)
    trace = Trace((first, second), whole.probes)
    if not trace.is_complete or len(first.operations) != expected:
        message = f"SimGrid finished {len(first.operations)} of {expected} operations"
        raise RunError(message, hint="simulate fewer operations, or smaller messages", code="run.simulation")
    unit = trace.endpoints[0].header.get("stamp_unit", "ns")
    return Simulated(trace, {"ns": 1e-9, "ps": 1e-12}[unit])


def _without_first(endpoint: Endpoint) -> Endpoint:
    operations = endpoint.operations[endpoint.operations["seq"] > 0].copy()
    operations["seq"] -= 1
    return Endpoint(endpoint.header, operations, endpoint.blocks)


def _end_of(text: str) -> str:
    return text.strip()[-_SHOWN_CHARACTERS:]
