"""Verdicts where people and programs look for them: pull requests, annotations, test reports, dashboards."""

from __future__ import annotations

import itertools
import json
import math
import os
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from steelyard.report.shown_text import shown
from steelyard.report.tables import markdown_text
from steelyard.run.redact import published
from steelyard.studies.comparison.contender import short
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
"""First line of an exported comment; a job writes one in its place that tells its suite."""
_NO_SECRETS: Final = frozenset({"STEELYARD_COMMENT_AUTHOR", "STEELYARD_COMMENT_KEY"})
"""Variables whose names sound like a secret's, and whose values are words such as `linux`."""
_LONGEST_COMMENT: Final = 60_000
"""Characters; GitHub refuses comments above 65 536."""
_LONGEST_NAME: Final = 200
_REST: Final = "the output of the job and `verdicts.json` have all"
_HEAD_LINES: Final = 2
"""Of a table."""
_FOLDED_FROM: Final = 10
_ALIGNED: Final = ("---:", "---:", "---:", "---:", ":---", "---:", "---:")
_MEASURES: Final = {"wall": "latency", "cpu": "cpu-time", "memory": "peak-memory", "reported": "latency"}


def public_text(text: str) -> str:
    """Give a text fit for a place that more people read than the job's log: no secret, no hidden sign."""
    return shown(str(published(text, _known())))


def public_json(content: object) -> object:
    """Give a JSON value whose texts have no secret."""
    return published(content, _known())


def _known() -> dict[str, str]:
    return {name: value.strip() for name, value in os.environ.items() if name not in _NO_SECRETS}


def to_pull_request(found: Comparison, marker: str = STICKY) -> str:
    """Write one comment for a pull request in GitHub's Markdown; the marker is its first line."""
    rows = rows_of(found)
    metric = str(found.terms.metric)
    changed = [row for row in rows if row.word != "equivalent"]
    is_folded = len(rows) > _FOLDED_FROM and len(changed) < len(rows)
    lines = [marker, f"### Steelyard: {summary_of(rows)}", ""]
    pairs = dict.fromkeys((row.baseline, row.side) for row in rows)
    lines += [
        f"`{_code(side)}` against `{_code(baseline)}`, {found.terms.metric.words}"
        for baseline, side in pairs
        if any(row.side != row.benchmark for row in rows)
    ]
    reading = [_markdown(line) for line in reading_of(found, rows)]
    remarks = [f"- {_markdown(warning)}" for warning in warnings_of(found)]
    with_side = _has_sides(rows)
    room = _LONGEST_COMMENT - _size([*lines, *reading])
    # What is slower stands first: the table has the room before everything that can be left out.
    shown_rows = changed if is_folded else rows
    table = _within(_table(shown_rows, metric, with_side=with_side), room)
    lines += ["", *table, ""]
    if table and len(table) < len(shown_rows) + _HEAD_LINES:
        left = shown_rows[len(table) - _HEAD_LINES :]
        lines += [f"**Without room here: {summary_of(left)}**; {_REST}", ""]
    room -= _size(table)
    if is_folded:
        others = [row for row in rows if row not in changed]
        folded = [f"<details><summary>{len(others)} equivalent</summary>", ""]
        folded += [*_table(others, metric, with_side=with_side), "", "</details>"]
        if _size(folded) > room:
            folded = [f"{len(others)} equivalent; {_REST}"]
        lines += [*folded, ""]
        room -= _size(folded)
    kept = _within(remarks, room)
    lines += [*reading, "", *kept]
    if len(kept) < len(remarks):
        lines.append(f"- {len(remarks) - len(kept)} more remarks; {_REST}")
    return "\n".join(lines).rstrip("\n") + "\n"


