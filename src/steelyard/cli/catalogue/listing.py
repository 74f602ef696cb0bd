"""``steelyard results list``, ``show`` and ``diff``: what there is, and how two of them differ."""

from __future__ import annotations

import json
import shutil
import sys
import unicodedata
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import Parameter

from steelyard.catalogue.catalogue import Catalogue, require_here
from steelyard.catalogue.entry import Filter
from steelyard.cli.amounts import Whole  # noqa: TC001 - cyclopts reads it
from steelyard.cli.catalogue.registering import OWN_CATALOGUE, CatalogueOption
from steelyard.cli.fail_on import FailOn, FailOnOption
from steelyard.cli.streams import write_lines
from steelyard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from steelyard.catalogue.entry import Entry, Page

LIST_SCHEMA: Final = "steelyard/result-list/1"
WIDTH: Final = 80
_MOST: Final = 50
_HEADINGS: Final = ("id", "started", "study", "verdict")
_GAP: Final = "  "
_DATE_DIGITS: Final = 10
_CHANGED: Final = (FailOn.CHANGED,)
_Word = Annotated[str | None, Parameter(show_default=False)]


@Parameter(name="*")
@dataclass(frozen=True)
class Wanted:
    """Which results.

    Parameters
    ----------
    study
        Name of the study.
    host
        Begin of the name or id of the host.
    since
        Started on this day or later, `2026-11-28`, or at this time, `2026-11-28T14:30`; local time.
    until
        Started before the end of this day, or before this time.
    tag
        Tag.
    commit
        Begin of the commit of the repository in which it was measured.
    verdict
        Verdict of one of its findings, such as `slower` or `inconclusive`.
    """

    study: _Word = None
    host: _Word = None
    since: _Word = None
    until: _Word = None
    tag: _Word = None
    commit: _Word = None
    verdict: _Word = None

    def filter(self, words: Sequence[str]) -> Filter:
        """Give what the catalogue is asked, with words that must occur."""
        return Filter(
            study=self.study,
            host=self.host,
            since=None if self.since is None else _instant("--since", self.since),
            until=None if self.until is None else _instant("--until", self.until, is_end=True),
            tag=self.tag,
            commit=self.commit,
            verdict=self.verdict,
            text=" ".join(words) or None,
        )


ALL: Final = Wanted()


