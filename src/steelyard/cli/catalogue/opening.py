"""``steelyard open``: from a file of any format, or a result, to the page that is looked at."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import webbrowser
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard.catalogue.catalogue import Catalogue, require_here
from steelyard.catalogue.folder import is_result
from steelyard.cli.catalogue.registering import OWN_CATALOGUE, CatalogueOption
from steelyard.cli.results.importing import BINS, FileFacts, TableOptions, import_files
from steelyard.cli.results.messages_facts import MESSAGES, NO_MESSAGES_FACTS, MessagesFacts
from steelyard.cli.results.packets_facts import NO_PACKETS_FACTS, PacketsFacts
from steelyard.cli.streams import write_lines
from steelyard.errors import DataError, SteelyardError, UsageError
from steelyard.model.plain_file import open_plain_file
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.record.clock import now_utc
from steelyard.record.folder_lock import default_result
from steelyard.record.importers.interface import IMPORTERS
from steelyard.record.provenance import PROVENANCE_NAME, Provenance, read_provenance
from steelyard.record.seal import is_cut_import

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.record.importers.interface import ImportSummary

RESULTS: Final = Path("steelyard-results")
_TABLE: Final = "csv"
_LAST: Final = (MESSAGES, _TABLE)
"""Formats that also read files of others, tried behind them in this order."""
_ID: Final = re.compile(r"[0-9a-f]{2,10}")
_JSON_PATH: Final = re.compile(r", at `([^`]+)`: ")
_TOP: Final = ", at the top: "
_NO_JSON: Final = ": not JSON"
_JSON_BEGINS: Final = ("{", "[")
_NO_HINT: Final = "`steelyard import FORMAT FILE --out DIR` says what is wrong with a format"
_DAMAGE: Final = (
    *(
        (packing, words.format(packing), "is the file whole?")
        for packing in ("gzip", "bz2", "xz", "zstd")
        for words in (": {} that was cut off", ": damaged {}: ")
    ),
    ("text", " is not UTF-8", _NO_HINT),
    ("text", "a byte of zero, which no text has", _NO_HINT),
)
"""What a damaged file is, the words of a refusal that show it, and what to do."""
_BEGIN_BYTES: Final = 1 << 16
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
        Unit of the values, for `csv`, `messages`, `plogp`, `hdr-histogram` and `cyclictest`.
    jobs_start
        For latency-bins, when the best-effort jobs start [s]; found in the file unless given.
    jobs_stop
        For latency-bins, when they stop [s].
    """

    form: Annotated[str | None, Parameter(name="--format", show_default=False)] = None
    out: Path | None = None
    unit: Annotated[str, Parameter(show_default=False)] = ""
    jobs_start: float | None = None
    jobs_stop: float | None = None


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
    facts = FileFacts(table, reading.unit, reading.jobs_start, reading.jobs_stop, packets, recorded)
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
    if reading.form is None:
        _refuse_what_cannot_be_tried(places)
    if reading.form is None and len(places) == 1 and zipfile.is_zipfile(places[0]):
        return _unpacked(places[0], reading)
    form = BINS if (facts.jobs_start, facts.jobs_stop) != (None, None) else None
    if (form := reading.form or form) is not None:
        return _said(form, _import_as(form, places, reading, facts))
    refused: dict[str, SteelyardError] = {}
    begin = _begin(places[0])
    # The format whose sign a file bears first: each other one would read all of a large file.
    for form in sorted(
        IMPORTERS.names(),
        key=lambda name: (not _is_signed(name, begin), name in _LAST and _LAST.index(name) + 1),
    ):
        try:
            return _said(form, _import_as(form, places, reading, facts))
        except (DataError, UsageError) as error:
            refused[form] = error
    shown = ", ".join(f"`{place}`" for place in places[:3])
    if places[0].is_file() and places[0].stat().st_size == 0:
        message = f"cannot open {shown}: `{places[0]}` is empty"
        raise DataError(message, hint="did the tool that wrote it end?", code="data.import")
    as_what, said = _nearest(begin, refused, has_options=facts != _NO_FACTS)
    message = f"cannot open {shown}: no format reads it\nas {as_what}: {said.message}"
    raise DataError(message, hint=said.hint or _NO_HINT, code="data.import")


