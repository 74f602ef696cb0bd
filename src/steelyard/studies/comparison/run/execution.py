"""A comparison of commands from its request to what it found."""

from __future__ import annotations

import shlex
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from steelyard.errors import AnalysisError, DataError, SteelyardError, UsageError, unwritable
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.record.folder_lock import claimed, holds_plan
from steelyard.record.interim_log import FAILED, OPEN, LookTimes
from steelyard.record.ledger import LEDGER_NAME, Ledger
from steelyard.record.provenance import (
    begin_provenance,
    continue_provenance,
    end_session,
    read_provenance,
    write_provenance,
)
from steelyard.run.executor.resident import residents
from steelyard.run.machine.gate import Patience
from steelyard.run.machine.host import Verdict as NoiseVerdict
from steelyard.run.machine.host import read_fingerprint, read_host
from steelyard.run.machine.preparation import MachineRequest, machine_prepared
from steelyard.run.redact import without_secrets
from steelyard.studies.comparison.contender import program_hashes
from steelyard.studies.comparison.modes.choice import choice_of, trial_of
from steelyard.studies.comparison.modes.duet import cpu_sets_of, mode_notes
from steelyard.studies.comparison.outcome import FAILED_BENCHMARK, Measured, conclude
from steelyard.studies.comparison.run.launch import Launches
from steelyard.studies.comparison.run.measuring import BudgetClock, Measuring
from steelyard.studies.comparison.run.recorder import Recorder
from steelyard.studies.comparison.terms import BARE, Mode, draw_plan, planned_terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.record.provenance import Provenance
    from steelyard.run.executor.worker import Worker
    from steelyard.run.machine.preparation import PreparedMachine
    from steelyard.studies.comparison.contender import Commands, Contender, Field, Side
    from steelyard.studies.comparison.outcome import Comparison
    from steelyard.studies.comparison.run.measuring import Watcher
    from steelyard.studies.comparison.run.resumption import Resumed
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


@dataclass(frozen=True, slots=True)
class GoingOn:
    """Go on with a recorded comparison.

    Parameters
    ----------
    budget_s : float or None
        Time the rest may take [s]; as long as the first time unless given.
    """

    budget_s: float | None = None


class Unwatched:
    """Tells nobody."""

    def say(self, text: str) -> None:
        """Nothing."""

    def block_done(self, measuring: Measuring) -> None:
        """Nothing."""


class _LookKeeper:
    """Keeps every look on disk before the next block, and tells the watcher."""

    def __init__(self, result: Path, plan_id: str, watcher: Watcher) -> None:
        self._result = result
        self._plan_id = plan_id
        self._watcher = watcher
        self._looks = 0

    def say(self, text: str) -> None:
        self._watcher.say(text)

    def block_done(self, measuring: Measuring) -> None:
        looks = sum(len(duel.sequence.looks) for duel in measuring.duels)
        if looks != self._looks:
            self._looks = looks
            self.keep(measuring, OPEN, measuring.total_s)
        self._watcher.block_done(measuring)

    def keep(self, measuring: Measuring, end: str, elapsed_s: float) -> None:
        times = tuple(duel.look_times for duel in measuring.duels)
        LookTimes(self._plan_id, times, end, elapsed_s).write(self._result)


