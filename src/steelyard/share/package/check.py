"""Whether a package is what it says: its files, its metadata, and every finding."""

from __future__ import annotations

import json
import re
import resource
import shlex
import tempfile
import zipfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from steelyard import __version__
from steelyard.errors import DataError, SteelyardError
from steelyard.model.plan import read_plan
from steelyard.record.provenance import PROVENANCE_NAME
from steelyard.record.seal import hash_file
from steelyard.share.package.archive import Part, part_of_file
from steelyard.share.package.checksums import MANIFEST_NAME, compare_manifest, files_of, read_manifest
from steelyard.share.package.crate import CRATE_NAME, CRATE_PROFILE, PREVIEW_NAME, PROCESS_PROFILE, RESULT
from steelyard.share.package.entry_names import quoted, refused
from steelyard.share.package.parts import describing_parts, result_parts
from steelyard.share.package.recipe import RECIPE_NAME, WHEELS
from steelyard.share.package.statement import BASE_IMAGE, STATEMENT_NAME, read_statement
from steelyard.share.package.unpack import unpack
from steelyard.share.package.workload_sources import SCRIPTS, WORKLOADS
from steelyard.share.verification import Verification
from steelyard.share.verify import changed_text, examine
from steelyard.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.share.package.statement import Statement

_LARGEST_CRATE_BYTES: Final = 256 << 20
_SMALLEST_MEMORY_BYTES: Final = 4 << 30
_MEMORY_PER_BYTE: Final = 64
"""Memory that the analysis may take, per byte of a package; own choice, far above what any study takes."""


_NAMED_OF_A_KIND: Final = 20
"""Problems of one kind that are named; the rest is counted."""

_VARYING: Final = re.compile(r"`[^`]*`|[0-9a-f]{64}")
"""What differs between problems of one kind: names and hashes."""


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
        message = f"`{place}` {'is neither a folder nor a file' if place.exists() else 'does not exist'}"
        hint = "give a result folder, or a package that `steelyard pack` wrote"
        raise DataError(message, hint=hint, code="data.absent")
    if not zipfile.is_zipfile(place):
        raise refused(str(place), "it is not a ZIP archive, or an incomplete one")
    with tempfile.TemporaryDirectory(prefix="steelyard-package-") as folder:
        unpack(place, Path(folder))
        try:
            yield Path(folder)
        except SteelyardError as error:
            raise _of_package(error, folder, place) from error


def _of_package(error: SteelyardError, folder: str, place: Path) -> SteelyardError:
    """Give an error about a file of a private copy as one about the package: the copy is gone by then."""
    if folder not in f"{error.message}{error.hint}":
        return error
    message = f"inside `{place}`: {error.message.replace(f'{folder}/', '')}"
    hint = error.hint if error.hint and folder not in error.hint else "get the package again from its author"
    return type(error)(message, hint=hint, code=error.code)


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


def verify_place(place: Path) -> Verification:
    """Check a package or a result folder and list what does not agree.

    Of a package, first its files are compared with its manifest and its metadata; only if nothing is missing,
    surplus or changed, its result is verified as any result folder, and everything else in it is made again
    from the result and from what its author says, and compared.

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
            return examine(folder)
        problems = compare_manifest(folder)
        if problems:
            last = "its findings were not computed again: the files are not those that were packed"
            return Verification([*_condensed(problems), last])
        result = folder / RESULT.rstrip("/")
        if not result.is_dir():
            message = f"the package has no folder `{RESULT}`"
            raise DataError(message, hint="give a package that `steelyard pack` wrote", code="data.package")
        size = sum((folder / name).stat().st_size for name in files_of(folder))
        with bounded_memory(_SMALLEST_MEMORY_BYTES + _MEMORY_PER_BYTE * size), _named_faults(place):
            crate = list(_compare_crate(folder))
            found = examine(result)
            found.problems[:0] = crate
            compare_parts(folder, result, found)
        found.problems[:] = _condensed(found.problems)
        return found


@contextmanager
def bounded_memory(wanted_bytes: int) -> Iterator[None]:
    """Let this process take so much more memory, and no more than the machine has free.

    A table of 700 bytes may hold one text a million times; what stops it is no check of its form.

    Parameters
    ----------
    wanted_bytes : int
        What may be taken beyond what the process has now.
    """
    before = resource.getrlimit(resource.RLIMIT_DATA)
    free = _bytes_of(Path("/proc/meminfo"), "MemAvailable")
    limit = _bytes_of(Path("/proc/self/status"), "VmData") + min(wanted_bytes, free)
    lower = limit if before[0] == resource.RLIM_INFINITY else min(before[0], limit)
    resource.setrlimit(resource.RLIMIT_DATA, (lower, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _bytes_of(path: Path, key: str) -> int:
    lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:")) * 1024


@contextmanager
def _named_faults(place: Path) -> Iterator[None]:
    """Say of whatever a stranger's data end in that they are unusable: they are no fault of ours."""
    try:
        yield
    except (SteelyardError, OSError):
        raise
    except MemoryError as error:
        limit = f"{format_bytes(_SMALLEST_MEMORY_BYTES)} and {_MEMORY_PER_BYTE} times its own size"
        message = f"cannot verify `{place}`: it needs more than {limit}, or than this machine has free"
        hint = (
            "it may be a decompression bomb; if you trust its source, verify it on a machine with more memory"
        )
        raise DataError(message, hint=hint, code="data.too-large") from error
    except Exception as error:
        message = f"cannot verify `{place}`: {_why_unusable(error)}"
        hint = "get the package again from where it was published; if it is complete, please report this"
        raise DataError(message, hint=hint, code="data.package") from error


