"""``steelyard run``: a study from its options to its report."""

from __future__ import annotations

import contextlib
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from steelyard.design.study_file import read_study_file
from steelyard.errors import InterruptedByUser, SteelyardError, StudyFileError
from steelyard.record.clock import now_utc
from steelyard.run.isolation.registry import technologies
from steelyard.run.progress import choose_progress
from steelyard.studies.execution import Assignment, default_result, execute_study, record_tables
from steelyard.studies.registry import Study, study

if TYPE_CHECKING:
    from pydantic import BaseModel

    from steelyard.run.executor import ExecutionSummary

RESULTS = Path("steelyard-results")


def run(
    name: Annotated[str, Parameter(name="study")],
    /,
    *,
    quick: Annotated[bool, Parameter(negative="")] = False,
    out: Path | None = None,
    study_file: Path | None = None,
    seed: int | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Execute a study and write its result folder.

    Tries the isolation technologies of the study and says which are missing and why, designs the
    study for this machine, executes it, keeps every run the moment it is over, analyses the result
    and writes its report. The last line names the report.

    Ctrl-C stops after what is running is cancelled; everything finished is kept, and `--resume`
    continues. A second Ctrl-C leaves at once.

    Parameters
    ----------
    name
        The study: `stability`.
    quick
        A study of a few minutes instead of one of hours.
    out
        Result folder; `steelyard-results/STUDY-DATE-N` by default.
    study_file
        TOML file with the choices of the study, see `docs/reference/study-file.md`.
    seed
        Seed of the order and of the inputs.
    resume
        Continue the study in the folder given by `--out`.

    Examples
    --------
    A first look, a few minutes::

        steelyard run stability --quick

    A whole night, stopped and continued::

        steelyard run stability --out results/night
        steelyard run stability --out results/night --resume
    """
    chosen = study(name)
    result = out or default_result(name, now_utc()[:10], RESULTS)
    options = _options(chosen, study_file, {"quick": quick or None, "seed": seed})
    assignment = Assignment(chosen, options, result, resume, ("steelyard", *sys.argv[1:]))
    summary = _execute(assignment)
    record_tables(result)
    chosen.analyse(result)
    _report(result)
    failed = sum(count for status, count in summary.statuses.items() if status != "completed")
    if failed:
        sys.stderr.write(f"{failed} of {sum(summary.statuses.values())} runs failed; the report names them\n")
    return 0


def _execute(assignment: Assignment) -> ExecutionSummary:
    try:
        with choose_progress() as progress, _second_interrupt_leaves():
            return execute_study(assignment, progress)
    except KeyboardInterrupt as error:
        with contextlib.suppress(SteelyardError):
            record_tables(assignment.result)
        message = f"interrupted; everything finished so far is in `{assignment.result}`"
        hint = f"steelyard run {assignment.study.name} --out {assignment.result} --resume"
        raise InterruptedByUser(message, hint=hint) from error


@contextlib.contextmanager
def _second_interrupt_leaves() -> Any:
    """Let the first Ctrl-C interrupt in order, and the second end the process at once."""

    def first(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.stderr.write("\nstopping; once more to leave at once\n")
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _options(chosen: Study, study_file: Path | None, given: dict[str, object]) -> BaseModel:
    """Give the options of the file, with what the command line says on top."""
    update = {name: value for name, value in given.items() if value is not None}
    if study_file is None:
        return chosen.options.model_validate(update)
    from steelyard.studies.stability.workloads import WORKLOADS  # noqa: PLC0415 - start-up time

    known = {"isolation": list(technologies()), "workload": list(WORKLOADS)}
    options = read_study_file(study_file, {chosen.name: chosen.options}, known)
    if not isinstance(options, chosen.options):
        message = f"study file `{study_file}` is of another study than `{chosen.name}`"
        raise StudyFileError(message, code="study-file.other-study")
    return options.model_copy(update=update)


def _report(result: Path) -> None:
    from steelyard.cli.report import report  # noqa: PLC0415 - needs packages that only reports need

    report(result)
