"""A comparison of commands from its request to what it found."""

from __future__ import annotations

import shlex
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import AnalysisError, DataError, SteelyardError, UsageError, unwritable
from steelyard.model.plan import PLAN_NAME
from steelyard.record.folder_lock import claimed, holds_plan
from steelyard.record.interim_log import FAILED, OPEN, LookTimes
from steelyard.record.ledger import LEDGER_NAME, Ledger
from steelyard.record.provenance import begin_provenance, end_session, write_provenance
from steelyard.run.executor.resident import resident
from steelyard.run.machine.gate import Patience
from steelyard.run.machine.host import Verdict as NoiseVerdict
from steelyard.run.machine.host import read_fingerprint, read_host
from steelyard.run.machine.preparation import MachineRequest, machine_prepared
from steelyard.run.redact import without_secrets
from steelyard.studies.comparison.outcome import FAILED_BENCHMARK, Measured, conclude
from steelyard.studies.comparison.run.launch import Launches
from steelyard.studies.comparison.run.measuring import BudgetClock, Measuring
from steelyard.studies.comparison.run.recorder import Recorder
from steelyard.studies.comparison.terms import BARE, draw_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.record.provenance import Provenance
    from steelyard.run.machine.preparation import PreparedMachine
    from steelyard.studies.comparison.contender import Commands
    from steelyard.studies.comparison.outcome import Comparison
    from steelyard.studies.comparison.run.measuring import Watcher
    from steelyard.studies.comparison.terms import Terms

PATIENCE: Final = Patience(window_s=0.2, pause_s=0.3, bound_s=2.0)
"""Somebody waits for the answer: a machine that stays busy is measured as it is, and the answer says so."""

CLOSING_CPU_S: Final = 0.05
RECORDED_CLOSING_CPU_S: Final = 0.15
"""CPU time behind the last run, without and with a result folder: text alone, or tables and findings too."""
FIRST_LOOK_CPU_S: Final = 0.15
"""CPU time of the first look, which loads the special functions."""
CLOSING_SHARE: Final = 0.25
MOST_SLOWDOWN: Final = 10.0

WAITING_SHARE: Final = 0.1
"""Part of the budget that the first wait for a quiet machine may take; each later one takes half of it."""


class Unwatched:
    """Tells nobody."""

    def block_done(self, measuring: Measuring) -> None:
        """Nothing."""


class _LookKeeper:
    """Keeps every look on disk before the next block, and tells the watcher."""

    def __init__(self, result: Path, plan: Plan, watcher: Watcher) -> None:
        self._result = result
        self._plan_id = plan.id
        self._watcher = watcher
        self._looks = 0

    def block_done(self, measuring: Measuring) -> None:
        looks = sum(len(duel.sequence.looks) for duel in measuring.duels)
        if looks != self._looks:
            self._looks = looks
            self.keep(measuring, OPEN, measuring.elapsed_s)
        self._watcher.block_done(measuring)

    def keep(self, measuring: Measuring, end: str, elapsed_s: float) -> None:
        times = tuple(duel.look_times for duel in measuring.duels)
        LookTimes(self._plan_id, times, end, elapsed_s).write(self._result)


