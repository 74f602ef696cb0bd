"""One part of a placed study, on the host that runs it."""

from __future__ import annotations

import os
import platform
import secrets
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, DataError
from steelyard.record.clock import now_utc
from steelyard.record.placed.hosts import BYSTANDERS
from steelyard.record.placed.journal import JOURNAL_NAME, Journal, JournalReader
from steelyard.record.provenance import Provenance, Session, read_provenance, write_provenance
from steelyard.run.executor.run_options import EveryBatch
from steelyard.run.hosts.engine import running
from steelyard.run.machine.bystanders import between, look
from steelyard.run.machine.host import Verdict, read_fingerprint, read_host
from steelyard.studies.execution import ExecutionHere, ProbedTechnologies, provenance_here
from steelyard.studies.host_facts import host_facts
from steelyard.studies.placed.describing import describe_here
from steelyard.studies.placed.parts import read_part, read_plan_of, starts_of
from steelyard.study import installed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pydantic import JsonValue

    from steelyard.model import Plan
    from steelyard.run.progress import Progress

NODE_VARIABLE: Final = "SLURMD_NODENAME"
"""Name of the node as Slurm calls it: several nodes may be one machine."""
LOCK_PATIENCE_S: Final = 24 * 3600.0
"""Nodes that are one machine take turns; the engine's limit of time ends a part that waits for ever."""


def execute_part(folder: Path, command_line: Iterable[str], progress: Progress) -> bool:
    """Run what is left of a part; tell whether anything was left.

    Parameters
    ----------
    folder : Path
        Folder of the part.
    command_line : iterable of str
        For the provenance.
    progress : Progress
        Told what happens.

    Raises
    ------
    DataError
        If the folder is no part, or its study is another one.
    RunError, GateError, CapabilityError
        From the execution; everything finished is in the journal.
    """
    part = read_part(folder)
    if part.technologies is not None:
        _describe(folder, part.technologies, command_line, progress)
        return True
    plan = read_plan_of(folder, part)
    done = {
        each.batch
        for start in starts_of(folder)
        for each in JournalReader(start / JOURNAL_NAME).completed()
        if each.ended_utc is not None
    }
    wanted = frozenset(part.batches) - done
    if wanted:
        with running(folder):
            _execute(plan, wanted, folder / "starts", command_line, progress)
    return bool(wanted)


def _execute(
    plan: Plan, wanted: frozenset[int], starts: Path, command_line: Iterable[str], progress: Progress
) -> None:
    """Run batches into a folder of this start."""
    probed = ProbedTechnologies(progress)
    for name in dict.fromkeys(_isolations(plan, wanted)):
        probed.get(name)
    node, provenance = _on_node(provenance_here(plan, command_line, probed))
    _require_cpus(node, plan)
    noise = read_host().noise
    facts: dict[str, JsonValue] = {
        **provenance.host,
        "settings": {fact.name: fact.seen for fact in noise},
        "unfit": [f"{fact.title}: {fact.seen}" for fact in noise if fact.verdict is Verdict.FAIL],
    }
    provenance = replace(provenance, host=facts)
    start = _begin_start(starts, node)
    chosen = installed(plan.study)
    write_provenance(start, provenance)
    before = look()
    try:
        if chosen.part is not None:
            chosen.execute_part(plan, wanted, start, provenance)
            return
        with Journal(start / JOURNAL_NAME) as journal:
            here = ExecutionHere(chosen, plan, start, EveryBatch(), wanted, LOCK_PATIENCE_S)
            here.execute(journal, provenance, progress)
    finally:
        with suppress(DataError):  # on a full disk the failure on its way says more
            found = read_provenance(start)
            seen = between(before, look(), itself=os.getpid())
            write_provenance(start, replace(found, host={**found.host, BYSTANDERS: seen}))


def _on_node(provenance: Provenance) -> tuple[str, Provenance]:
    """Give the name of this node, and its provenance under it."""
    node = os.environ.get(NODE_VARIABLE) or platform.node()
    host_id = provenance.host_id if node == platform.node() else f"{provenance.host_id}:{node}"
    return node, replace(provenance, host_id=host_id, host={**provenance.host, "hostname": node})


def _begin_start(starts: Path, node: str) -> Path:
    start = starts / f"{node}.{secrets.token_hex(4)}"
    start.mkdir(parents=True)
    return start


def _require_cpus(node: str, plan: Plan) -> None:
    """Refuse a host that was not asked before the plan was made, and has too few CPUs for it.

    Where workers were to have a CPU each, they would share some unsaid.
    """
    most = max((cell.execution.workers for cell in plan.cells if cell.execution is not None), default=1)
    planned, here = plan.options.get("cpu_count"), host_facts().cpu_count
    if isinstance(planned, int) and here < min(planned, most):
        message = f"host `{node}` offers {here} CPUs to this part; the study is planned for {planned}"
        hint = "leave the host out (`--exclude=NODE` behind the partition), or plan a study with it"
        raise CapabilityError(message, hint=hint, code="capability.host-cpus")


def _describe(
    folder: Path, technologies: Iterable[str], command_line: Iterable[str], progress: Progress
) -> None:
    """Say what this host is, and what works here."""
    probed = ProbedTechnologies(progress)
    for name in technologies:
        probed.get(name)
    fingerprint = read_fingerprint()
    session = Session((*command_line,), begun_utc=now_utc(), kernel=platform.release())
    said = Provenance("", "", 0, fingerprint.host_id, asdict(fingerprint), sessions=(session,))
    node, said = _on_node(said)
    describe_here(_begin_start(folder / "starts", node), said, probed.tried)


def _isolations(plan: Plan, wanted: frozenset[int]) -> Iterable[str]:
    executions = (plan.cell_of(batch).execution for batch in plan.batches if batch.number in wanted)
    return (execution.isolation for execution in executions if execution is not None)
