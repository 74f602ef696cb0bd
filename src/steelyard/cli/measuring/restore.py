"""``steelyard restore``."""

from __future__ import annotations

import json as json_text
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from steelyard.run.machine.tuning import Outcome, Restoration, Tuning
from steelyard.study import studies

if TYPE_CHECKING:
    from steelyard.run.cleanup import Removal


def restore(*, as_json: Annotated[bool, Parameter(name="--json", negative="")] = False) -> int:
    """Undo what a killed study left: machine settings, links.

    A study writes down each original value before it changes anything. What a study that is still
    running has set is left alone, and so is what somebody else has changed since.

    Parameters
    ----------
    as_json
        Print a list of records instead of lines.

    Returns
    -------
    int
        0 when nothing is left to undo, 1 when the host refused something.

    Examples
    --------
    steelyard restore
    steelyard restore --json
    """
    done = Tuning().restore_abandoned()
    removals = [one for study in studies().values() for one in study.remove_abandoned()]
    if as_json:
        records = [asdict(one) for one in done] + [asdict(one) for one in removals]
        sys.stdout.write(json_text.dumps(records, indent=1) + "\n")
    elif not done and not removals:
        sys.stdout.write("nothing to restore\n")
    else:
        sys.stdout.writelines(f"{describe(one)}\n" for one in done)
        sys.stdout.writelines(f"{describe_removal(one)}\n" for one in removals)
    is_refused = any(one.outcome is Outcome.REFUSED for one in done) or any(one.refused for one in removals)
    return 1 if is_refused else 0


def describe(one: Restoration) -> str:
    """Write one restoration as a line.

    Examples
    --------
    >>> from steelyard.run.machine.journal import Change
    >>> change = Change("aslr", "proc/sys/kernel/randomize_va_space", "2", "0")
    >>> describe(Restoration(change, Outcome.RESTORED, "0"))
    '/proc/sys/kernel/randomize_va_space: restored: 2'
    """
    head = f"/{one.change.path}: {one.outcome}"
    if one.outcome in {Outcome.RESTORED, Outcome.UNTOUCHED}:
        return f"{head}: {one.change.original}"
    if one.outcome is Outcome.FOREIGN:
        return f"{head}: {one.found or 'gone'} (it was {one.change.original} before the study)"
    if one.outcome is Outcome.REFUSED:
        return f"{head}: {one.reason} (wanted {one.change.original})"
    return head


def describe_removal(one: Removal) -> str:
    """Write the removal of something that a study left as a line.

    Examples
    --------
    >>> from steelyard.run.cleanup import Removal
    >>> describe_removal(Removal("steelyard-7-8-9-0-a"))
    'steelyard-7-8-9-0-a: removed'
    """
    return f"{one.name}: removed" if one.refused is None else f"{one.name}: refused: {one.refused}"
