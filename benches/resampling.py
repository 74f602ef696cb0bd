"""Bootstrap intervals of mean and sd: the native kernel beside numpy, interleaved in one process.

The native kernel gives percentile, basic, BCa and studentised intervals of mean, sd and cv together;
numpy gives percentile limits of mean and sd. The ratio is numpy's time over ours for the same groups.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

from steelyard import _native

GROUPS = 10
VALUES = 1000
RESAMPLES = 10_000
ROUNDS = 5
LEVEL = 0.95


def ours(groups: list[np.ndarray], seed: int) -> None:
    lengths = np.full(len(groups), VALUES)
    _native.moment_bootstrap(
        np.concatenate(groups), lengths, resamples=RESAMPLES, level=LEVEL, seed=seed, cell=0
    )


def numpys(groups: list[np.ndarray], seed: int) -> None:
    generator = np.random.default_rng(seed)
    for values in groups:
        drawn = values[generator.integers(0, VALUES, (RESAMPLES, VALUES))]
        np.quantile(drawn.mean(axis=1), [0.025, 0.975])
        np.quantile(drawn.std(axis=1, ddof=1), [0.025, 0.975])


def seconds(work: object, groups: list[np.ndarray], seed: int) -> float:
    begin = time.process_time()
    work(groups, seed)
    return time.process_time() - begin


def main() -> None:
    generator = np.random.default_rng(1)
    groups = [1 + generator.lognormal(0, 0.5, VALUES) for _ in range(GROUPS)]
    ratios = []
    for number in range(ROUNDS):
        pair = [seconds(work, groups, number) for work in (ours, numpys)]
        ratios.append(pair[1] / pair[0])
    print(f"\nbootstrap of {GROUPS} groups x {RESAMPLES} resamples x {VALUES} values, CPU time")
    print(f"numpy / native, median of {ROUNDS} rounds: {statistics.median(ratios):.1f}")
    print(f"least {min(ratios):.1f}, most {max(ratios):.1f}")


if __name__ == "__main__":
    main()
