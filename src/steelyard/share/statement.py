"""``about.json`` of a package: what only its author, or who packed it, can say; all else follows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, metadata
from typing import TYPE_CHECKING, Any, Final

from steelyard import __version__
from steelyard.errors import DataError, SteelyardError
from steelyard.model.document import read_document
from steelyard.share.about import About, checked_about

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

STATEMENT_NAME: Final = "about.json"
STATEMENT_SCHEMA: Final = "steelyard/about/1"
_HINT: Final = "get the package again from where it was published"


@dataclass(frozen=True, slots=True)
class Statement:
    """What cannot be computed from a result.

    Parameters
    ----------
    about : dict
        What people say: the keys of `About` that were given.
    is_checked : bool
        Whether every finding was computed again when the package was made.
    left_out : dict
        What of the result folder is not in the package, and why.
    packed_with : str
        Version of Steelyard that made the package.
    licences : dict
        Licence of each Python package that took part, as its installation states it.
    schema : str
        Schema name and version.
    """

    about: dict[str, Any] = field(default_factory=dict)
    is_checked: bool = False
    left_out: dict[str, str] = field(default_factory=dict)
    packed_with: str = __version__
    licences: dict[str, str] = field(default_factory=dict)
    schema: str = STATEMENT_SCHEMA

    def said(self) -> About:
        """Give what people say, checked as when it was given.

        Raises
        ------
        DataError
            If it is none of what may be said.
        """
        try:
            return checked_about(self.about, f"`{STATEMENT_NAME}`")
        except SteelyardError as error:
            raise DataError(error.message, hint=_HINT, code="data.package") from error

    def text(self) -> str:
        """Give the file."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"


def read_statement(folder: Path) -> Statement:
    """Read what is said in an unpacked package.

    Raises
    ------
    DataError
        If it is absent, damaged or of another schema.
    """
    return read_document(folder / STATEMENT_NAME, Statement, STATEMENT_SCHEMA, absent=_HINT, damaged=_HINT)


def installed_licences(names: Iterable[str]) -> dict[str, str]:
    """Give the licences that the installed Python packages of some names state of themselves."""
    found = {}
    for name in names:
        try:
            about = metadata(name).json
        except PackageNotFoundError:
            continue
        stated = about.get("license_expression") or str(about.get("license") or "").partition("\n")[0]
        classified = [
            each.rpartition(" :: ")[2] for each in about.get("classifier", ()) if each.startswith("License")
        ]
        found[name] = str(stated) or ", ".join(classified) or "not stated"
    return found
