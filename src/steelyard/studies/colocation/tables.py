"""The findings of the colocation study as CSV files, and the trials in bins of time."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from steelyard.analyse.intervals.describe import quantile
from steelyard.errors import DataError
from steelyard.studies.colocation.findings.effects import latencies
from steelyard.studies.colocation.findings.isolation import cells_of
from steelyard.studies.finding_tables import FOLDER, rendered, write_claim_tables, write_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.model import FindingSet
    from steelyard.studies.colocation.findings.isolation import CellTrials
    from steelyard.studies.colocation.observed import Observed

ALWAYS: Final = {"isolation": "effects", "best_effort": "best_effort", "availability": "availability"}
IF_FOUND: Final = {
    "tail": "tails",
    "price": "prices",
    "contest": "contests",
    "check": "checks",
    "exit_cost": "exit_costs",
    "strictness": "strictness",
    "client_error": "client_error",
    "waiting_client": "waiting_client",
    "utilisation": "utilisation",
    "drain": "drain",
    "head_of_line": "head_of_line",
    "throttled": "throttled",
    "parked": "parked",
    "ended_early": "ended_early",
    "a_a": "a_a",
}
BINS: Final = "bins"
QUANTILES: Final = "latency_quantiles"
QUANTILE_COLUMNS: Final = ("policy", "load", "stretch", "slower_share", "n", "latency_s")
SHARES: Final = (
    *(digit * 10.0**power for power in range(-5, -1) for digit in (1, 1.5, 2, 3, 4, 5, 7)),
    *(0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
)
"""Shares of slower requests at which the table of quantiles gives latencies; a share of less than one request
is left out."""

BIN_COLUMNS: Final = (
    "policy",
    "load",
    "repetition",
    "twin",
    "start_s",
    "n",
    "unanswered",
    "mean_s",
    "p50_s",
    "p99_s",
    "iterations",
)


def write_tables(result: Path, findings: FindingSet, trials: Sequence[Observed]) -> None:
    """Write the tables, and remove those of an earlier analysis; the same findings give the same bytes."""
    found = {claim: name for claim, name in IF_FOUND.items() if findings.of(claim)}
    for name in set(IF_FOUND.values()) - set(found.values()):
        (result / FOLDER / f"{name}.csv").unlink(missing_ok=True)
    write_claim_tables(result, findings, {**ALWAYS, **found})
    write_table(result, BINS, rendered(BIN_COLUMNS, [row for trial in trials for row in _rows(trial)]))
    quantiles = [row for cell in cells_of(trials) for row in _quantile_rows(cell)]
    if quantiles:
        write_table(result, QUANTILES, rendered(QUANTILE_COLUMNS, quantiles))
    else:
        (result / FOLDER / f"{QUANTILES}.csv").unlink(missing_ok=True)


def _rows(trial: Observed) -> list[list[str | int | float | bool | None]]:
    bins = trial.bins
    first = (trial.policy, trial.load, trial.block + 1, str(trial.is_twin).lower())
    numbers = (bins.count, bins.unanswered, bins.mean_s, bins.p50_s, bins.p99_s, bins.iterations)
    return [
        [*first, round(float(start), 9), *(_number(float(column[at])) for column in numbers)]
        for at, start in enumerate(bins.start_s)
    ]


def _quantile_rows(cell: CellTrials) -> list[list[str | int | float | bool | None]]:
    """Give the latencies of all requests of a cell by the share of slower ones, of either stretch."""
    known = [trial for trial in cell.trials if trial.requests is not None]
    if not known:
        return []
    rows: list[list[str | int | float | bool | None]] = []
    for stretch, name in (("before", "before them"), ("beside", "beside the jobs")):
        values = np.concatenate([latencies(trial, getattr(trial.phases, stretch), "") for trial in known])
        ascending = np.sort(values)
        rows += [
            [cell.policy, cell.load, name, share, int(ascending.size), quantile(ascending, 1 - share)]
            for share in SHARES
            if share * ascending.size >= 1
        ]
    return rows


def _number(value: float) -> float | int | None:
    if math.isnan(value):
        return None
    return int(value) if value.is_integer() else value


def read_bins(result: Path) -> pl.DataFrame:
    """Read the table of bins that an analysis wrote.

    Raises
    ------
    DataError
        If it is absent or damaged.
    """
    path = result / FOLDER / f"{BINS}.csv"
    kinds = dict.fromkeys(BIN_COLUMNS[4:], pl.Float64)
    return _read(path, {"policy": pl.String, "load": pl.String, "twin": pl.Boolean, **kinds})


def read_quantiles(result: Path) -> pl.DataFrame:
    """Read the table of quantiles that an analysis wrote.

    Raises
    ------
    DataError
        If it is absent or damaged.
    """
    path = result / FOLDER / f"{QUANTILES}.csv"
    return _read(path, {"load": pl.String, "slower_share": pl.Float64, "latency_s": pl.Float64})


def _read(path: Path, kinds: dict[str, type[pl.DataType]]) -> pl.DataFrame:
    hint = f"steelyard analyse {shlex.quote(str(path.parent.parent))}"
    try:
        table = pl.read_csv(path, null_values="NA", schema_overrides=kinds)
    except (OSError, pl.exceptions.PolarsError) as error:
        message = f"cannot read `{path}`: {error}"
        raise DataError(message, hint=hint, code="data.absent") from error
    if absent := [name for name in kinds if name not in table.columns]:
        message = f"cannot read `{path}`: an older version wrote it, without the column `{absent[0]}`"
        raise DataError(message, hint=hint, code="data.absent")
    return table