def list_results(
    *words: str,
    wanted: Wanted = ALL,
    order: Literal["started", "-started", "study", "host", "folder"] = "started",
    limit: Whole = _MOST,
    listed: CatalogueOption = OWN_CATALOGUE,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """List the results of the catalogue.

    Every verb that writes a result registers it. Each line gives the id, the start, the study and the first
    sentence of the report; instead of a verdict it says if the result is running, incomplete, damaged or
    missing.

    Parameters
    ----------
    words
        Words that must occur in what was measured, verdict, note, tags, study, host or folder.
    wanted
        Which results.
    order
        `started`: newest first; `-started`: oldest first; `study`, `host`, `folder`.
    limit
        Largest number of results to list; 0 lists all.
    listed
        Catalogue of results.
    as_json
        Print one JSON object with every field.

    Examples
    --------
    The newest results::

        steelyard results list

    What became slower since Monday, for a script::

        steelyard results list --study compare --verdict slower --since 2026-11-23 --json
    """
    if limit < 0:
        message = f"`--limit {limit}`: allowed: 0 or more; 0 lists all"
        raise UsageError(message)
    with Catalogue.at(listed.catalogue) as catalogue:
        page = catalogue.entries(wanted.filter(words), order, limit=limit or None)
        place = catalogue.address
    if as_json:
        found = [document(entry) for entry in page.entries]
        content = {"schema": LIST_SCHEMA, "catalogue": place, "total": page.total, "results": found}
        sys.stdout.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    else:
        write_lines(table(page.entries, line_width()))
        sys.stderr.writelines(_remarks(page, place, is_filtered=wanted != ALL or bool(words)))


def show(
    result: str,
    *,
    listed: CatalogueOption = OWN_CATALOGUE,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Show what the catalogue knows of a result.

    Parameters
    ----------
    result
        Its id, the first digits of it, or its folder.
    listed
        Catalogue of results.
    as_json
        Print one JSON object.

    Examples
    --------
    steelyard results show 3fa2

    steelyard results show steelyard-results/compare-2026-11-28-1 --json
    """
    with Catalogue.at(listed.catalogue) as catalogue:
        entry = catalogue.entry(result)
    if as_json:
        sys.stdout.write(json.dumps(document(entry), indent=1, ensure_ascii=False) + "\n")
    else:
        write_lines(_described(entry))


def diff(
    first: str,
    second: str,
    *,
    margin: str | None = None,
    fail_on: FailOnOption = _CHANGED,
    listed: CatalogueOption = OWN_CATALOGUE,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Compare two results of the catalogue and list what changed.

    Compares as `steelyard compare-results` does, with its exit codes.

    Parameters
    ----------
    first
        Id, the first digits of it, or folder.
    second
        The result to compare it with, of the same study.
    margin
        Largest difference that counts as agreement, as in `5%`.
    fail_on
        What gives exit code 1: `slower`, `changed`, `undecided`; may be given several times. `changed` by
        default.
    listed
        Catalogue of results.
    as_json
        Print JSON for programs.

    Examples
    --------
    steelyard results diff 3fa2 91c0 --margin 3%
    """
    from steelyard.cli.results.compare_results import compare_results  # noqa: PLC0415 - start-up time

    with Catalogue.at(listed.catalogue) as catalogue:
        folders = [require_here(catalogue.entry(each), "compare").folder for each in (first, second)]
    return compare_results(*folders, margin=margin, fail_on=fail_on, as_json=as_json)


def document(entry: Entry) -> dict[str, Any]:
    """Give an entry as JSON values; times in ISO 8601."""
    ended = None if entry.ended is None else entry.ended.isoformat()
    own = {"folder": str(entry.folder), "started": entry.started.isoformat(), "ended": ended}
    return {**asdict(entry), **own}


def line_width() -> int:
    """Give how many columns a line may have: those of a terminal, and never fewer than 80."""
    return max(shutil.get_terminal_size((WIDTH, 1)).columns, WIDTH) if sys.stdout.isatty() else WIDTH


def table(entries: Sequence[Entry], width: int) -> Iterator[str]:
    """Give a line for each entry, below headings, none longer than a width."""
    if not entries:
        return
    rows = [(entry.id, local(entry.started), entry.study or "?", _said(entry)) for entry in entries]
    widths = [max(len(row[place]) for row in (_HEADINGS, *rows)) for place in range(3)]
    room = width - sum(widths) - 3 * len(_GAP)
    for row in (_HEADINGS, *rows):
        head = _GAP.join(text.ljust(wide) for text, wide in zip(row, widths, strict=False))
        yield f"{head}{_GAP}{fitted(row[3], room)}".rstrip()


def local(instant: datetime) -> str:
    """Write a time in the local time zone, to the minute."""
    return instant.astimezone().strftime("%Y-%m-%d %H:%M")


def fitted(text: str, room: int) -> str:
    """Cut a text so that it fills no more than so many columns of a terminal.

    Examples
    --------
    >>> fitted("slower by 3 %", 10)
    'slower ...'
    """
    if len(text) <= room and text.isascii():
        return text
    taken = 0
    for place, sign in enumerate(text):
        taken += 2 if unicodedata.east_asian_width(sign) in "WF" else not unicodedata.combining(sign)
        if taken > room:
            return text[: max(place - 4, 0)].rstrip() + " ..."
    return text


def _said(entry: Entry) -> str:
    tags = "".join(f"[{tag}] " for tag in entry.tags)
    if entry.state == "complete":
        return tags + (entry.verdict or entry.title)
    reason = entry.problem if entry.state == "damaged" else entry.title
    return f"{tags}{entry.state}: {entry.verdict or reason}"


def _described(entry: Entry) -> Iterator[str]:
    size = f"{entry.cells} cells, {entry.runs} runs"
    report = entry.folder / "report.html"
    pairs = (
        ("result", entry.id),
        ("verdict", entry.verdict),
        ("study", entry.study),
        ("measured", entry.title),
        ("state", f"{entry.state}{f': {entry.problem}' if entry.problem else ''}"),
        ("started", local(entry.started)),
        ("ended", "" if entry.ended is None else local(entry.ended)),
        ("host", entry.host),
        ("commit", entry.commit or ""),
        ("size", size),
        ("version", entry.version and f"steelyard {entry.version}"),
        ("tags", ", ".join(entry.tags)),
        ("note", entry.note),
        ("folder", str(entry.folder)),
        ("report", str(report) if report.is_file() else ""),
    )
    return (f"{name:<10}{text}" for name, text in pairs if text)


def _remarks(page: Page, place: str, *, is_filtered: bool) -> Iterable[str]:
    shown = len(page.entries)
    if shown < page.total:
        yield f"{page.total - shown} more results; `--limit 0` lists all\n"
    elif not page.total and is_filtered:
        yield "no result of the catalogue is of this kind\n"
    elif not page.total:
        yield f"no results in the catalogue `{place}`\n"
        yield "hint: `steelyard results scan DIR` adds those below a folder\n"


def _instant(option: str, text: str, *, is_end: bool = False) -> datetime:
    """Read a day or a time of the local time zone; as an end, a day is whole."""
    try:
        found = datetime.fromisoformat(text)
        moved = found + timedelta(days=1) if is_end and len(text) <= _DATE_DIGITS else found
        return moved.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        message = f"`{option} {text}`: allowed: a day as in `2026-11-28`, or a time as in `2026-11-28T14:30`"
        raise UsageError(message) from error
