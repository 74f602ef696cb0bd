"""A study from its options to its recorded tables: plan, run, record; and the same, resumed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from steelyard.errors import DataError, SteelyardError, UsageError, unwritable
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.record.folder_lock import claimed, holds_plan
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
from steelyard.record.trace_folder import TRACES_NAME
from steelyard.run.executor.executor import execute
from steelyard.run.executor.run_files import RunFiles
from steelyard.run.executor.run_options import ExecutionOptions
from steelyard.run.isolation.registry import TECHNOLOGIES, sweep_all
from steelyard.run.isolation.root_view import folders_needed
from steelyard.run.machine.affinity import memory_nodes_of, place
from steelyard.run.machine.gate import Policy
from steelyard.run.machine.host import read_fingerprint, read_topology
from steelyard.run.machine.preparation import MachineRequest, machine_prepared
from steelyard.run.progress import format_left
from steelyard.run.redact import without_secrets
from steelyard.run.session import open_session
from steelyard.studies.request import differing_keys

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import BaseModel

    from steelyard.model import Plan
    from steelyard.record.provenance import Provenance
    from steelyard.run.executor.executor import ExecutionSummary
    from steelyard.run.isolation.interface import Availability
    from steelyard.run.machine.preparation import PreparedMachine
    from steelyard.run.progress import Progress
    from steelyard.study import Study


class ProbedTechnologies(Mapping[str, "Availability"]):
    """The technologies, each tried when it is first asked for, and said to the user.

    Parameters
    ----------
    progress : Progress
        Told which technologies are missing, why, and what repairs it.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tried: dict[str, Availability] = {}

    def __getitem__(self, name: str) -> Availability:
        if name not in self._tried:
            technology = TECHNOLOGIES.find(name)
            if technology is None:
                raise KeyError(name)
            found = technology.probe()
            if not found.available:
                repair = f" (repair: {found.repair})" if found.repair else ""
                self._progress.note(f"isolation {name} is not available: {found.reason}{repair}")
            self._tried[name] = found
        return self._tried[name]

    def __iter__(self) -> Iterator[str]:
        return iter(TECHNOLOGIES.names())

    def __len__(self) -> int:
        return len(TECHNOLOGIES.names())

    @property
    def tried(self) -> dict[str, Availability]:
        """Those that were asked for."""
        return dict(self._tried)


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a user asks for.

    Parameters
    ----------
    study : Study
        Which study.
    options : BaseModel or None
        Its options. A study that is resumed must have been begun with the same; ``None`` asks for
        nothing and takes them as they were.
    result : Path
        Result folder.
    resume : bool
        Whether the folder may hold a study that was stopped.
    command_line : tuple of str
        For the provenance.
    """

    study: Study
    options: BaseModel | None
    result: Path
    resume: bool
    command_line: tuple[str, ...]


def execute_study(assignment: Assignment, progress: Progress) -> ExecutionSummary:
    """Plan (or resume), run and record a study.

    The folder is held alone meanwhile. The tables of what is complete are written however the
    execution ends.

    Raises
    ------
    UsageError
        If the folder holds a study and resuming was not asked for, or the other way round.
    DataError
        If the folder's study is another one, another process runs a study in it, or it cannot
        be read or written.
    RunError, GateError, CapabilityError
        From the execution; everything finished is on disk.
    """
    _require_study_to_resume(assignment)
    with claimed(assignment.result):
        _require_free_or_resumed(assignment)
        try:
            summary = _execute_claimed(assignment, progress)
        except BaseException:
            with suppress(SteelyardError):  # the failure on its way says more
                write_tables(assignment.result)
            raise
        write_tables(assignment.result)
        return summary


def _execute_claimed(assignment: Assignment, progress: Progress) -> ExecutionSummary:
    probed = ProbedTechnologies(progress)
    plan = _plan(assignment, probed)
    expected_s = None if assignment.resume else assignment.study.seconds(plan)
    if expected_s is not None:
        progress.note(f"expected to take about {format_left(expected_s)}")
    provenance = _provenance(assignment, plan, probed)
    topology = read_topology()
    needed = (cell.execution.command[0] for cell in plan.cells if cell.execution is not None)
    shown = folders_needed(needed)
    resume = f"`{resume_command(assignment.study.name, assignment.result)}` continues it"
    with (
        assignment.study.inputs_of_runs(plan) as write_inputs,
        machine_prepared(_wishes(plan), progress=progress.calibrated) as machine,
        Ledger(assignment.result / LEDGER_NAME, plan.id, when_full=resume) as ledger,
        assignment.study.selecting(plan, assignment.result) as selection,
    ):
        provenance = replace(
            provenance,
            calibration=machine.calibration or provenance.calibration,
            notes=tuple(dict.fromkeys((*provenance.notes, *machine.notes))),
        )
        write_provenance(assignment.result, provenance)
        options = ExecutionOptions(
            placement=lambda count, affinity: place(topology, count, affinity),
            nodes_of=lambda cpus: memory_nodes_of(topology, cpus),
            gate=machine.gate,
            disturbances=machine.gate.close,
            retries=int(plan.options.get("gate_retries") or 0),
            progress=progress,
            files=RunFiles(assignment.result / TRACES_NAME, write_inputs),
            selection=selection,
        )
        try:
            with open_session(assignment.result / "logs", sweep_all, shown) as session:
                summary = execute(plan, session, ledger, options)
        except BaseException:
            machine.release()
            with suppress(DataError):  # on a full disk the failure on its way says more
                write_provenance(assignment.result, _ended(provenance, machine))
            raise
        machine.release()
        write_provenance(assignment.result, _ended(provenance, machine))
        return summary


def _wishes(plan: Plan) -> MachineRequest:
    asked = str(plan.options.get("tuning") or "")
    policy = Policy(str(plan.options.get("gate") or Policy.RECORD))
    return MachineRequest(policy=policy, tunings=tuple(filter(None, asked.split(","))))


def _ended(provenance: Provenance, machine: PreparedMachine) -> Provenance:
    *earlier, last = end_session(provenance).sessions
    seen = replace(last, gate=machine.gate.records(), tunings=machine.tuning_records())
    return replace(provenance, sessions=(*earlier, seen))


def _require_study_to_resume(assignment: Assignment) -> None:
    if assignment.resume and not holds_plan(assignment.result):
        message = f"`{assignment.result}` contains no study to resume: `{PLAN_NAME}` is absent"
        raise UsageError(
            message, hint="leave out --resume to start a new study", code="usage.nothing-to-resume"
        )


def _require_free_or_resumed(assignment: Assignment) -> None:
    result = assignment.result
    if holds_plan(result) and not assignment.resume:
        message = f"`{result}` already contains a study"
        hint = f"{resume_command(assignment.study.name, result)}, or another folder with --out"
        raise UsageError(message, hint=hint, code="usage.folder-in-use")


def resume_command(study: str, result: Path) -> str:
    """Give the command that continues a study.

    Examples
    --------
    >>> from pathlib import Path
    >>> resume_command("stability", Path("night shift"))
    "steelyard run stability --out 'night shift' --resume"
    """
    return f"steelyard run {study} --out {shlex.quote(str(result))} --resume"


def _plan(assignment: Assignment, probed: ProbedTechnologies) -> Plan:
    path = assignment.result / PLAN_NAME
    if not assignment.resume:
        plan = assignment.study.plan(assignment.options or assignment.study.options(), probed)
        _write_plan(plan, path)
        return plan
    plan = read_plan(path)
    if plan.study != assignment.study.name:
        message = f"`{assignment.result}` contains the study `{plan.study}`, not `{assignment.study.name}`"
        hint = resume_command(plan.study, assignment.result)
        raise DataError(message, hint=hint, code="data.other-study")
    _require_same_request(assignment, plan)
    for name in dict.fromkeys(cell.execution.isolation for cell in plan.cells if cell.execution is not None):
        probed.get(name)
    return plan


def _require_same_request(assignment: Assignment, plan: Plan) -> None:
    asked_before = plan.options.get("request")
    if assignment.options is None or not isinstance(asked_before, str):
        return
    differing = differing_keys(asked_before, assignment.study.request(assignment.options))
    if differing:
        message = (
            f"the study in `{assignment.result}` was started with a different request: {'; '.join(differing)}"
        )
        command = resume_command(assignment.study.name, assignment.result)
        hint = f"`{command}` alone continues it as it was started; a changed study needs another --out"
        raise DataError(message, hint=hint, code="data.other-plan")


def _write_plan(plan: Plan, path: Path) -> None:
    try:
        plan.write(path)
    except OSError as error:
        raise unwritable(path, error, "give another folder with --out") from error


def _provenance(assignment: Assignment, plan: Plan, probed: ProbedTechnologies) -> Provenance:
    fingerprint = read_fingerprint()
    now = replace(
        begin_provenance(plan, map(without_secrets, assignment.command_line), host_id=fingerprint.host_id),
        host=asdict(fingerprint),
        technologies={name: asdict(found) for name, found in probed.tried.items()},
    )
    if (assignment.result / PROVENANCE_NAME).exists():
        return continue_provenance(read_provenance(assignment.result), now)
    return now
