"""How verbs register the results that they write: always, and never so that a measurement fails by it."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard.catalogue.catalogue import Catalogue
from steelyard.catalogue.folder import FAULTS, is_result, reason_of
from steelyard.record.folder_lock import is_held
from steelyard.record.provenance import watched_provenance

_PATIENCE_AT_BEGIN_S: Final = 2

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.record.provenance import Provenance
    from steelyard.report.page import Page


@Parameter(name="*")
@dataclass(frozen=True)
class CatalogueOption:
    """Catalogue of results.

    Parameters
    ----------
    catalogue
        Catalogue that lists results: a file, or `postgresql://...`; by default that of the variable
        `STEELYARD_CATALOGUE`, else your own.
    """

    catalogue: Annotated[str | None, Parameter(show_default=False)] = None

    @contextmanager
    def registering(self) -> Iterator[None]:
        """Register each result that is written meanwhile, when it begins and when it ends."""
        written: dict[Path, bool] = {}

        def tell(folder: Path, provenance: Provenance) -> None:
            if folder not in written:
                written[folder] = not is_held(folder) or self._begin(folder, provenance)

        with watched_provenance(tell):
            try:
                yield
            finally:
                sys.stdout.flush()
                for folder, can_be_written in written.items():
                    if can_be_written:
                        self.refresh(folder)

    def refresh(self, folder: Path, page: Page | None = None) -> None:
        """Register a result folder as it is now.

        Parameters
        ----------
        folder : Path
            Where it is.
        page : Page or None
            Its report, where it has just been built.
        """
        if is_result(folder):
            with _as_warning(folder), Catalogue.at(self.catalogue) as catalogue:
                catalogue.register(folder, page)

    def _begin(self, folder: Path, provenance: Provenance) -> bool:
        # Somebody waits for the first run.
        with (
            _as_warning(folder) as is_done,
            Catalogue.at(self.catalogue, patience_s=_PATIENCE_AT_BEGIN_S) as catalogue,
        ):
            catalogue.begin(folder, provenance)
            is_done.append(True)
        return bool(is_done)


OWN_CATALOGUE = CatalogueOption()


@contextmanager
def _as_warning(folder: Path) -> Iterator[list[bool]]:
    """Say what goes wrong, and go on: the result is in its folder, and `results scan` finds it later."""
    try:
        yield []
    except FAULTS as error:
        place = os.path.relpath(folder)
        sys.stderr.write(
            f"warning: `{place}` is not in the catalogue: {reason_of(error)}\n"
            f"hint: `steelyard results scan {place}` adds it later\n"
        )
