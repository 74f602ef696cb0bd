"""Finding result folders, and making the catalogue from them."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.catalogue.folder import is_result, read_folder, stamp_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from steelyard.catalogue.catalogue import Catalogue
    from steelyard.catalogue.entry import Entry
    from steelyard.catalogue.folder import Reading

_TOGETHER: Final = 50
"""Results written in one transaction: an interrupted scan keeps what it has read."""


@dataclass(slots=True)
class Scan:
    """What a scan found.

    Parameters
    ----------
    found : int
        Result folders.
    unchanged : int
        Those that are in the catalogue as they are.
    new, changed, moved, damaged, missing : list of Entry
        New in the catalogue; read again; at another place than before; unreadable; gone from their place.
    """

    found: int = 0
    unchanged: int = 0
    new: list[Entry] = field(default_factory=list)
    changed: list[Entry] = field(default_factory=list)
    moved: list[Entry] = field(default_factory=list)
    damaged: list[Entry] = field(default_factory=list)
    missing: list[Entry] = field(default_factory=list)


def find_results(folder: Path, deepest: int | None = None, most: int | None = None) -> Iterator[Path]:
    """Give the result folders in a folder, itself included; links and hidden folders are not followed.

    Parameters
    ----------
    folder : Path
        Where to look.
    deepest : int or None
        How far below it; without an end by default.
    most : int or None
        How many folders are looked at; all by default.
    """
    waiting, seen = [(folder, 0)], 0
    while waiting and seen != most:
        place, depth = waiting.pop()
        seen += 1
        # What is in a result is not looked at: that may be a million files.
        if is_result(place):
            yield Path(os.path.realpath(place))
        elif depth != deepest:
            with suppress(OSError), os.scandir(place) as found:
                below = sorted(
                    each.name for each in found if each.is_dir(follow_symlinks=False) and each.name[0] != "."
                )
                waiting += [(place / name, depth + 1) for name in reversed(below)]


def scan(catalogue: Catalogue, folders: Sequence[Path], tell: Callable[[int, int], None]) -> Scan:
    """Read the results in folders into a catalogue; what has not changed since is not read again.

    Parameters
    ----------
    catalogue : Catalogue
        Where they are listed.
    folders : sequence of Path
        Where results are looked for, at any depth.
    tell : callable
        Takes how many folders were read, and how many there are.

    Raises
    ------
    DataError
        If the catalogue cannot be written.
    """
    places = list(dict.fromkeys(place for folder in folders for place in find_results(folder)))
    stamps, done = catalogue.stamps(), Scan(found=len(places))
    before = catalogue.folders()
    to_read = [place for place in places if stamps.get(str(place)) != stamp_of(place)]
    done.unchanged = len(places) - len(to_read)
    for begin in range(0, len(to_read), _TOGETHER):
        readings = []
        for number, place in enumerate(to_read[begin : begin + _TOGETHER]):
            tell(begin + number, len(to_read))
            readings.append(read_folder(place))
        # What was removed meanwhile would be listed as damaged.
        _put(catalogue, [each for each in readings if is_result(each.entry.folder)], stamps, before, done)
    tell(len(to_read), len(to_read))
    done.missing = catalogue.mark_missing()
    return done


def _put(
    catalogue: Catalogue,
    readings: Iterable[Reading],
    known: Mapping[str, str],
    before: Mapping[str, str],
    done: Scan,
) -> None:
    """Write readings, and count each; folders known, and those of ids, are from before the scan."""
    for entry in catalogue.put(readings):
        if entry.state == "damaged":
            done.damaged.append(entry)
        elif entry.id in before and before[entry.id] != str(entry.folder):
            done.moved.append(entry)
        elif str(entry.folder) in known:
            done.changed.append(entry)
        else:
            done.new.append(entry)
