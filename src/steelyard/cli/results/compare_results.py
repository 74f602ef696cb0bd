"""``steelyard compare-results``: two results laid over each other."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - the command line reads the annotation at run time
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard.analyse.comparison.agreement import Agreement
from steelyard.analyse.series.flips import flipped_classes
from steelyard.cli.amounts import parse_share
from steelyard.cli.fail_on import CHANGED, SLOWER, Answer, FailOn, FailOnOption
from steelyard.cli.results.cell_comparison import CellComparison
from steelyard.cli.streams import write_lines
from steelyard.errors import AnalysisError, UsageError
from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.report.differences import differences
from steelyard.study import installed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.analyse.comparison.agreement import CellAgreement
    from steelyard.analyse.series.flips import FlippedClass
    from steelyard.report.differences import ChangedVerdict, Differences
    from steelyard.study import ResultComparison, Study

_MODES_OF_PROGRAMS: Final = (None, "import")
"""Modes of plans whose cells are programs of the user, in studies that have such cells."""


def compare_results(
    first: Path,
    second: Path,
    *others: Path,
    merge: Annotated[bool, Parameter(negative=())] = False,
    margin: str | None = None,
    fail_on: FailOnOption = (),
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Compare two results and list what changed.

    Every cell is compared with its counterpart, by the values of its repetitions: agreed within the margin,
    flipped (the effect of a factor is reversed), moved beyond the margin, undecided, or in only one result.
    Comparisons and imported files are always compared in this way; other studies only with `--margin`,
    because times of two machines differ anyway. An imported file counts as a repetition; where a side has
    fewer than 3, its launches count.

    Published classes and verdicts that are reversed (higher and lesser, slower and faster) are listed for
    every study; for the communication study also switches, coefficients and costs of whole regimes; for the
    scaling study also the speed-up with each number of workers and, on one host, the rate.

    The exit code is 1 when any of these is reversed or moved; `--fail-on` chooses what else gives 1.

    `--merge` gives results of the same comparison one verdict instead: of several jobs, or of several hosts
    (a doubtful verdict is worth a second measurement on another machine). Each counts with the inverse of its
    variance. From three hosts on the answer is about the mean over hosts like these; of two that disagree
    nothing is claimed. The exit code is 1 when a command is certainly slower beyond the margin.

    Parameters
    ----------
    first
        Package, or result folder with ``findings.json``.
    second
        The result to compare it with, of the same study.
    others
        Further results to merge.
    merge
        Merge results of one comparison into one verdict.
    margin
        Largest difference that counts as agreement, as in `5%`; for comparisons and imported files that of
        the first result unless given.
    fail_on
        What gives exit code 1: `slower` (moved to slower or larger), `changed` (flipped, moved or reversed in
        either direction), `undecided` (slower, or a cell that is undecided or in only one result); may be
        given several times. `changed` by default, with `--merge` `slower`.
    as_json
        Print JSON for programs.

    Examples
    --------
    Does the study give the same results on the new kernel?::

        steelyard compare-results results/old-kernel results/new-kernel

    Is the newest measurement of another tool slower, or is that undecided?::

        steelyard compare-results base new --margin 3% --fail-on undecided

    What do three jobs say together?::

        steelyard compare-results --merge job-1 job-2 job-3

    Which cells of a package hold on this machine?::

        steelyard compare-results theirs.zip results/ours --margin 5%
    """
    from steelyard.record.same_result import same_results  # noqa: PLC0415 - start-up time
    from steelyard.share.package.check import opened_result  # noqa: PLC0415 - start-up time

    allowed = None if margin is None else parse_share(margin, "--margin")
    if merge:
        return _merge((first, second, *others), allowed, fail_on or SLOWER, as_json=as_json)
    if others:
        message = f"`compare-results` compares two results; given: {2 + len(others)}"
        raise UsageError(message, hint="--merge gives results of one comparison one verdict")
    with opened_result(first) as one, opened_result(second) as other:
        if same_results((first, second), (one, other)):
            twins = f"`{first}` and `{second}` are the same result"
            sys.stderr.write(f"remark: {twins}, which agrees with itself\n")
        names = (str(first), str(second))
        return lay_over((one, other), names, allowed, fail_on=fail_on or CHANGED, as_json=as_json)


def _merge(places: Sequence[Path], margin: float | None, fail_on: Sequence[FailOn], *, as_json: bool) -> int:
    from steelyard.record.same_result import refuse_same  # noqa: PLC0415 - start-up time
    from steelyard.share.package.check import opened_result  # noqa: PLC0415 - start-up time
    from steelyard.studies.comparison.hosts.merge import MERGED_SCHEMA, merge  # noqa: PLC0415 - start-up time

    with ExitStack() as stack:
        folders = [stack.enter_context(opened_result(place)) for place in places]
        refuse_same(folders)
        merged = merge(folders, list(map(str, places)), margin)
    claims = [each.claim for each in merged]
    answer = Answer(
        is_slower=any(claim.is_regression for claim in claims),
        is_changed=any(claim.is_regression or claim.is_improvement for claim in claims),
        is_undecided=any(not claim.is_settled for claim in claims),
    )
    if as_json:
        own = {"schema": MERGED_SCHEMA, "claims": [each.as_dict() for each in merged]}
        document = {**own, **_exit_document(answer, fail_on)}
        sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        write_lines(line for each in merged for line in (*each.lines(), ""))
    return answer.exit_code(fail_on)


