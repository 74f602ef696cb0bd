"""``steelyard compare-results``: two results laid over each other."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - the command line reads the annotation at run time
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard.analyse.flips import flipped_classes
from steelyard.cli.amounts import parse_share
from steelyard.cli.cell_comparison import CellComparison
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
    margin: str | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Lay two results over each other and list what changed.

    Leaves with exit code 1 when a published class turned round (higher to lesser or back) or a verdict
    turned into its opposite (slower to faster or back); for the communication study, when a switch, a
    coefficient or the cost of a whole regime is different; for the scaling study, when the speed-up with
    some number of workers, or on one host the rate, is surely lower or higher by more than the margin.

    With a margin also every cell is laid beside its like, by the values of its repetitions: agreed within the
    margin, flipped (a factor's effect turned round), moved beyond the margin, undecided, or in one result
    alone; a flipped or moved cell leaves with exit code 1.

    Parameters
    ----------
    first
        Package, or result folder with ``findings.json``.
    second
        The other one, of the same study.
    margin
        Largest difference that counts as agreement, as in `5%`.
    as_json
        Print JSON for programs.

    Examples
    --------
    Does the same study on the new kernel say the same?::

        steelyard compare-results results/old-kernel results/new-kernel

    Which cells of a package hold on this machine?::

        steelyard compare-results theirs.zip results/ours --margin 5%
    """
    from steelyard.share.package_check import opened_result  # noqa: PLC0415 - start-up time

    allowed = None if margin is None else parse_share(margin, "--margin")
    with opened_result(first) as one, opened_result(second) as other:
        return lay_over((one, other), (str(first), str(second)), allowed, as_json=as_json)


def lay_over(
    folders: tuple[Path, Path], names: tuple[str, str], margin: float | None = None, *, as_json: bool = False
) -> int:
    """Print what changed from one result folder to another, and give the exit code.

    Parameters
    ----------
    folders : tuple of Path
        Result folders.
    names : tuple of str
        What they are called.
    margin : float or None
        Largest relative difference that counts as agreement of a cell; ``None`` compares verdicts alone.
    as_json : bool
        Print JSON.

    Raises
    ------
    UsageError
        If they are of different studies.
    """
    first, second = folders
    before, after = (read_findings(folder / "findings.json") for folder in (first, second))
    if before.study != after.study:
        message = f"`{names[0]}` is of study `{before.study}`, `{names[1]}` of study `{after.study}`; both "
        "must be of one study"
        raise UsageError(message, hint="give two result folders of the same study")
    if before.study == "communication":
        return _compare_messages(folders, names, as_json=as_json)
    if before.study == "scaling":
        return _compare_curves(folders, names, margin, as_json=as_json)
    flipped = flipped_classes(before, after)
    found = differences(before, after)
    cells = None if margin is None else CellComparison.of(first, second, margin)
    if as_json:
        extra = {} if cells is None else cells.document()
        sys.stdout.write(_as_json(flipped, found, extra) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in _as_text(flipped, found, names))
        sys.stdout.writelines(f"{line}\n" for line in (cells.lines() if cells is not None else ()))
    is_flipped = bool(flipped) or any(change.is_reversed for change in found.changed)
    is_flipped = is_flipped or (cells is not None and cells.differs)
    return SOMETHING_FLIPPED if is_flipped else NOTHING_FLIPPED


def _compare_messages(folders: tuple[Path, Path], names: tuple[str, str], *, as_json: bool) -> int:
    """Compare the costs of messages regime by regime."""
    from steelyard.studies.communication.result_comparison import (  # noqa: PLC0415 - start-up time
        compare_folders,
    )

    found = compare_folders(*folders)
    if as_json:
        sys.stdout.write(json.dumps(found.document(), indent=1, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(f"{names[0]} -> {names[1]}\n")
        sys.stdout.writelines(f"{line}\n" for line in found.lines())
    return SOMETHING_FLIPPED if found.differs else NOTHING_FLIPPED


def _compare_curves(
    folders: tuple[Path, Path], names: tuple[str, str], margin: float | None, *, as_json: bool
) -> int:
    """Compare curves of speed-up over workers."""
    from steelyard.studies.scaling.result_comparison import compare_folders  # noqa: PLC0415 - start-up time

    found = compare_folders(*folders, margin)
    if as_json:
        sys.stdout.write(json.dumps(found.document(), indent=1, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(f"{names[0]} -> {names[1]}\n")
        sys.stdout.writelines(f"{line}\n" for line in found.lines())
    return SOMETHING_FLIPPED if found.differs else NOTHING_FLIPPED


def _as_json(flipped: list[FlippedClass], found: Differences, extra: dict[str, object]) -> str:
    content = {
        "schema": "steelyard/differences/1",
        "compared": found.compared,
        "only_first": found.only_first,
        "only_second": found.only_second,
        "flipped_classes": [asdict(flip) for flip in flipped],
        "changed_verdicts": [
            asdict(change) | {"is_reversed": change.is_reversed} for change in found.changed
        ],
        **extra,
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
