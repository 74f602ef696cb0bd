"""A study from its options to its recorded tables: plan, run, record; and the same, resumed."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
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
from steelyard.run.executor.run_options import EveryBatch, ExecutionOptions
from steelyard.run.isolation.interface import Availability
from steelyard.run.isolation.registry import TECHNOLOGIES, sweep_all
from steelyard.run.isolation.root_view import folders_needed
from steelyard.run.machine.affinity import memory_nodes_of, place
from steelyard.run.machine.gate import Policy
from steelyard.run.machine.host import read_fingerprint, read_topology
from steelyard.run.machine.preparation import LOCK_PATIENCE_S, MachineRequest, machine_prepared
from steelyard.run.progress import Silent, format_left
from steelyard.run.redact import without_secrets
from steelyard.run.session import open_session
from steelyard.studies.host_facts import host_facts, planned_for
from steelyard.studies.placed.describing import common_facts, common_technology, describe_hosts, differences
from steelyard.studies.placed.driver import execute_placed
from steelyard.studies.placed.parts import PARTS_PER_HOST, PLACED_NAME
from steelyard.studies.request import differing_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pydantic import BaseModel

    from steelyard.model import Plan
    from steelyard.record.provenance import Provenance
    from steelyard.run.executor.executor import ExecutionSummary
    from steelyard.run.executor.run_options import Selection, Sink
    from steelyard.run.hosts.engine import Engine
    from steelyard.run.machine.preparation import PreparedMachine
    from steelyard.run.progress import Progress
    from steelyard.studies.placed.describing import Described
    from steelyard.study import Study


class ProbedTechnologies(Mapping[str, "Availability"]):
    """The technologies, each tried when it is first asked for, and said to the user.

    Parameters
    ----------
    progress : Progress
        Told which technologies are missing, why, and what repairs it.
    hosts : dict
        What other hosts found, where a study is planned for them.
    """

    def __init__(self, progress: Progress, hosts: Mapping[str, Described] = MappingProxyType({})) -> None:
        self._progress = progress
        self._hosts = hosts
        self._tried: dict[str, Availability] = {}

    def __getitem__(self, name: str) -> Availability:
        if name not in self._tried:
            technology = TECHNOLOGIES.find(name)
            if technology is None:
                raise KeyError(name)
            found = common_technology(self._hosts, name) if self._hosts else technology.probe()
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
    placing : callable or None
        Gives the engine that places the runs on other hosts, for a result folder; ``None``: this host.
    parts_per_host : int
        Parts that are placed, for each of them.
    """

    study: Study
    options: BaseModel | None
    result: Path
    resume: bool
    command_line: tuple[str, ...]
    placing: Callable[[Path], Engine] | None = None
    parts_per_host: int = PARTS_PER_HOST


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
    hosts = _hosts(assignment, progress)
    probed = ProbedTechnologies(progress, hosts)
    differing = differences(hosts) if hosts else []
    for note in differing:
        progress.note(note)
    with _planned_for(assignment, hosts):
        plan = _plan(assignment, probed)
    expected_s = None if assignment.resume else assignment.study.seconds(plan)
    if expected_s is not None:
        progress.note(f"expected to take about {format_left(expected_s)}")
    provenance = _provenance(assignment, plan, probed)
    provenance = replace(provenance, notes=tuple(dict.fromkeys((*provenance.notes, *differing))))
    resume = f"`{resume_command(assignment.study.name, assignment.result)}` continues it"
    with Ledger(assignment.result / LEDGER_NAME, plan.id, when_full=resume) as ledger:
        with assignment.study.selecting(plan, assignment.result) as selection:
            if assignment.placing is None:
                here = ExecutionHere(assignment.study, plan, assignment.result, selection)
                return here.execute(ledger, provenance, progress)
            if not isinstance(selection, EveryBatch):
                raise _unplaceable(plan)
        write_provenance(assignment.result, provenance)
        parts = assignment.result.absolute() / PLACED_NAME
        parts.mkdir(exist_ok=True)
        engine = assignment.placing(parts)
        result, study = assignment.result.absolute(), assignment.study
        parts_per_host = 1 if study.compares_hosts else assignment.parts_per_host
        return execute_placed(
            plan, result, ledger, engine, progress, parts_per_host=parts_per_host, hosts_of=study.hosts_of
        )


def _hosts(assignment: Assignment, progress: Progress) -> dict[str, Described]:
    """Ask the hosts that a new study is placed on what they are; nothing where it is run here."""
    if assignment.placing is None or assignment.resume:
        return {}
    asked: dict[str, None] = {}
    for works in (True, False):
        imagined = _Imagined(asked, works=works)
        with suppress(SteelyardError):  # planning says it, of the hosts
            assignment.study.sketch(assignment.options or assignment.study.options(), imagined)
    return describe_hosts(assignment.placing, assignment.result, [*asked], progress)


