"""Linear models: the summary of a million points beside its peers, interleaved in one process.

The native model gives everything R's summary of `lm` says, HC3 errors and the residual quartiles; with
clusters also cluster-robust errors. scipy gives slope, intercept, their classical errors and one p-value,
statsmodels a summary with HC3 errors, R its summary. CPU and wall milliseconds, and ratios of the peer's
over ours in the same round. statsmodels is asked only where it is installed, R where `Rscript` is.
"""

from __future__ import annotations

import importlib
import importlib.util
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from steelyard.analyse.linear.model import linear_model

if TYPE_CHECKING:
    from collections.abc import Callable

POINTS = 1_000_000
CLUSTERS = 1000
ROUNDS = 7
R_PROGRAM = """
at <- file("{path}", "rb")
x <- readBin(at, "double", {points})
y <- readBin(at, "double", {points})
begin <- proc.time()
invisible(capture.output(print(summary(lm(y ~ x)))))
spent <- proc.time() - begin
cat(spent[1] + spent[2], spent[3])
"""


@dataclass(frozen=True)
class Contestant:
    """One way to do the work; it may say itself what it took, in CPU and wall seconds."""

    name: str
    work: Callable[[np.ndarray, np.ndarray], tuple[float, float] | None]


def ours(x: np.ndarray, y: np.ndarray) -> None:
    linear_model(x, y).summary()


def ours_by_cluster(labels: np.ndarray) -> Callable[[np.ndarray, np.ndarray], None]:
    return lambda x, y: linear_model(x, y, clusters=labels).summary() and None


def scipys(x: np.ndarray, y: np.ndarray) -> None:
    stats.linregress(x, y)


def statsmodels(x: np.ndarray, y: np.ndarray) -> None:
    api = importlib.import_module("statsmodels.api")
    api.OLS(y, api.add_constant(x)).fit(cov_type="HC3").summary()


def rs(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(x.tobytes() + y.tobytes())
        file.flush()
        program = R_PROGRAM.format(path=file.name, points=x.size)
        answer = subprocess.run(["Rscript", "-e", program], check=True, capture_output=True, text=True)
    cpu, wall = answer.stdout.split()
    return float(cpu), float(wall)


def measure(contestant: Contestant, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """CPU and wall milliseconds."""
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    own = contestant.work(x, y)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    cpu, wall = own or (cpu, wall)
    return cpu * 1000, wall * 1000


def main() -> None:
    generator = np.random.default_rng(1)
    x = generator.uniform(0, 100, POINTS)
    y = 3 + 2 * x + generator.normal(0, 1, POINTS)
    labels = np.arange(POINTS) // (POINTS // CLUSTERS)
    contestants = [
        Contestant("native: summary, HC3", ours),
        Contestant(f"native, {CLUSTERS} clusters too", ours_by_cluster(labels)),
        Contestant("scipy linregress", scipys),
    ]
    if importlib.util.find_spec("statsmodels"):
        importlib.import_module("statsmodels.api")  # not in the first round's time
        contestants.append(Contestant("statsmodels OLS, HC3", statsmodels))
    if shutil.which("Rscript"):
        contestants.append(Contestant("R summary(lm)", rs))
    spent: dict[str, list[tuple[float, float]]] = {each.name: [] for each in contestants}
    for _ in range(ROUNDS):
        for each in contestants:
            spent[each.name].append(measure(each, x, y))
    own = spent[contestants[0].name]
    print(f"\nlinear model of {POINTS} points, {ROUNDS} interleaved rounds")
    print(f"  {'':30} {'CPU ms':>9} {'wall ms':>9} {'fastest':>9} {'wall / ours':>24}")
    for each in contestants:
        rounds = spent[each.name]
        ratios = [theirs[1] / first[1] for theirs, first in zip(rounds, own, strict=True)]
        cpu, wall = (statistics.median(column) for column in zip(*rounds, strict=True))
        fastest = min(wall for _, wall in rounds)
        spread = f"{statistics.median(ratios):.1f} ({min(ratios):.1f}-{max(ratios):.1f})"
        print(f"  {each.name:30} {cpu:9.1f} {wall:9.1f} {fastest:9.1f} {spread:>24}")


if __name__ == "__main__":
    main()
