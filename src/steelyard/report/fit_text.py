"""A piecewise model as text and as JSON: R's summary per piece, breakpoints, residuals."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from steelyard.analyse.cost_curve.pieces import PieceKind
from steelyard.analyse.cost_curve.robust_curve import robust_curve
from steelyard.analyse.linear.residuals import diagnose, lack_of_fit, rivals
from steelyard.report.noise_text import noise_content, noise_lines, plots_content
from steelyard.units import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from steelyard.analyse.cost_curve.break_count import BreakCounts
    from steelyard.analyse.cost_curve.pieces import Breakpoint, Piece, SegmentedModel
    from steelyard.analyse.cost_curve.robust_curve import RobustCurve
    from steelyard.analyse.linear.residuals import Diagnostics

_SUSPICIOUS_P = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class FitView:
    """A fitted file: its model and the raw columns.

    Parameters
    ----------
    model : SegmentedModel
        The pieces.
    x, y : ndarray
        Shape (n,), in the order of the file.
    names : tuple of str
        Of the columns.
    source : str
        The file, as the user named it.
    counts : BreakCounts or None
        Numbers of breaks compared out of sample, after a search.
    """

    model: SegmentedModel
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    names: tuple[str, str]
    source: str
    counts: BreakCounts | None = None

    def inside(self, number: int) -> NDArray[np.bool_]:
        """Which points belong to a piece."""
        points = self.model.breakpoints
        low = points[number - 1].above if number else -math.inf
        high = points[number].above if number < len(points) else math.inf
        return np.asarray((self.x >= low) & (self.x < high))


def fit_lines(view: FitView) -> Iterator[str]:
    """Give the lines of the text."""
    model = view.model
    yield f"{view.source}: {view.x.size} points, {format_count(len(model.pieces), 'piece')}"
    if model.is_searched:
        yield from _search_lines(view)
    for point in model.breakpoints:
        yield _break_line(point, model.level, view.names[0])
    if view.counts is not None:
        yield _counts_line(view.counts, is_share=model.is_proportional)
    for number, piece in enumerate(model.pieces):
        yield ""
        points = format_count(piece.model.count, "point")
        yield f"== {_range_text(view, number)}: {piece.kind.value}, {points}"
        yield from _curve_lines(view, piece)
        yield from piece.model.summary(_call(view, number, piece)).rstrip("\n").split("\n")
        yield ""
        yield from _diagnosis_lines(view, number, piece)


def _search_lines(view: FitView) -> Iterator[str]:
    model = view.model
    what = f"medians of each {view.names[0]}" if model.on_medians else "all points"
    proof = (
        "no other partition costs less"
        if model.gap == 0
        else f"the search ended early: a partition may cost up to {model.gap:.3g} less"
    )
    yield f"Breakpoints searched on {what}, noise {model.sigma:.3g}: {proof}"


def _break_line(point: Breakpoint, level: float, name: str) -> str:
    text = f"Break at {name} = {point.at:.6g}, between {point.below:g} and {point.above:g}"
    if point.interval is not None:
        text += f"; {level:.0%} interval {point.interval[0]:g} to {point.interval[1]:g}"
    if point.mixed is not None:
        text += f"; both regimes between {point.mixed[0]:g} and {point.mixed[1]:g}"
        text += f" ({format_count(point.mixed_points, 'point')} on the other side's curve)"
    return text


def _counts_line(counts: BreakCounts, *, is_share: bool) -> str:
    style = ".2%" if is_share else ".4g"
    errors = ", ".join(
        f"{row.breaks}: {row.error:{style}}" for row in counts.rows if math.isfinite(row.error)
    )
    verdict = (
        f"both the search and left-out data say {counts.chosen}"
        if counts.agree
        else f"the search says {counts.chosen}, left-out data say {counts.out_of_sample}; the former is shown"
    )
    return f"Out-of-sample error by number of breaks: {errors}; {verdict}"


def _range_text(view: FitView, number: int) -> str:
    piece = view.model.pieces[number]
    return f"{view.names[0]} {piece.low:g} to {piece.high:g}"


def _curve_lines(view: FitView, piece: Piece) -> Iterator[str]:
    """Give the curve to believe before least squares, and where and why the two differ."""
    found = robust_curve(piece, is_proportional=view.model.is_proportional)
    if not found.is_searched:
        return
    x, y = view.names
    law = {
        PieceKind.CONSTANT: f"{found.base:.6g}",
        PieceKind.LINE: f"{found.base:.6g} {'-' if found.slope < 0 else '+'} {abs(found.slope):.6g} {x}",
        PieceKind.POWER: f"{found.base:.6g} {x}^{found.slope:.6g}",
    }[piece.kind]
    judged = "; breaks and noise are judged by it" if piece.is_robust else ""
    yield f"Curve: {y} = {law} (robust: single far points cannot move it{judged})"
    if found.reason:
        side = "above" if found.difference > 0 else "below"
        yield (
            f"Least squares lies up to {abs(found.difference):.3g} times the curve {side} it"
            if abs(found.difference) >= 1
            else f"Least squares lies up to {abs(found.difference):.1%} {side} it"
        ) + f" (at {x} = {found.at:g}): {found.reason}. Believe the curve"


def _call(view: FitView, number: int, piece: Piece) -> str:
    points = view.model.breakpoints
    limits = [f"{view.names[0]} >= {points[number - 1].above:g}"] if number else []
    limits += [f"{view.names[0]} < {points[number].above:g}"] if number < len(points) else []
    data = f", subset = {' & '.join(limits)}" if limits else ""
    return f"lm(formula = {piece.model.formula}{data})"


def _diagnosis_lines(view: FitView, number: int, piece: Piece) -> Iterator[str]:
    found = diagnose(piece.model)
    inside = view.inside(number)
    x, y = view.x[inside], view.y[inside]
    if piece.model.is_perfect:
        yield "Residuals are rounding noise: their statistics mean nothing"
        return
    yield _order_line(found)
    yield _shape_line(found)
    yield (
        f"Leverage: largest {found.largest_leverage:.3g} (look above {found.leverage_limit:.3g}); "
        f"largest Cook's distance {found.largest_cook:.3g}"
    )
    lack = lack_of_fit(x, piece.model)
    if lack is not None:
        verdict = "the shape is wrong" if lack.p_value < _SUSPICIOUS_P else "no lack of fit seen"
        yield (
            f"Lack of fit: F = {lack.f_statistic:.4g} on {lack.df[0]} and {lack.df[1]} DF, "
            f"p = {lack.p_value:.3g}: {verdict}"
        )
    ranking = rivals(x, y)
    if ranking:
        shown = ", ".join(f"{each.kind} {each.relative_error:.2%}" for each in ranking)
        yield f"Out-of-sample error (root mean square of shares): {shown}"
    yield from noise_lines(piece.noise())


def _order_line(found: Diagnostics) -> str:
    if math.isnan(found.lag_1):
        return "Order: residuals do not vary"
    is_bound = abs(found.lag_1) > found.lag_1_limit
    verdict = "neighbours depend on each other, errors above are too small" if is_bound else "independent"
    return f"Order: lag-1 autocorrelation {found.lag_1:.3g} (limit {found.lag_1_limit:.3g}): {verdict}"


def _shape_line(found: Diagnostics) -> str:
    if math.isnan(found.normality_p):
        return "Shape: too few residuals to judge"
    is_normal = found.normality_p >= _SUSPICIOUS_P
    verdict = "normality not refuted" if is_normal else "not normal, t and p values above are approximate"
    return (
        f"Shape: skewness {found.skewness:.3g}, excess kurtosis {found.excess_kurtosis:.3g}, "
        f"Jarque-Bera p = {found.normality_p:.3g}: {verdict}"
    )


def fit_content(view: FitView) -> dict[str, object]:
    """Give everything as numbers for JSON; what does not exist is null."""
    model = view.model
    return {
        "schema": "steelyard/fit/1",
        "file": view.source,
        "x": view.names[0],
        "y": view.names[1],
        "points": int(view.x.size),
        "searched": model.is_searched,
        "on_medians": model.on_medians,
        "cost": _number(model.cost),
        "bound": _number(model.bound),
        "sigma": _number(model.sigma),
        "level": _number(model.level),
        "breakpoints": [_clean(asdict(point)) for point in model.breakpoints],
        "break_counts": None if view.counts is None else _counts_content(view.counts),
        "pieces": [_piece_content(view, number) for number in range(len(model.pieces))],
    }


def _counts_content(counts: BreakCounts) -> dict[str, object]:
    return {
        "rows": [_clean(asdict(row)) for row in counts.rows],
        "chosen": counts.chosen,
        "out_of_sample": counts.out_of_sample,
        "agree": counts.agree,
        "points": counts.points,
    }


def _piece_content(view: FitView, number: int) -> dict[str, object]:
    piece = view.model.pieces[number]
    fit = piece.model
    inside = view.inside(number)
    x, y = view.x[inside], view.y[inside]
    lack = lack_of_fit(x, fit)
    noise = None if fit.is_perfect else piece.noise()
    columns = (
        fit.terms,
        fit.coefficients,
        fit.standard_errors,
        fit.hc3_errors,
        fit.t_values,
        fit.p_values,
    )
    keys = ("term", "estimate", "standard_error", "hc3_error", "t", "p")
    return {
        "kind": piece.kind.value,
        "low": piece.low,
        "high": piece.high,
        "points": fit.count,
        "robust": _robust_content(robust_curve(piece, is_proportional=view.model.is_proportional)),
        "formula": fit.formula,
        "coefficients": [_clean(dict(zip(keys, row, strict=True))) for row in zip(*columns, strict=True)],
        "sigma": _number(fit.sigma),
        "residual_df": fit.residual_df,
        "r_squared": _number(fit.r_squared),
        "adjusted_r_squared": _number(fit.adjusted_r_squared),
        "f_statistic": _number(fit.f_statistic),
        "f_df": fit.f_df,
        "f_p": _number(fit.f_p_value),
        "diagnostics": _clean(asdict(diagnose(fit))),
        "lack_of_fit": None if lack is None else _clean(asdict(lack)),
        "rivals": [_clean(asdict(rival)) for rival in rivals(x, y)],
        "noise": None if noise is None else noise_content(noise),
        "quantile_plots": None if noise is None else plots_content(piece, noise),
        "residuals": fit.residuals.tolist(),
        "fitted": fit.fitted.tolist(),
        "leverage": fit.leverage.tolist(),
    }


def _robust_content(found: RobustCurve) -> dict[str, object] | None:
    """Give the robust curve, and how least squares differs from it; null where there is none."""
    if not found.is_searched:
        return None
    return {
        "base": _number(found.base),
        "slope": _number(found.slope),
        "least_squares_difference": _number(found.difference),
        "at": found.at,
        "far_points": found.far,
        "reason": found.reason,
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _clean(content: dict[str, object]) -> dict[str, object]:
    return {key: _number(value) if isinstance(value, float) else value for key, value in content.items()}
