"""What an importer is, and which there are: Steelyard's own, and those of plug-ins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from steelyard.errors import UsageError
from steelyard.plug_in import IMPORTER_GROUP, Registry, fault_of

if TYPE_CHECKING:
    from pathlib import Path


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


def _fault(name: str, offered: object) -> str | None:
    if not callable(getattr(offered, "import_file", None)):
        return "has no method `import_file`"
    return fault_of(name, offered, object)


IMPORTERS: Final[Registry[Importer]] = Registry(IMPORTER_GROUP, "importer", _fault)


def importer(name: str) -> Importer:
    """Give one importer.

    Raises
    ------
    CapabilityError
        If the package that offers it cannot be used.
    UsageError
        Listing the known names.
    """
    found = IMPORTERS.find(name)
    if found is None:
        allowed = ", ".join(f"`{each}`" for each in IMPORTERS.names())
        message = f"`{name}` is not a format that can be imported; allowed: {allowed}"
        raise UsageError(message, code="usage.importer")
    return found
