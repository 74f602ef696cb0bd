"""E1: the scores of a fork of JMH."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from steelyard.analyse.intervals.describe import mean
from steelyard.analyse.intervals.value_counts import count_values
from steelyard.errors import DataError
from steelyard.studies.replication.experiment_record import JMH_FILE
from steelyard.studies.replication.run_parts import THROUGHPUT, WHOLE, Part

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.studies.replication.recorded import RecordedRun

_PER_SECOND: Final = {"ops/s": 1.0, "ops/ms": 1e3, "ops/us": 1e6, "ops/ns": 1e9, "ops/min": 1 / 60}
_HINT: Final = "the run's configuration asks JMH for throughput of one benchmark (-bm thrpt -rf json)"


def micro_parts(recorded: RecordedRun) -> Mapping[str, Part]:
    """Give the throughput of a fork: the mean of its iterations [operations/s].

    Raises
    ------
    DataError
        If JMH's file is absent, damaged or holds something else than the throughput of one benchmark.
    """
    scores = _scores(recorded.folder / JMH_FILE)
    return {WHOLE: Part({THROUGHPUT: mean(scores)}, count_values(scores), {"iterations": int(scores.size)})}


def _scores(path: Path) -> NDArray[np.float64]:
    """Give the score of every measured iteration of every fork in a file, in order."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        (entry,) = entries
        metric: dict[str, Any] = entry["primaryMetric"]
        factor = _PER_SECOND[metric["scoreUnit"]]
        scores = np.array([score for fork in metric["rawData"] for score in fork], dtype=np.float64) * factor
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"`{path}` lacks the throughput of one benchmark: {type(error).__name__}: {error}"
        raise DataError(message, hint=_HINT, code="replication.jmh") from error
    if not scores.size or not np.isfinite(scores).all() or (scores <= 0).any():
        message = f"`{path}` contains no scores, or some that are not positive numbers"
        raise DataError(message, hint=_HINT, code="replication.jmh")
    return scores
