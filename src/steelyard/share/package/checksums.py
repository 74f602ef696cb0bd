"""``manifest-sha256.txt`` of a package: what is in it, in the form that ``sha256sum -c`` reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.record.seal import hash_file
from steelyard.share.package.entry_names import quoted, require_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

MANIFEST_NAME: Final = "manifest-sha256.txt"
LARGEST_MANIFEST_BYTES: Final = 64 << 20
"""A line has some hundred bytes at most: more files than any result folder has."""

_LINE: Final = re.compile(r"([0-9a-f]{64})  (.+)")


def manifest_text(hashes: Mapping[str, str]) -> str:
    """Write a manifest.

    Parameters
    ----------
    hashes : mapping
        SHA-256 as hexadecimal text, by path in the package.

    Examples
    --------
    >>> print(manifest_text({"b": "0" * 64, "a": "1" * 64}), end="")
    1111111111111111111111111111111111111111111111111111111111111111  a
    0000000000000000000000000000000000000000000000000000000000000000  b
    """
    return "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes))


def read_manifest(folder: Path) -> dict[str, str]:
    """Read the manifest of an unpacked package.

    Returns
    -------
    dict
        SHA-256 as hexadecimal text, by path in the package.

    Raises
    ------
    DataError
        If it is absent, too large, no manifest, or names a file outside the package.
    """
    path = folder / MANIFEST_NAME
    hint = "get the package again from where it was published"
    try:
        if path.stat().st_size > LARGEST_MANIFEST_BYTES:
            message = f"`{path}` is larger than {LARGEST_MANIFEST_BYTES} bytes"
            raise DataError(message, hint=hint, code="data.manifest")
        lines = path.read_bytes().decode("utf-8").split("\n")
    except FileNotFoundError as error:
        message = f"the package has no `{MANIFEST_NAME}`"
        raise DataError(message, hint=hint, code="data.manifest") from error
    except UnicodeDecodeError as error:
        message = f"`{MANIFEST_NAME}` of the package is not UTF-8"
        raise DataError(message, hint=hint, code="data.manifest") from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines[:-1] if lines[-1] == "" else lines, start=1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in found:
            message = f"line {number} of `{MANIFEST_NAME}` is not a hash with the path of one file"
            raise DataError(message, hint=hint, code="data.manifest")
        found[match[2]] = match[1]
    require_names(found, MANIFEST_NAME)
    return found


def files_of(folder: Path) -> Iterator[str]:
    """Give the paths of all files in an unpacked package, as in its manifest.

    Raises
    ------
    DataError
        If something in it is neither a file nor a folder, a link included.
    """
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            message = f"`{path}` is neither a file nor a folder"
            raise DataError(message, hint="give a package as it was unpacked", code="data.package")
        if path.is_dir():
            yield from (f"{path.name}/{name}" for name in files_of(path))
        else:
            yield path.name


def compare_manifest(folder: Path) -> list[str]:
    """Compare all files of an unpacked package with its manifest.

    Returns
    -------
    list of str
        One sentence per file that is missing, surplus or another one.
    """
    listed, present = read_manifest(folder), set(files_of(folder)) - {MANIFEST_NAME}
    problems = [f"{quoted(name)} is missing: `{MANIFEST_NAME}` lists it" for name in listed.keys() - present]
    problems += [
        f"{quoted(name)} is surplus: `{MANIFEST_NAME}` does not list it" for name in present - listed.keys()
    ]
    for name in present & listed.keys():
        found = hash_file(folder / name)
        if found != listed[name]:
            problems.append(
                f"{quoted(name)} has another hash: {found}, `{MANIFEST_NAME}` says {listed[name]}"
            )
    return sorted(problems)
