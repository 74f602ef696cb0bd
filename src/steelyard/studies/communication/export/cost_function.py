"""A cost model as a function in another program: one file of Python or Rust that needs nothing else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model.cost_model import CostModel, CostPiece

_MAIN: Final = "delay"

_PYTHON: Final = '''"""Seconds that a message takes over {name}. Written by Steelyard; needs only Python."""

from bisect import bisect_left

# Per curve: the largest size of each piece but the last, and (is a power law, base, slope) of each.
_CURVES = {{
{curves}}}

# Per curve: the smallest and the largest measured size, None where that is not known.
MEASURED_BYTES = {{
{measured}}}


def is_measured(size_bytes, curve="{main}"):
    """Say whether a size lies within the measured ones; None where these are not known."""
    known = MEASURED_BYTES[curve]
    return None if known is None else known[0] <= size_bytes <= known[1]


def seconds(size_bytes, curve="{main}"):
    """Give the seconds for a message of so many bytes; `delay` is {timed}.

    Where `is_measured` does not say True, the curve is extrapolated. A size at which it says no positive time
    is an error.
    """
    if not 0 <= size_bytes < float("inf"):
        raise ValueError(f"{{size_bytes}} is not a number of bytes")
    ends, pieces = _CURVES[curve]
    is_power, base, slope = pieces[bisect_left(ends, size_bytes)]
    found = base * max(size_bytes, 1.0) ** slope if is_power else base + slope * size_bytes
    if not 0 < found < float("inf"):
        raise ValueError(f"cannot predict {{size_bytes}} bytes: the model says {{found}} s there")
    return found
'''

_RUST_HEAD: Final = """//! Seconds that a message takes over {name}. Written by Steelyard; needs only `std`.
//! Each function takes bytes, at least 0, and gives NaN for anything else, and where its curve says no
//! positive time. Beyond the measured sizes, which each function names, it extrapolates.

struct Piece {{
    /// Largest size it holds for; infinite for the last.
    high: f64,
    is_power: bool,
    base: f64,
    slope: f64,
}}

fn cost(pieces: &[Piece], bytes: f64) -> f64 {{
    if !(bytes >= 0.0 && bytes.is_finite()) {{
        return f64::NAN;
    }}
    let found = match pieces.iter().find(|piece| bytes <= piece.high) {{
        Some(piece) if piece.is_power => piece.base * bytes.max(1.0).powf(piece.slope),
        Some(piece) => piece.base + piece.slope * bytes,
        None => f64::NAN,
    }};
    if found > 0.0 && found.is_finite() {{
        found
    }} else {{
        f64::NAN
    }}
}}
"""

_RUST_FUNCTION: Final = """
/// {summary}
/// {measured}
#[allow(dead_code)]
pub fn {function}(bytes: f64) -> f64 {{
    const PIECES: &[Piece] = &[
{pieces}    ];
    cost(PIECES, bytes)
}}
"""


def python_source(model: CostModel) -> str:
    """Give a Python module with ``seconds(size_bytes, curve="delay")``.

    Examples
    --------
    >>> from steelyard.model.cost_model import CostModel, CostPiece
    >>> model = CostModel("tcp", "fast", {"delay": (CostPiece(-1, None, "line", 5e-6, 1e-9),)}, 1e9, 5e-6)
    >>> names = {}
    >>> exec(python_source(model), names)
    >>> names["seconds"](1000)
    6e-06
    """
    curves = "".join(
        f"    {name!r}: (\n        {_tuple(_ends(pieces))},\n        ({rows}),\n    ),\n"
        for name, pieces in sorted(model.curves.items())
        if (rows := "".join(f"{_python_row(piece)}, " for piece in pieces))
    )
    measured = "".join(
        f"    {name!r}: {_range(model, name)},\n" for name, pieces in sorted(model.curves.items()) if pieces
    )
    return _PYTHON.format(
        name=_plain_name(model), curves=curves, measured=measured, main=_MAIN, timed=_plain(model.timed)
    )


def rust_source(model: CostModel) -> str:
    """Give a Rust source file with ``seconds(bytes: f64) -> f64``, and ``CURVE_seconds`` for other curves."""
    functions = "".join(
        _RUST_FUNCTION.format(
            summary=_timed(model) if name == _MAIN else f"Seconds of the curve `{_plain(name)}`.",
            measured=_measured_text(model, name),
            function="seconds" if name == _MAIN else f"{re.sub(r'[^a-z0-9_]', '_', name.lower())}_seconds",
            pieces="".join(_rust_row(piece) for piece in pieces),
        )
        for name, pieces in sorted(model.curves.items())
    )
    return _RUST_HEAD.format(name=_plain_name(model)) + functions


def _range(model: CostModel, curve: str) -> tuple[int, int] | None:
    known = model.measured_bytes.get(curve)
    return None if known is None else (int(known[0]), int(known[1]))


def _measured_text(model: CostModel, curve: str) -> str:
    known = _range(model, curve)
    if known is None:
        return "Which sizes were measured is not known."
    return f"Measured from {known[0]} to {known[1]} bytes."


def _timed(model: CostModel) -> str:
    text = _plain(model.timed)
    return f"{text[:1].upper()}{text[1:]} [s]."


def _ends(pieces: Sequence[CostPiece]) -> list[float]:
    return [float(piece.high) for piece in pieces[:-1] if piece.high is not None]


def _tuple(values: Sequence[float]) -> str:
    return "(" + "".join(f"{value!r}, " for value in values) + ")"


def _slope(piece: CostPiece) -> float:
    return 0.0 if piece.kind == "constant" else float(piece.slope)


def _python_row(piece: CostPiece) -> str:
    return f"({piece.kind == 'power'}, {float(piece.base)!r}, {_slope(piece)!r})"


def _rust_row(piece: CostPiece) -> str:
    high = "f64::INFINITY" if piece.high is None else repr(float(piece.high))
    is_power = "true" if piece.kind == "power" else "false"
    fields = f"high: {high}, is_power: {is_power}, base: {float(piece.base)!r}, slope: {_slope(piece)!r}"
    return f"        Piece {{ {fields} }},\n"


def _plain_name(model: CostModel) -> str:
    return f"{_plain(model.transport)}, host state {_plain(model.state)}"


def _plain(text: str) -> str:
    """Keep a name from ending the comment it stands in."""
    return re.sub(r"[^A-Za-z0-9 ._+=,/-]", "_", text)
