"""What jobs know of revisions, as notes in Git: ``refs/notes/steelyard``."""

from __future__ import annotations

import fcntl
import os
import tempfile
from io import BytesIO
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.revisions.repository import NOBODY, run_git

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.revisions.repository import Repository

REF: Final = "steelyard"
"""Of the notes: ``git push origin refs/notes/steelyard`` shares them."""
_NAME: Final = f"refs/notes/{REF}"
MOST_BYTES: Final = 10_000_000
_DAMAGED: Final = "`git fsck` names what is damaged"
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
    """Give the notes, each with the commit that it is about; none where there is no reference.

    Raises
    ------
    DataError
        If one, or the reference, cannot be read, or one is too large.
    """
    found = run_git(repository.root, ["for-each-ref", _NAME])
    if not found.stdout and not found.stderr:
        return
    notes: dict[str, str] = {}
    for entry in _read(repository, "ls-tree", "-r", "-l", "-z", _NAME).split("\0"):
        facts, _, path = entry.partition("\t")
        if not path:
            continue
        _, _, note, size = facts.split()
        commit = path.replace("/", "")  # many notes are in folders by the first digits
        if size.isdecimal() and int(size) > MOST_BYTES:  # Git has no size of what is missing
            message = f"the note of `{commit}` has more than {MOST_BYTES} bytes"
            raise DataError(message, hint=f"git notes --ref={REF} remove {commit}")
        notes[commit] = note
    # One process: thousands of notes would take as many.
    given = "".join(f"{note}\n" for note in notes.values()).encode()
    content = BytesIO(os.fsencode(_read(repository, "cat-file", "--batch", given=given)))
    for commit in notes:
        match content.readline().split():
            case [_, _, length]:
                yield commit, os.fsdecode(content.read(int(length)))
                content.read(1)
            case _:
                message = f"cannot read the note of `{commit}`: it is missing"
                raise DataError(message, hint=_DAMAGED, code="data.git")


def _read(repository: Repository, *arguments: str, given: bytes = b"") -> str:
    """Give what Git says of the notes."""
    done = run_git(repository.root, arguments, given=given)
    if done.returncode != 0:
        message = f"cannot read `{_NAME}`: {' '.join(done.stderr.split())}"
        raise DataError(message, hint=_DAMAGED, code="data.git")
    return done.stdout


def trees_before(repository: Repository, commit: str = "HEAD") -> dict[str, int]:
    """Give the trees of a commit and of all before it, numbered from the oldest."""
    found = repository.commit(commit).id
    trees = repository.ask("log", "--topo-order", "--reverse", "--no-show-signature", "--format=%T", found)
    return {tree: place for place, tree in enumerate(trees.split("\n"))}
