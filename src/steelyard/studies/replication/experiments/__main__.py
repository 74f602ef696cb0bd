"""Conduct one run: ``python -m steelyard.studies.replication.experiments FOLDER``.

The folder holds ``experiment.json``, and gets the files that `experiment_record` describes.
Exit status 0: there is a result, which may be that the benchmark failed; 1: there is none.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Final

from steelyard.errors import SteelyardError
from steelyard.studies.replication.devices.container_cleanup import sweep_places
from steelyard.studies.replication.experiments.conduct import conduct

WORDS: Final = 2


def main(words: list[str]) -> int:
    """Conduct, say what went wrong, give the exit status."""
    if len(words) != WORDS or words[1].startswith("-"):
        sys.stderr.write(f"error: one folder is expected\n\nhint: {__doc__}")
        return 1
    try:
        sweep_places()
        conduct(Path(words[1]))
    except SteelyardError as error:
        hint = f"\n\nhint: {error.hint}" if error.hint else ""
        sys.stderr.write(f"error: {error.message}{hint}\n")
        return 1
    except Exception:
        sys.stderr.write(f"error: a bug in Steelyard\n{traceback.format_exc()}")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv))
