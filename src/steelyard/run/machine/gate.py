"""The gate: is the machine quiet enough to measure? It says what it saw, whatever it decides."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from steelyard.errors import GateError, UsageError
from steelyard.run.machine.process_tree import culprits, foreign, leftovers, own_tree, ticks_between
from steelyard.run.machine.sensors import MachineSensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from steelyard.run.machine.host import Activity, Process
    from steelyard.run.machine.sensors import Sensors


LONGEST_WAIT: Final = "STEELYARD_LONGEST_WAIT_S"
"""Environment: longest wait for a quiet machine [s]; 0 measures beside whatever load, and records it."""

_NAMED_LEFTOVERS: Final = 3
_FEWEST_TICKS: Final = 3
"""CPU time is counted in ticks of 10 ms; after a batch of a few of them one or two say nothing."""


class Decision(StrEnum):
    """What a look at the machine says about the batch."""

    PASS = "pass"  # noqa: S105 - not a password
    """Measure (before), keep (after)."""
    RETRY = "retry"
    """Look again (before), repeat the batch if the budget allows it (after)."""
    ABORT = "abort"
    """The machine did not become admissible in time."""


class Policy(StrEnum):
    """What happens when the machine does not become quiet."""

    RECORD = "record"
    """Go on after a bounded wait and record that it was not quiet: a shared machine stays usable."""
    STRICT = "strict"
    """Raise `GateError`."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Bounds of a quiet machine.

    Parameters
    ----------
    foreign_cpu_ratio : float
        CPU time of processes that are not ours over the CPU time of all CPUs; a daemon that wakes
        now and then stays below the default.
    steal_ratio : float
        Time taken by the hypervisor over the CPU time of all CPUs; 1 % is also the bound above
        which a single run is flagged.
    pressure_ratio : float
        Share of the window in which some task waited for a CPU, while nothing of ours runs.
    swap_pages : int
        Pages moved from or to swap in the window.
    throttle_events : int
        Thermal throttle events in the window.
    """

    foreign_cpu_ratio: float = 0.05
    steal_ratio: float = 0.01
    pressure_ratio: float = 0.10
    swap_pages: int = 0
    throttle_events: int = 0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the gate looks and waits [s]: one window, pause between windows, bound in total.

    The default window resolves 2 % of a two-CPU machine, since CPU time is counted in ticks of 10 ms.
    """

    window_s: float = 0.3
    pause_s: float = 1.0
    bound_s: float = 10.0


def _longest_wait_s() -> float:
    """Give what the environment allows every wait for a quiet machine."""
    text = os.environ.get(LONGEST_WAIT, "inf")
    try:
        limit_s = float(text)
    except ValueError:
        limit_s = -1.0
    if not limit_s >= 0:
        message = f"cannot wait for a quiet machine: `{LONGEST_WAIT}` is `{text}`; allowed: seconds, from 0"
        raise UsageError(message)
    return limit_s


@dataclass(frozen=True, slots=True)
class Observation:
    """What a gate saw; stored with the batch.

    Parameters
    ----------
    decision : Decision
        For the caller.
    quiet : bool
        Whether every value was within its threshold.
    reasons : tuple of str
        In words, one for each value beyond its threshold; empty when quiet.
    window_s : float
        Length of the window the values belong to [s].
    foreign_cpu_ratio, steal_ratio, pressure_ratio : float or None
        As in `Thresholds`; ``None`` where not observed.
    swap_pages, throttle_events : int
        As in `Thresholds`.
    attempts : int
        Windows looked at before the decision.
    waited_s : float
        Time spent at the gate [s].
    ended : Activity or None
        Counters from which the batch's own window begins.
    listed : tuple of Process
        Processes at that moment.
    observed_ns : int or None
        End of the window, monotonic [ns].
    """

    decision: Decision
    quiet: bool
    reasons: tuple[str, ...]
    window_s: float
    foreign_cpu_ratio: float | None
    steal_ratio: float
    pressure_ratio: float | None
    swap_pages: int
    throttle_events: int
    attempts: int = 1
    waited_s: float = 0.0
    ended: Activity | None = field(default=None, repr=False, compare=False)
    observed_ns: int | None = None
    listed: tuple[Process, ...] = field(default=(), repr=False, compare=False)

    def as_dict(self) -> dict[str, str | int | float | bool | list[str] | None]:
        """Give the values to be stored."""
        return {
            "decision": str(self.decision),
            "quiet": self.quiet,
            "reasons": list(self.reasons),
            "window_s": round(self.window_s, 6),
            "foreign_cpu_ratio": self.foreign_cpu_ratio,
            "steal_ratio": self.steal_ratio,
            "pressure_ratio": self.pressure_ratio,
            "swap_pages": self.swap_pages,
            "throttle_events": self.throttle_events,
            "attempts": self.attempts,
            "waited_s": round(self.waited_s, 6),
        }


