"""Cost models to export: one like a measured one, and any that hypothesis can think of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.model.cost_model import CostModel, CostPiece, NoiseClass, PieceName, read_cost_model

if TYPE_CHECKING:
    from pathlib import Path

PROBABILITIES = np.linspace(0, 1, 101)

SENDS = (
    CostPiece(-1, 2000, "line", 1e-6, 1e-10),
    CostPiece(2000, 65480, "power", 4e-9, 0.8),
    CostPiece(65480, None, "line", 1e-6, 1.5e-10),
)
MODEL = CostModel(
    "tcp",
    "fast",
    {
        "delay": (
            CostPiece(-1, 1194, "line", 5.67e-6, 0.22e-9),
            CostPiece(1194, 29920, "power", 1e-6, 0.4),
            CostPiece(29920, 65557.5, "line", 4.8e-5, 0.18e-9),
            CostPiece(65557.5, 130727, "constant", 5.9e-5, 0),
            CostPiece(130727, 1_000_000, "line", -1e-5, 0.6e-9),
            CostPiece(1_000_000, None, "line", 0.0, 0.58e-9),
        ),
        "send": SENDS,
        "isend": (CostPiece(-1, None, "constant", 4e-7, 0),),
    },
    bandwidth_bytes_per_s=5771147662.0,
    latency_s=5.64e-6,
    asynchronous_bytes=65480,
    detached_bytes=65480,
    measured_bytes={"delay": (1, 10_000_000), "send": (1, 10_000_000), "isend": (0, 4096)},
)
"""Every kind of piece; one is to be re-anchored."""


def with_noise(model: CostModel, *, seed: int = 7) -> CostModel:
    """Give it skewed noise in two classes of size."""
    generator = np.random.default_rng(seed)
    wide, narrow = (np.quantile(generator.lognormal(0, s, 4000), PROBABILITIES) for s in (0.4, 0.1))
    classes = (
        NoiseClass(-1, 1000, tuple(map(float, wide)), None, "log-normal"),
        NoiseClass(1000, None, tuple(map(float, narrow)), None, "log-normal"),
    )
    return replace(model, noise=classes)


@st.composite
def cost_models(draw: st.DrawFn) -> CostModel:
    """Draw models of 1 to 5 pieces, continuous or not, rising, falling, or without a latency."""
    ends = sorted(draw(st.sets(st.integers(1, 10_000_000), max_size=4)))
    curves = {name: _curve(draw, ends) for name in ("delay", "send")}
    return CostModel(
        "any",
        "state",
        curves,
        bandwidth_bytes_per_s=draw(st.floats(1e6, 1e11)),
        latency_s=draw(st.floats(1e-8, 1e-3)),
        detached_bytes=draw(st.integers(0, 20_000_000)),
    )


def _curve(draw: st.DrawFn, ends: list[int]) -> tuple[CostPiece, ...]:
    pieces = []
    for low, high in zip([-1, *ends], [*ends, None], strict=True):
        kind: PieceName = draw(st.sampled_from(["constant", "line", "power"]))
        level = draw(st.floats(1e-7, 1e-4))
        if kind == "power":
            pieces.append(CostPiece(low, high, "power", level, draw(st.floats(0.05, 1.2))))
        elif kind == "line" and high is not None and draw(st.booleans()):
            # Falls to a part of its begin at its end.
            slope = -level * draw(st.floats(0.01, 0.9)) / (high + 1)
            pieces.append(CostPiece(low, high, "line", level, slope))
        else:
            slope = draw(st.floats(1e-12, 1e-8)) if kind == "line" else 0.0
            # Its intercept may be negative as long as it is a duration where it holds.
            down = draw(st.floats(0, 0.9)) * slope * (low + 1) if kind == "line" else 0.0
            pieces.append(CostPiece(low, high, kind, level - down, slope))
    return tuple(pieces)


@settings(max_examples=20, deadline=None)
@given(cost_models())
def test_drawn_models_say_durations_at_the_ends_of_their_pieces(model: CostModel) -> None:
    for name, pieces in model.curves.items():
        sizes = [size for piece in pieces for size in (piece.low + 1, piece.high or 1e9)]
        assert all(model.predict(size, curve=name) > 0 for size in sizes)


def test_the_json_document_is_read_back_as_the_same_model(tmp_path: Path) -> None:
    path = tmp_path / "tcp-fast.json"
    path.write_text(with_noise(MODEL).to_json(), encoding="utf-8")
    assert read_cost_model(path) == with_noise(MODEL)
