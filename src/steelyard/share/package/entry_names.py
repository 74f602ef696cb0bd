"""Which names a file in a package may have: those that mean the same inside one folder on every system."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_PART_BYTES: Final = 255
"""Of one name, as most file systems have it."""

LONGEST_NAME_BYTES: Final = 1024
"""Of a whole path; own choice, well below the 4096 of Linux so that any folder can take the package."""

DEEPEST: Final = 32
"""Names in a path; own choice: a path of 1024 bytes could otherwise make 512 folders."""

_CONTROLS: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's classes of what is no visible character: controls, formats, halves of pairs, line ends."""

_DRIVE: Final = re.compile(r"^[A-Za-z]:")


def fault_of_name(name: str) -> str | None:
    """Say why a file of a package may not have a name.

    Parameters
    ----------
    name : str
        Path inside the package, with ``/`` between its parts.

    Returns
    -------
    str or None
        The reason; ``None`` for a name that is allowed.

    Examples
    --------
    >>> fault_of_name("result/plan.json")
    >>> fault_of_name("../../x")
    'it leads out of the folder'
    """
    return _fault_of_path(name) or next(filter(None, map(_fault_of_part, name.split("/"))), None)


def _fault_of_path(name: str) -> str | None:
    faults = {
        "it is empty": not name,
        "it contains a control character": any(unicodedata.category(each) in _CONTROLS for each in name),
        "it is an absolute path": name.startswith("/"),
        "it contains a backslash": "\\" in name,
        "it begins with the letter of a drive": _DRIVE.match(name) is not None,
        f"it is longer than {LONGEST_NAME_BYTES} bytes": _byte_count(name) > LONGEST_NAME_BYTES,
        f"it leads through more than {DEEPEST} folders": name.count("/") > DEEPEST,
    }
    return next((fault for fault, applies in faults.items() if applies), None)


def _byte_count(name: str) -> int:
    return len(name.encode(errors="surrogatepass"))


def _fault_of_part(part: str) -> str | None:
    if part == "..":
        return "it leads out of the folder"
    if part in {"", "."}:
        return "one of its parts is empty"
    if _byte_count(part) > LONGEST_PART_BYTES:
        return f"one of its parts is longer than {LONGEST_PART_BYTES} bytes"
    return None


def require_names(names: Iterable[str], place: str) -> None:
    """Check the names of all files of a package, each alone and all together.

    Parameters
    ----------
    names : iterable of str
        Paths of files inside the package.
    place : str
        What holds them, for the error.

    Raises
    ------
    DataError
        At the first name that is not allowed, occurs twice, differs from another in nothing but upper and
        lower case, or is a file and a folder at once.
    """
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for name in names:
        fault = fault_of_name(name)
        if fault is None:
            fault = _fault_beside(name, files, folders)
        if fault is not None:
            raise refused(place, f"its file {quoted(name)} has a name that is not allowed: {fault}")


def _fault_beside(name: str, files: dict[str, str], folders: dict[str, str]) -> str | None:
    """Say how a name collides with those before it, and remember it."""
    key = _folded(name)
    if key in files:
        return "it occurs twice" if files[key] == name else _difference(name, files[key])
    if key in folders:
        return "it is a folder as well"
    files[key] = name
    parts = name.split("/")
    for count in range(1, len(parts)):
        folder = "/".join(parts[:count])
        key = _folded(folder)
        if key in files:
            return f"{quoted(folder)} is a file as well"
        if folders.setdefault(key, folder) != folder:
            return f"the folder {_difference(folder, folders[key])}"
    return None


def _difference(name: str, other: str) -> str:
    """Say in what a name differs from one that a file system may take for the same."""
    if unicodedata.normalize("NFC", name) != unicodedata.normalize("NFC", other):
        return f"{quoted(other)} differs in case only"
    pairs = enumerate(zip(name, other, strict=False))
    begin = next((at for at, (one, another) in pairs if one != another), min(len(name), len(other)))
    points = (" ".join(f"U+{ord(each):04X}" for each in one[begin : begin + 2]) for one in (other, name))
    has, here = points
    return f"{quoted(other)} spells the same letters by other signs of Unicode: it has {has}, this one {here}"


def _folded(name: str) -> str:
    """Give what a file system without case, or with another normal form, takes for the same name."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def quoted(name: str) -> str:
    r"""Give a foreign name fit to be shown: nothing in it can move the cursor or hide the rest.

    Examples
    --------
    >>> quoted("a" + chr(27) + "[2J")
    '`a\\x1b[2J`'
    """
    shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
    return f"`{visible(shown)}`"


def visible(text: str) -> str:
    """Give foreign text in one line in which nothing can hide, whole: its end may be the harm."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


_SHOWN: Final = 120


def refused(place: str, reason: str, code: str = "data.package") -> DataError:
    """Give the error for a package that is not unpacked.

    Parameters
    ----------
    place : str
        The package.
    reason : str
        What is wrong with it.
    code : str
        Stable code.
    """
    hint = "get the package again from where it was published; nothing of it was written"
    return DataError(f"`{place}` is refused: {reason}", hint=hint, code=code)
