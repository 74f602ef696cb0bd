"""Does a comparison find a planted slowdown, and does it stay silent where there is none?

One program, whose work is set by its argument, is compared with itself and with a slower copy, by
`steelyard compare` and by hyperfine, turn by turn, each with the same time. Hyperfine measures one
command after the other and leaves the judgement to the reader; it is read by two rules:

    overlap    different if mean - sd .. mean + sd of the two commands do not overlap
    statement  different if the ratio of means it states is beyond 1 by more than its stated error

Printed: how many planted slowdowns were found, how many identical pairs were called different, with
exact 95 % binomial intervals. Hyperfine's number of runs is chosen so that it takes the budget.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from peers import PROGRAMS
from scipy import stats

TRUTH = str(PROGRAMS / "steelyard-truth")
STEELYARD = (sys.executable, "-c", "from steelyard.cli import main; main()")
HYPERFINE_START_S = 0.1


def calibrated_iterations(ms: int) -> int:
    answer = subprocess.run([TRUTH, "--calibrate", str(ms)], check=True, capture_output=True, text=True)
    return int(answer.stdout.split()[-1])


def ask_steelyard(commands: list[str], budget_s: float, seed: int) -> tuple[dict[str, bool], float, int]:
    words = ["compare", "--no-record", "--json", "--budget", f"{budget_s}s", "--margin", "2%"]
    began_s = time.monotonic()
    answer = subprocess.run(
        [*STEELYARD, *words, "--seed", str(seed), *commands], check=False, capture_output=True, text=True
    )
    if answer.returncode not in {0, 1}:
        raise RuntimeError(answer.stderr)
    found = json.loads(answer.stdout)
    (claim,) = found["claims"]
    said = {f"steelyard: {claim['verdict']}": True, "steelyard": claim["verdict"] in {"slower", "faster"}}
    return said, time.monotonic() - began_s, claim["runs_baseline"]


def ask_hyperfine(commands: list[str], budget_s: float, run_s: float) -> tuple[dict[str, bool], float, int]:
    runs = max(2, int((budget_s - HYPERFINE_START_S) / (len(commands) * run_s)) - 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "h.json"
        words = ["hyperfine", "-N", "--style", "none", "--warmup", "1", "--runs", str(runs)]
        began_s = time.monotonic()
        subprocess.run([*words, "--export-json", str(path), *commands], check=True, capture_output=True)
        took_s = time.monotonic() - began_s
        a, b = json.loads(path.read_text(encoding="utf-8"))["results"]
    ratio = max(a["mean"], b["mean"]) / min(a["mean"], b["mean"])
    # SOURCE: hyperfine's relative speed: error of the ratio by propagation of the standard deviations.
    error = ratio * math.hypot(a["stddev"] / a["mean"], b["stddev"] / b["mean"])
    said = {
        "hyperfine, overlap": abs(a["mean"] - b["mean"]) > a["stddev"] + b["stddev"],
        "hyperfine, statement": ratio - error > 1,
    }
    return said, took_s, runs


def rate(count: int, total: int) -> str:
    interval = stats.binomtest(count, total).proportion_ci(0.95, method="exact")
    return f"{count:4d} of {total:<4d} {count / total:6.1%}   {interval.low:6.1%} to {interval.high:6.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=100, help="comparisons of each kind")
    parser.add_argument("--budget", type=float, default=10.0, help="time of each comparison [s]")
    parser.add_argument("--ms", type=int, default=20, help="length of a run [ms]")
    parser.add_argument("--slowdown", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if shutil.which("hyperfine") is None:
        print("steelyard compare beside hyperfine: hyperfine is not installed", file=sys.stderr)
        return

    iterations = calibrated_iterations(options.ms)
    rng = np.random.default_rng(options.seed)
    kinds = {"A/A": 1.0, f"slower by {options.slowdown:.1%}": 1 + options.slowdown}
    said: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    took: dict[str, list[float]] = {"steelyard": [], "hyperfine": []}
    runs: dict[str, list[int]] = {"steelyard": [], "hyperfine": []}
    for number in range(options.pairs):
        for kind, factor in kinds.items():
            commands = [f"{TRUTH} --iterations {round(iterations * each)}" for each in (1.0, factor)]
            asked = {
                "steelyard": lambda c=commands, n=number: ask_steelyard(c, options.budget, n),
                "hyperfine": lambda c=commands: ask_hyperfine(c, options.budget, options.ms / 1000),
            }
            for name in rng.permutation(list(asked)):
                answer, seconds, count = asked[str(name)]()
                said[kind].update(rule for rule, is_so in answer.items() if is_so)
                took[str(name)].append(seconds)
                runs[str(name)].append(count)
        print(f"\r{number + 1}/{options.pairs} pairs", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)

    rules = ["steelyard", "hyperfine, overlap", "hyperfine, statement"]
    for kind in kinds:
        title = "called different (false alarms)" if kind == "A/A" else "called different (found)"
        print(f"\n{kind}: {title}, runs of {options.ms} ms, budget {options.budget:g} s")
        for rule in rules:
            print(f"  {rule:24}{rate(said[kind][rule], options.pairs)}")
        verdicts = {key: count for key, count in said[kind].items() if key.startswith("steelyard: ")}
        print(f"  {', '.join(f'{key} {count}' for key, count in sorted(verdicts.items()))}")
    print()
    for name, seconds in took.items():
        count = statistics.median(runs[name])
        print(f"{name}: median {statistics.median(seconds):.1f} s, {count:.0f} runs each")


if __name__ == "__main__":
    main()
