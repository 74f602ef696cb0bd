"""The machine made ready for a study: locked, restored, tuned, gated; and what was found and done."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import CapabilityError, GateError, RunError
from steelyard.run.machine.calibration import valid_calibration
from steelyard.run.machine.gate import Gate, Observation, Patience, Policy
from steelyard.run.machine.lock import MachineLock
from steelyard.run.machine.settings import SETTINGS, setting
from steelyard.run.machine.tuning import Outcome, Refusal, Tuned, Tuning, idle_states_held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from steelyard.run.machine.sensors import Sensors
    from steelyard.run.machine.settings import Setting
    from steelyard.run.machine.tuning import Restoration

IDLE_STATES: Final = "idle-states"
TUNING_NAMES: Final = (*SETTINGS, IDLE_STATES)
"""Names a study may ask for."""

LOCK_PATIENCE_S: Final = 10.0
"""How long a study waits for another one that measures on this machine [s]."""

_LOOK_EVERY_S: Final = 5.0
"""One window of 0.3 s in this time costs a study of short batches at most 6 %."""

Record = dict[str, Any]
"""JSON values only."""


@dataclass(frozen=True, slots=True)
class MachineRequest:
    """What a study asks of the machine.

    Parameters
    ----------
    policy : Policy
        What happens when the machine does not become quiet.
    tunings : tuple of str
        Settings to change, from `TUNING_NAMES`.
    patience : Patience
        Waiting of the gate.
    lock_patience_s : float
        How long to wait for another study [s].
    calibrates : bool
        Whether Steelyard's own error is measured first, unless that was done today.
    """

    policy: Policy = Policy.RECORD
    tunings: tuple[str, ...] = ()
    patience: Patience = field(default_factory=Patience)
    lock_patience_s: float = LOCK_PATIENCE_S
    calibrates: bool = True


class BatchGate:
    """The gate of a whole study: called before each batch, remembers what it saw.

    A look stands for all batches that begin within the next seconds. On a machine that stays noisy
    the wait is halved from look to look, so that a study of many batches is not mostly waiting; a
    quiet look restores the full patience.

    Parameters
    ----------
    wishes : MachineRequest
        Policy and patience.
    sensors : Sensors or None
        What is read; the running machine by default.
    """

    def __init__(self, wishes: MachineRequest, sensors: Sensors | None = None) -> None:
        self._patience = wishes.patience
        self._bound_s = wishes.patience.bound_s
        self._gate = Gate(patience=wishes.patience, policy=wishes.policy, sensors=sensors)
        self._strict = wishes.policy is Policy.STRICT
        self._last: Observation | None = None
        self._open: tuple[int, Observation] | None = None
        self._records: list[Record] = []

    def __call__(self, batch: int) -> None:
        """Close the batch before, and admit the next one.

        Raises
        ------
        GateError
            Under the strict policy, when the machine does not become quiet.
        """
        self.close()
        young = None if self._last is None else self._gate.renew(self._last, age_s=_LOOK_EVERY_S)
        seen = young or self._gate.before(bound_s=self._bound_s)
        self._last, self._open = seen, (batch, seen)
        self._records.append(_record(batch, "before", seen))
        if young is None and not self._strict:
            self._bound_s = self._patience.bound_s if seen.quiet else self._bound_s / 2

    def close(self) -> tuple[str, ...]:
        """Look at what happened during the batch in flight, if there is one.

        Returns
        -------
        tuple of str
            What disturbed it, in words; empty when nothing did.
        """
        if self._open is None:
            return ()
        batch, before = self._open
        self._open = None
        seen = self._gate.after(before)
        self._records.append(_record(batch, "after", seen))
        return seen.reasons

    def records(self) -> tuple[Record, ...]:
        """Give what was seen, two records per batch, in order."""
        return tuple(self._records)


class PreparedMachine:
    """A machine on which this study measures alone.

    Parameters
    ----------
    gate : BatchGate
        To be called with each batch's number.
    calibration : dict or None
        Steelyard's own error on this host; ``None`` where it cannot be measured.
    notes : tuple of str
        What could not be had, with reasons.
    restored : tuple of Restoration
        What a killed study had left behind.
    """

    def __init__(
        self,
        gate: BatchGate,
        calibration: dict[str, Any] | None,
        restored: Sequence[Restoration],
        notes: Sequence[str] = (),
    ) -> None:
        self.gate = gate
        self.calibration = calibration
        self.notes = tuple(notes)
        self.restored = tuple(restored)
        self._records: list[Record] = []
        self._settings = contextlib.ExitStack()

    def tuning_records(self) -> tuple[Record, ...]:
        """Give one record per setting asked for; complete once the machine is released."""
        return tuple(self._records)

    def release(self) -> None:
        """Close the gate and take every setting back; the lock stays. May be called again."""
        self.gate.close()
        self._settings.close()

    def hold(self, tuning: Tuning, chosen: Sequence[Setting], *, idle_states: bool) -> None:
        """Apply settings until `release`."""
        if chosen:
            self._settings.callback(lambda: self.note_restored(tuning.restorations))
            self.note_tuned(self._settings.enter_context(tuning.applied(chosen)))
        if idle_states:
            self.note_tuned(_idle_record(self._settings.enter_context(idle_states_held())))

    def note_tuned(self, tuned: Tuned) -> None:
        """Keep what a tuning found and did."""
        self._records += [
            {
                "name": one.setting,
                "path": one.path,
                "found": one.original,
                "set": one.wanted,
                "restored": None,
            }
            for one in tuned.changed
        ]
        self._records += [{"name": name, "kept": True} for name in tuned.kept]
        self._records += [
            {"name": one.setting, "path": one.path, "refused": one.reason} for one in tuned.refused
        ]

    def note_restored(self, restorations: Sequence[Restoration]) -> None:
        """Keep what became of the changed values."""
        outcomes = {one.change.path: one.outcome for one in restorations}
        for record in self._records:
            outcome = outcomes.get(str(record.get("path")))
            if "restored" in record and outcome is not None:
                record["restored"] = outcome in {Outcome.RESTORED, Outcome.UNTOUCHED}
                record["outcome"] = str(outcome)


@contextlib.contextmanager
def machine_prepared(
    wishes: MachineRequest,
    *,
    tuning: Tuning | None = None,
    lock: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[PreparedMachine]:
    """Make the machine ready for the duration of a study.

    Takes the machine-wide lock (if another study keeps it, the recording policy goes on without
    tuning, and every look of the gate names that study), undoes what a killed study left behind,
    measures Steelyard's own error unless that was done today, applies the tunings, and takes
    everything back at the end, however that comes.

    Parameters
    ----------
    wishes : MachineRequest
        Policy and tunings.
    tuning : Tuning or None
        Whose journals are used; the machine's by default.
    lock : Path or None
        The lock file; the machine's by default.
    progress : callable or None
        Called with runs done and runs in total while Steelyard's own error is measured.

    Yields
    ------
    PreparedMachine
        Gate, calibration and records for the provenance.

    Raises
    ------
    GateError
        If another study measures on this machine, under the strict policy.
    UsageError
        If a tuning is unknown.
    CapabilityError
        If the journal of tuning cannot be written.
    """
    chosen = [setting(name) for name in wishes.tunings if name != IDLE_STATES]
    tuner = tuning or Tuning()
    with contextlib.ExitStack() as stack:
        unlocked = _take_lock(stack, wishes, lock)
        restored = tuner.restore_abandoned()
        calibration: Record | None = None
        notes: tuple[str, ...] = () if unlocked is None else (unlocked,)
        if unlocked is None and wishes.calibrates:
            calibration, notes = _calibrated(progress)
        machine = PreparedMachine(BatchGate(wishes), calibration, restored, notes)
        stack.callback(machine.release)
        if unlocked is None:
            machine.hold(tuner, chosen, idle_states=IDLE_STATES in wishes.tunings)
        else:
            # Settings would change under the feet of the other study.
            refused = [Refusal(name, "", unlocked) for name in ("machine-lock", *wishes.tunings)]
            machine.note_tuned(Tuned((), (), tuple(refused)))
        yield machine


def _calibrated(progress: Callable[[int, int], None] | None) -> tuple[Record | None, tuple[str, ...]]:
    """Give Steelyard's own error, or the note why there is none: a study is worth having without it."""
    try:
        return valid_calibration(progress=progress).as_dict(), ()
    except (CapabilityError, RunError) as error:
        return None, (f"Steelyard's own error on this host is unknown: {error.message}",)


def _take_lock(stack: contextlib.ExitStack, wishes: MachineRequest, path: Path | None) -> str | None:
    """Take the lock until the stack unwinds; under the recording policy give the reason if it is not free."""
    try:
        stack.enter_context(MachineLock(path, patience_s=wishes.lock_patience_s))
    except GateError as error:
        if wishes.policy is Policy.STRICT:
            raise
        return error.message
    return None


def _idle_record(refused: str | None) -> Tuned:
    if refused is None:
        return Tuned((), (f"{IDLE_STATES} (held)",), ())
    return Tuned((), (), (Refusal(IDLE_STATES, "dev/cpu_dma_latency", refused),))


def _record(batch: int, moment: str, seen: Observation) -> Record:
    return {"batch": batch, "moment": moment, **seen.as_dict()}
