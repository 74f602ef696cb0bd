"""``steelyard results rm`` and ``scan``: results out of the catalogue, and into it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard.catalogue.catalogue import Catalogue, require_here
from steelyard.catalogue.folder import is_result, site
from steelyard.cli.catalogue.listing import document, local
from steelyard.cli.catalogue.registering import OWN_CATALOGUE, CatalogueOption
from steelyard.cli.streams import write_lines
from steelyard.errors import DataError, UsageError, unwritable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.catalogue.entry import Entry
    from steelyard.catalogue.scan import Scan

SCAN_SCHEMA: Final = "steelyard/result-scan/1"
_YES: Final = "yes"
_LISTED: Final = 20
"""Results of a kind that a scan names; the rest is counted."""


def remove(
    *results: str,
    yes: Annotated[bool, Parameter(name=["--yes", "-y"], negative="")] = False,
    forget: Annotated[bool, Parameter(negative="")] = False,
    listed: CatalogueOption = OWN_CATALOGUE,
) -> None:
    """Remove results: their folders, and what the catalogue knows of them.

    Shows what would be deleted, and deletes nothing until you type `yes` on a terminal or give `--yes`. A
    folder is refused that is not a result, in which a study is running, or that contains anything else.

    Parameters
    ----------
    results
        Ids, the first digits of them, or folders.
    yes
        Remove them without asking.
    forget
        Take them out of the catalogue and leave the folders alone.
    listed
        Catalogue of results.

    Examples
    --------
    steelyard results rm 3fa2

    steelyard results rm --forget 3fa2 91c0
    """
    if not results:
        message = "no result is given"
        raise UsageError(message, hint="steelyard results rm ID")
    with Catalogue.at(listed.catalogue) as catalogue:
        entries = list({entry.id: entry for entry in map(catalogue.entry, results)}.values())
        doomed = [] if forget else [entry for entry in entries if entry.state != "missing"]
        for entry in entries if not forget else ():
            # A folder that holds another result now is missing, but something is there: nothing is guessed.
            if entry.state == "missing" and os.path.lexists(entry.folder):
                require_here(entry, "remove")
        for entry in doomed:
            _require_removable(entry)
        if doomed:
            _ask(doomed, is_agreed=yes)
        deleted = {entry.id for entry in doomed}
        for entry in entries:
            if entry.id in deleted:
                _delete(entry, catalogue)
            else:
                catalogue.forget(entry.id)
            write_lines([f"{'removed' if entry.id in deleted else 'forgotten'}: {entry.id} {entry.folder}"])


def scan(
    *folders: Path,
    listed: CatalogueOption = OWN_CATALOGUE,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Find result folders and make the catalogue from them.

    Folders are the truth: what was moved is found again with its id, tags and note, what is gone is listed as
    missing, and what cannot be read as damaged. Results that have not changed are not read again.

    Parameters
    ----------
    folders
        Where to look, at any depth; the current folder by default.
    listed
        Catalogue of results.
    as_json
        Print one JSON object.

    Examples
    --------
    steelyard results scan ~/experiments
    """
    from steelyard.catalogue.scan import scan as scan_folders  # noqa: PLC0415 - start-up time

    absent = [folder for folder in folders if not folder.is_dir()]
    if absent:
        message = f"cannot scan `{absent[0]}`: it is not a folder"
        raise DataError(message, hint="give folders that contain results", code="data.absent")
    tell = _show_progress if sys.stderr.isatty() else _say_nothing
    with Catalogue.at(listed.catalogue) as catalogue:
        done = scan_folders(catalogue, folders or (Path(),), tell)
    if as_json:
        kinds = {name: [document(entry) for entry in entries] for name, entries in _kinds(done).items()}
        content = {"schema": SCAN_SCHEMA, "found": done.found, "unchanged": done.unchanged, **kinds}
        sys.stdout.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    else:
        write_lines(_summary(done))


