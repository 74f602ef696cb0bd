"""The noise of a piece as a sentence with a table, and as JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from steelyard.analyse.cost_curve.noise import SIMULATIONS
from steelyard.analyse.linear.deviations import Scale, quantile_plot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.analyse.cost_curve.noise import LawParameter, NoiseLaw, NoiseModel, ParetoTail
    from steelyard.analyse.cost_curve.pieces import Piece
    from steelyard.analyse.linear.deviations import QuantilePlot

_HEADS = ("law", "parameters", "dAIC", "dBIC", "A2", "p", "distance")
_WHAT = {Scale.FACTOR: "factors of the curve", Scale.DIFFERENCE: "differences from the curve"}


def noise_lines(noise: NoiseModel) -> Iterator[str]:
    """Give the verdict on the laws, their table, and the tail."""
    what = f"Noise ({noise.count} {_WHAT[noise.scale]})"
    if noise.reason:
        yield f"{what}: {noise.reason}"
        return
    yield f"{what}: {_verdict(noise)}"
    yield from _table(noise)
    if noise.tail is not None:
        yield _tail_line(noise.tail)


def _verdict(noise: NoiseModel) -> str:
    best, nearest = noise.chosen, noise.nearest
    if best is not None:
        text = f"{best.kind.value} fits (p = {best.p_value:.3g})"
        others = " and ".join(law.kind.value for law in noise.alike)
        return f"{text}; {others} cannot be distinguished from it" if others else text
    distance = (
        "" if nearest is None else f"; nearest is {nearest.kind.value}, off by up to {nearest.distance:.2%}"
    )
    return f"none of the laws fits{distance}"


def _table(noise: NoiseModel) -> Iterator[str]:
    least_aic, least_bic = (min(getattr(law, name) for law in noise.laws) for name in ("aic", "bic"))
    rows = [_HEADS]
    rows += [
        (
            law.kind.value + ("" if law.is_regular else "*"),
            ", ".join(f"{each.name} {each.estimate:.5g}" for each in law.parameters),
            f"{law.aic - least_aic:.1f}",
            f"{law.bic - least_bic:.1f}",
            f"{law.anderson_darling:.3g}",
            _p_text(law),
            f"{law.distance:.2%}",
        )
        for law in noise.laws
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    left = 2
    for row in rows:
        cells = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  " + "  ".join(cells)
    if not all(law.is_regular for law in noise.laws):
        yield "  * shape of at most 2: the smallest value settles the shift, and AIC and BIC are a guide only"


def _p_text(law: NoiseLaw) -> str:
    smallest = 1 / (SIMULATIONS + 1)
    return f"<={smallest:g}" if law.p_value <= smallest else f"{law.p_value:.3g}"


def _tail_line(tail: ParetoTail) -> str:
    where = f"Tail: above {tail.threshold:.5g} ({tail.exceedances} values, {tail.share:.2g} of all)"
    law = f"generalised Pareto with shape {_interval(tail.shape)}, scale {tail.scale.estimate:.4g}"
    if not tail.holds:
        return f"{where} no generalised Pareto law holds (p = {tail.p_value:.3g})"
    weight = "heavier than exponential" if tail.is_heavy else "not certainly heavier than exponential"
    return f"{where} {law} (p = {tail.p_value:.3g}): {weight}"


def _interval(parameter: LawParameter) -> str:
    return f"{parameter.estimate:.3g} (95% {parameter.low:.3g} to {parameter.high:.3g})"


def noise_content(noise: NoiseModel) -> dict[str, object]:
    """Give everything as numbers for JSON; what does not exist is null."""
    best, nearest = noise.chosen, noise.nearest
    return {
        "scale": noise.scale.value,
        "count": noise.count,
        "distinct": noise.distinct,
        "chosen": None if best is None else best.kind.value,
        "alike": [law.kind.value for law in noise.alike],
        "nearest": None if nearest is None else nearest.kind.value,
        "reason": noise.reason or None,
        "laws": [_law_content(law) for law in noise.laws],
        "tail": None if noise.tail is None else _tail_content(noise.tail),
    }


def _law_content(law: NoiseLaw) -> dict[str, object]:
    return {
        "law": law.kind.value,
        "parameters": [_parameter_content(each) for each in law.parameters],
        "log_likelihood": _number(law.log_likelihood),
        "aic": _number(law.aic),
        "bic": _number(law.bic),
        "anderson_darling": _number(law.anderson_darling),
        "p": law.p_value,
        "simulated": law.simulated,
        "distance": law.distance,
        "regular": law.is_regular,
        "fits": law.fits,
    }


def _tail_content(tail: ParetoTail) -> dict[str, object]:
    return {
        "threshold": tail.threshold,
        "exceedances": tail.exceedances,
        "share": tail.share,
        "shape": _parameter_content(tail.shape),
        "scale": _parameter_content(tail.scale),
        "anderson_darling": _number(tail.anderson_darling),
        "p": tail.p_value,
        "holds": tail.holds,
        "heavy": tail.is_heavy,
    }


def _parameter_content(parameter: LawParameter) -> dict[str, object]:
    return {
        "name": parameter.name,
        "estimate": parameter.estimate,
        "low": _number(parameter.low),
        "high": _number(parameter.high),
    }


def plots_content(piece: Piece, noise: NoiseModel) -> dict[str, object]:
    """Give the quantile plots: residuals against the normal law, deviations against the law of the noise.

    The second one is null without laws; its law is the nearest one where none fits.
    """
    law = noise.chosen or noise.nearest
    return {
        "normal": _plot_content(quantile_plot(piece.model.residuals)),
        "noise": None
        if law is None
        else {"law": law.kind.value, **_plot_content(quantile_plot(piece.deviations()[1], law.quantile))},
    }


def _plot_content(plot: QuantilePlot) -> dict[str, object]:
    return {
        "count": plot.count,
        "ranks": plot.ranks.tolist(),
        "values": plot.values.tolist(),
        "expected": plot.expected.tolist(),
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
