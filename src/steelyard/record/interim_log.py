"""When a growing comparison was looked at: ``looks.json``, recorded like the runs.

What a look may claim depends on all looks before it. With the runs, this file is all that the verdict of a
comparison is computed from.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError, unwritable
from steelyard.model.document import read_document

if TYPE_CHECKING:
    from pathlib import Path

LOOKS_SCHEMA: Final = "steelyard/looks/1"
LOOKS_NAME: Final = "looks.json"
OPEN: Final = "open"
"""The measuring had not ended when this was written; if nothing followed, it was killed."""
FAILED: Final = "failed"
ENDS: Final = (OPEN, FAILED, "settled", "spent", "interrupted")


@dataclass(frozen=True, slots=True)
class LookTimes:
    """The looks at every pair of a comparison, and how the measuring ended.

    Parameters
    ----------
    plan_id : str
        Plan of the comparison.
    looks : tuple
        Of each pair in the order of the plan: its looks, each as (blocks in which both sides had a value,
        part of the largest experiment that was over, in [0, 1]), blocks ascending.
    end : str
        ``open``, ``failed``, ``settled``, ``spent`` or ``interrupted``.
    elapsed_s : float
        Time since the begin, waiting included [s].
    """

    plan_id: str
    looks: tuple[tuple[tuple[int, float], ...], ...]
    end: str
    elapsed_s: float
    schema: str = LOOKS_SCHEMA

    def write(self, result: Path) -> None:
        """Write ``looks.json``; the file is whole or the older one stays.

        Raises
        ------
        DataError
            If it cannot be written.
        """
        path = result / LOOKS_NAME
        temporary = path.with_suffix(".tmp")
        try:
            temporary.write_text(json.dumps(asdict(self), allow_nan=False) + "\n", encoding="utf-8")
            temporary.replace(path)
        except OSError as error:
            raise unwritable(path, error, f"check the rights of `{result}`") from error
        finally:
            temporary.unlink(missing_ok=True)


def read_looks(result: Path, plan_id: str, pairs: int) -> LookTimes:
    """Read ``looks.json``.

    Parameters
    ----------
    result : Path
        Result folder.
    plan_id : str
        Plan that it must belong to.
    pairs : int
        Comparisons of that plan.

    Raises
    ------
    DataError
        If it is absent, damaged, of another schema or plan, or says what no comparison can do.
    """
    path = result / LOOKS_NAME
    damaged = "restore the file from a copy: only it says how much error each look had left to spend"
    found = read_document(path, LookTimes, LOOKS_SCHEMA, absent=damaged, damaged=damaged)
    if found.plan_id != plan_id:
        message = f"`{path}` belongs to a different plan than the `plan.json` beside it"
        raise DataError(message, hint="do not mix files from two result folders", code="data.other-plan")
    problem = _problem(found, pairs)
    if problem is not None:
        message = f"`{path}` is damaged: {problem}"
        raise DataError(message, hint=damaged, code="data.corrupt")
    return found


def _problem(found: LookTimes, pairs: int) -> str | None:
    if len(found.looks) != pairs:
        return f"looks at {len(found.looks)} comparisons; the plan has {pairs}"
    if found.end not in ENDS:
        return f"`end` is `{found.end}`; allowed: {', '.join(f'`{end}`' for end in ENDS)}"
    if not (math.isfinite(found.elapsed_s) and found.elapsed_s >= 0):
        return f"`elapsed_s` is {found.elapsed_s}; allowed: 0 or more"
    for looks in found.looks:
        if any(blocks < 1 or not 0 <= fraction <= 1 for blocks, fraction in looks):
            return "a look needs at least 1 block and a fraction in [0, 1]"
        if any(after[0] <= before[0] or after[1] < before[1] for before, after in pairwise(looks)):
            return "looks must ascend"
    return None