def _kinds(done: Scan) -> dict[str, list[Entry]]:
    return {
        "new": done.new,
        "changed": done.changed,
        "moved": done.moved,
        "damaged": done.damaged,
        "missing": done.missing,
    }


def _summary(done: Scan) -> Iterator[str]:
    kinds = _kinds(done)
    counts = [f"{len(entries)} {name}" for name, entries in kinds.items() if entries]
    unchanged = [f"{done.unchanged} unchanged"] if done.unchanged else []
    yield f"{done.found} result folders: {', '.join([*counts, *unchanged]) or 'nothing to do'}"
    for name in ("moved", "damaged", "missing"):
        for entry in kinds[name][:_LISTED]:
            reason = f": {entry.problem}" if entry.problem and name == "damaged" else ""
            yield f"  {name}: {entry.id} {entry.folder}{reason}"
        if len(kinds[name]) > _LISTED:
            yield f"  and {len(kinds[name]) - _LISTED} more {name}"


def _show_progress(done: int, total: int) -> None:
    end = "\r\x1b[K" if done == total else ""
    sys.stderr.write(f"\rreading result {min(done + 1, total)} of {total}{end}")
    sys.stderr.flush()


def _say_nothing(_done: int, _total: int) -> None:
    """Say nothing where nobody watches."""


def _require_removable(entry: Entry) -> None:
    """Refuse to delete what is not surely a result and nothing else."""
    from steelyard.share.complete_result import strangers  # noqa: PLC0415 - start-up time

    about = f"cannot remove `{entry.id}`: "
    if entry.site != site():
        message = f"{about}its folder `{entry.folder}` is on `{entry.site}`"
        raise UsageError(message, hint="repeat the command there, or use --forget", code="usage.other-host")
    if entry.state == "running":
        message = f"{about}it is running in `{entry.folder}`"
        raise DataError(message, hint="wait for it, or stop it first", code="data.locked")
    if not is_result(entry.folder):
        message = f"{about}`{entry.folder}` is not a result folder"
        raise DataError(message, hint="use --forget to take it out of the catalogue", code="data.absent")
    strange = strangers(entry.folder)
    if strange:
        shown = ", ".join(f"`{name}`" for name in strange[:3])
        message = f"{about}`{entry.folder}` contains {shown}, which is not part of a result"
        raise DataError(
            message, hint="move it away first, or delete the folder yourself", code="data.strange"
        )


def _ask(entries: list[Entry], *, is_agreed: bool) -> None:
    if is_agreed:
        return
    for entry in entries:
        sys.stderr.write(f"{entry.id}  {local(entry.started)}  {entry.study}  {entry.folder}\n")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        message = "nothing was removed, because nobody agreed to it"
        raise UsageError(message, hint="add --yes", code="usage.not-agreed")
    noun = "this folder" if len(entries) == 1 else f"these {len(entries)} folders"
    sys.stderr.write(f"delete {noun} and all raw data inside? type `{_YES}` to continue: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != _YES:
        message = "nothing was removed"
        raise UsageError(message, hint="steelyard results list", code="usage.not-agreed")


def _delete(entry: Entry, catalogue: Catalogue) -> None:
    """Delete a result and its entry, or neither.

    No study can begin in the folder meanwhile, and what is interrupted is no result.
    """
    from steelyard.share.complete_result import left_alone  # noqa: PLC0415 - start-up time

    folder = entry.folder
    hint = f"check the rights of `{folder.parent}`"
    doomed = folder.with_name(f".{folder.name}.removed-{os.getpid()}")
    with left_alone(folder):
        try:
            with catalogue.forgetting(entry.id):
                folder.rename(doomed)
            shutil.rmtree(doomed)
        except OSError as error:
            raise unwritable(folder, error, hint) from error
        except DataError:
            # The entry could not be deleted after all, such as on a full disk.
            if doomed.exists() and not folder.exists():
                doomed.rename(folder)
            raise
