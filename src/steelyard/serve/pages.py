"""The pages: what each address shows."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from steelyard import __version__
from steelyard.catalogue import Filter
from steelyard.catalogue.folder import OF_RUNS, site, stamp_of
from steelyard.errors import CapabilityError, SteelyardError, UsageError
from steelyard.record.folder_lock import is_held
from steelyard.record.provenance import read_provenance
from steelyard.report.drawing.engine import INSTALL, has_engine
from steelyard.report.html import coded, typeset
from steelyard.report.shown_text import shown
from steelyard.run.progress import format_left
from steelyard.serve.catalogue_source import IDENTIFIER, FolderResults, Results
from steelyard.serve.cell_history import MOST_RESULTS, cell_history
from steelyard.serve.cell_values import CELLS, cell_csv, cell_list, cell_values
from steelyard.serve.computing import Computing, TooBusyError, named_faults
from steelyard.serve.drawing import Drawings, draw
from steelyard.serve.file_answer import FileAnswer
from steelyard.serve.finding_tables import ROWS, TableRequest, finding_table
from steelyard.serve.live import Follower
from steelyard.serve.live_streams import LiveStreams
from steelyard.serve.report_view import LARGEST_REPORT, REPORT_NAME, Reports, has_own_scripts
from steelyard.serve.result_folder import open_inside, require_contained
from steelyard.serve.two_results import two_results
from steelyard.serve.verification import Verifications
from steelyard.study import STUDIES
from steelyard.units import NS_PER_S, format_seconds

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    from steelyard.catalogue import Entry
    from steelyard.record.provenance import Provenance
    from steelyard.report.page import Figure
    from steelyard.serve.computing import Found

    Handler = Callable[[Request], Awaitable[Response]]

RESULTS: Final = 50
"""Results on a page."""
MARGIN_PERCENT: Final = 2.0
_MOST_PAGES: Final = 1_000_000
_LONGEST_FIELD: Final = 300
_ORDERS: Final = ("started", "-started", "study", "host", "folder")

_ASSETS: Final = {
    "style.css": ("steelyard.report", "templates/style.css", "text/css"),
    "icon.svg": ("steelyard.serve", "static/icon.svg", "image/svg+xml"),
    "pages.css": ("steelyard.serve", "static/pages.css", "text/css"),
    "pages.js": ("steelyard.serve", "static/pages.js", "text/javascript"),
}
_STATUS: Final[dict[type[SteelyardError], int]] = {
    UsageError: 400,
    TooBusyError: 503,
    CapabilityError: 501,
}


class Pages:
    """All pages of a server.

    Parameters
    ----------
    directory : Path or None
        Folder with results; ``None`` shows a catalogue.
    catalogue : str or None
        Its address; ``None`` takes the user's.
    """

    def __init__(self, directory: Path | None, catalogue: str | None) -> None:
        self._computing = Computing()
        self._results = Results(catalogue) if directory is None else FolderResults(directory, self._computing)
        self._drawings = Drawings()
        self._reports = Reports(self._computing)
        self._verifications = Verifications(self._results)
        self._streams = LiveStreams(lambda snapshot: _rendered("snapshot.html.j2", snapshot=snapshot))
        self._place = self._results.place

    def application(self) -> Starlette:
        """Give the pages without the guard in front of them."""
        handlers = {SteelyardError: self.failed, HTTPException: self.not_found}
        return Starlette(routes=self.routes(), exception_handlers=handlers)

    async def close(self) -> None:
        """End what was begun; what is asked for from now on is refused where it takes long."""
        await self._streams.close()
        await self._verifications.close()
        self._computing.end()
        self._results.close()

    def routes(self) -> list[Route]:
        """Give the addresses."""
        one = "/results/{id}"
        shown_by: dict[str, Handler] = {
            "/": self.listed,
            "/compare": self.compared,
            "/history": self.history,
            "/static/{name}": self.asset,
            "/charts/{name}": self.chart,
            one: self.result,
            f"{one}/report": self.report,
            f"{one}/report.html": self.report_file,
            f"{one}/findings": self.findings,
            f"{one}/cells": self.cells,
            f"{one}/cells/{{number:int}}": self.cell,
            f"{one}/cells/{{number:int}}/values.csv": self.cell_csv,
            f"{one}/provenance": self.provenance,
            f"{one}/live": self.live,
            f"{one}/events": self.events,
        }
        routes = [Route(path, handler, methods=["GET"]) for path, handler in shown_by.items()]
        return [*routes, Route(f"{one}/verify", self.verify, methods=["POST"])]

    async def failed(self, request: Request, error: Exception) -> Response:
        """Say what cannot be shown and why."""
        known = error if isinstance(error, SteelyardError) else TooBusyError(str(error))
        status = next((code for kind, code in _STATUS.items() if isinstance(known, kind)), 422)
        status = {"data.result": 404, "data.catalogue": 503}.get(known.code, status)
        return self._page(
            request,
            "failure.html.j2",
            status,
            reason=known.message,
            hint=known.hint,
            title="Cannot show this page",
        )

    async def not_found(self, request: Request, error: Exception) -> Response:
        """Say that there is no such page."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        reason = "this address does not take that method" if status == 405 else "there is no such page"  # noqa: PLR2004
        return self._page(request, "failure.html.j2", status, reason=reason, hint=None, title="No such page")

    async def asset(self, request: Request) -> Response:
        """Give style and script."""
        name = request.path_params["name"]
        if name not in _ASSETS:
            raise HTTPException(404)
        package, path, kind = _ASSETS[name]
        text = (files(package) / path).read_text(encoding="utf-8")
        return Response(text, media_type=kind, headers={"Cache-Control": "private, max-age=3600"})

    async def chart(self, request: Request) -> Response:
        """Draw a figure of a page that was shown."""
        kept = self._drawings.of(request.path_params["name"])
        if kept is None:
            raise HTTPException(404)
        theme = "dark" if request.query_params.get("theme") == "dark" else "light"
        size = "narrow" if request.query_params.get("size") == "narrow" else "wide"
        if (theme, size) not in kept.drawings:
            kept.drawings[theme, size] = await self._computing.run(draw, kept.figure, theme, size)  # type: ignore[index,arg-type]
        # A drawing alone in a tab must not be able to do anything either.
        headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
        return Response(kept.drawings[theme, size], media_type="image/svg+xml", headers=headers)  # type: ignore[index]

    async def listed(self, request: Request) -> Response:
        """List results."""
        fields = _fields(request)
        asked = {name: fields.get(name, "") for name in ("study", "host", "tag", "commit", "verdict", "text")}
        since, until = _day(fields, "since"), _day(fields, "until")
        wanted = Filter(
            **{name: value or None for name, value in asked.items()},
            since=since,
            until=None if until is None else _later(until, timedelta(days=1)),
        )
        order = fields.get("order") if fields.get("order") in _ORDERS else "started"
        page = _number(fields, "page")
        found = await self._results.entries(wanted, order or "started", RESULTS, (page - 1) * RESULTS)
        return self._page(
            request,
            "list.html.j2",
            title="Results",
            entries=found.entries,
            total=found.total,
            unread=self._results.unread,
            asked={**asked, "since": fields.get("since", ""), "until": fields.get("until", "")},
            order=order,
            place=self._place,
            studies=STUDIES.names(),
            pages=_Paging(page, found.total, RESULTS, fields),
        )

    async def result(self, request: Request) -> Response:
        """Show one result."""
        entry = await self._entry(request)
        verified = await self._verifications.of(entry.id, entry.folder) if _is_here(entry) else None
        return self._page(
            request,
            "result.html.j2",
            title=entry.title,
            entry=entry,
            tab="report",
            verified=verified,
            is_busy=self._verifications.is_busy,
            is_here=_is_here(entry),
            has_report=_is_here(entry) and (entry.folder / REPORT_NAME).is_file(),
            has_scripts=_is_here(entry) and await asyncio.to_thread(has_own_scripts, entry.folder),
        )

    async def report(self, request: Request) -> Response:
        """Show a report and nothing else."""
        entry = await self._here(request)
        # One that is absent is said here: nothing may frame the page that says so.
        (await asyncio.to_thread(open_inside, entry.folder, REPORT_NAME, LARGEST_REPORT)).close()
        return self._page(
            request,
            "report.html.j2",
            title=f"Report: {entry.title}",
            entry=entry,
            has_scripts=await asyncio.to_thread(has_own_scripts, entry.folder),
        )

    async def report_file(self, request: Request) -> Response:
        """Give the report as it was written."""
        entry = await self._here(request)
        is_framed = request.headers.get("sec-fetch-dest") == "iframe"
        return await self._reports.answer(entry.folder, is_framed=is_framed)

    async def findings(self, request: Request) -> Response:
        """Show findings as a table."""
        entry, fields = await self._here(request), _fields(request)
        asked = TableRequest(
            fields.get("claim", ""),
            fields.get("text", ""),
            fields.get("order", ""),
            fields.get("direction") == "down",
            _number(fields, "page"),
        )
        table = await self._computing.run(finding_table, entry.folder, stamp_of(entry.folder), asked)
        return self._page(
            request,
            "findings.html.j2",
            title=f"Findings: {entry.title}",
            entry=entry,
            tab="findings",
            table=table,
            asked=asked,
            pages=_Paging(asked.page, table.total, ROWS, fields),
        )

    async def cells(self, request: Request) -> Response:
        """List the cells of a result."""
        entry, fields = await self._here(request), _fields(request)
        page, text = _number(fields, "page"), fields.get("text", "")
        found = await self._computing.run(cell_list, entry.folder, text, page)
        return self._page(
            request,
            "cells.html.j2",
            title=f"Cells: {entry.title}",
            entry=entry,
            tab="cells",
            cells=found,
            text=text,
            pages=_Paging(page, found.total, CELLS, fields),
        )

    async def cell(self, request: Request) -> Response:
        """Show what a cell measured."""
        entry, fields = await self._here(request), _fields(request)
        number = request.path_params["number"]
        found = await self._computing.run(
            cell_values, entry.folder, _bounded(number), fields.get("metric", "")
        )
        return self._page(
            request,
            "cell.html.j2",
            title=f"{found.name}: {entry.title}",
            entry=entry,
            tab="cells",
            number=number,
            cell=found,
            charts=self._charts(*found.figures),
        )

    async def cell_csv(self, request: Request) -> Response:
        """Give the values of a cell as CSV."""
        entry, number = await self._here(request), _bounded(request.path_params["number"])
        metric = _fields(request).get("metric", "")
        with tempfile.NamedTemporaryFile(prefix="steelyard-", suffix=".csv") as made:
            await self._computing.run(cell_csv, entry.folder, number, metric, Path(made.name))
            file = Path(made.name).open("rb")  # noqa: SIM115 - the answer closes it
        name = f"{entry.id}-cell-{number}.csv"
        return FileAnswer(file, "text/csv", {"Content-Disposition": f'attachment; filename="{name}"'})

    async def provenance(self, request: Request) -> Response:
        """Show where a result comes from."""
        entry = await self._here(request)
        found = await _read(_provenance, entry.folder)
        return self._page(
            request,
            "provenance.html.j2",
            title=f"Provenance: {entry.title}",
            entry=entry,
            tab="provenance",
            provenance=found,
        )

    async def verify(self, request: Request) -> Response:
        """Begin to compute a result again."""
        entry = await self._here(request)
        await _read(require_contained, entry.folder)
        if not await self._verifications.begin(entry.id, entry.folder):
            message = "another result is being verified"
            raise TooBusyError(message, hint="one at a time: try again when it is done")
        return RedirectResponse(f"/results/{entry.id}#verify", status_code=303)

    async def live(self, request: Request) -> Response:
        """Show a study that is running."""
        entry = await self._here(request)
        is_running = await asyncio.to_thread(is_held, entry.folder)
        snapshot = await _read(lambda: Follower(entry.folder).snapshot()) if is_running else None
        return self._page(
            request,
            "live.html.j2",
            title=f"Live: {entry.title}",
            entry=entry,
            tab="live",
            is_running=is_running,
            snapshot=snapshot,
        )

    async def events(self, request: Request) -> Response:
        """Give the events of a study that is running."""
        entry = await self._here(request)
        return self._streams.answer(entry.id, entry.folder)

    async def compared(self, request: Request) -> Response:
        """Show two results side by side."""
        fields = _fields(request)
        chosen = request.query_params.getlist("result")
        if len(chosen) != 2:  # noqa: PLR2004 - a pair
            message = f"choose two results to compare; chosen: {len(chosen)}"
            raise UsageError(message, hint="tick two boxes in the list")
        sides = [await self._results.entry(each[:_LONGEST_FIELD]) for each in chosen]
        for side in sides:
            _require_here(side)
        if fields.get("swap") != "yes":
            sides.sort(key=lambda each: each.started)
        margin = _percent(fields.get("margin", ""))
        found = await self._computing.run(two_results, sides[0].folder, sides[1].folder, margin)
        return self._page(
            request,
            "compare.html.j2",
            title="Two results",
            first=sides[0],
            second=sides[1],
            found=found,
            charts=self._charts(*([found.figure] if found.figure else [])),
        )

    async def history(self, request: Request) -> Response:
        """Show how a cell has changed over results."""
        fields = _fields(request)
        newest = await self._results.entry(fields.get("result", ""))
        _require_here(newest)
        wanted = Filter(
            study=newest.study,
            host=newest.host or None,
            tag=fields.get("tag") or None,
            until=_later(newest.started, timedelta(seconds=1)),
        )
        page = await self._results.entries(wanted, "started", MOST_RESULTS, 0)
        entries = [each for each in page.entries if each.state == "complete" and _is_here(each)][::-1]
        if len(entries) < 2:  # noqa: PLR2004 - one result is no history
            message = f"`{newest.title}` is the only complete result of its study on this host"
            raise UsageError(message, hint="a history needs two: `steelyard rerun` repeats a study")
        found = await self._computing.run(
            cell_history, [each.folder for each in entries], fields.get("series", "")
        )
        return self._page(
            request,
            "history.html.j2",
            title=f"History: {found.chosen}",
            entry=newest,
            found=found,
            tag=fields.get("tag", ""),
            charts=self._charts(*found.page.figures()),
        )

    async def _entry(self, request: Request) -> Entry:
        identifier = request.path_params["id"]
        if not IDENTIFIER.fullmatch(identifier):
            raise HTTPException(404)
        return await self._results.entry(identifier)

    async def _here(self, request: Request) -> Entry:
        entry = await self._entry(request)
        _require_here(entry)
        return entry

    def _charts(self, *figures: Figure) -> list[tuple[Figure, str]]:
        return [(replace(each, spec={}, datasets={}), self._drawings.keep(each)) for each in figures]

    def _page(self, request: Request, template: str, status: int = 200, /, **values: object) -> Response:
        return HTMLResponse(_rendered(template, path=request.url.path, **values), status)


