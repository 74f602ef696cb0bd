"""Tags and the note of a result: the user's own words, in a file that no finding depends on."""

from __future__ import annotations

import fcntl
import json
import os
import re
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError, UsageError, unwritable
from steelyard.model.document import read_document
from steelyard.run.state import write_durably

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LABELS_NAME: Final = "labels.json"
LABELS_SCHEMA: Final = "steelyard/labels/1"
LONGEST_NOTE: Final = 4000
"""Characters of a note; own choice, a page of text."""

_TAG: Final = re.compile(r"[^\W_][\w.+:/=@-]{0,63}")


@dataclass(frozen=True, slots=True)
class Labels:
    """What a user says of a result.

    Parameters
    ----------
    tags : tuple of str
        Without repetitions, in alphabetical order.
    note : str
        Free text.
    """

    tags: tuple[str, ...] = ()
    note: str = ""
    schema: str = LABELS_SCHEMA


def checked_tag(tag: str) -> str:
    """Give a tag that is one word.

    Raises
    ------
    UsageError
        If it is none.

    Examples
    --------
    >>> checked_tag("paper-2026")
    'paper-2026'
    """
    if not _TAG.fullmatch(tag):
        message = (
            f"cannot use the tag `{tag}`: allowed: up to 64 letters, digits and the signs `. _ - + : / = @`, "
            "the first a letter or digit"
        )
        raise UsageError(message, hint="e.g. steelyard results tag ID paper-2026")
    return tag


def checked_note(note: str) -> str:
    """Give a note that is not too long.

    Raises
    ------
    UsageError
        If it is.
    """
    if len(note) > LONGEST_NOTE:
        message = f"cannot keep a note of {len(note)} characters: at most {LONGEST_NOTE} are allowed"
        raise UsageError(message, hint="put a longer text into a file beside the result")
    return note


def read_labels(result: Path) -> Labels:
    """Read the labels of a result folder; without the file there are none.

    Raises
    ------
    DataError
        If the file cannot be used.
    """
    path = result / LABELS_NAME
    if not path.exists():
        return Labels()
    damaged = f"repair or delete `{path}`: it holds tags and the note, nothing else"
    found = read_document(path, Labels, LABELS_SCHEMA, absent=damaged, damaged=damaged)
    return Labels(tuple(sorted(set(found.tags))), found.note)


def write_labels(result: Path, labels: Labels) -> None:
    """Write the labels into a result folder; without any, the file is removed.

    Raises
    ------
    DataError
        If the folder cannot be written.
    """
    path = result / LABELS_NAME
    try:
        if not labels.tags and not labels.note:
            path.unlink(missing_ok=True)
            return
        write_durably(path, json.dumps(asdict(labels), indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise unwritable(path, error, f"check the rights of `{result}`") from error


def changed_labels(result: Path, *, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()) -> Labels:
    """Add and remove tags in the folder, and give what it has now.

    Raises
    ------
    DataError
        If the file or the folder cannot be used, or a tag to remove is not there.
    """
    with _alone(result):
        return _changed(result, add, remove)


def changed_note(result: Path, note: str) -> Labels:
    """Write the note of a result, and give what it has now.

    Raises
    ------
    DataError
        If the file or the folder cannot be used.
    UsageError
        If the note is too long.
    """
    with _alone(result):
        labels = Labels(read_labels(result).tags, checked_note(note))
        write_labels(result, labels)
    return labels


@contextmanager
def _alone(result: Path) -> Iterator[None]:
    """Let one process at a time change labels, by a lock on a file that is not replaced."""
    path = next((path for name in ("plan.json", "runs.parquet") if (path := result / name).exists()), result)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise unwritable(result, error, f"check the rights of `{path}`") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _changed(result: Path, add: tuple[str, ...], remove: tuple[str, ...]) -> Labels:
    now = read_labels(result)
    absent = [tag for tag in remove if tag not in now.tags]
    if absent:
        has = ", ".join(f"`{tag}`" for tag in now.tags) or "none"
        message = f"cannot remove the tag `{absent[0]}` from `{result}`: its tags: {has}"
        raise DataError(message, hint="steelyard results show", code="data.tag")
    changed = Labels(tuple(sorted({*now.tags, *map(checked_tag, add)} - set(remove))), now.note)
    write_labels(result, changed)
    return changed
