"""Starts a command on another host, its words kept as they are; run by its path.

python ssh_agent.py OPTIONS.json HOST PROGRAM ARGUMENT...

The file holds ssh with its options, as a list of words that ends before the host.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

FAILED = 125
FEWEST = 3

if __name__ == "__main__":
    if len(sys.argv) <= FEWEST:
        sys.stderr.write(f"ssh agent: usage: {__doc__}")
        raise SystemExit(FAILED)
    words = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    command = [*words, sys.argv[2], shlex.join(sys.argv[3:])]
    try:
        os.execvp(command[0], command)  # noqa: S606 - given as words
    except OSError as error:
        sys.stderr.write(f"ssh agent: cannot run `{command[0]}`: {error.strerror}\n")
        raise SystemExit(FAILED) from error
