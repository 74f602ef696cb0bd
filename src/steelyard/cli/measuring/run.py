"""``steelyard run``: a study from its options to its report."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from steelyard.cli.amounts import WholeOrNone  # noqa: TC001 - cyclopts reads it
from steelyard.cli.catalogue.registering import CatalogueOption
from steelyard.cli.figure_note import note_missing_figures
from steelyard.cli.interruption import interruptible
from steelyard.cli.study_flags import given
from steelyard.errors import AnalysisError, InterruptedByUser, UsageError
from steelyard.model.plan import PLAN_NAME
from steelyard.record.clock import now_utc
from steelyard.record.folder_lock import default_result, holds_plan
from steelyard.run.hosts.placement import continued_placement
from steelyard.run.progress import choose_progress
from steelyard.studies.execution import Assignment, execute_study, resume_command
from steelyard.studies.placed.parts import PLACED_NAME
from steelyard.studies.request import requested_options
from steelyard.study import study

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel


RESULTS = Path("steelyard-results")


def run(  # noqa: PLR0913 - the options of a command line
    name: str,
    /,
    *,
    quick: Annotated[bool, Parameter(negative="")] = False,
    out: Path | None = None,
    study_file: Path | None = None,
    seed: WholeOrNone = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
    no_analyse: Annotated[bool, Parameter(negative="")] = False,
    on: str | None = None,
    own: object = None,
    catalogue: Annotated[str | None, Parameter(show_default=False)] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Run a study and write its result folder.

    Tries the isolation technologies of the study and says which are missing and why, plans the
    study for this machine, runs it, keeps every run the moment it is over, analyses the result
    and writes its report. The last line names the report.

    Ctrl-C (or SIGTERM) cancels what is running and stops; everything finished is kept, and `--resume`
    continues. A second Ctrl-C stops at once.

    Parameters
    ----------
    name
        The study.
    quick
        Run a study of a few minutes instead of hours.
    out
        Result folder; the study file's, else `steelyard-results/STUDY-DATE-N` by default.
    study_file
        TOML file with the choices of the study, see `docs/reference/study-file.md`.
    seed
        Seed of the order and of the inputs.
    resume
        Continue the study in the folder given by `--out`.
    no_analyse
        Record only; run `steelyard analyse` and `steelyard report` later, here or on another machine.
    on
        Where the runs are placed: `slurm:PARTITION`, with options of sbatch behind it; `ssh:FILE`, on the
        hosts that a TOML file names; `local:N`, as N processes of this host. By default they run here; a
        study that is resumed goes on where it was begun.
    own
        Options of the study alone.
    catalogue
        Catalogue that lists the result: a file, or `postgresql://...`; by default that of the variable
        `STEELYARD_CATALOGUE`, else your own.
    as_json
        Print the findings as JSON in the end, instead of text.

    Examples
    --------
    A first look, a few minutes::

        steelyard run stability --quick

    A whole night, stopped and continued::

        steelyard run stability --out results/night
        steelyard run stability --out results/night --resume

    On loose hosts::

        steelyard run stability --on ssh:hosts.toml --out results/night

    On the nodes of a cluster::

        steelyard run stability --on "slurm:main --account=physics --time=60" --out results/night
    """
    if no_analyse and as_json:
        message = "`--no-analyse` leaves no findings that `--json` could print"
        raise UsageError(message, hint="leave one of them out")
    chosen = study(name)
    said = {"quick": quick or None, "seed": seed, **given(chosen, own)}
    options = requested_options(chosen, study_file, said)
    result = _result_folder(out, options, name, resume=resume)
    is_asked = study_file is not None or any(value is not None for value in said.values())
    assignment = Assignment(
        chosen,
        options if is_asked or not resume else None,
        result,
        resume,
        ("steelyard", *sys.argv[1:]),
        continued_placement(on, result / PLACED_NAME, resume=resume),
    )
    if not no_analyse:
        note_missing_figures()
    listed = CatalogueOption(catalogue)
    try:
        with interruptible(), listed.registering():
            return _execute(
                assignment,
                _say_recorded if no_analyse else _say_json if as_json else partial(_report, listed),
            )
    except KeyboardInterrupt as error:
        raise _interrupted(name, result) from error


def _execute(assignment: Assignment, say: Callable[[Path], None]) -> int:
    with choose_progress() as progress:
        summary = execute_study(assignment, progress)
    unanswered = None if say is _say_recorded else _analyse(assignment)
    say(assignment.result)
    failed = sum(count for status, count in summary.statuses.items() if status.is_failure)
    if failed:
        sys.stderr.write(f"{failed} of {sum(summary.statuses.values())} runs failed; the report names them\n")
    if unanswered is not None:
        raise unanswered
    return 0


def _analyse(assignment: Assignment) -> AnalysisError | None:
    """Compute findings, and what follows from them; give why that cannot be, for after the report."""
    assignment.study.analyse(assignment.result)
    try:
        is_more = assignment.study.follow(assignment.result)
    except AnalysisError as error:
        assignment.study.analyse(assignment.result)
        return error
    if is_more:
        assignment.study.analyse(assignment.result)
    return None


def _result_folder(out: Path | None, options: BaseModel, name: str, *, resume: bool) -> Path:
    named = out or getattr(options, "out", None)
    if named is None and resume:
        raise _nothing_named(name)
    return default_result(name, now_utc()[:10], RESULTS) if named is None else Path(named)


def _nothing_named(name: str) -> UsageError:
    """Say that a study is resumed in the folder that is given, and which one may be meant."""
    begun = [path for path in RESULTS.glob(f"{name}-*") if holds_plan(path)]
    newest = max(begun, key=lambda path: (path / PLAN_NAME).stat().st_mtime_ns, default=None)
    message = "`--resume` continues the study in a folder, and `--out` does not name one"
    hint = f"steelyard run {name} --out DIR --resume" if newest is None else resume_command(name, newest)
    return UsageError(message, hint=hint, code="usage.nothing-to-resume")


def _interrupted(name: str, result: Path) -> InterruptedByUser:
    if not holds_plan(result):
        message = f"interrupted before the first run; `{result}` is empty"
        return InterruptedByUser(message, hint="repeat the command to start again")
    message = f"interrupted; everything finished so far is in `{result}`"
    return InterruptedByUser(message, hint=resume_command(name, result))


def _say_recorded(result: Path) -> None:
    """Say where the recorded runs are, and what makes a report of them."""
    place = shlex.quote(str(result))
    sys.stdout.write(f"recorded: {result}\nnext: steelyard analyse {place} && steelyard report {place}\n")


def _report(listed: CatalogueOption, result: Path) -> None:
    from steelyard.cli.results.report import report  # noqa: PLC0415 - start-up time

    report(result, listed=listed)


def _say_json(result: Path) -> None:
    """Write the report's files, and print the findings as they are kept."""
    from steelyard.cli.results.report import write_files  # noqa: PLC0415 - start-up time

    write_files(result)
    sys.stdout.write((result / "findings.json").read_text(encoding="utf-8"))
