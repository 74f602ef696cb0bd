"""Runs a plan batch by batch, one durable record after the other."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, RunError
from steelyard.model import Affinity, RunStatus
from steelyard.run.executor.batch import Share, execute_batch
from steelyard.run.executor.clock import translate
from steelyard.run.executor.neighbours import neighbours
from steelyard.run.executor.outcome import OutcomeLog, check_output, explained, keep_failed
from steelyard.run.executor.pool import WorkerPool
from steelyard.run.executor.run_files import files_name, files_of, in_folder, leaves_files
from steelyard.run.executor.run_options import MOST_LOST
from steelyard.run.executor.run_specs import barrier_file, in_block, run_specification, with_barrier
from steelyard.run.isolation.registry import technology
from steelyard.run.progress import Estimator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from steelyard.model import Batch, Cell, Execution, Plan, RunOutcome
    from steelyard.run.executor.run_options import ExecutionOptions, Sink
    from steelyard.run.executor.worker import Worker
    from steelyard.run.isolation.interface import Isolation
    from steelyard.run.session import Session


UNLIMITED_WALL_S: Final = 3600.0
STRIKES: Final = 3
"""Batches in a row a technology may fail before it counts as broken."""
NS_PER_S: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ExecutionSummary:
    """What an execution did.

    Parameters
    ----------
    batches : int
        Batches completed now.
    resumed : int
        Batches that were complete before.
    statuses : dict
        Runs by status.
    broken : dict
        Technologies that stopped working, with the reason.
    worker_starts_s : dict
        Time from nothing to the first line of a worker, by technology, each start [s].
    elapsed_s : float
        Time it took [s].
    """

    batches: int
    resumed: int
    statuses: dict[RunStatus, int]
    broken: dict[str, str]
    worker_starts_s: dict[str, list[float]]
    elapsed_s: float


def execute(plan: Plan, session: Session, sink: Sink, options: ExecutionOptions) -> ExecutionSummary:
    """Run what is left of a plan.

    Every batch that is complete in the sink is skipped; every other one is run whole, as a new
    attempt. A run that fails is recorded as such and the study goes on; a technology that fails
    several batches in a row counts as broken, and the runs of its other cells are recorded as failed.

    Parameters
    ----------
    plan : Plan
        Frozen plan.
    session : Session
        Folders and names.
    sink : Sink
        Ledger of the same plan.
    options : ExecutionOptions
        Placement, gate, progress.

    Raises
    ------
    RunError
        If every run of the plan that was run failed.
    GateError
        From the gate.
    DataError
        From the sink, for example when the disk is full: everything complete so far is intact.
    """
    return _Executor(plan, session, sink, options).execute()


class _Executor:
    def __init__(self, plan: Plan, session: Session, sink: Sink, options: ExecutionOptions) -> None:
        self._plan = plan
        self._session = session
        self._sink = sink
        self._options = options
        self._estimator = Estimator(plan)
        self._statuses: Counter[RunStatus] = Counter()
        self._strikes: Counter[str] = Counter()
        self._broken: dict[str, str] = {}
        self._starts_s: dict[str, list[float]] = {}
        self._seen: set[str] = set()
        self._last_message = ""

    def execute(self) -> ExecutionSummary:
        began_s = time.monotonic()
        complete, only = self._sink.completed_batches(), self._options.only
        asked = [batch for batch in self._plan.batches if only is None or batch.number in only]
        todo = [batch for batch in asked if batch.number not in complete]
        last_uses = {self._isolation(batch): index for index, batch in enumerate(todo)}
        progress = self._options.progress
        progress.begin(len(asked), len(asked) - len(todo))
        selection, left_out = self._options.selection, set[int]()
        executed = 0
        with WorkerPool(self._session) as pool:
            for index, batch in enumerate(todo):
                cell = self._plan.cell_of(batch)
                if not selection.wants(batch):
                    left_out.add(batch.cell)
                    progress.left_out()
                    continue
                executed += 1
                progress.batch(cell.levels)
                batch_began_s = time.monotonic()
                self._execute_batch(batch, cell, pool)
                self._estimator.add(cell, time.monotonic() - batch_began_s)
                isolation = self._isolation(batch)
                if isolation is not None and last_uses[isolation] == index:
                    pool.release(isolation)
                foreseen_s = self._estimator.left_s(todo, index + 1, left_out)
                left_s = None if foreseen_s is None else min(foreseen_s, selection.left_s())
                progress.batch_done(left_s, self._failed_runs())
        self._require_success()
        elapsed_s = time.monotonic() - began_s
        resumed = len(asked) - len(todo)
        statuses = dict(self._statuses)
        return ExecutionSummary(executed, resumed, statuses, self._broken, self._starts_s, elapsed_s)

    def _execute_batch(self, batch: Batch, cell: Cell, pool: WorkerPool) -> None:
        execution = cell.execution
        if execution is None:
            message = f"batch {batch.number} runs cell {cell.number}, which is missing: {cell.missing}"
            raise RunError(message, hint="plan the study again", code="run.missing-cell")
        execution = in_block(execution, batch.block)
        left = self._options.retries
        while self._is_to_repeat(batch, execution, pool, left):
            left -= 1

    def _is_to_repeat(self, batch: Batch, execution: Execution, pool: WorkerPool, left: int) -> bool:
        """Run a batch once; complete it unless a host was lost, or it was disturbed and may be repeated."""
        self._options.gate(batch.number)
        attempt = self._sink.begin_attempt(batch.number)
        run_id = f"b{batch.number}a{attempt}"
        statuses: Counter[RunStatus] = Counter()
        failed: list[RunOutcome] = []

        def keep(worker: int, outcome: RunOutcome) -> None:
            checked = explained(check_output(outcome, execution.expected_output))
            self._sink.record(batch.number, attempt, worker, checked)
            statuses[checked.status] += 1
            if checked.status.is_failure:
                failed.append(checked)
                self._last_message = checked.message or checked.status

        failure = None
        if execution.isolation in self._broken:
            reason = f"{execution.isolation} stopped working: {self._broken[execution.isolation]}"
            keep_failed(execution, run_id, reason, keep)
        else:
            with self._with_files(batch, attempt, execution) as run_inputs:
                failure = self._attempt_batch(run_inputs, run_id, pool, keep)
            self._judge(execution.isolation, failure)
        reasons = self._options.disturbances()
        lost = self._options.lost_host(self._plan.cell_of(batch), failed) if failed else ""
        if lost:
            reasons = (*reasons, lost)
        if reasons:
            self._sink.note_disturbance(batch.number, attempt, reasons)
            is_disturbed = left > 0 and failure is None and execution.isolation not in self._broken
            if is_disturbed or (lost and attempt < MOST_LOST):
                self._options.progress.note(f"batch {batch.number} is repeated: {'; '.join(reasons)}")
                return True
        self._statuses += statuses
        self._sink.complete(batch.number, attempt, execution.workers * execution.iterations)
        return False

    @contextmanager
    def _with_files(self, batch: Batch, attempt: int, execution: Execution) -> Iterator[Execution]:
        """Give the execution with its folder for files, where its command names one."""
        if not leaves_files(execution):
            yield execution
            return
        files = self._options.files
        if files is None:
            message = f"batch {batch.number} writes files, but no output folder is configured"
            raise RunError(message, hint="start it by `steelyard run`", code="run.files")
        name = files_name(batch.number, attempt)
        scratch = self._session.shared / name
        with files_of(batch, scratch, files.kept / name, files):
            yield in_folder(execution, scratch)

    def _attempt_batch(
        self, execution: Execution, run_id: str, pool: WorkerPool, keep: Callable[[int, RunOutcome], None]
    ) -> str | None:
        """Run a batch; give the reason if it failed. Every run is kept in either case."""
        place = technology(execution.isolation)
        beside = execution.neighbours
        count = execution.workers + (beside.count if beside else 0)
        cpu_sets = [None if cpus is None else tuple(cpus) for cpus in self._placement(count, execution)]
        measured, others = cpu_sets[: execution.workers], cpu_sets[execution.workers :]
        try:
            workers = pool.take(place, measured, self._memory_nodes(execution, measured))
        except (RunError, CapabilityError) as error:
            keep_failed(execution, run_id, error.message, keep)
            return error.message
        self._note_starts(place, workers)
        kept = OutcomeLog(keep)
        try:
            with (
                _away_from(cpu_sets),
                neighbours(self._session, beside.kind if beside else None, others) as load,
            ):
                failure = self._execute_on(workers, execution, run_id, kept)
                load.require_alive()
        except RunError as error:
            failure = error.message
            kept.fail_rest(execution, run_id, failure)
        except BaseException:
            pool.discard(workers)
            raise
        if failure is None:
            pool.give_back(workers)
        else:
            pool.discard(workers)
        return failure

    def _execute_on(
        self, workers: Sequence[Worker], execution: Execution, run_id: str, kept: OutcomeLog
    ) -> str | None:
        place = workers[0].technology
        wall_ns = execution.limits.wall_time_ns
        allowed_s = UNLIMITED_WALL_S if wall_ns is None else wall_ns / NS_PER_S
        patience_s = allowed_s + self._options.patience_s
        with barrier_file(self._session.shared, f"barrier-{run_id}") as barrier:
            shares = []
            for worker in workers:
                spec = run_specification(execution, worker, run_id)
                if place.shares_kernel and len(workers) > 1:
                    spec = with_barrier(spec, place.shared(worker.site), barrier.name, len(workers))
                shares.append(Share(worker, place.inside(spec, worker.site)))
            if place.shares_kernel:
                return execute_batch(shares, patience_s, kept.keep)
            return _execute_elsewhere(shares, patience_s, kept)

    def _placement(self, count: int, execution: Execution) -> Sequence[Sequence[int] | None]:
        return self._options.placement(count, execution.affinity)

    def _memory_nodes(
        self, execution: Execution, cpu_sets: Sequence[tuple[int, ...] | None]
    ) -> list[tuple[int, ...] | None] | None:
        """Give the memory nodes of each worker where the cell binds memory, else nothing."""
        if execution.affinity is not Affinity.MEMORY_NODE:
            return None
        if self._options.nodes_of is None:
            message = "the cell binds memory, but the memory nodes of this host are not configured"
            raise RunError(message, hint="start it by `steelyard run`", code="run.memory-nodes")
        return [None if cpus is None else tuple(self._options.nodes_of(cpus)) for cpus in cpu_sets]

    def _note_starts(self, place: Isolation, workers: Sequence[Worker]) -> None:
        for worker in workers:
            if worker.site.name not in self._seen:
                self._seen.add(worker.site.name)
                self._starts_s.setdefault(place.name, []).append(worker.start_ns / NS_PER_S)

    def _judge(self, isolation: str, failure: str | None) -> None:
        if failure is None:
            self._strikes[isolation] = 0
            return
        self._strikes[isolation] += 1
        self._options.progress.note(f"{isolation}: a batch failed: {failure}")
        if self._strikes[isolation] >= STRIKES:
            self._broken[isolation] = failure
            self._options.progress.note(
                f"{isolation} failed {STRIKES} batches in a row: its other runs are recorded as failed"
            )

    def _isolation(self, batch: Batch) -> str | None:
        execution = self._plan.cell_of(batch).execution
        return None if execution is None else execution.isolation

    def _failed_runs(self) -> int:
        return sum(count for status, count in self._statuses.items() if status.is_failure)

    def _require_success(self) -> None:
        runs = sum(self._statuses.values())
        if runs and self._failed_runs() == runs:
            message = f"all {runs} runs failed, the last with: {self._last_message}"
            raise RunError(message, hint=f"logs are in `{self._session.logs}`", code="run.all-failed")


def _execute_elsewhere(shares: Sequence[Share], patience_s: float, kept: OutcomeLog) -> str | None:
    """Run a batch on workers with clocks of their own; outcomes are kept in the host's clocks.

    They are kept after the batch, when the offset is known from both sides.
    """
    before = [share.worker.clock_offset() for share in shares]
    held: list[tuple[int, RunOutcome]] = []
    failure = execute_batch(shares, patience_s, lambda worker, outcome: held.append((worker, outcome)))
    if failure is None:
        offsets = [
            early.until(share.worker.clock_offset()) for early, share in zip(before, shares, strict=True)
        ]
    else:
        offsets = before
    utc_minus_monotonic_ns = time.time_ns() - time.monotonic_ns()
    for worker, outcome in held:
        kept.keep(worker, translate(outcome, offsets[worker], utc_minus_monotonic_ns))
    return failure


@contextmanager
def _away_from(cpu_sets: Sequence[Sequence[int] | None]) -> Iterator[None]:
    """Keep this process off the CPUs that measure, if there are others."""
    own = os.sched_getaffinity(0)
    taken = {cpu for cpus in cpu_sets for cpu in cpus or ()}
    free = own - taken
    if not taken or not free:
        yield
        return
    os.sched_setaffinity(0, free)
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)
