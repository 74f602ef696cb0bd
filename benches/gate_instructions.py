"""Count the instructions of the gate's native benchmarks under valgrind: what a gate by counts would see.

Of an iteration (the difference of processes with 1 and 11), or of a whole command; of two builds of the same
source, and of sources with 2, 5 and 10 % more work. `tests/statistical/gate.py` writes them beside the rules
that read clocks. Go and Python are left out: their harnesses choose the number of iterations by the clock.

    .venv/bin/python benches/gate_instructions.py
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from gate_jobs import RECORDED, SUITE

WRITTEN: Final = RECORDED.with_name("gate-instructions.json")
CACHEGRIND: Final = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
BENCHMARKS: Final = ("sort", "tree", "table", "text", "copy", "chase", "multiply", "sieve")
COMMANDS: Final = {
    "sort": "sort words.txt",
    "gzip": "gzip -c google/bench.cc",
    "awk": "awk '{ s += $1 * $1 } END { print s }' words.txt",
    "grep": "grep -cE '(1[0-9]+7|9+8)3' words.txt",
}
NOT_SCALED: Final = {"google/copy", "google/multiply", "gzip"}
REPETITIONS: Final = 5
MORE: Final = 10
PERCENT: Final = (2, 5, 10)


def build(folder: Path, percent: int) -> None:
    """Build the benchmarks with so much more work."""

    def more(found: re.Match[str]) -> str:
        return str(round(int(found.group()) * (1 + percent / 100)))

    (folder / "google").mkdir()
    source = (SUITE / "google/bench.cc").read_text(encoding="utf-8")
    source = re.sub(r"\b(?:5000|[123]0{4,5})\b", more, source)
    source = re.sub(r"(BENCHMARK\(\w+\));", r'\1->Iterations(std::atoi(std::getenv("ITERATIONS")));', source)
    (folder / "google/bench.cc").write_text(source, "utf-8")
    lines = round(60_000 * (1 + percent / 100))
    line = (
        "g++ -O2 google/bench.cc -o bench -lbenchmark -lpthread &&"
        f" seq 1 {lines} | sort -R --random-source=bench > words.txt"
    )
    subprocess.run(line, shell=True, cwd=folder, check=True)


def count(folder: Path, line: str, iterations: int = 1) -> int:
    """Give the instructions of a process."""
    words = [*CACHEGRIND, *shlex.split(line)]
    environment = os.environ | {"ITERATIONS": str(iterations)}
    done = subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True)
    return int(re.findall(r"I +refs: +([\d,]+)", done.stderr.decode())[-1].replace(",", ""))


def counts(folder: Path, repetitions: int) -> dict[str, list[int]]:
    """Give the instructions of each benchmark."""
    found = {}
    for name in BENCHMARKS:
        line = f"./bench --benchmark_filter=^{name}/"
        both = [(count(folder, line, 1), count(folder, line, 1 + MORE)) for _ in range(repetitions)]
        found[f"google/{name}"] = [(much - little) // MORE for little, much in both]
    return found | {
        name: [count(folder, line) for _ in range(repetitions)] for name, line in COMMANDS.items()
    }


def main() -> None:
    """Count, and write."""
    found: dict[str, dict[str, list[int]]] = {}
    for name, percent in (("baseline", 0), ("contender", 0), *((f"{each} %", each) for each in PERCENT)):
        with tempfile.TemporaryDirectory() as folder:
            build(Path(folder), percent)
            made = counts(Path(folder), 1 if percent else REPETITIONS)
        found[name] = {key: value for key, value in made.items() if not percent or key not in NOT_SCALED}
        print(f"counted: {name}", file=sys.stderr)
    WRITTEN.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
