"""``steelyard compare``: commands measured side by side until it is settled how they compare."""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.analyse.comparison.sequential import Location
from steelyard.cli import began_s
from steelyard.cli.amounts import Whole, parse_cpus, parse_duration_ns, parse_share
from steelyard.cli.catalogue.registering import OWN_CATALOGUE, CatalogueOption
from steelyard.cli.environment_note import note_unpassable
from steelyard.cli.fail_on import Answer, FailOn, FailOnOption
from steelyard.cli.figure_note import note_missing_figures
from steelyard.cli.interruption import interruptible
from steelyard.cli.measuring.revisions import NO_REVISIONS, RevisionOptions, built
from steelyard.errors import RunError, SteelyardError, UsageError
from steelyard.interruption import INTERRUPTED
from steelyard.record.clock import now_utc
from steelyard.record.folder_lock import default_result
from steelyard.studies.comparison.contender import Commands, Hooks, Side
from steelyard.studies.comparison.export import Form, export, to_json
from steelyard.studies.comparison.parameter import parse_parameters
from steelyard.studies.comparison.run.execution import Unwatched, compare_commands, require_no_result
from steelyard.studies.comparison.run.live import LiveLine
from steelyard.studies.comparison.terms import LEVELS, Metric, Output, Terms
from steelyard.studies.comparison.text import render
from steelyard.studies.comparison.verdict_table import render_suite
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.revisions.build import Build
    from steelyard.studies.comparison.outcome import Comparison

RESULTS: Final = Path("steelyard-results")
SLOWER: Final = (FailOn.SLOWER,)
_BUDGET_S: Final = 60.0
_Repeated = Parameter(show_default=False)


@Parameter(name="*")
@dataclass(frozen=True)
class ClaimOptions:
    """Claim that the comparison tests.

    Parameters
    ----------
    metric
        `wall` time, `cpu` time of the whole process tree, or its peak `memory`.
    margin
        Largest difference that counts as none, as in `2%`.
    level
        Overall confidence level of all comparisons together, as in `95%`.
    location
        `typical`: judge by the typical run, which outliers hardly move; `mean`: by the mean, outliers
        included.
    baseline
        The command the others are compared with: its number, name or text. The first by default.
    fail_on
        What gives exit code 1: `slower` (than the baseline, by more than the margin), `changed`
        (slower, or faster by more than the margin), `undecided` (slower, or a comparison is not settled); may
        be given several times. `slower` by default.
    """

    metric: Metric = Metric.WALL
    margin: str = "2%"
    level: str = "95%"
    location: Location = Location.TYPICAL
    baseline: str | None = None
    fail_on: FailOnOption = SLOWER


@Parameter(name="*")
@dataclass(frozen=True)
class ExtentOptions:
    """Extent of the measurement.

    Parameters
    ----------
    warmup
        Warm-up runs of each command; recorded, not used.
    runs_min
        Smallest number of runs of each command before a verdict.
    runs_max
        Largest number of runs of each command.
    budget
        Longest time from start to answer, as in `60s`; 60 s by default, and then at least `--runs-min` runs.
    seed
        Seed of the random order inside each block.
    """

    warmup: Whole = 1
    runs_min: Whole = 10
    runs_max: Whole = 1000
    budget: str | None = None
    seed: Whole = 1


@Parameter(name="*")
@dataclass(frozen=True)
class CommandOptions:
    """Which commands, and what happens around them.

    Parameters
    ----------
    name
        Name of a command, once per command in their order.
    parameter
        `NAME=A,B,C` or `NAME=FROM:TO[:STEP]`: values of `{NAME}` in the commands; may be given several
        times. Each value is compared with the baseline's same value, or, with one command, with the first.
    shell
        Run the commands with `sh -c`. The start of the shell is part of every run; nothing is subtracted.
    setup
        Shell line before the first run of a command. This and the next three: once for all commands, or
        once per command.
    prepare
        Shell line before each run.
    conclude
        Shell line after each run.
    cleanup
        Shell line after the last run of a command.
    ignore_failure
        Count runs that end with another exit code than 0, or by a signal.
    """

    name: Annotated[tuple[str, ...], _Repeated] = ()
    parameter: Annotated[tuple[str, ...], _Repeated] = ()
    shell: bool = False
    setup: Annotated[tuple[str, ...], _Repeated] = ()
    prepare: Annotated[tuple[str, ...], _Repeated] = ()
    conclude: Annotated[tuple[str, ...], _Repeated] = ()
    cleanup: Annotated[tuple[str, ...], _Repeated] = ()
    ignore_failure: bool = False


