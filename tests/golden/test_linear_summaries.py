"""Linear models against R's own output on recorded ping-pong data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from steelyard.analyse.cost_curve.network_factors import link_factors, one_way_delays
from steelyard.analyse.cost_curve.segments import fit_segments
from steelyard.analyse.linear.coefficient_table import coefficient_table
from steelyard.analyse.linear.model import linear_model

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "communication"


@pytest.mark.needs_recorded_data
def test_griffon_summaries_to_the_printed_character() -> None:
    folder = FOLDER / "griffon"
    lines = (folder / "griffon_skampi_pt2pt.ski.dat").read_text().splitlines()
    rows = [line.replace("count=", "").split() for line in lines if "count=" in line]
    count, time = (np.array([float(row[column]) for row in rows]) for column in (0, 2))

    def summary(mask: np.ndarray, call: str, *, log: bool) -> str:
        labels = [str(place + 1) for place in np.flatnonzero(mask)]
        model = linear_model(count[mask], time[mask], log=log, names=("count", "time"), labels=labels)
        return model.summary(call)

    log_call = "lm(formula = log10(time) ~ log10(count), data = df[df$count"
    pingpong = np.loadtxt(folder / "pingpong-in.dat")
    found = [
        "136 \n",
        summary(count < 100, f"{log_call} < \n    100, ])", log=True),
        summary(count < 100, "lm(formula = time ~ count, data = df[df$count < 100, ])", log=False),
        summary(count > 20000, f"{log_call} > \n    20000, ])", log=True),
        summary((count < 20000) & (count > 100), f"{log_call} < \n    20000 & df$count > 100, ])", log=True),
        "7681 \n",
        linear_model(pingpong[:, 0], pingpong[:, 1], names=("count", "time")).summary(
            "lm(formula = time ~ count, data = d)"
        ),
    ]
    expected = (folder / "expected-from-R.txt").read_text()
    models, _, _ = expected.partition("       count  time\n")
    assert "".join(found) == models


# R 4.2.2 on the four points rebuilt from the figures of section 4.2.
REBUILT_LOG = """
Call:
lm(formula = log10(time) ~ log10(count), data = df_large)

Residuals:
      21       22       23       24 
 0.01329 -0.01488 -0.01010  0.01169 

Coefficients:
             Estimate Std. Error t value Pr(>|t|)    
(Intercept)  -1.14415    0.17179   -6.66 0.021808 *  
log10(count)  0.86744    0.02651   32.73 0.000932 ***
---
Signif. codes:  0 ‘***’ 0.001 ‘**’ 0.01 ‘*’ 0.05 ‘.’ 0.1 ‘ ’ 1

Residual standard error: 0.01784 on 2 degrees of freedom
Multiple R-squared:  0.9981,\tAdjusted R-squared:  0.9972 
F-statistic:  1071 on 1 and 2 DF,  p-value: 0.0009324

"""  # noqa: RUF001, W291 - R's own quotes and trailing blanks

REBUILT = """
Call:
lm(formula = time ~ count, data = df_large)

Residuals:
    21     22     23     24 
 89.05 -62.39 -62.26  35.59 

Coefficients:
             Estimate Std. Error t value Pr(>|t|)    
(Intercept) 3.343e+03  7.918e+01   42.22 0.000561 ***
count       8.505e-03  1.638e-05  519.19 3.71e-06 ***
---
Signif. codes:  0 ‘***’ 0.001 ‘**’ 0.01 ‘*’ 0.05 ‘.’ 0.1 ‘ ’ 1

Residual standard error: 92.1 on 2 degrees of freedom
Multiple R-squared:      1,\tAdjusted R-squared:      1 
F-statistic: 2.696e+05 on 1 and 2 DF,  p-value: 3.71e-06

