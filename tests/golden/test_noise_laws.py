"""Noise laws beside those of R's package `fitdistrplus`, computed by tests/golden/noise-laws/make.R."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from golden.printed import as_printed
from steelyard.analyse.cost_curve.noise import LawKind, NoiseLaw, noise_model

FOLDER = Path(__file__).parent / "noise-laws"


def rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def fitted(column: str, law: str) -> NoiseLaw:
    values = np.array([float(row[column]) for row in rows("sample.csv")])
    return next(each for each in noise_model(values, lowest=0).laws if each.kind is LawKind(law))


def anderson_darling(column: str) -> tuple[float, float]:
    """Give the distance from the normal law: with the logarithm of the upper tail, and with log(1 - p)."""
    values = np.sort([float(row[column]) for row in rows("sample.csv")])
    z = (values - values.mean()) / values.std()
    weights = 2 * np.arange(1, z.size + 1) - 1
    below, above = stats.norm.logcdf(z), stats.norm.logsf(z)[::-1]
    naive = np.log(1 - stats.norm.cdf(z))[::-1]
    exact, as_r = (-z.size - float(np.mean(weights * (below + each))) for each in (above, naive))
    return exact, as_r


@pytest.mark.parametrize(
    "row", [row for row in rows("table.csv") if row["law"] == "normal"], ids=lambda row: row["column"]
)
def test_the_normal_law_is_that_of_r(row: dict[str, str]) -> None:
    law = fitted(row["column"], "normal")
    own = {
        "first": law.values[0],
        "second": law.values[2],
        "log_likelihood": law.log_likelihood,
        "aic": law.aic,
        "bic": law.bic,
        "anderson_darling": law.anderson_darling,
        "distance": law.distance,
    }
    # R takes log(1 - p), which loses digits where p is near 1; with its formula we get its digits.
    exact, as_r = anderson_darling(row["column"])
    assert own.pop("anderson_darling") == pytest.approx(exact, rel=1e-12)
    assert as_r == as_printed(row["anderson_darling"])
    for key, value in own.items():
        assert value == as_printed(row[key]), key


@pytest.mark.parametrize(
    "row", [row for row in rows("table.csv") if row["law"] != "normal"], ids=lambda row: row["column"]
)
def test_a_shifted_law_reaches_the_likelihood_r_reaches_knowing_the_shift(row: dict[str, str]) -> None:
    law = fitted(row["column"], row["law"])
    first, second = float(row["first"]), float(row["second"])
    shape, scale = {
        "lognormal": (second, math.exp(first)),
        "gamma": (first, 1 / second),
        "weibull": (first, second),
    }[row["law"]]
    # R is told the shift. One more unknown gains half a unit on average; spacings give up a little of it.
    assert law.log_likelihood == pytest.approx(float(row["log_likelihood"]), abs=2.5)
    place, exponent, unit = law.parameters
    assert place.low <= float(row["shift"]) <= place.high
    assert exponent.low <= shape <= exponent.high
    assert unit.low <= scale <= unit.high
    assert law.anderson_darling < float(row["anderson_darling"]) + 0.2
