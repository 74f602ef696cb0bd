"""Several hosts in the report: what each is, where they differ, how far their times differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.fills import count, estimate, limits, subject, subjects, verdict, word
from steelyard.report.table_spec import DOUBT_NOTE, TableSpec, counted, number, text
from steelyard.studies.placed.host_report import host_blocks
from steelyard.studies.report_blocks import listed
from steelyard.studies.stability.report.sentences import PHRASING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.report.page import Block
    from steelyard.studies.stability.report.data import RecordedTables

_MOST_SAID: Final = 6
_TONES: Final = {"hosts differ": "slower", "hosts agree": "good", "outlier": "warn"}


def blocks(recorded: RecordedTables) -> Iterable[Block | None]:
    """Give all that is said of several hosts; nothing of one."""
    findings = recorded.findings
    yield from host_blocks(PHRASING, findings, recorded.provenance, recorded.runs)
    outliers = [each for each in findings.of("host_outlier") if each.verdict == "outlier"]
    yield listed(PHRASING, outliers[:_MOST_SAID])
    yield OUTLIERS.build(findings.of("host_outlier"))
    scatters = sorted(findings.of("host_scatter"), key=lambda each: -(each.estimates["between"].value or 0))
    yield listed(PHRASING, scatters[:1])
    yield SCATTER.build(scatters)


OUTLIERS: Final = TableSpec(
    "host_outliers",
    "Hosts against the middle of all hosts",
    (
        *subjects("host", "metric"),
        text("verdict", verdict(_TONES)),
        number("most clearly", estimate("ratio", "signed")),
        text("in", word("workload")),
        number("cells apart", count("cells_apart")),
        number("cells", count("cells")),
    ),
    "An outlier differs by more than the margin from more than half of the hosts, in the same direction. "
    "The chance of any false outlier among all hosts and cells is 5 % (partial conjunction of Welch tests, "
    "Holm).",
    file=None,
    summary=lambda rows: counted(row.verdict for row in rows),
)

SCATTER: Final = TableSpec(
    "host_scatter",
    "Variation between hosts",
    (
        text("metric", subject("metric")),
        *subjects("setup", "isolation", "workload"),
        text("verdict", verdict(_TONES)),
        number("between hosts", estimate("between")),
        text("95%", limits("between")),
        text("one more host", limits("new_host", "change_interval")),
        number("hosts", count("hosts")),
    ),
    "Between hosts: standard deviation of hosts' mean times, relative. One more host: where its mean is "
    "expected relative to the middle of these, from three hosts on.",
    DOUBT_NOTE,
    file=None,
    summary=lambda rows: counted(row.verdict for row in rows),
)
