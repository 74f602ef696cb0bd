"""A comparison as text: verdicts, a small table, warnings, and what would settle it."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.record.interim_log import SPENT
from steelyard.report.shown_text import shown
from steelyard.studies.comparison.claim import percent
from steelyard.studies.comparison.contender import short
from steelyard.units import NS_PER_S, format_bytes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.studies.comparison.claim import Claim
    from steelyard.studies.comparison.outcome import Comparison
    from steelyard.studies.comparison.sample import Summary

NAME_WIDTH: Final = 40
STARTUP_SHARE: Final = 0.2
"""Part of the time from which on it is said how much passed before the first run."""
_HEADS: Final = ("median", "spread", "least", "most", "runs")


def written(value: float, metric: str) -> str:
    """Write a value of a metric with its unit; `-` where there is none.

    Examples
    --------
    >>> written(1.5e6, "wall"), written(2048, "memory")
    ('1.500 ms', '2 KiB')
    """
    if not math.isfinite(value):
        return "-"
    return format_bytes(value) if metric == "memory" else format_seconds(value / NS_PER_S)


def render(found: Comparison) -> str:
    """Give the whole answer for a terminal, 80 columns or more; it ends with a line feed."""
    return "\n".join(map(shown, _lines(found))) + "\n"


def _lines(found: Comparison) -> Iterable[str]:
    if found.best_sentence:
        yield found.best_sentence
    yield from (claim.sentence for claim in found.claims)
    yield ""
    yield from table_lines(found)
    yield ""
    yield from ranking_lines(found)
    for each in found.hosts:
        yield ""
        if len(found.hosts) > 1:
            yield f"`{each.claim.contender}` against {each.claim.baseline_text} on each host:"
        yield from each.table_lines()
    if found.remarks:
        yield ""
        yield from found.remarks
    if found.warnings:
        yield ""
        yield from (f"warning: {warning}" for warning in found.warnings)
    yield ""
    yield from closing_lines(found)


def table_lines(found: Comparison) -> Iterable[str]:
    """Give the table of the commands."""
    metric = str(found.terms.metric)
    names = [short(contender.name, NAME_WIDTH) for contender in found.contenders]
    width = max(len("command"), *map(len, names))
    yield f"{'command':<{width}}" + "".join(f"{head:>11}" for head in _HEADS) + "  flags"
    for name, summary in zip(names, found.summaries, strict=True):
        spread = percent(summary.spread) if math.isfinite(summary.spread) else "-"
        cells = (
            written(summary.median, metric),
            spread,
            written(summary.least, metric),
            written(summary.most, metric),
            str(summary.count),
        )
        yield (
            f"{name:<{width}}" + "".join(f"{cell:>11}" for cell in cells) + f"  {flags_text(summary)}"
        ).rstrip()


def ranking_lines(found: Comparison) -> Iterable[str]:
    """Give the commands by their medians, with the figures that users of other tools look for.

    The order describes the sample; what is sure about a pair, its sentence says, and what else can be said of
    the same interval: how many times faster a command ran.
    """
    metric = str(found.terms.metric)
    pairs = [pair for pair in zip(found.contenders, found.summaries, strict=True) if pair[1].count]
    ranked = sorted(pairs, key=lambda pair: pair[1].median)
    if not ranked:
        return
    names = [short(contender.name, NAME_WIDTH) for contender, _ in ranked]
    width = max(len("by median"), *map(len, names))
    heads = ("times least", "mean", "sd", "user", "system")
    yield f"   {'by median':<{width}}" + "".join(f"{head:>12}" for head in heads)
    least = ranked[0][1].median
    for rank, (name, (_, summary)) in enumerate(zip(names, ranked, strict=True), start=1):
        cells = (
            f"{summary.median / least:.3g}" if least > 0 else "-",
            written(summary.mean, metric),
            written(summary.sd, metric),
            written(summary.user_ns, "cpu"),
            written(summary.system_ns, "cpu"),
        )
        yield f"{rank:>2} {name:<{width}}" + "".join(f"{cell:>12}" for cell in cells)
    yield from (claim.times_faster for claim in found.claims if claim.times_faster)


def flags_text(summary: Summary) -> str:
    """Give the remarks on the runs of a command, with how many runs have each."""
    return ", ".join(f"{count} {flag.replace('_', ' ')}" for flag, count in summary.flags.items())


ENDS: Final = {
    "settled": "settled",
    "spent": "ended because the runs or the budget were used up",
    "interrupted": "interrupted",
    "failed": "ended by a failure",
    "open": "ended without a record (killed, or power lost)",
}


def closing_lines(found: Comparison, *, says_what_would_settle: bool = True) -> Iterable[str]:
    """Say why it ended, and what would settle what is not."""
    startup_s = found.startup_s
    is_much = startup_s > STARTUP_SHARE * found.elapsed_s
    share = f", {startup_s:.1f} s of them before the first run" if is_much else ""
    yield f"{ENDS[found.end]} after {found.elapsed_s:.1f} s{share}; seed {found.terms.seed}"
    if says_what_would_settle:
        yield from (remaining_text(claim, found.elapsed_s, startup_s) for claim in found.open_claims)
    if found.result is not None:
        yield f"recorded in {found.result}"
        if found.open_claims and not (found.hosts and found.end == SPENT):
            yield f"go on: steelyard {found.terms.verb} --resume {shlex.quote(str(found.result))}"


def remaining_text(claim: Claim, elapsed_s: float, startup_s: float = 0.0) -> str:
    """Say what would settle a claim that is not settled.

    That is the size of a new comparison: one that goes on after its budget claims less.
    """
    if claim.origin:
        name = f"`{claim.contender}`{claim.suffix}"
        return f"{name}: more hosts, or more runs on each (`--runs-max`), may decide it"
    if claim.further_runs is None:
        return (
            f"`{claim.contender}`{claim.suffix}: no reasonable number of runs would decide it at this spread"
        )
    runs = max(claim.runs)
    total = runs + claim.further_runs
    name = f"`{claim.contender}`{claim.suffix}"
    text = f"{name}: {total} runs of each side would probably decide it if the spread stays"
    if not runs or elapsed_s <= 0:
        return text
    options = f"--budget {_rounded_up(startup_s + (elapsed_s - startup_s) * total / runs)}s"
    if total > Extent().blocks_max:
        options += f" --runs-max {_rounded_up(total)}"
    return f"{text}: {options}"


def _rounded_up(value: float) -> int:
    """Round up to two digits.

    Examples
    --------
    >>> _rounded_up(3.2), _rounded_up(95.5), _rounded_up(1234)
    (4, 96, 1300)
    """
    step = int("1" + "0" * max(len(str(math.ceil(value))) - 2, 0))
    return math.ceil(value / step) * step
