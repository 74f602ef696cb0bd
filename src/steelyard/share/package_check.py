"""Whether a package is what it says: its files, its metadata, and every finding."""

from __future__ import annotations

import json
import shlex
import tempfile
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from steelyard.errors import DataError
from steelyard.model.plan import read_plan
from steelyard.share.checksums import MANIFEST_NAME, compare_manifest, read_manifest
from steelyard.share.crate import CRATE_NAME, CRATE_PROFILE, PREVIEW_NAME, PROCESS_PROFILE, RESULT
from steelyard.share.entry_names import quoted, refused
from steelyard.share.unpack import unpack
from steelyard.share.verify import not_compared, verify

if TYPE_CHECKING:
    from collections.abc import Iterator

_LARGEST_CRATE_BYTES: Final = 256 << 20


@contextmanager
def opened(place: Path) -> Iterator[Path]:
    """Give the folder of a package or a result, unpacked into a private folder for as long as it is used.

    Parameters
    ----------
    place : Path
        An archive, the folder that one was unpacked into, or a result folder.

    Raises
    ------
    DataError
        If it does not exist, or is an archive that is refused.
    """
    if place.is_dir():
        yield place
        return
    if not place.is_file():
        message = f"`{place}` does not exist"
        hint = "give a result folder, or a package that `steelyard pack` wrote"
        raise DataError(message, hint=hint, code="data.absent")
    if not zipfile.is_zipfile(place):
        raise refused(str(place), "it is no ZIP archive, or not a whole one")
    with tempfile.TemporaryDirectory(prefix="steelyard-package-") as folder:
        unpack(place, Path(folder))
        yield Path(folder)


@contextmanager
def opened_result(place: Path) -> Iterator[Path]:
    """Give the result folder of a package whose files are those that were packed; a result folder as it is.

    Parameters
    ----------
    place : Path
        An archive, the folder that one was unpacked into, or a result folder.

    Raises
    ------
    DataError
        If it is refused, or its files are not those of its manifest.
    """
    if not place.exists():
        yield place  # whatever reads it says what is absent, and how it is made
        return
    with opened(place) as folder:
        if place.is_dir() and not is_package(folder):
            yield folder
            return
        problems = compare_manifest(folder)
        if problems:
            message = f"`{place}` is not the package that was packed: {problems[0]}"
            hint = f"`steelyard verify {shlex.quote(str(place))}` lists everything"
            raise DataError(message, hint=hint, code="data.package")
        yield folder / RESULT.rstrip("/")


def is_package(folder: Path) -> bool:
    """Whether a folder is an unpacked package."""
    return (folder / MANIFEST_NAME).exists() or (folder / CRATE_NAME).exists()


@dataclass(frozen=True, slots=True)
class Verification:
    """What verifying a package or a result folder found.

    Parameters
    ----------
    problems : list of str
        One sentence per disagreement; empty if everything is confirmed.
    not_compared : list of str
        One sentence for each thing that this installation cannot compare.
    """

    problems: list[str]
    not_compared: list[str]


def verify_place(place: Path) -> Verification:
    """Check a package or a result folder and list what does not agree.

    Of a package, first its files are compared with its manifest and its metadata; only if nothing is missing,
    surplus or changed, its result is verified as any result folder.

    Parameters
    ----------
    place : Path
        Archive, unpacked package or result folder. It is not changed.

    Returns
    -------
    Verification
        Disagreements, and what was not compared.

    Raises
    ------
    DataError
        If it is refused or cannot be read.
    """
    with opened(place) as folder:
        if place.is_dir() and not is_package(folder):
            return _verify_result(folder)
        problems = compare_manifest(folder)
        if problems:
            last = "its findings were not computed again: the files are not those that were packed"
            return Verification([*problems, last], [])
        crate = list(_compare_crate(folder))
        result = folder / RESULT.rstrip("/")
        if not result.is_dir():
            message = f"the package holds no folder `{RESULT}`"
            raise DataError(message, hint="give a package that `steelyard pack` wrote", code="data.package")
        found = _verify_result(result)
        return Verification([*crate, *found.problems], found.not_compared)


def _verify_result(result: Path) -> Verification:
    return Verification(verify(result), not_compared(result))


def _compare_crate(folder: Path) -> Iterator[str]:
    """Compare the crate's metadata with the files."""
    entities = _entities(folder)
    by_id = {str(entity.get("@id")): entity for entity in entities}
    if len(by_id) != len(entities):
        yield f"`{CRATE_NAME}` describes one thing twice"
    if _reference(by_id.get(CRATE_NAME, {}).get("conformsTo")) != {CRATE_PROFILE}:
        yield f"`{CRATE_NAME}` does not say that it follows RO-Crate 1.1"
    root = by_id.get("./", {})
    if PROCESS_PROFILE not in _reference(root.get("conformsTo")):
        yield f"`{CRATE_NAME}` does not say that it follows Process Run Crate 0.5"
    plan_id = read_plan(folder / RESULT / "plan.json").id
    if root.get("identifier") != f"steelyard-plan:{plan_id}":
        yield f"`{CRATE_NAME}` is of another plan than `{RESULT}plan.json`"
    hashes = read_manifest(folder)
    described = {unquote(name): entity for name, entity in by_id.items() if _is_file(entity)}
    for name in sorted(described.keys() - hashes.keys()):
        yield f"`{CRATE_NAME}` describes {quoted(name)}, which is not in the package"
    for name in sorted(hashes.keys() - described.keys() - {CRATE_NAME, PREVIEW_NAME}):
        yield f"`{CRATE_NAME}` does not describe {quoted(name)}"
    for name in sorted(described.keys() & hashes.keys()):
        entity = described[name]
        if entity.get("sha256") != hashes[name]:
            yield f"`{CRATE_NAME}` says another hash of {quoted(name)}"
        if entity.get("contentSize") != str((folder / name).stat().st_size):
            yield f"`{CRATE_NAME}` says another size of {quoted(name)}"


def _is_file(entity: dict[str, Any]) -> bool:
    kind = entity.get("@type")
    return kind == "File" or (isinstance(kind, list) and "File" in kind)


def _reference(value: object) -> set[str]:
    each = value if isinstance(value, list) else [value]
    return {str(one["@id"]) for one in each if isinstance(one, dict) and "@id" in one}


def _entities(folder: Path) -> list[dict[str, Any]]:
    path = folder / CRATE_NAME
    hint = "get the package again from where it was published"
    try:
        if path.stat().st_size > _LARGEST_CRATE_BYTES:
            message = f"`{CRATE_NAME}` is larger than {_LARGEST_CRATE_BYTES} bytes"
            raise DataError(message, hint=hint, code="data.crate")
        content = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        message = f"the package holds no `{CRATE_NAME}`"
        raise DataError(message, hint=hint, code="data.crate") from error
    except (ValueError, RecursionError) as error:
        message = f"`{CRATE_NAME}` is not JSON"
        raise DataError(message, hint=hint, code="data.crate") from error
    graph = content.get("@graph") if isinstance(content, dict) else None
    if not isinstance(graph, list) or not all(isinstance(entity, dict) for entity in graph):
        message = f"`{CRATE_NAME}` is no RO-Crate: it has no list `@graph`"
        raise DataError(message, hint=hint, code="data.crate")
    return graph
