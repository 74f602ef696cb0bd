"""``steelyard bisect``: the commit that made a program slower or faster, with its probability."""

from __future__ import annotations

import json
import shutil
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.culprit.search import Answer
from steelyard.cli.amounts import Whole, parse_cpus, parse_share
from steelyard.cli.catalogue.registering import OWN_CATALOGUE, CatalogueOption
from steelyard.cli.environment_note import note_unpassable
from steelyard.cli.figure_note import note_missing_figures
from steelyard.cli.interruption import interruptible
from steelyard.cli.measuring.compare import RESULTS
from steelyard.cli.measuring.revisions import build_cache, tell_of_build
from steelyard.errors import UsageError
from steelyard.interruption import INTERRUPTED
from steelyard.record.clock import now_utc
from steelyard.record.folder_lock import default_result
from steelyard.revisions.history import span_between
from steelyard.revisions.repository import Repository
from steelyard.studies.comparison.bisection.execution import bisect_history, resume_hint
from steelyard.studies.comparison.bisection.outcome import SHORT_DIGITS, as_dict, render
from steelyard.studies.comparison.bisection.terms import Question
from steelyard.studies.comparison.contender import Hooks, split_words
from steelyard.studies.comparison.terms import LEVELS, Metric, Output, Terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from steelyard.revisions.build import Build
    from steelyard.revisions.history import Span
    from steelyard.revisions.repository import Commit
    from steelyard.studies.comparison.bisection.measuring import Measuring
    from steelyard.studies.comparison.bisection.replay import Bisection

_SECONDS: Final = 60.0
_PERIOD_S: Final = 0.2
_CLEAR: Final = "\r\x1b[2K"
_NOT_FOUND: Final = 1


@Parameter(name="*")
@dataclass(frozen=True)
class SearchOptions:
    """What is asked of the history.

    Parameters
    ----------
    build
        Shell line that builds a commit, in the folder in which you stand. What was built before from the same
        files is not built again.
    build_timeout
        Longest time of a build, as in `5min`; `--minutes` by default. Then all its processes are killed, and
        the commit is skipped.
    metric
        `wall` time, `cpu` time of the whole process tree, or its peak `memory`.
    confidence
        Probability at which the search ends, as in `95%`.
    minutes
        Minutes for all of it, builds included.
    margin
        Difference of both ends that counts as none, as in `2%`.
    first_parent
        Follow the first parent of merges alone, so that each merge counts as one change.
    rebuild
        Build again.
    seed
        Seed of the random order inside each block.
    """

    build: Annotated[str | None, Parameter(show_default=False)] = None
    build_timeout: Annotated[str | None, Parameter(show_default=False)] = None
    metric: Metric = Metric.WALL
    confidence: str = "95%"
    minutes: float = 30.0
    margin: str = "2%"
    first_parent: Annotated[bool, Parameter(negative="")] = False
    rebuild: Annotated[bool, Parameter(negative="")] = False
    seed: Whole = 1


@Parameter(name="*")
@dataclass(frozen=True)
class CommandSurroundings:
    """What happens around the runs.

    Parameters
    ----------
    shell
        Run the command with `sh -c`. The start of the shell is part of every run; nothing is subtracted.
    setup
        Shell line before the first runs in a checkout.
    prepare
        Shell line before each run.
    conclude
        Shell line after each run.
    cleanup
        Shell line after the last run in a checkout.
    warmup
        Runs of each program before it is measured; they are not recorded.
    cpus
        CPUs the command may use, as in `0-2,5`.
    environment
        `NAME=VALUE` for the command, or `NAME` to pass a variable on; may be given several times.
    clean_environment
        The command gets only `PATH`, `HOME`, `LANG`, `TERM` and what `--environment` names.
    input
        File for standard input; empty input otherwise.
    """

    shell: bool = False
    setup: str | None = None
    prepare: str | None = None
    conclude: str | None = None
    cleanup: str | None = None
    warmup: Whole = 1
    cpus: Annotated[str | None, Parameter(name=["--cpus", "--affinity"])] = None
    environment: Annotated[tuple[str, ...], Parameter(show_default=False)] = ()
    clean_environment: bool = False
    input: Path | None = None


@Parameter(name="*")
@dataclass(frozen=True)
class KeptOptions:
    """What is kept and shown.

    Parameters
    ----------
    out
        Result folder; `steelyard-results/bisect-DATE-N` by default. That of the same bisection goes on.
    report
        Write `report.html` and figures into the result folder.
    as_json
        Print JSON instead of text.
    """

    out: Path | None = None
    report: bool = False
    as_json: Annotated[bool, Parameter(name="--json")] = False


_SEARCH, _AROUND, _KEPT = SearchOptions(), CommandSurroundings(), KeptOptions()


