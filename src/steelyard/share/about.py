"""What people say of a package: title, authors, licence, description."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from steelyard.errors import StudyFileError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic_core import ErrorDetails

_ORCID: Final = re.compile(r"(?:https://orcid\.org/)?(\d{4}-\d{4}-\d{4}-\d{3}[\dX])")
_DATE: Final = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$"

LICENCES: Final = (
    "0BSD",
    "AGPL-3.0-only",
    "AGPL-3.0-or-later",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC-BY-4.0",
    "CC-BY-NC-4.0",
    "CC-BY-SA-4.0",
    "CC0-1.0",
    "EPL-2.0",
    "EUPL-1.2",
    "GPL-2.0-only",
    "GPL-2.0-or-later",
    "GPL-3.0-only",
    "GPL-3.0-or-later",
    "ISC",
    "LGPL-3.0-only",
    "LGPL-3.0-or-later",
    "MIT",
    "MPL-2.0",
    "ODbL-1.0",
    "ODC-By-1.0",
    "PDDL-1.0",
    "Unlicense",
)
"""Identifiers of the SPDX licence list under which data and programs are commonly published."""


def checked_orcid(text: str) -> str:
    """Give an ORCID as its address.

    Raises
    ------
    ValueError
        If it is none, or its last character is not the check character of ISO 7064 (mod 11-2).

    Examples
    --------
    >>> checked_orcid("0000-0002-1825-0097")
    'https://orcid.org/0000-0002-1825-0097'
    """
    match = _ORCID.fullmatch(text)
    if match is None:
        message = "is not an ORCID: expected four groups of four digits, as in 0000-0002-1825-0097"
        raise ValueError(message)
    digits = match[1].replace("-", "")
    total = 0
    for digit in digits[:-1]:
        total = (total + int(digit)) * 2
    expected = (12 - total % 11) % 11
    if digits[-1] != ("X" if expected == 10 else str(expected)):  # noqa: PLR2004 - ISO 7064
        message = f"is not an ORCID: its last character does not match the others: {text}"
        raise ValueError(message)
    return f"https://orcid.org/{match[1]}"


def _checked_licence(text: str) -> str:
    if text not in LICENCES:
        message = f"is not one of {', '.join(LICENCES)}; state any other with `licence_notes`"
        raise ValueError(message)
    return text


class Author(BaseModel):
    """Who answers for a package."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str | None = Field(default=None, min_length=1)
    given_names: str | None = Field(default=None, min_length=1)
    family_names: str | None = Field(default=None, min_length=1)
    orcid: Annotated[str, AfterValidator(checked_orcid)] | None = None
    affiliation: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _is_named(self) -> Author:
        if not (self.name or self.family_names):
            message = "an author needs `name`, or `given_names` and `family_names`"
            raise ValueError(message)
        return self

    @property
    def shown(self) -> str:
        """The whole name."""
        return self.name or " ".join(filter(None, (self.given_names, self.family_names)))


class About(BaseModel):
    """What a file given by ``--about`` may say; everything has a plain default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str | None = Field(default=None, min_length=1)
    description: str | None = Field(default=None, min_length=1)
    authors: tuple[Author, ...] = ()
    licence: Annotated[str, AfterValidator(_checked_licence)] | None = None
    licence_notes: str | None = Field(default=None, min_length=1)
    lessons: str | None = Field(default=None, min_length=1)
    date: str | None = Field(default=None, pattern=_DATE)
    keywords: tuple[str, ...] = ()


def read_about(path: Path | None) -> About:
    """Read what is said of a package.

    Parameters
    ----------
    path : Path or None
        TOML file; ``None`` says nothing.

    Raises
    ------
    StudyFileError
        With all problems of the file at once.
    """
    if path is None:
        return About()
    hint = "docs/guides/packages.md contains an example to start from"
    try:
        content = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        message = f"cannot read `{path}`: {error.strerror}"
        raise StudyFileError(message, hint=hint, code="study-file.absent") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"`{path}` is not TOML: {error}"
        raise StudyFileError(message, hint=hint, code="study-file.syntax") from error
    return checked_about(content, f"`{path}`")


def checked_about(content: Mapping[str, object], place: str) -> About:
    """Check what is said of a package.

    Parameters
    ----------
    content : mapping
        As the file has it.
    place : str
        Where it stands, for the error.

    Raises
    ------
    StudyFileError
        With all problems at once.
    """
    try:
        return About.model_validate(content)
    except ValidationError as error:
        lines = [_problem(details) for details in error.errors(include_url=False)]
        message = "\n".join([f"cannot use {place}:", *dict.fromkeys(lines)])
        hint = "docs/guides/packages.md lists every key"
        raise StudyFileError(message, hint=hint, code="study-file.invalid") from error


def _problem(details: ErrorDetails) -> str:
    path = ".".join(map(str, details["loc"])) or "the file"
    if details["type"] == "extra_forbidden":
        known = Author if details["loc"][0] == "authors" else About
        return f"  `{path}` is not known; allowed: {', '.join(f'`{name}`' for name in known.model_fields)}"
    return f"  `{path}`: {details['msg'].removeprefix('Value error, ')}"
