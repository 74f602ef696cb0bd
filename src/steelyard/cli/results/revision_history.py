"""``steelyard history`` of revisions: each job compared two of them on one machine."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.cli.fail_on import Answer
from steelyard.cli.results.acceptance import accepted_levels
from steelyard.cli.streams import write_lines
from steelyard.errors import AnalysisError, DataError, UsageError
from steelyard.revisions.notes import read_notes, trees_before
from steelyard.revisions.repository import SHORT_DIGITS, Repository
from steelyard.studies.comparison.links import (
    compares_revisions,
    each_once,
    parse_links,
    read_links,
    series_of,
)
from steelyard.studies.comparison.revision_history import called, document_of, followed, lines_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.cli.results.acceptance import Acceptance
    from steelyard.studies.comparison.links import Links, RevisionSeries
    from steelyard.studies.comparison.revision_history import Followed


_FEWEST_DIGITS: Final = 4
"""Of a commit, as in Git."""
_SHOWN: Final = 5


def are_of_revisions(places: Sequence[Path]) -> bool:
    """Whether all places are comparisons of revisions, or files of links.

    Raises
    ------
    UsageError
        If some are, and others are not.
    """
    kinds = {place: place.is_file() or _compares_revisions(place) for place in places}
    if len(set(kinds.values())) > 1:
        one = next(place for place, is_one in kinds.items() if is_one)
        other = next(place for place, is_one in kinds.items() if not is_one)
        message = f"`{one}` compares revisions and `{other}` does not: they are no history together"
        raise UsageError(message, hint="give results of one kind")
    return any(kinds.values())


def _compares_revisions(place: Path) -> bool:
    try:
        return compares_revisions(place)
    except DataError:
        return False  # whoever reads it says what is wrong with it


def _noted_jobs() -> tuple[list[Links], dict[str, int], Path]:
    """Read the notes about revisions before ``HEAD``; their places in its history, and where that is."""
    repository = Repository(Path.cwd())
    places = trees_before(repository)
    jobs: list[Links] = []
    others = 0
    for commit, text in read_notes(repository):
        repair = f"git notes --ref=steelyard edit {commit}"
        for job in parse_links(text, f"note of {commit[:SHORT_DIGITS]}", repair):
            if job.baseline.tree in places and job.contender.tree in places:
                jobs.append(job)
            else:
                others += 1
    if others:
        more = ": `git fetch --unshallow` brings the rest of it" if repository.is_shallow else ""
        sys.stderr.write(
            f"left out: {others} jobs about revisions that are not in the history of HEAD{more}\n"
        )
    return jobs, places, repository.root


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a history of revisions.

    Parameters
    ----------
    metrics : tuple of str
        Metrics to follow; all, if empty.
    acceptance : Acceptance
        Which levels are accepted.
    margin, level : float
        Largest relative difference that counts as none; part of unchanged histories that show no change.
    html : Path or None
        Page to write.
    as_json : bool
        Print JSON instead of text.
    """

    metrics: tuple[str, ...]
    acceptance: Acceptance
    margin: float
    level: float
    html: Path | None
    as_json: bool


def revision_history(places: Sequence[Path], asked: Asked, *, from_notes: bool) -> Answer:
    """Say what changed in a history of revisions.

    Parameters
    ----------
    places : sequence of Path
        Comparisons of revisions, and files of links.
    asked : Asked
        What is asked.
    from_notes : bool
        Whether to read the notes of the repository instead.

    Raises
    ------
    AnalysisError
        If no job knows two revisions of different files.
    """
    metrics, level = asked.metrics, asked.level
    if from_notes:
        jobs, order, folder = _noted_jobs()
    else:
        jobs, order = [job for place in places for job in read_links(place)], None
        folder = places[-1].absolute().parent
    wanted = each_once([job for job in jobs if not metrics or job.metric in metrics])
    jobs = sorted(wanted, key=lambda job: job.at)
    series = series_of(jobs, order)
    if not series:
        message = "no job compares two revisions of different files" + (
            f" by {', '.join(f'`{name}`' for name in metrics)}" if metrics else ""
        )
        hint = "steelyard bench --rev HEAD~1 --rev HEAD --note, after each commit"
        if from_notes and not jobs:
            hint += "; `git fetch origin refs/notes/steelyard:refs/notes/steelyard` brings notes of others"
        raise AnalysisError(message, hint=hint, code="analysis.one-result")
    names = [[revision.short for revision in each.revisions] for each in series]
    known_as = _names_by_commit(jobs, series)
    acceptance = asked.acceptance
    if acceptance.accept is not None:
        acceptance = replace(acceptance, accept=_name_of(acceptance.accept, known_as))
    accepted = accepted_levels(acceptance, folder, names, metrics, [called(each) for each in series])
    accepted = [replace(one, result=_name_of(one.result, known_as, is_new=False)) for one in accepted]
    found = followed(series, accepted, asked.margin, level)
    if asked.html is not None:
        _write_page(asked.html, found, level)
    if asked.as_json:
        document = document_of(found, len(jobs), level)
        sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    else:
        write_lines(lines_of(found, len(jobs), len({job.host for job in jobs}), level))
        known = {name for each in names for name in each}
        for one in accepted:
            if one.result in known:
                sys.stdout.write(f"{one.sentence}\n")
    return Answer(
        is_slower=any(each.is_slower for each in found),
        is_changed=any(each.changes for each in found),
        is_undecided=any(len(each.pieces) > 1 or each.is_contradicted for each in found),
    )


def _names_by_commit(jobs: Sequence[Links], series: Sequence[RevisionSeries]) -> dict[str, str]:
    """Give for each commit the name of its revision: commits of the same files share one."""
    names = {revision.tree: revision.short for each in series for revision in each.revisions}
    sides = [side for job in jobs for side in (job.baseline, job.contender)]
    return {side.commit: names[side.tree] for side in sides if side.tree in names}


def _name_of(given: str, known_as: Mapping[str, str], *, is_new: bool = True) -> str:
    """Give the name of the revision whose commit begins so; what is given where there is none.

    Raises
    ------
    UsageError
        If a new acceptance names several.
    """
    fitting = (name for commit, name in known_as.items() if commit.startswith(given.lower()))
    found = list(dict.fromkeys(fitting)) if len(given) >= _FEWEST_DIGITS else []
    if len(found) > 1 and is_new:
        several = ", ".join(f"`{name}`" for name in found[:_SHOWN])
        message = f"`--accept {given}` begins several revisions: {several}"
        raise UsageError(message, hint="give more digits of the commit")
    return found[0] if len(found) == 1 else given


def _write_page(path: Path, found: Sequence[Followed], level: float) -> None:
    from steelyard.cli.figure_note import note_missing_figures  # noqa: PLC0415 - start-up time
    from steelyard.report.html import write_html  # noqa: PLC0415 - start-up time
    from steelyard.studies.comparison.report.revision_page import revision_page  # noqa: PLC0415 - start-up time

    note_missing_figures()
    write_html(revision_page(found, level), path)
