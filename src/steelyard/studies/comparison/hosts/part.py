"""The blocks of a comparison that one host measures, on that host."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.errors import CapabilityError
from steelyard.record.clock import now_utc
from steelyard.record.placed.journal import JOURNAL_NAME, Journal, PlacedAttempt
from steelyard.record.provenance import end_session, write_provenance
from steelyard.run.executor.resident import residents
from steelyard.run.machine.preparation import MachineRequest, machine_prepared
from steelyard.studies.comparison.hosts.request import REFUSED, PlacedRequest
from steelyard.studies.comparison.run.execution import PATIENCE
from steelyard.studies.comparison.run.launch import Launches
from steelyard.studies.comparison.run.measuring import Measuring
from steelyard.studies.comparison.run.recorder import Recorder
from steelyard.studies.comparison.terms import planned_terms
from steelyard.studies.placed.part import LOCK_PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from steelyard.model import Plan, RunOutcome
    from steelyard.record.provenance import Provenance


class BlockSink:
    """Keeps whole blocks in a journal; who is killed in one has it measured again, by one host.

    Parameters
    ----------
    journal : Journal
        Where.
    wanted : collection of int
        Batches that are kept; the others are a repeated warm-up.
    ignores_failure : bool
        Whether failed runs count. Otherwise one ends the comparison, and is kept, whole block or not.
    """

    def __init__(self, journal: Journal, wanted: Collection[int], *, ignores_failure: bool) -> None:
        self._journal = journal
        self._wanted = frozenset(wanted)
        self._ignores_failure = ignores_failure
        self._open: dict[int, PlacedAttempt] = {}
        self._whole: set[int] = set()

    def begin_attempt(self, batch: int) -> int:
        """Begin a run."""
        self._open[batch] = PlacedAttempt(batch, 1, now_utc())
        return 1

    def record(self, batch: int, attempt: int, worker: int, outcome: RunOutcome) -> None:
        """Remember its outcome."""
        del attempt
        self._open[batch].runs.append((worker, outcome))

    def note_disturbance(self, batch: int, attempt: int, reasons: Sequence[str]) -> None:
        """Remember what disturbed it."""
        del attempt
        self._open[batch].disturbances = tuple(reasons)

    def complete_together(self, attempts: Sequence[tuple[int, int]]) -> None:
        """Write what is whole."""
        kept = []
        for batch, _ in attempts:
            attempt = self._open.pop(batch)
            ended_it = not self._ignores_failure and any(run.status.is_failure for _, run in attempt.runs)
            if batch in self._wanted and (batch in self._whole or ended_it):
                kept.append(replace(attempt, ended_utc=now_utc()))
        self._journal.keep_together(kept)

    def say(self, text: str) -> None:
        """Nothing."""

    def block_done(self, measuring: Measuring) -> None:
        """Count what is open as whole: a block is over."""
        del measuring
        self._whole.update(self._open)


def execute_part(plan: Plan, wanted: Collection[int], start: Path, provenance: Provenance) -> None:
    """Measure blocks of a comparison on this host, behind a warm-up of its own.

    Parameters
    ----------
    plan : Plan
        Frozen plan.
    wanted : collection of int
        Numbers of the batches.
    start : Path
        Folder for journal and provenance.
    provenance : Provenance
        What is known of the host.

    Raises
    ------
    CapabilityError
        If this host lacks the folder or a program, or has another one; the provenance says so, too.
    RunError
        If a command fails; its run is in the journal.
    KeyboardInterrupt
        If somebody interrupts; whole blocks are in the journal.
    """
    start = start.absolute()  # this process goes elsewhere
    request = PlacedRequest.from_plan(plan)
    host = str(provenance.host.get("hostname") or provenance.host_id)
    try:
        with _inside(request.folder, host):
            request.require_same_programs(request.entrants(plan), host)
            _measure(plan, request, frozenset(wanted), (start, provenance))
    except CapabilityError as error:
        write_provenance(start, replace(provenance, notes=(*provenance.notes, error.message)))
        raise


@contextmanager
def _inside(folder: str, host: str) -> Iterator[None]:
    """Be in the folder of the commands."""
    before = Path.cwd()
    try:
        os.chdir(folder)
    except OSError as error:
        message = f"host `{host}` has no folder `{folder}`, in which the commands run: {error.strerror}"
        hint = "make it there, or compare from a folder that all hosts have, such as /tmp"
        raise CapabilityError(message, hint=hint, code=REFUSED) from error
    try:
        yield
    finally:
        os.chdir(before)


def _measure(plan: Plan, request: PlacedRequest, wanted: frozenset[int], at: tuple[Path, Provenance]) -> None:
    start, provenance = at
    entrants, warmup = request.entrants(plan), planned_terms(plan)[0].warmup
    batches = tuple(each for each in plan.batches if each.block < warmup or each.number in wanted)
    blocks = {each.block for each in batches if each.block >= warmup}
    terms = request.terms(plan, max(len(blocks), 1))
    wishes = MachineRequest(patience=PATIENCE, lock_patience_s=LOCK_PATIENCE_S, calibrates=False)
    with ExitStack() as stack:
        workers = stack.enter_context(
            residents(terms.isolation, (None,), shown=terms.shown, is_fed=terms.input is not None)
        )
        machine = stack.enter_context(machine_prepared(wishes))
        launches = Launches(workers[0], terms)
        provenance = replace(
            provenance,
            environment=launches.environment,
            programs=request.programs,
            notes=(*provenance.notes, *machine.notes),
        )
        write_provenance(start, provenance)
        sink = BlockSink(
            stack.enter_context(Journal(start / JOURNAL_NAME)), wanted, ignores_failure=terms.ignores_failure
        )
        measuring = Measuring(
            replace(plan, batches=batches),
            entrants,
            terms,
            launches,
            stack.enter_context(Recorder(sink, machine.gate)),
        )
        try:
            measuring.execute(sink)
        finally:
            machine.release()
            *earlier, last = end_session(provenance).sessions
            seen = replace(last, gate=machine.gate.records())
            write_provenance(start, replace(provenance, sessions=(*earlier, seen)))
        if measuring.is_interrupted:
            raise KeyboardInterrupt
