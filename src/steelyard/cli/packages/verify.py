"""``steelyard verify``: whether the findings of a package or a folder are what the raw data give."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotation
from typing import Annotated, Final

from cyclopts import Parameter

CONFIRMED: Final = 0
NOT_CONFIRMED: Final = 1


def verify(place: Path, *, json_: Annotated[bool, Parameter(name="--json", negative=())] = False) -> int:
    """Compute every finding again and compare.

    The exit code is 0 if every hash, finding, table and the report agree to the last digit, 1 with a list of
    the differences, 5 if the data cannot be used. A package is unpacked into a private folder first; one that
    could write outside of it, or that would fill the disk, is refused before anything is written. The output
    names what this installation cannot compare and what only the author can know; neither changes the exit
    code.

    Parameters
    ----------
    place
        Package, or result folder with ``findings.json``; it is not changed.
    json_
        Print one JSON object: ``confirmed``, ``problems``, ``not_compared`` and ``said``.

    Examples
    --------
    Check a result that was sent to you::

        steelyard verify results/night

    Check a package::

        steelyard verify night.zip
    """
    from steelyard.share.package.check import verify_place  # noqa: PLC0415 - start-up time
    from steelyard.share.package.entry_names import visible  # noqa: PLC0415 - start-up time

    found = verify_place(place)
    problems = found.problems
    if json_:
        answer = {"confirmed": not problems, "directory": str(place), **asdict(found)}
        sys.stdout.write(json.dumps(answer, indent=1, ensure_ascii=False) + "\n")
    elif problems:
        sys.stdout.write("".join(f"{visible(problem)}\n" for problem in problems))
        sys.stderr.write(f"{len(problems)} problems; the findings are not confirmed\n")
    else:
        sys.stdout.write(f"confirmed: every finding of `{place}` follows from its raw data\n")
    sys.stderr.writelines(f"not compared: {visible(each)}\n" for each in found.not_compared)
    sys.stderr.writelines(f"only its author can say: {visible(each)}\n" for each in found.said)
    return NOT_CONFIRMED if problems else CONFIRMED
