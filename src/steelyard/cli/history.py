"""``steelyard history``: where a history of results changes."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotation
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard.cli.fail_on import Answer, FailOn, FailOnOption
from steelyard.cli.figure_note import note_missing_figures
from steelyard.errors import AnalysisError, UsageError
from steelyard.report.history_page import direction_of, history_page, is_newest_slower, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.analyse.history import Change, HistoryOptions, SeriesHistory
    from steelyard.analyse.result_series import ResultSeries

    Followed = tuple[ResultSeries, SeriesHistory]

SLOWER: Final = (FailOn.SLOWER,)
_FEWEST_FOLDERS_HINT: Final = "give result folders, oldest first, or one import of several files"


def history(  # noqa: PLR0913 - the options of a command line
    *directories: Path,
    metric: Annotated[tuple[str, ...], Parameter(consume_multiple=False)] = (),
    margin: float = 2.0,
    level: float = 95.0,
    independent: Annotated[bool, Parameter(negative=())] = False,
    fail_on: FailOnOption = SLOWER,
    html: Path | None = None,
    json_: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Say where a history of results changes.

    Leaves with exit code 1 if the newest level of a series is slower than the one before by more than the
    margin; `--fail-on` chooses what else does. The test takes into account that the place of a change is
    chosen, that results may depend on the ones before, and that there are many series.

    Parameters
    ----------
    directories
        Result folders, oldest first; or one folder with several blocks, such as an import of several files.
    metric
        Metric to follow, repeated for several; all times, sizes and rates by default.
    margin
        Largest difference that counts as none, in percent.
    level
        100 less the percentage of unchanged series that may be called changed.
    independent
        The results are known not to depend on the ones before (machine rebooted or drawn anew each time):
        finds smaller changes, and needs fewer results.
    fail_on
        What leaves with exit code 1: `slower` (the newest level of a series), `changed` (slower, or a series
        changed anywhere and either way), `undecided` (slower, or a series is undecided); may be given several
        times. `slower` by default.
    html
        Page to write, with a figure of each series.
    json_
        Print JSON for programs.

    Examples
    --------
    Stop a pipeline when a benchmark has become slower by more than 5 %::

        steelyard history results/2026-* --margin 5
    """
    from steelyard.analyse.history import HistoryOptions, find_changes  # noqa: PLC0415 - start-up time
    from steelyard.analyse.result_series import read_series  # noqa: PLC0415 - start-up time

    _check(directories, margin, level)
    series = read_series(directories, metric)
    _require_several_results(series)
    options = HistoryOptions(margin / 100, level / 100, independent)
    found = find_changes([each.values for each in series], options)
    followed = list(zip(series, found, strict=True))
    if html is not None:
        _write_page(html, followed, options.margin)
    if json_:
        document = {
            "schema": "steelyard/history/1",
            "margin_percent": margin,
            "level_percent": level,
            "is_independent": independent,
            "series": [_as_json(each) for each in followed],
        }
        sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in _as_text(followed, options))
    answer = Answer(
        is_slower=any(is_newest_slower(each) for each in followed),
        is_changed=any(each.changes for each in found),
        is_undecided=any(each.is_undecidable for each in found),
    )
    return answer.exit_code(fail_on)


def _require_several_results(series: list[ResultSeries]) -> None:
    """Refuse what no change can be seen in: one result, or results that have no cell in common."""
    if any(each.values.size > 1 for each in series):
        return
    labels = list(dict.fromkeys(label for each in series for label in each.labels))
    if len(labels) < 2:  # noqa: PLR2004 - one result is no history
        message = f"one result, `{labels[0] if labels else 'none'}`, is no history"
        hint = _FEWEST_FOLDERS_HINT
    else:
        message = (
            f"{len(labels)} results hold {len(series)} different cells, such as `{name_of(series[0])}` and "
            f"`{name_of(series[1])}`; each is in one result alone, which is no history"
        )
        hint = "name the cells alike; `steelyard import csv --workload NAME` names the program of a table"
    raise AnalysisError(message, hint=hint, code="analysis.one-result")


def _write_page(path: Path, followed: list[Followed], margin: float) -> None:
    from steelyard.report.html import write_html  # noqa: PLC0415 - start-up time

    note_missing_figures()
    write_html(history_page(followed, margin), path)


