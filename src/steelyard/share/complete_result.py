"""Which result folders can be packed: those whose study is over, analysed and reported."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import stat
from contextlib import contextmanager, suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.record.labels import LABELS_NAME
from steelyard.record.ledger import LEDGER_NAME
from steelyard.record.provenance import read_provenance
from steelyard.record.published import PUBLISHED_NAME
from steelyard.record.tables import ATTEMPTS_NAME, RUNS_NAME, count_lacking_batches
from steelyard.share.verify import RAW

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.record.provenance import Provenance

LEFT_OUT: Final = {
    "logs": "what launchers and isolation technologies said; it may name users and hosts",
    LABELS_NAME: "tags and the note are its owner's",
    "placed": "what hosts recorded is in the ledger, and what they said may name users",
    "devices.toml": "follows from the plan, and stands beside the result",
    "ledger.sqlite.lock": "holds nothing",
    "ledger.sqlite-shm": "holds nothing",
    "ledger.sqlite-wal": "holds nothing",
}
"""What stands in a result folder and in no package, and why."""

_DERIVED: Final = (LEDGER_NAME, "findings.json", "tables", "models", "figures", "report.html")
_TABLES: Final = (RUNS_NAME, ATTEMPTS_NAME, PUBLISHED_NAME, "calls.parquet", "devices.toml")
_FIGURES: Final = "figures"
_DRAWN: Final = frozenset({".svg", ".png", ".pdf"})
_ANYTHING: Final = frozenset({"traces", "logs"})
_SUFFIXES: Final = {"measurements": ".parquet", "tables": ".csv", "models": ".json", "simulations": ".json"}
"""Files that each folder of a result holds."""
_STRANGE: Final = "not part of a result: nothing could confirm its content"

_CODE: Final = "data.incomplete"


def require_complete(result: Path) -> tuple[Plan, Provenance]:
    """Give plan and provenance of a result that can be packed.

    Raises
    ------
    DataError
        Naming what is lacking and the command that makes it.
    """
    plan = read_plan(result / "plan.json")
    provenance = read_provenance(result)
    wal = result / f"{LEDGER_NAME}-wal"
    if wal.exists() and wal.stat().st_size:
        raise _incomplete(result, "its ledger was not closed", _resume(plan, result))
    if not (result / RUNS_NAME).exists():
        raise _incomplete(result, f"`{RUNS_NAME}` is absent", _resume(plan, result))
    lacking = count_lacking_batches(result, plan)
    if lacking:
        counted = "one batch was" if lacking == 1 else f"{lacking} of {len(plan.batches)} batches were"
        raise _incomplete(result, f"{counted} not run", _resume(plan, result))
    again = shlex.quote(str(result))
    if read_findings(result / "findings.json").plan_id != plan.id:
        raise _incomplete(result, "its findings belong to a different plan", f"steelyard analyse {again}")
    if not (result / "report.html").exists():
        raise _incomplete(result, "`report.html` is absent", f"steelyard report {again}")
    return plan, provenance


def _resume(plan: Plan, result: Path) -> str:
    quoted = shlex.quote(str(result))
    if plan.options.get("request") is None:
        return f"measure again into another folder; `steelyard verify {quoted}` says what there is"
    return f"steelyard run {plan.study} --out {quoted} --resume"


def _incomplete(result: Path, reason: str, hint: str) -> DataError:
    return DataError(f"`{result}` is not a complete result: {reason}", hint=hint, code=_CODE)


@contextmanager
def left_alone(result: Path) -> Iterator[None]:
    """Hold off studies that would write into a result folder; other readers may hold it as well.

    Raises
    ------
    DataError
        If it is not a folder that can be read, or a study runs in it at the moment.
    """
    try:
        descriptor = os.open(result, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        message = f"`{result}` cannot be read: {error.strerror}"
        hint = "give the folder that `steelyard run`, `steelyard compare` or `steelyard import` wrote"
        raise DataError(message, hint=hint, code="data.absent") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            message = f"another process is running a study in `{result}`"
            raise DataError(message, hint="wait for it, then pack", code="data.locked") from error
        yield
    finally:
        os.close(descriptor)


def left_out(result: Path) -> dict[str, str]:
    """Give what stands in a result folder and in no package, and why."""
    found = {name: why for name, why in LEFT_OUT.items() if (result / name).exists()}
    strange = {path.name: _STRANGE for path in sorted(result.iterdir()) if not _is_known(path)}
    return strange | found


def _is_known(path: Path) -> bool:
    return path.name in {*RAW, *_DERIVED} or path.suffix == ".parquet"


def strangers(result: Path) -> list[str]:
    """Give the paths in a result folder that nothing of Steelyard wrote, as far as names tell.

    What programs wrote in `traces`, and what launchers said in `logs`, may have any name. A folder that is
    the root of a file system of its own is a stranger too: what is in it belongs to somebody else.
    """
    device = result.stat().st_dev
    listed = _names_of_figures(result)
    found: list[str] = []
    for above, folders, files in os.walk(result):
        place = PurePath(above).relative_to(result)
        for name in (*folders, *files):
            path = place / name
            status = os.lstat(result / path)
            if status.st_dev != device or not _is_own(path, status.st_mode, listed):
                found.append(str(path))
        # What is strange as a whole need not be named in parts.
        folders[:] = [name for name in folders if str(place / name) not in found]
    return found


def _names_of_figures(result: Path) -> set[str]:
    """Give the figures of a report, whatever they are drawn as."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        return set(json.loads((result / "figures" / "figures.json").read_bytes())["shows"])
    return set()


def _is_own(path: PurePath, mode: int, figures: set[str]) -> bool:
    top, is_folder = path.parts[0], stat.S_ISDIR(mode)
    if not (is_folder or stat.S_ISREG(mode)):
        return False
    if len(path.parts) == 1:
        is_named = top in {*RAW, *_DERIVED, *LEFT_OUT, *_TABLES}
        return is_named and is_folder == (top in {*_SUFFIXES, *_ANYTHING, _FIGURES})
    if top in _ANYTHING:
        return True
    if is_folder or len(path.parts) > 2:  # noqa: PLR2004 - of a folder and a file
        return False
    if top == _FIGURES:
        return path.name == "figures.json" or (path.suffix in _DRAWN and path.stem in figures)
    return path.suffix == _SUFFIXES.get(top)


def result_files(result: Path) -> Iterator[str]:
    """Give the files of a result folder that belong into a package, sorted.

    Raises
    ------
    DataError
        If something in it is neither a file nor a folder: a link leads out of what is packed.
    """
    yield from _files(result, "")


def _files(folder: Path, above: str) -> Iterator[str]:
    for path in sorted(folder.iterdir(), key=lambda each: each.name):
        name = f"{above}{path.name}"
        if name in LEFT_OUT or path.name.startswith(".") or not (above or _is_known(path)):
            continue
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            message = f"`{path}` is neither a file nor a folder"
            raise DataError(
                message, hint="replace it by the file or folder it refers to", code="data.package"
            )
        if path.is_dir():
            yield from _files(path, f"{name}/")
        else:
            yield name
