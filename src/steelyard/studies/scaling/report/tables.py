"""Tables of the scaling report, each value made of a finding."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from steelyard.report.fills import (
    NOTHING,
    estimate,
    limits,
    subject,
    subject_number,
    verdict,
)
from steelyard.report.page import Table, Value
from steelyard.report.slots import rounded, rounded_interval
from steelyard.report.table_spec import (
    DOUBT_NOTE,
    TableSpec,
    counted_verdicts,
    number,
    prose,
    shown_where,
    text,
)
from steelyard.studies.scaling.findings.strategy import contender_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model.finding import Finding, FindingSet
    from steelyard.report.fills import Fill
    from steelyard.report.table_spec import ColumnSpec

    Columns = tuple[ColumnSpec[Finding], ...]

_OF_FITS: Final = {"ideal": "good", "above ideal": "good", "confirmed": "good", "contradicted": "warn"}
VERDICT: Final = verdict({**_OF_FITS, "kept": "good", "lost": "warn"})
JUDGED: Final = text("verdict", VERDICT)
_NUMBERS: Final = {"mean_work": "W", "depth": "depth", "workers": "workers"}
judged_table = partial(TableSpec, doubt_note=DOUBT_NOTE, summary=counted_verdicts)


def factors(*names: str) -> Columns:
    """Give the columns of some factors, sorted by value where they are numbers."""
    return tuple(
        number(_NUMBERS[name], subject_number(name))
        if name in _NUMBERS
        else text(name.replace("_", " "), subject_number(name))
        for name in names
    )


def _has_strategies(chosen: Sequence[Finding]) -> bool:
    return "strategy" in chosen[0].subject


def _where_it_varies(name: str, *, among_strategies: bool) -> Columns:
    """Show a factor where it tells curves apart; with strategies always or never."""

    def is_shown(chosen: Sequence[Finding]) -> bool:
        if _has_strategies(chosen):
            return among_strategies
        return len({finding.subject[name] for finding in chosen if name in finding.subject}) > 1

    return shown_where(is_shown, *factors(name))


def _contender(finding: Finding) -> Value:
    return Value(contender_of(finding.subject), finding=finding.id)


CONTENDER: Final = text("strategy", _contender)
_IDENTITY: Final[Columns] = (
    *_where_it_varies("program", among_strategies=False),
    *(
        each
        for name in ("load", "mean_work", "depth")
        for each in _where_it_varies(name, among_strategies=True)
    ),
    *shown_where(_has_strategies, CONTENDER),
)
"""What tells the curves of a table apart."""


def plain(role: str, heading: str, explanation: str = "") -> ColumnSpec[Finding]:
    """Give an estimate as a number, of four digits where no interval says how many."""
    by_interval, by_digits = estimate(role, "rounded"), estimate(role, "significant")

    def fill(finding: Finding) -> Value:
        found = finding.estimates[role]
        return (by_interval if found.low is not None and found.unit == "ratio" else by_digits)(finding)

    return number(heading, fill, explanation)


def plain_fact(name: str) -> Fill:
    """Fill with a fact, be it a number or text."""

    def fill(finding: Finding) -> Value:
        found = finding.facts[name]
        if found is None:
            return NOTHING
        order = float(found) if isinstance(found, int | float) else None
        return Value(f"{found:.4g}" if isinstance(found, float) else str(found), order)

    return fill


def rounded_column(role: str, heading: str, explanation: str = "") -> ColumnSpec[Finding]:
    """Give an estimate with its unit, in the digits that its interval leaves."""
    return number(heading, estimate(role, "rounded"), explanation)


def _where_known(role: str, heading: str, explanation: str, *, in_terminal: bool = True) -> Columns:
    """Give an estimate that not every result has."""

    def is_shown(chosen: Sequence[Finding]) -> bool:
        return any(role in each.estimates and each.estimates[role].value is not None for each in chosen)

    fill = estimate(role, "rounded")
    return shown_where(is_shown, number(heading, fill, explanation, in_terminal=in_terminal))


def interval(role: str) -> ColumnSpec[Finding]:
    """Give the interval of an estimate."""
    return text("95 % interval", limits(role, "rounded_interval"))


def change(role: str, heading: str) -> Columns:
    """Give a ratio as a signed difference from one, and its interval."""
    return (
        number(heading, estimate(role, "rounded_change")),
        text("95 % interval", limits(role, "rounded_change_interval")),
    )


SPEEDUP: Final = judged_table(
    "speedup",
    "Speed-up by workers",
    (
        *_IDENTITY,
        *factors("workers"),
        rounded_column("speedup", "speed-up"),
        interval("speedup"),
        rounded_column("shy", "shy", "how far the speed-up stays below the number of workers"),
        *_where_known("cores_used", "cores used", "CPU time over wall time"),
        *_where_known(
            "machine", "machine", "speed-up of as many threads that share nothing", in_terminal=False
        ),
        *_where_known(
            "serial_fraction", "serial fraction", "of this point alone, by Karp and Flatt", in_terminal=False
        ),
        *_where_known("rate", "rate", "median of the trials", in_terminal=False),
        text(
            "crowd",
            lambda each: Value("more than cores" if each.facts["oversubscribed"] else ""),
            in_terminal=False,
        ),
        JUDGED,
    ),
    file="speedup_by_workers",
)


def _measured(finding: Finding) -> Value:
    found = finding.estimates.get("measured")
    if found is None or found.value is None:
        return NOTHING
    note = rounded_interval(found) if found.low is not None else ""
    return Value(rounded(found), found.value, note=note, finding=finding.id)


HYPOTHESES: Final = judged_table(
    "hypotheses",
    "Expected before, found after",
    (
        prose("expected, and why", subject("text")),
        text("range", plain_fact("expected")),
        number("measured", _measured),
        text("answer", VERDICT),
    ),
    is_key=True,
)

SOURCE_CLAIMS: Final = judged_table(
    "source_claims",
    "The source's numbers, computed again",
    (
        *factors("section"),
        prose("claim", subject("text")),
        number("printed", plain_fact("printed")),
        number("recomputed", plain_fact("recomputed_digits")),
        JUDGED,
        prose("where it comes from", lambda finding: Value(str(finding.facts["note"]))),
    ),
)


PEAKS: Final = judged_table(
    "peaks",
    "Largest speed-up of each curve",
    (
        *_IDENTITY,
        rounded_column("speedup", "largest speed-up"),
        interval("speedup"),
        plain("workers", "at workers"),
        text("where", VERDICT),
    ),
)

CROWDING: Final = judged_table(
    "oversubscription",
    "What more workers than cores cost",
    (
        *_IDENTITY,
        *factors("workers"),
        number("against workers", plain_fact("full_workers")),
        rounded_column("kept", "rate kept"),
        interval("kept"),
        rounded_column("drop", "drop"),
        JUDGED,
    ),
)

_FAIR: Final = "sd of the packets per worker over their mean; 0 is fair"
_POSSIBLE: Final = "times as fast the pipeline could be without this alone, by how long its parts waited"
WAITS: Final = judged_table(
    "held_back_by",
    "Who waited for whom",
    (
        *_IDENTITY,
        *factors("workers"),
        rounded_column("dispatcher_idle", "dispatcher idle", "time it had a packet and no room"),
        rounded_column("worker_idle", "workers idle", "time without a packet, mean of the workers"),
        rounded_column("least_idle", "least", "the worker that waited least"),
        rounded_column("most_idle", "most", "the worker that waited most"),
        *(plain(part, part, _POSSIBLE) for part in ("queues", "imbalance", "dispatcher")),
        *shown_where(
            lambda chosen: all("worker_packets_cv" in each.facts for each in chosen),
            number("unfairness", plain_fact("worker_packets_cv"), _FAIR),
        ),
        text("held back by", VERDICT),
    ),
    note="workers: they lose less than a tenth of their time; cores: more threads want one than there are; "
    "hand-over: a packet's way from the dispatcher to a worker, waking included.",
)

REGRESSIONS: Final = judged_table(
    "regressions",
    "Lines of speed-up on workers",
    (
        *_IDENTITY,
        text("points: workers", plain_fact("point_set")),
        plain("slope", "slope"),
        interval("slope"),
        number("p of slope 1 (HC3)", plain_fact("p_slope_one_hc3")),
        plain("r_squared", "R2"),
        JUDGED,
    ),
)


def law_table(findings: FindingSet, law: str) -> Table | None:
    """Give one row per curve and set of points: the parameters of ``amdahl`` or ``usl``."""
    chosen = findings.of(law)
    title: str = "The universal scalability law"
    own: Columns = (
        plain("coherence", "coherence"),
        interval("coherence"),
        plain("peak_workers", "peak at workers"),
        interval("peak_workers"),
    )
    if law == "amdahl":
        title = "Amdahl's law"
        ceiling = plain("ceiling", "ceiling", "speed-up that no number of workers exceeds")
        own = (ceiling, interval("ceiling"))
    columns = (
        *_IDENTITY,
        text("points: workers", plain_fact("point_set")),
        plain("efficiency", "efficiency", "speed-up of one worker"),
        plain("contention", "contention"),
        interval("contention"),
        *own,
        number("largest error [%]", plain_fact("largest_error_percent")),
        text("beyond the points", VERDICT),
    )
    is_own = all(each.facts["is_own_share"] for each in chosen)
    note = "Of the program's own share: what the machine lets threads that share nothing lose is taken off."
    return judged_table(law, title, columns, note=note if is_own else "").build(chosen)
