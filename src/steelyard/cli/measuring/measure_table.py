"""The table of ``steelyard measure``: each figure with the mechanism that gave it."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Final

from steelyard.units import NS_PER_S, format_bytes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import Quantity, RunOutcome

ROWS: Final = (
    ("wall time", "wall_ns"),
    ("CPU time", "cpu_ns"),
    ("  user", "cpu_user_ns"),
    ("  system", "cpu_system_ns"),
    ("peak memory, process", "peak_resident_bytes"),
    ("peak memory, tree", "peak_memory_bytes"),
    ("waited for a CPU", "run_delay_ns"),
    ("switches, voluntary", "voluntary_switches"),
    ("switches, involuntary", "involuntary_switches"),
    ("CPU migrations", "migrations"),
    ("page faults, minor", "minor_faults"),
    ("page faults, major", "major_faults"),
    ("read from storage", "read_bytes"),
    ("written to storage", "written_bytes"),
    ("throttled", "throttled_ns"),
    ("stolen by hypervisor", "steal_ns"),
    ("launch (gate to exec)", "launch_ns"),
    ("output", "output_bytes"),
)
NAME_WIDTH: Final = 24
VALUE_WIDTH: Final = 14


def table(outcomes: Sequence[RunOutcome]) -> str:
    """Give the table of one or several launches of a command.

    Parameters
    ----------
    outcomes : sequence of RunOutcome
        At least one.
    """
    lines = ["", *status_lines(outcomes), ""]
    if len(outcomes) > 1:
        heads = ("median", "least", "most")
        lines.append(" " * NAME_WIDTH + "".join(f"{head:>{VALUE_WIDTH}}" for head in heads) + "  source")
    lines += [row(name, metric, outcomes) for name, metric in ROWS]
    counters = sorted({name for outcome in outcomes for name in outcome.counters})
    lines += [quantity_row(name, name, [each.counters.get(name) for each in outcomes]) for name in counters]
    lines += own_rows(outcomes)
    mechanism = outcomes[0].mechanism
    lines += ["", f"stamps: {mechanism.stamps}; cgroup: {mechanism.cgroup}"]
    lines += [f"degraded: {text}" for text in mechanism.degraded]
    return "\n".join(lines) + "\n"


def status_lines(outcomes: Sequence[RunOutcome]) -> list[str]:
    """Say how the runs ended, each different end once with its count."""
    ends: dict[str, int] = {}
    for outcome in outcomes:
        text = end_of(outcome)
        ends[text] = ends.get(text, 0) + 1
    lines = [text if count == len(outcomes) == 1 else f"{count} x {text}" for text, count in ends.items()]
    flags = sorted({flag for outcome in outcomes for flag in outcome.flags})
    return lines + ([f"flags: {', '.join(flags)}"] if flags else [])


def end_of(outcome: RunOutcome) -> str:
    """Say how one run ended."""
    details = []
    if outcome.exit_code is not None:
        details.append(f"exit code {outcome.exit_code}")
    if outcome.signal is not None:
        details.append(f"signal {outcome.signal}")
    if outcome.limit is not None:
        details.append(f"limit {outcome.limit}")
    if outcome.message:
        details.append(outcome.message)
    return f"{outcome.status} ({', '.join(details)})" if details else str(outcome.status)


def row(name: str, metric: str, outcomes: Sequence[RunOutcome]) -> str:
    """Give one line of the table."""
    return quantity_row(name, metric, [outcome.quantities.get(metric) for outcome in outcomes])


def quantity_row(name: str, metric: str, quantities: Sequence[Quantity | None]) -> str:
    """Give the line of one quantity over all launches."""
    present = [quantity for quantity in quantities if quantity is not None]
    values = [quantity.value for quantity in present if quantity.value is not None]
    head = f"{name:<{NAME_WIDTH}}"
    if not values:
        reason = present[0].missing if present else "not measured"
        return f"{head}{'-':>{VALUE_WIDTH}}  {reason}"
    figures = [values[0]] if len(quantities) == 1 else [statistics.median(values), min(values), max(values)]
    cells = "".join(f"{formatted(figure, metric):>{VALUE_WIDTH}}" for figure in figures)
    return f"{head}{cells}  {present[0].source}"


def own_rows(outcomes: Sequence[RunOutcome]) -> list[str]:
    """Give what the program said of itself, as it said it."""
    return [
        f"own {each.metric:<{NAME_WIDTH - 4}}{each.value:>{VALUE_WIDTH}g} {each.unit}"
        for each in outcomes[0].own
    ]


def formatted(value: float, metric: str) -> str:
    """Write a value with the unit of its metric."""
    if metric.endswith("_ns"):
        return format_seconds(value / NS_PER_S)
    if metric.endswith("_bytes"):
        return format_bytes(value)
    return f"{value:g}" if value != int(value) else str(int(value))
