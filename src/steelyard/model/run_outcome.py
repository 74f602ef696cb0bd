"""What one launch of a program did, as the launcher reports it.

``crates/model/src/outcome.rs`` writes what is read here; the examples in ``tests/contract`` hold both to the
same document.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SCHEMA: Final = "steelyard/run-outcome/1"

PADDING: Final = "environment_padding_bytes"
RANDOMISED: Final = "randomised_addresses"
"""Quantities that say where a run lay in memory, where that was drawn."""


class RunStatus(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    """Exit code 0."""
    NONZERO_EXIT = "nonzero_exit"
    """Another exit code, by the program's own choice."""
    SIGNALLED = "signalled"
    """Ended by a signal that was not ours."""
    CPU_TIMEOUT = "cpu_timeout"
    """Ended because it used its CPU time."""
    WALL_TIMEOUT = "wall_timeout"
    """Ended because its wall time was over."""
    OUT_OF_MEMORY = "out_of_memory"
    """A process of the tree was killed for memory."""
    LIMIT_EXCEEDED = "limit_exceeded"
    """Ended by another limit, which the outcome names."""
    INTERRUPTED = "interrupted"
    """Ended because the caller asked for it."""
    LAUNCHER_FAILED = "launcher_failed"
    """The program never started, or measuring it failed; the message says why."""

    @property
    def is_failure(self) -> bool:
        """Whether the run did not do what it was started for."""
        return self is not RunStatus.COMPLETED

    @property
    def is_own_failure(self) -> bool:
        """Whether the program failed by itself: nothing of ours ended it."""
        return self in {RunStatus.NONZERO_EXIT, RunStatus.SIGNALLED}


@dataclass(frozen=True, slots=True)
class Quantity:
    """One measured value with where it came from.

    Parameters
    ----------
    value : int or None
        In the unit of its metric's name; ``None`` where it could not be measured.
    source : str
        Mechanism that produced it, or would have.
    granularity : int
        Smallest step of the source in the same unit; 1 when exact.
    missing : str or None
        Why there is no value.
    """

    value: int | None
    source: str
    granularity: int
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class OwnMeasurement:
    """One line of a program's own report.

    Parameters
    ----------
    metric : str
        As the program names it.
    value : float
        In `unit`.
    unit : str
        As the program says it.
    iteration : int
        Timed section inside the launch, from 1.
    phase : str
        ``warmup`` or ``measure``.
    """

    metric: str
    value: float
    unit: str
    iteration: int = 1
    phase: str = "measure"


@dataclass(frozen=True, slots=True)
class CapturedStream:
    """The beginning of an output stream: bytes that are not UTF-8 are replaced; `total_bytes` were there."""

    text: str
    total_bytes: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class Mechanism:
    """Which mechanisms served a run.

    Parameters
    ----------
    cgroup : str
        ``v2``, ``hybrid``, ``v1`` or ``none``.
    stamps : str
        Source of the stamps of exec and exit.
    isolation : str
        ``bare`` or ``sandbox``.
    degraded : tuple of str
        Parts of the isolation that this host could not give, each with the reason.
    """

    cgroup: str = "none"
    stamps: str = "launcher"
    isolation: str = "bare"
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Clock:
    """Clock of another kernel minus the host's during the run, with a bound of the error [ns]."""

    offset_ns: int
    error_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What one launch did.

    Parameters
    ----------
    id : str
        Of the run specification.
    iteration : int
        Number of the launch, from 1.
    status : RunStatus
        How it ended.
    exit_code, signal : int or None
        What ended the first process.
    limit : str or None
        Limit that ended it.
    message : str or None
        What there is to say; of a failed launcher always.
    start_ns, end_ns : int or None
        exec and exit, monotonic clock [ns].
    start_utc_ns : int or None
        exec, since 1970 [ns].
    quantities : dict of Quantity
        Everything measured, by metric.
    counters : dict of Quantity
        Further counters, by name.
    own : tuple of OwnMeasurement
        What the program said of itself.
    standard_output, standard_error : CapturedStream or None
        If captured.
    flags : tuple of str
        Remarks; nothing is removed because of one.
    mechanism : Mechanism
        How this host did it.
    clock : Clock or None
        Of a run on another kernel.
    """

    id: str
    iteration: int
    status: RunStatus
    exit_code: int | None = None
    signal: int | None = None
    limit: str | None = None
    message: str | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    start_utc_ns: int | None = None
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    counters: Mapping[str, Quantity] = field(default_factory=dict)
    own: tuple[OwnMeasurement, ...] = ()
    standard_output: CapturedStream | None = None
    standard_error: CapturedStream | None = None
    flags: tuple[str, ...] = ()
    mechanism: Mechanism = field(default_factory=Mechanism)
    clock: Clock | None = None

    def value(self, metric: str) -> int | None:
        """Give the value of a metric, ``None`` if it was not measured."""
        quantity = self.quantities.get(metric)
        return None if quantity is None else quantity.value

    def missing(self, metric: str) -> str:
        """Say why a metric has no value."""
        quantity = self.quantities.get(metric)
        return (quantity and quantity.missing) or "the launcher does not say why"

    def document(self) -> dict[str, Any]:
        """Give the JSON document, as the launcher would write it."""
        found: dict[str, Any] = {"schema": SCHEMA}
        found |= {name: getattr(self, name) for name in _PLAIN}
        found["quantities"] = _quantities(self.quantities)
        found["counters"] = _quantities(self.counters)
        found["own"] = [_fields(each) for each in self.own]
        for name in ("standard_output", "standard_error"):
            stream = getattr(self, name)
            found[name] = None if stream is None else _fields(stream)
        found["flags"] = list(self.flags)
        found["mechanism"] = {**_fields(self.mechanism), "degraded": list(self.mechanism.degraded)}
        return found if self.clock is None else {**found, "clock": _fields(self.clock)}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read the JSON document; a field that it lacks has its default.

        Raises
        ------
        ValueError
            If it is no outcome of this schema; the text names the field.
        """
        place = "schema"
        try:
            _require_schema(document)
            found: dict[str, Any] = {}
            for place, read in _READERS.items():
                if document.get(place) is not None:
                    found[place] = read(document[place])
            place = next((name for name in _NEEDED if name not in found), "")
            return cls(**found)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            message = f"no outcome of a run: `{place}`: {error}"
            raise ValueError(message) from error


