"""The status of best-effort scheduling in the text format of Prometheus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard.run.best_effort.service import BestEffortStatus

NS_PER_S: Final = 1e9
LEVELS: Final = ("strict", "idle", "none")
ALLOWANCES: Final = ("free", "limited", "parked")


@dataclass(frozen=True, slots=True)
class Metric:
    """One family of metrics.

    Parameters
    ----------
    name : str
        With its base unit; counters end in ``_total``.
    kind : str
        ``counter`` or ``gauge``.
    text : str
        What it is.
    samples : tuple of (Mapping, float)
        Labels and value of each.
    """

    name: str
    kind: str
    text: str
    samples: tuple[tuple[Mapping[str, str], float], ...]

    def write(self) -> str:
        r"""Give its lines.

        Examples
        --------
        >>> print(Metric("a_total", "counter", "Of a.", (({"b": 'x"y'}, 2.0),)).write(), end="")
        # HELP a_total Of a.
        # TYPE a_total counter
        a_total{b="x\"y"} 2
        """
        text = self.text.replace("\\", r"\\").replace("\n", r"\n")
        lines = [f"# HELP {self.name} {text}\n", f"# TYPE {self.name} {self.kind}\n"]
        lines += [f"{self.name}{_labels(labels)} {_number(value)}\n" for labels, value in self.samples]
        return "".join(lines)


def exposition(status: BestEffortStatus) -> str:
    """Write every metric.

    References
    ----------
    .. [1] Prometheus, "Exposition formats", text format 0.0.4.
    """
    metrics = [_state("level", "Level of protection from best-effort commands.", LEVELS, status.level)]
    metrics += _of_class(status.scheduler)
    metrics += _of_governor(status.governor)
    return "".join(metric.write() for metric in metrics)


def _of_class(scheduler: Mapping[str, object]) -> Iterator[Metric]:
    if not scheduler:
        return
    counters = _mapping(scheduler.get("counters"))
    events = tuple(({"event": name}, _float(count)) for name, count in counters.items())
    if events:
        text = "Events counted by the scheduling class."
        yield Metric(f"{_PREFIX}_scheduler_events_total", "counter", text, events)
    yield _counter("scheduler_ejections", "Times the kernel ejected the class.", scheduler.get("ejections"))
    yield _seconds(
        "scheduler_parked", "Time runnable best-effort tasks were held back.", scheduler.get("parked_ns")
    )
    strictness = _mapping(scheduler.get("strictness"))
    if not strictness:
        # It is not measured where the kernel's events cannot be followed.
        return
    yield _seconds(
        "strictness_violation",
        "Time in which a best-effort task ran on a CPU for which another one waited.",
        strictness.get("violation_ns"),
    )
    yield _counter("strictness_violations", "Number of such occasions.", strictness.get("violations"))
    yield _seconds(
        "strictness_beside",
        "Time in which a best-effort task ran while another one had a sibling, a thread of the same core.",
        strictness.get("beside_ns"),
    )


def _of_governor(governor: Mapping[str, object]) -> Iterator[Metric]:
    if not governor:
        return
    counters = _mapping(governor.get("counters"))
    allowance = str(governor.get("allowance"))
    yield _state("governor_allowance", "What best-effort commands are allowed to use.", ALLOWANCES, allowance)
    yield _gauge(
        "governor_pressure_ratio", "Share of time waited, at the last check.", governor.get("pressure")
    )
    if governor.get("pressure_alone") is not None:
        text = "Share of time waited without best-effort commands."
        yield _gauge("governor_pressure_alone_ratio", text, governor["pressure_alone"])
    if governor.get("quota_cpus") is not None:
        yield _gauge("governor_quota_cpus", "CPU quota of best-effort commands.", governor["quota_cpus"])
    for name, text in _GOVERNOR_COUNTERS.items():
        yield _counter(f"governor_{name}", text, counters.get(name))
    yield _seconds("governor_limited", "Time under a quota.", counters.get("limited_ns"))
    yield _seconds("governor_parked", "Time parked.", counters.get("parked_ns"))


_PREFIX: Final = "steelyard_best_effort"
_GOVERNOR_COUNTERS: Final = {
    "looks": "Checks whether services wait for a CPU.",
    "wakeups": "Times the kernel reported that services wait.",
    "throttles": "Times a quota was set where there was none.",
    "parks": "Times best-effort commands were parked.",
    "thaws": "Times parked commands were released to run.",
    "releases": "Times all quotas were removed.",
}


def _state(name: str, text: str, states: tuple[str, ...], current: str) -> Metric:
    """One sample per state, 1 for the current one."""
    label = name.rpartition("_")[2]
    samples = tuple(({label: state}, float(state == current)) for state in states)
    return Metric(f"{_PREFIX}_{name}", "gauge", text, samples)


def _gauge(name: str, text: str, value: object) -> Metric:
    return Metric(f"{_PREFIX}_{name}", "gauge", text, (({}, _float(value)),))


def _counter(name: str, text: str, value: object) -> Metric:
    return Metric(f"{_PREFIX}_{name}_total", "counter", text, (({}, _float(value)),))


def _seconds(name: str, text: str, nanoseconds: object) -> Metric:
    value = _float(nanoseconds) / NS_PER_S
    return Metric(f"{_PREFIX}_{name}_seconds_total", "counter", text, (({}, value),))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _float(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    escaped = (
        (name, value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n"))
        for name, value in labels.items()
    )
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}"


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)