def compare_commands(
    commands: Commands,
    terms: Terms,
    result: Path | None = None,
    *,
    watcher: Watcher | None = None,
    command_line: Sequence[str] = (),
    began_s: float | None = None,
) -> Comparison:
    """Measure commands until it is settled how they compare.

    Parameters
    ----------
    commands : Commands
        What is compared.
    terms : Terms
        How it is measured and what is promised.
    result : Path or None
        New result folder; ``None`` keeps nothing on disk.
    watcher : Watcher or None
        Told after each block.
    command_line : sequence of str
        For the provenance.
    began_s : float or None
        When this process was started, which is when the budget began, on the monotonic clock [s]; the call
        begins it unless given.

    Raises
    ------
    UsageError
        If the request is wrong, or the folder holds a result already.
    RunError
        If a command fails; what was recorded is kept.
    CapabilityError
        If isolation or metric do not work on this machine.
    DataError
        If the folder cannot be written.
    """
    cpu_before_s = 0.0 if began_s is not None else time.process_time()
    began_s = time.monotonic() if began_s is None else began_s
    terms.check()
    entrants = commands.field()
    if entrants.margins:
        terms = replace(terms, margins=entrants.margins)
    plan = draw_plan(entrants, terms)
    notes: list[str] = []
    with _full_disk_named(result), ExitStack() as stack:
        if result is not None:
            require_no_result(result)
        folders = () if terms.isolation == BARE else tuple(side.folder for side in commands.sides)
        worker = stack.enter_context(
            resident(terms.isolation, shown=(*terms.shown, *folders), is_fed=terms.input is not None)
        )
        machine = stack.enter_context(
            machine_prepared(
                MachineRequest(
                    patience=_patience(terms, time.monotonic() - began_s),
                    lock_patience_s=0.0,
                    calibrates=False,
                )
            )
        )
        ledger, launches = None, Launches(worker, terms)
        if result is not None:
            stack.enter_context(claimed(result))
            require_no_result(result)
            builds = tuple(side.facts for side in commands.sides)
            provenance = _begin(plan, result, command_line, launches, builds)
            ledger = stack.enter_context(Ledger(result / LEDGER_NAME, plan.id))
            stack.callback(_end, result, provenance, machine, notes)
        recorder = stack.enter_context(Recorder(ledger, machine.gate))
        cpu_s = time.process_time() - cpu_before_s
        closing_cpu_s = CLOSING_CPU_S if result is None else RECORDED_CLOSING_CPU_S
        slowdown = _slowdown(time.monotonic() - began_s, cpu_s)
        closing_s = min(closing_cpu_s * slowdown, CLOSING_SHARE * terms.extent.budget_s)
        clock = BudgetClock(began_s, closing_s, FIRST_LOOK_CPU_S * slowdown)
        measuring = Measuring(plan, entrants, terms, launches, recorder, clock)
        measured = _measure(measuring, watcher or Unwatched(), result, plan)
        if measuring.is_interrupted:
            worker.close(patience_s=0)
        notes += _failures(measuring)
        notes += [*commands.remarks, *machine.notes, *_clock_remarks(), *_disturbances(recorder)]
        stack.close()
        if result is not None:
            _write_findings(result, is_interrupted=measuring.is_interrupted)
    return conclude(measured, notes, result)


def _failures(measuring: Measuring) -> list[str]:
    """Say which benchmarks of a suite have no verdict, and why."""
    found = [each.failure.message for each in measuring.contests if each.failure is not None]
    unmeasured = sum(not each.blocks and each.failure is None for each in measuring.contests)
    if unmeasured and not measuring.is_interrupted:
        count = f"{unmeasured} of {len(measuring.contests)} benchmarks were"
        found.append(f"{count} not measured: the time did not suffice; give more minutes or fewer of them")
    return [f"{FAILED_BENCHMARK}{failure}" for failure in found]


def _measure(measuring: Measuring, watcher: Watcher, result: Path | None, plan: Plan) -> Measured:
    """Measure, and keep the looks however it ends."""
    keeper = None if result is None else _LookKeeper(result, plan, watcher)
    if keeper is not None:
        keeper.keep(measuring, OPEN, 0.0)
    try:
        measuring.execute(keeper or watcher)
    except BaseException:
        with suppress(SteelyardError):  # the failure on its way says more
            if keeper is not None:
                keeper.keep(measuring, FAILED, measuring.elapsed_s)
        raise
    elapsed_s = measuring.elapsed_s
    if keeper is not None:
        keeper.keep(measuring, measuring.end, elapsed_s)
    contenders, duels = measuring.entrants.contenders, tuple(measuring.duels)
    runs = tuple(measuring.runs)
    return Measured(measuring.terms, contenders, runs, duels, measuring.end, elapsed_s, measuring.startup_s)


