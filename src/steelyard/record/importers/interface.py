"""What an importer is, and the table of those there are."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final, Protocol

from steelyard.errors import InternalError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

ENTRY_POINTS: Final = "steelyard.importers"
_BUILT_IN: Final = {
    "recodex": "steelyard.record.importers.recodex:IMPORTER",
    "jmh": "steelyard.record.importers.jmh:IMPORTER",
    "hyperfine": "steelyard.record.importers.hyperfine:IMPORTER",
    "google-benchmark": "steelyard.record.importers.google_benchmark:IMPORTER",
    "criterion": "steelyard.record.importers.criterion:IMPORTER",
    "pyperf": "steelyard.record.importers.pyperf:IMPORTER",
    "pytest-benchmark": "steelyard.record.importers.pytest_benchmark:IMPORTER",
    "moobench": "steelyard.record.importers.moobench:IMPORTER",
    "messages": "steelyard.record.importers.messages:IMPORTER",
    "skampi": "steelyard.record.importers.skampi:IMPORTER",
    "mpi": "steelyard.record.importers.mpi:IMPORTER",
    "zoo": "steelyard.record.importers.zoo:IMPORTER",
    "plogp": "steelyard.record.importers.plogp:IMPORTER",
    "packets": "steelyard.record.importers.packets:IMPORTER",
    "latency-bins": "steelyard.record.importers.latency_bins:IMPORTER",
    "csv": "steelyard.record.importers.table:IMPORTER",
}


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What an import did.

    Parameters
    ----------
    result : Path
        The result folder.
    study, form : str
        Study the data belong to, variant of the format.
    cells, missing_cells, runs, measurements : int
        What is in the folder now.
    notes : tuple of str
        Remarks for the reader; also in ``provenance.json``.
    """

    result: Path
    study: str
    form: str
    cells: int
    missing_cells: int
    runs: int
    measurements: int
    notes: tuple[str, ...] = ()


class Importer(Protocol):
    """Turns one foreign file into a complete result folder.

    An importer of several files also has ``import_files(paths, result)``.
    """

    @property
    def name(self) -> str:
        """Name on the command line."""

    @property
    def description(self) -> str:
        """One sentence for people."""

    def import_file(self, path: Path, result: Path) -> ImportSummary:
        """Read a file and write plan, tables and provenance.

        Raises
        ------
        DataError
            If the file is damaged; nothing is written then.
        """


def importers() -> dict[str, Importer]:
    """Give the importers by name: built-in ones, and those of installed packages.

    Raises
    ------
    InternalError
        If an installed package offers something that is no importer.
    """
    found: dict[str, Importer] = {}
    for name, place in _BUILT_IN.items():
        module, attribute = place.split(":")
        found[name] = getattr(import_module(module), attribute)
    for entry in entry_points(group=ENTRY_POINTS):
        found[entry.name] = entry.load()
    for name, importer in found.items():
        if not callable(getattr(importer, "import_file", None)):
            message = f"entry point `{name}` of group `{ENTRY_POINTS}` has no `import_file`"
            raise InternalError(message, code="internal.importer")
    return found


def importer(name: str) -> Importer:
    """Give one importer.

    Raises
    ------
    UsageError
        Listing the known names.
    """
    known = importers()
    if name not in known:
        allowed = ", ".join(f"`{each}`" for each in sorted(known))
        message = f"`{name}` is not a format that can be imported; allowed: {allowed}"
        raise UsageError(message, code="usage.importer")
    return known[name]
