"""``steelyard rerun``: the study of a package on this machine, and both results side by side."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from steelyard.cli.amounts import parse_share
from steelyard.cli.catalogue.registering import OWN_CATALOGUE, CatalogueOption
from steelyard.cli.figure_note import note_missing_figures
from steelyard.cli.interruption import interruptible
from steelyard.cli.results.compare_results import lay_over
from steelyard.errors import InterruptedByUser, UsageError
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.record.clock import now_utc
from steelyard.record.folder_lock import default_result, holds_plan
from steelyard.record.provenance import read_provenance
from steelyard.run.progress import choose_progress
from steelyard.share.anonymous.names import is_anonymous
from steelyard.share.anonymous.placeholders import filled
from steelyard.share.package.check import opened_result
from steelyard.share.rerun import newly_missing, said_of
from steelyard.studies.repetition import COMPARISON, repeat, require_repeatable
from steelyard.studies.rerun_places import Places, places_of

if TYPE_CHECKING:
    from steelyard.model import Plan

RESULTS = Path("steelyard-results")
_YES = "yes"


@Parameter(name="*")
@dataclass(frozen=True)
class Where:
    """Where the study of a package runs; this machine by default.

    Parameters
    ----------
    devices
        TOML device file for a package of the replication study (docs/reference/devices.md), named like
        those in `devices.toml` of the package. Without it, devices that were parts of a host are parts of
        this one; other hosts belong to somebody else and are never contacted.
    hostfile
        Two hosts of your own for a package that was measured between two hosts.
    """

    devices: Path | None = None
    hostfile: Path | None = None


_HERE = Where()


def rerun(  # noqa: PLR0913 - the options of a command line
    package: Path,
    *,
    out: Path | None = None,
    margin: str = "5%",
    places: Where = _HERE,
    yes: Annotated[bool, Parameter(name=["--yes", "-y"], negative="")] = False,
    listed: CatalogueOption = OWN_CATALOGUE,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Repeat the study of a package on this machine and compare both results.

    The same request and the same seed are planned, run and analysed here; cells that this machine cannot
    run are named. Then both results are compared as `steelyard compare-results` does, with its exit codes.

    A package comes from somebody else, and this command runs what it asks for, with your rights. It first
    shows what that is, and runs nothing until you type `yes` on a terminal or give `--yes`. Use a machine, a
    container or a virtual machine that contains nothing of value, and do not run it as root unless the study
    needs root.

    Parameters
    ----------
    package
        Package, or result folder.
    out
        New result folder, `steelyard-results/STUDY-DATE-N` by default.
    margin
        Largest difference that counts as agreement of a cell, as in `5%`.
    places
        Your own devices or hosts.
    yes
        Run it without asking; what would run is shown all the same.
    listed
        Catalogue of results.
    as_json
        Print the comparison as JSON.

    Examples
    --------
    See what a package would run here, and decide::

        steelyard rerun theirs.zip

    Repeat it on your own devices::

        steelyard rerun theirs.zip --devices mine.toml

    Repeat it in a container without asking::

        steelyard rerun theirs.zip --out results/ours --yes
    """
    allowed = parse_share(margin, "--margin")
    with opened_result(package) as theirs:
        plan = read_plan(theirs / PLAN_NAME)
        if is_anonymous(read_provenance(theirs)):
            plan = filled(plan)
        require_repeatable(theirs, plan)
        result = default_result(plan.study, now_utc()[:10], RESULTS) if out is None else out
        if holds_plan(result):
            message = f"`{result}` already contains a study"
            raise UsageError(message, hint="give another folder with --out", code="usage.folder-in-use")
        note_missing_figures()
        chosen = places_of(plan, places.devices, places.hostfile)
        _ask(package, plan, chosen, is_agreed=yes)
        try:
            with interruptible(), listed.registering():
                _repeat(plan, result, chosen)
        except KeyboardInterrupt as error:
            message = f"interrupted; everything finished so far is in `{result}`"
            raise InterruptedByUser(message, hint=f"steelyard verify {shlex.quote(str(result))}") from error
        for line in newly_missing(plan, read_plan(result / PLAN_NAME)):
            sys.stderr.write(f"missing here: {line}\n")
        sys.stderr.write(f"result {result}\n")
        return lay_over((theirs, result), (str(package), str(result)), allowed, as_json=as_json)


def _ask(package: Path, plan: Plan, places: Places, *, is_agreed: bool) -> None:
    """Show what would run, and continue only if somebody agrees."""
    sys.stderr.write(f"`{package}` comes from somebody else; repeating it runs what it asks for\n")
    sys.stderr.writelines(f"{line}\n" for line in said_of(plan, places.said))
    if is_agreed:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        message = "nothing was run, because nobody agreed to it"
        hint = f"steelyard rerun {shlex.quote(str(package))} --yes, where nothing of value can be harmed"
        raise UsageError(message, hint=hint, code="usage.not-agreed")
    sys.stderr.write(f"run this here? type `{_YES}` to continue: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != _YES:
        message = "nothing was run"
        raise UsageError(
            message, hint="docs/guides/packages.md says how to isolate it", code="usage.not-agreed"
        )


def _repeat(plan: Plan, result: Path, places: Places) -> None:
    with choose_progress() as progress:
        repeat(plan, result, progress, ("steelyard", *sys.argv[1:]), places)
    if plan.study != COMPARISON:
        from steelyard.cli.results.report import write_files  # noqa: PLC0415 - start-up time

        write_files(result)