def _why_unusable(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "a list or an object in it is nested too deeply"
    if isinstance(error, UnicodeError):
        return "a text in it contains half of a character, or bytes that are not text"
    return f"the analysis cannot use its data ({type(error).__name__})"


def _condensed(problems: list[str]) -> list[str]:
    """Give the first problems of each kind, and how many more there are: a stranger may add any number."""
    kinds: dict[str, list[str]] = {}
    for problem in problems:
        kinds.setdefault(_VARYING.sub("", problem), []).append(problem)
    found: list[str] = []
    for kind in kinds.values():
        found += kind[:_NAMED_OF_A_KIND]
        rest = len(kind) - _NAMED_OF_A_KIND
        if rest > 0:
            found.append(f"and {rest} more like this one: {kind[_NAMED_OF_A_KIND]}")
    return found


def compare_parts(folder: Path, result: Path, found: Verification) -> None:
    """Make everything of an unpacked package again that follows from its result, and compare.

    Parameters
    ----------
    folder, result : Path
        The package, and the result in it.
    found : Verification
        Problems, what was not compared, and what only its author can say, are added to it.

    Raises
    ------
    DataError
        If the package does not say what only its author can say.
    """
    statement = read_statement(folder)
    hashes = read_manifest(folder)
    given = {part.name: part for part in result_parts(result, statement)}
    present = [
        part_of_file(name, folder / name) for name in sorted(hashes.keys() - {CRATE_NAME, PREVIEW_NAME})
    ]
    if statement.wheel is not None and statement.carries_wheel:
        name = f"{WHEELS}{statement.wheel['name']}"
        given[name] = Part(name, folder / name, statement.wheel["sha256"], 0)
    given |= {part.name: part for part in describing_parts(result, statement, present)}
    is_other = statement.packed_with != __version__
    unlike = []
    for name in sorted({*given, *hashes, MANIFEST_NAME}):
        if name not in given:
            fault: str | None = f"{quoted(name)} does not follow from the result"
        elif not (folder / name).is_file():
            fault = f"{quoted(name)} is absent, and follows from the result"
        else:
            fault = _fault_of_part(given[name], folder / name)
        if fault is None:
            continue
        if is_other and name.startswith((WORKLOADS, SCRIPTS)):
            unlike.append(name)
        else:
            found.problems.append(fault)
    if unlike:
        theirs = quoted(statement.packed_with)[1:-1]
        found.not_compared.append(
            f"{len(unlike)} sources in `{WORKLOADS}`: they are of Steelyard {theirs}, this is {__version__}"
        )
    found.said.extend(_said(statement))


def _said(statement: Statement) -> Iterator[str]:
    """Name what only the author of a package can say, what its container runs first."""
    if statement.base_image != BASE_IMAGE:
        yield f"`{RECIPE_NAME}`: its base image {quoted(statement.base_image)}, which its container runs"
    if statement.wheel is not None:
        name, sha256 = statement.wheel["name"], statement.wheel["sha256"]
        yield f"`{RECIPE_NAME}`: Steelyard as {quoted(name)} of hash {sha256}, which its container runs"
    keys = ", ".join(sorted(statement.about)) or "nothing"
    yield f"`{STATEMENT_NAME}`: who packed it, licences of packages, and of its author: {keys}"
    yield f"`{RESULT}{PROVENANCE_NAME}` and the raw data: host, versions, and what was measured there"


def _fault_of_part(given: Part, path: Path) -> str | None:
    """Say where a file is not the one that was made again; JSON is compared by value."""
    if not isinstance(given.content, bytes) or hash_file(path) == given.sha256:
        is_same = hash_file(path) == given.sha256
        source = f"`{STATEMENT_NAME}`" if given.name.startswith(WHEELS) else f"Steelyard {__version__}"
        return None if is_same else f"{quoted(given.name)} is not the file of {source}"
    shown, wanted = path.read_text(encoding="utf-8", errors="backslashreplace"), given.content.decode()
    with suppress(ValueError, RecursionError):
        if path.suffix == ".json" and _canonical(shown) == _canonical(wanted):
            return None
    return f"{quoted(given.name)} does not follow from the result: {changed_text(shown, wanted)}"


def _canonical(text: str) -> str:
    """Give JSON in one form for each value; a key that occurs twice has none."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            message = "a key occurs twice"
            raise ValueError(message)
        return found

    return json.dumps(json.loads(text, object_pairs_hook=once), sort_keys=True)


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
        yield f"`{CRATE_NAME}` belongs to a different plan than `{RESULT}plan.json`"
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
        message = f"the package has no `{CRATE_NAME}`"
        raise DataError(message, hint=hint, code="data.crate") from error
    except (ValueError, RecursionError) as error:
        message = f"`{CRATE_NAME}` is not JSON"
        raise DataError(message, hint=hint, code="data.crate") from error
    graph = content.get("@graph") if isinstance(content, dict) else None
    if not isinstance(graph, list) or not all(isinstance(entity, dict) for entity in graph):
        message = f"`{CRATE_NAME}` is not an RO-Crate: it has no list `@graph`"
        raise DataError(message, hint=hint, code="data.crate")
    return graph
