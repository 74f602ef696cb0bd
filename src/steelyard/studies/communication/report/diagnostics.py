"""The figure of the communication report that shows whether a curve can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.report.dataset import dataset
from steelyard.report.page import Figure
from steelyard.studies.communication.findings.diagnostics import diagnostics
from steelyard.studies.communication.report.charts import PANEL_WIDTH, diagnostic_panels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from steelyard.studies.communication.report.data import Shown

    Row = dict[str, str | int | float | bool | None]
    Vector = NDArray[np.float64]

MOST_POINTS: Final = 400
"""Points of one panel."""

RESIDUAL: Final = "residual over curve, log10 us"
QUANTILES: Final = "residual over normal quantiles"
SCALE: Final = "scale-location"
LEVERAGE: Final = "residual over leverage"
LAG: Final = "next residual over this one"
AUTOCORRELATION: Final = "autocorrelation over lag"
SIZES: Final = "messages over log10 size"
PANELS: Final = (RESIDUAL, QUANTILES, SCALE, LEVERAGE, LAG, AUTOCORRELATION, SIZES)


def diagnostic_figure(shown: Sequence[Shown]) -> Figure | None:
    """Give residuals of the round trips that models are fitted to, as R's `plot.lm` does, and their order."""
    rows = [row for each in shown for row in _rows(each)]
    if not rows:
        return None
    return Figure(
        id="diagnostics",
        title="Can the curve be trusted?",
        caption="A residual is the logarithm of measured time over the curve. It should lie "
        "around 0 for every size (first panel) and follow no line over the one before it (lag, "
        "autocorrelation); no single message should pull a piece (leverage). Quantiles that leave the line "
        "to the right are a heavy tail.",
        alternative="Residuals over the curve, normal quantiles, scale-location, leverage, lag, sizes",
        spec=diagnostic_panels(PANELS, [each.label for each in shown]),
        datasets={"residuals": dataset(rows)},
        panel_width=PANEL_WIDTH,
    )


def _rows(shown: Shown) -> Iterator[Row]:
    trips = shown.trips.where(~shown.is_held_out)
    switches = [each.at for each in shown.model.boundaries if each.kind == "protocol"]
    series = diagnostics(trips, shown.model.curves["delay"], switches)
    curve = np.log10(series.fitted_s * 1e6)
    middles = np.log10(series.sizes.edges[:-1])
    lags = np.arange(series.autocorrelation.size, dtype=np.float64)
    panels: dict[str, tuple[Vector, Vector]] = {
        RESIDUAL: (curve, series.residual),
        QUANTILES: (series.quantiles.expected, series.quantiles.values),
        SCALE: (curve, series.scale_location),
        LEVERAGE: (series.leverage, series.residual),
        LAG: (series.lag[:, 0], series.lag[:, 1]),
        AUTOCORRELATION: (lags[1:], series.autocorrelation[1:]),
        SIZES: (middles, series.sizes.counts.astype(np.float64)),
    }
    for name, (x, y) in panels.items():
        step = -(-x.size // MOST_POINTS)
        for at in range(0, x.size, step):
            yield {"transport": shown.label, "panel": name, "x": float(x[at]), "y": float(y[at])}
