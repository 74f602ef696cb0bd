"""``steelyard compare``: commands measured side by side until it is settled how they compare."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import Parameter

from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.analyse.comparison.quantile_ratio import Quantile
from steelyard.analyse.comparison.sequential import parse_statistic
from steelyard.cli import began_s
from steelyard.cli.amounts import Whole, WholeOrNone, parse_cpus, parse_duration_ns, parse_share
from steelyard.cli.catalogue.registering import OWN_CATALOGUE, CatalogueOption
from steelyard.cli.environment_note import note_unpassable
from steelyard.cli.fail_on import SLOWER, FailOn, FailOnOption
from steelyard.cli.figure_note import note_missing_figures
from steelyard.cli.interruption import interruptible
from steelyard.cli.measuring.comparison_answer import (
    KEEP,
    KeepOptions,
    exit_code_of,
    publish_comparison,
    require_folders,
    told_in_ci,
)
from steelyard.cli.measuring.revisions import NO_REVISIONS, RevisionOptions, built, longest_s, note_links
from steelyard.errors import DataError, RunError, UsageError
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.record.clock import now_utc
from steelyard.record.folder_lock import default_result, holds_plan
from steelyard.report.shown_text import inert
from steelyard.studies.comparison.contender import Commands, Hooks, Side
from steelyard.studies.comparison.parameter import parse_parameters
from steelyard.studies.comparison.run.execution import GoingOn, Unwatched, compare_commands, require_no_result
from steelyard.studies.comparison.run.live import LiveLine
from steelyard.studies.comparison.terms import LEVELS, Metric, Mode, Output, Terms
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analyse.comparison.sequential import Statistic
    from steelyard.revisions.build import Build

RESULTS: Final = Path("steelyard-results")
_BUDGET_S: Final = 60.0
_RUNS_MAX, _RUNS_ON_HOSTS = 1000, 30
_GOING_ON: Final = ("compare", "bench", "bisect")
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
    statistic
        `typical`: judge by the typical run, which outliers hardly move; `mean`: by the mean, outliers
        included; `median`, or a quantile such as `p99`: by that of all runs of a command. Several, as in
        `median,p95,p99`, give a verdict each, at the level together.
    baseline
        The command the others are compared with: its number, name or text. The first by default.
    best
        Find the fastest command: all are compared with each other, and one that is slower than another one
        for sure runs no more. Nothing but `--fail-on undecided` gives exit code 1.
    fail_on
        What gives exit code 1: `slower` (than the baseline, by more than the margin), `changed`
        (slower, or faster by more than the margin), `undecided` (slower, or a comparison is not settled); may
        be given several times. `slower` by default.
    """

    metric: Literal["wall", "cpu", "memory"] = "wall"
    margin: str = "2%"
    level: str = "95%"
    statistic: Annotated[str, Parameter(name=["--statistic", "--location"])] = "typical"
    baseline: str | None = None
    best: Annotated[bool, Parameter(negative="")] = False
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
        Largest number of runs of each command, 1000 by default. With `--on`, the number of runs of each
        command on each host, 30 by default.
    budget
        Longest time from start to answer, as in `60s`; 60 s by default, and then at least `--runs-min` runs.
    seed
        Seed of the random order inside each block.
    resume
        Result folder of a comparison that is not settled: go on with it, for `--budget`. Commands and options
        are those it was begun with. Where its budget was used up, the level is lower afterwards.
    """

    warmup: Whole = 1
    runs_min: Whole = 10
    runs_max: WholeOrNone = None
    budget: str | None = None
    seed: Whole = 1
    resume: Path | None = None


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
    mode
        `turns`: one run at a time; `duet`: both commands at the same time, on cores of their own, so that
        what disturbs the machine disturbs both; `auto`: what needs fewer minutes here, which the baseline
        beside itself shows.
    layout
        Place of programs in memory: `host`, as it is; `random`, drawn for each run, and the report says how
        much of the scatter it causes.
    on
        Hosts, each of which measures all commands: `slurm:PARTITION`, with options of sbatch behind it;
        `ssh:FILE`, those that a TOML file names; `local:N`, N processes of this host. By default this host.
    """

    isolation: str = "bare"
    cpus: Annotated[str | None, Parameter(name=["--cpus", "--affinity"])] = None
    environment: Annotated[tuple[str, ...], _Repeated] = ()
    clean_environment: bool = False
    show: Annotated[tuple[Path, ...], _Repeated] = ()
    input: Path | None = None
    output: str = "null"
    mode: Mode = Mode.TURNS
    layout: Literal["host", "random"] = "host"
    on: str | None = None


