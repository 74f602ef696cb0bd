"""Whether places hold one result: a history or a comparison of a result with itself says nothing."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import polars as pl

from steelyard.errors import UsageError
from steelyard.record.tables import MEASUREMENTS_FOLDER, RUNS_NAME, read_measurements, read_runs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def refuse_same(places: Sequence[Path]) -> None:
    """Refuse a result that is given twice: it would count as two that agree.

    Raises
    ------
    UsageError
        Naming both places.
    """
    if twins := same_results(places):
        message = f"cannot use a result twice: `{twins[0]}` and `{twins[1]}` are the same result"
        raise UsageError(message, hint="give each result once", code="usage.same-result")


def same_results(places: Sequence[Path], analysed: Sequence[Path] = ()) -> tuple[Path, Path] | None:
    """Find a result that is given twice: the same folder, or a copy of it.

    Parameters
    ----------
    places : sequence of Path
        As the user gave them.
    analysed : sequence of Path
        Result folder of each, where their findings are compared too: two analyses of one result may differ.

    Returns
    -------
    tuple of Path or None
        Two places of one result.
    """
    known: dict[str, Path] = {}
    for place, folder in zip(places, analysed or places, strict=True):
        if not folder.exists():
            continue
        identities = {os.path.realpath(place): place}
        if same := _identity(folder):
            findings = folder / "findings.json"
            content = findings.read_bytes() if analysed and findings.is_file() else b""
            identities[same + hashlib.sha256(content).hexdigest()] = place
        for same in identities.keys() & known.keys():
            return known[same], place
        known |= identities
    return None


def _identity(folder: Path) -> str:
    """Give what no second result shares; empty where all values of each cell are equal, as counts may be."""
    if not all((folder / name).exists() for name in (MEASUREMENTS_FOLDER, RUNS_NAME)):
        return ""
    runs = pl.DataFrame(read_runs(folder).select(["run_id", "cell"]))
    table = pl.DataFrame(read_measurements(folder).select(["run_id", "metric", "value"]))
    spread = table.join(runs, on="run_id").group_by("cell", "metric").agg(pl.col("value").n_unique())
    if spread.is_empty() or spread["value"].max() == 1:
        return ""
    names = "\n".join(table["metric"].cast(pl.String).to_list())
    return hashlib.sha256(table["value"].to_numpy().tobytes() + names.encode()).hexdigest()