def _check(directories: tuple[Path, ...], margin: float, level: float) -> None:
    if not directories:
        message = "no result folder is given"
        raise UsageError(message, hint=_FEWEST_FOLDERS_HINT)
    if not (math.isfinite(margin) and 0 <= margin <= 1000):  # noqa: PLR2004 - as the text says
        message = f"`--margin` is {margin}; allowed: 0 to 1000"
        raise UsageError(message, hint="give it in percent, e.g. 2", code="usage.range")
    if not 50 <= level <= 99.9:  # noqa: PLR2004 - as the text says
        message = f"`--level` is {level}; allowed: 50 to 99.9"
        raise UsageError(message, hint="give it in percent, e.g. 95", code="usage.range")


def _verdict(found: SeriesHistory) -> str:
    if found.changes:
        return "changed"
    return "undecided" if found.is_undecidable else "no change"


def _as_json(followed: Followed) -> dict[str, object]:
    series, found = followed
    return {
        "subject": series.subject,
        "unit": series.unit,
        "results": list(series.labels),
        "values": series.values.tolist(),
        "left_out": series.left_out,
        "verdict": _verdict(found),
        "p_value": found.p_value,
        "autocorrelation": found.autocorrelation,
        "visible_percent": _finite(100 * found.visible),
        "is_newest_slower": is_newest_slower(followed),
        "changes": [
            {
                "at": series.labels[change.position],
                "position": change.position,
                "direction": direction_of(series, change),
                "ratio": change.ratio,
                "low": _finite(change.low),
                "high": _finite(change.high),
                "p_value": change.p_value,
            }
            for change in found.changes
        ],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _as_text(followed: list[Followed], options: HistoryOptions) -> Iterator[str]:
    from steelyard.analyse.history import FEWEST, FEWEST_INDEPENDENT, MOST_DEPENDENT  # noqa: PLC0415 - start-up time

    fewest = FEWEST_INDEPENDENT if options.is_independent else FEWEST
    margin, error = 100 * options.margin, 100 * (1 - options.level)
    longest = max(series.values.size for series, _ in followed)
    count = f"{len(followed)} series" if len(followed) != 1 else "1 series"
    yield f"{count} over {longest} results; margin {margin:g} %, at most {error:g} % false changes"
    for series, found in followed:
        if found.changes:
            yield f"{name_of(series)}:"
            yield from (f"  {_sentence(series, change)}" for change in found.changes)
    quiet = [each for each in followed if not each[1].changes and not each[1].is_undecidable]
    yield f"no change: {len(quiet)}{_visible_text(quiet)}"
    undecided = [each for each in followed if each[1].is_undecidable]
    dependent = [series for series, found in undecided if found.autocorrelation > MOST_DEPENDENT]
    if short := len(undecided) - len(dependent):
        yield f"undecided: {short} with fewer than {fewest} results"
    if dependent:
        why = f"each result depends too much on the one before (autocorrelation above {MOST_DEPENDENT})"
        yield f"undecided: {len(dependent)}, because {why}: {', '.join(map(name_of, dependent[:5]))}"
    slower = [name_of(each[0]) for each in followed if is_newest_slower(each)]
    if slower:
        yield f"slower now than before: {', '.join(slower)}"


def _visible_text(quiet: list[Followed]) -> str:
    """Say which lasting change would have been seen where none was: in 8 of 10 cases, in the middle."""
    if not quiet:
        return ""
    ranked = sorted(quiet, key=lambda each: each[1].visible)
    middle, worst = ranked[(len(ranked) - 1) // 2], ranked[-1]
    text = f"; could have seen a lasting change of {_at_least(middle[1].visible)}"
    if len(ranked) > 1 and worst[1].visible > middle[1].visible:
        text += f" in half of them, {_at_least(worst[1].visible)} in {name_of(worst[0])}"
    return text


def _at_least(visible: float) -> str:
    return f"{100 * visible:.2g} % or more" if math.isfinite(visible) else "no size"


def _sentence(series: ResultSeries, change: Change) -> str:
    effect = f"{100 * (change.ratio - 1):+.3g} %"
    limits = (
        f" (95 % interval {100 * (change.low - 1):+.3g} % to {100 * (change.high - 1):+.3g} %)"
        if math.isfinite(change.low)
        else ""
    )
    place = f"result {change.position + 1} of {series.values.size}"
    return (
        f"changed at `{series.labels[change.position]}` ({place}): {effect}{limits}, "
        f"{direction_of(series, change)}, p {change.p_value:.2g}"
    )