class Gate:
    """Looks at the machine before and after a batch.

    Parameters
    ----------
    thresholds : Thresholds
        Bounds of "quiet".
    patience : Patience
        Windows and waiting.
    policy : Policy
        What happens when the machine does not become quiet.
    own_roots : callable
        Gives the process ids whose whole trees are ours; by default this process alone.
    sensors : Sensors
        What is read.
    """

    def __init__(
        self,
        thresholds: Thresholds | None = None,
        *,
        patience: Patience | None = None,
        policy: Policy = Policy.RECORD,
        own_roots: Callable[[], Iterable[int]] | None = None,
        sensors: Sensors | None = None,
    ) -> None:
        self._thresholds = thresholds or Thresholds()
        self._patience = patience or Patience()
        self._policy = policy
        self._own_roots = own_roots or (lambda: (os.getpid(),))
        self._sensors = sensors or MachineSensors()
        self._suspects: frozenset[tuple[int, int]] | None = None

    def before(self, *, bound_s: float | None = None) -> Observation:
        """Wait, within bounds, until the machine is quiet.

        Parameters
        ----------
        bound_s : float or None
            Bound of this wait [s]; that of the patience by default. `STEELYARD_LONGEST_WAIT_S` lowers both.

        Returns
        -------
        Observation
            `PASS` when quiet. When it never became so: `PASS` with ``quiet=False`` under
            `Policy.RECORD`.

        Raises
        ------
        GateError
            When it never became quiet under `Policy.STRICT`; the message says what was seen.
        """
        limit_s = min(self._patience.bound_s if bound_s is None else bound_s, _longest_wait_s())
        waited_s = 0.0
        attempts = 0
        while True:
            attempts += 1
            seen = self.look()
            waited_s += seen.window_s
            left_s = limit_s - waited_s
            if seen.quiet or left_s <= 0:
                break
            pause_s = min(self._patience.pause_s, left_s)
            self._sensors.sleep(pause_s)
            waited_s += pause_s
        if not seen.quiet and self._policy is Policy.STRICT:
            raise _not_admissible(seen, waited_s)
        return replace(seen, decision=Decision.PASS, attempts=attempts, waited_s=waited_s)

    def look(self) -> Observation:
        """Observe one window in which nothing of ours runs; `PASS` or `RETRY`."""
        tree_before = self._sensors.processes()
        begin = self._sensors.activity()
        self._sensors.sleep(self._patience.window_s)
        end = self._sensors.activity()
        tree_after = self._sensors.processes()
        own = own_tree(tree_after, self._own_roots())
        foreign_ratio = _foreign_ratio(begin, end, ticks_between(tree_before, tree_after, own))
        reasons = _machine_reasons(self._thresholds, begin, end)
        if foreign_ratio > self._thresholds.foreign_cpu_ratio:
            names = culprits(tree_before, tree_after, own)
            reasons.append(f"other processes use {foreign_ratio:.0%} of the CPU time{names}")
        pressure_ratio = _pressure_ratio(begin, end)
        if pressure_ratio is not None and pressure_ratio > self._thresholds.pressure_ratio:
            reasons.append(f"tasks wait for a CPU {pressure_ratio:.0%} of the time")
        reasons += self._left_over(tree_after, own)
        other = self._sensors.other_study()
        if other is not None:
            reasons.append(f"another study is measuring on this machine: {other}")
        seen = _observe(begin, end, reasons, foreign_ratio, pressure_ratio)
        return replace(seen, listed=tree_after)

    def _left_over(self, processes: tuple[Process, ...], own: set[int]) -> list[str]:
        """Name what was left over when the study began; its own workers in containers come later."""
        found = leftovers(processes, own)
        if self._suspects is None:
            self._suspects = frozenset((one.id, one.start_ticks) for one in found)
        names = [f"{one.name} ({one.id})" for one in found if (one.id, one.start_ticks) in self._suspects]
        more = f" and {len(names) - _NAMED_LEFTOVERS} more" if len(names) > _NAMED_LEFTOVERS else ""
        return [f"left over from a study: {', '.join(names[:_NAMED_LEFTOVERS])}{more}"] if names else []

    def renew(self, seen: Observation, *, age_s: float) -> Observation | None:
        """Let a young observation stand for the next batch.

        Parameters
        ----------
        seen : Observation
            An earlier one.
        age_s : float
            Largest age at which it may stand [s].

        Returns
        -------
        Observation or None
            The same values with no attempt and no waiting; ``None`` when it is too old.
        """
        now = self._sensors.activity()
        if seen.observed_ns is None or now.monotonic_ns - seen.observed_ns > age_s * 1e9:
            return None
        return replace(seen, attempts=0, waited_s=0.0, ended=now, listed=self._sensors.processes())

    def after(self, before: Observation) -> Observation:
        """Say what happened to the machine while the batch ran.

        Foreign load is what processes used that lived at the end and are no part of the study: a
        lower bound, since short-lived ones are not seen. Each run carries its own waiting time too.

        Parameters
        ----------
        before : Observation
            What `before` returned for this batch.

        Returns
        -------
        Observation
            `RETRY` when other processes, the hypervisor, swapping or heat disturbed the batch, else
            `PASS`.
        """
        end = self._sensors.activity()
        begin = before.ended or end
        reasons = _machine_reasons(self._thresholds, begin, end)
        listed = self._sensors.processes()
        others = foreign(before.listed, listed, own_tree(listed, self._own_roots()))
        ticks = ticks_between(before.listed, listed, others)
        ratio = ticks / _capacity_ticks(begin, end)
        if ticks >= _FEWEST_TICKS and ratio > self._thresholds.foreign_cpu_ratio:
            own = {process.id for process in listed} - others
            names = culprits(before.listed, listed, own)
            reasons.append(f"other processes used {ratio:.0%} of the CPU time{names}")
        return _observe(begin, end, reasons, ratio, None)