def _refuse_what_cannot_be_tried(places: Sequence[Path]) -> None:
    """Refuse a pipe, which the first format would read, and a file without a byte."""
    for place in places:
        if place.is_fifo():
            message = f"cannot open `{place}`: it is a pipe, which is read once only, and no format is named"
            hint = "name the format with --format, or write what the pipe gives to a file"
            raise DataError(message, hint=hint, code="data.import")
        if place.is_file() and place.stat().st_size == 0:
            message = f"cannot open `{place}`: it is empty"
            raise DataError(message, hint="did the tool that wrote it end?", code="data.import")


def _nearest(
    begin: str, refused: dict[str, SteelyardError], *, has_options: bool
) -> tuple[str, SteelyardError]:
    """Give what a file seems to be, and what is wrong with it as such.

    It is of the format whose sign it bears, of one that lacks only a word of the user's, else of the one that
    came deepest into its JSON. Else it is damaged JSON, JSON of nobody, no text at all, or a table.
    """
    signed = [form for form in refused if _is_signed(form, begin)]
    unstated = [form for form, error in refused.items() if error.code == "data.unstated"]
    if signed or unstated:
        form = (*signed, *unstated)[0]
        return f"`{form}`", refused[form]
    deepest = max(refused, key=lambda form: _depth(refused[form].message))
    if _depth(refused[deepest].message):
        return f"`{deepest}`", refused[deepest]
    said = [error.message for error in refused.values()]
    if begin.lstrip()[:1] in _JSON_BEGINS:
        if any(_TOP in each for each in said):
            message, hint = "no tool is known that writes such a document", _NO_HINT
            if has_options:
                message = "no format that takes the options given reads it"
                hint = "leave out options such as `--unit`: most formats state the units of their values"
            return "JSON", DataError(message, hint=hint)
        if (broken := next((each for each in said if _NO_JSON in each), None)) is not None:
            return "JSON", DataError(broken, hint="is the file whole?")
    for kind, words, hint in _DAMAGE:
        if (strange := next((each for each in said if words in each), None)) is not None:
            return kind, DataError(strange, hint=hint)
    return "a table", refused[_TABLE]


def _is_signed(form: str, begin: str) -> bool:
    sign: re.Pattern[str] | None = getattr(IMPORTERS.find(form), "sign", None)
    return sign is not None and sign.search(begin) is not None


def _begin(place: Path) -> str:
    """Give the first characters of a file."""
    try:
        with open_plain_file(place) as file:
            return file.read(_BEGIN_BYTES).decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    except (OSError, SteelyardError):
        return ""


def _depth(refusal: str) -> int:
    """Give how deep in a JSON file a reader came: the one that came deepest knows the format best.

    Examples
    --------
    >>> _depth("`a.json`, at `results[0].times[2]`: `x` is not a number"), _depth("`a.json`, at the top: no")
    (4, 0)
    """
    place = _JSON_PATH.search(refusal)
    return 0 if place is None else 1 + place[1].count(".") + place[1].count("[")


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
            out.parent.mkdir(parents=True, exist_ok=True)
            # A hidden folder is no result for anybody, should this process be killed.
            with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as made:
                copy = Path(made) / "result"
                shutil.copytree(packed, copy, ignore=shutil.ignore_patterns("report.html"))
                copy.rename(out)
        except (OSError, shutil.Error) as error:
            message = f"cannot unpack `{package}` into `{out}`: {error}"
            raise DataError(message, hint="give another folder with --out", code="data.unwritable") from error
    write_lines([f"unpacked: {out}"])
    sys.stdout.write("\n")
    return out


def _import_as(form: str, places: Sequence[Path], reading: Reading, facts: FileFacts) -> ImportSummary:
    out = reading.out or default_result(form, now_utc()[:10], RESULTS)
    return import_files(form, places, out, facts)


def _said(form: str, summary: ImportSummary) -> Path:
    write_lines([f"imported as `{form}`: {summary.result}", *(f"note: {each}" for each in summary.notes)])
    sys.stdout.write("\n")
    return summary.result


def _show(result: Path, listed: CatalogueOption, *, has_browser: bool) -> None:
    """Make what is missing of a report, and show it."""
    from steelyard.cli.results.report import report  # noqa: PLC0415 - start-up time
    from steelyard.study import study_of  # noqa: PLC0415 - start-up time

    if not (result / "findings.json").exists():
        plan = read_plan(result / PLAN_NAME)
        has_provenance = (result / PROVENANCE_NAME).exists()
        provenance = read_provenance(result) if has_provenance else Provenance(plan.study, plan.id, plan.seed)
        if is_cut_import(plan, provenance):
            message = f"cannot open `{result}`: its import was cut off"
            raise DataError(message, hint="import its files again", code="data.incomplete")
        study_of(plan.study, result).analyse(result)
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