@Parameter(name="*")
@dataclass(frozen=True)
class EnvironmentOptions:
    """Where the commands run.

    Parameters
    ----------
    isolation
        Isolation technology of each run: `bare`, `sandbox`, `docker` ...; `steelyard doctor` lists what works
        here.
    cpus
        CPUs the commands may use, as in `0-2,5`.
    environment
        `NAME=VALUE` for the commands, or `NAME` to pass a variable on; may be given several times. Bare
        commands get your environment as it is, isolated ones `PATH`, `HOME`, `LANG` and `TERM`.
    clean_environment
        Bare commands also get only `PATH`, `HOME`, `LANG`, `TERM` and what `--environment` names.
    show
        Further file or folder that isolated commands may read; may be given several times. Commands can use
        sockets and named pipes there, as in the current folder.
    input
        File for standard input; empty input otherwise.
    output
        Where standard output goes: `null`, `pipe` (read and discarded), `show`, or a file to append to.
    """

    isolation: str = "bare"
    cpus: Annotated[str | None, Parameter(name=["--cpus", "--affinity"])] = None
    environment: Annotated[tuple[str, ...], _Repeated] = ()
    clean_environment: bool = False
    show: Annotated[tuple[Path, ...], _Repeated] = ()
    input: Path | None = None
    output: str = "null"


@Parameter(name="*")
@dataclass(frozen=True)
class KeepOptions:
    """What is kept and shown.

    Parameters
    ----------
    out
        Result folder; `steelyard-results/compare-DATE-N` by default.
    no_record
        Keep nothing on disk.
    export
        `json FILE` (everything), `csv FILE` (one row per run), `md FILE` (verdicts and table), or for a
        pipeline `pull-request FILE`, `annotations FILE`, `junit FILE`, `action-benchmark FILE`,
        `bencher FILE`; may be given several times.
    report
        Write `report.html` and figures into the result folder.
    as_json
        Print JSON instead of text.
    ci
        In a job of GitHub or GitLab: annotate, add the verdicts to the job's summary, and renew the comment
        on the pull or merge request. Files for other steps are in `steelyard-results/gate`.
    """

    out: Path | None = None
    no_record: bool = False
    export: Annotated[tuple[tuple[Form, Path], ...], _Repeated] = ()
    report: bool = False
    as_json: Annotated[bool, Parameter(name="--json")] = False
    ci: Annotated[bool, Parameter(negative="")] = False


_CLAIM, _EXTENT, _COMMANDS = ClaimOptions(), ExtentOptions(), CommandOptions()
_SURROUNDINGS, KEEP = EnvironmentOptions(), KeepOptions()


def compare(  # noqa: PLR0913 - the options of a command line
    *commands: str,
    claim: ClaimOptions = _CLAIM,
    extent: ExtentOptions = _EXTENT,
    around: CommandOptions = _COMMANDS,
    revisions: RevisionOptions = NO_REVISIONS,
    place: EnvironmentOptions = _SURROUNDINGS,
    keep: KeepOptions = KEEP,
    listed: CatalogueOption = OWN_CATALOGUE,
) -> int:
    """Compare commands: which is slower, faster or equally fast, and how certain that is.

    The commands take turns in random order, so that disturbances of the machine hit all of them. They are
    measured until the comparison is settled, or the budget or the number of runs is used up; the interval
    allows for looking at the data in between, so it holds whenever the measurement stops. The exit code is 1
    when a command is slower than the baseline by more than the margin; `--fail-on` chooses what else. After
    Ctrl-C the verdict rests on the runs so far.

    Parameters
    ----------
    commands
        Commands, each in quotes; they are split into words as a shell does, but run without a shell.
    claim
        Claim that the comparison tests.
    extent
        Extent of the measurement.
    around
        Commands, and what happens around them.
    revisions
        Revisions in which they run.
    place
        Where the commands run.
    keep
        What is kept.
    listed
        Catalogue of results.

    Examples
    --------
    steelyard compare './sort-old words.txt' './sort-new words.txt'

    steelyard compare --margin 1% --budget 30s --name old --name new ./old ./new

    steelyard compare --parameter threads=1,2,4,8 'make -B -j {threads}'

    steelyard compare --rev main --rev HEAD --build 'make' -- ./sort words.txt
    """
    revisions.require_used()
    if not commands:
        message = "`steelyard compare` needs commands"
        raise UsageError(message, hint="steelyard compare 'COMMAND A' 'COMMAND B'")
    if keep.no_record and (keep.out or keep.report):
        message = "`--no-record` keeps nothing on disk; `--out` and `--report` need a result folder"
        raise UsageError(message, hint="leave one of them out")
    request = Commands(
        texts=commands,
        names=around.name,
        baseline=claim.baseline,
        parameters=parse_parameters(around.parameter),
        hooks=_hooks(around, len(commands)),
        shell=around.shell,
    )
    terms = _terms(claim, extent, place, ignores_failure=around.ignore_failure)
    result = None if keep.no_record else keep.out or default_result("compare", now_utc()[:10], RESULTS)
    with told_in_ci(keep):
        return measured(request, (terms, result), (claim.fail_on, keep), revisions, listed)


@contextlib.contextmanager
def told_in_ci(keep: KeepOptions) -> Iterator[None]:
    """Let a comment not stand that belongs to revisions of before."""
    try:
        yield
    except SteelyardError as error:
        if keep.ci:
            from steelyard.cli.measuring.pipeline import publish_failure  # noqa: PLC0415 - start-up time

            publish_failure(error)
        raise


