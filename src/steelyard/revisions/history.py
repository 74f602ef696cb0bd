"""The commits between two revisions of a repository, in an order in which each stands behind its parents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.analyse.culprit.history import CommitFacts, History
from steelyard.errors import UsageError
from steelyard.revisions.repository import as_text

if TYPE_CHECKING:
    from steelyard.revisions.repository import Commit, Repository

MOST_COMMITS: Final = 20_000
"""Which commit contains which is kept as a square of bytes where there are merges."""
_FIELDS: Final = "%H%x1f%T%x1f%P%x1f%s"


@dataclass(frozen=True, slots=True)
class Span:
    """What lies between two revisions.

    Parameters
    ----------
    good, bad : Commit
        Where it begins and ends.
    history : History
        Commits behind `good` up to `bad` that change a file; the last one has the files of `bad`.
    remarks : tuple of str
        How it was chosen.
    """

    good: Commit
    bad: Commit
    history: History
    remarks: tuple[str, ...] = ()


def span_between(repository: Repository, good: str, bad: str, *, first_parent: bool = False) -> Span:
    """Give the commits that one revision has and another lacks.

    Where the first is no ancestor of the second, their merge base takes its place: what the first has alone
    made no difference to the second.

    Parameters
    ----------
    repository : Repository
        Where they are.
    good, bad : str
        Revisions by any name that Git knows; `bad` may be ``.``, the files as they are.
    first_parent : bool
        Follow the first parent of merges alone: each merge counts as one change.

    Raises
    ------
    UsageError
        If one does not exist, they have no commit in common, or nothing lies between them.
    """
    begin, end = repository.commit(good), repository.commit(bad)
    base = repository.merge_base([begin, end])
    if base is None:
        message = f"`{good}` and `{bad}` have no commit in common"
        raise UsageError(message, hint="give two revisions of one history", code="usage.revision")
    if base == end.id:
        message = f"`{bad}` contains no commit that `{good}` lacks"
        hint = "give the revision without the change first: steelyard bisect GOOD BAD"
        raise UsageError(message, hint=hint, code="usage.revision")
    remarks: tuple[str, ...] = ()
    if base != begin.id:
        begin = repository.commit(base)
        remarks = (f"`{bad}` does not contain `{good}`: their merge base {begin.name} is measured instead",)
    way = ["--first-parent"] if first_parent else []
    said = repository.ask(
        "log", "--no-show-signature", "--topo-order", "--reverse", *way, f"--format={_FIELDS}",
        f"{begin.id}..{end.id}",
    )  # fmt: skip
    rows = [line.split("\x1f", 3) for line in said.split("\n")]
    if len(rows) > MOST_COMMITS:
        message = f"{len(rows)} commits lie between `{good}` and `{bad}`; allowed: at most {MOST_COMMITS}"
        raise UsageError(message, hint="add --first-parent, or give revisions that are closer together")
    history = _history(rows, begin, first_parent=first_parent)
    if not len(history):
        message = f"no commit between `{good}` and `{bad}` changes a file"
        raise UsageError(message, hint="compare what else differs, such as the build", code="usage.revision")
    if len(history) < len(rows):
        remarks += (f"{len(rows) - len(history)} of {len(rows)} commits change no file and are left out",)
    return Span(begin, end, history, remarks)


def _history(rows: list[list[str]], begin: Commit, *, first_parent: bool) -> History:
    """Give the commits that change a file; one with the files of its only parent stands for that parent."""
    trees = {begin.id: begin.tree} | {identifier: tree for identifier, tree, _, _ in rows}
    places: dict[str, int | None] = {}
    found: list[CommitFacts] = []
    for identifier, tree, parents, subject in rows:
        above = parents.split()[: 1 if first_parent else None]
        if len(above) == 1 and trees.get(above[0]) == tree:
            places[identifier] = places.get(above[0])
            continue
        inside = {place for parent in above if (place := places.get(parent)) is not None}
        places[identifier] = len(found)
        found.append(CommitFacts(identifier, tree, tuple(sorted(inside)), as_text(subject)))
    return History(tuple(found))
