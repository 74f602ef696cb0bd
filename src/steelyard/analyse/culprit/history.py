"""The commits between two revisions, and which of them contain which."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAST: Final = -1
"""Place of the revision that is known to have the change."""


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """A commit of the history.

    Parameters
    ----------
    id : str
        Of the commit.
    tree : str
        Of its files.
    parents : tuple of int
        Places of those parents that are in the history too; all smaller than its own.
    subject : str
        First line of its message.
    """

    id: str
    tree: str
    parents: tuple[int, ...]
    subject: str = ""


@dataclass(frozen=True)
class History:
    """Commits in an order in which each stands behind its parents; the last one contains all others.

    Parameters
    ----------
    commits : tuple of CommitFacts
        At least one.
    """

    commits: tuple[CommitFacts, ...] = field(repr=False)

    def __len__(self) -> int:
        """Give the number of commits."""
        return len(self.commits)

    @cached_property
    def is_linear(self) -> bool:
        """Whether each commit has the one before it as its only parent in the history."""
        return all(each.parents == ((at - 1,) if at else ()) for at, each in enumerate(self.commits))

    @cached_property
    def _reach(self) -> NDArray[np.bool_]:
        """Whether the commit of a row contains the commit of a column."""
        size = len(self)
        if self.is_linear:
            return np.tri(size, dtype=np.bool_)
        found = np.eye(size, dtype=np.bool_)
        for at, each in enumerate(self.commits):
            for parent in each.parents:
                found[at] |= found[parent]
        return found

    def contains(self, commit: int) -> NDArray[np.bool_]:
        """Give for each commit whether `commit` has its change, shape (n_commits,)."""
        found: NDArray[np.bool_] = self._reach[commit]
        return found

    def changed(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the probability that each commit has the change.

        Parameters
        ----------
        weights : ndarray
            Probability that each commit made it, shape (n_commits,).
        """
        if self.is_linear:
            return np.cumsum(weights)
        made = np.flatnonzero(weights > 0)
        return self._reach[:, made] @ weights[made]

    def classes(self, untestable: frozenset[int]) -> NDArray[np.int64]:
        """Give the number of the class of each commit: those of one class no measurement can tell apart.

        Parameters
        ----------
        untestable : frozenset of int
            Commits that cannot be measured.
        """
        testable = np.array([at not in untestable for at in range(len(self))])
        testable[LAST] = True
        if self.is_linear:
            return np.asarray(np.cumsum(testable) - testable, dtype=np.int64)
        numbers: dict[bytes, int] = {}  # np.unique of rows takes seconds for thousands of commits
        columns = np.packbits(self._reach[testable], axis=0).T
        return np.array(
            [numbers.setdefault(each.tobytes(), len(numbers)) for each in columns], dtype=np.int64
        )

    def sides(self, suspects: NDArray[np.bool_], untestable: frozenset[int]) -> list[tuple[int, int]]:
        """Give the commits before and behind a class between which its change must be seen.

        Parameters
        ----------
        suspects : ndarray
            A class of `classes`, shape (n_commits,).
        untestable : frozenset of int
            As of `classes`.

        Returns
        -------
        list of (int, int)
            A parent, or -1 for the first revision, and the first commit that can be measured and contains
            the class; one for each parent outside of the class.
        """
        inside = np.flatnonzero(suspects).tolist()
        contains = self._reach[:, inside].all(axis=1)
        after = min(at for at in np.flatnonzero(contains).tolist() if at not in untestable)
        found: dict[int, None] = {}
        wanted = [
            parent for at in inside for parent in self._parents(at) if parent < 0 or not suspects[parent]
        ]
        while wanted:
            parent = wanted.pop(0)
            if parent in untestable:
                wanted += self._parents(parent)
            else:
                found.setdefault(parent)
        return [(before, after) for before in found]

    def _parents(self, commit: int) -> tuple[int, ...]:
        return self.commits[commit].parents or (-1,)
