"""``steelyard run-part``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path  # noqa: TC003 - cyclopts reads it

from steelyard.cli.interruption import interruptible
from steelyard.errors import InterruptedByUser
from steelyard.run.progress import choose_progress
from steelyard.studies.placed.part import execute_part


def run_part(folder: Path, /) -> int:
    """Run one part of a study that `steelyard run --on` placed on several hosts.

    An engine calls this on each host; you need it where a batch system is used that `--on` does not know,
    or to run a part by hand. What is complete is in the part's folder; the study's own command takes it from
    there, and never counts a batch twice.

    Parameters
    ----------
    folder
        Folder of the part, `RESULT/placed/part-0001`.

    Examples
    --------
    steelyard run-part results/night/placed/part-0003
    """
    try:
        with interruptible(), choose_progress() as progress:
            is_run = execute_part(folder, ("steelyard", *sys.argv[1:]), progress)
    except KeyboardInterrupt as error:
        message = f"interrupted; everything finished so far is in `{folder}`"
        hint = f"steelyard run-part {shlex.quote(str(folder))}"
        raise InterruptedByUser(message, hint=hint) from error
    if not is_run:
        sys.stdout.write("nothing is left of this part\n")
    return 0
