"""Verdicts where people and programs look for them: pull requests, annotations, test reports, dashboards."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from steelyard.report.shown_text import shown
from steelyard.report.tables import markdown_text
from steelyard.studies.comparison.verdict_table import (
    HEADS,
    NOT_MEASURED,
    NOT_SETTLED,
    cells_of,
    reading_of,
    rows_of,
    summary_of,
    warnings_of,
)
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.studies.comparison.outcome import Comparison
    from steelyard.studies.comparison.verdict_table import Row

STICKY: Final = "<!-- steelyard -->"
"""First line of a comment, by which the next job finds it."""
_LONGEST_COMMENT: Final = 60_000
"""Characters; GitHub refuses comments above 65 536."""
_FOLDED_FROM: Final = 10
_SIDES: Final = (":---", "---:", "---:", "---:", "---:", ":---", "---:", "---:")
_MEASURES: Final = {"wall": "latency", "cpu": "cpu-time", "memory": "peak-memory"}


def to_pull_request(found: Comparison) -> str:
    """Write one comment for a pull request in GitHub's Markdown."""
    rows = rows_of(found)
    metric = str(found.terms.metric)
    changed = [row for row in rows if row.word != "equivalent"]
    is_folded = len(rows) > _FOLDED_FROM and len(changed) < len(rows)
    lines = [STICKY, f"### Steelyard: {summary_of(rows)}", ""]
    pairs = dict.fromkeys((row.baseline, row.side) for row in rows)
    lines += [
        f"`{_code(side)}` against `{_code(baseline)}`, {found.terms.metric.words}"
        for baseline, side in pairs
        if any(row.side != row.benchmark for row in rows)
    ]
    lines += ["", *_table(changed if is_folded else rows, metric), ""]
    if is_folded:
        others = [row for row in rows if row not in changed]
        lines += [f"<details><summary>{len(others)} equivalent</summary>", "", *_table(others, metric), ""]
        lines += ["</details>", ""]
    lines += [markdown_text(line) for line in reading_of(found, rows)]
    lines += ["", *(f"- {markdown_text(warning)}" for warning in warnings_of(found))]
    return _cut(lines)


def to_annotations(found: Comparison) -> str:
    """Write GitHub's workflow commands, which become annotations: errors for what is slower, else notices."""
    lines = []
    for row in rows_of(found):
        kind = {"slower": "error", NOT_MEASURED: "error", NOT_SETTLED: "warning", "faster": "notice"}.get(
            row.word
        )
        if kind is not None:
            title = _property(f"{row.benchmark}: {row.word}, {row.change}")
            lines.append(f"::{kind} title={title}::{_data(row.claim.sentence)}\n")
    return "".join(lines)


def to_junit(found: Comparison) -> str:
    """Write a test report: what is slower failed, what is not settled was skipped."""
    rows = rows_of(found)
    suite = ET.Element(
        "testsuite",
        name="steelyard",
        tests=str(len(rows)),
        failures=str(sum(row.claim.is_regression for row in rows)),
        errors=str(sum(row.word == NOT_MEASURED for row in rows)),
        skipped=str(sum(row.word == NOT_SETTLED for row in rows)),
        time=f"{found.elapsed_s:.3f}",
    )
    for row in rows:
        case = ET.SubElement(suite, "testcase", classname=_xml(row.side), name=_xml(row.benchmark))
        sentence = _xml(row.claim.sentence)
        if row.claim.is_regression:
            ET.SubElement(case, "failure", type="slower", message=sentence).text = sentence
        elif row.word == NOT_MEASURED:
            ET.SubElement(case, "error", type="failed", message=sentence)
        elif row.word == NOT_SETTLED:
            ET.SubElement(case, "skipped", message=sentence)
        ET.SubElement(case, "system-out").text = "\n".join(
            [sentence, *(_xml(remark) for remark in row.claim.remarks)]
        )
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suite, encoding="unicode")}\n'


def to_action_benchmark(found: Comparison) -> str:
    """Write ``customSmallerIsBetter`` of github-action-benchmark: the medians of what was compared."""
    is_memory = found.terms.metric == "memory"
    entries = [
        {
            "name": row.benchmark,
            "unit": "bytes" if is_memory else "s",
            "value": row.medians[1] if is_memory else row.medians[1] / NS_PER_S,
            "range": row.interval,
            "extra": row.claim.sentence,
        }
        for row in rows_of(found)
        if math.isfinite(row.medians[1])
    ]
    return _json(entries)


def to_bencher(found: Comparison) -> str:
    """Write Bencher's metric format: the medians of what was compared, in ns or bytes."""
    measure = _MEASURES[str(found.terms.metric)]
    rows = [row for row in rows_of(found) if math.isfinite(row.medians[1])]
    return _json({row.benchmark: {measure: {"value": row.medians[1]}} for row in rows})


def _json(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _table(rows: Sequence[Row], metric: str) -> list[str]:
    if not rows:
        return []
    lines = [f"| {' | '.join(HEADS)} |", f"|{'|'.join(_SIDES)}|"]
    for row in rows:
        name, *others = cells_of(row, metric)
        word = others[4]
        others[4] = f"**{word}**" if word in {"slower", "faster"} else word
        lines.append(f"| {markdown_text(name)} | {' | '.join(others)} |")
    return lines


def _cut(lines: Sequence[str]) -> str:
    """Leave out rows of a comment that would be refused, and say how many."""
    kept: list[str] = []
    length = 0
    for line in lines:
        length += len(line) + 1
        if length > _LONGEST_COMMENT:
            left = len(lines) - len(kept)
            tail = "\n</details>" if "</details>" in lines[len(kept) :] else ""
            return "\n".join(kept) + f"\n{tail}\n\n{left} more lines are in the job's own output\n"
        kept.append(line)
    return "\n".join(kept).rstrip("\n") + "\n"


def _code(text: str) -> str:
    return shown(text).replace("`", "'")


def _data(text: str) -> str:
    return shown(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _xml(text: str) -> str:
    return shown(text)
