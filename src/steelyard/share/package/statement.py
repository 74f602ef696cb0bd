"""``about.json`` of a package: what only its author, or who packed it, can say; all else follows."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, distribution, metadata
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from steelyard import __version__
from steelyard.errors import DataError, SteelyardError, UsageError
from steelyard.model.document import read_document
from steelyard.record.seal import hash_file
from steelyard.share.about import About, checked_about

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

STATEMENT_NAME: Final = "about.json"
STATEMENT_SCHEMA: Final = "steelyard/about/1"
BASE_IMAGE: Final = (
    "docker.io/library/debian:trixie-slim"
    "@sha256:a29215f6a35e51e22adffa17f89e9d2ef06214e64a2bad10d765c46aea49f11f"
)
"""Debian 13, for every architecture that Steelyard is built for."""

IMAGE: Final = re.compile(r"[a-z0-9][a-z0-9./:_-]*@sha256:[0-9a-f]{64}")
WHEEL: Final = re.compile(r"steelyard-[\w.+!-]+\.whl", re.ASCII)
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
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
    wheel : dict or None
        ``name`` and ``sha256`` of the wheel of Steelyard that a container installs; ``None`` if not known.
    carries_wheel : bool
        Whether it is in the package.
    base_image : str
        Image from which the container is made, by its digest.
    schema : str
        Schema name and version.
    """

    about: dict[str, Any] = field(default_factory=dict)
    is_checked: bool = False
    left_out: dict[str, str] = field(default_factory=dict)
    packed_with: str = __version__
    licences: dict[str, str] = field(default_factory=dict)
    wheel: dict[str, str] | None = None
    carries_wheel: bool = False
    base_image: str = BASE_IMAGE
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
    path = folder / STATEMENT_NAME
    statement = read_document(path, Statement, STATEMENT_SCHEMA, absent=_HINT, damaged=_HINT)
    wheel = statement.wheel or {"name": "steelyard-0.whl", "sha256": "0" * 64}
    is_wheel = WHEEL.fullmatch(wheel.get("name", "")) and _SHA256.fullmatch(wheel.get("sha256", ""))
    if not is_wheel or IMAGE.fullmatch(statement.base_image) is None:
        message = f"`{STATEMENT_NAME}` of the package names a wheel or an image that no recipe installs"
        raise DataError(message, hint=_HINT, code="data.package")
    return statement


def wheel_of(path: Path, version: str) -> dict[str, str]:
    """Give name and hash of a wheel of Steelyard that a package shall carry.

    Parameters
    ----------
    path : Path
        The file.
    version : str
        Of Steelyard that recorded the result; empty where it is not known.

    Raises
    ------
    UsageError
        If it is none, or of another version.
    """
    hint = "`make wheel` builds it in a checkout"
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
            about = archive.read(names[0]).decode() if names else ""
    except (OSError, zipfile.BadZipFile, UnicodeDecodeError) as error:
        message = f"`{path}` is not a wheel: {error}"
        raise UsageError(message, hint=hint, code="usage.wheel") from error
    found = dict(line.split(": ", 1) for line in about.partition("\n\n")[0].splitlines() if ": " in line)
    if found.get("Name") != "steelyard" or WHEEL.fullmatch(path.name) is None:
        message = f"`{path}` is not a wheel of Steelyard"
        raise UsageError(message, hint=hint, code="usage.wheel")
    if version and found.get("Version") != version:
        message = f"`{path}` is of version {found.get('Version')}; version {version} recorded the result"
        raise UsageError(message, hint=hint, code="usage.wheel")
    return {"name": path.name, "sha256": hash_file(path)}


def installed_wheel() -> dict[str, str] | None:
    """Give name and hash of the wheel that Steelyard was installed from, where its installer kept them."""
    try:
        text = distribution("steelyard").read_text("direct_url.json")
        origin = json.loads(text or "{}")
    except (PackageNotFoundError, ValueError):
        return None
    name = unquote(urlsplit(str(origin.get("url", ""))).path.rpartition("/")[2])
    sha256 = str(((origin.get("archive_info") or {}).get("hashes") or {}).get("sha256", ""))
    is_known = WHEEL.fullmatch(name) and _SHA256.fullmatch(sha256)
    return {"name": name, "sha256": sha256} if is_known else None


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
