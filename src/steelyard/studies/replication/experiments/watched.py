"""Watch threads and the host while an experiment's program is run.

``steelyard-watch`` does it, from this host: a program in a container here is watched as any other, a program
on another device is not.
"""

from __future__ import annotations

import json
import select
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from steelyard.errors import DataError, RunError
from steelyard.run.programs import watch_program
from steelyard.studies.replication.experiments.files import write_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

WATCH_FORMAT: Final = "steelyard/watch/1"
SWITCH: Final = np.dtype(
    [
        ("thread", "S16"),
        ("next_name", "S16"),
        ("off_ns", "<u8"),
        ("on_ns", "<u8"),
        ("cpu", "<u4"),
        ("next_process", "<i4"),
        ("flags", "<u8"),
    ]
)
"""A row of ``switches.bin``; bit 0 of `flags`: preempted."""
MIGRATION: Final = np.dtype([("thread", "S16"), ("time_ns", "<u8"), ("from_cpu", "<u4"), ("to_cpu", "<u4")])
"""A row of ``migrations.bin``."""
SAMPLE: Final = np.dtype(
    [
        (name, "<i8")
        for name in (
            "time_ns",
            "steal_ns",
            "interrupt_ns",
            "cpu_pressure_ns",
            "io_pressure_ns",
            "memory_pressure_ns",
            "running_threads",
        )
    ]
)
"""A row of ``samples.bin``."""
_READY_S: Final = 20.0
_END_S: Final = 30.0


class Watched(Protocol):
    """What `watching` needs of a run; `conduct.Conducted` has it."""

    @property
    def folder(self) -> Path:
        """Folder of the run's files."""

    def says(self, key: str, value: object) -> None:
        """Put something into the header."""

    def missing(self, reason: str) -> None:
        """Note what could not be had, and why."""


@contextmanager
def watching(run: Watched, names: Sequence[str], *, sample_ms: int = 10) -> Iterator[None]:
    """Watch threads by the beginnings of their names, as the kernel knows them, and the host.

    Leaves the tables ``switches``, ``migrations`` and ``samples`` in the folder of the run, what was recorded
    and lost under `watch` in its header, and under `missing` what could not be watched. The program is
    measured in any case.

    Parameters
    ----------
    run : Watched
        The run.
    names : sequence of str
        Beginnings of names; 15 characters count.
    sample_ms : int
        Time between two samples of the host [ms], 1 to 60000.
    """
    with tempfile.TemporaryDirectory(prefix="steelyard-watch-") as name:
        scratch = Path(name)
        process = _start(scratch, names, sample_ms, run)
        try:
            yield
        finally:
            if process is not None:
                said = _end(process)
                try:
                    run.says("watch", keep_watched(scratch, run.folder, missing=run.missing))
                except DataError as error:
                    run.missing(f"nothing was watched: {error.message}{f' ({said})' if said else ''}")


def keep_watched(source: Path, target: Path, *, missing: Callable[[str], object]) -> dict[str, Any]:
    """Turn the files of a watch into the tables of a run.

    Parameters
    ----------
    source : Path
        Folder that ``steelyard-watch`` wrote.
    target : Path
        Folder of the run.
    missing : callable
        Called with each reason why something was not watched.

    Returns
    -------
    dict
        What the watch says of itself: `rows`, `lost_records`, `left_out_rows`, `own_cpu_ns` and so on.

    Raises
    ------
    DataError
        If ``watch.json`` is missing, damaged or of another format.
    """
    said = _read_watch(source / "watch.json")
    reasons: Mapping[str, str] = said.get("missing", {})
    for what, why in reasons.items():
        missing(f"{what}: {why}")
    if said["lost_records"] or said["left_out_rows"]:
        missing(
            f"the watch lost {said['lost_records']} records and left out {said['left_out_rows']} rows:"
            " switches and migrations are incomplete"
        )
    if "switches" not in reasons:
        switches = _rows(source / "switches.bin", SWITCH)
        columns = {name: switches[name] for name in ("cpu", "off_ns", "on_ns", "next_process")}
        columns |= {name: _texts(switches[name]) for name in ("thread", "next_name")}
        write_table(target, "switches", {**columns, "is_preempted": (switches["flags"] & 1).astype(bool)})
        migrations = _rows(source / "migrations.bin", MIGRATION)
        columns = {name: migrations[name] for name in ("time_ns", "from_cpu", "to_cpu")}
        write_table(target, "migrations", {**columns, "thread": _texts(migrations["thread"])})
    samples = _rows(source / "samples.bin", SAMPLE)
    write_table(target, "samples", {name: samples[name] for name in SAMPLE.names or ()})
    return {name: value for name, value in said.items() if name not in ("format", "missing")}


def _start(
    scratch: Path, names: Sequence[str], sample_ms: int, run: Watched
) -> subprocess.Popen[bytes] | None:
    command = [str(watch_program()), "--out", str(scratch), "--names", ",".join(names)]
    command += ["--sample-ms", str(sample_ms), "--with-parent"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output = process.stdout
    is_heard = output is not None and bool(select.select([output], [], [], _READY_S)[0])
    if output is not None and is_heard and output.readline() == b"ready\n":
        return process
    said = _end(process)
    run.missing(f"nothing was watched: the watcher did not become ready{f': {said}' if said else ''}")
    return None


def _end(process: subprocess.Popen[bytes]) -> str:
    """End the watcher and give what it complained about."""
    process.terminate()
    try:
        _, said = process.communicate(timeout=_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        _, said = process.communicate()
    return said.decode(errors="replace").strip().partition("\n")[0]


def _read_watch(path: Path) -> dict[str, Any]:
    hint = "the watcher was killed before it could end: repeat the run"
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"cannot read `{path.name}`: {getattr(error, 'strerror', None) or error}"
        raise DataError(message, hint=hint, code="experiment.watch") from error
    if not isinstance(said, dict) or said.get("format") != WATCH_FORMAT:
        message = f"`{path.name}` is not of the format `{WATCH_FORMAT}`"
        raise DataError(message, hint="`make setup` rebuilds the watcher", code="experiment.watch")
    return said


def _rows(path: Path, kind: np.dtype[Any]) -> NDArray[Any]:
    """Read whole rows; a row that was being written is left out."""
    try:
        return np.fromfile(path, dtype=kind, count=path.stat().st_size // kind.itemsize)
    except OSError as error:
        message = f"cannot read `{path.name}`: {error.strerror}"
        raise RunError(message, hint="repeat the run", code="run.watch") from error


def _texts(names: NDArray[Any]) -> NDArray[Any]:
    """Decode names of threads, each distinct one once."""
    distinct, place = np.unique(names, return_inverse=True)
    texts = np.array([name.decode("utf-8", errors="replace") for name in distinct], dtype=object)
    return texts[place] if texts.size else np.empty(0, dtype=object)