class _Told(Unwatched):
    """Says on a stream that is no terminal what must be known, and nothing after a block."""

    def say(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")


_CLAIM, _EXTENT, _COMMANDS = ClaimOptions(), ExtentOptions(), CommandOptions()
_SURROUNDINGS = EnvironmentOptions()


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

    steelyard compare --on ssh:hosts.toml ./old ./new

    steelyard compare --resume steelyard-results/compare-2026-05-04-1 --budget 5min
    """
    if extent.resume is not None:
        options = (claim, around, revisions, place)
        has_options = options != (
            replace(_CLAIM, fail_on=claim.fail_on),
            _COMMANDS,
            NO_REVISIONS,
            _SURROUNDINGS,
        )
        is_elsewhere = extent != replace(_EXTENT, resume=extent.resume, budget=extent.budget)
        if commands or has_options or is_elsewhere or keep.out or keep.no_record:
            message = "`--resume` takes commands and options from its folder; allowed beside it: `--budget`, "
            message += "`--fail-on`, `--json`, `--export`, `--report`, `--ci`"
            raise UsageError(message, hint=f"steelyard compare --resume {shlex.quote(str(extent.resume))}")
        with told_in_ci(keep):
            if _is_placed(extent.resume):
                if extent.budget is not None:
                    message = "`--budget` is for one host: each host makes the runs that were asked for"
                    raise UsageError(message, hint="leave it out", code="usage.not-placeable")
                return _measured_on(None, None, extent.resume, (claim.fail_on, keep), listed)
            return _go_on(extent.resume, _budget_s(extent), (claim.fail_on, keep), listed)
    revisions.require_used()
    if not commands:
        message = "`steelyard compare` needs commands"
        raise UsageError(message, hint="steelyard compare 'COMMAND A' 'COMMAND B'")
    if keep.no_record and (keep.out or keep.report):
        message = "`--no-record` keeps nothing on disk; `--out` and `--report` need a result folder"
        raise UsageError(message, hint="leave one of them out")
    request = _request(commands, claim, around)
    if place.on is not None:
        extent = _for_hosts(extent, revisions, keep)
    terms = _terms(claim, extent, place, ignores_failure=around.ignore_failure)
    result = None if keep.no_record else keep.out or default_result("compare", now_utc()[:10], RESULTS)
    with told_in_ci(keep):
        if place.on is not None and result is not None:
            return _measured_on(place.on, (request, terms), result, (claim.fail_on, keep), listed)
        return measured(request, (terms, result), (claim.fail_on, keep), revisions, listed)


def _request(commands: tuple[str, ...], claim: ClaimOptions, around: CommandOptions) -> Commands:
    return Commands(
        texts=commands,
        names=around.name,
        baseline=claim.baseline,
        is_best=claim.best,
        parameters=parse_parameters(around.parameter),
        hooks=_hooks(around, len(commands)),
        shell=around.shell,
    )


def _go_on(
    result: Path,
    budget_s: float | None,
    told: tuple[Sequence[FailOn], KeepOptions],
    listed: CatalogueOption,
) -> int:
    """Measure on what a folder began, by the command line that began it."""
    options = begun_with(result, "compare")
    claim, around = options.get("claim", _CLAIM), options.get("around", _COMMANDS)
    terms = _terms(
        claim,
        options.get("extent", _EXTENT),
        options.get("place", _SURROUNDINGS),
        ignores_failure=around.ignore_failure,
    )
    request = _request(options.get("commands", ()), claim, around)
    revisions = options.get("revisions", NO_REVISIONS)
    return measured(request, (terms, result), told, revisions, listed, going_on=GoingOn(budget_s))


def begun_with(result: Path, verb: str) -> dict[str, Any]:
    """Give the arguments of the command line that began a result, and say it.

    Raises
    ------
    UsageError
        If another verb, or another host, began it, or a secret in it was not recorded.
    """
    from steelyard.cli import with_one_command, with_values  # noqa: PLC0415 - it imports the verbs
    from steelyard.cli.verb_app import verb_app  # noqa: PLC0415 - start-up time
    from steelyard.record.provenance import read_provenance  # noqa: PLC0415 - start-up time
    from steelyard.report.shown_text import shown  # noqa: PLC0415 - start-up time
    from steelyard.run.machine.host import read_fingerprint  # noqa: PLC0415 - start-up time
    from steelyard.studies.comparison.run.resumption import require_no_secret  # noqa: PLC0415 - start-up time

    provenance = read_provenance(result)
    words = list(provenance.sessions[0].command_line) if provenance.sessions else []
    program, began = (*words[:2], "", "")[:2]
    if (program, began) != ("steelyard", verb):
        message = f"cannot go on with `{result}`: `steelyard {verb}` did not begin it"
        hint = "compare anew with another --out"
        if program == "steelyard" and began in _GOING_ON:
            hint = f"steelyard {began} --resume {shlex.quote(str(result))}"
        raise UsageError(message, hint=hint, code="usage.other-question")
    here = read_fingerprint().host_id
    if provenance.host_id != here:
        # Before anything of it is executed: a folder from elsewhere may name any command.
        message = f"cannot go on with `{result}`: it was measured on another host"
        hint = "measure anew here, then `steelyard compare-results --merge` both"
        raise UsageError(message, hint=hint, code="usage.other-host")
    require_no_secret(result, words)
    words = with_values(words[2:], takes_command=False)
    if verb == "compare":
        words = with_one_command(words)
    sys.stderr.write(inert(f"goes on with: {shown(shlex.join(['steelyard', verb, *words]))}\n"))
    _, bound, _ = verb_app(verb).parse_args(words, exit_on_error=False, print_error=False)
    return dict(bound.arguments)


def measured(
    request: Commands,
    how: tuple[Terms, Path | None],
    told: tuple[Sequence[FailOn], KeepOptions],
    revisions: RevisionOptions,
    listed: CatalogueOption,
    *,
    going_on: GoingOn | None = None,
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
    going_on : GoingOn or None
        Go on with the comparison in the result folder.
    """
    (terms, result), (fail_on, keep) = how, told
    require_folders(keep.export)
    if keep.report:
        note_missing_figures()
    if terms.inherits:
        note_unpassable()
    failed: tuple[Build, ...] = ()
    with listed.registering():
        with interruptible(), contextlib.ExitStack() as stack:
            start_s = began_s()
            if revisions.rev:
                _require_sound(request, terms, None if going_on else result, revisions)
                if terms.longest_run_s is None:
                    # A job that waits for a line, or a program, that hangs would have no verdict.
                    terms = replace(terms, longest_run_s=longest_s(revisions.build_timeout))
                parted = built(revisions, (*request.texts, *request.programs), stack)
                scratch = Path(stack.enter_context(TemporaryDirectory(prefix="steelyard-")))
                if request.listing is not None:
                    sys.stderr.write("listing benchmarks ...\n")
                request = request.on(parted.sides, parted.remarks, scratch)
                failed = parted.failed
                start_s = time.monotonic()  # the budget is for measuring
            if going_on is None:
                _state_runs(request, terms)
            watcher = stack.enter_context(LiveLine(sys.stderr)) if sys.stderr.isatty() else _Told()
            found = compare_commands(
                request,
                terms,
                result,
                watcher=watcher,
                command_line=("steelyard", *sys.argv[1:]),
                began_s=start_s,
                going_on=going_on,
            )
        found = replace(found, builds=tuple(side.facts for side in request.sides))
        publish_comparison(found, keep)
        if revisions.note and found.end != "interrupted":
            note_links(found)
    return exit_code_of(found, fail_on) or (RunError.exit_code if failed else 0)


def _require_sound(request: Commands, terms: Terms, result: Path | None, revisions: RevisionOptions) -> None:
    """Refuse before something is built what would be refused afterwards."""
    terms.check()
    terms.require_enough(
        replace(request, sides=tuple(Side(name, Path()) for name in revisions.rev)).field().pairs
    )
    if result is not None:
        require_no_result(result, "bench" if request.margins or request.listing else "compare")


def _terms(
    claim: ClaimOptions, extent: ExtentOptions, place: EnvironmentOptions, *, ignores_failure: bool
) -> Terms:
    budget_s = _budget_s(extent)
    output = Output(place.output) if place.output in list(Output) else Path(place.output)
    return Terms(
        metric=Metric(claim.metric),
        margin=Margin(parse_share(claim.margin, "--margin"), parse_share(claim.level, "--level", LEVELS)),
        statistics=_statistics(claim.statistic),
        warmup=extent.warmup,
        extent=Extent(
            extent.runs_min,
            extent.runs_max or _RUNS_MAX,
            budget_s or _BUDGET_S,
            is_strict=extent.budget is not None,
        ),
        seed=extent.seed,
        isolation=place.isolation,
        cpus=() if place.cpus is None else tuple(parse_cpus(place.cpus, "--cpus")),
        environment=place.environment,
        is_clean=place.clean_environment,
        shown=place.show,
        input=place.input,
        output=output,
        ignores_failure=ignores_failure,
        mode=place.mode,
        layout=place.layout,
    )


def _budget_s(extent: ExtentOptions) -> float | None:
    return None if extent.budget is None else parse_duration_ns(extent.budget, "--budget") / NS_PER_S


def _statistics(text: str) -> tuple[Statistic, ...]:
    found = tuple(parse_statistic(part.strip()) for part in text.split(",") if part.strip())
    if not found or len(set(found)) < len(found):
        message = (
            f"`--statistic {text}`: {'a statistic is named twice' if found else 'no statistic is named'}"
        )
        raise UsageError(message, hint="--statistic p95, or several: --statistic median,p95,p99")
    return found


def _state_runs(request: Commands, terms: Terms) -> None:
    """Say before the first run how many a quantile needs: those of a rare one may take long."""
    if any(isinstance(statistic, Quantile) for statistic in terms.statistics):
        pairs = request.field().pairs
        terms.require_enough(pairs)
        fewest = terms.fewest_runs(pairs)
        needs = ", ".join(f"{name} {count}" for name, count in fewest.items())
        sys.stderr.write(f"runs of each command before the first verdict: {needs}\n")


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


def _is_placed(result: Path) -> bool:
    """Tell whether a folder holds a comparison that was placed on hosts."""
    return holds_plan(result) and bool(read_plan(result / PLAN_NAME).options.get("hosts"))


def _for_hosts(extent: ExtentOptions, revisions: RevisionOptions, keep: KeepOptions) -> ExtentOptions:
    """Give the extent on each host of a placed comparison.

    Raises
    ------
    UsageError
        If something is asked for that belongs to one host.
    """
    is_asked = {
        "--budget": extent.budget is not None,
        "--rev": bool(revisions.rev),
        "--no-record": keep.no_record,
    }
    for option, is_given in is_asked.items():
        if is_given:
            message = f"`{option}` is for one host; `--on` places a comparison on several"
            hint = f"leave out `{option}` or `--on`; `--runs-max` says how many runs each host makes"
            raise UsageError(message, hint=hint, code="usage.not-placeable")
    runs = _RUNS_ON_HOSTS if extent.runs_max is None else extent.runs_max
    return replace(extent, runs_max=runs, runs_min=min(extent.runs_min, runs))


def _measured_on(
    on: str | None,
    asked: tuple[Commands, Terms] | None,
    result: Path,
    told: tuple[Sequence[FailOn], KeepOptions],
    listed: CatalogueOption,
) -> int:
    """Measure on hosts, or go on with what was placed there, and say what was found."""
    # Here: they take a while to load, and most comparisons need none.
    from steelyard.run.hosts.placement import continued_placement  # noqa: PLC0415
    from steelyard.run.progress import choose_progress  # noqa: PLC0415
    from steelyard.studies.comparison.hosts.execution import (  # noqa: PLC0415
        compare_on_hosts,
        continue_on_hosts,
    )
    from steelyard.studies.placed.parts import PLACED_NAME  # noqa: PLC0415

    fail_on, keep = told
    require_folders(keep.export)
    placing = continued_placement(on, result / PLACED_NAME, resume=asked is None)
    if placing is None:
        message = f"cannot go on with `{result}`: it does not say on which hosts it was placed"
        raise DataError(message, hint="compare anew with another --out", code="data.absent")
    if keep.report:
        note_missing_figures()
    command_line = ("steelyard", *sys.argv[1:])
    with listed.registering():
        with interruptible(), choose_progress() as progress:
            if asked is None:
                found = continue_on_hosts(result, placing, (command_line, progress))
            else:
                found = compare_on_hosts(*asked, result, placing, (command_line, progress))
        publish_comparison(found, keep)
    return exit_code_of(found, fail_on)
