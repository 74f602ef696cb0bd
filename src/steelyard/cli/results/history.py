"""``steelyard history``: where a history of results changes."""

from __future__ import annotations

import json
import math
import shlex
import sys
from pathlib import Path  # noqa: TC003 - the command line reads the annotation at run time
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard.cli.fail_on import SLOWER, Answer, FailOnOption
from steelyard.cli.figure_note import note_missing_figures
from steelyard.cli.results.acceptance import NO_ACCEPTANCE, Acceptance, accepted_levels
from steelyard.cli.streams import write_lines
from steelyard.errors import AnalysisError, UsageError
from steelyard.report.history_page import Followed, called, direction_of, history_page, name_of, places_of
from steelyard.report.slots import signed_change

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analyse.series.history import Change, HistoryOptions
    from steelyard.analyse.series.result_series import ResultSeries

_MOST_ALLOWED: Final = 0.7
_FEWEST_FOLDERS_HINT: Final = "give result folders, oldest first, or one import of several files"


def history(  # noqa: PLR0913 - options of one verb
    *directories: Path,
    metric: Annotated[tuple[str, ...], Parameter(consume_multiple=False)] = (),
    margin: float = 2.0,
    level: float = 95.0,
    autocorrelation: float | None = None,
    independent: Annotated[bool, Parameter(negative=())] = False,
    fail_on: FailOnOption = SLOWER,
    acceptance: Acceptance = NO_ACCEPTANCE,
    notes: Annotated[bool, Parameter(negative=())] = False,
    html: Path | None = None,
    json_: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Find where a history of results changes.

    Exits with code 1 if the newest level of a series is slower than the reference level by more than the
    margin; the reference is the level accepted last, or the first, or a faster one after it; `--fail-on`
    chooses what else gives 1. A level that was seen before, such as a mode of the machine, is not new and
    does not count. The error rate allows for a look after each new result: in at most 5 % of histories
    without a change, any of 100 looks exits with 1.

    Comparisons of revisions are linked: each knows the ratio of two revisions, measured on one machine, so
    that machines drop out, of whatever model they are.

    Parameters
    ----------
    directories
        Result folders, oldest first; or one folder with several blocks, such as an import of several files;
        or comparisons of revisions, and files that `--export links` wrote of them.
    metric
        Metric to follow; may be given several times; all times, sizes and rates by default.
    margin
        Largest difference that counts as no change, in percent.
    level
        100 minus the percentage of unchanged histories that may be called slower at any of 100 looks.
    autocorrelation
        Largest autocorrelation of neighbouring results to allow for, 0 to 0.7: less finds smaller changes.
        0.7 unless given.
    independent
        The results are known not to depend on the ones before (machine rebooted or drawn anew each time): as
        `--autocorrelation 0`.
    fail_on
        What gives exit code 1: `slower` (the newest level of a series), `changed` (slower, or a series
        changed anywhere, in either direction), `undecided` (slower, or a series is undecided, suspect, or
        slower at a level that was seen before); may be given several times. `slower` by default.
    notes
        Read the notes of this repository's revisions that `steelyard bench --note` left, instead of folders.
    html
        HTML page to write, with a figure of each series.
    json_
        Print JSON for programs.

    Examples
    --------
    Stop a pipeline when a benchmark has become slower by more than 5 %::

        steelyard history results/2026-* --margin 5

    Accept a slower level, so that the pipeline goes on::

        steelyard history results/2026-* --accept 2026-11-03 --why "checks every packet now"
    """
    from steelyard.analyse.series.history import HistoryOptions, Inside, find_changes  # noqa: PLC0415 - start-up time
    from steelyard.analyse.series.result_series import read_series  # noqa: PLC0415 - start-up time
    from steelyard.record.same_result import refuse_same  # noqa: PLC0415 - start-up time

    if independent and autocorrelation:
        message = f"`--independent` and `--autocorrelation {autocorrelation:g}` exclude each other"
        raise UsageError(message, hint="leave out one of them")
    from steelyard.cli.results.revision_history import (  # noqa: PLC0415 - start-up time
        Asked,
        are_of_revisions,
        revision_history,
    )

    if notes and directories:
        message = "`--notes` reads the notes of this repository, and results are given too"
        raise UsageError(message, hint="leave one of them out")
    if notes or (directories and are_of_revisions(directories)):
        if independent or autocorrelation is not None:
            option = "--independent" if independent else "--autocorrelation"
            message = f"`{option}` is about levels of results; revisions are linked by ratios"
            raise UsageError(message, hint="leave it out")
        _check_shares(margin, level)
        asked = Asked(metric, acceptance, margin / 100, level / 100, html, as_json=json_)
        return revision_history(directories, asked, from_notes=notes).exit_code(fail_on)
    allowed = _MOST_ALLOWED if autocorrelation is None else autocorrelation
    _check(directories, margin, level, allowed)
    refuse_same(directories)
    series = read_series(directories, metric)
    _require_several_results(series)
    options = HistoryOptions(margin / 100, level / 100, independent, allowed)
    folder = directories[-1].absolute().parent
    accepted = accepted_levels(
        acceptance, folder, [each.labels for each in series], metric, [called(each) for each in series]
    )
    found = find_changes(
        [each.values for each in series], options, [Inside(each.runs, each.squares) for each in series]
    )
    followed = [
        Followed.of(one, two, places_of(accepted, one), options.margin)
        for one, two in zip(series, found, strict=True)
    ]
    if html is not None:
        _write_page(html, followed, options.margin)
    if json_:
        document = {
            "schema": "steelyard/history/1",
            "margin_percent": margin,
            "level_percent": level,
            "is_independent": independent,
            "autocorrelation_allowed": options.allowed,
            "series": [_as_json(each) for each in followed],
        }
        sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    else:
        write_lines(_as_text(followed, options, directories))
        held = {each.series.labels[place] for each in followed for place in each.accepted}
        for each in accepted:
            if each.result in held:
                sys.stdout.write(f"{each.sentence}\n")
    answer = Answer(
        is_slower=any(each.is_slower for each in followed),
        is_changed=any(each.changes for each in found),
        is_undecided=any(
            each.found.is_undecidable or each.found.suspect is not None or each.seen is not None
            for each in followed
        ),
    )
    return answer.exit_code(fail_on)


def _require_several_results(series: list[ResultSeries]) -> None:
    """Refuse what no change can be seen in: one result, or results that have no cell in common."""
    if any(each.values.size > 1 for each in series):
        return
    labels = list(dict.fromkeys(label for each in series for label in each.labels))
    if not labels:
        message = "cannot follow this history: no value of it is finite and above 0"
        hint = "changes are ratios of levels: give results whose values are above 0"
        raise AnalysisError(message, hint=hint)
    if len(labels) < 2:  # noqa: PLR2004 - one result is no history
        message = f"a history needs at least two results; given: `{labels[0]}`"
        hint = _FEWEST_FOLDERS_HINT
    else:
        message = (
            f"{len(labels)} results contain {len(series)} different cells, such as `{name_of(series[0])}` "
            f"and `{name_of(series[1])}`; each is in only one result, and a history needs several"
        )
        hint = (
            "repeat a study with `steelyard rerun RESULT`; "
            "`steelyard import csv --workload NAME` gives equal cells of tables equal names"
        )
    raise AnalysisError(message, hint=hint, code="analysis.one-result")


def _write_page(path: Path, followed: list[Followed], margin: float) -> None:
    from steelyard.report.html import write_html  # noqa: PLC0415 - start-up time

    note_missing_figures()
    write_html(history_page(followed, margin), path)


def _check(directories: tuple[Path, ...], margin: float, level: float, autocorrelation: float) -> None:
    if not directories:
        message = "no result folder is given"
        raise UsageError(message, hint=_FEWEST_FOLDERS_HINT)
    _check_shares(margin, level)
    if not 0 <= autocorrelation <= _MOST_ALLOWED:
        message = f"`--autocorrelation` is {autocorrelation}; allowed: 0 to 0.7"
        hint = (
            "results that depend on each other more have levels without causes; measure on a quieter machine"
        )
        raise UsageError(message, hint=hint, code="usage.range")


def _check_shares(margin: float, level: float) -> None:
    if not (math.isfinite(margin) and 0 <= margin <= 1000):  # noqa: PLR2004 - as the text says
        message = f"`--margin` is {margin}; allowed: 0 to 1000"
        raise UsageError(message, hint="give it in percent, e.g. 2", code="usage.range")
    if not 50 <= level <= 99.9:  # noqa: PLR2004 - as the text says
        message = f"`--level` is {level}; allowed: 50 to 99.9"
        raise UsageError(message, hint="give it in percent, e.g. 95", code="usage.range")


def _as_json(followed: Followed) -> dict[str, object]:
    series, found = followed.series, followed.found
    return {
        "subject": series.subject,
        "unit": series.unit,
        "results": list(series.labels),
        "values": series.values.tolist(),
        "runs": [int(count) for count in series.runs],
        "left_out": series.left_out,
        "verdict": followed.verdict,
        "p_value": found.p_value,
        "autocorrelation": found.autocorrelation,
        "between_results_share": found.between,
        "visible_percent": _finite(100 * found.visible),
        "is_newest_slower": followed.is_slower,
        "seen_before": [] if followed.seen is None else [series.labels[place] for place in followed.seen],
        "accepted": [series.labels[place] for place in followed.accepted],
        "changes": [_change_as_json(series, change) for change in found.changes],
        "suspect": None if found.suspect is None else _change_as_json(series, found.suspect),
    }


def _change_as_json(series: ResultSeries, change: Change) -> dict[str, object]:
    return {
        "at": series.labels[change.position],
        "position": change.position,
        "between": [series.labels[place] for place in change.places],
        "direction": direction_of(series, change),
        "ratio": change.ratio,
        "low": _finite(change.low),
        "high": _finite(change.high),
        "p_value": _finite(change.p_value),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _as_text(followed: list[Followed], options: HistoryOptions, directories: Sequence[Path]) -> Iterator[str]:
    margin, error = 100 * options.margin, 100 * (1 - options.level)
    longest = max(each.series.values.size for each in followed)
    count = f"{len(followed)} series" if len(followed) != 1 else "1 series"
    yield (
        f"{count} over {longest} results; margin {margin:g} %; "
        f"autocorrelation up to {options.allowed:g} is allowed for; "
        f"at most {error:g} % of unchanged histories are called slower at one or more of 100 looks"
    )
    for each in followed:
        if each.found.changes:
            yield f"{name_of(each.series)}:"
            yield from (f"  {_sentence(each.series, change)}" for change in each.found.changes)
    suspects = [each for each in followed if each.found.suspect is not None]
    for each in suspects:
        yield f"suspect: {name_of(each.series)}: {_suspicion(each)}"
    if suspects:
        yield f"to confirm what is suspect: {_confirmation(directories)}"
    quiet = [each for each in followed if each.verdict == "no change"]
    yield f"no change: {len(quiet)}{_visible_text(quiet)}"
    yield from _undecided([each for each in followed if each.verdict == "undecided"], options)
    slower = [
        f"{name_of(each.series)} ({signed_change(each.slowdown)})"
        for each in followed
        if each.slowdown is not None and each.is_slower
    ]
    for each in followed:
        if each.slowdown is not None and each.seen is not None:
            yield (
                f"slower now, but not new: {name_of(each.series)} ({signed_change(each.slowdown)}): "
                f"{each.seen_text}"
            )
    if slower:
        yield f"slower now than before: {', '.join(slower)}"
        yield 'to accept that level: repeat the command with --accept RESULT --why "REASON"'


def _undecided(undecided: list[Followed], options: HistoryOptions) -> Iterator[str]:
    from steelyard.analyse.series.history import FEWEST  # noqa: PLC0415 - start-up time

    short = [each for each in undecided if each.series.values.size < FEWEST]
    dependent = [each for each in undecided if each.series.values.size >= FEWEST]
    if short:
        yield f"undecided: {len(short)} with fewer than {FEWEST} results"
    if dependent:
        why = f"each result depends too much on the one before (autocorrelation above {options.allowed:g})"
        names = ", ".join(name_of(each.series) for each in dependent[:5])
        yield f"undecided: {len(dependent)}, because {why}: {names}"


def _visible_text(quiet: list[Followed]) -> str:
    """Say which lasting change would have been seen where none was: in 8 of 10 cases, in the middle."""
    if not quiet:
        return ""
    ranked = sorted(quiet, key=lambda each: each.found.visible)
    middle, worst = ranked[(len(ranked) - 1) // 2], ranked[-1]
    text = f"; could have seen a lasting change of {_at_least(middle.found.visible)}"
    if len(ranked) > 1 and worst.found.visible > middle.found.visible:
        text += f" in half of them, {_at_least(worst.found.visible)} in {name_of(worst.series)}"
    return text


def _at_least(visible: float) -> str:
    return f"{100 * visible:.2g} % or more" if math.isfinite(visible) else "no size"


def _size(change: Change) -> str:
    limits = "no interval"
    if math.isfinite(change.low) and math.isfinite(change.high):
        limits = f"95 % interval {signed_change(change.low)} to {signed_change(change.high)}"
    return f"{signed_change(change.ratio)} ({limits})"


def _place(series: ResultSeries, change: Change) -> str:
    place = f"result {change.position + 1} of {series.values.size}"
    first, last = change.places
    if first != last:
        place += f", between {first + 1} and {last + 1}"
    return f"`{series.labels[change.position]}` ({place})"


def _sentence(series: ResultSeries, change: Change) -> str:
    direction = direction_of(series, change)
    return f"changed at {_place(series, change)}: {_size(change)}, {direction}, p {change.p_value:.2g}"


def _suspicion(followed: Followed) -> str:
    series, change = followed.series, followed.found.suspect
    assert change is not None  # noqa: S101 - chosen by it
    newer = series.values.size - change.position
    what = "the newest result" if newer == 1 else f"the newest {newer} results"
    return f"{what}, from {_place(series, change)} on: {_size(change)}, {direction_of(series, change)}"


def _confirmation(directories: Sequence[Path]) -> str:
    """Say how one more result of the same program is made and added."""
    from steelyard.model.plan import read_plan  # noqa: PLC0415 - start-up time
    from steelyard.record.importers.foreign_result import STUDY  # noqa: PLC0415 - start-up time

    newest = directories[-1]
    again = newest.with_name(f"{newest.name}-again")
    whole = shlex.join(["steelyard", "history", *map(str, directories), str(again)])
    if len(directories) > 1 and read_plan(newest / "plan.json").study != STUDY:
        repeat = shlex.join(["steelyard", "rerun", str(newest), "--out", str(again)])
        return f"{repeat} && {whole}"
    if len(directories) > 1:
        return f"measure the same program again, import it to `{again}`, then {whole}"
    return (
        "measure the same program again, import its file with the others, then "
        f"{shlex.join(['steelyard', 'history', str(again)])}"
    )
