"""``steelyard peaks``: how often calls take unusually long, when, and what comes with it."""

from __future__ import annotations

import json
import sys
from pathlib import Path  # noqa: TC003 - the command line reads annotations at run time
from typing import Annotated

from cyclopts import Parameter

from steelyard.analyse.peaks.peak_search import parse_threshold
from steelyard.cli.streams import write_lines
from steelyard.errors import UsageError


def peaks(
    directory: Path,
    *,
    threshold: str = "robust",
    all_: Annotated[bool, Parameter(name="--all", negative=())] = False,
    json_: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> None:
    """Find how often calls take unusually long, when, and what coincides with it.

    Every call counts; those of the warm-up are left out where the run says which they are. Runs are kept
    separate: each has its own threshold, and its rate is one observation.

    Parameters
    ----------
    directory
        Result folder of the replication study, folder of one of its runs, or result folder of an import.
    threshold
        Threshold above which a call is a peak: `robust` (median + 10 MAD; `robust:K` for another factor),
        `sigma:K` (mean + K standard deviations) or `absolute:NS` (nanoseconds).
    all_
        Count the calls of the warm-up as well.
    json_
        Print JSON for programs, with the timeline and every kind of event that was compared with the peaks.

    Examples
    --------
    steelyard import moobench raw-1-10-2.csv --out imported && steelyard peaks imported

    steelyard peaks results/replication --threshold sigma:3 --json
    """
    from steelyard.analyse.peaks.run_peaks import peaks_of_cell  # noqa: PLC0415 - start-up time
    from steelyard.report.peaks_text import peaks_content, peaks_lines  # noqa: PLC0415 - start-up time
    from steelyard.studies.replication.values.call_series import find_series  # noqa: PLC0415 - start-up time

    rule = parse_threshold(threshold)
    if not directory.is_dir():
        message = f"`{directory}` is not a folder"
        raise UsageError(message, hint="`steelyard import moobench FILE --out DIR` creates one from a file")
    cells = [peaks_of_cell(runs, rule) for runs in find_series(directory, keep_warm_up=all_)]
    if json_:
        content = peaks_content(cells, rule)
        sys.stdout.write(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        write_lines(peaks_lines(cells, rule))
