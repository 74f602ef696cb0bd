"""What is planted into real messages is found: a switch of the protocol, and a heavy-tailed noise."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from steelyard.run.programs import comm_program
from steelyard.studies.communication.model.fit import model_of
from steelyard.studies.communication.sizes import SizeLaw, SizePlan, draw_operations
from steelyard.studies.communication.trace import read_trace

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.studies.communication.trace import Trace

pytestmark = pytest.mark.timing
PLAN = SizePlan(SizeLaw.LOG_UNIFORM, 1, 1_000_000, 3000, {"pingpong": 1})


def _measure(folder: Path, *planted: str) -> list[Trace]:
    traces = []
    for replication in range(2):
        place = folder / str(replication)
        place.mkdir()
        (place / "plan.csv").write_text(draw_operations(PLAN, 1, replication).csv())
        command = [str(comm_program()), "--transport", "unix", "--plan", str(place / "plan.csv")]
        subprocess.run([*command, "--out", str(place / "trace"), *planted], check=True, timeout=60)
        traces.append(read_trace(place / "trace"))
    return traces


@pytest.mark.long("sends 3000 messages of many sizes, twice")
def test_a_planted_switch_is_found_within_two_percent(tmp_path: Path) -> None:
    model, _ = model_of(_measure(tmp_path, "--plant-switch", "65000:400000"))
    switches = [each.at for each in model.boundaries if each.kind == "protocol"]
    assert any(at == pytest.approx(65_000, rel=0.02) for at in switches), switches


@pytest.mark.slow
def test_a_planted_heavy_tail_is_named(tmp_path: Path) -> None:
    model, _ = model_of(_measure(tmp_path, "--plant-noise", "lognormal:sigma=1.2,scale_ns=1000000"))
    assert "lognormal" in model.noise[0].law, model.noise[0].law
    # Twice as long as the median or more: what a normal law of the same middle has in 1 of 10^4.
    quantiles = model.noise[0].quantiles
    assert quantiles[round(0.95 * (len(quantiles) - 1))] > 4
