"""Record what a gate sees in jobs without a change: only the documentation of 20 real benchmarks changes.

Each session builds two revisions anew and lets `steelyard bench` measure them for some minutes, with a margin
that no verdict settles, so that nothing ends early. `tests/statistical/gate.py` computes the page of it. The
sessions that are recorded already, perhaps on another machine, stay: new ones follow them.

    make deps-harnesses && .venv/bin/python benches/gate_jobs.py --sessions 20 --minutes 6
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steelyard"
PYTHON = CACHE / "harnesses/python/bin/python"
RECORDED = Path(__file__).resolve().parents[1] / "tests/statistical/gate-jobs.parquet"
NS = 1e9
SLOW_SHARE = 1 / 6
"""More of the time for benchmarks of which few pairs fit into a job."""

SUITE = Path(__file__).with_name("gate")


def git(folder: Path, *words: str) -> str:
    """Let Git work in the repository."""
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *author, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repository(folder: Path) -> None:
    """Write the repository, unless it is there."""
    if (folder / ".git").exists():
        return
    shutil.copytree(SUITE, folder, dirs_exist_ok=True)
    suite = folder / "steelyard.toml"
    suite.write_text(suite.read_text(encoding="utf-8").replace("@python@", str(PYTHON)), encoding="utf-8")
    (folder / ".gitignore").write_text("bench\nwords.txt\nsession-*\n", encoding="utf-8")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Add the benchmarks")


def session(folder: Path, number: int, minutes: float) -> list[Path]:
    """Record a session; give its result folders: of all benchmarks, and of those that take longest alone."""
    results = {folder / f"session-{number}": ("--rebuild", "--minutes", f"{minutes:g}")}
    results[folder / f"session-{number}-slow"] = ("pytest/*", "--minutes", f"{minutes * SLOW_SHARE:g}")
    if not all((result / "findings.json").exists() for result in results):
        (folder / "README.md").write_text(f"Edition {number}\n", encoding="utf-8")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", f"Describe it, edition {number}")
        for result, words in results.items():
            line = (sys.executable, "-m", "steelyard", "bench", *words, "--out", str(result))
            done = subprocess.run(line, cwd=folder, check=False)
            if done.returncode not in {0, 1, 4}:  # 4: the minutes did not suffice for some
                message = f"session {number} ended with exit code {done.returncode}"
                raise RuntimeError(message)
    return list(results)


def pairs_of(results: list[Path], number: int) -> pl.DataFrame:
    """Give the pairs of runs of a session."""
    pairs = pl.concat([_pairs(result) for result in results])
    return (
        pairs.sort("benchmark", "begin_ns")
        .with_columns(
            pl.lit(number, dtype=pl.Int16).alias("session"),
            pl.int_range(pl.len(), dtype=pl.Int32).over("benchmark").alias("pair"),
            pl.col("baseline_ns", "contender_ns", "cost_s").cast(pl.Float32),
        )
        .select("session", "benchmark", "pair", "baseline_ns", "contender_ns", "cost_s")
    )


def _pairs(result: Path) -> pl.DataFrame:
    """Give the pairs of runs of a result in the order of time."""
    runs = pl.read_parquet(result / "runs.parquet").filter(pl.col("phase") == "measure")
    values = pl.read_parquet(result / "measurements/*.parquet").filter(pl.col("metric") == "reported")
    of_side = pl.col("side") == json.loads((result / "plan.json").read_bytes())["factors"]["side"][0]
    return (
        runs.join(values.select("run_id", "value"), on="run_id")
        .group_by("benchmark", "block")
        .agg(
            pl.col("value").filter(of_side).first().alias("baseline_ns"),
            pl.col("value").filter(~of_side).first().alias("contender_ns"),
            pl.col("start_ns").min().alias("begin_ns"),
            pl.col("end_ns").max(),
        )
        .drop_nulls()
        .sort("begin_ns")
        # Until the next pair begins: what starting, reading and judging take is part of a job's time.
        .with_columns(
            ((pl.col("begin_ns").shift(-1).fill_null(pl.col("end_ns")) - pl.col("begin_ns")) / NS).alias(
                "cost_s"
            )
        )
    )


def main() -> None:
    """Record the sessions that are missing, and write all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=CACHE / "gate")
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("--write", type=Path, default=RECORDED)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    repository(options.folder)
    tables = [pl.read_parquet(options.write)] if options.write.exists() else []
    begin = int(tables[0]["session"].max()) + 1 if tables else 0
    for number in range(begin, options.sessions):
        tables.append(pairs_of(session(options.folder, number, options.minutes), number))
        pl.concat(tables).write_parquet(options.write, compression="zstd")
        print(f"{number + 1} of {options.sessions} sessions", file=sys.stderr)


if __name__ == "__main__":
    main()
