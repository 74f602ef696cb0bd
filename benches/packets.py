"""The packet pipeline beside channels, pools and a C program, interleaved in one execution.

For each mean work and number of workers, every program runs once per round, in an order that rotates;
a ratio is the median over rounds of what two programs did in the same round, so that a machine that is
slower for a while slows both. Its limits are the least and the largest of these ratios: they contain the
median ratio with probability 1 - 2^(1 - rounds). Where they contain 1, nothing is claimed.

Push and pull are compared apart: with a dispatcher, a source need not let workers draw from it; without one,
every core works. The best of ours is chosen on rounds of its own, which no ratio uses.

Then: the slowdown of more workers than cores, and the locks.

Options: ``--rounds N`` (default 7), ``--ms M`` length of one execution (default 200).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MEANS = (25, 200, 1000, 8000)
DEPTH = 32
OURS = {
    "LockFree": "n L",
    "batch": "n B",
    "batch + TTAS": "b B",
    "Awesome + TTAS": "b A",
    "stealing": "n W",
    "shared queue": "n M",
    "leader/followers": "b F",
}
PULL = "leader/followers"
"""Ours whose workers draw packets themselves; it sends workers beyond the cores away."""
PEERS = ("crossbeam", "crossbeam-batches", "crossbeam-shared", "std", "rayon-rounds", "mutex", "rayon-bridge")
PULL_PEERS = ("mutex", "rayon-bridge")
LOCKS = "tbkspgacm"


def build() -> tuple[str, str]:
    command = [
        "cargo",
        "build",
        "--locked",
        "--release",
        "-p",
        "steelyard-sync",
        "--bins",
        "--example",
        "peers",
    ]
    answer = subprocess.run(
        [*command, "--message-format=json"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    built = {}
    for line in answer.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable"):
            built[message["target"]["name"]] = message["executable"]
    return built["steelyard-packets"], built["peers"]


def number(command: list[str]) -> float:
    return float(subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout)


def programs(tools: tuple[str, str, str | None], mean: int, workers: int, ms: int) -> dict[str, list[str]]:
    packets, peers, compiled = tools
    load = [str(ms), str(workers), str(mean), "t", "1"]
    found = {"serial": [packets, "serial", *load]}
    found |= {
        name: [packets, "parallel", *load, str(DEPTH), *letters.split()] for name, letters in OURS.items()
    }
    found |= {name: [peers, name, *load, str(DEPTH), str(workers)] for name in PEERS}
    if compiled is not None:
        found["C pthread"] = [compiled, str(ms), str(workers), str(mean), "1", str(DEPTH)]
    return found


def interleaved(commands: dict[str, list[str]], rounds: int) -> dict[str, list[float]]:
    names = list(commands)
    found: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        for place in range(len(names)):
            name = names[(place + turn) % len(names)]
            found[name].append(number(commands[name]))
    return found


def ratio(one: list[float], other: list[float]) -> float:
    return statistics.median(ratios(one, other))


def ratios(one: list[float], other: list[float]) -> list[float]:
    return [a / b for a, b in zip(one, other, strict=True)]


def against(ours: str, peer: str, found: dict[str, list[float]]) -> str:
    """Say how one of ours does beside a peer, and claim no more than the rounds show."""
    shares = ratios(found[ours], found[peer])
    low, high = min(shares), max(shares)
    verdict = "ahead" if low > 1 else "BEHIND" if high < 1 else "undecided"
    return f"{ours} / {peer}: {statistics.median(shares):.2f} ({low:.2f} to {high:.2f}) {verdict}"


def compare(tools: tuple[str, str, str | None], rounds: int, ms: int) -> None:
    for workers in (1, 2):
        for mean in MEANS:
            commands = programs(tools, mean, workers, ms)
            ours = {name: commands[name] for name in OURS}
            chosen = {name: statistics.median(counts) for name, counts in interleaved(ours, rounds).items()}
            commands["limit"] = [tools[0], "rate", str(mean)]
            found = interleaved(commands, rounds)
            limit = [rate * workers * ms / 1000 for rate in found.pop("limit")]
            print(f"\nW = {mean}, {workers} worker(s), packets/ms and ratio to serial, to the limit")
            for name, counts in found.items():
                per_ms = statistics.median(counts) / ms
                to_serial, to_limit = ratio(counts, found["serial"]), ratio(counts, limit)
                print(f"  {name:18} {per_ms:10.1f} {to_serial:8.3f} {to_limit:8.3f}")
            pushing = max((name for name in OURS if name != PULL), key=chosen.__getitem__)
            for peer in (name for name in found if name not in OURS and name != "serial"):
                if peer in PULL_PEERS:
                    print(f"  pull: {against(PULL, peer, found)}")
                else:
                    contenders = dict.fromkeys((pushing, "LockFree"))
                    print("  push: " + "; ".join(against(name, peer, found) for name in contenders))
            if workers == 1 and mean == MEANS[-1]:
                shy = 100 * (1 - ratio(found[pushing], found["serial"]))
                free = 100 * (1 - ratio(found["LockFree"], found["serial"]))
                print(f"  shy of ideal: {pushing} {shy:.2f} %, LockFree {free:.2f} %")


def oversubscribe(packets: str, rounds: int, ms: int) -> None:
    cores = len(os.sched_getaffinity(0))
    print(f"\nrate with {4 * cores} workers over rate with {cores}")
    for mean in MEANS:
        for name, letters in OURS.items():
            ending = [str(mean), "t", "1", str(DEPTH), *letters.split()]
            commands = {
                str(count): [packets, "parallel", str(ms), str(count), *ending]
                for count in (cores, 4 * cores)
            }
            found = interleaved(commands, rounds)
            kept = ratio(found[str(4 * cores)], found[str(cores)])
            rate = statistics.median(found[str(4 * cores)]) / ms
            print(f"  W = {mean:5} {name:18} {kept:6.2f} {rate:10.1f} packets/ms")


def uncontended(packets: str, rounds: int) -> None:
    commands = {letter: [packets, "uncontended", letter, "2000000"] for letter in LOCKS}
    found = interleaved(commands, rounds)
    print("\nuncontended lock + unlock [ns], and over std, pthread, parking_lot")
    for letter, values in found.items():
        others = " ".join(f"{ratio(values, found[other]):6.2f}" for other in "spg")
        print(f"  {letter} {statistics.median(values):7.2f} {others}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ms", type=int, default=200)
    options = parser.parse_args()
    packets, peers = build()
    with tempfile.TemporaryDirectory() as folder:
        compiled = None
        if shutil.which("cc"):
            compiled = str(Path(folder) / "packets")
            source = str(ROOT / "benches" / "c" / "packets.c")
            subprocess.run(["cc", "-std=c11", "-O2", "-pthread", "-o", compiled, source], check=True)
        else:
            print("no C compiler: the C program is left out")
        compare((packets, peers, compiled), options.rounds, options.ms)
    oversubscribe(packets, options.rounds, options.ms)
    uncontended(packets, options.rounds)


if __name__ == "__main__":
    main()
