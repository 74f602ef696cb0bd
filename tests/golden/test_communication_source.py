"""Published figures of the communication study's source whose raw files are lost, and what follows from them.

Section 4.1 survives as quartiles, mean and spread of 12 times; section 5 as coefficients, errors and
counts. Data are rebuilt to those, and what is checked are the *other* printed figures. The figures with
raw files stand in `test_linear_summaries`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from golden.printed import limits
from steelyard.analyse.cost_curve.network_factors import link_factors
from steelyard.analyse.cost_curve.segments import fit_segments
from steelyard.analyse.linear.model import linear_model
from steelyard.studies.communication.transport.link_truth import LinkTruth

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "communication" / "graphene-eth1g"
GIGABIT_BYTES_PER_S = 1.25e8

# Quartiles 147.9, 149.35, 160.5, 166.425, 179.2, mean 160.958 and deviation 11.22 us of section 4.1.
SHORT_TIMES_US = [147.9, 149.1, 149.2, 149.4, 157.9, 159.7, 161.3, 162.4, 163.6, 174.9, 176.9, 179.2]

SHORT_SUMMARY = """
Call:
lm(formula = time ~ 1, data = df_short)

Residuals:
     Min       1Q   Median       3Q      Max 
-13.0583 -11.6083  -0.4583   5.4667  18.2417 

Coefficients:
            Estimate Std. Error t value Pr(>|t|)    
(Intercept)  160.958      3.238    49.7 2.69e-14 ***
---
Signif. codes:  0 ‘***’ 0.001 ‘**’ 0.01 ‘*’ 0.05 ‘.’ 0.1 ‘ ’ 1

Residual standard error: 11.22 on 11 degrees of freedom

"""  # noqa: RUF001, W291 - R's own quotes and trailing blanks


def test_short_messages_of_section_4_cost_a_constant() -> None:
    model = linear_model(None, SHORT_TIMES_US, names=("count", "time"))
    # The source has 49.72 and 2.68e-14: its times have more digits than the quartiles tell.
    assert model.summary("lm(formula = time ~ 1, data = df_short)") == SHORT_SUMMARY
    (least, most), (low, high) = limits("160.958"), limits("11.22")
    possible = [mean / (deviation / 12**0.5) for mean, deviation in ((least, high), (most, low))]
    assert possible[0] <= model.t_values[0] <= possible[1]
    assert is_between(possible, "49.72")
    assert is_between([2 * float(stats.t.sf(each, 11)) for each in reversed(possible)], "2.68e-14")


def is_between(possible: list[float], printed: str) -> bool:
    """Tell whether a number between two limits is rounded to the printed one."""
    low, high = limits(printed)
    return possible[0] <= high and low <= possible[1]


# Section 5.3: coefficients with standard errors, outer quartiles of the residuals, number of messages.
Side = dict[str, Any]
SMALL: Side = {
    "intercept": (4.219e-6, 2.396e-7),
    "slope": (1.112e-9, 2.306e-11),
    "quartiles": (-3.223e-6, 3.337e-6),
    "count": 512,
}
LARGE: Side = {
    "intercept": (4.155e-4, 4.341e-5),
    "slope": (8.497e-9, 1.796e-13),
    "quartiles": (-3.514e-4, 2.594e-4),
    "count": 470,
}
BOUNDARY = 65_000
NORMAL_QUARTILES = 1.349
"""Distance of the quartiles of a normal law in standard deviations."""
TIMER_S = 1e-6
"""SOURCE: section 5: the timer's resolution."""


@pytest.mark.parametrize("side", [SMALL, LARGE])
def test_coefficients_of_section_5_are_those_of_their_t_values(side: Side) -> None:
    printed = {
        "4.219e-6": ("2.396e-7", "17.61"),
        "1.112e-9": ("2.306e-11", "48.24"),
        "4.155e-4": ("4.341e-5", "9.573"),
        "8.497e-9": ("1.796e-13", "47319.819"),
    }
    for name in ("intercept", "slope"):
        (text,) = (each for each in printed if float(each) == side[name][0])
        error, t_value = printed[text]
        assert float(error) == side[name][1]
        (least, most), (low, high) = limits(text), limits(error)
        assert is_between([least / high, most / low], t_value)


