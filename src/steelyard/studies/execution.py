"""A study from its options to its recorded tables: plan, execute, record; and the same, resumed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError, UsageError
from steelyard.model.plan import read_plan
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
from steelyard.run.affinity import place
from steelyard.run.executor import ExecutionOptions, execute
from steelyard.run.gate import Policy
from steelyard.run.host import read_fingerprint, read_topology
from steelyard.run.isolation.registry import sweep_all, technologies
from steelyard.run.isolation.root_view import folders_needed
from steelyard.run.preparation import Wishes, machine_prepared
from steelyard.run.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import BaseModel

    from steelyard.model import Plan
    from steelyard.record.provenance import Provenance
    from steelyard.run.executor import ExecutionSummary
    from steelyard.run.isolation.interface import Availability
    from steelyard.run.preparation import PreparedMachine
    from steelyard.run.progress import Progress
    from steelyard.studies.registry import Study

PLAN_NAME: Final = "plan.json"


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
            found = technologies()[name].probe()
            if not found.available:
                repair = f" (repair: {found.repair})" if found.repair else ""
                self._progress.note(f"isolation {name} is not available: {found.reason}{repair}")
            self._tried[name] = found
        return self._tried[name]

    def __iter__(self) -> Iterator[str]:
        return iter(technologies())

    def __len__(self) -> int:
        return len(technologies())

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
    options : BaseModel
        Its options; ignored where a plan exists already.
    result : Path
        Result folder.
    resume : bool
        Whether the folder may hold a study that was stopped.
    command_line : tuple of str
        For the provenance.
    """

    study: Study
    options: BaseModel
    result: Path
    resume: bool
    command_line: tuple[str, ...]


def execute_study(assignment: Assignment, progress: Progress) -> ExecutionSummary:
    """Plan (or resume), execute and record a study.

    Raises
    ------
    UsageError
        If the folder holds a study and resuming was not asked for, or the other way round.
    DataError
        If the folder's study is another one, or cannot be read or written.
    RunError, GateError, CapabilityError
        From the execution; everything finished is on disk.
    """
    _check_folder(assignment)
    probed = ProbedTechnologies(progress)
    plan = _plan(assignment, probed)
    provenance = _provenance(assignment, plan, probed)
    topology = read_topology()
    needed = (cell.execution.command[0] for cell in plan.cells if cell.execution is not None)
    shown = folders_needed(needed)
    with (
        machine_prepared(_wishes(plan), progress=progress.calibrated) as machine,
        Ledger(assignment.result / LEDGER_NAME, plan.id) as ledger,
    ):
        provenance = replace(
            provenance,
            calibration=machine.calibration or provenance.calibration,
            notes=tuple(dict.fromkeys((*provenance.notes, *machine.notes))),
        )
        write_provenance(assignment.result, provenance)
        options = ExecutionOptions(
            placement=lambda count, affinity: place(topology, count, affinity),
            gate=machine.gate,
            progress=progress,
        )
        try:
            with open_session(assignment.result / "logs", sweep_all, shown) as session:
                return execute(plan, session, ledger, options)
        finally:
            machine.release()
            write_provenance(assignment.result, _ended(provenance, machine))


def _wishes(plan: Plan) -> Wishes:
    asked = str(plan.options.get("tuning") or "")
    policy = Policy(str(plan.options.get("gate") or Policy.RECORD))
    return Wishes(policy=policy, tunings=tuple(filter(None, asked.split(","))))


def _ended(provenance: Provenance, machine: PreparedMachine) -> Provenance:
    *earlier, last = end_session(provenance).sessions
    seen = replace(last, gate=machine.gate.records(), tunings=machine.tuning_records())
    return replace(provenance, sessions=(*earlier, seen))


def record_tables(result: Path) -> None:
    """Write the tables of what is complete."""
    write_tables(result)


def _check_folder(assignment: Assignment) -> None:
    result = assignment.result
    has_plan = (result / PLAN_NAME).exists()
    if has_plan and not assignment.resume:
        message = f"`{result}` holds a study already"
        hint = f"steelyard run {assignment.study.name} --out {result} --resume, or another folder with --out"
        raise UsageError(message, hint=hint, code="usage.folder-in-use")
    if assignment.resume and not has_plan:
        message = f"`{result}` holds no study to resume: there is no `{PLAN_NAME}`"
        raise UsageError(
            message, hint="leave --resume out to begin a new study", code="usage.nothing-to-resume"
        )
    try:
        result.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"the result folder `{result}` cannot be made: {error.strerror}"
        hint = "give a folder you may write to with --out"
        raise DataError(message, hint=hint, code="data.unwritable") from error


def _plan(assignment: Assignment, probed: ProbedTechnologies) -> Plan:
    path = assignment.result / PLAN_NAME
    if not assignment.resume:
        plan = assignment.study.plan(assignment.options, probed)
        _write_plan(plan, path)
        return plan
    plan = read_plan(path)
    if plan.study != assignment.study.name:
        message = f"`{assignment.result}` holds the study `{plan.study}`, not `{assignment.study.name}`"
        raise DataError(message, hint=f"steelyard run {plan.study} --resume", code="data.other-study")
    for name in dict.fromkeys(cell.execution.isolation for cell in plan.cells if cell.execution is not None):
        probed.get(name)
    return plan


def _write_plan(plan: Plan, path: Path) -> None:
    try:
        plan.write(path)
    except OSError as error:
        message = f"`{path}` cannot be written: {error.strerror}"
        hint = "free space, or give another folder with --out"
        raise DataError(message, hint=hint, code="data.unwritable") from error


def _provenance(assignment: Assignment, plan: Plan, probed: ProbedTechnologies) -> Provenance:
    fingerprint = read_fingerprint()
    now = replace(
        begin_provenance(plan, assignment.command_line, host_id=fingerprint.host_id),
        host=asdict(fingerprint),
        technologies={name: asdict(found) for name, found in probed.tried.items()},
    )
    if (assignment.result / PROVENANCE_NAME).exists():
        return continue_provenance(read_provenance(assignment.result), now)
    return now


def default_result(study: str, today: str, folder: Path) -> Path:
    """Give a folder that does not exist yet: ``<study>-<date>-<n>``.

    Parameters
    ----------
    study : str
        Name of the study.
    today : str
        Date, ``2026-11-21``.
    folder : Path
        Where results are collected.
    """
    number = 1
    while os.path.lexists(folder / f"{study}-{today}-{number}"):
        number += 1
    return folder / f"{study}-{today}-{number}"
