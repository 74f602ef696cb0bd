"""Boot the guest and run one static program in it: ``python -m steelyard.run.guest exec PROGRAM``.

Its output appears as it is written, and its exit code is ours. Used to try the launcher on layouts of
control groups the host does not have.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from steelyard.errors import SteelyardError
from steelyard.run.guest.execution import GuestJob, execute_in_guest


def main() -> int:
    """Read the command line, run, give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m steelyard.run.guest", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("exec", help="run a static program in the guest")
    verb.add_argument("program", type=Path, help="static executable, copied into the guest")
    verb.add_argument("--cgroup", choices=["v2", "v1", "hybrid", "none"], default="v2")
    verb.add_argument("--cpus", type=int, default=1, help="virtual CPUs")
    verb.add_argument("--timeout", type=float, default=300.0, help="the guest is ended after it [s]")
    verb.epilog = "Words after `--` are the arguments of the program; they may not contain commas or blanks."
    own, arguments = _split(sys.argv[1:])
    chosen = parser.parse_args(own)
    job = GuestJob(chosen.program, tuple(arguments), chosen.cgroup, chosen.cpus, chosen.timeout)
    try:
        return execute_in_guest(job, sys.stdout)
    except SteelyardError as error:
        hint = f"\n\nhint: {error.hint}" if error.hint else ""
        sys.stderr.write(f"error: {error.message}{hint}\n")
        return error.exit_code


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in words:
        return words, []
    position = words.index("--")
    return words[:position], words[position + 1 :]


if __name__ == "__main__":
    raise SystemExit(main())
