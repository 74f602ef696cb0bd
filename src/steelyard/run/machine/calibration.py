"""Steelyard's own error on this host, measured with a program that knows its truth."""

from __future__ import annotations

import json
import math
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter, ValidationError

from steelyard.errors import CapabilityError, RunError
from steelyard.model.run_outcome import RunOutcome
from steelyard.model.run_spec import Placement, RunSpec, Sandbox
from steelyard.run.machine.gate import Gate, Patience
from steelyard.run.machine.host import Clocks, read_fingerprint, read_host
from steelyard.run.programs import launcher_path, truth_path
from steelyard.run.state import user_state_folder, write_durably

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

CALIBRATION_SCHEMA: Final = "steelyard/calibration/1"
ISOLATIONS: Final = ("bare", "sandbox")
_TRUTH_MS: Final = 50
_CHUNK_RUNS: Final = 5
STUDY_RUNS: Final = 30
"""Runs per isolation before a study: 4 s, and the mean is known to a fifth of its spread."""
_VALIDITY: Final = timedelta(days=1)
_SPARE_S: Final = 60.0
"""Time beyond the work itself after which a chunk is given up [s]."""

_Pair = tuple[RunOutcome, RunOutcome]
"""Outcome of a program that knows its truth, and of one that does nothing."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, standard deviation and quantiles of ``count`` values [ns]."""

    count: int
    mean_ns: float
    sd_ns: float
    median_ns: float
    p95_ns: float
    largest_ns: float

    @classmethod
    def of(cls, values: Sequence[int]) -> Spread:
        """Describe values; quantiles by linear interpolation.

        Examples
        --------
        >>> Spread.of([1, 2, 3]).sd_ns
        1.0
        """
        ordered = sorted(values)
        mean = math.fsum(ordered) / len(ordered)
        squares = math.fsum((value - mean) ** 2 for value in ordered)
        return cls(
            count=len(ordered),
            mean_ns=mean,
            sd_ns=math.sqrt(squares / max(len(ordered) - 1, 1)),
            median_ns=_quantile(ordered, 0.5),
            p95_ns=_quantile(ordered, 0.95),
            largest_ns=float(ordered[-1]),
        )


