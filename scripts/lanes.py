"""Run the lanes of the tests: `make test` and `make test-all`, here and in continuous integration.

    scripts/lanes.py fast                 what finds faults quickly
    scripts/lanes.py all                  that, then everything else, whatever it takes
    scripts/lanes.py --elapsed SECONDS     the long lanes that end in time, so long after everything began
    scripts/lanes.py LANE ...             lanes by name; `--list` names them

Every test of Python belongs to one lane, by its markers: `slow` leaves it to `make test-all`, `timing` gives
it the machine for itself. `tests/durations.json` holds what each lane and test took on an idle machine of two
cores; `--record` writes that again. The last lines are a table of lanes, tests and seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
DURATIONS: Final = ROOT / "tests" / "durations.json"
LATEST: Final = ROOT / "target" / "lanes.json"
"""What the lanes took that were run last: how slow the machine is, for a later part of the same work."""
CORES: Final = len(os.sched_getaffinity(0))
PARALLEL: Final = ("-n", str(CORES), "--dist", "worksteal")
CARGO_TEST: Final = ("cargo", "test", "--locked", "--workspace", "--exclude", "steelyard-py")
TIMING_CRATES: Final = frozenset({"launch", "host", "comm", "load", "govern", "watch", "work"})
"""Their tests measure time, or look at processes and groups of the whole host."""
OTHER_LAYOUTS: Final = ("v1::", "none::")
"""The launcher's cases with hierarchies of control groups hidden: a long lane where this host has all."""
FUZZ_S: Final = 5
LONG_END_S: Final = 70 * 60
"""Within which a lane of continuous integration must be expected to end."""
ROTATIONS: Final = 3
"""Where not all long lanes fit, a commit begins with one of so many parts of them, by its hash."""

COUNTS: Final = re.compile(r"(\d+) (passed|failed|errors?|skipped|ignored)\b")
CLOSING: Final = re.compile(r"test result: |(\d+ \w+, )*\d+ \w+ in [\d.]+s")
"""How Rust's test programs and pytest close."""
COUNTED_AS: Final = {"error": "failed", "errors": "failed", "ignored": "skipped"}


@dataclass
class Result:
    """What came of a lane."""

    lane: str
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class TestProgram:
    """A built test of Rust."""

    crate: str
    target: str
    folder: Path
    path: Path