class _Paging:
    """Where a table of several pages is, and the addresses of its other pages."""

    def __init__(self, page: int, total: int, size: int, fields: Mapping[str, str]) -> None:
        self.page, self.total = page, total
        self.count = max(1, -(-total // size))
        self.fields = {name: value for name, value in fields.items() if name != "page" and value}


async def _read(read: Callable[..., Found], /, *values: Path) -> Found:
    with named_faults():
        return await asyncio.to_thread(read, *values)


def _provenance(folder: Path) -> Provenance:
    require_contained(folder, OF_RUNS)
    return read_provenance(folder)


def _is_here(entry: Entry) -> bool:
    return entry.site in {"", site()} and entry.state != "missing"


def _require_here(entry: Entry) -> None:
    if entry.site not in {"", site()}:
        message = f"the folder of `{entry.title}` is on the machine `{entry.site}`"
        raise UsageError(message, hint=f"start `steelyard serve` there; the folder is {entry.folder}")
    if entry.state == "missing":
        message = f"the folder of `{entry.title}` is gone: {entry.folder}"
        raise UsageError(message, hint="`steelyard results scan` finds it again where it was moved")


def _fields(request: Request) -> dict[str, str]:
    return {name: value[:_LONGEST_FIELD] for name, value in request.query_params.items()}


def _number(fields: Mapping[str, str], name: str) -> int:
    text = fields.get(name, "1")
    return min(max(int(text), 1), _MOST_PAGES) if text.isascii() and text.isdecimal() else 1


def _bounded(number: int) -> int:
    """Give the number of a cell, within what the tables can hold."""
    return min(number, 2**31 - 1)


def _day(fields: Mapping[str, str], name: str) -> datetime | None:
    text = fields.get(name, "")
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        message = f"cannot read the date `{text[:40]}`: allowed: a day such as 2026-11-28"
        raise UsageError(message) from error


def _later(moment: datetime, by: timedelta) -> datetime:
    """Give a later moment; the last one of the calendar has none after it."""
    try:
        return moment + by
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _percent(text: str) -> float:
    try:
        value = float(text or MARGIN_PERCENT)
    except ValueError:
        value = 0.0
    if not 0 < value < 100:  # noqa: PLR2004 - as the text says
        message = f"cannot use the margin `{text[:40]}`: allowed: more than 0 and less than 100 percent"
        raise UsageError(message, hint="e.g. 2")
    return value


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("steelyard.serve"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: shown(value) if type(value) is str else value,
    )
    environment.filters["coded"] = lambda text: coded(shown(text))
    environment.filters["typeset"] = lambda text: typeset(shown(text))
    environment.filters["left"] = lambda seconds: typeset(format_left(seconds))
    environment.filters["moment"] = lambda moment: moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    environment.filters["duration"] = lambda value_ns: typeset(format_seconds(value_ns / NS_PER_S))
    environment.filters["signed"] = lambda ratio: typeset(f"{100 * (ratio - 1):+.3g} %")
    environment.globals |= {
        "version": __version__,
        "no_engine": None if has_engine() else INSTALL,
        "with_fields": _with_fields,
        "state_tone": {"running": "warn", "damaged": "bad", "missing": "bad"},
    }
    return environment


def _with_fields(fields: Mapping[str, str], **changed: object) -> Markup:
    """Give a query with some fields changed; escaped as part of an address."""
    found = {**fields, **{name: str(value) for name, value in changed.items()}}
    return Markup.escape("?" + urlencode({name: value for name, value in found.items() if value}))


def _rendered(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)