def lay_over(
    folders: tuple[Path, Path],
    names: tuple[str, str],
    margin: float | None = None,
    *,
    fail_on: Sequence[FailOn] = CHANGED,
    as_json: bool = False,
) -> int:
    """Print what changed from one result folder to another, and give the exit code.

    Parameters
    ----------
    folders : tuple of Path
        Result folders.
    names : tuple of str
        What they are called.
    margin : float or None
        Largest relative difference that counts as agreement of a cell; ``None`` takes that of the first
        result where cells are programs, and compares verdicts alone elsewhere.
    fail_on : sequence of FailOn
        Answers that leave with exit code 1.
    as_json : bool
        Print JSON.

    Raises
    ------
    UsageError
        If they are of different studies.
    AnalysisError
        If cells are programs, and no program is in both.
    """
    first, second = folders
    before, after = (read_findings(folder / "findings.json") for folder in (first, second))
    if before.study != after.study:
        message = (
            f"`{names[0]}` is of study `{before.study}`, `{names[1]}` of study `{after.study}`; both must be "
            "of one study"
        )
        raise UsageError(message, hint="give two result folders of the same study")
    study = installed(before.study)
    own = study.compare_results(*folders, margin)
    if own is not None:
        return _said(own, names, fail_on, as_json=as_json)
    flipped = flipped_classes(before, after)
    found = differences(before, after)
    cells = _cells(folders, names, study, margin)
    answer = _answer(flipped, found, cells)
    if as_json:
        extra = {} if cells is None else cells.document()
        sys.stdout.write(_as_json(flipped, found, {**extra, **_exit_document(answer, fail_on)}) + "\n")
    else:
        summary = f": {cells.summary}" if cells is not None else ""
        of_cells = () if cells is None else ("", *cells.lines(), "")
        write_lines((f"{names[0]} -> {names[1]}{summary}", *of_cells, *_as_text(flipped, found)))
    return answer.exit_code(fail_on)


def _cells(
    folders: tuple[Path, Path], names: tuple[str, str], study: Study, margin: float | None
) -> CellComparison | None:
    """Compare the cells where that says something: where asked for, or where they are programs."""
    plans = [read_plan(path) for folder in folders if (path := folder / "plan.json").exists()]
    is_of_programs = (
        study.has_programs_as_cells
        and len(plans) == len(folders)
        and all(plan.options.get("mode") in _MODES_OF_PROGRAMS for plan in plans)
    )
    if margin is None and is_of_programs:
        margin = float(str(plans[0].options.get("margin_percent", 2.0))) / 100
    if margin is None:
        return None
    cells = CellComparison.of(*folders, margin)
    if is_of_programs and not cells.has_common:
        alone = [
            ", ".join(dict.fromkeys(f"`{_cell_name(cell)}`" for cell in cells.of_kind(kind))) or "nothing"
            for kind in (Agreement.ONLY_FIRST, Agreement.ONLY_SECOND)
        ]
        message = (
            f"the results have nothing in common: `{names[0]}` has {alone[0][:200]}; "
            f"`{names[1]}` has {alone[1][:200]}"
        )
        hint = (
            "give results of the same programs, metric and unit; "
            "`steelyard import csv --workload NAME` names the program of a table"
        )
        raise AnalysisError(message, hint=hint, code="analysis.nothing-common")
    return cells


def _cell_name(cell: CellAgreement) -> str:
    return f"{', '.join(cell.levels.values())}: {cell.metric} [{cell.unit}]"


def _answer(flipped: list[FlippedClass], found: Differences, cells: CellComparison | None) -> Answer:
    """Say what both ways of comparing found; whether cells are decided says more than verdicts do."""
    turned = [change for change in found.changed if change.is_reversed]
    by_cells = Answer(is_undecided=bool(found.undecided)) if cells is None else cells.answer
    return Answer(
        is_slower=by_cells.is_slower or any(change.after == "slower" for change in turned),
        is_changed=by_cells.is_changed or bool(flipped or turned),
        is_undecided=by_cells.is_undecided,
    )


def _exit_document(answer: Answer, fail_on: Sequence[FailOn]) -> dict[str, object]:
    return {
        "answer": asdict(answer),
        "fail_on": [str(each) for each in fail_on],
        "exit_code": answer.exit_code(fail_on),
    }


def _said(
    found: ResultComparison, names: tuple[str, str], fail_on: Sequence[FailOn], *, as_json: bool
) -> int:
    answer = Answer(found.is_slower, found.differs, found.is_undecided)
    if as_json:
        document = {**found.document(), **_exit_document(answer, fail_on)}
        sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    else:
        write_lines((f"{names[0]} -> {names[1]}", *found.lines()))
    return answer.exit_code(fail_on)


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


def _as_text(flipped: list[FlippedClass], found: Differences) -> Iterable[str]:
    yield f"Claims in both: {found.compared}; only in one: {found.only_first} and {found.only_second}"
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