def rebuilt_section_5() -> tuple[np.ndarray, np.ndarray]:
    """Draw messages as section 5.1 did, 10^U(0, 7) bytes, around the printed lines with their noise."""
    rng = np.random.default_rng(20120208)
    size = np.floor(10 ** rng.uniform(0, 7, 4000))
    parts = []
    for inside, side in ((size < BOUNDARY, SMALL), (size >= BOUNDARY, LARGE)):
        chosen = size[inside][: side["count"]]
        line = side["intercept"][0] + side["slope"][0] * chosen
        low, high = side["quartiles"]
        noise = rng.normal(0.0, (high - low) / NORMAL_QUARTILES, len(chosen))
        parts.append((chosen, np.maximum(line + noise, TIMER_S)))
    (small, short), (large, long) = parts
    return np.concatenate([small, large]), np.concatenate([short, long])


def test_the_boundary_of_section_5_is_found_and_its_bandwidth_is_94_percent() -> None:
    size, seconds = rebuilt_section_5()
    model = fit_segments(size, seconds, resamples=0)
    nearest = min(model.breakpoints, key=lambda each: abs(np.log(each.at / BOUNDARY)))
    assert nearest.below < BOUNDARY <= nearest.above
    assert nearest.at == pytest.approx(BOUNDARY, rel=0.02)
    given = fit_segments(size, seconds, breaks=[BOUNDARY])
    for piece, side in zip(given.pieces, (SMALL, LARGE), strict=True):
        errors = piece.model.standard_errors
        for place, (printed, error) in enumerate((side["intercept"], side["slope"])):
            # The sizes drawn are others than the source's, so are the errors.
            assert abs(piece.model.coefficients[place] - printed) < 4 * max(error, errors[place])
    small, large = link_factors(given, bandwidth_bytes_per_s=GIGABIT_BYTES_PER_S, latency_s=1e-6)
    assert round(100 * large.bandwidth_factor) == 94
    # "Small latency and 700 % of bandwidth": such a line says nothing about the link.
    assert small.bandwidth_factor > 6


def test_94_percent_is_what_headers_leave_of_the_link() -> None:
    source = 1 / (LARGE["slope"][0] * GIGABIT_BYTES_PER_S)
    assert f"{source:.0%}" == "94%"
    # On a cable a frame has a preamble (8), a check sum (4) and a gap (12) beside what the kernel counts.
    truth = LinkTruth(1_000_000_000, 0, 0, 0.0)
    most = truth.payload_per_frame_bytes / (truth.frame_bytes + 8 + 4 + 12)
    low, high = (1 / (each * GIGABIT_BYTES_PER_S) for each in reversed(limits("8.497e-9")))
    assert low <= most <= high


@pytest.mark.needs_recorded_data
@pytest.mark.parametrize(
    ("operation", "expected"), [("Iprobe", 3.68879945054945e-07), ("Test", 2.6383930013459e-07)]
)
def test_graphene_costs_of_looking_for_a_message(operation: str, expected: float) -> None:
    lines = (FOLDER / f"graphene_eth_{operation}.csv").read_text(encoding="utf-8").splitlines()
    seconds = np.sort([float(line.split(",")[3]) for line in lines])
    # R's mean(x, trim = 0.1) leaves out a tenth on either side.
    trimmed = len(seconds) // 10
    assert seconds[trimmed:-trimmed].mean() == pytest.approx(expected, rel=1e-12)


@pytest.mark.needs_recorded_data
def test_graphene_cost_of_the_clock() -> None:
    (line,) = (FOLDER / "graphene_eth_Wtime.csv").read_text(encoding="utf-8").splitlines()
    # One line for ten million calls.
    assert float(line.split(",")[3]) / 1e7 == pytest.approx(4.016448e-08, rel=1e-12)
