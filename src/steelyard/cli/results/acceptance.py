"""Levels of a history that somebody accepts: the options of ``steelyard history``, and their record."""

from __future__ import annotations

import getpass
from dataclasses import dataclass, replace
from pathlib import Path  # noqa: TC003 - the command line reads the annotation at run time
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.record.accepted_levels import AcceptedLevel


@Parameter(name="*")
@dataclass(frozen=True)
class Acceptance:
    """Which levels are accepted.

    Parameters
    ----------
    accept
        Result whose level is accepted: it, and later results as slow as it, no longer fail. The level is
        recorded with `--why`, the time and the user; with `--metric` for those metrics only, with `--series`
        for those series only.
    why
        Reason for `--accept`.
    series
        Name or pattern of a series whose level is accepted, such as `'parse*'`; may be given several times;
        all by default.
    by
        Name of the person who accepts; the user's name by default.
    accepted
        File of the accepted levels; `accepted-levels.json` beside the newest result by default.
    """

    accept: str | None = None
    why: str | None = None
    series: Annotated[tuple[str, ...], Parameter(negative="", consume_multiple=False)] = ()
    by: str | None = None
    accepted: Path | None = None


NO_ACCEPTANCE: Final = Acceptance()


def accepted_levels(
    acceptance: Acceptance,
    folder: Path,
    names: Sequence[Sequence[str]],
    metrics: tuple[str, ...],
    series: Sequence[tuple[str, ...]],
) -> list[AcceptedLevel]:
    """Give the levels that are accepted, the one that is accepted now included and recorded.

    Parameters
    ----------
    acceptance : Acceptance
        The options.
    folder : Path
        Where the file of the accepted levels is, unless the options name another.
    names : sequence of sequence of str
        Names of the results of each series.
    metrics : tuple of str
        Metrics that a level is accepted for; all, if empty.
    series : sequence of tuple of str
        What each series may be called.
    """
    from steelyard.record.accepted_levels import (  # noqa: PLC0415 - start-up time
        ACCEPTED_NAME,
        AcceptedLevel,
        add_accepted,
        read_accepted,
    )
    from steelyard.record.clock import now_utc  # noqa: PLC0415 - start-up time

    path = acceptance.accepted or folder / ACCEPTED_NAME
    if acceptance.accept is None:
        described = {"--why": acceptance.why, "--by": acceptance.by, "--series": acceptance.series}
        for option, value in described.items():
            if value not in {None, ()}:
                message = f"`{option}` describes `--accept`, which is missing"
                raise UsageError(message, hint="name the result of the level: `--accept RESULT`")
        return read_accepted(path)
    _require_result(acceptance.accept, names)
    level = AcceptedLevel(
        _printable("--accept", acceptance.accept),
        _printable("--by", acceptance.by or _user()),
        now_utc(),
        _printable("--why", acceptance.why),
        list(metrics),
        [_printable("--series", each) for each in acceptance.series],
    )
    _require_series(level, series)
    add_accepted(path, level)
    return read_accepted(path)


def _require_result(name: str, names: Sequence[Sequence[str]]) -> None:
    known = list(dict.fromkeys(label for each in names for label in each))
    if name not in known:
        newest = ", ".join(f"`{label}`" for label in known[-5:])
        message = (
            f"`--accept` names `{name}`, which is not a result of this history; the newest are: {newest}"
        )
        raise UsageError(message, hint="give the name of a result of the level, as the output prints it")
    if any(list(each).count(name) > 1 for each in names):
        message = f"cannot accept `{name}`: several results of this history have this name"
        raise UsageError(message, hint="give each folder (or block) a name of its own")


def _require_series(level: AcceptedLevel, series: Sequence[tuple[str, ...]]) -> None:
    """Refuse a name or pattern that no series has: what it was meant for would stay red."""
    for pattern in level.series:
        one = replace(level, metrics=[], series=[pattern])
        if not any(one.is_for("", *names) for names in series):
            known = ", ".join(f"`{names[0]}`" for names in series[:5])
            more = f" and {len(series) - 5} more" if len(series) > 5 else ""  # noqa: PLR2004 - as many are named
            message = f"`--series {pattern}` names no series of this history; it has {known}{more}"
            raise UsageError(
                message, hint="give a name, or a pattern such as 'parse*', as the output prints it"
            )


def _printable(option: str, text: str | None) -> str:
    from steelyard.record.accepted_levels import LONGEST_TEXT  # noqa: PLC0415 - start-up time

    if text is None:
        message = f"`--accept` needs `{option}`: the reason is recorded with the level"
        raise UsageError(message, hint='e.g. --why "checks every packet now"')
    if not (text.strip() and text.isprintable() and len(text) <= LONGEST_TEXT):
        message = f"cannot record `{option}`: allowed are 1 to {LONGEST_TEXT} printable characters"
        raise UsageError(message, hint="write it in one line")
    return text


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name
        return "unknown"
