"""What recording every call costs, beside what each framework's probe costs: ns per call, with intervals.

Launches of all configurations of E2 are interleaved in random order, block by block. Our own cost is the
time of a call in a loop that records each, less that in a loop that is only timed as a whole; a probe's is
the time in a loop that records each call of the probed method, less that of the same loop without a probe.
Differences are taken within blocks; printed is their median with the interval between two order statistics
that holds it in 95 % of cases or more. Exit status 1: the own interval is not below that of every framework
of its language.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy import stats

from steelyard.studies.replication.experiment_record import FORMAT
from steelyard.studies.replication.experiments.call_program import CONFIGURATIONS
from steelyard.studies.replication.experiments.conduct import conduct

LEVEL = 0.95
PYTHON = "python"
FEWEST = 6


def time_per_call(configuration: str, calls: int) -> float:
    """Run one launch, and give the mean time of its measured calls [ns]."""
    parameters = {"calls": calls, "warm_up_calls": calls // 2, "depth": 10, "method_ns": 0}
    asked = {
        "format": FORMAT,
        "experiment": "e2",
        "configuration": {"name": configuration, "parameters": parameters},
        "setting": {"name": "native", "roles": {"app": {"device": "here", "storage": "memory"}}},
        "devices": {"here": {"kind": "local", "storages": {"memory": "memory"}}},
        "block": 1,
        "seed": 1,
    }
    with tempfile.TemporaryDirectory(prefix="steelyard-bench-") as name:
        folder = Path(name)
        (folder / "experiment.json").write_text(json.dumps(asked), encoding="utf-8")
        conduct(folder)
        header = json.loads((folder / "header.json").read_text(encoding="utf-8"))
    return header["measured_ns"] / (header["calls"] - header["warm_up_calls"])


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Give the median and its interval (David and Nagaraja, Order Statistics, 3rd edition, section 7.1)."""
    ordered = np.sort(values)
    rank = int(stats.binom.ppf((1 - LEVEL) / 2, len(ordered), 0.5))
    return float(np.median(ordered)), float(ordered[rank - 1]), float(ordered[-rank])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument(
        "--calls", type=int, default=400_000, help="of a launch; a tenth in Python and of writing probes"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.blocks < FEWEST:
        parser.error(f"--blocks {options.blocks}; allowed: {FEWEST} or more, or there is no interval")
    generator = np.random.default_rng(options.seed)
    times = {name: np.zeros(options.blocks) for name in CONFIGURATIONS}
    for block in range(options.blocks):
        for index in generator.permutation(len(CONFIGURATIONS)):
            name = CONFIGURATIONS[index]
            is_slow = PYTHON in name or name.endswith("writing")
            calls = options.calls // 10 if is_slow else options.calls
            times[name][block] = time_per_call(name, calls)
        print(f"\r{block + 1}/{options.blocks} blocks", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)

    failed = False
    for language, prefix in (("Java", ""), ("Python", "python-")):
        bare, recorded = times[f"{prefix}none-unrecorded"], times[f"{prefix}none-baseline"]
        own = interval(recorded - bare)
        print(f"\n{language}: cost of a call of depth 10 [ns], median and {LEVEL:.0%} interval")
        print(f"  {'our own recording':32} {own[0]:12.1f}  [{own[1]:.1f}; {own[2]:.1f}]")
        probes = [each for each in CONFIGURATIONS if (PYTHON in each) is bool(prefix) and "none" not in each]
        for name in probes:
            cost = interval(times[name] - recorded)
            ratio = cost[0] / own[0]
            print(f"  {name:32} {cost[0]:12.1f}  [{cost[1]:.1f}; {cost[2]:.1f}]  {ratio:8.1f} x ours")
            failed |= not own[2] < cost[1]
    print("\n" + ("NOT below every framework's" if failed else "below every framework's"))
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
