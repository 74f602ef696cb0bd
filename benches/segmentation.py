"""Piecewise models: Steelyard beside ruptures, pwlf and R's segmented, interleaved in one program.

The data are message times with two jumps, skewed noise and rare spikes. Steelyard is told nothing; the peers
are told that there are two breaks, and get weighted rows or logarithms, without which they find neither.
The peers are installed by `uv run --with` for this program alone; R's package is asked only where it is
installed, and times itself, so that its start does not count. pwlf and segmented know continuous models only.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from steelyard import _native
from steelyard.analyse.cost_curve.segments import SegmentOptions

PEERS = ("ruptures==1.1.10", "pwlf==2.5.2")
TRUTH = (3000.0, 65_000.0)
ROUNDS = 5
OPTIONS = SegmentOptions(floor=0.0)
PEERS_UP_TO = 100_000
CAP_S = 60
"""A peer that has used so much CPU time at one size is asked no further there."""

R_PROGRAM = """
suppressMessages(library(segmented))
d <- read.csv("{file}")
set.seed(1)
line <- lm(y ~ x, data = d)
begin <- proc.time()
fit <- try(segmented(line, seg.Z = ~x, npsi = 2), silent = TRUE)
used <- proc.time() - begin
places <- if (inherits(fit, "try-error") || is.null(fit$psi)) numeric(0) else fit$psi[, "Est."]
cat(sum(used[c("user.self", "sys.self")]), 10^places, "\n")
"""


def messages(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    size = np.sort(np.round(10 ** generator.uniform(0, 7, count)))
    level = np.where(
        size < TRUTH[0],
        5e-6,
        np.where(size < TRUTH[1], 4.2e-6 + 1.112e-9 * size, 415.5e-6 + 8.497e-9 * size),
    )
    spikes = np.where(generator.random(count) < 0.01, 1e-4 * generator.random(count) ** (-1 / 1.5), 0)
    return size, level * (1 + generator.lognormal(np.log(0.05), 1.0, count)) + spikes


def ours(x: np.ndarray, y: np.ndarray) -> list[float]:
    found = _native.fit_segments(x, y, OPTIONS)
    if found["cost"] - found["bound"] > 1e-9 * found["cost"]:
        print(f"not proven: gap {found['cost'] - found['bound']:.3g}")
    return [piece[1] for piece in found["pieces"][1:]]


def ruptures_bottom_up(x: np.ndarray, y: np.ndarray) -> list[float]:
    import ruptures  # noqa: PLC0415 - not there in every environment

    weight = 1.0 / y
    signal = np.column_stack([y * weight, x * weight, weight])
    places = ruptures.BottomUp(model="linear", jump=5, min_size=5).fit(signal).predict(n_bkps=2)
    return [float(x[place]) for place in places[:-1]]


def pwlf_fast(x: np.ndarray, y: np.ndarray) -> list[float]:
    import pwlf  # noqa: PLC0415 - not there in every environment

    model = pwlf.PiecewiseLinFit(np.log10(x), np.log10(y), seed=1)
    return [float(10**place) for place in model.fitfast(3, pop=3)[1:-1]]


def r_segmented(x: np.ndarray, y: np.ndarray) -> tuple[list[float], float]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.csv"
        np.savetxt(file, np.log10(np.column_stack([x, y])), delimiter=",", header="x,y", comments="")
        program = R_PROGRAM.replace("{file}", str(file))
        answer = subprocess.run(["Rscript", "-e", program], check=True, capture_output=True, text=True)
    seconds, *places = (float(word) for word in answer.stdout.split())
    return places, seconds


def has_segmented() -> bool:
    if shutil.which("Rscript") is None:
        return False
    found = subprocess.run(["Rscript", "-e", "library(segmented)"], check=False, capture_output=True)
    return found.returncode == 0


def worst(found: list[float]) -> float:
    return max(min(abs(place / truth - 1) for place in found) if found else np.inf for truth in TRUTH)


def timed(work: object) -> object:
    """Add the CPU time of this process to what a function finds."""

    def ask(x: np.ndarray, y: np.ndarray) -> tuple[list[float], float]:
        begin = time.process_time()
        found = work(x, y)
        return found, time.process_time() - begin

    return ask


def peers() -> dict[str, object]:
    offered = {"ruptures": ruptures_bottom_up, "pwlf": pwlf_fast}
    return {name: timed(work) for name, work in offered.items() if importlib.util.find_spec(name) is not None}


def measure(count: int, contestants: dict[str, object]) -> None:
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    errors: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(ROUNDS):
        x, y = messages(count, number)
        for name, work in contestants.items():
            if sum(taken[name]) > CAP_S:
                continue
            found, seconds = work(x, y)
            taken[name].append(seconds)
            errors[name].append(worst(found))
    own = taken["steelyard"]
    for name in contestants:
        # A capped peer has fewer rounds; ratios are those of the rounds it took part in.
        ratio = statistics.median(other / mine for other, mine in zip(taken[name], own, strict=False))
        rounds = "" if len(taken[name]) == ROUNDS else f"  ({len(taken[name])} of {ROUNDS} rounds)"
        print(
            f"{count:>9} points  {name:<10} {statistics.median(taken[name]) * 1000:>10.2f} ms  "
            f"{ratio:>8.1f} x  worst break off by {statistics.median(errors[name]):.2%}{rounds}"
        )


def with_peers() -> None:
    """Start this program again with the peers at hand; without them it measures Steelyard alone."""
    uv = shutil.which("uv") or str(Path(".tools/bin/uv"))
    if peers() or "--alone" in sys.argv or not Path(uv).exists():
        return
    words = [uv, "run", "--no-sync", "--quiet"]
    for peer in PEERS:
        words += ["--with", peer]
    os.execv(uv, [*words, "python", __file__, "--alone"])


def main() -> None:
    with_peers()
    print("\npiecewise models, CPU time, ratio to Steelyard (median of rounds)")
    others = peers()
    if has_segmented():
        others["segmented"] = r_segmented
    for name in ("ruptures", "pwlf", "segmented"):
        if name not in others:
            print(f"{name}: not installed")
    for count in (1000, 10_000, 100_000, 1_000_000):
        measure(count, {"steelyard": timed(ours), **(others if count <= PEERS_UP_TO else {})})


if __name__ == "__main__":
    main()
