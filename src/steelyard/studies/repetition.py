"""A result of somebody else repeated on this machine: the same request and seed, run and analysed."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.design.study_file import frozen
from steelyard.errors import CapabilityError, DataError, UsageError
from steelyard.record.provenance import read_provenance
from steelyard.share.rerun import absent_programs
from steelyard.studies.comparison.contender import Commands
from steelyard.studies.comparison.report.page import write_report
from steelyard.studies.comparison.run.execution import compare_commands
from steelyard.studies.comparison.terms import command_count, planned_terms
from steelyard.studies.execution import Assignment, execute_study
from steelyard.studies.request import differing_keys
from steelyard.study import study

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic import BaseModel

    from steelyard.model import Plan
    from steelyard.run.progress import Progress
    from steelyard.studies.rerun_places import Places

COMPARISON: Final = "compare"
BISECTION: Final = "bisect"
_NOT_IN_PLAN: Final = (
    "--setup",
    "--prepare",
    "--conclude",
    "--cleanup",
    "--environment",
    "--show",
    "--input",
    "--shell",
    "--parameter",
)


def require_repeatable(result: Path, plan: Plan) -> None:
    """Check that a result can be repeated here at all, before anybody is asked.

    Raises
    ------
    UsageError
        If it was imported, or was measured with more than its plan keeps.
    CapabilityError
        If a program that it compares is not on this machine.
    DataError
        If its request is not one of its study.
    """
    if plan.study == COMPARISON:
        _require_plain_comparison(result, plan)
    elif plan.study == BISECTION:
        message = "cannot repeat a bisection: its programs are built from a repository"
        hint = "run `steelyard bisect` in the repository; `steelyard verify` computes it again"
        raise UsageError(message, hint=hint)
    elif plan.options.get("request") is None:
        message = f"cannot repeat the result of `{plan.study}`: it was imported, not measured by Steelyard"
        hint = "`steelyard compare-results` compares it with your own result"
        raise UsageError(message, hint=hint, code="usage.not-repeatable")
    else:
        _options(plan)


def _require_plain_comparison(result: Path, plan: Plan) -> None:
    provenance = read_provenance(result)
    words = provenance.sessions[0].command_line if provenance.sessions else ()
    flags = {word.partition("=")[0] for word in words}
    used = [flag for flag in _NOT_IN_PLAN if flag in flags] + ["--rev"] * bool(provenance.builds)
    if used:
        shown = ", ".join(f"`{flag}`" for flag in used)
        message = f"the comparison was measured with {shown}, which its plan does not keep"
        hint = f"if you trust it, repeat it by hand: {shlex.join(words)}"
        raise UsageError(message, hint=hint, code="usage.not-repeatable")
    _, pairs = planned_terms(plan)
    if len({baseline for baseline, _ in pairs}) != 1:
        message = "cannot repeat a comparison with several baselines"
        raise UsageError(message, hint=f"repeat it by hand: {shlex.join(words)}", code="usage.not-repeatable")
    absent = absent_programs(plan)
    if absent:
        message = f"this machine lacks what the package compares: {', '.join(f'`{name}`' for name in absent)}"
        hint = "install it, or put the programs where the package expects them, then repeat the command"
        raise CapabilityError(message, hint=hint, code="capability.program")


def _options(plan: Plan, files: Mapping[str, str] | None = None) -> BaseModel:
    chosen = study(plan.study)
    try:
        asked = {**json.loads(str(plan.options["request"])), **(files or {})}
        return chosen.options.model_validate(frozen(asked))
    except (ValueError, TypeError, ValidationError) as error:
        message = f"the request of the package does not fit the study `{plan.study}` of this version"
        hint = "use the version of Steelyard that `environment.json` of the package names"
        raise DataError(message, hint=hint, code="data.request") from error


def repeat(
    theirs: Plan, result: Path, progress: Progress, command_line: tuple[str, ...], places: Places
) -> None:
    """Run the study of a plan that `require_repeatable` accepted here, analyse it and write its report.

    Raises
    ------
    SteelyardError
        As the study raises it; everything finished is in the folder.
    """
    if theirs.study == COMPARISON:
        _compare_again(theirs, result, command_line)
        return
    chosen = study(theirs.study)
    for line in differing_keys(str(theirs.options["request"]), chosen.request(_options(theirs))):
        progress.note(f"this version of Steelyard makes a different plan: {line}")
    options = _options(theirs, places.laid(result))
    execute_study(Assignment(chosen, options, result, resume=False, command_line=command_line), progress)
    chosen.analyse(result)
    if chosen.follow(result):
        chosen.analyse(result)


def _compare_again(theirs: Plan, result: Path, command_line: tuple[str, ...]) -> None:
    terms, pairs = planned_terms(theirs)
    cells = [cell for cell in theirs.cells[: command_count(theirs)] if cell.execution is not None]
    commands = Commands(
        texts=tuple(shlex.join(cell.execution.command) for cell in cells if cell.execution is not None),
        names=tuple(cell.levels["command"] for cell in cells),
        baseline=str(pairs[0][0] + 1),
    )
    cpus = str(theirs.options.get("cpus") or "")
    # Commands of a stranger get no variable of ours but the few that a program needs.
    terms = replace(terms, cpus=tuple(int(cpu) for cpu in cpus.split(",") if cpu), is_clean=True, trial="")
    if terms.hosts:  # hosts of somebody else
        terms = replace(terms, hosts=0, extent=Extent())
    compare_commands(commands, terms, result, command_line=command_line)
    write_report(result)
