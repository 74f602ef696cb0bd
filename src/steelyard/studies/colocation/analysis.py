"""Analysis of the colocation study: from the trials of a result to every claim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from steelyard.errors import AnalysisError
from steelyard.model import Evidence, FindingSet
from steelyard.record.seal import hash_tables
from steelyard.record.tables import read_runs
from steelyard.report.slots import write
from steelyard.studies.analysis_options import AnalysisOptions, read_options
from steelyard.studies.analysis_parts import RUNS, finding
from steelyard.studies.colocation.client import client_findings
from steelyard.studies.colocation.findings.best_effort import best_effort_findings
from steelyard.studies.colocation.findings.checks import check_findings
from steelyard.studies.colocation.findings.contests import contest_findings
from steelyard.studies.colocation.findings.controls import twin_finding
from steelyard.studies.colocation.findings.head_of_line import head_of_line_finding
from steelyard.studies.colocation.findings.isolation import cells_of, isolation_finding, tail_findings
from steelyard.studies.colocation.findings.throttling import throttling_findings
from steelyard.studies.colocation.findings.usage import usage_findings
from steelyard.studies.colocation.observed import observe
from steelyard.studies.colocation.tables import write_tables
from steelyard.studies.quiet_machine import quiet_machine
from steelyard.studies.study_plan import plan_to_analyse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from steelyard.model import Finding, Plan
    from steelyard.studies.colocation.findings.isolation import CellTrials
    from steelyard.studies.colocation.observed import Observed
    from steelyard.studies.colocation.recorded import RecordedTrial

METHOD_VERSION: Final = 1
"""Raised whenever a change of the analysis alters numbers."""


def analyse(result: Path, options: AnalysisOptions | None = None) -> FindingSet:
    """Compute the findings of a result folder; write ``findings.json`` and ``tables/*.csv``."""
    plan = plan_to_analyse(result, "colocation", options)
    trials, failed = observe(result, plan)
    if not trials:
        message = f"`{result}` has no completed trial{_why(failed)}"
        hint = "`runs.parquet` says how the runs ended, and `traces/` what each left"
        raise AnalysisError(message, hint=hint, code="analysis.no-trial")
    findings = tuple(_claims(result, plan, trials, failed))
    found = FindingSet(plan.study, plan.id, METHOD_VERSION, hash_tables(result), findings)
    write_tables(result, found, trials)
    found.write(result / "findings.json")
    return found


def _why(failed: Sequence[RecordedTrial]) -> str:
    if not failed:
        return ""
    first = failed[0]
    said = _said(first)
    return f": {first.policy} at {write(first.load, 'percent')} {first.status}{f' ({said})' if said else ''}"


def _said(failed: RecordedTrial) -> str:
    """Say once what a trial says of its end, which its program may have said in the same words."""
    message, problem = failed.message, failed.problem
    return message if problem in message else "; ".join(filter(None, (problem, message)))


def _claims(
    result: Path, plan: Plan, trials: Sequence[Observed], failed: Sequence[RecordedTrial]
) -> Iterator[Finding]:
    tolerance_percent = read_options(result, plan).tolerance_percent
    tolerance = tolerance_percent / 100
    cells = cells_of(trials)
    for cell in cells:
        made = isolation_finding(cell, tolerance=tolerance, seed=plan.seed)
        if made is not None:
            yield made
    for cell in cells:
        yield from tail_findings(cell, tolerance=tolerance, seed=plan.seed)
    yield from best_effort_findings(cells, plan.seed)
    yield from contest_findings(cells, tolerance=tolerance, seed=plan.seed)
    for cell in cells:
        yield from usage_findings(cell)
        yield from throttling_findings(cell, tolerance)
        yield from check_findings(cell, _clock_shift(plan))
        yield from client_findings(cell)
        blocked = head_of_line_finding(cell)
        if blocked is not None:
            yield blocked
    twins = twin_finding(trials, tolerance, plan.seed)
    if twins is not None:
        yield twins
    yield from _availability(plan)
    yield from _ended(failed)
    # The time of a guest is counted in instructions: what else this machine does is nothing to it.
    is_foreign = plan.options.get("mode") == "import" or plan.options.get("origin") == "simulated"
    is_counted = plan.options.get("in_vm") is True and plan.options.get("guest_time") != "real"
    if not is_foreign and not is_counted:
        yield from quiet_machine(result, pl.DataFrame(read_runs(result).select(["steal_ns", "wall_ns"])))
    phases = trials[0].phases
    yield finding(
        "settings",
        {},
        _where_stated(plan, cells),
        facts={
            "tolerance_percent": tolerance_percent,
            "seed": plan.seed,
            "repetitions": max(len(cell.trials) for cell in cells),
            "before_from_s": phases.before.low,
            "before_to_s": phases.before.high,
            "beside_from_s": phases.beside.low,
            "beside_to_s": phases.beside.high,
            "jobs_start_s": phases.jobs_start_s,
            "jobs_stop_s": phases.jobs_stop_s,
            "closed_loop": _waiting_clients(trials),
            **_speed_of_guest(plan),
        },
    )


def _waiting_clients(trials: Sequence[Observed]) -> int:
    """Give the number of clients that wait for their answers; 0 for an open loop."""
    plans = [each.trial.plan["client"] for each in trials if each.trial is not None]
    return max((int(client.get("closed_loop") or 0) for client in plans), default=0)


def _where_stated(plan: Plan, cells: Sequence[CellTrials]) -> str:
    if not any(cell.is_in_guest for cell in cells):
        moments = {tuple(cell.jobs_time.values()) for cell in cells}
        is_per_series = plan.options.get("mode") == "import" and len(moments) > 1
        return "stated by each series" if is_per_series else "stated"
    return f"stated in a virtual machine{' of known speed' if _speed_of_guest(plan) else ''}"


def _speed_of_guest(plan: Plan) -> dict[str, float]:
    """Give what a processor of a virtual machine executes while all are busy [10^6/s]; nothing elsewhere."""
    instruction_ns = plan.options.get("guest_instruction_ns")
    return {"million_instructions_per_s": 1000 / int(instruction_ns)} if instruction_ns else {}


def _clock_shift(plan: Plan) -> int | None:
    """Give the logarithm of the time an instruction takes [ns]; nothing where time is not counted in them."""
    shift = plan.options.get("guest_clock_shift")
    return None if shift is None else int(shift)


def _availability(plan: Plan) -> Iterator[Finding]:
    """Say of every policy at every load whether it works here; what does not has no numbers."""
    for cell in plan.cells:
        if not plan.is_twin(cell.number):
            levels = {name: cell.levels[name] for name in ("policy", "load")}
            verdict = "available" if cell.missing is None else "unavailable"
            yield finding("availability", levels, verdict, facts={"reason": cell.missing or ""})


def _ended(failed: Sequence[RecordedTrial]) -> Iterator[Finding]:
    for each in failed:
        yield finding(
            "ended_early",
            {
                "policy": each.policy,
                "load": each.load,
                "repetition": str(each.block + 1) + (" (twin)" if each.is_twin else ""),
            },
            each.status,
            facts={"reason": _said(each), "trial": each.place},
            evidence=Evidence(RUNS, {"run_id": each.run_id}, ("status",), "status"),
        )
