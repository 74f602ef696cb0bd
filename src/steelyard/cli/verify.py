"""``steelyard verify``: whether the findings are what the raw data give."""

from __future__ import annotations

import json
import sys
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotation
from typing import Annotated, Final

from cyclopts import Parameter

CONFIRMED: Final = 0
NOT_CONFIRMED: Final = 1


def verify(directory: Path, *, json_: Annotated[bool, Parameter(name="--json", negative=())] = False) -> int:
    """Compute every finding again and compare.

    Leaves with exit code 0 if every hash, finding, table and the report agree to the last digit, 1 with the
    list of what does not, 5 if the data cannot be used.

    Parameters
    ----------
    directory
        Result folder with ``findings.json``; it is not changed.
    json_
        Print one JSON object: ``confirmed`` and ``problems``.

    Examples
    --------
    Check a result that was sent to you::

        steelyard verify results/night
    """
    from steelyard.share.verify import verify as find_problems  # noqa: PLC0415 - start-up time

    problems = find_problems(directory)
    if json_:
        answer = {"confirmed": not problems, "directory": str(directory), "problems": problems}
        sys.stdout.write(json.dumps(answer, indent=1, ensure_ascii=False) + "\n")
    elif problems:
        sys.stdout.write("".join(f"{problem}\n" for problem in problems))
        sys.stderr.write(f"{len(problems)} problems; the findings are not confirmed\n")
    else:
        sys.stdout.write(f"confirmed: every finding of `{directory}` follows from its raw data\n")
    return NOT_CONFIRMED if problems else CONFIRMED