class Runner:
    """Runs programs for the lane in progress, and keeps what came of each lane."""

    def __init__(self, *, records: bool, promised: str) -> None:
        self.results: list[Result] = []
        self._records = records
        self._pytest_options = ["--record-durations"] if records else []
        if promised:
            self._pytest_options += ["--promised", promised]
        self._programs: list[TestProgram] | None = None

    def run_lane(self, name: str) -> None:
        """Run a lane, showing what it prints."""
        result = Result(name)
        self.results.append(result)
        print(f"\n=== {name}", flush=True)
        begin = time.monotonic()
        LANES[name](self)
        result.seconds = time.monotonic() - begin
        print(f"=== {name}: {result.seconds:.0f} s", flush=True)

    def run(
        self, words: Sequence[str | Path], folder: Path = ROOT, more: Mapping[str, str] | None = None
    ) -> None:
        """Run a program, count the tests in its closing lines, note a failure."""
        result = self.results[-1]
        with subprocess.Popen(
            words,
            cwd=folder,
            env={**os.environ, **(more or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
                result.counts.update(counted(line))
        if process.returncode != 0:
            result.failed.append(f"`{' '.join(map(str, words))}` (exit code {process.returncode})")

    def pytest(self, markers: str, *options: str | Path) -> None:
        """Run the Python tests that an expression of markers selects."""
        python = ROOT / ".venv" / "bin" / "python"
        self.run([python, "-m", "pytest", "-rs", "-m", markers, *options, *self._pytest_options])

    def build(self) -> list[TestProgram]:
        """Build all tests of Rust once, with the features of the whole workspace."""
        if self._programs is None:
            words = [*CARGO_TEST, "--no-run", "--message-format", "json-render-diagnostics"]
            built = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
            if built.returncode != 0:
                self.results[-1].failed.append(f"`{' '.join(words)}` (exit code {built.returncode})")
            messages = [json.loads(line) for line in built.stdout.splitlines()]
            self._programs = [
                TestProgram(folder.name, message["target"]["name"], folder, Path(message["executable"]))
                for message in messages
                if message.get("executable") and message["profile"]["test"]
                for folder in [Path(message["manifest_path"]).parent]
            ]
        return self._programs

    def rust(self, chosen: Callable[[TestProgram], bool], *options: str) -> None:
        """Run the built tests of Rust that are chosen."""
        for program in filter(chosen, self.build()):
            skipped = [word for layout in OTHER_LAYOUTS for word in ("--skip", layout)]
            more = skipped if program.target == "launcher" and not options else options
            self.run(
                [program.path, *more],
                program.folder,
                {"PROPTEST_RNG_SEED": "20", "CARGO_MANIFEST_DIR": str(program.folder)},
            )

    def close(self) -> int:
        """Print the table, record what was asked for, give the exit code."""
        print(f"\n{'lane':<24}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}")
        for each in self.results:
            numbers = "{passed:>8}{failed:>8}{skipped:>9}".format_map({**ZERO, **each.counts})
            print(f"{each.lane:<24}{numbers}{each.seconds:>9.0f}")
        total: Counter[str] = Counter()
        for each in self.results:
            total.update(each.counts)
        LATEST.write_text(json.dumps({each.lane: each.seconds for each in self.results}), encoding="utf-8")
        failed = [f"{each.lane}: {words}" for each in self.results for words in each.failed]
        print(f"{'together':<49}{sum(each.seconds for each in self.results):>9.0f}")
        print("".join(f"error: failed: {line}\n" for line in failed), end="")
        if self._records and not failed:
            record({each.lane: round(each.seconds) for each in self.results})
        # What fails without a closing line, such as a build, is a failure too.
        failures = max(total["failed"], len(failed))
        print(f"{total['passed']} passed, {failures} failed, {total['skipped']} skipped", flush=True)
        return 1 if failed else 0


ZERO: Final = {"passed": 0, "failed": 0, "skipped": 0}


def counted(line: str) -> Counter[str]:
    """Give the tests that passed, failed and were skipped, by a closing line; nothing of another line."""
    counts: Counter[str] = Counter()
    if CLOSING.match(line):
        for number, word in COUNTS.findall(line):
            counts[COUNTED_AS.get(word, word)] += int(number)
    return counts


def timing_files() -> list[Path]:
    """Give the test files with a test that has the machine for itself: collecting all takes seconds."""
    return sorted(
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if "mark.timing" in path.read_text(encoding="utf-8")
    )


def rust(runner: Runner) -> None:
    """Run tests of Rust that do not depend on the time, and the examples of all crates."""
    runner.rust(lambda program: program.crate not in TIMING_CRATES)
    # Of the kernels there are none, and compiling them once more takes longer than all.
    runner.run([*CARGO_TEST, "--exclude", "steelyard-stats", "--doc", "--quiet"])


def rust_timing(runner: Runner) -> None:
    """Run tests of Rust that do, one after the other."""
    runner.rust(
        lambda program: program.crate in TIMING_CRATES and program.target != "launcher", "--test-threads=1"
    )
    runner.rust(lambda program: program.target == "launcher")


GUEST: Final = "(needs_vm or needs_sched_ext_guest or needs_aarch64)"
FAST: Final[dict[str, Callable[[Runner], None]]] = {
    "rust build": lambda runner: runner.build() and None,
    "rust": rust,
    "rust timing": rust_timing,
    "python": lambda runner: runner.pytest("not slow and not timing", *PARALLEL),
    "python timing": lambda runner: runner.pytest("timing and not slow", *timing_files()),
}
LONG: Final[dict[str, Callable[[Runner], None]]] = {
    "studies": lambda runner: runner.pytest(
        f"slow and timing and not needs_wheel and not {GUEST}", *timing_files()
    ),
    "simulations": lambda runner: runner.pytest(
        f"slow and not timing and not needs_wheel and not {GUEST}", *PARALLEL
    ),
    # One after the other: an emulated machine takes all of a core, and limits of time hold in some of them.
    "guests": lambda runner: runner.pytest(f"slow and not needs_wheel and {GUEST}"),
    "wheel": lambda runner: runner.pytest("slow and needs_wheel"),
    "launcher layouts": lambda runner: runner.rust(lambda program: program.target == "launcher", "::"),
    "synchronisation": lambda runner: runner.run([ROOT / "scripts" / "verify-sync.sh"]),
    "fuzz": lambda runner: runner.run([ROOT / "scripts" / "fuzz.sh", str(FUZZ_S)]),
}
LANES: Final = {**FAST, **LONG}


def durations() -> dict[str, dict[str, float]]:
    """Give what lanes and tests took."""
    found: dict[str, dict[str, float]] = {"lanes": {}, "tests": {}}
    if DURATIONS.exists():
        found.update(json.loads(DURATIONS.read_text(encoding="utf-8")))
    return found


def record(lanes: dict[str, int]) -> None:
    """Write what lanes took."""
    found = durations()
    found["lanes"].update(lanes)
    DURATIONS.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n", encoding="utf-8")


def rotated(names: Sequence[str]) -> list[str]:
    """Give the long lanes, beginning where the hash of the commit says."""
    answer = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    turn = int(answer.stdout.strip() or "0", 16) % ROTATIONS
    first = len(names) * turn // ROTATIONS
    return [*names[first:], *names[:first]]


def run_in_time(runner: Runner, elapsed_s: float) -> None:
    """Run the long lanes that are expected to end in time; name the others."""
    recorded = durations()["lanes"]
    latest = json.loads(LATEST.read_text(encoding="utf-8")) if LATEST.exists() else {}
    known = [name for name in latest if name in recorded]
    usual_s = sum(recorded[name] for name in known)
    slowness = max(sum(latest[name] for name in known) / usual_s, 1.0) if known else 1.0
    print(f"this machine takes {slowness:.2f} times the recorded durations")
    left_out = []
    begin = time.monotonic()
    for name in rotated(list(LONG)):
        end_s = elapsed_s + time.monotonic() - begin + slowness * recorded.get(name, 0.0)
        if end_s <= LONG_END_S:
            runner.run_lane(name)
        else:
            left_out.append(f"left out: {name}: expected to end {end_s / 60:.0f} minutes after the start")
    print("\n" + "\n".join(left_out or ["left out: no lane"]))


def main() -> int:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lanes", nargs="*", default=["fast"], help="`fast`, `long`, `all`, or lanes by name")
    parser.add_argument("--list", action="store_true", help="name the lanes and what each takes")
    parser.add_argument("--record", action="store_true", help="write durations.json again")
    parser.add_argument(
        "--promised", default="", help="markers whose tests must not skip, with commas between"
    )
    parser.add_argument("--elapsed", type=float, help="run the long lanes that end in time, this late [s]")
    options = parser.parse_args()
    groups = {"fast": list(FAST), "long": list(LONG), "all": list(LANES)}
    if options.list:
        recorded = durations()["lanes"]
        print("\n".join(f"{name:<24}{recorded.get(name, 0):>6.0f} s" for name in LANES))
        return 0
    names = [name for word in options.lanes for name in groups.get(word, [word])]
    unknown = [name for name in names if name not in LANES]
    if unknown:
        parser.error(
            f"cannot run {', '.join(unknown)}: no such lane; allowed: {', '.join([*groups, *LANES])}"
        )
    runner = Runner(records=options.record, promised=options.promised)
    if options.elapsed is not None:
        run_in_time(runner, options.elapsed)
    else:
        for name in names:
            runner.run_lane(name)
    return runner.close()


if __name__ == "__main__":
    raise SystemExit(main())