"""  # noqa: RUF001, W291 - R's own quotes and trailing blanks


@pytest.mark.needs_recorded_data
@pytest.mark.parametrize(("log", "expected"), [(True, REBUILT_LOG), (False, REBUILT)])
def test_summaries_of_the_rebuilt_points(*, log: bool, expected: str) -> None:
    points = np.loadtxt(FOLDER / "griffon/reconstructed-section4.2-large.csv", delimiter=",", skiprows=1)
    labels = ["21", "22", "23", "24"]
    model = linear_model(points[:, 0], points[:, 1], log=log, names=("count", "time"), labels=labels)
    formula = "log10(time) ~ log10(count)" if log else "time ~ count"
    assert model.summary(f"lm(formula = {formula}, data = df_large)") == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            # Sections 4.1, 4.3, 5.2 and 5.3, of which only the printed figures are left.
            {
                "(Intercept)": (2.17657, 0.01316, 165.45, 1e-18),
                "log10(count)": (0.01763, 0.00673, 2.62, 0.0256),
            },
            [
                "(Intercept)   2.17657    0.01316  165.45   <2e-16 ***",
                "log10(count)  0.01763    0.00673    2.62   0.0256 *  ",
            ],
        ),
        (
            {"(Intercept)": (4.219e-6, 2.396e-7, 17.61, 1e-30), "size": (1.112e-9, 2.306e-11, 48.24, 1e-90)},
            [
                "(Intercept) 4.219e-06  2.396e-07   17.61   <2e-16 ***",
                "size        1.112e-09  2.306e-11   48.24   <2e-16 ***",
            ],
        ),
        (
            {
                "(Intercept)": (4.155e-4, 4.341e-5, 9.573, 1e-19),
                "size": (8.497e-9, 1.796e-13, 47319.819, 0.0),
            },
            [
                "(Intercept) 4.155e-04  4.341e-05     9.573   <2e-16 ***",
                "size        8.497e-09  1.796e-13 47319.819   <2e-16 ***",
            ],
        ),
        (
            {
                "(Intercept)": (-5.56532, 0.04168, -133.52, 0.0),
                "log10(size)": (0.03543, 0.0233, 1.521, 0.129),
            },
            [
                "(Intercept) -5.56532    0.04168 -133.520   <2e-16 ***",
                "log10(size)  0.03543    0.02330    1.521    0.129    ",
            ],
        ),
        (
            {"(Intercept)": (446.6, 159.0, 2.809, 0.0308), "count": (0.01498, 7.427e-4, 20.169, 9.65e-7)},
            [
                "(Intercept) 4.466e+02  1.590e+02   2.809   0.0308 *  ",
                "count       1.498e-02  7.427e-04  20.169 9.65e-07 ***",
            ],
        ),
        (
            {
                "(Intercept)": (-0.52172, 0.12897, -4.045, 0.00676),
                "log10(count)": (0.77403, 0.02734, 28.308, 1.29e-7),
            },
            [
                "(Intercept)  -0.52172    0.12897  -4.045  0.00676 ** ",
                "log10(count)  0.77403    0.02734  28.308 1.29e-07 ***",
            ],
        ),
    ],
)
def test_tables_of_the_text(rows: dict[str, tuple[float, ...]], expected: list[str]) -> None:
    assert coefficient_table(list(rows), list(rows.values()))[1:3] == expected


LIMITS = [0.0, 1420.0, 32768.0, 65536.0, 270000.0, np.inf]


@pytest.mark.needs_recorded_data
@pytest.mark.parametrize(
    ("name", "file", "operation"),
    [
        ("os", "graphene_eth_PingPong.csv", "MPI_Send"),
        ("ois", "graphene_eth_Isend.csv", "MPI_Isend"),
        ("or", "graphene_eth_Recv.csv", "MPI_Recv"),
    ],
)
def test_graphene_pieces_between_given_breakpoints(name: str, file: str, operation: str) -> None:
    folder = FOLDER / "graphene-eth1g"
    rows = [line.split(",") for line in (folder / file).read_text().splitlines()]
    size, seconds = np.array([(float(row[1]), float(row[3])) for row in rows if row[0] == operation]).T
    # The group's own trimming: of ten repetitions those outside the 10 % and 90 % quantiles go.
    blocks = seconds.reshape(-1, 10)
    low, high = np.quantile(blocks, [0.1, 0.9], axis=1)[:, :, None]
    kept = ((blocks >= low) & (blocks <= high)).ravel()
    size, seconds = size[kept], seconds[kept]
    line = next(
        text for text in (folder / "expected-from-R.txt").read_text().splitlines() if text.split()[0] == name
    )
    for piece, low_size, high_size in zip(
        line.split(maxsplit=1)[1].split(";"), LIMITS, LIMITS[1:], strict=False
    ):
        limit, intercept, slope = (float(part) for part in piece.split(":"))
        assert limit == low_size
        if intercept == slope == 0:  # the group sets what is not the sender's cost to zero
            continue
        inside = (size > low_size) & (size <= high_size)
        model = linear_model(size[inside], seconds[inside])
        # R prints 15 digits, of which its own rounding leaves about 13.
        assert model.coefficients == pytest.approx([intercept, slope], rel=1e-12)


# What the group expected of the link: 1 Gb/s and 24 us.
BANDWIDTH, LATENCY = 1.25e8, 2.4e-5


def graphene_columns(folder: Path, file: str, operation: str) -> tuple[np.ndarray, np.ndarray]:
    rows = [line.split(",") for line in (folder / file).read_text().splitlines()]
    size, seconds = np.array([(float(row[1]), float(row[3])) for row in rows if row[0] == operation]).T
    return size, seconds


@pytest.mark.needs_recorded_data
def test_graphene_bandwidth_and_latency_factors() -> None:
    folder = FOLDER / "graphene-eth1g"
    expected = {
        text.split()[0]: [
            tuple(map(float, piece.split(":"))) for piece in text.split(maxsplit=1)[1].split(";")
        ]
        for text in (folder / "expected-from-R.txt").read_text().splitlines()
        if ":" in text
    }
    given = [float(line.split(",")[0]) for line in (folder / "breakpoints_eth").read_text().splitlines()[1:]]
    # R's `cut` closes pieces at their upper end: low < x <= high, and a piece here holds low <= x < high.
    breaks = [np.nextafter(at, np.inf) for at in given]
    # Cost of a receive, trimmed as the group does it: of ten repetitions the outer tenths go.
    size, seconds = graphene_columns(folder, "graphene_eth_Recv.csv", "MPI_Recv")
    blocks = seconds.reshape(-1, 10)
    low, high = np.quantile(blocks, [0.1, 0.9], axis=1)[:, :, None]
    kept = ((blocks >= low) & (blocks <= high)).ravel()
    receive = fit_segments(size[kept], seconds[kept], breaks=breaks)
    size, sent = graphene_columns(folder, "graphene_eth_PingPong.csv", "MPI_Send")
    again, received = graphene_columns(folder, "graphene_eth_PingPong.csv", "MPI_Recv")
    assert (size == again).all()
    # Beyond the last break the sender waits for the receiver, and the group subtracts nothing.
    delays = one_way_delays(size, sent + received, receive)
    delays[size > given[-1]] = (sent + received)[size > given[-1]] / 2
    model = fit_segments(size, delays, breaks=breaks)
    found = link_factors(model, bandwidth_bytes_per_s=BANDWIDTH, latency_s=LATENCY)
    assert [limit for limit, _ in expected["bw-factor"]] == [0.0, *given]
    for factor, (_, bandwidth), (_, latency) in zip(
        found, expected["bw-factor"], expected["lat-factor"], strict=True
    ):
        assert factor.bandwidth_factor == pytest.approx(bandwidth, rel=1e-12)
        assert factor.latency_factor == pytest.approx(latency, rel=1e-12)