def _write_findings(result: Path, *, is_interrupted: bool) -> None:
    from steelyard.studies.comparison.analysis import analyse  # noqa: PLC0415 - start-up time

    try:
        analyse(result)
    except AnalysisError:
        # Interrupted before any run of use was done, there are none, and the answer says as much.
        if not is_interrupted:
            raise


def _slowdown(elapsed_s: float, cpu_s: float) -> float:
    """Give how many times its CPU time the work before the first run has taken, as all work here will."""
    return min(max(elapsed_s / cpu_s, 1.0), MOST_SLOWDOWN) if cpu_s > 0 else 1.0


def _patience(terms: Terms, elapsed_s: float) -> Patience:
    """Wait for a quiet machine for a part of what is left of a small budget only."""
    left_s = max(terms.extent.budget_s - elapsed_s, 0.0)
    return replace(PATIENCE, bound_s=min(PATIENCE.bound_s, WAITING_SHARE * left_s))


def _clock_remarks() -> list[str]:
    """Say where the kernel does not trust the fast clock of this machine."""
    fact = next((fact for fact in read_host().noise if fact.name == "clock-source"), None)
    if fact is None or fact.verdict is NoiseVerdict.PASS:
        return []
    return [f"the clock is `{fact.seen}`: {fact.why}"]


def _disturbances(recorder: Recorder) -> list[str]:
    """Say how often the gate saw what, with the most frequent as example."""
    seen = recorder.disturbances
    if not seen:
        return []
    example = max(seen, key=lambda reason: seen[reason])
    count = sum(seen.values())
    return [f"not quiet at {count} look{'s' * (count > 1)} of the gate, for example: {example}"]


def require_no_result(result: Path) -> None:
    """Refuse a folder that holds a result already.

    Raises
    ------
    UsageError
        If it does.
    """
    if holds_plan(result):
        message = f"`{result}` already contains a result"
        hint = "give another folder with --out: a comparison cannot be resumed"
        raise UsageError(message, hint=hint, code="usage.folder-in-use")


def _begin(
    plan: Plan,
    result: Path,
    command_line: Sequence[str],
    launches: Launches,
    builds: tuple[dict[str, Any], ...],
) -> Provenance:
    try:
        plan.write(result / PLAN_NAME)
    except OSError as error:
        raise unwritable(result / PLAN_NAME, error, "give another folder with --out") from error
    fingerprint = read_fingerprint()
    provenance = replace(
        begin_provenance(plan, map(without_secrets, command_line), host_id=fingerprint.host_id),
        host=asdict(fingerprint),
        environment=launches.environment,
        builds=builds,
    )
    write_provenance(result, provenance)
    return provenance


@contextmanager
def _full_disk_named(result: Path | None) -> Iterator[None]:
    """Give the next step after a full disk: a comparison cannot be resumed, as its error is spent in time."""
    try:
        yield
    except DataError as error:
        if error.code != "data.disk-full" or result is None:
            raise
        analyse = f"`steelyard analyse {shlex.quote(str(result))}`"
        hint = (
            f"free space on the file system of `{result}`, then compare again with another --out; "
            f"{analyse} says what the runs recorded so far tell"
        )
        raise DataError(error.message, hint=hint, code=error.code) from error


def _end(result: Path, provenance: Provenance, machine: PreparedMachine, remarks: Sequence[str]) -> None:
    """Write what can be written, however the measuring ended."""
    from steelyard.record.tables import write_tables  # noqa: PLC0415 - start-up time

    with suppress(SteelyardError):  # a failure on its way says more
        *earlier, last = end_session(provenance).sessions
        seen = replace(last, gate=machine.gate.records())
        notes = tuple(dict.fromkeys((*provenance.notes, *(remarks or machine.notes))))
        write_provenance(result, replace(provenance, sessions=(*earlier, seen), notes=notes))
        write_tables(result)