def _observe(
    begin: Activity,
    end: Activity,
    reasons: list[str],
    foreign_ratio: float | None,
    pressure_ratio: float | None,
) -> Observation:
    return Observation(
        decision=Decision.RETRY if reasons else Decision.PASS,
        quiet=not reasons,
        reasons=tuple(reasons),
        window_s=(end.monotonic_ns - begin.monotonic_ns) / 1e9,
        foreign_cpu_ratio=foreign_ratio,
        steal_ratio=_steal_ratio(begin, end),
        pressure_ratio=pressure_ratio,
        swap_pages=_swapped(begin, end),
        throttle_events=_throttled(begin, end),
        ended=end,
        observed_ns=end.monotonic_ns,
    )


def _capacity_ticks(begin: Activity, end: Activity) -> float:
    elapsed_ns = max(end.monotonic_ns - begin.monotonic_ns, 1)
    return max(len(end.by_cpu), 1) * elapsed_ns / end.tick_ns


def _foreign_ratio(begin: Activity, end: Activity, own_ticks: int) -> float:
    busy = end.total.user + end.total.system - begin.total.user - begin.total.system
    return max(busy - own_ticks, 0) / _capacity_ticks(begin, end)


def _steal_ratio(begin: Activity, end: Activity) -> float:
    return max(end.total.steal - begin.total.steal, 0) / _capacity_ticks(begin, end)


def _pressure_ratio(begin: Activity, end: Activity) -> float | None:
    if "cpu" not in begin.pressure or "cpu" not in end.pressure:
        return None
    waited_us = end.pressure["cpu"].some.total_us - begin.pressure["cpu"].some.total_us
    return waited_us * 1000 / max(end.monotonic_ns - begin.monotonic_ns, 1)


def _swapped(begin: Activity, end: Activity) -> int:
    return end.swap.pages_in + end.swap.pages_out - begin.swap.pages_in - begin.swap.pages_out


def _throttled(begin: Activity, end: Activity) -> int:
    return (end.throttle_count or 0) - (begin.throttle_count or 0)


def _machine_reasons(thresholds: Thresholds, begin: Activity, end: Activity) -> list[str]:
    reasons = []
    steal_ratio = _steal_ratio(begin, end)
    if steal_ratio > thresholds.steal_ratio:
        reasons.append(f"the hypervisor takes {steal_ratio:.1%} of the CPU time")
    if _swapped(begin, end) > thresholds.swap_pages:
        reasons.append(f"{_swapped(begin, end)} pages were swapped")
    if _throttled(begin, end) > thresholds.throttle_events:
        reasons.append(f"{_throttled(begin, end)} thermal throttle events")
    return reasons


def _not_admissible(seen: Observation, waited_s: float) -> GateError:
    message = f"the machine did not become quiet within {waited_s:.0f} s: {'; '.join(seen.reasons)}"
    hint = "end what loads the machine (`steelyard doctor` names it), or let the gate only record it"
    return GateError(message, hint=hint, code="gate.noisy")
