"""A comparison on other hosts, where it was asked for: each host measures as many blocks as the others."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

from steelyard.errors import AnalysisError, RunError, SteelyardError, unwritable
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.record.folder_lock import claimed
from steelyard.record.interim_log import FAILED, LOOKS_NAME, OPEN, SPENT, LookTimes, read_looks
from steelyard.record.ledger import LEDGER_NAME, Ledger
from steelyard.record.ledger_reader import LedgerReader
from steelyard.record.placed.hosts import host_names
from steelyard.record.provenance import (
    begin_provenance,
    continue_provenance,
    read_provenance,
    write_provenance,
)
from steelyard.record.tables import write_tables
from steelyard.run.machine.host import read_fingerprint
from steelyard.run.redact import last_lines, without_secrets
from steelyard.studies.comparison.analysis import analyse
from steelyard.studies.comparison.contender import program_hashes
from steelyard.studies.comparison.hosts.request import PlacedRequest
from steelyard.studies.comparison.replay import replay
from steelyard.studies.comparison.run.execution import require_no_result
from steelyard.studies.comparison.run.resumption import require_same_programs
from steelyard.studies.comparison.terms import draw_plan, planned_terms
from steelyard.studies.placed.driver import Failures, execute_placed
from steelyard.studies.placed.parts import PLACED_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.record.provenance import Provenance
    from steelyard.run.hosts.engine import Engine
    from steelyard.run.progress import Progress
    from steelyard.studies.comparison.contender import Commands, Contender
    from steelyard.studies.comparison.outcome import Comparison
    from steelyard.studies.comparison.terms import Terms

    Placing = Callable[[Path], Engine]

PARTS_PER_HOST: Final = 1
"""Each host measures the same number of blocks, behind one warm-up; what a lost one lacks is dealt again."""


def compare_on_hosts(
    commands: Commands, terms: Terms, result: Path, placing: Placing, told: tuple[Sequence[str], Progress]
) -> Comparison:
    """Measure commands on the hosts of an engine.

    Each host makes ``terms.extent.blocks_max`` blocks of all commands, in random order. Nobody looks before
    the end.

    Parameters
    ----------
    commands : Commands
        What is compared.
    terms : Terms
        How it is measured and what is promised.
    result : Path
        New result folder.
    placing : callable
        Gives the engine for the folder of the parts.
    told : tuple
        Command line for the provenance, and who is told what happens.

    Raises
    ------
    UsageError
        If the request is wrong or cannot be placed, or the folder holds a result already.
    RunError
        If a command fails, or no host completes anything.
    CapabilityError
        If hosts cannot run parts.
    """
    terms.check()
    entrants = commands.field()
    terms = terms.of(entrants)
    request = PlacedRequest.of(entrants, terms)
    terms.require_enough(entrants.pairs)
    require_no_result(result)
    with claimed(result):
        require_no_result(result)
        engine = placing(_parts_of(result))
        terms = replace(
            terms, hosts=engine.size, extent=replace(terms.extent, budget_s=math.inf, is_strict=False)
        )
        plan = request.within(draw_plan(entrants, terms))
        provenance = _provenance(plan, told[0], entrants.contenders)
        provenance = replace(provenance, notes=commands.remarks)
        try:
            plan.write(result / PLAN_NAME)
        except OSError as error:
            raise unwritable(result / PLAN_NAME, error, "give another folder with --out") from error
        write_provenance(result, provenance)
        return _execute(plan, result, engine, told[1])


def continue_on_hosts(result: Path, placing: Placing, told: tuple[Sequence[str], Progress]) -> Comparison:
    """Go on with a comparison that was placed: what is not complete is waited for, or placed again.

    Raises
    ------
    UsageError
        If a program has changed.
    DataError
        If another host began it.
    """
    with claimed(result):
        plan = read_plan(result / PLAN_NAME)
        entrants = PlacedRequest.from_plan(plan).entrants(plan)
        earlier = read_provenance(result)
        now = _provenance(plan, told[0], entrants.contenders)
        provenance = continue_provenance(earlier, now)
        require_same_programs(result, earlier, now)
        write_provenance(result, provenance)
        return _execute(plan, result, placing(_parts_of(result)), told[1])


def _parts_of(result: Path) -> Path:
    parts = result.absolute() / PLACED_NAME
    parts.mkdir(exist_ok=True)
    return parts


def _provenance(plan: Plan, command_line: Sequence[str], contenders: Sequence[Contender]) -> Provenance:
    fingerprint = read_fingerprint()
    return replace(
        begin_provenance(plan, map(without_secrets, command_line), host_id=fingerprint.host_id),
        host=asdict(fingerprint),
        programs=program_hashes(contenders),
    )


def _execute(plan: Plan, result: Path, engine: Engine, progress: Progress) -> Comparison:
    began_s = time.monotonic()
    terms, pairs = planned_terms(plan)
    questions = len(terms.questions(pairs))
    earlier_s = read_looks(result, plan.id, questions).elapsed_s if (result / LOOKS_NAME).exists() else 0.0

    def keep(end: str) -> None:
        elapsed_s = earlier_s + time.monotonic() - began_s
        LookTimes(plan.id, ((),) * questions, end, elapsed_s).write(result)

    keep(OPEN)
    end = SPENT
    try:
        with Ledger(result / LEDGER_NAME, plan.id) as ledger:
            execute_placed(
                plan,
                result.absolute(),
                ledger,
                engine,
                progress,
                parts_per_host=PARTS_PER_HOST,
                failures=Failures.COUNT if terms.ignores_failure else Failures.FIRST_ENDS,
            )
    except KeyboardInterrupt:
        end = "interrupted"
    except BaseException as error:
        with suppress(SteelyardError):  # the failure on its way says more
            keep(FAILED)
            write_tables(result)
        if isinstance(error, RunError) and (failure := _failure(plan, result)) is not None:
            raise failure from error
        raise
    keep(end)
    write_tables(result)
    try:
        analyse(result)
    except AnalysisError:
        if end != "interrupted":  # before any run of use was done there are no findings
            raise
    return replay(result, plan)


def _failure(plan: Plan, result: Path) -> RunError | None:
    """Name the command that failed, and where; nothing where all runs ended well."""
    cells = {batch.number: plan.cell_of(batch) for batch in plan.batches}
    with LedgerReader(result / LEDGER_NAME) as ledger:
        hosts = ledger.hosts()
        for row in ledger.outcomes():
            outcome = row.outcome
            if not outcome.status.is_failure:
                continue
            host = hosts.get((row.batch, row.attempt), "")
            name = host_names(read_provenance(result), [host])[host]
            how = f"exit code {outcome.exit_code}" if outcome.exit_code else str(outcome.status)
            text = "" if outcome.standard_error is None else last_lines(outcome.standard_error.text)
            said = text or outcome.message
            message = f"`{cells[row.batch].levels['command']}` failed on host `{name}` with {how}"
            message += f": {said}" if said else ""
            return RunError(message, hint="--ignore-failure counts such runs", code="run.failed")
    return None