def bisect(
    good: str,
    bad: str,
    /,
    *command: Annotated[str, Parameter(allow_leading_hyphen=True)],
    search: SearchOptions = _SEARCH,
    around: CommandSurroundings = _AROUND,
    keep: KeptOptions = _KEPT,
    listed: CatalogueOption = OWN_CATALOGUE,
) -> int:
    """Find the commit that made a program slower or faster, and how probable that is.

    The good and the bad revision are measured until it is certain that they differ. Then commits between them
    are built and measured, each in random order with both ends, so that a drift of the machine cancels; the
    next commit is the one of which a second of building and measuring is expected to say most. Commits that
    do not build, or whose command fails, are skipped. The search ends when one commit has the asked
    probability, or the minutes are spent. Exit code 0: found; 1: not found.

    Parameters
    ----------
    good
        Revision before the change.
    bad
        Revision that has it, or `.` for the files as they are.
    command
        Command that runs in each checkout.
    search
        What is asked of the history.
    around
        What happens around the runs.
    keep
        What is kept and shown.
    listed
        Catalogue of results.

    Examples
    --------
    steelyard bisect v1.4 HEAD --build make -- ./sort words.txt

    steelyard bisect main~200 main --first-parent --minutes 60 --build 'cargo build -r' -- target/release/app
    """
    if command and command[0].startswith("-"):
        message = f"unknown option `{command[0]}`"
        raise UsageError(message, hint="steelyard bisect --help")
    question = Question(
        # One word in quotes is a command, as `compare` takes it.
        split_words(command[0]) if len(command) == 1 and not around.shell else command,
        search.build,
        around.shell,
        Hooks(around.setup, around.prepare, around.conclude, around.cleanup),
        _terms(search, around),
        search.minutes,
    )
    question.check()
    question.terms.check()
    if keep.report:
        note_missing_figures()
    if question.terms.inherits:
        note_unpassable()
    repository = Repository(Path.cwd())
    span = span_between(repository, good, bad, first_parent=search.first_parent)
    for remark in span.remarks:
        sys.stderr.write(f"note: {remark}\n")
    result = keep.out or default_result("bisect", now_utc()[:10], RESULTS)
    with listed.registering():
        with interruptible(), _Line() as line:
            found = bisect_history(
                question,
                span,
                result,
                _builder(repository, span, search, line),
                watcher=line,
                command_line=("steelyard", *sys.argv[1:]),
            )
        return _publish(found, result, keep)


def _terms(search: SearchOptions, around: CommandSurroundings) -> Terms:
    margin = parse_share(search.margin, "--margin")
    return Terms(
        metric=search.metric,
        margin=Margin(margin, parse_share(search.confidence, "--confidence", LEVELS)),
        warmup=around.warmup,
        seed=search.seed,
        cpus=() if around.cpus is None else tuple(parse_cpus(around.cpus, "--cpus")),
        environment=around.environment,
        is_clean=around.clean_environment,
        input=around.input,
        output=Output.NULL,
        longest_run_s=search.minutes * _SECONDS,
    )


def _publish(found: Bisection, result: Path, keep: KeptOptions) -> int:
    text = json.dumps(as_dict(found, result), indent=1, ensure_ascii=False) + "\n"
    sys.stdout.write(text if keep.as_json else render(found, result))
    if found.known.answer is Answer.OPEN and found.log.end in {"spent", "interrupted"}:
        sys.stderr.write(f"hint: {resume_hint(result)}\n")
    if keep.report:
        from steelyard.report.output import write_report  # noqa: PLC0415 - start-up time
        from steelyard.studies.comparison.bisection.report import build  # noqa: PLC0415 - start-up time

        path = write_report(build(result), result)
        (sys.stderr if keep.as_json else sys.stdout).write(f"report {path}\n")
    if found.log.end == "interrupted":
        return INTERRUPTED
    return 0 if found.known.answer is Answer.FOUND else _NOT_FOUND


def _builder(
    repository: Repository, span: Span, search: SearchOptions, line: _Line
) -> Callable[[int], AbstractContextManager[Build]]:
    """Give what builds a commit of the history by its place, and the good end by -1."""
    cache = build_cache(search.build_timeout, default_s=search.minutes * _SECONDS)
    made: set[str] = set()

    @contextmanager
    def building(place: int) -> Iterator[Build]:
        if place < 0:
            commit = span.good
        elif place == len(span.history) - 1:
            commit = span.bad
        else:
            commit = repository.commit(span.history.commits[place].id)
        is_again = search.rebuild and commit.id not in made
        with cache.building(repository, commit, search.build, is_again=is_again, tell=line.tell) as build:
            made.add(commit.id)
            yield build

    return building


class _Line:
    """One line on a terminal that says how far it is; nothing where there is no terminal."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._last_s = float("-inf")

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def tell(self, build: Build | None, commit: Commit) -> None:
        """Say what is built, on a line of its own."""
        self._clear()
        tell_of_build(build, commit)

    def block_done(self, measuring: Measuring) -> None:
        now_s = time.monotonic()
        if not self._is_shown or now_s - self._last_s < _PERIOD_S:
            return
        self._last_s = now_s
        width = shutil.get_terminal_size().columns
        sys.stderr.write(_CLEAR + progress_text(measuring)[: width - 1])
        sys.stderr.flush()

    def _clear(self) -> None:
        if self._is_shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


def progress_text(measuring: Measuring) -> str:
    """Say in one line how far it is, what is most probable by now, and what is measured."""
    known, commits = measuring.known, measuring.search.history.commits
    minutes = f"{measuring.elapsed_s / _SECONDS:.1f} of {measuring.question.minutes:g} min"
    parts = [f"{measuring.search.blocks.count} blocks, {minutes}"]
    if known.evidence is not None:
        best = int(known.weights.argmax())
        parts.append(f"{commits[best].id[:SHORT_DIGITS]} {100 * known.probability:.0f} %")
    current = measuring.current
    parts.append("both ends" if current < 0 else f"measuring {commits[current].id[:SHORT_DIGITS]}")
    return "; ".join(parts)
