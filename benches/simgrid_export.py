"""What SimGrid answers to an export, beside the model and beside the formula, on thousands of sizes.

Prints each figure with its goal; status 1 where one is missed. Without arguments two models with every kind
of piece are exported; with a result folder or the files of models, those.

    .venv/bin/python benches/simgrid_export.py [MODEL.json | RESULT]...
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fixtures.cost_models import MODEL
from steelyard.model.cost_model import CostModel, read_cost_model
from steelyard.studies.communication.export.recorded_models import FOLDER
from steelyard.studies.communication.export.simgrid import to_simgrid
from steelyard.studies.communication.export.simgrid_files import RENAMED, write_simgrid
from steelyard.studies.communication.simulation.message_run import simgrid_version, simulate

if TYPE_CHECKING:
    from steelyard.studies.communication.export.simgrid_model import SimGridModel

PROBE = Path(__file__).parent / "simgrid" / "half_round_trips.c"
SIZES = 3000
LARGEST = 10_000_000
GOAL_FIDELITY, GOAL_AGREEMENT, GOAL_S = 1e-3, 1e-6, 1.0
ROUND_TRIPS = 10_000


def models(places: list[str]) -> dict[str, CostModel]:
    if not places:
        return {"sample-tcp": MODEL, "sample-shm": shared_memory()}
    files = [
        file
        for place in map(Path, places)
        for file in ([place] if place.is_file() else sorted((place / FOLDER).glob("*.json")))
    ]
    return {file.stem: read_cost_model(file) for file in files}


def shared_memory() -> CostModel:
    """Scale the sample to shared memory, where half a round trip is 0.25 us and every picosecond counts."""
    from dataclasses import replace  # noqa: PLC0415 - only here

    curves = {
        name: tuple(
            replace(piece, base=piece.base / 20, slope=piece.slope / (1 if piece.kind == "power" else 20))
            for piece in pieces
        )
        for name, pieces in MODEL.curves.items()
    }
    return replace(MODEL, transport="shm", curves=curves, latency_s=2.5e-7, bandwidth_bytes_per_s=1.3e10)


def answered(simgrid: SimGridModel, sizes: np.ndarray, folder: Path) -> np.ndarray:
    """Ask SimGrid, to all digits it has: stamps of a trace would be rounded to picoseconds."""
    version = simgrid_version()
    write_simgrid(folder, simgrid, version)
    (folder / "sizes").write_text("\n".join(map(str, sizes)) + "\n", encoding="utf-8")
    subprocess.run(["smpicc", "-O2", str(PROBE), "-o", str(folder / "probe")], check=True)
    precision = "precision/timing" if version >= RENAMED else "surf/precision"
    command = ["smpirun", "-np", "2", "-platform", "platform.xml", "-hostfile", "hosts"]
    command += [f"--cfg={precision}:1e-12", "--cfg=smpi/simulate-computation:no"]
    command += ["--log=root.thres:critical", "./probe", "sizes"]
    said = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    return np.array([line.split() for line in said.splitlines()], dtype=float)


def main() -> int:
    generator = np.random.default_rng(8)
    misses = 0
    for name, model in models(sys.argv[1:]).items():
        for profile in ("rtt", "os") if "send" in model.curves else ("rtt",):
            simgrid = to_simgrid(model, profile)
            edges = [factor.above - 16 for factor in simgrid.latency_factors]
            near = [size for edge in edges for size in (edge, edge + 1) if 0 <= size <= LARGEST]
            drawn = np.floor(10 ** generator.uniform(0, np.log10(LARGEST), SIZES)).astype(int)
            sizes = np.unique([0, *near, *drawn])
            with tempfile.TemporaryDirectory(prefix="steelyard-bench-") as folder:
                half, send = answered(simgrid, sizes, Path(folder)).T
            outlasted = [note for note in simgrid.notes if note.reason == "send-above-delay"]
            compared = ~np.any([(sizes >= n.low) & (sizes <= n.high) for n in outlasted], axis=0)
            truth = np.array([model.predict(int(size)) for size in sizes])
            fidelity = float(np.max(np.abs(half / truth - 1)[np.broadcast_to(compared, sizes.shape)]))
            agreement = float(np.max(np.abs(half / simgrid.half_round_trips(sizes) - 1)))
            sends = float(np.max(np.abs(send - simgrid.send_durations(sizes)) / half))
            misses += (fidelity > GOAL_FIDELITY) + (max(agreement, sends) > GOAL_AGREEMENT)
            print(f"{name}, profile {profile}: {len(sizes)} sizes, {len(edges)} sections")
            print(f"  SimGrid beside the model    {fidelity:8.4%}   goal <= {GOAL_FIDELITY:.1%}")
            print(f"  SimGrid beside the formula  {agreement:8.1e}   goal <= {GOAL_AGREEMENT:.0e}")
            print(f"  the same for sends          {sends:8.1e}   goal <= {GOAL_AGREEMENT:.0e}")
    begin, before = time.monotonic(), os.times()
    simulate(to_simgrid(MODEL), np.floor(10 ** generator.uniform(0, 7, ROUND_TRIPS)).astype(int))
    spent, after = time.monotonic() - begin, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"{ROUND_TRIPS} round trips, compiler included: {spent:.2f} s, of them {cpu:.2f} s of a CPU")
    print(f"  goal about {GOAL_S:g} s on an idle machine")
    return int(misses > 0)


if __name__ == "__main__":
    raise SystemExit(main())