@dataclass(frozen=True, slots=True)
class OutsideError:
    """What an isolation adds to the truth.

    Parameters
    ----------
    isolation : str
        ``bare`` or ``sandbox``.
    wall, cpu : Spread
        Outside value minus the program's own.
    launch : Spread
        Everything one launch of an empty program costs.
    stamp_source, cgroup : str
        Mechanisms that served the runs.
    flagged_count : int
        Runs with a remark of contamination; they are part of the numbers.
    degraded : tuple of str
        Parts of the isolation this host could not give.
    """

    isolation: str
    wall: Spread
    cpu: Spread
    launch: Spread
    stamp_source: str
    cgroup: str
    flagged_count: int
    degraded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Steelyard's error on one host at one time.

    Parameters
    ----------
    host_id, kernel_release : str
        Which host, which kernel.
    measured_utc : str
        When, ISO 8601.
    work_ms : int
        CPU time of the program that knows its truth [ms].
    clocks : Clocks
        Granularities and costs.
    errors : tuple of OutsideError
        By isolation; an isolation this host cannot give is missing here and named in `missing`.
    missing : dict
        Reason by isolation.
    gate : dict
        What the gate saw before.
    """

    host_id: str
    kernel_release: str
    measured_utc: str
    work_ms: int
    clocks: Clocks
    errors: tuple[OutsideError, ...]
    missing: dict[str, str]
    gate: dict[str, bool | int | float | str | list[str] | None]
    schema: str = CALIBRATION_SCHEMA

    @property
    def summary(self) -> str:
        """The table in one sentence."""
        parts = [
            f"{one.isolation}: wall {_plus_minus(one.wall)}, CPU {_plus_minus(one.cpu)}"
            for one in self.errors
        ]
        return f"outside minus own time, mean and standard deviation: {'; '.join(parts)}"

    def as_dict(self) -> dict[str, Any]:
        """Give the values to be stored, with the summary."""
        return {"summary": self.summary, **asdict(self)}


def calibrate(
    runs: int = 60,
    *,
    work_ms: int = _TRUTH_MS,
    progress: Callable[[int, int], None] | None = None,
    gate: Gate | None = None,
    folder: Path | None = None,
) -> Calibration:
    """Measure the error and store it for this host.

    The isolations take turns, a few runs each, so that a disturbance hits both. Nothing is left out.

    Parameters
    ----------
    runs : int
        Runs per isolation, at least 5.
    work_ms : int
        CPU time of the program that knows its truth [ms].
    progress : callable or None
        Called with runs done and runs in total.
    gate : Gate or None
        Asked once before; its answer is recorded.
    folder : Path or None
        Where calibrations are stored; by default the user's state folder.

    Returns
    -------
    Calibration
        As stored.

    Raises
    ------
    CapabilityError
        If no isolation works on this host, or the result cannot be stored.
    RunError
        If the launcher breaks.
    """
    runs = max(runs, _CHUNK_RUNS)
    clocks = read_host().clocks
    seen = (gate or Gate()).before()
    command = [str(truth_path()), "--iterations", str(truth_iterations(work_ms))]
    found: dict[str, list[_Pair]] = {isolation: [] for isolation in ISOLATIONS}
    missing: dict[str, str] = {}
    total = runs * len(ISOLATIONS)
    while any(len(found[name]) < runs for name in ISOLATIONS if name not in missing):
        for isolation in (name for name in ISOLATIONS if name not in missing):
            count = min(_CHUNK_RUNS, runs - len(found[isolation]))
            try:
                found[isolation] += _execute(isolation, command, count, work_ms)
            except CapabilityError as error:
                missing[isolation] = error.message
            if progress is not None:
                progress(sum(map(len, found.values())) + runs * len(missing), total)
    errors = tuple(_error_of(name, found[name]) for name in ISOLATIONS if name not in missing)
    if not errors:
        message = f"cannot calibrate any isolation: {'; '.join(missing.values())}"
        raise CapabilityError(message, hint="steelyard doctor", code="capability.calibration")
    fingerprint = read_fingerprint()
    calibration = Calibration(
        host_id=fingerprint.host_id,
        kernel_release=fingerprint.kernel_release,
        measured_utc=datetime.now(UTC).isoformat(timespec="milliseconds"),
        work_ms=work_ms,
        clocks=clocks,
        errors=errors,
        missing=missing,
        gate=TypeAdapter(dict[str, bool | int | float | str | list[str] | None]).validate_python(
            seen.as_dict()
        ),
    )
    _store(calibration, folder)
    return calibration


def valid_calibration(
    *, progress: Callable[[int, int], None] | None = None, folder: Path | None = None
) -> Calibration:
    """Give a calibration that holds now: a stored one, or a new one where there is none.

    A stored one holds for a day, for the same host, kernel and launcher.

    Parameters
    ----------
    progress : callable or None
        Called with runs done and runs in total while it is measured.
    folder : Path or None
        Where calibrations are stored; by default the user's state folder.

    Returns
    -------
    Calibration
        At least `STUDY_RUNS` runs per isolation.

    Raises
    ------
    CapabilityError, RunError
        As `calibrate`.
    """
    fingerprint = read_fingerprint()
    stored = latest_calibration(fingerprint.host_id, folder)
    if stored is not None and stored.kernel_release == fingerprint.kernel_release and _holds(stored):
        return stored
    patience = Patience(window_s=0.3, pause_s=0.5, bound_s=3.0)
    return calibrate(STUDY_RUNS, progress=progress, gate=Gate(patience=patience), folder=folder)


def _holds(stored: Calibration) -> bool:
    measured = datetime.fromisoformat(stored.measured_utc)
    launcher_made = datetime.fromtimestamp(launcher_path().stat().st_mtime, UTC)
    is_new = measured >= launcher_made and datetime.now(UTC) - measured < _VALIDITY
    return is_new and all(error.wall.count >= STUDY_RUNS for error in stored.errors)


def latest_calibration(host_id: str, folder: Path | None = None) -> Calibration | None:
    """Give the newest stored calibration of a host.

    Parameters
    ----------
    host_id : str
        As in its fingerprint.
    folder : Path or None
        Where calibrations are stored; by default the user's state folder.

    Returns
    -------
    Calibration or None
        ``None`` when there is none; damaged files and those of other schemas are passed over, since
        measuring again repairs them.
    """
    place = _folder(folder) / host_id
    if not place.is_dir():
        return None
    for path in sorted(place.glob("*.json"), reverse=True):
        try:
            calibration = TypeAdapter(Calibration).validate_json(path.read_bytes())
        except (OSError, ValidationError, ValueError):
            continue
        if calibration.schema == CALIBRATION_SCHEMA:
            return calibration
    return None


def _plus_minus(spread: Spread) -> str:
    return f"{spread.mean_ns / 1e6:+.3f} +/- {spread.sd_ns / 1e6:.3f} ms"


def _folder(folder: Path | None) -> Path:
    return user_state_folder() / "calibration" if folder is None else folder


def _store(calibration: Calibration, folder: Path | None) -> None:
    name = calibration.measured_utc.replace(":", "").replace("+0000", "Z")
    path = _folder(folder) / calibration.host_id / f"{name}.json"
    try:
        write_durably(path, TypeAdapter(Calibration).dump_json(calibration, indent=1).decode() + "\n")
    except OSError as error:
        message = f"cannot store the calibration as `{path}`: {error.strerror}"
        hint = "make the folder writable, or set XDG_STATE_HOME"
        raise CapabilityError(message, hint=hint, code="capability.state") from error


def _specification(isolation: str, command: list[str], iterations: int) -> RunSpec:
    return RunSpec(
        id=f"calibration-{isolation}",
        command=tuple(command),
        sandbox=Sandbox(read_only=(str(truth_path().parent),)) if isolation == "sandbox" else None,
        placement=Placement(maximal_weight=True),
        own_metrics=True,
        iterations=iterations,
    )


def _execute(isolation: str, command: list[str], count: int, work_ms: int) -> list[_Pair]:
    """Run the truth some times, and an empty program as often; give both outcomes as pairs."""
    empty = [command[0], "--iterations", "1"]
    truths = _launch(_specification(isolation, command, count), count * work_ms / 1000)
    # The set-up of the first launch lies before its request and would be missing in its cost.
    empties = _launch(_specification(isolation, empty, count + 1), 1.0)[1:]
    return list(zip(truths, empties, strict=True))


def _launch(spec: RunSpec, work_s: float) -> list[RunOutcome]:
    command = [str(launcher_path()), "once"]
    try:
        answer = subprocess.run(
            command,
            input=json.dumps(spec.document()).encode(),
            capture_output=True,
            timeout=_SPARE_S + 20 * work_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        message = f"`{' '.join(command)}` did not end within {error.timeout:.0f} s"
        raise RunError(message, hint="steelyard doctor", code="run.launcher") from error
    try:
        outcomes = [RunOutcome.of(json.loads(line)) for line in answer.stdout.splitlines()]
    except ValueError as error:
        message = f"`{' '.join(command)}` did not write an outcome: {answer.stdout[:200]!r}"
        raise RunError(message, code="run.launcher") from error
    bad = next((one for one in outcomes if one.status.is_failure), None)
    if len(outcomes) != spec.iterations or bad is not None:
        said = bad.message if bad is not None else answer.stderr.decode(errors="replace").strip()
        message = f"`{'bare' if spec.sandbox is None else 'sandbox'}` does not work on this host: {said}"
        raise CapabilityError(message, hint="steelyard doctor", code="capability.calibration")
    return outcomes


def _error_of(isolation: str, pairs: Sequence[_Pair]) -> OutsideError:
    truths = [truth for truth, _ in pairs]
    mechanism = truths[-1].mechanism
    return OutsideError(
        isolation=isolation,
        wall=Spread.of([_outside(one, "wall_ns") - _own(one, "wall") for one in truths]),
        cpu=Spread.of([_outside(one, "cpu_ns") - _own(one, "cpu") for one in truths]),
        launch=Spread.of([_outside(empty, "total_ns") for _, empty in pairs]),
        stamp_source=mechanism.stamps,
        cgroup=mechanism.cgroup,
        flagged_count=sum(bool(one.flags) for one in truths),
        degraded=mechanism.degraded,
    )


def _outside(outcome: RunOutcome, metric: str) -> int:
    value = outcome.value(metric)
    if value is None:
        message = f"cannot measure `{metric}` on this host: {outcome.missing(metric)}"
        raise CapabilityError(message, hint="steelyard doctor", code="capability.calibration")
    return value


def _own(outcome: RunOutcome, metric: str) -> int:
    values = [one.value for one in outcome.own if one.metric == metric and one.unit == "ns"]
    if len(values) != 1:
        message = f"`steelyard-truth` reported `{metric}` {len(values)} times instead of once"
        raise RunError(message, hint="make setup", code="run.calibration")
    return int(values[0])


def _quantile(ordered: Sequence[int], p: float) -> float:
    position = (len(ordered) - 1) * p
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def truth_iterations(cpu_ms: int = 50) -> int:
    """Give the iterations of the calibration program that take a given CPU time on this host.

    Parameters
    ----------
    cpu_ms : int
        CPU time [ms], 1 to 600000.

    Returns
    -------
    int
        Value for ``steelyard-truth --iterations``.
    """
    command = [str(truth_path()), "--calibrate", str(cpu_ms)]
    answer = subprocess.run(command, check=True, capture_output=True, timeout=60 + cpu_ms / 100)
    return int(answer.stdout)
