"""Resampling: the native kernels beside their peers, interleaved in one process.

Groups of 1000 skewed values, 10 000 resamples. The native kernel gives percentile, basic, BCa and studentised
intervals of mean, sd and cv together; the peers give percentile limits of mean and sd. A slow peer works on
fewer groups in each round; all figures are CPU seconds for 200 groups, and ratios are the peer's over ours in
the same round. R is asked only where `Rscript` and its package `boot` are installed, `arch` likewise.
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

from steelyard import _native

if TYPE_CHECKING:
    from collections.abc import Callable

GROUPS = 200
VALUES = 1000
RESAMPLES = 10_000
PART = 500
ROUNDS = 3
LEVEL = 0.95
TAILS = [0.025, 0.975]
QUANTILES = [0.5, 0.95, 0.99, 0.25, 0.75]
R_PROGRAM = """
library(boot)
x <- scan("{path}", quiet = TRUE)
begin <- proc.time()
b <- boot(x, function(d, i) {{ v <- d[i]; c(mean(v), sd(v)) }}, R = {resamples})
for (k in 1:2) boot.ci(b, type = "perc", index = k)
spent <- proc.time() - begin
cat(spent[1] + spent[2])
"""


@dataclass(frozen=True)
class Contestant:
    """One way to do the work; `groups` says on how many it is timed."""

    name: str
    groups: int
    work: Callable[[list[np.ndarray], int], float | None]


def sd(values: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.std(values, axis=axis, ddof=1)


def iqr(values: np.ndarray, axis: int = -1) -> np.ndarray:
    low, high = np.quantile(values, [0.25, 0.75], axis=axis)
    return high - low


def p95(values: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.quantile(values, 0.95, axis=axis)


def p99(values: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.quantile(values, 0.99, axis=axis)


def our_moments(groups: list[np.ndarray], seed: int) -> None:
    lengths = np.full(len(groups), VALUES)
    _native.moment_bootstrap(
        np.concatenate(groups), lengths, resamples=RESAMPLES, level=LEVEL, seed=seed, cell=0
    )


def numpys_moments(groups: list[np.ndarray], seed: int) -> None:
    """In parts that fit the cache, which numpy does fastest."""
    generator = np.random.default_rng(seed)
    for values in groups:
        found = [
            (drawn.mean(axis=1), sd(drawn, axis=1))
            for drawn in (
                values[generator.integers(0, VALUES, (500, VALUES))] for _ in range(RESAMPLES // 500)
            )
        ]
        np.quantile(np.concatenate(found, axis=1), TAILS, axis=1)


def scipys(functions: list[Callable[..., np.ndarray]]) -> Callable[[list[np.ndarray], int], None]:
    def work(groups: list[np.ndarray], seed: int) -> None:
        for values in groups:
            for function in functions:
                stats.bootstrap(
                    (values,), function, n_resamples=RESAMPLES, method="percentile", batch=100, rng=seed
                )

    return work


def archs_moments(groups: list[np.ndarray], seed: int) -> None:
    from arch.bootstrap import IIDBootstrap  # noqa: PLC0415 - measured only where installed

    for values in groups:
        drawn = IIDBootstrap(values, seed=seed)
        drawn.conf_int(lambda x: np.array([x.mean(), x.std(ddof=1)]), RESAMPLES, method="percentile")


def rs_moments(groups: list[np.ndarray], seed: int) -> float:
    del seed
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        np.savetxt(file, groups[0])
        file.flush()
        program = R_PROGRAM.format(path=file.name, resamples=RESAMPLES)
        answer = subprocess.run(["Rscript", "-e", program], check=True, capture_output=True, text=True)
    return float(answer.stdout)


def our_quantiles(groups: list[np.ndarray], seed: int) -> None:
    for cell, values in enumerate(groups):
        _native.quantile_bootstrap(
            values, QUANTILES, [(3, 4)], resamples=RESAMPLES, level=LEVEL, seed=seed, cell=cell
        )


def pairs(groups: list[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(values, np.roll(groups[place - 1], 1) * 1.01) for place, values in enumerate(groups)]


def our_permutations(groups: list[np.ndarray], seed: int) -> None:
    for cell, (first, second) in enumerate(pairs(groups)):
        _native.permutation_test(first, second, resamples=RESAMPLES, seed=seed, cell=cell)


def scipys_permutations(groups: list[np.ndarray], seed: int) -> None:
    """Of the plain difference of means, which is less work than a studentised one."""

    def difference(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.mean(x, axis=axis) - np.mean(y, axis=axis)

    for pair in pairs(groups):
        stats.permutation_test(
            pair,
            difference,
            n_resamples=RESAMPLES,
            vectorized=True,
            batch=100,
            rng=np.random.default_rng(seed),
        )


def cpu_seconds() -> float:
    return sum(
        part.ru_utime + part.ru_stime
        for part in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


def measure(contestant: Contestant, groups: list[np.ndarray], seed: int) -> tuple[float, float]:
    """CPU and wall seconds for all groups."""
    part = groups[: contestant.groups]
    wall, begin = time.monotonic(), cpu_seconds()
    own = contestant.work(part, seed)
    scale = len(groups) / len(part)
    return (cpu_seconds() - begin if own is None else own) * scale, (time.monotonic() - wall) * scale


def compare(title: str, contestants: list[Contestant], groups: list[np.ndarray]) -> None:
    spent: dict[str, list[tuple[float, float]]] = {each.name: [] for each in contestants}
    for number in range(ROUNDS):
        for each in contestants:
            spent[each.name].append(measure(each, groups, number))
    ours = spent[contestants[0].name]
    print(
        f"\n{title}, {GROUPS} groups x {VALUES} values x {RESAMPLES} resamples, {ROUNDS} interleaved rounds"
    )
    print(f"  {'':34} {'CPU s':>9} {'wall s':>9} {f'CPU / ours, {ROUNDS} rounds':>24}")
    for each in contestants:
        rounds = spent[each.name]
        ratios = [theirs[0] / own[0] for theirs, own in zip(rounds, ours, strict=True)]
        cpu, wall = (statistics.median(column) for column in zip(*rounds, strict=True))
        spread = f"{statistics.median(ratios):.1f} ({min(ratios):.1f}-{max(ratios):.1f})"
        print(f"  {each.name:34} {cpu:9.2f} {wall:9.2f} {spread:>24}")


def has_r() -> bool:
    if shutil.which("Rscript") is None:
        return False
    found = subprocess.run(["Rscript", "-e", "library(boot)"], check=False, capture_output=True)
    return found.returncode == 0


def main() -> None:
    generator = np.random.default_rng(1)
    groups = [1 + generator.lognormal(0, 0.5, VALUES) for _ in range(GROUPS)]
    moments = [
        Contestant("native: 4 kinds of mean, sd, cv", GROUPS, our_moments),
        Contestant("numpy, percentile", 10, numpys_moments),
        Contestant("scipy, percentile", 5, scipys([np.mean, sd])),
    ]
    if importlib.util.find_spec("arch"):
        importlib.import_module("arch.bootstrap")  # not in the first round's time
        moments.append(Contestant("arch, percentile", 2, archs_moments))
    if has_r():
        moments.append(Contestant("R boot, percentile", 1, rs_moments))
    compare("bootstrap of mean and sd", moments, groups)
    quantiles = [
        Contestant("native: median, p95, p99, iqr", GROUPS, our_quantiles),
        Contestant("scipy, percentile", 1, scipys([np.median, p95, p99, iqr])),
    ]
    compare("bootstrap of median, p95, p99 and iqr", quantiles, groups)
    permutations = [
        Contestant("native, studentised", GROUPS, our_permutations),
        Contestant("scipy, difference of means", 2, scipys_permutations),
    ]
    compare("permutation test of pairs", permutations, groups)


if __name__ == "__main__":
    main()
