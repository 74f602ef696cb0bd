"""What jobs know of revisions, as notes in Git: ``refs/notes/steelyard``."""

from __future__ import annotations

import fcntl
import tempfile
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.revisions.repository import NOBODY, run_git

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.revisions.repository import Repository

REF: Final = "steelyard"
"""Of the notes: ``git push origin refs/notes/steelyard`` shares them."""
MOST_BYTES: Final = 10_000_000
_LOCK: Final = "steelyard-notes.lock"


def add_note(repository: Repository, commit: str, line: str) -> None:
    """Add a line to the note of a commit.

    Parameters
    ----------
    repository : Repository
        Whose notes.
    commit : str
        Id of the commit.
    line : str
        Without a line feed inside.

    Raises
    ------
    DataError
        If Git, or the system, refuses to write it.
    """
    # A job has often nobody's name; where there is one, the note is theirs.
    is_named = run_git(repository.root, ["var", "GIT_COMMITTER_IDENT"]).returncode == 0
    with tempfile.NamedTemporaryFile("w", prefix="steelyard-note-", encoding="utf-8") as file:
        file.write(line)
        file.flush()
        # Of two commands of Git that append at the same time, one would lose its line.
        with repository.path_of(_LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            repository.ask(
                *("notes", f"--ref={REF}", "append", "-F", file.name, commit),
                environment=None if is_named else NOBODY,
            )


def read_notes(repository: Repository) -> Iterator[tuple[str, str]]:
    """Give the notes, each with the commit that it is about.

    Raises
    ------
    DataError
        If one cannot be read, or is too large.
    """
    listed = run_git(repository.root, ["ls-tree", "-r", "-l", "-z", f"refs/notes/{REF}"])
    for entry in listed.stdout.split("\0") if listed.returncode == 0 else []:
        facts, _, path = entry.partition("\t")
        if not path:
            continue
        _, _, note, size = facts.split()
        commit = path.replace("/", "")  # many notes are in folders by the first digits
        if not size.isdecimal() or int(size) > MOST_BYTES:
            message = f"the note of `{commit}` has more than {MOST_BYTES} bytes"
            raise DataError(message, hint=f"git notes --ref={REF} remove {commit}")
        yield commit, repository.ask("cat-file", "blob", note)


def trees_before(repository: Repository, commit: str = "HEAD") -> dict[str, int]:
    """Give the trees of a commit and of all before it, numbered from the oldest."""
    trees = repository.ask("log", "--topo-order", "--reverse", "--no-show-signature", "--format=%T", commit)
    return {tree: place for place, tree in enumerate(trees.split("\n"))}
