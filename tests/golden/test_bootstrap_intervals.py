"""Intervals beside those of R's package `boot`, computed by tests/golden/bootstrap-intervals/make.R."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import steelyard
from golden.printed import as_printed

FOLDER = Path(__file__).parent / "bootstrap-intervals"
NAMES: dict[str, object] = {"p90": ("quantile", 0.9)}
# 99 999 resamples on each side: 0.5 % of the width; where a quantile's distribution jumps, one value.
NEAR, NEAR_A_JUMP = 0.025, 0.12
JUMPS = {"median", "p90", "iqr", "mad"}


def rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return [{key: value.strip() for key, value in row.items()} for row in csv.DictReader(file)]


@pytest.mark.parametrize("row", rows("table.csv"), ids=lambda row: "-".join(list(row.values())[:3]))
def test_limits_are_those_of_r(row: dict[str, str]) -> None:
    sample = rows("sample.csv")
    names = ("value", "cluster", "stratum")
    column = {name: np.array([float(line[name]) for line in sample]) for name in names}
    labels = {
        "plain": {},
        "clusters": {"clusters": column["cluster"]},
        "strata": {"strata": column["stratum"]},
    }
    found = steelyard.interval(
        column["value"],
        statistic=NAMES.get(row["statistic"], row["statistic"]),
        method=row["method"],
        resamples=99_999,
        **labels[row["scheme"]],
    )
    low, high = float(row["low"]), float(row["high"])
    near = NEAR_A_JUMP if row["statistic"] in JUMPS else NEAR
    assert found.estimate == as_printed(row["estimate"])
    assert (found.low - low) / (high - low) == pytest.approx(0, abs=near)
    assert (found.high - high) / (high - low) == pytest.approx(0, abs=near)