def compare_commands(  # noqa: PLR0913 - keyword only
    commands: Commands,
    terms: Terms,
    result: Path | None = None,
    *,
    watcher: Watcher | None = None,
    command_line: Sequence[str] = (),
    began_s: float | None = None,
    going_on: GoingOn | None = None,
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
    going_on : GoingOn or None
        Go on with the comparison in `result`, which is not settled.

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
    terms = terms.of(entrants)
    terms.require_enough(entrants.pairs)
    cpu_sets = cpu_sets_of(terms, entrants)
    notes: list[str] = []
    with _full_disk_named(result), ExitStack() as stack:
        if result is not None and going_on is None:
            require_no_result(result, terms.verb)
        workers = stack.enter_context(_workers(terms, cpu_sets, commands.sides))
        machine = stack.enter_context(
            machine_prepared(
                MachineRequest(
                    patience=_patience(terms, time.monotonic() - began_s),
                    lock_patience_s=0.0,
                    calibrates=False,
                )
            )
        )
        if result is not None:
            stack.enter_context(claimed(result))
            if going_on is None:
                require_no_result(result, terms.verb)
        terms = _with_mode(terms, entrants, workers, result if going_on else None, watcher or Unwatched())
        plan = draw_plan(entrants, terms)
        ledger, launches = None, _launches(workers, terms)
        notes += mode_notes(terms, cpu_sets)
        state = _state(going_on, result, plan, terms)
        if result is not None:
            begun = _begun(plan, command_line, launches, (commands.sides, entrants.contenders))
            provenance = _begin(plan, result, begun) if state is None else _continue(result, begun, notes)
            ledger = stack.enter_context(Ledger(result / LEDGER_NAME, plan.id))
            stack.callback(_end, result, provenance, machine, notes)
        recorder = stack.enter_context(Recorder(ledger, machine.gate))
        closing_cpu_s = CLOSING_CPU_S if result is None else RECORDED_CLOSING_CPU_S
        clock = _clock(began_s, time.process_time() - cpu_before_s, closing_cpu_s, terms)
        measuring = Measuring(plan, entrants, terms, launches, recorder, clock)
        measured = _measure(measuring, watcher or Unwatched(), result, state)
        if measuring.is_interrupted:
            _close_at_once(workers)
        notes += _failures(measuring)
        notes += [*commands.remarks, *machine.notes, *_clock_remarks(), *_disturbances(recorder)]
        stack.close()
        if result is not None:
            _write_findings(result, is_interrupted=measuring.is_interrupted)
    return conclude(measured, notes, result)


def _launches(workers: Sequence[Worker], terms: Terms) -> Launches:
    """Give what launches runs in a mode; the last worker is for turns, unless it is a duet's."""
    if terms.mode is Mode.DUET:
        return Launches(workers[0], terms, workers[1])
    return Launches(workers[-1], terms)


def _workers(
    terms: Terms, cpu_sets: Sequence[tuple[int, ...]], sides: Sequence[Side]
) -> AbstractContextManager[list[Worker]]:
    """Start what the mode needs: both of a duet, and one for turns unless it is a duet in any case."""
    return residents(
        terms.isolation,
        tuple(cpu_sets) if terms.mode is Mode.DUET else (*cpu_sets, None),
        shown=(*terms.shown, *(() if terms.isolation == BARE else (side.folder for side in sides))),
        is_fed=terms.input is not None,
    )


def _close_at_once(workers: Sequence[Worker]) -> None:
    for worker in workers:
        worker.close(patience_s=0)


def _state(going_on: GoingOn | None, result: Path | None, plan: Plan, terms: Terms) -> Resumed | None:
    """Give where a comparison stands that goes on."""
    if going_on is None or result is None:
        return None
    from steelyard.studies.comparison.run.resumption import resumed  # noqa: PLC0415 - start-up time

    return resumed(result, plan, terms, going_on.budget_s)


def _with_mode(
    terms: Terms, entrants: Field, workers: Sequence[Worker], begun: Path | None, watcher: Watcher
) -> Terms:
    """Give the terms with the mode that a trial chooses, or chose when the comparison began, and say so."""
    if terms.mode is not Mode.AUTO:
        return terms
    if begun is not None:
        planned, _ = planned_terms(read_plan(begun / PLAN_NAME))
        mode, trial = planned.mode, planned.trial
    else:
        turns, duets = (_launches(workers, replace(terms, mode=each)) for each in (Mode.TURNS, Mode.DUET))
        trial = trial_of(terms, entrants.contenders[entrants.pairs[0][0]], turns, duets)
        mode = choice_of(trial, terms.seed).mode
    watcher.say(choice_of(trial, terms.seed).sentence)
    return replace(terms, mode=mode, trial=trial)


def _failures(measuring: Measuring) -> list[str]:
    """Say which benchmarks of a suite have no verdict, and why."""
    found = [each.failure.message for each in measuring.contests if each.failure is not None]
    unmeasured = sum(not each.blocks and each.failure is None for each in measuring.contests)
    if unmeasured and not measuring.is_interrupted:
        count = f"{unmeasured} of {len(measuring.contests)} benchmarks were"
        found.append(f"{count} not measured: the time did not suffice; give more minutes or fewer of them")
    return [f"{FAILED_BENCHMARK}{failure}" for failure in found]


def _measure(measuring: Measuring, watcher: Watcher, result: Path | None, state: Resumed | None) -> Measured:
    """Measure, from where it stands, and keep the looks however it ends."""
    if state is not None:
        measuring.go_on(state)
    keeper = None if result is None else _LookKeeper(result, measuring.plan.id, watcher)
    if keeper is not None:
        keeper.keep(measuring, OPEN, measuring.earlier_s)
    try:
        measuring.execute(keeper or watcher)
    except BaseException:
        with suppress(SteelyardError):  # the failure on its way says more
            if keeper is not None:
                keeper.keep(measuring, FAILED, measuring.total_s)
        raise
    elapsed_s = measuring.total_s
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


def _clock(began_s: float, cpu_s: float, closing_cpu_s: float, terms: Terms) -> BudgetClock:
    slowdown = _slowdown(time.monotonic() - began_s, cpu_s)
    closing_s = min(closing_cpu_s * slowdown, CLOSING_SHARE * terms.extent.budget_s)
    return BudgetClock(began_s, closing_s, FIRST_LOOK_CPU_S * slowdown)


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


def require_no_result(result: Path, verb: str = "compare") -> None:
    """Refuse a folder that holds a result already.

    Raises
    ------
    UsageError
        If it does.
    """
    if holds_plan(result):
        message = f"`{result}` already contains a result"
        going_on = f"`steelyard {verb} --resume {shlex.quote(str(result))}`"
        hint = f"give another folder with --out; {going_on} goes on"
        raise UsageError(message, hint=hint, code="usage.folder-in-use")


def _begun(
    plan: Plan,
    command_line: Sequence[str],
    launches: Launches,
    programs: tuple[Sequence[Side], Sequence[Contender]],
) -> Provenance:
    sides, contenders = programs
    fingerprint = read_fingerprint()
    return replace(
        begin_provenance(plan, map(without_secrets, command_line), host_id=fingerprint.host_id),
        host=asdict(fingerprint),
        environment=launches.environment,
        builds=tuple(side.facts for side in sides),
        programs=program_hashes(contenders),
    )


def _begin(plan: Plan, result: Path, provenance: Provenance) -> Provenance:
    try:
        plan.write(result / PLAN_NAME)
    except OSError as error:
        raise unwritable(result / PLAN_NAME, error, "give another folder with --out") from error
    write_provenance(result, provenance)
    return provenance


def _continue(result: Path, now: Provenance, notes: list[str]) -> Provenance:
    earlier = read_provenance(result)
    from steelyard.studies.comparison.run.resumption import require_same_programs  # noqa: PLC0415 - start-up time

    require_same_programs(result, earlier, now)
    if earlier.environment != now.environment:
        notes.append("the environment of the commands is not that of the first session")
    # What failed, or had no time, is measured now, and named again where it is not.
    notes_kept = tuple(note for note in earlier.notes if not note.startswith(FAILED_BENCHMARK))
    provenance = continue_provenance(replace(earlier, notes=notes_kept), now)
    write_provenance(result, provenance)
    return provenance


@contextmanager
def _full_disk_named(result: Path | None) -> Iterator[None]:
    """Give the next step after a full disk."""
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
