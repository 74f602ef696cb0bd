"""``steelyard compare-results``: two results laid over each other."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - the command line reads the annotation at run time
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard.analyse.flips import flipped_classes
from steelyard.errors import UsageError
from steelyard.model.finding import read_findings
from steelyard.report.differences import differences

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.analyse.flips import FlippedClass
    from steelyard.report.differences import ChangedVerdict, Differences

NOTHING_FLIPPED: Final = 0
SOMETHING_FLIPPED: Final = 1


def compare_results(
    first: Path,
    second: Path,
    *,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Lay two results over each other and list what changed.

    Leaves with exit code 1 when a published class turned round (higher to lesser or back) or a verdict
    turned into its opposite (slower to faster or back); for the communication study, when a switch, a
    coefficient or the cost of a whole regime is different.

    Parameters
    ----------
    first
        Result folder with ``findings.json``.
    second
        The other result folder, of the same study.
    as_json
        Print JSON for programs.

    Examples
    --------
    Does the same study on the new kernel say the same?::

        steelyard compare-results results/old-kernel results/new-kernel
    """
    before, after = (read_findings(folder / "findings.json") for folder in (first, second))
    if before.study != after.study:
        message = f"`{first}` is of study `{before.study}`, `{second}` of study `{after.study}`; both "
        "must be of one study"
        raise UsageError(message, hint="give two result folders of the same study")
    if before.study == "communication":
        return _compare_messages(first, second, as_json=as_json)
    flipped = flipped_classes(before, after)
    found = differences(before, after)
    if as_json:
        sys.stdout.write(_as_json(flipped, found) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in _as_text(flipped, found, (str(first), str(second))))
    is_flipped = bool(flipped) or any(change.is_reversed for change in found.changed)
    return SOMETHING_FLIPPED if is_flipped else NOTHING_FLIPPED


def _compare_messages(first: Path, second: Path, *, as_json: bool) -> int:
    """Compare the costs of messages regime by regime."""
    from steelyard.studies.communication.result_comparison import (  # noqa: PLC0415 - start-up time
        compare_folders,
    )

    found = compare_folders(first, second)
    if as_json:
        sys.stdout.write(json.dumps(found.document(), indent=1, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(f"{first} -> {second}\n")
        sys.stdout.writelines(f"{line}\n" for line in found.lines())
    return SOMETHING_FLIPPED if found.differs else NOTHING_FLIPPED


def _as_json(flipped: list[FlippedClass], found: Differences) -> str:
    content = {
        "schema": "steelyard/differences/1",
        "compared": found.compared,
        "only_first": found.only_first,
        "only_second": found.only_second,
        "flipped_classes": [asdict(flip) for flip in flipped],
        "changed_verdicts": [
            asdict(change) | {"is_reversed": change.is_reversed} for change in found.changed
        ],
    }
    return json.dumps(content, indent=1, ensure_ascii=False)


def _as_text(flipped: list[FlippedClass], found: Differences, names: tuple[str, str]) -> Iterable[str]:
    yield f"{names[0]} -> {names[1]}"
    yield f"Claims in both: {found.compared}; in one alone: {found.only_first} and {found.only_second}"
    yield ""
    yield f"Published classes that flipped: {len(flipped)}"
    for flip in flipped:
        yield f"  {_subject(flip.subject)}: {flip.before} -> {flip.after} ({flip.published} interval)"
    reversed_ = [change for change in found.changed if change.is_reversed]
    yield f"Verdicts that turned into their opposite: {len(reversed_)}"
    yield from _changes(reversed_)
    others = [change for change in found.changed if not change.is_reversed]
    yield f"Verdicts that changed otherwise: {len(others)}"
    yield from _changes(others)


def _changes(changes: list[ChangedVerdict]) -> Iterable[str]:
    for change in changes:
        claim = change.claim.replace("_", " ")
        yield f"  {claim}, {_subject(change.subject)}: {change.before} -> {change.after}"


def _subject(subject: dict[str, str]) -> str:
    hidden = {"first", "second", "family"}
    sides = f"{subject['first']} vs {subject['second']}" if "second" in subject else ""
    return ", ".join(
        text for text in (*(value for key, value in subject.items() if key not in hidden), sides) if text
    )
