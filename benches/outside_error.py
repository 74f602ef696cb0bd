"""Outside-versus-own error of Steelyard and its peers, interleaved in one process.

Every contestant runs the calibration program, which knows its own time from its first to its
last instruction; the error is what the contestant adds. Figures are printed in ms and as ratios
to Steelyard's sandbox; quote the ratios.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

import numpy as np
from peers import PEERS, PROGRAMS, Execution, Peer

NS_PER_MS = 1e6
TRUTH = str(PROGRAMS / "steelyard-truth")


def calibrated_iterations(ms: int) -> str:
    answer = subprocess.run([TRUTH, "--calibrate", str(ms)], check=True, capture_output=True, text=True)
    return answer.stdout.split()[-1]


def errors(executions: list[Execution], clock: str) -> list[float] | None:
    pairs = [(getattr(each.outside, clock), getattr(each.own, clock)) for each in executions]
    if any(outside is None for outside, _ in pairs):
        return None
    return [(outside - own) / NS_PER_MS for outside, own in pairs]


def row(name: str, values: list[float] | None, reference: float) -> str:
    if values is None:
        return f"{name:26} {'not measured':>14}"
    mean, sd = statistics.fmean(values), statistics.stdev(values)
    p95 = float(np.quantile(np.abs(values), 0.95))
    ratio = statistics.fmean(abs(value) for value in values) / reference
    return f"{name:26} {mean:+10.3f} {sd:9.3f} {statistics.median(values):+10.3f} {p95:9.3f} {ratio:9.1f}"


def table(title: str, results: dict[str, list[Execution]], clock: str) -> None:
    print(f"\n{title}\n{'':26} {'mean':>10} {'sd':>9} {'median':>10} {'p95 |e|':>9} {'ratio':>9}")
    first = errors(next(iter(results.values())), clock) or [1.0]
    reference = statistics.fmean(abs(value) for value in first)
    for name, executions in results.items():
        print(row(name, errors(executions, clock), reference))


def interleave(peers: list[Peer], command: list[str], rounds: int, seed: int) -> dict[str, list[Execution]]:
    generator = np.random.default_rng(seed)
    results: dict[str, list[Execution]] = {peer.name: [] for peer in peers}
    for number in range(rounds):
        for index in generator.permutation(len(peers)):
            results[peers[index].name].append(peers[index].execute(command))
        print(f"\r{number + 1}/{rounds} rounds", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--ms", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    peers = [peer for kind in PEERS if (peer := kind()).available()]
    absent = sorted({kind.name for kind in PEERS} - {peer.name for peer in peers})
    print(f"absent here: {', '.join(absent) or 'none'}")
    command = [TRUTH, "--iterations", calibrated_iterations(options.ms), "--metrics-stdout"]
    try:
        interleave(peers, command, 1, options.seed)  # fills caches and starts what is started once
        results = interleave(peers, command, options.rounds, options.seed)
        empty = interleave(
            peers, [TRUTH, "--iterations", "1", "--metrics-stdout"], options.rounds, options.seed + 1
        )
    finally:
        for peer in peers:
            peer.close()
    table(f"wall error on {options.ms} ms [ms], n = {options.rounds}", results, "wall")
    table(f"CPU error on {options.ms} ms [ms], n = {options.rounds}", results, "cpu")
    table("wall error on an empty program [ms]", empty, "wall")


if __name__ == "__main__":
    main()
