"""A comparison as files for other programs."""

from __future__ import annotations

import csv
import io
import json
import math
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from steelyard.errors import unwritable
from steelyard.record.provenance import read_provenance
from steelyard.report.tables import markdown_text
from steelyard.run.machine.host import read_fingerprint
from steelyard.studies.comparison.claim import percent
from steelyard.studies.comparison.sample import RUN_COLUMNS
from steelyard.studies.comparison.terms import Metric
from steelyard.studies.comparison.text import flags_text, written
from steelyard.studies.comparison.verdict_files import (
    public_json,
    public_text,
    to_action_benchmark,
    to_annotations,
    to_bencher,
    to_junit,
    to_pull_request,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from steelyard.studies.comparison.outcome import Comparison


class Form(StrEnum):
    """Form of an exported file."""

    JSON = "json"
    """Everything, every run included."""
    CSV = "csv"
    """One row per run."""
    MD = "md"
    """The verdicts and the table of the commands in Markdown."""
    PULL_REQUEST = "pull-request"
    """A comment for a pull request: what changed, and what could have been seen."""
    ANNOTATIONS = "annotations"
    """Annotations of GitHub."""
    JUNIT = "junit"
    """A test report."""
    ACTION_BENCHMARK = "action-benchmark"
    """Custom JSON of github-action-benchmark."""
    BENCHER = "bencher"
    """Bencher's metric format."""
    LINKS = "links"
    """Ratios of revisions, for `steelyard history`."""


def to_json(found: Comparison) -> str:
    """Write everything as JSON of schema ``steelyard/comparison/1``."""
    content = public_json(found.as_dict())
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(found: Comparison) -> str:
    """Write one row per run in order of execution; a value that was not measured is empty."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    columns = (*RUN_COLUMNS, *(["reported_ns"] if found.terms.metric is Metric.REPORTED else []))
    writer.writerow(["command", *columns, "flags"])
    for run in found.runs:
        values = [getattr(run, name) for name in columns]
        name = public_text(found.contenders[run.contender].name)
        writer.writerow([name, *values, " ".join(run.flags)])
    return stream.getvalue()


def to_markdown(found: Comparison) -> str:
    """Write verdicts and table in GitHub's Markdown."""
    metric = str(found.terms.metric)
    lines = [f"{public_text(claim.sentence)}." for claim in found.claims]
    rows = [
        "| Command | Median | Spread | Least | Most | Runs | Flags |",
        "|:---|---:|---:|---:|---:|---:|:---|",
    ]
    for contender, summary in zip(found.contenders, found.summaries, strict=True):
        cells = (
            markdown_text(public_text(contender.name)),
            written(summary.median, metric),
            percent(summary.spread) if math.isfinite(summary.spread) else "-",
            written(summary.least, metric),
            written(summary.most, metric),
            str(summary.count),
            flags_text(summary),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n\n".join([*lines, "\n".join(rows)]) + "\n"


def to_links(found: Comparison) -> str:
    """Write what is known of each revision against the baseline, one on each line."""
    from steelyard.studies.comparison.links import links_of  # noqa: PLC0415 - start-up time

    host = read_fingerprint().cpu_model or ""
    # A comparison that goes on is the same job.
    began = None if found.result is None else read_provenance(found.result).sessions[0].begun_utc
    return "".join(each.as_line() for each in links_of(found, host, began))


_WRITERS: Final[dict[Form, Callable[[Comparison], str]]] = {
    Form.JSON: to_json,
    Form.CSV: to_csv,
    Form.MD: to_markdown,
    Form.PULL_REQUEST: to_pull_request,
    Form.ANNOTATIONS: to_annotations,
    Form.JUNIT: to_junit,
    Form.ACTION_BENCHMARK: to_action_benchmark,
    Form.BENCHER: to_bencher,
    Form.LINKS: to_links,
}


def export(found: Comparison, form: Form, path: Path) -> None:
    """Write a comparison into a file.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    try:
        path.write_text(_WRITERS[form](found), encoding="utf-8")
    except OSError as error:
        raise unwritable(path, error, "give another file to --export") from error