def measured(
    request: Commands,
    how: tuple[Terms, Path | None],
    told: tuple[Sequence[FailOn], KeepOptions],
    revisions: RevisionOptions,
    listed: CatalogueOption,
) -> int:
    """Build what is to be built, measure, say what was found, and give the exit code.

    Parameters
    ----------
    request : Commands
        What is compared.
    how : tuple
        Terms, and the result folder if there is to be one.
    told : tuple
        What gives exit code 1, and what is kept and shown.
    revisions : RevisionOptions
        Revisions in which the commands run.
    listed : CatalogueOption
        Catalogue of results.
    """
    (terms, result), (fail_on, keep) = how, told
    _require_folders(keep.export)
    if keep.report:
        note_missing_figures()
    if terms.inherits:
        note_unpassable()
    failed: tuple[Build, ...] = ()
    with listed.registering():
        with interruptible(), contextlib.ExitStack() as stack:
            start_s = began_s()
            if revisions.rev:
                _require_sound(request, terms, result, revisions)
                parted = built(revisions, request.texts, stack)
                request = replace(request, sides=parted.sides, remarks=parted.remarks)
                failed = parted.failed
                start_s = time.monotonic()  # the budget is for measuring
            watcher = stack.enter_context(LiveLine(sys.stderr)) if sys.stderr.isatty() else Unwatched()
            found = compare_commands(
                request,
                terms,
                result,
                watcher=watcher,
                command_line=("steelyard", *sys.argv[1:]),
                began_s=start_s,
            )
        _publish(found, keep)
    if found.end == "interrupted":
        return INTERRUPTED
    return _answer(found).exit_code(fail_on) or (RunError.exit_code if failed or found.has_failure else 0)


def _require_sound(request: Commands, terms: Terms, result: Path | None, revisions: RevisionOptions) -> None:
    """Refuse before something is built what would be refused afterwards."""
    terms.check()
    replace(request, sides=tuple(Side(name, Path()) for name in revisions.rev)).field()
    if result is not None:
        require_no_result(result)


def _answer(found: Comparison) -> Answer:
    return Answer(
        is_slower=found.has_regression,
        is_changed=found.has_regression or any(claim.is_improvement for claim in found.claims),
        is_undecided=any(not claim.is_settled for claim in found.claims),
    )


def _terms(
    claim: ClaimOptions, extent: ExtentOptions, place: EnvironmentOptions, *, ignores_failure: bool
) -> Terms:
    budget_s = _BUDGET_S
    if extent.budget is not None:
        budget_s = parse_duration_ns(extent.budget, "--budget") / NS_PER_S
    output = Output(place.output) if place.output in list(Output) else Path(place.output)
    return Terms(
        metric=claim.metric,
        margin=Margin(parse_share(claim.margin, "--margin"), parse_share(claim.level, "--level", LEVELS)),
        location=claim.location,
        warmup=extent.warmup,
        extent=Extent(extent.runs_min, extent.runs_max, budget_s, is_strict=extent.budget is not None),
        seed=extent.seed,
        isolation=place.isolation,
        cpus=() if place.cpus is None else tuple(parse_cpus(place.cpus, "--cpus")),
        environment=place.environment,
        is_clean=place.clean_environment,
        shown=place.show,
        input=place.input,
        output=output,
        ignores_failure=ignores_failure,
    )


def _hooks(around: CommandOptions, count: int) -> tuple[Hooks, ...]:
    """Give the lines of each command: one line stands for all commands, else there is one per command."""
    lists = {
        "setup": around.setup,
        "prepare": around.prepare,
        "conclude": around.conclude,
        "cleanup": around.cleanup,
    }
    for option, lines in lists.items():
        if len(lines) not in {0, 1, count}:
            message = f"`--{option}` is given {len(lines)} times for {count} commands"
            raise UsageError(message, hint=f"give `--{option}` once for all, or once per command")
    return tuple(
        Hooks(**{option: _line_of(lines, at) for option, lines in lists.items()}) for at in range(count)
    )


def _line_of(lines: Sequence[str], at: int) -> str | None:
    if not lines:
        return None
    return lines[0] if len(lines) == 1 else lines[at]


def _require_folders(exports: Sequence[tuple[Form, Path]]) -> None:
    """Refuse to measure for a minute what cannot be written then."""
    for form, path in exports:
        if not path.absolute().parent.is_dir() or path.is_dir():
            message = f"`--export {form} {path}`: cannot write this file"
            raise UsageError(message, hint="give a file in an existing folder")


def _publish(found: Comparison, keep: KeepOptions) -> None:
    for form, path in keep.export:
        export(found, form, path)
    is_suite = found.contenders[0].side and len(found.claims) > 1
    text = render_suite(found) if is_suite else render(found)
    sys.stdout.write(to_json(found) if keep.as_json else text)
    if keep.ci:
        from steelyard.cli.measuring.pipeline import publish  # noqa: PLC0415 - start-up time

        publish(found)
    if keep.report and found.result is not None:
        from steelyard.studies.comparison.report.page import write_report  # noqa: PLC0415 - start-up time

        path = write_report(found.result)
        (sys.stderr if keep.as_json else sys.stdout).write(f"report {path}\n")