_PLAIN: Final = (
    "id",
    "iteration",
    "status",
    "exit_code",
    "signal",
    "limit",
    "message",
    "start_ns",
    "end_ns",
    "start_utc_ns",
)


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}


def _quantities(quantities: Mapping[str, Quantity]) -> dict[str, Any]:
    return {name: _quantity(each) for name, each in quantities.items()}


def _quantity(quantity: Quantity) -> dict[str, Any]:
    found: dict[str, Any] = {
        "value": quantity.value,
        "source": quantity.source,
        "granularity": quantity.granularity,
    }
    return found if quantity.missing is None else {**found, "missing": quantity.missing}


def _require_schema(document: Mapping[str, Any]) -> None:
    found = document.get("schema", SCHEMA)
    if found != SCHEMA:
        message = f"`{found}` is not `{SCHEMA}`"
        raise ValueError(message)


def _text(value: object) -> str:
    if not isinstance(value, str):
        message = f"`{value!r}` is not text"
        raise TypeError(message)
    return value


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        message = f"`{value!r}` is not a whole number"
        raise TypeError(message)
    return value


def _number(value: object) -> float:
    return float(value) if isinstance(value, float) else _integer(value)


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        message = f"`{values!r}` is not a list"
        raise TypeError(message)
    return tuple(map(_text, values))


def _read_quantities(found: Mapping[str, Any]) -> dict[str, Quantity]:
    return {
        name: Quantity(
            None if (value := each["value"]) is None else _integer(value),
            _text(each["source"]),
            _integer(each["granularity"]),
            None if (missing := each.get("missing")) is None else _text(missing),
        )
        for name, each in found.items()
    }


def _read_own(found: list[Mapping[str, Any]]) -> tuple[OwnMeasurement, ...]:
    return tuple(
        OwnMeasurement(
            _text(each["metric"]),
            _number(each["value"]),
            _text(each["unit"]),
            _integer(each["iteration"]),
            _text(each["phase"]),
        )
        for each in found
    )


def _read_stream(found: Mapping[str, Any]) -> CapturedStream:
    return CapturedStream(_text(found["text"]), _integer(found["total_bytes"]), bool(found["truncated"]))


def _read_mechanism(found: Mapping[str, Any]) -> Mechanism:
    return Mechanism(
        _text(found["cgroup"]), _text(found["stamps"]), _text(found["isolation"]), _texts(found["degraded"])
    )


def _read_clock(found: Mapping[str, Any]) -> Clock:
    return Clock(_integer(found["offset_ns"]), _integer(found["error_ns"]))


_NEEDED: Final = ("id", "iteration", "status")

_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "id": _text,
    "iteration": _integer,
    "status": RunStatus,
    "exit_code": _integer,
    "signal": _integer,
    "limit": _text,
    "message": _text,
    "start_ns": _integer,
    "end_ns": _integer,
    "start_utc_ns": _integer,
    "quantities": _read_quantities,
    "counters": _read_quantities,
    "own": _read_own,
    "standard_output": _read_stream,
    "standard_error": _read_stream,
    "flags": _texts,
    "mechanism": _read_mechanism,
    "clock": _read_clock,
}
