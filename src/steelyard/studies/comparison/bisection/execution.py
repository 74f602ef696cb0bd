"""A bisection from its question to its answer, begun or resumed."""

from __future__ import annotations

import shlex
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

from steelyard.analyse.culprit.search import Search
from steelyard.errors import SteelyardError, UsageError, unwritable
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.record.folder_lock import claimed, holds_plan
from steelyard.record.interim_log import CandidateLog, read_candidates
from steelyard.record.ledger import LEDGER_NAME, Ledger
from steelyard.record.provenance import (
    PROVENANCE_NAME,
    begin_provenance,
    continue_provenance,
    end_session,
    read_provenance,
    write_provenance,
)
from steelyard.record.tables import write_tables
from steelyard.run.executor.resident import resident
from steelyard.run.machine.gate import Patience
from steelyard.run.machine.host import read_fingerprint
from steelyard.run.machine.preparation import MachineRequest, machine_prepared
from steelyard.run.redact import without_secrets
from steelyard.studies.comparison.bisection.analysis import analyse
from steelyard.studies.comparison.bisection.measuring import Measuring
from steelyard.studies.comparison.bisection.replay import Bisection, logged, replay
from steelyard.studies.comparison.bisection.terms import asked_of, draw_plan
from steelyard.studies.comparison.run.launch import Launches
from steelyard.studies.comparison.run.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.record.provenance import Provenance
    from steelyard.revisions.build import Build
    from steelyard.revisions.history import Span
    from steelyard.run.machine.preparation import PreparedMachine
    from steelyard.studies.comparison.bisection.measuring import Watcher
    from steelyard.studies.comparison.bisection.terms import Question

PATIENCE: Final = Patience(window_s=0.2, pause_s=0.3, bound_s=2.0)
"""As of a comparison: a machine that stays busy is measured as it is."""


def bisect_history(
    question: Question,
    span: Span,
    result: Path,
    builder: Callable[[int], AbstractContextManager[Build]],
    *,
    watcher: Watcher,
    command_line: Sequence[str] = (),
) -> Bisection:
    """Measure commits until it is known which one changed the program.

    Parameters
    ----------
    question : Question
        What is asked.
    span : Span
        The history.
    result : Path
        Result folder; new, or that of the same question, which then goes on.
    builder : callable
        Gives the build of a commit by its place in the history, or of the good end by -1.
    watcher : Watcher
        Told after each block.
    command_line : sequence of str
        For the provenance.

    Raises
    ------
    UsageError
        If the question is wrong, or the folder holds another result.
    RunError
        If one of both ends cannot be built or run.
    DataError
        If the folder cannot be written, or was damaged.
    """
    question.check()
    plan = draw_plan(question, span)
    terms = question.terms
    with ExitStack() as stack:
        worker = stack.enter_context(resident(terms.isolation, is_fed=terms.input is not None))
        machine = stack.enter_context(
            machine_prepared(MachineRequest(patience=PATIENCE, lock_patience_s=0.0, calibrates=False))
        )
        stack.enter_context(claimed(result))
        log, search, first_block = _course(plan, span, result)
        launches = Launches(worker, terms)
        _write_plan(plan, result)
        log.write(result)
        provenance = _provenance(plan, result, command_line, launches)
        measuring: Measuring | None = None
        with _recorded(plan, result, machine) as recorder:
            try:
                measuring = Measuring(
                    question,
                    plan,
                    search,
                    log,
                    builder,
                    (launches, recorder, lambda each: each.write(result)),
                )
                measuring.execute(first_block, watcher)
            finally:
                recorder.settle()
                builds = () if measuring is None else measuring.builds
                _end(result, provenance, machine, (*span.remarks, *machine.notes), builds)
        if measuring.log.end == "interrupted":
            worker.close(patience_s=0)
        # The ledger is closed, so that tables are whole.
        write_tables(result)
        analyse(result)
    return replay(result, plan)


def _course(plan: Plan, span: Span, result: Path) -> tuple[CandidateLog, Search, int]:
    """Give the course so far with what it says, and the first block that is not recorded."""
    asked = asked_of(plan)
    search = Search(span.history, asked.margin.level, asked.margin)
    if not holds_plan(result):
        return CandidateLog(plan.id, logged(span.history)), search, 0
    earlier = read_plan(result / PLAN_NAME)
    if earlier.id != plan.id:
        message = f"`{result}` already contains another result"
        names = [earlier.options.get(key) for key in ("good_name", "bad_name", "command")]
        about = "`{}` to `{}`, `{}`".format(*names)
        hint = "give another folder with --out" + (
            f"; it goes on with the same request alone: {about}" if earlier.study == plan.study else ""
        )
        raise UsageError(message, hint=hint, code="usage.folder-in-use")
    log = read_candidates(result, plan.id)
    with Ledger(result / LEDGER_NAME, plan.id) as ledger:
        batches = {row.batch for row in ledger.outcomes()}
    blocks = {batch.number: batch.block for batch in plan.batches}
    first_block = 1 + max((blocks[number] for number in batches), default=-1)
    if batches:
        write_tables(result)
        search = replay(result, plan).search
    return log, search, first_block


@contextmanager
def _recorded(plan: Plan, result: Path, machine: PreparedMachine) -> Iterator[Recorder]:
    with Ledger(result / LEDGER_NAME, plan.id) as ledger, Recorder(ledger, machine.gate) as recorder:
        yield recorder


def _write_plan(plan: Plan, result: Path) -> None:
    if holds_plan(result):
        return
    try:
        plan.write(result / PLAN_NAME)
    except OSError as error:
        raise unwritable(result / PLAN_NAME, error, "give another folder with --out") from error


def _provenance(plan: Plan, result: Path, command_line: Sequence[str], launches: Launches) -> Provenance:
    fingerprint = read_fingerprint()
    now = replace(
        begin_provenance(plan, map(without_secrets, command_line), host_id=fingerprint.host_id),
        host=asdict(fingerprint),
        environment=launches.environment,
    )
    if (result / PROVENANCE_NAME).exists():
        earlier = read_provenance(result)
        now = replace(continue_provenance(earlier, now), builds=earlier.builds)
    write_provenance(result, now)
    return now


def _end(
    result: Path,
    provenance: Provenance,
    machine: PreparedMachine,
    remarks: Sequence[str],
    builds: Sequence[Build],
) -> None:
    """Write what can be written, however the measuring ended."""
    with suppress(SteelyardError):  # a failure on its way says more
        *earlier, last = end_session(provenance).sessions
        seen = replace(last, gate=machine.gate.records())
        known = {str(each["commit"]): each for each in provenance.builds}
        programs = [build.facts() for build in builds]
        made = known | {str(each["commit"]): each for each in programs}
        notes = tuple(dict.fromkeys((*provenance.notes, *remarks)))
        write_provenance(
            result,
            replace(provenance, sessions=(*earlier, seen), notes=notes, builds=tuple(made.values())),
        )


def resume_hint(result: Path) -> str:
    """Give what goes on with a bisection that has ended early."""
    return f"the same command with `--out {shlex.quote(str(result))}` goes on"
