"""Levels of a history that somebody has accepted: which result, who, when and why.

Version history of ``steelyard/accepted-levels``:

1. Results by name, for all series, or for some metrics and names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from steelyard.errors import DataError
from steelyard.model.document import read_document, write_document

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA: Final = "steelyard/accepted-levels/1"
ACCEPTED_NAME: Final = "accepted-levels.json"
LONGEST_TEXT: Final = 1000
MOST_BYTES: Final = 10_000_000
_DAMAGED: Final = "restore it from your version control, or name another file with `--accepted`"

Text = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]


@dataclass(frozen=True, slots=True)
class AcceptedLevel:
    """A level that counts as the one to hold.

    Parameters
    ----------
    result : str
        Name of a result of the level, as `steelyard history` prints it.
    by, why : str
        Who accepted it, and the reason; printable, 1 to 1000 characters.
    at : str
        When, ISO 8601 with time zone.
    metrics : list of str
        Metrics that it is accepted for; empty for all.
    series : list of str
        Names or patterns of the series that it is accepted for; empty for all.
    """

    result: Text
    by: Text
    at: Text
    why: Text
    metrics: list[Text]
    series: list[Text] = field(default_factory=list)

    def is_for(self, metric: str, *names: str) -> bool:
        """Whether it is accepted for a metric of a series, by any of the names that the series has.

        Examples
        --------
        >>> level = AcceptedLevel("r7", "ada", "2026-05-04T12:00:00+00:00", "checks more", [], ["parse*"])
        >>> level.is_for("wall", "parse_json"), level.is_for("wall", "render")
        (True, False)
        """
        return (not self.metrics or metric in self.metrics) and (
            not self.series
            or any(name == each or fnmatchcase(name, each) for each in self.series for name in names)
        )

    @property
    def sentence(self) -> str:
        """What was accepted, by whom, when and why."""
        of = ", ".join([*self.series, *self.metrics])
        level = f"the level of {of}" if of else "the level"
        return f"accepted: {level} at `{self.result}`, {self.at[:10]}, {self.by}: {self.why}"


@dataclass(frozen=True, slots=True)
class _Document:
    schema: Literal["steelyard/accepted-levels/1"]
    levels: list[AcceptedLevel]


def read_accepted(path: Path) -> list[AcceptedLevel]:
    """Read the levels that were accepted, oldest first; none where the file does not exist.

    Raises
    ------
    DataError
        If the file cannot be read, is damaged, too large, of another schema, or names a time that is none.
    """
    try:
        size = path.stat().st_size if path.exists() else None
    except OSError as error:
        message = f"cannot read `{path}`: {error.strerror}"
        raise DataError(message, hint=_DAMAGED, code="data.absent") from error
    if size is None:
        return []
    if not path.is_file() or size > MOST_BYTES:
        message = f"cannot read `{path}`: it is not a file of at most {MOST_BYTES} bytes"
        raise DataError(message, hint=_DAMAGED, code="data.schema")
    levels = read_document(path, _Document, SCHEMA, absent=_DAMAGED, damaged=_DAMAGED).levels
    for place, level in enumerate(levels):
        if not _is_time(level.at):
            message = f"`{path}` is not of schema `{SCHEMA}`: `levels.{place}.at`: not a time with its zone"
            raise DataError(message, hint=_DAMAGED, code="data.schema")
    return levels


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def add_accepted(path: Path, level: AcceptedLevel) -> None:
    """Add a level to those that were accepted; the file is replaced as a whole.

    Raises
    ------
    DataError
        If the file that is there cannot be used, or it cannot be written.
    """
    document = _Document(SCHEMA, [*read_accepted(path), level])
    write_document(path, document, hint=f"check the rights of `{path.parent}`, or use `--accepted`", indent=1)
