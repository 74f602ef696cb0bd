"""Does the communication study find what is there: a protocol switch, and a heavy-tailed noise?

`steelyard-comm` plants both in real messages: above a size each one costs more, and each round trip takes
longer by a time drawn from a law. Printed: where the model sees the switch, and what it says of the noise.
Exits with 1 if the switch is not found within 2 %, or the smallest messages are not said to have the planted
law. (Larger ones cost more by themselves, so that measured over the model has another law.)

Options: ``--transport NAME`` (default unix), ``--replications N`` (default 3), ``--operations N``
(default 6000).
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from peers import PROGRAMS

from steelyard.studies.communication.model.fit import model_of
from steelyard.studies.communication.sizes import SizeLaw, SizePlan, draw_operations
from steelyard.studies.communication.trace import read_trace

if TYPE_CHECKING:
    from steelyard.model.cost_model import CostModel
    from steelyard.studies.communication.trace import Trace

SWITCH_BYTES = 65_000
SWITCH_NS = 40_000
NEAR = 0.02
NOISE_NS = 400_000
ALPHA = 2.2


def measure(options: argparse.Namespace, *planted: str) -> list[Trace]:
    traces = []
    plan = SizePlan(SizeLaw.LOG_UNIFORM, 1, 1_000_000, options.operations, {"pingpong": 1})
    for replication in range(options.replications):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            (place / "plan.csv").write_text(draw_operations(plan, 1, replication).csv())
            command = [PROGRAMS / "steelyard-comm", "--transport", options.transport]
            command += ["--plan", place / "plan.csv", "--out", place / "trace"]
            seed = ("--plant-seed", str(replication + 1)) if "--plant-noise" in planted else ()
            subprocess.run([*command, *planted, *seed], check=True)
            traces.append(read_trace(place / "trace"))
    return traces


def switches(model: CostModel) -> list[float]:
    return [each.at for each in model.boundaries if each.kind == "protocol"]


def report(claim: str, seen: str, *, is_met: bool) -> bool:
    print(f" {'ok  ' if is_met else 'MISS'} {claim:60} {seen}")
    return is_met


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--transport", default="unix")
    parser.add_argument("--replications", type=int, default=3)
    parser.add_argument("--operations", type=int, default=6000)
    options = parser.parse_args()
    model, _ = model_of(measure(options, "--plant-switch", f"{SWITCH_BYTES}:{SWITCH_NS}"))
    found = [at for at in switches(model) if abs(at / SWITCH_BYTES - 1) < NEAR]
    seen = ", ".join(f"{at:.0f} B" for at in switches(model)) or "none"
    met = [report(f"switch planted at {SWITCH_BYTES} B, within 2 %", seen, is_met=len(found) == 1)]
    planted = {
        f"lognormal:sigma=1.2,scale_ns={NOISE_NS}": ("lognormal (",),
        f"pareto:alpha={ALPHA},scale_ns={NOISE_NS}": ("pareto (", "heavy Pareto tail"),
    }
    for law, names in planted.items():
        model, _ = model_of(measure(options, "--plant-noise", law))
        said = model.noise[0].law
        met.append(report(f"noise planted: {law}", said, is_met=any(name in said for name in names)))
    raise SystemExit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
