"""The options that name revisions, and their builds."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from steelyard.cli.amounts import parse_duration_ns
from steelyard.errors import DataError, UsageError
from steelyard.report.shown_text import inert, shown
from steelyard.revisions.build import LONGEST_BUILD_S, Build, BuildCache, build_key
from steelyard.revisions.notes import add_note
from steelyard.revisions.repository import WORKING_TREE, Repository, chosen
from steelyard.studies.comparison.contender import Side
from steelyard.studies.comparison.export import to_links
from steelyard.studies.comparison.outcome import OF_REVISIONS
from steelyard.units import NS_PER_S, format_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack

    from steelyard.revisions.repository import Commit
    from steelyard.studies.comparison.outcome import Comparison


@Parameter(name="*")
@dataclass(frozen=True)
class RevisionOptions:
    """Revisions of the Git repository in which you stand; each is checked out and built outside of it.

    Parameters
    ----------
    rev
        Revision in which the commands run, such as `main` or `HEAD`, or `.` for the files as they are; the
        first one is the baseline. At least two.
    build
        Shell line that builds a revision, in the folder in which you stand. What was built before from the
        same files is not built again.
    build_timeout
        Longest time of a build, as in `20min`; 2 h by default. Then all its processes are killed, and it has
        failed. In `compare` a run, and a line around it, may take as long.
    exact
        Compare with the first revision itself; by default with the commit from which the others parted from
        it (the merge base).
    rebuild
        Build again.
    note
        Add what was found to the notes of the revisions in Git, for `steelyard history --notes`;
        `git push origin refs/notes/steelyard` shares them.
    """

    rev: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = ()
    build: Annotated[str | None, Parameter(show_default=False)] = None
    build_timeout: Annotated[str | None, Parameter(show_default=False)] = None
    exact: Annotated[bool, Parameter(negative="")] = False
    rebuild: Annotated[bool, Parameter(negative="")] = False
    note: Annotated[bool, Parameter(negative="")] = False

    def require_used(self) -> None:
        """Refuse options that mean nothing without revisions."""
        if not self.rev and self != RevisionOptions():
            message = (
                "`--build`, `--build-timeout`, `--exact`, `--rebuild` and `--note` are about revisions, "
                "and no `--rev` is given"
            )
            raise UsageError(
                message, hint="steelyard compare --rev main --rev HEAD --build make -- ./program"
            )


NO_REVISIONS = RevisionOptions()


@dataclass(frozen=True, slots=True)
class Revisions:
    """Revisions that are ready to be measured, and those that are not.

    Parameters
    ----------
    sides : tuple of Side
        Those whose build succeeded, the baseline first.
    failed : tuple of Build
        The others.
    remarks : tuple of str
        How they were chosen, and what is not compared.
    """

    sides: tuple[Side, ...]
    failed: tuple[Build, ...]
    remarks: tuple[str, ...]


def built(options: RevisionOptions, commands: Sequence[str], stack: ExitStack) -> Revisions:
    """Build revisions; nobody removes their builds until the stack is closed.

    Raises
    ------
    UsageError
        If there are fewer than two, or one does not exist.
    RunError
        If the baseline, or all others, cannot be built.
    """
    cache = build_cache(options.build_timeout)
    repository = Repository(Path.cwd())
    commits, remarks = chosen(repository, options.rev, is_exact=options.exact)
    made = {
        commit.asked: stack.enter_context(
            cache.building(repository, commit, options.build, is_again=options.rebuild, tell=tell_of_build)
        )
        for commit in sorted(commits, key=lambda each: build_key(repository, each, options.build))
    }
    builds = [made[commit.asked] for commit in commits]
    failed = tuple(build for build in builds if build.status == "failed")
    if builds[0] in failed or len(failed) == len(builds) - 1:
        raise failed[0].failure()
    programs = {words[0] for words in map(shlex.split, commands) if words}
    ready = [build for build in builds if build not in failed]
    sides = tuple(Side(build.commit.name, build.folder, build.facts(programs)) for build in ready)
    hashes = {str(sorted(side.facts["programs"].items())) for side in sides if side.facts["programs"]}
    if len(hashes) == 1 and all(side.facts["programs"] for side in sides):
        remarks.append("the program is the same file, byte for byte, in all revisions")
    if len({side.facts["tree"] for side in sides}) < len(sides):
        remarks.append("revisions that contain the same files share one build")
    remarks += [f"not compared: {build.failure().message}" for build in failed]
    return Revisions(sides, failed, tuple(f"{OF_REVISIONS}{remark}" for remark in remarks))


def build_cache(timeout: str | None, *, default_s: float = LONGEST_BUILD_S) -> BuildCache:
    """Give the cache of builds, of which old ones are removed.

    Parameters
    ----------
    timeout : str or None
        What ``--build-timeout`` says.
    default_s : float
        Longest time of a build where it says nothing [s].

    Raises
    ------
    UsageError
        If it is no duration.
    """
    cache = BuildCache(timeout_s=longest_s(timeout, default_s))
    cache.tidy()
    return cache


def longest_s(timeout: str | None, default_s: float = LONGEST_BUILD_S) -> float:
    """Give how many seconds ``--build-timeout`` says, or the default."""
    return default_s if timeout is None else parse_duration_ns(timeout, "--build-timeout") / NS_PER_S


def note_links(found: Comparison) -> None:
    """Add what was found to the notes of the revisions; files as they are have no commit to add it to."""
    repository = Repository(Path.cwd())
    asked = {str(build["commit"]): build["asked"] for build in found.builds}
    for line in to_links(found).splitlines():
        commit = json.loads(line)["contender"]["commit"]
        if asked[commit] == WORKING_TREE and commit != repository.commit("HEAD").id:
            sys.stderr.write("not noted: the files as they are have no commit; commit them first\n")
            continue
        try:
            add_note(repository, commit, line)
        except (DataError, OSError) as error:  # the verdict decides the exit code; the result has everything
            sys.stderr.write(f"not noted: {error}\n")


def tell_of_build(build: Build | None, commit: Commit) -> None:
    """Say on the terminal that something takes a while, and how long it took."""
    if build is None:
        sys.stderr.write(inert(f"building {shown(commit.name)} ...\n"))
    elif build.status == "failed":
        sys.stderr.write(inert(shown(f"{build.failure().message}\nhint: {build.failure().hint}\n")))
    elif not build.is_reused and build.command is not None:
        sys.stderr.write(f"built {commit.name} in {format_seconds(build.seconds)}\n")