def _planned_for(assignment: Assignment, hosts: Mapping[str, Described]) -> AbstractContextManager[None]:
    if assignment.placing is None:
        return nullcontext()
    if not hosts:
        return planned_for(host_facts(), (platform.node(),))
    names = assignment.placing(assignment.result / PLACED_NAME).names
    return planned_for(replace(common_facts(hosts), names=names), tuple(hosts))


class _Imagined(ProbedTechnologies):
    """Technologies that all work, or none: a sketch with both asks for those that a plan may ask for."""

    def __init__(self, asked: dict[str, None], *, works: bool) -> None:
        super().__init__(Silent())
        self._asked, self._works = asked, works

    def __getitem__(self, name: str) -> Availability:
        if TECHNOLOGIES.find(name) is None:
            raise KeyError(name)
        self._asked[name] = None
        return Availability.yes(None) if self._works else Availability.no("imagined")


@dataclass(frozen=True, slots=True)
class ExecutionHere:
    """Runs batches of a plan on this host.

    Parameters
    ----------
    study : Study
        The study of the plan.
    plan : Plan
        Frozen plan.
    folder : Path
        Where provenance, logs and files of runs are written.
    selection : Selection
        Which batches are run, decided while they are.
    only : frozenset of int or None
        Numbers of the batches that are asked for; ``None``: the whole plan.
    lock_patience_s : float
        How long to wait for another study on this host [s].
    """

    study: Study
    plan: Plan
    folder: Path
    selection: Selection
    only: frozenset[int] | None = None
    lock_patience_s: float = LOCK_PATIENCE_S

    def execute(self, sink: Sink, provenance: Provenance, progress: Progress) -> ExecutionSummary:
        """Make the machine ready, run what is wanted, and write what was seen into the provenance.

        Raises
        ------
        RunError, GateError, CapabilityError, DataError
            From the execution; everything finished is in the sink.
        """
        topology = read_topology()
        needed = (cell.execution.command[0] for cell in self.plan.cells if cell.execution is not None)
        shown = folders_needed(needed)
        wishes = replace(_wishes(self.plan), lock_patience_s=self.lock_patience_s)
        with (
            self.study.inputs_of_runs(self.plan) as write_inputs,
            machine_prepared(wishes, progress=progress.calibrated) as machine,
        ):
            provenance = replace(
                provenance,
                calibration=machine.calibration or provenance.calibration,
                notes=tuple(dict.fromkeys((*provenance.notes, *machine.notes))),
            )
            write_provenance(self.folder, provenance)
            options = ExecutionOptions(
                placement=lambda count, affinity: place(topology, count, affinity),
                nodes_of=lambda cpus: memory_nodes_of(topology, cpus),
                gate=machine.gate,
                disturbances=machine.gate.close,
                retries=int(self.plan.options.get("gate_retries") or 0),
                lost_host=self.study.lost_host_of,
                progress=progress,
                files=RunFiles(self.folder / TRACES_NAME, write_inputs),
                selection=self.selection,
                only=self.only,
            )
            try:
                with open_session(self.folder / "logs", sweep_all, shown) as session:
                    summary = execute(self.plan, session, sink, options)
            except BaseException:
                machine.release()
                with suppress(DataError):  # on a full disk the failure on its way says more
                    write_provenance(self.folder, _ended(provenance, machine))
                raise
            machine.release()
            write_provenance(self.folder, _ended(provenance, machine))
            return summary


def _unplaceable(plan: Plan) -> UsageError:
    message = f"cannot place this {plan.study} study on other hosts: it decides while it is run what is run"
    hint = "ask for a number of blocks, or run it without --on"
    return UsageError(message, hint=hint, code="usage.not-placeable")


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
    now = provenance_here(plan, assignment.command_line, probed)
    if (assignment.result / PROVENANCE_NAME).exists():
        return continue_provenance(read_provenance(assignment.result), now)
    return now


def provenance_here(plan: Plan, command_line: Iterable[str], probed: ProbedTechnologies) -> Provenance:
    """Give the provenance of what begins now on this host."""
    fingerprint = read_fingerprint()
    return replace(
        begin_provenance(plan, map(without_secrets, command_line), host_id=fingerprint.host_id),
        host=asdict(fingerprint),
        technologies={name: asdict(found) for name, found in probed.tried.items()},
    )