def to_annotations(found: Comparison) -> str:
    """Write GitHub's workflow commands, which become annotations: errors for what is slower, else notices."""
    lines = []
    for row, name in _named(rows_of(found)):
        kind = {"slower": "error", NOT_MEASURED: "error", NOT_SETTLED: "warning", "faster": "notice"}.get(
            row.word
        )
        if kind is not None:
            title = _property(f"{name}: {row.word}, {row.change}")
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
        case = ET.SubElement(
            suite, "testcase", classname=public_text(row.side), name=public_text(row.benchmark)
        )
        sentence = public_text(row.claim.sentence)
        if row.claim.is_regression:
            ET.SubElement(case, "failure", type="slower", message=sentence).text = sentence
        elif row.word == NOT_MEASURED:
            ET.SubElement(case, "error", type="failed", message=sentence)
        elif row.word == NOT_SETTLED:
            ET.SubElement(case, "skipped", message=sentence)
        ET.SubElement(case, "system-out").text = "\n".join(
            [sentence, *(public_text(remark) for remark in row.claim.remarks)]
        )
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suite, encoding="unicode")}\n'


def to_action_benchmark(found: Comparison) -> str:
    """Write ``customSmallerIsBetter`` of github-action-benchmark: the medians of what was compared."""
    is_memory = found.terms.metric == "memory"
    entries = [
        {
            "name": name,
            "unit": "bytes" if is_memory else "s",
            "value": row.medians[1] if is_memory else row.medians[1] / NS_PER_S,
            "range": row.interval,
            "extra": public_text(row.claim.sentence),
        }
        for row, name in _named(rows_of(found))
        if math.isfinite(row.medians[1])
    ]
    return _json(entries)


def to_bencher(found: Comparison) -> str:
    """Write Bencher's metric format: the medians of what was compared, in ns or bytes."""
    measure = _MEASURES[str(found.terms.metric)]
    medians = {name: row.medians[1] for row, name in _named(rows_of(found))}
    return _json({name: {measure: {"value": at}} for name, at in medians.items() if math.isfinite(at)})


def _has_sides(rows: Sequence[Row]) -> bool:
    """Whether more than one revision is compared with the baseline; commands are no revisions."""
    return len({row.side for row in rows if row.side != row.benchmark}) > 1


def _named(rows: Sequence[Row]) -> list[tuple[Row, str]]:
    """Give each verdict a name that no other has."""
    names = [f"{row.benchmark} @ {row.side}" if _has_sides(rows) else row.benchmark for row in rows]
    found: list[str] = []
    for name in map(public_text, names):
        # Without their secrets two names may be the same.
        others = (f"{name} ({number})" for number in itertools.count(2))
        found.append(name if name not in found else next(other for other in others if other not in found))
    return list(zip(rows, found, strict=True))


def _json(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _table(rows: Sequence[Row], metric: str, *, with_side: bool) -> list[str]:
    if not rows:
        return []
    heads = (HEADS[0], "revision", *HEADS[1:]) if with_side else HEADS
    lines = [f"| {' | '.join(heads)} |", f"|:---{'|:---' if with_side else ''}|{'|'.join(_ALIGNED)}|"]
    for row in rows:
        name, *others = cells_of(row, metric)
        word = others[4]
        others[4] = f"**{word}**" if word in {"slower", "faster"} else word
        names = [
            _markdown(short(each, _LONGEST_NAME)) for each in ((name, row.side) if with_side else (name,))
        ]
        lines.append(f"| {' | '.join([*names, *others])} |")
    return lines


def _size(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _within(lines: Sequence[str], room: int) -> list[str]:
    """Give the first lines that have room."""
    ends = itertools.accumulate(len(line) + 1 for line in lines)
    return [line for line, end in zip(lines, ends, strict=True) if end <= room]


def _markdown(text: str) -> str:
    """Escape markup after secrets are hidden: one that is escaped is not recognised."""
    return markdown_text(public_text(text))


def _code(text: str) -> str:
    return public_text(text).replace("`", "'")


def _data(text: str) -> str:
    return public_text(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
