"""``steelyard open``: from a file of any format, or a result, to the page that is looked at."""

from __future__ import annotations

import os
import re
import shutil
import sys
import webbrowser
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard.catalogue.catalogue import Catalogue, require_here
from steelyard.catalogue.folder import is_result
from steelyard.cli.catalogue.registering import OWN_CATALOGUE, CatalogueOption
from steelyard.cli.results.importing import FileFacts, TableOptions, import_files
from steelyard.cli.results.messages_facts import MESSAGES, NO_MESSAGES_FACTS, MessagesFacts
from steelyard.cli.results.packets_facts import NO_PACKETS_FACTS, PacketsFacts
from steelyard.cli.streams import write_lines
from steelyard.errors import DataError, SteelyardError, UsageError
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.record.clock import now_utc
from steelyard.record.folder_lock import default_result
from steelyard.record.importers.interface import IMPORTERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.record.importers.interface import ImportSummary

RESULTS: Final = Path("steelyard-results")
_TABLE: Final = "csv"
_LAST: Final = (MESSAGES, _TABLE)
"""Formats that also read files of others, tried behind them in this order."""
_ID: Final = re.compile(r"[0-9a-f]{2,10}")
_NO_FACTS: Final = FileFacts()
_Text = Annotated[str | None, Parameter(show_default=False)]


@Parameter(name="*")
@dataclass(frozen=True)
class Reading:
    """How files are read, and what is written.

    Parameters
    ----------
    form
        Format, as for `steelyard import`; found by trying unless given.
    out
        Result folder; `steelyard-results/FORMAT-DATE-N` by default.
    unit
        Unit of the values, for `csv`, `messages` and `plogp`.
    """

    form: Annotated[str | None, Parameter(name="--format", show_default=False)] = None
    out: Path | None = None
    unit: Annotated[str, Parameter(show_default=False)] = ""


_AS_FOUND: Final = Reading()


def open_result(
    *places: Path,
    reading: Reading = _AS_FOUND,
    table: TableOptions = _NO_FACTS.table,
    packets: PacketsFacts = NO_PACKETS_FACTS,
    recorded: MessagesFacts = NO_MESSAGES_FACTS,
    no_browser: bool = False,
    listed: CatalogueOption = OWN_CATALOGUE,
) -> None:
    """Import, analyse and report a file of any format, and show the page.

    Files of other tools are imported into a new result folder, which is analysed and reported, with figures
    where they can be drawn. Of a package, the result becomes such a folder, with a report made here; whether
    its findings follow from its data is for `steelyard verify` to say. Of a result of Steelyard, what is
    missing is made: findings, then the report. The summary is printed, then the path of the page; on a
    terminal with a display, the browser shows it.

    Parameters
    ----------
    places
        Files of one format, which become one result; or a package; or a result folder; or an id of the
        catalogue.
    reading
        How files are read, and what is written.
    table
        How a table is read, as for `steelyard import`.
    packets
        Facts that tables of the parallel packets experiments do not state.
    recorded
        Facts that recordings of messages do not state.
    no_browser
        Start no browser.
    listed
        Catalogue of results.

    Examples
    --------
    steelyard open jmh-result.json

    steelyard open times.csv --unit ms --column value=time --column run=pid

    steelyard open night.zip

    steelyard open steelyard-results/night
    """
    if not places:
        message = "no file is given"
        raise UsageError(message, hint="steelyard open FILE")
    result = _known_result(places, listed)
    facts = FileFacts(table=table, unit=reading.unit, packets=packets, recorded=recorded)
    if result is None:
        result = _imported(places, reading, facts)
        listed.refresh(result)
    elif reading != _AS_FOUND or facts != _NO_FACTS:
        message = f"`{places[0]}` is a result already; options of an import are for files of other tools"
        raise UsageError(message, hint=f"steelyard open {places[0]}")
    _show(result, listed, has_browser=not no_browser)


def open_listed(result: str, *, no_browser: bool = False, listed: CatalogueOption = OWN_CATALOGUE) -> None:
    """Show the report of a result; made first if it is missing.

    Parameters
    ----------
    result
        Its id, the first digits of it, or its folder.
    no_browser
        Start no browser.
    listed
        Catalogue of results.

    Examples
    --------
    steelyard results open 3fa2
    """
    _show(_folder_of(result, listed), listed, has_browser=not no_browser)


def _known_result(places: Sequence[Path], listed: CatalogueOption) -> Path | None:
    """Give the folder of a result that is opened; ``None`` where files are to be imported."""
    first = places[0]
    if len(places) > 1 or first.is_file():
        return None
    if first.is_dir():
        unpacked = first / "result"
        return next((each for each in (first, unpacked) if is_result(each)), None)
    if _ID.fullmatch(str(first)):
        return _folder_of(str(first), listed)
    if not os.path.lexists(first):
        message = f"cannot open `{first}`: it does not exist"
        hint = "give a file, a result folder, or an id of `steelyard results list`"
        raise DataError(message, hint=hint, code="data.absent")
    return None


def _folder_of(identifier: str, listed: CatalogueOption) -> Path:
    with Catalogue.at(listed.catalogue) as catalogue:
        entry = require_here(catalogue.entry(identifier), "open")
    if entry.state == "running":
        message = f"cannot open `{entry.id}`: it is running"
        raise DataError(message, hint="wait until it has ended", code="data.absent")
    return entry.folder


def _imported(places: Sequence[Path], reading: Reading, facts: FileFacts) -> Path:
    """Import files by the format that is named, or by the first that reads them."""
    if reading.form is None and len(places) == 1 and zipfile.is_zipfile(places[0]):
        return _unpacked(places[0], reading)
    if reading.form is not None:
        return _said(reading.form, _import_as(reading.form, places, reading, facts))
    refused: dict[str, SteelyardError] = {}
    for form in sorted(IMPORTERS.names(), key=lambda name: name in _LAST and _LAST.index(name) + 1):
        try:
            return _said(form, _import_as(form, places, reading, facts))
        except (DataError, UsageError) as error:
            refused[form] = error
    shown = ", ".join(f"`{place}`" for place in places[:3])
    message = f"cannot open {shown}: no format reads it\nas a table: {refused[_TABLE].message}"
    step = refused[_TABLE].hint or "steelyard import FORMAT FILE --out DIR says what is wrong with a format"
    raise DataError(message, hint=step, code="data.import")


def _unpacked(package: Path, reading: Reading) -> Path:
    """Give the result of a package a folder, without its report: a stranger's page may contain anything."""
    from steelyard.share.package.check import opened_result  # noqa: PLC0415 - start-up time

    if replace(reading, out=None) != _AS_FOUND:
        message = f"`{package}` is a package, whose result says what its values are"
        raise UsageError(message, hint=f"steelyard open {package}")
    with opened_result(package) as packed:
        out = reading.out or default_result(read_plan(packed / PLAN_NAME).study, now_utc()[:10], RESULTS)
        if os.path.lexists(out):
            message = f"cannot unpack `{package}` into `{out}`: it exists"
            raise UsageError(message, hint="give a new folder with --out")
        try:
            shutil.copytree(packed, out, ignore=shutil.ignore_patterns("report.html"))
        except (OSError, shutil.Error) as error:
            shutil.rmtree(out, ignore_errors=True)
            message = f"cannot unpack `{package}` into `{out}`: {error}"
            raise DataError(message, hint="give another folder with --out", code="data.unwritable") from error
    write_lines([f"unpacked: {out}"])
    sys.stdout.write("\n")
    return out


def _import_as(form: str, places: Sequence[Path], reading: Reading, facts: FileFacts) -> ImportSummary:
    out = reading.out or default_result(form, now_utc()[:10], RESULTS)
    return import_files(form, places, out, replace(facts, unit=reading.unit))


def _said(form: str, summary: ImportSummary) -> Path:
    write_lines([f"imported as `{form}`: {summary.result}", *(f"note: {each}" for each in summary.notes)])
    sys.stdout.write("\n")
    return summary.result


def _show(result: Path, listed: CatalogueOption, *, has_browser: bool) -> None:
    """Make what is missing of a report, and show it."""
    from steelyard.cli.results.report import report  # noqa: PLC0415 - start-up time
    from steelyard.study import study_of  # noqa: PLC0415 - start-up time

    if not (result / "findings.json").exists():
        study_of(read_plan(result / PLAN_NAME).study, result).analyse(result)
    is_shown = has_browser and sys.stdout.isatty() and _has_display()
    if (result / "report.html").exists():
        report(result, form="text", listed=listed)
        page = result / "report.html"
        sys.stdout.write(f"report: {page}\n")
        if is_shown:
            webbrowser.open(page.resolve().as_uri())
    else:
        report(result, open_=is_shown, listed=listed)


def _has_display() -> bool:
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
